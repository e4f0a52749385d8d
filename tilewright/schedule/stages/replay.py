"""Replay of recorded stages as primitives: dataflow, inlining, then stage by stage from the outputs back."""
from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from tilewright.schedule.schedule import Schedule
from tilewright.schedule.stages.dataflow import Dataflow, Written
from tilewright.schedule.stages.layouts import Layout
from tilewright.schedule.stages.memory import grant, require_bound
from tilewright.schedule.stages.records import Call, Mark, Relation
from tilewright.schedule.stages.rfactor import Factored
from tilewright.schedule.stages.stage import Stage
from tilewright.schedule.stages.tensorize import is_whole
from tilewright.schedule.stages.tensorize import run as run_tensorization
from tilewright.schedule.state import BlockRV, LoopRV
from tilewright.support.errors import ScheduleError, TilewrightError, flag
from tilewright.te.operation import ExternOp, PlaceholderOp
from tilewright.te.prim_func import argument_list, lower_ops
from tilewright.te.scan import ScanOp
from tilewright.te.tensor import Operation, Tensor
from tilewright.tir.arithmetic import binary
from tilewright.tir.buffer import Buffer
from tilewright.tir.expr import Var
from tilewright.tir.iter_var import COMM_REDUCE, IterVar
from tilewright.tir.stmt import Block, For


