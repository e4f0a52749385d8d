"""`relax.dpl`: patterns of expressions, `is_op("relax.matmul")(wildcard(), wildcard())`."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tilewright.compat.registered_ops import Op
from tilewright.compat.relax import expr as rx
from tilewright.compat.relax.functor import PyExprMutator
from tilewright.compat.relax.ops import CALL_DPS, CALL_TIR
from tilewright.compat.relax.struct_info import TensorStructInfo, dims_of
from tilewright.runtime.dtypes import dtype_string
from tilewright.support.errors import ArgumentError, described
from tilewright.tir.functions import GlobalVar

Values = Mapping[Any, Any]
Found = dict["DFPattern", Any]


class DFPattern:
    """What an expression may look like; a variable looks like what it is bound to."""

    def holds(self, expr: Any, values: Values, found: Found) -> bool:
        """True where expr, which is no bound variable any more, is as this says; its parts go to found."""
        raise NotImplementedError

    def find(self, expr: Any, values: Values, found: Found) -> bool:
        known = found.get(self)
        if known is not None:
            return known is expr
        bound = expr if isinstance(self, (_Wildcard, _VarPattern)) else values.get(expr, expr) if isinstance(
            expr, rx.Var) else expr
        if not self.holds(bound, values, found):
            return False
        found[self] = expr
        return True

    def match(self, expr: Any, var2val: Values | None = None) -> bool:
        """True where expr looks like this."""
        return self.find(expr, var2val or {}, {})

    def extract_matched_expr(self, expr: Any, var2val: Values | None = None) -> Found | None:
        """What each part of this pattern has matched; None where expr does not look like it."""
        found: Found = {}
        return found if self.find(expr, var2val or {}, found) else None

    def matched(self, expr: Any, values: Values) -> list[Any] | None:
        """The bound variables that the pattern goes through, itself left out; None where it does not match."""
        found = self.extract_matched_expr(expr, values)
        if found is None:
            return None
        return [e for p, e in found.items() if isinstance(e, rx.Var) and e in values
                and not isinstance(p, (_Wildcard, _VarPattern))]

    def __call__(self, *args: Any, **attrs: Any) -> DFPattern:
        return _CallPattern(self, list(args)).has_attr(attrs) if attrs else _CallPattern(self, list(args))

    def __or__(self, other: DFPattern) -> DFPattern:
        return _Or(self, other)

    def __and__(self, other: DFPattern) -> DFPattern:
        return _Where([self, other], None)

    def __add__(self, other: DFPattern) -> DFPattern:
        return is_op("relax.add")(self, other)

    def __mul__(self, other: DFPattern) -> DFPattern:
        return is_op("relax.multiply")(self, other)

    def __sub__(self, other: DFPattern) -> DFPattern:
        return is_op("relax.subtract")(self, other)

    def has_dtype(self, dtype: str) -> DFPattern:
        """This, of a dtype."""
        wanted = dtype_string(dtype)
        return _Where([self], lambda e: getattr(e.struct_info_, "dtype", None) == wanted)

    def has_shape(self, shape: Sequence[Any]) -> DFPattern:
        """This, of a shape."""
        wanted = TensorStructInfo(dims_of(shape))
        return _Where([self], lambda e: isinstance(e.struct_info_, TensorStructInfo) and wanted.same_shape(
            e.struct_info_))

    def has_attr(self, attrs: Mapping[str, Any]) -> DFPattern:
        """This, with attributes that have these values."""
        return _Where([self], lambda e: all(getattr(e, "attrs", {}).get(k) == v for k, v in attrs.items()))


class _Wildcard(DFPattern):
    def holds(self, expr: Any, values: Values, found: Found) -> bool:
        return True


class _VarPattern(DFPattern):
    def __init__(self, name: str) -> None:
        self.name = name

    def holds(self, expr: Any, values: Values, found: Found) -> bool:
        return isinstance(expr, rx.Var) and self.name in ("", expr.name_hint)


class _Leaf(DFPattern):
    def __init__(self, test: Callable[[Any], bool]) -> None:
        self.test = test

    def holds(self, expr: Any, values: Values, found: Found) -> bool:
        return self.test(expr)


class _OpPattern(_Leaf):
    """The operator itself; called, a call of it."""


class _CallPattern(DFPattern):
    def __init__(self, op: DFPattern, args: list[DFPattern], varg: bool = False) -> None:
        self.op, self.args, self.varg = op, args, varg
        for a in args:
            if not isinstance(a, DFPattern):
                raise ArgumentError(f"{described(a)} is no pattern", "wildcard(), is_op(...)(...), is_const()")

    def holds(self, expr: Any, values: Values, found: Found) -> bool:
        if not isinstance(expr, rx.Call) or not self.op.holds(expr.op, values, found):
            return False
        args = expr.args
        if len(args) != len(self.args) and not (self.varg and len(args) > len(self.args)):
            return False
        return all(p.find(a, values, found) for p, a in zip(self.args, args))


class _Or(DFPattern):
    def __init__(self, left: DFPattern, right: DFPattern) -> None:
        self.left, self.right = left, right

    def holds(self, expr: Any, values: Values, found: Found) -> bool:
        for side in (self.left, self.right):
            tried = dict(found)
            if side.find(expr, values, tried):
                found.update(tried)
                return True
        return False


class _Where(DFPattern):
    """All of some patterns, and a condition."""

    def __init__(self, parts: Sequence[DFPattern], test: Callable[[Any], bool] | None) -> None:
        self.parts, self.test = parts, test

    def holds(self, expr: Any, values: Values, found: Found) -> bool:
        return all(p.find(expr, values, found) for p in self.parts) and (self.test is None or self.test(expr))


class _Fields(DFPattern):
    def __init__(self, fields: Sequence[DFPattern]) -> None:
        self.fields = fields

    def holds(self, expr: Any, values: Values, found: Found) -> bool:
        return isinstance(expr, rx.Tuple) and len(expr.fields) == len(self.fields) and all(
            p.find(f, values, found) for p, f in zip(self.fields, expr.fields))


class _Item(DFPattern):
    def __init__(self, value: DFPattern, index: int | None) -> None:
        self.value, self.index = value, index

    def holds(self, expr: Any, values: Values, found: Found) -> bool:
        return isinstance(expr, rx.TupleGetItem) and self.index in (None, expr.index) and self.value.find(
            expr.tuple_value, values, found)


def wildcard() -> DFPattern:
    """Any expression."""
    return _Wildcard()


def is_op(op_name: str) -> DFPattern:
    """An operator; called with patterns, a call of it."""
    op = Op.get(op_name)
    return _OpPattern(lambda e: isinstance(e, Op) and e == op)


def is_const() -> DFPattern:
    """A constant."""
    return _Leaf(lambda e: isinstance(e, rx.Constant))


def is_var(name: str = "") -> DFPattern:
    """A variable, of that name if one is given."""
    return _VarPattern(name)


def is_dfv(name: str = "") -> DFPattern:
    """A variable of a dataflow block."""
    return _Where([_VarPattern(name)], lambda e: isinstance(e, rx.DataflowVar))


def is_gv(name: str = "") -> DFPattern:
    """A function of the module."""
    return _Leaf(lambda e: isinstance(e, GlobalVar) and name in ("", str(e)))


def is_tuple(fields: Sequence[DFPattern], unordered: bool = False) -> DFPattern:
    """A tuple of such fields."""
    return _Fields(list(fields))


def is_tuple_get_item(tuple_value: DFPattern, index: int | None = None) -> DFPattern:
    """A field of a tuple."""
    return _Item(tuple_value, index)


def is_call_dps_packed(func_name: str, args: Sequence[DFPattern] | None = None, varg_default_wildcard: bool = False
                       ) -> DFPattern:
    """A call of a packed function that writes its results."""
    func = _Leaf(lambda e: isinstance(e, rx.ExternFunc) and e.global_symbol == func_name)
    return _destination(CALL_DPS, func, args)


def is_call_tir(func_name: str, args: Sequence[DFPattern] | None = None) -> DFPattern:
    """A call of a function of blocks."""
    return _destination(CALL_TIR, is_gv(func_name), args)


def _destination(op: str, func: DFPattern, args: Sequence[DFPattern] | None) -> DFPattern:
    inputs = wildcard() if args is None else _Fields(list(args))
    return _CallPattern(_Leaf(lambda e: isinstance(e, Op) and e == op), [func, inputs], varg=True)


def make_fused_bias_activation_pattern(op_name: str, with_bias: bool = False, activation: str | None = None
                                       ) -> DFPattern:
    """A call of an operator of two inputs, + bias, below an activation."""
    out = is_op(op_name)(wildcard(), wildcard())
    out = is_op("relax.add")(out, wildcard()) if with_bias else out
    return is_op(activation)(out) if activation else out


class _Rewriting(PyExprMutator):
    def __init__(self, pattern: DFPattern, rewriter: Callable[[Any, Found], Any]) -> None:
        super().__init__()
        self.pattern, self.rewriter = pattern, rewriter

    def visit_call_(self, op: Any) -> Any:
        call = self.visit_expr_post_order(op)
        found = self.pattern.extract_matched_expr(call, self.builder_.bindings)
        return call if found is None else self.rewriter(call, found)


def rewrite_call(pattern: DFPattern, rewriter: Callable[[Any, Found], Any], func: rx.Function) -> rx.Function:
    """func in which each call that looks like the pattern is what rewriter(call, matched) gives."""
    made: rx.Function = _Rewriting(pattern, rewriter).visit_expr(func)
    return made


NAMES: dict[str, Any] = {f.__name__: f for f in (
    wildcard, is_op, is_const, is_var, is_dfv, is_gv, is_tuple, is_tuple_get_item, is_call_dps_packed, is_call_tir,
    make_fused_bias_activation_pattern, rewrite_call, DFPattern)}
