"""Loops: split, fuse, reorder, add_unit_loop."""
from __future__ import annotations

import functools
import math
import operator
from collections.abc import Sequence
from typing import Any

from tilewright.arith.analyzer import Analyzer
from tilewright.schedule.analysis.legality import check_annotated_loops, require_fixed_bounds, reversed_dependence
from tilewright.schedule.analysis.starts import require_known_starts
from tilewright.schedule.primitive import primitive
from tilewright.schedule.schedule import Schedule
from tilewright.schedule.state import BlockRV, LoopRV, bind_loop, simpler, substitute_loops
from tilewright.support.errors import Illegal, described, legal, require
from tilewright.support.names import combined
from tilewright.tir.arithmetic import binary, ceildiv, maximum
from tilewright.tir.conversion import cast, is_const
from tilewright.tir.dtype import integer_range, promote
from tilewright.tir.expr import Expr, IntImm, Var
from tilewright.tir.node import walk
from tilewright.tir.stmt import SERIAL, For, Stmt


@primitive
def split(sch: Schedule, loop: LoopRV, factors: Sequence[int | None], preserve_unit_iters: bool = True,
          names: Sequence[str] | None = None, disable_predication: bool = False) -> list[LoopRV]:
    """Turn one loop into a nest of loops with the extents `factors`, outermost first.

        for i in range(n): body
    ->
        for i_0 in range(f0):
            for i_1 in range(f1):
                body[i = i_0*f1 + i_1], where i_0*f1 + i_1 < n      # no condition when f0*f1 == n

    At most one factor is None; it is inferred, rounding up. With preserve_unit_iters=False loops of extent 1
    do not appear in the bindings of blocks, unless all loops are such. names: of the new loops, instead of i_0, i_1,
    ... disable_predication: there must be no condition. Returns the loops.

    Legal when the loop is serial without annotations, and the factors cover it: f0*f1*... >= n; with
    disable_predication where they are shown to do so exactly.
    """
    old = sch.loop(loop)
    require_plain(old, "split", "split")
    sizes = integers(old, factors)
    require(names is None or isinstance(names, (list, tuple)) and all(isinstance(n, str) for n in names),
            f"names are a list of texts, not {described(names)}", old)
    require(names is None or len(names) == len(sizes), f"{len(sizes)} factors, {len(names or ())} names", old)
    require_fixed_bounds([old])
    analyzer = sch.analyzer_at(old, keep_units=True)
    extents, exact = _extents(sch, old, sizes)
    require(exact or not disable_predication, f"the factors do not divide the extent {old.extent} of loop "
            f"{old.loop_var.name}, so a condition is needed, which disable_predication forbids", old)
    parts = [sch.fresh_var(names[k] if names else f"{old.loop_var.name}_{k}", old.loop_var.dtype)
             for k in range(len(extents))]
    index: Expr = IntImm(0, old.loop_var.dtype)
    units = [not preserve_unit_iters and isinstance(extent, IntImm) and extent.value == 1 for extent in extents]
    if all(units):                               # under a condition, a variable says where a reduction has its steps
        units = [False for _ in units]
    for part, extent, unit in zip(parts, extents, units, strict=True):
        bind_loop(analyzer, part, IntImm(0, part.dtype), extent)
        index = binary("mul", index, extent) if unit else binary("add", binary("mul", index, extent), part)
    guard = None if exact else binary("lt", index, old.extent)
    body = substitute_loops(old.body, {old.loop_var: binary("add", index, old.min)}, analyzer, guard)
    for part, extent in zip(reversed(parts), reversed(extents), strict=True):
        body = For(part, IntImm(0, part.dtype), extent, SERIAL, body)
    sch.replace(old, body)
    return [LoopRV(part, sch.focus) for part in parts]


def integers(loop: For, factors: Sequence[Any]) -> list[int | None]:
    """factors as Python integers; the checks of split and loop_partition that need no arithmetic on the extent."""
    require(isinstance(factors, (list, tuple)) and len(factors) > 0,
            f"factors is {factors!r}, not a list of integers", loop)
    sizes: list[int | None] = []
    for f in factors:
        try:
            sizes.append(None if f is None else operator.index(f))
        except TypeError:
            raise Illegal(f"the factor {f} is not an integer or None", (loop,)) from None
    bad = [f for f in sizes if f is not None and f <= 0]
    require(not bad, f"the factor {bad[0] if bad else 0} is not positive", loop)
    require(sizes.count(None) <= 1, "more than one factor is None", loop, hint="only one can be inferred")
    return sizes


