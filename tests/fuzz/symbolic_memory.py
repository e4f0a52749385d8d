"""Memory of a symbolic execution: elements that hold terms, what each iteration touched, what blocks declare."""
from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tilewright.tir import dtype as dt
from tilewright.tir.buffer import Buffer, Load
from tilewright.tir.expr import Expr, IntImm
from tilewright.tir.node import Node, walk
from tilewright.tir.stmt import Block, BlockRealize, For, PrimFunc, Store, is_thread_axis

from .terms import Term, Terms


class Unsupported(Exception):
    """The function is outside of what is evaluated here: an index or branch depends on data, or a call has effects."""


class Conflict(Exception):
    """Two iterations of a concurrent loop touch one element, and one of them writes it."""


class Outside(Exception):
    """A store out of bounds, or an access that leaves the regions of its block."""


@dataclass(eq=False)
class Cells:
    """Memory: a term or number per element, None where nothing was written. depth: concurrent loops around it."""
    name: str
    values: list[Any]
    depth: int


@dataclass
class Touched:
    """What one iteration of a concurrent loop wrote and read: (memory, element)."""
    written: set[tuple[Cells, int]] = field(default_factory=set)
    read: set[tuple[Cells, int]] = field(default_factory=set)

    def meets(self, other: Touched) -> bool:
        return not (self.written.isdisjoint(other.written) and self.written.isdisjoint(other.read)
                    and self.read.isdisjoint(other.written))

    def include(self, other: Touched, depth: int) -> None:
        self.written |= {t for t in other.written if t[0].depth <= depth}
        self.read |= {t for t in other.read if t[0].depth <= depth}


def lanewise(fn: Callable[..., Any], *args: Any) -> Any:
    """fn on scalars, or on each lane of lists."""
    lanes = next((len(a) for a in args if isinstance(a, list)), 0)
    if not lanes:
        return fn(*args)
    return [fn(*[a[k] if isinstance(a, list) else a for a in args]) for k in range(lanes)]


