"""When what the threads of a block do together gives what each of them would have done alone."""
from __future__ import annotations

from collections.abc import Iterator, Sequence

from tilewright.schedule.analysis.dataflow import inputs_of
from tilewright.schedule.analysis.privacy import private_to_iterations
from tilewright.schedule.analysis.region import Region
from tilewright.schedule.analysis.shared_reductions import (
    filled_together,
    loops_around,
    shared_reduction,
    shares_steps,
)
from tilewright.schedule.outside import outside_of
from tilewright.schedule.schedule import Schedule
from tilewright.support.errors import legal
from tilewright.tir.accesses import uses
from tilewright.tir.buffer import Buffer
from tilewright.tir.conversion import is_const
from tilewright.tir.expr import Expr
from tilewright.tir.node import children, statements, walk
from tilewright.tir.shared_work import SharedWork, calls_out, is_shared, shared_work_of
from tilewright.tir.stmt import BlockRealize, For, IfThenElse, Stmt, While, is_thread_axis

_ALONE = "let each thread compute what it needs in local memory"


def require_shared_work(sch: Schedule) -> None:
    """Refuse unless every nest that threads of a block run together may be run so.

    Alone, each thread would run all of the nest. That gives each thread what it finds in the shared memory that they
    fill together when a thread reads nothing there but what it would have written itself before, when what is written
    is the same for all threads, and when their parts of the nest do not meet in an element.
    """
    if not any(loop.thread_tag and is_thread_axis(loop.thread_tag) for loop in sch.index.loops.values()):
        return

    def refuse(message: str, *at: Stmt, hint: str = "") -> None:
        legal(False, message, *at, hint=hint)

    for realize in sch.index.realizes.values():
        _require_shared_reduction(sch, realize)
    works = shared_work_of(sch.func, refuse)
    _require_seen(sch, works)
    for work in works:
        filled = _filled(sch, work)
        _require_uniform(sch, work)
        if work.spread:
            _require_parts(sch, work)
        for loop in work.around:
            if work.divides(loop):
                _require_same_for_all(sch, work, loop)
                _require_own(sch, work, loop, filled)


def _require_shared_reduction(sch: Schedule, realize: BlockRealize) -> None:
    """The threads that run the steps of a reduction between them can join their parts."""
    above = loops_around(sch.index, realize)
    if any(shares_steps(loop) and realize.reduces_over(loop.loop_var) for loop in above):
        found = shared_reduction(realize, above)
        legal(not isinstance(found, str), f"threads share the steps of block {realize.block.name}, and could not join "
              f"their parts: {found}", realize, hint="between loops over threads, loops are serial, or bound too")


def _filled(sch: Schedule, work: SharedWork) -> set[Buffer]:
    """The shared memory that the nest writes; it may write no other memory that is used outside of it."""
    own = {id(s) for s in statements(work.stmt)} | {id(s) for s in sch.path_to(work.stmt)}
    others = [s for s in statements(sch.func.body) if isinstance(s, BlockRealize) and id(s) not in own]
    filled: set[Buffer] = set()
    for realize in _computed(sch, work):
        for region in realize.block.writes:
            buffer = region.buffer
            touched = (b for r in others for b in (*inputs_of(sch, r), *(w.buffer for w in r.block.writes)))
            outside = any(buffer is b for b in (*sch.func.buffers, *touched)) or \
                outside_of(sch.index).stray(buffer) is not None
            outer = (work.spread[0][0] if work.spread else work.around[0])
            legal(is_shared(buffer) or not outside,
                  f"loop {outer.loop_var.name} is bound to {outer.thread_tag}, and the loops are nested: threads share "
                  f"work that fills shared memory, and block {realize.block.name} writes {buffer.name} in scope "
                  f"{buffer.scope}", outer, work.stmt, realize, hint="bind loops of one axis side by side")
            if is_shared(buffer):
                filled.add(buffer)
    return filled


def _require_seen(sch: Schedule, works: Sequence[SharedWork]) -> None:
    """No calls fill shared memory, each thread all of it: that is no shared work."""
    parted = {(id(r), id(loop)) for w in works for r in _blocks(w.stmt) for loop in w.around if w.divides(loop)}
    for loop in sch.index.loops.values():
        if not is_thread_axis(loop.thread_tag) or is_const(loop.extent, 1):
            continue
        for realize in _blocks(loop):
            filled = [r.buffer for r in realize.block.writes if is_shared(r.buffer)]
            legal(not filled or (id(realize), id(loop)) in parted or not any(map(calls_out, walk(realize)))
                  or _depends(sch, realize, loop),
                  f"each thread of loop {loop.loop_var.name} would make the calls of block {realize.block.name}, which "
                  f"write {filled[0].name if filled else ''}, and all of them the same", realize, loop, hint=_ALONE)


