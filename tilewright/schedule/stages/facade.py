"""The stage façade, te.create_schedule: records what is asked of each operation, replays it on a Schedule."""
from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from tilewright.schedule.schedule import Schedule
from tilewright.schedule.stages.dataflow import (
    Dataflow,
    Written,
    cached_compute,
    canonical_order,
    copy_op,
    with_inputs,
)
from tilewright.schedule.stages.groups import Group, new_group
from tilewright.schedule.stages.layouts import of_loops
from tilewright.schedule.stages.memory import request_line
from tilewright.schedule.stages.records import Call, call_site
from tilewright.schedule.stages.replay import Replay
from tilewright.schedule.stages.rfactor import factor
from tilewright.schedule.stages.scan import Scans, kind_of
from tilewright.schedule.stages.stage import Stage, require_scope_of
from tilewright.support.errors import ScheduleError, TensorExpressionError
from tilewright.support.registry import register_hook
from tilewright.support.topological import producers_first
from tilewright.support.views import View, Viewed
from tilewright.te.constant import ConstantOp
from tilewright.te.fingerprint import graph_text
from tilewright.te.intrin.call import TensorComputeOp
from tilewright.te.operation import ComputeOp, post_order
from tilewright.te.scan import ScanOp, check_scans
from tilewright.te.tensor import Operation, Tensor
from tilewright.tir.expr import Var
from tilewright.tir.iter_var import IterVar


@register_hook("te.create_schedule")
def create_schedule(ops: Any) -> StageSchedule:
    """A schedule of the operations (or tensors) ops and of everything that they need.

    Raises TensorExpressionError for anything that is not an operation or a tensor.
    """
    operations = list(ops) if isinstance(ops, (list, tuple)) else [ops]
    outputs: list[Operation] = []
    for x in operations:
        op = x.op if isinstance(x, Tensor) else x
        if not isinstance(op, Operation):
            raise TensorExpressionError(f"create_schedule: {x!r} is not an operation", "pass C.op of a tensor C")
        if not any(op is other for other in outputs):
            outputs.append(op)
    if not outputs:
        raise TensorExpressionError("create_schedule: no operation was given")
    return StageSchedule(outputs)


