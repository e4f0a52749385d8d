"""What a stage asks of the memory of its result: versions, alignment, requests ahead of time."""
from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tilewright.schedule.schedule import Schedule
from tilewright.schedule.stages.axes import StageAxes
from tilewright.schedule.stages.records import Call
from tilewright.schedule.state import BlockRV, LoopRV
from tilewright.support.errors import ScheduleError, described
from tilewright.te.tensor import Operation, Tensor
from tilewright.tir.buffer import Buffer
from tilewright.tir.conversion import convert
from tilewright.tir.expr import Expr, Var
from tilewright.tir.iter_var import COMM_REDUCE, THREAD_INDEX, IterVar
from tilewright.tir.node import walk
from tilewright.tir.stmt import Block


@dataclass(frozen=True, eq=False)
class Request:
    """One call of a method below: numbers, and the loop and tensor that they are about."""
    kind: str
    numbers: tuple[int, ...]
    call: Call
    axis: IterVar | None = None
    tensor: Tensor | None = None


class MemoryCalls(StageAxes):
    """The methods of a stage that are about its memory; each records a Request."""

    def __init__(self, schedule: Any, op: Operation) -> None:
        super().__init__(schedule, op)
        self.requests: list[Request] = []
        self.launched: list[tuple[str, Call]] = []           # thread axes of env_threads

    def said_of(self, iv: IterVar) -> Call | None:
        return next((r.call for r in self.requests if r.axis is iv), None) or super().said_of(iv)

    def _require_unprefetched(self, call: Call, tensors: Iterable[Tensor]) -> None:
        """Refuse a change by which this stage reads tensors no longer, where it was told to prefetch one of them."""
        taken = set(tensors)
        for r in self.requests:
            if r.tensor in taken:
                call.refuse(f"{self.op.name} reads {r.tensor.name} no longer from then on, and {r.call.text} "
                            f"({r.call.site}) is about it", "do this before that call")

    def double_buffer(self) -> None:
        """Compute the next iteration's part of this stage, in a second copy of its memory, while this one's is read.

        The loop at which the stage is computed becomes a software pipeline of two stages.

        Legal when this stage is computed at a serial loop of its reader.
        """
        call = self._call("double_buffer", [])
        self._require_computed(call)
        self.requests.append(Request("double_buffer", (), call))

    def rolling_buffer(self) -> None:
        """Keep what the iterations of the loop around this stage have in common, in a circular buffer.

        Legal when this stage is computed at a serial loop of its reader, whose iterations need regions that overlap and
        move in one direction.
        """
        call = self._call("rolling_buffer", [])
        self._require_computed(call)
        self.requests.append(Request("rolling_buffer", (), call))

    def storage_align(self, axis: IterVar, factor: int, offset: int) -> None:
        """Pad the result so that the stride of `axis`, in elements, is offset modulo factor.

        Legal when this stage is computed, its result is no argument of the function, axis is one of the operation's
        own axes, and 0 <= offset < factor.
        """
        call = self._call("storage_align", [axis], f"{factor}, {offset}")
        self._require_computed(call)
        places = [n for n, own in enumerate(self.storage_axes) if own is axis]
        if not places:
            call.refuse(f"{axis.var.name if isinstance(axis, IterVar) else described(axis)} is not an axis of the "
                        f"operation {self.op.name}", "storage has the axes op.axis, or those of transform_layout, "
                        "whatever the loops are")
        if not (_is_natural(factor) and _is_natural(offset) and offset < factor):
            call.refuse(f"factor is {factor!r} and offset {offset!r}, not integers with 0 <= offset < factor")
        self.requests.append(Request("storage_align", (places[0], factor, offset), call))

    def prefetch(self, tensor: Tensor, var: IterVar, offset: int) -> None:
        """Ask at each iteration of the loop `var` for what this stage reads of tensor `offset` iterations later.

        Legal when this stage is computed and reads tensor, var is one of its loops, and offset is a positive number.
        """
        name = tensor.name if isinstance(tensor, Tensor) else described(tensor)
        call = self._call("prefetch", [tensor, var], f"{offset}")
        self._require_computed(call)
        self._require_leaf(call, var)
        if not isinstance(tensor, Tensor) or not any(t is tensor for t in self.op.input_tensors):
            call.refuse(f"{self.op.name} does not read {name}",
                        f"it reads {', '.join(t.name for t in self.op.input_tensors) or 'nothing'}")
        if not _is_natural(offset) or offset == 0:
            call.refuse(f"the offset {offset!r} is not a positive number of iterations")
        self.requests.append(Request("prefetch", (offset,), call, var, tensor))

    def set_store_predicate(self, predicate: Expr) -> None:
        """Accept that only some of the threads that share this stage's reduction store its result.

        Such a reduction stores once whatever the predicate says, so nothing is recorded.

        Legal when predicate speaks of thread axes alone to which reduction axes of this stage are bound: by any other,
        elements would keep what the memory held before.
        """
        call = self._call("set_store_predicate", [], str(predicate))
        shared = {mark.thread_var for key, mark in self.marks.items()
                  if any(id(iv) == key for iv in self.leaf_iter_vars if iv.iter_type == COMM_REDUCE)}
        named = {n for n in walk(convert(predicate)) if isinstance(n, Var)}
        if not named or not named <= shared:
            call.refuse(f"where the predicate is false, elements of {self.op.name} would keep what the memory held "
                        "before", "bind a reduction axis to the thread axis first; or write te.if_then_else into the "
                        "expression")

    def env_threads(self, threads: Any) -> None:
        """Accept thread axes that loops of the schedule are bound to, by then or later: they are launched once, around
        the stage.

        Legal when each is a thread axis. Where the schedule is used, some loop is bound to each.
        """
        given = list(threads) if isinstance(threads, (list, tuple)) else [threads]
        call = self._call("env_threads", given)
        for axis in given:
            if not isinstance(axis, IterVar) or axis.iter_type != THREAD_INDEX:
                call.refuse(f"{described(axis)} is not a thread axis", 'make one with te.thread_axis("threadIdx.x")')
        self.launched += [(axis.thread_tag, call) for axis in given]


