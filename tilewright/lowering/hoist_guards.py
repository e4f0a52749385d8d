"""Moves conditions out of the loops that do not change them."""
from __future__ import annotations

from tilewright.arith.linear import structural_key
from tilewright.lowering.conditions import guard, is_likely, likely, terms_of
from tilewright.lowering.walking import map_stmts
from tilewright.tir.arithmetic import all_of
from tilewright.tir.buffer import Load
from tilewright.tir.expr import Call, Expr, Var
from tilewright.tir.node import statements, walk
from tilewright.tir.ops import INTRINSICS
from tilewright.tir.stmt import THREAD_BINDING, Allocate, For, IfThenElse, LetStmt, PrimFunc, Seq, Stmt, seq
from tilewright.tir.symbols import uses_any


def hoist_guards(func: PrimFunc) -> PrimFunc:
    """A conjunct that guards the whole body of a loop and does not change in it stands outside of the loop.

    Conjuncts that all statements of a sequence share stand around the sequence. Conditions that read memory
    or have effects stay where they are.
    """
    if not any(isinstance(s, IfThenElse) for s in statements(func.body)):
        return func
    return func.with_body(_hoist(func.body))


def _hoist(stmt: Stmt) -> Stmt:
    new = map_stmts(stmt, _hoist)
    match new:
        case For(var):
            return new if new.kind == THREAD_BINDING else _out_of(new, {var})
        case LetStmt(var):
            return _out_of(new, {var})
        case Allocate():
            return _out_of(new, set())
        case IfThenElse(cond, IfThenElse(inner, body, None), None):
            return guard(_joined(cond, inner), body)
        case Seq(stmts):
            return _shared(stmts, new)
        case _:
            return new


def _out_of(outer: For | LetStmt | Allocate, changing: set[Var]) -> Stmt:
    body = outer.body
    if not isinstance(body, IfThenElse) or body.else_case is not None:
        return outer
    terms = terms_of(body.condition)
    out = [t for t in terms if not uses_any(t, changing) and is_stable(t)]
    if not out:
        return outer
    kept = [t for t in terms if not any(t is o for o in out)]
    mark = is_likely(body.condition)
    return guard(_and(out, mark), outer.replace(body=guard(_and(kept, mark), body.then_case)))


def _shared(stmts: tuple[Stmt, ...], whole: Stmt) -> Stmt:
    """Neighbours with conjuncts in common are put under one condition."""
    if not all(isinstance(s, IfThenElse) and s.else_case is None for s in stmts) or len(stmts) < 2:
        return whole
    terms = [terms_of(s.condition) for s in stmts]  # type: ignore[attr-defined]
    keys = [{structural_key(t) for t in ts} for ts in terms]
    common = set.intersection(*keys)
    out = [t for t in terms[0] if structural_key(t) in common and is_stable(t)]
    if not out:
        return whole
    taken = {structural_key(t) for t in out}
    inner = []
    for s, ts in zip(stmts, terms, strict=True):
        rest = [t for t in ts if structural_key(t) not in taken]
        inner.append(guard(_and(rest, is_likely(s.condition)), s.then_case))  # type: ignore[attr-defined]
    mark = all(is_likely(s.condition) for s in stmts)  # type: ignore[attr-defined]
    return guard(_and(out, mark), seq(inner))


def is_stable(e: Expr) -> bool:
    """True when e has no effect and reads no memory: it may be evaluated elsewhere, once."""
    return not any(isinstance(n, Load) or (isinstance(n, Call) and INTRINSICS[n.op].kind == "effect")
                   for n in walk(e))


def _and(terms: list[Expr], marked: bool) -> Expr:
    return likely(terms) if marked else all_of(*terms)


def _joined(outer: Expr, inner: Expr) -> Expr:
    return _and(terms_of(outer) + terms_of(inner), is_likely(outer) and is_likely(inner))

