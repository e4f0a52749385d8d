"""How loops run: parallel, vectorize, unroll, bind; annotate and unannotate."""
from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tilewright.schedule.analysis.legality import check_annotated_loops, require_independent
from tilewright.schedule.handles import plain
from tilewright.schedule.primitive import primitive
from tilewright.schedule.schedule import Schedule
from tilewright.schedule.state import BlockRV, LoopRV
from tilewright.support.errors import described, legal, require
from tilewright.tir.expr import IntImm
from tilewright.tir.node import statements, sub_statements
from tilewright.tir.stmt import PARALLEL, SERIAL, THREAD_BINDING, UNROLLED, VECTORIZED, For, Stmt, is_thread_axis

THREAD_TAGS = ("vthread", *(f"{kind}.{d}" for kind in ("blockIdx", "threadIdx", "vthread") for d in "xyz"))


@primitive
def parallel(sch: Schedule, loop: LoopRV) -> None:
    """Run the iterations of a loop on several threads.

        for i in range(n): body   ->   for i in T.parallel(n): body

    Legal when the loop is serial, drives no reduction or ordered axis, and no two of its iterations touch one
    element that either writes. Buffers whose whole life is inside one iteration are private to it.
    """
    old = _serial(sch, loop, PARALLEL)
    require_independent(sch, old, "parallel")
    sch.replace(old, old.replace(kind=PARALLEL))


@primitive
def vectorize(sch: Schedule, loop: LoopRV) -> None:
    """Run the iterations of a loop as the lanes of vectors.

        for i in range(n): body   ->   for i in T.vectorized(n): body

    Legal when parallel would be, and the extent is a constant.
    """
    old = _serial(sch, loop, VECTORIZED)
    _require_constant(old, "vectorize")
    require_independent(sch, old, "vectorize")
    sch.replace(old, old.replace(kind=VECTORIZED))


@primitive
def unroll(sch: Schedule, loop: LoopRV) -> None:
    """Write the iterations of a loop out one after the other.

        for i in range(n): body   ->   for i in T.unroll(n): body

    Legal when the loop is serial and its extent is a constant.
    """
    old = _serial(sch, loop, UNROLLED)
    _require_constant(old, "unroll")
    sch.replace(old, old.replace(kind=UNROLLED))


@primitive
def bind(sch: Schedule, loop: LoopRV, thread_axis: str) -> None:
    """Run the iterations of a loop on the GPU threads of one axis, such as "blockIdx.x" or "threadIdx.y".

        for i in range(n): body   ->   for i in T.thread_binding(n, thread="threadIdx.x"): body

    Threads of one block share its "shared" memory. What all of them need there they may compute together, with a
    barrier before and after it: the first thread does it, or each does a part, where a loop of it is bound to the same
    threadIdx axis as one around. They may share the steps of a reduction too: the lowering combines their parts.

    Threads may share the steps of a reduction where the loop drives no output axis, the reduction is whole and by a
    known combiner, the other loops that drive it are inside, and no loop inside repeats steps.

    Legal when
    - parallel would be;
    - every other loop of the kernel that is bound to this axis has the same extent, and is not nested with this one;
    - for threadIdx, no two iterations meet in an element of shared memory, but in what threads compute together: it is
      the same for all of them and written to shared memory only, a thread reads only what it would have written alone,
      parts do not meet and are no more than threads, and all threads come alike.
    """
    tag = getattr(thread_axis, "thread_tag", thread_axis)
    old = _serial(sch, loop, THREAD_BINDING)
    require(isinstance(tag, str) and tag in THREAD_TAGS, f"{described(tag)} is not a thread axis", old,
            hint=f"the axes are {', '.join(THREAD_TAGS)}")
    require_independent(sch, old, "bind", tag)
    if not tag.startswith("vthread"):
        _check_same_axis(sch, old, tag)
    inside = [s.loop_var for s in statements(old.body) if isinstance(s, For)]
    sch.replace(old, old.replace(kind=THREAD_BINDING, thread_tag=tag))
    if is_thread_axis(tag):
        check_annotated_loops(sch, inside)             # their iterations no longer have shared memory of their own


