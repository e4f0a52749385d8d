"""Operators of integers of 8 bits that stand for floats, as ONNX Runtime quantizes models."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright import te, topi
from tilewright.frontend.onnx.node import Node, Unsupported
from tilewright.frontend.onnx.operators.convolution import window_of
from tilewright.frontend.onnx.operators.normalization import lengths_of_mask
from tilewright.frontend.onnx.operators.pooling import channels_last, channels_second, kernel_of, rounds_up
from tilewright.frontend.onnx.operators.quantization import quantized_conv, scale_of
from tilewright.frontend.onnx.registry import CONTRIB, operator
from tilewright.graph.ir.values import Value


def one(n: Node, k: int, default: Any = None) -> Any:
    """Input k, a scale or zero point of a whole tensor; the default where it is left out."""
    if not n.has(k) and default is not None:
        return default
    if n.shape(k) not in ((), (1,)):
        raise Unsupported(f"input {k} has the shape {n.shape(k)}, one number is needed")
    return scale_of(n, k)


def floats(n: Node, k: int) -> Value:
    """The numbers that input k stands for, by the scale and the zero point behind it."""
    made: Value = n.emit(topi.dequantize, n.value(k), one(n, k + 1), one(n, k + 2, 0))
    return made


def integers(n: Node, y: Value, k: int, dtype: str) -> Value:
    """What stands for y, by the scale and the zero point of inputs k and k + 1."""
    made: Value = n.emit(topi.quantize, y, one(n, k), one(n, k + 1, 0), dtype=dtype)
    return made


# element by element


@operator("QLinearAdd", "QLinearMul", domain=CONTRIB, inputs=8)
def quantized_binary(n: Node) -> Value:
    """`topi.add` or `topi.multiply` of what integers stand for."""
    rule = topi.add if n.op == "QLinearAdd" else topi.multiply
    return integers(n, n.emit(rule, floats(n, 0), floats(n, 3)), 6, n.held(0).dtype)


@operator("QLinearSigmoid", domain=CONTRIB, inputs=5)
def quantized_sigmoid(n: Node) -> Value:
    """`topi.sigmoid` of what integers stand for."""
    return integers(n, n.emit(topi.sigmoid, floats(n, 0)), 3, n.held(0).dtype)


@operator("QLinearLeakyRelu", domain=CONTRIB, attributes=("alpha",), inputs=5)
def quantized_leaky_relu(n: Node) -> Value:
    """`topi.leaky_relu` of what integers stand for."""
    y = n.emit(topi.leaky_relu, floats(n, 0), negative_slope=n.attr("alpha", 0.01))
    return integers(n, y, 3, n.held(0).dtype)


@operator("QLinearSoftmax", domain=CONTRIB, attributes=("axis", "opset"), inputs=5)
def quantized_softmax(n: Node) -> Value:
    """`topi.softmax` of what integers stand for; below version 13 of all dimensions from the axis on."""
    x, axis = floats(n, 0), n.axis(-1)
    if n.required("opset") >= 13 or axis == x.ndim - 1:
        return integers(n, n.emit(topi.softmax, x, axis=axis), 3, n.held(0).dtype)
    y = n.emit(topi.softmax, n.emit(topi.flatten, x, start=axis, end=-1), axis=-1)
    return integers(n, n.emit(topi.reshape, y, x.shape), 3, n.held(0).dtype)


@operator("QLinearWhere", domain=CONTRIB, inputs=9)
def quantized_where(n: Node) -> Value:
    """`topi.where` of what integers stand for."""
    return integers(n, n.emit(topi.where, n.value(0), floats(n, 1), floats(n, 4)), 7, n.held(1).dtype)


@operator("QLinearConcat", domain=CONTRIB, attributes=("axis",))
def quantized_concat(n: Node) -> Value:
    """`topi.concatenate` of what integers stand for."""
    if len(n) < 5 or len(n) % 3 != 2:
        raise Unsupported(f"it has {len(n)} inputs, 2 and 3 for each tensor are needed")
    parts = [floats(n, k) for k in range(2, len(n), 3)]
    return integers(n, n.emit(topi.concatenate, parts, axis=n.axis(k=2)), 0, n.held(1).dtype)


# embeddings


def _rows(n: Node, k: int, scale: int, ids: Value | None) -> Value:
    """Rows of a table of integers, as the numbers that they stand for; all of it without ids."""
    x = n.value(k) if ids is None else n.emit(topi.take, n.value(k), ids, axis=0)
    made: Value = n.emit(topi.dequantize, x, one(n, scale), one(n, scale + 5))
    return made


@operator("QEmbedLayerNormalization", domain=CONTRIB, attributes=("epsilon",), inputs=18)
def quantized_embed_layer_norm(n: Node) -> Any:
    """As EmbedLayerNormalization, of tables of integers."""
    ids = n.value(0)
    places = n.emit(topi.arange, ids.shape[1])
    total = n.emit(topi.add, _rows(n, 2, 8, ids), _rows(n, 3, 9, places))
    if n.has(1):
        total = n.emit(topi.add, total, _rows(n, 4, 10, n.value(1)))
    y = n.emit(topi.layer_norm, total, _rows(n, 5, 11, None), _rows(n, 6, 12, None), eps=n.attr("epsilon", 1e-12))
    return y, lengths_of_mask(n, 7)


# means


def _pooled(n: Node, x: Value, rule: Callable[[Value], Value]) -> Value:
    """A rule of what has the channels second, of x that may have them last."""
    if not n.flag("channels_last"):
        return rule(x)
    return channels_last(n, rule(channels_second(n, x)))


@operator("QLinearGlobalAveragePool", domain=CONTRIB, attributes=("channels_last",), inputs=5)
def quantized_global_average_pool(n: Node) -> Value:
    """`topi.global_avg_pool` of what integers stand for."""
    y = _pooled(n, floats(n, 0), lambda x: n.emit(topi.global_avg_pool, x))
    return integers(n, y, 3, n.held(0).dtype)


@operator("QLinearAveragePool", domain=CONTRIB, inputs=5, attributes=(
    "auto_pad", "ceil_mode", "channels_last", "count_include_pad", "kernel_shape", "pads", "strides"))
def quantized_average_pool(n: Node) -> Value:
    """`topi.avg_pool` of what integers stand for."""
    kernel = kernel_of(n)
    if rounds_up(n) and n.attr("count_include_pad", 0):
        raise Unsupported("the attributes ceil_mode and count_include_pad together")

    def pooled(x: Value) -> Value:
        made: Value = n.emit(topi.avg_pool, x, kernel, ceil_mode=rounds_up(n), count_include_pad=bool(
            n.attr("count_include_pad", 0)), **window_of(n, x.shape, kernel))
        return made
    return integers(n, _pooled(n, floats(n, 0), pooled), 3, n.held(0).dtype)


@operator("QLinearReduceMean", domain=CONTRIB, attributes=("axes", "keepdims"), inputs=5)
def quantized_mean(n: Node) -> Value:
    """`topi.mean` of what integers stand for."""
    y = n.emit(topi.mean, floats(n, 0), axis=tuple(n.attr("axes") or range(n.rank())),
               keepdims=bool(n.attr("keepdims", 1)))
    return integers(n, y, 3, n.held(0).dtype)


# products


def scaled_sums(y: Any, left: Any, right: Any, bias: Any, dtype: str) -> Any:
    """y * left * right + bias, in a type of floats."""
    factor = topi.multiply(left, right) if te.Tensor in map(type, (left, right)) else left * right
    made = topi.multiply(topi.astype(y, "float32"), factor)
    return topi.astype(made if bias is None else topi.add(made, bias), dtype)


def float_product(n: Node, left: tuple[int, int, int], right: tuple[int, int, int], bias: int) -> Value:
    """The product of matrices of integers; left and right: the inputs that are a matrix, its scale, its zero point."""
    zero = one(n, left[2], 0), scale_of(n, right[2]) if n.has(right[2]) else 0
    y = n.emit(topi.matmul_integer, n.value(left[0]), n.value(right[0]), *zero)
    return n.emit(scaled_sums, y, one(n, left[1]), scale_of(n, right[1]), n.optional(bias), n.held(right[1]).dtype)


@operator("MatMulIntegerToFloat", domain=CONTRIB, inputs=7)
def matmul_integer_to_float(n: Node) -> Value:
    """`topi.matmul_integer`, times the scales, + a bias."""
    return float_product(n, (0, 2, 4), (1, 3, 5), 6)


@operator("DynamicQuantizeMatMul", domain=CONTRIB, inputs=5)
def dynamic_quantize_matmul(n: Node) -> Value:
    """`topi.matmul_integer` of `topi.dynamic_quantize`, times the scales, + a bias."""
    a, scale, zero = n.emit(topi.dynamic_quantize, n.value(0))
    y = n.emit(topi.matmul_integer, a, n.value(1), zero, scale_of(n, 3) if n.has(3) else 0)
    return n.emit(scaled_sums, y, scale, scale_of(n, 2), n.optional(4), "float32")


@operator("QGemm", domain=CONTRIB, attributes=("alpha", "transA", "transB"), inputs=9)
def quantized_gemm(n: Node) -> Value:
    """`topi.matmul_integer` + C, times the scales; with a scale of the result integers that stand for it."""
    a, b = (n.emit(topi.transpose, n.value(k), (1, 0)) if n.attr(name, 0) else n.value(k)
            for k, name in ((0, "transA"), (3, "transB")))
    y = n.emit(topi.matmul_integer, a, b, one(n, 2, 0), scale_of(n, 5) if n.has(5) else 0)
    if n.has(6):
        y = n.emit(topi.add, y, n.value(6))
    right = scale_of(n, 4)
    y = n.emit(scaled_sums, y, one(n, 1), right, None, "float32")
    if n.attr("alpha", 1.0) != 1:
        y = n.emit(topi.multiply, y, n.attr("alpha"))
    if not n.has(7):
        return y
    return integers(n, y, 7, n.held(8).dtype if n.has(8) else n.held(0).dtype)


@operator("QLinearConv", domain=CONTRIB, inputs=9, attributes=(
    "auto_pad", "channels_last", "dilations", "group", "kernel_shape", "pads", "strides"))
def quantized_conv_any_layout(n: Node) -> Value:
    """`topi.quantized_conv`, with the channels second or last."""
    return _pooled(n, n.value(0), lambda x: quantized_conv(n, x))
