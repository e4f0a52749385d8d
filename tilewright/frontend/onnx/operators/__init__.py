"""The rows of the table of operators, a file for each family."""
from tilewright.frontend.onnx import evaluated
from tilewright.frontend.onnx.operators import (
    activations,
    attention,
    block_weights,
    control,
    convolution,
    counted,
    creation,
    elementwise,
    fused_attention,
    images,
    indexing,
    losses,
    normalization,
    pooling,
    products,
    quantization,
    quantized,
    random,
    recurrent,
    reductions,
    sequences,
    shaping,
    signals,
    sorting,
)

__all__ = ["activations", "attention", "block_weights", "control", "convolution", "counted", "creation", "elementwise",
           "evaluated", "fused_attention", "images", "indexing", "losses", "normalization", "pooling", "products",
           "quantization", "quantized", "random", "recurrent", "reductions", "sequences", "shaping", "signals",
           "sorting"]
