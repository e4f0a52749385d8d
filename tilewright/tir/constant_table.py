"""`table`: an element of an array that is known when the program is written, as an expression.

`Call("table", (StringImm(data), index), dtype)`: data is the array in row-major order, little-endian, in base 64. An
index that is none of the array gives some element of it: what asks for such ones (lanes behind the end of a ragged
loop) does not use the value.
"""
from __future__ import annotations

import base64
import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewright.tir import dtype as dt
from tilewright.tir.arithmetic import binary
from tilewright.tir.conversion import cast
from tilewright.tir.expr import Call, Expr, StringImm

DTYPES = ("float32", "float64", *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)))


def table_element(values: np.ndarray[Any, Any], index: Expr, dtype: str) -> Expr:
    """values.ravel()[index] as dtype: of one of DTYPES, or held in float32 or int8 and converted."""
    kept = dtype if dtype in DTYPES else "float32" if dt.is_float(dtype) else "int8"
    return cast(dtype, Call("table", (StringImm(text_of(values, kept)), index), kept))


def row_major_index(indices: Sequence[Expr], shape: Sequence[int]) -> Expr:
    """The place of an element in row-major order."""
    out, *rest = indices
    for i, extent in zip(rest, shape[1:], strict=True):
        out = binary("add", binary("mul", out, extent), i)
    return out


def text_of(values: np.ndarray[Any, Any], dtype: str) -> str:
    return base64.b64encode(np.ascontiguousarray(values).astype(np.dtype(dtype).newbyteorder("<")).tobytes()).decode()


@functools.lru_cache(256)
def array_of(text: str, dtype: str) -> np.ndarray[Any, Any]:
    """The array of a table's text. Raises ValueError where it is none."""
    out = np.frombuffer(base64.b64decode(text, validate=True), np.dtype(dtype).newbyteorder("<"))
    if not len(out):
        raise ValueError("no element")
    return out


def mismatch(e: Call) -> str:
    """What is wrong with a call of `table`, or an empty string."""
    data, index = e.args
    element, lanes = dt.parse(e.type)
    if element not in DTYPES or not isinstance(data, StringImm):
        return f"a table of {element} has no form" if element not in DTYPES else "the data of a table is no text"
    if not dt.is_integer(index.dtype) or dt.lanes_of(index.dtype) != lanes:
        return f"the index of a table is {index.dtype}, its value {e.type}"
    try:
        array_of(data.value, element)
    except ValueError as why:
        return f"the data of a table is no array of {element}: {why}"
    return ""
