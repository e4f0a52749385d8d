"""Scalar and vector expressions. A dozen classes; the meaning of an operator is one row of a table in
`ops`.
"""
from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tilewright.support.errors import IRError, described, with_hint
from tilewright.tir import dtype as dt
from tilewright.tir.node import Node
from tilewright.tir.ops import BINARY, INTRINSICS


class ExprOps:
    """Python operators on anything that stands for an expression (Expr, IterVar, a te tensor slice)."""
    __slots__ = ()
    __array_ufunc__ = None               # NumPy leaves `np.float32(2) * x` to x

    def __add__(self, other: Any) -> Expr: return binary("add", self, other)
    def __radd__(self, other: Any) -> Expr: return binary("add", other, self)
    def __sub__(self, other: Any) -> Expr: return binary("sub", self, other)
    def __rsub__(self, other: Any) -> Expr: return binary("sub", other, self)
    def __mul__(self, other: Any) -> Expr: return binary("mul", self, other)
    def __rmul__(self, other: Any) -> Expr: return binary("mul", other, self)
    def __truediv__(self, other: Any) -> Expr: return binary("div", self, other)
    def __rtruediv__(self, other: Any) -> Expr: return binary("div", other, self)
    def __floordiv__(self, other: Any) -> Expr: return binary("floordiv", self, other)
    def __rfloordiv__(self, other: Any) -> Expr: return binary("floordiv", other, self)
    def __mod__(self, other: Any) -> Expr: return binary("floormod", self, other)
    def __rmod__(self, other: Any) -> Expr: return binary("floormod", other, self)
    def __and__(self, other: Any) -> Expr: return binary("bitand", self, other)
    def __rand__(self, other: Any) -> Expr: return binary("bitand", other, self)
    def __or__(self, other: Any) -> Expr: return binary("bitor", self, other)
    def __ror__(self, other: Any) -> Expr: return binary("bitor", other, self)
    def __xor__(self, other: Any) -> Expr: return binary("bitxor", self, other)
    def __rxor__(self, other: Any) -> Expr: return binary("bitxor", other, self)
    def __lshift__(self, other: Any) -> Expr: return binary("shl", self, other)
    def __rlshift__(self, other: Any) -> Expr: return binary("shl", other, self)
    def __rshift__(self, other: Any) -> Expr: return binary("shr", self, other)
    def __rrshift__(self, other: Any) -> Expr: return binary("shr", other, self)
    def __lt__(self, other: Any) -> Expr: return binary("lt", self, other)
    def __le__(self, other: Any) -> Expr: return binary("le", self, other)
    def __gt__(self, other: Any) -> Expr: return binary("gt", self, other)
    def __ge__(self, other: Any) -> Expr: return binary("ge", self, other)
    def __eq__(self, other: Any) -> Any:
        return binary("eq", self, other) if _is_operand(other) else NotImplemented

    def __ne__(self, other: Any) -> Any:
        return binary("ne", self, other) if _is_operand(other) else NotImplemented

    def __neg__(self) -> Expr: return negate(convert(self))
    def __pos__(self) -> Expr: return convert(self)
    def __invert__(self) -> Expr: return bitwise_not(convert(self))
    def __pow__(self, other: Any) -> Expr: return power(self, other)
    def __rpow__(self, other: Any) -> Expr: return power(other, self)
    def __abs__(self) -> Expr: return absolute(convert(self))
    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        raise IRError(with_hint(
            "an expression has no truth value while the program is being written (`and`, `or`, `not`, `if`, "
            "`a < b < c` ask for one)",
            "combine conditions with te.all(a, b), te.any(a, b) or `&`, `|`; choose with "
            "te.if_then_else(cond, a, b)"))

    def astype(self, dtype: str) -> Expr:
        """This value converted to dtype."""
        return cast(dtype, self)

    def equal(self, other: Any) -> Expr: return binary("eq", self, other)


@dataclass(slots=True, eq=False, repr=False)
class Expr(Node, ExprOps):
    """A value. `==` builds an expression; compare structure with `tir.equal.structural_equal`."""

    @property
    def dtype(self) -> str:
        raise NotImplementedError

    __eq__ = ExprOps.__eq__
    __ne__ = ExprOps.__ne__
    __hash__ = object.__hash__


