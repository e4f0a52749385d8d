"""The parts of buffers that blocks touch, in their bodies and on the way to them, and where that happens."""
from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass

from tilewright.arith.dependence import Access
from tilewright.schedule.analysis.domains import Interval, domains_of
from tilewright.schedule.analysis.elements import any_element
from tilewright.schedule.analysis.mixed_radix import bindings
from tilewright.schedule.outside import outside_of
from tilewright.schedule.state import Index
from tilewright.tir.buffer import Buffer, BufferRegion
from tilewright.tir.expr import Var
from tilewright.tir.node import sub_statements, substitute
from tilewright.tir.stmt import BlockRealize, For, Stmt


@dataclass(slots=True, eq=False)
class Part:
    """A region that a block touches, at `place`: its realization, or, outside of its body, the statement on the way to
    it that reads the region, which then is in loop variables."""
    region: BufferRegion
    realize: BlockRealize
    place: Stmt
    outside: bool = False


Pair = tuple[Part, Part]


def parts_read(index: Index, realize: BlockRealize) -> list[Part]:
    """What a block reads, and what is read on the way to it."""
    return body_reads(realize) + [Part(r.region, realize, r.place, outside=True) for r in outside_of(index).of(realize)]


def body_reads(realize: BlockRealize) -> list[Part]:
    """What a block reads in its body."""
    return [Part(r, realize, realize) for r in realize.block.reads]


def parts_written(realize: BlockRealize) -> list[Part]:
    """What a block writes."""
    return [Part(r, realize, realize) for r in realize.block.writes]


def conflicts(index: Index, a: BlockRealize, b: BlockRealize, ignore: Sequence[Buffer] = ()) -> list[Pair]:
    """Pairs of parts of one buffer that is not in ignore, of a and of b, at least one of them written."""
    written, others = parts_written(a), parts_written(b)
    pairs = [*meeting(written, [*parts_read(index, b), *others]), *meeting(parts_read(index, a), others)]
    return [p for p in pairs if not any(p[0].region.buffer is z for z in ignore)] if ignore else pairs


def meeting(a: Sequence[Part], b: Sequence[Part]) -> list[Pair]:
    """The pairs of a part of a and a part of b that are of one buffer."""
    return [(x, y) for x in a for y in b if x.region.buffer is y.region.buffer]


def common_loops(index: Index, a: Stmt, b: Stmt) -> list[For]:
    """The loops around both statements, outermost first."""
    return [x for x, y in zip(index.loops_above(a), index.loops_above(b)) if x is y]


def loops_within(index: Index, stmt: Stmt, outer: Container[Var]) -> dict[Var, Interval]:
    """The ranges of the loops around a statement that are inside of the loops `outer`."""
    return {v: d for v, d in domains_of(index.loops_above(stmt)).items() if v not in outer}


def precedes(index: Index, a: BlockRealize, b: BlockRealize) -> bool:
    """True when a stands before b in the program text."""
    names = list(index.realizes)
    return names.index(a.block.name) < names.index(b.block.name)


def comes_first(index: Index, a: Part, b: Part) -> bool:
    """True when, in one iteration of the loops around both, a is touched before b."""
    if a.place is b.place:                          # what is read on the way is read first; then the body, reads first
        return a.outside or not b.outside and not any(a.region is w for w in a.realize.block.writes)
    if isinstance(a.place, BlockRealize) and isinstance(b.place, BlockRealize):
        return precedes(index, a.place, b.place)
    path, other = index.path_to(a.place), index.path_to(b.place)
    at = next((k for k, (x, y) in enumerate(zip(path, other)) if x is not y), None)
    if at is None:                                  # one is around the other
        return len(path) < len(other)
    return next(s is path[at] for s in sub_statements(path[at - 1]) if s is path[at] or s is other[at])


def access_of(index: Index, part: Part, shared: Sequence[Var]) -> Access:
    """The part as an access: a box becomes one index per dimension with a free variable for its extent."""
    lets = outside_of(index).lets
    values = {} if part.outside else bindings(part.realize, lets)
    free = loops_within(index, part.place, shared)
    indices = any_element(part.region, values, free)
    return Access(indices, None if part.outside else substitute(part.realize.predicate, lets), free)
