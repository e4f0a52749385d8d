"""The memory accesses below a loop as functions of loop variables: what dependence analysis works on."""
from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from tilewright.arith.conditions import NEGATED, is_index_comparison
from tilewright.arith.dependence import Access
from tilewright.schedule.analysis.digits import conjuncts
from tilewright.schedule.state import sub_statements
from tilewright.tir.arithmetic import all_of, binary, logical_not
from tilewright.tir.buffer import Buffer, BufferRegion, Load
from tilewright.tir.equal import structural_equal
from tilewright.tir.expr import Binary, Call, Expr, IntImm, Let, Var
from tilewright.tir.iter_var import Range
from tilewright.tir.node import Node, children, substitute, walk
from tilewright.tir.ops import INTRINSICS
from tilewright.tir.stmt import Block, BlockRealize, Evaluate, For, IfThenElse, LetStmt, Stmt, Store, While

TRUE = IntImm(1, "bool")


@dataclass
class Instance:
    """A block below a loop: how the values of its iter vars follow from the loops above it."""
    realize: BlockRealize
    values: dict[Var, Expr]                     # iter var -> value in loop variables
    guard: Expr                                 # the predicate, in loop variables
    free: dict[Var, tuple[Expr, Expr]]          # loops between the common loops and the block: (min, extent)
    injective: dict[tuple[Var, ...], bool] = field(default_factory=dict)      # filled by legality


@dataclass
class Touch:
    """One access: where it is made, to which buffer, and at which indices as a function of the loops."""
    buffer: Buffer
    access: Access
    instance: Instance | None                   # None: a statement outside every block
    reads: bool
    writes: bool
    stmt: Stmt
    local: tuple[Expr, ...]                     # the indices as the block writes them


