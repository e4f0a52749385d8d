"""The rows of the table of operators, a file for each family."""
from tilewright.frontend.onnx import evaluated
from tilewright.frontend.onnx.operators import (
    activations,
    attention,
    control,
    convolution,
    counted,
    creation,
    elementwise,
    images,
    indexing,
    losses,
    normalization,
    pooling,
    products,
    quantization,
    random,
    recurrent,
    reductions,
    sequences,
    shaping,
    signals,
    sorting,
)

__all__ = ["activations", "attention", "control", "convolution", "counted", "creation", "elementwise", "evaluated",
           "images", "indexing", "losses", "normalization", "pooling", "products", "quantization", "random",
           "recurrent", "reductions", "sequences", "shaping", "signals", "sorting"]
