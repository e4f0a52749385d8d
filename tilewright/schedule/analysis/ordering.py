"""What a move may not change: for every two blocks that touch one element, which of them comes first.

An instance of a block (its name and the values of its axes) may run more than once, but stores the same values each
time. All that is said here of values that are written again rests on that, and every move must leave it so: a consumer
may run again where its inputs are complete each time, not where only its last run finds them complete.
"""
from __future__ import annotations

from collections.abc import Iterable, Sequence

from tilewright.arith.dependence import Access, direction_vectors
from tilewright.schedule.analysis.dataflow import is_allocated, is_reduction, readers_of, writers_of
from tilewright.schedule.analysis.density import fills
from tilewright.schedule.analysis.digits import bindings
from tilewright.schedule.analysis.domains import Interval, domains_of
from tilewright.schedule.analysis.iteration import beyond_domain, branches_of_its_own
from tilewright.schedule.analysis.privacy import shared_between
from tilewright.schedule.analysis.required import Place, relaxed
from tilewright.schedule.analysis.threads import divided
from tilewright.schedule.schedule import Schedule
from tilewright.schedule.state import Index
from tilewright.support.errors import legal
from tilewright.tir.arithmetic import binary
from tilewright.tir.buffer import Buffer, BufferRegion
from tilewright.tir.expr import Expr, IntImm, Var
from tilewright.tir.iter_var import COMM_REDUCE
from tilewright.tir.node import substitute, walk
from tilewright.tir.stmt import SERIAL, UNROLLED, Block, BlockRealize, For

BEFORE, AFTER = -1, 1


def common_loops(index: Index, a: BlockRealize, b: BlockRealize) -> list[For]:
    """The loops around both blocks, outermost first."""
    return [x for x, y in zip(index.loops_above(a), index.loops_above(b)) if x is y]


def precedes(index: Index, a: BlockRealize, b: BlockRealize) -> bool:
    """True when a stands before b in the program text."""
    names = list(index.realizes)
    return names.index(a.block.name) < names.index(b.block.name)


def conflicts(a: Block, b: Block, ignore: Sequence[Buffer] = ()) -> list[tuple[BufferRegion, BufferRegion]]:
    """Pairs of regions of one buffer that is not in ignore, of a and of b, at least one of them written."""
    pairs = [(x, y) for x in a.writes for y in (*b.reads, *b.writes)] + [(x, y) for x in a.reads for y in b.writes]
    return [(x, y) for x, y in pairs if x.buffer is y.buffer and not any(x.buffer is z for z in ignore)]


def order(sch: Schedule, index: Index, a: BlockRealize, b: BlockRealize, ignore: Sequence[Buffer] = ()) -> set[int]:
    """{BEFORE} when a comes before b wherever they touch one element, {AFTER} when after; both when either
    may happen; the empty set when they never do. Buffers in `ignore` do not count.

    When every element that b reads was written by a in the same iteration of the loops around both, only that
    counts: what other iterations of a write again has the same value.
    """
    pairs = conflicts(a.block, b.block, ignore)
    if not pairs:
        return set()
    first = precedes(index, a, b)
    shared = common_loops(index, a, b)
    if not shared:
        return {BEFORE if first else AFTER} if vectors(sch, index, a, b, shared, pairs) else set()
    if feeds(sch, index, a, b) if first else feeds(sch, index, b, a):
        return {BEFORE if first else AFTER}
    signs = {_sign(v) for v in vectors(sch, index, a, b, shared, pairs)}
    return {{1: BEFORE, -1: AFTER, 0: BEFORE if first else AFTER}[s] for s in signs}


def _sign(vector: Sequence[int]) -> int:
    return next((x for x in vector if x), 0)


def vectors(sch: Schedule, index: Index, a: BlockRealize, b: BlockRealize, shared: Sequence[For],
            pairs: Iterable[tuple[BufferRegion, BufferRegion]]) -> set[tuple[int, ...]]:
    """The signs of (iteration of b) - (iteration of a), per shared loop, for which a pair of regions may overlap."""
    analyzer = sch.analyzer_at(None)
    variables = [loop.loop_var for loop in shared]
    domains = domains_of(shared)
    out: set[tuple[int, ...]] = set()
    for x, y in pairs:
        out |= direction_vectors(_access(index, a, x, variables), _access(index, b, y, variables),
                                 variables, domains, analyzer)
    return out


def _access(index: Index, realize: BlockRealize, region: BufferRegion, shared: Sequence[Var]) -> Access:
    """The region as an access: a box becomes one index per dimension with a free variable for its extent."""
    values = bindings(realize)
    free: dict[Var, Interval] = {v: d for v, d in domains_of(index.loops_above(realize)).items() if v not in shared}
    indices: list[Expr] = []
    for r in region.region:
        low = substitute(r.min, values)
        if not (isinstance(r.extent, IntImm) and r.extent.value == 1):
            within = Var("w", low.dtype)
            free[within] = (IntImm(0, low.dtype), substitute(r.extent, values))
            low = binary("add", low, within)
        indices.append(low)
    return Access(tuple(indices), realize.predicate, free)


