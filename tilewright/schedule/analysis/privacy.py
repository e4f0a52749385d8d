"""Which buffers each iteration of a loop may have to itself."""
from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from tilewright.arith.analyzer import Analyzer
from tilewright.arith.regions import Interval, intervals_of
from tilewright.schedule.analysis.accesses import Instance, Touch
from tilewright.schedule.analysis.dataflow import is_allocated
from tilewright.schedule.analysis.density import box_where, domain_box, fills, is_dense
from tilewright.schedule.analysis.iteration import beyond_domain, branches_of_its_own, unsure_start
from tilewright.schedule.analysis.parts import common_loops, loops_within
from tilewright.schedule.analysis.region import Region, first_sign
from tilewright.schedule.analysis.required import Place, inside
from tilewright.schedule.outside import outside_of
from tilewright.schedule.schedule import Schedule
from tilewright.support.errors import legal
from tilewright.tir.buffer import Buffer, element_region
from tilewright.tir.expr import Var
from tilewright.tir.iter_var import DATA_PARALLEL
from tilewright.tir.node import statements, walk
from tilewright.tir.shared_work import is_shared
from tilewright.tir.stmt import SERIAL, UNROLLED, BlockRealize, For, Stmt, is_thread_axis


def shared_between(buffer: Buffer, path: Iterable[Stmt], thread_tag: str = "") -> bool:
    """True when the iterations of the last loop of path, bound to thread_tag, see one and the same buffer, wherever it
    is used: shared memory, of which a block of threads has one, inside of the loops over these."""
    tags = (thread_tag, *(s.thread_tag for s in path if isinstance(s, For)))
    return is_shared(buffer) and any(map(is_thread_axis, tags))


def private_to_iterations(region: Region, buffer: Buffer) -> bool:
    """True when each iteration of the region's nest may have a copy of its own of the buffer."""
    return all(is_private(region, group) for group in region.by_buffer() if group[0].buffer is buffer)


def is_private(region: Region, group: Sequence[Touch]) -> bool:
    """True when each iteration of the nest may have a copy of its own of the group's buffer.

    That is so when the buffer is no argument, nothing outside the nest touches it, no loop outside of the
    innermost body drives a reduction in it, and every element that an iteration reads was written before in
    that iteration.
    """
    buffer = group[0].buffer
    if _is_allocated_in(region, buffer):
        return True
    if not _used_only_in(region.sch, region.nest[-1], buffer):
        return False
    if not all(t.instance is not None and _reduces_inside(t.instance) for t in group if t.writes):
        return False
    return all(_starts_itself(region.sch, t) or any(_covers(region.sch, w, t) for w in group[:k] if w.writes)
               for k, t in enumerate(group) if t.reads)


def require_own_values(sch: Schedule) -> None:
    """Refuse unless every read of a buffer that iterations of a loop have to themselves, since nothing outside of the
    loop uses it and they run at once, finds what the same iteration wrote.

    Which buffers these are changes with every move: of what uses them, of what they read and of the loop.
    """
    for loop in sch.index.loops.values():
        late = None if loop.kind in (SERIAL, UNROLLED) else _left_over(sch, loop)
        if late is not None:
            reader = "" if late.instance is None else f"block {late.instance.realize.block.name} "
            legal(False, f"each iteration of the {loop.kind} loop {loop.loop_var.name} would have a {late.buffer.name} "
                  f"of its own, and {reader}reads there what an earlier iteration of a loop around it left", loop,
                  late.stmt, hint="let each iteration write what it reads")


def _left_over(sch: Schedule, loop: For) -> Touch | None:
    """A read of what an earlier iteration of a loop around may have left in a buffer that is used inside of loop only,
    or None."""
    path = sch.path_to(loop)
    around = [s for s in path if isinstance(s, For) and s is not loop and s.kind in (SERIAL, UNROLLED)]
    own = {b: None for b in _written_below(loop) if not shared_between(b, path)} if around else {}
    outside = {s.loop_var for s in path[:-1] if isinstance(s, For)} if own else set()
    shown = {b for var, b, known in sch.own_values if var is loop.loop_var and outside <= known}
    own = {b: None for b in own if b not in shown and _used_only_in(sch, loop, b)}
    if not own:
        return None
    wide = Region(sch, [*around, loop])
    allocated = {b for i in wide.instances for b in i.realize.block.alloc_buffers}
    for group in wide.by_buffer():
        if group[0].buffer not in own or group[0].buffer in allocated:
            continue
        for k, t in enumerate(group):
            if not t.reads or any(_covers(sch, w, t) for w in group[:k] if w.writes):
                continue
            if t.instance is not None and _reduces_inside(t.instance) and _starts_itself(sch, t):
                continue
            if any(first_sign(v[:-1]) > 0 for w in group if w.writes for v in wide.directions(w.access, t.access)):
                return t
    return None


