"""Copies of the implementation of a tensor intrinsic on views."""
from __future__ import annotations

from collections.abc import Mapping, Sequence

from tilewright.schedule.primitives.tensor_view import TensorView
from tilewright.schedule.schedule import Schedule
from tilewright.tir.arithmetic import binary
from tilewright.tir.buffer import BufferRegion, Load, strided_pointer
from tilewright.tir.expr import Call, Expr, IntImm, Var
from tilewright.tir.iter_var import Range
from tilewright.tir.node import Node, rewrite, substitute
from tilewright.tir.stmt import Block, Store
from tilewright.tir.symbols import fresh_copy


class Instantiation:
    """A copy of the implementation's body with its own loops and blocks, on views."""

    def __init__(self, sch: Schedule, views: Sequence[TensorView], scalars: Mapping[Var, Expr]) -> None:
        self.sch, self.views = sch, {v.param: v for v in views}
        self.table: dict[Var, Expr] = dict(scalars)
        for v in views:
            self.table[v.param.data] = v.buffer.data
            if isinstance(v.param.elem_offset, Var):
                self.table[v.param.elem_offset] = v.buffer.elem_offset
            for k, stride in enumerate(v.param.strides):
                if isinstance(stride, Var) and v.operand.axes[k] is not None:
                    self.table.setdefault(stride, v.stride(k))
        self.taken: set[str] = set()

    def run(self, root: Block) -> Block:
        """The root block of the implementation, on the views."""
        own = fresh_copy(root, self.name)
        assert isinstance(own, Block)
        return rewrite(substitute(own, self.table), self.step)

    def name(self, old: str) -> str:
        """A name for a block that neither the function nor the copy has."""
        k, name = 0, self.sch.fresh_block(old)
        while name in self.taken:
            k += 1
            name = self.sch.fresh_block(f"{old}_{k}")
        self.taken.add(name)
        return name

    def step(self, n: Node) -> Node | None:
        if isinstance(n, (Load, Store)) and n.buffer in self.views:
            view = self.views[n.buffer]
            return n.replace(buffer=view.buffer, indices=view.place(n.indices))
        if isinstance(n, Call) and n.op == "access_ptr":
            return self.pointer(n)
        if isinstance(n, BufferRegion) and n.buffer in self.views:
            return self.region(n)
        return None

    def region(self, n: BufferRegion) -> BufferRegion:
        view = self.views[n.buffer]
        lows = view.place([r.min for r in n.region])
        sizes: list[Expr] = [IntImm(1, d.dtype) for d in view.buffer.shape]
        for r, axis, step in zip(n.region, view.operand.axes, view.operand.steps, strict=True):
            if axis is not None:
                sizes[axis - view.first] = binary("add", binary("mul", binary("sub", r.extent, 1), step), 1)
        return BufferRegion(view.buffer, tuple(Range(a, b) for a, b in zip(lows, sizes, strict=True)))

    def pointer(self, n: Call) -> Expr | None:
        """A pointer into a view carries the strides of the parameter that it was a pointer into."""
        first = n.args[0]
        if not isinstance(first, Load):
            return None
        view = next((v for v in self.views.values() if v.buffer is first.buffer), None)
        if view is None or len(n.args) != 1 + len(view.operand.axes):
            return None
        strides = [view.stride(k) for k in range(len(view.operand.axes))]
        return strided_pointer(first, n.args[1:], strides)
