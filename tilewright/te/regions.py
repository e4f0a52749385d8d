"""The box that a block's statement reads of each buffer, in terms of the block's iteration variables."""
from __future__ import annotations

from collections.abc import Iterable, Sequence

from tilewright.tir.buffer import Buffer, BufferRegion, Load
from tilewright.tir.expr import Binary, Call, Expr, IntImm, Range, binary, const
from tilewright.tir.node import Node, walk


def regions_read(nodes: Iterable[Node], exclude: Sequence[Buffer] = ()) -> tuple[BufferRegion, ...]:
    """One region for each buffer that is loaded (those in `exclude` left out), in order of first use.

    Several loads of a buffer give the hull where their indices differ by constants, else the whole dimension.
    """
    loads: dict[Buffer, list[tuple[Expr, ...]]] = {}
    for node in nodes:
        for inner in walk(node):
            if isinstance(inner, Load) and not any(inner.buffer is b for b in exclude):
                loads.setdefault(inner.buffer, []).append(inner.indices)
    return tuple(_box(b, points) for b, points in loads.items())


def _box(buffer: Buffer, points: Sequence[tuple[Expr, ...]]) -> BufferRegion:
    return BufferRegion(buffer, tuple(_hull(extent, [p[d] for p in points])
                                      for d, extent in enumerate(buffer.shape)))


def _hull(extent: Expr, indices: Sequence[Expr]) -> Range:
    """The smallest known range that holds the indices; [0, extent) when nothing better is known."""
    if any(isinstance(inner, Load) or isinstance(inner, Call) and inner.op == "checked_index"
           for e in indices for inner in walk(e)):
        return Range(IntImm(0, extent.dtype), extent)
    parts = [_with_offset(e) for e in indices]
    base = parts[0][0]
    if not all(_same(base, other) for other, _ in parts):
        return Range(IntImm(0, extent.dtype), extent)
    low, high = min(c for _, c in parts), max(c for _, c in parts)
    first = indices[[c for _, c in parts].index(low)]
    return Range(first, const(high - low + 1, first.dtype))


def _with_offset(e: Expr) -> tuple[Expr, int]:
    """(rest, c) with e = rest + c for a constant c."""
    total = 0
    while isinstance(e, Binary) and e.op in ("add", "sub"):
        if isinstance(e.b, IntImm):
            total += e.b.value if e.op == "add" else -e.b.value
            e = e.a
        elif isinstance(e.a, IntImm) and e.op == "add":
            total += e.a.value
            e = e.b
        else:
            break
    if isinstance(e, IntImm):
        return IntImm(0, e.dtype), total + e.value
    return e, total


def _same(a: Expr, b: Expr) -> bool:
    return a is b or bool(binary("eq", a, b)) if a.dtype == b.dtype else False
