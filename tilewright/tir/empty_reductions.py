"""The value of reductions over no elements: their start value."""
from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from tilewright.support.names import NameSupply
from tilewright.tir.accesses import uses_below
from tilewright.tir.arithmetic import all_of, any_of, binary, conjuncts
from tilewright.tir.buffer import Buffer, whole_region
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
        for realize, between in _reducing(stmt, (stmt,)):
            if id(realize) in self.done or not (never_runs(stmt) or realize.reduces_over(stmt.loop_var)):
                continue
            self.done.add(id(realize))
            if may_be_empty(realize.block):
                starts += self._start(realize, between, {loop.loop_var for loop in (*above, *between)})
        new = map_sub_statements(stmt, lambda s: self.visit(s, (*above, stmt)))
        return seq([*starts, new]) if starts else new

    def _start(self, realize: BlockRealize, between: Sequence[For], loop_vars: set[Var]) -> list[Stmt]:
        """`if the domain is empty: init`, below the loops of between that drive output axes alone.

        [] where loops decide whether it is empty.
        """
        sizes = [iv.domain.extent for iv in _reductions(realize.block)]
        if any(n in loop_vars for e in sizes for n in walk(e)):
            return []
        empty = any_of(*[binary("le", e, 0) for e in sizes])
        driving = {loop.loop_var for loop in between if never_runs(loop) or realize.reduces_over(loop.loop_var)}
        kept = [loop for loop in between if loop.loop_var not in driving
                and not any(n in driving for e in (loop.min, loop.extent) for n in walk(e))]
        never = any(never_runs(loop) for loop in between)
        around = loop_vars - {loop.loop_var for loop in between} if never else None
        shared = [loop.loop_var for loop in kept if not any(self._has_its_own(loop, w.buffer)
                                                            for w in realize.block.writes)]
        nest = _init_nest(realize, kept, {loop.loop_var for loop in between}, around, shared, self.names)
        return [nest if isinstance(empty, IntImm) else IfThenElse(empty, nest)]

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


def _reducing(stmt: Stmt, loops: tuple[For, ...]) -> Iterator[tuple[BlockRealize, tuple[For, ...]]]:
    """The realizations below stmt of blocks with an init, and the loops down to them; none inside of other blocks.

    A block whose output is allocated on the way is left out: nothing outside sees it.
    """
    hidden: set[Buffer] = set()
    body = stmt.body if isinstance(stmt, For) else stmt
    while isinstance(body, Allocate):
        hidden.add(body.buffer)
        body = body.body
    for s in body.stmts if isinstance(body, Seq) else (body,):
        found: Iterable[tuple[BlockRealize, tuple[For, ...]]] = ()
        if isinstance(s, For):
            found = _reducing(s, (*loops, s))
        elif isinstance(s, BlockRealize) and s.block.init is not None:
            found = [(s, loops)]
        yield from (f for f in found if not any(w.buffer in hidden for w in f[0].block.writes))


def never_runs(loop: For) -> bool:
    """True for a loop of no iterations, which need not be said by the axes that it drove."""
    return isinstance(loop.extent, IntImm) and loop.extent.value <= 0


def _is_whole_axis(value: Expr, iv: IterVar, loops: Sequence[For]) -> bool:
    """True where one of the loops runs over the domain of an axis that is bound to value, and is that value.

    Others keep to the domain by a condition, or by loops that are not kept.
    """
    return any(value is loop.loop_var and structural_equal(loop.min, iv.domain.min)
               and structural_equal(loop.extent, iv.domain.extent) for loop in loops)


def _init_nest(realize: BlockRealize, kept: Sequence[For], inside: set[Var], around: set[Var] | None,
               shared: Sequence[Var], names: NameSupply) -> Stmt:
    """The init of a block for the output points that the loops `kept` drive; other axes run over their domains.

    around: the loops outside, where some of the loops `inside` has no iterations. Then only what an axis is bound to
    in terms of these, or a loop over the whole of its domain, tells which outputs there are: fuse gives loops that
    never run any value. shared: the loops of kept whose iterations write one buffer.
    """
    block = realize.block
    lost = {iv.var for iv, value in realize.bound if around is not None and not any(n in around for n in walk(value))
            and not _is_whole_axis(value, iv, kept)}
    if around is not None:
        needed = {n for iv, value in realize.bound if iv.var not in lost for n in walk(value)}
        kept = [loop for loop in kept if loop.loop_var in needed or loop.kind == THREAD_BINDING]
    fresh = {loop.loop_var: Var(loop.loop_var.name, loop.loop_var.dtype) for loop in kept}
    dropped = inside - set(fresh)
    iters, values, own, table = [], [], [], {}
    predicate = [c for c in conjuncts(realize.predicate) if not any(n in dropped for n in walk(c))]
    if around is not None:                               # of the threads that share the output, one starts it
        predicate += [binary("eq", loop.loop_var, loop.min) for loop in kept if loop.loop_var not in needed
                      and loop.loop_var in shared]
    for iv, value in realize.bound:
        if iv.iter_type == COMM_REDUCE:
            continue
        table[iv.var] = Var(iv.var.name, iv.var.dtype)
        iters.append(IterVar(iv.domain, table[iv.var], iv.iter_type))
        if iv.var in lost or any(n in dropped for n in walk(value)):
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
    for loop in reversed(kept):
        bound = loop.kind == THREAD_BINDING
        nest = For(fresh[loop.loop_var], substitute(loop.min, fresh), substitute(loop.extent, fresh),
                   loop.kind if bound else SERIAL, nest, loop.thread_tag)
    return nest
