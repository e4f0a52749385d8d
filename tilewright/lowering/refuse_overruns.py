"""Refuses accesses that leave their buffer whatever the arguments are."""
from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from typing import Any

from tilewright.arith.linear import linear
from tilewright.lowering.walking import map_stmts
from tilewright.support.errors import LowerError
from tilewright.tir import dtype as dt
from tilewright.tir.arithmetic import binary
from tilewright.tir.buffer import Buffer, Load, lane_room
from tilewright.tir.expr import Binary, Call, Expr, IntImm, Ramp, Var
from tilewright.tir.node import children, substitute, walk
from tilewright.tir.printer import show
from tilewright.tir.stmt import Block, BlockRealize, For, IfThenElse, PrimFunc, Stmt, Store, While
from tilewright.tir.symbols import expressions

Domains = Mapping[Var, tuple[int, int]]                # loop variable -> its first and last value
Access = Load | Store
LAZY = ("if_then_else", "prefetch", "likely")


def refuse_overruns(func: PrimFunc) -> PrimFunc:
    """func itself, or LowerError where an access that is certain to be made is certain to be out of bounds.

    Certain is what stands under no condition, in loops of constant extent, at indices that are affine in their
    variables: those take their least and greatest value. Anything else is left to assert_bounds, to the interpreter and
    to checked builds (TILEWRIGHT_CHECKED=1). Expects loops with N-dimensional buffers.
    """
    _Walk(func).visit(func.body, {}, {})
    return func


def refuse_view_overruns(func: PrimFunc) -> PrimFunc:
    """func itself, or LowerError where refuse_overruns would raise it, for accesses to views (`match_buffer`).

    Expects blocks; once views are what they view, nothing says where they end.
    """
    views = {m.buffer for n in walk(func.body) if isinstance(n, Block) for m in n.match_buffers}
    if views:
        _Walk(func, views).visit(func.body, {}, {})
    return func


class _Walk:
    """The statements that run for certain, with the domains of their loops and what block axes stand for."""

    def __init__(self, func: PrimFunc, only: Container[Buffer] | None = None) -> None:
        self.func, self.only = func, only

    def visit(self, stmt: Stmt, domains: Domains, axes: Mapping[Var, Expr]) -> Stmt:
        if isinstance(stmt, (IfThenElse, While)):
            return stmt
        if isinstance(stmt, BlockRealize):
            if isinstance(stmt.predicate, IntImm) and stmt.predicate.value:
                values = [substitute(e, axes) for e in stmt.iter_values]
                inner = {iv.var: e for iv, e in zip(stmt.block.iter_vars, values, strict=True)}
                self.visit(stmt.block.body, domains, {**axes, **inner})
            return stmt
        if isinstance(stmt, For):
            if not (isinstance(stmt.min, IntImm) and isinstance(stmt.extent, IntImm) and stmt.extent.value > 0):
                return stmt
            low = stmt.min.value
            domains = {**domains, stmt.loop_var: (low, low + stmt.extent.value - 1)}
        for access in accesses_made(stmt):
            if self.only is None or access.buffer in self.only:
                at = tuple(substitute(i, axes) for i in access.indices)
                _require_inside(self.func, stmt, access, at, domains)
        map_stmts(stmt, lambda s: self.visit(s, domains, axes))
        return stmt


def accesses_made(stmt: Stmt) -> Iterator[Access]:
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


def _require_inside(func: PrimFunc, stmt: Stmt, access: Access, indices: tuple[Expr, ...],
                    domains: Domains) -> None:
    buffer, last = access.buffer, len(indices) - 1
    for d, (index, extent) in enumerate(zip(indices, buffer.shape, strict=True)):
        room = lane_room(buffer, indices[:-1]) if isinstance(index, Ramp) else extent
        edges = edges_of(index)
        ends = [_ends(e, domains) for e in edges]
        past = [e[1] for e in (_ends(binary("sub", e, room), domains) for e in edges) if e is not None]
        known = [e for e in ends if e is not None]
        low, high = min((e[0] for e in known), default=0), max((e[1] for e in known), default=0)
        if low >= 0 and max(past, default=-1) < 0:
            continue
        runs = f"is {low}" if low == high else f"runs from {low} to {high}"
        behind = low >= 0 and d == last > 0 and isinstance(index, Ramp)
        limit = f"{max(past) + 1} element(s) behind the end of {buffer.name}" if behind else f"the extent is {extent}"
        at = ", ".join(map(str, access.indices))
        raise LowerError(
            f"{func.name}: {buffer.name}[{at}] is out of bounds: index {d} {runs}, {limit}\n\n{show(func, (stmt,))}",
            "shorten the loop, or guard the access with `if` or T.where")


def edges_of(index: Expr) -> tuple[Expr, ...]:
    """The index, or the first and the last of the lanes of a Ramp; none for other vectors."""
    if isinstance(index, Ramp):
        return index.base, binary("add", index.base, binary("mul", index.stride, index.lanes - 1))
    return (index,) if dt.lanes_of(index.dtype) == 1 else ()


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
