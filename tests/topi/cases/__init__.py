"""Samples of every operator, a family a file; importing this registers them."""
from tests.topi.cases import (
    attention,
    convolution,
    cumulative,
    decoding,
    distances,
    elementwise,
    indexing,
    integers,
    losses,
    normalization,
    patches,
    pooling,
    products,
    quantization,
    random,
    recurrent,
    reductions,
    regions,
    resizing,
    selections,
    shaping,
    signals,
    sorting,
    sparse,
    special,
)

__all__ = [
    "attention", "convolution", "cumulative", "decoding", "distances", "elementwise", "indexing", "integers",
    "losses", "normalization", "patches", "pooling", "products", "quantization", "random", "recurrent", "reductions",
    "regions", "resizing", "selections", "shaping", "signals", "sorting", "sparse", "special",
]
