"""Layers element by element, and normalisation."""
from __future__ import annotations

from typing import Any

import numpy as np

from tilewright import topi
from tilewright.frontend.keras.layer import Layer, layer, operation
from tilewright.graph.ir.values import Value


@layer("Activation")
def _activation(at: Layer, x: Value) -> Any:
    return at.activated(x)


@layer("ReLU")
def _relu(at: Layer, x: Value) -> Any:
    most, slope, threshold = at.max_value, float(at.negative_slope or 0), float(at.threshold or 0)
    if threshold:
        raise at.refuse("a threshold")
    if slope:
        x = at.emit(topi.leaky_relu, x, negative_slope=slope)
        return x if most is None else at.emit(topi.minimum, x, float(most))
    return at.emit(topi.relu, x) if most is None else at.emit(topi.clip, x, 0.0, float(most))


@layer("LeakyReLU")
def _leaky(at: Layer, x: Value) -> Any:
    return at.emit(topi.leaky_relu, x, negative_slope=float(at.negative_slope))


@layer("ELU")
def _elu(at: Layer, x: Value) -> Any:
    return at.emit(topi.elu, x, alpha=float(at.alpha))


@layer("PReLU")
def _prelu(at: Layer, x: Value) -> Any:
    slope = at.weight("alpha")
    return at.emit(topi.add, at.emit(topi.relu, x), at.emit(topi.multiply, slope, at.emit(topi.minimum, x, 0.0)))


@layer("Softmax")
@operation("Softmax")
def _softmax(at: Layer, x: Value) -> Any:
    return at.emit(topi.softmax, x, axis=at.axis)


@layer("Dropout", "SpatialDropout1D", "SpatialDropout2D", "SpatialDropout3D", "GaussianNoise", "GaussianDropout",
       "AlphaDropout", "ActivityRegularization", "Identity", "InputLayer")
def _same(at: Layer, *inputs: Value) -> Any:
    return inputs


@layer("Rescaling")
def _rescaling(at: Layer, x: Value) -> Any:
    scale, offset = (at.number(n) for n in (at.scale, at.offset))
    return at.emit(topi.add, at.emit(topi.multiply, at.computed(x), scale), offset)


@layer("Normalization")
def _normalization(at: Layer, x: Value) -> Any:
    x = at.computed(x)
    mean, deviation = at.number(at.array("mean")), at.number(np.maximum(np.sqrt(at.array("variance")), 1e-7))
    if at.invert:
        return at.emit(topi.add, mean, at.emit(topi.multiply, x, deviation))
    return at.emit(topi.divide, at.emit(topi.subtract, x, mean), deviation)


@layer("BatchNormalization")
def _batch_norm(at: Layer, x: Value) -> Any:
    axis = at.axis if isinstance(at.axis, int) else at.axis[0]
    gamma = at.weight("gamma") if at.scale else None
    beta = at.weight("beta") if at.center else None
    return at.emit(topi.batch_norm, x, at.weight("moving_mean"), at.weight("moving_variance"), gamma, beta,
                  eps=float(at.epsilon), axis=axis % x.ndim)


@layer("LayerNormalization")
def _layer_norm(at: Layer, x: Value) -> Any:
    axes = [at.axis] if isinstance(at.axis, int) else list(at.axis)
    if [a % x.ndim for a in axes] != list(range(x.ndim - len(axes), x.ndim)):
        raise at.refuse(f"the axis {axes}")
    if getattr(at.op, "rms_scaling", False):
        raise at.refuse("rms_scaling")
    gamma = at.weight("gamma") if at.scale else None
    beta = at.weight("beta") if at.center else None
    return at.emit(topi.layer_norm, x, gamma, beta, axes=len(axes), eps=float(at.epsilon))
