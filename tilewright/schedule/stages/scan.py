"""Scans in the façade: which stages are parts of one, and what may not be asked of them."""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tilewright.schedule.stages.records import Call
from tilewright.te.constant import ConstantOp
from tilewright.te.operation import ComputeOp, PlaceholderOp
from tilewright.te.scan import ScanOp
from tilewright.te.tensor import Operation
from tilewright.tir.iter_var import IterVar


def loop_axes(op: Operation) -> tuple[IterVar, ...]:
    """The axes that a stage of op starts with."""
    return (op.scan_axis,) if isinstance(op, ScanOp) else (*op.axis, *op.reduce_axis)


def kind_of(op: Operation) -> str:
    """What op is, where it is no te.compute."""
    kinds = ((ConstantOp, "a constant"), (PlaceholderOp, "a placeholder"), (ScanOp, "a scan"))
    return next((text for kind, text in kinds if isinstance(op, kind)), "an extern operation")


class Scans:
    """The scans among some operations.

    A stage keeps its part when its operation is replaced: what counts is the operation it was made for.
    """

    def __init__(self, ops: Iterable[Operation]) -> None:
        self._scan_of: dict[Operation, ScanOp] = {}      # of the operations that each step computes
        self._bound: dict[Operation, ScanOp] = {}        # of the inits and updates, which write the scan's outputs
        self._states: dict[Operation, tuple[ScanOp, int]] = {}
        for op in ops:
            if isinstance(op, ScanOp):
                self._scan_of.update(dict.fromkeys(op.body, op))
                self._bound.update(dict.fromkeys((t.op for t in (*op.init, *op.update)), op))
                self._states.update({t.op: (op, n) for n, t in enumerate(op.state_placeholder)})

    def around(self, stage: Any) -> ScanOp | None:
        """The scan whose steps compute the stage."""
        return self._scan_of.get(stage.origin_op)

    def state(self, stage: Any) -> tuple[ScanOp, int] | None:
        """(the scan, the number of the output) that the placeholder of the stage stands for."""
        return self._states.get(stage.origin_op)

    def is_bound(self, stage: Any) -> bool:
        """True for an init or update of a scan."""
        return stage.origin_op in self._bound

    def require_axis(self, call: Call, stage: Any, iv: IterVar) -> None:
        """Refuse the axis of a scan's steps on a stage that they compute."""
        scan_op = self.around(stage)
        if scan_op is not None and isinstance(stage.op, ComputeOp) and iv is stage.op.axis[0]:
            call.refuse(f"{iv.var.name} is the axis of the steps of scan {scan_op.name}, which all that a step "
                        "computes shares", "schedule the scan_axis of the scan: s[T].op.scan_axis of its output T")

    def require_free(self, call: Call, stage: Any) -> None:
        """Refuse an init or an update: it is computed where the scan is, in the memory of the scan's outputs."""
        scan_op = self._bound.get(stage.origin_op)
        if scan_op is not None:
            call.refuse(f"{stage.op.name} gives scan {scan_op.name} its values and stays at the scan",
                        "stages that the update reads can be moved")

    def require_outside(self, call: Call, stage: Any) -> None:
        """Refuse what is, or is a part of, a scan."""
        scan_op = stage.op if isinstance(stage.op, ScanOp) else self.around(stage) or self._bound.get(
            stage.origin_op) or next((s for op, (s, _) in self._states.items() if op is stage.origin_op), None)
        if scan_op is not None:
            call.refuse(f"the steps of scan {scan_op.name} share the memory of {stage.op.name}",
                        "a te.compute that copies it may have another layout")

    def require_group(self, call: Call, stage: Any, parent: Any) -> None:
        """Refuse to move what a step computes out of its scan."""
        self.require_free(call, stage)
        scan_op = self.around(stage)
        if scan_op is not None and parent.origin_op is not scan_op and self.around(parent) is not scan_op:
            call.refuse(f"{stage.op.name} is computed in every step of scan {scan_op.name}, and {parent.op.name} is "
                        "outside of the scan group", "compute it at a stage of the same scan")
