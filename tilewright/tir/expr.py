"""Scalar and vector expressions: a dozen classes. The meaning of an operator is one row of a table in `ops`.

`conversion` and `arithmetic` build them, and stand above this file; Python's operators get there through hooks.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tilewright.support.errors import IRError
from tilewright.support.registry import hook
from tilewright.tir import dtype as dt
from tilewright.tir import foreign
from tilewright.tir.node import same
from tilewright.tir.ops import BINARY
from tilewright.tir.structure import Effect, Node, structure

__all__ = [
    "Binary", "Broadcast", "Call", "Cast", "Expr", "ExprOps", "FloatImm", "IntImm", "Let", "Not", "Ramp", "Select",
    "Shuffle", "StringImm", "Var",
]
# types that do arithmetic for all their elements at once -> what does it, in the place of `arithmetic.binary`
ELEMENTWISE: dict[type, Callable[[str, Any, Any], Any]] = {}


def _binary(op: str, a: Any, b: Any) -> Expr:
    whole = ELEMENTWISE.get(type(a)) or ELEMENTWISE.get(type(b))
    return hook("tir.binary")(op, a, b) if whole is None else whole(op, a, b)


class ExprOps:
    """Python operators on anything that stands for an expression (Expr, IterVar, a te tensor slice)."""
    __slots__ = ()

    def __add__(self, other: Any) -> Expr: return _binary("add", self, other)
    def __radd__(self, other: Any) -> Expr: return _binary("add", other, self)
    def __sub__(self, other: Any) -> Expr: return _binary("sub", self, other)
    def __rsub__(self, other: Any) -> Expr: return _binary("sub", other, self)
    def __mul__(self, other: Any) -> Expr: return _binary("mul", self, other)
    def __rmul__(self, other: Any) -> Expr: return _binary("mul", other, self)
    def __truediv__(self, other: Any) -> Expr: return _binary("div", self, other)
    def __rtruediv__(self, other: Any) -> Expr: return _binary("div", other, self)
    def __floordiv__(self, other: Any) -> Expr: return _binary("floordiv", self, other)
    def __rfloordiv__(self, other: Any) -> Expr: return _binary("floordiv", other, self)
    def __mod__(self, other: Any) -> Expr: return _binary("floormod", self, other)
    def __rmod__(self, other: Any) -> Expr: return _binary("floormod", other, self)
    def __and__(self, other: Any) -> Expr: return _binary("bitand", self, other)
    def __rand__(self, other: Any) -> Expr: return _binary("bitand", other, self)
    def __or__(self, other: Any) -> Expr: return _binary("bitor", self, other)
    def __ror__(self, other: Any) -> Expr: return _binary("bitor", other, self)
    def __xor__(self, other: Any) -> Expr: return _binary("bitxor", self, other)
    def __rxor__(self, other: Any) -> Expr: return _binary("bitxor", other, self)
    def __lshift__(self, other: Any) -> Expr: return _binary("shl", self, other)
    def __rlshift__(self, other: Any) -> Expr: return _binary("shl", other, self)
    def __rshift__(self, other: Any) -> Expr: return _binary("shr", self, other)
    def __rrshift__(self, other: Any) -> Expr: return _binary("shr", other, self)
    def __lt__(self, other: Any) -> Expr: return _binary("lt", self, other)
    def __le__(self, other: Any) -> Expr: return _binary("le", self, other)
    def __gt__(self, other: Any) -> Expr: return _binary("gt", self, other)
    def __ge__(self, other: Any) -> Expr: return _binary("ge", self, other)
    def __eq__(self, other: Any) -> Any:
        return _binary("eq", self, other) if _is_operand(other) else NotImplemented

    def __ne__(self, other: Any) -> Any:
        return _binary("ne", self, other) if _is_operand(other) else NotImplemented

    def __neg__(self) -> Expr: return hook("tir.negate")(hook("tir.convert")(self))
    def __pos__(self) -> Expr: return hook("tir.convert")(self)
    def __invert__(self) -> Expr: return hook("tir.bitwise_not")(hook("tir.convert")(self))
    def __pow__(self, other: Any) -> Expr: return hook("tir.power")(self, other)
    def __rpow__(self, other: Any) -> Expr: return hook("tir.power")(other, self)
    def __abs__(self) -> Expr: return hook("tir.absolute")(hook("tir.convert")(self))
    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        raise IRError("an expression has no truth value while the program is being written (`and`, `or`, `not`, `if`, "
                      "`a < b < c` ask for one)",
                      "combine conditions with te.all(a, b), te.any(a, b) or `&`, `|`; choose with "
                      "te.if_then_else(cond, a, b)")

    def __array_ufunc__(self, function: Any, method: str, *inputs: Any, **options: Any) -> Any:
        """`np.float32(2) * x` is x's affair; `np.exp(x)` is refused with te's function."""
        return foreign.ufunc(ExprOps, function, method, inputs, options)

    def __float__(self) -> float:
        foreign.number("float(), or a function of math,", "te.exp, te.sqrt, ...; x.astype(\"float32\") converts")

    def __int__(self) -> int:
        foreign.number("int()", "x.astype(\"int32\") converts, te.floor and te.trunc round")

    def __index__(self) -> int:                            # noqa: PLE0305 - it refuses
        foreign.number("an index of a Python sequence, or range(),", "te.constant(values)[i] reads an element; "
                       "te.compute and T.grid have the loops")

    def __round__(self, digits: int | None = None) -> Expr:
        foreign.number("round()", "te.round(x)")

    def astype(self, dtype: str) -> Expr:
        """This value converted to dtype."""
        return hook("tir.cast")(dtype, self)

    def equal(self, other: Any) -> Expr: return _binary("eq", self, other)


@dataclass(slots=True, eq=False, repr=False)
class Expr(Node, ExprOps):
    """A value. `==` builds an expression; compare structure with `tir.equal.structural_equal`."""

    @property
    def dtype(self) -> str:
        """The type of its value: the field `type`, or that of what makes it up."""
        return self.type  # type: ignore[attr-defined,no-any-return]

    __eq__ = ExprOps.__eq__
    __ne__ = ExprOps.__ne__
    __hash__ = object.__hash__


@structure(symbol=True)
@dataclass(slots=True, eq=False, repr=False)
class Var(Expr):
    """A scalar name. Two Vars are the same only when they are one object."""
    name: str
    type: str = "int32"


@dataclass(slots=True, eq=False, repr=False)
class IntImm(Expr):
    """An integer or bool constant."""
    value: int
    type: str = "int32"

    def __int__(self) -> int: return self.value
    def __index__(self) -> int: return self.value
    def __float__(self) -> float: return float(self.value)
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
                raise IRError(f"`{row.symbol}`: operands are {a} and {b}", "insert a cast")
            self.type = dt.with_lanes("bool", dt.lanes_of(a)) if row.compares else a

    def __bool__(self) -> bool:
        """`bool(a == b)` is structural identity, so that shapes can be compared in an assert."""
        if self.op in ("eq", "ne"):
            return same(self.a, self.b) is (self.op == "eq")
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


@dataclass(slots=True, eq=False, repr=False)
class Select(Expr):
    """a where condition holds, else b; both are evaluated."""
    condition: Expr
    a: Expr
    b: Expr

    @property
    def dtype(self) -> str:
        return self.a.dtype


@structure(effect=Effect.CALLS)
@dataclass(slots=True, eq=False, repr=False)
class Call(Expr):
    """op(*args), op a key of INTRINSICS."""
    op: str
    args: tuple[Expr, ...]
    type: str


@structure(defines=("var",), within=("body",))
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
class Shuffle(Expr):
    """The lanes at `indices` of all `vectors` one behind the other, which have one type."""
    vectors: tuple[Expr, ...]
    indices: tuple[int, ...]

    @property
    def dtype(self) -> str:
        return dt.with_lanes(dt.element_of(self.vectors[0].dtype), len(self.indices))


def _is_operand(x: object) -> bool:
    return isinstance(x, (ExprOps, int, float, np.number, np.bool_)) or hasattr(x, "__tilewright_expr__")
