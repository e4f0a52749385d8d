"""Frees stores into private buffers from guards that every reader of the buffer has as well."""
from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

from tilewright import tir
from tilewright.arith.analyzer import Analyzer
from tilewright.arith.linear import linear, structural_key
from tilewright.lowering.code_size import DIVISIONS
from tilewright.lowering.conditions import guard, is_likely, likely, terms_of
from tilewright.lowering.copying import Copier
from tilewright.lowering.hulls import Hull, is_dense
from tilewright.lowering.scopes import analyzer_for, loop_scope
from tilewright.tir.arithmetic import if_then_else
from tilewright.tir.conversion import const, is_const
from tilewright.tir.node import children, statements, walk
from tilewright.tir.ops import INTRINSICS
from tilewright.tir.shared_work import is_shared
from tilewright.tir.stmt import is_thread_axis
from tilewright.tir.symbols import expressions, free_vars, uses_any

PADDED = "padded"

Key = tuple[Any, ...]              # names a guard as a condition on one element of a buffer


@dataclass
class _Scope:
    """The loads of one buffer: the conditions that hold at each of them, as conditions on the element.

    `lane_dims` are the dimensions along which loads become vectors; `overruns`: one of these may leave its dimension
    in some lane. `threads` are the variables of the threads that
    share the buffer: what a condition on them keeps apart, two threads might write at once without it.
    """
    buffer: tir.Buffer
    threads: set[tir.Var]
    written: set[tir.Var]                  # the pointers to memory that the function writes
    inner: set[tir.Var] = field(default_factory=set)
    common: set[Key] | None = None
    lane_dims: set[int] = field(default_factory=set)
    overruns: bool = False


def relax_private_guards(func: tir.PrimFunc) -> tir.PrimFunc:
    """`if likely(c(i)): P[i] = v`, P allocated, becomes unconditional where all loads of P[i] are under c(i).

    The element P[i] is never read where c(i) is false, so it may hold anything there. A guard on the lanes
    of a vectorised loop moves into the value, which it still protects: `P[i] = if_then_else(likely(c(i)), v,
    0)`; any other one goes only when v reads no memory. Conditions on memory that the function writes stay, since they
    may say something else where P[i] is read; so do those around stores into memory whose pointer a call gets.
    Allocations whose stores fill all lanes that may be loaded are annotated with PADDED: loads from them need no
    predicate. Expects N-dimensional allocations.
    """
    scopes = _find_scopes(func, analyzer_for(func))
    return func.with_body(_Relaxing(scopes, analyzer_for(func))(func.body)) if scopes else func


def _find_scopes(func: tir.PrimFunc, analyzer: Analyzer) -> dict[tir.Buffer, _Scope]:
    scopes: dict[tir.Buffer, _Scope] = {}
    vector_vars: set[tir.Var] = set()
    threads: set[tir.Var] = set()                      # they share memory that is allocated below their loops
    passed_on, written = _passed_on(func.body), _written(func)

    def visit(stmt: tir.Stmt, guards: list[tir.Expr]) -> None:
        for e in expressions(stmt):
            for node, around in _loads(e, guards):
                if node.buffer in scopes:
                    scope = scopes[node.buffer]
                    here = {k for g in around for k in _element_conditions(g, node.indices, scope)}
                    scope.common = here if scope.common is None else scope.common & here
                    lanes = {d for d, i in enumerate(node.indices) if uses_any(i, vector_vars)}
                    scope.lane_dims |= lanes
                    scope.overruns |= not all(_is_inside(analyzer, node, d) for d in lanes)
        match stmt:
            case tir.Allocate(buffer):
                together, inner = (threads, set(threads)) if is_shared(buffer) else (set(), set())
                scopes[buffer] = _Scope(buffer, together, written, inner)
                visit(stmt.body, guards)
                if not scopes[buffer].common or buffer.data in passed_on:
                    del scopes[buffer]
            case tir.For(var) | tir.LetStmt(var):
                for scope in scopes.values():
                    scope.inner.add(var)
                if isinstance(stmt, tir.For) and stmt.kind == tir.VECTORIZED:
                    vector_vars.add(var)
                if isinstance(stmt, tir.For) and is_thread_axis(stmt.thread_tag):
                    threads.add(var)
                with loop_scope(analyzer, var, stmt.min, stmt.extent) if isinstance(stmt, tir.For) else nullcontext():
                    visit(stmt.body, guards)
            case tir.IfThenElse(cond, then, other):
                visit(then, guards + terms_of(cond) if is_likely(cond) else guards)
                if other is not None:
                    visit(other, guards)
            case tir.Seq(stmts):
                for s in stmts:
                    visit(s, guards)
            case _ if hasattr(stmt, "body"):
                visit(stmt.body, guards)

    visit(func.body, [])
    return scopes