class Collector:
    """Collects the touches and block instances below a statement, in program order.

    Variables of loops around the statement stay symbols; the loops below it become free variables of the
    accesses. Blocks with calls that may touch memory contribute the regions that they declare.
    """

    def __init__(self, stmt: Stmt) -> None:
        self.touches: list[Touch] = []
        self.instances: list[Instance] = []
        self._visit(stmt, {}, {}, TRUE, None)

    def _visit(self, stmt: Stmt, table: dict[Var, Expr], free: dict[Var, tuple[Expr, Expr]], guard: Expr,
               inside: Instance | None) -> None:
        if isinstance(stmt, For):
            free = {**free, stmt.loop_var: (substitute(stmt.min, table), substitute(stmt.extent, table))}
            self._expressions(stmt, (stmt.min, stmt.extent), table, free, guard, inside)
        elif isinstance(stmt, BlockRealize):
            self._block(stmt, table, free, guard)
            return
        elif isinstance(stmt, Store):
            self._expressions(stmt, (stmt.value, *stmt.indices), table, free, guard, inside)
            self._add(stmt.buffer, stmt.indices, stmt, table, free, guard, inside, writes=True)
        elif isinstance(stmt, IfThenElse):
            self._expressions(stmt, (stmt.condition,), table, free, guard, inside)
            self._visit(stmt.then_case, table, free, _under(guard, stmt.condition, table), inside)
            if stmt.else_case is not None:
                self._visit(stmt.else_case, table, free, _under(guard, _negated(stmt.condition), table), inside)
            return
        elif isinstance(stmt, While):
            self._expressions(stmt, (stmt.condition,), table, free, guard, inside)
        elif isinstance(stmt, LetStmt):
            self._expressions(stmt, (stmt.value,), table, free, guard, inside)
            table = {**table, stmt.var: substitute(stmt.value, table)}
        elif isinstance(stmt, Evaluate):
            self._expressions(stmt, (stmt.value,), table, free, guard, inside)
        for below in sub_statements(stmt):
            self._visit(below, table, free, guard, inside)

    def _block(self, realize: BlockRealize, table: dict[Var, Expr], free: dict[Var, tuple[Expr, Expr]],
               guard: Expr) -> None:
        block = realize.block
        pairs = zip(block.iter_vars, realize.iter_values, strict=True)
        values = {iv.var: substitute(v, table) for iv, v in pairs}
        instance = Instance(realize, values, all_of(guard, substitute(realize.predicate, table)), free)
        self.instances.append(instance)
        inner = {**table, **values}
        if block.match_buffers or _has_effects(block):
            for regions, writes in ((block.reads, False), (block.writes, True)):
                for region in regions:
                    self._add_region(region, realize, inner, free, instance, writes)
            if block.match_buffers:
                return
        for below in sub_statements(block):
            self._visit(below, inner, free, instance.guard, instance)

    def _expressions(self, stmt: Stmt, values: tuple[Expr, ...], table: dict[Var, Expr],
                     free: dict[Var, tuple[Expr, Expr]], guard: Expr, inside: Instance | None) -> None:
        for value in values:
            known = table
            stack: list[tuple[Node, Expr]] = [(value, guard)]
            while stack:
                node, where = stack.pop()
                below = [(n, where) for n in children(node)]
                if isinstance(node, Let):
                    known = {**known, node.var: substitute(node.value, known)}
                elif isinstance(node, Load):
                    self._add(node.buffer, node.indices, stmt, known, free, where, inside)
                elif isinstance(node, Call) and node.op == "if_then_else":       # evaluates one of them
                    condition, a, b = node.args
                    below = [(condition, where), (a, _under(where, condition, known)),
                             (b, _under(where, _negated(condition), known))]
                stack += reversed(below)

    def _add_region(self, region: BufferRegion, stmt: Stmt, table: dict[Var, Expr],
                    free: dict[Var, tuple[Expr, Expr]], inside: Instance, writes: bool) -> None:
        indices, free = [], dict(free)
        for r in region.region:
            if isinstance(r.extent, IntImm) and r.extent.value == 1:
                indices.append(r.min)
                continue
            indices.append(binary("add", r.min, _fresh(r, free, table)))
        self._add(region.buffer, tuple(indices), stmt, table, free, inside.guard, inside, writes)

    def _add(self, buffer: Buffer, indices: tuple[Expr, ...], stmt: Stmt, table: dict[Var, Expr],
             free: dict[Var, tuple[Expr, Expr]], guard: Expr, inside: Instance | None,
             writes: bool = False) -> None:
        for seen in reversed(self.touches):
            if seen.instance is not inside:
                break
            if seen.buffer is buffer and (not table or inside is not None) and _same(seen.local, indices):
                seen.reads, seen.writes = seen.reads or not writes, seen.writes or writes
                if seen.access.predicate is not guard:
                    seen.access = replace(seen.access, predicate=_both_hold(seen.access.predicate, guard))
                return
        free, placed = dict(free), []
        for index, extent in zip(indices, buffer.shape, strict=True):
            new = substitute(index, table)
            if any(isinstance(n, (Load, Call, Let)) for n in walk(new)):
                # it depends on data, and so it may be any element
                new = _fresh(Range(IntImm(0, index.dtype), extent), free, {})
            placed.append(new)
        access = Access(tuple(placed), guard, free)
        self.touches.append(Touch(buffer, access, inside, not writes, writes, stmt, indices))


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


def _same(a: tuple[Expr, ...], b: tuple[Expr, ...]) -> bool:
    return len(a) == len(b) and all(
        x is y or x.dtype == y.dtype and bool(Binary("eq", x, y)) for x, y in zip(a, b, strict=True))


def _has_effects(block: Block) -> bool:
    """True when the block's own statements call something that may touch memory unseen."""
    return any(isinstance(n, Call) and (n.op == "access_ptr" or INTRINSICS[n.op].kind == "effect")
               for n in _nodes_of(block))


def _nodes_of(block: Block) -> Iterator[Node]:
    for part in (block.init, block.body):
        if part is not None:
            yield from walk(part)
