"""Scalar and vector types, written as strings: "float32", "int64", "bool", "float32x16", "handle"."""
from __future__ import annotations

import functools

import ml_dtypes
import numpy as np

from tilewright.support.errors import ArgumentError, IRError, described, with_hint

_BITS = {
    "bool": 1, "handle": 64,
    "int8": 8, "int16": 16, "int32": 32, "int64": 64,
    "uint8": 8, "uint16": 16, "uint32": 32, "uint64": 64,
    "float16": 16, "bfloat16": 16, "float32": 32, "float64": 64,
}
_ALIASES = {"int": "int32", "float": "float32", "double": "float64", "uint1": "bool"}


@functools.cache
def parse(dtype: str) -> tuple[str, int]:
    """(element type, lanes) of a dtype string: "float32x8" is ("float32", 8)."""
    element, _, count = dtype.partition("x") if not dtype.startswith("x") else (dtype, "", "")
    element = _ALIASES.get(element, element)
    if element not in _BITS or (_ and not count.isdigit()) or count == "0":
        raise IRError(with_hint(f"{dtype!r} is not a dtype", f"the element types are {', '.join(_BITS)}"))
    return element, int(count or 1)


def canonical(dtype: object) -> str:
    """The dtype string for a string, a NumPy dtype or type, or a Python type (int, float, bool)."""
    if isinstance(dtype, str):
        element, count = parse(dtype)
        return with_lanes(element, count)
    if dtype is bool:
        return "bool"
    if dtype is int:
        return "int32"
    if dtype is float:
        return "float32"
    try:
        return canonical(np.dtype(dtype).name)  # type: ignore[call-overload]
    except (TypeError, ValueError):
        raise ArgumentError(f"{described(dtype)} is not a dtype") from None


def element_of(dtype: str) -> str:
    return parse(dtype)[0]


def lanes_of(dtype: str) -> int:
    return parse(dtype)[1]


def bits_of(dtype: str) -> int:
    """Bits of one lane; a bool has 1, stored in a byte."""
    return _BITS[parse(dtype)[0]]


def bytes_of(dtype: str) -> int:
    """Bytes that one lane takes in memory."""
    return max(1, bits_of(dtype) // 8)


def with_lanes(dtype: str, lanes: int) -> str:
    """The dtype with the same element and another number of lanes."""
    element = parse(dtype)[0]
    return element if lanes == 1 else f"{element}x{lanes}"


def is_float(dtype: str) -> bool:
    return "float" in dtype


def is_bool(dtype: str) -> bool:
    return dtype.startswith("bool")


def is_signed(dtype: str) -> bool:
    return dtype.startswith("int")


def is_unsigned(dtype: str) -> bool:
    return dtype.startswith("uint")


def is_integer(dtype: str) -> bool:
    """Signed or unsigned integer; bool is not one."""
    return is_signed(dtype) or is_unsigned(dtype)


@functools.cache
def numpy_dtype(dtype: str) -> np.dtype:
    """The NumPy dtype of one element (bfloat16 through ml_dtypes)."""
    element = parse(dtype)[0]
    if element == "bfloat16":
        return np.dtype(ml_dtypes.bfloat16)
    if element == "handle":
        return np.dtype("uint64")
    return np.dtype(element)


def integer_range(dtype: str) -> tuple[int, int]:
    """Smallest and largest value of an integer or bool element."""
    bits = bits_of(dtype)
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if is_signed(dtype) else (0, (1 << bits) - 1)


def promote(a: str, b: str) -> str:
    """The common type of two operands: int to float and same-kind widening; anything else is refused.

    A scalar broadcasts against a vector; two vectors need equal lanes. Raises IRError.
    """
    (x, m), (y, n) = parse(a), parse(b)
    if m != n and 1 not in (m, n):
        raise IRError(f"operands have {m} and {n} lanes ({a} and {b})")
    lanes = max(m, n)
    if x == y:
        return with_lanes(x, lanes)
    if is_float(x) != is_float(y) and (is_integer(x) or is_integer(y)):
        return with_lanes(x if is_float(x) else y, lanes)
    same_kind = any(kind(x) and kind(y) for kind in (is_float, is_signed, is_unsigned))
    if same_kind and _BITS[x] != _BITS[y]:
        return with_lanes(x if _BITS[x] > _BITS[y] else y, lanes)
    raise IRError(with_hint(f"operands are {a} and {b}, which do not promote to a common type",
                            f'cast one of them, e.g. x.astype("{x}")'))
