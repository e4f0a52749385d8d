"""Whether the loops around a block run exactly the domain of its iter vars."""
from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from itertools import takewhile

from tilewright.arith.analyzer import Analyzer
from tilewright.arith.itermap import detect_iter_map
from tilewright.arith.linear import linear
from tilewright.arith.regions import interval_of
from tilewright.schedule.analysis.domains import (
    Domains,
    Interval,
    axis_domains,
    domain_bounds,
    domain_of,
    domains_of,
)
from tilewright.schedule.analysis.mixed_radix import coefficients_of, reach
from tilewright.schedule.analysis.required import Place
from tilewright.schedule.outside import outside_of
from tilewright.schedule.schedule import Schedule
from tilewright.schedule.state import Index
from tilewright.support.errors import legal
from tilewright.tir.arithmetic import all_of, binary, conjuncts, maximum, minimum
from tilewright.tir.buffer import BufferRegion, Load
from tilewright.tir.conversion import cast, is_const
from tilewright.tir.empty_reductions import left_by_start, may_be_empty, speaks_of
from tilewright.tir.expr import Binary, Expr, IntImm, Var
from tilewright.tir.iter_var import COMM_REDUCE, DATA_PARALLEL, IterVar, Range
from tilewright.tir.node import same, substitute, walk
from tilewright.tir.stmt import Block, BlockRealize, For, IfThenElse, Stmt, While


def domain_conditions(realize: BlockRealize) -> Iterator[Expr]:
    """Each iter var's value lies in its domain."""
    for iv, value in realize.bound:
        yield from domain_bounds(iv, value)


def beyond_domain(realize: BlockRealize, analyzer: Analyzer) -> list[Expr]:
    """The parts of the predicate that say more than that the iter vars are in their domains."""
    parts = list(conjuncts(realize.predicate))
    if not parts:
        return []
    with analyzer.constraint(all_of(*domain_conditions(realize))):
        left = [p for p in parts if not analyzer.prove(p)]
    return [p for p in left if not _about_quotient(p, realize)]


def unsure_start(realize: BlockRealize, loops: Sequence[For], analyzer: Analyzer,
                 inside: Sequence[For] | None = None) -> str:
    """Why the first iteration of the loops that drive a reduction may not be the step that starts it; "" where it is.

    A step that does not run starts nothing: then the reduction goes on from what was there. A reduction over no
    elements starts all the same. inside: the loops ahead of which it is to start, if not ahead of all.
    """
    reductions = [(iv, value) for iv, value in realize.bound if iv.iter_type == COMM_REDUCE]
    steps = {n for _, value in reductions for n in walk(value)}
    driving = [loop for loop in loops if loop.loop_var in steps]
    unsure = f"block {realize.block.name} may not start its reduction:"
    ahead = {loop.loop_var for loop in driving if inside is None or loop in inside}
    for loop in loops:
        if loop.loop_var not in steps and any(n in ahead for e in (loop.min, loop.extent) for n in walk(e)):
            return f"{unsure} the iterations of loop {loop.loop_var.name} depend on the step"
    late = late_start(realize, loops, analyzer)
    if late:
        return late
    outer = Analyzer()
    unproven = [loop for loop in (driving if inside is None else inside) if loop in driving and not (
        isinstance(loop.extent, IntImm) and loop.extent.value > 0)]
    if unproven:
        outer.assume(all_of(*[binary("gt", iv.domain.extent, 0) for iv, _ in reductions]))
    for loop in loops if unproven else ():
        if loop in unproven and not outer.prove(binary("gt", loop.extent, 0)) and not sums_nothing(realize.block):
            return f"{unsure} loop {loop.loop_var.name} may have no iterations"
        outer.bind(loop.loop_var, loop.min, loop.extent)
    extra = [part for part in beyond_domain(realize, analyzer) if any(n in steps for n in walk(part))]
    for part in extra:
        if not analyzer.prove(_at_first(part, driving)):
            return f"{unsure} its first step runs only where {part}"
    outputs = [value for iv, value in realize.bound if iv.iter_type != COMM_REDUCE]
    mixed = [value for value in outputs if any(n in ahead for n in walk(value))]
    if mixed and (extra or not runs_once(realize.bound, loops, realize.predicate, analyzer)):
        return f"{unsure} the step decides which output {mixed[0]} is"
    return ""


