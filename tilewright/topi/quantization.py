"""Numbers as integers of a few bits: a scale and a zero point of a tensor, of each channel, or of each block."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright.support.errors import described
from tilewright.te.definition import compute
from tilewright.te.extents import simplified
from tilewright.te.math import FUNCTIONS
from tilewright.te.reduction import max as te_max
from tilewright.te.reduction import min as te_min
from tilewright.te.reduction import reduce_axis
from tilewright.te.tensor import Tensor, shape_text
from tilewright.tir import dtype as dt
from tilewright.tir.arithmetic import absolute, binary, ceildiv, if_then_else, maximum, minimum, select
from tilewright.tir.conversion import cast, const, convert
from tilewright.tir.expr import Expr
from tilewright.tir.low_bit import saturate_cast
from tilewright.topi.reductions import reduced
from tilewright.topi.shapes import (
    axis_index,
    check,
    check_extent,
    check_numbers,
    check_rank,
    check_tensors,
    constant,
    replaced,
)
from tilewright.topi.types import FLOAT, INTEGER, accumulator, check_kind, dtype_name

Parameter = Callable[..., Expr]


def _parameter(op: str, name: str, value: Any, x: Tensor, axis: int | None, block: int | None, dtype: str) -> Parameter:
    """A number, a scalar tensor, or with an axis a vector or one element a block, as a function of the indices of x."""
    if not isinstance(value, Tensor):
        check_numbers(op, **{name: value})
        check(name == "scale" or float(value).is_integer(), op, f"{name} is {value}, not an integer")
        return lambda *i: const(value, dtype)
    if block is not None:
        check(isinstance(block, int) and block >= 1, op, f"block is {described(block)}, a number of at least 1 is "
              "needed")
        check(axis is not None, op, "block is given, and no axis")
        at = axis_index(op, axis, x.ndim)
        check_rank(op, name, value, x.ndim)
        for n, (found, extent) in enumerate(zip(value.shape, x.shape)):
            check_extent(op, f"extent {n} of {name}", found, simplified(ceildiv(extent, block)) if n == at else extent,
                         f"x has the shape {shape_text(x.shape)}, blocks {block} elements along axis {at}")
        return lambda *i: cast(dtype, value(*replaced(i, at, binary("floordiv", i[at], block))))
    check_rank(op, name, value, 0 if axis is None else 1)
    if axis is None:
        return lambda *i: cast(dtype, value())
    at = axis_index(op, axis, x.ndim)
    check_extent(op, f"the extent of {name}", value.shape[0], x.shape[at])
    return lambda *i: cast(dtype, value(i[at]))


FLOATS8 = ("float8_e4m3fn", "float8_e5m2")


def _nearest(op: str, x: Tensor, scale: Any, zero_point: Any, axis: int | None, block: int | None, kind: str,
             wide: str, saturate: bool = True) -> Parameter:
    """round(x / scale) + zero_point in the range of a type, in the type that computes; of floats what they round to."""
    if kind in FLOATS8:
        share = _parameter(op, "scale", scale, x, axis, block, wide)
        check(isinstance(zero_point, (int, float)) and zero_point == 0, op, f"{kind} has no zero point")
        narrow = saturate_cast if saturate else cast
        return lambda *i: narrow(kind, cast(wide, x(*i)) / share(*i))
    low, high = dt.integer_range(kind)
    factor, offset = (_parameter(op, name, v, x, axis, block, wide) for name, v in (
        ("scale", scale), ("zero_point", zero_point)))
    ends = const(float(low), wide), const(float(high), wide)
    return lambda *i: maximum(minimum(FUNCTIONS["round"](cast(wide, x(*i)) / factor(*i)) + offset(*i), ends[1]),
                              ends[0])


def _checked(op: str, x: Any, dtype: Any, floats: bool = True) -> str:
    """The type of what is quantized."""
    check_tensors(op, x=x)
    check_kind(op, "x", x.dtype, FLOAT)
    kind = dtype_name(dtype)
    check(floats and kind in FLOATS8 or dt.is_integer(kind) and dt.bits_of(kind) <= 16, op, f"dtype is {kind}, an "
          "integer of up to 16 bits is needed", f"or {' or '.join(FLOATS8)}" if floats else "")
    return kind


def quantize(x: Tensor, scale: Any, zero_point: Any = 0, *, axis: int | None = None, block: int | None = None,
             dtype: Any = "int8", saturate: bool = True) -> Tensor:
    """y = round(x / scale) + zero_point, brought into the range of dtype; halves go to the even neighbour.

    scale, zero_point: numbers or scalar tensors; with an axis vectors T[c], one element for each index along it. With
    block too: tensors of as many dimensions as x, one element for each block of so many along the axis; the last block
    may be ragged. dtype: an integer of up to 16 bits, or a float of 8 bits, for which there is no zero point. saturate:
    what is beyond the largest float of 8 bits is that one, else infinite, or NaN where the type has no infinity.
    """
    op = "quantize"
    kind = _checked(op, x, dtype)
    value = _nearest(op, x, scale, zero_point, axis, block, kind, accumulator(x.dtype), saturate)
    return compute(x.shape, lambda *i: cast(kind, value(*i)), name=op)


def dequantize(x: Tensor, scale: Any, zero_point: Any = 0, *, axis: int | None = None, block: int | None = None,
               dtype: Any = "float32") -> Tensor:
    """y = (x - zero_point) * scale; scale and zero_point as in `quantize`."""
    op, kind = "dequantize", dtype_name(dtype)
    check_tensors(op, x=x)
    if x.dtype not in FLOATS8:
        check_kind(op, "x", x.dtype, INTEGER)
    check(dt.is_float(kind), op, f"dtype is {kind}, a float is needed")
    wide = accumulator(kind)
    factor = _parameter(op, "scale", scale, x, axis, block, wide)
    if x.dtype in FLOATS8:
        check(isinstance(zero_point, (int, float)) and zero_point == 0, op, f"{x.dtype} has no zero point")
        return compute(x.shape, lambda *i: cast(kind, cast(wide, x(*i)) * factor(*i)), name=op)
    exact = "float64" if dt.bits_of(x.dtype) == 64 else "int64"
    offset = _parameter(op, "zero_point", zero_point, x, axis, block, exact)
    return compute(x.shape, lambda *i: cast(kind, cast(wide, binary("sub", cast(exact, x(*i)), offset(*i)))
                                            * factor(*i)), name=op)


def fake_quantize(x: Tensor, scale: Any, zero_point: Any = 0, *, axis: int | None = None, block: int | None = None,
                  dtype: Any = "int8") -> Tensor:
    """y = (q - zero_point) * scale of q = `quantize`(x), in the type of x: what quantization makes of x."""
    op = "fake_quantize"
    kind, wide = _checked(op, x, dtype), accumulator(x.dtype)
    value = _nearest(op, x, scale, zero_point, axis, block, kind, wide)
    factor = _parameter(op, "scale", scale, x, axis, block, wide)
    offset = _parameter(op, "zero_point", zero_point, x, axis, block, wide)
    return compute(x.shape, lambda *i: cast(x.dtype, (cast(wide, value(*i)) - offset(*i)) * factor(*i)), name=op)


def _above_zero(scale: Expr) -> Expr:
    """scale, or 1 where nothing is above 0 that could be one."""
    return select(binary("gt", scale, const(0.0, scale.dtype)), scale, const(1.0, scale.dtype))


def absmax_quantize(x: Tensor, *, axis: int = -1, block: int | None = None,
                    dtype: Any = "int8") -> tuple[Tensor, Tensor]:
    """(y, scale): `quantize` of x by scale = the largest |x| of a line along an axis / the largest number of dtype.

    With block: of each so many elements of a line, the last of which may be fewer. scale: in the type of x, or float32
    for one of 16 bits, with the extent 1, or the number of blocks, along the axis; 1 where x is 0.
    """
    op = "absmax_quantize"
    kind, wide = _checked(op, x, dtype), accumulator(x.dtype)
    at = axis_index(op, axis, x.ndim)
    extent = x.shape[at]
    check(block is None or isinstance(block, int) and block >= 1, op, f"block is {described(block)}, a number of at "
          "least 1 is needed")
    size = extent if block is None else convert(block)
    k = reduce_axis((0, size), name="k")
    shape = replaced(x.shape, at, 1 if block is None else simplified(ceildiv(extent, block)))

    def element(*i: Any) -> Expr:
        place = binary("add", binary("mul", i[at], size), k) if block is not None else k.var
        value = absolute(cast(wide, x(*replaced(i, at, place))))
        if block is None or (constant(extent) or 1) % block == 0 and constant(extent) is not None:
            return te_max(value, axis=k)
        return te_max(if_then_else(binary("lt", place, extent), value, const(0.0, wide)), axis=k)
    largest = compute(shape, element, name=f"{op}_largest")
    most = dt.largest(kind) if kind in FLOATS8 else float(dt.integer_range(kind)[1])
    scale = compute(shape, lambda *i: _above_zero(largest(*i) / most), name=f"{op}_scale")
    if block is not None:
        return quantize(x, scale, axis=at, block=block, dtype=kind), scale
    full = compute(x.shape, lambda *i: scale(*replaced(i, at, 0)), name=f"{op}_full")
    return quantize(x, full, axis=at, block=1, dtype=kind), scale


def dynamic_quantize(x: Tensor, *, dtype: Any = "uint8") -> tuple[Tensor, Tensor, Tensor]:
    """(y, scale, zero_point): `quantize` of x by scale = (high - low) / (the range of dtype), the bounds of x and 0.

    zero_point = round(the least number of dtype - low / scale), a scalar of dtype; scale: a scalar, 1 where x is 0.
    """
    op = "dynamic_quantize"
    kind = _checked(op, x, dtype, False)
    least, most = dt.integer_range(kind)
    wide = accumulator(x.dtype)
    zero = const(0.0, wide)
    low, high = (reduced(f"{op}_{name}", x, None, False, f, lambda *i: cast(wide, x(*i)))
                 for name, f in (("low", te_min), ("high", te_max)))

    def step() -> Expr:
        return _above_zero((maximum(high(), zero) - minimum(low(), zero)) / float(most - least))
    scale = compute((), step, name=f"{op}_scale")

    def origin() -> Expr:
        at = FUNCTIONS["round"](float(least) - minimum(low(), zero) / scale())
        return cast(kind, maximum(minimum(at, const(float(most), wide)), const(float(least), wide)))
    zero_point = compute((), origin, name=f"{op}_zero_point")
    return quantize(x, scale, zero_point, dtype=kind), scale, zero_point


__all__ = ["absmax_quantize", "dequantize", "dynamic_quantize", "fake_quantize", "quantize"]