class StageSchedule(Viewed):
    """One stage for each operation, `s[T]` by tensor or operation.

    The order of calls for different stages does not matter. `replay` gives the block schedule.
    """

    def __init__(self, outputs: Sequence[Operation]) -> None:
        self.outputs: tuple[Operation, ...] = tuple(outputs)
        ops = post_order(outputs)
        check_scans(ops, outputs)
        self.scans = Scans(ops)
        self.stages: list[Stage] = [Stage(self, op, f"{n:06d}", op in self.outputs) for n, op in enumerate(ops)]
        self._stage_of: dict[Operation, Stage] = {stage.op: stage for stage in self.stages}
        self._rewrites: list[Dataflow] = []
        self.groups: list[Group] = []
        for stage in self.stages:
            stage.call_intrinsic()

    # ---- lookup

    def __getitem__(self, key: Tensor | Operation) -> Stage:
        op = key.op if isinstance(key, Tensor) else key
        stage = self._stage_of.get(op) if isinstance(op, Operation) else None
        if stage is None:
            name = op.name if isinstance(op, Operation) else repr(key)
            raise ScheduleError(f"s[{name}]: {name} is not in this schedule",
                                f"its stages are {', '.join(s.op.name for s in self.stages)}")
        return stage

    def __contains__(self, key: object) -> bool:
        op = key.op if isinstance(key, Tensor) else key
        return isinstance(op, Operation) and op in self._stage_of

    def owner_of(self, iv: IterVar) -> Stage | None:
        """The stage that has the axis iv."""
        return next((stage for stage in self.stages if stage.has_axis(iv)), None)

    def attached_at(self, stage: Stage, iv: IterVar) -> Stage | None:
        """A stage that is computed at the loop iv of stage."""
        return next((s for s in self.stages if s.attachment is not None and s.attachment.stage is stage
                     and s.attachment.axis is iv), None)

    def inputs_of(self, stage: Stage) -> list[Stage]:
        """The stages that stage reads, each once, in order of first use."""
        return list(dict.fromkeys(self._stage_of[t.op] for t in stage.op.input_tensors))

    def needs(self, stage: Stage, other: Stage) -> bool:
        """True when stage reads other, directly or through other stages."""
        waiting, seen = [stage], {stage}
        while waiting:
            for below in self.inputs_of(waiting.pop()):
                if below is other:
                    return True
                if below not in seen:
                    seen.add(below)
                    waiting.append(below)
        return False

    def topological(self) -> list[Stage]:
        """The stages, producers first, in an order that only the dataflow decides."""
        return producers_first([self._stage_of[op] for op in self.outputs], self.inputs_of)

    def create_group(self, outputs: Any, inputs: Any, include_inputs: bool = False) -> Group:
        """The group of all stages on the ways from inputs to outputs, which moves as a whole: g.compute_at(s[C], i).

        outputs and inputs are tensors or operations, or lists of them; the outputs belong to the group, the inputs with
        include_inputs only. A stage of it of which compute_at says where it is computed stays in the group; a group
        inside another moves with that.

        Legal when outputs and inputs are stages of the schedule, there is a stage between them, and the group has all
        stages, or none, of each other group, unless it lies inside of that.
        """
        last, first = ([self[x] for x in (tensors if isinstance(tensors, (list, tuple)) else [tensors])]
                       for tensors in (outputs, inputs))
        names = ", ".join(f"[{', '.join(s.op.name for s in end)}]" for end in (last, first))
        return new_group(Call(f"s.create_group({names})", call_site()), self, last, first, include_inputs)

    # ---- dataflow

    def cache_read(self, tensor: Tensor, scope: str, readers: Any) -> Tensor:
        """A copy of tensor in memory of the given scope, which the readers read in its place.

        readers is a tensor or operation, or a list of them.

        Legal when tensor belongs to a stage of the schedule, scope is a kind of memory, and there are readers, each of
        which is no scan, reads tensor, and was not told to prefetch it.
        """
        stage = self._tensor_stage("cache_read", tensor)
        operations = list(readers) if isinstance(readers, (list, tuple)) else [readers]
        users = list(dict.fromkeys(self[r] for r in operations))
        names = ", ".join(user.op.name for user in users)
        call = Call(f"s.cache_read({tensor.name}, {scope!r}, [{names}])", call_site())
        require_scope_of(call, scope)
        if isinstance(stage.op, ConstantOp):
            call.refuse(f"{tensor.name} is a constant: it is in no memory", "a te.compute that copies it can be moved")
        if not users:
            call.refuse("no reader is given", f"pass the operations that read {tensor.name}")
        source = stage.op.output(tensor.value_index)
        old = {t: None for u in users for t in u.op.input_tensors
               if self._stage_of[t.op] is stage and t.value_index == tensor.value_index}
        for user in users:
            if not any(t in old for t in user.op.input_tensors):
                reads = ", ".join(t.name for t in user.op.input_tensors) or "nothing"
                call.refuse(f"{user.op.name} does not read {tensor.name}", f"it reads {reads}")
            if isinstance(user.op, ScanOp):
                call.refuse(f"{user.op.name} is a scan, whose memory {tensor.name} writes",
                            "pass the operations that read the scan, or an input of its steps")
            user._require_unprefetched(call, old)
        op = copy_op(source, f"{source.name}.{scope}")
        key = f"~read({stage.key},{tensor.value_index},{scope},{[u.key for u in users]})"
        created = self._insert(op, key, scope, after=stage)
        for user in users:
            self._replace(user, with_inputs(user.op, dict.fromkeys(old, op.output(0))))
        self._rewrites.append(Dataflow("read", stage, tensor.value_index, tuple(users), created, scope, call))
        return op.output(0)

    def cache_write(self, tensor: Any, scope: str) -> Any:
        """Compute tensor in memory of the given scope, and copy the result to its place.

        Of an operation with several outputs a list of all is given, and returned. The stage of tensor becomes the copy,
        with the axes of the operation for loops; the returned tensor's stage has the computation with its reduction
        axes. Loops that split, fuse and reorder have made of the spatial axes become the dimensions of the cache, in
        their order.

        Legal when tensor is computed by a stage of the schedule, scope is a kind of memory, the loops made of the
        spatial axes are a box, and nothing was said of loops that go, of what an intrinsic runs or of what is
        prefetched.
        """
        tensors = list(tensor) if isinstance(tensor, (list, tuple)) else [tensor]
        stages = [self._tensor_stage("cache_write", t) for t in tensors]
        names = ", ".join(t.name for t in tensors)
        call = Call(f"s.cache_write({f'[{names}]' if isinstance(tensor, (list, tuple)) else names}, {scope!r})",
                    call_site())
        if not tensors:
            call.refuse("no tensor is given")
        stage = stages[0]
        require_scope_of(call, scope)
        op = stage.op
        if not isinstance(op, ComputeOp):
            call.refuse(f"{op.name} is {kind_of(op)}: nothing is computed",
                        f"s.cache_read makes a copy of {op.name}")
        self.scans.require_free(call, stage)
        if any(other is not stage for other in stages) or sorted(t.value_index for t in tensors) != list(
                range(len(op.outputs))):
            call.refuse(f"{op.name} has {len(op.outputs)} output(s)", "pass a list of all outputs of one operation")
        for iv in stage.leaf_iter_vars:
            said = None if any(iv is kept for kept in op.axis) else stage.said_of(iv)
            if said is not None:
                call.refuse(f"{iv.var.name} is no loop of {op.name} from then on, and {said.text} ({said.site}) is "
                            "about it", "call cache_write first")
        stage._require_unprefetched(call, op.input_tensors)
        layout = of_loops(call, stage)
        moves = isinstance(op, TensorComputeOp) and layout is None and all(
            any(iv is own for own in (*op.axis, *op.reduce_axis)) for iv in stage.leaf_iter_vars)
        if stage.tensorized is not None and not moves:
            said = stage.tensorized.call
            call.refuse(f"{said.text} ({said.site}) is about loops of the computation, which the cache takes",
                        "call cache_write first")
        cache, copy = cached_compute(op, f"{op.name}.{scope}", layout)
        created = self._insert(cache, f"~write({stage.key},{scope},{layout and layout.map})", scope, before=stage)
        created.origin_op = stage.origin_op                  # computed in the steps of a scan, where that is
        if isinstance(op, TensorComputeOp):
            stage.give_intrinsic(created)
        stage.restart(copy, f"left to the cache by {call.text}")
        self._stage_of[copy] = stage
        self._rewrites.append(Written("write", stage, 0, (), created, scope, call, layout))
        caches = [cache.output(t.value_index) for t in tensors]
        return caches if isinstance(tensor, (list, tuple)) else caches[0]

    def rfactor(self, tensor: Tensor, axis: IterVar, factor_axis: int = 0) -> Tensor | list[Tensor]:
        """Reduce each iteration of a reduction loop of tensor on its own; the new tensor (or tensors) of these parts.

        The new tensor has one more axis, at factor_axis; the stage of tensor reduces it, over the only
        `s[tensor].op.reduce_axis`.

        Legal when axis is a loop of the stage's reduction, made of its reduction axes alone, and no loop of the output
        was scheduled before.
        """
        stage = self._tensor_stage("rfactor", tensor)
        record, parts, final = factor(self, tensor, axis, factor_axis)
        stage.restart(final, "factored")
        self._stage_of[final] = stage
        self._rewrites.append(record)
        return list(parts.outputs) if len(parts.outputs) > 1 else parts.output(0)

    def _tensor_stage(self, method: str, tensor: Any) -> Stage:
        if not isinstance(tensor, Tensor):
            raise ScheduleError(f"s.{method}: {tensor!r} is not a tensor", "pass what te.compute returned")
        return self[tensor]

    def _insert(self, op: Operation, key: str, scope: str, after: Stage | None = None,
                before: Stage | None = None) -> Stage:
        stage = Stage(self, op, key)
        stage.scope = scope
        anchor = after or before
        stage.group = None if anchor is None else anchor.group
        place = next(n for n, s in enumerate(self.stages) if s is anchor) + (after is not None)
        self.stages.insert(place, stage)
        self._stage_of[op] = stage
        return stage

    def _replace(self, stage: Stage, op: Operation) -> None:
        stage.replace_op(op)
        self._stage_of[op] = stage

    # ---- use

    def view(self) -> View:
        names = ", ".join(op.name for op in self.outputs)
        rows = [stage.row() for stage in self.stages]
        return View(f"tilewright.StageSchedule of {names}", rows, ("stage", "computed", "loops"))

    def normalize(self) -> StageSchedule:
        """This schedule. TE's normalize settles loop bounds for the passes after it; replay does that here."""
        return self

    def rewrites(self) -> list[Dataflow]:
        """The changes of the dataflow in canonical order."""
        return canonical_order(self._rewrites)

    def replay(self, args: Sequence[Tensor | Var], name: str = "main", partial: bool = False) -> Schedule:
        """The block schedule of the function `name` of args with everything that was recorded done to it.

        Outputs that are no arguments are computed into memory of the function. An argument whose stage is inlined
        stays as it was. partial: variables that nothing binds become parameters, and no output need be an argument.
        Raises ScheduleError, with the place of the stage call, where something recorded is not legal.
        """
        return Replay(self, args, name, partial).run()

    def fingerprint(self, args: Sequence[Tensor | Var]) -> bytes:
        """32 bytes that are equal, in every process, for equal definitions scheduled in the same way.

        Costs no replay. Calls for different stages may come in any order.
        """
        graph = graph_text(args, self.outputs)
        order = self.topological()
        number = {stage: n for n, stage in enumerate(order)}
        lines = [f"{r.kind} {r.key}" for r in self.rewrites()]
        for stage in order:
            lines.append(f"stage {stage.key} {stage.scope!r} {int(stage.is_output)}")
            lines += [f"layout {layout.map} {len(layout.results)}" for layout in stage.layouts]
            for r in stage.relations:
                axes = [stage.index_of(iv) for iv in r.axes]
                lines.append(f"{r.kind} {axes} {r.factors}")
            for iv in stage.leaf_iter_vars:
                if id(iv) in stage.marks:
                    mark = stage.marks[id(iv)]
                    lines.append(f"{mark.kind} {stage.index_of(iv)} {mark.thread_tag} {mark.thread_extent}")
            if stage.tensorized is not None:
                lines.append(f"tensorize {stage.index_of(stage.tensorized.axis)} {stage.tensorized.text}")
            lines += [f"{what} {stage.index_of(iv)} {value!r}" for iv, what, value, _ in stage.pragmas]
            lines += [request_line(stage, r) for r in stage.requests]
            lines += [f"env_threads {tag}" for tag, _ in stage.launched]
            at = stage.attachment
            if at is not None:
                lines.append("inline" if at.stage is None or at.axis is None
                             else f"at {number[at.stage]} {at.stage.index_of(at.axis)}")
        return hashlib.blake2b("\n".join([graph, *lines]).encode(), digest_size=32).digest()
