"""Primitives on blocks inside other blocks: the block around them stands in for the function."""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from tilewright.arith.analyzer import Analyzer
from tilewright.schedule.analysis.covering import covering, outer_regions
from tilewright.schedule.analysis.legality import require_apart
from tilewright.schedule.schedule import Schedule
from tilewright.schedule.state import BlockRV, LoopRV, replaced
from tilewright.support.errors import require
from tilewright.tir.arithmetic import binary
from tilewright.tir.buffer import Buffer, BufferRegion
from tilewright.tir.node import walk
from tilewright.tir.stmt import Block, BlockRealize

P = ParamSpec("P")
R = TypeVar("R")


def in_scope(fn: Callable[P, R]) -> Callable[P, R]:
    """Decorator of a primitive fn(sch, block, ...) that moves or adds blocks beside `block`.

    Where the block lies inside another one, fn sees that one as the function: its axes as parameters, and memory from
    outside of it as arguments. What runs in one instance of the block around stays in it, so that nothing outside sees
    a difference; its regions grow by what is read and written in addition.
    """
    @functools.wraps(fn)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        sch, named = args[0], args[1] if len(args) > 1 else kwargs["block"]
        assert isinstance(sch, Schedule)
        realize = sch.realize(named)                                       # type: ignore[arg-type]
        if realize is sch.root:
            return fn(*args, **kwargs)
        scope = sch.index.scope_of(realize)
        for loop in (x for x in (*args[2:], *kwargs.values()) if isinstance(x, LoopRV) and not x.place):
            require(_func_of(named, sch) != loop.func or sch.index.scope_of(sch.loop(loop)) is scope,
                    f"{loop} and block {realize.block.name} are not inside the same block", realize)
        if scope is sch.root:
            return fn(*args, **kwargs)
        require(scope.block.init is None, f"block {scope.block.name} around block {realize.block.name} has an init",
                scope, hint="do this before blockize, or after decompose_reduction")
        with sch.inside(scope):
            out = fn(*args, **kwargs)
            inner = sch.root.block
        _put(sch, scope, inner)
        require_apart(sch, *inner.alloc_buffers)
        return out
    return call


def _func_of(named: Any, sch: Schedule) -> str:
    return named.func if isinstance(named, BlockRV) else sch.focus


def _put(sch: Schedule, scope: BlockRealize, inner: Block) -> None:
    """Put the block `inner` in the place of that of scope, with regions that hold what it touches."""
    path = [s for s in sch.path_to(scope) if isinstance(s, BlockRealize)]
    analyzer = sch.analyzer_at(scope.block.body)
    block = inner.replace(iter_vars=scope.block.iter_vars)
    sch.set_body(replaced(sch.index, scope, scope.replace(block=_widened(block, analyzer))))
    for outer in reversed(path[1:-1]):
        now = sch.realize(outer.block.name)
        sch.replace(now, now.replace(block=_widened(now.block, sch.analyzer_at(now.block.body))))


def _widened(block: Block, analyzer: Analyzer) -> Block:
    """block with regions that hold those of the blocks in it."""
    own = {id(b) for b in block.alloc_buffers}
    views = {id(m.buffer): m.source for m in block.match_buffers}
    found: dict[str, tuple[BufferRegion, ...]] = {}
    for kind in ("reads", "writes"):
        stated = list(getattr(block, kind))
        for region in outer_regions(block.body, kind, analyzer):
            region = views.get(id(region.buffer), region)
            same = [r for r in stated if r.buffer is region.buffer]
            update = kind == "reads" and not same and any(r.buffer is region.buffer for r in block.writes)
            if id(region.buffer) in own or update or any(_holds(r, region, analyzer) for r in same):
                continue
            stated = [r for r in stated if r.buffer is not region.buffer]
            stated += covering([*same, region], {}, analyzer)
        found[kind] = tuple(r for r in stated if _used(block, r.buffer))
    return block.replace(**found)


def _holds(outer: BufferRegion, inner: BufferRegion, analyzer: Analyzer) -> bool:
    """True when one region is shown to hold another of the same buffer."""
    return all(analyzer.prove(binary("le", a.min, b.min))
               and analyzer.prove(binary("le", binary("add", b.min, b.extent), binary("add", a.min, a.extent)))
               for a, b in zip(outer.region, inner.region, strict=True))


def _used(block: Block, buffer: Buffer) -> bool:
    parts = [part for part in (block.init, block.body) if part is not None]
    return any(m.source.buffer is buffer for m in block.match_buffers) or any(
        getattr(n, "buffer", None) is buffer or n is buffer.data for part in parts for n in walk(part))
