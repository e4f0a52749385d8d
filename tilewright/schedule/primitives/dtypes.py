"""The primitive that keeps a buffer in another dtype: unsafe_set_dtype."""
from __future__ import annotations

from tilewright.schedule.analysis.dataflow import is_allocated, takes_address
from tilewright.schedule.primitive import primitive
from tilewright.schedule.primitives.caching import chosen
from tilewright.schedule.schedule import Schedule
from tilewright.schedule.state import BlockRV
from tilewright.support.errors import IRError, described, require
from tilewright.tir import dtype as dt
from tilewright.tir.buffer import Buffer, Load
from tilewright.tir.conversion import cast
from tilewright.tir.node import Node, rewrite, walk
from tilewright.tir.stmt import Block, Store
from tilewright.tir.symbols import replace_buffers


@primitive
def unsafe_set_dtype(sch: Schedule, block: BlockRV, buffer_index: int | str, dtype: str) -> None:
    """Keep a buffer that a block writes in another dtype: what is stored is cast to it, what is read is cast back.

        B[i] = A[i] * 2.0;  C[i] = B[i] + 1.0
    ->
        B[i] = T.Cast("float16", A[i] * 2.0);  C[i] = T.Cast("float32", B[i]) + 1.0

    The one primitive after which a function may compute something else: values are rounded, or wrap, where the dtype
    does not hold them. buffer_index: the position among the buffers that block writes, or a name.

    Legal when the function allocates the buffer, and all its uses are loads and stores of elements.
    """
    realize = sch.realize(block)
    old = chosen(realize, realize.block.writes, buffer_index, "writes").buffer
    require(is_allocated(sch, old), f"{old.name} is no memory of the function's own", realize,
            hint="cache_read or cache_write makes a copy whose dtype may change")
    try:
        name = dt.canonical(dtype)
    except IRError as why:
        require(False, str(why), realize)
    require(name != "handle" and dt.lanes_of(name) == 1, f"{described(dtype)} is no dtype of elements", realize)
    body = sch.func.body
    require(not any(_hides(n, old) for n in walk(body)), f"the function uses {old.name} other than by its elements",
            realize)
    new = old.replace(dtype=name, data=None)
    sch.set_body(replace_buffers(rewrite(body, lambda n: _cast(n, old, new)), {old: new}))


def _hides(n: Node, buffer: Buffer) -> bool:
    """True where n uses the memory of buffer as it lies there: its address, or a view."""
    if isinstance(n, Block):
        return any(m.source.buffer is buffer for m in n.match_buffers)
    return n is buffer.data or takes_address(n, buffer)


def _cast(n: Node, old: Buffer, new: Buffer) -> Node | None:
    """An access of the old buffer as one of the new one."""
    if isinstance(n, Load) and n.buffer is old:
        return cast(n.dtype, n.replace(buffer=new))
    if isinstance(n, Store) and n.buffer is old:
        return n.replace(buffer=new, value=cast(dt.with_lanes(new.dtype, dt.lanes_of(n.value.dtype)), n.value))
    return None
