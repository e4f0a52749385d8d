"""Where buffers lie."""
from __future__ import annotations

from tilewright.tir import dtype as dt
from tilewright.tir.buffer import Buffer
from tilewright.tir.expr import IntImm

STACK_BUFFER_BYTES = 16 << 10        # a larger buffer comes from tw_alloc
STACK_FUNCTION_BYTES = 128 << 10     # so does every further one once a function's frame has this size


def in_frame(size: int, taken: int) -> bool:
    """True when a buffer of so many bytes lies in the frame of a function, of which as many are taken."""
    return size <= STACK_BUFFER_BYTES and taken + size <= STACK_FUNCTION_BYTES


def constant_bytes(buffer: Buffer) -> int | None:
    """Size of the buffer in bytes if its shape is constant."""
    total = dt.bytes_of(buffer.dtype)
    for extent in buffer.shape:
        if not isinstance(extent, IntImm):
            return None
        total *= extent.value
    return total


