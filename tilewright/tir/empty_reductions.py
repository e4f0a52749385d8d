"""The value of reductions over no elements: their start value."""
from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence

from tilewright.support.names import NameSupply
from tilewright.tir.accesses import uses_below
from tilewright.tir.arithmetic import all_of, any_of, binary, conjuncts
from tilewright.tir.buffer import Buffer, whole_region
from tilewright.tir.conversion import is_const
from tilewright.tir.equal import structural_equal
from tilewright.tir.expr import Expr, IntImm, Var
from tilewright.tir.iter_var import COMM_REDUCE, IterVar
from tilewright.tir.node import substitute, walk
from tilewright.tir.stmt import (
    SERIAL,
    THREAD_BINDING,
    Allocate,
    Block,
    BlockRealize,
    For,
    IfThenElse,
    PrimFunc,
    Seq,
    Stmt,
    map_sub_statements,
    seq,
)
from tilewright.tir.symbols import fresh_copy


def start_empty_reductions(func: PrimFunc) -> PrimFunc:
    """func with a start of its own for each reduction that may have no elements.

        for i in range(n):                      for i in range(n):
            for k in range(m):                      if m <= 0:
                with block("C"): ...     ->             with block("C_empty"): C[i] = 0
                                                    for k in range(m):
                                                        with block("C"): ...

    A block starts its reduction at the first step, so a reduction of no steps would leave its output as it is
    otherwise. Reductions of a constant extent above 0 stay as they are.

    The start leaves the loops that drive an axis of the reduction, and no other but those whose bounds speak of these:
    it runs for the iterations of the rest, under the conditions that speak of these alone. So the order of loops, and
    how they are cut, does not matter. An output axis whose value speaks of a loop that is left runs over its domain.
    """
    if not any(may_be_empty(n) for n in walk(func.body) if isinstance(n, Block)):
        return func
    return func.with_body(_Starts(func).visit(func.body, ()))


class _Starts:
    """Puts the starts before the outermost loops of the reductions."""

    def __init__(self, func: PrimFunc) -> None:
        self.names = NameSupply([n.name for n in walk(func.body) if isinstance(n, Block)])
        self.done: set[int] = set()                           # the blocks dealt with
        self.threads = _threads_around(func)

    def visit(self, stmt: Stmt, above: tuple[For, ...]) -> Stmt:
        """stmt with the starts of the reductions whose outermost loop is in it."""
        if not isinstance(stmt, For):
            return map_sub_statements(stmt, lambda s: self.visit(s, above))
        starts: list[Stmt] = []
        for realize, between in _reducing(stmt.body, (stmt,)):
            if id(realize) in self.done or not realize.reduces_over(stmt.loop_var):
                continue
            self.done.add(id(realize))
            if may_be_empty(realize.block):
                starts += self._start(realize, between, above)
        new = map_sub_statements(stmt, lambda s: self.visit(s, (*above, stmt)))
        return seq([*starts, new]) if starts else new

    def _start(self, realize: BlockRealize, between: Sequence[For | IfThenElse], above: Sequence[For]) -> list[Stmt]:
        """`if the domain is empty: init`, below what of between does not speak of the reduction's loops.

        [] where loops decide whether it is empty.
        """
        inside = [s for s in between if isinstance(s, For)]
        sizes = [iv.domain.extent for iv in _reductions(realize.block)]
        loop_vars = {loop.loop_var for loop in (*above, *inside)}
        if any(speaks_of(loop_vars, e) for e in sizes):
            return []
        empty = any_of(*[binary("le", e, 0) for e in sizes])
        left = left_by_start(realize, inside)
        shared = {loop.loop_var for loop in inside if loop.kind == THREAD_BINDING and not any(
            self._has_its_own(loop, w.buffer) for w in realize.block.writes)}
        return [_below(empty, _init_nest(realize, between, left, shared, self.names))]

    def _has_its_own(self, loop: For, buffer: Buffer) -> bool:
        """True where each iteration of a loop over threads has a buffer of its own."""
        tag = loop.thread_tag or ""
        if buffer.scope.startswith("global") or tag not in self.threads.get(buffer, ()):
            return False
        return not buffer.scope.startswith("shared") or tag.startswith("blockIdx")


def _threads_around(func: PrimFunc) -> dict[Buffer, frozenset[str]]:
    """The thread axes below which all blocks stand that write or read a buffer."""
    out: dict[Buffer, frozenset[str]] = {}

    def visit(stmt: Stmt, tags: frozenset[str]) -> Stmt:
        if isinstance(stmt, For) and stmt.thread_tag:
            tags |= {stmt.thread_tag}
        if isinstance(stmt, Block):
            for region in (*stmt.reads, *stmt.writes):
                out[region.buffer] = out.get(region.buffer, tags) & tags
        return map_sub_statements(stmt, lambda s: visit(s, tags))
    visit(func.body, frozenset())
    return out


def may_be_empty(block: Block) -> bool:
    """True for a block that starts a reduction which may have no elements."""
    return block.init is not None and any(not _is_positive(iv) for iv in _reductions(block))


def _reductions(block: Block) -> list[IterVar]:
    return [iv for iv in block.iter_vars if iv.iter_type == COMM_REDUCE]


def _is_positive(iv: IterVar) -> bool:
    return iv.dom is None or (isinstance(iv.dom.extent, IntImm) and iv.dom.extent.value > 0)


