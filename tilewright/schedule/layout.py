"""Primitives that change how a buffer lies in memory: transform_layout."""
from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tilewright.arith.analyzer import Analyzer
from tilewright.arith.itermap import detect_iter_map
from tilewright.arith.regions import interval_of
from tilewright.schedule.index_map import IndexMap
from tilewright.schedule.primitive import PRIMITIVES, primitive
from tilewright.schedule.schedule import Schedule
from tilewright.schedule.state import BlockRV
from tilewright.support.errors import Illegal, require
from tilewright.tir.buffer import Buffer, BufferRegion, Load, MatchBuffer
from tilewright.tir.expr import Call, Expr, IntImm, Range, Var
from tilewright.tir.node import Node, rewrite, walk
from tilewright.tir.stmt import Block, Store


@primitive
def transform_layout(sch: Schedule, block: BlockRV, buffer: tuple[str, int] | str,
                     index_map: Callable[..., Any] | str) -> None:
    """Store a buffer that the function allocates in another order, or with other dimensions.

        B_packed[k, j]
    ->
        B_packed[j // 32, k, j % 32]        # index_map: lambda k, j: (j // 32, k, j % 32)

    buffer: ("read", n) or ("write", n) among the regions of block, or a name. index_map gives the new indices of the
    element at the old ones; every access of the function is rewritten. Where a split does not divide an extent the new
    buffer has elements that nothing uses.

    Legal when the function allocates the buffer, only loads and stores of single elements (or of all of it) use it,
    and index_map gives no two elements the same place.
    """
    realize = sch.realize(block)
    old = chosen_buffer(realize.block, buffer)
    require(not any(old is b for b in sch.func.buffers), f"{old.name} is an argument of the function", realize,
            hint="cache_read or cache_write makes a copy whose layout may change")
    require(not old.strides, f"{old.name} has strides of its own", realize)
    mapped = IndexMap.of(index_map, len(old.shape))
    axes = [Var(name, extent.dtype) for name, extent in zip(mapped.parameters, old.shape)]
    new_indices = mapped.apply(axes)
    analyzer = sch.analyzer_at(realize)
    domains = {v: (IntImm(0, v.dtype), extent) for v, extent in zip(axes, old.shape)}
    understood = detect_iter_map(new_indices, domains, None, analyzer)
    require(understood is not None and understood.is_injective,
            f"the map ({', '.join(map(str, axes))}) -> ({', '.join(map(str, new_indices))}) is not known to give every "
            f"element of {old.name} a place of its own", realize,
            hint="build it from axes, //, % by constants, and sums of multiples")
    _require_plain_writes(sch, old, analyzer)
    new = old.replace(shape=_new_shape(analyzer, new_indices, domains), data=None)
    sch.set_body(rewrite(sch.func.body, _Transform(old, new, mapped, analyzer).step))


def _with_maps_as_text(recorded: Callable[..., None]) -> Callable[..., None]:
    """The primitive, called with its index_map as text: a function in a trace could not be printed or stored."""
    signature = inspect.signature(recorded)

    @functools.wraps(recorded)
    def call(*args: Any, **kwargs: Any) -> None:
        try:
            given = dict(signature.bind(*args, **kwargs).arguments)
            rank = len(chosen_buffer(given["sch"].realize(given["block"]).block, given["buffer"]).shape)
            given["index_map"] = IndexMap.of(given["index_map"], rank)
        except (TypeError, Illegal):               # the primitive says what is wrong, with the program
            return recorded(*args, **kwargs)
        return recorded(**given)

    return call


Schedule.transform_layout = PRIMITIVES["transform_layout"] = transform_layout = _with_maps_as_text(transform_layout)


def chosen_buffer(block: Block, which: tuple[str, int] | str) -> Buffer:
    """The buffer of a block that ("read", n), ("write", n) or a name means. Refuses what means none."""
    regions: Mapping[str, Sequence[BufferRegion]] = {"read": block.reads, "write": block.writes}
    if isinstance(which, str):
        found = [r.buffer for r in (*block.writes, *block.reads) if r.buffer.name == which]
    else:
        pair = isinstance(which, (tuple, list)) and len(which) == 2 and which[0] in regions
        require(pair and type(which[1]) is int, f'the buffer is {which!r}, not ("read", n), ("write", n) or a name')
        found = [r.buffer for n, r in enumerate(regions[which[0]]) if n == which[1]]
    require(bool(found), f"block {block.name} has no buffer {which!r}",
            hint=f"it reads {', '.join(r.buffer.name for r in block.reads) or 'none'} and writes "
                 f"{', '.join(r.buffer.name for r in block.writes) or 'none'}")
    return found[0]


def _new_shape(analyzer: Analyzer, indices: Sequence[Expr],
               domains: Mapping[Var, tuple[Expr, Expr]]) -> tuple[Expr, ...]:
    """The least extents that hold every new index."""
    shape: list[Expr] = []
    for e in indices:
        hull = interval_of(e, domains, analyzer)
        require(hull is not None and analyzer.prove(hull[0] >= 0),
                f"the new index {e} is not known to start at 0 or later")
        assert hull is not None
        shape.append(analyzer.simplify(hull[0] + hull[1]))
    return tuple(shape)


def is_element(region: Sequence[Range]) -> bool:
    """True for the region of one element."""
    return all(isinstance(r.extent, IntImm) and r.extent.value == 1 for r in region)


def _require_plain_writes(sch: Schedule, buffer: Buffer, analyzer: Analyzer) -> None:
    """Every block writes one element of buffer, or all: what it is said to write must not grow."""
    for b in (n for n in walk(sch.func.body) if isinstance(n, Block)):
        for w in b.writes:
            whole = all(analyzer.equal(r.min, IntImm(0, r.min.dtype)) and analyzer.equal(r.extent, d)
                        for r, d in zip(w.region, w.buffer.shape))
            require(w.buffer is not buffer or is_element(w.region) or whole,
                    f"block {b.name} writes a part of {buffer.name} that is no single element", b)


class _Transform:
    """Rewrites every access to `old` into one to `new`."""

    def __init__(self, old: Buffer, new: Buffer, mapped: IndexMap, analyzer: Analyzer) -> None:
        self.old, self.new, self.mapped, self.analyzer = old, new, mapped, analyzer

    def at(self, indices: Sequence[Expr]) -> tuple[Expr, ...]:
        return tuple(self.analyzer.simplify(e) for e in self.mapped.apply(indices))

    def region(self, region: Sequence[Range]) -> tuple[Range, ...]:
        """That of an element is an element; that of anything larger the whole buffer."""
        if is_element(region):
            return tuple(Range(e, IntImm(1, e.dtype)) for e in self.at([r.min for r in region]))
        return tuple(Range(IntImm(0, d.dtype), d) for d in self.new.shape)

    def step(self, n: Node) -> Node | None:
        if isinstance(n, (Load, Store)) and n.buffer is self.old:
            return n.replace(buffer=self.new, indices=self.at(n.indices))
        if isinstance(n, BufferRegion) and n.buffer is self.old:
            return BufferRegion(self.new, self.region(n.region))
        if isinstance(n, MatchBuffer):
            require(n.source.buffer is not self.new, f"{self.old.name} is viewed as another buffer")
        if isinstance(n, Call) and n.op == "access_ptr":
            require(not any(isinstance(x, Load) and x.buffer is self.new for x in walk(n)),
                    f"{self.old.name} is passed by its address")
        if isinstance(n, Block) and any(b is self.old for b in n.alloc_buffers):
            return n.replace(alloc_buffers=tuple(self.new if b is self.old else b for b in n.alloc_buffers))
        return None
