"""`tvm.te.schedule`: bounds, statements and inlining of schedules of stages, under TVM's names."""
from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from tilewright import te
from tilewright.compat import auto_inline
from tilewright.compat.bounds import infer_bound, whole
from tilewright.driver.lower import functions
from tilewright.schedule.stages.facade import StageSchedule
from tilewright.schedule.stages.stage import Stage
from tilewright.support.errors import ArgumentError, described
from tilewright.te.operation import post_order
from tilewright.tir import Buffer, IRModule, PrimFunc, Stmt

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
    "AutoInlineElemWise": auto_inline.auto_inline_elemwise, "AutoInlineBroadcast": auto_inline.auto_inline_broadcast,
    "AutoInlineInjective": auto_inline.auto_inline_injective, "CreateReadGraph": auto_inline.read_graph,
    "PostDFSOrder": lambda roots, read_graph=None: post_order(roots),
}
