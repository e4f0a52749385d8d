"""Functions of each element, alone and in chains."""
from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

from kernel_cases.drawing import Draw
from kernel_cases.rows import Operator, Row, Shape, f32


@dataclass(frozen=True)
class Formula:
    """y = f(m, ...) of elements, where m has the engine's exp, tanh, erf, sigmoid and above (the larger of two).

    operations: of an element; torch, onnx: the one operator that such an engine has for it, its name first.
    """
    f: Callable[..., Any]
    operations: int
    torch: Callable[..., Any] | None = None
    onnx: tuple[str, dict[str, Any]] | None = None
    numpy_is_peer: bool = True


FORMULAS = {
    "add": Formula(lambda m, x, y: x + y, 1),
    "relu": Formula(lambda m, x: m.above(x, 0.0), 1),
    "exp": Formula(lambda m, x: m.exp(x), 1),
    "tanh": Formula(lambda m, x: m.tanh(x), 1),
    "sigmoid": Formula(lambda m, x: m.sigmoid(x), 3),
    "silu": Formula(lambda m, x: x * m.sigmoid(x), 4, lambda f, x: f.silu(x)),
    "gelu_erf": Formula(lambda m, x: x * 0.5 * (m.erf(x * math.sqrt(0.5)) + 1.0), 5, lambda f, x: f.gelu(x),
                        ("Gelu", {}), numpy_is_peer=False),
    "gelu_tanh": Formula(lambda m, x: x * 0.5 * (m.tanh((x + x * x * x * 0.044715) * math.sqrt(2 / math.pi)) + 1.0), 9,
                         lambda f, x: f.gelu(x, approximate="tanh"), ("Gelu", {"approximate": "tanh"})),
    "chain": Formula(lambda m, x, y: m.above(m.tanh(x * y + y) - x, 0.0), 5),
    "swiglu": Formula(lambda m, x, y: x * m.sigmoid(x) * y, 5),
}


def namespace(exp: Any, tanh: Any, erf: Any, sigmoid: Any, above: Any) -> SimpleNamespace:
    return SimpleNamespace(exp=exp, tanh=tanh, erf=erf, sigmoid=sigmoid, above=above)


NUMPY = namespace(np.exp, np.tanh, np.vectorize(math.erf, otypes=[float]), lambda x: 1.0 / (1.0 + np.exp(-x)),
                  np.maximum)


class Value:
    """A tensor of an ONNX graph with the arithmetic of arrays."""

    def __init__(self, node: Any, name: str) -> None:
        self.node, self.name = node, name

    def make(self, *others: Value | float, kind: str) -> Value:
        names = [o.name if isinstance(o, Value) else self.node.constant(o, "float32") for o in others]
        return Value(self.node, self.node(kind, self.name, *names))

    def __add__(self, other: Any) -> Value:
        return self.make(other, kind="Add")

    def __sub__(self, other: Any) -> Value:
        return self.make(other, kind="Sub")

    def __mul__(self, other: Any) -> Value:
        return self.make(other, kind="Mul")


ONNX = namespace(*(functools.partial(Value.make, kind=kind) for kind in ("Exp", "Tanh", "Erf", "Sigmoid", "Max")))


@dataclass(frozen=True)
class Elementwise(Operator):
    """A formula of the table above, on operands of one shape."""
    kind: str

    @property
    def formula(self) -> Formula:
        return FORMULAS[self.kind]

    @property
    def numpy_is_peer(self) -> bool:                                 # type: ignore[override]
        return self.formula.numpy_is_peer

    def te(self, topi: Any, *operands: Any) -> Any:
        from tilewright import te
        m = namespace(te.exp, te.tanh, te.erf, te.sigmoid, te.maximum)
        return te.compute(operands[0].shape, lambda *i: self.formula.f(m, *(x(*i) for x in operands)), name=self.kind)

    def numpy(self, *operands: Any) -> Any:
        return self.formula.f(NUMPY, *operands)

    def torch(self, torch: Any, *operands: Any) -> Any:
        if self.formula.torch:
            return self.formula.torch(torch.nn.functional, *operands)
        m = namespace(torch.exp, torch.tanh, torch.erf, torch.sigmoid, torch.clamp_min)
        return self.formula.f(m, *operands)

    def jax(self, jax: Any, *operands: Any) -> Any:
        m = namespace(jax.numpy.exp, jax.numpy.tanh, jax.scipy.special.erf, jax.nn.sigmoid, jax.numpy.maximum)
        return self.formula.f(m, *operands)

    def onnx(self, node: Any, *operands: str) -> Any:
        if self.formula.onnx:
            kind, attributes = self.formula.onnx
            return node(kind, *operands, **attributes)
        return self.formula.f(ONNX, *(Value(node, x) for x in operands)).name

    def operations(self, *shapes: Shape) -> float:
        return float(self.formula.operations * math.prod(shapes[0]))

    def leading(self, *shapes: Shape) -> list[tuple[int, int]]:
        return [(n, 0) for n in range(len(shapes))]

    def text(self, *shapes: Shape) -> str:
        return f"{self.kind} {'x'.join(map(str, shapes[0]))}"


@dataclass(frozen=True)
class AddBias(Operator):
    """x + bias along the last axis, or along the channels of images; then relu where it is wanted."""
    channels: bool = False
    relu: bool = False

    def _added(self, x: Any, bias: Any, maximum: Any) -> Any:
        y = x + (bias[:, None, None] if self.channels else bias)
        return maximum(y, 0.0) if self.relu else y

    def te(self, topi: Any, x: Any, bias: Any) -> Any:
        b = topi.reshape(bias, (-1, 1, 1)) if self.channels else bias
        y = topi.add(x, b)
        return topi.relu(y) if self.relu else y

    def numpy(self, x: Any, bias: Any) -> Any:
        return self._added(x, bias, np.maximum)

    def torch(self, torch: Any, x: Any, bias: Any) -> Any:
        return self._added(x, bias, torch.clamp_min)

    def jax(self, jax: Any, x: Any, bias: Any) -> Any:
        return self._added(x, bias, jax.numpy.maximum)

    def onnx(self, node: Any, x: str, bias: str) -> Any:
        y = node("Add", x, node("Unsqueeze", bias, node.constant([1, 2], "int64")) if self.channels else bias)
        return node("Relu", y) if self.relu else y

    def operations(self, *shapes: Shape) -> float:
        return (1.0 + self.relu) * math.prod(shapes[0])


def elements(kind: str, *shape: int) -> Row:
    operands = FORMULAS[kind].f.__code__.co_argcount - 1
    return Row(Elementwise(kind), (f32(*shape),) * operands)


ROWS = [
    *(elements(kind, 1_000_000) for kind in FORMULAS),
    elements("gelu_erf", 128, 3072), elements("gelu_tanh", 256, 3072), elements("swiglu", 128, 2048),
    elements("relu", 1, 64, 112, 112), elements("add", 1, 256, 56, 56), elements("silu", 1, 240, 14, 14),
    elements("add", 1000), Row(AddBias(), (f32(1000, 256), f32(256))),
    Row(AddBias(relu=True), (f32(128, 3072), f32(3072))),
    Row(AddBias(channels=True, relu=True), (f32(1, 64, 56, 56), f32(64))),
]


def draw(random: Draw) -> Row:
    shape = [random.extent(3, 2000) for _ in range(random.choice([1, 2, 3]))]
    while math.prod(shape) > 4e6:
        shape.remove(max(shape))
    return elements(random.choice(list(FORMULAS)), *shape)
