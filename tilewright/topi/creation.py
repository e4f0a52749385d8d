"""Tensors that read no other: constants, ranges, identities."""
from __future__ import annotations

import math
from typing import Any

import numpy as np

from tilewright.support.errors import described
from tilewright.te.definition import compute
from tilewright.te.extents import simplified
from tilewright.te.tensor import Tensor
from tilewright.tir import dtype as dt
from tilewright.tir.arithmetic import binary, ceildiv, maximum, select
from tilewright.tir.conversion import cast, const, convert
from tilewright.tir.expr import Expr
from tilewright.topi.shapes import as_shape, check, check_numbers, check_tensors
from tilewright.topi.types import accumulator, dtype_name


def full(shape: Any, value: Any, *, dtype: Any = "float32") -> Tensor:
    """y = value everywhere; a number, or a scalar expression."""
    kind = dtype_name(dtype)
    e = cast(kind, value) if isinstance(value, Expr) else const(value, kind)
    return compute(as_shape("full", shape), lambda *i: e, name="full")


def zeros(shape: Any, *, dtype: Any = "float32") -> Tensor:
    """y = 0 everywhere; False of bools."""
    return full(shape, 0, dtype=dtype)


def ones(shape: Any, *, dtype: Any = "float32") -> Tensor:
    """y = 1 everywhere; True of bools."""
    return full(shape, 1, dtype=dtype)


def full_like(x: Tensor, value: Any, *, dtype: Any = None) -> Tensor:
    """y = value everywhere, of the shape of x, and its type unless dtype says otherwise."""
    check_tensors("full_like", x=x)
    return full(x.shape, value, dtype=x.dtype if dtype is None else dtype)


def zeros_like(x: Tensor, *, dtype: Any = None) -> Tensor:
    """y = 0 everywhere, of the shape of x."""
    return full_like(x, 0, dtype=dtype)


def ones_like(x: Tensor, *, dtype: Any = None) -> Tensor:
    """y = 1 everywhere, of the shape of x."""
    return full_like(x, 1, dtype=dtype)


def arange(start: Any, stop: Any = None, step: Any = 1, *, dtype: Any = None) -> Tensor:
    """The numbers from start on, `step` apart, below stop (above it for a negative step); with one number from 0 to it.

    Numbers, or symbolic extents for integers. dtype: int64 of integers, else float32, unless it is said.
    Raises TensorExpressionError for a step of 0, and for a symbolic step or symbols beside floats.
    """
    op = "arange"
    low, high = (0, start) if stop is None else (start, stop)
    given = (low, high, step)
    whole = all(isinstance(v, (int, np.integer, Expr)) for v in given)
    check(isinstance(step, (int, float, np.number)) and step != 0, op, f"step is {described(step)}, a number that is "
          "not 0 is needed")
    check(whole or not any(isinstance(v, Expr) for v in given), op, f"{given} mixes symbols and floats")
    check_numbers(op, **({} if whole else {"start": low, "stop": high, "step": step}))
    kind = dtype_name(dtype) if dtype is not None else "int64" if whole else "float32"
    if whole:
        span = binary("sub", high, low) if step > 0 else binary("sub", low, high)
        length = simplified(maximum(ceildiv(span, abs(int(step))), 0))
    else:
        steps = (float(high) - float(low)) / float(step)
        check(math.isfinite(steps), op, f"from {low} to {high} there are {steps} steps of {step}")
        length, = as_shape(op, max(math.ceil(steps), 0))
    wide = "int64" if whole else "float64"
    first, by = (convert(low).astype(wide), const(int(step), wide)) if whole else (const(float(low), wide),
                                                                                  const(float(step), wide))
    return compute((length,), lambda i: cast(kind, first + cast(wide, i) * by), name=op)


def linspace(start: float, stop: float, num: Any, *, endpoint: bool = True, dtype: Any = "float32") -> Tensor:
    """y[i] = start + i * (stop - start) / (num - 1), or / num without the endpoint.

    num: the extent, which may be symbolic. Raises TensorExpressionError for a type that is no float.
    """
    op, kind = "linspace", dtype_name(dtype)
    check(dt.is_float(kind), op, f"dtype is {kind}, a float is needed")
    check_numbers(op, start=start, stop=stop)
    extent, = as_shape(op, num, 1)
    parts = maximum(extent - 1, 1) if endpoint else maximum(extent, 1)
    wide = "float64" if accumulator(kind) == "float64" else "float32"
    slope = const(float(stop) - float(start), wide)
    first = const(float(start), wide)
    return compute((extent,), lambda i: cast(kind, first + cast(wide, i) * slope / cast(wide, parts)), name=op)


def eye(rows: Any, columns: Any = None, *, k: int = 0, dtype: Any = "float32") -> Tensor:
    """y[i, j] = 1 where j == i + k, else 0; square unless columns is given."""
    kind = dtype_name(dtype)
    shape = as_shape("eye", (rows, rows if columns is None else columns))
    return compute(shape, lambda i, j: select(binary("eq", binary("add", i, k), j), const(1, kind), const(0, kind)),
                   name="eye")


__all__ = ["arange", "eye", "full", "full_like", "linspace", "ones", "ones_like", "zeros", "zeros_like"]