def _depends(sch: Schedule, realize: BlockRealize, loop: For) -> bool:
    """True when the variable of loop is used by the block, or on the way to it."""
    path = sch.path_to(realize)
    between = [e for s in path[path.index(loop) + 1:-1] for e in children(s) if isinstance(e, Expr)]
    return any(n is loop.loop_var for e in (*between, realize) for n in walk(e))


def _computed(sch: Schedule, work: SharedWork) -> list[BlockRealize]:
    """The blocks in the nest, or the one that it is a part of."""
    around = [s for s in sch.path_to(work.stmt) if isinstance(s, BlockRealize)]
    return list(_blocks(work.stmt)) or around[-1:]


def _blocks(stmt: Stmt) -> Iterator[BlockRealize]:
    return (s for s in statements(stmt) if isinstance(s, BlockRealize))


def _require_uniform(sch: Schedule, work: SharedWork) -> None:
    """No condition on data decides whether a thread comes to the nest, and no threads have parts of a reduction in it.
    """
    path = sch.path_to(work.stmt)
    first = path.index(work.around[0])
    for s in path[first:-1]:
        data = isinstance(s, (For, IfThenElse, BlockRealize)) and any(u.field != "iter_values" for u in uses(s))
        legal(not isinstance(s, While) and not data,
              "the threads of a block would meet below a condition on data, which need not be the same for all", s,
              work.stmt, hint=_ALONE)
    for realize in _computed(sch, work):
        for loop in work.around:
            legal(not (work.meets and shares_steps(loop) and realize.reduces_over(loop.loop_var)),
                  f"the threads of a block would run block {realize.block.name} together, and those of loop "
                  f"{loop.loop_var.name} share its reduction", loop, realize, hint=_ALONE)


def _require_parts(sch: Schedule, work: SharedWork) -> None:
    """The iterations that different threads run touch different elements of what the nest writes."""
    inner = [loop for _, loop in work.spread]
    path = sch.path_to(inner[-1])
    chain = [s for s in path[path.index(work.stmt):] if isinstance(s, For)]
    axes = {loop.thread_tag for loop in inner}
    legal(len(axes) == len(inner) and all(loop in chain for loop in inner),
          f"several loops bound to {inner[-1].thread_tag} would stand in one nest that threads share", work.stmt,
          *inner, hint="bind one loop of the nest to each axis")
    if not all(loop in chain for loop in inner):
        return
    at_last = max(chain.index(loop) for loop in inner)
    last = path.index(work.around[-1])
    longer = [s for s in path[last + 1:] if isinstance(s, For)]
    # writes of parts that run between the same barriers; a read may be of what an earlier iteration has left
    for nest, reads in ((chain, False), (longer, True)):
        region, at = Region(sch, nest), [nest.index(loop) for loop in inner]
        for group in region.by_buffer():
            if not is_shared(group[0].buffer) and private_to_iterations(Region(sch, [chain[at_last]]), group[0].buffer):
                continue
            for k, a in enumerate(group):
                for b in group[k:]:
                    if (a.writes or b.writes) and (not reads or a.reads or b.reads):
                        meets = any(v[p] for v in region.directions(a.access, b.access) for p in at)
                        legal(not meets, f"two threads that share the work of loop {inner[-1].loop_var.name} may touch "
                              f"the same element of {a.buffer.name}, which is written", work.stmt, a.stmt,
                              hint="bind loops whose iterations write different elements")


def _require_same_for_all(sch: Schedule, work: SharedWork, loop: For) -> None:
    """What the nest computes does not depend on the thread of loop, nor do the values that it reads."""
    below, computed = list(_blocks(loop)), _computed(sch, work)
    found = list(computed)
    for realize in found:                                              # grows while it runs
        read = inputs_of(sch, realize)
        found += [w for w in below if not any(w is f for f in found)
                  and any(r.buffer is b for r in w.block.writes for b in read)]
    part = not any(_blocks(work.stmt))             # of a block, whose other parts and axes may depend on the thread
    for realize in found[1:] if part else found:
        used = _depends(sch, realize, loop)
        legal(not used, f"the threads of loop {loop.loop_var.name} would share the work of block "
              f"{computed[0].block.name}, and what block {realize.block.name} computes depends on "
              f"{loop.loop_var.name}", work.stmt, realize, loop, hint=_ALONE)


def _require_own(sch: Schedule, work: SharedWork, loop: For, filled: set[Buffer]) -> None:
    """Each iteration of loop reads of the memory only what it would have written itself."""
    together, region = filled_together(sch, loop, loop.thread_tag), Region(sch, [loop])
    for buffer in filled:
        legal(buffer in together, f"the threads of loop {loop.loop_var.name} would fill {buffer.name} together, and "
              "also each thread by itself, with no barrier between", work.stmt, loop, hint=_ALONE)
        legal(private_to_iterations(region, buffer), f"the threads of loop {loop.loop_var.name} would fill "
              f"{buffer.name} together, and it is not shown that each, alone, would have written all that it reads",
              work.stmt, loop, hint="fill all that the threads of the block read")