@dataclass(slots=True, eq=False, repr=False)
class Var(Expr):
    """A scalar name. Two Vars are the same only when they are one object."""
    name: str
    type: str = "int32"

    @property
    def dtype(self) -> str:
        return self.type


@dataclass(slots=True, eq=False, repr=False)
class IntImm(Expr):
    """An integer or bool constant."""
    value: int
    type: str = "int32"

    @property
    def dtype(self) -> str:
        return self.type

    def __int__(self) -> int: return self.value
    def __index__(self) -> int: return self.value
    def __bool__(self) -> bool: return bool(self.value)
    def __eq__(self, other: Any) -> Any:
        return self.value == other if isinstance(other, int) else ExprOps.__eq__(self, other)

    def __ne__(self, other: Any) -> Any:
        return self.value != other if isinstance(other, int) else ExprOps.__ne__(self, other)

    __hash__ = object.__hash__


@dataclass(slots=True, eq=False, repr=False)
class FloatImm(Expr):
    """A floating-point constant."""
    value: float
    type: str = "float32"

    @property
    def dtype(self) -> str:
        return self.type

    def __float__(self) -> float: return self.value


@dataclass(slots=True, eq=False, repr=False)
class StringImm(Expr):
    """A string argument of a call."""
    value: str

    @property
    def dtype(self) -> str:
        return "handle"


@dataclass(slots=True, eq=False, repr=False)
class Binary(Expr):
    """`a op b`, op a key of BINARY. Both operands have one dtype; comparisons give bool lanes."""
    op: str
    a: Expr
    b: Expr
    type: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        if not self.type:
            row, a, b = BINARY[self.op], self.a.dtype, self.b.dtype
            if a != b:
                raise IRError(with_hint(f"`{row.symbol}`: operands are {a} and {b}", "insert a cast"))
            self.type = dt.with_lanes("bool", dt.lanes_of(a)) if row.compares else a

    @property
    def dtype(self) -> str:
        return self.type

    def __bool__(self) -> bool:
        """`bool(a == b)` is structural identity, so that shapes can be compared in an assert."""
        if self.op in ("eq", "ne"):
            from_structure = _structural_equal(self.a, self.b)
            return from_structure if self.op == "eq" else not from_structure
        return Expr.__bool__(self)


@dataclass(slots=True, eq=False, repr=False)
class Not(Expr):
    """Logical negation of a bool."""
    a: Expr

    @property
    def dtype(self) -> str:
        return self.a.dtype


@dataclass(slots=True, eq=False, repr=False)
class Cast(Expr):
    """value converted to type: float to int truncates and saturates, int to narrower int wraps."""
    type: str
    value: Expr

    @property
    def dtype(self) -> str:
        return self.type


@dataclass(slots=True, eq=False, repr=False)
class Select(Expr):
    """a where condition holds, else b; both are evaluated."""
    condition: Expr
    a: Expr
    b: Expr

    @property
    def dtype(self) -> str:
        return self.a.dtype


@dataclass(slots=True, eq=False, repr=False)
class Call(Expr):
    """op(*args), op a key of INTRINSICS."""
    op: str
    args: tuple[Expr, ...]
    type: str

    @property
    def dtype(self) -> str:
        return self.type


@dataclass(slots=True, eq=False, repr=False)
class Let(Expr):
    """body with var bound to value."""
    var: Var
    value: Expr
    body: Expr

    @property
    def dtype(self) -> str:
        return self.body.dtype


@dataclass(slots=True, eq=False, repr=False)
class Ramp(Expr):
    """The vector base, base + stride, ..., base + (lanes - 1) * stride."""
    base: Expr
    stride: Expr
    lanes: int

    @property
    def dtype(self) -> str:
        return dt.with_lanes(self.base.dtype, self.lanes)


@dataclass(slots=True, eq=False, repr=False)
class Broadcast(Expr):
    """The vector of `lanes` copies of a scalar."""
    value: Expr
    lanes: int

    @property
    def dtype(self) -> str:
        return dt.with_lanes(self.value.dtype, self.lanes)


