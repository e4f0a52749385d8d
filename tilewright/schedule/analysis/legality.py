"""When loops may run in another order or at once: one dependence analysis over the blocks below them."""
from __future__ import annotations

import itertools
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass

from tilewright.arith.analyzer import Analyzer
from tilewright.arith.dependence import Access, direction_vectors
from tilewright.arith.itermap import detect_iter_map
from tilewright.arith.regions import Interval, intervals_of
from tilewright.schedule.analysis.accesses import TRUE, Collector, Instance, Touch
from tilewright.schedule.analysis.dataflow import is_allocated
from tilewright.schedule.analysis.density import box_where, domain_box, is_dense
from tilewright.schedule.analysis.digits import conjuncts
from tilewright.schedule.analysis.iteration import beyond_domain, branches_of_its_own
from tilewright.schedule.analysis.required import Place, inside
from tilewright.schedule.analysis.shared_reductions import shared_reduction
from tilewright.schedule.analysis.threads import divided
from tilewright.schedule.schedule import Schedule
from tilewright.support.errors import legal
from tilewright.tir.arithmetic import all_of, binary
from tilewright.tir.buffer import Buffer, BufferRegion
from tilewright.tir.conversion import is_const
from tilewright.tir.expr import IntImm, Var
from tilewright.tir.iter_var import COMM_REDUCE, DATA_PARALLEL, Range
from tilewright.tir.node import walk
from tilewright.tir.stmt import SERIAL, UNROLLED, For, Stmt, is_thread_axis


@dataclass(frozen=True)
class Clash:
    """Two accesses, one of them a write, that an execution order must keep apart."""
    a: Touch
    b: Touch

    @property
    def at(self) -> tuple[Stmt, ...]:
        return (self.a.stmt,) if self.a.stmt is self.b.stmt else (self.a.stmt, self.b.stmt)

    @property
    def who(self) -> str:
        """The blocks that make the accesses."""
        instances = [t.instance for t in (self.a, self.b) if t.instance is not None]
        names = dict.fromkeys(i.realize.block.name for i in instances)
        return f"block{'s' if len(names) > 1 else ''} {' and '.join(names)}"


class Region:
    """The accesses below a perfect nest of loops, with what is known about the loops around them."""

    def __init__(self, sch: Schedule, nest: Sequence[For]) -> None:
        self.sch, self.nest = sch, nest
        self.vars = [loop.loop_var for loop in nest]
        self.analyzer: Analyzer = sch.analyzer_at(nest[-1].body)
        around = [s for s in sch.path_to(nest[-1]) if isinstance(s, For)]
        self.domains = {loop.loop_var: (loop.min, loop.extent) for loop in around}
        found = Collector(nest[-1].body)
        self.touches, self.instances = found.touches, found.instances

    def by_buffer(self) -> Iterable[list[Touch]]:
        """The touches of each buffer that is written, in program order."""
        groups: dict[int, list[Touch]] = {}
        for t in self.touches:
            groups.setdefault(id(t.buffer), []).append(t)
        return (g for g in groups.values() if any(t.writes for t in g))

    def directions(self, a: Access, b: Access) -> set[tuple[int, ...]]:
        """Signs of (iteration of b - iteration of a) over the nest where a and b may touch one element."""
        if a is b:
            fixed = self._determined_by(a)
            if fixed is not None:
                return set(itertools.product(*((0,) if v in fixed or self._runs_once_at_most(v) else (-1, 0, 1)
                                               for v in self.vars)))
        return direction_vectors(a, b, self.vars, self.domains, self.analyzer)

    def _runs_once_at_most(self, loop: Var) -> bool:
        extent = self.domains[loop][1]
        return isinstance(extent, IntImm) and extent.value <= 1

    def _determined_by(self, a: Access) -> set[Var] | None:
        """The loops whose variables follow from the element that a touches, if its index map shows all it uses.

        The map from the loops that occur in the indices to the indices is one to one: then equal elements mean
        equal variables, and the other loops have no part in which element it is.
        """
        ranges = {**a.domains, **{v: self.domains[v] for v in self.vars}}
        used = {n for i in a.indices for n in walk(i) if isinstance(n, Var) and n in ranges}
        conditions = conjuncts(TRUE if a.predicate is None else a.predicate)
        guard = [c for c in conditions if all(n in used for n in walk(c) if n in ranges)]
        found = detect_iter_map(list(a.indices), {v: ranges[v] for v in used}, all_of(*guard), self.analyzer)
        return used if found is not None and found.is_injective else None

    def commutes(self, a: Touch, b: Touch) -> bool:
        """True for two accesses by the steps of one reduction, which may run in any order."""
        if a.instance is None or a.instance is not b.instance:
            return False
        block = a.instance.realize.block
        if not any(iv.iter_type == COMM_REDUCE for iv in block.iter_vars):
            return False
        return any(w.buffer is a.buffer for w in block.writes) and self.runs_once(a.instance)

    def runs_once(self, instance: Instance) -> bool:
        """True when no two iterations run the same instance of the block."""
        key = tuple(self.vars)
        if key not in instance.injective:
            access = Access(tuple(instance.values.values()), instance.guard, instance.free)
            instance.injective[key] = self.directions(access, access) <= {(0,) * len(key)}
        return instance.injective[key]


