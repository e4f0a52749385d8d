"""Shrinks every allocation to the region that is used inside it."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tilewright.arith.analyzer import Analyzer
from tilewright.arith.linear import linear
from tilewright.arith.regions import interval_of, union
from tilewright.lower.copying import Copier, expressions, free_vars, statements, uses_any
from tilewright.lower.scopes import analyzer_for, is_small
from tilewright.tir.buffer import Buffer, Load
from tilewright.tir.expr import Expr, IntImm, Var, binary
from tilewright.tir.node import walk
from tilewright.tir.stmt import Allocate, For, LetStmt, PrimFunc, Stmt, Store

Box = list[tuple[Expr, Expr]]                          # (min, extent) per dimension


@dataclass
class _Use:
    """The accesses below an allocation, and what is defined there."""
    indices: list[tuple[Expr, ...]] = field(default_factory=list)
    domains: dict[Var, tuple[Expr, Expr]] = field(default_factory=dict)
    lets: set[Var] = field(default_factory=set)
    escapes: bool = False                              # the pointer itself is passed on


def compact_buffers(func: PrimFunc) -> PrimFunc:
    """Each allocation has, per dimension, the constant extent of the hull of its accesses where there is one.

    Accesses are shifted by the hull's minimum, which may depend on the loops outside of the allocation.
    Dimensions with a hull of symbolic extent, of data-dependent indices, or of explicit strides stay as
    they are. Guards do not narrow the hull: a register tile at the edge of a tensor is as large as the
    others. A larger buffer never grows.
    """
    if not any(isinstance(s, Allocate) for s in statements(func.body)):
        return func
    return func.with_body(_Compaction(analyzer_for(func))(func.body))


class _Compaction(Copier):
    def __init__(self, analyzer: Analyzer) -> None:
        super().__init__()
        self.analyzer = analyzer
        self.origin: dict[Buffer, tuple[Expr | None, ...]] = {}

    def loop(self, s: For) -> Stmt:
        self.analyzer.bind(s.loop_var, s.min, s.extent)
        return super().loop(s)

    def allocate(self, s: Allocate) -> Stmt:
        use = _survey(s)
        if not s.buffer.strides and not use.escapes and use.indices:
            box = _box(s.buffer, use, self.analyzer)
            if any(b is not None for b in box):
                shape = tuple(old if b is None else b[1] for old, b in zip(s.buffer.shape, box, strict=True))
                self.buffers[s.buffer] = s.buffer.replace(shape=shape)
                self.origin[s.buffer] = tuple(None if b is None else b[0] for b in box)
        return super().allocate(s)

    def shifted(self, buffer: Buffer, indices: Sequence[Expr]) -> tuple[Expr, ...]:
        return tuple([i if low is None else self.analyzer.simplify(binary("sub", i, low))
                      for i, low in zip(indices, self.origin[buffer], strict=True)])

    def load(self, e: Load) -> Expr:
        if e.buffer not in self.origin:
            return super().load(e)
        indices = self.shifted(e.buffer, [self(i) for i in e.indices])
        return Load(self.buffers[e.buffer], indices, None if e.predicate is None else self(e.predicate))

    def store(self, s: Store) -> Stmt:
        if s.buffer not in self.origin:
            return super().store(s)
        indices = self.shifted(s.buffer, [self(i) for i in s.indices])
        return Store(self.buffers[s.buffer], self(s.value), indices,
                     None if s.predicate is None else self(s.predicate))


def _survey(s: Allocate) -> _Use:
    use, data = _Use(), s.buffer.data
    for stmt in statements(s.body):
        if isinstance(stmt, For):
            use.domains[stmt.loop_var] = (stmt.min, stmt.extent)
        elif isinstance(stmt, LetStmt):
            use.lets.add(stmt.var)
        elif isinstance(stmt, Store) and stmt.buffer is s.buffer:
            use.indices.append(stmt.indices)
        for e in expressions(stmt):
            for node in walk(e):
                if isinstance(node, Load) and node.buffer is s.buffer:
                    use.indices.append(node.indices)
                elif node is data:
                    use.escapes = True
    return use


def _box(buffer: Buffer, use: _Use, analyzer: Analyzer) -> list[tuple[Expr, Expr] | None]:
    box = [_dimension(buffer, d, use, analyzer) for d in range(buffer.ndim)]
    shape = tuple(old if b is None else b[1] for old, b in zip(buffer.shape, box, strict=True))
    if is_small(buffer.replace(shape=shape)):
        return box
    grows = [b is not None and _grows(b[1], old) for old, b in zip(buffer.shape, box, strict=True)]
    return [None if g else b for g, b in zip(grows, box, strict=True)]


def _grows(extent: Expr, whole: Expr) -> bool:
    return isinstance(extent, IntImm) and isinstance(whole, IntImm) and extent.value > whole.value


def _dimension(buffer: Buffer, d: int, use: _Use, analyzer: Analyzer) -> tuple[Expr, Expr] | None:
    """(min, constant extent) of the accesses along dimension d; None to leave the dimension alone."""
    hulls: Box = []
    for indices in use.indices:
        index = indices[d]
        if uses_any(index, use.lets) or any(isinstance(x, Load) for x in walk(index)):
            return None
        hull = _affine_hull(index, use) or interval_of(index, _relevant(index, use), analyzer)
        if hull is None:
            return None
        hulls.append(hull)
    low, extent = _join(hulls, analyzer)
    if not isinstance(extent, IntImm) or extent.value <= 0:
        return None
    if uses_any(low, use.domains) or uses_any(low, use.lets):
        return None
    whole = buffer.shape[d]
    if isinstance(whole, IntImm):
        if extent.value == whole.value and isinstance(low, IntImm) and low.value == 0:
            return None
    return low, IntImm(extent.value, whole.dtype)


def _relevant(index: Expr, use: _Use) -> dict[Var, tuple[Expr, Expr]]:
    """The domains of the inner loops that index depends on, through loop bounds as well."""
    out: dict[Var, tuple[Expr, Expr]] = {}
    todo = list(free_vars(index))
    while todo:
        var = todo.pop()
        if var in use.domains and var not in out:
            out[var] = use.domains[var]
            for bound in use.domains[var]:
                todo.extend(free_vars(bound))
    return out


def _affine_hull(index: Expr, use: _Use) -> tuple[Expr, Expr] | None:
    """The hull of an affine index over inner loops of constant extent; None when it is anything else."""
    terms, const = linear(index)
    low: Expr | None = None
    extent = 1
    for atom, k in terms.items():
        domain = use.domains.get(atom) if isinstance(atom, Var) else None
        if domain is None:
            if uses_any(atom, use.domains):
                return None
            term = binary("mul", atom, k)
            low = term if low is None else binary("add", low, term)
            continue
        first, count = domain
        if not isinstance(first, IntImm) or not isinstance(count, IntImm):
            return None
        extent += abs(k) * (count.value - 1)
        const += k * (first.value if k > 0 else first.value + count.value - 1)
    base = IntImm(const, index.dtype) if low is None else binary("add", low, const)
    return base, IntImm(extent, index.dtype)


def _join(hulls: Box, analyzer: Analyzer) -> tuple[Expr, Expr]:
    first, *rest = hulls
    if not rest:
        return first
    forms = [linear(low) for low, _ in hulls]
    keys = [{id(a) if isinstance(a, Var) else None: k for a, k in terms.items()} for terms, _ in forms]
    constant = all(isinstance(e, IntImm) for _, e in hulls)
    if constant and None not in keys[0] and all(k == keys[0] for k in keys):
        start = min(c for _, c in forms)
        end = max(c + e.value for (_, c), (_, e) in zip(forms, hulls, strict=True))  # type: ignore[attr-defined]
        low = binary("add", binary("sub", first[0], forms[0][1]), start)
        return low, IntImm(end - start, first[0].dtype)
    return union([[h] for h in hulls], analyzer)[0]
