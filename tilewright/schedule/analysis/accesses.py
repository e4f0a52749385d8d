"""The memory accesses below a loop as functions of loop variables: what dependence analysis works on."""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from tilewright.arith.analyzer import Analyzer
from tilewright.arith.conditions import NEGATED, is_index_comparison
from tilewright.arith.dependence import Access
from tilewright.arith.linear import structural_key
from tilewright.schedule.outside import let_value
from tilewright.tir.accesses import Use, uses
from tilewright.tir.arithmetic import all_of, binary, conjuncts, logical_not
from tilewright.tir.buffer import Buffer, BufferRegion, Load
from tilewright.tir.equal import structural_equal
from tilewright.tir.expr import Binary, Call, Expr, IntImm, Let, Var
from tilewright.tir.iter_var import Range
from tilewright.tir.node import Node, same, sub_statements, substitute, walk
from tilewright.tir.ops import INTRINSICS
from tilewright.tir.stmt import Block, BlockRealize, For, IfThenElse, LetStmt, Stmt

TRUE = IntImm(1, "bool")
_Declared = tuple[BufferRegion, tuple[Expr, ...], dict[Var, tuple[Expr, Expr]]]     # a region, any element, its domains


@dataclass
class Instance:
    """A block below a loop: how the values of its iter vars follow from the loops above it."""
    realize: BlockRealize
    values: dict[Var, Expr]                     # iter var -> value in loop variables
    guard: Expr                                 # the predicate, in loop variables
    free: dict[Var, tuple[Expr, Expr]]          # loops between the common loops and the block: (min, extent)
    injective: dict[tuple[Var, ...], bool] = field(default_factory=dict)      # filled by legality
    apart: bool | None = None                                                 # filled by legality


@dataclass
class Touch:
    """One access: where it is made, to which buffer, and at which indices as a function of the loops.

    outside: on the way to the body of its block, by the values of the axes or the predicate.
    """
    buffer: Buffer
    access: Access
    instance: Instance | None                   # None: a statement outside every block
    reads: bool
    writes: bool
    stmt: Stmt
    local: tuple[Expr, ...]                     # the indices as the block writes them
    outside: bool = False

    def same_element(self, other: Touch) -> bool:
        """True when the bodies of one block make both accesses, to one element."""
        return not self.outside and not other.outside and same(self.local, other.local)


class _Place(NamedTuple):
    """What is known where a statement stands."""
    table: dict[Var, Expr]                      # iter vars and lets -> their values in loop variables
    free: dict[Var, tuple[Expr, Expr]]          # the loops around it that are below the common ones
    guard: Expr
    inside: Instance | None
    outside: bool = False


