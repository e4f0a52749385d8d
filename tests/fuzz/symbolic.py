"""What a function computes on every input: loops run with their numbers, elements of arguments stay symbols.

An element's value is a term, one object per structure. Sums, products, minima and the like are multisets, so that the
order of a reduction does not count. Two functions of constant extents whose outputs are the same terms compute the
same, up to rounding. Concurrent loops are compared iteration by iteration: `Conflict` is raised where two of them touch
an element and one writes it. Products with 0 are 0 and constants are folded, so NaN and infinities are not told apart.
Nothing here comes from the interpreter, which this judges.
"""
from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tilewright.tir import dtype as dt
from tilewright.tir.buffer import Buffer, Load
from tilewright.tir.expr import (
    COMM_REDUCE,
    Binary,
    Broadcast,
    Call,
    Cast,
    Expr,
    FloatImm,
    IntImm,
    Let,
    Not,
    Ramp,
    Select,
    Var,
)
from tilewright.tir.node import Node, walk
from tilewright.tir.stmt import (
    PARALLEL,
    THREAD_BINDING,
    VECTORIZED,
    Allocate,
    Block,
    BlockRealize,
    Evaluate,
    For,
    IfThenElse,
    LetStmt,
    PrimFunc,
    Seq,
    Store,
    is_thread_axis,
)


class Unsupported(Exception):
    """The function is outside of what is evaluated here: an index or a branch depends on data, or a call has effects."""


class Conflict(Exception):
    """Two iterations of a concurrent loop touch one element, and one of them writes it."""


class Outside(Exception):
    """A store out of bounds, or an access that leaves the regions of its block."""


@dataclass(eq=False)
class Term:
    """A value that is not known as a number: an operator over terms and numbers."""
    op: str
    args: tuple[Any, ...]


def _trunc_div(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


NUMBERS: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b,
    "floordiv": lambda a, b: a // b if b else 0, "floormod": lambda a, b: a % b if b else 0,
    "truncdiv": lambda a, b: _trunc_div(a, b) if b else 0,
    "truncmod": lambda a, b: a - b * _trunc_div(a, b) if b else 0,
    "min": min, "max": max, "and": lambda a, b: a and b, "or": lambda a, b: a or b,
    "eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "lt": lambda a, b: a < b, "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b, "bitand": lambda a, b: a & b, "bitor": lambda a, b: a | b,
    "bitxor": lambda a, b: a ^ b, "shl": lambda a, b: a << b, "shr": lambda a, b: a >> b,
}
COUNTED = {"add", "mul", "bitxor"}                     # multisets
MERGED = {"min", "max", "and", "or", "bitand", "bitor"}    # sets: x op x is x
NEUTRAL = {"add": 0, "mul": 1, "bitxor": 0, "bitor": 0, "and": True, "or": False}
MOST_OPERANDS = 4096                                   # of a flat sum


def wrapped(value: Any, dtype: str) -> Any:
    """An integer as dtype holds it."""
    if dt.is_bool(dtype) or not dt.is_integer(dtype):
        return value
    low, high = dt.integer_range(dtype)
    return (int(value) - low) % (high - low + 1) + low


class Terms:
    """The terms that exist; equal structures are one object."""

    def __init__(self) -> None:
        self.known: dict[Any, Term] = {}

    def make(self, op: str, *args: Any) -> Term:
        key = (op, *[(type(a), a) for a in args])
        if key not in self.known:
            self.known[key] = Term(op, args)
        return self.known[key]

    def binary(self, op: str, dtype: str, a: Any, b: Any) -> Any:
        """a op b on scalars; dtype is that of the operands."""
        if not isinstance(a, Term) and not isinstance(b, Term):
            compares = op in ("eq", "ne", "lt", "le", "gt", "ge")
            return NUMBERS[op](a, b) if compares else wrapped(NUMBERS[op](a, b), dtype)
        if all(isinstance(x, Term) and x.op == "float" for x in (a, b)) and op in ("add", "sub", "mul", "div"):
            if op != "div" or b.args[1]:
                value = a.args[1] / b.args[1] if op == "div" else NUMBERS[op](a.args[1], b.args[1])
                return self.make("float", dtype, value)
        if op == "mul" and any(isinstance(x, Term) and x.op == "float" and not x.args[1] for x in (a, b)):
            return self.make("float", dtype, 0.0)
        if op in COUNTED or op in MERGED:
            return self._gathered(op, dtype, a, b)
        if op in ("eq", "ne"):
            return self.make(op, frozenset(((type(a), a), (type(b), b))))
        return self.make(op, dtype, a, b)

    def _gathered(self, op: str, dtype: str, a: Any, b: Any) -> Any:
        items: Counter[Any] = Counter()
        number = None
        for x in (a, b):
            flat = isinstance(x, Term) and x.op == op and x.args[0] == dtype
            for y, count in (x.args[1] if flat and len(x.args[1]) < MOST_OPERANDS else ((x, 1),)):
                if not isinstance(y, Term):
                    number = y if number is None else wrapped(NUMBERS[op](number, y), dtype)
                elif not (op in NEUTRAL and y.op == "float" and y.args[1] == NEUTRAL[op]):
                    items[y] += count
        if op == "mul" and number == 0:
            return 0
        if number is not None and number != NEUTRAL.get(op):
            items[number] = 1
        if op in MERGED:
            items = Counter(dict.fromkeys(items, 1))
        if not items:
            return NEUTRAL[op] if number is not None else self.make("float", dtype, float(NEUTRAL[op]))
        (first, count), *others = items.items()
        return first if not others and count == 1 else self.make(op, dtype, frozenset(items.items()))


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