def _passed_on(body: tir.Stmt) -> set[tir.Var]:
    """The pointers that calls get: what is behind them may be read, and written, without a Load."""
    out = set()
    for n in walk(body):
        if isinstance(n, tir.Call) and n.op == "access_ptr" and isinstance(n.args[0], tir.Load):
            out.add(n.args[0].buffer.data)
        elif isinstance(n, tir.Var) and n.dtype == "handle":
            out.add(n)
    return out


def _written(func: tir.PrimFunc) -> set[tir.Var]:
    """The pointers to memory that func may write: any of its arguments' where these may overlap."""
    stored = {s.buffer.data for s in statements(func.body) if isinstance(s, tir.Store)}
    overlapping = set() if func.attrs.get("tir.noalias", True) else {b.data for b in func.buffers}
    return _passed_on(func.body) | stored | overlapping


def _loads(e: Any, guards: list[tir.Expr]) -> Iterator[tuple[tir.Load, list[tir.Expr]]]:
    """The loads in an expression, each with the conditions under which it is read: guards, and those of choices."""
    if isinstance(e, tir.Call) and e.op == "if_then_else" and is_likely(e.args[0]):
        condition, held, other = e.args
        yield from _loads(condition, guards)
        yield from _loads(held, guards + terms_of(condition))
        yield from _loads(other, guards)
        return
    if isinstance(e, tir.Load):
        yield e, guards
    for x in children(e):
        yield from _loads(x, guards)


def _is_inside(analyzer: Analyzer, access: tir.Load | tir.Store, d: int) -> bool:
    """True when an index is one of dimension d, whether the conditions around it hold or not."""
    (low, high), extent = analyzer.bounds(access.indices[d]), access.buffer.shape[d]
    return (low is not None and low >= 0 and high is not None
            and isinstance(extent, tir.IntImm) and high < extent.value)


def _element_conditions(cond: tir.Expr, indices: tuple[tir.Expr, ...], scope: _Scope) -> list[Key]:
    """cond as conditions on the element at indices, named without the loops inside the scope."""
    if not isinstance(cond, tir.Binary) or cond.op not in ("lt", "le", "gt", "ge"):
        return []
    if uses_any(cond, scope.threads) or any(isinstance(n, tir.Load) and n.buffer.data in scope.written
                                            for n in walk(cond)):
        return []
    out: list[Key] = []
    if not uses_any(cond, scope.inner):
        out.append((cond.op, structural_key(cond)))
    form, offset = linear(tir.Binary("sub", cond.a, cond.b))
    for d, index in enumerate(indices):
        for sign in (1, -1):
            rest = {structural_key(a): (a, k) for a, k in form.items()}
            terms, start = linear(index)
            for atom, k in terms.items():
                key = structural_key(atom)
                rest[key] = (atom, rest.get(key, (atom, 0))[1] - sign * k)
            left = {key: ak for key, ak in rest.items() if ak[1]}
            if terms and not any(uses_any(a, scope.inner) for a, _ in left.values()):
                residue = frozenset((key, k) for key, (_, k) in left.items())
                out.append((cond.op, d, sign, offset - sign * start, residue))
    return out


def _may_fail(e: tir.Expr) -> bool:
    """True for a condition that reads memory, divides by what may be 0, or calls what has effects."""
    return any(isinstance(n, tir.Load) or isinstance(n, tir.Binary) and n.op in DIVISIONS and not is_const(n.b)
               or isinstance(n, tir.Call) and INTRINSICS[n.op].kind == "effect" for n in walk(e))


