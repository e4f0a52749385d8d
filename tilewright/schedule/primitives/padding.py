"""Iterations of blocks: a block of padded elements is taken apart."""
from __future__ import annotations

from collections.abc import Mapping, Sequence

from tilewright.arith.analyzer import Analyzer
from tilewright.arith.conditions import NEGATED
from tilewright.arith.linear import linear
from tilewright.schedule.analysis.covering import with_reads
from tilewright.schedule.analysis.dataflow import readers_of, require_stage, require_way_unwritten
from tilewright.schedule.analysis.mixed_radix import bindings
from tilewright.schedule.analysis.ordering import BEFORE, order, require_no_race
from tilewright.schedule.analysis.region import Region
from tilewright.schedule.primitive import primitive
from tilewright.schedule.primitives.block_layout import with_iter_vars
from tilewright.schedule.schedule import Schedule
from tilewright.schedule.state import BlockRV, LoopRV
from tilewright.support.errors import legal, require
from tilewright.tir.arithmetic import all_of, binary, conjuncts, logical_not, maximum, minimum
from tilewright.tir.buffer import Load
from tilewright.tir.conversion import cast
from tilewright.tir.expr import Binary, Call, Expr, IntImm, Not, Select, Var
from tilewright.tir.iter_var import COMM_REDUCE, IterVar, Range
from tilewright.tir.node import statements, substitute, walk
from tilewright.tir.stmt import SERIAL, THREAD_BINDING, Block, BlockRealize, For, Seq, Stmt, Store, seq

Box = dict[Var, tuple[Expr, Expr]]                         # iter var -> (first, end)


@primitive
def decompose_padding(sch: Schedule, block: BlockRV, loop: LoopRV) -> BlockRV:
    """Fill all that a padding block writes with its constant before loop, and let the block copy what is in bounds.

        for i in range(140): P[i] = if_then_else(6 <= i and i < 134, A[i - 6], 0)
    ->
        for i in range(140): P[i] = 0
        for i in range(128): P[i + 6] = A[i]

    loop: one of the loops around block; the fill stands right before it, in copies of it and of the loops from there
    to the block. Variables of the block that a loop of their own drives run over the part in bounds only; the rest of
    the condition becomes the block's predicate. Returns the filling block, called NAME_pad_const.

    Legal when
    - the block does nothing but choose between a value and one that reads no memory, by a condition that reads none;
    - it alone gives its buffer values, each depending on nothing else;
    - all that read the buffer come after the block;
    - what decides whether and where the block runs is not written below loop.
    """
    target, realize = sch.loop(loop), sch.realize(block)
    require(isinstance(block, str) or block.func == loop.func, f"{block} and {loop} are in different functions")
    require_stage(sch, realize)
    name = realize.block.name
    around = sch.index.loops_above(realize)
    require(any(above is target for above in around), f"loop {target.loop_var.name} is not around block {name}", target,
            realize)
    loops = around[next(n for n, above in enumerate(around) if above is target):]
    _require_plain_path(sch, realize, loops)
    condition, inside, outside = _parts(realize)
    for reader in readers_of(sch, realize.block.writes[0].buffer):
        legal(order(sch, sch.index, realize, reader) <= {BEFORE},
              f"block {reader.block.name} reads {realize.block.writes[0].buffer.name} before block {name} has written "
              "it", reader, realize)
    require_way_unwritten(sch, realize, [t.buffer for t in Region(sch, [target]).touches if t.writes], target)
    fill = sch.fresh_block(f"{name}_pad_const")
    filling = _filling(fill, realize, loops, outside)
    copying = _copying(sch, realize, loops, condition, inside)
    _put(sch, target, filling, copying)
    require_no_race(sch, fill)
    require_no_race(sch, name)
    return sch.block_rv(fill)


def _require_plain_path(sch: Schedule, realize: BlockRealize, loops: Sequence[For]) -> None:
    """The loops down to the block can be copied and cut."""
    name = realize.block.name
    path = sch.path_to(realize)
    below = path[next(n for n, s in enumerate(path) if s is loops[0]):-1]
    require(all(isinstance(s, (For, Seq)) for s in below), f"there is a condition around block {name}", realize)
    for loop in loops:
        require(loop.kind != THREAD_BINDING, f"loop {loop.loop_var.name} is bound to {loop.thread_tag}", loop,
                hint="call decompose_padding before bind")


