"""Constants in the place of parameters, and of the sizes that their shapes decide."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tilewright.compat.relax import expr as rx
from tilewright.compat.relax.functor import PyExprMutator
from tilewright.compat.relax.printer import dims_in
from tilewright.compat.relax.struct_info import (
    RelaxExpr,
    ShapeExpr,
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
)
from tilewright.graph.ir.types import size_variables
from tilewright.support.errors import ArgumentError
from tilewright.tir import Expr, Var, substitute
from tilewright.tir.interp import evaluate


def bind_params(func: rx.Function, params: Mapping[Any, Any]) -> rx.Function:
    """func with constants in the place of parameters, known by their names or themselves."""
    known: dict[Any, Any] = {p.name_hint: p for p in func.params} | {p: p for p in func.params}
    wrong = next((k for k in params if k not in known), None)
    if wrong is not None:
        raise ArgumentError(f"bind_params: {func.name} has no parameter {wrong}",
                            ", ".join(p.name_hint for p in func.params))
    values = {known[k]: v if isinstance(v, RelaxExpr) else rx.const(v) for k, v in params.items()}
    sizes: dict[Any, Expr] = {}
    for p, v in values.items():
        for d, n in zip(dims_in(p.struct_info_), dims_in(v.struct_info_)):
            if isinstance(d, Var) and sizes.setdefault(d, n) is not n and not bool(sizes[d] == n):
                raise ArgumentError(f"bind_params: {d.name} is {sizes[d]}, and {p.name_hint} has the shape "
                                    f"{v.struct_info}")
    left = func.replace(params=[p for p in func.params if p not in values])
    made: rx.Function = _Bind(values, sizes).visit_expr(left)
    return made


class _Bind(PyExprMutator):
    def __init__(self, values: Mapping[Any, Any], sizes: Mapping[Any, Expr]) -> None:
        super().__init__()
        self.values, self.sizes = values, sizes

    def visit_var_(self, op: Any) -> Any:
        return self.values.get(op, self._renamed.get(op, op))

    def visit_var_def(self, var: Any) -> Any:
        if var not in self._renamed and self.sizes and any(v in self.sizes for v in size_variables(
                dims_in(var.struct_info_))):
            self._renamed[var] = type(var)(var.name_hint, self.info(var.struct_info_))
        return self._renamed.get(var, var)

    def visit_call_(self, op: Any) -> Any:
        made = self.visit_expr_post_order(op)
        if not self.sizes or not op.sinfo_args:
            return made
        return rx.Call(made.op, made.args, made.attrs, [self.info(i) for i in op.sinfo_args])

    def visit_shape_expr_(self, op: Any) -> Any:
        return ShapeExpr([self.dim(d) for d in op])

    def dim(self, d: Expr) -> Any:
        new = substitute(d, self.sizes)
        return new if size_variables([new]) else int(evaluate(new, {}))

    def info(self, info: StructInfo) -> StructInfo:
        if isinstance(info, TupleStructInfo):
            return TupleStructInfo([self.info(f) for f in info.fields])
        if isinstance(info, ShapeStructInfo) and info.values is not None:
            return ShapeStructInfo([self.dim(d) for d in info.values])
        if not isinstance(info, TensorStructInfo) or info.dims is None:
            return info
        return TensorStructInfo([self.dim(d) for d in info.dims], info.dtype)
