"""Operators of relax: a table of names, each a use of a rule that makes te tensors; files op_*.py fill it."""
from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from tilewright.compat.registered_ops import OTHER_OPS, Op
from tilewright.compat.relax.expr import Call, Constant, Expr, PrimValue, Tuple, as_expr
from tilewright.compat.relax.sizes import Sizes
from tilewright.compat.relax.struct_info import (
    RelaxExpr,
    ShapeExpr,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
)
from tilewright.graph.ir.callees import Operator, operator
from tilewright.graph.ir.values import Value
from tilewright.support.errors import ArgumentError, GraphError, described, nearest
from tilewright.support.registry import register_hook
from tilewright.tir import Expr as TirExpr
from tilewright.tir import FloatImm, IntImm


class Use(NamedTuple):
    """rule(*args, **kwargs), which makes te tensors of te tensors."""
    rule: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]


def use(rule: Callable[..., Any], *args: Any, **kwargs: Any) -> Use:
    """The use of a rule by an operator."""
    return Use(rule, args, kwargs)


class RelaxOp(Op):
    """An operator of relax, known by its full name."""

    @property
    def name(self) -> str:
        return str(self)


class Attrs(dict[str, Any]):
    """Attributes of a call, as items and as attributes."""

    def __getattr__(self, name: str) -> Any:
        if name not in self:
            raise AttributeError(f"the call has no attribute {name}; it has {', '.join(self) or 'none'}")
        return self[name]


@dataclass(frozen=True)
class Row:
    """An operator: what it uses, given its expressions and attributes, and which of its parameters are expressions."""
    op: RelaxOp
    uses: Callable[..., Use]
    exprs: tuple[str, ...]
    signature: inspect.Signature

    def __call__(self, *args: Any, **kwargs: Any) -> Call:
        """A call of the operator. Raises ArgumentError for arguments that it does not take."""
        kwargs.pop("span", None)
        try:
            bound = self.signature.bind(*args, **kwargs)
        except TypeError as why:
            raise ArgumentError(f"{self.op}: {why}", f"{self.op}{self.signature}") from None
        bound.apply_defaults()
        given = bound.arguments
        first = next((given[n] for n in self.exprs if isinstance(given[n], RelaxExpr)), None)
        exprs = [_expr(given[n], first) for n in self.exprs]
        while exprs and exprs[-1] is None:
            exprs.pop()
        if None in exprs:
            raise ArgumentError(f"{self.op}: {self.exprs[exprs.index(None)]} is missing")
        return Call(self.op, exprs, Attrs((n, _plain(v)) for n, v in given.items() if n not in self.exprs))

    def native(self, values: Sequence[Any], attrs: Mapping[str, Any], sizes: Sizes) -> tuple[Operator, list[Value]]:
        """(the operator of the graph, its inputs) for values of the expressions; those of shapes are tuples."""
        given = dict(zip(self.exprs, values)) | {n: _sized(v, sizes) for n, v in attrs.items()}
        found = self.uses(**given)
        return operator(found.rule, found.args, found.kwargs, Value)

    def stated(self, attrs: Mapping[str, Any]) -> dict[str, Any]:
        """The attributes that are not as they are by themselves."""
        parameters = self.signature.parameters
        return {n: v for n, v in attrs.items() if n not in parameters or parameters[n].default != v}


OPS: dict[str, Row] = {}


def op(name: str, exprs: str = "x") -> Callable[[Callable[..., Use]], Callable[..., Use]]:
    """Decorator: the operator relax.NAME, which uses what the function gives; `exprs` are those of its parameters that
    are expressions."""
    def keep(uses: Callable[..., Use]) -> Callable[..., Use]:
        full = f"relax.{name}"
        row = Row(RelaxOp(full), uses, tuple(exprs.split()), inspect.signature(uses))
        OPS[full] = row
        OTHER_OPS[full] = row.op
        return uses
    return keep


def row_of(name: str) -> Row:
    """The operator of that full name. Raises ArgumentError where there is none."""
    if name not in OPS:
        raise ArgumentError(f"there is no operator {name}", nearest(name, OPS))
    return OPS[name]


def special(name: str) -> RelaxOp:
    """An operator that no rule computes: relax.call_tir."""
    made = OTHER_OPS[name] = RelaxOp(name)
    return made


CALL_TIR, CALL_DPS, CALL_PACKED = (special(f"relax.{n}") for n in ("call_tir", "call_dps_packed", "call_pure_packed"))


def infer(call: Any) -> StructInfo | None:
    """What is known of the value of a call of an operator; None where its inputs are not known.

    Raises GraphError where the operator refuses its inputs.
    """
    if call.sinfo_args:
        return call.sinfo_args[0] if len(call.sinfo_args) == 1 else TupleStructInfo(call.sinfo_args)
    if not isinstance(call.op, RelaxOp) or call.op not in OPS:
        return None
    sizes = Sizes()
    try:
        values = [_typed(a, sizes) for a in call.args]
    except _Unknown:
        return None
    op_, inputs = row_of(call.op).native(values, call.attrs, sizes)
    return sizes.infos(op_.types(*(v.type for v in inputs)))


class _Unknown(Exception):
    """Something that is not known of an input."""


