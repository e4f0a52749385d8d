"""Mutations of functions by named operators: each gives the places where it applies, and the function changed there."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from tilewright.tir import dtype as dt
from tilewright.tir.arithmetic import all_of, binary
from tilewright.tir.buffer import Buffer, BufferRegion, Load, MatchBuffer
from tilewright.tir.expr import Binary, Call, Expr, IntImm, Let, Select, Var
from tilewright.tir.iter_var import IterVar, Range
from tilewright.tir.node import Node, rewrite, walk
from tilewright.tir.stmt import (
    PARALLEL,
    SERIAL,
    Allocate,
    Block,
    BlockRealize,
    For,
    IfThenElse,
    LetStmt,
    PrimFunc,
    Seq,
    Store,
)


@dataclass(frozen=True)
class Mutation:
    """One change at one place; `apply` gives the mutant."""
    operator: str
    text: str
    apply: Callable[[], PrimFunc]


def mutations(func: PrimFunc, operator: str) -> list[Mutation]:
    """Every change that the operator can make to func."""
    return [Mutation(operator, text, change) for text, change in OPERATORS[operator](func)]


Changes = Iterator[tuple[str, Callable[[], PrimFunc]]]


def _swap(func: PrimFunc, old: Node, new: Node) -> Callable[[], PrimFunc]:
    """func with the node old replaced by new."""
    def change(node: Node) -> Node | None:
        return new if node is old else None
    return lambda: func.with_body(rewrite(func.body, change))


def _conjuncts(e: Expr) -> list[Expr]:
    if isinstance(e, Call) and e.op == "likely":
        return _conjuncts(e.args[0])
    if isinstance(e, Binary) and e.op == "and":
        return _conjuncts(e.a) + _conjuncts(e.b)
    return [e]


def drop_guard(func: PrimFunc) -> Changes:
    """A condition of a statement, a block, an expression or a masked access holds no more, or loses one conjunct."""
    for n in walk(func.body):
        if isinstance(n, BlockRealize) and not isinstance(n.predicate, IntImm):
            parts = _conjuncts(n.predicate)
            for k, part in enumerate(parts):
                rest = all_of(*parts[:k], *parts[k + 1:])
                yield f"drop {part} of block {n.block.name}", _swap(func, n, n.replace(predicate=rest))
        elif isinstance(n, IfThenElse):
            yield f"drop if {n.condition}", _swap(func, n, n.then_case)
        elif isinstance(n, Call) and n.op == "if_then_else":
            yield f"drop the condition {n.args[0]}", _swap(func, n, n.args[1])
        elif isinstance(n, Select):
            yield f"drop the condition {n.condition}", _swap(func, n, n.a)
        elif isinstance(n, (Load, Store)) and n.predicate is not None:
            yield f"drop the mask {n.predicate}", _swap(func, n, n.replace(predicate=None))


def off_by_one(func: PrimFunc) -> Changes:
    """An index of an access, the start of a loop or the value of a block's axis is one more or one less."""
    for n in walk(func.body):
        for by in (1, -1):
            if isinstance(n, (Load, Store)):
                for k, i in enumerate(n.indices):
                    if dt.lanes_of(i.dtype) == 1:
                        moved = (*n.indices[:k], binary("add", i, by), *n.indices[k + 1:])
                        yield f"index {k} of {n.buffer.name}: {by:+d}", _swap(func, n, n.replace(indices=moved))
            elif isinstance(n, For):
                yield (f"start of {n.loop_var.name}: {by:+d}",
                       _swap(func, n, n.replace(min=binary("add", n.min, by))))
            elif isinstance(n, BlockRealize):
                for k, v in enumerate(n.iter_values):
                    axes = (*n.iter_values[:k], binary("add", v, by), *n.iter_values[k + 1:])
                    yield f"axis {k} of {n.block.name}: {by:+d}", _swap(func, n, n.replace(iter_values=axes))


def serial_to_parallel(func: PrimFunc) -> Changes:
    """A serial loop becomes parallel."""
    for n in walk(func.body):
        if isinstance(n, For) and n.kind == SERIAL:
            yield f"{n.loop_var.name} parallel", _swap(func, n, n.replace(kind=PARALLEL))


def _less(e: Expr) -> Expr:
    return IntImm(e.value - 1, e.type) if isinstance(e, IntImm) else binary("sub", e, 1)


def shrink_region(func: PrimFunc) -> Changes:
    """A loop, the domain of a block's axis, a buffer, or a region that a block declares is one shorter."""
    for n in walk(func.body):
        if isinstance(n, For):
            yield f"extent of {n.loop_var.name}", _swap(func, n, n.replace(extent=_less(n.extent)))
        elif isinstance(n, Block):
            yield from _shorter_block(func, n)
        elif isinstance(n, Allocate):
            for b in _shorter(n.buffer):
                yield f"allocation of {b.name}", _exchange(func, n.buffer, b)


