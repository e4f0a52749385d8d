"""Products of quantized tensors: of integers of 8 bits, added up in int32, and by weights of 4 bits."""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tilewright.support.errors import described
from tilewright.te.definition import compute
from tilewright.te.extents import simplified
from tilewright.te.math import FUNCTIONS
from tilewright.te.tensor import Tensor, shape_text
from tilewright.tir import dtype as dt
from tilewright.tir.arithmetic import binary, ceildiv, if_then_else, maximum, minimum
from tilewright.tir.conversion import cast, const
from tilewright.tir.expr import Expr
from tilewright.tir.low_bit import pack_int4 as packed_byte
from tilewright.tir.low_bit import unpack_int4 as unpacked
from tilewright.topi.contraction import contraction, reduction_axis
from tilewright.topi.convolution import conv
from tilewright.topi.products import linear, matmul, with_bias
from tilewright.topi.shapes import (
    as_shape,
    batched,
    check,
    check_extent,
    check_numbers,
    check_rank,
    check_tensors,
    constant,
    number,
    product,
)
from tilewright.topi.types import FLOAT, INTEGER, accumulator, check_kind, dtype_name

SUM = "int32"
Parameter = Callable[[Any], Expr]


def _parameter(op: str, name: str, value: Any, extent: Any, dtype: str) -> Parameter:
    """A number, a scalar tensor, or a vector of the extent, as a function of its index: of a scale, or of integers."""
    is_scale = name.endswith("scale")
    if not isinstance(value, Tensor):
        check_numbers(op, **{name: value})
        check(0 < value < math.inf if is_scale else float(value).is_integer(), op, f"{name} is {value}, not "
              f"{'a positive number' if is_scale else 'an integer'}")
        return lambda _: const(value, dtype)
    check_kind(op, name, value.dtype, FLOAT if is_scale else INTEGER)
    if value.ndim == 0:
        return lambda _: cast(dtype, value())
    check(extent is not None, op, f"{name} has the shape {shape_text(value.shape)}, a scalar is needed")
    check_rank(op, name, value, 1)
    check_extent(op, f"the extent of {name}", value.shape[0], extent)
    return lambda i: cast(dtype, value(i))


def _none(value: Any) -> bool:
    return isinstance(value, (int, float)) and value == 0


def _check_bytes(op: str, **tensors: Any) -> None:
    check_tensors(op, **tensors)
    for name, x in tensors.items():
        check(dt.is_integer(x.dtype) and dt.bits_of(x.dtype) <= 8, op, f"{name} is {x.dtype}, int8 or uint8 is needed")


def matmul_integer(a: Tensor, b: Tensor, a_zero: Any = 0, b_zero: Any = 0) -> Tensor:
    """y[..., i, j] = sum over k of (a[..., i, k] - a_zero[i]) * (b[..., k, j] - b_zero[j]), in int32.

    a: int8 or uint8 [..., m, k]; b: [..., k, n]; a_zero: a number, a scalar tensor or integers [m]; b_zero: or [n].
    Zero points are taken off the products: by the sums of the rows of a and of the columns of b. ONNX's MatMulInteger.
    Raises TensorExpressionError where extents differ.
    """
    op = "matmul_integer"
    _check_bytes(op, a=a, b=b)
    check_rank(op, "a", a, 2, 100)
    check_rank(op, "b", b, 2, 100)
    (rows, inner), columns = a.shape[-2:], b.shape[-1]
    left, right = _parameter(op, "a_zero", a_zero, rows, SUM), _parameter(op, "b_zero", b_zero, columns, SUM)
    y = matmul(a, b, out_dtype=SUM)
    k, m = reduction_axis(inner, "k"), reduction_axis(inner, "k")
    of_rows = None if _none(b_zero) else contraction(f"{op}_rows", a.shape[:-1], lambda *i: (a(*i, k),), [k], SUM)
    of_columns = None if _none(a_zero) else contraction(
        f"{op}_columns", (*b.shape[:-2], columns), lambda *i: (b(*i[:-1], m, i[-1]),), [m], SUM)
    if of_rows is None and of_columns is None:
        return y

    def at(*i: Any) -> Expr:
        (r, c), lead = i[-2:], i[:-2]
        e: Expr = y(*i)
        if of_columns is not None:
            e = e - left(r) * batched(of_columns, lead, (c,))
        if of_rows is not None:
            e = e - right(c) * batched(of_rows, lead, (r,))
        both = of_columns is not None and of_rows is not None
        return e + left(r) * right(c) * number(inner, SUM) if both else e
    return compute(y.shape, at, name=op)


