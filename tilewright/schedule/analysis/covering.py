"""Boxes that hold the regions of blocks while variables run over their ranges; the regions that rewritten
bodies read."""
from __future__ import annotations

from collections.abc import Mapping, Sequence

from tilewright.arith.analyzer import Analyzer
from tilewright.arith.regions import interval_of
from tilewright.schedule.analysis.dataflow import block_statements, stores_of
from tilewright.schedule.analysis.domains import Interval, axis_domains
from tilewright.te.regions import regions_read
from tilewright.tir.accesses import Use, uses
from tilewright.tir.arithmetic import binary
from tilewright.tir.buffer import Buffer, BufferRegion, Load, element_region, whole_region
from tilewright.tir.expr import Expr, IntImm, Var
from tilewright.tir.iter_var import Range
from tilewright.tir.node import statements, sub_statements, substitute, walk
from tilewright.tir.stmt import Allocate, Block, BlockRealize, For, LetStmt, Stmt


def covering(regions: Sequence[BufferRegion], ranges: Mapping[Var, Interval],
             analyzer: Analyzer) -> tuple[BufferRegion, ...]:
    """For each buffer one box that holds the regions while the variables run over their ranges."""
    boxes: dict[Buffer, list[list[Interval]]] = {}
    for region in regions:
        box = [_along(r, dim, ranges, analyzer) for r, dim in zip(region.region, region.buffer.shape, strict=True)]
        boxes.setdefault(region.buffer, []).append(box)
    out = []
    for buffer, found in boxes.items():
        merged = found[0]
        for box in found[1:]:
            merged = [a if _same(a, b, analyzer) else _joined(a, b, dim, analyzer)
                      for a, b, dim in zip(merged, box, buffer.shape, strict=True)]
        out.append(BufferRegion(buffer, tuple(Range(low, size) for low, size in merged)))
    return tuple(out)


def _along(r: Range, dim: Expr, ranges: Mapping[Var, Interval], analyzer: Analyzer) -> Interval:
    if not any(n in ranges for n in walk(r)):
        return r.min, r.extent
    hull = interval_of(r.min, ranges, analyzer) if isinstance(r.extent, IntImm) else None
    if hull is None or any(isinstance(n, Load) or n in ranges for e in hull for n in walk(e)):
        return IntImm(0, dim.dtype), dim
    return hull[0], analyzer.simplify(binary("add", hull[1], binary("sub", r.extent, 1)))


def _same(a: Interval, b: Interval, analyzer: Analyzer) -> bool:
    return analyzer.equal(a[0], b[0]) and analyzer.equal(a[1], b[1])


def _joined(a: Interval, b: Interval, dim: Expr, analyzer: Analyzer) -> Interval:
    """The smallest known interval that holds a and b: of constant extent, or the whole dimension."""
    for first, second in ((a, b), (b, a)):
        gap = analyzer.simplify(binary("sub", second[0], first[0]))
        if isinstance(gap, IntImm) and gap.value >= 0 and all(isinstance(x[1], IntImm) for x in (a, b)):
            end = max(first[1].value, gap.value + second[1].value)  # type: ignore[attr-defined]
            return first[0], IntImm(end, first[0].dtype)
    return IntImm(0, dim.dtype), dim


def outer_regions(stmt: Stmt, kind: str, analyzer: Analyzer) -> list[BufferRegion]:
    """What the blocks directly below stmt read or write, over the loops of stmt, and what is read or written outside of
    their bodies."""
    out: list[BufferRegion] = []

    def visit(here: Stmt, ranges: dict[Var, Interval]) -> None:
        own = [u for u in uses(here) if (u.writes if kind == "writes" else u.reads)]
        out.extend(covering([_region(u) for u in own if u.buffer is not None], ranges, analyzer))
        if isinstance(here, For):
            ranges = {**ranges, here.loop_var: (here.min, here.extent)}
        if isinstance(here, LetStmt):
            ranges = {**ranges, here.var: (here.value, IntImm(1, here.value.dtype))}
        if isinstance(here, BlockRealize):
            values = {iv.var: v for iv, v in here.bound}
            regions = [substitute(r, values) for r in getattr(here.block, kind)]
            out.extend(covering(regions, ranges, analyzer))
            return
        for below in sub_statements(here):
            visit(below, ranges)

    visit(stmt, {})
    return out


def _region(use: Use) -> BufferRegion:
    """The element that is used; the whole buffer where it is not known, or a let in the expression tells it."""
    assert use.buffer is not None
    if use.indices is None or use.lets:
        return whole_region(use.buffer)
    return element_region(use.buffer, use.indices)


def with_reads(block: Block) -> Block:
    """block with the regions that its statements read; elements that a reduction updates are left out, as everywhere.

    What is read through a view of a buffer stays as it was stated.
    """
    parts = list(block_statements(block))
    updated = [(s.buffer, s.indices) for s in stores_of(parts)] if block.init is not None else []
    own = [*block.alloc_buffers, *(m.buffer for m in block.match_buffers)]
    inner: dict[Var, tuple] = {}
    local: set[Var] = set()
    viewed: list[BufferRegion] = []                        # by the blocks inside
    for stmt in (s for part in parts for s in statements(part)):
        if isinstance(stmt, For):
            inner[stmt.loop_var] = (stmt.min, stmt.extent)
        elif isinstance(stmt, BlockRealize):
            inner.update(axis_domains(stmt.block.iter_vars))
            own += [*stmt.block.alloc_buffers, *(m.buffer for m in stmt.block.match_buffers)]
            viewed += _viewed(stmt.block)
        elif isinstance(stmt, LetStmt):
            local.add(stmt.var)
        elif isinstance(stmt, Allocate):
            own.append(stmt.buffer)
        local.update(var for use in uses(stmt) for var, _ in use.lets)
    regions = (*regions_read(parts, exclude=own, updated=updated), *viewed)
    if inner or local:
        regions = tuple(_outside(r, inner, local) for r in regions)
    return block.replace(reads=_with_views(block, regions))


def _with_views(block: Block, regions: tuple[BufferRegion, ...]) -> tuple[BufferRegion, ...]:
    """regions, and those that block stated of the buffers which it views; all of a buffer that is in both."""
    viewed = _viewed(block)
    both = {r.buffer for r in regions} & {r.buffer for r in viewed}
    whole = tuple(map(whole_region, both))
    return (*(r for r in (*regions, *viewed) if r.buffer not in both), *whole)


def _viewed(block: Block) -> list[BufferRegion]:
    """What a block states that it reads of the buffers which it views."""
    return [r for r in block.reads if any(r.buffer is m.source.buffer for m in block.match_buffers)]


def _outside(region: BufferRegion, inner: dict[Var, tuple], local: set[Var]) -> BufferRegion:
    """region in terms of what is known outside the block's own loops, blocks and lets."""
    out = []
    for dim, r in zip(region.buffer.shape, region.region, strict=True):
        if not any(n in inner or n in local for n in walk(r)):
            out.append(r)
            continue
        found = interval_of(r.min, inner, Analyzer()) if isinstance(r.extent, IntImm) else None
        known = found is not None and not any(
            isinstance(n, Load) or n in inner or n in local for e in found for n in walk(e))
        if found is not None and known:
            out.append(Range(found[0], found[1] + (r.extent - 1)))
        else:
            out.append(Range(IntImm(0, dim.dtype), dim))
    return BufferRegion(region.buffer, tuple(out))
