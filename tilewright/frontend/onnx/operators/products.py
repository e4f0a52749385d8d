"""Products of matrices."""
from __future__ import annotations

from typing import Any

from tilewright import topi
from tilewright.frontend.onnx.node import Node, Unsupported
from tilewright.frontend.onnx.operators.activations import activated
from tilewright.frontend.onnx.registry import CONTRIB, operator
from tilewright.graph.ir.values import Value
from tilewright.tir import dtype as dt
from tilewright.topi.types import accumulator


@operator("MatMul")
def matmul(n: Node) -> Value:
    """`topi.matmul`."""
    return n.emit(topi.matmul, n.value(0), n.value(1))


@operator("Gemm")
def gemm(n: Node) -> Value:
    """`topi.addmm`; without C `topi.matmul`."""
    a, b, c = n.value(0), n.value(1), n.optional(2)
    alpha, beta = (factor(n, a.dtype, name) for name in ("alpha", "beta"))
    sides = {"transpose_a": bool(n.attr("transA", 0)), "transpose_b": bool(n.attr("transB", 0))}
    if c is not None and beta != 0:
        return n.emit(topi.addmm, c, a, b, alpha=alpha, beta=beta, **sides)
    return n.emit(scaled_matmul, a, b, alpha, **sides)


def factor(n: Node, dtype: str, name: str) -> Any:
    """An attribute by which a product of a type is multiplied."""
    value = n.attr(name, 1.0)
    if dt.is_float(dtype):
        return value
    if value != int(value):
        raise Unsupported(f"the attribute {name} is {value}, of a product of {dtype}")
    return int(value)


def scaled_matmul(a: Any, b: Any, alpha: float, transpose_a: bool = False, transpose_b: bool = False) -> Any:
    """alpha times the product of a and b."""
    if alpha == 1:
        return topi.matmul(a, b, transpose_a=transpose_a, transpose_b=transpose_b)
    y = topi.matmul(a, b, transpose_a=transpose_a, transpose_b=transpose_b, out_dtype=accumulator(a.dtype))
    return topi.astype(topi.multiply(y, alpha), a.dtype)


@operator("TransposeMatMul", domain=CONTRIB, inputs=2, attributes=("alpha", "transA", "transB"))
@operator("FusedMatMul", domain=CONTRIB, inputs=2, attributes=(
    "alpha", "transA", "transB", "transBatchA", "transBatchB"))
def fused_matmul(n: Node) -> Value:
    """`topi.matmul`, with matrices and batches transposed and a factor."""
    sides = {"transpose_a": bool(n.attr("transA", 0)), "transpose_b": bool(n.attr("transB", 0))}
    a, b = (_batch_first(n, k, name) for k, name in enumerate(("transBatchA", "transBatchB")))
    return n.emit(scaled_matmul, a, b, n.attr("alpha", 1.0), **sides)


def _batch_first(n: Node, k: int, name: str) -> Value:
    """Input k; with the attribute its first dimension, of rows, lies behind those of the batch."""
    x = n.value(k)
    if not n.attr(name, 0):
        return x
    if x.ndim < 3:
        raise Unsupported(f"the attribute {name}, and input {k} has {x.ndim} dimensions")
    return n.emit(topi.moveaxis, x, source=0, destination=-2)


@operator("FusedGemm", domain=CONTRIB, inputs=3, attributes=(
    "activation", "activation_alpha", "activation_beta", "activation_gamma", "alpha", "beta", "transA", "transB"))
def fused_gemm(n: Node) -> Value:
    """As Gemm, and an activation."""
    given = {name: n.attr(f"activation_{name}") for name in ("alpha", "beta", "gamma")
             if f"activation_{name}" in n.attributes}
    y = gemm(n)
    return activated(n, y, n.attr("activation"), given) if n.attr("activation") else y


@operator("Einsum")
def einsum(n: Node) -> Value:
    """`topi.einsum`."""
    return n.emit(topi.einsum, n.required("equation").replace(" ", ""), *n.values())
