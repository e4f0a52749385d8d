"""Iterations of blocks: their order, and other iteration variables."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tilewright.arith.analyzer import Analyzer
from tilewright.arith.itermap import detect_iter_map
from tilewright.schedule.analysis.dataflow import require_leaf
from tilewright.schedule.analysis.domains import axis_domains
from tilewright.schedule.analysis.legality import require_fixed_bounds
from tilewright.schedule.analysis.region import Region
from tilewright.schedule.index_map import IndexMap, require_counted
from tilewright.schedule.primitive import primitive
from tilewright.schedule.primitives.nest import axis_name
from tilewright.schedule.schedule import Schedule
from tilewright.schedule.state import BlockRV, bind_loop, simpler
from tilewright.support.errors import described, legal, require
from tilewright.tir.buffer import Load
from tilewright.tir.conversion import is_const
from tilewright.tir.expr import Expr, IntImm, Var
from tilewright.tir.iter_var import DATA_PARALLEL, IterVar, Range
from tilewright.tir.node import Node, rewrite, substitute, walk
from tilewright.tir.stmt import SERIAL, Block, BlockRealize, For, Stmt, Store


@primitive
def reorder_block_iter_var(sch: Schedule, block: BlockRV | str, new_order: Sequence[int]) -> None:
    """List the iter vars of a block in another order.

        with block("C"):                             with block("C"):
            vi = axis.spatial(n, i)         ->           vk = axis.reduce(m, k)        # new_order: [1, 0]
            vk = axis.reduce(m, k)                       vi = axis.spatial(n, i)

    new_order: the old places, in the new order. The order decides in which order compute_at, reverse_compute_at and
    cache_* make the loops of a block that they move or copy.

    Legal when new_order has each place once; the iterations run as before.
    """
    realize = sch.realize(block)
    old, count = realize.block, len(realize.block.iter_vars)
    fine = isinstance(new_order, (list, tuple)) and all(type(k) is int for k in new_order)
    require(fine and sorted(new_order) == list(range(count)),
            f"new_order is {described(new_order)}, not a permutation of the {count} iter vars of block {old.name}",
            realize, hint=f"the places are 0 to {count - 1}")
    new = old.replace(iter_vars=tuple(old.iter_vars[k] for k in new_order))
    sch.replace(realize, realize.replace(iter_values=tuple(realize.iter_values[k] for k in new_order), block=new))


def map_as_text(arguments: dict[str, Any]) -> None:
    """index_map as text."""
    rank = len(arguments["sch"].realize(arguments["block"]).block.iter_vars)
    arguments["index_map"] = IndexMap.of(arguments["index_map"], rank)


@primitive(as_text=map_as_text)
def transform_block_layout(sch: Schedule, block: BlockRV, index_map: Callable[..., Any] | str) -> None:
    """Run a block over other iteration variables, which an index map gives, in loops of its own for each of them.

        for i, j in grid(16, 8): B[i, j] = f(i, j)
    ->
        for ax0 in range(128): B[ax0 // 8, ax0 % 8] = f(ax0 // 8, ax0 % 8)     # index_map: lambda i, j: (i * 8 + j,)

    index_map takes the block's iteration variables and gives the new ones, outermost first: sums of multiples, //
    and % by constants. A new variable that is an old one keeps its name; the others are v0, v1, ... The loops are
    new; buffers stay as they are.

    Legal when
    - each loop around the block, up to the first that it does not use, drives exactly one of its iteration variables,
      is serial and holds nothing else;
    - index_map takes the block's domain one to one onto a box, from 0 on, and mixes no reduction with other variables;
    - no iteration depends on another, except through a reduction.
    """
    realize = sch.realize(block)
    require_leaf(sch, realize)
    loops = own_loops(sch, realize)
    old = realize.block
    mapped = IndexMap.of(index_map, len(old.iter_vars))
    require(not mapped.axis_separators, "a separator is no iteration variable", realize)
    axes = [iv.var for iv in old.iter_vars]
    indices = mapped.apply(axes)
    domains = axis_domains(old.iter_vars)
    shown = f"({', '.join(map(str, axes))}) -> ({', '.join(map(str, indices))})"
    analyzer = sch.analyzer_at(None)
    found = detect_iter_map(indices, domains, None, analyzer)
    require(found is not None and found.is_injective, f"the map {shown} has no known inverse", realize,
            hint="build it from axes, //, % by constants, and sums of multiples")
    assert found is not None
    legal(found.is_bijective, f"the map {shown} does not take the domain of block {old.name} onto a box", realize,
          hint="choose divisors that divide the extents")
    for e, (low, _) in zip(indices, found.outputs, strict=True):
        require(is_const(low, 0), f"the new variable {e} starts at {low}, not at 0", realize)
    require_counted([extent for _, extent in found.outputs], [extent for _, extent in domains.values()])
    _require_order_free(sch, loops)
    iter_vars = tuple(_new_axis(old, n, e, extent) for n, (e, (_, extent)) in enumerate(
        zip(indices, found.outputs, strict=True)))
    points = [iv.var for iv in iter_vars]
    values = found.invert(points)
    new = with_iter_vars(old, iter_vars, {v: values.get(v, IntImm(0, v.dtype)) for v in axes}, analyzer)
    sch.replace(loops[0] if loops else realize, _in_loops(new))


def own_loops(sch: Schedule, realize: BlockRealize) -> list[For]:
    """The loops of a block, one for each iter var and over its domain, that run nothing else. Refuses other nests."""
    name, above = realize.block.name, sch.index.loops_above(realize)
    used = {n for value in realize.iter_values for n in walk(value)}
    outside = [n for n, loop in enumerate(above) if loop.loop_var not in used]
    loops = above[outside[-1] + 1:] if outside else above
    require(all(loop.kind == SERIAL and not loop.annotations for loop in loops),
            f"a loop of block {name} is not serial, or is annotated", *loops,
            hint="call this before loops are annotated")
    order = {loop.loop_var: loop for loop in loops}
    for iv, value in realize.bound:
        loop = order.get(value) if isinstance(value, Var) else None
        whole = loop is not None and is_const(loop.min, 0) and is_const(iv.domain.min, 0)
        require(loop is not None and whole and bool(loop.extent.equal(iv.domain.extent)),
                f"{iv.var.name} of block {name} is {value}: no loop runs exactly its domain", realize,
                hint="call this before loops are split, fused or moved")
    require(len(realize.iter_values) == len(loops), f"a loop drives two variables of block {name}", realize)
    nested = all(a.body is b for a, b in zip(loops, [*loops, realize][1:], strict=True))
    always = isinstance(realize.predicate, IntImm) and realize.predicate.value == 1
    require(nested and always, f"the loops of block {name} hold more than the block, or do not always run it", realize)
    return loops


def _require_order_free(sch: Schedule, loops: Sequence[For]) -> None:
    """No iteration of the perfect nest depends on another, but for the steps of a reduction."""
    if not loops:
        return
    require_fixed_bounds(loops)
    region, still = Region(sch, loops), (0,) * len(loops)
    for group in region.by_buffer():
        for k, a in enumerate(group):
            for b in group[k:]:
                free = not (a.writes or b.writes) or region.commutes(a, b)
                legal(free or region.directions(a.access, b.access) <= {still},
                      f"two iterations may touch the same element of {a.buffer.name}, which is written", a.stmt, b.stmt)


def _new_axis(old: Block, n: int, index: Expr, extent: Expr) -> IterVar:
    """The iteration variable number n, with the kind of those that it is made of."""
    made_of = [iv for iv in old.iter_vars if any(x is iv.var for x in walk(index))]
    kinds = {iv.iter_type for iv in made_of}
    require(len(kinds) <= 1, f"{index} mixes a reduction of block {old.name} with other variables")
    name = index.name if isinstance(index, Var) else f"v{n}"
    dtype = index.dtype
    return IterVar(Range(IntImm(0, dtype), extent), Var(name, dtype), kinds.pop() if kinds else DATA_PARALLEL)


def _in_loops(block: Block) -> Stmt:
    """The block in a loop for each iteration variable, in their order."""
    loops = [Var(axis_name(iv), iv.var.dtype) for iv in block.iter_vars]
    out: Stmt = BlockRealize(tuple(loops), IntImm(1, "bool"), block)
    for var, iv in reversed(list(zip(loops, block.iter_vars, strict=True))):
        out = For(var, iv.domain.min, iv.domain.extent, SERIAL, out)
    return out


def with_iter_vars(old: Block, iter_vars: tuple[IterVar, ...], values: Mapping[Var, Expr],
                   analyzer: Analyzer) -> Block:
    """old over other iteration variables, in which the values of its own are given; indices are simplified."""
    with analyzer.scope():
        for iv in iter_vars:
            bind_loop(analyzer, iv.var, iv.domain.min, iv.domain.extent)

        def tidy(n: Node) -> Node | None:
            if isinstance(n, (Load, Store)):
                return n.replace(indices=tuple([simpler(i, analyzer) for i in n.indices]))
            return Range(simpler(n.min, analyzer), simpler(n.extent, analyzer)) if isinstance(n, Range) else None

        return rewrite(substitute(old.replace(iter_vars=()), values), tidy).replace(iter_vars=iter_vars)
