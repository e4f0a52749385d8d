"""The read regions of a block whose body was rewritten."""
from __future__ import annotations

from tilewright.arith.analyzer import Analyzer
from tilewright.arith.regions import interval_of
from tilewright.schedule.analysis.dataflow import block_statements, stores_of
from tilewright.schedule.analysis.domains import axis_domains
from tilewright.te.regions import regions_read
from tilewright.tir.accesses import uses
from tilewright.tir.buffer import BufferRegion, Load, whole_region
from tilewright.tir.expr import IntImm, Var
from tilewright.tir.iter_var import Range
from tilewright.tir.node import statements, walk
from tilewright.tir.stmt import Allocate, Block, BlockRealize, For, LetStmt


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
