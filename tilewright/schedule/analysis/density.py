"""Dense regions: whether a block touches every element of the box that a region of it spans, and which box that is."""
from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Any

from tilewright.arith.analyzer import Analyzer
from tilewright.arith.forms import form_of
from tilewright.arith.itermap import detect_iter_map
from tilewright.arith.linear import linear
from tilewright.arith.regions import intervals_of, union
from tilewright.schedule.analysis.accesses import Collector, Touch
from tilewright.schedule.analysis.domains import Domains, Interval, axis_domains, bind_axes, domain_bounds
from tilewright.schedule.analysis.mixed_radix import bindings, coefficients_of, reach
from tilewright.schedule.analysis.required import Place, inside, usable
from tilewright.tir.accesses import reads_memory
from tilewright.tir.arithmetic import all_of, binary
from tilewright.tir.buffer import BufferRegion, element_region
from tilewright.tir.conversion import is_const
from tilewright.tir.expr import Expr, IntImm, Var
from tilewright.tir.iter_var import IterVar
from tilewright.tir.node import statements, substitute, walk
from tilewright.tir.stmt import Block, BlockRealize, For, IfThenElse, Stmt, Store, While


def is_dense(realize: BlockRealize, region: BufferRegion, inner: Domains, place: Place) -> bool:
    """True when a region of the block touches every element of its box while the loops `inner` run.

    Elements outside the domains of the iter vars do not count.
    """
    if _has_conditions(realize.block.body) or not _is_exact(realize.block, region, place):
        return False
    if not _runs_or_tells(realize, region, inner, place):
        return False
    values, ranges = reach(realize, inner, place.lets)
    lows = [substitute(r.min, values) for r in region.region]
    points = all(isinstance(r.extent, IntImm) and r.extent.value == 1 or not any(n in ranges for n in walk(low))
                 for r, low in zip(region.region, lows, strict=True))
    return points and _independent(lows, ranges, place) and _cut_to_box(realize, region, inner, place) and _runs_at_all(
        realize, inner, place, {n for r in region.region for n in walk(r.min)}, _in_bounds(realize, region, place))


def _runs_or_tells(realize: BlockRealize, region: BufferRegion, inner: Domains, place: Place) -> bool:
    """True when the loops `inner` have iterations wherever one of the place does not have the same number as another,
    or where they have none the box of the region shows it."""
    values, analyzer = bindings(realize, place.lets), place.analyzer
    telling = {v for r in region.region for v in linear(substitute(r.min, values))[0]}
    with analyzer.scope():
        for v, (low, extent) in inner.items():
            fixed = place.fixed(extent) and not any(n in inner for n in walk(extent)) and not reads_memory(extent)
            if v not in telling and not fixed and not analyzer.prove(binary("gt", extent, 0)):
                return False
            analyzer.bind(v, low, extent)
    return True


def box_where(realize: BlockRealize, region: BufferRegion, inner: Domains, place: Place,
              conditions: Sequence[Expr]) -> list[Interval] | None:
    """The box of which the block touches every element, at one of them each time, while the loops `inner` run and the
    conditions, on these loops alone, hold; None where there is no such box. Domains count as in is_dense.
    """
    if _has_conditions(realize.block.body) or not all(is_const(r.extent, 1) for r in region.region):
        return None
    lows = [substitute(r.min, bindings(realize, place.lets)) for r in region.region]
    domains = {v: d for v, d in inner.items() if any(n is v for low in lows for n in walk(low))}
    known = all(isinstance(extent, IntImm) and extent.value > 0 for _, extent in inner.values())
    if not known or any(isinstance(n, Var) and n not in domains for c in conditions for n in walk(c)):
        return None
    mapping = detect_iter_map(lows, domains, all_of(*conditions), place.analyzer)
    if mapping is None or not mapping.is_bijective or not _cut_to_box(realize, region, inner, place):
        return None
    indexed = {n for r in region.region for n in walk(r.min)}
    held = all_of(_in_bounds(realize, region, place), *conditions)
    return list(mapping.outputs) if _runs_at_all(realize, inner, place, indexed, held) else None


def _has_conditions(body: Stmt) -> bool:
    """True where a statement of a block runs only under a condition, so that regions may hold more than it touches."""
    return not isinstance(body, Store) and any(
        isinstance(n, (IfThenElse, While)) or isinstance(n, BlockRealize) and not isinstance(n.predicate, IntImm)
        or isinstance(n, For) and (reads_memory(n.extent) or _may_stand_still(n)) for n in walk(body))


