"""The verifier: what every function must obey at a stage, checked after each pass in tests."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from tilewright.support.errors import StructuralError
from tilewright.tir import dtype as dt
from tilewright.tir.buffer import Buffer, BufferRegion, Load
from tilewright.tir.expr import Expr, IntImm, IterVar, Let, Range, Var
from tilewright.tir.node import Node, children, walk
from tilewright.tir.printer import show
from tilewright.tir.stmt import (
    FOR_KINDS,
    THREAD_BINDING,
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
from tilewright.tir.verify_types import type_mismatch

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


class _Verifier:
    def __init__(self, func: PrimFunc, stage: str) -> None:
        self.func, self.stage = func, stage
        self.visible: dict[int, str] = {}  # id(Var or Buffer) -> what defined it
        self.defined: set[int] = set()  # every Var ever defined
        self.blocks: set[str] = set()
        self.here: Node = func

    def fail(self, message: str, *at: Node) -> NoReturn:
        error = StructuralError(f"{self.func.name}: {message}\n\n{show(self.func, at or (self.here,))}")
        error.at = (*at, self.here)
        raise error

    def check(self, condition: bool, message: str, *at: Node) -> None:
        if not condition:
            self.fail(message, *at)

    # definitions -------------------------------------------------------------------------------------------
    @contextmanager
    def scope(self, things: Iterable[Any], what: str, *at: Node) -> Iterator[None]:
        """Things (Vars and Buffers) are visible inside."""
        before = dict(self.visible)
        for x in things:
            self.define(x, what, *at)
        yield
        self.visible = before

    def define(self, x: Any, what: str, *at: Node) -> None:
        if id(x) in self.defined:
            self.fail(f"{what} {x.name} is defined twice; each definition has an object of its own", *at)
        self.defined.add(id(x))
        self.visible[id(x)] = what
        if isinstance(x, Buffer):
            self.visible.setdefault(id(x.data), "data")

    def function(self) -> None:
        f = self.func
        for p in f.params:
            self.define(p, "parameter")
            self.check(
                (p in f.buffer_map) <= (p.type == "handle"),
                f"parameter {p.name} has a buffer but is {p.type}",
            )
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
            self.check(
                isinstance(f.body, BlockRealize) and not f.body.iter_values, "the body is not a root block"
            )
        self.stmt(f.body)

    def buffer(self, b: Buffer) -> None:
        for e in (*b.shape, *b.strides):
            self.expr(e)
            if not dt.is_integer(e.dtype):
                self.fail(f"{b.name}: the extent {e} is {e.dtype}")
        if b.elem_offset is not None:
            self.expr(b.elem_offset)
        self.check(
            len(b.strides) in (0, len(b.shape)),
            f"{b.name} has {len(b.shape)} extents and {len(b.strides)} strides",
        )

    # statements --------------------------------------------------------------------------------------------
    def stmt(self, s: Node) -> None:
        outer, self.here = self.here, s
        rule = _STATEMENTS.get(type(s))
        if rule is None:
            self.fail(f"{type(s).__name__} is not a statement")
        rule(self, s)
        self.here = outer

    def store(self, s: Store) -> None:
        self.expr(s.value)
        lanes = self.access(s.buffer, s.indices, s.predicate, s)
        expected = dt.with_lanes(s.buffer.dtype, lanes) if lanes > 1 else s.buffer.dtype
        if s.value.dtype != expected:
            self.fail(f"a value of type {s.value.dtype} is stored to {s.buffer.name}, which takes {expected}")

    def access(self, b: Buffer, indices: tuple[Expr, ...], predicate: Expr | None, at: Node) -> int:
        """The number of lanes of an access, after all its checks."""
        self.known(b)
        if len(indices) != len(b.shape):                # a message is written only where it is needed
            self.fail(f"{b.name} has {len(b.shape)} dimension(s), {len(indices)} index(es) given")
        if self.stage == "flat":
            self.check(len(indices) == 1 and not b.strides, f"{b.name} is not flat: {len(indices)} index(es)")
        for i in indices:
            self.expr(i)
            if not dt.is_integer(i.dtype):
                self.fail(f"{b.name}: index {i} is {i.dtype}, not an integer")
        for i in indices[:-1]:
            if dt.lanes_of(i.dtype) != 1:
                self.fail(f"{b.name}: only the last index may be a vector, {i} is {i.dtype}")
        lanes = dt.lanes_of(indices[-1].dtype) if indices else 1
        if predicate is not None:
            self.expr(predicate)
            self.check(
                lanes > 1 and predicate.dtype == f"boolx{lanes}",
                f"{b.name}: the predicate is {predicate.dtype} for an access of {lanes} lane(s)",
            )
        return lanes

    def known(self, b: Buffer) -> None:
        if not (id(b) in self.visible or (self.stage != "block" and id(b.data) in self.visible)):
            self.fail(f"nothing defines the buffer {b.name} here")

    def loop(self, s: For) -> None:
        self.expr(s.min)
        self.expr(s.extent)
        v = s.loop_var
        self.check(s.kind in FOR_KINDS, f"loop {v.name} has the unknown kind {s.kind!r}")
        if (s.kind == THREAD_BINDING) != bool(s.thread_tag):
            self.fail(f"loop {v.name} is {s.kind} and has the thread tag {s.thread_tag!r}")
        if not (dt.is_integer(v.type) and s.min.dtype == s.extent.dtype == v.type):
            self.fail(f"loop {v.name} is {v.type}, its min is {s.min.dtype}, its extent is {s.extent.dtype}")
        with self.scope([v], "loop", s):
            self.stmt(s.body)

    def condition(self, s: Any) -> None:
        self.expr(s.condition)
        if s.condition.dtype != "bool":
            self.fail(f"the condition {s.condition} is {s.condition.dtype}")

    def while_(self, s: While) -> None:
        self.condition(s)
        self.stmt(s.body)

    def branch(self, s: IfThenElse) -> None:
        self.condition(s)
        self.stmt(s.then_case)
        if s.else_case is not None:
            self.stmt(s.else_case)

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
        with self.scope([s.buffer], "buffer", s):
            self.stmt(s.body)

    def realize(self, s: BlockRealize) -> None:
        block = s.block
        self.check(self.stage == "block", f"block {block.name} is left over")
        self.check(
            len(s.iter_values) == len(block.iter_vars),
            f"block {block.name} has {len(block.iter_vars)} axes, {len(s.iter_values)} values given",
        )
        for iv, value in zip(block.iter_vars, s.iter_values, strict=True):
            self.expr(value)
            if value.dtype != iv.var.type:
                self.fail(f"axis {iv.var.name} is {iv.var.type}, its value {value} is {value.dtype}")
        self.expr(s.predicate)
        if s.predicate.dtype != "bool":
            self.fail(f"the predicate {s.predicate} is {s.predicate.dtype}")
        self.block(block)

    def block(self, b: Block) -> None:
        self.check(b.name not in self.blocks, f"two blocks are named {b.name}", b)
        self.blocks.add(b.name)
        before = self.visible
        self.visible = {k: what for k, what in before.items() if what != "loop"}  # a block sees its axes only
        for iv in b.iter_vars:
            self.check(iv.dom is not None, f"axis {iv.var.name} has no domain", b)
            self.expr(iv.dom)  # type: ignore[arg-type]
        with self.scope([iv.var for iv in b.iter_vars], "axis", b):
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
            for part in (b.init, b.body):               # before the regions: a statement tells more than they do
                if part is not None:
                    self.stmt(part)
            for r in (*b.reads, *b.writes):
                self.region(r)
            self.regions_name_all(b)
        self.visible = before

    def region(self, r: BufferRegion) -> None:
        self.known(r.buffer)
        if len(r.region) != len(r.buffer.shape):
            self.fail(f"{r.buffer.name} has {len(r.buffer.shape)} dimension(s), its region {len(r.region)}")
        for axis in r.region:
            self.expr(axis)

    def regions_name_all(self, b: Block) -> None:
        """A block that holds no other block names every buffer that it touches in reads or writes."""
        nodes: list[Node] = []
        for n in (n for part in (b.init, b.body) if part is not None for n in walk(part)):
            if isinstance(n, BlockRealize):             # as soon as it is met: the root block holds the whole function
                return
            nodes.append(n)
        made = [n.buffer for n in nodes if isinstance(n, Allocate)]
        inside = {id(x) for x in (*b.alloc_buffers, *[m.buffer for m in b.match_buffers], *made)}
        writes = {id(r.buffer) for r in b.writes} | inside
        reads = {id(r.buffer) for r in b.reads} | writes
        sources = {id(m.buffer): id(m.source.buffer) for m in b.match_buffers}
        for n in nodes:
            if isinstance(n, Store) and sources.get(id(n.buffer), id(n.buffer)) not in writes:
                self.fail(f"block {b.name} writes {n.buffer.name}, which its write regions leave out", n)
            if isinstance(n, Load) and sources.get(id(n.buffer), id(n.buffer)) not in reads:
                self.fail(f"block {b.name} reads {n.buffer.name}, which its regions leave out", b)

    # expressions -------------------------------------------------------------------------------------------
    def expr(self, e: Node) -> None:
        rule = _EXPRESSIONS.get(type(e))
        if rule is not None:
            rule(self, e)
            return
        for c in children(e):
            self.expr(c)
        self.typed(e)

    def typed(self, e: Node) -> None:
        message = type_mismatch(e)
        if message:
            self.fail(f"{e}: {message}")

    def constant(self, e: IntImm) -> None:
        if e.type != "int32" or not -0x80000000 <= e.value < 0x80000000:       # nearly all are: the rest is slower
            self.typed(e)

    def range(self, e: Range) -> None:
        self.expr(e.min)
        self.expr(e.extent)
        if not e.min.dtype == e.extent.dtype == "int32":
            self.typed(e)

    def var(self, e: Var) -> None:
        if id(e) in self.visible:
            return
        hint = (
            " (a block's body uses the block's axes, not the loops around it)"
            if id(e) in self.defined
            else ""
        )
        self.fail(f"{e.name} is used, but nothing defines it here{hint}")

    def load(self, e: Load) -> None:
        self.access(e.buffer, e.indices, e.predicate, e)

    def let_expr(self, e: Let) -> None:
        self.expr(e.value)
        self.check(e.var.type == e.value.dtype, f"{e.var.name} is {e.var.type}, its value is {e.value.dtype}")
        shared = id(e.var) in self.defined  # a Let may be shared by several expressions
        self.defined.discard(id(e.var))
        with self.scope([e.var], "let"):
            self.expr(e.body)
        assert shared or id(e.var) in self.defined


_STATEMENTS: dict[type, Callable[[_Verifier, Any], None]] = {
    Store: _Verifier.store,
    For: _Verifier.loop,
    While: _Verifier.while_,
    IfThenElse: _Verifier.branch,
    LetStmt: _Verifier.let,
    Seq: _Verifier.sequence,
    Allocate: _Verifier.allocate,
    BlockRealize: _Verifier.realize,
    Block: _Verifier.block,
    Evaluate: lambda v, s: v.expr(s.value),
}
_EXPRESSIONS: dict[type, Callable[[_Verifier, Any], None]] = {
    Var: _Verifier.var,
    Load: _Verifier.load,
    IntImm: _Verifier.constant,
    Range: _Verifier.range,
    Let: _Verifier.let_expr,
    IterVar: lambda v, e: v.fail(f"the axis {e.var.name} stands in an expression; use its var"),
}
