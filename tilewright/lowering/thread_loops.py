"""Lets loops bound to one thread axis share the outermost of them."""
from __future__ import annotations

from collections.abc import Mapping

from tilewright.arith.analyzer import Analyzer
from tilewright.lowering.conditions import guard, likely
from tilewright.lowering.copying import specialize
from tilewright.lowering.scopes import analyzer_for
from tilewright.lowering.walking import map_stmts, statements
from tilewright.support.errors import LowerError, with_hint
from tilewright.tir.arithmetic import binary
from tilewright.tir.expr import IntImm
from tilewright.tir.stmt import THREAD_BINDING, For, PrimFunc, Stmt


def unify_thread_loops(func: PrimFunc) -> PrimFunc:
    """No loop bound to a thread axis is inside another one of the same axis: it uses the outer one's variable.

    Where the inner extent is smaller, the other threads are kept out by a guard. Virtual threads are as many axes as
    there are loops. Raises LowerError where the inner extent is larger or cannot be compared.
    """
    if not any(isinstance(s, For) and s.kind == THREAD_BINDING for s in statements(func.body)):
        return func
    return func.with_body(_visit(func.body, {}, analyzer_for(func)))


def _visit(stmt: Stmt, bound: Mapping[str, For], analyzer: Analyzer) -> Stmt:
    if not isinstance(stmt, For) or stmt.kind != THREAD_BINDING or stmt.thread_tag.startswith("vthread"):
        return map_stmts(stmt, lambda s: _visit(s, bound, analyzer))
    outer = bound.get(stmt.thread_tag)
    if outer is None:
        inside = {**bound, stmt.thread_tag: stmt}
        return map_stmts(stmt, lambda s: _visit(s, inside, analyzer))
    index = binary("sub", outer.loop_var, outer.min)
    body = _visit(specialize(stmt.body, {stmt.loop_var: binary("add", stmt.min, index)}), bound, analyzer)
    if analyzer.equal(stmt.extent, outer.extent):
        return body
    if isinstance(stmt.extent, IntImm) and isinstance(outer.extent, IntImm) and stmt.extent.value < outer.extent.value:
        return guard(likely([binary("lt", index, stmt.extent)]), body)
    raise LowerError(with_hint(
        f"loop {stmt.loop_var.name} is bound to {stmt.thread_tag} with extent {stmt.extent}, inside loop "
        f"{outer.loop_var.name} which is bound to it with extent {outer.extent}",
        "give the outer loop the larger extent, or split the inner one by it"))