def feeds(sch: Schedule, index: Index, a: BlockRealize, b: BlockRealize) -> bool:
    """True when in each iteration of the loops around both blocks a writes all that b reads of its buffers.

    a must finish its reductions in that iteration and be the only writer; b must write nothing that a touches.
    """
    shared = common_loops(index, a, b)
    outer = frozenset(loop.loop_var for loop in shared)
    if any(x.buffer is y.buffer for x in b.block.writes for y in (*a.block.reads, *a.block.writes)):
        return False
    for iv, value in zip(a.block.iter_vars, a.iter_values, strict=True):
        if iv.iter_type == COMM_REDUCE and any(n in outer for n in walk(value)):
            return False
    if is_reduction(a.block) and a.block.init is None:
        return False
    place = place_in(sch, shared)
    if beyond_domain(a, place.analyzer) or branches_of_its_own(index, a, b):
        return False
    for write in a.block.writes:
        wanted = [r for r in b.block.reads if r.buffer is write.buffer]
        if not wanted:
            continue
        if any(w.block.name != a.block.name for w in writers_of(sch, write.buffer)):
            return False
        inner = _between(index, a, outer)
        if not all(fills(a, write, inner, place, relaxed(b, r, _between(index, b, outer), place)) for r in wanted):
            return False
    return True


def place_in(sch: Schedule, loops: Sequence[For]) -> Place:
    """What is known inside loops (which may have left the function since)."""
    analyzer = sch.analyzer_at(None)
    for loop in loops:
        analyzer.bind(loop.loop_var, loop.min, loop.extent)
    return Place(analyzer, frozenset(loop.loop_var for loop in loops))


def _between(index: Index, realize: BlockRealize, outer: frozenset[Var]) -> dict[Var, Interval]:
    """The loops around realize that are inside the loops `outer`."""
    return {v: d for v, d in domains_of(index.loops_above(realize)).items() if v not in outer}


def require_same_order(sch: Schedule, old: Index, name: str, partners: Iterable[BlockRealize],
                       ignore: Sequence[Buffer] = ()) -> None:
    """The block `name`, moved since `old`, meets each partner (as it stood in old) in the order of old.

    Buffers in `ignore` do not count.
    """
    was, now = old.realizes[name], sch.index.realizes[name]
    for partner in partners:
        there = sch.index.realizes[partner.block.name]
        pairs = conflicts(partner.block, was.block, ignore)
        if not pairs:
            continue
        before = order(sch, old, partner, was, ignore)
        after = order(sch, sch.index, there, now, ignore)
        legal(not before or (len(before) == 1 and after <= before),
              f"moving block {name} could change whether it runs before or after block {partner.block.name}, "
              f"and both touch {pairs[0][0].buffer.name}", was, partner)


def require_no_race(sch: Schedule, name: str) -> None:
    """No two iterations of a parallel, vectorized or thread loop conflict through the block `name`, or through a
    block that writes what it reads.

    A buffer that is used below such a loop only belongs to one iteration, as long as what is read of it was written
    in the same iteration. What the threads of a block do together they may.
    """
    here = sch.index.realizes[name]
    makers = {w.block.name for r in here.block.reads for w in writers_of(sch, r.buffer)}
    for block in [name, *(m for m in makers if m != name)]:
        loops = sch.index.loops_above(sch.index.realizes[block])
        for position, loop in enumerate(loops):
            if loop.kind not in (SERIAL, UNROLLED):
                _require_apart(sch, sch.index.realizes[block], loops[:position + 1])


def _require_apart(sch: Schedule, here: BlockRealize, loops: Sequence[For]) -> None:
    """Iterations of the last of loops do not conflict through the block here."""
    index, loop = sch.index, loops[-1]
    together = divided(sch, loop, loop.thread_tag)
    touched = [r.buffer for r in (*here.block.reads, *here.block.writes)]
    partners = {id(r): r for b in touched for r in (*writers_of(sch, b), *readers_of(sch, b))}
    for partner in partners.values():
        if not any(above is loop for above in index.loops_above(partner)):
            continue
        pairs = [p for p in _shared_pairs(sch, index, partner, here, loop) if p[0].buffer not in together]
        reaching = {v for v in vectors(sch, index, partner, here, loops, pairs) if v[-1] and not any(v[:-1])}
        legal(not reaching, f"iterations of the {loop.kind} loop {loop.loop_var.name} would conflict in "
              f"{pairs[0][0].buffer.name if pairs else ''} between blocks {partner.block.name} and {here.block.name}",
              loop, here, hint=f"move blocks before {loop.loop_var.name} is made {loop.kind}")


def _shared_pairs(sch: Schedule, index: Index, a: BlockRealize, b: BlockRealize,
                  loop: For) -> list[tuple[BufferRegion, BufferRegion]]:
    """The conflicts of a and b in elements that two iterations of loop may see."""
    pairs = conflicts(a.block, b.block)
    if not pairs:
        return pairs
    own = {id(x.buffer) for x, _ in pairs if _is_private(sch, index, x.buffer, loop)}
    first, second = (a, b) if precedes(index, a, b) else (b, a)
    if a is b or feeds(sch, index, first, second):
        return [(x, y) for x, y in pairs if id(x.buffer) not in own]
    written = {id(x.buffer) for x in a.block.writes} & {id(y.buffer) for y in b.block.writes}
    return [(x, y) for x, y in pairs if not (id(x.buffer) in own and id(x.buffer) in written)]


def _is_private(sch: Schedule, index: Index, buffer: Buffer, loop: For) -> bool:
    """True when buffer is used below loop only, so that each of its iterations can have one."""
    return is_allocated(sch, buffer) and not shared_between(buffer, index.path_to(loop)) and all(
        any(above is loop for above in index.loops_above(user))
        for user in (*writers_of(sch, buffer), *readers_of(sch, buffer)))