def _extents(sch: Schedule, loop: For, sizes: Sequence[int | None]) -> tuple[list[Expr], bool]:
    """The extents of the parts, and whether their product is the extent of loop for certain."""
    dtype, extent = loop.loop_var.dtype, loop.extent
    known = 1
    for f in sizes:
        known *= 1 if f is None else f
    covered = known
    if None in sizes and isinstance(extent, IntImm):
        covered = -(-extent.value // known) * known
    most = integer_range(dtype)[1]
    require(covered <= most, f"the factors cover {covered} iterations, {dtype} counts {most}", loop)
    analyzer = sch.analyzer_at(loop)
    if None in sizes:
        inferred = analyzer.simplify(ceildiv(extent, IntImm(known, dtype)))
        exact = analyzer.prove(binary("eq", binary("floormod", extent, IntImm(known, dtype)), 0))
        return [inferred if f is None else IntImm(f, dtype) for f in sizes], exact
    total = IntImm(known, dtype)
    legal(analyzer.prove(binary("ge", total, extent)),
          f"the factors cover {known} iterations, loop {loop.loop_var.name} has {extent}", loop,
          hint=f"{[None, *sizes[1:]]} infers the outer factor")
    return [IntImm(int(f or 0), dtype) for f in sizes], analyzer.prove(binary("eq", total, extent))


def require_plain(loop: For, primitive: str, participle: str) -> None:
    """Refuse, in the words of a primitive, a loop that is not serial or has annotations."""
    name = loop.loop_var.name
    kind = f"bound to {loop.thread_tag}" if loop.thread_tag else loop.kind
    require(loop.kind == SERIAL, f"loop {name} is {kind}; only a serial loop can be {participle}", loop,
            hint=f"call {primitive} before the loop is made {kind}")
    require(not loop.annotations, f"loop {name} is annotated with {', '.join(loop.annotations)}", loop,
            hint=f"call {primitive} before annotate, or unannotate first")


@primitive
def fuse(sch: Schedule, *loops: LoopRV, preserve_unit_iters: bool = True, name: str | None = None) -> LoopRV:
    """Turn perfectly nested loops, given outermost first, into one loop over their product.

        for i in range(n):
            for j in range(m): body
    ->
        for i_j_fused in range(n*m): body[i = i_j_fused // m, j = i_j_fused % m]

    name: of the new loop, instead of i_j_fused. Returns the new loop. A loop of one iteration is 0 in the
    bindings of blocks, whatever preserve_unit_iters says (an argument for TVM's scripts).

    Legal when
    - every loop is the whole body of the one before;
    - all are serial, without annotations;
    - no extent depends on the variable of another;
    - a loop that may have no iterations and reduces is not fused with one that leaves outputs out, one of several loops
      that drive an output axis together, or one that drives none and may have no iterations, either.
    """
    require(len(loops) > 0, "there is no loop to fuse")
    require(name is None or isinstance(name, str), f"the name of a loop is a text, not {described(name)}")
    nest = [sch.loop(rv) for rv in loops]
    for loop in nest:
        require_plain(loop, "fuse", "fused")
    for outer, inner in zip(nest, nest[1:], strict=False):
        require(outer.body is inner,
                f"loop {inner.loop_var.name} is not the whole body of loop {outer.loop_var.name}",
                outer, inner, hint="loops are fused outermost first; reorder can bring them together")
    _require_rectangular(nest, "fused")
    require_fixed_bounds(nest)
    require_known_starts(sch, nest)
    return _fuse(sch, nest, name)


def _fuse(sch: Schedule, nest: Sequence[For], name: str | None) -> LoopRV:
    dtype = functools.reduce(promote, [loop.loop_var.dtype for loop in nest])
    count = math.prod(loop.extent.value for loop in nest if isinstance(loop.extent, IntImm))
    require(count < 1 << 63, f"the loops have {count} iterations together, more than 64 bits count", nest[0])
    if count > integer_range(dtype)[1]:
        dtype = "int64"
    fused = sch.fresh_var(name or combined("_".join(loop.loop_var.name for loop in nest) + "_fused"), dtype)
    analyzer = sch.analyzer_at(nest[0], keep_units=True)
    total = _product([cast(dtype, loop.extent) for loop in nest], analyzer)
    bind_loop(analyzer, fused, IntImm(0, dtype), total)
    table: dict[Var, Expr] = {}
    rest: Expr = fused
    empty = any(is_const(loop.extent, 0) for loop in nest)
    longer = not all(is_const(loop.extent, 1) for loop in nest)
    for k, loop in reversed(list(enumerate(nest))):
        if longer and is_const(loop.extent, 1):
            table[loop.loop_var] = loop.min
            continue
        if empty:                                   # no iteration runs, and n // 0 is none: fused says what it drives
            table[loop.loop_var] = binary("add", cast(loop.loop_var.dtype, fused), loop.min)
            continue
        value = binary("floormod", rest, loop.extent) if k else rest
        table[loop.loop_var] = binary("add", cast(loop.loop_var.dtype, simpler(value, analyzer)), loop.min)
        rest = binary("floordiv", rest, loop.extent)
    body = substitute_loops(nest[-1].body, table, analyzer)
    sch.replace(nest[0], For(fused, IntImm(0, dtype), total, SERIAL, body))
    return LoopRV(fused, sch.focus)


def _product(extents: Sequence[Expr], analyzer: Analyzer) -> Expr:
    """The number of iterations of a nest: none where an extent is below 0, though the product of two such is above."""
    below = [e for e in extents if not (e.value >= 0 if isinstance(e, IntImm) else analyzer.prove(binary("ge", e, 0)))]
    parts = [maximum(e, IntImm(0, e.dtype)) if any(e is x for x in below[1:]) else e for e in extents]
    return analyzer.simplify(functools.reduce(lambda a, b: binary("mul", a, b), parts))


def _require_rectangular(nest: Sequence[For], participle: str) -> None:
    variables = {loop.loop_var for loop in nest}
    for loop in nest:
        used = [n for e in (loop.min, loop.extent) for n in walk(e) if isinstance(n, Var) and n in variables]
        other = used[0].name if used else ""
        require(not used, f"the bounds of loop {loop.loop_var.name} depend on loop {other}, "
                f"so they cannot be {participle}", loop)


@primitive
def reorder(sch: Schedule, *ordered_loops: LoopRV) -> None:
    """Put loops of one nest in the given order, outermost first; loops that are not named keep their places.

        for i in range(n):                 for j in range(m):
            for j in range(m): body   ->       for i in range(n): body         # reorder(j, i)

    The updates of one reduction may change order as long as none passes the one that starts it; so may uses of buffers
    that live in one iteration only.

    Legal when
    - the loops from the outermost named to the innermost named are perfectly nested;
    - no bound of one depends on another;
    - every dependence still points forwards.
    """
    require(len(ordered_loops) > 0, "there is no loop to reorder")
    named = [sch.loop(rv) for rv in ordered_loops]
    for k, loop in enumerate(named):
        require(loop not in named[:k], f"loop {loop.loop_var.name} is given twice", loop)
    nest = _chain(sch, named)
    order = iter(named)
    wanted = [next(order) if loop in named else loop for loop in nest]
    if wanted == nest:
        return
    _require_rectangular(nest, "reordered")
    require_fixed_bounds(nest)
    clash = reversed_dependence(sch, nest, wanted)
    if clash is not None:
        names = ", ".join(loop.loop_var.name for loop in wanted)
        legal(False, f"the order {names} breaks a dependence of {clash.who} on {clash.a.buffer.name}",
              *clash.at, hint="iterations that depend on each other must keep their order")
    body: Stmt = nest[-1].body
    for loop in reversed(wanted):
        body = loop.replace(body=body)
    sch.replace(nest[0], body)
    check_annotated_loops(sch, [loop.loop_var for loop in wanted])


def _chain(sch: Schedule, named: Sequence[For]) -> list[For]:
    """The loops from the outermost of named to the innermost, which must be perfectly nested."""
    inner = max(named, key=lambda loop: len(sch.path_to(loop)))
    path = sch.path_to(inner)
    outside = [loop for loop in named if not any(p is loop for p in path)]
    require(not outside, f"loops {inner.loop_var.name} and {outside[0].loop_var.name if outside else ''} "
            "are not nested in one another", inner, *outside)
    first = min(next(k for k, p in enumerate(path) if p is loop) for loop in named)
    nest: list[For] = []
    for stmt in path[first:]:
        if not isinstance(stmt, For):
            outer, name = nest[-1].loop_var.name, inner.loop_var.name
            raise Illegal(f"loop {outer} holds more than the loop down to {name}, so they are not perfectly nested",
                          (nest[-1], inner), "reorder before compute_at and decompose_reduction put statements there")
        nest.append(stmt)
    return nest


@primitive
def add_unit_loop(sch: Schedule, block_or_loop: BlockRV | LoopRV) -> LoopRV:
    """Put a loop of one iteration around a block or loop.

        with block("C"): ...        ->      for u in range(1):
                                                with block("C"): ...

    Returns the new loop, which can be bound, or be the place of a compute_at.

    Legal when the block is not the root block.
    """
    old: Stmt = sch.loop(block_or_loop) if isinstance(block_or_loop, LoopRV) else sch.realize(block_or_loop)
    require(old is not sch.root, "the root block has no loops", hint="name a block inside it")
    var = Var("u", "int32")
    sch.replace(old, For(var, IntImm(0), IntImm(1), SERIAL, old))
    return LoopRV(var, sch.focus)
