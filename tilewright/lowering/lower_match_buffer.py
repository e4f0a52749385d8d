"""Replaces views of buffers (`match_buffer`) by what they are views of."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tilewright.arith.analyzer import Analyzer
from tilewright.support.errors import LowerError
from tilewright.tir.accesses import reads_memory
from tilewright.tir.arithmetic import binary
from tilewright.tir.buffer import Buffer, BufferRegion, Load, MatchBuffer, pointer_layout, row_major, strided_pointer
from tilewright.tir.expr import Call, Expr, IntImm, Ramp, Var
from tilewright.tir.iter_var import Range
from tilewright.tir.node import Node, map_children, walk
from tilewright.tir.stmt import Block, LetStmt, PrimFunc, Store
from tilewright.tir.symbols import replace_buffers


def lower_match_buffer(func: PrimFunc) -> PrimFunc:
    """No block has views: accesses, strides, offsets and pointers are those of the buffers that are viewed.

    A pointer into memory that is not laid out as its extents say carries its strides. An allocation whose layout a
    view or pointer tells to others has explicit strides from then on, so that later passes keep it. Parameters have
    no variable offset: the caller's address is that of element 0. Raises LowerError where a view asks for a stride or
    offset that the viewed region does not have.
    """
    offsets = {b.elem_offset: IntImm(0, b.elem_offset.dtype) for b in func.buffers if isinstance(b.elem_offset, Var)}
    if not offsets and not any(_concerns(n) for n in walk(func.body)):
        return func
    lowering = _Lowering(offsets)
    body = lowering(func.body)
    replaced = {b: b.replace(elem_offset=None) for b in func.buffers if isinstance(b.elem_offset, Var)}
    compact = [b for b in lowering.pinned if not b.strides and b not in func.buffers]
    replaced |= {b: b.replace(strides=row_major(b.shape)) for b in compact}
    body = replace_buffers(body, replaced) if replaced else body
    buffers = {p: replaced.get(b, b) for p, b in func.buffer_map.items()}
    return func.replace(body=body, buffer_map=buffers)


def _concerns(n: Node) -> bool:
    return isinstance(n, Block) and bool(n.match_buffers) or isinstance(n, Call) and n.op == "access_ptr"


def _where(block: Block, names: dict[Var, Expr]) -> Block:
    """The block with names for what memory says where it begins."""
    read = {x.buffer for value in names.values() for x in walk(value) if isinstance(x, Load)}
    if block.init is not None and any(isinstance(s, Store) and s.buffer in read for s in walk(block.init)):
        raise LowerError(f"the init of block {block.name} writes what says where a view of the block begins",
                         "read it before the block, with a let")
    body, init = block.body, block.init
    for name, value in reversed(names.items()):
        body = LetStmt(name, value, body)
        init = None if init is None else LetStmt(name, value, init)
    return block.replace(body=body, init=init)


@dataclass(frozen=True)
class _View:
    """Element (i, j, ...) of a view is source[mins + (0, ..., i, j, ...)]."""
    source: Buffer
    mins: tuple[Expr, ...]
    strides: tuple[Expr, ...]                   # of the view's own dimensions
    declared: bool                              # the view says that it has strides

    def place(self, indices: Sequence[Expr]) -> tuple[Expr, ...]:
        spare = len(self.mins) - len(indices)
        moved = [Ramp(binary("add", low, i.base), i.stride, i.lanes) if isinstance(i, Ramp) else binary("add", low, i)
                 for low, i in zip(self.mins[spare:], indices, strict=True)]
        return self.mins[:spare] + tuple(moved)


class _Lowering:
    def __init__(self, variables: Mapping[Var, Expr]) -> None:
        self.variables: dict[Var, Expr] = dict(variables)
        self.views: dict[Buffer, _View] = {}
        self.pinned: dict[Buffer, None] = {}             # buffers whose strides are told
        self.analyzer = Analyzer()

    def __call__(self, n: Any) -> Any:
        if isinstance(n, Block):
            used = {x for x in walk(n.body) if isinstance(x, Var)} if n.match_buffers else set()
            names: dict[Var, Expr] = {}
            for m in n.match_buffers:
                self.add(m, used, names)
            new = map_children(n.replace(match_buffers=()) if n.match_buffers else n, self)
            return _where(new, names) if names else new
        if isinstance(n, Var):
            return self.variables.get(n, n)
        if isinstance(n, Call) and n.op == "access_ptr" and isinstance(n.args[0], Load):
            return self.pointer(n)
        new = map_children(n, self)
        if isinstance(new, (Load, Store)) and new.buffer in self.views:
            view = self.views[new.buffer]
            return new.replace(buffer=view.source, indices=view.place(new.indices))
        if isinstance(new, BufferRegion) and new.buffer in self.views:
            return self.region(new)
        return new

    def region(self, r: BufferRegion) -> BufferRegion:
        view = self.views[r.buffer]
        lows = view.place([x.min for x in r.region])
        spare = len(lows) - len(r.region)
        sizes = [IntImm(1, low.dtype) for low in lows[:spare]] + [x.extent for x in r.region]
        return BufferRegion(view.source, tuple(Range(a, b) for a, b in zip(lows, sizes, strict=True)))

    # ---- a view

    def add(self, m: MatchBuffer, used: set[Var], names: dict[Var, Expr]) -> None:
        """used: the variables in the block's body. A layout that nothing there knows may change later.

        names: gets names for what memory says of where the view begins.
        """
        source, mins = m.source.buffer, tuple(self(r.min) for r in m.source.region)
        for low in mins:
            if reads_memory(low):
                names[Var(f"{m.buffer.name}_begin", low.dtype)] = low
        mins = tuple(next((v for v, e in names.items() if e is low), low) for low in mins)
        if source.ndim < m.buffer.ndim:
            raise LowerError(f"match_buffer {m.buffer.name} has {m.buffer.ndim} dimensions, its source {source.name} "
                             f"has {source.ndim}")
        for r in m.source.region[:source.ndim - m.buffer.ndim]:
            if not self.analyzer.equal(r.extent, 1):
                raise LowerError(f"match_buffer {m.buffer.name} has {m.buffer.ndim} dimensions, its region of "
                                 f"{source.name} has the extent {r.extent} in a dimension before them")
        if source in self.views:
            outer = self.views[source]
            source, mins = outer.source, outer.place(mins)
        strides = tuple(self(e) for e in source.strides or row_major(source.shape))
        mine = strides[source.ndim - m.buffer.ndim:]
        self.views[m.buffer] = _View(source, mins, mine, bool(m.buffer.strides))
        known = any(s in used if isinstance(s, Var) else not self.analyzer.equal(s, 1) for s in m.buffer.strides)
        if known or isinstance(m.buffer.elem_offset, Expr) and m.buffer.elem_offset in used:
            self.pinned[source] = None
        for k, (want, have) in enumerate(zip(m.buffer.strides, mine, strict=False)):
            self.bind(m, f"stride of dimension {k}", want, have)
        offset: Expr = IntImm(0) if source.elem_offset is None else self(source.elem_offset)
        for low, stride in zip(mins, strides, strict=True):
            offset = binary("add", offset, binary("mul", low, stride))
        self.offset(m, offset)
        self.variables[m.buffer.data] = source.data

    def bind(self, m: MatchBuffer, what: str, want: Expr, have: Expr) -> None:
        """Give a symbol of the view its value; anything else must have it."""
        if isinstance(want, Var) and want not in self.variables:
            self.variables[want] = have
        elif not self.analyzer.equal(self(want), have):
            raise LowerError(f"match_buffer {m.buffer.name}: the {what} is {have}, declared as {want}",
                             "declare it as a variable")

    def offset(self, m: MatchBuffer, have: Expr) -> None:
        want, factor = m.buffer.elem_offset, m.buffer.offset_factor
        if want is not None:
            self.bind(m, "elem_offset", want, have)
        rest = self.analyzer.simplify(binary("floormod", have, factor)) if factor > 1 else IntImm(0)
        if isinstance(rest, IntImm) and rest.value:
            raise LowerError(f"match_buffer {m.buffer.name}: its offset {have} is no multiple of {factor} "
                             "(offset_factor)")

    # ---- pointers

    def pointer(self, e: Call) -> Expr:
        """access_ptr of an element, with the strides that the memory has."""
        first = e.args[0]
        assert isinstance(first, Load)
        rest = tuple(self(a) for a in e.args[1:])
        view, indices = self.views.get(first.buffer), tuple(self(i) for i in first.indices)
        source = first.buffer
        strides: Sequence[Expr] | None = None
        if view is not None:
            source, strides = view.source, view.strides
            indices = view.place(indices)
        elif source.strides:
            strides = source.strides
        self.pinned[source] = None
        extents, given = pointer_layout(e.replace(args=(first, *rest)))
        strides = given or strides
        if strides is not None and len(extents) == len(strides) and not self.is_compact(extents, strides):
            if view is not None and not view.declared:
                raise LowerError(
                    f"the address of {first.buffer.name} is taken, which has no strides and so is compact, but the "
                    f"region of {source.name} that it is has the strides ({', '.join(map(str, strides))})",
                    "declare strides for the match_buffer")
            return strided_pointer(Load(source, indices), extents, strides)
        return Call("access_ptr", (Load(source, indices), *extents), e.dtype)

    def is_compact(self, extents: Sequence[Expr], strides: Sequence[Expr]) -> bool:
        step: Expr = IntImm(1)
        for extent, stride in zip(reversed(extents), reversed(strides), strict=True):
            if not self.analyzer.equal(extent, 1) and not self.analyzer.equal(stride, step):
                return False
            step = binary("mul", step, extent)
        return True
