"""The façade's rfactor: a reduction becomes two operations, the second of which takes its stage."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from tilewright.arith.analyzer import Analyzer
from tilewright.schedule.stages.dataflow import Dataflow
from tilewright.schedule.stages.records import Call, Relation, call_site
from tilewright.schedule.stages.stage import Stage
from tilewright.te.operation import ComputeOp, PlaceholderOp
from tilewright.te.reduction import Reduce, reduce_axis
from tilewright.te.tensor import TensorRead
from tilewright.tir.arithmetic import all_of, binary, if_then_else
from tilewright.tir.expr import Expr, IntImm, Var
from tilewright.tir.iter_var import COMM_REDUCE, IterVar
from tilewright.tir.node import Node, substitute


@dataclass(frozen=True, eq=False)
class Factored(Dataflow):
    """An rfactor: `created` reduces each iteration of a loop of `source`, which reduces the results.

    axes: those of source before; relations: the changes of the reduction loops up to then; order: the places, among
    the loops of source, of the loops of created in the order of its axes.
    """
    axes: tuple[IterVar, ...]
    relations: tuple[Relation, ...]
    factored: IterVar
    factor_axis: int
    order: tuple[int, ...]


def factor(schedule: Any, tensor: Any, axis: Any, factor_axis: Any) -> tuple[Factored, ComputeOp, ComputeOp]:
    """(the record, the operation of the parts, the one that takes the stage of tensor). Raises ScheduleError for what
    is no loop of a reduction, or loops that were scheduled otherwise before."""
    stage = schedule[tensor]
    call = Call(f"s.rfactor({tensor.name}, {_named(axis)}, {factor_axis})", call_site())
    schedule.scans.require_free(call, stage)
    _require_reduction(schedule, stage, call, axis)
    op = stage.op
    rank = len(op.axis)
    if not isinstance(factor_axis, int) or isinstance(factor_axis, bool) or not -rank - 1 <= factor_axis <= rank:
        call.refuse(f"factor_axis is {factor_axis!r}; {op.name} has {rank} dimension(s)",
                    f"it is one of {-rank - 1}, ..., {rank}")
    place = factor_axis % (rank + 1)
    work = _Split(op, stage, axis, call)
    parts = work.parts(place)
    final = work.final(parts, place)
    leaves = stage.leaf_iter_vars
    reduced = [n for n, iv in enumerate(leaves) if iv.iter_type == COMM_REDUCE and iv is not axis]
    output = [n for n, iv in enumerate(leaves) if iv.iter_type != COMM_REDUCE]
    output.insert(place, next(n for n, iv in enumerate(leaves) if iv is axis))
    steps = [(r.kind, [stage.index_of(iv) for iv in r.axes], r.factors) for r in stage.relations]
    key = f"~rfactor({stage.key},{stage.index_of(axis)},{place},{steps})"
    created = schedule._insert(parts, key, "", before=stage)
    record = Factored("rfactor", stage, 0, (), created, "global", call, (*op.axis, *op.reduce_axis),
                      tuple(stage.relations), axis, place, (*output, *reduced))
    return record, parts, final


def _named(axis: Any) -> str:
    return axis.var.name if isinstance(axis, IterVar) else repr(axis)


def _require_reduction(schedule: Any, stage: Stage, call: Call, axis: Any) -> None:
    op = stage.op
    if not isinstance(op, ComputeOp):
        kind = "a placeholder" if isinstance(op, PlaceholderOp) else "no te.compute"
        call.refuse(f"{op.name} is {kind}: nothing is reduced")
    if not isinstance(op.body[0], Reduce):
        call.refuse(f"{op.name} is not a reduction", "rfactor takes a stage with a reduction axis")
    if not isinstance(axis, IterVar) or not stage.is_leaf(axis) or axis.iter_type != COMM_REDUCE:
        names = ", ".join(iv.var.name for iv in stage.leaf_iter_vars if iv.iter_type == COMM_REDUCE)
        call.refuse(f"{_named(axis)} is not a loop of the reduction of {op.name}", f"its loops are {names}")
    for r in stage.relations:
        if any(iv.iter_type != COMM_REDUCE for iv in (*r.axes, *r.results)):
            call.refuse(f"the output loops of {op.name} were scheduled before ({r.call.text} at {r.call.site})",
                        "call rfactor before split, fuse and reorder of these")
    for layout in stage.layouts:
        call.refuse(f"the layout of {op.name} was changed before ({layout.call.site})", "call rfactor first")
    for iv in stage.leaf_iter_vars:
        user = schedule.attached_at(stage, iv)
        if user is not None and user.attachment is not None:
            call.refuse(f"{user.op.name} is computed at {iv.var.name} ({user.attachment.call.site})",
                        "call rfactor first")
        said = stage.said_of(iv)
        if said is not None:
            call.refuse(f"how the loops of {op.name} run was said before ({said.text} at {said.site})",
                        "call rfactor first")


class _Split:
    """The operations of an rfactor of op at the loop `axis`, given the splits and fusions of its reduction loops."""

    def __init__(self, op: ComputeOp, stage: Stage, axis: IterVar, call: Call) -> None:
        self.op, self.axis, self.call = op, axis, call
        reduce = op.body[0]
        assert isinstance(reduce, Reduce)
        self.reduce = reduce
        self.analyzer = Analyzer()
        self.extents: dict[int, Expr] = {id(k): k.domain.extent for k in op.reduce_axis}
        self.touched = self._touched(stage)
        for r in stage.relations:
            self._extend(r)
        self.loops = [iv for iv in stage.leaf_iter_vars if iv.iter_type == COMM_REDUCE]
        self.factor = IterVar.over(self.extents[id(axis)], axis.var.name)
        self.rest = {id(iv): reduce_axis((0, self.extents[id(iv)]), name=iv.var.name)
                     for iv in self.loops if iv is not axis}
        self.values: dict[int, Expr] = {id(axis): self.factor.var, **{k: iv.var for k, iv in self.rest.items()}}
        self.guards: list[Expr] = []
        for r in reversed(stage.relations):
            self._undo(r)

    def _touched(self, stage: Stage) -> set[int]:
        """The axes that the factored loop comes from, and all that came from these."""
        touched = {id(self.axis)}
        links = [{id(iv) for iv in (*r.axes, *r.results)} for r in stage.relations if r.kind != "reorder"]
        for _ in links:
            for group in links:
                if touched & group:
                    touched |= group
        for r in stage.relations:
            if r.kind != "reorder" and not touched & {id(iv) for iv in r.axes}:
                self._refuse_other(r)
        return touched

    def _refuse_other(self, r: Relation) -> NoReturn:
        self.call.refuse(f"{r.call.text} ({r.call.site}) changed loops of the reduction that {self.axis.var.name} does "
                         "not come from", "change these in the new stage, after rfactor")

    def _extend(self, r: Relation) -> None:
        """Note the extents of the loops that a split or fusion makes."""
        if r.kind == "split":
            whole = self.extents[id(r.axes[0])]
            known = next(f for f in r.factors if f is not None)
            other = self.analyzer.simplify(binary("floordiv", binary("add", whole, known - 1), known))
            sizes: list[Expr] = [other if f is None else IntImm(f, whole.dtype) for f in r.factors]
        elif r.kind == "fuse":
            total = self.extents[id(r.axes[0])]
            for iv in r.axes[1:]:
                total = binary("mul", total, self.extents[id(iv)])
            sizes = [self.analyzer.simplify(total)]
        else:
            return
        self.extents.update((id(iv), size) for iv, size in zip(r.results, sizes, strict=True))

    def _undo(self, r: Relation) -> None:
        """The values of the axes of r from those of its results."""
        if r.kind == "split":
            outer, inner = (self.values[id(iv)] for iv in r.results)
            value = binary("add", binary("mul", outer, self.extents[id(r.results[1])]), inner)
            whole = self.extents[id(r.axes[0])]
            covered = binary("mul", self.extents[id(r.results[0])], self.extents[id(r.results[1])])
            if not self.analyzer.prove(binary("le", covered, whole)):
                self.guards.append(binary("lt", value, whole))
            self.values[id(r.axes[0])] = value
        elif r.kind == "fuse":
            left = self.values[id(r.results[0])]
            for iv in reversed(r.axes[1:]):
                self.values[id(iv)] = binary("floormod", left, self.extents[id(iv)])
                left = binary("floordiv", left, self.extents[id(iv)])
            self.values[id(r.axes[0])] = left

    def parts(self, place: int) -> ComputeOp:
        """The operation that reduces each iteration of the factored loop by itself."""
        op, reduce = self.op, self.reduce
        axis = [iv.replace(var=Var(iv.var.name, iv.var.dtype)) for iv in op.axis]
        table: dict[Var, Node] = {old.var: new.var for old, new in zip(op.axis, axis)}
        for k in op.reduce_axis:
            table[k.var] = self.analyzer.simplify(binary("add", self.values[id(k)], k.domain.min))
        axis.insert(place, self.factor)
        source = tuple(substitute(e, table) for e in reduce.source)
        condition = all_of(*self.guards, *([] if reduce.condition is None else [substitute(reduce.condition, table)]))
        always = isinstance(condition, IntImm)
        rest = tuple(self.rest.values())
        body: Sequence[Expr]
        if rest:
            body = [Reduce(reduce.combiner, source, rest, None if always else condition, (), n)
                    for n in range(len(source))]
        else:
            body = source if always else [if_then_else(condition, e, i)
                                          for e, i in zip(source, reduce.combiner.identity, strict=True)]
        return ComputeOp(f"{op.name}.rf", tuple(axis), tuple(body), op.tag, op.attrs)

    def final(self, parts: ComputeOp, place: int) -> ComputeOp:
        """The operation that reduces the parts."""
        op, reduce = self.op, self.reduce
        step = reduce_axis((0, self.factor.domain.extent), name=f"{self.axis.var.name}.v")
        point = [iv.var for iv in op.axis]
        point.insert(place, step.var)
        source = tuple(TensorRead(t, tuple(point)) for t in parts.outputs)
        chosen = [e.value_index for e in op.body if isinstance(e, Reduce)]
        body = tuple(Reduce(reduce.combiner, source, (step,), None, reduce.init, n) for n in chosen)
        return ComputeOp(op.name, op.axis, body, op.tag, op.attrs)

