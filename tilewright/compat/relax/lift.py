"""Functions of the graph as relax functions: what front ends read, for programs that rewrite it."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tilewright.compat.relax import expr as rx
from tilewright.compat.relax.builder import BlockBuilder
from tilewright.compat.relax.ops import CALL_TIR, call_dps_packed
from tilewright.compat.relax.struct_info import ShapeExpr, TensorStructInfo, TupleStructInfo
from tilewright.frontend.onnx import from_onnx as import_onnx
from tilewright.frontend.torch import from_exported_program as import_program
from tilewright.graph.ir.callees import Extern, Kernel, Operator, Slot
from tilewright.graph.ir.types import TensorType
from tilewright.graph.ir.values import Call, Function, Value
from tilewright.support.errors import GraphError
from tilewright.tir import IRModule


def lift(function: Function, name: str = "main") -> IRModule:
    """The module of a function: its operators are functions of blocks, its constants stay where they are.

    Raises GraphError for choices, loops and updates, which relax functions here do not have.
    """
    if function.updates:
        raise GraphError(f"{name} updates parameters, and relax functions have no effects")
    return _Lift(function).module(name)


class _Lift:
    def __init__(self, function: Function) -> None:
        self.function, self.builder = function, BlockBuilder()
        self.map: dict[Value, Any] = {}

    def module(self, name: str) -> IRModule:
        f = self.function
        self.map.update((p, rx.Var(p.name, _info(p.type))) for p in f.params)
        with self.builder.function(name, [self.map[p] for p in f.params]):
            with self.builder.dataflow():
                for c in f.calls:
                    self.call(c)
                ends = [self.builder.emit_output(self.value(v)) for v in f.results]
            self.builder.emit_func_output(ends[0] if len(ends) == 1 else rx.Tuple(ends))
        return self.builder.get()

    def value(self, v: Value) -> Any:
        if v not in self.map:
            self.map[v] = rx.const(v.data)
        return self.map[v]

    def call(self, c: Call) -> None:
        inputs = [self.value(v) for v in c.inputs]
        callee = c.callee
        if isinstance(callee, Operator):
            name = callee.name.rpartition(".")[2]
            made = self.builder.emit_te(callee.rule, *_filled(callee.args, inputs), primfunc_name_hint=name,
                                        **_filled(dict(callee.kwargs), inputs))
        elif isinstance(callee, Extern):
            made = self.builder.emit(call_dps_packed(callee.name, inputs, _infos(callee.results)))
        elif isinstance(callee, Kernel):
            gvar = self.builder.add_func(callee.func, callee.name)
            sizes = [ShapeExpr(callee.sizes)] if callee.sizes else []
            made = self.builder.emit(rx.Call(CALL_TIR, [gvar, rx.Tuple(inputs), *sizes], {},
                                             [_info(t) for t in callee.results]))
        else:
            raise GraphError(f"{self.function.name}: {c!r} is nothing that relax functions here have")
        fields = [made] if len(c.results) == 1 else [self.builder.emit(made[k]) for k in range(len(c.results))]
        self.map.update(zip(c.results, fields, strict=True))


def _filled(x: Any, inputs: Sequence[Any]) -> Any:
    if isinstance(x, Slot):
        return inputs[x.index]
    if isinstance(x, Mapping):
        return {k: _filled(v, inputs) for k, v in x.items()}
    return type(x)(_filled(y, inputs) for y in x) if type(x) in (list, tuple) else x


def _info(t: TensorType) -> TensorStructInfo:
    return TensorStructInfo(t.shape, t.dtype)


def _infos(types: Sequence[TensorType]) -> Any:
    made = [_info(t) for t in types]
    return made[0] if len(made) == 1 else TupleStructInfo(made)


def from_onnx(model: Any, shape_dict: Mapping[str, Sequence[int]] | None = None, dtype_dict: Any = "float32",
              opset: int | None = None, keep_params_in_input: bool = False, **options: Any) -> IRModule:
    """The module of a model in the ONNX format; weights are constants."""
    if keep_params_in_input:
        raise GraphError("from_onnx: weights are constants", "leave keep_params_in_input out")
    return lift(import_onnx(model, shapes=dict(shape_dict) if shape_dict else None))


def from_exported_program(exported_program: Any, *, keep_params_as_input: bool = False, **options: Any) -> IRModule:
    """The module of a program of torch.export; weights are constants."""
    if keep_params_as_input:
        raise GraphError("from_exported_program: weights are constants", "leave keep_params_as_input out")
    return lift(import_program(exported_program))


MODULES: dict[str, tuple[dict[str, Any], str]] = {
    "tvm.relax.frontend": ({}, "Models of other systems."),
    "tvm.relax.frontend.onnx": ({"from_onnx": from_onnx}, "Models in the ONNX format."),
    "tvm.relax.frontend.torch": ({"from_exported_program": from_exported_program}, "Programs of torch.export."),
}