def _written_below(loop: For) -> Iterator[Buffer]:
    return (w.buffer for s in statements(loop) if isinstance(s, BlockRealize) for w in s.block.writes)


def _is_allocated_in(region: Region, buffer: Buffer) -> bool:
    return any(buffer is b for i in region.instances for b in i.realize.block.alloc_buffers)


def _used_only_in(sch: Schedule, loop: For, buffer: Buffer) -> bool:
    """True for a buffer of the function's own that nothing outside of loop touches, and no block around it declares."""
    if not is_allocated(sch, buffer):
        return False
    path = sch.path_to(loop)
    around = [s.block for s in path if isinstance(s, BlockRealize)]
    if any(r.buffer is buffer for block in around for r in (*block.reads, *block.writes)):
        return False
    outside = outside_of(sch.index)
    if outside.stray(buffer) is not None:
        return False
    for realize in sch.index.realizes.values():
        reads = outside.of(realize, buffer)
        if reads and any(r.place is s for r in reads for s in path):
            return False                                        # read around the nest, or by its bounds
        touches = bool(reads) or any(r.buffer is buffer for r in (*realize.block.reads, *realize.block.writes))
        if touches and realize not in path and loop not in sch.path_to(realize):
            return False
    return True


def _reduces_inside(instance: Instance) -> bool:
    """True when no loop outside of the region drives a reduction axis of the block."""
    return all(n in instance.free for iv in instance.realize.block.iter_vars if iv.iter_type != DATA_PARALLEL
               for n in walk(instance.values[iv.var]) if isinstance(n, Var))


def _starts_itself(sch: Schedule, t: Touch) -> bool:
    """True for an access of a reduction to its own output, which its init starts before any other step."""
    if not t.writes or t.instance is None or t.instance.realize.block.init is None:
        return False
    realize = t.instance.realize
    loops = sch.index.loops_above(realize)
    steps = [loop for loop in loops if realize.reduces_over(loop.loop_var)]
    return not any(branches_of_its_own(sch.index, realize, loop) for loop in steps[:1]) and not unsure_start(
        realize, loops, sch.analyzer_at(realize))


def _covers(sch: Schedule, write: Touch, read: Touch) -> bool:
    """True when, in each iteration of the loops around both, write touches all elements that read touches."""
    if write.instance is None or read.instance is None:
        return False
    writer, reader = (_outermost(sch, t.instance.realize) for t in (write, read) if t.instance is not None)
    common = common_loops(sch.index, writer, reader)
    apart = writer is not reader or writer is write.instance.realize            # blocks inside of one are in no order
    if not apart or not common or branches_of_its_own(sch.index, writer, reader):
        return False
    fixed = frozenset(loop.loop_var for loop in common)
    analyzer = sch.analyzer_at(common[-1].body)
    place = Place(analyzer, fixed, outside_of(sch.index).lets)
    needed = _box(read, {v: d for v, d in read.access.domains.items() if v not in fixed}, analyzer)
    cuts = beyond_domain(writer, sch.analyzer_at(writer))
    if needed is None:
        return False
    if writer is not write.instance.realize:
        inner = loops_within(sch.index, writer, fixed)
        return not cuts and any(w.buffer is write.buffer and fills(writer, w, inner, place, needed)
                                for w in writer.block.writes)
    given = {v: d for v, d in write.access.domains.items() if v not in fixed}
    points = element_region(write.buffer, write.local)
    if cuts:
        written = box_where(writer, points, given, place, cuts)
    else:
        written = _box(write, given, analyzer, widen=False) if is_dense(writer, points, given, place) else None
    limits = domain_box(writer, points, place)
    return all(box is not None and inside(needed, box, write.buffer, place) for box in (written, limits))


def _outermost(sch: Schedule, realize: BlockRealize) -> BlockRealize:
    """The block around that lies in no other but the root, or the block itself."""
    return next(s for s in sch.path_to(realize)[1:] if isinstance(s, BlockRealize))


def _box(touch: Touch, free: Mapping[Var, Interval], analyzer: Analyzer, widen: bool = True) -> list[Interval] | None:
    """The box of the elements that touch reaches while the variables of free run, or None."""
    box = intervals_of(touch.access.indices, free, analyzer, widen)
    known = [i for i in box if i is not None]
    return known if len(known) == len(box) else None
