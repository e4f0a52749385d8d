"""Primitives that change how a buffer lies in memory: transform_layout."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tilewright.arith.analyzer import Analyzer
from tilewright.arith.itermap import detect_iter_map
from tilewright.schedule.primitive import primitive
from tilewright.schedule.schedule import Schedule
from tilewright.schedule.state import BlockRV
from tilewright.support.errors import require
from tilewright.tir.buffer import Buffer, BufferRegion, Load, MatchBuffer
from tilewright.tir.expr import Expr, IntImm, Range, Var, convert
from tilewright.tir.node import Node, rewrite, substitute
from tilewright.tir.stmt import Block, Store


@primitive
def transform_layout(sch: Schedule, block: BlockRV, buffer: tuple[str, int] | str,
                     index_map: Callable[..., Sequence[Any]]) -> None:
    """Store a buffer that the function allocates in another order, or with other dimensions.

        B_packed[k, j]
    ->
        B_packed[j // 32, k, j % 32]        # index_map: lambda k, j: (j // 32, k, j % 32)

    buffer: ("read", n) or ("write", n) among the regions of block, or a name. index_map gives the new indices of the
    element at the old ones; every access of the function is rewritten. Where a split does not divide an extent the new
    buffer has elements that nothing uses.

    Legal when the function allocates the buffer, and index_map gives no two elements the same place.
    """
    realize = sch.realize(block)
    old = _chosen(realize.block, buffer)
    require(not any(old is b for b in sch.func.buffers), f"{old.name} is an argument of the function", realize,
            hint="cache_read or cache_write makes a copy whose layout may change")
    require(not old.strides, f"{old.name} has strides of its own", realize)
    axes = [Var(f"i{d}", "int32") for d in range(len(old.shape))]
    new_indices = _mapped(index_map, axes)
    analyzer = sch.analyzer_at(realize)
    domains = {v: (IntImm(0), extent) for v, extent in zip(axes, old.shape, strict=True)}
    understood = detect_iter_map(new_indices, domains, None, analyzer)
    require(understood is not None and understood.is_injective,
            f"the map ({', '.join(map(str, axes))}) -> ({', '.join(map(str, new_indices))}) is not known to give every "
            f"element of {old.name} a place of its own", realize,
            hint="build it from axes, //, % by constants, and sums of multiples")
    new = old.replace(shape=_new_shape(analyzer, new_indices, domains), data=None)
    _Transform(old, new, axes, new_indices, analyzer).apply(sch)


def _chosen(block: Block, which: tuple[str, int] | str) -> Buffer:
    regions = {"read": block.reads, "write": block.writes}
    if isinstance(which, str):
        found = [r.buffer for r in (*block.writes, *block.reads) if r.buffer.name == which]
    else:
        require(isinstance(which, (tuple, list)) and len(which) == 2 and which[0] in regions,
                f'the buffer is {which!r}, not ("read", n), ("write", n) or a name')
        found = [r.buffer for r in regions[which[0]][which[1]:][:1]]
    require(bool(found), f"block {block.name} has no buffer {which!r}",
            hint=f"it reads {', '.join(r.buffer.name for r in block.reads)} and writes "
                 f"{', '.join(r.buffer.name for r in block.writes)}")
    return found[0]


def _mapped(index_map: Callable[..., Sequence[Any]], axes: Sequence[Var]) -> tuple[Expr, ...]:
    require(callable(index_map), f"index_map is {index_map!r}, not a function of the old indices")
    try:
        result = index_map(*axes)
    except TypeError as why:
        require(False, f"index_map does not take {len(axes)} indices: {why}")
        raise
    result = result if isinstance(result, (tuple, list)) else (result,)
    return tuple(convert(e) for e in result)


def _new_shape(analyzer: Analyzer, indices: Sequence[Expr], domains: dict[Var, tuple[Expr, Expr]]) -> tuple[Expr, ...]:
    """The least extents that hold every new index."""
    with analyzer.scope():
        for v, (low, extent) in domains.items():
            analyzer.bind(v, low, extent)
        shape = []
        for e in indices:
            low, high = analyzer.bounds(e)
            require(low is not None and low >= 0 and high is not None,
                    f"the new index {e} has no constant bounds from 0 on", hint="symbolic extents keep their layout")
            assert high is not None
            shape.append(IntImm(high + 1))
    return tuple(shape)


class _Transform:
    """Rewrites every access to `old` into one to `new`."""

    def __init__(self, old: Buffer, new: Buffer, axes: Sequence[Var], indices: Sequence[Expr], analyzer: Analyzer) -> None:
        self.old, self.new, self.axes, self.indices, self.analyzer = old, new, axes, indices, analyzer

    def at(self, old_indices: Sequence[Expr]) -> tuple[Expr, ...]:
        table = dict(zip(self.axes, old_indices, strict=True))
        return tuple(self.analyzer.simplify(substitute(e, table)) for e in self.indices)

    def region(self, region: Sequence[Range]) -> tuple[Range, ...]:
        """The box of a point maps to a point; that of anything larger to the whole buffer."""
        if all(isinstance(r.extent, IntImm) and r.extent.value == 1 for r in region):
            return tuple(Range(e, IntImm(1, e.dtype)) for e in self.at([r.min for r in region]))
        return tuple(Range(IntImm(0), d) for d in self.new.shape)

    def step(self, n: Node) -> Node | None:
        if isinstance(n, (Load, Store)) and n.buffer is self.old:
            return n.replace(buffer=self.new, indices=self.at(n.indices))
        if isinstance(n, BufferRegion) and n.buffer is self.old:
            return BufferRegion(self.new, self.region(n.region))
        if isinstance(n, MatchBuffer):
            require(n.source.buffer is not self.new, f"{self.old.name} is viewed as another buffer")
        if isinstance(n, Block) and any(b is self.old for b in n.alloc_buffers):
            return n.replace(alloc_buffers=tuple(self.new if b is self.old else b for b in n.alloc_buffers))
        return None

    def apply(self, sch: Schedule) -> None:
        sch.set_body(rewrite(sch.func.body, self.step))
