"""The loops around a block that is computed somewhere else: constant extents, and a predicate where they overrun."""
from __future__ import annotations

from collections.abc import Mapping, Sequence

from tilewright.arith.analyzer import Analyzer
from tilewright.schedule.analysis.domains import Interval, domain_bounds, domain_of
from tilewright.tir.arithmetic import all_of, binary
from tilewright.tir.conversion import cast, is_const
from tilewright.tir.expr import Expr, IntImm, Var
from tilewright.tir.iter_var import DATA_PARALLEL, IterVar
from tilewright.tir.stmt import SERIAL, Block, BlockRealize, For, Stmt


def axis_name(iv: IterVar) -> str:
    """The loop's name for an iter var: i for vi, rows for v_rows, ax0 for v0."""
    name = iv.var.name
    if name.startswith("v_") and len(name) > 2:
        return name[2:]
    if name.startswith("v") and name[1:].isdigit():
        return f"ax{name[1:]}"
    return name[1:] if name.startswith("v") and len(name) == 2 else name


def nest(block: Block, domains: Mapping[Var, Interval], analyzer: Analyzer, preserve_unit_loops: bool,
         names: Sequence[str] = ()) -> Stmt:
    """Loops that run block over `domains` (its iter vars' own domains where none is given).

    One loop per iter var, data-parallel ones first, each group in the order of the iter vars; without
    preserve_unit_loops an iter var of extent 1 has no loop. names: of the loops, instead of the iter vars'. Points
    outside an iter var's own domain are left out by the predicate. `analyzer` knows the loops around the new ones, and
    afterwards these as well.
    """
    loops: list[tuple[int, Var, Expr]] = []
    values: list[Expr] = []
    predicate: list[Expr] = []
    for n, iv in enumerate(block.iter_vars):
        low, extent = clipped(iv, domains.get(iv.var), analyzer)
        if isinstance(extent, IntImm) and extent.value == 1 and not preserve_unit_loops:
            value = low
        else:
            var = Var(names[n] if names else axis_name(iv), iv.var.dtype)
            analyzer.bind(var, 0, extent)
            loops.append((iv.iter_type, var, extent))
            value = binary("add", low, var)
        values.append(value)
        predicate += bounds_to_check(iv, value, analyzer)
    body: Stmt = BlockRealize(tuple(values), all_of(*predicate), block)
    ordered = [x for x in loops if x[0] == DATA_PARALLEL] + [x for x in loops if x[0] != DATA_PARALLEL]
    for _, var, extent in reversed(ordered):
        body = For(var, IntImm(0, var.dtype), extent, SERIAL, body)
    return body


def clipped(iv: IterVar, interval: Interval | None, analyzer: Analyzer) -> Interval:
    """interval cut to the domain of iv, as far as that keeps the extent constant; the domain itself for
    None, or when it is empty."""
    low, size = domain_of(iv)
    if interval is None or is_const(size, 0):                      # of nothing no part is needed
        return low, size
    least, extent = (analyzer.simplify(cast(iv.var.dtype, e)) for e in interval)
    end, last = analyzer.simplify(binary("add", low, size)), analyzer.simplify(binary("add", least, extent))
    if analyzer.prove(binary("le", least, low)) and analyzer.prove(binary("ge", last, end)):
        return low, size
    if isinstance(low, IntImm) and isinstance(least, IntImm):
        if isinstance(last, IntImm) and isinstance(end, IntImm):
            first = min(max(low.value, least.value), end.value)
            return IntImm(first, least.dtype), IntImm(max(min(end.value, last.value) - first, 0), least.dtype)
        if least.value < low.value and isinstance(last, IntImm):
            return low, IntImm(max(last.value - low.value, 0), low.dtype)
    return least, extent


def bounds_to_check(iv: IterVar, value: Expr, analyzer: Analyzer) -> list[Expr]:
    """The conditions that keep value in the domain of iv, less those that always hold."""
    low, extent = iv.domain.min, iv.domain.extent
    if isinstance(value, Var) and isinstance(low, IntImm) and isinstance(extent, IntImm):      # most axes
        least, most = analyzer.bounds(value)
        if least is not None and most is not None and low.value <= least and most < low.value + extent.value:
            return []
    return [c for c in domain_bounds(iv, value) if not analyzer.prove(c)]