def late_start(realize: BlockRealize, loops: Sequence[For], analyzer: Analyzer) -> str:
    """Why a step of a reduction, of which loops run each once, may come before the one that starts it; "" where none
    does: the axes are at their least where the loops begin, and the loops count on from there."""
    outputs, steps = ({n for iv, value in realize.bound if (iv.iter_type == COMM_REDUCE) == reduces
                       for n in walk(value)} for reduces in (False, True))
    driving = [loop for loop in loops if loop.loop_var in steps]
    mixed = any(loop.loop_var in outputs for loop in driving)
    for iv, value in realize.bound:
        least, name = iv.domain.min, iv.var.name
        why = ""
        if iv.iter_type == COMM_REDUCE and not analyzer.equal(_at_first(value, driving), least):
            why = f"its loops begin at {name} = {value}, which need not be {least} there"
        elif mixed and not _counts_on(value, loops):
            why = f"loops of outputs run its steps, and do not count on in {name} = {value}"
        if why:
            return f"block {realize.block.name} may not start its reduction: {why}"
    return ""


def _at_first(e: Expr, loops: Sequence[For]) -> Expr:
    """e in the first iteration of loops."""
    for loop in reversed(loops):
        e = substitute(e, {loop.loop_var: loop.min})
    return e


def _counts_on(value: Expr, loops: Sequence[For]) -> bool:
    """True when what value divides is a number of which an inner loop is a lower digit, so that it grows from each
    iteration of loops to the next."""
    variables = {loop.loop_var: None for loop in loops}
    for node in walk(value):
        if isinstance(node, Binary) and node.op in ("floordiv", "floormod"):
            terms = linear(node.a)[0]
            scales = [terms[v] for v in variables if v in terms]
            if scales != sorted(scales, reverse=True) or any(
                    n in variables for v in terms if v not in variables for n in walk(v)):
                return False
    return True


def _about_quotient(part: Expr, realize: BlockRealize) -> bool:
    """True for `x < c*n` where some iter var, whose domain ends at n, has the value x // c: the same condition."""
    if not isinstance(part, Binary) or part.op != "lt":
        return False
    for iv, value in realize.bound:
        if isinstance(value, Binary) and value.op == "floordiv" and bool(binary("eq", value.a, part.a)):
            limit = binary("mul", binary("add", iv.domain.min, iv.domain.extent), value.b)
            gap, rest = linear(binary("sub", limit, part.b))
            if not gap and rest == 0:
                return True
    return False


def branches_of_its_own(index: Index, stmt: Stmt, other: Stmt) -> list[Stmt]:
    """The `if` and `while` around a statement under which another one does not stand, or in the other case."""
    path = index.path_to(stmt)
    shared = sum(1 for _ in takewhile(lambda both: both[0] is both[1], zip(path, index.path_to(other), strict=False)))
    return [s for s in path[shared - 1:-1] if isinstance(s, (IfThenElse, While))]


def require_no_branch(sch: Schedule, realize: BlockRealize, beside: Stmt | None = None) -> None:
    """No `if` or `while` stands around the block that is not around `beside`, or else the block around, as well."""
    own = branches_of_its_own(sch.index, realize, sch.index.scope_of(realize) if beside is None else beside)
    legal(not own, f"block {realize.block.name} stands below a condition; staged or moved, it would lose it",
          realize, *own[:1])


