"""The kinds of operations: placeholder, compute, extern."""
from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tilewright.support.errors import TensorExpressionError
from tilewright.support.topological import producers_first
from tilewright.te.reduction import Reduce
from tilewright.te.tensor import Operation, Tensor, TensorRead
from tilewright.tir.buffer import Buffer
from tilewright.tir.expr import Expr
from tilewright.tir.iter_var import IterVar
from tilewright.tir.node import Node, walk
from tilewright.tir.stmt import Stmt


class PlaceholderOp(Operation):
    """A tensor that the caller gives."""

    def __init__(self, name: str, shape: tuple[Expr, ...], dtype: str) -> None:
        super().__init__(name)
        self.shape, self.dtype = shape, dtype
        self._outputs = (Tensor(self, shape, dtype),)


class ComputeOp(Operation):
    """Output n at axis is body[n]; every output has one element per point of axis.

    `body` holds plain expressions, or the components of one reduction over reduce_axis. `before_start` is the error
    that a read at the beginning of the first axis is, unless a scan gives the first steps otherwise.
    """
    before_start: TensorExpressionError | None = None

    def __init__(self, name: str, axis: tuple[IterVar, ...], body: tuple[Expr, ...], tag: str = "",
                 attrs: Mapping[str, Any] | None = None) -> None:
        super().__init__(name, tag, attrs)
        self.axis, self.body = axis, body
        first = body[0]
        self.reduce_axis = first.axis if isinstance(first, Reduce) else ()
        shape = tuple(iv.domain.extent for iv in axis)
        self._outputs = tuple(Tensor(self, shape, e.dtype, n) for n, e in enumerate(body))
        self._inputs = tensors_read(body)

    def with_body(self, body: tuple[Expr, ...]) -> ComputeOp:
        """The same computation of another body, which reads other tensors."""
        return ComputeOp(self.name, self.axis, body, self.tag, self.attrs)

    @property
    def input_tensors(self) -> tuple[Tensor, ...]:
        return self._inputs


class ExternOp(Operation):
    """Outputs written by a statement over buffers, usually a call of a packed or C function."""

    def __init__(self, name: str, inputs: tuple[Tensor, ...], input_buffers: tuple[Buffer, ...],
                 output_buffers: tuple[Buffer, ...], body: Stmt, tag: str = "",
                 attrs: Mapping[str, Any] | None = None) -> None:
        super().__init__(name, tag, attrs)
        self.inputs, self.body = inputs, body
        self.input_buffers, self.output_buffers = input_buffers, output_buffers
        self._outputs = tuple(Tensor(self, b.shape, b.dtype, n) for n, b in enumerate(output_buffers))

    @property
    def input_tensors(self) -> tuple[Tensor, ...]:
        return tuple(dict.fromkeys(self.inputs))


def tensors_read(nodes: Iterable[Node]) -> tuple[Tensor, ...]:
    """The tensors that the expressions read, each once, in order of first use."""
    found: dict[Tensor, None] = {}
    seen: set[int] = set()
    for node in nodes:
        if id(node) in seen:
            continue
        seen.add(id(node))
        for inner in walk(node):
            if isinstance(inner, TensorRead):
                found[inner.tensor] = None
    return tuple(found)


def post_order(roots: Iterable[Operation]) -> list[Operation]:
    """Every operation that the roots need, producers first, in the order of first use."""
    return producers_first(roots, lambda op: [t.op for t in op.input_tensors])
