"""Writes out the reductions whose steps the threads of a block share: parts, shared memory, a tree."""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tilewright import tir
from tilewright.lowering.conditions import guard, likely, terms_of
from tilewright.schedule.analysis.reducers import stores
from tilewright.schedule.analysis.shared_reductions import (
    SharedReduction,
    is_block_thread,
    shared_reduction,
    shares_steps,
)
from tilewright.support.errors import LowerError
from tilewright.tir.arithmetic import binary, intrinsic
from tilewright.tir.buffer import whole_region
from tilewright.tir.node import substitute, walk
from tilewright.tir.stmt import map_sub_statements, seq

BARRIER = tir.Evaluate(intrinsic("sync", "shared"))


def lower_cross_thread_reductions(func: tir.PrimFunc) -> tir.PrimFunc:
    """No reduction axis is driven by a loop that is bound to the threads of a block.

    Each thread reduces its steps into a part of its own; the parts meet in shared memory, where they are combined
    pairwise, half as many threads at work after each barrier (Harris, "Optimizing parallel reduction in CUDA", 2007);
    the first thread stores the result, once. Raises LowerError where the loops do not lie so that this can be done.
    """
    if not any(isinstance(n, tir.For) and is_block_thread(n) for n in walk(func.body)):
        return func
    body = _visit(func.body, (), [])
    if body is func.body:
        return func
    assert isinstance(body, tir.BlockRealize)
    whole = tuple(map(whole_region, func.buffers))
    return func.with_body(body.replace(block=body.block.replace(reads=whole, writes=whole)))


def _visit(node: Any, above: tuple[tir.For, ...], made: list[tir.Buffer]) -> Any:
    """node with its shared reductions written out; the memory where parts meet is added to made, for the block around.
    """
    if isinstance(node, tir.BlockRealize) or isinstance(node, tir.For) and node.kind != tir.THREAD_BINDING:
        shared = list(_shared_below(node, above))
        if shared:
            for s in shared:
                node = _written_out(node, s, above, made)
            return node
    if not isinstance(node, tir.Block):
        around = (*above, node) if isinstance(node, tir.For) else above
        return map_sub_statements(node, lambda s: _visit(s, around, made))
    # into a block go the threads around it only: each needs a place for its part
    inside = tuple(loop for loop in above if loop.kind == tir.THREAD_BINDING)
    here: list[tir.Buffer] = []
    new = map_sub_statements(node, lambda s: _visit(s, inside, here))
    return new.replace(alloc_buffers=(*node.alloc_buffers, *here)) if here else new


def _shared_below(stmt: tir.Stmt, above: tuple[tir.For, ...]) -> Iterator[SharedReduction]:
    """The shared reductions below stmt whose steps in one thread start at stmt."""
    if isinstance(stmt, tir.Seq):
        for s in stmt.stmts:
            yield from _shared_below(s, above)
    elif isinstance(stmt, tir.For) and stmt.kind != tir.THREAD_BINDING:
        yield from (s for s in _shared_below(stmt.body, (*above, stmt)) if stmt in s.serial)
    elif isinstance(stmt, tir.BlockRealize) and any(
            shares_steps(loop) and stmt.reduces_over(loop.loop_var) for loop in above):
        found = shared_reduction(stmt, above)
        if isinstance(found, str):
            raise LowerError(f"threads cannot share the reduction of block {stmt.block.name}: {found}",
                             "rfactor makes a block of each thread's part")
        yield found


def _written_out(stmt: tir.Stmt, shared: SharedReduction, above: tuple[tir.For, ...],
                 made: list[tir.Buffer]) -> tir.Stmt:
    """stmt, which runs one thread's steps, between the start of its part and the tree over all parts."""
    r, block = shared.reduction, shared.realize.block
    assert block.init is not None
    values = {iv.var: v for iv, v in shared.realize.bound}
    terms = tuple(substitute(t, values) for t in r.terms)
    point = tuple(substitute(i, values) for i in r.point)
    threads = [loop for loop in above if is_block_thread(loop) or _is_virtual(loop)]
    zero = (tir.IntImm(0),)
    parts = tuple(tir.Buffer(f"{b.name}_part", (tir.IntImm(1),), b.dtype, scope="local") for b in r.targets)
    meeting = tuple(tir.Buffer(f"{b.name}_parts", tuple(loop.extent for loop in threads), b.dtype, scope="shared")
                    for b in r.targets)
    made += meeting
    step = guard(likely(terms_of(shared.realize.predicate)), r.step(parts, zero, terms))
    own = [binary("sub", loop.loop_var, loop.min) for loop in threads]
    body = seq([
        stores(parts, r.combiner.identity, zero),
        _replaced(stmt, shared.realize, step),
        stores(meeting, [tir.Load(b, zero) for b in parts], tuple(own)),
        BARRIER,
        *_tree(shared, meeting, threads, own),
        guard(likely([*shared.condition, *(binary("eq", i, 0) for i, t in zip(own, threads) if t in shared.threads)]),
              seq([substitute(block.init, values),                     # which need not be the identity
                   r.step(r.targets, point, tuple(tir.Load(b, tuple(own)) for b in meeting))])),
        BARRIER,
    ])
    for b in reversed(parts):
        body = tir.Allocate(b, body)
    return body


def _is_virtual(loop: tir.For) -> bool:
    """True for a loop over virtual threads: one thread runs them, so each needs parts of its own."""
    return loop.kind == tir.THREAD_BINDING and loop.thread_tag.startswith("vthread")


def _tree(shared: SharedReduction, meeting: tuple[tir.Buffer, ...], threads: Sequence[tir.For],
          own: Sequence[tir.Expr]) -> list[tir.Stmt]:
    """Combine pairs of parts along one axis of threads after the other, until that of thread 0 is the result."""
    out: list[tir.Stmt] = []
    for axis, loop in enumerate(threads):
        if loop not in shared.threads:
            continue
        assert isinstance(loop.extent, tir.IntImm)
        left = loop.extent.value
        while left > 1:
            half = (left + 1) // 2
            other = tuple(binary("add", i, half) if n == axis else i for n, i in enumerate(own))
            pair = shared.reduction.step(meeting, tuple(own), tuple(tir.Load(b, other) for b in meeting))
            out += [tir.IfThenElse(binary("lt", own[axis], left - half), pair), BARRIER]
            left = half
    return out


def _replaced(stmt: Any, old: tir.Stmt, new: tir.Stmt) -> Any:
    return new if stmt is old else map_sub_statements(stmt, lambda s: _replaced(s, old, new))
