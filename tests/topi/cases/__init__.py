"""Samples of every operator, a family a file; importing this registers them."""
from tests.topi.cases import (
    attention,
    convolution,
    cumulative,
    elementwise,
    indexing,
    losses,
    normalization,
    pooling,
    products,
    quantization,
    random,
    reductions,
    resizing,
    shaping,
    sorting,
)

__all__ = [
    "attention", "convolution", "cumulative", "elementwise", "indexing", "losses", "normalization", "pooling",
    "products", "quantization", "random", "reductions", "resizing", "shaping", "sorting",
]