def _requantized(op: str, y: Tensor, axis: int, scales: tuple[Parameter, Parameter, Parameter], rows: int | None,
                 zero_point: Any, dtype: str) -> Tensor:
    """round(y * (first * second / last)) + zero_point in the range of dtype; second: by the index along an axis."""
    check(dt.is_integer(dtype) and dt.bits_of(dtype) <= 8, op, f"the result is {dtype}, int8 or uint8 is needed")
    (first, second, last), offset = scales, _parameter(op, "y_zero", zero_point, None, "float32")
    least, most = dt.integer_range(dtype)
    check(isinstance(zero_point, Tensor) or least <= zero_point <= most, op, f"y_zero is {zero_point}, beyond {dtype}")
    low, high = const(float(least), "float32"), const(float(most), "float32")

    def at(*i: Any) -> Expr:
        factor = first(None if rows is None else i[rows]) * second(i[axis]) / last(None)
        e = FUNCTIONS["round"](cast("float32", y(*i)) * factor) + offset(None)
        return cast(dtype, maximum(minimum(e, high), low))
    return compute(y.shape, at, name=op)


def _result_type(zero_point: Any, dtype: Any) -> str:
    kind = dtype_name(dtype)
    return zero_point.dtype if isinstance(zero_point, Tensor) else kind


def quantized_matmul(a: Tensor, a_scale: Any, a_zero: Any, b: Tensor, b_scale: Any, b_zero: Any, y_scale: Any,
                     y_zero: Any, *, dtype: Any = "int8") -> Tensor:
    """y = round(`matmul_integer` * (a_scale[i] * b_scale[j] / y_scale)) + y_zero, brought into the range of its type.

    Scales are numbers or floats of the shapes of the zero points; y has the type of the tensor y_zero, or dtype.
    Computed in float32; halves go to the even neighbour. ONNX's QLinearMatMul.
    """
    op = "quantized_matmul"
    y = matmul_integer(a, b, a_zero, b_zero)
    scales = (_parameter(op, "a_scale", a_scale, a.shape[-2], "float32"),
              _parameter(op, "b_scale", b_scale, b.shape[-1], "float32"),
              _parameter(op, "y_scale", y_scale, None, "float32"))
    return _requantized(op, y, y.ndim - 1, scales, y.ndim - 2, y_zero, _result_type(y_zero, dtype))


def conv_integer(x: Tensor, weight: Tensor, x_zero: Any = 0, weight_zero: Any = 0, *, stride: Any = 1, padding: Any = 0,
                 dilation: Any = 1, groups: int = 1) -> Tensor:
    """`conv` of x - x_zero and weight - weight_zero[f], in int32; the padding is x_zero.

    x, weight: int8 or uint8; x_zero: a number or a scalar tensor; weight_zero: or integers [f]. ONNX's ConvInteger.
    Raises TensorExpressionError as `conv` does.
    """
    op = "conv_integer"
    _check_bytes(op, x=x, weight=weight)
    check_rank(op, "weight", weight, x.ndim)
    data, filters = x, weight
    if not _none(x_zero):
        zero = _parameter(op, "x_zero", x_zero, None, "int16")
        data = compute(x.shape, lambda *i: cast("int16", x(*i)) - zero(None), name=f"{op}_x")
    if not _none(weight_zero):
        own = _parameter(op, "weight_zero", weight_zero, weight.shape[0], "int16")
        filters = compute(weight.shape, lambda *i: cast("int16", weight(*i)) - own(i[0]), name=f"{op}_weight")
    return conv(data, filters, stride=stride, padding=padding, dilation=dilation, groups=groups, out_dtype=SUM)


