"""Required regions: what the blocks below a loop touch of a buffer, and the iterations of a block that it takes."""
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tilewright.arith.analyzer import Analyzer
from tilewright.arith.itermap import detect_iter_map
from tilewright.arith.linear import linear
from tilewright.arith.regions import interval_of, intervals_of, union
from tilewright.schedule.analysis.domains import Domains, Interval, axis_domains
from tilewright.schedule.analysis.mixed_radix import reach
from tilewright.schedule.analysis.parts import Part, loops_within
from tilewright.schedule.state import Index
from tilewright.tir.arithmetic import binary
from tilewright.tir.buffer import Buffer, BufferRegion, Load
from tilewright.tir.conversion import cast
from tilewright.tir.expr import Expr, IntImm, Var
from tilewright.tir.iter_var import DATA_PARALLEL, IterVar
from tilewright.tir.node import substitute, walk
from tilewright.tir.stmt import Block, BlockRealize

LARGEST = 2**31 - 1                  # of a cast to int32


@dataclass(frozen=True)
class Place:
    """A point of the program: what is known there, the variables of the loops around it, and what the lets of the
    program bind, in loop variables."""
    analyzer: Analyzer
    loop_vars: frozenset[Var]
    lets: Mapping[Var, Expr] = field(default_factory=dict)

    def fixed(self, extent: Expr) -> bool:
        """True when extent has one value during a call of the function."""
        return isinstance(extent, IntImm) or not any(n in self.loop_vars for n in walk(extent))


def relaxed(realize: BlockRealize, region: BufferRegion, inner: Domains, place: Place) -> list[Interval]:
    """The box that a region of the block covers while the loops `inner` around it run, one interval per dimension.

    The whole dimension stands where no better box with a fixed extent is known.
    """
    values, ranges = reach(realize, inner, place.lets)
    return _relaxed([substitute(r.min, values) for r in region.region], region, ranges, place)


def box_of(part: Part, inner: Domains, place: Place) -> list[Interval]:
    """The box that a part of a buffer covers while the loops `inner` around its block run, as `relaxed` gives it."""
    if not part.outside:
        return relaxed(part.realize, part.region, inner, place)
    return _relaxed([r.min for r in part.region.region], part.region, inner, place)


def _relaxed(lows: Sequence[Expr], region: BufferRegion, ranges: Domains, place: Place) -> list[Interval]:
    found = intervals_of(lows, ranges, place.analyzer)
    return [_interval(low, r.extent, dim, ranges, place)
            for low, dim, r in zip(found, region.buffer.shape, region.region, strict=True)]


def _interval(found: Interval | None, size: Expr, dim: Expr, ranges: Domains, place: Place) -> Interval:
    """The interval of a dimension of a region whose first element lies in `found`."""
    if found is None or not isinstance(size, IntImm):
        return IntImm(0, dim.dtype), dim
    least, extent = found[0], place.analyzer.simplify(binary("add", found[1], binary("sub", size, 1)))
    return (least, extent) if usable(least, extent, ranges, place) else (IntImm(0, dim.dtype), dim)


def usable(least: Expr, extent: Expr, inner: Domains, place: Place) -> bool:
    """True for a box that is known before the loops `inner` start and whose extent no loop changes. One that only the
    limits of a type bound is none."""
    if isinstance(extent, IntImm) and extent.value >= LARGEST:
        return False
    return place.fixed(extent) and not any(isinstance(n, Load) or n in inner for e in (least, extent) for n in walk(e))


def touched(index: Index, parts: Iterable[Part], place: Place) -> dict[Buffer, list[Interval]]:
    """The hull of the parts, per buffer, while the loops inside of the place run."""
    boxes: dict[Buffer, list[Interval]] = {}
    for part in parts:
        inner = loops_within(index, part.realize, place.loop_vars)
        buffer, box = part.region.buffer, box_of(part, inner, place)
        old = boxes.get(buffer)
        boxes[buffer] = box if old is None else hull(old, box, buffer, place)
    return boxes


def hull(a: Sequence[Interval], b: Sequence[Interval], buffer: Buffer, place: Place) -> list[Interval]:
    """The smallest known box that holds a and b; the whole dimension where its extent is not constant."""
    out = []
    for dim, interval in zip(buffer.shape, union([a, b], place.analyzer), strict=True):
        out.append(interval if _is_fixed(interval, place) else (IntImm(0, dim.dtype), dim))
    return out


def _is_fixed(joined: Interval, place: Place) -> bool:
    """True when the extent of a joined interval has one value, which the type of its indices holds."""
    least, extent = joined
    return place.fixed(extent) and extent.dtype == least.dtype


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
    joined, = union([[a], [b]], place.analyzer)
    return joined if _is_fixed(joined, place) else None


def _solve_region(block: Block, region: BufferRegion, box: Sequence[Interval], place: Place,
                  within: bool) -> dict[Var, Interval]:
    """solve for one region."""
    found: dict[Var, Interval] = {}
    inner = axis_domains(iv for iv in block.iter_vars if iv.iter_type != DATA_PARALLEL)
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
    domains = axis_domains(iv for iv in block.iter_vars if iv.var in used)
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
            if hull_of_var is not None and usable(*hull_of_var, inner, place):
                out[var] = hull_of_var
    return out
