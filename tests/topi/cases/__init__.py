"""Samples of every operator, a family a file; importing this registers them."""
from tests.topi.cases import (
    attention,
    convolution,
    elementwise,
    indexing,
    normalization,
    pooling,
    products,
    reductions,
    shaping,
)

__all__ = [
    "attention", "convolution", "elementwise", "indexing", "normalization", "pooling", "products", "reductions",
    "shaping",
]
