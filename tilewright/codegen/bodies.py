"""Where buffers lie."""
from __future__ import annotations

from collections.abc import Iterator

from tilewright.lowering.scopes import SMALL_BYTES
from tilewright.tir import dtype as dt
from tilewright.tir.buffer import Buffer, Load
from tilewright.tir.expr import Expr, IntImm, Ramp
from tilewright.tir.node import walk
from tilewright.tir.stmt import Allocate, Store

STACK_BUFFER_BYTES = 16 << 10        # a larger buffer comes from tw_alloc
STACK_FUNCTION_BYTES = 128 << 10     # so does every further one once a function's frame has this size


def in_frame(size: int, taken: int) -> bool:
    """True when a buffer of so many bytes lies in the frame of a function, of which as many are taken."""
    return size <= STACK_BUFFER_BYTES and taken + size <= STACK_FUNCTION_BYTES


def is_promoted(s: Allocate) -> bool:
    """True for a small array that is accessed at constants only: its elements are in registers, or share memory with
    those of other such arrays."""
    return (constant_bytes(s.buffer) or STACK_BUFFER_BYTES) <= SMALL_BYTES and all(
        _is_constant(n.indices[-1]) for n in _accesses(s))


def widths(s: Allocate) -> set[int]:
    """With how many lanes the memory is read and written."""
    return {dt.lanes_of(n.dtype if isinstance(n, Load) else n.value.dtype) for n in _accesses(s)}


def _accesses(s: Allocate) -> Iterator[Load | Store]:
    return (n for n in walk(s.body) if isinstance(n, (Load, Store)) and n.buffer.data is s.buffer.data)


def _is_constant(index: Expr) -> bool:
    return isinstance(index, IntImm) or isinstance(index, Ramp) and isinstance(index.base, IntImm)


def constant_bytes(buffer: Buffer) -> int | None:
    """Size of the buffer in bytes if its shape is constant."""
    total = dt.bytes_of(buffer.dtype)
    for extent in buffer.shape:
        if not isinstance(extent, IntImm):
            return None
        total *= extent.value
    return total