def quantized_conv(x: Tensor, x_scale: Any, x_zero: Any, weight: Tensor, weight_scale: Any, weight_zero: Any,
                   y_scale: Any, y_zero: Any, bias: Tensor | None = None, *, stride: Any = 1, padding: Any = 0,
                   dilation: Any = 1, groups: int = 1, dtype: Any = "int8") -> Tensor:
    """y = round((`conv_integer` + bias[f]) * (x_scale * weight_scale[f] / y_scale)) + y_zero, in the range of its type.

    bias: int32[f]; scales are numbers, scalar tensors, or floats [f] of the weight; y has the type of the tensor
    y_zero, or dtype. Computed in float32; halves go to the even neighbour. ONNX's QLinearConv.
    """
    op = "quantized_conv"
    y = conv_integer(x, weight, x_zero, weight_zero, stride=stride, padding=padding, dilation=dilation, groups=groups)
    if bias is not None:
        check_tensors(op, bias=bias)
        check(bias.dtype == SUM, op, f"bias is {bias.dtype}, int32 is needed")
        more, total = _parameter(op, "bias", bias, weight.shape[0], SUM), y
        y = compute(total.shape, lambda *i: total(*i) + more(i[1]), name=f"{op}_bias")
    scales = (_parameter(op, "x_scale", x_scale, None, "float32"),
              _parameter(op, "weight_scale", weight_scale, weight.shape[0], "float32"),
              _parameter(op, "y_scale", y_scale, None, "float32"))
    return _requantized(op, y, 1, scales, None, y_zero, _result_type(y_zero, dtype))


# four bits


def pack_int4(x: Tensor) -> Tensor:
    """y[..., i] = x[..., 2 * i] in bits 0 to 3 and x[..., 2 * i + 1] in bits 4 to 7; 0 behind an odd extent.

    x: integers [..., n], of which four bits are kept; y: uint8[..., (n + 1) / 2].
    """
    op = "pack_int4"
    check_tensors(op, x=x)
    check_rank(op, "x", x, 1, 100)
    check(dt.is_integer(x.dtype), op, f"x is {x.dtype}, integers are needed", "topi.quantize first")
    n = x.shape[-1]
    known = constant(n)

    def high(lead: tuple[Any, ...], k: Any) -> Expr:
        if known is not None and known % 2 == 0:
            return x(*lead, k)
        return if_then_else(binary("lt", k, n), x(*lead, k), const(0, x.dtype))
    return compute((*x.shape[:-1], simplified(ceildiv(n, 2))), lambda *i: packed_byte(
        x(*i[:-1], binary("mul", i[-1], 2)), high(i[:-1], binary("add", binary("mul", i[-1], 2), 1))), name=op)


def unpack_int4(x: Tensor, *, signed: bool = True, size: Any = None) -> Tensor:
    """y[..., k] = four bits of x[..., k / 2]: bits 0 to 3 for an even k, bits 4 to 7 for an odd one.

    x: uint8[..., n]; y: int8, or uint8 unless signed, [..., size], by default 2 * n. The inverse of `pack_int4`.
    Raises TensorExpressionError for a size above it.
    """
    op = "unpack_int4"
    check_tensors(op, x=x)
    check_rank(op, "x", x, 1, 100)
    check(x.dtype == "uint8", op, f"x is {x.dtype}, uint8 is needed")
    room = simplified(product((x.shape[-1], 2)))
    extent, = (room,) if size is None else as_shape(op, size, 1)
    have, wanted = constant(room), constant(extent)
    check(have is None or wanted is None or wanted <= have, op, f"size is {extent}, x has {room} elements")
    kind = "int8" if signed else "uint8"
    return compute((*x.shape[:-1], extent), lambda *i: cast(kind, unpacked(x, *i, signed=signed)), name=op)


