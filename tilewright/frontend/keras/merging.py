"""Layers of several inputs, and products with weights."""
from __future__ import annotations

from typing import Any

import numpy as np

from tilewright import topi
from tilewright.frontend.keras.layer import Layer, layer, operation
from tilewright.graph.ir.values import Value

_FOLDS = {"Add": topi.add, "Subtract": topi.subtract, "Multiply": topi.multiply, "Maximum": topi.maximum,
          "Minimum": topi.minimum, "Average": topi.add, "Divide": topi.divide, "TrueDivide": topi.divide,
          "Matmul": topi.matmul}


@layer("Add", "Subtract", "Multiply", "Maximum", "Minimum", "Average")
@operation(*(name for name in _FOLDS if name != "Average"))
def _folded(at: Layer, *inputs: Value) -> Any:
    """The layers, and the functions of keras.ops of these names, of which one operand may be a number."""
    operands: list[Any] = list(inputs)
    args = [a for a in getattr(at.arguments, "args", ()) if not isinstance(a, (list, tuple))]
    if len(inputs) == 1 and len(args) == 2:
        number = next(a for a in args if not hasattr(a, "shape") or not hasattr(a, "record_history"))
        other = float(number) if np.ndim(number) == 0 else at.builder.const(np.asarray(number, inputs[0].dtype))
        operands = [other, inputs[0]] if args[0] is number else [inputs[0], other]
    y = operands[0]
    for x in operands[1:]:
        y = at.emit(_FOLDS[at.kind], y, x)
    return at.emit(topi.multiply, y, 1.0 / len(operands)) if at.kind == "Average" else y


@layer("Concatenate")
@operation("Concatenate")
def _concatenate(at: Layer, *inputs: Value) -> Any:
    return at.emit(topi.concatenate, list(inputs), axis=at.axis)


@layer("Dot")
def _dot(at: Layer, x: Value, y: Value) -> Any:
    axes = [at.axes] * 2 if isinstance(at.axes, int) else list(at.axes)
    if x.ndim != y.ndim or x.ndim not in (2, 3) or at.normalize:
        raise at.refuse("of tensors that are no vectors or matrices, or normalised,")
    if x.ndim == 2:
        return at.emit(topi.sum, at.emit(topi.multiply, x, y), axis=1, keepdims=True)
    return at.emit(topi.matmul, x, y, transpose_a=axes[0] % 3 == 1, transpose_b=axes[1] % 3 == 2)


@layer("Dense")
def _dense(at: Layer, x: Value) -> Any:
    y = at.emit(topi.matmul, x, at.weight("kernel"))
    return at.activated(at.emit(topi.add, y, at.weight("bias")) if at.use_bias else y)


@layer("Embedding")
def _embedding(at: Layer, x: Value) -> Any:
    return at.emit(topi.embedding, x if x.dtype.startswith("int") else at.emit(topi.astype, x, "int32"),
                  at.weight("embeddings"))
