"""Products of matrices."""
from __future__ import annotations

from typing import Any

from tilewright import topi
from tilewright.frontend.onnx.node import Node, Unsupported
from tilewright.frontend.onnx.registry import CONTRIB, operator
from tilewright.graph.ir.values import Value
from tilewright.tir import dtype as dt


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
    return n.emit(scaled_matmul, a, b, alpha, **sides) if alpha != 1 else n.emit(topi.matmul, a, b, **sides)


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
    return topi.multiply(topi.matmul(a, b, transpose_a=transpose_a, transpose_b=transpose_b), alpha)


@operator("FusedMatMul", domain=CONTRIB)
def fused_matmul(n: Node) -> Value:
    """`topi.matmul`, with matrices transposed and a factor."""
    sides = {"transpose_a": bool(n.attr("transA", 0)), "transpose_b": bool(n.attr("transB", 0))}
    return n.emit(scaled_matmul, n.value(0), n.value(1), n.attr("alpha", 1.0), **sides)


@operator("Einsum")
def einsum(n: Node) -> Value:
    """`topi.einsum`."""
    return n.emit(topi.einsum, n.required("equation").replace(" ", ""), *n.values())
