"""What is read outside of the bodies of blocks: by conditions, bounds and lets around them, and for their axes."""
from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from tilewright.arith.analyzer import Analyzer
from tilewright.schedule.state import Index
from tilewright.tir.accesses import SPOKEN, Use, is_silent, uses
from tilewright.tir.buffer import Buffer, BufferRegion
from tilewright.tir.dtype import is_integer, lanes_of
from tilewright.tir.expr import Expr, IntImm, Let, Var
from tilewright.tir.iter_var import Range
from tilewright.tir.node import sub_statements, substitute
from tilewright.tir.stmt import Block, BlockRealize, LetStmt, Stmt, Store
from tilewright.tir.structure import PerClass

_OF_BODY = ("reads", "writes", "match_buffers")         # fields of a block that tell of its body
# The fields of a statement that are evaluated on the way to what is below it.
_ON_THE_WAY = PerClass(lambda cls: [name for name in SPOKEN[cls] if cls is not Block or name not in _OF_BODY])


@dataclass(slots=True, eq=False)
class OutsideRead:
    """A read that the statement `place` makes on the way to the blocks below it, in terms of the loops around it."""
    region: BufferRegion
    place: Stmt
    use: Use


@dataclass(slots=True)
class Outside:
    """All that is read, or else touched, outside of the bodies of blocks.

    `reads`: what is read on the way to a block, if anything, from the block around it on: by the statements around, by
    its axes' values and domains, its predicate. `loose`: what no block speaks for: accesses of statements with no block
    below or around them but the root, and addresses that are used on the way.
    """
    reads: dict[str, tuple[OutsideRead, ...]] = field(default_factory=dict)
    loose: list[tuple[Stmt, Use]] = field(default_factory=list)
    lets: dict[Var, Expr] = field(default_factory=dict)         # what lets around blocks bind, in loop variables

    def of(self, realize: BlockRealize, buffer: Buffer | None = None) -> list[OutsideRead]:
        """What is read on the way to a block (of one buffer, if given)."""
        found = self.reads.get(realize.block.name, ())
        return [r for r in found if buffer is None or r.region.buffer is buffer]

    def stray(self, buffer: Buffer) -> Stmt | None:
        """A statement that touches buffer, for which no block speaks, or None."""
        return next((stmt for stmt, use in self.loose if use.touches(buffer)), None)


def outside_of(index: Index) -> Outside:
    """What is read outside of the bodies of the blocks of index; found once for each index."""
    if index.outside is None:
        index.outside = _survey(index)
    assert isinstance(index.outside, Outside)
    return index.outside


def let_value(var: Var, value: Expr, analyzer: Analyzer) -> Expr:
    """The value that a let binds; the let itself, of which analyses know nothing, where it may wrap around: what they
    put into an index does not.
    """
    return value if not is_integer(value.dtype) or analyzer.same_everywhere(value) else Let(var, value, var)


def _survey(index: Index) -> Outside:
    out = Outside()

    @functools.cache
    def analyzer() -> Analyzer:                          # most functions have no let
        made = Analyzer()
        for loop in index.loops.values():
            made.bind(loop.loop_var, loop.min, loop.extent)
        return made
    root = index.root
    nesting = {id(index.scope_of(r).block) for r in index.realizes.values() if r is not root}
    nesting.update(map(id, sub_statements(root)))
    if _is_quiet(root, nesting):
        return out

    def visit(stmt: Stmt, above: tuple[OutsideRead, ...], in_root: bool) -> bool:
        """Note what stmt and the statements below it read; True when there is a block among them."""
        if isinstance(stmt, BlockRealize):
            _enter(stmt, above, stmt is root)
            return True
        own = uses(stmt)
        if isinstance(stmt, LetStmt):
            out.lets[stmt.var] = let_value(stmt.var, substitute(stmt.value, out.lets), analyzer())
        if own:
            above = (*above, *[r for use in own if (r := _read(use, stmt, out.lets, analyzer)) is not None])
        found = False
        for s in sub_statements(stmt):
            found = visit(s, above, in_root) or found
        if in_root and own:
            out.loose += [(stmt, use) for use in own if not found or use.writes]
        return found

    def _enter(realize: BlockRealize, above: tuple[OutsideRead, ...], is_root: bool) -> None:
        block = realize.block
        own = [r for use in uses(realize) if (r := _read(use, realize, out.lets, analyzer)) is not None]
        before = [use for use in uses(block) if use.field not in _OF_BODY]
        if before:
            pairs = realize.bound
            table = {**out.lets, **{iv.var: substitute(v, out.lets) for iv, v in pairs}}
            own += [r for use in before if (r := _read(use, realize, table, analyzer)) is not None]
        out.reads[block.name] = (*above, *own)
        if id(block) in nesting:
            for part in _parts(block):
                visit(part, (), is_root)

    visit(root, (), True)
    return out


def _is_quiet(root: Stmt, nesting: set[int]) -> bool:
    """True for most functions, quickly: there is nothing to note outside of the bodies of blocks."""
    values: list[object] = []
    stack = [root]
    while stack:
        stmt = stack.pop()
        kind = type(stmt)
        if kind is Store or kind is LetStmt:
            return False
        for name in _ON_THE_WAY[kind]:
            value = getattr(stmt, name)
            if type(value) is not IntImm and (type(value) is not dict or value):
                values.append(value)
        if kind is not Block or id(stmt) in nesting:
            stack += sub_statements(stmt)
    return all(map(is_silent, values))


def _parts(block: Block) -> Iterable[Stmt]:
    return (part for part in (block.init, block.body) if part is not None)


def _read(use: Use, place: Stmt, lets: Mapping[Var, Expr], analyzer: Callable[[], Analyzer]) -> OutsideRead | None:
    """The read of an element as a region; None for any other use."""
    if use.writes or use.buffer is None or use.indices is None:
        return None
    table = dict(lets)
    for var, value in use.lets:
        table[var] = let_value(var, substitute(value, table), analyzer())
    at = [substitute(i, table) for i in use.indices]
    region = tuple(Range(i, IntImm(1, i.dtype)) if lanes_of(i.dtype) == 1 else Range(IntImm(0, dim.dtype), dim)
                   for i, dim in zip(at, use.buffer.shape, strict=True))
    return OutsideRead(BufferRegion(use.buffer, region), place, use)
