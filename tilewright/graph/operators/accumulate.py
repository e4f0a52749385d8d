"""What compute rules share: extents as numbers, and sums of 16-bit floats in 32 bits."""
from __future__ import annotations

from tilewright import te
from tilewright.tir import IntImm

_WIDE = {"float16": "float32", "bfloat16": "float32"}


def extents(t: te.Tensor) -> tuple[int, ...]:
    """The shape of a tensor of a kernel: known when the kernel is made."""
    return tuple(d.value for d in t.shape if isinstance(d, IntImm))


def wide_dtype(dtype: str) -> str:
    """The dtype in which sums of dtype are taken."""
    return _WIDE.get(dtype, dtype)


def widen(t: te.Tensor) -> te.Tensor:
    """t in the dtype of its sums."""
    dtype = wide_dtype(t.dtype)
    return t if dtype == t.dtype else te.compute(t.shape, lambda *i: t(*i).astype(dtype), name=f"{t.name}_wide")


def narrow(t: te.Tensor, dtype: str) -> te.Tensor:
    """t rounded to dtype."""
    return t if dtype == t.dtype else te.compute(t.shape, lambda *i: t(*i).astype(dtype), name=f"{t.name}_rounded")
