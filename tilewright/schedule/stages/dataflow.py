"""The façade's changes of the dataflow: cache_read and cache_write as new operations of the tensor graph."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tilewright.schedule.stages.layouts import Layout
from tilewright.schedule.stages.records import Call
from tilewright.schedule.stages.stage import Stage
from tilewright.te.operation import ComputeOp, ExternOp
from tilewright.te.reduction import Reduce
from tilewright.te.tensor import Operation, Tensor, TensorRead
from tilewright.tir.expr import Expr, Var
from tilewright.tir.iter_var import IterVar
from tilewright.tir.node import Node, rewrite


@dataclass(frozen=True, eq=False)
class Dataflow:
    """One cache_read, cache_write or rfactor.

    kind "read": created copies source for readers; kind "write": created computes what source copies; kind "rfactor":
    created reduces parts, which source reduces.
    """
    kind: str
    source: Stage
    value_index: int
    readers: tuple[Stage, ...]
    created: Stage
    scope: str
    call: Call

    @property
    def key(self) -> str:
        return self.created.key

    def must_follow(self, earlier: Dataflow) -> bool:
        """True when this rewrite does something else if it comes before `earlier`."""
        mine = {self.source, *self.readers}
        if earlier.created in mine:
            return True
        if (self.kind, earlier.kind) != ("read", "read"):
            return not mine.isdisjoint({earlier.source, *earlier.readers})
        return self.source is earlier.source and not set(self.readers).isdisjoint(earlier.readers)


@dataclass(frozen=True, eq=False)
class Written(Dataflow):
    """A cache_write; layout: of the cache, where its dimensions are loops of the stage and not its axes."""
    layout: Layout | None


def canonical_order(rewrites: Sequence[Dataflow]) -> list[Dataflow]:
    """The rewrites in an order that is one for all orders of calls with the same effect."""
    waiting = list(rewrites)
    ordered: list[Dataflow] = []
    while waiting:
        ready = [r for n, r in enumerate(waiting) if not any(r.must_follow(e) for e in waiting[:n])]
        first = min(ready, key=lambda r: r.key)
        ordered.append(first)
        waiting = [r for r in waiting if r is not first]
    return ordered


def copy_op(source: Tensor, name: str) -> ComputeOp:
    """The operation whose output is a copy of source."""
    axis = tuple(IterVar.over(extent, f"ax{n}") for n, extent in enumerate(source.shape))
    return ComputeOp(name, axis, (TensorRead(source, tuple(iv.var for iv in axis)),))


def with_inputs(op: Operation, table: dict[Tensor, Tensor]) -> Operation:
    """op reading table[t] in the place of t; the axes are the same objects."""
    if isinstance(op, ExternOp):
        inputs = tuple(table.get(t, t) for t in op.inputs)
        return ExternOp(op.name, inputs, op.input_buffers, op.output_buffers, op.body, op.tag, op.attrs)
    assert isinstance(op, ComputeOp)

    def lower(node: Node) -> Node | None:
        if isinstance(node, TensorRead) and node.tensor in table:
            return TensorRead(table[node.tensor], node.indices)
        return None
    return op.with_body(_rewritten(op.body, lower))


def cached_compute(op: ComputeOp, name: str, layout: Layout | None = None) -> tuple[ComputeOp, ComputeOp]:
    """(the operation that computes op under the given name, the one that copies its result to op's place).

    The copy keeps op's spatial axes; the computation keeps its reduction axes and has new spatial ones: those of the
    layout, where there is one.
    """
    if layout is None:
        axis = tuple(IterVar.over(iv.domain.extent, f"{iv.var.name}.c") for iv in op.axis)
        table: dict[Var, Expr] = {old.var: new.var for old, new in zip(op.axis, axis)}
    else:
        axis, table = layout.results, layout.inverse(op.axis)

    def lower(node: Node) -> Node | None:
        return table.get(node) if isinstance(node, Var) else None
    cache = ComputeOp(name, axis, _rewritten(op.body, lower), op.tag, op.attrs)
    point: tuple[Expr, ...] = tuple(iv.var for iv in op.axis)
    point = point if layout is None else layout.map.apply(point)
    copy = ComputeOp(op.name, op.axis, tuple(TensorRead(t, point) for t in cache.outputs), op.tag, op.attrs)
    return cache, copy


def _rewritten(body: tuple[Expr, ...], lower: Callable[[Node], Node | None]) -> tuple[Expr, ...]:
    """The bodies rewritten; components of one reduction go on sharing their source."""
    first = body[0]
    if not isinstance(first, Reduce):
        return tuple(rewrite(e, lower) for e in body)
    source = tuple(rewrite(e, lower) for e in first.source)
    condition = None if first.condition is None else rewrite(first.condition, lower)
    init = tuple(rewrite(e, lower) for e in first.init)
    return tuple(e.replace(source=source, condition=condition, init=init) for e in body)
