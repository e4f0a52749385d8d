"""The padding of a buffer whose new layout has more elements than the old one: which it is, and who writes it."""
from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tilewright.arith.analyzer import Analyzer
from tilewright.arith.iterators import IterMap
from tilewright.schedule.analysis.covering import with_reads
from tilewright.schedule.analysis.dataflow import children_of, inputs_of, positions, spatial
from tilewright.schedule.analysis.mixed_radix import bindings
from tilewright.schedule.index_map import IndexMap, PadValue
from tilewright.schedule.primitives.nest import nest
from tilewright.schedule.schedule import Schedule
from tilewright.schedule.state import Index
from tilewright.support.errors import require
from tilewright.tir.arithmetic import all_of, any_of, binary, if_then_else, intrinsic, logical_not
from tilewright.tir.buffer import Buffer, Load, element_region
from tilewright.tir.dtype import is_float
from tilewright.tir.expr import Expr, FloatImm, IntImm, Var
from tilewright.tir.iter_var import IterVar
from tilewright.tir.node import rewrite_top_down, statements, substitute
from tilewright.tir.stmt import PARALLEL, SERIAL, UNROLLED, Block, BlockRealize, Evaluate, For, Stmt, Store, seq


@dataclass(frozen=True)
class Change:
    """A buffer's new layout, and the way back from its indices."""
    old: Buffer
    new: Buffer
    mapped: IndexMap
    axes: tuple[Var, ...]                                  # the old indices
    domains: Mapping[Var, tuple[Expr, Expr]]
    inverse: IterMap | None

    def back(self, points: Sequence[Expr]) -> list[Expr]:
        """The old indices of the element at new ones."""
        assert self.inverse is not None
        table = self.inverse.invert(points)
        return [table.get(v, IntImm(0, v.dtype)) for v in self.axes]

    def used(self, points: Sequence[Expr], old: Sequence[Expr], analyzer: Analyzer) -> list[Expr]:
        """The conditions under which the element at new indices was the one at `old`; none: always."""
        conditions = [c for e, d in zip(old, self.old.shape, strict=True)
                      for c in (binary("ge", e, 0), binary("lt", e, d))]
        conditions += [binary("eq", e, p) for e, p in zip(self.mapped.apply(old), points, strict=True)]
        left: list[Expr] = []
        with analyzer.scope():
            for c in conditions:
                if not analyzer.prove(c):
                    left.append(analyzer.simplify(c))
                    analyzer.assume(c)
        return left


def give_padding(sch: Schedule, before: Index, change: Change, pad: PadValue) -> None:
    """Let pad be written to every element of the new buffer that the old one did not have.

    `before` is the program as it accessed the old buffer; the schedule accesses the new one. A buffer that nothing
    writes is an argument: that its caller has put pad there is assumed.
    """
    iter_vars = tuple(IterVar.over(d, f"v{n}") for n, d in enumerate(change.new.shape))
    points = [iv.var for iv in iter_vars]
    analyzer = sch.analyzer_at(None)
    for v, d in zip(points, change.new.shape, strict=True):
        analyzer.bind(v, 0, d)
    old = change.back(points)
    used = change.used(points, old, analyzer)
    if not used:
        return
    value = pad.apply(points, change.new.dtype)
    writers = [r for r in before.realizes.values() if any(w.buffer is change.old for w in r.block.writes)]
    loops = _own_loops(before, writers[0], change.old) if len(writers) == 1 else None
    if loops is not None:
        _select_in(sch, writers[0], loops, change, iter_vars, old, all_of(*used), value)
    else:
        statement = Store(change.new, value, tuple(points)) if writers else _assumed(
            Load(change.new, tuple(points)), value, analyzer)
        _fill(sch, change, iter_vars, analyzer.simplify(logical_not(all_of(*used))), statement)


# ---- in the block that makes the buffer

