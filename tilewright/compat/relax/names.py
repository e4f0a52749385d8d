"""The names of `tvm.relax` and of its modules."""
from __future__ import annotations

from typing import Any

from tilewright.compat.relax import (
    analysis,
    builder,
    dpl,
    expr,
    functor,
    lift,
    op_elements,
    op_nn,
    op_shapes,
    ops,
    struct_info,
    transform,
    vm,
)

TABLES = (op_elements, op_nn, op_shapes)                     # each enters its operators in ops.OPS


def _operators(prefix: str) -> dict[str, Any]:
    """The operators right below a prefix."""
    start = f"relax.{prefix}"
    return {name.removeprefix(start): row for name, row in ops.OPS.items()
            if name.startswith(start) and "." not in name.removeprefix(start)}


_CALLS = {"call_tir": ops.call_tir, "call_dps_packed": ops.call_dps_packed, "call_pure_packed": ops.call_pure_packed}
NN, IMAGE = _operators("nn."), _operators("image.")
OP: dict[str, Any] = {**NN, **_operators(""), **_CALLS, "shape_of": lambda x: x.shape_}
_RELAX = {
    **expr.NAMES, **struct_info.NAMES, "BlockBuilder": builder.BlockBuilder, **functor.NAMES, **vm.NAMES,
    "Expr": struct_info.RelaxExpr, "get_pipeline": transform.get_pipeline,
    "get_shape_of": lambda x: x.shape_}
VM = {**vm.NAMES}

MODULES: dict[str, tuple[dict[str, Any], str]] = {
    "tvm.relax": (_RELAX, "Graphs of bindings."),
    "tvm.relax.op": (OP, "Operators of graphs."),
    "tvm.relax.op.nn": (NN, "Layers of graphs."),
    "tvm.relax.op.image": (IMAGE, "Images in graphs."),
    "tvm.relax.expr": (_RELAX, "Nodes of graphs."),
    "tvm.relax.struct_info": (struct_info.NAMES, "What is known of values."),
    "tvm.relax.ty": (struct_info.NAMES, "Types of values."),
    "tvm.relax.block_builder": ({"BlockBuilder": builder.BlockBuilder}, "Functions, call by call."),
    "tvm.relax.expr_functor": (functor.FUNCTOR, "Visitors of graphs."),
    "tvm.relax.analysis": (analysis.NAMES, "Questions about graphs."),
    "tvm.relax.transform": (transform.NAMES, "Passes over graphs."),
    "tvm.relax.dpl": (dpl.NAMES, "Patterns of graphs."),
    "tvm.relax.dpl.pattern": (dpl.NAMES, "Patterns of graphs."),
    **lift.MODULES,
    "tvm.relax.vm": (VM, "Modules compiled and run."),
    "tvm.runtime.relax_vm": (VM, "Modules run."),
}
