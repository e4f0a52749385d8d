"""Graphs: values without types, the operators that made them, and the order in which they can run."""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from tilewright.runtime import Tensor, array
from tilewright.runtime.tensor import as_numpy
from tilewright.support.errors import GraphError, described
from tilewright.support.topological import producers_first


class Value:
    """A tensor of the graph: the result of `op` on `inputs`, or a leaf when op is None.

    A leaf is a placeholder (fed at every run) or a parameter (holds `data`, updated in place by optimizers).
    `+ - * /` with a value or a number and `**` with a number build elementwise operators; `@` is the matrix product.
    """
    __slots__ = ("op", "inputs", "name", "_data")
    __array_ufunc__ = None               # array + value asks the value, which refuses arrays

    def __init__(self, op: Any, inputs: Sequence[Value], name: str, data: Tensor | None = None) -> None:
        self.op, self.inputs, self.name, self._data = op, tuple(inputs), name, data

    @property
    def data(self) -> Tensor | None:
        """What a parameter holds: planned steps know its address, so it stays one tensor; `copyfrom` fills it."""
        return self._data

    @data.setter
    def data(self, value: object) -> None:
        raise GraphError(f"{self!r}: data cannot be replaced", f"fill it: {self.name}.data.copyfrom(array)")

    def __repr__(self) -> str:
        if self.op is None:
            return f"{'parameter' if self.data is not None else 'placeholder'} {self.name}"
        return f"{self.name} = {self.op}({', '.join(v.name for v in self.inputs)})"

    def __bool__(self) -> bool:
        raise GraphError(f"{self!r} has no truth value: it is computed when the graph runs",
                         "run it with an Executor and look at the result")


def placeholder(name: str) -> Value:
    """A value that is fed at every run; its shape and dtype are those of the array fed."""
    return Value(None, (), _checked_name(name))


def parameter(name: str, data: Any) -> Value:
    """A leaf that holds a copy of an array (or the Tensor given); optimizers update it in place."""
    held = data if isinstance(data, Tensor) else array(data)
    values = as_numpy(held)
    if not (values.flags.c_contiguous and values.flags.aligned):
        raise GraphError(f"parameter {name}: the tensor is not compact and row-major",
                         "pass a copy: tilewright.nd.array(x)")
    return Value(None, (), _checked_name(name), held)


def _checked_name(name: object) -> str:
    if not isinstance(name, str):
        raise GraphError(f"the name {described(name)} is not a string",
                         'write graph.placeholder("x") or graph.parameter("w", array)')
    return name


def require_distinct_names(where: str, parameters: Iterable[Value]) -> None:
    """Raise GraphError where two different parameters have one name: what is kept of them goes by their names."""
    named: dict[str, Value] = {}
    for p in parameters:
        if named.setdefault(p.name, p) is not p:
            raise GraphError(f"{where}: two different parameters are named {p.name!r}",
                             "give each a name of its own: a saved training is kept by these names")


def topological(outputs: Iterable[Value]) -> list[Value]:
    """Values in execution order, each once, inputs before results."""
    return producers_first(outputs, lambda v: v.inputs)


