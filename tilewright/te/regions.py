"""The box that a block's statement reads of each buffer, in terms of the block's iteration variables."""
from __future__ import annotations

from collections.abc import Iterable, Sequence

from tilewright.arith.boxes import hull
from tilewright.tir.accesses import uses, uses_below
from tilewright.tir.buffer import Buffer, BufferRegion, Load
from tilewright.tir.expr import Call, Expr, IntImm, Var
from tilewright.tir.iter_var import Range
from tilewright.tir.node import Node, same, walk
from tilewright.tir.stmt import Stmt


def regions_read(nodes: Iterable[Node], exclude: Sequence[Buffer] = (),
                 updated: Sequence[tuple[Buffer, tuple[Expr, ...]]] = ()) -> tuple[BufferRegion, ...]:
    """One region for each buffer that is loaded (those in `exclude`, and elements `updated`, left out), in order of
    first use.

    Several loads of a buffer give the hull where their indices differ by constants, else the whole dimension.
    """
    loads: dict[Buffer, list[tuple[Expr, ...]]] = {}
    for node in nodes:
        for use in uses_below(node) if isinstance(node, Stmt) else uses(node):
            if use.buffer is None or use.indices is None or use.writes or any(use.buffer is b for b in exclude):
                continue
            if not any(use.buffer is b and all(map(same, use.indices, at)) for b, at in updated):
                loads.setdefault(use.buffer, []).append(use.indices)
    return tuple(_box(b, points) for b, points in loads.items())


def _box(b: Buffer, points: Sequence[tuple[Expr, ...]]) -> BufferRegion:
    return BufferRegion(b, tuple(hull(extent, [_point(p[d]) for p in points]) for d, extent in enumerate(b.shape)))


def _point(index: Expr) -> Range | None:
    """The range of one index; None for one that comes from memory."""
    if not isinstance(index, Var) and any(isinstance(e, Load) or isinstance(e, Call) and e.op == "checked_index"
                                          for e in walk(index)):
        return None
    return Range(index, IntImm(1, index.dtype))