def _own_loops(before: Index, realize: BlockRealize, buffer: Buffer) -> list[For] | None:
    """The loops of a block that do nothing but give each element of buffer, once, a value; None for other blocks."""
    block, loops = realize.block, before.loops_above(realize)
    variables = [iv.var for iv in block.iter_vars]
    own = loops[len(loops) - len(variables):]
    if not own or not isinstance(block.body, Store) or block.init is not None or len(block.writes) != 1 or len(
            spatial(block)) != len(variables) or len(own) != len(variables) or block.body.buffer is not buffer:
        return None
    if any(r.buffer is buffer for r in block.reads) or block.match_buffers or block.alloc_buffers:
        return None
    exact = [v for v, iv, d in zip(block.body.indices, block.iter_vars, buffer.shape) if v is iv.var
             and bool(iv.domain.extent.equal(d)) and bool(iv.domain.min.equal(0))]
    bound = [n for n, (loop, value) in enumerate(zip(own, realize.iter_values, strict=True)) if value is loop.loop_var
             and bool(loop.min.equal(0)) and bool(loop.extent.equal(buffer.shape[n]))
             and loop.kind == SERIAL and not loop.annotations] if len(exact) == buffer.ndim == len(own) else []
    nested = all(a.body is b for a, b in zip(own, [*own[1:], realize], strict=True))
    always = isinstance(realize.predicate, IntImm) and realize.predicate.value == 1
    return own if len(bound) == len(own) and nested and always else None


def _select_in(sch: Schedule, realize: BlockRealize, loops: Sequence[For], change: Change,
               iter_vars: tuple[IterVar, ...], old: Sequence[Expr], used: Expr, pad: Expr) -> None:
    """Run the block over the new shape, choosing between its value, for the old indices, and pad."""
    block, store = realize.block, realize.block.body
    assert isinstance(store, Store)
    points = tuple(iv.var for iv in iter_vars)
    table = dict(zip([iv.var for iv in block.iter_vars], old, strict=True))
    value = if_then_else(used, substitute(store.value, table), pad)
    region = element_region(change.new, points)
    new = with_reads(block.replace(iter_vars=iter_vars, writes=(region,), body=Store(change.new, value, points)))
    sch.replace(sch.index.loops[loops[0].loop_var], nest(new, {}, sch.analyzer_at(None), preserve_unit_loops=True))


# ---- in a block of its own

def _assumed(element: Load, pad: Expr, analyzer: Analyzer) -> Evaluate:
    """That an element is pad, or pad is not a number."""
    equal = binary("eq", element, pad)
    finite = not is_float(pad.dtype) or isinstance(pad, FloatImm) and math.isfinite(pad.value)
    return Evaluate(intrinsic("assume", analyzer.simplify(equal if finite else any_of(equal, binary("ne", pad, pad)))))


def _fill(sch: Schedule, change: Change, iter_vars: tuple[IterVar, ...], padding: Expr, statement: Stmt) -> None:
    """Run statement on each element of the padding, before the first use, in the innermost loop around all uses; before
    all loops for an argument.
    """
    region = element_region(change.new, [iv.var for iv in iter_vars])
    reads, writes = ((), (region,)) if isinstance(statement, Store) else ((region,), ())
    block = Block(sch.fresh_block(f"{change.new.name}_pad"), iter_vars, reads, writes, statement)
    given = any(b is change.new for b in sch.func.buffers)
    home = sch.root if given else next(
        r for r in sch.index.realizes.values() if any(b is change.new for b in r.block.alloc_buffers))
    users = [r for r in sch.index.realizes.values() if r is not sch.root and sch.index.scope_of(r) is home and any(
        b is change.new for b in (*inputs_of(sch, r), *(w.buffer for w in r.block.writes)))]
    around: list[For] = [] if given else list(sch.index.loops_above(users[0]))
    for user in users[1:]:
        here = sch.index.loops_above(user)
        around = [a for a, b in zip(around, here) if a is b]
    for loop in around:
        require(loop.kind in (SERIAL, UNROLLED, PARALLEL), f"{change.old.name} is used below the {loop.kind} loop "
                f"{loop.loop_var.name} only, where its padding cannot be written", loop,
                hint=f"call transform_layout before the loop is made {loop.kind}")
    inside: For | Block = around[-1] if around else home.block
    children = children_of(inside)
    at = min(positions(children, users))
    filling = _guarded(nest(block, {}, sch.analyzer_at(None), preserve_unit_loops=True), padding)
    sch.replace(inside, inside.replace(body=seq([*children[:at], filling, *children[at:]])))


def _guarded(filling: Stmt, condition: Expr) -> Stmt:
    """The nest with its block run only under a condition on its iter vars."""
    realize = next(s for s in statements(filling) if isinstance(s, BlockRealize))
    guarded = realize.replace(predicate=substitute(condition, bindings(realize)))
    return rewrite_top_down(filling, lambda n: guarded if n is realize else None)