def _shorter_block(func: PrimFunc, block: Block) -> Changes:
    for k, iv in enumerate(block.iter_vars):
        if iv.dom is not None:
            less = iv.replace(dom=Range(iv.dom.min, _less(iv.dom.extent)))
            axes = (*block.iter_vars[:k], less, *block.iter_vars[k + 1:])
            yield f"domain of {iv.var.name} of {block.name}", _swap(func, block, block.replace(iter_vars=axes))
    for b in block.alloc_buffers:
        for less in _shorter(b):
            yield f"allocation of {b.name}", _exchange(func, b, less)
    for kind in ("reads", "writes"):
        regions = getattr(block, kind)
        for k, r in enumerate(regions):
            for axis, extent in enumerate(r.region):
                short = Range(extent.min, _less(extent.extent))
                region = r.replace(region=(*r.region[:axis], short, *r.region[axis + 1:]))
                changed = block.replace(**{kind: (*regions[:k], region, *regions[k + 1:])})
                yield f"{kind} of {r.buffer.name} by {block.name}, axis {axis}", _swap(func, block, changed)


def _shorter(b: Buffer) -> Iterator[Buffer]:
    """b with one extent less by one, as a new buffer of its own memory."""
    for k, d in enumerate(b.shape):
        if isinstance(d, IntImm) and d.value > 1 and not b.strides:
            yield b.replace(shape=(*b.shape[:k], _less(d), *b.shape[k + 1:]))


def _exchange(func: PrimFunc, old: Buffer, new: Buffer) -> Callable[[], PrimFunc]:
    """func with another buffer in place of old, and of what shares its memory nothing changed."""
    def change(node: Node) -> Node | None:
        if isinstance(node, (Load, Store, Allocate, BufferRegion)) and node.buffer is old:
            return node.replace(buffer=new)
        if isinstance(node, Block) and any(b is old for b in node.alloc_buffers):
            return node.replace(alloc_buffers=tuple(new if b is old else b for b in node.alloc_buffers))
        if isinstance(node, MatchBuffer) and node.source.buffer is old:
            return node.replace(source=node.source.replace(buffer=new))
        return None
    return lambda: func.with_body(rewrite(func.body, change))


def reorder_loops(func: PrimFunc) -> Changes:
    """Two loops, one the whole body of the other, change places; or two neighbouring statements with loops do."""
    for n in walk(func.body):
        if isinstance(n, For) and isinstance(n.body, For) and not _uses(n.body, n.loop_var):
            inner = n.body
            turned = inner.replace(body=n.replace(body=inner.body))
            yield f"{n.loop_var.name} and {inner.loop_var.name} interchanged", _swap(func, n, turned)
        elif isinstance(n, Seq):
            for k, (a, b) in enumerate(zip(n.stmts, n.stmts[1:])):
                if isinstance(a, For) or isinstance(b, For):
                    yield (f"statements {k} and {k + 1} exchanged",
                           _swap(func, n, n.replace(stmts=(*n.stmts[:k], b, a, *n.stmts[k + 2:]))))


def _uses(loop: For, var: Var) -> bool:
    return any(n is var for e in (loop.min, loop.extent) for n in walk(e))


OPERATORS: dict[str, Callable[[PrimFunc], Changes]] = {
    "drop a guard": drop_guard,
    "index off by one": off_by_one,
    "serial to parallel": serial_to_parallel,
    "shrink a region": shrink_region,
    "reorder dependent loops": reorder_loops,
}


APART = ("sync", "access_ptr", "call_extern", "call_packed", "call_llvm_intrin", "call_llvm_pure_intrin")


def accepts(func: PrimFunc) -> bool:
    """True where no index and no branch depends on data, no view stands for a part of a buffer, nothing is called."""
    given = {p for p in func.params if p not in func.buffer_map}
    for n in walk(func.body):
        decides: tuple[Any, ...] = ()
        if isinstance(n, (Load, Store)):
            decides = (*n.indices, n.predicate)
        elif isinstance(n, For):
            decides = (n.min, n.extent)
        elif isinstance(n, IfThenElse):
            decides = (n.condition,)
        elif isinstance(n, BlockRealize):
            decides = (n.predicate, *n.iter_values)
        elif isinstance(n, Block) and n.match_buffers or isinstance(n, IterVar) and n.dom is None:
            return False
        elif isinstance(n, Call) and n.op in APART:
            return False
        elif isinstance(n, (Let, LetStmt)) and any(isinstance(m, Load) or m in given for m in walk(n.value)):
            return False
        if any(isinstance(m, Load) or m in given for e in decides if e is not None for m in walk(e)):
            return False
    return True
