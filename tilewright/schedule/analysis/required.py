"""Required regions: what the blocks below a loop touch of a buffer, and the iterations of a block that it takes."""
from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tilewright.arith.analyzer import Analyzer
from tilewright.arith.itermap import detect_iter_map
from tilewright.arith.linear import linear
from tilewright.arith.regions import interval_of, intervals_of, union
from tilewright.schedule.analysis.accesses import Collector, Touch
from tilewright.schedule.analysis.digits import Domains, Interval, bindings, digits_of, reach
from tilewright.tir.buffer import Buffer, BufferRegion, Load
from tilewright.tir.expr import DATA_PARALLEL, Expr, IntImm, IterVar, Range, Var, all_of, binary, cast
from tilewright.tir.node import substitute, walk
from tilewright.tir.stmt import Block, BlockRealize, For, IfThenElse, Stmt, Store


@dataclass(frozen=True)
class Place:
    """A point of the program: what is known there, and the variables of the loops around it."""
    analyzer: Analyzer
    loop_vars: frozenset[Var]

    def fixed(self, extent: Expr) -> bool:
        """True when extent has one value during a call of the function."""
        return isinstance(extent, IntImm) or not any(n in self.loop_vars for n in walk(extent))


def is_dense(realize: BlockRealize, region: BufferRegion, inner: Domains, place: Place) -> bool:
    """True when a region of the block touches every element of its box while the loops `inner` run.

    Elements outside the domains of the iter vars do not count.
    """
    if _has_conditions(realize.block.body) or not _is_exact(realize.block, region, place):
        return False
    values, ranges = reach(realize, inner)
    lows = [substitute(r.min, values) for r in region.region]
    points = all(isinstance(r.extent, IntImm) and r.extent.value == 1 or not any(n in ranges for n in walk(low))
                 for r, low in zip(region.region, lows, strict=True))
    return points and _independent(lows, ranges, place) and _cut_to_box(realize, region, inner, place) and _runs_at_all(
        realize, inner, place, {n for r in region.region for n in walk(r.min)}, _in_bounds(realize, region))


def _has_conditions(body: Stmt) -> bool:
    """True where a statement of a block runs only under a condition, so that regions may hold more than it touches."""
    return not isinstance(body, Store) and any(
        isinstance(n, IfThenElse) or isinstance(n, BlockRealize) and not isinstance(n.predicate, IntImm)
        for n in walk(body))


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
        for iv in block.iter_vars:
            analyzer.bind(iv.var, *_domain(iv))
        box = _whole(intervals_of(indices, ranges, analyzer, widen=False), BufferRegion(
            region.buffer, tuple(Range(i, IntImm(1, i.dtype)) for i in indices)))
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
    values, ranges = reach(realize, inner)
    lows = [substitute(r.min, values) for r in region.region]
    return _whole(intervals_of(lows, ranges, place.analyzer, widen=False), region)


def domain_box(realize: BlockRealize, region: BufferRegion, place: Place) -> list[Interval] | None:
    """The box that a region covers while the iter vars run over their domains; None where it is not known."""
    own = {iv.var: (iv.dom.min, iv.dom.extent) for iv in realize.block.iter_vars if iv.dom is not None}
    return _whole(intervals_of([r.min for r in region.region], own, place.analyzer), region)


def _whole(lows: Sequence[Interval | None], region: BufferRegion) -> list[Interval] | None:
    """The box of a region from the intervals of its first elements; None when one is missing."""
    known = [low for low in lows if low is not None]
    return None if len(known) < len(lows) else [
        (low, binary("add", extent, binary("sub", r.extent, 1)))
        for (low, extent), r in zip(known, region.region, strict=True)]


def _independent(exprs: Sequence[Expr], ranges: Domains, place: Place) -> bool:
    """True when the values of exprs fill a box while the variables run over their ranges, none of which is empty."""
    if any(isinstance(extent, IntImm) and extent.value <= 0 for _, extent in ranges.values()):
        return False
    if digits_of(exprs, ranges) is not None:
        return True
    occurring = {n for e in exprs for n in walk(e)}
    domains = {v: d for v, d in ranges.items() if v in occurring}
    mapping = detect_iter_map(list(exprs), domains, IntImm(1, "bool"), place.analyzer)
    return mapping is not None and mapping.is_bijective


def _cut_to_box(realize: BlockRealize, region: BufferRegion, inner: Domains, place: Place) -> bool:
    """True when the domains of the iter vars leave a whole box of what a dense region touches: i // 4, i % 4 with i
    below 18 is none, even where the loops run i to 20."""
    own = {iv.var: _domain(iv) for iv in realize.block.iter_vars}
    lows = [r.min for r in region.region]
    terms = [[a for a in linear(low)[0] if any(n in own for n in walk(a))] for low in lows]
    atoms = [a for along in terms for a in along]
    if len(set(atoms)) == len(atoms) and all(a in own for a in atoms) and all(len(along) < 2 for along in terms):
        return True
    values, ranges = reach(realize, inner)
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