class Memory:
    """The memory of one execution; expressions are evaluated by the subclass."""

    def __init__(self, func: PrimFunc, terms: Terms) -> None:
        self.terms, self.env = terms, dict[Any, Any]()
        self.cells: dict[Any, Cells] = {}               # data Var -> memory
        self.frames = [Touched()]
        self.stored: list[tuple[Cells, int, Any]] = []
        self.boxes: dict[bool, list[tuple[Buffer, list[range]]]] | None = None    # what the block may read, write
        self.leaves: dict[int, bool] = {}
        self.of_blocks: set[Any] = set()
        self.uses = Counter(map(id, _accessed(func.body)))
        self.private: dict[int, list[Buffer]] = {}      # concurrent loop -> buffers that each iteration has for itself

    def expr(self, e: Expr) -> Any:
        raise NotImplementedError

    def number(self, e: Expr) -> int:
        value = e.value if isinstance(e, IntImm) else self.expr(e)
        if isinstance(value, (Term, list)):
            raise Unsupported(f"{e} depends on data")
        return int(value)

    def index(self, e: Expr) -> Any:
        value = self.expr(e)
        if isinstance(value, Term) or isinstance(value, list) and any(isinstance(v, Term) for v in value):
            raise Unsupported(f"{e} depends on data")
        return value

    def truth(self, value: Any) -> bool:
        if isinstance(value, Term):
            raise Unsupported("a branch depends on data")
        return bool(value)

    def shape(self, b: Buffer) -> list[int]:
        return [self.number(d) for d in b.shape]

    def strides(self, b: Buffer) -> list[int]:
        if b.strides:
            return [self.number(s) for s in b.strides]
        out, size = [], 1
        for n in reversed(self.shape(b)):
            out.append(size)
            size *= n
        return out[::-1]

    def offset(self, b: Buffer) -> int:
        return 0 if b.elem_offset is None else self.number(b.elem_offset)

    def size(self, b: Buffer) -> int:
        shape = self.shape(b)
        if 0 in shape:
            return self.offset(b)
        return self.offset(b) + 1 + sum((n - 1) * s for n, s in zip(shape, self.strides(b)))

    def allocate(self, b: Buffer) -> None:
        self.cells[b.data] = Cells(b.name, [None] * self.size(b), len(self.frames) - 1)

    def element(self, b: Buffer, index: Sequence[int], writes: bool) -> int | None:
        """Where b[index] lies, or None out of bounds. Raises Outside beyond the regions of the block."""
        mine = [box for buffer, box in self.boxes[writes] if buffer is b] if self.boxes else []
        if mine and not any(all(i in r for i, r in zip(index, box)) for box in mine):
            raise Outside(f"{b.name}{list(index)} is in no region of the block")
        shape = self.shape(b)
        if any(not 0 <= i < n for i, n in zip(index, shape)):
            return None
        return self.offset(b) + sum(i * s for i, s in zip(index, self.strides(b)))

    def places(self, b: Buffer, indices: tuple[Expr, ...], writes: bool = False) -> Any:
        """The element of an access, or a list of one per lane; a vector runs on along the last axis."""
        at = [self.index(i) for i in indices]
        if not at or not isinstance(at[-1], list):
            return self.element(b, at, writes)
        row = self.element(b, [*at[:-1], 0], writes)
        step, size = self.strides(b)[-1], self.size(b)
        reached = [None if row is None else row + i * step for i in at[-1]]
        return [None if n is None or not 0 <= n < size else n for n in reached]

    def load(self, e: Load) -> Any:
        zero = 0 if dt.is_integer(e.buffer.dtype) or dt.is_bool(e.buffer.dtype) else self.terms.make(
            "float", e.buffer.dtype, 0.0)
        mask = True if e.predicate is None else self.expr(e.predicate)
        return lanewise(lambda at, on: self.fetch(e.buffer, at) if self.truth(on) else zero,
                        self.places(e.buffer, e.indices), mask)

    def fetch(self, b: Buffer, at: int | None) -> Any:
        cells = self.cells[b.data]
        if at is None or not 0 <= at < len(cells.values):
            return self.terms.make("outside", b.name)
        self.frames[-1].read.add((cells, at))
        value = cells.values[at]
        return self.terms.make("unwritten", b.name, at) if value is None else value

    def store(self, s: Store) -> None:
        value = self.expr(s.value)
        mask = True if s.predicate is None else self.expr(s.predicate)
        written: set[int] = set()
        cells = self.cells[s.buffer.data]

        def put(at: int | None, value: Any, on: Any) -> None:
            if not self.truth(on):
                return
            if at is None or not 0 <= at < len(cells.values):
                raise Outside(s.buffer.name)
            if at in written:
                raise Conflict(f"two lanes write element {at} of {s.buffer.name}")
            written.add(at)
            self.frames[-1].written.add((cells, at))
            cells.values[at] = value
            self.stored.append((cells, at, value))
        lanewise(put, self.places(s.buffer, s.indices, True), value, mask)

    def regions(self, block: Block) -> dict[bool, list[tuple[Buffer, list[range]]]] | None:
        """The boxes that the block may read (False) and write (True); None where it holds other blocks."""
        if id(block) not in self.leaves:
            parts = [p for p in (block.init, block.body) if p is not None]
            self.leaves[id(block)] = not any(isinstance(n, BlockRealize) for p in parts for n in walk(p))
        if not self.leaves[id(block)] or not (block.reads or block.writes):
            return None
        boxes = {kind: [(r.buffer, [range(low := self.number(x.min), low + self.number(x.extent)) for x in r.region])
                        for r in regions if not any(isinstance(n, Load) for n in walk(r))]
                 for kind, regions in ((False, (*block.reads, *block.writes)), (True, block.writes))}
        return boxes

    def own(self, loop: For) -> list[Buffer]:
        """The buffers of blocks around the loop that only the loop uses: each of its iterations has one."""
        if id(loop) not in self.private:
            inside = Counter(map(id, _accessed(loop.body)))
            found = {id(b): b for b in _accessed(loop.body)}
            self.private[id(loop)] = [
                b for k, b in found.items() if b.data in self.of_blocks and inside[k] == self.uses[k]
                and not (b.scope.startswith("shared") and is_thread_axis(loop.thread_tag))]
        return self.private[id(loop)]


def _accessed(s: Node) -> list[Buffer]:
    """The buffer of every load and store in s."""
    return [n.buffer for n in walk(s) if isinstance(n, (Load, Store))]