class Machine:
    """One execution of a function of constant extents."""

    def __init__(self, func: PrimFunc, terms: Terms) -> None:
        self.terms, self.env = terms, dict[Any, Any]()
        self.memory: dict[Any, Cells] = {}              # data Var -> memory
        self.frames = [Touched()]
        self.in_threads = False
        self.boxes: dict[bool, list[tuple[Buffer, list[range]]]] | None = None    # what the block may read, write
        self.leaves: dict[int, bool] = {}
        self.of_blocks: set[Any] = set()
        self.uses = Counter(map(id, _accessed(func.body)))
        self.private: dict[int, list[Buffer]] = {}      # concurrent loop -> buffers that each iteration has for itself
        self.outputs: dict[int, Cells] = {}
        for k, p in enumerate(func.params):
            if p in func.buffer_map:
                b = func.buffer_map[p]
                cells = Cells(b.name, [], 0)
                self.memory[b.data] = self.memory[p] = self.outputs[k] = cells
                cells.values = [terms.make("argument", k, n) for n in range(self.size(b))]
            else:
                self.env[p] = terms.make("scalar", k, p.dtype)
        self.stmt(func.body)

    # memory

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
        self.memory[b.data] = Cells(b.name, [None] * self.size(b), len(self.frames) - 1)

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
        cells = self.memory[b.data]
        if at is None or not 0 <= at < len(cells.values):
            return self.terms.make("outside", b.name)
        self.frames[-1].read.add((cells, at))
        value = cells.values[at]
        return self.terms.make("unwritten", b.name, at) if value is None else value

    def store(self, s: Store) -> None:
        value = self.expr(s.value)
        mask = True if s.predicate is None else self.expr(s.predicate)
        written: set[int] = set()
        cells = self.memory[s.buffer.data]

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
        lanewise(put, self.places(s.buffer, s.indices, True), value, mask)

    # expressions

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

    def expr(self, e: Expr) -> Any:
        t = self.terms
        match e:
            case IntImm():
                return bool(e.value) if dt.is_bool(e.type) else e.value
            case FloatImm():
                return t.make("float", e.type, float(e.value))
            case Var():
                if e not in self.env:
                    raise Unsupported(f"{e.name} has no value")
                return self.env[e]
            case Binary():
                dtype = dt.element_of(e.a.dtype)
                return lanewise(lambda a, b: t.binary(e.op, dtype, a, b), self.expr(e.a), self.expr(e.b))
            case Not():
                return lanewise(lambda a: t.make("not", a) if isinstance(a, Term) else not a, self.expr(e.a))
            case Cast():
                return lanewise(lambda a: self.cast(dt.element_of(e.type), a), self.expr(e.value))
            case Select():
                return lanewise(self.choose, *[self.expr(x) for x in (e.condition, e.a, e.b)])
            case Let():
                self.env[e.var] = self.expr(e.value)
                return self.expr(e.body)
            case Ramp():
                base, stride = self.number(e.base), self.number(e.stride)
                return [base + k * stride for k in range(e.lanes)]
            case Broadcast():
                return [self.expr(e.value)] * e.lanes
            case Load():
                return self.load(e)
            case Call():
                return self.call(e)
        raise Unsupported(type(e).__name__)

    def cast(self, dtype: str, value: Any) -> Any:
        if isinstance(value, Term) or not (dt.is_integer(dtype) or dt.is_bool(dtype)):
            return self.terms.make("cast", dtype, value)
        return bool(value) if dt.is_bool(dtype) else wrapped(value, dtype)

    def choose(self, condition: Any, a: Any, b: Any) -> Any:
        if isinstance(condition, Term):
            return a if a is b else self.terms.make("choose", condition, a, b)
        return a if condition else b

    def call(self, e: Call) -> Any:
        if e.op == "likely":
            return self.expr(e.args[0])
        if e.op == "if_then_else":
            condition = self.expr(e.args[0])
            if not isinstance(condition, (Term, list)):
                return self.expr(e.args[1] if condition else e.args[2])
            return lanewise(self.choose, condition, self.expr(e.args[1]), self.expr(e.args[2]))
        if e.op in ("call_extern", "call_packed", "access_ptr", "sync", "call_llvm_intrin", "call_llvm_pure_intrin"):
            raise Unsupported(e.op)
        if e.op == "prefetch":
            return 0
        return lanewise(lambda *args: self.terms.make("call", e.op, dt.element_of(e.type), *args),
                        *[self.expr(a) for a in e.args])

    # statements

    def stmt(self, s: Node) -> None:
        match s:
            case Store():
                self.store(s)
            case For():
                self.loop(s)
            case Seq():
                for x in s.stmts:
                    self.stmt(x)
            case IfThenElse():
                taken = s.then_case if self.truth(self.expr(s.condition)) else s.else_case
                if taken is not None:
                    self.stmt(taken)
            case LetStmt():
                self.env[s.var] = self.expr(s.value)
                self.stmt(s.body)
            case Allocate():
                if not (self.in_threads and s.buffer.scope.startswith("shared")):
                    self.allocate(s.buffer)
                self.stmt(s.body)
            case BlockRealize():
                if self.truth(self.expr(s.predicate)):
                    self.block(s.block, [self.number(v) for v in s.iter_values])
            case Evaluate():
                self.expr(s.value)
            case _:
                raise Unsupported(type(s).__name__)

    def loop(self, s: For) -> None:
        start, extent = self.number(s.min), self.number(s.extent)
        concurrent = s.kind in (PARALLEL, VECTORIZED, THREAD_BINDING)
        outer_threads = self.in_threads
        if s.kind == THREAD_BINDING and is_thread_axis(s.thread_tag) and not self.in_threads:
            self.in_threads = True                      # their shared memory exists once for all of them
            for n in walk(s.body):
                for b in (n.buffer,) if isinstance(n, Allocate) else n.alloc_buffers if isinstance(n, Block) else ():
                    if b.scope.startswith("shared"):
                        self.allocate(b)
        depth, so_far = len(self.frames) - 1, Touched()
        for i in range(start, start + extent):
            self.env[s.loop_var] = i
            if not concurrent:
                self.stmt(s.body)
                continue
            self.frames.append(Touched())
            for b in self.own(s):
                self.allocate(b)
            self.stmt(s.body)
            mine = Touched()
            mine.include(self.frames.pop(), depth)
            if mine.meets(so_far):
                raise Conflict(f"iterations of {s.loop_var.name}")
            so_far.include(mine, depth)
        self.frames[-1].include(so_far, depth)
        self.in_threads = outer_threads

    def block(self, block: Block, values: Sequence[int]) -> None:
        first = True
        for iv, value in zip(block.iter_vars, values):
            self.env[iv.var] = value
            if iv.iter_type == COMM_REDUCE and iv.dom is not None:
                first = first and value == self.number(iv.dom.min)
        if block.match_buffers:
            raise Unsupported("match_buffer")
        for b in block.alloc_buffers:
            self.of_blocks.add(b.data)
            if not (self.in_threads and b.scope.startswith("shared")):
                self.allocate(b)
        outer, self.boxes = self.boxes, self.regions(block)
        if block.init is not None and first:
            self.stmt(block.init)
        self.stmt(block.body)
        self.boxes = outer

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


def outputs(func: PrimFunc, terms: Terms) -> dict[int, list[Any]]:
    """What each argument holds after a call, by its position. Raises Conflict, Outside, Unsupported."""
    return {k: cells.values for k, cells in Machine(func, terms).outputs.items()}


def equivalent(one: PrimFunc, other: PrimFunc) -> bool:
    """True when both functions, of constant extents, give the same outputs for all inputs. `one` is right."""
    terms = Terms()
    expected = outputs(one, terms)
    try:
        found = outputs(other, terms)
    except (Conflict, Outside):
        return False
    return all(type(a) is type(b) and a == b for k in expected for a, b in zip(expected[k], found[k], strict=True))
