"""Blocks of a script: axes, regions, predicate, init, attributes; stores and calls as statements.

Loop variables in a body become axes of the block, which is what a block sees of the loops around it.
"""
from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any, TypeVar

from tilewright.arith.analyzer import Analyzer
from tilewright.arith.regions import interval_of
from tilewright.script.frames import BlockFrame
from tilewright.script.inferred_regions import infer
from tilewright.script.operators import is_number
from tilewright.script.stores import Stores
from tilewright.support.errors import described
from tilewright.tir import dtype as dt
from tilewright.tir.arithmetic import binary
from tilewright.tir.buffer import Buffer, BufferRegion, Load, MatchBuffer, as_index, whole_region
from tilewright.tir.conversion import const, convert
from tilewright.tir.expr import Expr, IntImm, Var
from tilewright.tir.iter_var import COMM_REDUCE, DATA_PARALLEL, OPAQUE, ORDERED, IterVar, Range
from tilewright.tir.node import Node, rewrite, substitute, walk
from tilewright.tir.stmt import Block, BlockRealize, For, Seq, Stmt, Store

AXES = {"spatial": DATA_PARALLEL, "S": DATA_PARALLEL, "reduce": COMM_REDUCE, "R": COMM_REDUCE, "scan": ORDERED,
        "opaque": OPAQUE}
_LETTERS = {"S": DATA_PARALLEL, "R": COMM_REDUCE}


