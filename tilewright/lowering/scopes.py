"""What passes know of a function from outside: its shape variables and its small allocations."""
from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from tilewright.arith.analyzer import Analyzer
from tilewright.tir import dtype as dt
from tilewright.tir.buffer import Buffer, Load
from tilewright.tir.expr import Cast, Expr, IntImm, Var
from tilewright.tir.node import walk
from tilewright.tir.stmt import LetStmt, PrimFunc, Stmt
from tilewright.tir.symbols import free_vars

SMALL_BYTES = 4096          # an allocation of constant size up to this one is meant for registers


def is_small(buffer: Buffer) -> bool:
    """True for an allocation of constant size that registers may hold."""
    size = 1
    for d in buffer.shape:
        if not isinstance(d, IntImm):
            return False
        size *= d.value
    return size * dt.bytes_of(buffer.dtype) <= SMALL_BYTES


def reads_memory(extents: Iterable[Expr]) -> bool:
    """True where memory decides an extent, which may be another one later."""
    return any(isinstance(n, Load) for e in extents for n in walk(e))


def shape_vars(func: PrimFunc) -> list[Var]:
    """The variables in the shapes and strides of the arguments, in order of first appearance."""
    found: dict[Var, None] = {}
    for buffer in func.buffers:
        for e in (*buffer.shape, *buffer.strides):
            found.update(dict.fromkeys(free_vars(e)))
    return list(found)


def size_limit(func: PrimFunc, var: Var) -> int:
    """The largest value of a shape variable: a scalar argument may have any that its type has."""
    return dt.integer_range(var.dtype)[1] if any(var is p for p in func.params) else dt.extent_limit(var.dtype)


def widened_shape_vars(body: Stmt, shapes: Iterable[Var]) -> list[Var]:
    """Variables bound at the top of body to a shape variable in another width."""
    known, out = set(shapes), []
    while isinstance(body, LetStmt):
        value: Expr = body.value
        if isinstance(value, Cast) and isinstance(value.value, Var) and value.value in known:
            out.append(body.var)
        body = body.body
    return out


def analyzer_for(func: PrimFunc, settled: bool = False) -> Analyzer:
    """An Analyzer that knows the shape variables of func to be at least 0, and the most that they can be. settled:
    indices are computed in the types that they have, as from `widen_indices` on.
    """
    analyzer = Analyzer(settled=settled)
    shapes = shape_vars(func)
    for var in (*shapes, *widened_shape_vars(func.body, shapes)):
        analyzer.assume_nonneg(var, size_limit(func, var))
    return analyzer



@contextmanager
def loop_scope(analyzer: Analyzer, var: Var, low: Expr, extent: Expr) -> Iterator[None]:
    """Within the `with`, var is in its range.

    A loop of symbolic extent may run zero times: that it runs is known inside of it only.
    """
    if isinstance(low, IntImm) and isinstance(extent, IntImm):
        analyzer.bind(var, low, extent)
        yield
        return
    with analyzer.scope():
        analyzer.bind(var, low, extent)
        yield
