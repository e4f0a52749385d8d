"""What a move may not change: for every two blocks that touch one element, which of them comes first.

An instance of a block (its name and the values of its axes) may run more than once. Where it stores the same values
each time (`is_steady`) its consumers may run between two of its runs; where it does not, the order of all accesses
counts. Every move must leave it so: a consumer may run again where its inputs are complete each time, not where only
its last run finds them complete.
"""
from __future__ import annotations

from collections.abc import Iterable, Sequence

from tilewright.arith.dependence import Access, direction_vectors
from tilewright.schedule.analysis.dataflow import (
    gives_one_value,
    inputs_of,
    is_allocated,
    is_below,
    is_reduction,
    is_stage,
    readers_of,
    writers_of,
)
from tilewright.schedule.analysis.density import fills
from tilewright.schedule.analysis.domains import domains_of
from tilewright.schedule.analysis.iteration import beyond_domain, branches_of_its_own, unsure_start
from tilewright.schedule.analysis.mixed_radix import bindings
from tilewright.schedule.analysis.parts import (
    Pair,
    access_of,
    comes_first,
    common_loops,
    conflicts,
    loops_within,
    meeting,
    parts_read,
    parts_written,
    precedes,
)
from tilewright.schedule.analysis.privacy import shared_between
from tilewright.schedule.analysis.region import first_sign
from tilewright.schedule.analysis.required import Place, box_of
from tilewright.schedule.analysis.shared_reductions import filled_together
from tilewright.schedule.outside import outside_of
from tilewright.schedule.schedule import Schedule
from tilewright.schedule.state import Index
from tilewright.support.errors import legal
from tilewright.tir.buffer import Buffer
from tilewright.tir.iter_var import COMM_REDUCE
from tilewright.tir.node import walk
from tilewright.tir.stmt import SERIAL, UNROLLED, BlockRealize, For, Stmt, While

BEFORE, AFTER = -1, 1


def order(sch: Schedule, index: Index, a: BlockRealize, b: BlockRealize, ignore: Sequence[Buffer] = ()) -> set[int]:
    """{BEFORE} when a comes before b wherever they touch one element, {AFTER} when after; both when either
    may happen; the empty set when they never do. Buffers in `ignore` do not count.

    When every element that b reads was written by a in the same iteration of the loops around both, only that
    counts, as long as other iterations write the same values again.
    """
    pairs = conflicts(index, a, b, ignore)
    if not pairs:
        return set()
    first = precedes(index, a, b)
    maker, user = (a, b) if first else (b, a)
    shared = common_loops(index, a, b)
    if shared and feeds(sch, index, maker, user) and is_steady(sch, index, maker, shared):
        return {BEFORE if first else AFTER}
    return order_of(sch, index, pairs)


def order_of(sch: Schedule, index: Index, pairs: Iterable[Pair]) -> set[int]:
    """The orders in which the parts of a pair touch one element: BEFORE for the first of the two first.

    Of the iterations of a `while` nothing is known: in it each comes before the other.
    """
    out: set[int] = set()
    for x, y in pairs:
        if in_one_while(index, x.place, y.place):
            return {BEFORE, AFTER}
        shared = common_loops(index, x.place, y.place)
        signs = {first_sign(v) for v in vectors(sch, index, shared, [(x, y)])}
        here = BEFORE if comes_first(index, x, y) else AFTER
        out |= {{1: BEFORE, -1: AFTER, 0: here}[s] for s in signs}
    return out


def vectors(sch: Schedule, index: Index, shared: Sequence[For], pairs: Iterable[Pair]) -> set[tuple[int, ...]]:
    """The signs of (iteration of the second) - (iteration of the first), per loop of shared, all around both, for which
    a pair of parts may overlap."""
    analyzer = sch.analyzer_at(None)
    variables = [loop.loop_var for loop in shared]
    domains = domains_of(shared)
    out: set[tuple[int, ...]] = set()
    for x, y in pairs:
        out |= direction_vectors(access_of(index, x, variables), access_of(index, y, variables), variables, domains,
                                 analyzer)
    return out


