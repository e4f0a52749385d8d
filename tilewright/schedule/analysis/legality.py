"""When loops may run in another order or at once: one dependence analysis over the blocks below them."""
from __future__ import annotations

from collections.abc import Container, Iterable, Sequence

from tilewright.arith.dependence import Access
from tilewright.arith.linear import linear
from tilewright.schedule.analysis.accesses import Collector, Instance, Touch
from tilewright.schedule.analysis.privacy import is_private, shared_between
from tilewright.schedule.analysis.region import Clash, Region, first_sign
from tilewright.schedule.analysis.shared_reductions import filled_together, loops_around, shared_reduction
from tilewright.schedule.schedule import Schedule
from tilewright.support.errors import legal
from tilewright.tir.accesses import uses
from tilewright.tir.arithmetic import binary
from tilewright.tir.buffer import Buffer
from tilewright.tir.conversion import is_const
from tilewright.tir.expr import IntImm, Var
from tilewright.tir.iter_var import COMM_REDUCE, DATA_PARALLEL
from tilewright.tir.node import walk
from tilewright.tir.shared_work import is_shared
from tilewright.tir.stmt import SERIAL, UNROLLED, For, Stmt


def require_fixed_bounds(loops: Sequence[For], below: Sequence[Stmt] | None = None) -> None:
    """The bounds of loops, which are to be evaluated elsewhere or more often, read no memory that is written below
    (by the statements `below`; the first of the loops, if none are given)."""
    read = {use.buffer for loop in loops for e in (loop.min, loop.extent) for use in uses(e)}
    if not read:
        return
    for stmt in loops[:1] if below is None else below:
        for t in Collector(stmt).touches:
            legal(not t.writes or t.buffer not in read, f"{t.buffer.name} is read by the bounds of a loop, and written "
                  "below it", *loops, t.stmt, hint="keep what bounds read in a buffer that nothing else writes")


def reversed_dependence(sch: Schedule, nest: Sequence[For], order: Sequence[For]) -> Clash | None:
    """A dependence that runs backwards when the perfect nest runs in another order, or None.

    Reorder theorem: every vector of possible distances keeps the sign of its first nonzero component.
    Buffers whose whole life is inside one iteration of the nest do not count, nor do the steps of one
    reduction as long as none passes the one that starts it.
    """
    region = Region(sch, nest)
    places = [nest.index(loop) for loop in order]
    for group in region.by_buffer():
        clash = _first_reversed(region, group, places)
        if clash is not None and not is_private(region, group):
            return clash
    late = (Clash(t, t) for t in region.touches if t.writes and _init_comes_late(region, t, places))
    return next(late, None)


def _init_comes_late(region: Region, t: Touch, places: Sequence[int]) -> bool:
    """True when the new order may run the step of a reduction that starts it after another of its steps, or before
    one after which it starts again."""
    instance = t.instance
    if instance is None or instance.realize.block.init is None or _starts_at_least(region, instance):
        return False
    first, step = [], []                           # the least of each reduction in the one, any in the other
    for iv in instance.realize.block.iter_vars:
        value = instance.values[iv.var]
        first.append(value)
        step.append(iv.domain.min if iv.iter_type == COMM_REDUCE else value)
    vectors = region.directions(*(Access(tuple(point), instance.guard, instance.free) for point in (first, step)))
    return any(first_sign(v) != first_sign([v[p] for p in places]) for v in vectors)


def _starts_at_least(region: Region, instance: Instance) -> bool:
    """True when loops of their own run the steps of the block's reductions, and each order of them begins with the
    step that starts it: where all are at their least, since the axes grow with each of them."""
    domains = {**region.domains, **instance.free}
    outputs, steps = ({n for iv in instance.realize.block.iter_vars if (iv.iter_type == COMM_REDUCE) == reduces
                       for n in walk(instance.values[iv.var]) if n in domains} for reduces in (False, True))
    for iv in instance.realize.block.iter_vars if not outputs & steps else ():
        if iv.iter_type != COMM_REDUCE:
            continue
        terms, least = linear(binary("sub", instance.values[iv.var], iv.domain.min))
        for v, k in terms.items():
            low = domains[v][0] if isinstance(v, Var) and v in domains else None
            if k < 0 or not isinstance(low, IntImm):
                return False
            least += k * low.value
        if least:
            return False
    return not outputs & steps


def _first_reversed(region: Region, group: Sequence[Touch], places: Sequence[int]) -> Clash | None:
    for k, a in enumerate(group):
        for b in group[k:]:
            if (a.writes or b.writes) and not region.commutes(a, b):
                for v in region.directions(a.access, b.access):
                    if first_sign(v) != first_sign([v[p] for p in places]):
                        return Clash(a, b)
    return None


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
        if clash is not None and (shared_between(group[0].buffer, path, thread_tag) or not is_private(region, group)):
            return clash
    return None


def _first_carried(region: Region, group: Sequence[Touch], shared: Sequence[Instance] = ()) -> Clash | None:
    for k, a in enumerate(group):
        for b in group[k:]:
            if (a.writes or b.writes) and not region.directions(a.access, b.access) <= {(0,)}:
                if not (any(a.instance is i for i in shared) and region.commutes(a, b)):
                    return Clash(a, b)
    return None


def kept_apart(region: Region) -> list[list[Touch]]:
    """The touches of each buffer that the iterations of the nest may use at once only because each has its own."""
    path = region.sch.path_to(region.nest[-1])
    return [group for group in region.by_buffer()
            if not shared_between(group[0].buffer, path) and _first_carried(region, group) is not None
            and is_private(region, group)]


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
            found = shared_reduction(instance.realize, loops_around(sch.index, instance.realize), loop)
            if not isinstance(found, str):
                shared.append(instance)
                continue
            why = f", whose steps threads cannot share: {found}"
        steps = ", a scan: its steps run in order" if kind == "ordered" else why
        legal(False, f"cannot {primitive} loop {name}: it carries the {kind} axis of block {block}{steps}", loop,
              hint=f"{primitive} a loop of the output")
    clash = carried_dependence(region, thread_tag, shared, filled_together(sch, loop, thread_tag))
    if clash is not None:
        legal(False, f"cannot {primitive} loop {name}: two of its iterations may touch the same element of "
              f"{clash.a.buffer.name}, which is written ({clash.who})", loop, *clash.at,
              hint="choose a loop whose iterations write different elements")


def check_annotated_loops(sch: Schedule, among: Iterable[Var] | None = None) -> None:
    """Refuse unless the loops that are parallel, vectorized or bound (all, or those in among) still may be.

    For primitives that move statements into or out of such loops.
    """
    wanted = None if among is None else set(among)
    for var, loop in sch.index.loops.items():
        if loop.kind not in (SERIAL, UNROLLED) and (wanted is None or var in wanted):
            require_independent(sch, loop, _VERB[loop.kind], loop.thread_tag)


def require_apart(sch: Schedule, *buffers: Buffer) -> None:
    """Refuse where two threads of a block meet in an element of one of buffers that is in shared memory."""
    if any(is_shared(b) for b in buffers):
        check_annotated_loops(sch)


_VERB = {"parallel": "parallel", "vectorized": "vectorize", "thread_binding": "bind"}
