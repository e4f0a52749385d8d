"""`tvm.script.relax`: R for relax functions in scripts."""
from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright.compat.relax import expr as rx
from tilewright.compat.relax import names as relax
from tilewright.compat.relax.builder import BlockBuilder
from tilewright.compat.relax.struct_info import (
    FuncStructInfo,
    ObjectStructInfo,
    PrimStructInfo,
    RelaxExpr,
    ShapeExpr,
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
)
from tilewright.graph.ir.dialect import FORMS, Annotation, Names
from tilewright.graph.ir.parser import FunctionDecorator
from tilewright.script.members import Members
from tilewright.support.errors import GraphError, described
from tilewright.tir import Var
from tilewright.tir.functions import GlobalVar


@dataclass(frozen=True)
class _Match:
    """R.match_cast(value, struct_info)."""
    value: Any
    info: StructInfo


def _dims(shape: Any) -> Any:
    """A shape whose texts are variables."""
    if shape is None or isinstance(shape, ShapeExpr):
        return shape
    return [Var(d, "int64") if isinstance(d, str) else d for d in shape]


def tensor(shape: Any = None, dtype: Any = None, vdevice: Any = None, ndim: int = -1) -> TensorStructInfo:
    """R.Tensor(shape, dtype), R.Tensor(dtype=..., ndim=...)"""
    if isinstance(shape, str):                                    # R.Tensor("float32", ndim=2)
        shape, dtype = None, shape
    stated = dtype if dtype is not None else "float32" if shape is not None else ""
    return TensorStructInfo(_dims(shape), stated, vdevice, ndim)


def _tuple(*fields: Any) -> TupleStructInfo:
    given = fields[0] if len(fields) == 1 and isinstance(fields[0], (list, tuple)) else fields
    return TupleStructInfo([_info(f) for f in given])


def _info(x: Any) -> StructInfo:
    """An annotation: R.Tensor alone says nothing of the shape."""
    if isinstance(x, Annotation):
        return x.make()                                           # type: ignore[no-any-return]
    if not isinstance(x, StructInfo):
        raise GraphError(f"{described(x)} says nothing of a value", 'R.Tensor((16,), "float32")')
    return x


class _Dialect:
    """Makes one relax function."""

    def __init__(self) -> None:
        self.names: Mapping[str, Any] = NAMES
        self.builder = BlockBuilder()
        self.params: list[rx.Var] = []
        self.extra: dict[str, Any] = {}
        self.outputs: set[str] = set()
        self.in_flow = False
        self.module: Members | None = None
        self.builder.begin(())

    def size(self, name: str) -> Var:
        return Var(name, "int64")

    def parameter(self, name: str, annotation: Any) -> rx.Var:
        self.params.append(rx.Var(name, _info(annotation)))
        return self.params[-1]

    def reserve(self, names: set[str]) -> None:
        """Let no other variable have these names."""
        self.builder.take_names(names)

    def bind(self, name: str, value: Any, annotation: Any) -> Any:
        stated = None if annotation is None else _info(annotation)
        given = value.value if isinstance(value, _Match) else value
        if isinstance(given, (int, float)) and not isinstance(given, bool):
            raise GraphError(f"{name} is {described(given)}, not a value", "R.const(2.0) makes a constant")
        made = self.builder.normalize(given)
        info = made.struct_info_ or stated
        made.struct_info_ = info
        if stated is not None and info is not None and not stated.is_base_of(info):
            raise GraphError(f"{name} is {info}, and {stated} is stated")
        inner = self.in_flow and name not in self.outputs
        var = (rx.DataflowVar if inner else rx.Var)(name, value.info if isinstance(value, _Match) else info)
        binding = rx.MatchCast(var, made, value.info) if isinstance(value, _Match) else rx.VarBinding(var, made)
        return self.builder.emit_normalized(binding)

    @contextlib.contextmanager
    def dataflow(self, outputs: Sequence[str]) -> Iterator[None]:
        self.outputs, self.in_flow = set(outputs), True
        with self.builder.dataflow():
            yield
        self.in_flow = False

    def attrs(self, given: Mapping[str, Any]) -> None:
        self.extra.update(given)

    def constant(self, array: np.ndarray) -> rx.Constant:
        return rx.const(array)

    def update(self, target: Any, value: Any) -> None:
        raise GraphError("a relax function updates nothing", "give the new value as a result")

    def member(self, name: str, module: Members) -> GlobalVar:
        self.module = module
        return GlobalVar(name)

    def call(self, callee: Any, args: Sequence[Any]) -> rx.Call:
        made = rx.Call(callee, [rx.as_expr(a) for a in args])
        if isinstance(callee, GlobalVar) and self.module is not None:
            made.struct_info_ = getattr(self.module.find(callee), "ret_struct_info", None)
        return made

    def item(self, value: Any, index: int) -> Any:
        if not isinstance(value, RelaxExpr):
            raise GraphError(f"{described(value)} is no tuple")
        return rx.TupleGetItem(value, index) if not isinstance(value, rx.Tuple) else value.fields[index]

    def choice(self, name: str, condition: Any, then: Callable[[], Any], orelse: Callable[[], Any]) -> Any:
        if self.in_flow:
            raise GraphError("a dataflow block has no branches", "write them before or behind it")
        branches = []
        for read in (then, orelse):
            self.builder.begin(())
            value = read()
            branches.append(rx.SeqExpr(self.builder.end(), value))
        infos = [b.struct_info_ for b in branches]
        chosen = rx.If(condition, *branches)
        chosen.struct_info_ = infos[0] if infos[0] == infos[1] else None
        return self.builder.emit_normalized(rx.VarBinding(rx.Var(name, chosen.struct_info_), chosen))

    def finish(self, name: str, result: Any, annotation: Any, private: bool) -> rx.Function:
        body = self.builder.normalize(result)
        if isinstance(body, rx.Call):
            body = self.builder.emit(body)
        info = body.struct_info_ or (None if annotation is None else _info(annotation))
        attrs = {} if private else {"global_symbol": name}
        return rx.Function(self.params, rx.SeqExpr(self.builder.end(), body), info, attrs={**attrs, **self.extra})


def _prim(dtype: str | None = None, value: Any = None) -> StructInfo:
    return PrimStructInfo(dtype or "int64", value)


def _number(value: Any, dtype: Any = None) -> rx.Constant:
    return rx.const(value, dtype)


def _packed(name: str, *args: Any, sinfo_args: Any = None) -> rx.Call:
    return relax.ops.call_pure_packed(name, *args, sinfo_args=sinfo_args)


NAMES: dict[str, Any] = {
    **relax.OP, **FORMS, "nn": Names(relax.NN), "image": Names(relax.IMAGE),
    "Tensor": Annotation("Tensor", tensor), "Tuple": Annotation("Tuple", _tuple),
    "Shape": Annotation("Shape", lambda values=None, ndim=-1: ShapeStructInfo(_dims(values), ndim)),
    "Object": Annotation("Object", ObjectStructInfo), "Prim": Annotation("Prim", _prim),
    "Callable": Annotation("Callable", lambda params=None, ret=None, **named: FuncStructInfo(
        params, ret or ObjectStructInfo())),
    "const": _number, "shape": ShapeExpr, "tuple": lambda *fields: rx.Tuple([rx.as_expr(f) for f in fields]),
    "match_cast": lambda value, info: _Match(value, _info(info)), "ExternFunc": rx.ExternFunc,
    "call_packed": _packed, "prim_value": rx.PrimValue, "str": rx.StringImm, "dtype": rx.DataTypeImm}
NAMES["function"] = FunctionDecorator(_Dialect)

