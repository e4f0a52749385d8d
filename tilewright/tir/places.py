"""Places: where arithmetic on variables does not overflow, and where integers wrap around.

An index place is an index of an access or of a constant table, the start or extent of a loop, the binding or domain of
a block's axis, the predicate of a block, the shape, strides or offset of a buffer, and what `likely` holds. Arithmetic
there that has only variables and constants as operands is exact: in 64 bits, whatever its type. From the place down
that holds through operators on integers, casts to int64 and the branches of a choice; not through conditions of a
choice, a let, arguments of calls (but for INDEXED, whose arguments are places themselves) and casts to other types.
What a cast to int32 makes of variables takes part as a variable does: fused loops stand so for those that they are of.

Everything else is a value, and wraps around in its type. So does, in an index too, an operation that what memory holds
takes part in.
"""
from __future__ import annotations

from tilewright.tir import dtype as dt
from tilewright.tir.expr import Binary, Broadcast, Call, Cast, Expr, IntImm, Ramp, Select, Var

INDEXED = ("likely", "checked_index", "table")         # calls whose arguments are index places


def is_index(e: Expr) -> bool:
    """True for integer arithmetic whose operands are variables and constants: exact in an index place."""
    kind = type(e)
    if kind is IntImm or kind is Var:
        return dt.is_integer(e.type)  # type: ignore[attr-defined]
    if kind is Binary:
        return dt.is_integer(e.type) and is_index(e.a) and is_index(e.b)  # type: ignore[attr-defined]
    match e:
        case Select(_, a, b) | Call("if_then_else", (_, a, b)) | Ramp(a, b):
            return dt.is_integer(e.dtype) and is_index(a) and is_index(b)
        case Cast(_, value):
            return dt.element_of(e.dtype) in ("int32", "int64") and is_index(value)
    return isinstance(e, Broadcast) and is_index(e.value)