@dataclass(slots=True, eq=False, repr=False)
class Range(Node):
    """The integers min, min + 1, ..., min + extent - 1."""
    min: Expr
    extent: Expr


# iter_type numbers are TVM's
DATA_PARALLEL, THREAD_INDEX, COMM_REDUCE, ORDERED, OPAQUE = 0, 1, 2, 3, 4


@dataclass(slots=True, eq=False, repr=False)
class IterVar(Node, ExprOps):
    """An iteration: var runs over dom. A thread axis has a thread_tag and may have no dom yet."""
    dom: Range | None
    var: Var
    iter_type: int = DATA_PARALLEL
    thread_tag: str = ""

    @property
    def dtype(self) -> str:
        return self.var.dtype

    __eq__ = ExprOps.__eq__
    __ne__ = ExprOps.__ne__
    __hash__ = object.__hash__


def _is_operand(x: object) -> bool:
    return isinstance(x, (ExprOps, int, float, np.number, np.bool_)) or hasattr(x, "__tilewright_expr__")


def _structural_equal(a: Expr, b: Expr) -> bool:
    if a is b:
        return True
    if type(a) is not type(b) or isinstance(a, Var):
        return False
    if isinstance(a, (IntImm, FloatImm, StringImm)):
        return a.value == b.value and a.dtype == b.dtype  # type: ignore[attr-defined]
    from_fields = [(getattr(a, k), getattr(b, k)) for k in a.__dataclass_fields__]
    for x, y in from_fields:
        pairs = zip(x, y, strict=True) if isinstance(x, tuple) and len(x) == len(y) else [(x, y)]
        for p, q in pairs:
            equal = _structural_equal(p, q) if isinstance(p, Expr) and isinstance(q, Expr) else p is q or (
                not isinstance(p, Node) and p == q)
            if not equal:
                return False
    return True


def convert(x: Any, dtype: str | None = None) -> Expr:
    """x as an Expr: a Python or NumPy number becomes a constant (of `dtype`, else
    int32/int64/float32/bool).
    """
    if isinstance(x, Expr):
        return x
    if isinstance(x, IterVar):
        return x.var
    to_expr = getattr(x, "__tilewright_expr__", None)
    if to_expr is not None:
        return to_expr()
    if isinstance(x, str):
        return StringImm(x)
    if isinstance(x, (bool, np.bool_, int, float, np.number)):
        if dtype is None and isinstance(x, (np.number, np.bool_)):
            dtype = dt.canonical(x.dtype)
        return const(x, dtype)
    raise IRError(with_hint(f"{described(x)} is not an expression",
                            "expected a number, a Var, an axis or an indexed tensor"))


def const(value: Any, dtype: str | None = None) -> Expr:
    """A constant of dtype (a Broadcast of one when dtype is a vector). Raises IRError where it does not
    fit.
    """
    if dtype is None:
        if isinstance(value, (bool, np.bool_)):
            dtype = "bool"
        elif isinstance(value, (int, np.integer)):
            dtype = "int32" if -2**31 <= value < 2**31 else "int64"
        else:
            dtype = "float32"
    if type(value) not in (int, float) and not isinstance(value, (int, float, np.number, np.bool_)):
        raise IRError(f"{described(value)} is not a number")
    element, lanes = dt.parse(dtype if isinstance(dtype, str) else dt.canonical(dtype))
    if lanes > 1:
        return Broadcast(const(value, element), lanes)
    if dt.is_float(element):
        return FloatImm(float(value), element)
    if isinstance(value, (float, np.floating)):
        if not float(value).is_integer():
            raise IRError(with_hint(f"the constant {value} is not an integer, the other operand is {element}",
                                    'cast the operand first: x.astype("float32")'))
        value = int(value)
    low, high = dt.integer_range(element)
    if not low <= int(value) <= high:
        raise IRError(f"the constant {value} does not fit {element} ({low} to {high})")
    return IntImm(int(value), element)