def reversed_dependence(sch: Schedule, nest: Sequence[For], order: Sequence[For]) -> Clash | None:
    """A dependence that runs backwards when the perfect nest runs in another order, or None.

    Reorder theorem: every vector of possible distances keeps the sign of its first nonzero component.
    Buffers whose whole life is inside one iteration of the nest do not count, nor do the steps of one
    reduction as long as the step that starts it stays the first.
    """
    region = Region(sch, nest)
    places = [nest.index(loop) for loop in order]
    for group in region.by_buffer():
        clash = _first_reversed(region, group, places)
        if clash is not None and not _private(region, group):
            return clash
    late = (Clash(t, t) for t in region.touches if t.writes and _init_comes_late(region, t, places))
    return next(late, None)


def _init_comes_late(region: Region, t: Touch, places: Sequence[int]) -> bool:
    """True when the new order may run the step of a reduction that starts it after another of its steps.

    Only a loop that drives both output and reduction axes can do that: where the loops of the reductions are
    loops of their own, the step that starts them is where they are 0.
    """
    instance = t.instance
    if instance is None or instance.realize.block.init is None:
        return False
    values, axes = instance.values, instance.realize.block.iter_vars
    driving = [{n for iv in axes if (iv.iter_type == COMM_REDUCE) == reduces for n in walk(values[iv.var])}
               for reduces in (False, True)]
    if not any(v in driving[0] and v in driving[1] for v in region.vars):
        return False
    point = tuple(values[iv.var] for iv in axes if iv.iter_type != COMM_REDUCE)
    starts = [binary("eq", values[iv.var], iv.dom.min) for iv in axes
              if iv.iter_type == COMM_REDUCE and iv.dom is not None]
    first = Access(point, all_of(instance.guard, *starts), instance.free)
    step = Access(point, instance.guard, instance.free)
    return any(first_sign(v) > 0 > first_sign([v[p] for p in places]) for v in region.directions(first, step))


def _first_reversed(region: Region, group: Sequence[Touch], places: Sequence[int]) -> Clash | None:
    for k, a in enumerate(group):
        for b in group[k:]:
            if (a.writes or b.writes) and not region.commutes(a, b):
                for v in region.directions(a.access, b.access):
                    if first_sign(v) != first_sign([v[p] for p in places]):
                        return Clash(a, b)
    return None


def first_sign(vector: Sequence[int]) -> int:
    """The sign of the first nonzero component; 0 when there is none."""
    return next((s for s in vector if s), 0)


def carried_dependence(region: Region, thread_tag: str = "", shared: Sequence[Instance] = (),
                       together: Container[Buffer] = ()) -> Clash | None:
    """Two accesses of different iterations that may touch one element, one of them a write, or None.

    Buffers whose whole life is inside one iteration do not count, but for shared memory where the loop is (to be)
    bound to an axis of the threads of a block, or inside of such a loop; nor do the steps of the reductions `shared`
    by its threads, nor buffers that they fill `together`.
    """
    path = region.sch.path_to(region.nest[-1])
    for group in region.by_buffer():
        if group[0].buffer in together:
            continue
        clash = _first_carried(region, group, shared)
        if clash is not None and (shared_between(group[0].buffer, path, thread_tag) or not _private(region, group)):
            return clash
    return None


