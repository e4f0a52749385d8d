"""Statements and blocks as TVMScript text."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright.tir.buffer import Buffer
from tilewright.tir.conversion import is_const
from tilewright.tir.expr import Call, Expr, IntImm, Var
from tilewright.tir.iter_var import COMM_REDUCE, DATA_PARALLEL, ORDERED, IterVar
from tilewright.tir.node import Node, children, walk
from tilewright.tir.ops import INTRINSICS
from tilewright.tir.printer.expressions import ExprPrinter, quote, symbols, type_text
from tilewright.tir.slices import stop_of
from tilewright.tir.stmt import (
    SERIAL,
    THREAD_BINDING,
    Allocate,
    Block,
    BlockRealize,
    Evaluate,
    For,
    IfThenElse,
    LetStmt,
    Seq,
    Stmt,
    Store,
    While,
)

_AXIS = {DATA_PARALLEL: "spatial", COMM_REDUCE: "reduce", ORDERED: "scan"}
_REMAP = {DATA_PARALLEL: "S", COMM_REDUCE: "R"}
_KIND = {"parallel": "T.parallel", "vectorized": "T.vectorized", "unroll": "T.unroll"}


class StmtPrinter(ExprPrinter):
    """Text of statements, line by line. `flat`: there are no blocks, so thread loops print as launches."""

    def __init__(self, mark: set[int], flat: bool) -> None:
        super().__init__()
        self.mark, self.flat = mark, flat  # mark: ids of the nodes whose lines are marked
        self.lines: list[str] = []
        self.indent = ""
        self.loops: dict[Var, For] = {}
        self.sharing: dict[int, list[Buffer]] = {}  # id of a data Var -> the buffers that the body accesses through it

    # lines -------------------------------------------------------------------------------------------------
    def line(self, text: str, *nodes: Node | None) -> None:
        """Append a line; it is marked when one of nodes (or an expression inside) is to be marked."""
        if self.mark and any(self.is_marked(n) for n in nodes):
            text += "  # <-- here"
        self.lines.append(self.indent + text)

    def is_marked(self, node: Node | None) -> bool:
        if node is None:
            return False
        if isinstance(node, (Expr, IterVar)):
            return any(id(n) in self.mark for n in walk(node))
        return id(node) in self.mark or any(self.is_marked(c) for c in children(node) if not isinstance(c, Stmt))

    def body(self, s: Node, owner: Node | None = None) -> None:
        """s, one level deeper, in a scope of its own, below the views of the buffer `owner`."""
        outer, self.indent = self.indent, self.indent + "    "
        self.names.push()
        self.views(owner)
        self.stmt(s)
        self.names.pop()
        self.indent = outer

    def stmt(self, s: Node, last: bool = True) -> None:
        """The lines of s; last: nothing follows in this scope, so a definition may last until its end."""
        if isinstance(s, (LetStmt, Allocate)):
            self.definition(s, last)
        else:
            _STMT[type(s)](self, s)

    def views(self, owner: Node | None) -> None:
        """Declare the buffers that see the memory of `owner`, a buffer or a pointer, in another shape."""
        pointer = owner.data if isinstance(owner, Buffer) else owner
        for b in self.sharing.get(id(pointer), ()):
            if not self.names.knows(b):
                data = self.names.of(b.data)
                args = self.buffer_args(b, always_dtype=True)
                self.line(f"{self.names.define(b, b.name)} = T.Buffer({args}, data={data})")

    # statements --------------------------------------------------------------------------------------------
    def store(self, s: Store) -> None:
        name = self.names.of(s.buffer)
        if s.predicate is None:
            self.line(f"{name}[{self.index(s.indices)}] = {self.expr(s.value)}", s)
        else:
            self.line(f"{name}.vstore([{self.items(s.indices)}], {self.expr(s.value)}, "
                      f"predicate={self.expr(s.predicate)})", s)

    def loop(self, s: For) -> None:
        if self.flat and s.kind == THREAD_BINDING and is_const(s.min, 0) and not s.annotations:
            extent = self.expr(s.extent)
            self.names.push()
            name = self.names.define(s.loop_var, s.thread_tag)
            self.line(f'with T.launch_thread("{s.thread_tag}", {extent}) as {name}:', s)
            self.body(s.body)
            self.names.pop()
            return
        nest = self.nest(s)
        domain = self.domain(nest)
        self.names.push()
        names = ", ".join(self.names.define(f.loop_var, f.loop_var.name) for f in nest)
        self.line(f"for {names} in {domain}:", *nest)
        self.loops |= {f.loop_var: f for f in nest}
        self.body(nest[-1].body)
        self.names.pop()

    def nest(self, s: For) -> list[For]:
        """s and the loops right below it that one T.grid can show."""
        nest = [s]
        while not self.flat and _plain(nest[-1]):
            inner = nest[-1].body
            if not (isinstance(inner, For) and _plain(inner)) or any(self.is_marked(f) for f in (s, inner)):
                break
            if any(v is f.loop_var for v in symbols(inner.extent) for f in nest):
                break
            nest.append(inner)
        return nest

    def domain(self, nest: list[For]) -> str:
        s = nest[0]
        if len(nest) > 1:
            return f"T.grid({self.items(f.extent for f in nest)})"
        bounds = self.items([s.extent] if is_const(s.min, 0) else [s.min, stop_of(s.min, s.extent)])
        extra = f", annotations={self.value(s.annotations)}" if s.annotations else ""
        if s.kind == THREAD_BINDING:
            return f'T.thread_binding({bounds}, thread="{s.thread_tag}"{extra})'
        function = _KIND.get(s.kind) or ("T.serial" if extra else "range")
        return f"{function}({bounds}{extra})"

    def while_(self, s: While) -> None:
        self.line(f"while {self.expr(s.condition)}:", s)
        self.body(s.body)

    def branch(self, s: IfThenElse) -> None:
        self.line(f"if {self.expr(s.condition)}:", s)
        self.body(s.then_case)
        if s.else_case is not None:
            self.line("else:")
            self.body(s.else_case)

    def definition(self, s: LetStmt | Allocate, last: bool) -> None:
        thing: Var | Buffer
        if isinstance(s, LetStmt):
            value, thing, kind = self.expr(s.value), s.var, f": {type_text(s.var.type)}"
            scoped = f"T.LetStmt({value})"
        else:
            extra = f", annotations={self.value(s.annotations)}" if s.annotations else ""
            value, thing, kind = f"T.decl_buffer({self.buffer_args(s.buffer)}{extra})", s.buffer, ""
            scoped = value
        if not last:
            self.names.push()
        name = self.names.define(thing, thing.name)
        if isinstance(thing, Buffer):
            self.names.alias(thing.data, f"{name}.data")
        if last:
            self.line(f"{name}{kind} = {value}", s)
            self.views(thing)
            self.stmt(s.body)
        else:
            self.line(f"with {scoped} as {name}:", s)
            self.body(s.body, thing)
            self.names.pop()

    def sequence(self, s: Seq) -> None:
        for x in s.stmts:
            self.stmt(x, x is s.stmts[-1])
        if not s.stmts:
            self.line("pass", s)

    def evaluate(self, s: Evaluate) -> None:
        row = INTRINSICS.get(s.value.op) if isinstance(s.value, Call) else None
        bare = row is not None and row.kind == "effect"
        self.line(self.expr(s.value) if bare else f"T.evaluate({self.expr(s.value)})", s)

    # blocks ------------------------------------------------------------------------------------------------
    def realize(self, s: BlockRealize) -> None:
        block = s.block
        self.names.push()
        self.line(f"with T.block({quote(block.name)}):", s, block)
        outer, self.indent = self.indent, self.indent + "    "
        self.axes(block.iter_vars, s.iter_values)
        if not (is_const(s.predicate, 1)):
            self.line(f"T.where({self.expr(s.predicate)})")
        self.block_body(block)
        self.indent = outer
        self.names.pop()

    def bare_block(self, block: Block) -> None:
        self.realize(BlockRealize((), IntImm(1, "bool"), block))

    def axes(self, iter_vars: tuple[IterVar, ...], values: tuple[Expr, ...]) -> None:
        texts = [self.expr(v) for v in values] or [""] * len(iter_vars)
        names = [self.names.define(iv.var, iv.var.name) for iv in iter_vars]
        run: list[int] = []  # iter vars that are loop variables as they stand

        def flush() -> None:
            if len(run) > 1:
                kinds = "".join(_REMAP[iter_vars[k].iter_type] for k in run)
                defined, bound = (", ".join(parts[k] for k in run) for parts in (names, texts))
                self.line(f'{defined} = T.axis.remap("{kinds}", [{bound}])', *[iter_vars[k] for k in run])
            elif run:
                single(run[0])
            run.clear()

        def single(k: int) -> None:
            iv = iter_vars[k]
            low, size = iv.domain.min, iv.domain.extent
            dom = self.expr(size) if is_const(low, 0) else f"({self.expr(low)}, {self.expr(stop_of(low, size))})"
            args = f"{dom}, {texts[k]}" if texts[k] else dom
            self.line(f"{names[k]} = T.axis.{_AXIS.get(iv.iter_type, 'opaque')}({args})", iv)

        for k, iv in enumerate(iter_vars):
            if values and self.is_remap(iv, values[k]):
                run.append(k)
            else:
                flush()
                single(k)
        flush()

    def is_remap(self, iv: IterVar, value: Expr) -> bool:
        loop = self.loops.get(value) if isinstance(value, Var) else None
        if loop is None or iv.dom is None or iv.iter_type not in _REMAP or iv.var.type != loop.loop_var.type:
            return False
        return bool(iv.dom.min == loop.min) and bool(iv.dom.extent == loop.extent)

    def block_body(self, block: Block, root: bool = False) -> None:
        if not root or block.reads or block.writes:
            self.line(f"T.reads({self.items(block.reads)})", *block.reads)
            self.line(f"T.writes({self.items(block.writes)})", *block.writes)
        if block.annotations:
            self.line(f"T.block_attr({self.value(block.annotations)})")
        for b in block.alloc_buffers:
            name = self.names.define(b, b.name)
            self.line(f"{name} = T.alloc_buffer({self.buffer_args(b)})", b)
            self.names.alias(b.data, f"{name}.data")
            self.views(b)
        for m in block.match_buffers:
            source = self.region(m.source)
            self.names.alias(m.buffer.data, f"{self.names.define(m.buffer, m.buffer.name)}.data")
            for v in [v for x in (*m.buffer.strides, m.buffer.elem_offset) for v in symbols(x)]:
                if not self.names.knows(v):
                    self.line(f"{self.names.define(v, v.name)} = {type_text(v.type)}()")
            self.line(f"{self.names.of(m.buffer)} = T.match_buffer({source}, {self.buffer_args(m.buffer)})", m)
            self.views(m.buffer)
        if block.init is not None:
            self.line("with T.init():")
            self.body(block.init)
        self.stmt(block.body)


def _plain(s: For) -> bool:
    return s.kind == SERIAL and not s.annotations and is_const(s.min, 0)


_STMT: dict[type, Callable[[StmtPrinter, Any], None]] = {
    Store: StmtPrinter.store,
    For: StmtPrinter.loop,
    While: StmtPrinter.while_,
    IfThenElse: StmtPrinter.branch,
    Seq: StmtPrinter.sequence,
    Evaluate: StmtPrinter.evaluate,
    BlockRealize: StmtPrinter.realize,
    Block: StmtPrinter.bare_block,
}
