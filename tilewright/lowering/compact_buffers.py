"""Shrinks every allocation to the region that is used inside it."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tilewright.arith.analyzer import Analyzer
from tilewright.lowering.copying import Copier
from tilewright.lowering.hulls import Hull, hull_of, join_hulls
from tilewright.lowering.scopes import analyzer_for, is_small, loop_scope
from tilewright.tir.arithmetic import binary
from tilewright.tir.buffer import Buffer, Load
from tilewright.tir.expr import Expr, IntImm, Let, Var
from tilewright.tir.node import statements, walk
from tilewright.tir.shared_work import is_shared
from tilewright.tir.stmt import Allocate, For, LetStmt, PrimFunc, Stmt, Store, is_thread_axis
from tilewright.tir.symbols import expressions, uses_any


@dataclass
class _Use:
    """The accesses below an allocation, and what is defined there."""
    indices: list[tuple[Expr, ...]] = field(default_factory=list)
    stored: list[tuple[Expr, ...]] = field(default_factory=list)           # those of stores
    domains: dict[Var, Hull] = field(default_factory=dict)
    lets: set[Var] = field(default_factory=set)
    escapes: bool = False                              # the pointer itself is passed on


def compact_buffers(func: PrimFunc) -> PrimFunc:
    """Each allocation has, per dimension, the constant extent of the hull of its accesses where there is one.

    Accesses are shifted by the hull's minimum, which may depend on the loops outside of the allocation.
    Dimensions with a hull of symbolic extent, of data-dependent indices, or of explicit strides stay as
    they are. Guards do not narrow the hull: a register tile at the edge of a tensor is as large as the
    others. A larger buffer never grows. Memory in shared scope holds what all threads of the block use.
    """
    if not any(isinstance(s, Allocate) for s in statements(func.body)):
        return func
    return func.with_body(_Compaction(analyzer_for(func))(func.body))


class _Compaction(Copier):
    def __init__(self, analyzer: Analyzer) -> None:
        super().__init__()
        self.analyzer = analyzer
        self.origin: dict[Buffer, tuple[Expr | None, ...]] = {}
        self.threads: dict[Var, Hull] = {}             # the loops over threads of a block around

    def loop(self, s: For) -> Stmt:
        before = self.threads
        if is_thread_axis(s.thread_tag):
            self.threads = {**before, s.loop_var: (s.min, s.extent)}
        with loop_scope(self.analyzer, s.loop_var, s.min, s.extent):
            new = super().loop(s)
        self.threads = before
        return new

    def allocate(self, s: Allocate) -> Stmt:
        use = _survey(s, self.threads if is_shared(s.buffer) else {})
        if not s.buffer.strides and not use.escapes and use.indices:
            box = _box(s.buffer, use, self.analyzer)
            if any(b is not None for b in box):
                shape = tuple(old if b is None else b[1] for old, b in zip(s.buffer.shape, box, strict=True))
                self.buffers[s.buffer] = s.buffer.replace(shape=shape)
                self.origin[s.buffer] = tuple(None if b is None else b[0] for b in box)
        return super().allocate(s)

    def access(self, buffer: Buffer, indices: Sequence[Expr]) -> tuple[Buffer, tuple[Expr, ...]]:
        new, at = super().access(buffer, indices)
        return new, tuple([i if low is None else self.analyzer.simplify(binary("sub", i, low))
                           for i, low in zip(at, self.origin[buffer], strict=True)]) if buffer in self.origin else at


def _survey(s: Allocate, around: Mapping[Var, Hull]) -> _Use:
    """The accesses below s; `around` are loops outside of it whose iterations share what it allocates."""
    use, data = _Use(domains=dict(around)), s.buffer.data
    for stmt in statements(s.body):
        if isinstance(stmt, For):
            use.domains[stmt.loop_var] = (stmt.min, stmt.extent)
        elif isinstance(stmt, LetStmt):
            use.lets.add(stmt.var)
        elif isinstance(stmt, Store) and stmt.buffer is s.buffer:
            use.indices.append(stmt.indices)
            use.stored.append(stmt.indices)
        for e in expressions(stmt):
            for node in walk(e):
                if isinstance(node, Load) and node.buffer is s.buffer:
                    use.indices.append(node.indices)
                elif isinstance(node, Let):
                    use.lets.add(node.var)
                elif node is data:
                    use.escapes = True
    return use


def _box(buffer: Buffer, use: _Use, analyzer: Analyzer) -> list[Hull | None]:
    """The hull along each dimension. One that is wider than the buffer stays away where stores are not as wide: what is
    beyond them is never loaded, and LLVM blends vectors of one width into longer ones."""
    box = [_dimension(buffer, d, use.indices, use, analyzer) for d in range(buffer.ndim)]
    for d, whole in enumerate(buffer.shape):
        b = box[d]
        if b is not None and _grows(b[1], whole):
            stored = _dimension(buffer, d, use.stored, use, analyzer) if use.stored else None
            box[d] = b if stored is not None and _grows(stored[1], whole) else None
    shape = tuple(old if b is None else b[1] for old, b in zip(buffer.shape, box, strict=True))
    if is_small(buffer.replace(shape=shape)):
        return box
    grows = [b is not None and _grows(b[1], old) for old, b in zip(buffer.shape, box, strict=True)]
    return [None if g else b for g, b in zip(grows, box, strict=True)]


def _grows(extent: Expr, whole: Expr) -> bool:
    return isinstance(extent, IntImm) and isinstance(whole, IntImm) and extent.value > whole.value


def _dimension(buffer: Buffer, d: int, accesses: Sequence[tuple[Expr, ...]], use: _Use,
               analyzer: Analyzer) -> Hull | None:
    """(min, constant extent) of the accesses along dimension d; None to leave the dimension alone."""
    hulls: list[Hull] = []
    for indices in accesses:
        index = indices[d]
        if uses_any(index, use.lets):
            return None
        hull = hull_of(index, use.domains, analyzer)
        if hull is None:
            return None
        hulls.append(hull)
    low, extent = join_hulls(hulls, analyzer)
    if not isinstance(extent, IntImm) or extent.value <= 0:
        return None
    if uses_any(low, use.domains) or uses_any(low, use.lets):
        return None
    whole = buffer.shape[d]
    if isinstance(whole, IntImm):
        if whole.value == 0 or extent.value == whole.value and isinstance(low, IntImm) and low.value == 0:
            return None                                # where there are no elements, the checks of indices stay
    return low, IntImm(extent.value, whole.dtype)