class Collector:
    """Collects the touches and block instances below a statement, in program order.

    Variables of loops around the statement stay symbols; the loops below it become free variables of the
    accesses. Blocks with calls that may touch memory contribute the regions that they declare, those with views these
    and what they allocate. What the bounds of `loops`, around the statement, read counts as well.
    """

    def __init__(self, stmt: Stmt, loops: Sequence[For] = (), analyzer: Analyzer | None = None) -> None:
        self._analyzer = Analyzer() if analyzer is None else analyzer
        self.touches: list[Touch] = []
        self.instances: list[Instance] = []
        self._known: dict[Any, Touch] = {}                     # of the last instance, by what they touch
        self._pointers: list[tuple[Node, Stmt]] = []           # that stand by themselves, outside of every block
        for loop in loops:
            self._uses(loop, _Place({}, {}, TRUE, None))
        self._visit(stmt, _Place({}, {}, TRUE, None))
        self._resolve_pointers()

    def _visit(self, stmt: Stmt, at: _Place) -> None:
        if isinstance(stmt, BlockRealize):
            self._block(stmt, at)
            return
        self._uses(stmt, at)
        if isinstance(stmt, For):
            bounds = substitute(stmt.min, at.table), substitute(stmt.extent, at.table)
            at = at._replace(free={**at.free, stmt.loop_var: bounds})
        elif isinstance(stmt, LetStmt):
            at = self._with_let(at, stmt.var, stmt.value)
        elif isinstance(stmt, IfThenElse):
            self._visit(stmt.then_case, at._replace(guard=_under(at.guard, stmt.condition, at.table)))
            if stmt.else_case is not None:
                negated = _under(at.guard, _negated(stmt.condition), at.table)
                self._visit(stmt.else_case, at._replace(guard=negated))
            return
        for below in sub_statements(stmt):
            self._visit(below, at)

    def _block(self, realize: BlockRealize, at: _Place) -> None:
        block = realize.block
        pairs = realize.bound
        values = {iv.var: substitute(v, at.table) for iv, v in pairs}
        guard = all_of(at.guard, substitute(realize.predicate, at.table))
        instance = Instance(realize, values, guard, at.free)
        self.instances.append(instance)
        inner = _Place({**at.table, **values}, at.free, guard, instance)
        self._uses(realize, at._replace(inside=instance, outside=True))
        self._uses(block, inner._replace(guard=at.guard, outside=True), realize)
        if block.match_buffers or _has_effects(block):
            made: list[_Declared] = []
            for regions, writes in ((block.reads, False), (block.writes, True)):
                for region in regions:
                    self._add_region(region, realize, inner, writes, made)
        before = len(self.touches)
        for below in sub_statements(block):
            self._visit(below, inner)
        if block.match_buffers:                                # what a view stands for is declared
            own = {b for n in walk(block) if isinstance(n, Block) for b in n.alloc_buffers}
            self.touches[before:] = [t for t in self.touches[before:] if t.buffer in own]
            self._known.clear()

    def _with_let(self, at: _Place, var: Var, value: Expr) -> _Place:
        with self._analyzer.scope():
            for v, (low, extent) in at.free.items():
                self._analyzer.bind(v, low, extent)
            return at._replace(table={**at.table, var: let_value(var, substitute(value, at.table), self._analyzer)})

    def _uses(self, holder: Stmt, at: _Place, stmt: Stmt | None = None) -> None:
        """The accesses that holder itself makes (in the name of stmt)."""
        stmt = holder if stmt is None else stmt
        guards: dict[tuple[object, ...], Expr] = {}            # (guard, condition, ...) -> both: reads share them
        for use in uses(holder):
            if use.field in ("reads", "writes"):               # the bounds of what is declared: none is evaluated
                continue
            if use.indices is None:
                self._opaque(use, stmt, at)
                continue
            here = at
            for var, value in use.lets:
                here = self._with_let(here, var, value)
            bound, guard = tuple(id(x) for let in use.lets for x in let), here.guard
            for condition, holds in use.under:
                key = id(guard), id(condition), holds, bound
                if key not in guards:
                    guards[key] = _under(guard, condition if holds else _negated(condition), here.table)
                guard = guards[key]
            here = here._replace(guard=guard)
            assert use.buffer is not None
            self._add(use.buffer, use.indices, stmt, here, use.writes)

    def _opaque(self, use: Use, stmt: Stmt, at: _Place) -> None:
        """The use of an address: the block around declares what it stands for; outside of every block it may be all."""
        if at.inside is not None and not at.outside:
            return
        if use.buffer is None:
            self._pointers.append((use.node, stmt))
        else:
            self._add_whole(use.buffer, stmt, at)

    def _add_whole(self, buffer: Buffer, stmt: Stmt, at: _Place) -> None:
        free = dict(at.free)
        indices = tuple(_fresh(Range(IntImm(0, dim.dtype), dim), free, {}) for dim in buffer.shape)
        access = Access(indices, at.guard, free)
        self.touches.append(Touch(buffer, access, at.inside, True, True, stmt, indices, at.outside))

    def _resolve_pointers(self) -> None:
        """A pointer outside of every block may lead to each element of the buffers that have it."""
        for pointer, stmt in self._pointers:
            for buffer in {t.buffer: None for t in self.touches if t.buffer.data is pointer}:
                self._add_whole(buffer, stmt, _Place({}, {}, TRUE, None))

    def _add_region(self, region: BufferRegion, stmt: Stmt, at: _Place, writes: bool, made: list[_Declared]) -> None:
        """Any element of a declared region; the same one for a region that is in `made`, what was declared before."""
        found = next(((i, f) for r, i, f in made
                      if r.buffer is region.buffer and structural_equal(r, region)), None)
        if found is None:
            indices, free = [], dict(at.free)
            for r in region.region:
                one = isinstance(r.extent, IntImm) and r.extent.value == 1
                indices.append(r.min if one else binary("add", r.min, _fresh(r, free, at.table)))
            found = tuple(indices), free
            made.append((region, *found))
        self._add(region.buffer, found[0], stmt, at._replace(free=found[1]), writes)

    def _add(self, buffer: Buffer, indices: tuple[Expr, ...], stmt: Stmt, at: _Place, writes: bool = False) -> None:
        table, guard = at.table, at.guard
        if not self.touches or self.touches[-1].instance is not at.inside:
            self._known.clear()
        key = id(buffer), at.outside, structural_key(indices)
        seen = self._known.get(key)
        if seen is not None and (not table or at.inside is not None):
            seen.reads, seen.writes = seen.reads or not writes, seen.writes or writes
            if seen.access.predicate is not guard:
                seen.access = replace(seen.access, predicate=_both_hold(seen.access.predicate, guard))
            return
        free, placed = dict(at.free), []
        for index, extent in zip(indices, buffer.shape, strict=True):
            new = substitute(index, table)
            if not isinstance(new, (Var, IntImm)) and any(isinstance(n, (Load, Call, Let)) for n in walk(new)):
                # it depends on data, and so it may be any element
                new = _fresh(Range(IntImm(0, index.dtype), extent), free, {})
            placed.append(new)
        access = Access(tuple(placed), guard, free)
        self._known[key] = Touch(buffer, access, at.inside, not writes, writes, stmt, indices, at.outside)
        self.touches.append(self._known[key])


