"""An operator is one class: attributes, type inference, compute rule and gradient in one place."""
from __future__ import annotations

from tilewright import te
from tilewright.graph.ir.types import TensorType
from tilewright.graph.value import Value
from tilewright.support.errors import GraphError, described


class Operator:
    """Subclass as a frozen dataclass whose fields are the attributes.

    `compute` gives the result as a tensor expression; `infer` refuses inputs, by their types, and gives that of the
    result (None: it is what `compute` gives); `grad(y, dy)` gives dL/dx for each input x of y, as values of the graph
    (None: no gradient). What shares a kernel with the operator, and what its result is written over, follows from
    `compute`.
    """

    def infer(self, *inputs: TensorType) -> TensorType | None:
        return None

    def compute(self, *inputs: te.Tensor) -> te.Tensor:
        raise NotImplementedError

    def grad(self, y: Value, dy: Value) -> tuple[Value | None, ...]:
        raise GraphError(f"{type(self).__name__} has no gradient", "it cannot stand between the loss and a parameter")

    def __call__(self, *inputs: Value) -> Value:
        for k, v in enumerate(inputs):
            if not isinstance(v, Value):
                raise GraphError(f"{self}: input {k} is {described(v)}, not a graph value",
                                 "wrap an array with graph.parameter(name, array), or feed a placeholder")
        return Value(self, inputs, type(self).__name__.lower())

    def require(self, condition: bool, message: str, *inputs: TensorType, hint: str = "") -> None:
        """Raise GraphError naming the operator and its inputs unless condition holds."""
        if not condition:
            types = ", ".join(map(str, inputs))
            raise GraphError(f"{self}: {message}" + (f"; the inputs are {types}" if inputs else ""), hint)

    def same_float(self, *inputs: TensorType) -> str:
        """The common dtype of the inputs, which must be one floating-point type."""
        dtypes = {t.dtype for t in inputs}
        self.require(len(dtypes) == 1, f"dtypes differ: {', '.join(sorted(dtypes))}", *inputs,
                     hint="insert graph.cast(x, dtype)")
        self.require("float" in inputs[0].dtype, f"dtype is {inputs[0].dtype}, not a float", *inputs,
                     hint='feed float32, or insert graph.cast(x, "float32")')
        return inputs[0].dtype
