"""The ranges of the axes of a schedule, as its replay finds them."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright.schedule.stages.facade import StageSchedule
from tilewright.schedule.stages.replay import Replay
from tilewright.schedule.state import BlockRV, LoopRV
from tilewright.te.constant import ConstantOp
from tilewright.te.operation import PlaceholderOp
from tilewright.te.tensor import Tensor
from tilewright.tir.arithmetic import binary
from tilewright.tir.expr import Expr, IntImm, Var
from tilewright.tir.iter_var import ORDERED, IterVar, Range
from tilewright.tir.node import substitute
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
