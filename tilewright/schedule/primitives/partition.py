"""Loops: one is cut into consecutive ones, consecutive ones are joined."""
from __future__ import annotations

import functools
from collections.abc import Sequence

from tilewright.schedule.analysis.legality import check_annotated_loops, require_fixed_bounds
from tilewright.schedule.analysis.region import Clash, Region, first_sign
from tilewright.schedule.primitive import primitive
from tilewright.schedule.primitives.loops import integers, require_plain
from tilewright.schedule.primitives.reduction import drop_dead_inits
from tilewright.schedule.schedule import Schedule
from tilewright.schedule.state import LoopRV, bind_loop, substitute_loops
from tilewright.support.errors import legal, require
from tilewright.support.names import NameSupply
from tilewright.tir.arithmetic import binary, maximum
from tilewright.tir.conversion import cast
from tilewright.tir.dtype import integer_range
from tilewright.tir.expr import Expr, IntImm, Var
from tilewright.tir.node import statements, substitute
from tilewright.tir.stmt import SERIAL, For, Seq, Stmt, seq
from tilewright.tir.symbols import fresh_copy


@primitive
def loop_partition(sch: Schedule, loop: LoopRV, factors: Sequence[int | None],
                   preserve_unit_iters: bool = True) -> list[LoopRV]:
    """Cut the range of a loop into consecutive loops of `factors` iterations.

        for i in range(n):                  for i0 in range(2):
            with block("B"): body   ->          with block("B_i0"): body
                                            for i1 in range(2, n):
                                                with block("B_i1"): body        # factors: [2, None]

    At most one factor is None; it is inferred. Iterations that the factors leave over make one more loop at the end.
    Where the extent is not a constant, factors that may be too large are guarded by a condition. With
    preserve_unit_iters=False loops of extent 1 without such a condition do not appear in the bindings of blocks.
    Every part has blocks and loops of its own: handles to the old ones are consumed. Returns the loops.

    Legal when the loop is serial without annotations, the factors are positive and not more than its extent, and no
    parallel loop below is the only one that uses a buffer, of which its iterations have one each.
    """
    old = sch.loop(loop)
    require_plain(old, "loop_partition", "partitioned")
    require_fixed_bounds([old])
    extents, sure = _parts(sch, old, integers(old, factors))
    analyzer = sch.analyzer_at(old, keep_units=True)
    names = sch.block_supply()
    low, end = old.min, binary("add", old.min, old.extent)
    loops: list[For] = []
    for k, extent in enumerate(extents):
        part = sch.fresh_var(f"{old.loop_var.name}{k}", old.loop_var.dtype)
        body = fresh_copy(old.body, functools.partial(_copied_name, names, part.name))
        with analyzer.scope():
            bind_loop(analyzer, part, low, extent)
            inside = binary("lt", part, end)
            guard = None if sure or analyzer.prove(inside) else inside
            unit = not preserve_unit_iters and guard is None and isinstance(extent, IntImm) and extent.value == 1
            body = substitute_loops(body, {old.loop_var: low if unit else part}, analyzer, guard)
        loops.append(For(part, low, extent, SERIAL, body))
        low = analyzer.simplify(binary("add", low, extent))
    sch.replace(old, seq(loops))
    for new in loops:
        drop_dead_inits(sch, new, first=new is loops[0])
    # a buffer that each iteration of a parallel loop had to itself is now used in several loops
    check_annotated_loops(sch, [s.loop_var for new in loops for s in statements(new) if isinstance(s, For)])
    return [LoopRV(new.loop_var, sch.focus) for new in loops]


def _copied_name(names: NameSupply, suffix: str, block: str) -> str:
    return names.fresh(f"{block}_{suffix}")


def _parts(sch: Schedule, old: For, sizes: Sequence[int | None]) -> tuple[list[Expr], bool]:
    """The extents of the parts, and whether they are known to lie in the loop."""
    dtype, analyzer = old.loop_var.dtype, sch.analyzer_at(old)
    known = sum(f or 0 for f in sizes)
    most = integer_range(dtype)[1]
    require(known <= most, f"the factors cover {known} iterations, {dtype} counts {most}", old)
    rest = analyzer.simplify(binary("sub", old.extent, IntImm(known, dtype)))
    fits = not (isinstance(rest, IntImm) and rest.value < (1 if None in sizes else 0))
    require(fits, f"the factors cover {known} iterations, loop {old.loop_var.name} has {old.extent}", old,
            hint="an inferred part has one iteration at least" if None in sizes else "take less")
    sure = analyzer.prove(binary("ge", rest, 0))
    if not sure:
        rest = analyzer.simplify(maximum(rest, IntImm(0, dtype)))
    if None in sizes:
        return [rest if f is None else IntImm(f, dtype) for f in sizes], sure
    left_over = [] if isinstance(rest, IntImm) and rest.value == 0 else [rest]
    return [*(IntImm(int(f or 0), dtype) for f in sizes), *left_over], sure


