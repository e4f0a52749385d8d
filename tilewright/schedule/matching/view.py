"""What the buffers of a tensor intrinsic become in a program: views of boxes of the program's buffers."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tilewright.arith.analyzer import Analyzer
from tilewright.schedule.matching.match import Operand
from tilewright.support.errors import legal, require
from tilewright.tir import dtype as dt
from tilewright.tir.arithmetic import binary
from tilewright.tir.buffer import Buffer, BufferRegion, Load, row_major
from tilewright.tir.expr import Call, Expr, IntImm, Ramp, Var
from tilewright.tir.iter_var import IterVar, Range
from tilewright.tir.node import walk
from tilewright.tir.stmt import Block, For, Stmt, Store


@dataclass
class TensorView:
    """What a parameter of the implementation becomes: a view of a box of the program's buffer."""
    described: Buffer
    param: Buffer
    operand: Operand
    pointer: bool                                # the implementation takes its address
    vector: bool = False                         # it loads or stores vectors there,
    runs_on: bool = False                        # which may go on behind the end of a row
    buffer: Buffer = field(init=False)
    region: BufferRegion = field(init=False)

    def __post_init__(self) -> None:
        source, extents = self.operand.buffer, [_number(d) for d in self.described.shape]
        self.extents = extents
        ranges = [Range(low, IntImm(1, low.dtype)) for low in self.operand.base]
        for axis, step, extent in zip(self.operand.axes, self.operand.steps, extents, strict=True):
            if axis is not None:
                low = self.operand.base[axis]
                ranges[axis] = Range(low, IntImm(step * (extent - 1) + 1, low.dtype))
        used = [a for a in self.operand.axes if a is not None]
        self.first = min([*used, max(source.ndim - len(extents), 0)])
        self.region = BufferRegion(source, tuple(ranges))
        shape = tuple(r.extent for r in ranges[self.first:])
        name = self.param.name
        strided = self.pointer or bool(self.param.strides)
        fixed = self._fixed_strides()                 # what check() proves; lowering keeps such a layout
        strides = tuple(fixed.get(k + self.first, Var(f"{name}_s{k}", "int32")) for k in range(len(shape))) \
            if strided else ()
        offset = Var(f"{name}_offset", "int32") if self.pointer or self.param.elem_offset is not None else None
        self.buffer = self.param.replace(shape=shape, strides=strides, elem_offset=offset, scope=source.scope,
                                         data=Var(name, "handle"))

    def _fixed_strides(self) -> dict[int, Expr]:
        """The strides that the parameter gives as numbers, by the dimension of the program's buffer."""
        rows = zip(self.operand.axes, self.operand.steps, self.param.strides, self.extents, strict=False)
        return {axis: s for axis, step, s, n in rows
                if axis is not None and step == 1 and n != 1 and isinstance(s, IntImm)}

    @property
    def in_order(self) -> bool:
        """The view has the dimensions of the parameter, in their order and without steps."""
        last = self.operand.buffer.ndim
        return self.operand.axes == tuple(range(self.first, last)) and all(s == 1 for s in self.operand.steps)

    def stride(self, k: int) -> Expr:
        """The distance of neighbours along dimension k of the parameter."""
        axis = self.operand.axes[k]
        return IntImm(0) if axis is None else binary("mul", self.buffer.strides[axis - self.first],
                                                     self.operand.steps[k])

    def place(self, indices: Sequence[Expr]) -> tuple[Expr, ...]:
        """An element of the parameter as one of the view."""
        at: list[Expr] = [IntImm(0, d.dtype) for d in self.buffer.shape]
        for index, axis, step in zip(indices, self.operand.axes, self.operand.steps, strict=True):
            if axis is not None:
                at[axis - self.first] = index if step == 1 else binary("mul", index, step)
        return tuple(at)

    def check(self, analyzer: Analyzer, at: Stmt) -> None:
        """The box lies inside its buffer, and is laid out as the parameter asks."""
        source, name = self.operand.buffer, self.param.name
        for n, (r, dim) in enumerate(zip(self.region.region, source.shape, strict=True)):
            inside = binary("and", binary("ge", r.min, 0), binary("le", binary("add", r.min, r.extent), dim))
            legal(analyzer.prove(inside), f"{name} would be {r.min} to {r.min} + {r.extent} of dimension {n} of "
                  f"{source.name}, which has the extent {dim}", at, hint="pad the extents (pad_einsum)")
        have = source.strides or row_major(source.shape)
        self._check_vectors(at)
        table: dict[Var, Expr] = {}
        compact = row_major([IntImm(e) for e in self.extents]) if self.pointer or self.runs_on else ()
        strides = self.param.strides or compact
        for k, want in enumerate(strides):
            axis = self.operand.axes[k]
            if self.extents[k] == 1 or axis is None:
                continue
            actual = analyzer.simplify(binary("mul", have[axis], self.operand.steps[k]))
            if isinstance(want, Var) and want not in table:
                table[want] = actual
                continue
            expected = table.get(want, want) if isinstance(want, Var) else want
            why = "asks for" if self.param.strides else "is compact and so has"
            legal(analyzer.equal(actual, expected), f"{source.name} has the stride {actual} along dimension {axis}, "
                  f"the buffer {name} of the intrinsic {why} the stride {expected}", at,
                  hint="give the intrinsic's buffer symbolic strides, or copy the operand into tiles")
        if self.param.offset_factor > 1:
            offset = analyzer.simplify(flat_offset(self.region, have))
            legal(analyzer.prove(binary("eq", binary("floormod", offset, self.param.offset_factor), 0)),
                  f"{name} starts at the offset {offset} of {source.name}, which is not known to be a multiple of "
                  f"{self.param.offset_factor} (offset_factor)", at)

    def _check_vectors(self, at: Stmt) -> None:
        """Neighbours along the last axis, as a vector has them, are neighbours in the operand."""
        if not self.vector or not self.operand.axes:
            return
        source, name = self.operand.buffer, self.param.name
        axis, step = self.operand.axes[-1], self.operand.steps[-1]
        steps = f", in steps of {step}," if step != 1 else ""
        where = "no dimension" if axis is None else f"dimension {axis}{steps}"
        require(axis == source.ndim - 1 and step == 1, f"the implementation loads or stores vectors along the last "
                f"axis of {name}, which is {where} of {source.name} of {source.ndim} dimension(s)", at,
                hint=f"vectors lie along the last dimension: copy the part of {source.name} into a tile first, or use "
                     "an intrinsic that takes its elements one by one")