def is_const(e: Any, value: float | None = None) -> bool:
    """True when e is a scalar constant (equal to value, if given)."""
    return isinstance(e, (IntImm, FloatImm)) and (value is None or e.value == value)


def cast(dtype: str, value: Any) -> Expr:
    """value converted to dtype; constants convert at once, equal types give value itself."""
    e, dtype = convert(value), dt.canonical(dtype)
    if e.dtype == dtype:
        return e
    if dt.lanes_of(dtype) == 1 and isinstance(e, (IntImm, FloatImm)):
        if dt.is_float(dtype):
            own = dt.numpy_dtype(e.dtype).type(e.value)              # rounded to its own type first
            return FloatImm(float(own), dtype)
        if isinstance(e, IntImm) and dt.integer_range(dtype)[0] <= e.value <= dt.integer_range(dtype)[1]:
            return IntImm(e.value, dtype)
    if dt.lanes_of(e.dtype) == 1 and dt.lanes_of(dtype) > 1:
        return Broadcast(cast(dt.element_of(dtype), e), dt.lanes_of(dtype))
    return Cast(dtype, e)


def match_types(a: Any, b: Any) -> tuple[Expr, Expr]:
    """Both operands as expressions of one dtype: numbers take the other's type, the rest promotes."""
    if isinstance(a, Expr) and isinstance(b, Expr) and a.dtype == b.dtype:
        return a, b
    for operand in (a, b):
        if isinstance(operand, str):
            raise IRError(f"the operand {operand!r} is a string, not a number or an expression")
    number_a, number_b = isinstance(a, (int, float, np.number)), isinstance(b, (int, float, np.number))
    if number_a and not number_b:
        y = convert(b)
        return _adapt(a, y.dtype), y
    if number_b and not number_a:
        x = convert(a)
        return x, _adapt(b, x.dtype)
    x, y = convert(a), convert(b)
    if x.dtype == y.dtype:
        return x, y
    common = dt.promote(x.dtype, y.dtype)
    return cast(common, x), cast(common, y)


def match_all(*args: Any) -> tuple[Expr, ...]:
    """All operands as expressions of one dtype, by the rules of `match_types`."""
    numbers = [isinstance(a, (int, float, np.number)) for a in args]
    given = [convert(a) for a, number in zip(args, numbers, strict=True) if not number]
    if not given:
        return tuple(convert(a) for a in args)
    common = functools.reduce(dt.promote, [e.dtype for e in given])
    pairs = zip(args, numbers, strict=True)
    return tuple(_adapt(a, common) if number else cast(common, a) for a, number in pairs)


def _adapt(value: Any, dtype: str) -> Expr:
    """A number next to an operand of dtype. An int takes it; a float beside an integer makes the pair
    float32.
    """
    if type(value) is int and dtype in ("int32", "int64") and -0x80000000 <= value < 0x80000000:
        return IntImm(value, dtype)
    if isinstance(value, (float, np.floating)) and not dt.is_float(dtype):
        raise IRError(with_hint(f"the float {value} is combined with an operand of type {dtype}",
                                'cast the operand first: x.astype("float32")'))
    if dt.is_bool(dtype) and not isinstance(value, (bool, np.bool_)):
        raise IRError(with_hint(f"the number {value} is combined with a bool",
                                'cast the bool first: x.astype("int32")'))
    return const(value, dtype)


_ON_NUMBERS = ("add", "sub", "mul", "floordiv", "floormod", "truncdiv", "truncmod", "shl", "shr")


_ALWAYS_ON_INTEGERS = frozenset(("add", "sub", "mul", "min", "max", "eq", "ne", "lt", "le", "gt", "ge"))


