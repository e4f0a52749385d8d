"""What a function computes on every input: loops run with their numbers, elements of arguments stay symbols.

Two functions of constant extents whose outputs are the same terms compute the same, up to rounding. Concurrent loops
are compared iteration by iteration: `Conflict` is raised where two of them touch an element and one writes it. Nothing
here comes from the interpreter, which this judges.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tilewright.tir import dtype as dt
from tilewright.tir.buffer import Load
from tilewright.tir.expr import Binary, Broadcast, Call, Cast, Expr, FloatImm, IntImm, Let, Not, Ramp, Select, Var
from tilewright.tir.iter_var import COMM_REDUCE
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

from .exhaustive import same_everywhere
from .symbolic_memory import Cells, Conflict, Memory, Outside, Touched, Unsupported, lanewise
from .terms import Term, Terms, wrapped

MOST_TRIED = 4                                         # pairs of terms that are compared on every value


class Machine(Memory):
    """One execution of a function of constant extents."""

    def __init__(self, func: PrimFunc, terms: Terms, sizes: Mapping[str, int] | None = None) -> None:
        super().__init__(func, terms)
        self.in_threads, self.sizes = False, sizes or {}
        self.steady = True                              # no instance of a block stored other values when it ran again
        self.ran: dict[tuple[str, tuple[int, ...]], list[tuple[str, int, Any]]] = {}
        self.outputs: dict[int, Cells] = {}
        for k, p in enumerate(func.params):
            if p in func.buffer_map:
                b = func.buffer_map[p]
                cells = Cells(b.name, [], 0)
                self.cells[b.data] = self.cells[p] = self.outputs[k] = cells
                cells.values = [terms.make("argument", k, n) for n in range(self.size(b))]
            else:
                self.env[p] = terms.make("scalar", k, p.dtype)
        self.stmt(func.body)

    # expressions

    def expr(self, e: Expr) -> Any:
        t = self.terms
        match e:
            case IntImm():
                return bool(e.value) if dt.is_bool(e.type) else e.value
            case FloatImm():
                return t.make("float", e.type, float(e.value))
            case Var():
                if e not in self.env and e.name in self.sizes:
                    return self.sizes[e.name]
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
        if isinstance(value, Term) and value.op == "float" and dt.is_float(dtype):
            return self.terms.make("float", dtype, value.args[1])
        if isinstance(value, Term) and value.op == "float" and dt.is_integer(dtype) and abs(value.args[1]) < 128:
            value = int(value.args[1])
        if not isinstance(value, Term) and dt.is_float(dtype) and abs(value) <= 256:
            return self.terms.make("float", dtype, float(value))   # exact in every type
        if isinstance(value, Term) or not (dt.is_integer(dtype) or dt.is_bool(dtype)):
            return self.terms.make("cast", dtype, value)
        return bool(value) if dt.is_bool(dtype) else wrapped(value, dtype)

    def choose(self, condition: Any, a: Any, b: Any) -> Any:
        if isinstance(condition, Term):
            return self.terms.choose(condition, a, b)
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
        return lanewise(lambda *args: self.terms.call(e.op, dt.element_of(e.type), *args),
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
        self.stored = []
        if block.init is not None and first:
            self.stmt(block.init)
        self.stmt(block.body)
        self.boxes = outer
        if self.leaves[id(block)] and not any(iv.iter_type == COMM_REDUCE for iv in block.iter_vars):
            now = [(cells.name, at, value) for cells, at, value in self.stored]
            before = self.ran.setdefault((block.name, tuple(values)), now)
            self.steady = self.steady and before == now


def outputs(func: PrimFunc, terms: Terms) -> dict[int, list[Any]]:
    """What each argument holds after a call, by its position. Raises Conflict, Outside, Unsupported."""
    return {k: cells.values for k, cells in Machine(func, terms).outputs.items()}


def steady(func: PrimFunc, sizes: Mapping[str, int]) -> bool:
    """False where an instance of a block runs more than once and stores different values: what it read was not ready.

    A block of a reduction does so by its nature and does not count. True where that cannot be told.
    """
    try:
        return Machine(func, Terms(), sizes).steady
    except (Conflict, Outside, Unsupported):
        return True


def equivalent(one: PrimFunc, other: PrimFunc) -> bool:
    """True when both functions, of constant extents, give the same outputs for all inputs. `one` is right."""
    terms = Terms()
    expected = outputs(one, terms)
    try:
        found = outputs(other, terms)
    except (Conflict, Outside):
        return False
    differ = {(a, b) for k in expected for a, b in zip(expected[k], found[k], strict=True)
              if type(a) is not type(b) or a != b}
    dtypes = {k: one.buffer_map[p].dtype if p in one.buffer_map else p.dtype for k, p in enumerate(one.params)}
    return len(differ) <= MOST_TRIED and all(same_everywhere(a, b, dtypes) for a, b in differ)
