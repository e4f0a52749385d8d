"""dtypes of PyTorch by name, and what its operators make of several."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright.graph.ir.values import Value
from tilewright.support.errors import ImportModelError
from tilewright.tir import Expr
from tilewright.tir import dtype as dt

KNOWN = frozenset({"bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float16",
                   "bfloat16", "float32", "float64", "float8_e4m3fn", "float8_e5m2"})
_ORDER = ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64")


def dtype_name(dtype: Any) -> str:
    """The dtype of a torch.dtype. Raises ImportModelError for one that Tilewright has not."""
    name = str(dtype).removeprefix("torch.")
    if name not in KNOWN:
        raise ImportModelError(f"tensors of {dtype} are not supported", "complex and quantized types are missing")
    return name


def category(dtype: str) -> int:
    """0: bool, 1: integers, 2: floats."""
    return 0 if dtype == "bool" else 2 if dt.is_float(dtype) else 1


def promoted(a: str, b: str) -> str:
    """The dtype that holds both, by PyTorch's table."""
    if a == b:
        return a
    if category(a) != category(b):
        return a if category(a) > category(b) else b
    if {a, b} == {"float16", "bfloat16"}:
        return "float32"
    if "uint8" in (a, b) and "int8" in (a, b):
        return "int16"
    if a not in _ORDER or b not in _ORDER:
        raise ImportModelError(f"PyTorch promotes {a} and {b} to no common type")
    return max(a, b, key=_ORDER.index)


def result_type(arguments: Sequence[Any]) -> str:
    """torch.result_type: tensors with dimensions count more than those without, these more than numbers."""
    def merged(dtypes: Sequence[str]) -> str | None:
        found: str | None = None
        for d in dtypes:
            found = d if found is None else promoted(found, d)
        return found

    tensors = [a for a in arguments if isinstance(a, Value)]
    numbers = [number_type(a) for a in arguments if a is not None and not isinstance(a, Value)]
    result: str | None = None
    for level in (merged([t.dtype for t in tensors if t.ndim]), merged([t.dtype for t in tensors if not t.ndim]),
                  merged(numbers)):
        if level is not None and (result is None or category(level) > category(result)):
            result = level
    if result is None:
        raise ImportModelError("an operator without arguments has no type")
    return result


def number_type(number: Any) -> str:
    """The dtype that PyTorch takes a number of Python to be."""
    if isinstance(number, bool):
        return "bool"
    if isinstance(number, Expr):
        return "bool" if number.dtype == "bool" else "float32" if dt.is_float(number.dtype) else "int64"
    return "float32" if isinstance(number, float) else "int64"
