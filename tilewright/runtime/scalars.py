"""Arguments that are numbers: what a parameter of each dtype takes. Calls and the interpreter ask here.

In a packed call an integer is an int64. A uint64 from 2**63 on is a pointer with these bits, there and back: no address
has the highest one.
"""
from __future__ import annotations

import ctypes
import numbers
import operator
from typing import Any

import numpy as np

from tilewright.runtime.dtypes import dl_dtype, numpy_dtype
from tilewright.support.errors import ArgumentError, type_name

_MOST_VALUES = 16                                # of `__tvm_ffi_value__`, one inside of another
_SMALL_FLOATS = tuple(numpy_dtype(name).type for name in ("bfloat16", "float8_e4m3fn", "float8_e5m2"))


def number(x: Any, dtype: str) -> bool | int | float:
    """x as the argument of a parameter of dtype.

    An integer parameter takes bools and integers that fit, a bool takes bools, 0 and 1, a float takes floats, integers
    and bools; what is too large for the float becomes infinity. Integers are those of Python and NumPy and everything
    with `__index__`; floats are those of Python, NumPy and ml_dtypes and every `numbers.Real`. An array or a tensor is
    no number. Raises ArgumentError with a text that goes on behind the name of the argument.
    """
    plain = _plain(value_behind(x))
    if plain is None or isinstance(plain, float) and not _is_float(dtype):
        raise ArgumentError(f"is of type {type_name(x)}, expected a number of type {dtype}")
    try:
        if _is_float(dtype):
            return float(plain)
    except OverflowError:
        bits = int(plain).bit_length()
        raise ArgumentError(f"is an int of {bits} bits, expected a value that fits {dtype}") from None
    low, high = _range(dtype)
    if not low <= plain <= high:
        raise ArgumentError(f"is {plain}, expected a value that fits {dtype}")
    return bool(plain) if dtype == "bool" else plain


def packed(value: Any) -> Any:
    """A number as packed calls take it."""
    return ctypes.c_void_p(value) if type(value) is int and 1 << 63 <= value < 1 << 64 else value


def unpacked(value: Any) -> Any:
    """What a packed call gave: the number in a pointer that is no address; anything else is left as it is."""
    if type(value) is ctypes.c_void_p and value.value is not None and value.value >= 1 << 63:
        return value.value
    return value


def value_behind(x: Any) -> Any:
    """What `__tvm_ffi_value__` gives, as often as there is one. Raises ArgumentError where that has no end."""
    value = x
    for _ in range(_MOST_VALUES):
        if not hasattr(type(value), "__tvm_ffi_value__"):
            return value
        value = value.__tvm_ffi_value__()
    raise ArgumentError(f"is of type {type_name(x)}, and what its __tvm_ffi_value__ gives has one again, "
                        f"{_MOST_VALUES} times")


def _plain(x: Any) -> bool | int | float | None:
    """x as a number of Python; None for what is none."""
    if isinstance(x, (bool, np.bool_)):
        return bool(x)
    kind: Any = type(x)
    if hasattr(kind, "__dlpack__") or kind is np.timedelta64:
        return None
    try:
        if hasattr(kind, "__index__"):
            return operator.index(x)
        if issubclass(kind, (numbers.Real, *_SMALL_FLOATS)):
            return float(x)
        if hasattr(kind, "__tvm_ffi_int__"):
            return int(x.__tvm_ffi_int__())
        return float(x.__tvm_ffi_float__()) if hasattr(kind, "__tvm_ffi_float__") else None
    except (TypeError, ValueError, OverflowError):
        return None


def _is_float(dtype: str) -> bool:
    return "float" in dtype


def _range(dtype: str) -> tuple[int, int]:
    if dtype == "bool":
        return 0, 1
    bits = dl_dtype(dtype)[1]
    return (0, (1 << bits) - 1) if dtype.startswith("uint") else (-1 << bits - 1, (1 << bits - 1) - 1)
