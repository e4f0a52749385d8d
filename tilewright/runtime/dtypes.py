"""DLPack's three numbers (code, bits, lanes) for the dtype strings of the IR, and NumPy's view of them."""
from __future__ import annotations

import functools
import re

import ml_dtypes
import numpy as np

from tilewright.support.errors import ArgumentError, described

INT, UINT, FLOAT, HANDLE, BFLOAT, BOOL, E4M3FN, E5M2 = 0, 1, 2, 3, 4, 6, 10, 12        # DLDataTypeCode
_CODES = {"int": INT, "uint": UINT, "float": FLOAT, "bfloat": BFLOAT}
_WIDTHS = {"int": (8, 16, 32, 64), "uint": (8, 16, 32, 64), "float": (16, 32, 64), "bfloat": (16,)}
_EIGHT_BIT_FLOATS = {"float8_e4m3fn": E4M3FN, "float8_e5m2": E5M2}
_MOST_LANES = 65535                                      # a uint16 of DLPack
_PATTERN = re.compile(r"(float8_e4m3fn|float8_e5m2|bool|[a-z]+?)([0-9]*)(?:x([1-9][0-9]{0,4}))?")
_ALIASES = {"int": "int32", "float": "float32", "double": "float64", "uint1": "bool"}


@functools.cache
def dl_dtype(dtype: str) -> tuple[int, int, int]:
    """(code, bits, lanes) of "float32", "bool", "int8x4"; a bool takes 8 bits. Raises ArgumentError."""
    match = _PATTERN.fullmatch(_ALIASES.get(dtype, dtype))
    if match and int(match[3] or 1) <= _MOST_LANES:
        kind, bits, lanes = match[1], int(match[2] or 0), int(match[3] or 1)
        if kind in _EIGHT_BIT_FLOATS:
            return _EIGHT_BIT_FLOATS[kind], 8, lanes
        if kind == "bool" and bits in (0, 8):
            return BOOL, 8, lanes
        if bits in _WIDTHS.get(kind, ()):
            return _CODES[kind], bits, lanes
    raise ArgumentError(f"{dtype!r} is not a dtype", "for instance float32, int64, bool, bfloat16")


@functools.cache
def dtype_name(code: int, bits: int, lanes: int = 1) -> str:
    """The dtype string of DLPack's numbers; the inverse of `dl_dtype`."""
    suffix = f"x{lanes}" if lanes > 1 else ""
    if code == BOOL:
        return f"bool{suffix}"
    for name, number in _EIGHT_BIT_FLOATS.items():
        if (code, bits) == (number, 8):
            return f"{name}{suffix}"
    names = {number: name for name, number in _CODES.items()}
    return f"{names.get(code, f'dlpack code {code}, bits ')}{bits}{suffix}"


@functools.cache
def item_bytes(dtype: str) -> int:
    """Bytes of one element (all lanes)."""
    _, bits, lanes = dl_dtype(dtype)
    return bits * lanes // 8


@functools.cache
def numpy_dtype(dtype: str) -> np.dtype:
    """NumPy's dtype of a scalar dtype string (ml_dtypes' for bfloat16 and 8-bit floats). Raises ArgumentError."""
    code, bits, lanes = dl_dtype(dtype)
    if lanes != 1:
        raise ArgumentError(f"{dtype} is a vector type, which NumPy has not")
    name = dtype_name(code, bits)
    return np.dtype(getattr(ml_dtypes, name) if code in (BFLOAT, E4M3FN, E5M2) else name)


def dtype_string(dtype: object) -> str:
    """The dtype string for a string, a NumPy dtype or scalar type, or a Python type. Raises ArgumentError."""
    if isinstance(dtype, str):
        return dtype_name(*dl_dtype(dtype))
    if dtype is bool:
        return "bool"
    if dtype is int:
        return "int32"
    if dtype is float:
        return "float32"
    try:
        if dtype is None:                                  # NumPy's word for float64
            raise TypeError
        known: np.dtype = np.dtype(dtype)  # type: ignore[call-overload]
        hash(known)                                        # of names and titles that have no hash, it is none of ours
    except Exception:                                     # whatever the object does when NumPy asks it
        raise ArgumentError(f"{described(dtype)} is not a dtype") from None
    return _of_numpy(known)


@functools.lru_cache(256)
def _of_numpy(dtype: np.dtype) -> str:
    return dtype_name(*dl_dtype(dtype.name))


def extent_limit(dtype: str) -> int:
    """The largest size that a symbolic extent of dtype may have at a call: for int32, 2**31 - 2**20.

    The gap below the type's limit is room for `i + 1`, `i + k - padding` and the like: conditions on such sums are
    values, which wrap, and the gap shows that these do not.
    """
    code, bits, _ = dl_dtype(dtype)
    most = (1 << min(bits, 64) - (code == 0)) - 1
    return min(most, (1 << 63) - 1) + 1 - (1 << max(bits - 12, 0))