def _fresh(r: Range, free: dict[Var, tuple[Expr, Expr]], table: Mapping[Var, Expr]) -> Var:
    """A new variable of free that ranges over [0, r.extent)."""
    var = Var("any", r.extent.dtype)
    free[var] = (IntImm(0, r.extent.dtype), substitute(r.extent, table))
    return var


def _under(guard: Expr, condition: Expr, table: Mapping[Var, Expr]) -> Expr:
    """guard and condition, in loop variables; without parts that depend on data or call something."""
    new = (substitute(part, table) for part in conjuncts(condition))
    return all_of(guard, *[c for c in new if not any(isinstance(n, (Load, Call, Let)) for n in walk(c))])


def _negated(condition: Expr) -> Expr:
    """not condition; of integers as the opposite comparison, which analyses understand."""
    if isinstance(condition, Binary) and is_index_comparison(condition):
        return Binary(NEGATED[condition.op], condition.a, condition.b, "bool")
    return logical_not(condition)


def _both_hold(a: Expr | None, b: Expr) -> Expr:
    """The parts that a and b have in common: what holds wherever one of two accesses is made."""
    others = list(conjuncts(b))
    return all_of(*[x for x in conjuncts(TRUE if a is None else a) if any(structural_equal(x, y) for y in others)])


def _has_effects(block: Block) -> bool:
    """True when the block's own statements call something that may touch memory unseen."""
    return any(isinstance(n, Call) and (n.op == "access_ptr" or INTRINSICS[n.op].kind == "effect")
               for n in _nodes_of(block))


def _nodes_of(block: Block) -> Iterator[Node]:
    for part in (block.init, block.body):
        if part is not None:
            yield from walk(part)
