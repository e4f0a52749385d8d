"""The verifier: what every function must obey at a stage, checked after each pass in tests."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tilewright.tir import dtype as dt
from tilewright.tir.accesses import Use, uses
from tilewright.tir.buffer import Buffer, BufferRegion
from tilewright.tir.expr import Expr, IntImm, Var
from tilewright.tir.node import Node, sub_statements
from tilewright.tir.returns import wrong_return
from tilewright.tir.stmt import (
    FOR_KINDS,
    THREAD_BINDING,
    Allocate,
    Block,
    BlockRealize,
    For,
    IfThenElse,
    LetStmt,
    PrimFunc,
    Seq,
    Stmt,
    Store,
    While,
)
from tilewright.tir.symbols import map_scoped
from tilewright.tir.verify.expressions import ExpressionVerifier

STAGES = ("block", "loop", "flat")


def verify(func: PrimFunc, stage: str = "block") -> None:
    """Raises StructuralError, with the guilty line marked, unless func is well formed.

    Always: names are defined before use and once; each loop has a variable of its own; operand dtypes agree;
    accesses have one integer index per dimension; conditions are bools. "block": a root block; block names
    are unique; a block's body uses its axes and no outer loop variable; its regions name what it touches.
    "loop": no blocks. "flat": no blocks, and every access has one index into a compact 1-D buffer.
    """
    assert stage in STAGES, f"stage {stage!r} is none of {STAGES}"
    _Verifier(func, stage).function()


class _Verifier(ExpressionVerifier):
    """The rules of statements and blocks."""

    def __init__(self, func: PrimFunc, stage: str) -> None:
        super().__init__(func, stage)
        self.blocks: set[str] = set()
        self.loops: list[int] = []                      # ids of the variables of the loops around

    def function(self) -> None:
        f = self.func
        for p in f.params:
            self.define(p, "parameter")
            self.check((p in f.buffer_map) <= (p.type == "handle"), f"parameter {p.name} has a buffer but is {p.type}")
        self.check(set(f.buffer_map) <= set(f.params), "buffer_map has a key that is no parameter")
        for b in f.buffers:
            self.define(b, "argument")
            for e in (*b.shape, *b.strides, b.elem_offset):
                if isinstance(e, Var):
                    self.visible.setdefault(id(e), "shape")
                    self.defined.add(id(e))
        for b in f.buffers:
            self.buffer(b)
        if self.stage == "block":
            self.check(isinstance(f.body, BlockRealize) and not f.body.iter_values, "the body is not a root block")
        self.stmt(f.body)
        wrong = wrong_return(f, self.returns)
        if wrong is not None:
            self.fail(*wrong)

    # statements --------------------------------------------------------------------------------------------
    def stmt(self, s: Node) -> None:
        outer, self.here = self.here, s
        if not isinstance(s, Stmt):
            self.fail(f"{type(s).__name__} is not a statement")
        _STATEMENTS.get(type(s), _Verifier.other)(self, s)
        self.here = outer

    def other(self, s: Node) -> None:
        """A statement without a rule of its own: its parts, with what it defines where that holds."""
        def part(x: Node) -> Node:
            (self.stmt if isinstance(x, Stmt) else self.expr)(x)
            return x

        def define(x: Any) -> Any:
            if isinstance(x, Buffer):
                self.buffer(x)
            self.define(x, type(s).__name__, s)
            return x

        def use(x: Any) -> Any:
            (self.known if isinstance(x, Buffer) else self.expr)(x)
            return x

        before = dict(self.visible)
        map_scoped(s, part, define, use)
        self.visible = before

    def store(self, s: Store) -> None:
        self.expr(s.value)
        lanes = self.access(s.buffer, s.indices, s.predicate, s)
        expected = dt.with_lanes(s.buffer.dtype, lanes) if lanes > 1 else s.buffer.dtype
        if s.value.dtype != expected:
            self.fail(f"a value of type {s.value.dtype} is stored to {s.buffer.name}, which takes {expected}")

    def loop(self, s: For) -> None:
        self.expr(s.min)
        self.expr(s.extent)
        v = s.loop_var
        if s.kind not in FOR_KINDS:
            self.fail(f"loop {v.name} has the unknown kind {s.kind!r}")
        if (s.kind == THREAD_BINDING) != bool(s.thread_tag):
            self.fail(f"loop {v.name} is {s.kind} and has the thread tag {s.thread_tag!r}")
        if not (dt.is_integer(v.type) and s.min.dtype == s.extent.dtype == v.type):
            self.fail(f"loop {v.name} is {v.type}, its min is {s.min.dtype}, its extent is {s.extent.dtype}")
        ends = [e.value for e in (s.min, s.extent) if isinstance(e, IntImm)]
        if max([0, *ends, sum(ends)]) > dt.integer_range("int64")[1]:
            self.fail(f"loop {v.name} runs from {s.min} over {s.extent} iterations, past the end of int64, in which "
                      "loops count: let it begin at 0, and add its begin to the index")
        if s.annotations:
            self.notes(s.annotations)
        self.define(v, "loop", s)
        self.loops.append(id(v))
        self.stmt(s.body)
        del self.visible[self.loops.pop()]

    def conditional(self, s: Any) -> None:
        self.expr(s.condition)
        if s.condition.dtype != "bool":
            self.fail(f"the condition {s.condition} is {s.condition.dtype}")
        for below in sub_statements(s):
            self.stmt(below)

    def let(self, s: LetStmt) -> None:
        self.expr(s.value)
        self.check(s.var.type == s.value.dtype, f"{s.var.name} is {s.var.type}, its value is {s.value.dtype}")
        with self.scope([s.var], "let", s):
            self.stmt(s.body)

    def sequence(self, s: Seq) -> None:
        for x in s.stmts:
            self.check(not isinstance(x, Seq), "a sequence is nested in another; build them with seq()")
            self.stmt(x)

    def allocate(self, s: Allocate) -> None:
        self.buffer(s.buffer)
        self.notes(s.annotations)
        with self.scope([s.buffer], "buffer", s):
            self.stmt(s.body)

    def realize(self, s: BlockRealize) -> None:
        block = s.block
        if self.stage != "block":
            self.fail(f"block {block.name} is left over")
        if len(s.iter_values) != len(block.iter_vars):
            self.fail(f"block {block.name} has {len(block.iter_vars)} axes, {len(s.iter_values)} values given")
        for iv, value in s.bound:
            self.expr(value)
            if value.dtype != iv.var.type:
                self.fail(f"axis {iv.var.name} is {iv.var.type}, its value {value} is {value.dtype}")
        self.expr(s.predicate)
        if s.predicate.dtype != "bool":
            self.fail(f"the predicate {s.predicate} is {s.predicate.dtype}")
        self.block(block)

    def block(self, b: Block) -> None:
        if b.name in self.blocks:
            self.fail(f"two blocks are named {b.name}", b)
        self.blocks.add(b.name)
        before = self.visible
        self.visible = dict(before)
        for loop in self.loops:                         # a block sees its axes only
            self.visible.pop(loop, None)
        for iv in b.iter_vars:
            if iv.dom is None:
                self.fail(f"axis {iv.var.name} has no domain", b)
            self.expr(iv.dom)
        for iv in b.iter_vars:
            self.define(iv.var, "axis", b)
        for a in b.alloc_buffers:
            self.buffer(a)
            self.define(a, "buffer", b)
        for m in b.match_buffers:
            self.region(m.source)
            for e in (*m.buffer.strides, m.buffer.elem_offset):
                if isinstance(e, Var):
                    self.visible.setdefault(id(e), "match")
            self.define(m.buffer, "view", b)
            self.buffer(m.buffer)
        for part in (b.init, b.body):                   # before the regions: a statement tells more than they do
            if part is not None:
                self.stmt(part)
        for r in (*b.reads, *b.writes):
            self.region(r)
        if b.annotations:
            self.notes(b.annotations)
        self.regions_name_all(b)
        self.visible = before

    def notes(self, value: Any) -> None:
        """The expressions in an annotation obey the rules of the place where it stands."""
        if isinstance(value, Expr):
            self.expr(value)
        elif isinstance(value, Mapping):
            self.notes(tuple(value.values()))
        elif isinstance(value, (tuple, list)):
            for x in value:
                self.notes(x)

    def region(self, r: BufferRegion) -> None:
        self.known(r.buffer)
        if len(r.region) != len(r.buffer.shape):
            self.fail(f"{r.buffer.name} has {len(r.buffer.shape)} dimension(s), its region {len(r.region)}")
        for axis in r.region:
            self.expr(axis)

    def regions_name_all(self, b: Block) -> None:
        """A block that holds no other block names every buffer that it touches in reads or writes."""
        made = {id(x) for x in (*b.alloc_buffers, *[m.buffer for m in b.match_buffers])}
        found: list[tuple[Use, Stmt]] = []
        stack = [part for part in (b.init, b.body) if part is not None]
        while stack:
            s = stack.pop()
            if isinstance(s, BlockRealize):             # as soon as it is met: the root block holds the whole function
                return
            if isinstance(s, Allocate):
                made.add(id(s.buffer))
            found += [(use, s) for use in uses(s)]
            stack += sub_statements(s)
        writes = {id(r.buffer) for r in b.writes} | made
        reads = {id(r.buffer) for r in b.reads} | writes
        sources = {id(m.buffer): id(m.source.buffer) for m in b.match_buffers}
        for use, s in found:
            if use.buffer is None or use.indices is None:         # an address: what is done with it is declared
                continue
            name = use.buffer.name
            if use.writes and sources.get(id(use.buffer), id(use.buffer)) not in writes:
                self.fail(f"block {b.name} writes {name}, which its write regions leave out", s)
            if not use.writes and sources.get(id(use.buffer), id(use.buffer)) not in reads:
                self.fail(f"block {b.name} reads {name}, which its regions leave out", b)


_STATEMENTS: dict[type, Callable[[_Verifier, Any], None]] = {
    Store: _Verifier.store,
    For: _Verifier.loop,
    While: _Verifier.conditional,
    IfThenElse: _Verifier.conditional,
    LetStmt: _Verifier.let,
    Seq: _Verifier.sequence,
    Allocate: _Verifier.allocate,
    BlockRealize: _Verifier.realize,
    Block: _Verifier.block,
}