def _may_stand_still(loop: For) -> bool:
    """True for a loop that may have no iterations and tells no place below it, so that the places do not show it."""
    if isinstance(loop.extent, IntImm) and loop.extent.value > 0:
        return False
    places = [e for s in statements(loop.body) if isinstance(s, (Store, BlockRealize))
              for e in (s.indices if isinstance(s, Store) else s.iter_values)]
    return not any(n is loop.loop_var for e in places for n in walk(e))


def _is_exact(block: Block, region: BufferRegion, place: Place) -> bool:
    """True when each iteration of the block touches every element of a region: at indices that come from memory, or
    are checked while the kernel runs, it touches one, and the region is the whole dimension."""
    if all(isinstance(r.extent, IntImm) and r.extent.value == 1 for r in region.region):
        return True
    touches = [t for t in Collector(block.body).touches if t.buffer is region.buffer]
    if not touches:                                # a call or a view: the region is all that is known
        return True
    reads, writes = (any(region is r for r in regions) for regions in (block.reads, block.writes))
    return any(_is_whole(t, block, region, place) for t in touches if reads and t.reads or writes and t.writes)


def _is_whole(touch: Touch, block: Block, region: BufferRegion, place: Place) -> bool:
    """True when the loops in a block lead an access of it to every element of a region."""
    indices, ranges = touch.access.indices, touch.access.domains
    loops = {n.loop_var for n in walk(block.body) if isinstance(n, For)}
    if not isinstance(touch.stmt, BlockRealize) and any(v not in loops for v in ranges):     # an index from memory
        return False
    analyzer = place.analyzer
    with analyzer.scope():
        bind_axes(analyzer, block.iter_vars)
        box = _whole(intervals_of(indices, ranges, analyzer, widen=False), element_region(region.buffer, indices))
        wanted = [(r.min, r.extent) for r in region.region]
        if box is None or not inside(wanted, box, region.buffer, place) or not _independent(indices, ranges, place):
            return False
        for v, (low, extent) in ranges.items():
            analyzer.bind(v, low, extent)
        nested = touch.instance
        return nested is None or all(_in_domain(iv, nested.values[iv.var], analyzer)
                                     for iv in nested.realize.block.iter_vars)


def fills(realize: BlockRealize, region: BufferRegion, inner: Domains, place: Place, box: Sequence[Interval]) -> bool:
    """True when a region of the block touches every element of box, cut to the buffer, while the loops `inner` run."""
    if not is_dense(realize, region, inner, place):
        return False
    boxes = (filled_box(realize, region, inner, place), domain_box(realize, region, place))
    return all(given is not None and inside(box, given, region.buffer, place) for given in boxes)


def filled_box(realize: BlockRealize, region: BufferRegion, inner: Domains, place: Place) -> list[Interval] | None:
    """The box that a dense region covers while the loops `inner` run, not widened; None where it is not known."""
    values, ranges = reach(realize, inner, place.lets)
    lows = [substitute(r.min, values) for r in region.region]
    return _whole(intervals_of(lows, ranges, place.analyzer, widen=False), region)


def domain_box(realize: BlockRealize, region: BufferRegion, place: Place) -> list[Interval] | None:
    """The box that a region covers while the iter vars run over their domains; None where it is not known."""
    own = axis_domains(realize.block.iter_vars)
    return _whole(intervals_of([r.min for r in region.region], own, place.analyzer), region)


def _whole(lows: Sequence[Interval | None], region: BufferRegion) -> list[Interval] | None:
    """The box of a region from the intervals of its first elements; None when one is missing."""
    known = [low for low in lows if low is not None]
    return None if len(known) < len(lows) else [
        (low, binary("add", extent, binary("sub", r.extent, 1)))
        for (low, extent), r in zip(known, region.region, strict=True)]


def _independent(exprs: Sequence[Expr], ranges: Domains, place: Place) -> bool:
    """True when the values of exprs fill a box while the variables run over their ranges, none of which is empty, but
    where the box shows it."""
    if any(isinstance(extent, IntImm) and extent.value <= 0 for _, extent in ranges.values()):
        return False
    if not all(shows_empty(v, exprs, ranges, place.analyzer) for v in ranges):
        return False
    if coefficients_of(exprs, ranges) is not None:
        return True
    occurring = {n for e in exprs for n in walk(e)}
    domains = {v: d for v, d in ranges.items() if v in occurring}
    mapping = detect_iter_map(list(exprs), domains, IntImm(1, "bool"), place.analyzer)
    return mapping is not None and mapping.is_bijective


