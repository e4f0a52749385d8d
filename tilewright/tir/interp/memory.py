"""Memory in the interpreter: where buffers are, and accesses with their checks (bounds, unwritten elements, races)."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import compress

from tilewright.support.errors import InterpreterError
from tilewright.tir import dtype as dt
from tilewright.tir.buffer import Buffer, Load, MatchBuffer
from tilewright.tir.expr import Expr, IntImm, Ramp
from tilewright.tir.interp.expressions import expression_rule
from tilewright.tir.interp.failures import FailureCompiler
from tilewright.tir.interp.regions import Declared, outside_of
from tilewright.tir.interp.scalars import V, literal, scalar_binary
from tilewright.tir.node import Node


@dataclass
class Memory:
    """A buffer's place in a Python list: element (i, j, ...) is at offset + sum(index * stride).

    Element (i, j, ...) of a view is whole[starts + (0, ..., i, j, ...)].
    """
    name: str
    label: str  # the name of the buffer that owns the memory
    data: int  # id of the data Var behind it, through views
    dtype: str
    shape: list[V]
    strides: list[V]
    offset: V
    initialised: bool  # an argument: every element has a value
    whole: Memory | None = None  # what is viewed; no view itself
    starts: tuple[V, ...] = ()
    outgrows: bool = False  # may reach behind the list

    def in_whole(self, at: Sequence[V]) -> list[V]:
        """The indices in what is viewed of the scalar indices `at` of a view."""
        spare = len(self.starts) - len(at)
        moved = [scalar_binary("add", low, i, "int64") for low, i in zip(self.starts[spare:], at, strict=True)]
        return [*self.starts[:spare], *moved]


class MemoryCompiler(FailureCompiler):
    """Loads and buffers."""

    def __init__(self, name: str, root: Node) -> None:
        super().__init__(name, root)
        self.memory: dict[int, Memory] = {}  # id(Buffer) -> where it is
        self.owner: dict[int, Memory] = {}  # id(data Var) -> the memory behind it
        self.track: dict[int, tuple[str, str]] = {}  # data -> names of the sets (written, read)
        self.declared: Declared | None = None          # the regions of the block that is being compiled
        self.globals["compress"] = compress

    # memory ------------------------------------------------------------------------------------------------
    def add_memory(self, b: Buffer, name: str, shape: list[V], strides: list[V], offset: V, initialised: bool) -> None:
        m = Memory(name, b.name, id(b.data), b.dtype, shape, strides, offset, initialised)
        self.memory[id(b)] = self.owner[id(b.data)] = m

    def row_major(self, shape: list[V]) -> tuple[list[V], V]:
        """(strides, size) of a compact array."""
        size, strides = literal(1), []
        for extent in reversed(shape):
            strides.append(size)
            size = self.keep(scalar_binary("mul", size, extent, "int64"))
        return strides[::-1], size

    def layout(self, b: Buffer) -> tuple[list[V], list[V], V, V]:
        """(shape, strides, offset, elements from the start of the memory to the end) of a buffer."""
        shape = [self.keep(self.index(d)) for d in b.shape]
        strides, size = self.row_major(shape)
        if b.strides:
            strides, size = [self.keep(self.index(s)) for s in b.strides], literal(1)
            for extent, stride in zip(shape, strides, strict=True):
                reach = scalar_binary("mul", scalar_binary("sub", extent, literal(1), "int64"), stride, "int64")
                size = scalar_binary("add", size, reach, "int64")
        offset = literal(0) if b.elem_offset is None else self.keep(self.index(b.elem_offset))
        return shape, strides, offset, scalar_binary("add", size, offset, "int64")

    def allocate(self, b: Buffer) -> None:
        """Statements that make fresh, unwritten memory for b."""
        if dt.lanes_of(b.dtype) > 1:
            raise InterpreterError(f"{b.name}: buffers of vectors ({b.dtype}) are not interpreted")
        shape, strides, offset, size = self.layout(b)
        name = self.name("m")
        self.line(f"{name} = [None] * {size.text}")
        self.add_memory(b, name, shape, strides, offset, False)
        self.track.pop(id(b.data), None)

    def view(self, m: MatchBuffer) -> None:
        """Bind a block's view of a region, with the strides and offset that it names."""
        source = self.find(m.source.buffer)
        starts, offset = [self.keep(self.index(axis.min)) for axis in m.source.region], source.offset
        for low, stride in zip(starts, source.strides, strict=True):
            offset = scalar_binary("add", offset, scalar_binary("mul", low, stride, "int64"), "int64")
        offset = self.keep(offset)
        strides = source.strides[len(source.strides) - len(m.buffer.shape):]
        for e, v in [*zip(m.buffer.strides, strides), (m.buffer.elem_offset, offset)]:
            if isinstance(e, IntImm):
                if v.low == v.high != e.value and e is not m.buffer.elem_offset:
                    raise InterpreterError(f"{self.title}: view {m.buffer.name} is declared with the stride {e}, its "
                                           f"region has the stride {v.text}")
            elif e is not None and id(e) not in self.env:
                self.env[id(e)] = v
        shape = [self.keep(self.index(d)) for d in m.buffer.shape]
        whole, first = source.whole or source, tuple(source.in_whole(starts) if source.whole else starts)
        self.memory[id(m.buffer)] = replace(
            source, shape=shape, strides=strides, offset=offset, whole=whole, starts=first, outgrows=False)

    def find(self, b: Buffer) -> Memory:
        """Where b is. A buffer that shares the data of a known one sees the same memory in its own shape."""
        m = self.memory.get(id(b))
        if m is None:
            base = self.owner.get(id(b.data))
            if base is None:
                raise InterpreterError(f"{self.title}: nothing allocates the buffer {b.name}")
            shape, strides, offset, size = self.layout(b)
            m = Memory(base.name, base.label, base.data, b.dtype, shape, strides, offset, base.initialised)
            m.outgrows = offset.low < 0 or size.high > self.end(base).low
            if all(v.low == v.high for v in (*shape, *strides, offset)):
                self.memory[id(b)] = m  # made of constants only, so it holds everywhere
        return m

    def end(self, m: Memory) -> V:
        """Elements from the start of the memory to the end of m."""
        end = scalar_binary("add", m.offset, literal(1), "int64")
        for extent, stride in zip(m.shape, m.strides, strict=True):
            reach = scalar_binary("mul", scalar_binary("sub", extent, literal(1), "int64"), stride, "int64")
            end = scalar_binary("add", end, reach, "int64")
        return end

    def place(self, b: Buffer, indices: tuple[Expr, ...], writes: bool = False) -> tuple[Memory, V]:
        """(memory, element) of b[indices], after the checks of bounds and of the block's regions that may fail."""
        m = self.find(b)
        at = self.inside(m, b.name, [self.index(i) for i in indices])
        if m.whole is not None:
            self.inside(m.whole, in_view(m, b), m.in_whole(at))
        undeclared = self.declared and outside_of(self.declared.of(b, writes), at, self.index)
        if undeclared and self.declared:
            index = " ".join(i.text + "," for i in at)
            self.line(f"if {undeclared}: undeclared({self.site()}, {self.declared.block!r}, {b.name!r}, ({index}))")
        flat = m.offset
        for i, stride in zip(at, m.strides, strict=True):
            flat = scalar_binary("add", flat, scalar_binary("mul", i, stride, "int64"), "int64")
        if m.outgrows:
            flat = self.keep(flat)
            self.line(f"if not 0 <= {flat.text} < len({m.name}): "
                      f"outgrown({self.site()}, {b.name!r}, [{flat.text}], {m.label!r}, len({m.name}))")
        return m, flat

    def inside(self, m: Memory, name: str, at: list[V]) -> list[V]:
        """The indices, kept where a check of them is made: each is inside of its extent."""
        doubtful = [k for k, (i, n) in enumerate(zip(at, m.shape, strict=True)) if i.low < 0 or i.high >= n.low]
        if doubtful:
            at = [self.keep(i) for i in at]
            inside = " and ".join(f"0 <= {at[k].text} < {m.shape[k].text}" for k in doubtful)
            self.line(f"if not ({inside}): outside({self.site()}, {name!r}, ({' '.join(i.text + ',' for i in at)}), "
                      f"({' '.join(n.text + ',' for n in m.shape)}))")
        return at

    def place_lanes(self, b: Buffer, indices: tuple[Expr, ...], mask: str) -> tuple[Memory, V]:
        """(memory, elements) of a vector access; lanes whose mask is false may lie anywhere."""
        m = self.find(b)
        *outer, last = [self.index(i) for i in indices]
        ramp = isinstance(indices[-1], Ramp)
        last = self.lanes_inside(m, b.name, outer, last, ramp, mask)
        if m.whole is not None:
            *rows, start = m.in_whole([*outer, literal(0)])
            moved = V(f"[{start.text} + x for x in {last.text}]", start.low + last.low, start.high + last.high)
            self.lanes_inside(m.whole, in_view(m, b), rows, moved, ramp, mask)
        flat = m.offset
        for i, stride in zip(outer, m.strides, strict=False):
            flat = scalar_binary("add", flat, scalar_binary("mul", i, stride, "int64"), "int64")
        step = m.strides[-1]
        if flat.text != "0" or step.text != "1":
            flat = self.keep(flat)
            last = V(f"[{flat.text} + x * {step.text} for x in {last.text}]", last.low, last.high)
        if m.outgrows:
            last = self.keep(last)
            self.line(f"if lanes_outside({last.text}, len({m.name}), {mask}): "
                      f"outgrown({self.site()}, {b.name!r}, {last.text}, {m.label!r}, len({m.name}))")
        return m, last

    def lanes_inside(self, m: Memory, name: str, outer: Sequence[V], last: V, ramp: bool, mask: str) -> V:
        """last, kept where a check of it is made: the lanes that the mask lets through are elements of m."""
        extents = m.shape
        for i, n in zip(outer, extents, strict=False):
            if i.low < 0 or i.high >= n.low:
                self.line(f"if not 0 <= {i.text} < {n.text}: outside({self.site()}, {name!r}, ({i.text},), "
                          f"({n.text},))")
        if last.low < 0 or last.high >= extents[-1].low:
            last = self.keep(last)
            limit = self.run_on(m, outer) if ramp else extents[-1]
            self.line(f"if lanes_outside({last.text}, {limit.text}, {mask}): outside({self.site()}, {name!r}, "
                      f"({last.text},), ({extents[-1].text},))")
        return last

    def run_on(self, m: Memory, outer: Sequence[V]) -> V:
        """How many elements follow the start of row `outer`, this row's included, without a gap.

        A vector access along the last axis may run on into the next rows of a compact box, as TVM's vload does.
        """
        count = size = m.shape[-1]
        for i, extent, stride in reversed(list(zip(outer, m.shape, m.strides, strict=False))):
            if m.strides[-1].text != "1" or not size.low == size.high == stride.low == stride.high:
                break
            rows = scalar_binary("sub", scalar_binary("sub", extent, literal(1), "int64"), i, "int64")
            count = scalar_binary("add", count, scalar_binary("mul", rows, stride, "int64"), "int64")
            size = scalar_binary("mul", extent, stride, "int64")
        return count

    def load(self, e: Load) -> V:
        """b[indices]: bounds, unwritten elements and (inside concurrent loops) races are seen to."""
        low, high = (0, 0) if not dt.is_integer(e.buffer.dtype) else dt.integer_range(e.buffer.dtype)
        if e.indices and dt.lanes_of(e.indices[-1].dtype) > 1:
            return self.load_lanes(e, low, high)
        if e.predicate is not None:
            raise InterpreterError(f"{e}: a scalar access has no predicate")
        m, at = self.place(e.buffer, e.indices)
        sets = self.track.get(m.data)
        if m.initialised and sets is None:
            return V(f"{m.name}[{at.text}]", low, high)
        at = self.keep(at)
        if sets is not None:
            self.line(f"{sets[1]}.add({at.text})")
        value = V(f"{m.name}[{at.text}]", low, high)
        if not m.initialised:
            value = self.keep(value)
            self.line(f"if {value.text} is None: unwritten({self.site()}, {e.buffer.name!r}, {at.text})")
        return value

    def mask(self, predicate: Expr | None) -> str:
        return "None" if predicate is None else self.keep(self.index(predicate)).text

    def load_lanes(self, e: Load, low: int, high: int) -> V:
        mask = self.mask(e.predicate)
        m, at = self.place_lanes(e.buffer, e.indices, mask)
        sets = self.track.get(m.data)
        if sets is not None:
            at = self.keep(at)
            self.line(f"{sets[1]}.update({at.text if mask == 'None' else f'compress({at.text}, {mask})'})")
        if m.initialised and mask == "None":
            return V(f"[{m.name}[x] for x in {at.text}]", low, high)
        dtype = e.buffer.dtype
        zero = "False" if dt.is_bool(dtype) else "0" if not dt.is_float(dtype) else \
            self.constant(dt.numpy_dtype(dtype).type(0), (dtype, "zero"))
        site, fail = self.site(), self.name("k")
        self.globals[fail] = lambda at, site=site, name=e.buffer.name: self.unwritten(site, name, at)
        return V(f"gather({m.name}, {at.text}, {mask}, {zero}, {fail})", low, high)


def in_view(m: Memory, b: Buffer) -> str:
    """What a message calls the memory that b views."""
    assert m.whole is not None
    return f"{b.name} is a view of {m.whole.label}, and {m.whole.label}"


expression_rule(Load)(MemoryCompiler.load)