def require_whole_iteration(sch: Schedule, realize: BlockRealize, beside: Stmt | None = None) -> None:
    """The loops around the block run its domain: nothing but the domain is asked of the iter vars, and each
    reduction runs over all of its domain, from its first step on, for each point of the others. Conditions do not
    count under which `beside` stands too."""
    block, loops = realize.block, sch.index.loops_above(realize)
    require_no_branch(sch, realize, beside)
    lets = outside_of(sch.index).lets
    pairs = realize.bound
    unknown = next(((iv, v) for iv, v in pairs if any(isinstance(n, Load) or n in lets for n in walk(v))), None)
    legal(unknown is None, "" if unknown is None else f"axis {unknown[0].var.name} of block {block.name} is "
          f"{unknown[1]}, which depends on data or a let", realize)
    reductions = [(iv, value) for iv, value in pairs if iv.iter_type == COMM_REDUCE]
    simple = not reductions or len({value for _, value in pairs}) == len(pairs) and all(
        is_plain(iv, value, loops) for iv, value in pairs)
    if simple and is_const(realize.predicate, 1):                        # most blocks: nothing is to be proved
        return
    analyzer = sch.analyzer_at(realize)
    extra = beyond_domain(realize, analyzer)
    legal(not extra, f"block {block.name} runs only where {extra[0] if extra else ''}; moved, it would lose that "
          "condition", realize)
    if simple or sums_nothing(block):
        return
    used = {n for _, value in reductions for n in walk(value)}
    chosen = pairs if any(n in used for iv, v in pairs if iv.iter_type != COMM_REDUCE for n in walk(v)) else reductions
    legal(runs_once(chosen, loops, realize.predicate, sch.analyzer_at(None)),
          f"the loops around block {block.name} are not shown to run its reduction exactly once", realize)
    late = "" if block.init is None else late_start(realize, loops, analyzer)
    legal(not late, late, realize)


def is_plain(iv: IterVar, value: Expr, loops: Sequence[For]) -> bool:
    """True when value is the variable of a loop over exactly the domain of iv."""
    return any(value is loop.loop_var and same(loop.extent, iv.domain.extent) and same(loop.min, iv.domain.min)
               for loop in loops)


def runs_once(pairs: Sequence[tuple[IterVar, Expr]], loops: Sequence[For], predicate: Expr,
              analyzer: Analyzer) -> bool:
    """True when the loops that occur in the values take the iter vars through their domain, each point once.

    The predicate must say no more than that the iter vars are in their domains, and analyzer must not know that the
    loops run.
    """
    used = {n for _, value in pairs for n in walk(value)}
    domains = {v: d for v, d in domains_of(loops).items() if v in used}
    if not _run_where_needed(domains, pairs, analyzer):
        return False
    numbers = coefficients_of([value for _, value in pairs], domains)
    if numbers is not None:
        return all(_reaches(iv, value, digits, domains, analyzer)
                   for (iv, value), digits in zip(pairs, numbers, strict=True))
    around = {loop.loop_var for loop in loops}
    parts = [p for p in conjuncts(predicate) if all(n in domains for n in walk(p) if n in around)]
    mapping = detect_iter_map([value for _, value in pairs], domains, all_of(*parts), analyzer)
    if mapping is not None and mapping.is_bijective and all(
            analyzer.equal(low, iv.domain.min) and analyzer.equal(size, iv.domain.extent)
            for (iv, _), (low, size) in zip(pairs, mapping.outputs, strict=True)):
        return True
    # Without the predicate the loops fill a box, out of which the predicate leaves the domain.
    mapping = detect_iter_map([value for _, value in pairs], domains, None, analyzer)
    return mapping is not None and mapping.is_bijective and all(
        _holds(low, size, iv, analyzer) for (iv, _), (low, size) in zip(pairs, mapping.outputs, strict=True))


