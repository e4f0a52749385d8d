"""Primitives on how a buffer lies in memory without a change of its indices: storage_align, set_axis_separator."""
from __future__ import annotations

from collections.abc import Sequence

from tilewright.schedule.primitive import primitive
from tilewright.schedule.primitives.layout import chosen_buffer
from tilewright.schedule.schedule import Schedule
from tilewright.schedule.state import BlockRV
from tilewright.support.errors import described, require
from tilewright.tir.buffer import DIM_ALIGN
from tilewright.tir.symbols import replace_buffers


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
    old = chosen_buffer(realize.block, buffer)
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
