"""Where the interpreter allocates block buffers, and which memory each concurrent loop must be checked for."""
from __future__ import annotations

from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any

from tilewright.tir.accesses import effects
from tilewright.tir.buffer import Buffer, Load
from tilewright.tir.expr import Call
from tilewright.tir.interp.threads import is_thread_loop
from tilewright.tir.node import Node, child_names, walk
from tilewright.tir.stmt import PARALLEL, THREAD_BINDING, VECTORIZED, Allocate, Block, BlockRealize, For, PrimFunc, Stmt
from tilewright.tir.structure import Effect

CONCURRENT = (PARALLEL, VECTORIZED, THREAD_BINDING)


@dataclass
class Plan:
    """`at[id(loop)]`: buffers that are born at each iteration of the loop; `written[id(loop)]`: the data Vars
    (by id) that iterations of a concurrent loop write and share; `stored`: the data Vars that the function
    writes; `shared[id(loop)]`: shared memory allocated inside a loop over threads, which exists once for all of
    them; `barriers`: whether there are any; `reduced[id(loop)]`: data Vars that the iterations of a loop over threads
    reduce into together, which is no race (the lowering combines the parts of the threads).
    """
    at: dict[int, list[Buffer]] = field(default_factory=dict)
    written: dict[int, set[int]] = field(default_factory=dict)
    stored: set[int] = field(default_factory=set)
    placed: set[int] = field(default_factory=set)
    shared: dict[int, list[Buffer]] = field(default_factory=dict)
    barriers: bool = False
    reduced: dict[int, set[int]] = field(default_factory=dict)


def plan(func: PrimFunc) -> Plan:
    """The plan of func.

    A buffer of a block that is used only inside one concurrent loop, and that no block around the loop declares,
    belongs to the iterations of that loop: each has its own, uninitialised (as buffer placement does later). Memory in
    "shared" scope belongs to a block of threads, and what they reduce into together to all that share the reduction.
    """
    return _Planner().run(func)


class _Planner:
    def __init__(self) -> None:
        self.paths: dict[int, tuple[For, ...]] = {}  # data -> concurrent loops around all accesses
        self.born: dict[int, tuple[For, ...]] = {}  # data -> concurrent loops around the allocation
        self.buffers: dict[int, Buffer] = {}  # data -> the block buffer
        self.writes: dict[int, set[int]] = {}  # loop -> data written inside
        self.views: dict[int, int] = {}  # data of a view -> data of its source
        self.loops: dict[int, For] = {}
        self.stores: set[int] = set()
        self.shared: dict[int, Buffer] = {}  # data -> shared memory
        self.barriers = False
        self.reduced: dict[int, set[int]] = {}  # loop over threads -> what reductions across it write
        self.touched: dict[int, set[int]] = {}  # loop over threads -> what anything else below it touches
        self.across: dict[int, set[int]] = {}  # loops over threads that share the reduction around -> what it writes

    def run(self, func: PrimFunc) -> Plan:
        self.statement(func.body, ())
        out = Plan(barriers=self.barriers)
        for data, buffer in self.shared.items():
            threads = [f for f in self.born[data] if is_thread_loop(f)]
            if threads:
                out.shared.setdefault(id(threads[0]), []).append(buffer)
                out.placed.add(id(buffer))
                self.born[data] = self.born[data][:self.born[data].index(threads[0])]
                self.buffers.pop(data, None)
        for data, buffer in self.buffers.items():
            common = self.paths.get(data, ())[len(self.born[data]):]
            if buffer.scope.startswith("shared"):
                common = tuple(takewhile(lambda f: not is_thread_loop(f), common))
            common = self.undivided(data, common)
            if common:
                out.at.setdefault(id(common[-1]), []).append(buffer)
                out.placed.add(id(buffer))
                loops = self.paths[data]
                self.born[data] = loops[:loops.index(common[-1]) + 1]
        for key, written in self.writes.items():
            inside = {d for d in written if any(f is self.loops[key] for f in self.born.get(d, ()))}
            out.written[key] = written - inside
        out.reduced = {key: data - self.touched.get(key, set()) for key, data in self.reduced.items()}
        out.stored = self.stores
        return out

    def undivided(self, data: int, loops: tuple[For, ...]) -> tuple[For, ...]:
        """The loops around the first one whose threads reduce into data together."""
        return tuple(takewhile(lambda f: data not in self.reduced.get(id(f), ()), loops))

    def statement(self, s: Node, loops: tuple[For, ...]) -> None:
        if isinstance(s, For) and s.kind in CONCURRENT:
            self.loops[id(s)] = s
            self.writes.setdefault(id(s), set())
            self.expressions(s.min, loops)
            self.expressions(s.extent, loops)
            self.statement(s.body, (*loops, s))
            return
        if effects(s) & Effect.WRITES:
            self.access(s.buffer, loops, True)  # type: ignore[attr-defined]
        elif isinstance(s, Allocate):
            self.born[id(s.buffer.data)] = loops
            if s.buffer.scope.startswith("shared"):
                self.shared[id(s.buffer.data)] = s.buffer
        elif isinstance(s, Block):
            for b in s.alloc_buffers:
                self.born[id(b.data)] = loops
                self.buffers[id(b.data)] = b
                if b.scope.startswith("shared"):
                    self.shared[id(b.data)] = b
            for region in (*s.reads, *s.writes):
                self.reached(self.source(region.buffer), loops)
            for m in s.match_buffers:
                self.views[id(m.buffer.data)] = self.source(m.source.buffer)
                self.reached(self.source(m.source.buffer), loops)      # the view is bound here
        if isinstance(s, BlockRealize):
            before, written = self.across, {self.source(w.buffer) for w in s.block.writes}
            self.across = {id(f): written for f in loops if s.block.init is not None and is_thread_loop(f)
                           and s.reduces_over(f.loop_var)}
            for key in self.across:
                self.reduced.setdefault(key, set()).update(written)
            self.below(s, loops)
            self.across = before
            return
        self.below(s, loops)

    def below(self, s: Node, loops: tuple[For, ...]) -> None:
        for name in child_names(type(s)):
            value = getattr(s, name)
            for child in value if isinstance(value, tuple) else (value,):
                if isinstance(child, (Stmt, Block)):
                    self.statement(child, loops)
                elif child is not None:
                    self.expressions(child, loops)

    def expressions(self, e: Node, loops: tuple[For, ...]) -> None:
        for n in walk(e):
            if isinstance(n, Load):
                self.access(n.buffer, loops, False)
            elif isinstance(n, Call) and n.op == "sync":
                self.barriers = True
            elif isinstance(n, Call) and n.op == "access_ptr":
                for a in n.args:
                    if isinstance(a, Load):
                        self.access(a.buffer, loops, True)

    def source(self, buffer: Any) -> int:
        data = id(buffer.data)
        return self.views.get(data, data)

    def reached(self, data: int, loops: tuple[For, ...]) -> None:
        """Note that the buffer of data has to be there below these loops."""
        seen = self.paths.get(data)
        if seen is None:
            self.paths[data] = loops
        elif seen != loops:
            common = 0
            while common < min(len(seen), len(loops)) and seen[common] is loops[common]:
                common += 1
            self.paths[data] = loops[:common]

    def access(self, buffer: Buffer, loops: tuple[For, ...], write: bool) -> None:
        data = self.source(buffer)
        self.reached(data, loops)
        for f in loops:
            if is_thread_loop(f):
                if data not in self.across.get(id(f), ()):
                    self.touched.setdefault(id(f), set()).add(data)
        if write:
            self.stores.add(data)
            for f in loops:
                self.writes[id(f)].add(data)