def _in_bounds(realize: BlockRealize, region: BufferRegion) -> Expr:
    """The condition that the region starts inside its buffer, in loop variables."""
    values = bindings(realize)
    lows = [(substitute(r.min, values), dim) for r, dim in zip(region.region, region.buffer.shape, strict=True)]
    return all_of(*[c for low, dim in lows for c in (binary("ge", low, 0), binary("lt", low, dim))])


def _runs_at_all(realize: BlockRealize, inner: Domains, place: Place, indexed: Container[Any],
                 in_bounds: Expr | None) -> bool:
    """True when no iter var keeps the block from running in any iteration of the place where the element that it
    touches is in_bounds; the indexed iter vars do not count when that is None."""
    analyzer = place.analyzer
    moving = [(iv, value) for iv, value in zip(realize.block.iter_vars, realize.iter_values, strict=True)
              if any(n in place.loop_vars for n in walk(value))]
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
    low, extent = _domain(iv)
    return analyzer.prove(binary("ge", value, low)) and analyzer.prove(binary("lt", value, binary("add", low, extent)))


def ranges_of(realize: BlockRealize, variables: Sequence[Var], inner: Domains,
              place: Place) -> dict[Var, Interval] | None:
    """The box that some iter vars fill while the loops `inner` around the block run; None when it has holes."""
    values, ranges = reach(realize, inner)
    exprs = [values[v] for v in variables]
    box = dict(zip(variables, intervals_of(exprs, ranges, place.analyzer, widen=False), strict=True))
    fine = {v: b for v, b in box.items() if b is not None and _usable(*b, ranges, place)}
    whole = len(fine) == len(box) and _independent(exprs, ranges, place)
    return fine if whole and _runs_at_all(realize, inner, place, variables, None) else None


def relaxed(realize: BlockRealize, region: BufferRegion, inner: Domains, place: Place) -> list[Interval]:
    """The box that a region of the block covers while the loops `inner` around it run, one interval per dimension.

    The whole dimension stands where no better box with a fixed extent is known.
    """
    values, ranges = reach(realize, inner)
    lows = intervals_of([substitute(r.min, values) for r in region.region], ranges, place.analyzer)
    return [_interval(low, r.extent, dim, ranges, place)
            for low, dim, r in zip(lows, region.buffer.shape, region.region, strict=True)]


def _interval(found: Interval | None, size: Expr, dim: Expr, ranges: Domains, place: Place) -> Interval:
    """The interval of a dimension of a region whose first element lies in `found`."""
    if found is None or not isinstance(size, IntImm):
        return IntImm(0, dim.dtype), dim
    least, extent = found[0], place.analyzer.simplify(binary("add", found[1], binary("sub", size, 1)))
    return (least, extent) if _usable(least, extent, ranges, place) else (IntImm(0, dim.dtype), dim)


def _usable(least: Expr, extent: Expr, inner: Domains, place: Place) -> bool:
    """True for a box that is known before the loops `inner` start and whose extent no loop changes."""
    return place.fixed(extent) and not any(isinstance(n, Load) or n in inner for e in (least, extent) for n in walk(e))


def touched(realizes: Iterable[BlockRealize], kind: str, inner_of: Callable[[BlockRealize], Domains],
            place: Place) -> dict[Buffer, list[Interval]]:
    """The hull of the "reads" or "writes" of the blocks, per buffer; inner_of gives the loops to relax over."""
    boxes: dict[Buffer, list[Interval]] = {}
    for realize in realizes:
        for region in getattr(realize.block, kind):
            box = relaxed(realize, region, inner_of(realize), place)
            old = boxes.get(region.buffer)
            boxes[region.buffer] = box if old is None else hull(old, box, region.buffer, place)
    return boxes


def hull(a: Sequence[Interval], b: Sequence[Interval], buffer: Buffer, place: Place) -> list[Interval]:
    """The smallest known box that holds a and b; the whole dimension where its extent is not constant."""
    out = []
    for dim, (least, extent) in zip(buffer.shape, union([a, b], place.analyzer), strict=True):
        out.append((least, extent) if place.fixed(extent) else (IntImm(0, dim.dtype), dim))
    return out


def inside(a: Sequence[Interval], b: Sequence[Interval], buffer: Buffer, place: Place) -> bool:
    """True when box b, cut to the buffer, is shown to hold box a, cut to the buffer."""
    prove = place.analyzer.prove
    for dim, (low, size), (least, extent) in zip(buffer.shape, a, b, strict=True):
        end, last = binary("add", low, size), binary("add", least, extent)
        if not (prove(binary("le", least, low)) or prove(binary("le", least, 0))):
            return False
        if not (prove(binary("le", end, last)) or prove(binary("ge", last, dim))):
            return False
    return True


