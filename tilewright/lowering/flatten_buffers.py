"""Makes every buffer one-dimensional."""
from __future__ import annotations

from collections.abc import Sequence

from tilewright.lowering.copying import Copier
from tilewright.tir import dtype as dt
from tilewright.tir.arithmetic import binary
from tilewright.tir.buffer import Buffer, reach
from tilewright.tir.conversion import cast
from tilewright.tir.expr import Expr, IntImm, Ramp
from tilewright.tir.places import is_index
from tilewright.tir.stmt import Allocate, PrimFunc, Stmt


def flatten_buffers(func: PrimFunc) -> PrimFunc:
    """Every access has one index, the distance from the pointer in elements (strides and offset applied).

    The flat buffer of an argument is a new buffer with the pointer of the one in buffer_map, which stays as
    it is.
    """
    return func.with_body(_Flattening()(func.body))


class _Flattening(Copier):
    def flat(self, buffer: Buffer) -> Buffer:
        known = self.buffers.get(buffer)
        if known is None:
            known = Buffer(buffer.name, (reach(buffer),), buffer.dtype, (), None, buffer.scope,
                           buffer.data_alignment, buffer.offset_factor, buffer.data)
            self.buffers[buffer] = known
        return known

    def access(self, buffer: Buffer, indices: Sequence[Expr]) -> tuple[Buffer, tuple[Expr, ...]]:
        return self.flat(buffer), (distance(buffer, [self(i) for i in indices]),)

    def allocate(self, s: Allocate) -> Stmt:
        return Allocate(self.flat(s.buffer), self(s.body), s.annotations)


def distance(buffer: Buffer, indices: Sequence[Expr]) -> Expr:
    """The one index for several; 64 bits wide where one is no arithmetic on variables: sums with it must not wrap."""
    if (len(indices) > 1 or buffer.strides or buffer.elem_offset is not None) and not all(map(is_index, indices)):
        indices = [cast(dt.with_lanes("int64", dt.lanes_of(i.dtype)), i) for i in indices]
    if not indices:
        return IntImm(0) if buffer.elem_offset is None else buffer.elem_offset
    if buffer.strides:
        total: Expr = IntImm(0)
        for i, stride in zip(indices, buffer.strides, strict=True):
            total = binary("add", total, _times(i, stride))
    else:
        total = indices[0]
        for i, extent in zip(indices[1:], buffer.shape[1:], strict=True):
            total = binary("add", _times(total, extent), i)
    return total if buffer.elem_offset is None else binary("add", total, buffer.elem_offset)


def _times(index: Expr, factor: Expr) -> Expr:
    if isinstance(index, Ramp):
        return Ramp(binary("mul", index.base, factor), binary("mul", index.stride, factor), index.lanes)
    return binary("mul", index, factor)

