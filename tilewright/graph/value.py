"""Graphs: values, the operators that made them, and the order in which they can run."""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from tilewright.runtime import Tensor, array
from tilewright.support.errors import GraphError, with_hint


@dataclass(frozen=True)
class TensorType:
    """Shape and dtype of a value, known once the feeds are."""
    shape: tuple[int, ...]
    dtype: str = "float32"

    def __str__(self) -> str:
        return f"{self.dtype}[{', '.join(map(str, self.shape))}]"


class Value:
    """A tensor of the graph: the result of `op` on `inputs`, or a leaf when op is None.

    A leaf is a placeholder (fed at every run) or a parameter (holds `data`, updated in place by optimizers).
    `+ - * /` with a value or a number build elementwise operators; `@` is the matrix product.
    """
    __slots__ = ("op", "inputs", "name", "data")

    def __init__(self, op: Any, inputs: Sequence[Value], name: str, data: Tensor | None = None) -> None:
        self.op, self.inputs, self.name, self.data = op, tuple(inputs), name, data

    def __repr__(self) -> str:
        if self.op is None:
            return f"{'parameter' if self.data is not None else 'placeholder'} {self.name}"
        return f"{self.name} = {self.op}({', '.join(v.name for v in self.inputs)})"

    def __bool__(self) -> bool:
        raise GraphError(with_hint(f"{self!r} has no truth value: it is computed when the graph runs",
                                   "run it with an Executor and look at the result"))


def placeholder(name: str) -> Value:
    """A value that is fed at every run; its shape and dtype are those of the array fed."""
    return Value(None, (), name)


def parameter(name: str, data: Any) -> Value:
    """A leaf that holds a copy of an array (or the Tensor given); optimizers update it in place."""
    return Value(None, (), name, data if isinstance(data, Tensor) else array(data))


def topological(outputs: Iterable[Value]) -> list[Value]:
    """Values in execution order, each once, inputs before results. No recursion: graphs are deep."""
    done: dict[Value, None] = {}
    stack = [(v, False) for v in reversed(list(outputs))]
    while stack:
        v, ready = stack.pop()
        if v in done:
            continue
        if ready:
            done[v] = None
        else:
            stack.append((v, True))
            stack.extend((x, False) for x in reversed(v.inputs) if x not in done)
    return list(done)


