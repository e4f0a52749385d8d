"""Tensors that loops write: what operators share whose results are no expression of an index."""
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tilewright.te.constant import ConstantOp
from tilewright.te.definition import compute, extern
from tilewright.te.tensor import Tensor
from tilewright.tir.buffer import Buffer
from tilewright.tir.expr import Expr
from tilewright.tir.ir_builder import BufferVar, IRBuilder
from tilewright.topi.shapes import Shape

Result = tuple[Shape, str]                    # the shape and the type of what is written


def written(name: str, results: Sequence[Result], inputs: Sequence[Tensor],
            write: Callable[[IRBuilder, list[BufferVar], list[BufferVar]], None]) -> tuple[Tensor, ...]:
    """The tensors that the statements of write(builder, inputs, results) store to."""
    def body(ins: Sequence[Buffer], outs: Sequence[Buffer]) -> Any:
        builder = IRBuilder()
        write(builder, [builder.buffer_ptr(b) for b in ins], [builder.buffer_ptr(b) for b in outs])
        return builder.get()
    in_memory = [compute(x.shape, lambda *i, x=x: x(*i), name=f"{name}_copy") if isinstance(x.op, ConstantOp) else x
                 for x in inputs]
    out = extern([shape for shape, _ in results], in_memory, body, name=name, dtype=[kind for _, kind in results])
    return out if isinstance(out, tuple) else (out,)


@contextmanager
def each(builder: IRBuilder, shape: Sequence[Any], name: str = "i") -> Iterator[tuple[Expr, ...]]:
    """The indices of a shape, row by row: a loop for each extent."""
    if not shape:
        yield ()
        return
    with builder.for_range(0, shape[0], name=f"{name}{len(shape)}") as first, each(builder, shape[1:], name) as rest:
        yield (first, *rest)


def variable(builder: IRBuilder, value: Any, dtype: str, name: str) -> BufferVar:
    """A number in memory for the rest of the scope: `v[0]` reads it, `v[0] = e` changes it."""
    out = builder.allocate(dtype, 1, name, scope="local")
    out[0] = value
    return out