def _parts(realize: BlockRealize) -> tuple[Expr, Expr, Expr]:
    """(condition, value in bounds, constant) of a padding block. Refuses other blocks."""
    block = realize.block
    require(isinstance(block.body, Store) and block.init is None, f"block {block.name} does more than one store",
            realize)
    assert isinstance(block.body, Store)
    value = block.body.value
    found: tuple[Expr, Expr, Expr] | None = None
    if isinstance(value, Call) and value.op == "if_then_else":
        found = value.args[0], value.args[1], value.args[2]
    elif isinstance(value, Select):
        found = value.condition, value.a, value.b
    require(found is not None, f"block {block.name} does not choose between two values", realize,
            hint="it must store if_then_else(in bounds, value, constant)")
    assert found is not None
    condition, a, b = found
    if _reads(b) and not _reads(a):
        condition, a, b = logical_not(condition), b, a
    require(not _reads(b), f"neither value of block {block.name} is free of memory reads", realize)
    require(not _reads(condition), f"the condition of block {block.name} reads memory", realize)
    return condition, a, b


def _reads(e: Expr) -> bool:
    return any(isinstance(n, Load) or isinstance(n, Call) and n.op in ("access_ptr", "call_extern", "call_packed")
               for n in walk(e))


# ---- the two blocks

def _filling(name: str, realize: BlockRealize, loops: Sequence[For], value: Expr) -> Stmt:
    """All iterations of the block, in serial loops of their own, storing value."""
    old = realize.block
    assert isinstance(old.body, Store)
    fresh = {iv.var: Var(iv.var.name, iv.var.dtype) for iv in old.iter_vars}
    body = old.replace(name=name, iter_vars=(), reads=(), body=old.body.replace(value=value), annotations={})
    block = substitute(body, fresh).replace(iter_vars=tuple(iv.replace(var=fresh[iv.var]) for iv in old.iter_vars))
    table: dict[Var, Expr] = {loop.loop_var: Var(loop.loop_var.name, loop.loop_var.dtype) for loop in loops}
    out: Stmt = BlockRealize(tuple(substitute(v, table) for v in realize.iter_values),
                             substitute(realize.predicate, table), block)
    for loop in reversed(loops):
        var = table[loop.loop_var]
        assert isinstance(var, Var)
        out = For(var, substitute(loop.min, table), substitute(loop.extent, table), SERIAL, out)
    return out


def _copying(sch: Schedule, realize: BlockRealize, loops: Sequence[For], condition: Expr, value: Expr) -> Stmt:
    """The first of loops, with the block storing value where condition holds."""
    old = realize.block
    assert isinstance(old.body, Store)
    analyzer = sch.analyzer_at(None)
    box, rest = _in_bounds(old, condition, analyzer)
    own = _own(realize, loops)
    cut = {iv.var: own[iv.var] for iv in old.iter_vars if iv.var in box and iv.var in own}
    iter_vars, table, values, extents = [], {}, [], {}
    for iv, bound in realize.bound:
        if iv.var not in cut:
            iter_vars.append(iv)
            values.append(bound)
            rest += [] if iv.var not in box else [binary("ge", iv.var, box[iv.var][0]),
                                                  binary("lt", iv.var, box[iv.var][1])]
            continue
        first, end = box[iv.var]
        extent = extents[cut[iv.var].loop_var] = analyzer.simplify(maximum(binary("sub", end, first), 0))
        var = Var(iv.var.name, iv.var.dtype)
        iter_vars.append(IterVar(Range(IntImm(0, var.dtype), extent), var, iv.iter_type))
        table[iv.var] = binary("add", var, first)
        values.append(bound)
    body = old.replace(body=old.body.replace(value=value))
    block = with_reads(with_iter_vars(body, tuple(iter_vars), table, analyzer)) if table else with_reads(body)
    at = {v: e if v not in cut else binary("add", e, box[v][0]) for v, e in bindings(realize).items()}
    here = sch.analyzer_at(realize)
    guards = [g for g in (substitute(c, at) for c in rest) if not here.prove(g)]
    new = realize.replace(iter_values=tuple(values), predicate=all_of(realize.predicate, *guards), block=block)
    return _rebuilt(loops[0], realize, new, extents)