class Blocks(Stores):
    def with_(self, node: ast.With) -> Stmt:
        return self.context(node, 0)

    def context(self, node: ast.With, position: int) -> Stmt:
        """The statement of the items of a `with` from `position` on."""
        if position == len(node.items):
            return self.suite(node.body)
        item = node.items[position]
        form = self.form(item.context_expr)
        rule = self.contexts.get(form)
        if rule is None:
            what = f"T.{form}" if form else ast.unparse(item.context_expr)
            self.fail(item.context_expr, f"`with {what}` is not part of the script language",
                      self.usage(form) if form else "with T.block(...), T.init(), T.launch_thread(...), T.LetStmt(...)")
        with self.names.scope():
            if form in ("block", "init"):
                if item.optional_vars is not None:
                    self.fail(item.optional_vars, f"T.{form} gives no value")
                return rule(self, item.context_expr, lambda: self.context(node, position + 1))
            around = rule(self, item.context_expr, item.optional_vars)
            body = self.context(node, position + 1)
            return body if around is None else self.at(node, around.wrap(body))

    def block(self, node: ast.Call, body_of: Any) -> Stmt:
        """with T.block("name"): ..."""
        arguments = self.bound(node, ("name_hint", "no_realize"), 0)
        name = self.value(arguments["name_hint"]) if "name_hint" in arguments else "block"
        if not isinstance(name, str):
            self.fail(node, "the name of a block is a string")
        outer, frame = self.frame, BlockFrame(self.block_names.fresh(name or "block"))
        self.frame = frame
        try:
            body = body_of()
        finally:
            self.frame = outer
        body, axes = take_loops(frame, body, self.domains)
        for axis in axes:
            self.origin[id(axis.var)] = axis.var, self.called_at or node
        block = self.at(node, self.finished(frame, body))
        return BlockRealize(tuple(frame.values), frame.predicate, block)  # type: ignore[arg-type]

    def finished(self, frame: BlockFrame, body: Stmt) -> Block:
        """The block of a frame; regions that it does not state are inferred, of a root too that holds no block."""
        block = Block(frame.name, tuple(frame.iter_vars), frame.reads or (), frame.writes or (), body, frame.init,
                      tuple(frame.allocated), tuple(frame.matched), frame.annotations)
        if frame.reads is not None and frame.writes is not None:
            return block
        if frame is self.root and any(isinstance(n, BlockRealize) for n in walk(body)):
            return block
        reads, writes = infer(block)
        return block.replace(reads=reads if frame.reads is None else frame.reads,
                             writes=writes if frame.writes is None else frame.writes)

    def init(self, node: ast.Call, body_of: Any) -> Stmt:
        """with T.init(): what runs before the first step of a reduction."""
        self.bound(node, (), 0)
        self.needs_block(node)
        if self.frame.init is not None:
            self.fail(node, "the block has an init already")
        self.frame.init = body_of()
        return Seq(())

    def needs_block(self, node: ast.AST) -> None:
        """Refuse a part of a block outside of every block, and below a loop or branch, which it would be no part of."""
        if self.frame is self.root:
            self.fail(node, f"{ast.unparse(node)[:60]} stands outside every block", 'with T.block("name"):')
        self.belongs_to_block(node)

    def belongs_to_block(self, node: ast.AST) -> None:
        if self.frame.nested:
            self.fail(node, f"{ast.unparse(node)[:60]} stands in a loop or branch of its block",
                      "it holds for all of the block: write it before the statements")

    # axes --------------------------------------------------------------------------------------------------
    def axis(self, node: ast.Call, target: ast.AST, kind: int) -> None:
        """v = T.axis.spatial(extent, value), T.axis.reduce((low, stop), value), ..."""
        self.needs_block(node)
        arguments = self.bound(node, ("dom", "binding", "dtype"), 2)
        value = self.expr(arguments["binding"])
        if not dt.is_integer(value.dtype):
            self.fail(arguments["binding"], f"the value of an axis is {value.dtype}, not an integer")
        self.add_axis(node, self.target(target), kind, self.axis_domain(arguments["dom"], value.dtype), value)

    def axis_domain(self, node: ast.expr, dtype: str) -> Range:
        dom = self.value(node)
        if isinstance(dom, (tuple, list)):
            if len(dom) != 2:
                self.fail(node, "the domain of an axis is an extent or a pair (low, stop)")
            return self.range(node, *[convert(x, dtype) if is_number(x) else x for x in dom])
        if is_number(dom):
            dom = const(dom, dtype)
        return self.range(node, dom)

    def add_axis(self, node: ast.AST, name: str, kind: int, domain: Range, value: Expr) -> None:
        v = Var(name, value.dtype)
        self.origin[id(v)] = v, self.called_at or node
        self.frame.iter_vars.append(IterVar(domain, v, kind))
        self.frame.values.append(value)
        self.names.define(name, v)

    def remap(self, node: ast.Call, target: ast.AST) -> None:
        """vi, vj = T.axis.remap("SR", [i, j]): axes that are loop variables as they stand."""
        self.needs_block(node)
        arguments = self.bound(node, ("kinds", "bindings"), 2)
        kinds, values = self.value(arguments["kinds"]), self.value(arguments["bindings"])
        names = self.loop_names(target)
        if not isinstance(kinds, str) or not isinstance(values, (list, tuple)) or len(kinds) != len(values):
            self.fail(node, "T.axis.remap takes one letter for each loop variable", 'T.axis.remap("SR", [i, j])')
        if len(names) != len(values):
            self.fail(target, f"{len(names)} name(s) for the {len(values)} axes of T.axis.remap")
        for letter, name, v in zip(kinds, names, values, strict=True):
            if letter not in _LETTERS:
                self.fail(arguments["kinds"], f"{letter!r} is no kind of axis", '"S" is spatial, "R" is reduce; '
                          "T.axis.scan and T.axis.opaque make the others")
            if not isinstance(v, Var) or v not in self.domains:
                self.fail(arguments["bindings"], f"{v} is no loop variable",
                          "T.axis.spatial(extent, value) binds any value")
            self.add_axis(node, name, _LETTERS[letter], all_values(self.domains[v], self.domains), v)

    # parts of a block --------------------------------------------------------------------------------------
    def reads(self, node: ast.Call) -> None:
        self.frame.reads = self.regions(node, self.frame.reads)

    def writes(self, node: ast.Call) -> None:
        self.frame.writes = self.regions(node, self.frame.writes)

    def regions(self, node: ast.Call, before: tuple[BufferRegion, ...] | None) -> tuple[BufferRegion, ...]:
        """The regions of T.reads or T.writes, which stands once in a block; before: what it has stated already."""
        self.belongs_to_block(node)
        args = node.args
        if before is not None or node.keywords:
            form = ast.unparse(node.func)
            self.fail(node, f"{form} takes regions only" if before is None else f"the block has {form} already",
                      f"{form}(A[0:8, j], B[j]) states all regions")
        if len(args) == 1 and isinstance(args[0], (ast.List, ast.Tuple)):
            args = args[0].elts
        return tuple(self.region_of(a) for a in args)

    def region_of(self, node: ast.expr) -> BufferRegion:
        if isinstance(node, ast.Subscript):
            return self.region(node)
        buffer = self.value(node)
        if not isinstance(buffer, Buffer):
            self.fail(node, "a region is part of a buffer", "T.reads(A[0:8, j])")
        return whole_region(buffer)

    def region(self, node: ast.Subscript) -> BufferRegion:
        """A[low:stop, i] as a box."""
        buffer = self.value(node.value)
        if not isinstance(buffer, Buffer):
            self.fail(node, "a region is part of a buffer")
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if len(parts) != len(buffer.shape):
            self.fail(node, f"{buffer.name} has {len(buffer.shape)} dimension(s), its region {len(parts)}")
        return BufferRegion(buffer, tuple(self.interval(p, d) for p, d in zip(parts, buffer.shape, strict=True)))

    def interval(self, node: ast.expr, extent: Expr) -> Range:
        if not isinstance(node, ast.Slice):
            point = self.expr(node)
            if not dt.is_integer(point.dtype):
                self.fail(node, f"an index is an integer, not {point.dtype}")
            point = as_index(point)
            return Range(point, IntImm(1, point.dtype))
        if node.step is not None:
            self.fail(node.step, "a region has no stride")
        low: Any = 0 if node.lower is None else self.value(node.lower)
        stop = extent if node.upper is None else self.value(node.upper)
        return self.range(node, low, stop)

    def where(self, node: ast.Call) -> None:
        """T.where(condition): the block runs where it holds."""
        self.needs_block(node)
        condition = self.bound(node, ("predicate",), 1)["predicate"]
        c = self.expr(condition)
        if c.dtype != "bool":
            self.fail(condition, f"the condition is {c.dtype}, not a bool", "compare: x != 0")
        before = self.frame.predicate
        self.frame.predicate = c if isinstance(before, IntImm) else binary("and", before, c)

    def block_attr(self, node: ast.Call) -> None:
        self.belongs_to_block(node)
        self.frame.annotations |= self.annotations(self.bound(node, ("attrs",), 1)["attrs"])

    def func_attr(self, node: ast.Call) -> None:
        entries = self.bound(node, ("attrs",), 1)["attrs"]
        attrs = self.annotations(entries)
        if not isinstance(attrs.get("global_symbol", ""), str):
            self.fail(entries, f"the name of a function is a text, not {described(attrs['global_symbol'])}")
        self.attrs |= attrs