def solve(block: Block, regions: Sequence[BufferRegion], boxes: Mapping[Buffer, Sequence[Interval]],
          place: Place, within: bool) -> dict[Var, Interval]:
    """The range of each iter var of block for which its `regions` (reads or writes) meet `boxes`.

    within: the regions lie inside the boxes, instead of merely touching them. An iter var that nothing limits, or
    only in a way that is not understood, is left out: it keeps its whole domain. Every range has an extent that
    no loop changes, and holds all solutions (within=False).
    """
    found: dict[Var, Interval] | None = None
    for region in regions:
        box = boxes.get(region.buffer)
        if box is None:
            continue
        one = _solve_region(block, region, box, place, within)
        if found is None:
            found = one
        elif within:
            for var, interval in one.items():
                _keep(found, var, interval)
        else:                                      # what one buffer needs, another may not
            found = {v: hull for v in found if v in one and (hull := _both(found[v], one[v], place)) is not None}
    return found or {}


def _both(a: Interval, b: Interval, place: Place) -> Interval | None:
    """An interval that holds both; None where its extent is not fixed."""
    (least, extent), = union([[a], [b]], place.analyzer)
    return (least, extent) if place.fixed(extent) else None


def _solve_region(block: Block, region: BufferRegion, box: Sequence[Interval], place: Place,
                  within: bool) -> dict[Var, Interval]:
    """solve for one region."""
    found: dict[Var, Interval] = {}
    inner = {iv.var: _domain(iv) for iv in block.iter_vars if iv.iter_type != DATA_PARALLEL}
    known = {iv.var: iv for iv in block.iter_vars}
    single = True
    for r, wanted in zip(region.region, box, strict=True):
        variables = [n for n in walk(r.min) if n in known]
        if not variables:
            continue
        if len(variables) > 1 and any(v in inner for v in variables) and isinstance(r.extent, IntImm):
            window = interval_of(r.min, inner, place.analyzer)
            low, size = window if window is not None else (r.min, r.extent)
            size = place.analyzer.simplify(binary("add", size, r.extent.value - 1))
        else:
            low, size = r.min, r.extent
        solution = _solve_one(low, size, wanted, known, place, within)
        if solution is None:
            single = False
        else:
            _keep(found, *solution)
    if not single:
        for var, interval in _solve_together(block, region, box, place).items():
            _keep(found, var, interval)
    return found


def _domain(iv: IterVar) -> Interval:
    assert iv.dom is not None
    return iv.dom.min, iv.dom.extent


def _keep(found: dict[Var, Interval], var: Var, interval: Interval) -> None:
    """Note a range of var; of two ranges the one with the smaller constant extent stays."""
    old = found.get(var)
    if old is None or (isinstance(interval[1], IntImm) and not (
            isinstance(old[1], IntImm) and old[1].value <= interval[1].value)):
        found[var] = interval


def _solve_one(low: Expr, size: Expr, wanted: Interval, known: Mapping[Var, IterVar], place: Place,
               within: bool) -> tuple[Var, Interval] | None:
    """The range of the one iter var v of low = k*v + c for which [low, low + size) meets the interval wanted."""
    if not isinstance(size, IntImm):
        return None
    terms, offset = linear(low)
    variables = [(v, k) for v, k in terms.items() if v in known]
    if len(variables) != 1 or len(terms) != 1:
        return None
    var, k = variables[0]
    assert isinstance(var, Var)
    least, extent = (cast(var.dtype, e) for e in wanted)
    spare = 0 if within else size.value - 1            # how far the region may stick out on each side
    # first <= k*v <= last
    first = binary("sub", least, offset + spare)
    last = binary("add", binary("add", least, extent), spare - size.value - offset)
    if k < 0:
        first, last, k = binary("sub", 0, last), binary("sub", 0, first), -k
    start = place.analyzer.simplify(binary("floordiv", binary("add", first, k - 1), k))
    count = place.analyzer.simplify(binary("add", binary("sub", binary("floordiv", last, k), start), 1))
    if not isinstance(count, IntImm) and isinstance(extent, IntImm):
        slack = extent.value + (2 * spare if not within else 0) - size.value
        count = IntImm(max(slack, 0) // k + 1, var.dtype)
    if isinstance(count, IntImm):
        return var, (start, IntImm(max(count.value, 0), var.dtype))
    return (var, (start, count)) if place.fixed(count) else None


def _solve_together(block: Block, region: BufferRegion, box: Sequence[Interval],
                    place: Place) -> dict[Var, Interval]:
    """The ranges of iter vars that are mixed in the indices of region, through the inverse of the index map."""
    indices = [r.min for r in region.region]
    used = {n for e in indices for n in walk(e)}
    domains = {iv.var: _domain(iv) for iv in block.iter_vars if iv.var in used}
    if any(not isinstance(r.extent, IntImm) or r.extent.value != 1 for r in region.region):
        return {}
    mapping = detect_iter_map(indices, domains, IntImm(1, "bool"), place.analyzer)
    if mapping is None or not mapping.is_bijective:
        return {}
    points = [Var(f"x{n}", e.dtype) for n, e in enumerate(indices)]
    inverse = mapping.invert(points)
    inner = dict(zip(points, box, strict=True))
    out = {}
    for var in domains:
        if var in inverse:
            hull_of_var = interval_of(inverse[var], inner, place.analyzer)
            if hull_of_var is not None and _usable(*hull_of_var, inner, place):
                out[var] = hull_of_var
    return out