def _checked(op: str, dtype: str, divisor: Expr) -> str:
    """The operator for operands of dtype. Raises IRError where there is none."""
    if dt.is_bool(dtype):
        op = {"bitand": "and", "bitor": "or"}.get(op, op)      # one spelling, so that guards are recognised
    row = BINARY[op]
    if dtype == "handle" and op not in ("eq", "ne"):           # `in` on a tuple of parameters compares
        raise IRError(f"`{row.symbol}` on a pointer")
    if row.logical and not dt.is_bool(dtype):
        raise IRError(with_hint(f"`{row.symbol}` needs bool operands, got {dtype}", "compare first: x != 0"))
    if op == "div" and not dt.is_float(dtype):
        raise IRError(with_hint(f"`/` on {dtype} is ambiguous",
                                "write // to round down, truncdiv to round to zero, "
                                'or cast: x.astype("float32") / y'))
    if op in ("truncdiv", "truncmod", "bitand", "bitor", "bitxor", "shl", "shr") and dt.is_float(dtype):
        raise IRError(f"`{row.symbol}` needs integers, got {dtype}")
    if op in _ON_NUMBERS and dt.is_bool(dtype):
        raise IRError(with_hint(f"`{row.symbol}` on bool", 'cast first: x.astype("int32")'))
    if op in ("floordiv", "floormod", "truncdiv", "truncmod") and isinstance(divisor, IntImm) and divisor.value == 0:
        raise IRError(f"`{row.symbol}` by the constant 0")
    return op


def binary(op: str, a: Any, b: Any) -> Expr:
    """`a op b` with operands brought to one dtype; integer constants fold, x + 0 and x * 1 vanish on
    integers.

    Raises IRError when the dtypes do not promote, for `/` on integers and for a constant zero divisor.
    """
    x, y = match_types(a, b)
    dtype = x.dtype
    if dtype not in ("int32", "int64") or op not in _ALWAYS_ON_INTEGERS:
        op = _checked(op, dtype, y)
    row = BINARY[op]
    foldable = op not in ("shl", "shr") or (isinstance(y, IntImm) and 0 <= y.value < dt.bits_of(dtype))
    if isinstance(x, IntImm) and isinstance(y, IntImm) and foldable:
        value = row.fold(x.value, y.value)
        out = "bool" if row.compares else dtype
        low, high = dt.integer_range(out)
        if low <= value <= high:
            return IntImm(int(value), out)
    elif dt.is_integer(dtype):
        if isinstance(y, IntImm):
            if y.value == 0 and op in ("add", "sub", "shl", "shr", "bitor", "bitxor"):
                return x
            if y.value == 1 and op in ("mul", "floordiv", "truncdiv"):
                return x
            if y.value == 0 and op == "mul":
                return y
            if y.value == 1 and op in ("floormod", "truncmod"):
                return IntImm(0, dtype)
        elif isinstance(x, IntImm):
            if (x.value == 0 and op == "add") or (x.value == 1 and op == "mul"):
                return y
            if x.value == 0 and op == "mul":
                return x
    elif row.logical:
        for this, other in ((x, y), (y, x)):
            if isinstance(this, IntImm):
                return other if bool(this.value) == (op == "and") else this
    return Binary(op, x, y)


def negate(e: Expr) -> Expr:
    """-e; unsigned and bool are refused."""
    if not (dt.is_float(e.dtype) or dt.is_signed(e.dtype)):
        raise IRError(with_hint(f"negation of {e.dtype}", 'cast first: x.astype("int32")'))
    if isinstance(e, FloatImm):
        return FloatImm(-e.value, e.type)
    zero = -0.0 if dt.is_float(e.dtype) else 0            # -0.0 - x keeps the sign of zero
    return binary("sub", const(zero, e.dtype), e)


def logical_not(a: Any) -> Expr:
    e = convert(a)
    if not dt.is_bool(e.dtype):
        raise IRError(with_hint(f"`not` needs a bool, got {e.dtype}", "compare first: x == 0"))
    if isinstance(e, IntImm):
        return IntImm(1 - e.value, "bool")
    return e.a if isinstance(e, Not) else Not(e)


def bitwise_not(e: Expr) -> Expr:
    if dt.is_bool(e.dtype):
        return logical_not(e)
    return intrinsic("bitwise_not", e)


def absolute(e: Expr) -> Expr:
    return e if dt.is_unsigned(e.dtype) else intrinsic("abs", e)


def power(a: Any, b: Any) -> Expr:
    x, y = match_types(a, b)
    if not dt.is_float(x.dtype):
        raise IRError(with_hint(f"`**` on {x.dtype}", 'cast first: x.astype("float32")'))
    return intrinsic("pow", x, y)


