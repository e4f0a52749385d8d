"""Groups of stages that move together, and the place at which stages are computed."""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from tilewright.schedule.stages.axes import StageAxes, axis_name
from tilewright.schedule.stages.records import Attachment, Call, call_site
from tilewright.te.operation import PlaceholderOp
from tilewright.tir.iter_var import IterVar


class Placed:
    """What is computed at a place of its own, or else where its group is."""

    def __init__(self) -> None:
        self.group: Group | None = None
        self.own_place: Attachment | None = None

    @property
    def attachment(self) -> Attachment | None:
        """Where it is computed; None: on its own."""
        if self.own_place is not None or self.group is None:
            return self.own_place
        return self.group.attachment

    @property
    def attach_stage(self) -> Any:
        """The stage inside which it is computed; None where it is computed on its own, or inlined."""
        return None if self.attachment is None else self.attachment.stage

    @property
    def attach_ivar(self) -> IterVar | None:
        """The loop inside which it is computed."""
        return None if self.attachment is None else self.attachment.axis

    def groups(self) -> list[Group]:
        """The groups around it, innermost first."""
        return [] if self.group is None else [self.group, *self.group.groups()]


class Group(Placed):
    """Stages that are computed where the group is, but for those of which it was said where."""

    def __init__(self, schedule: Any, group: Group | None) -> None:
        super().__init__()
        self._schedule, self.group = schedule, group

    @property
    def stages(self) -> list[Any]:
        """All stages of the group and of the groups inside it, producers first."""
        return [s for s in self._schedule.stages if any(g is self for g in s.groups())]

    @property
    def num_child_stages(self) -> int:
        """The number of stages and groups that are directly in the group."""
        return sum(x.group is self for x in (*self._schedule.stages, *self._schedule.groups))

    def __repr__(self) -> str:
        return f"group({', '.join(s.op.name for s in self.stages)})"

    def compute_at(self, parent: Any, scope: IterVar) -> None:
        """Compute what one iteration of the loop `scope` of `parent` needs of the group, inside that iteration.

        Legal when compute_at is legal for each stage that is computed where the group is.
        """
        where = parent.op.name if isinstance(parent, StageAxes) else repr(parent)
        call = Call(f"{self}.compute_at(s[{where}], {axis_name(scope)})", call_site())
        moved = [s for s in self.stages if not isinstance(s.op, PlaceholderOp) and s.own_place is None and not any(
            g.own_place is not None for g in s.groups()[:s.groups().index(self)])]
        require_place(call, self._schedule, moved, parent, scope, self.group)
        self.own_place = Attachment(call, parent, scope)

    def compute_root(self) -> None:
        """Compute the group on its own, or where the group around it is."""
        self.own_place = None


def require_place(call: Call, schedule: Any, moved: Sequence[Any], parent: Any, scope: Any,
                  group: Group | None) -> None:
    """Refuse a place at which stages cannot be computed. group: around all of them."""
    if not isinstance(parent, StageAxes) or parent._schedule is not schedule:
        where = parent.op.name if isinstance(parent, StageAxes) else repr(parent)
        call.refuse(f"{where} is not a stage of this schedule", "pass s[T] for a tensor T")
    where = parent.op.name
    for stage in moved:
        stage._require_computed(call)
        if stage.is_output:
            call.refuse(f"{stage.op.name} is an output of the schedule", "only intermediate tensors can be moved")
        if parent is stage:
            call.refuse("a stage cannot be computed inside itself")
        schedule.scans.require_group(call, stage, parent)
    parent._require_leaf(call, scope)
    if group is not None and not any(g is group for g in parent.groups()):  # type: ignore[attr-defined]
        call.refuse(f"{where} is outside of {group}", "move the whole group there")
    above: Any = parent
    while above is not None and above.attachment is not None:
        above = above.attachment.stage
        if any(above is stage for stage in moved):
            call.refuse(f"{where} is computed inside {above.op.name}, so this would be a cycle")
    for stage in moved:
        if not schedule.needs(parent, stage):
            call.refuse(f"{where} does not need {stage.op.name}, neither directly nor through other stages",
                        f"attach {stage.op.name} to a stage that reads it")


def new_group(call: Call, schedule: Any, outputs: Iterable[Any], inputs: Iterable[Any], include_inputs: bool) -> Group:
    """The group of the stages on the ways from inputs to outputs. Refuses parts of other groups."""
    starts = list(inputs)
    members = _between(schedule, list(outputs), starts)
    members = members if include_inputs else [m for m in members if not any(m is s for s in starts)]
    if not members:
        call.refuse("no stage lies between the inputs and the outputs", "outputs are in the group, inputs are not")
    around = [g for g in members[0].groups() if all(any(g is h for h in m.groups()) for m in members)]
    parent = around[0] if around else None
    made = Group(schedule, parent)
    for m in members:
        chain: list[Any] = [m, *m.groups()]
        top = next(x for x in chain if x.group is parent or x.group is made)
        top = made if top is made else top
        if isinstance(top, Group) and top is not made and any(all(s is not m for m in members) for s in top.stages):
            call.refuse(f"a part of {top} cannot be in another group", "put all of its stages in the new group")
        if top is not made:
            top.group = made
    schedule.groups.append(made)
    return made


def _between(schedule: Any, outputs: list[Any], inputs: list[Any]) -> list[Any]:
    """The stages on the ways from inputs to outputs, both included, producers first."""
    seen: set[Any] = set()
    waiting = list(outputs)
    while waiting:
        stage = waiting.pop()
        if stage not in seen:
            seen.add(stage)
            waiting += [] if stage in inputs else schedule.inputs_of(stage)
    reached: list[Any] = []
    for stage in (s for s in schedule.topological() if s in seen):
        if stage in inputs or any(below in reached for below in schedule.inputs_of(stage)):
            reached.append(stage)
    return reached