class _Relaxing(Copier):
    def __init__(self, scopes: dict[tir.Buffer, _Scope], analyzer: Analyzer) -> None:
        super().__init__()
        self.scopes = scopes
        self.analyzer = analyzer
        self.vector_vars: set[tir.Var] = set()
        self.domains: dict[tir.Var, Hull] = {}             # of loops
        self.guards: list[tir.Expr] = []
        self.around: dict[tir.Buffer, int] = {}            # how many guards stand around an allocation
        self.partial: set[tir.Buffer] = set()              # some store leaves lanes out
        self.begun: set[tir.Buffer] = set()                # some store happens wherever loads do

    def loop(self, s: tir.For) -> tir.Stmt:
        if s.kind == tir.VECTORIZED:
            self.vector_vars.add(s.loop_var)
        self.domains[s.loop_var] = s.min, s.extent
        with loop_scope(self.analyzer, s.loop_var, s.min, s.extent):
            return super().loop(s)

    def allocate(self, s: tir.Allocate) -> tir.Stmt:
        self.around[s.buffer] = len(self.guards)
        new = super().allocate(s)
        scope = self.scopes.get(s.buffer)
        if not isinstance(new, tir.Allocate) or s.buffer not in self.begun - self.partial or scope is None \
                or scope.overruns:
            return new
        return new.replace(annotations={**new.annotations, PADDED: True})

    def store(self, s: tir.Store) -> tir.Stmt:
        scope = self.scopes.get(s.buffer)
        if scope is not None and not self.fills(s, scope):
            self.partial.add(s.buffer)
        if scope is not None and self.happens_for_loads(s, scope):
            self.begun.add(s.buffer)
        return s

    def happens_for_loads(self, s: tir.Store, scope: _Scope) -> bool:
        """True when loads have each guard of the store, so that a vector of lanes that are all off, which is loaded
        where the guards of lanes say something else, has been written too."""
        own, common = self.guards[self.around[s.buffer]:], scope.common or set()
        return all(not common.isdisjoint(_element_conditions(term, s.indices, scope)) for term in own)

    def fills(self, s: tir.Store, scope: _Scope) -> bool:
        """True when the store writes all lanes that loads may touch, under no guard that tells lanes apart."""
        seen: set[tir.Var] = set()
        for d in sorted(scope.lane_dims):
            extent, index = s.buffer.shape[d], s.indices[d]
            own = set(free_vars(index))
            if not isinstance(extent, tir.IntImm) or self.analyzer.bounds(index) != (0, extent.value - 1):
                return False
            if not own <= scope.inner & self.domains.keys() or own & seen or not is_dense(index, self.domains):
                return False
            if not all(isinstance(bound, tir.IntImm) for v in own for bound in self.domains[v]):
                return False                               # such a loop may end early
            seen |= own
        inside = {v for i in s.indices for v in free_vars(i)}
        around = self.vector_vars - scope.inner            # lanes that each have a buffer of their own
        for term in self.guards:
            if uses_any(term, around):
                return False
            dims = {k[1] for k in _element_conditions(term, s.indices, scope) if len(k) > 2}
            if dims & scope.lane_dims or (not dims and uses_any(term, inside)):
                return False
        return True

    def under(self, conditions: list[tir.Expr], body: tir.Stmt) -> tir.Stmt:
        """body, rewritten where conditions hold."""
        self.guards.extend(conditions)
        new = self(body)
        del self.guards[len(self.guards) - len(conditions):]
        return new

    def branch(self, s: tir.IfThenElse) -> tir.Stmt:
        store = s.then_case
        if not (isinstance(store, tir.Store) and s.else_case is None and is_likely(s.condition)
                and store.buffer in self.scopes and self.in_bounds(store)):
            terms = terms_of(s.condition)
            then = self.under(terms, s.then_case)
            return s.replace(then_case=then,
                             else_case=None if s.else_case is None else self.under(terms, s.else_case))
        scope = self.scopes[store.buffer]
        keep: list[tir.Expr] = []
        move: list[tir.Expr] = []
        safe = not any(isinstance(e, tir.Load) for e in walk(store.value))
        for term in terms_of(s.condition):
            relaxed = any(k in (scope.common or ()) for k in _element_conditions(term, store.indices, scope))
            if not relaxed:
                keep.append(term)
            elif not safe:
                (move if uses_any(term, self.vector_vars) else keep).append(term)
        if any(map(_may_fail, keep)):                      # where what is relaxed does not hold
            return s.replace(then_case=self.under(terms_of(s.condition), s.then_case))
        if move:
            other = const(0, store.value.dtype)
            store = store.replace(value=if_then_else(likely(move), store.value, other))
        return guard(likely(keep), self.under(keep, store))

    def in_bounds(self, s: tir.Store) -> bool:
        """True when the element exists whether the guards hold or not."""
        return all(_is_inside(self.analyzer, s, d) for d in range(len(s.indices)))