def _run_where_needed(domains: Domains, pairs: Sequence[tuple[IterVar, Expr]], analyzer: Analyzer) -> bool:
    """True when the loops have iterations wherever the domains of the axes have points: those of outputs where there
    are outputs, the others where there are steps, too."""
    if all(isinstance(extent, IntImm) and extent.value > 0 for _, extent in domains.values()):
        return True
    outputs = [(iv, value) for iv, value in pairs if iv.iter_type != COMM_REDUCE]
    for part in (outputs, pairs):
        sizes = [iv.domain.extent for iv, _ in part]
        driving = {n for _, value in part for n in walk(value)}
        with analyzer.constraint(all_of(*[binary("gt", size, 0) for size in sizes])):
            for v, (low, extent) in () if any(is_const(size, 0) for size in sizes) else domains.items():
                if v not in driving:
                    continue
                if not analyzer.prove(binary("gt", extent, 0)):
                    return False
                analyzer.bind(v, low, extent)
    return True


def _holds(low: Expr, size: Expr, iv: IterVar, analyzer: Analyzer) -> bool:
    """True when the interval (low, size) holds the domain of iv; a reduction begins where the interval does."""
    starts = analyzer.equal(low, iv.domain.min) if iv.iter_type != DATA_PARALLEL else analyzer.prove(
        binary("le", low, iv.domain.min))
    return starts and analyzer.prove(
        binary("ge", binary("add", low, size), binary("add", iv.domain.min, iv.domain.extent)))


def _reaches(iv: IterVar, value: Expr, digits: Mapping[Expr, int], domains: Domains, analyzer: Analyzer) -> bool:
    """True when value, a number with these digits, goes through the domain of iv."""
    first: Expr = value
    last: Expr = value
    for v in digits:
        least, extent = domains[v]  # type: ignore[index]
        first = substitute(first, {v: least})
        last = substitute(last, {v: binary("sub", binary("add", least, extent), 1)})
    return _holds(first, binary("sub", binary("add", last, 1), first), iv, analyzer)


def reading_domain(sch: Schedule, realize: BlockRealize, region: BufferRegion) -> list[Interval | None]:
    """The box of a region of the block over all iterations that its loops run; None for an unknown dimension."""
    domains = axis_domains(narrowed(sch, realize, to_move=False).iter_vars)
    analyzer = sch.analyzer_at(None)
    out: list[Interval | None] = []
    for r in region.region:
        found = interval_of(r.min, domains, analyzer) if isinstance(r.extent, IntImm) else None
        known = found is not None and not any(isinstance(n, Load) or n in domains for e in found for n in walk(e))
        out.append((found[0], binary("add", found[1], binary("sub", r.extent, 1))) if found and known else None)
    return out


def narrowed(sch: Schedule, realize: BlockRealize, to_move: bool = True) -> Block:
    """The block with the domains of its data-parallel iter vars cut to the box that the loops around it run.

    Wherever the block runs from now on, no more than that can be needed, and no more may find its inputs. So with
    to_move, of a block that runs a known box, no more than that is left, also where the domain may end before.
    """
    loops = sch.index.loops_above(realize)
    place = Place(sch.analyzer_at(None), frozenset())
    values, ranges = reach(realize, domains_of(loops), outside_of(sch.index).lets)
    variables = {loop.loop_var for loop in loops}
    left = left_by_start(realize, loops) if may_be_empty(realize.block) else ()
    iter_vars = []
    for iv, value in realize.bound:
        whole = is_plain(iv, value, loops) or speaks_of(left, value)     # a reduction over nothing starts all of it
        if iv.iter_type == DATA_PARALLEL and not whole:
            hull = interval_of(values[iv.var], ranges, place.analyzer)
            ends = [] if hull is None else [("ge", hull[0]), ("lt", binary("add", *hull))]
            iv = cut(iv, [*ends, *_limits(realize.predicate, value)], variables, place.analyzer)
            exact = interval_of(values[iv.var], ranges, place.analyzer, widen=False) if to_move else None
            known = exact is not None and not any(isinstance(n, Load) or n in ranges for e in exact for n in walk(e))
            if exact is not None and known and not _reaches_ends(iv, exact, place.analyzer):
                iv = _meeting(iv, exact, place.analyzer)
        iter_vars.append(iv)
    same = all(a is b for a, b in zip(iter_vars, realize.block.iter_vars, strict=True))
    return realize.block if same else realize.block.replace(iter_vars=tuple(iter_vars))