@primitive
def merge(sch: Schedule, *loops: LoopRV) -> LoopRV:
    """Turn loops of the same extent that stand one after the other into one loop that runs their bodies in turn.

        for i in range(n): A                for i_m in range(n):
        for k in range(n): B        ->          A[i = i_m]
                                                B[k = i_m]

    Where the loops given are the innermost of perfect nests, the nests are merged loop by loop. Returns the new loop,
    the innermost one.

    Legal when the nests stand side by side, all their loops are serial without annotations and have the same extents,
    and no iteration of a later nest comes before an iteration of an earlier one that it depends on.
    """
    require(len(loops) > 1, f"{len(loops)} loop is given; merge takes two or more")
    targets = [sch.loop(rv) for rv in loops]
    for k, loop in enumerate(targets):
        require(loop not in targets[:k], f"loop {loop.loop_var.name} is given twice", loop)
    parent, nests = _nests(sch, targets)
    require_fixed_bounds([loop for nest in nests for loop in nest], [nest[0] for nest in nests])
    first = nests[0]
    analyzer = sch.analyzer_at(first[0], keep_units=True)
    merged = [sch.fresh_var(f"{loop.loop_var.name}_m", loop.loop_var.dtype) for loop in first]
    table: dict[Var, Expr] = {}
    bounds: list[tuple[Expr, Expr]] = []
    for k, (var, loop) in enumerate(zip(merged, first, strict=True)):
        low, extent = substitute(loop.min, table), substitute(loop.extent, table)
        bounds.append((low, extent))
        for other in (nest[k] for nest in nests):
            require_plain(other, "merge", "merged")
            its, size = substitute(other.min, table), substitute(other.extent, table)
            require(analyzer.equal(size, extent),
                    f"loop {loop.loop_var.name} has extent {loop.extent}, and loop {other.loop_var.name} has "
                    f"{other.extent}", loop, other, hint="split them to a common factor first")
            shifted = binary("add", var, analyzer.simplify(binary("sub", its, low)))
            table[other.loop_var] = cast(other.loop_var.dtype, shifted)
        bind_loop(analyzer, var, low, extent)                       # from here on it has iterations
    parts = [substitute_loops(nest[-1].body, table, analyzer) for nest in nests]
    body: Stmt = seq(parts)
    for var, (low, extent) in zip(reversed(merged), reversed(bounds), strict=True):
        body = For(var, low, extent, SERIAL, body)
    at = parent.stmts.index(first[0])
    sch.replace(parent, seq([*parent.stmts[:at], body, *parent.stmts[at + len(nests):]]))
    _check_order(sch, merged, parts)
    return LoopRV(merged[-1], sch.focus)


def _nests(sch: Schedule, targets: Sequence[For]) -> tuple[Seq, list[list[For]]]:
    """The statement that holds the nests, and for each, in program order, its loops down to the one given."""
    paths = [sch.path_to(loop) for loop in targets]
    shared = 0
    while all(len(p) > shared + 1 and p[shared] is paths[0][shared] for p in paths):
        shared += 1
    parent = paths[0][shared - 1]
    tops = [p[shared] for p in paths]
    names = ", ".join(loop.loop_var.name for loop in targets)
    require(isinstance(parent, Seq) and len({id(top) for top in tops}) == len(tops),
            f"loops {names} are not in nests that stand side by side", *targets)
    assert isinstance(parent, Seq)
    paths.sort(key=lambda p: _position(parent, p[shared]))
    nests: list[list[For]] = []
    for path in paths:
        nest = [s for s in path[shared:] if isinstance(s, For)]
        require(len(nest) == len(path) - shared,
                f"loop {nest[-1].loop_var.name} is not the innermost of a perfect nest", nest[-1])
        nests.append(nest)
    depths = [len(nest) for nest in nests]
    require(len(set(depths)) == 1, f"loops {names} are {', '.join(map(str, depths))} loops deep in their nests",
            *targets)
    start = _position(parent, nests[0][0])
    require(all(parent.stmts[start + k] is nest[0] for k, nest in enumerate(nests)),
            f"other statements stand between the nests of loops {names}", *targets,
            hint="compute_at and reverse_compute_at can move them")
    return parent, nests


def _position(parent: Seq, stmt: Stmt) -> int:
    return next(k for k, s in enumerate(parent.stmts) if s is stmt)


def _check_order(sch: Schedule, merged: Sequence[Var], parts: Sequence[Stmt]) -> None:
    """Refuse when an iteration of a part runs before one of an earlier part that it depends on."""
    nest = [sch.index.loops[var] for var in merged]
    region = Region(sch, nest)
    part_of = {id(s): k for k, part in enumerate(parts) for s in statements(part)}
    for group in region.by_buffer():
        for k, a in enumerate(group):
            for b in group[k + 1:]:
                if part_of[id(a.stmt)] == part_of[id(b.stmt)] or not (a.writes or b.writes):
                    continue
                backwards = any(first_sign(v) < 0 for v in region.directions(a.access, b.access))
                clash = Clash(a, b)
                legal(not backwards, f"a later iteration of one loop touches elements of {a.buffer.name} before an "
                      f"earlier one of the other would ({clash.who})", *nest, *clash.at,
                      hint="compute_at moves a producer to where it is needed")
