"""Cuts vectorised loops into lengths that registers have: powers of two, none longer than a limit."""
from __future__ import annotations

from collections.abc import Callable, Iterator

from tilewright.lowering.copying import specialize
from tilewright.lowering.options import PassOptions
from tilewright.lowering.walking import map_stmts
from tilewright.support.target import Target
from tilewright.tir import dtype as dt
from tilewright.tir.arithmetic import binary
from tilewright.tir.buffer import Load
from tilewright.tir.expr import IntImm, Var
from tilewright.tir.node import walk
from tilewright.tir.stmt import SERIAL, UNROLLED, VECTORIZED, For, PrimFunc, Stmt, Store, seq

MAX_LANES = 256


def split_lanes(func: PrimFunc) -> PrimFunc:
    """Every vectorised loop of constant extent runs over a power of two of at most MAX_LANES lanes.

    LLVM keeps a vector of another length element by element across basic blocks. The iterations of a vectorised
    loop are independent, so that pieces of it may run one after the other.
    """
    return func.with_body(_visit(func.body, lambda loop: MAX_LANES))


def split_lanes_by_registers(func: PrimFunc, options: PassOptions, target: Target) -> PrimFunc:
    """Every vectorised loop of constant extent runs over a power of two of lanes, whose widest values fill a register.

    Compilers of C keep longer vectors in memory.
    """
    def most(loop: For) -> int:
        sizes = [dt.bytes_of(dt.element_of(n.dtype)) for n in walk(loop.body) if isinstance(n, Load)]
        sizes += [dt.bytes_of(dt.element_of(n.value.dtype)) for n in walk(loop.body) if isinstance(n, Store)]
        return max(1, target.vector_bytes // max([1, *sizes]))
    return func.with_body(_visit(func.body, most))


def _visit(stmt: Stmt, most: Callable[[For], int]) -> Stmt:
    stmt = map_stmts(stmt, lambda s: _visit(s, most))
    if not isinstance(stmt, For) or stmt.kind != VECTORIZED or not isinstance(stmt.extent, IntImm):
        return stmt
    extent, lanes = stmt.extent.value, most(stmt)
    if extent <= lanes and extent & (extent - 1) == 0:
        return stmt
    return seq(_pieces(stmt, extent, lanes))


def _pieces(loop: For, extent: int, most: int) -> Iterator[Stmt]:
    """Loops over loop's iterations, in order: whole vectors of the most lanes, then falling powers of two."""
    dtype = loop.loop_var.dtype
    done = 0
    whole = extent // most
    if whole:
        outer = Var(f"{loop.loop_var.name}_o", dtype)
        start = binary("add", loop.min, binary("mul", outer, most)) if whole > 1 else loop.min
        body = _vector(loop, start, most)
        kind = SERIAL if most == MAX_LANES or whole > 16 else UNROLLED
        yield For(outer, IntImm(0, dtype), IntImm(whole, dtype), kind, body) if whole > 1 else body
        done = whole * most
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
