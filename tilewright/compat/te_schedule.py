"""`tvm.te.schedule`: ranges of axes, statements and inlining of schedules of stages, under TVM's names."""
from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from tilewright import te
from tilewright.driver.lower import functions
from tilewright.schedule.stages.facade import StageSchedule
from tilewright.schedule.stages.replay import Replay
from tilewright.schedule.stages.stage import Stage
from tilewright.schedule.state import BlockRV, LoopRV
from tilewright.support.errors import ArgumentError, described
from tilewright.te.constant import ConstantOp
from tilewright.te.operation import ComputeOp, PlaceholderOp, post_order
from tilewright.te.tensor import Operation, Tensor, TensorRead
from tilewright.tir import Buffer, IRModule, PrimFunc, Stmt
from tilewright.tir.arithmetic import binary
from tilewright.tir.expr import Expr, IntImm, Var
from tilewright.tir.iter_var import ORDERED, IterVar, Range
from tilewright.tir.node import substitute, walk
from tilewright.tir.stmt import For


def infer_bound(s: StageSchedule) -> dict[IterVar, Range]:
    """Each axis of a stage that is not inlined, whether it is a loop in the end or was split or fused -> its range.

    An axis of an operation that is computed at a loop begins where the part that an iteration of that loop needs does:
    an expression of the variables of axes around it. All others begin at 0 or at the beginning of their domain.
    Raises ScheduleError where something recorded is not legal.
    """
    replay = _Bounded(s, whole(s), "bounds", True)
    replay.run()
    return replay.ranges


def whole(s: StageSchedule) -> list[Tensor]:
    """All placeholders of the schedule, and the outputs."""
    given = [stage.op for stage in s.stages if isinstance(stage.op, PlaceholderOp) and not isinstance(
        stage.op, ConstantOp) and s.scans.state(stage) is None]
    return [t for op in dict.fromkeys((*given, *s.outputs)) for t in op.outputs]


class _Bounded(Replay):
    """A replay that notes the range of every loop when an axis gets it."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.ranges: dict[IterVar, Range] = {}
        self._axis_of: dict[Var, Expr] = {}              # loop variable -> that of its axis

    def _enter(self, block: BlockRV, axes: Sequence[IterVar], loops: Sequence[LoopRV]) -> None:
        super()._enter(block, axes, loops)
        realize, own = self._sch.realize(block), {self._for(iv).loop_var: IntImm(0) for iv in axes}
        analyzer = self._sch.analyzer_at(None)
        for iv, value in zip(reversed(axes), reversed(realize.iter_values)):
            start = IntImm(0) if iv.iter_type == ORDERED else substitute(value, {**self._axis_of, **own})
            self.ranges[iv] = Range(analyzer.simplify(binary("add", start, iv.domain.min)), self.ranges[iv].extent)

    def _let(self, iv: IterVar, loop: LoopRV) -> None:
        super()._let(iv, loop)
        found = self._for(iv)
        self._axis_of[found.loop_var] = iv.var
        self.ranges[iv] = Range(found.min, found.extent)

    def _for(self, iv: IterVar) -> For:
        loop = self._sch.get(self._loops[id(iv)])
        assert isinstance(loop, For)
        return loop


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


_made: deque[tuple[Stmt, StageSchedule]] = deque(maxlen=16)      # what ScheduleOps gave last, and the schedules


def schedule_ops(schedule: StageSchedule, bounds: Any = None, debug_keep_trivial_loop: bool = False) -> Stmt:
    """The loops of the schedule, in block form, over buffers of all its placeholders and outputs.

    bounds, of InferBound, and debug_keep_trivial_loop are accepted: the loops are found with their bounds.
    """
    body = schedule.replay(whole(schedule), "main", partial=True).func.body
    _made.append((body, schedule))
    return body


def post_process(arg_list: Sequence[Any], stmt: Any, extern_buffer: Mapping[Any, Buffer] | None = None) -> PrimFunc:
    """The function of arg_list whose body is stmt, one of the last that ScheduleOps gave.

    Raises ArgumentError for another stmt.
    """
    schedule = next((s for made, s in _made if made is stmt), None)
    if schedule is None:
        raise ArgumentError(f"SchedulePostProcToPrimFunc: the body is {described(stmt)}",
                            "pass what ScheduleOps returned")
    return schedule_to_module(schedule, arg_list, "main", extern_buffer)["main"]


def schedule_to_module(sch: StageSchedule, args: Sequence[Any], name: str = "main",
                       binds: Mapping[Any, Buffer] | None = None) -> IRModule:
    """The function of a schedule of stages before it is lowered. Raises ArgumentError where binds has buffers."""
    if binds:
        raise ArgumentError("binds: tensors have compact buffers of their own here")
    return IRModule(functions(sch, args, name, partial=True))


NAMES: dict[str, Any] = {
    "Schedule": StageSchedule, "Stage": Stage, "create_schedule": te.create_schedule, "Buffer": Buffer,
    "InferBound": infer_bound, "ScheduleOps": schedule_ops, "SchedulePostProcToPrimFunc": post_process,
    "AutoInlineElemWise": auto_inline_elemwise, "AutoInlineBroadcast": auto_inline_broadcast,
    "AutoInlineInjective": auto_inline_injective, "CreateReadGraph": read_graph,
    "PostDFSOrder": lambda roots, read_graph=None: post_order(roots),
}
