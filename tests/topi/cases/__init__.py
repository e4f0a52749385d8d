"""Samples of every operator, a family a file; importing this registers them."""
from tests.topi.cases import (
    attention,
    convolution,
    cumulative,
    elementwise,
    indexing,
    normalization,
    pooling,
    products,
    reductions,
    shaping,
)

__all__ = [
    "attention", "convolution", "cumulative", "elementwise", "indexing", "normalization", "pooling", "products",
    "reductions", "shaping",
]
