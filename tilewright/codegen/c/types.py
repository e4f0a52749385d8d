"""How values look in C: types in variables and in memory, constants."""
from __future__ import annotations

import functools
import math

from tilewright.tir import dtype as dt
from tilewright.tir.dtype import SMALL_FLOATS

_SCALARS = {"bool": "bool", "float32": "float", "float64": "double", "handle": "void *"}
_LETTERS = {"float32": "f32", "float64": "f64", "bool": "i32"}


@functools.cache
def value_type(dtype: str) -> str:
    """The C type of a variable: `float`, `int32_t`, `f32x16`; of floats of 16 and 8 bits that of their bits.

    Conditions of several lanes are 0 and -1 in `i32xN`.
    """
    element, lanes = dt.parse(dtype)
    if element in SMALL_FLOATS:
        element = f"uint{dt.bits_of(element)}"
    if lanes == 1:
        return _SCALARS.get(element, f"{element}_t")
    return f"{_LETTERS.get(element) or element.replace('uint', 'u').replace('int', 'i')}x{lanes}"


@functools.cache
def memory_type(dtype: str) -> str:
    """The C type of an element in memory: bytes for bool."""
    return value_type(stored_dtype(dt.element_of(dtype)))


@functools.cache
def stored_dtype(dtype: str) -> str:
    """The dtype whose values lie in memory for dtype."""
    return dt.with_lanes("uint8", dt.lanes_of(dtype)) if dt.is_bool(dtype) else dtype


def vector_of(name: str) -> tuple[str, int] | None:
    """(C type of an element, lanes) of the name of a vector type."""
    letters, x, lanes = name.partition("x")
    if not x or not lanes.isdigit() or letters[0] not in "fiu":
        return None
    bits = letters[1:]
    element = {"f32": "float", "f64": "double"}.get(letters) or f"{'u' if letters[0] == 'u' else ''}int{bits}_t"
    return element, int(lanes)


def integer_literal(value: int, dtype: str) -> str:
    """A constant of an integer type or bool."""
    if dtype == "bool":
        return "true" if value else "false"
    if dtype == "int64":
        return "INT64_MIN" if value == -1 << 63 else f"INT64_C({value})"
    if dtype == "uint64":
        return f"UINT64_C({value})"
    if dtype == "int32" and value == -1 << 31:
        return "INT32_MIN"
    return f"{value}u" if dtype == "uint32" else str(value) if dt.bits_of(dtype) == 32 else f"({dtype}_t){value}"


def float_literal(value: float, dtype: str) -> str:
    """A constant of a float type, exactly: in decimal where that is short, else in hexadecimal."""
    suffix = "" if dtype == "float64" else "f"
    if math.isnan(value):
        return f"__builtin_nan{suffix}(\"\")"
    if math.isinf(value):
        return f"{'-' if value < 0 else ''}__builtin_inf{suffix}()"
    short = repr(value)
    return (short if len(short) <= 8 and float(short) * 4096 % 1 == 0 else value.hex()) + suffix
