"""Inlining of all stages of a kind, and what the operations of a schedule read."""
from __future__ import annotations

from collections.abc import Callable, Iterable

from tilewright.schedule.stages.facade import StageSchedule
from tilewright.te.operation import ComputeOp, post_order
from tilewright.te.tensor import Operation, Tensor, TensorRead
from tilewright.tir.expr import IntImm
from tilewright.tir.node import walk


def auto_inline_elemwise(s: StageSchedule) -> None:
    """Inline every stage that reads only the elements at its own indices, unless it was scheduled or is an output."""
    _inline(s, lambda op: all(len(r.indices) == len(op.axis) and all(
        i is iv.var for i, iv in zip(r.indices, op.axis)) for r in _reads(op)))


def auto_inline_broadcast(s: StageSchedule) -> None:
    """Inline every stage whose reads have its axes, in their order, or 0 for indices; as auto_inline_elemwise."""
    def fits(op: ComputeOp) -> bool:
        place = {iv.var: n for n, iv in enumerate(op.axis)}
        for read in _reads(op):
            axes = [i for i in read.indices if not (isinstance(i, IntImm) and i.value == 0)]
            places = [place.get(i, -1) for i in axes]      # type: ignore[call-overload]
            if -1 in places or places != sorted(set(places)):
                return False
        return True
    _inline(s, fits)


def auto_inline_injective(s: StageSchedule) -> None:
    """Inline every stage that is no reduction, unless it was scheduled or is an output."""
    _inline(s, lambda op: True)


def _inline(s: StageSchedule, fits: Callable[[ComputeOp], bool]) -> None:
    for stage in s.stages:
        op = stage.op
        if isinstance(op, ComputeOp) and stage.may_inline and not stage.is_scheduled and fits(op):
            stage.compute_inline()


def _reads(op: ComputeOp) -> list[TensorRead]:
    return [n for e in op.body for n in walk(e) if isinstance(n, TensorRead)]


def read_graph(ops: Iterable[Operation]) -> dict[Operation, tuple[Tensor, ...]]:
    """Each operation that ops need -> the tensors that it reads; producers first."""
    return {op: op.input_tensors for op in post_order(ops)}
