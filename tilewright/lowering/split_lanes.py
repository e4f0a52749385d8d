"""Cuts vectorised loops into lengths that registers have: powers of two, none longer than MAX_LANES."""
from __future__ import annotations

from collections.abc import Iterator

from tilewright.lowering.copying import specialize
from tilewright.lowering.walking import map_stmts
from tilewright.tir.arithmetic import binary
from tilewright.tir.expr import IntImm, Var
from tilewright.tir.stmt import SERIAL, VECTORIZED, For, PrimFunc, Stmt, seq

MAX_LANES = 256


def split_lanes(func: PrimFunc) -> PrimFunc:
    """Every vectorised loop of constant extent runs over a power of two of at most MAX_LANES lanes.

    LLVM keeps a vector of another length element by element across basic blocks. The iterations of a vectorised
    loop are independent, so that pieces of it may run one after the other.
    """
    return func.with_body(_visit(func.body))


def _visit(stmt: Stmt) -> Stmt:
    stmt = map_stmts(stmt, _visit)
    if not isinstance(stmt, For) or stmt.kind != VECTORIZED or not isinstance(stmt.extent, IntImm):
        return stmt
    extent = stmt.extent.value
    if extent <= MAX_LANES and extent & (extent - 1) == 0:
        return stmt
    return seq(_pieces(stmt, extent))


def _pieces(loop: For, extent: int) -> Iterator[Stmt]:
    """Loops over loop's iterations, in order: whole vectors of MAX_LANES, then falling powers of two."""
    dtype = loop.loop_var.dtype
    done = 0
    whole = extent // MAX_LANES
    if whole:
        outer = Var(f"{loop.loop_var.name}_o", dtype)
        start = binary("add", loop.min, binary("mul", outer, MAX_LANES)) if whole > 1 else loop.min
        body = _vector(loop, start, MAX_LANES)
        yield For(outer, IntImm(0, dtype), IntImm(whole, dtype), SERIAL, body) if whole > 1 else body
        done = whole * MAX_LANES
    while done < extent:
        lanes = 1 << ((extent - done).bit_length() - 1)
        yield _vector(loop, binary("add", loop.min, done), lanes)
        done += lanes


def _vector(loop: For, start: object, lanes: int) -> Stmt:
    """The iterations start, ..., start + lanes - 1 of loop as one vectorised loop."""
    dtype = loop.loop_var.dtype
    inner = Var(loop.loop_var.name, dtype)
    body = specialize(loop.body, {loop.loop_var: binary("add", start, inner) if lanes > 1 else start}, fresh=True)  # type: ignore[dict-item]
    if lanes == 1:
        return body
    return For(inner, IntImm(0, dtype), IntImm(lanes, dtype), VECTORIZED, body, "", loop.annotations)
