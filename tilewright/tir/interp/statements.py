"""Statements of the interpreter: a PrimFunc with all shapes known becomes one Python function."""
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from tilewright.support.errors import InterpreterError
from tilewright.tir import dtype as dt
from tilewright.tir.expr import Expr
from tilewright.tir.interp.effects import EffectCompiler
from tilewright.tir.interp.plan import CONCURRENT, Plan, plan
from tilewright.tir.interp.regions import declared
from tilewright.tir.interp.scalars import V, scalar_binary
from tilewright.tir.interp.threads import group_source, has_barrier, is_thread_loop, lockstep
from tilewright.tir.iter_var import COMM_REDUCE
from tilewright.tir.node import Node
from tilewright.tir.stmt import (
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
    While,
)

MAX_NEST = 15  # loops in one Python function; CPython allows 20 nested blocks


class Compiler(EffectCompiler):
    """One function. `check`: with the bookkeeping that finds races."""

    def __init__(self, func: PrimFunc, check: bool, externs: Mapping[str, Callable[..., Any]]) -> None:
        super().__init__(func, externs)
        self.check = check
        self.plan: Plan = plan(func)
        self.nest = 0
        self.globals["lockstep"] = lockstep

    # statements --------------------------------------------------------------------------------------------
    def stmt(self, s: Node) -> None:
        outer, self.here = self.here, s
        rule = _STATEMENTS.get(type(s))
        if rule is None:
            raise InterpreterError(f"the interpreter has no rule for {type(s).__name__}")
        rule(self, s)
        self.here = outer

    @contextmanager
    def deeper(self) -> Iterator[None]:
        """Write one level deeper; what is kept there is not visible afterwards."""
        outer, kept, before = self.indent, self.kept, len(self.lines)
        self.indent, self.kept = outer + " ", dict(kept)
        yield
        if len(self.lines) == before:
            self.line("pass")
        self.indent, self.kept = outer, kept

    def body(self, s: Node) -> None:
        with self.deeper():
            self.stmt(s)

    def store(self, s: Store) -> None:
        lanes = dt.lanes_of(s.indices[-1].dtype) if s.indices else 1
        if dt.lanes_of(s.value.dtype) != lanes:
            raise InterpreterError(f"{s}: {dt.lanes_of(s.value.dtype)} lane(s) are stored to {lanes}")
        value = self.emit(s.value)
        if lanes == 1:
            if s.predicate is not None:
                raise InterpreterError(f"{s}: a scalar access has no predicate")
            m, at = self.place(s.buffer, s.indices, writes=True)
            sets = self.track.get(m.data)
            if sets is not None:
                at = self.keep(at)
                self.line(f"{sets[0]}.add({at.text})")
            self.line(f"{m.name}[{at.text}] = {value.text}")
            return
        mask = self.mask(s.predicate)
        m, at = self.place_lanes(s.buffer, s.indices, mask)
        sets, site, fail = self.track.get(m.data), self.site(), self.name("k")
        self.globals[fail] = lambda at, site=site, name=s.buffer.name: self.two_lanes(site, name, at)
        call = f"scatter({m.name}, {at.text}, {value.text}, {mask}, {fail})"
        self.line(call if sets is None else f"{sets[0]}.update({call})")

    def loop(self, s: For) -> None:
        start, extent = self.keep(self.index(s.min)), self.index(s.extent)
        stop = scalar_binary("add", start, extent, "int64")
        var = self.name("i")
        high = max(start.low, stop.high - 1)
        self.env[id(s.loop_var)] = V(var, start.low, high)
        domain = f"range({stop.text})" if start.text == "0" else f"range({start.text}, {stop.text})"
        barrier = self.plan.barriers and has_barrier(s)
        for b in self.plan.shared.get(id(s), ()):
            self.allocate(b)
        if barrier and is_thread_loop(s):
            self.thread_group(s, var, domain)
            return
        concurrent = s.kind in CONCURRENT
        if barrier and concurrent and self.in_group:
            raise InterpreterError(f"{self.func.name}: a barrier stands below the {s.kind} loop {s.loop_var.name} "
                                   "of a single thread")
        write = self.checked_loop if concurrent and self.check else self.plain_loop
        self.nested(lambda: write(s, var, domain), barrier)

    def thread_group(self, s: For, var: str, domain: str) -> None:
        """The threads of a block as generators that run from barrier to barrier."""
        name, site, outer_track, outer_nest = self.name("thread"), self.site(), dict(self.track), self.nest
        checked = self.plan.written[id(s)] - self.plan.reduced.get(id(s), set()) if self.check else set()
        shared = [m for data, m in self.owner.items() if data in checked]
        names = [(self.name("mw"), self.name("mr")) for _ in shared]
        self.globals[f"races_{name}"] = [
            lambda sets, label=m.label: self.race(site, s.loop_var.name, s.thread_tag, label, sets) for m in shared]
        self.globals[f"diverged_{name}"] = lambda waiting, count: self.fail(
            site, f"a barrier is reached by {waiting} of the {count} threads of {s.thread_tag}")
        before = [f"[{', '.join(f'({w}, {r})' for w, r in names)}] = s_", "if 0: yield"]
        self.track |= {m.data: pair for m, pair in zip(shared, names, strict=True)}
        around, self.in_group, self.nest = self.in_group, True, 1
        self.line(f"def {name}({var}, s_):")
        self.loop_body(s, before)
        self.in_group, self.nest, self.track = around, outer_nest, outer_track
        constants = {"races": f"races_{name}", "diverged": f"diverged_{name}"}
        for text in group_source(name, domain, len(shared), [outer_track.get(m.data) for m in shared], constants):
            self.line(text)
        self.line(f"yield from group_{name}" if around else f"for _ in group_{name}: pass")

    def nested(self, write: Callable[[], None], barrier: bool = False) -> None:
        """A loop written by `write`; deep nests continue in an inner Python function."""
        if self.nest < MAX_NEST:
            self.nest += 1
            write()
            self.nest -= 1
            return
        outer, self.nest = self.nest, 1
        name = self.name("deeper")
        self.line(f"def {name}():")
        with self.deeper():
            write()
        self.line(f"yield from {name}()" if barrier and self.in_group else f"{name}()")
        self.nest = outer

    def plain_loop(self, s: For, var: str, domain: str) -> None:
        self.line(f"for {var} in {domain}:")
        self.loop_body(s)

    def loop_body(self, s: For, before: Sequence[str] = (), after: Sequence[str] = ()) -> None:
        with self.deeper():
            for text in before:
                self.line(text)
            for b in self.plan.at.get(id(s), ()):
                self.allocate(b)
            self.stmt(s.body)
            for text in after:
                self.line(text)

    def checked_loop(self, s: For, var: str, domain: str) -> None:
        """A concurrent loop: after each iteration, what it touched is compared with what earlier ones touched."""
        before, after, joined = [], [], []
        outer_track, site = dict(self.track), self.site()
        shared = [m for data, m in self.owner.items()
                  if data in self.plan.written[id(s)] - self.plan.reduced.get(id(s), set())]
        for m in shared:
            data, k = m.data, self.name("")
            all_w, all_r, own_w, own_r = f"w_{k}", f"r_{k}", f"mw_{k}", f"mr_{k}"
            self.line(f"{all_w} = set(); {all_r} = set()")
            before.append(f"{own_w} = set(); {own_r} = set()")
            after += [f"if not ({all_w}.isdisjoint({own_w}) and {all_w}.isdisjoint({own_r}) and "
                      f"{all_r}.isdisjoint({own_w})): race({site}, {s.loop_var.name!r}, {s.kind!r}, {m.label!r}, "
                      f"({own_w}, {own_r}, {all_w}, {all_r}))",
                      f"{all_w}.update({own_w}); {all_r}.update({own_r})"]
            if data in outer_track:
                w, r = outer_track[data]
                joined.append(f"{w}.update({all_w}); {r}.update({all_r})")
            self.track[data] = own_w, own_r
        self.line(f"for {var} in {domain}:")
        self.loop_body(s, before, after)
        for text in joined:
            self.line(text)
        self.track = outer_track

    def while_(self, s: While) -> None:
        def write() -> None:
            self.line("while True:")
            lines, condition = self.captured(s.condition)
            self.lines += lines
            self.line(f" if not {condition.text}: break")
            self.body(s.body)
        self.nested(write, self.plan.barriers and has_barrier(s))

    def branch(self, s: IfThenElse) -> None:
        c = self.emit(s.condition)
        if c.text in ("True", "False"):
            taken = s.then_case if c.text == "True" else s.else_case
            if taken is not None:
                self.stmt(taken)
            return
        self.line(f"if {c.text}:")
        self.body(s.then_case)
        if s.else_case is not None:
            self.line("else:")
            self.body(s.else_case)

    def let(self, s: Any) -> V:
        if not isinstance(s, LetStmt):
            return super().let(s)
        self.env[id(s.var)] = self.keep(self.emit(s.value))
        self.stmt(s.body)
        return V("")

    def sequence(self, s: Seq) -> None:
        for x in s.stmts:
            self.stmt(x)

    def alloc_stmt(self, s: Allocate) -> None:
        if id(s.buffer) not in self.plan.placed:
            self.allocate(s.buffer)
        self.stmt(s.body)

    def evaluate(self, s: Evaluate) -> None:
        v = self.emit(s.value)
        if not v.text.isidentifier():
            self.line(v.text)

    def realize(self, s: BlockRealize) -> None:
        p = self.index(s.predicate)
        if p.text == "False":
            return
        if p.text == "True":
            self.block(s.block, s.iter_values)
            return
        self.line(f"if {p.text}:")
        with self.deeper():
            self.block(s.block, s.iter_values)

    def block(self, block: Block, values: tuple[Expr, ...]) -> None:
        """Bind the axes (inside their domains), allocate, run init at the first reduction step, run the body."""
        first = V("True")
        for iv, value in zip(block.iter_vars, values, strict=True):
            v = self.keep(self.index(value))
            if iv.dom is not None:
                low = self.keep(self.index(iv.dom.min))
                end = self.keep(scalar_binary("add", low, self.index(iv.dom.extent), "int64"))
                if v.low < low.high or v.high >= end.low:
                    self.line(f"if not {low.text} <= {v.text} < {end.text}: "
                              f"off_axis({self.site()}, {iv.var.name!r}, {v.text}, {low.text}, {end.text})")
                    v = V(v.text, max(v.low, low.low), max(low.low, min(v.high, end.high - 1)))
                if iv.iter_type == COMM_REDUCE:
                    first = scalar_binary("and", first, scalar_binary("eq", v, low, "int64"), "bool")
            self.env[id(iv.var)] = v
        for b in block.alloc_buffers:
            if id(b) not in self.plan.placed:
                self.allocate(b)
        for m in block.match_buffers:
            self.view(m)
        outer, self.declared = self.declared, declared(block) if self.check else None
        if block.init is not None:
            if first.text == "True":
                self.stmt(block.init)
            elif first.text != "False":
                self.line(f"if {first.text}:")
                self.body(block.init)
        self.stmt(block.body)
        self.declared = outer


_STATEMENTS: dict[type, Callable[[Any, Any], Any]] = {
    Store: Compiler.store,
    For: Compiler.loop,
    While: Compiler.while_,
    IfThenElse: Compiler.branch,
    LetStmt: Compiler.let,
    Seq: Compiler.sequence,
    Allocate: Compiler.alloc_stmt,
    Evaluate: Compiler.evaluate,
    BlockRealize: Compiler.realize,
    Block: lambda c, s: c.block(s, ()),
}