def _own(realize: BlockRealize, loops: Sequence[For]) -> dict[Var, For]:
    """The iter vars that a loop of their own drives over their whole domain, and that loop, if it runs nothing else."""
    bounds = [e for loop in loops for e in (loop.min, loop.extent)]
    uses = [n for e in (*realize.iter_values, realize.predicate, *bounds) for n in walk(e)]
    out = {}
    for iv, value in realize.bound:
        loop = next((x for x in loops if x.loop_var is value), None)
        if loop is None or iv.iter_type == COMM_REDUCE or sum(n is value for n in uses) != 1:
            continue
        whole = bool(loop.min.equal(0)) and bool(iv.domain.min.equal(0)) and bool(loop.extent.equal(iv.domain.extent))
        alone = sum(isinstance(s, BlockRealize) for s in statements(loop)) == 1
        if whole and alone:
            out[iv.var] = loop
    return out


def _in_bounds(block: Block, condition: Expr, analyzer: Analyzer) -> tuple[Box, list[Expr]]:
    """(the box of iter vars to which parts of condition limit them, the other parts)."""
    domains = {iv.var: iv.domain for iv in block.iter_vars}
    with analyzer.scope():
        for v, dom in domains.items():
            analyzer.bind(v, dom.min, dom.extent)
        parts = [p for whole in conjuncts(condition) for p in conjuncts(analyzer.simplify(whole))]
    box: Box = {}
    rest: list[Expr] = []
    for part in parts:
        limit = _limit(part, domains)
        if limit is None:
            rest.append(part)
            continue
        var, op, e = limit
        first, end = box.get(var, (domains[var].min, binary("add", domains[var].min, domains[var].extent)))
        box[var] = (maximum(first, e), end) if op == "ge" else (first, minimum(end, e))
    box = {v: (_as_index(a, v, domains[v]), _as_index(b, v, domains[v])) for v, (a, b) in box.items()}
    return {v: (analyzer.simplify(a), analyzer.simplify(maximum(a, b))) for v, (a, b) in box.items()}, rest


def _as_index(e: Expr, var: Var, dom: Range) -> Expr:
    """A bound in the type of var: a wider one is kept in the domain, so that nothing of it is cut off."""
    if e.dtype == var.dtype:
        return e
    end = binary("add", dom.min, dom.extent)
    return cast(var.dtype, minimum(maximum(e, cast(e.dtype, dom.min)), cast(e.dtype, end)))


_FLIPPED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
def _limit(part: Expr, domains: Mapping[Var, Range]) -> tuple[Var, str, Expr] | None:
    """(v, "ge" or "lt", e) for a condition v >= e or v < e on one iter var, e free of them."""
    if isinstance(part, Not) and isinstance(part.a, Binary) and part.a.op in NEGATED:
        part = binary(NEGATED[part.a.op], part.a.a, part.a.b)
    if not isinstance(part, Binary) or part.op not in ("lt", "le", "gt", "ge"):
        return None
    terms, _ = linear(binary("sub", part.a, part.b))
    mine = [(v, k) for v, k in terms.items() if any(n in domains for n in walk(v))]
    if len(mine) != 1 or not isinstance(mine[0][0], Var) or abs(mine[0][1]) != 1:
        return None
    var, k = mine[0]
    assert isinstance(var, Var)
    gap = binary("sub", part.a, part.b)
    op = part.op if k > 0 else _FLIPPED[part.op]
    # k*v + rest op 0, so v op -k*rest
    rest = binary("sub", gap, binary("mul", var, k))
    e = binary("sub", 0, rest) if k > 0 else rest
    if op in ("gt", "le"):
        e = binary("add", e, 1)
    return var, "ge" if op in ("gt", "ge") else "lt", e


def _rebuilt(stmt: Stmt, old: BlockRealize, new: BlockRealize, extents: Mapping[Var, Expr]) -> Stmt:
    """stmt with the realization old replaced, and the loops of `extents` cut."""
    if stmt is old:
        return new
    if isinstance(stmt, For):
        return stmt.replace(extent=extents.get(stmt.loop_var, stmt.extent), body=_rebuilt(stmt.body, old, new, extents))
    return seq([_rebuilt(s, old, new, extents) for s in stmt.stmts]) if isinstance(stmt, Seq) else stmt


def _put(sch: Schedule, target: For, filling: Stmt, copying: Stmt) -> None:
    sch.replace(target, seq([filling, copying]))