def feeds(sch: Schedule, index: Index, a: BlockRealize, b: BlockRealize) -> bool:
    """True when in each iteration of the loops around both blocks a writes all that b reads of its buffers.

    a must finish its reductions in that iteration, be the only writer, and give each element one value, whichever
    iteration wrote it last; b must write nothing that a touches.
    """
    shared = common_loops(index, a, b)
    outer = frozenset(loop.loop_var for loop in shared)
    if meeting(parts_written(b), [*parts_read(index, a), *parts_written(a)]):
        return False
    for iv, value in a.bound:
        if iv.iter_type == COMM_REDUCE and any(n in outer for n in walk(value)):
            return False
    if is_reduction(a.block) and (a.block.init is None or _unsure(sch, index, a)) or not gives_one_value(sch, a.block):
        return False
    if in_one_while(index, a, b):                           # whose iterations may find other inputs
        return False
    place = place_in(sch, shared)
    if beyond_domain(a, place.analyzer) or branches_of_its_own(index, a, b):
        return False
    read = parts_read(index, b)
    for write in a.block.writes:
        wanted = [p for p in read if p.region.buffer is write.buffer]
        if not wanted:
            continue
        if not all(any(loop is x for x in index.loops_above(p.place)) for p in wanted for loop in shared):
            return False                                    # read on the way, before a runs
        if any(p.outside and any(s is p.place for s in index.path_to(a)) for p in wanted):
            return False
        if any(w.block.name != a.block.name for w in writers_of(sch, write.buffer)):
            return False
        inner = loops_within(index, a, outer)
        if not all(fills(a, write, inner, place, box_of(p, loops_within(index, b, outer), place)) for p in wanted):
            return False
    return True


def _unsure(sch: Schedule, index: Index, reduction: BlockRealize) -> str:
    """Why a reduction may go on from what was there; "" where it starts."""
    around = index.loops_above(reduction)
    return unsure_start(reduction, around, place_in(sch, around).analyzer)


def is_steady(sch: Schedule, index: Index, a: BlockRealize, shared: Sequence[For]) -> bool:
    """True when a, of which each element has one instance, stores the same value in each iteration of the loops
    `shared` around it that writes an element again."""
    if changing_input(sch, index, a, shared[0]) is None:
        return True
    signs = vectors(sch, index, shared, [(w, w) for w in parts_written(a)])
    again = min((next(n for n, s in enumerate(v) if s) for v in signs if any(v)), default=None)
    return again is None or again > 0 and changing_input(sch, index, a, shared[again]) is None


def changing_input(sch: Schedule, index: Index, a: BlockRealize, loop: For) -> Pair | None:
    """(written, read): parts of a buffer that a computes with, by way of other blocks or at once, of which two
    iterations of loop may find different values; None where there are none.

    There are none where each writer inside of loop comes before all readers, or feeds them in each iteration and has no
    changing inputs itself.
    """
    seen = [a]
    for reader in seen:
        read = parts_read(index, reader)
        for writer in index.outermost():
            pairs = meeting(parts_written(writer), read)
            if not pairs or not is_below(index, writer, loop):
                continue
            if writer is reader and is_stage(sch, reader):      # of what it wrote it reads only its partial sums
                continue
            if precedes(index, writer, reader) and feeds(sch, index, writer, reader):
                seen += [] if any(writer is s for s in seen) else [writer]
            elif writer is reader or len(order_of(sch, index, pairs)) > 1:
                return pairs[0]
    return None


def in_one_while(index: Index, a: Stmt, b: Stmt) -> bool:
    """True when a `while` stands around both statements."""
    around = [s for s in index.path_to(a) if isinstance(s, While)]
    return bool(around) and any(s is w for s in index.path_to(b) for w in around)


def runs_between(index: Index, block: BlockRealize, a: BlockRealize, b: BlockRealize) -> bool:
    """True when a block may run between a and b, which comes after it, in one iteration of the loops around both."""
    around = common_loops(index, a, b)
    if around and not is_below(index, block, around[-1]):
        return False
    return precedes(index, a, block) or len(common_loops(index, a, block)) > len(around)


def stays(sch: Schedule, old: Index, name: str, partner: str) -> bool:
    """True when the block `name`, moved since `old`, stands on the same side of its partner, and each of its instances
    runs in that iteration of the loops around both in which it ran."""
    here, there = ((index, index.realizes[name], index.realizes[partner]) for index in (old, sch.index))
    shared, now = (common_loops(*place) for place in (here, there))
    variables = [loop.loop_var for loop in shared]
    if variables != [loop.loop_var for loop in now] or precedes(*here) != precedes(*there) or any(
            in_one_while(*place) for place in (here, there)):
        return False
    before, after = (Access(tuple(bindings(r, outside_of(index).lets).values()), r.predicate,
                            loops_within(index, r, variables)) for index, r, _ in (here, there))
    still = (0,) * len(variables)
    return direction_vectors(before, after, variables, domains_of(shared), sch.analyzer_at(None)) <= {still}


