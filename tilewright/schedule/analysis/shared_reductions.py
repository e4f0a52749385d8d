"""Reductions whose steps are shared by the threads of a block: when that is possible, and how their loops lie;
the shared memory that they fill together."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.arith.analyzer import Analyzer
from tilewright.arith.itermap import detect_iter_map
from tilewright.schedule.analysis.domains import domains_of
from tilewright.schedule.analysis.iteration import unsure_start
from tilewright.schedule.analysis.reducers import Reduction, reduction_of
from tilewright.schedule.schedule import Schedule
from tilewright.schedule.state import Index, replaced
from tilewright.support.errors import legal
from tilewright.tir.arithmetic import conjuncts
from tilewright.tir.buffer import Buffer
from tilewright.tir.conversion import is_const
from tilewright.tir.expr import Expr, IntImm, Var
from tilewright.tir.iter_var import COMM_REDUCE
from tilewright.tir.node import statements, walk
from tilewright.tir.shared_work import is_shared, shared_work_of
from tilewright.tir.stmt import SERIAL, THREAD_BINDING, UNROLLED, BlockRealize, For, Store, is_thread_axis


@dataclass(frozen=True)
class SharedReduction:
    """The loops around a reduction block whose steps several threads run, each some of them.

    `threads` run the steps at once; each thread runs those of `serial`, inside, one after the other. `condition` are
    the parts of the block's predicate that say which outputs there are.
    """
    realize: BlockRealize
    reduction: Reduction
    threads: tuple[For, ...]
    serial: tuple[For, ...]
    condition: tuple[Expr, ...]


def loops_around(index: Index, realize: BlockRealize) -> list[For]:
    """The loops around a block up to the one that holds it, after the bound ones around that, outermost first."""
    above = index.loops_above(realize)
    path = [s for s in index.path_to(realize) if isinstance(s, For)]
    return [*(s for s in path[:len(path) - len(above)] if s.kind == THREAD_BINDING), *above]


def is_block_thread(loop: For, bound: For | None = None) -> bool:
    """True for a loop over the threads of a block, real ones; `bound` is (to be) one."""
    return loop is bound or loop.thread_tag.startswith("threadIdx")


def shares_steps(loop: For, bound: For | None = None) -> bool:
    """True for a loop over more than one thread of a block; what a single one runs is not shared."""
    return is_block_thread(loop, bound) and not is_const(loop.extent, 1)


def shared_reduction(realize: BlockRealize, above: Sequence[For], bound: For | None = None) -> SharedReduction | str:
    """How threads share the reduction, where a loop of `above` (those around the block, outermost first) that drives it
    is bound to threads, or is `bound`, which is to be; what stands against it, otherwise.
    """
    block = realize.block
    steps = [loop for loop in above if realize.reduces_over(loop.loop_var)]
    threads = tuple(loop for loop in steps if shares_steps(loop, bound))
    if not threads:
        return f"no threads run the steps of block {block.name}"
    reduction = reduction_of(block)
    if reduction is None:
        return f"block {block.name} is not the whole reduction by a combiner that is known to be associative"
    if block.alloc_buffers or block.match_buffers:
        return f"block {block.name} has buffers or views of its own"
    first = next(n for n, loop in enumerate(above) if loop is threads[0])
    for loop in above[:first]:
        if realize.reduces_over(loop.loop_var):
            return f"loop {loop.loop_var.name}, outside of it, runs steps of the same reduction"
    outermost = next(n for n, loop in enumerate(above) if loop is bound or is_thread_axis(loop.thread_tag))
    for loop in above[outermost:first]:
        if loop.kind not in (SERIAL, UNROLLED, THREAD_BINDING) and not _at_most_once(loop) and loop is not bound \
                or loop.thread_tag.startswith("blockIdx"):
            return f"loop {loop.loop_var.name}, between the threads, is {loop.thread_tag or loop.kind}"
    serial: list[For] = []
    for loop in above[first:]:
        name = loop.loop_var.name
        if loop is not bound and (loop.kind in (SERIAL, UNROLLED) or _at_most_once(loop)):
            serial.append(loop)
        elif serial or not is_block_thread(loop, bound):
            return f"loop {name}, inside of it, is {loop.thread_tag or loop.kind}"
    for loop in (*threads, *serial):
        if _drives_output(realize, loop.loop_var):
            return f"loop {loop.loop_var.name} drives an output axis of block {block.name}"
        if not isinstance(loop.extent, IntImm) and any(loop is t for t in threads):
            return f"loop {loop.loop_var.name} has extent {loop.extent}, not a constant"
    analyzer = Analyzer()
    for loop in above:
        analyzer.bind(loop.loop_var, loop.min, loop.extent)
    why = unsure_start(realize, above, analyzer)
    if why:
        return why
    values = [value for iv, value in realize.bound if iv.iter_type == COMM_REDUCE]
    mapping = detect_iter_map(values, domains_of([*threads, *serial]), realize.predicate, analyzer)
    if mapping is None or not mapping.is_injective:
        return f"the loops from {threads[0].loop_var.name} inwards may repeat steps of block {block.name}"
    condition = _of_outputs(realize, {loop.loop_var for loop in (*steps, *serial)})
    if isinstance(condition, str):
        return condition
    return SharedReduction(realize, reduction, threads, tuple(serial), condition)


def _at_most_once(loop: For) -> bool:
    """True for a loop of a thread's own that runs once or never, of whatever kind."""
    return not loop.thread_tag and isinstance(loop.extent, IntImm) and loop.extent.value <= 1