def _check_same_axis(sch: Schedule, loop: For, tag: str) -> None:
    """Other loops of the axis in the kernel share the extent, or are nested with this one.

    What nested ones run is shared work, or not legal (require_shared_work).
    """
    analyzer, path = sch.analyzer_at(loop), sch.path_to(loop)
    inside = any(isinstance(s, For) and s.thread_tag == tag for s in path[:-1])
    outermost = next(s for s in path if isinstance(s, For))
    for other, topmost in _bound_to(outermost, tag):
        mine, theirs = loop.loop_var.name, other.loop_var.name
        if other in path or any(s is other for s in statements(loop)):
            legal(other is loop or tag.startswith("threadIdx"),
                  f"loop {theirs} is bound to {tag}, and the loops are nested", loop, other)
        elif topmost and not inside:
            legal(analyzer.equal(loop.extent, other.extent),
                  f"loop {mine} has extent {loop.extent}, and loop {theirs}, "
                  f"bound to {tag} in the same kernel, has {other.extent}", loop, other,
                  hint="loops of one thread axis share an extent: split to the same factor")


def _bound_to(stmt: Stmt, tag: str, topmost: bool = True) -> Iterator[tuple[For, bool]]:
    """The loops below stmt that are bound to an axis, and whether no other one of it is around."""
    if isinstance(stmt, For) and stmt.thread_tag == tag:
        yield stmt, topmost
        topmost = False
    for below in sub_statements(stmt):
        yield from _bound_to(below, tag, topmost)


def _serial(sch: Schedule, rv: LoopRV, kind: str) -> For:
    """The loop, which must be serial or of this kind already."""
    old = sch.loop(rv)
    now = old.thread_tag or old.kind
    require(old.kind in (SERIAL, kind), f"loop {old.loop_var.name} is {now} already", old,
            hint="a loop runs in one way; split it first to run its parts differently")
    return old


def _require_constant(loop: For, verb: str) -> None:
    require(isinstance(loop.extent, IntImm),
            f"cannot {verb} loop {loop.loop_var.name}: its extent {loop.extent} is not a constant", loop,
            hint=f"sch.split(loop, factors=[None, 8]) gives an inner loop that you can {verb}")


@primitive
def annotate(sch: Schedule, block_or_loop: BlockRV | LoopRV, ann_key: str, ann_val: Any) -> None:
    """Attach a value to a loop or block under a key.

        for i in range(n): body     ->      for i in T.serial(n, annotations={"key": 1}): body
        with block("C"): body       ->      with block("C"): T.block_attr({"key": 1}); body

    Legal when the key is a string that the loop or block does not carry yet, and the value is a number, a
    string, None, or a list or dict of those.
    """
    old, notes = _annotations(sch, block_or_loop)
    require(isinstance(ann_key, str), f"the key {ann_key!r} is not a string", old)
    require(ann_key not in notes, f"{block_or_loop!r} has the annotation {ann_key!r} already", old,
            hint="unannotate removes it")
    value = plain(ann_val)
    require(_storable(value), f"the value of type {type(ann_val).__name__} is not plain data", old)
    _set_annotations(sch, block_or_loop, {**notes, ann_key: value})


@primitive
def unannotate(sch: Schedule, block_or_loop: BlockRV | LoopRV, ann_key: str) -> None:
    """Remove the annotation ann_key of a loop or block.

        for i in T.serial(n, annotations={"key": 1}): body      ->      for i in range(n): body

    Legal when the loop or block carries it.
    """
    old, notes = _annotations(sch, block_or_loop)
    require(isinstance(ann_key, str) and ann_key in notes, f"{block_or_loop!r} has no annotation {ann_key!r}", old,
            hint=f"its annotations are {', '.join(notes) or 'none'}")
    _set_annotations(sch, block_or_loop, {k: v for k, v in notes.items() if k != ann_key})


def _annotations(sch: Schedule, rv: BlockRV | LoopRV) -> tuple[Stmt, Mapping[str, Any]]:
    if isinstance(rv, LoopRV):
        loop = sch.loop(rv)
        return loop, loop.annotations
    realize = sch.realize(rv)
    return realize, realize.block.annotations


def _set_annotations(sch: Schedule, rv: BlockRV | LoopRV, notes: Mapping[str, Any]) -> None:
    if isinstance(rv, LoopRV):
        loop = sch.loop(rv)
        sch.replace(loop, loop.replace(annotations=notes))
    else:
        block = sch.realize(rv).block
        sch.replace(block, block.replace(annotations=notes))


def _storable(value: Any) -> bool:
    if isinstance(value, list):
        return all(_storable(v) for v in value)
    if isinstance(value, Mapping):
        return all(isinstance(k, str) and _storable(v) for k, v in value.items())
    return value is None or isinstance(value, (bool, int, float, str))
