"""The loops of a stage as they stand, and the checks of the axes that a call is given."""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from tilewright.schedule.stages.records import Call, Mark, call_site
from tilewright.schedule.stages.scan import kind_of, loop_axes
from tilewright.te.operation import ComputeOp
from tilewright.te.tensor import Operation, Tensor
from tilewright.tir.expr import Var
from tilewright.tir.iter_var import IterVar


class StageAxes:
    """The axes of one operation. Handles stay valid until they are split or fused.

    The loops are the leaves, outermost first; marks and pragmas say how a leaf runs.
    """

    def __init__(self, schedule: Any, op: Operation) -> None:
        self._schedule = schedule
        self.op = op
        self.marks: dict[int, Mark] = {}
        self.pragmas: list[tuple[IterVar, str, Any, Call]] = []
        self._leaves: list[IterVar] = [*loop_axes(op)]
        self._all: list[IterVar] = list(self._leaves)
        self._consumed: dict[int, str] = {}

    @property
    def axis(self) -> tuple[IterVar, ...]:
        """The spatial axes of the operation."""
        return self.op.axis

    @property
    def reduce_axis(self) -> tuple[IterVar, ...]:
        """The reduction axes of the operation."""
        return self.op.reduce_axis

    @property
    def leaf_iter_vars(self) -> tuple[IterVar, ...]:
        """The loops as they stand, outermost first."""
        return tuple(self._leaves)

    @property
    def all_iter_vars(self) -> tuple[IterVar, ...]:
        """Every axis that the stage has or had, in order of creation."""
        return tuple(self._all)

    @property
    def storage_axes(self) -> tuple[IterVar, ...]:
        """The axes that the dimensions of the result in memory belong to."""
        return self.op.axis

    def has_axis(self, iv: IterVar) -> bool:
        return any(iv is own for own in self._all)

    def is_leaf(self, iv: IterVar) -> bool:
        return any(iv is leaf for leaf in self._leaves)

    def index_of(self, iv: IterVar) -> int:
        """Position of iv among all_iter_vars."""
        return next(n for n, own in enumerate(self._all) if own is iv)

    # ---- checks

    def _call(self, method: str, axes: Iterable[Any], more: str = "") -> Call:
        parts = [*(axis_name(iv) for iv in axes), *([more] if more else [])]
        return Call(f"s[{self.op.name}].{method}({', '.join(parts)})", call_site())

    def _require_computed(self, call: Call) -> None:
        if not isinstance(self.op, ComputeOp):
            call.refuse(f"{self.op.name} is {kind_of(self.op)}: there is no computation to move",
                        f"s.cache_read makes a copy of {self.op.name} that can be moved")

    def _require_leaf(self, call: Call, iv: Any) -> None:
        if not isinstance(iv, IterVar):
            call.refuse(f"{axis_name(iv)} is not an axis", f"the axes are in s[{self.op.name}].op.axis and "
                        ".op.reduce_axis, and returned by split and fuse")
        self._schedule.scans.require_axis(call, self, iv)
        if self.is_leaf(iv):
            return
        names = ", ".join(leaf.var.name for leaf in self._leaves) or "none"
        loops = f"the loops of {self.op.name} are {names}"
        if id(iv) in self._consumed and self.has_axis(iv):
            how = self._consumed[id(iv)]
            call.refuse(f"{axis_name(iv)} is no longer a loop of {self.op.name}: it was {how}", loops)
        owner = self._schedule.owner_of(iv)
        if owner is not None:
            call.refuse(f"{axis_name(iv)} is an axis of {owner.op.name}, not of {self.op.name}", loops)
        call.refuse(f"{axis_name(iv)} is not an axis of {self.op.name}", loops)

    def _places(self, call: Call, axes: Iterable[Any]) -> list[int]:
        """The places of distinct leaves among the loops, in ascending order."""
        seen: set[int] = set()
        for iv in axes:
            self._require_leaf(call, iv)
            if id(iv) in seen:
                call.refuse(f"the axis {axis_name(iv)} is given twice")
            seen.add(id(iv))
        return [n for n, leaf in enumerate(self._leaves) if id(leaf) in seen]

    def _require_free(self, call: Call, iv: Any) -> None:
        """iv is a leaf, and nothing was said yet about how it runs or what is computed in it."""
        self._require_leaf(call, iv)
        if id(iv) in self.marks:
            mark = self.marks[id(iv)]
            call.refuse(f"{axis_name(iv)} is already {mark.done} ({mark.call.site})",
                        "do this before that call")
        for annotated, _, _, earlier in self.pragmas:
            if annotated is iv:
                call.refuse(f"{axis_name(iv)} has a pragma ({earlier.site})", "do this before that call")
        user = self._schedule.attached_at(self, iv)
        if user is not None:
            call.refuse(f"{user.op.name} is computed at {axis_name(iv)} ({user.attachment.call.site})",
                        "do this before compute_at, and compute it at one of the new axes")
        said = self.said_of(iv)
        if said is not None:
            call.refuse(f"{said.text} ({said.site}) is about {axis_name(iv)}", "do this before that call")

    def said_of(self, iv: IterVar) -> Call | None:
        """A call that says how the loop iv runs, or what is computed in it."""
        user = self._schedule.attached_at(self, iv)
        calls = [self.marks[id(iv)].call] if id(iv) in self.marks else []
        calls += [call for annotated, _, _, call in self.pragmas if annotated is iv]
        calls += [] if user is None else [user.attachment.call]
        return calls[0] if calls else None

    def _consume(self, parents: Sequence[IterVar], results: list[IterVar], how: str) -> None:
        """Replace the adjacent leaves parents by results."""
        self._consumed.update((id(iv), how) for iv in parents)
        place = next(n for n, leaf in enumerate(self._leaves) if leaf is parents[0])
        self._leaves[place:place + len(parents)] = results
        self._all += results


def axis_name(iv: Any) -> str:
    """An axis by its name; anything else as Python shows it."""
    if isinstance(iv, IterVar):
        return iv.thread_tag or iv.var.name
    return iv.name if isinstance(iv, (Var, Tensor)) else repr(iv)
