"""Questions about statements: what a part of a function uses, and where its buffers lie."""
from __future__ import annotations

from collections.abc import Container, Iterator

from tilewright.codegen.queries import depends_on_data
from tilewright.tir import dtype as dt
from tilewright.tir.buffer import Buffer, Load
from tilewright.tir.expr import Call, IntImm, Var
from tilewright.tir.node import Node, walk
from tilewright.tir.stmt import LetStmt, Store, While

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


def used_variables(body: Node) -> Iterator[Var]:
    """Every variable that body needs, in program order, with repetitions: those that it mentions, the addresses of
    buffers, and what their extents depend on (indices that depend on data are compared with them).
    """
    for node in walk(body):
        if isinstance(node, Var):
            yield node
        elif isinstance(node, (Load, Store)):
            yield node.buffer.data
            for extent in node.buffer.shape:
                yield from (n for n in walk(extent) if isinstance(n, Var))


def may_fault(s: While, dependent: Container[Var]) -> bool:
    """True when something in the loop is checked while it runs."""
    for n in walk(s):
        if isinstance(n, LetStmt) or isinstance(n, Call) and n.op in ("call_packed", "checked_index"):
            return True
        if isinstance(n, (Load, Store)) and any(depends_on_data(i, dependent) for i in n.indices):
            return True
    return False