def _drives_output(realize: BlockRealize, var: Var) -> bool:
    return any(iv.iter_type != COMM_REDUCE and any(n is var for n in walk(value)) for iv, value in realize.bound)


def _of_outputs(realize: BlockRealize, steps: set[Var]) -> tuple[Expr, ...] | str:
    """The conditions of the predicate that do not speak of the loops `steps`."""
    outputs = {n for iv, value in realize.bound
               if iv.iter_type != COMM_REDUCE for n in walk(value) if isinstance(n, Var)}
    kept = []
    for c in conjuncts(realize.predicate):
        used = {n for n in walk(c) if isinstance(n, Var)}
        if not used & steps:
            kept.append(c)
        elif used & outputs:
            return f"the condition {c} of block {realize.block.name} speaks of outputs and steps at once"
    return tuple(kept)


def require_one_thread(realize: BlockRealize, above: Sequence[For], hint: str) -> None:
    """Refuse where threads share the reduction of the block: each has a start of its own, joined in the lowering."""
    threads = [loop for loop in above if loop.kind == THREAD_BINDING and not is_const(loop.extent, 1)
               and realize.reduces_over(loop.loop_var)]
    legal(not threads, f"threads share the reduction of block {realize.block.name}: each has a start of its own",
          *threads, hint=hint)


def filled_together(sch: Schedule, loop: For, thread_tag: str) -> set[Buffer]:
    """The shared buffers that nothing below loop, which is (to be) bound to thread_tag, writes but what its threads do
    together, between barriers."""
    if not is_thread_axis(thread_tag) or not any(
            isinstance(s, Store) and is_shared(s.buffer) for s in statements(loop)):
        return set()
    bound = loop if loop.thread_tag == thread_tag else loop.replace(kind=THREAD_BINDING, thread_tag=thread_tag)
    body = sch.func.body if bound is loop else replaced(sch.index, loop, bound)
    works = shared_work_of(sch.func.with_body(body), lambda *_, **__: None)
    parted = {id(s) for w in works if w.divides(bound) for s in statements(w.stmt)}
    alone = {s.buffer for s in statements(bound) if isinstance(s, Store) and id(s) not in parted}
    return {s.buffer for s in statements(bound) if isinstance(s, Store) and is_shared(s.buffer)} - alone