def _number(extent: Expr) -> int:
    require(isinstance(extent, IntImm), f"the extent {extent} of an intrinsic's buffer is not a constant")
    assert isinstance(extent, IntImm)
    return extent.value


def flat_offset(region: BufferRegion, strides: Sequence[Expr]) -> Expr:
    """Where the region starts, in elements from element 0 of the memory."""
    total: Expr = IntImm(0) if region.buffer.elem_offset is None else region.buffer.elem_offset
    for r, stride in zip(region.region, strides, strict=True):
        total = binary("add", total, binary("mul", r.min, stride))
    return total


def viewed_again(block: Block) -> set[Buffer]:
    """The buffers of which blocks of the implementation have views of their own."""
    return {m.source.buffer for n in walk(block) if isinstance(n, Block) for m in n.match_buffers}


def pointers_of(block: Block) -> set[object]:
    """The buffers whose address the implementation takes, and the pointers that it uses."""
    found: set[object] = set()
    for n in walk(block):
        if isinstance(n, Call) and n.op == "access_ptr":
            found |= {x.buffer for x in walk(n.args[0]) if isinstance(x, Load)}
        elif isinstance(n, Var) and n.dtype == "handle":
            found.add(n)
    return found


def vectors_of(block: Block) -> dict[Buffer, bool]:
    """The buffers that the implementation loads or stores vectors of; True where one may go on behind its row."""
    analyzer, found = Analyzer(), dict[Buffer, bool]()
    for n in walk(block):
        if isinstance(n, For):
            analyzer.bind(n.loop_var, n.min, n.extent)
        elif isinstance(n, IterVar) and n.dom is not None:
            analyzer.bind(n.var, n.dom.min, n.dom.extent)
    for n in walk(block):
        if isinstance(n, (Load, Store)) and n.indices and dt.lanes_of(n.indices[-1].dtype) > 1:
            found[n.buffer] = found.get(n.buffer, False) or not _in_row(n.indices[-1], n.buffer.shape[-1], analyzer)
    return found


def _in_row(index: Expr, extent: Expr, analyzer: Analyzer) -> bool:
    """A vector index that touches no element behind the row; only a Ramp may (see Load)."""
    if not isinstance(index, Ramp):
        return True
    last = binary("add", index.base, binary("mul", index.stride, index.lanes - 1))
    return all(analyzer.prove(binary("lt", e, extent)) for e in (index.base, last))