class Replay:
    """One replay of a StageSchedule: the block and the loops of each stage while it runs."""

    def __init__(self, stages: Any, args: Sequence[Tensor | Var], name: str, partial: bool) -> None:
        self._stages = stages
        self._args = argument_list(args)
        for a in self._args:
            if isinstance(a, Tensor) and a not in stages and not isinstance(a.op, PlaceholderOp):
                raise ScheduleError(f"argument {a.name} is not in this schedule",
                                    "pass it to create_schedule as well, or leave it out")
        inlined = {a.op for a in self._args if isinstance(a, Tensor) and a in stages and stages[a].is_inlined}
        if not flag(partial, "replay: partial"):
            self._require_result(inlined)
        func, names = lower_ops(self._args, stages.outputs, name, inlined, partial)
        self._sch = Schedule(func)
        self._blocks: dict[Stage, BlockRV] = {stages[op]: BlockRV(block, self._sch.focus)
                                              for op, block in names.items() if op in stages}
        self._params: dict[Stage, Var] = {
            stages[a]: p for a, p in zip(self._args, func.params)
            if isinstance(a, Tensor) and isinstance(a.op, PlaceholderOp) and a in stages}
        self._loops: dict[int, LoopRV] = {}              # id of an axis -> its loop

    def _require_result(self, inlined: Collection[Operation]) -> None:
        """Something is written that the caller sees, or an external function is called."""
        seen = [a for a in self._args if isinstance(a, Tensor) and not isinstance(a.op, PlaceholderOp)
                and a.op not in inlined]
        if not seen and not any(isinstance(stage.op, ExternOp) for stage in self._stages.stages):
            given = ", ".join(a.name for a in self._args) or "none"
            outputs = ", ".join(op.name for op in self._stages.outputs)
            raise ScheduleError(f"the function would have no result: none of its arguments ({given}) is "
                                f"computed, and {outputs} is an output of the schedule", "add it to the arguments")

    def run(self) -> Schedule:
        """The schedule with everything recorded done to it."""
        require_bound(self._stages.stages)
        for rewrite in self._stages.rewrites():
            self._dataflow(rewrite)
        order: list[Stage] = self._stages.topological()
        for stage in order:
            if not stage.is_inlined:
                for layout in stage.layouts:
                    self._transform(stage, layout)
        computed = [s for s in order if s in self._blocks]
        for stage in computed:
            if stage.attachment is not None and stage.attachment.stage is None:
                self._do(stage.attachment.call, self._sch.compute_inline, self._blocks[stage])
        alive = [s for s in reversed(computed) if s.attachment is None or s.attachment.stage is not None]
        for stage in alive:
            self._schedule(stage)
        starts = {stage: self._decompose(stage) for stage in alive}
        for stage in alive:
            self._tensorize(stage, starts[stage])
        return self._sch

    def _do(self, call: Call, primitive: Callable[..., Any], *args: Any, **more: Any) -> Any:
        try:
            return primitive(*args, **more)
        except TilewrightError as why:
            raise ScheduleError(f"{call.site}: {call.text}\n{why}") from why

    def _dataflow(self, r: Dataflow) -> None:
        if isinstance(r, Factored):
            self._factor(r)
            return
        if isinstance(r, Written):
            block = self._blocks[r.source]
            self._blocks[r.source] = self._do(r.call, self._sch.cache_write, block,
                                             list(range(len(r.created.op.outputs))), r.scope)
            self._blocks[r.created] = block
            if r.layout is not None:
                self._transform(r.created, r.layout)
            return
        buffer = self._buffer(r.source, r.value_index)
        readers = [self._blocks[stage] for stage in r.readers]
        regions = self._block(readers[0]).reads
        index = next(n for n, region in enumerate(regions) if region.buffer is buffer)
        self._blocks[r.created] = self._do(r.call, self._sch.cache_read, readers[0], index, r.scope, readers)

    def _factor(self, r: Factored) -> None:
        """The changes of the reduction's loops, rfactor, and the new block's loops in the order of its axes."""
        block = self._blocks[r.source]
        self._enter(block, r.axes, self._sch.get_loops(block))
        for relation in r.relations:
            self._relate(relation, block)
        self._blocks[r.created] = new = self._do(r.call, self._sch.rfactor, self._loops[id(r.factored)], r.factor_axis)
        if list(r.order) != sorted(r.order):
            loops = self._sch.get_loops(new)
            self._do(r.call, self._sch.reorder, *[loops[n] for n in r.order])

    def _transform(self, stage: Stage, layout: Layout) -> None:
        """The buffers of a stage in another layout, and its loops in the order of that."""
        for n in range(len(stage.op.outputs)):
            buffer = self._buffer(stage, n)
            user = next(rv for rv in self._blocks.values() if any(
                region.buffer is buffer for region in (*self._block(rv).writes, *self._block(rv).reads)))
            self._do(layout.call, self._sch.transform_layout, user, buffer, layout.map, of_arguments=True)
        if layout.results:
            block = self._blocks[stage]
            self._do(layout.call, self._sch.transform_block_layout, block,
                     layout.of_block(len(self._block(block).iter_vars)))

    def _block(self, rv: BlockRV) -> Block:
        block = self._sch.get(rv)
        assert isinstance(block, Block)
        return block

    def _buffer(self, stage: Stage, index: int) -> Buffer:
        """The buffer of an output of the stage; that of a scan is written by its update."""
        state = self._stages.scans.state(stage)
        op, index = state if state is not None else (stage.op, index)
        if isinstance(op, ScanOp):
            update = op.update[index]
            stage, index = self._stages[update], update.value_index
        if stage in self._params:
            return self._sch.func.buffer_map[self._params[stage]]
        return self._block(self._blocks[stage]).writes[index].buffer

    def _schedule(self, stage: Stage) -> None:
        """compute_at, then the stage's own loops, then how they run."""
        rv, at = self._blocks[stage], stage.attachment
        scan_op = self._stages.scans.around(stage)
        if at is not None and at.stage is not None and at.axis is not None and (
                scan_op is None or at.stage.op is not scan_op):
            if id(at.axis) not in self._loops:
                raise ScheduleError(
                    f"{at.call.site}: {at.call.text}: {at.stage.op.name} has no loop {at.axis.var.name}, "
                    "because it is inlined", f"compute {stage.op.name} at a stage that reads {at.stage.op.name}")
            self._do(at.call, self._sch.compute_at, rv, self._loops[id(at.axis)], preserve_unit_loops=True)
        axes, loops = stage.root_axes[scan_op is not None:], self._sch.get_loops(rv)
        if isinstance(stage.op, ScanOp):
            loops = loops[:1]
        assert len(loops) >= len(axes), f"{stage.op.name}: {len(axes)} axes, {len(loops)} loops"
        self._enter(rv, axes, loops[len(loops) - len(axes):])
        if stage.scope_call is not None:
            self._do(stage.scope_call, self._sch.set_scope, rv, 0, stage.scope)
        for relation in stage.relations:
            self._relate(relation, rv)
        for iv in stage.leaf_iter_vars:
            if id(iv) in stage.marks:
                mark = stage.marks[id(iv)]
                self._mark(mark, self._loops[id(iv)])
        for iv, what, value, call in stage.pragmas:
            self._do(call, self._sch.annotate, self._loops[id(iv)], what, value)
        for r in stage.requests:
            t = r.tensor
            read = None if t is None else self._buffer(self._stages[t], t.value_index)
            self._do(r.call, grant, self._sch, rv, r, self._loops, read)

    def _mark(self, mark: Mark, rv: LoopRV) -> None:
        if mark.kind != "bind":
            self._do(mark.call, getattr(self._sch, mark.kind), rv)
            return
        loop = self._sch.get(rv)
        assert isinstance(loop, For)
        if mark.thread_extent is not None and not bool(binary("eq", loop.extent, mark.thread_extent)):
            raise ScheduleError(
                f"{mark.call.site}: {mark.call.text}: the loop has extent {loop.extent}, the thread axis "
                f"{mark.thread_extent}", f"split by {mark.thread_extent}, or leave the extent out of thread_axis")
        self._do(mark.call, self._sch.bind, rv, mark.thread_tag)

    def _enter(self, block: BlockRV, axes: Sequence[IterVar], loops: Sequence[LoopRV]) -> None:
        """Let loops of the block be those of its operation's axes."""
        for iv, loop in zip(axes, loops, strict=True):
            self._let(iv, self._named(loop, iv))

    def _let(self, iv: IterVar, loop: LoopRV) -> None:
        """Let loop be that of the axis iv."""
        self._loops[id(iv)] = loop

    def _named(self, rv: LoopRV, iv: IterVar) -> LoopRV:
        """The loop under the name of its axis (a copy's or a moved block's loops have names of their own)."""
        loop = self._sch.get(rv)
        assert isinstance(loop, For)
        return rv if loop.loop_var.name == iv.var.name else self._sch.fuse(rv, name=iv.var.name)

    def _relate(self, r: Relation, block: BlockRV) -> None:
        loops = [self._loops[id(iv)] for iv in r.axes]
        if r.kind == "reorder":
            self._do(r.call, self._sch.reorder, *loops)
        elif r.kind == "fuse":
            fused = r.results[0]
            self._let(fused, self._do(r.call, self._sch.fuse, *loops, name=fused.var.name))
        elif r.kind == "unit":
            unit = self._do(r.call, self._sch.add_unit_loop, loops[0] if loops else block)
            self._let(r.results[0], self._named(unit, r.results[0]))
        else:
            names = [iv.var.name for iv in r.results]
            parts = self._do(r.call, self._split, loops[0], r.factors, names)
            for iv, part in zip(r.results, parts, strict=True):
                self._let(iv, part)

    def _split(self, loop: LoopRV, factors: Sequence[int | None], names: Sequence[str]) -> list[LoopRV]:
        return self._sch.split(loop, list(factors), names=names)

    def _decompose(self, stage: Stage) -> BlockRV | None:
        """Give the initial values their own loops, before the outermost reduction loop.

        A reduction across threads stays whole: its steps are not in one thread; so does one that is tensorized whole.
        """
        if stage.tensorized is not None and is_whole(stage.leaf_iter_vars, stage.tensorized.axis):
            return None
        reduction = [iv for iv in stage.leaf_iter_vars if iv.iter_type == COMM_REDUCE]
        marks = [stage.marks[id(iv)] for iv in reduction if id(iv) in stage.marks]
        if reduction and not any(mark.kind == "bind" for mark in marks):
            outermost = self._loops[id(reduction[0])]
            call = stage.relations[-1].call if stage.relations else Call(f"s[{stage.op.name}]", "replay")
            start: BlockRV = self._do(call, self._sch.decompose_reduction, self._blocks[stage], outermost)
            return start
        return None

    def _tensorize(self, stage: Stage, start: BlockRV | None) -> None:
        record = stage.tensorized
        if record is not None:
            self._do(record.call, run_tensorization, self._sch, record, stage.leaf_iter_vars, self._blocks[stage],
                     self._loops[id(record.axis)], start)
