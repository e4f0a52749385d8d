"""The regions that a block reads and writes, for blocks that do not state them."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tilewright.arith.analyzer import Analyzer
from tilewright.arith.boxes import hull
from tilewright.arith.regions import Interval, interval_of
from tilewright.tir.buffer import Buffer, BufferRegion, Load, whole_region
from tilewright.tir.expr import Binary, Call, Expr, IntImm, Let, Var
from tilewright.tir.iter_var import Range
from tilewright.tir.node import Node, child_names, same, substitute, walk
from tilewright.tir.stmt import Allocate, Block, BlockRealize, For, LetStmt, Store

Access = tuple[tuple[Range, ...], Mapping[Var, Interval]]     # a box, and the domains of the loops around it


def infer(block: Block) -> tuple[tuple[BufferRegion, ...], tuple[BufferRegion, ...]]:
    """(reads, writes) of block in terms of its axes: a box for each buffer that is not the block's own.

    Loops inside the block are relaxed. The element that a reduction updates is not among the reads.
    """
    found = _Accesses()
    for m in block.match_buffers:
        found.views[m.buffer] = m.source
    found.own.update(block.alloc_buffers)
    sizes = [d for b in block.alloc_buffers for d in b.shape]
    places = [e for m in block.match_buffers for r in m.source.region for e in (r.min, r.extent)]
    for e in (*sizes, *places):
        found.visit(e, {}, {})
    if block.init is not None:
        found.visit(block.init, {}, {})
    found.visit(block.body, {}, {})
    if block.init is not None:
        found.drop_updates(block)
    reads = tuple(_box(b, boxes) for b, boxes in found.reads.items() if boxes)
    return reads, tuple(_box(b, boxes) for b, boxes in found.writes.items())


class _Accesses:
    def __init__(self) -> None:
        self.reads: dict[Buffer, list[Access]] = {}
        self.writes: dict[Buffer, list[Access]] = {}
        self.own: set[Buffer] = set()
        self.views: dict[Buffer, BufferRegion] = {}

    def visit(self, n: Node, domains: dict[Var, Interval], values: dict[Any, Node]) -> None:
        """Collect the accesses of n, which stands in loops over domains; `values` are those of variables."""
        if isinstance(n, For):
            self.children(n, ("min", "extent"), domains, values)
            inner = (substitute(n.min, values), substitute(n.extent, values))
            self.visit(n.body, {**domains, n.loop_var: inner}, values)
            return
        if isinstance(n, (LetStmt, Let)):
            self.visit(n.value, domains, values)
            self.visit(n.body, domains, {**values, n.var: substitute(n.value, values)})
            return
        if isinstance(n, BlockRealize):
            self.realize(n, domains, values)
            return
        if isinstance(n, Allocate):
            self.own.add(n.buffer)
            for d in n.buffer.shape:
                self.visit(d, domains, values)
        elif isinstance(n, Load):
            self.add(self.reads, n.buffer, _points(n.indices), domains, values)
        elif isinstance(n, Call) and n.op == "access_ptr" and isinstance(n.args[0], Load):
            for table in (self.reads, self.writes):
                self.add(table, n.args[0].buffer, whole_region(n.args[0].buffer).region, domains, values)
        self.children(n, child_names(type(n)), domains, values)
        if isinstance(n, Store):
            self.add(self.writes, n.buffer, _points(n.indices), domains, values)

    def children(self, n: Node, names: Sequence[str], domains: dict[Var, Interval], values: dict[Any, Node]) -> None:
        for name in names:
            child = getattr(n, name)
            for c in child if isinstance(child, tuple) else (child,):
                if c is not None:
                    self.visit(c, domains, values)

    def realize(self, s: BlockRealize, domains: dict[Var, Interval], values: dict[Any, Node]) -> None:
        """An inner block touches its regions, at the values of its axes."""
        for v in (*s.iter_values, s.predicate):
            self.visit(v, domains, values)
        inner = {iv.var: substitute(v, values) for iv, v in s.bound}
        for table, regions in ((self.reads, s.block.reads), (self.writes, s.block.writes)):
            for r in regions:
                self.add(table, r.buffer, r.region, domains, {**values, **inner})

    def add(self, table: dict[Buffer, list[Access]], b: Buffer, box: Sequence[Range], domains: Mapping[Var, Interval],
            values: Mapping[Any, Node]) -> None:
        if b in self.own:
            return
        if b in self.views:
            source = self.views[b]
            self.add(table, source.buffer, source.region, domains, values)
            return
        table.setdefault(b, []).append((tuple(substitute(r, values) for r in box) if values else tuple(box), domains))

    def drop_updates(self, block: Block) -> None:
        """Leave out the elements that the block reads only to update them."""
        targets = {n.buffer for n in walk(block.init) if isinstance(n, Store)} if block.init is not None else set()
        for b in targets & self.reads.keys():
            written = [box for box, _ in self.writes.get(b, [])]
            self.reads[b] = [(box, d) for box, d in self.reads[b] if not any(_same_box(box, w) for w in written)]


def _points(indices: Sequence[Expr]) -> tuple[Range, ...]:
    return tuple(Range(i, IntImm(1, i.dtype)) for i in indices)


def _same_box(a: Sequence[Range], b: Sequence[Range]) -> bool:
    return all(same(x.min, y.min) and same(x.extent, y.extent) for x, y in zip(a, b, strict=True))


def _box(buffer: Buffer, accesses: Sequence[Access]) -> BufferRegion:
    axes = []
    for d, extent in enumerate(buffer.shape):
        axes.append(hull(extent, [_relaxed(box[d], domains) for box, domains in accesses]))
    return BufferRegion(buffer, tuple(axes))


def _relaxed(r: Range, domains: Mapping[Var, Interval]) -> Range | None:
    """r for all iterations of the loops; None where no numbers, and nothing fixed around the loops, bound it."""
    if any(isinstance(n, Load) or (isinstance(n, Call) and n.op == "checked_index") for n in walk(r)):
        return None
    lanes = next((n for n in walk(r.min) if "x" in getattr(n, "dtype", "")), None)
    if lanes is not None:
        return None
    used = {n for n in walk(r) if isinstance(n, Var)} & domains.keys()
    if not used:
        return r
    analyzer = Analyzer()
    low = interval_of(r.min, domains, analyzer)
    if low is None or any(isinstance(n, Load) or n in domains for e in (*low, r.extent) for n in walk(e)):
        return None
    if isinstance(r.extent, IntImm) and r.extent.value == 1:
        return Range(*low)
    return Range(low[0], analyzer.simplify(Binary("add", low[1], r.extent) - 1))