def _reducing(stmt: Stmt, path: tuple[For | IfThenElse, ...]) -> Iterator[
        tuple[BlockRealize, tuple[For | IfThenElse, ...]]]:
    """The realizations in stmt of blocks with an init, and the loops and conditions down to them, after those of path;
    none inside of other blocks.

    A block whose output is allocated on the way is left out: nothing outside sees it.
    """
    hidden: set[Buffer] = set()
    while isinstance(stmt, Allocate):
        hidden.add(stmt.buffer)
        stmt = stmt.body
    for s in stmt.stmts if isinstance(stmt, Seq) else (stmt,):
        found: Iterable[tuple[BlockRealize, tuple[For | IfThenElse, ...]]] = ()
        if isinstance(s, For):
            found = _reducing(s.body, (*path, s))
        elif isinstance(s, IfThenElse) and s.else_case is None:
            found = _reducing(s.then_case, (*path, s))
        elif isinstance(s, BlockRealize) and s.block.init is not None:
            found = [(s, path)]
        yield from (f for f in found if not any(w.buffer in hidden for w in f[0].block.writes))


def left_by_start(realize: BlockRealize, loops: Sequence[For], more: Container[Var] = ()) -> set[Var]:
    """The variables of the loops that the start of a reduction over nothing leaves: of those that drive the reduction
    or are of `more`, and of those whose bounds speak of one of these."""
    left: set[Var] = set()
    for loop in loops:
        if loop.loop_var in more or realize.reduces_over(loop.loop_var) or any(
                speaks_of(left, e) for e in (loop.min, loop.extent)):
            left.add(loop.loop_var)
    return left


def speaks_of(variables: Container[Var], e: Expr) -> bool:
    """True where one of the variables occurs in e."""
    return any(isinstance(n, Var) and n in variables for n in walk(e))


def _apart_from(variables: Container[Var], condition: Expr) -> list[Expr]:
    """The parts of a condition that do not speak of the variables."""
    return [c for c in conjuncts(condition) if not speaks_of(variables, c)]


def _is_whole_axis(value: Expr, iv: IterVar, loops: Sequence[For]) -> bool:
    """True where one of the loops runs over the domain of an axis that is bound to value, and is that value.

    Others keep to the domain by a condition, or by loops that are not kept.
    """
    return any(value is loop.loop_var and structural_equal(loop.min, iv.domain.min)
               and structural_equal(loop.extent, iv.domain.extent) for loop in loops)


def _init_nest(realize: BlockRealize, between: Sequence[For | IfThenElse], left: set[Var], shared: set[Var],
               names: NameSupply) -> Stmt:
    """The init of a block below what of `between` does not speak of the loops `left`.

    Output axes that these drive run over their domains. shared: the loops over threads that write one buffer. Of
    those that do not tell which elements, one thread starts them.
    """
    block = realize.block
    kept = [s for s in between if isinstance(s, For) and s.loop_var not in left]
    fresh = {loop.loop_var: Var(loop.loop_var.name, loop.loop_var.dtype) for loop in kept}
    telling = {n for iv, value in realize.bound if iv.iter_type != COMM_REDUCE and not speaks_of(left, value)
               for n in walk(value)}
    predicate = _apart_from(left, realize.predicate)
    predicate += [binary("eq", loop.loop_var, loop.min) for loop in kept
                  if loop.loop_var in shared and loop.loop_var not in telling]
    iters, values, own, table = [], [], [], {}
    for iv, value in realize.bound:
        if iv.iter_type == COMM_REDUCE:
            continue
        table[iv.var] = Var(iv.var.name, iv.var.dtype)
        iters.append(IterVar(iv.domain, table[iv.var], iv.iter_type))
        if speaks_of(left, value):
            var = Var(iv.var.name, iv.var.dtype)
            own.append((var, iv.domain.extent))
            values.append(binary("add", iv.domain.min, var))
            continue
        values.append(value)
        if not _is_whole_axis(value, iv, kept):
            predicate += [binary("ge", value, iv.domain.min),
                          binary("lt", value, binary("add", iv.domain.min, iv.domain.extent))]
    assert block.init is not None
    read = dict.fromkeys(use.buffer for use in uses_below(block.init) if use.buffer is not None and use.reads)
    whole = tuple(map(whole_region, read))
    name, writes = names.fresh(f"{block.name}_empty"), tuple(substitute(w, table) for w in block.writes)
    started = Block(name, tuple(iters), whole, writes, substitute(fresh_copy(block.init, names.fresh), table))
    nest: Stmt = BlockRealize(tuple(substitute(v, fresh) for v in values), substitute(all_of(*predicate), fresh),
                              started)
    for var, extent in reversed(own):
        nest = For(var, IntImm(0, var.dtype), extent, SERIAL, nest)
    for outer in reversed(between):
        if isinstance(outer, IfThenElse):
            nest = _below(substitute(all_of(*_apart_from(left, outer.condition)), fresh), nest)
        elif outer.loop_var in fresh:
            bound = outer.kind == THREAD_BINDING
            nest = For(fresh[outer.loop_var], substitute(outer.min, fresh), substitute(outer.extent, fresh),
                       outer.kind if bound else SERIAL, nest, outer.thread_tag)
    return nest


def _below(condition: Expr, stmt: Stmt) -> Stmt:
    return stmt if is_const(condition, 1) else IfThenElse(condition, stmt)