def intrinsic(name: str, *args: Any, dtype: str | None = None) -> Expr:
    """name(*args) for a row of INTRINSICS. Math functions of integers are refused. Raises IRError."""
    row = INTRINSICS.get(name)
    if row is None:
        raise IRError(with_hint(f"there is no function {name!r}",
                                f"the functions are {', '.join(sorted(INTRINSICS))}"))
    if row.arity >= 0 and len(args) != row.arity:
        raise IRError(f"{name} takes {row.arity} argument(s), {len(args)} given")
    exprs = match_all(*args) if row.operands else tuple(convert(a) for a in args)
    types = ", ".join(e.dtype for e in exprs)
    if row.operands == "float" and not all(dt.is_float(e.dtype) for e in exprs):
        raise IRError(with_hint(f"{name} of {types}", f'cast first: {name}(x.astype("float32"))'))
    if row.operands == "integer" and not all(dt.is_integer(e.dtype) for e in exprs):
        raise IRError(f"{name} needs an integer, got {types}")
    return Call(name, exprs, dtype or result_type(name, exprs))


def result_type(name: str, args: tuple[Expr, ...]) -> str:
    """The dtype that a call of intrinsic `name` has when none is given."""
    if INTRINSICS[name].predicate:
        return dt.with_lanes("bool", dt.lanes_of(args[0].dtype))
    if INTRINSICS[name].kind == "effect" or not args:
        return "int32"
    return args[-1].dtype


def if_then_else(condition: Any, a: Any, b: Any) -> Expr:
    """a where condition holds, else b; only the chosen one is evaluated."""
    c = convert(condition)
    if not dt.is_bool(c.dtype):
        raise IRError(with_hint(f"if_then_else: the condition is {c.dtype}", "compare first: x != 0"))
    x, y = match_types(a, b)
    if isinstance(c, IntImm):
        return x if c.value else y
    return Call("if_then_else", (c, x, y), x.dtype)


def select(condition: Any, a: Any, b: Any) -> Expr:
    """a where condition holds, else b; both may be evaluated."""
    c = convert(condition)
    if not dt.is_bool(c.dtype):
        raise IRError(with_hint(f"select: the condition is {c.dtype}", "compare first: x != 0"))
    x, y = match_types(a, b)
    return Select(c, x, y)


def truncdiv(a: Any, b: Any) -> Expr: return binary("truncdiv", a, b)
def truncmod(a: Any, b: Any) -> Expr: return binary("truncmod", a, b)
def floordiv(a: Any, b: Any) -> Expr: return binary("floordiv", a, b)
def floormod(a: Any, b: Any) -> Expr: return binary("floormod", a, b)
def minimum(a: Any, b: Any) -> Expr: return binary("min", a, b)
def maximum(a: Any, b: Any) -> Expr: return binary("max", a, b)


def all_of(*conditions: Any) -> Expr:
    """True when every condition holds; True for none."""
    out: Expr = IntImm(1, "bool")
    for c in conditions:
        out = binary("and", out, c)
    return out


def any_of(*conditions: Any) -> Expr:
    """True when some condition holds; False for none."""
    out: Expr = IntImm(0, "bool")
    for c in conditions:
        out = binary("or", out, c)
    return out


def ceildiv(a: Any, b: Any) -> Expr:
    """a / b rounded up, as (a + b - 1) // b, b > 0."""
    x, y = match_types(a, b)
    return binary("floordiv", binary("add", x, binary("sub", y, 1)), y)


def min_value(dtype: str) -> Expr:
    """The smallest value of dtype; -inf for floats that have one (the identity of max)."""
    dtype = dt.canonical(dtype)
    limits = dt.float_limits if dt.is_float(dtype) else dt.integer_range
    return const(limits(dtype)[0], dtype)


def max_value(dtype: str) -> Expr:
    """The largest value of dtype; inf for floats that have one (the identity of min)."""
    dtype = dt.canonical(dtype)
    limits = dt.float_limits if dt.is_float(dtype) else dt.integer_range
    return const(limits(dtype)[1], dtype)


