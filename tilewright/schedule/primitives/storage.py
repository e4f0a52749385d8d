"""Memory of buffers: scope, dtype, alignment and physical dimensions."""
from __future__ import annotations

from collections.abc import Sequence

from tilewright.schedule.analysis.dataflow import is_allocated, takes_address
from tilewright.schedule.analysis.legality import require_apart
from tilewright.schedule.primitive import primitive
from tilewright.schedule.primitives.caching import chosen
from tilewright.schedule.primitives.layout import chosen_buffer
from tilewright.schedule.schedule import Schedule
from tilewright.schedule.state import BlockRV
from tilewright.support.errors import IRError, described, require
from tilewright.tir import dtype as dt
from tilewright.tir.buffer import DIM_ALIGN, KINDS_OF_SCOPES, Buffer, Load, is_scope
from tilewright.tir.conversion import cast
from tilewright.tir.node import Node, rewrite, walk
from tilewright.tir.stmt import Block, Store
from tilewright.tir.symbols import replace_buffers


@primitive
def set_scope(sch: Schedule, block: BlockRV | str, buffer_index: int | str, storage_scope: str) -> None:
    """Keep a buffer that a block writes in another memory.

        B = T.alloc_buffer((16, 16))    ->    B = T.alloc_buffer((16, 16), scope="local")

    buffer_index: the position among the buffers that block writes, or a name. storage_scope: "global", "local",
    "shared", "warp", "wmma.matrix_a" and the like, with or without a tag as in "shared.dyn"; code for a CPU treats
    all alike.

    Legal when
    - the function allocates the buffer (an argument stays where the caller put it);
    - no two threads of a block would meet in an element of it, when it becomes shared memory;
    - each thread writes what it reads, when it no longer is shared memory.
    """
    realize = sch.realize(block)
    old = chosen(realize, realize.block.writes, buffer_index, "writes").buffer
    require_scope(storage_scope, realize)
    require(not any(old is b for b in sch.func.buffer_map.values()),
            f"{old.name} is an argument of the function", realize,
            hint="cache_read or cache_write makes a copy in the scope you want")
    new = old.replace(scope=storage_scope, data=None)
    sch.set_body(replace_buffers(sch.func.body, {old: new}))
    require_apart(sch, new)


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
    sch.amend(dtype=name)
    require(name != "handle" and dt.lanes_of(name) == 1, f"{described(dtype)} is no dtype of elements", realize)
    body = sch.func.body
    require(not any(hides(n, old) for n in walk(body)), f"the function uses {old.name} other than by its elements",
            realize)
    new = old.replace(dtype=name, data=None)
    sch.set_body(replace_buffers(rewrite(body, lambda n: _cast(n, old, new)), {old: new}))


@primitive
def storage_align(sch: Schedule, block: BlockRV | str, buffer_index: int, axis: int, factor: int, offset: int) -> None:
    """Pad a dimension of a buffer, so that rows do not start in the same bank or cache set.

        B = alloc_buffer((128, 128))                        # strides 128, 1
    ->
        B = alloc_buffer((128, 128)), strides 129, 1        # axis 0, factor 32, offset 1: 129 % 32 == 1

    The stride of `axis` becomes the least number of elements s that holds the dimensions inside it with
    s % factor == offset. buffer_index counts the buffers that block writes; axis may count from the last, -1. The block
    is annotated with "buffer_dim_align", and lowering gives the buffer its strides after it was shrunk to the region
    that is used. A second call for an axis replaces the first.

    Legal when the function allocates the buffer, without strides of its own, and 0 <= offset < factor. Indices do not
    change.
    """
    realize = sch.realize(block)
    old, written = realize.block, [w.buffer for w in realize.block.writes]
    require(type(buffer_index) is int and 0 <= buffer_index < len(written),
            f"block {old.name} writes no buffer {described(buffer_index)}", realize,
            hint=f"it writes {len(written)}: {', '.join(b.name for b in written)}")
    buffer = written[buffer_index]
    require(not any(buffer is b for b in sch.func.buffers),
            f"{buffer.name} is an argument of the function, which lies as the caller laid it", realize,
            hint="cache_read or cache_write makes a copy that may be padded")
    require(not buffer.strides, f"{buffer.name} has strides of its own", realize)
    require(type(axis) is int and -buffer.ndim <= axis < buffer.ndim,
            f"axis is {described(axis)}, {buffer.name} has {buffer.ndim} dimension(s)", realize)
    require(type(factor) is int and factor > 0, f"factor is {described(factor)}, not a positive integer", realize)
    require(type(offset) is int and 0 <= offset < factor,
            f"offset is {described(offset)}, not an integer from 0 to {factor - 1}", realize)
    place = [buffer_index, axis % buffer.ndim]
    kept = [row for row in old.annotations.get(DIM_ALIGN, []) if row[:2] != place]
    notes = {**old.annotations, DIM_ALIGN: sorted([*kept, [*place, factor, offset]])}
    sch.replace(old, old.replace(annotations=notes))


@primitive
def set_axis_separator(sch: Schedule, block: BlockRV | str, buffer: tuple[str, int] | str,
                       axis_separators: Sequence[int]) -> None:
    """Say at which axes of a buffer a new physical dimension starts, for memories with several.

        B = alloc_buffer((4, 8, 16))    ->    B = alloc_buffer((4, 8, 16), axis_separators=[1])    # (4) x (8 * 16)

    buffer: ("read", n) or ("write", n) among the regions of block, or a name. Code for a CPU has one physical
    dimension: there the separators change nothing, and a buffer lies as it would without them.

    Legal when the separators rise, from 0 to the number of dimensions.
    """
    realize = sch.realize(block)
    old = chosen_buffer(realize, buffer)
    given = isinstance(axis_separators, (list, tuple)) and all(type(a) is int for a in axis_separators)
    require(given, f"axis_separators is {described(axis_separators)}, not a list of axes", realize)
    axes = tuple(axis_separators)
    require(all(0 <= a <= old.ndim for a in axes) and all(a <= b for a, b in zip(axes, axes[1:])),
            f"the separators {list(axes)} do not rise from 0 to {old.ndim}, the number of dimensions of {old.name}",
            realize)
    table = {old: old.replace(axis_separators=axes)}
    func = sch.func
    arguments = {var: table.get(b, b) for var, b in func.buffer_map.items()}
    sch.set_function(func.replace(buffer_map=arguments, body=replace_buffers(func.body, table)))


def require_scope(scope: object, at: Node) -> None:
    """Refuse what names no kind of memory."""
    require(is_scope(scope), f"{scope!r} is not a storage scope", at, hint=KINDS_OF_SCOPES)


def allocate(sch: Schedule, *buffers: Buffer) -> None:
    """Allocate buffers that the function uses by now; refuse where threads would meet in an element of one."""
    sch.add_alloc(*buffers)
    require_apart(sch, *buffers)


def hides(n: Node, buffer: Buffer) -> bool:
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
