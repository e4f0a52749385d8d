"""Integers for floats, and products of them."""
from __future__ import annotations

from typing import Any

from tilewright import te, topi
from tilewright.frontend.onnx.node import Node, Unsupported
from tilewright.frontend.onnx.operators.convolution import window_of
from tilewright.frontend.onnx.operators.small_floats import decoded, encoded
from tilewright.frontend.onnx.registry import CONTRIB, operator
from tilewright.frontend.onnx.tensors import CODED, stored
from tilewright.frontend.onnx.values import Held
from tilewright.graph.ir.values import Value
from tilewright.tir.arithmetic import binary


def _parameters(n: Node, first: int) -> tuple[Any, Any, dict[str, Any]]:
    """(scale, zero point, axis and block) of input 0 by inputs `first` and the next one."""
    scale = n.held(first)
    zero = n.operand(first + 1) if n.has(first + 1) else 0
    if "float8" in (n.held(first + 1).dtype if n.has(first + 1) else ""):
        zero = 0
    block = n.attr("block_size", 0)
    if not scale.shape:
        if isinstance(zero, Value) and zero.ndim:
            zero = n.emit(topi.reshape, zero, ())
        return n.operand(first), zero, {}
    axis = n.axis(1) if n.rank() > 1 or "axis" in n.attributes and n.rank() else 0
    if block:
        return n.value(first), zero, {"axis": axis, "block": block}
    if scale.shape == (1,):
        one = n.emit(topi.reshape, n.value(first), ())
        offset = n.emit(topi.reshape, zero, ()) if isinstance(zero, Value) and zero.ndim else zero
        return one, offset, {}
    return n.value(first), zero, {"axis": axis}


@operator("QuantizeLinear")
@operator("QuantizeLinear", domain=CONTRIB, attributes=("axis",), inputs=3)
def quantize(n: Node) -> Held:
    """`topi.quantize`."""
    x = n.value(0)
    number = n.attr("output_dtype", 0)
    if number:
        kind, dtype = stored(number, "the attribute output_dtype")
    else:
        kind, dtype = (n.held(2).kind, n.held(2).dtype) if n.has(2) else ("uint8", "uint8")
    if kind in CODED:
        return Held.of(encoded(n, n.emit(scaled, x, n.value(1), _along(n)), kind), kind)
    scale, zero, where = _parameters(n, 1)
    if x.dtype in ("int32", "int64"):
        x = n.emit(topi.astype, x, "float32")
    if kind != dtype:
        bits, signed = int(kind[-1]), dtype == "int8"
        return Held.of(n.emit(quantized_low, x, scale, zero, bits, signed, **where), kind)
    if not n.attr("saturate", 1):
        where["saturate"] = False
    return Held.of(n.emit(topi.quantize, x, scale, zero, dtype=dtype, **where), kind)


def _along(n: Node) -> tuple[int, int]:
    """(axis, block) of the scale: an axis of -1 for one number."""
    scale = n.held(1)
    if scale.shape in ((), (1,)):
        return -1, 0
    return n.axis(1) if n.rank() > 1 else 0, n.attr("block_size", 0)


def scaled(x: Any, scale: Any, along: tuple[int, int], divide: bool = True) -> te.Tensor:
    """y = x / scale, or x * scale; the scale is a number, or has an element for each index or block of an axis."""
    axis, block = along
    wide = topi.astype(scale, "float32")

    def factor(i: Any) -> Any:
        if scale.ndim == 0 or axis < 0:
            return wide(*(0 for _ in scale.shape))
        if block:
            return wide(*(binary("floordiv", v, block) if k == axis else v for k, v in enumerate(i)))
        return wide(i[axis])
    return te.compute(x.shape, lambda *i: x(*i).astype("float32") / factor(i) if divide
                      else x(*i).astype("float32") * factor(i), name="scaled")


def quantized_low(x: Any, scale: Any, zero: Any, bits: int, signed: bool, **where: Any) -> te.Tensor:
    """`topi.quantize` to integers of fewer than 8 bits, in ones of 8."""
    low, high = (-(2**(bits - 1)), 2**(bits - 1) - 1) if signed else (0, 2**bits - 1)
    wide = topi.quantize(x, scale, topi.astype(zero, "int16") if isinstance(zero, te.Tensor) else zero, dtype="int16",
                         **where)
    return topi.astype(topi.clip(wide, low, high), "int8" if signed else "uint8")


@operator("DequantizeLinear")
@operator("DequantizeLinear", domain=CONTRIB, attributes=("axis",), inputs=3)
def dequantize(n: Node) -> Value:
    """`topi.dequantize`."""
    number = n.attr("output_dtype", 0)
    dtype = stored(number, "the attribute output_dtype")[1] if number else n.held(1).dtype
    if n.held(0).kind in CODED:
        x = decoded(n, n.value(0), n.held(0).kind, "float32")
        return n.emit(topi.astype, n.emit(scaled, x, n.value(1), _along(n), False), dtype)
    scale, zero, where = _parameters(n, 1)
    return n.emit(topi.dequantize, n.value(0), scale, zero, dtype=dtype, **where)


@operator("DynamicQuantizeLinear")
def dynamic_quantize(n: Node) -> Any:
    """`topi.dynamic_quantize`."""
    return n.emit(topi.dynamic_quantize, n.value(0))


def scale_of(n: Node, k: int) -> Any:
    """A scale or zero point: a number, a scalar or vector; those of rows or columns as vectors."""
    held = n.held(k)
    if not held.shape:
        return n.operand(k)
    v = n.value(k)
    if held.shape == (1,):
        return n.emit(topi.reshape, v, ())
    if len(held.shape) > 1:
        if any(d != 1 for d in held.shape[:-2]) or 1 not in held.shape[-2:]:
            raise Unsupported(f"a scale or zero point of the shape {held.shape}")
        return n.emit(topi.reshape, v, (held.shape[-1] if held.shape[-2] == 1 else held.shape[-2],))
    return v


@operator("MatMulInteger")
def matmul_integer(n: Node) -> Value:
    """`topi.matmul_integer`."""
    zeros = [scale_of(n, k) if n.has(k) else 0 for k in (2, 3)]
    return n.emit(topi.matmul_integer, n.value(0), n.value(1), *zeros)


@operator("QLinearMatMul")
def quantized_matmul(n: Node) -> Value:
    """`topi.quantized_matmul`."""
    a_scale, a_zero, b_scale, b_zero, y_scale, y_zero = (scale_of(n, k) for k in (1, 2, 4, 5, 6, 7))
    return n.emit(topi.quantized_matmul, n.value(0), a_scale, a_zero, n.value(3), b_scale, b_zero, y_scale, y_zero,
                  dtype=n.held(7).dtype)


@operator("QLinearConv")
def quantized_conv_of(n: Node) -> Value:
    """`topi.quantized_conv`."""
    return quantized_conv(n, n.value(0))


def quantized_conv(n: Node, x: Value) -> Value:
    """`topi.quantized_conv` of x, input 0 with the channels second."""
    weight = n.value(3)
    x_scale, x_zero, w_scale, w_zero, y_scale, y_zero = (scale_of(n, k) for k in (1, 2, 4, 5, 6, 7))
    made: Value = n.emit(topi.quantized_conv, x, x_scale, x_zero, weight, w_scale, w_zero, y_scale, y_zero,
                         n.optional(8), groups=n.attr("group", 1), dtype=n.held(7).dtype,
                         **window_of(n, x.shape, weight.shape[2:]))
    return made
