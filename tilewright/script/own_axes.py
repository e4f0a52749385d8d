"""Loop variables in a block's body become axes of the block, which is what a block sees of the loops around it."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from tilewright.arith.analyzer import Analyzer
from tilewright.arith.regions import interval_of
from tilewright.script.frames import BlockFrame
from tilewright.tir.buffer import Buffer, BufferRegion, Load, MatchBuffer
from tilewright.tir.expr import Expr, IntImm, Var
from tilewright.tir.iter_var import DATA_PARALLEL, OPAQUE, IterVar, Range
from tilewright.tir.node import Node, rewrite, substitute, walk
from tilewright.tir.stmt import BlockRealize, For, Stmt, Store

T = TypeVar("T", bound=Node)


def take_loops(frame: BlockFrame, body: Stmt, domains: Mapping[Var, Range]) -> tuple[Stmt, list[IterVar]]:
    """The body of a block that names no loop around it, and the axes that the frame has got for that.

    A loop that an axis of the block is bound to as it stands is that axis. Any other loop gets an axis: spatial where
    the block stores, and every store names it as an index, so that each point writes elements of its own; opaque
    elsewhere, which says nothing of the points: they do not run at once.
    """
    parts: list[Node] = [body, *_beside(frame)]
    named = [n for part in parts for n in walk(part) if type(n) is Var and n in domains]
    if not named:
        return body, []
    nodes = [n for part in parts for n in walk(part)]
    inside = {n.loop_var for n in nodes if isinstance(n, For)}
    used = [v for v in dict.fromkeys(named) if v not in inside]
    if not used:
        return body, []
    bound = {value: iv.var for iv, value in zip(frame.iter_vars, frame.values, strict=True) if isinstance(value, Var)}
    inner = {iv.var: value for n in nodes if isinstance(n, BlockRealize) for iv, value in n.bound}
    stores = [[_through(i, inner) for i in n.indices] for n in nodes if isinstance(n, Store)]
    added = []
    for v in used:
        if v not in bound:
            own = bool(stores) and all(any(i is v for i in indices) for indices in stores)
            added.append(IterVar(all_values(domains[v], domains), Var(f"v_{v.name}", v.dtype),
                                 DATA_PARALLEL if own else OPAQUE))
            frame.iter_vars.append(added[-1])
            frame.values.append(v)
            bound[v] = added[-1].var
    table: dict[Any, Node] = {v: bound[v] for v in used}
    resized = {b: b.replace(shape=tuple(substitute(e, table) for e in b.shape),
                            strides=tuple(substitute(e, table) for e in b.strides))
               for b in (*frame.allocated, *(m.buffer for m in frame.matched))
               if any(n in table for e in (*b.shape, *b.strides) for n in walk(e))}

    def put(part: T) -> T:
        return _rebound(substitute(part, table), resized)

    frame.init = None if frame.init is None else put(frame.init)
    frame.reads, frame.writes = (None if regions is None else tuple(put(r) for r in regions)
                                 for regions in (frame.reads, frame.writes))
    frame.allocated = [resized.get(b, b) for b in frame.allocated]
    frame.matched = [MatchBuffer(resized.get(m.buffer, m.buffer), put(m.source)) for m in frame.matched]
    return put(body), added


def _through(e: Expr, values: Mapping[Any, Expr]) -> Expr:
    """e, or where it is an axis of a block inside what that is bound to."""
    while e in values:
        e = values[e]
    return e


def _beside(frame: BlockFrame) -> list[Node]:
    """What the block holds besides its body."""
    init = [] if frame.init is None else [frame.init]
    sizes = [e for b in frame.allocated for e in (*b.shape, *b.strides) if isinstance(e, Node)]
    return [*init, *(frame.reads or ()), *(frame.writes or ()), *(m.source for m in frame.matched), *sizes]


def _rebound(part: T, buffers: Mapping[Buffer, Buffer]) -> T:
    """part with other buffers in the place of some."""
    def swap(n: Node) -> Node | None:
        new = buffers.get(n.buffer) if isinstance(n, (Load, Store, BufferRegion)) else None
        return None if new is None else n.replace(buffer=new)      # type: ignore[attr-defined]
    return rewrite(part, swap)


def all_values(r: Range, domains: Mapping[Var, Range]) -> Range:
    """The domain of a loop in terms of no other loop: all values that it takes; r where that is not known."""
    if not any(n in domains for n in walk(r) if isinstance(n, Var)):
        return r
    analyzer, limits = Analyzer(), {v: (d.min, d.extent) for v, d in domains.items()}
    last: Expr = r.min + r.extent - IntImm(1, r.min.dtype)
    first, end = (interval_of(e, limits, analyzer) for e in (r.min, last))
    if first is None or end is None:
        return r
    return Range(first[0], analyzer.simplify(end[0] + end[1] - first[0]))