def _is_natural(x: object) -> bool:
    return isinstance(x, int) and not isinstance(x, bool) and x >= 0


def require_bound(stages: Iterable[Any]) -> None:
    """Raise ScheduleError unless a loop of some stage is bound to each thread axis that env_threads was given."""
    every = list(stages)
    bound = {mark.thread_tag for stage in every for mark in stage.marks.values()}
    for stage in every:
        for tag, call in stage.launched:
            if tag not in bound:
                raise ScheduleError(f"{call.site}: {call.text}: no loop is bound to {tag}", "bind loops to "
                                    "it; it is launched around all stages that are computed there")


def request_line(stage: Any, r: Request) -> str:
    """The request as text that is equal in every process."""
    axis = "" if r.axis is None else stage.index_of(r.axis)
    tensor = "" if r.tensor is None else [t is r.tensor for t in stage.op.input_tensors]
    return f"{r.kind} {r.numbers} {axis} {tensor}"


def grant(sch: Schedule, block: BlockRV, r: Request, loops: dict[int, LoopRV], buffer: Buffer | None) -> None:
    """Do as r asks, on the block of its stage; buffer is that of r.tensor."""
    if r.kind == "double_buffer":
        sch.annotate(block, "double_buffer_scope", 0)
    elif r.kind == "rolling_buffer":
        sch.rolling_buffer(block, 0)
    elif r.kind == "storage_align":
        sch.storage_align(block, 0, *r.numbers)
    else:
        definition = sch.get(block)
        assert isinstance(definition, Block) and r.axis is not None
        place = next(n for n, region in enumerate(definition.reads) if region.buffer is buffer)
        sch.prefetch(block, place, loops[id(r.axis)], *r.numbers)
