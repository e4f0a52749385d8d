"""Scalar and vector types, written as strings: "float32", "int64", "bool", "float32x16", "handle".

Floats of 16 and 8 bits are formats of storage: arithmetic on them is done in float32 and rounded to the format after
every operation, to nearest, ties to even. What is too large becomes an infinity, or NaN in float8_e4m3fn, which has
no infinity.
"""
from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import ml_dtypes
import numpy as np

from tilewright.runtime.dtypes import extent_limit as extent_limit
from tilewright.support.errors import ArgumentError, IRError, described

_BITS = {
    "bool": 1, "handle": 64,
    "int8": 8, "int16": 16, "int32": 32, "int64": 64,
    "uint8": 8, "uint16": 16, "uint32": 32, "uint64": 64,
    "float16": 16, "bfloat16": 16, "float32": 32, "float64": 64, "float8_e4m3fn": 8, "float8_e5m2": 8,
}
_ALIASES = {"int": "int32", "float": "float32", "double": "float64", "uint1": "bool"}
MAX_LANES = 65535                                         # what the packed calling convention can tell
_PACKED = "elements of 4 bits lie in pairs in uint8 tensors: te.unpack_int4(packed, i) reads one of them"


@dataclass(frozen=True)
class SmallFloat:
    """A binary format of at most 16 bits: a sign, `exponent` bits and `mantissa` bits.

    largest: its largest finite value. infinity, nan: the bits of these, without the sign; no infinity: None.
    """
    exponent: int
    mantissa: int
    largest: float
    infinity: int | None
    nan: int

    @property
    def bias(self) -> int:
        return (1 << self.exponent - 1) - 1

    @property
    def least_normal(self) -> float:
        """The smallest value that has all mantissa bits."""
        return 2.0 ** (1 - self.bias)

    def nearest(self, value: float) -> float:
        """value rounded once to this format, ties to even; beyond the largest value: infinity, or NaN without one."""
        if not math.isfinite(value) or not value:
            return value if self.infinity is not None or not math.isinf(value) else math.nan
        exponent = max(math.frexp(value)[1] - 1, 1 - self.bias)
        quantum = 2.0 ** (exponent - self.mantissa)
        rounded = round(value / quantum) * quantum               # Python's round has ties to even
        if abs(rounded) <= self.largest:
            return math.copysign(rounded, value)
        return math.nan if self.infinity is None else math.copysign(math.inf, value)


SMALL_FLOATS = {
    "float16": SmallFloat(5, 10, 65504.0, 0x7C00, 0x7E00),
    "bfloat16": SmallFloat(8, 7, 255 * 2.0**120, 0x7F80, 0x7FC0),
    "float8_e4m3fn": SmallFloat(4, 3, 448.0, None, 0x7F),
    "float8_e5m2": SmallFloat(5, 2, 57344.0, 0x7C, 0x7E),
}


@functools.cache
def parse(dtype: str) -> tuple[str, int]:
    """(element type, lanes) of a dtype string: "float32x8" is ("float32", 8)."""
    element, _, count = dtype.partition("x") if not dtype.startswith("x") else (dtype, "", "")
    element = _ALIASES.get(element, element)
    is_count = count.isascii() and count.isdigit() and count[0] != "0" and int(count[:10]) <= MAX_LANES
    if element not in _BITS or (_ and not is_count):
        raise IRError(f"{dtype!r} is not a dtype", _PACKED if element in ("int4", "uint4") else
                      f"a vector has 1 to {MAX_LANES} lanes" if element in _BITS else
                      f"the element types are {', '.join(_BITS)}")
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
        if dtype is None:                                 # NumPy's word for float64
            raise TypeError
        return canonical(np.dtype(dtype).name)  # type: ignore[call-overload]
    except Exception:                                     # whatever the object does when NumPy asks it
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
    return dtype.startswith(("int", "uint"))


@functools.cache
def numpy_dtype(dtype: str) -> np.dtype:
    """The NumPy dtype of one element (bfloat16 and the 8-bit floats through ml_dtypes)."""
    element = parse(dtype)[0]
    if element in SMALL_FLOATS and element != "float16":
        return np.dtype(getattr(ml_dtypes, element))
    if element == "handle":
        return np.dtype("uint64")
    return np.dtype(element)


@functools.cache
def integer_range(dtype: str) -> tuple[int, int]:
    """Smallest and largest value of an integer or bool element."""
    bits = bits_of(dtype)
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if is_signed(dtype) else (0, (1 << bits) - 1)


def wrapped(value: int, dtype: str) -> int:
    """The value of dtype that is congruent to `value`: what is left of it after wrapping around."""
    low, high = integer_range(dtype)
    return value if low <= value <= high else (value - low) % (high - low + 1) + low


def float_limits(dtype: str) -> tuple[float, float]:
    """The identities of max and min: -inf and inf, or the largest finite values of a format that has no infinity."""
    small = SMALL_FLOATS.get(element_of(dtype))
    bound = small.largest if small is not None and small.infinity is None else math.inf
    return -bound, bound


@functools.cache
def largest(dtype: str) -> float:
    """The largest finite value of a float dtype."""
    small = SMALL_FLOATS.get(element_of(dtype))
    return float(np.finfo(element_of(dtype)).max) if small is None else small.largest


def nearest(value: float, dtype: str) -> float:
    """value rounded to a float dtype, ties to even; beyond the largest value: infinity, or NaN where there is none."""
    element = element_of(dtype)
    if element in SMALL_FLOATS:
        return SMALL_FLOATS[element].nearest(value)
    with np.errstate(over="ignore"):
        return float(np.float32(value)) if element == "float32" else float(value)


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
    raise IRError(f"operands are {a} and {b}, which do not promote to a common type",
                  f'cast one of them, e.g. x.astype("{x}")')
