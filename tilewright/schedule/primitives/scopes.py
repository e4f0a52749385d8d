"""The primitive that moves a buffer to another storage scope."""
from __future__ import annotations

from tilewright.schedule.analysis.legality import require_apart
from tilewright.schedule.primitive import primitive
from tilewright.schedule.schedule import Schedule
from tilewright.schedule.state import BlockRV
from tilewright.support.errors import require
from tilewright.tir.buffer import KINDS_OF_SCOPES, Buffer, is_scope
from tilewright.tir.node import Node
from tilewright.tir.symbols import replace_buffers


@primitive
def set_scope(sch: Schedule, block: BlockRV | str, buffer_index: int | str, storage_scope: str) -> None:
    """Keep a buffer that a block writes in another memory.

        B = T.alloc_buffer((16, 16))    ->    B = T.alloc_buffer((16, 16), scope="local")

    buffer_index: the position among the buffers that block writes, or a name. storage_scope: "global", "local",
    "shared", "warp", "wmma.matrix_a" and the like, with or without a tag as in "shared.dyn"; code for a CPU treats
    all alike.

    Legal when the buffer is allocated by the function (an argument stays where the caller put it), where no two threads
    of a block would meet in an element of it, when that becomes shared memory, and where each thread writes what it
    reads, when it no longer is.
    """
    realize = sch.realize(block)
    written = [w.buffer for w in realize.block.writes]
    if isinstance(buffer_index, str):
        found = [b for b in written if b.name == buffer_index]
    else:
        inside = isinstance(buffer_index, int) and 0 <= buffer_index < len(written)
        found = [written[int(buffer_index)]] if inside else []
    require(bool(found), f"block {realize.block.name} writes no buffer {buffer_index!r}", realize,
            hint=f"it writes {', '.join(b.name for b in written)}")
    old = found[0]
    require_scope(storage_scope, realize)
    require(not any(old is b for b in sch.func.buffer_map.values()),
            f"{old.name} is an argument of the function", realize,
            hint="cache_read or cache_write makes a copy in the scope you want")
    new = old.replace(scope=storage_scope, data=None)
    sch.set_body(replace_buffers(sch.func.body, {old: new}))
    require_apart(sch, new)


def require_scope(scope: object, at: Node) -> None:
    """Refuse what names no kind of memory."""
    require(is_scope(scope), f"{scope!r} is not a storage scope", at, hint=KINDS_OF_SCOPES)


def allocate(sch: Schedule, *buffers: Buffer) -> None:
    """Allocate buffers that the function uses by now; refuse where threads would meet in an element of one."""
    sch.add_alloc(*buffers)
    require_apart(sch, *buffers)
