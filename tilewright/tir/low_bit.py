"""Conversions for low-bit data: casts that saturate, and integers of 4 bits that lie in pairs in bytes."""
from __future__ import annotations

from typing import Any

from tilewright.support.errors import IRError, described
from tilewright.tir import dtype as dt
from tilewright.tir.arithmetic import binary, maximum, minimum
from tilewright.tir.conversion import cast, const, convert
from tilewright.tir.expr import Expr


def saturate_cast(dtype: str, value: Any) -> Expr:
    """value in dtype, or the nearest end of dtype's range where it lies beyond.

    A plain cast wraps integers into a narrower integer type and rounds floats beyond the range to an infinity (to NaN
    where the format has none); from float to integer it saturates already. Infinities saturate too, NaN gives 0 in an
    integer type and stays NaN in a float type. Within the range the result is that of the plain cast.
    """
    e, dtype = convert(value), dt.canonical(dtype)
    source, target = dt.element_of(e.dtype), dt.element_of(dtype)
    if dt.is_bool(source) or dt.is_bool(target) or (dt.is_float(source) and dt.is_integer(target)):
        return cast(dtype, e)
    if dt.is_float(source):
        wide = "float64" if "float64" in (source, target) else "float32"
        e = cast(dt.with_lanes(wide, dt.lanes_of(e.dtype)), e)
        return cast(dtype, _clamped(e, -dt.largest(target), dt.largest(target)))
    if dt.is_float(target):
        high = int(dt.largest(target))
        return cast(dtype, _clamped(e, -high, high))
    return cast(dtype, _clamped(e, *dt.integer_range(target)))


def _clamped(e: Expr, low: float, high: float) -> Expr:
    """e brought into [low, high], by the ends that its type reaches beyond."""
    if dt.is_integer(e.dtype):
        least, most = dt.integer_range(e.dtype)
        if low > least:
            e = maximum(e, const(int(low), e.dtype))
        return minimum(e, const(int(high), e.dtype)) if high < most else e
    return minimum(maximum(e, const(low, e.dtype)), const(high, e.dtype))


def pack_int4(low: Any, high: Any) -> Expr:
    """The byte (uint8) that holds two integers of 4 bits: `low` in bits 0 to 3, `high` in bits 4 to 7.

    Signed or unsigned; bits above the fourth are dropped, as a cast to a narrower integer does. Raises IRError for what
    is no integer.
    """
    a, b = (binary("bitand", _byte(x), 15) for x in (low, high))
    return binary("bitor", a, binary("shl", b, 4))


def _byte(x: Any) -> Expr:
    """The low 8 bits of an integer, lane by lane."""
    e = convert(x)
    if not dt.is_integer(e.dtype) or dt.is_bool(e.dtype):
        raise IRError(f"pack_int4: {e} is {e.dtype}, not an integer",
                      'round it first: te.saturate_cast("int8", te.round(x))')
    return cast(dt.with_lanes("uint8", dt.lanes_of(e.dtype)), e)


def unpack_int4(packed: Any, *indices: Any, signed: bool = True) -> Expr:
    """Element `indices` of an array of 4-bit integers whose pairs along the last axis lie in the bytes of `packed`.

    packed: a uint8 or int8 tensor or buffer of shape [..., n // 2]; element i of the last axis is in bits 0 to 3 of
    byte i // 2 for an even i, in bits 4 to 7 for an odd one. Result: int8, -8 to 7; with signed=False uint8, 0 to 15.
    Raises IRError for elements of another type.
    """
    if not indices:
        raise IRError("unpack_int4 takes the indices of an element after the packed tensor")
    if not (isinstance(getattr(packed, "dtype", None), str) and hasattr(packed, "__getitem__")):
        raise IRError(f"unpack_int4: {described(packed)} is not a tensor or buffer")
    *outer, last = (convert(i) for i in indices)
    at = (*outer, last // 2)
    byte = convert(packed[at])
    if dt.element_of(byte.dtype) not in ("uint8", "int8"):
        raise IRError(f"unpack_int4: the elements are {byte.dtype}", "two 4-bit integers lie in a uint8")
    if dt.element_of(byte.dtype) == "int8":
        byte = cast(dt.with_lanes("uint8", dt.lanes_of(byte.dtype)), byte)
    shift = cast(dt.with_lanes("uint8", dt.lanes_of(last.dtype)), last % 2 * 4)
    nibble = binary("bitand", binary("shr", byte, shift), 15)
    if not signed:
        return nibble
    return cast(dt.with_lanes("int8", dt.lanes_of(nibble.dtype)), binary("bitxor", nibble, 8)) - 8
