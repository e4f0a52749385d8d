"""Gives buffers the strides that storage_align asked for."""
from __future__ import annotations

from collections.abc import Mapping, Sequence

from tilewright.arith.analyzer import Analyzer
from tilewright.lowering.copying import Copier
from tilewright.support.errors import LowerError
from tilewright.tir.arithmetic import binary
from tilewright.tir.buffer import DIM_ALIGN, Buffer
from tilewright.tir.expr import Expr, IntImm
from tilewright.tir.node import statements, walk
from tilewright.tir.stmt import Allocate, Block, PrimFunc, Stmt


def alignments(func: PrimFunc) -> dict[Buffer, list[list[int]]]:
    """[axis, factor, offset] for each dimension of a buffer that the blocks of func want aligned.

    Axes count from the last, -1: passes that give a buffer another version put a dimension in front. A position counts
    what the block writes, then what it allocates: plan_buffer_allocation takes that out of the writes.
    """
    out: dict[Buffer, dict[int, list[int]]] = {}
    for block in (n for n in walk(func.body) if isinstance(n, Block) and DIM_ALIGN in n.annotations):
        for position, axis, factor, offset in block.annotations[DIM_ALIGN]:
            buffer = (*(r.buffer for r in block.writes), *block.alloc_buffers)[position]
            place = axis - buffer.ndim
            out.setdefault(buffer, {})[place] = [place, factor, offset]
    return {buffer: list(rows.values()) for buffer, rows in out.items()}


def align_strides(func: PrimFunc) -> PrimFunc:
    """Each allocation that is to be aligned has strides: that of an aligned axis is the least s that holds the
    dimensions inside it with s % factor == offset.

    Raises LowerError where the address of such an allocation is passed on: it has strides since lower_match_buffer.
    """
    if not any(isinstance(s, Allocate) and DIM_ALIGN in s.annotations for s in statements(func.body)):
        return func
    return func.with_body(_Alignment()(func.body))


class _Alignment(Copier):
    def allocate(self, s: Allocate) -> Stmt:
        rows = s.annotations.get(DIM_ALIGN)
        if rows is None:
            return super().allocate(s)
        if s.buffer.strides:
            raise LowerError(
                f"{s.buffer.name} is aligned by storage_align, and its strides are fixed by a view that names them or "
                "an address that is passed on", "align a copy that only loads and stores use")
        buffer = s.buffer.replace(strides=aligned_strides(s.buffer.shape, {r[0]: (r[1], r[2]) for r in rows}))
        self.buffers[s.buffer] = buffer
        rest = {k: v for k, v in s.annotations.items() if k != DIM_ALIGN}
        return Allocate(buffer, self(s.body), rest)


def aligned_strides(shape: Sequence[Expr], rows: Mapping[int, tuple[int, int]]) -> tuple[Expr, ...]:
    """The strides of a row-major buffer of this shape; rows: axis, counted from the last -> (factor, offset)."""
    analyzer = Analyzer()
    strides: list[Expr] = []
    stride: Expr = IntImm(1, shape[-1].dtype) if shape else IntImm(1)
    for axis in range(-1, -len(shape) - 1, -1):
        if axis in rows:
            factor, offset = rows[axis]
            short = binary("floormod", binary("sub", offset, stride), factor)
            stride = analyzer.simplify(binary("add", stride, short))
        strides.append(stride)
        stride = analyzer.simplify(binary("mul", stride, shape[axis]))
    return tuple(reversed(strides))
