"""Refuses accesses that leave their buffer whatever the arguments are."""
from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tilewright.arith.linear import linear
from tilewright.lowering.walking import expressions, map_stmts
from tilewright.support.errors import LowerError, with_hint
from tilewright.tir import dtype as dt
from tilewright.tir.buffer import Load
from tilewright.tir.expr import Binary, Call, Expr, IntImm, Var
from tilewright.tir.node import children
from tilewright.tir.printer import show
from tilewright.tir.stmt import For, IfThenElse, PrimFunc, Stmt, Store, While

Domains = Mapping[Var, tuple[int, int]]                # loop variable -> its first and last value
LAZY = ("if_then_else", "prefetch", "likely")


def refuse_overruns(func: PrimFunc) -> PrimFunc:
    """func itself. Raises LowerError where an access that is certain to be made is certain to be out of bounds.

    Certain is what stands under no condition, in loops of constant extent, at indices that are affine in their
    variables: those take their least and greatest value. Anything else is left to the interpreter and to checked builds
    (TILEWRIGHT_CHECKED=1). Expects loops with N-dimensional buffers.
    """
    def visit(stmt: Stmt, domains: Domains) -> Stmt:
        if isinstance(stmt, (IfThenElse, While)):
            return stmt
        if isinstance(stmt, For):
            if not (isinstance(stmt.min, IntImm) and isinstance(stmt.extent, IntImm) and stmt.extent.value > 0):
                return stmt
            low = stmt.min.value
            domains = {**domains, stmt.loop_var: (low, low + stmt.extent.value - 1)}
        for access in _accesses(stmt):
            _require_inside(func, stmt, access, domains)
        map_stmts(stmt, lambda s: visit(s, domains))
        return stmt

    visit(func.body, {})
    return func


def _accesses(stmt: Stmt) -> Iterator[Any]:
    """The accesses that stmt itself makes whenever it runs."""
    if isinstance(stmt, Store) and stmt.predicate is None:
        yield stmt
    stack: list[Any] = list(expressions(stmt))
    while stack:
        e = stack.pop()
        if isinstance(e, Call) and e.op in LAZY or isinstance(e, Binary) and e.op in ("and", "or"):
            continue
        if isinstance(e, Load) and e.predicate is None:
            yield e
        stack.extend(children(e))


def _require_inside(func: PrimFunc, stmt: Stmt, access: Any, domains: Domains) -> None:
    buffer = access.buffer
    for d, (index, extent) in enumerate(zip(access.indices, buffer.shape, strict=True)):
        if not isinstance(extent, IntImm) or dt.lanes_of(index.dtype) > 1:
            continue
        ends = _ends(index, domains)
        if ends is not None and not (ends[0] >= 0 and ends[1] < extent.value):
            runs = f"is {ends[0]}" if ends[0] == ends[1] else f"runs from {ends[0]} to {ends[1]}"
            at = ", ".join(map(str, access.indices))
            raise LowerError(with_hint(
                f"{func.name}: {buffer.name}[{at}] is out of bounds: index {d} {runs}, the extent is {extent}"
                f"\n\n{show(func, (stmt,))}", "shorten the loop, or guard the access with `if` or T.where"))


def _ends(index: Expr, domains: Domains) -> tuple[int, int] | None:
    """The least and the greatest value of an index that is affine in variables of domains; None for any other."""
    terms, const = linear(index)
    low = high = const
    for atom, k in terms.items():
        if not isinstance(atom, Var) or atom not in domains:
            return None
        first, last = domains[atom]
        low, high = low + min(k * first, k * last), high + max(k * first, k * last)
    return low, high