def _typed(x: Any, sizes: Sizes) -> Any:
    """What stands for an expression while types are inferred: values without a place, tuples of extents."""
    if isinstance(x, ShapeExpr):
        return tuple(map(sizes.dim, x))
    if isinstance(x, Tuple):
        return [_typed(f, sizes) for f in x.fields]
    if isinstance(x, Constant):
        return Value(sizes.type(x.struct_info, "a constant"), "const")
    return _of_info(x.struct_info_, sizes)


def _of_info(info: StructInfo | None, sizes: Sizes) -> Any:
    if isinstance(info, TupleStructInfo):
        return [_of_info(f, sizes) for f in info.fields]
    if not isinstance(info, TensorStructInfo) or info.dims is None:
        raise _Unknown
    return Value(sizes.type(info, "an input"), "x")


def _expr(x: Any, like: Any) -> Any:
    """An argument as an expression: numbers in a list are a shape."""
    if x is None or isinstance(x, RelaxExpr):
        return x
    if isinstance(x, (list, tuple)) and x and not any(isinstance(y, RelaxExpr) for y in x):
        if all(isinstance(y, (int, TirExpr)) for y in x):
            return ShapeExpr(x)
    if isinstance(x, (list, tuple)) and not x:
        return ShapeExpr(())
    return as_expr(x, like)


def _plain(x: Any) -> Any:
    """An attribute as plain data."""
    if isinstance(x, (IntImm, FloatImm)):
        return x.value
    if isinstance(x, PrimValue):
        return _plain(x.value)
    if isinstance(x, ShapeExpr):
        return tuple(map(_plain, x))
    if isinstance(x, (list, tuple)):
        return type(x)(map(_plain, x))
    if isinstance(x, Constant) and x.array.size == 1:
        return x.array.item()
    if isinstance(x, RelaxExpr):
        raise ArgumentError(f"{described(x)} stands in the place of an attribute", "attributes are plain data")
    return getattr(x, "value", x) if isinstance(x, Expr) else x


def _sized(x: Any, sizes: Sizes) -> Any:
    if isinstance(x, TirExpr):
        return sizes.dim(x)
    return type(x)(_sized(y, sizes) for y in x) if isinstance(x, (list, tuple)) else x


def known(call: Any) -> Any:
    """call, with what is known of its value."""
    if call.struct_info_ is None:
        call.struct_info_ = infer(call)
    return call


@register_hook("relax.binary")
def _operated(name: str, *operands: Any) -> Call:
    """x + y, where one of them is an expression."""
    like = next(x for x in operands if isinstance(x, RelaxExpr))
    return row_of(name)(*(as_expr(x, like) for x in operands))


def call_tir(gvar: Any, args: Any, out_sinfo: Any = None, tir_vars: Any = None, dtype: Any = None,
             shape: Any = None) -> Call:
    """A function of the module that writes its results; in the form of 2022 call_tir(f, args, shape, dtype=...)."""
    if isinstance(gvar, (str, Expr)) and not hasattr(gvar, "name_hint"):
        return call_dps_packed(gvar, args, out_sinfo if shape is None else shape, dtype)
    return Call(CALL_TIR, [gvar, _arguments(args), *([] if tir_vars is None else [_shape(tir_vars)])], {},
                _results(out_sinfo if shape is None else shape, dtype))


def call_dps_packed(func: Any, args: Any, out_sinfo: Any = None, dtype: Any = None) -> Call:
    """A packed function that takes inputs and results, and writes these."""
    return Call(CALL_DPS, [as_extern(func), _arguments(args)], {}, _results(out_sinfo, dtype))


def call_pure_packed(func: Any, *args: Any, sinfo_args: Any = None) -> Call:
    """A packed function that gives its result."""
    return Call(CALL_PACKED, [as_extern(func), *map(as_expr, args)], {}, _results(sinfo_args, None))


def as_extern(func: Any) -> Any:
    from_text = isinstance(func, str) and not hasattr(func, "name_hint")
    made = Call(func, []).op if from_text else func
    if not hasattr(made, "global_symbol"):
        raise ArgumentError(f"{described(func)} is no packed function",
                            'write "env.linear" or relax.extern("env.linear")')
    return made


def _shape(x: Any) -> ShapeExpr:
    return x if isinstance(x, ShapeExpr) else ShapeExpr(x)


def _arguments(args: Any) -> Tuple:
    if isinstance(args, Tuple):
        return args
    return Tuple([as_expr(a) for a in (args if isinstance(args, (list, tuple)) else [args])])


def _results(out: Any, dtype: Any) -> list[StructInfo]:
    """The struct infos of results, from themselves, or from shapes and dtypes in the form of 2022."""
    if isinstance(out, TupleStructInfo):
        return list(out.fields)
    if isinstance(out, StructInfo):
        return [out]
    if isinstance(out, (list, tuple)) and out and all(isinstance(x, StructInfo) for x in out):
        return list(out)
    if out is None:
        raise GraphError("the results of the call are not stated", 'out_sinfo=R.Tensor((1, 10), "float32")')
    shapes = list(out.fields) if isinstance(out, Tuple) else None
    if shapes is None and isinstance(out, (list, tuple)) and out and isinstance(out[0], (list, tuple, ShapeExpr)):
        shapes = list(out)
    if shapes is None:
        return [TensorStructInfo(out, dtype or "float32")]
    dtypes = dtype if isinstance(dtype, (list, tuple)) else [dtype or "float32"] * len(shapes)
    return [TensorStructInfo(s, d) for s, d in zip(shapes, dtypes, strict=True)]

