"""Which points of its domain a block runs, where these are a box."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from tilewright.arith.itermap import detect_iter_map
from tilewright.arith.linear import linear
from tilewright.arith.regions import intervals_of
from tilewright.schedule.analysis.density import shows_empty
from tilewright.schedule.analysis.domains import Domains, Interval, domain_of, domains_of
from tilewright.schedule.analysis.iteration import is_plain, runs_once
from tilewright.schedule.analysis.mixed_radix import is_number, reach
from tilewright.schedule.outside import outside_of
from tilewright.schedule.schedule import Schedule
from tilewright.tir.arithmetic import all_of, binary
from tilewright.tir.buffer import Load
from tilewright.tir.expr import Binary, Expr, IntImm, Var
from tilewright.tir.iter_var import COMM_REDUCE, DATA_PARALLEL
from tilewright.tir.node import walk
from tilewright.tir.stmt import BlockRealize


@dataclass(slots=True)
class BoxRun:
    """A block runs for the points of a box, an interval for each data-parallel iter var, that are in its domain.

    Except where one of the loops `idle`, which drive no reduction, has no iterations: then it runs for none.
    """
    box: dict[Var, Interval]
    idle: dict[Var, Expr]                          # loop variables and extents


def box_run(sch: Schedule, realize: BlockRealize) -> BoxRun | None:
    """The points for which a block runs; None where they are not known to be a box.

    Loops over a part of a domain run a box. Two iter vars that follow one loop run a diagonal, an inner loop as long as
    an outer one has got runs a triangle, and steps of two leave out every other point. The predicate must say no more
    than that the iter vars are in their domains.
    """
    loops = sch.index.loops_above(realize)
    pairs = [(iv, value) for iv, value in realize.bound if iv.iter_type == DATA_PARALLEL]
    if all(isinstance(a.min, IntImm) and isinstance(a.extent, IntImm) and a.extent.value > 0 for a in loops) and all(
            is_plain(iv, value, loops) for iv, value in pairs) and len({value for _, value in pairs}) == len(pairs):
        return BoxRun({iv.var: domain_of(iv) for iv, _ in pairs}, {})        # most blocks: nothing is to be proved
    values, ranges = reach(realize, domains_of(loops), outside_of(sch.index).lets)
    exprs, analyzer = [values[iv.var] for iv, _ in pairs], sch.analyzer_at(None)
    moved = _moved(exprs, ranges)
    apart, driving = not _meet(moved), set().union(*moved)
    told = driving                                 # loops over the whole domain have iterations, unless it is empty
    box: Sequence[Interval | None] = [domain_of(iv) for iv, _ in pairs]
    if not apart or not all(is_plain(iv, value, loops) for iv, value in pairs):
        if apart and all(_gapless(e, ranges) for e in exprs):
            box = intervals_of(exprs, ranges, analyzer, widen=False)
            told = {v for e in exprs for v in _told(e, ranges) if isinstance(v, Var) and shows_empty(
                v, exprs, ranges, analyzer)}
        elif not runs_once(pairs, loops, realize.predicate, analyzer):
            mapping = detect_iter_map(exprs, {v: d for v, d in ranges.items() if v in driving}, None, analyzer)
            box = list(mapping.outputs) if mapping is not None and mapping.is_bijective else [None for _ in pairs]
            told = {v for v in driving if isinstance(v, Var) and not any(n in ranges for n in walk(ranges[v][1]))
                    and shows_empty(v, [v], ranges, analyzer)}
    known = {iv.var: found for (iv, _), found in zip(pairs, box, strict=True) if found is not None and not any(
        isinstance(n, Load) or n in ranges for e in found for n in walk(e))}
    if len(known) < len(pairs):
        return None
    steps = {n for iv in realize.block.iter_vars if iv.iter_type == COMM_REDUCE for n in walk(values[iv.var])}
    analyzer.assume(all_of(*[binary("gt", iv.domain.extent, 0) for iv, _ in pairs]))
    return BoxRun(known, {v: extent for v, (_, extent) in ranges.items() if v not in told and v not in steps
                          and not analyzer.prove(binary("gt", extent, 0))})


def _told(e: Expr, ranges: Domains) -> set[Expr]:
    """The variables of e whose having no values shows: then the interval of e is empty."""
    moving = {v: k for v, k in linear(e)[0].items() if any(n in ranges for n in walk(v))}
    alone = len(moving) == 1 and abs(next(iter(moving.values()))) == 1
    return set(moving) if all(v in ranges for v in moving) and (alone or is_number(moving, ranges)) else set()


def _moved(exprs: Sequence[Expr], ranges: Domains) -> list[set[Expr]]:
    """The variables of ranges in each of exprs."""
    return [{n for n in walk(e) if isinstance(n, Var) and n in ranges} for e in exprs]


def _meet(sets: Sequence[set[Expr]]) -> bool:
    return any(a & b for a, b in combinations(sets, 2))


def _gapless(e: Expr, ranges: Domains) -> bool:
    """True when e takes every value between its least and its greatest one, maybe more than once, while the variables
    range freely."""
    reached = 1                                    # this many neighbouring values at least
    moving = [(abs(k), atom) for atom, k in linear(e)[0].items() if any(n in ranges for n in walk(atom))]
    if _meet(_moved([atom for _, atom in moving], ranges)):
        return False
    for k, atom in sorted(moving, key=lambda term: term[0]):
        if k > reached:
            return False
        if isinstance(atom, Var):
            extent = ranges[atom][1]
            reached += k * (extent.value - 1) if isinstance(extent, IntImm) else 0
        elif not (isinstance(atom, Binary) and atom.op == "floordiv" and isinstance(atom.b, IntImm)
                  and atom.b.value > 0 and _gapless(atom.a, ranges)):
            return False
    return True