def shared_between(buffer: Buffer, path: Iterable[Stmt], thread_tag: str = "") -> bool:
    """True when the iterations of the last loop of path, bound to thread_tag, see one and the same buffer, wherever it
    is used: shared memory, of which a block of threads has one, inside of the loops over these."""
    tags = (thread_tag, *(s.thread_tag for s in path if isinstance(s, For)))
    return buffer.scope.startswith("shared") and any(map(is_thread_axis, tags))


def _first_carried(region: Region, group: Sequence[Touch], shared: Sequence[Instance] = ()) -> Clash | None:
    for k, a in enumerate(group):
        for b in group[k:]:
            if (a.writes or b.writes) and not region.directions(a.access, b.access) <= {(0,)}:
                if not (any(a.instance is i for i in shared) and region.commutes(a, b)):
                    return Clash(a, b)
    return None


def ordered_axes(region: Region) -> list[tuple[Instance, str]]:
    """(instance of a block, "reduction" or "ordered") for each block of which the loop drives such an axis."""
    var, = region.vars
    return [(instance, "reduction" if iv.iter_type == COMM_REDUCE else "ordered")
            for instance in region.instances for iv in instance.realize.block.iter_vars
            if iv.iter_type != DATA_PARALLEL and any(n is var for n in walk(instance.values[iv.var]))]


def require_independent(sch: Schedule, loop: For, primitive: str, thread_tag: str = "") -> None:
    """Refuse, in the words of primitive, unless the iterations of loop may run at once (as threads of thread_tag).

    The threads of a block may share the steps of a reduction: the lowering combines their parts. What they fill
    together is left to require_shared_work.
    """
    name, region = loop.loop_var.name, Region(sch, [loop])
    shared: list[Instance] = []
    for instance, kind in ordered_axes(region):
        block, why = instance.realize.block.name, ""
        if kind == "reduction" and thread_tag.startswith("threadIdx") and is_const(loop.extent, 1):
            continue
        if kind == "reduction" and thread_tag.startswith("threadIdx"):
            found = shared_reduction(instance.realize, sch.index.loops_above(instance.realize), loop)
            if not isinstance(found, str):
                shared.append(instance)
                continue
            why = f", whose steps threads cannot share: {found}"
        steps = ", a scan: its steps run in order" if kind == "ordered" else why
        legal(False, f"cannot {primitive} loop {name}: it carries the {kind} axis of block {block}{steps}", loop,
              hint=f"{primitive} a loop of the output")
    clash = carried_dependence(region, thread_tag, shared, divided(sch, loop, thread_tag))
    if clash is not None:
        legal(False, f"cannot {primitive} loop {name}: two of its iterations may touch the same element of "
              f"{clash.a.buffer.name}, which is written ({clash.who})", loop, *clash.at,
              hint="choose a loop whose iterations write different elements")
    late = _left_over(sch, loop, thread_tag)
    if late is not None:
        legal(False, f"cannot {primitive} loop {name}: each of its iterations would have a {late.buffer.name} of its "
              "own, and reads what an earlier iteration of a loop around it left there", loop, late.stmt,
              hint="let each iteration write what it reads")


def _left_over(sch: Schedule, loop: For, thread_tag: str) -> Touch | None:
    """A read of what an earlier iteration of a loop around left in a buffer that is used inside of loop only, or None.

    Each iteration of a loop whose iterations run at once has such a buffer to itself, and finds nothing in it.
    """
    path = sch.path_to(loop)
    around = [s for s in path if isinstance(s, For) and s is not loop and s.kind in (SERIAL, UNROLLED)]
    if not around:
        return None
    inner, wide = Region(sch, [loop]), Region(sch, [*around, loop])
    for group in wide.by_buffer():
        buffer = group[0].buffer
        if shared_between(buffer, path, thread_tag):
            continue
        if _is_allocated_in(inner, buffer) or not _used_only_in(inner, buffer):
            continue
        for k, t in enumerate(group):
            if not t.reads or any(_covers(sch, w, t) for w in group[:k] if w.writes):
                continue
            if _initialised_by_itself(t) and t.instance is not None and _reduces_inside(t.instance):
                continue
            if any(first_sign(v[:-1]) > 0 for w in group if w.writes for v in wide.directions(w.access, t.access)):
                return t
    return None