def place_in(sch: Schedule, loops: Sequence[For]) -> Place:
    """What is known inside loops (which may have left the function since)."""
    analyzer = sch.analyzer_at(None)
    for loop in loops:
        analyzer.bind(loop.loop_var, loop.min, loop.extent)
    return Place(analyzer, frozenset(loop.loop_var for loop in loops), outside_of(sch.index).lets)


def require_same_order(sch: Schedule, old: Index, name: str, partners: Iterable[BlockRealize],
                       ignore: Sequence[Buffer] = ()) -> None:
    """The block `name`, moved since `old`, meets each partner (as it stood in old) in the order of old.

    Buffers in `ignore` do not count.
    """
    was, now = old.realizes[name], sch.index.realizes[name]
    for partner in partners:
        there = sch.index.realizes[partner.block.name]
        pairs = conflicts(old, partner, was, ignore)
        if not pairs:
            continue
        before = order(sch, old, partner, was, ignore)
        after = order(sch, sch.index, there, now, ignore)
        legal(not before or (len(before) == 1 and after <= before) or stays(sch, old, name, partner.block.name),
              f"moving block {name} could change whether it runs before or after block {partner.block.name}, "
              f"and both touch {pairs[0][0].region.buffer.name}", was, partner)


def require_no_race(sch: Schedule, name: str) -> None:
    """No two iterations of a parallel, vectorized or thread loop conflict through the block `name`, or through a
    block that writes what it reads or writes.

    A buffer that is used below such a loop only belongs to one iteration, as long as what is read of it was written
    in the same iteration. What the threads of a block do together they may.
    """
    here = sch.index.realizes[name]
    touched = [*inputs_of(sch, here), *(r.buffer for r in here.block.writes)]
    makers = {w.block.name: None for b in touched for w in writers_of(sch, b)}
    for block in [name, *(m for m in makers if m != name)]:
        loops = sch.index.loops_above(sch.index.realizes[block])
        for position, loop in enumerate(loops):
            if loop.kind not in (SERIAL, UNROLLED):
                _require_apart(sch, sch.index.realizes[block], loops[:position + 1])


def _require_apart(sch: Schedule, here: BlockRealize, loops: Sequence[For]) -> None:
    """Iterations of the last of loops do not conflict through the block here."""
    index, loop = sch.index, loops[-1]
    together = filled_together(sch, loop, loop.thread_tag)
    touched = [*inputs_of(sch, here), *(r.buffer for r in here.block.writes)]
    partners = {id(r): r for b in touched for r in (*writers_of(sch, b), *readers_of(sch, b))}
    for partner in partners.values():
        if not any(above is loop for above in index.loops_above(partner)):
            continue
        pairs = [p for p in _shared_pairs(sch, index, partner, here, loop) if p[0].region.buffer not in together]
        reaching = {v for v in vectors(sch, index, loops, pairs) if v[-1] and not any(v[:-1])}
        name, buffer = loop.loop_var.name, pairs[0][0].region.buffer.name if pairs else ""
        legal(not reaching, f"iterations of the {loop.kind} loop {name} would conflict in {buffer} between blocks "
              f"{partner.block.name} and {here.block.name}", loop, here,
              hint=f"move blocks before {name} is made {loop.kind}")


def _shared_pairs(sch: Schedule, index: Index, a: BlockRealize, b: BlockRealize, loop: For) -> list[Pair]:
    """The conflicts of a and b, inside of loop, in elements that two iterations of it may see."""
    pairs = [p for p in conflicts(index, a, b) if all(is_below(index, x.place, loop) for x in p)]
    if not pairs:
        return pairs
    own = {id(x.region.buffer) for x, _ in pairs if _is_private(sch, index, x.region.buffer, loop)}
    first, second = (a, b) if precedes(index, a, b) else (b, a)
    if a is b or feeds(sch, index, first, second):
        return [(x, y) for x, y in pairs if id(x.region.buffer) not in own]
    written = {id(x.buffer) for x in a.block.writes} & {id(y.buffer) for y in b.block.writes}
    return [(x, y) for x, y in pairs if not (id(x.region.buffer) in own and id(x.region.buffer) in written)]


def _is_private(sch: Schedule, index: Index, buffer: Buffer, loop: For) -> bool:
    """True when buffer is used below loop only, so that each of its iterations can have one."""
    users = (*writers_of(sch, buffer), *readers_of(sch, buffer))
    return is_allocated(sch, buffer) and not shared_between(buffer, index.path_to(loop)) and all(
        is_below(index, place, loop) for user in users
        for place in (user, *(r.place for r in outside_of(index).of(user, buffer))))