def linear_int4(x: Tensor, weight: Tensor, scale: Tensor, zero_point: Tensor | None = None, bias: Tensor | None = None,
                *, block: int, signed: bool = False) -> Tensor:
    """y[..., o] = sum over c of x[..., c] * (q[o, c] - zero_point[o, c / block]) * scale[o, c / block], + bias[o].

    x: T[..., c]; weight: uint8[o, (c + 1) / 2], the elements q as in `pack_int4`; scale: T[o, g] and zero_point:
    integers [o, g] of g blocks, the last of which may be ragged; without zero_point 8 is taken off, nothing where q is
    signed. bias: T[o]. The weight is an intermediate tensor of floats, which a schedule may inline.
    Raises TensorExpressionError where extents differ.
    """
    op = "linear_int4"
    check_tensors(op, x=x, weight=weight, scale=scale)
    check_rank(op, "x", x, 1, 100)
    check_kind(op, "x", x.dtype, FLOAT)
    check(weight.dtype == "uint8", op, f"weight is {weight.dtype}, uint8 is needed", "topi.pack_int4")
    check_rank(op, "weight", weight, 2)
    check(isinstance(block, int) and block >= 1, op, f"block is {described(block)}, a number of at least 1 is needed")
    outputs, inner = weight.shape[0], x.shape[-1]
    shapes = f"x has the shape {shape_text(x.shape)}, weight {shape_text(weight.shape)}"
    check_extent(op, "extent 1 of weight", weight.shape[1], simplified(ceildiv(inner, 2)), shapes)
    blocks = simplified(ceildiv(inner, block))
    for name, t in (("scale", scale), ("zero_point", zero_point)):
        if t is not None:
            check_tensors(op, **{name: t})
            check_rank(op, name, t, 2)
            check_kind(op, name, t.dtype, FLOAT if name == "scale" else INTEGER)
            check_extent(op, f"extent 0 of {name}", t.shape[0], outputs, shapes)
            check_extent(op, f"extent 1 of {name}", t.shape[1], blocks, f"blocks have {block} elements, {shapes}")
    wide = accumulator(x.dtype)

    def factor(o: Expr, c: Expr) -> Expr:
        g = binary("floordiv", c, block)
        q = cast(SUM, unpacked(weight, o, c, signed=signed))
        if zero_point is not None:
            q = q - cast(SUM, zero_point(o, g))
        elif not signed:
            q = q - 8
        return cast(wide, q) * cast(wide, scale(o, g))
    numbers = compute((outputs, inner), factor, name=f"{op}_weight")
    y = linear(x, numbers, bias, out_dtype=wide)
    return y if wide == x.dtype else compute(y.shape, lambda *i: cast(x.dtype, y(*i)), name=op)


def linear_blocks(x: Tensor, weight: Tensor, scale: Tensor, bias: Tensor | None = None, *, block: int = 32) -> Tensor:
    """y[..., o] = sum over g of scale[o, g] * (sum over the elements c of block g of x[..., c] * q[o, c]), + bias[o].

    x: T[..., c]; scale: float[o, c / block]; bias: T[o]. weight: int8[o, c], which is q, or uint8[o, c / 2], where byte
    j of a block has q + 8 of its element j in bits 0 to 3 and that of element j + block / 2 in bits 4 to 7 (the order
    of Q4_0 in GGUF), so that a vector of bytes gives two vectors of elements that lie side by side.
    Raises TensorExpressionError where extents differ, and for extents that are no whole blocks.
    """
    op = "linear_blocks"
    check_tensors(op, x=x, weight=weight, scale=scale)
    check_rank(op, "x", x, 1, 100)
    check_kind(op, "x", x.dtype, FLOAT)
    check(weight.dtype in ("int8", "uint8"), op, f"weight is {weight.dtype}, int8 or uint8 is needed")
    for name, t in (("weight", weight), ("scale", scale)):
        check_rank(op, name, t, 2)
    check_kind(op, "scale", scale.dtype, FLOAT)
    check(isinstance(block, int) and block >= 2 and block % 2 == 0, op, f"block is {described(block)}, an even number "
          "is needed")
    parts = 2 if weight.dtype == "uint8" else 1
    inner, blocks, wide = x.shape[-1], scale.shape[1], accumulator(x.dtype)
    shapes = f"x has the shape {shape_text(x.shape)}, weight {shape_text(weight.shape)}, and a block {block} elements"
    check_extent(op, "extent 0 of scale", scale.shape[0], weight.shape[0], shapes)
    check_extent(op, "the last extent of x", inner, simplified(binary("mul", blocks, block)), shapes)
    check_extent(op, "extent 1 of weight", weight.shape[1], simplified(binary("mul", blocks, block // parts)), shapes)
    g, h = reduction_axis(blocks, "g"), reduction_axis(parts, "h")
    j = reduction_axis(block // parts, "j")

    def numbers(o: Expr) -> Expr:
        byte = weight(o, g * (block // parts) + j)
        if parts == 1:
            return cast(wide, byte)
        return cast(wide, cast("int8", binary("bitand", binary("shr", byte, cast("uint8", h * 4)), 15)) - 8)
    y = contraction(op, (*x.shape[:-1], weight.shape[0]), lambda *i: (
        x(*i[:-1], g * block + h * (block // parts) + j), numbers(i[-1]), scale(i[-1], g)), [g, h, j], wide)
    return with_bias(op, y, bias, -1, x.dtype)


__all__ = ["conv_integer", "linear_blocks", "linear_int4", "matmul_integer", "pack_int4", "quantized_conv",
           "quantized_matmul", "unpack_int4"]