def check_annotated_loops(sch: Schedule, among: Iterable[Var] | None = None) -> None:
    """Refuse unless the loops that are parallel, vectorized or bound (all, or those in among) still may be.

    For primitives that move statements into or out of such loops.
    """
    wanted = None if among is None else set(among)
    for var, loop in sch.index.loops.items():
        if loop.kind not in (SERIAL, UNROLLED) and (wanted is None or var in wanted):
            require_independent(sch, loop, _VERB[loop.kind], loop.thread_tag)


_VERB = {"parallel": "parallel", "vectorized": "vectorize", "thread_binding": "bind"}


def _private(region: Region, group: Sequence[Touch]) -> bool:
    """True when each iteration of the nest may have a copy of its own of the group's buffer.

    That is so when the buffer is no argument, nothing outside the nest touches it, no loop outside of the
    innermost body drives a reduction in it, and every element that an iteration reads was written before in
    that iteration.
    """
    buffer = group[0].buffer
    if _is_allocated_in(region, buffer):
        return True
    if not _used_only_in(region, buffer):
        return False
    if not all(t.instance is not None and _reduces_inside(t.instance) for t in group if t.writes):
        return False
    return all(_initialised_by_itself(t) or any(_covers(region.sch, w, t) for w in group[:k] if w.writes)
               for k, t in enumerate(group) if t.reads)


def private_to_iterations(region: Region, buffer: Buffer) -> bool:
    """True when each iteration of the region's nest may have a copy of its own of the buffer."""
    return all(_private(region, group) for group in region.by_buffer() if group[0].buffer is buffer)


def _is_allocated_in(region: Region, buffer: Buffer) -> bool:
    return any(buffer is b for i in region.instances for b in i.realize.block.alloc_buffers)


def _used_only_in(region: Region, buffer: Buffer) -> bool:
    """True for a buffer of the function's own that nothing outside of the region touches."""
    sch = region.sch
    if not is_allocated(sch, buffer):
        return False
    known = {id(i.realize) for i in region.instances} | {id(s) for s in sch.path_to(region.nest[-1])}
    others = [r.block for r in sch.index.realizes.values() if id(r) not in known]
    return not any(r.buffer is buffer for block in others for r in (*block.reads, *block.writes))


def _reduces_inside(instance: Instance) -> bool:
    """True when no loop outside of the region drives a reduction axis of the block."""
    return all(n in instance.free for iv in instance.realize.block.iter_vars if iv.iter_type != DATA_PARALLEL
               for n in walk(instance.values[iv.var]) if isinstance(n, Var))


def _initialised_by_itself(t: Touch) -> bool:
    """True for an access of a reduction to its own output, which its init starts."""
    return t.writes and t.instance is not None and t.instance.realize.block.init is not None


def _covers(sch: Schedule, write: Touch, read: Touch) -> bool:
    """True when, in each iteration of the loops around both, write touches all elements that read touches."""
    if write.instance is None or read.instance is None:
        return False
    writer, reader = write.instance.realize, read.instance.realize
    if sch.index.scope_of(writer) is not sch.root or sch.index.scope_of(reader) is not sch.root:
        return False
    around = sch.index.loops_above(reader)
    common = [loop for loop in sch.index.loops_above(writer) if any(loop is other for other in around)]
    fixed = frozenset(loop.loop_var for loop in common)
    analyzer = sch.analyzer_at(common[-1].body)
    place = Place(analyzer, fixed)
    given = {v: d for v, d in write.access.domains.items() if v not in fixed}
    points = BufferRegion(write.buffer, tuple(Range(i, IntImm(1, i.dtype)) for i in write.local))
    if branches_of_its_own(sch.index, writer, reader):
        return False
    free = {v: d for v, d in read.access.domains.items() if v not in fixed}
    needed, cuts = _box(read, free, analyzer), beyond_domain(writer, sch.analyzer_at(writer))
    if cuts:
        written = box_where(writer, points, given, place, cuts)
    else:
        written = _box(write, given, analyzer, widen=False) if is_dense(writer, points, given, place) else None
    limits = domain_box(writer, points, place)
    return needed is not None and all(
        given is not None and inside(needed, given, write.buffer, place) for given in (written, limits))


def _box(touch: Touch, free: Mapping[Var, Interval], analyzer: Analyzer, widen: bool = True) -> list[Interval] | None:
    """The box of the elements that touch reaches while the variables of free run, or None."""
    box = intervals_of(touch.access.indices, free, analyzer, widen)
    known = [i for i in box if i is not None]
    return known if len(known) == len(box) else None