T = TypeVar("T", bound=Node)


def take_loops(frame: BlockFrame, body: Stmt, domains: Mapping[Var, Range]) -> tuple[Stmt, list[IterVar]]:
    """The body of a block that names no loop around it, and the axes that the frame has got for that.

    A loop that an axis of the block is bound to as it stands is that axis. Any other loop gets an axis: spatial where
    the block stores, and every store names it as an index, so that each point writes elements of its own; opaque
    elsewhere, which says nothing of the points: they do not run at once.
    """
    parts: list[Node] = [body, *_beside(frame)]
    named = [n for part in parts for n in walk(part) if type(n) is Var and n in domains]
    if not named:
        return body, []
    nodes = [n for part in parts for n in walk(part)]
    inside = {n.loop_var for n in nodes if isinstance(n, For)}
    used = [v for v in dict.fromkeys(named) if v not in inside]
    if not used:
        return body, []
    bound = {value: iv.var for iv, value in zip(frame.iter_vars, frame.values, strict=True) if isinstance(value, Var)}
    inner = {iv.var: value for n in nodes if isinstance(n, BlockRealize) for iv, value in n.bound}
    stores = [[_through(i, inner) for i in n.indices] for n in nodes if isinstance(n, Store)]
    added = []
    for v in used:
        if v not in bound:
            own = bool(stores) and all(any(i is v for i in indices) for indices in stores)
            added.append(IterVar(all_values(domains[v], domains), Var(f"v_{v.name}", v.dtype),
                                 DATA_PARALLEL if own else OPAQUE))
            frame.iter_vars.append(added[-1])
            frame.values.append(v)
            bound[v] = added[-1].var
    table: dict[Any, Node] = {v: bound[v] for v in used}
    resized = {b: b.replace(shape=tuple(substitute(e, table) for e in b.shape),
                            strides=tuple(substitute(e, table) for e in b.strides))
               for b in (*frame.allocated, *(m.buffer for m in frame.matched))
               if any(n in table for e in (*b.shape, *b.strides) for n in walk(e))}

    def put(part: T) -> T:
        return _rebound(substitute(part, table), resized)

    frame.init = None if frame.init is None else put(frame.init)
    frame.reads, frame.writes = (None if regions is None else tuple(put(r) for r in regions)
                                 for regions in (frame.reads, frame.writes))
    frame.allocated = [resized.get(b, b) for b in frame.allocated]
    frame.matched = [MatchBuffer(resized.get(m.buffer, m.buffer), put(m.source)) for m in frame.matched]
    return put(body), added


def _through(e: Expr, values: Mapping[Any, Expr]) -> Expr:
    """e, or where it is an axis of a block inside what that is bound to."""
    while e in values:
        e = values[e]
    return e


def _beside(frame: BlockFrame) -> list[Node]:
    """What the block holds besides its body."""
    init = [] if frame.init is None else [frame.init]
    sizes = [e for b in frame.allocated for e in (*b.shape, *b.strides) if isinstance(e, Node)]
    return [*init, *(frame.reads or ()), *(frame.writes or ()), *(m.source for m in frame.matched), *sizes]


def _rebound(part: T, buffers: Mapping[Buffer, Buffer]) -> T:
    """part with other buffers in the place of some."""
    def swap(n: Node) -> Node | None:
        new = buffers.get(n.buffer) if isinstance(n, (Load, Store, BufferRegion)) else None
        return None if new is None else n.replace(buffer=new)      # type: ignore[attr-defined]
    return rewrite(part, swap)


def all_values(r: Range, domains: Mapping[Var, Range]) -> Range:
    """The domain of a loop in terms of no other loop: all values that it takes; r where that is not known."""
    if not any(n in domains for n in walk(r) if isinstance(n, Var)):
        return r
    analyzer, limits = Analyzer(), {v: (d.min, d.extent) for v, d in domains.items()}
    last: Expr = r.min + r.extent - IntImm(1, r.min.dtype)
    first, end = (interval_of(e, limits, analyzer) for e in (r.min, last))
    if first is None or end is None:
        return r
    return Range(first[0], analyzer.simplify(end[0] + end[1] - first[0]))