def never_runs(sch: Schedule, block: Block) -> bool:
    """True when the domain of block is shown to hold no point, and it starts no reduction over nothing.

    Then the block is the same program wherever it stands, below conditions that keep to its domain.
    """
    extents = [iv.domain.extent for iv in block.iter_vars if block.init is None or iv.iter_type != COMM_REDUCE]
    if all(isinstance(e, IntImm) for e in extents):                       # most blocks: nothing is to be proved
        return any(isinstance(e, IntImm) and e.value <= 0 for e in extents)
    prove = sch.analyzer_at(None).prove
    return any(prove(binary("le", e, 0)) for e in extents)


def sums_nothing(block: Block) -> bool:
    """True for a reduction over no elements of outputs that exist: its init runs, though its loops do not.

    Of blocks without outputs the init must not run either.
    """
    empty = {iv.iter_type == COMM_REDUCE for iv in block.iter_vars if is_const(iv.domain.extent, 0)}
    return empty == {True}


def _reaches_ends(iv: IterVar, hull: Interval, analyzer: Analyzer) -> bool:
    """True when the interval hull is shown to hold the domain of iv."""
    extent = iv.domain.extent
    if isinstance(extent, Binary) and extent.op == "max" and is_const(extent.b, 0):
        extent = extent.a                                           # of an empty domain nothing is needed
    end, last = binary("add", iv.domain.min, extent), binary("add", *hull)
    with analyzer.constraint(binary("gt", extent, 0)):
        return analyzer.prove(binary("le", hull[0], iv.domain.min)) and analyzer.prove(binary("ge", last, end))


def _meeting(iv: IterVar, interval: Interval, analyzer: Analyzer) -> IterVar:
    """iv with its domain cut to an interval, whichever of them ends first."""
    (low, size), (least, extent) = domain_of(iv), (cast(iv.var.dtype, e) for e in interval)
    first = analyzer.simplify(maximum(low, least))
    last = minimum(binary("add", low, size), binary("add", least, extent))
    return iv.replace(dom=Range(first, analyzer.simplify(maximum(binary("sub", last, first), 0))))


def _limits(predicate: Expr, value: Expr) -> Iterator[tuple[str, Expr]]:
    """The parts `value >= e` and `value < e` of predicate, up to a constant on both sides."""
    for part in conjuncts(predicate):
        if isinstance(part, Binary) and part.op in ("ge", "lt"):
            rest, gap = linear(binary("sub", part.a, value))
            if not rest:
                yield part.op, binary("sub", part.b, gap)


def cut(iv: IterVar, limits: Iterable[tuple[str, Expr]], loop_vars: Container[Var], analyzer: Analyzer) -> IterVar:
    """iv with its domain cut by the limits (("ge" or "lt", e)) that are fixed and known to be tighter."""
    low, end = iv.domain.min, analyzer.simplify(binary("add", iv.domain.min, iv.domain.extent))
    first, last = low, end
    for op, limit in limits:
        e = analyzer.simplify(cast(iv.var.dtype, limit))
        if any(n in loop_vars for n in walk(e)):
            continue
        if op == "ge" and analyzer.prove(binary("gt", e, first)):
            first = e
        elif op == "lt" and analyzer.prove(binary("lt", e, last)):
            last = e
    if first is low and last is end:
        return iv
    return iv.replace(dom=Range(first, analyzer.simplify(maximum(binary("sub", last, first), 0))))
