"""Tables of layers and of functions of keras.ops: each name has a function that emits calls for a use of it."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tilewright import topi
from tilewright.graph.ir.builder import BlockBuilder
from tilewright.graph.ir.values import Value
from tilewright.support.errors import ImportModelError

Row = Callable[..., Any]
rows: dict[str, Row] = {}
operations: dict[str, Row] = {}


class Layer:
    """A use of a layer: what it is configured with, its weights, and the builder that its calls go to."""

    def __init__(self, op: Any, kind: str, builder: BlockBuilder, weight: Callable[..., Value], arguments: Any) -> None:
        self.op, self.kind, self.builder, self._weight, self.arguments = op, kind, builder, weight, arguments

    def __getattr__(self, name: str) -> Any:
        return getattr(self.op, name)

    def emit(self, rule: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """What a rule makes of values."""
        return self.builder.emit_te(rule, *args, **kwargs)

    def weight(self, name: str, arrange: Callable[[np.ndarray], np.ndarray] = lambda a: a) -> Value:
        """A weight of the layer as a constant."""
        return self._weight(self.op, name, arrange(_array(getattr(self.op, name))))

    def array(self, name: str) -> np.ndarray:
        """A weight of the layer."""
        return _array(getattr(self.op, name))

    def number(self, x: Any) -> float | Value:
        """A number, or an array as a constant, of the dtype that the layer computes in."""
        return float(x) if np.ndim(x) == 0 else self.builder.const(np.asarray(x, self.op.compute_dtype))

    def computed(self, x: Value) -> Value:
        """A value in the dtype that the layer computes in."""
        made: Value = x if x.dtype == self.op.compute_dtype else self.emit(topi.astype, x, self.op.compute_dtype)
        return made

    @property
    def channels_last(self) -> bool:
        return bool(getattr(self.op, "data_format", "channels_last") == "channels_last")

    def activated(self, y: Value) -> Value:
        """The activation of the layer applied."""
        return activate(self, y, getattr(self.op, "activation", None))

    def refuse(self, what: str) -> ImportModelError:
        """An error that says what of the layer is not supported."""
        return ImportModelError(f"from_keras: the layer {self.op.name} ({self.kind}): {what} is not supported")


def _array(weight: Any) -> np.ndarray:
    value = weight.numpy() if hasattr(weight, "numpy") else np.asarray(weight)
    return np.asarray(value)


def layer(*names: str) -> Callable[[Row], Row]:
    """Decorator: the function emits layers of these classes."""
    def keep(f: Row) -> Row:
        rows.update(dict.fromkeys(names, f))
        return f
    return keep


def operation(*names: str) -> Callable[[Row], Row]:
    """Decorator: the function emits what keras.ops has under classes of these names: some are called as layers are, and
    mean something else."""
    def keep(f: Row) -> Row:
        operations.update(dict.fromkeys(names, f))
        return f
    return keep


def row_of(op: Any) -> Row | None:
    """The function that emits what a model uses; None for what is not known, and for classes of others."""
    table = rows if ".layers." in type(op).__module__ else operations
    return table.get(type(op).__name__) if is_of_keras(type(op)) else None


def is_of_keras(x: Any) -> bool:
    """True for a class or a function that Keras defines: programs may use its names for their own."""
    return str(getattr(x, "__module__", "")).partition(".")[0] in ("keras", "tf_keras")


ACTIVATIONS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "relu": (topi.relu, {}), "sigmoid": (topi.sigmoid, {}), "tanh": (topi.tanh, {}),
    "softmax": (topi.softmax, {"axis": -1}), "log_softmax": (topi.log_softmax, {"axis": -1}),
    "elu": (topi.elu, {}), "selu": (topi.selu, {}), "softplus": (topi.softplus, {}), "softsign": (topi.softsign, {}),
    "exponential": (topi.exp, {}), "relu6": (topi.relu6, {}), "gelu": (topi.gelu, {}), "silu": (topi.silu, {}),
    "swish": (topi.silu, {}), "mish": (topi.mish, {}), "hard_sigmoid": (topi.hardsigmoid, {}),
    "hard_swish": (topi.hardswish, {}), "hard_silu": (topi.hardswish, {}),
    "leaky_relu": (topi.leaky_relu, {"negative_slope": 0.2}), "log_sigmoid": (topi.logsigmoid, {}),
}


def activate(layer: Layer, y: Value, function: Any) -> Value:
    """function(y) for an activation of Keras."""
    name = getattr(function, "__name__", str(function))
    if function is None or name == "linear":
        return y
    if name not in ACTIVATIONS or not is_of_keras(function):
        raise layer.refuse(f"the activation {name}")
    rule, attrs = ACTIVATIONS[name]
    made: Value = layer.emit(rule, y, **attrs)
    return made
