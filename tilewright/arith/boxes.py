"""The smallest box known to hold several accesses of a buffer, one dimension at a time."""
from __future__ import annotations

from collections.abc import Sequence

from tilewright.tir.conversion import const
from tilewright.tir.expr import Binary, Expr, IntImm
from tilewright.tir.iter_var import Range
from tilewright.tir.node import same


def hull(extent: Expr, parts: Sequence[Range | None]) -> Range:
    """The smallest known range that holds the parts; [0, extent) when nothing better is known."""
    if len(parts) == 1 and parts[0] is not None:
        return parts[0]
    whole = Range(IntImm(0, extent.dtype), extent)
    known = [p for p in parts if p is not None]
    if len(known) < len(parts):
        return whole
    if all(same(p.min, known[0].min) and same(p.extent, known[0].extent) for p in known):
        return known[0]
    rest, shifts = [], []
    for p in known:
        base, shift = _with_offset(p.min)
        if not isinstance(p.extent, IntImm):
            return whole
        rest.append(base)
        shifts.append((shift, shift + p.extent.value, p.min))
    if not all(same(rest[0], r) for r in rest):
        return whole
    low, _, first = min(shifts, key=lambda s: s[0])
    return Range(first, const(max(high for _, high, _ in shifts) - low, first.dtype))


def _with_offset(e: Expr) -> tuple[Expr, int]:
    """(rest, c) with e = rest + c for a constant c."""
    total = 0
    while isinstance(e, Binary) and e.op in ("add", "sub"):
        if isinstance(e.b, IntImm):
            total += e.b.value if e.op == "add" else -e.b.value
            e = e.a
        elif isinstance(e.a, IntImm) and e.op == "add":
            total += e.a.value
            e = e.b
        else:
            break
    if isinstance(e, IntImm):
        return IntImm(0, e.dtype), total + e.value
    return e, total
