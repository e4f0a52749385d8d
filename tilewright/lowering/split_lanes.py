"""Cuts vectorised loops into lengths that registers have: powers of two, none longer than a limit."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeGuard

from tilewright.arith.value_laws import VALUES
from tilewright.lowering.affine import relax
from tilewright.lowering.conditions import guard, is_likely, likely, terms_of
from tilewright.lowering.copying import specialize
from tilewright.lowering.hoist_guards import is_stable
from tilewright.lowering.options import PassOptions
from tilewright.lowering.walking import map_stmts
from tilewright.support.target import Target
from tilewright.tir import dtype as dt
from tilewright.tir.arithmetic import binary
from tilewright.tir.buffer import Load
from tilewright.tir.expr import Call, Expr, IntImm, Var
from tilewright.tir.node import Node, rewrite, same, walk
from tilewright.tir.stmt import SERIAL, UNROLLED, VECTORIZED, For, IfThenElse, PrimFunc, Seq, Stmt, Store, seq
from tilewright.tir.symbols import free_vars, uses_any

MAX_LANES = 256


def split_lanes(func: PrimFunc, options: PassOptions | None = None, target: Target | None = None) -> PrimFunc:
    """Every vectorised loop of constant extent runs over a power of two of at most MAX_LANES lanes.

    LLVM keeps a vector of another length element by element across basic blocks. The iterations of a vectorised
    loop are independent, so that pieces of it may run one after the other. Where guards say which lanes have an effect,
    pieces fill a register, and those without such a lane are left out.
    """
    return func.with_body(_visit(func.body, lambda loop: MAX_LANES, target))


def split_lanes_by_registers(func: PrimFunc, options: PassOptions, target: Target) -> PrimFunc:
    """Every vectorised loop of constant extent runs over a power of two of lanes, whose widest values fill a register.

    Compilers of C keep longer vectors in memory.
    """
    return func.with_body(_visit(func.body, lambda loop: _register(loop, target), target))


def _register(loop: For, target: Target) -> int:
    """The lanes of a register of the widest values of a loop."""
    sizes = [dt.bytes_of(dt.element_of(n.dtype)) for n in walk(loop.body) if isinstance(n, Load)]
    sizes += [dt.bytes_of(dt.element_of(n.value.dtype)) for n in walk(loop.body) if isinstance(n, Store)]
    return max(1, target.vector_bytes // max([1, *sizes]))


def _visit(stmt: Stmt, most: Callable[[For], int], target: Target | None) -> Stmt:
    stmt = map_stmts(stmt, lambda s: _visit(s, most, target))
    if not isinstance(stmt, For) or stmt.kind != VECTORIZED or not isinstance(stmt.extent, IntImm):
        return stmt
    extent, lanes = stmt.extent.value, most(stmt)
    if target is not None and extent > (register := _register(stmt, target)) and may_be_idle(stmt):
        lanes = register
    if extent <= lanes and extent & (extent - 1) == 0:
        return stmt
    return seq(_pieces(stmt, extent, lanes))


def may_be_idle(loop: For) -> bool:
    """True for a loop whose guards, known when it runs, may leave it without an effect in many lanes."""
    return any(free_vars(t) for t in some_lane(loop))


def some_lane(loop: For) -> list[Expr]:
    """Conditions without any of which no lane has an effect."""
    found = (relax(t, [loop], False) for t in needed(loop.body) if uses_any(t, {loop.loop_var}) and is_stable(t))
    return [t for t in found if t is not None]


def needed(stmt: Stmt) -> list[Expr]:
    """Guards without any of which a statement has no effect."""
    match stmt:
        case IfThenElse(cond, then, None) if is_likely(cond):
            return [*terms_of(cond), *needed(then)]
        case Store():
            choice = next((n for n in walk(stmt.value) if _is_guarded(n)), None)
            return terms_of(choice.args[0]) if choice is not None and _keeps(stmt, choice.args[0]) else []
        case Seq((_, *_) as stmts):
            first, *rest = map(needed, stmts)
            return [t for t in first if all(any(same(t, u) for u in other) for other in rest)]
        case _:
            return []


def _keeps(s: Store, cond: Expr) -> bool:
    """True for a store that leaves its element as it is where a condition does not hold: nothing is added, say."""
    value = rewrite(s.value, lambda n: n.args[2] if _is_guarded(n) and same(n.args[0], cond) else None)
    return s.predicate is None and same(VALUES.rewrite(value), Load(s.buffer, s.indices))


def _is_guarded(n: Node) -> TypeGuard[Call]:
    return isinstance(n, Call) and n.op == "if_then_else" and is_likely(n.args[0])


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
    piece = For(inner, IntImm(0, dtype), IntImm(lanes, dtype), VECTORIZED, body, "", loop.annotations)
    return guard(likely(some_lane(piece)), piece) if may_be_idle(loop) else piece