def shows_empty(v: Var, exprs: Sequence[Expr], ranges: Domains, analyzer: Analyzer) -> bool:
    """True when the range of a variable that exprs use is not empty, or the interval of one of exprs shows that.

    It does for a term k * v. Of i // 4, and of a variable that never has more than one value, the interval holds that
    value all the same.
    """
    extent = ranges[v][1]
    if isinstance(extent, IntImm) or not any(n is v for e in exprs for n in walk(e)) or analyzer.prove(
            binary("gt", extent, 0)):
        return True
    most = analyzer.bounds_of(form_of(analyzer, extent))[1]
    return (most is None or most > 1) and any(v in linear(e)[0] for e in exprs)


def _cut_to_box(realize: BlockRealize, region: BufferRegion, inner: Domains, place: Place) -> bool:
    """True when the domains of the iter vars leave a whole box of what a dense region touches: i // 4, i % 4 with i
    below 18 is none, even where the loops run i to 20."""
    own = axis_domains(realize.block.iter_vars)
    lows = [r.min for r in region.region]
    terms = [[a for a in linear(low)[0] if any(n in own for n in walk(a))] for low in lows]
    atoms = [a for along in terms for a in along]
    if len(set(atoms)) == len(atoms) and all(a in own for a in atoms) and all(len(along) < 2 for along in terms):
        return True
    values, ranges = reach(realize, inner, place.lets)
    used = [iv for iv in realize.block.iter_vars if any(iv.var is n for low in lows for n in walk(low))]
    analyzer = place.analyzer
    with analyzer.scope():
        for v, (low, extent) in ranges.items():
            analyzer.bind(v, low, extent)
        if all(_in_domain(iv, values[iv.var], analyzer) for iv in used):
            return True
    run = intervals_of([values[iv.var] for iv in used], ranges, analyzer)
    hulls = {iv.var: union([[r], [own[iv.var]]], analyzer)[0] for iv, r in zip(used, run, strict=True) if r is not None}
    mapping = detect_iter_map(lows, hulls, IntImm(1, "bool"), analyzer) if len(hulls) == len(used) else None
    return mapping is not None and mapping.is_injective and _independent(lows, own, place)


def _in_bounds(realize: BlockRealize, region: BufferRegion, place: Place) -> Expr:
    """The condition that the region starts inside its buffer, in loop variables."""
    values = bindings(realize, place.lets)
    lows = [(substitute(r.min, values), dim) for r, dim in zip(region.region, region.buffer.shape, strict=True)]
    return all_of(*[c for low, dim in lows for c in (binary("ge", low, 0), binary("lt", low, dim))])


def _runs_at_all(realize: BlockRealize, inner: Domains, place: Place, indexed: Container[Any],
                 in_bounds: Expr | None) -> bool:
    """True when no iter var keeps the block from running in any iteration of the place where the element that it
    touches is in_bounds, or in_bounds holds; the indexed iter vars do not count when that is None."""
    analyzer = place.analyzer
    values = bindings(realize, place.lets)
    moving = [(iv, value) for iv in realize.block.iter_vars for value in (values[iv.var],)
              if any(isinstance(n, Var) and n not in inner for n in walk(value))]      # axes of a block around, too
    free = [(iv, value) for iv, value in moving if iv.var not in indexed]
    limited = [(iv, value) for iv, value in moving if iv.var in indexed] if in_bounds is not None else []
    with analyzer.scope():
        for v, (low, extent) in inner.items():
            analyzer.bind(v, low, extent)
        if not all(_in_domain(iv, value, analyzer) for iv, value in free):
            return False
        if limited and in_bounds is not None:
            analyzer.assume(in_bounds)
        return all(_in_domain(iv, value, analyzer) for iv, value in limited)


def _in_domain(iv: IterVar, value: Expr, analyzer: Analyzer) -> bool:
    """True when value is shown to lie in the domain of iv."""
    return all(analyzer.prove(c) for c in domain_bounds(iv, value))


def ranges_of(realize: BlockRealize, variables: Sequence[Var], inner: Domains,
              place: Place) -> dict[Var, Interval] | None:
    """The box that some iter vars fill while the loops `inner` around the block run; None when it has holes."""
    values, ranges = reach(realize, inner, place.lets)
    exprs = [values[v] for v in variables]
    box = dict(zip(variables, intervals_of(exprs, ranges, place.analyzer, widen=False), strict=True))
    fine = {v: b for v, b in box.items() if b is not None and usable(*b, ranges, place)}
    whole = len(fine) == len(box) and _independent(exprs, ranges, place)
    return fine if whole and _runs_at_all(realize, inner, place, variables, None) else None
