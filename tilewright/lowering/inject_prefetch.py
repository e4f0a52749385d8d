"""Writes out the prefetches that loops are annotated with."""
from __future__ import annotations

from tilewright.arith.analyzer import Analyzer
from tilewright.lowering.conditions import guard
from tilewright.lowering.hulls import Hull, hull_of, join_hulls
from tilewright.lowering.scopes import analyzer_for, loop_scope
from tilewright.lowering.software_pipeline import STAGE, after_others
from tilewright.lowering.walking import map_stmts
from tilewright.tir import dtype as dt
from tilewright.tir.arithmetic import binary, intrinsic
from tilewright.tir.buffer import Buffer, Load
from tilewright.tir.expr import Expr, IntImm, Let, Var
from tilewright.tir.node import children, statements, substitute, walk
from tilewright.tir.stmt import SERIAL, UNROLLED, Allocate, Evaluate, For, LetStmt, PrimFunc, Stmt, seq
from tilewright.tir.symbols import expressions, uses_any

PREFETCH = "prefetch"
LINE_BYTES = 64
MOST_LINES = 4096           # of one request; more would only push out what is needed


def inject_prefetches(func: PrimFunc) -> PrimFunc:
    """No loop is annotated with "prefetch": each iteration asks for what a later one reads.

    The annotation is a list of [buffer name, offset]: the region of the buffer that is read `offset` iterations later,
    one request per cache line, at most MOST_LINES (the first ones along the inner dimensions), at the start of an
    iteration. With [buffer name, offset, "spread"] each step of the last loop that reads the buffer in steps asks for
    the part that the same step reads then. A dimension along
    which the region has no constant extent is asked for at its first index. Requests are hints: none is made where
    other rewrites have left nothing to ask for (the buffer is read in a copy now, or its index comes from memory), and
    where the body gives a part of an index its name.
    """
    if not any(isinstance(s, For) and PREFETCH in s.annotations for s in statements(func.body)):
        return func
    analyzer = analyzer_for(func)

    def visit(stmt: Stmt) -> Stmt:
        if not isinstance(stmt, For):
            return map_stmts(stmt, visit)
        with loop_scope(analyzer, stmt.loop_var, stmt.min, stmt.extent):
            new = map_stmts(stmt, visit)
            return _with_prefetches(new, analyzer) if isinstance(new, For) and PREFETCH in new.annotations else new

    return func.with_body(visit(func.body))


def _with_prefetches(loop: For, analyzer: Analyzer) -> For:
    ahead: list[Stmt] = []
    body = loop.body
    inside = {s.buffer for s in statements(body) if isinstance(s, Allocate)}
    for name, offset, *spread in loop.annotations[PREFETCH] if loop.kind in (SERIAL, UNROLLED) else ():
        for buffer in (b for b in _reads(loop.body, name) if b not in inside):
            step = _last_reader(body, buffer) if spread else None
            if step is None:
                ahead += _requests(loop, loop.body, buffer, offset, analyzer)
                continue
            with loop_scope(analyzer, step.loop_var, step.min, step.extent):
                asked = _requests(loop, step.body, buffer, offset, analyzer)
            body = _replaced(body, step, step.replace(body=seq([*asked, step.body])))
    notes = {k: v for k, v in loop.annotations.items() if k != PREFETCH}
    if STAGE in notes:
        return loop.replace(body=_below_allocations(ahead, body), annotations=after_others(notes, len(ahead)))
    return loop.replace(body=seq([*ahead, body]), annotations=notes)


def _below_allocations(ahead: list[Stmt], body: Stmt) -> Stmt:
    """The requests, then body, whose allocations are around both."""
    if isinstance(body, Allocate):
        return body.replace(body=_below_allocations(ahead, body.body))
    return seq([*ahead, body])


def _reads(body: Stmt, name: str) -> dict[Buffer, list[tuple[Expr, ...]]]:
    """The indices of all reads of the buffers of that name."""
    out: dict[Buffer, list[tuple[Expr, ...]]] = {}
    for s in statements(body):
        for e in expressions(s):
            for n in walk(e):
                if isinstance(n, Load) and n.buffer.name == name:
                    out.setdefault(n.buffer, []).append(n.indices)
    return out


def _last_reader(stmt: Stmt, buffer: Buffer) -> For | None:
    """The last loop that reads the buffer in steps, each its own elements, and stands in no other of several
    iterations."""
    if isinstance(stmt, For) and not (isinstance(stmt.extent, IntImm) and stmt.extent.value == 1):
        indices = [i for at in _reads(stmt.body, buffer.name).get(buffer, ()) for i in at]
        in_steps = stmt.kind in (SERIAL, UNROLLED) and any(uses_any(i, {stmt.loop_var}) for i in indices)
        return stmt if in_steps else None
    below = [_last_reader(s, buffer) for s in children(stmt) if isinstance(s, Stmt)]
    return next((found for found in reversed(below) if found is not None), None)


def _replaced(body: Stmt, old: Stmt, new: Stmt) -> Stmt:
    return new if body is old else map_stmts(body, lambda s: _replaced(s, old, new))


def _requests(loop: For, body: Stmt, buffer: Buffer, offset: int, analyzer: Analyzer) -> list[Stmt]:
    """Requests for the box of the buffer that body, which stands in loop, reads `offset` iterations of the loop later,
    where there is such an iteration."""
    accesses = _reads(body, buffer.name)[buffer]
    domains = {s.loop_var: (s.min, s.extent) for s in statements(body) if isinstance(s, For)}
    names = {n.var for n in walk(body) if isinstance(n, (Let, LetStmt))}
    if any(uses_any(i, names) for a in accesses for i in a):
        return []
    box = [_side([a[d] for a in accesses], domains, analyzer) for d in range(buffer.ndim)]
    if not box or any(side is None for side in box):
        return []
    sides = [side for side in box if side is not None]
    if any(uses_any(low, names) for low, _ in sides):
        return []
    counts, steps = _lines([extent for _, extent in sides], buffer)
    later = binary("add", loop.loop_var, IntImm(offset, loop.loop_var.dtype))
    counters = [Var(f"line_{d}", low.dtype) for d, (low, _) in enumerate(sides)]
    at = tuple(analyzer.simplify(binary("add", substitute(low, {loop.loop_var: later}), binary("mul", c, IntImm(step))))
               for (low, _), c, step in zip(sides, counters, steps, strict=True))
    out: Stmt = Evaluate(intrinsic("prefetch", Load(buffer, at)))
    for c, count in reversed(list(zip(counters, counts, strict=True))):
        out = For(c, IntImm(0, c.dtype), IntImm(count, c.dtype), SERIAL, out)
    return [guard(binary("lt", later, binary("add", loop.min, loop.extent)), out)]


def _lines(extents: list[int], buffer: Buffer) -> tuple[list[int], list[int]]:
    """(number of requests, elements from one to the next) per dimension."""
    steps = [1] * (len(extents) - 1) + [max(1, LINE_BYTES // dt.bytes_of(buffer.dtype))]
    counts, left = [], MOST_LINES
    for extent, step in zip(reversed(extents), reversed(steps), strict=True):
        counts.append(min(-(-extent // step), left))
        left //= counts[-1]
    return counts[::-1], steps


def _side(indices: list[Expr], domains: dict[Var, Hull], analyzer: Analyzer) -> tuple[Expr, int] | None:
    """(first index, number of indices) that are touched along one dimension; None where that is not known."""
    hulls = [hull_of(i, domains, analyzer) for i in indices]
    known = [h for h in hulls if h is not None]
    if len(known) < len(hulls):
        return None
    low, extent = join_hulls(known, analyzer)
    if uses_any(low, domains) or isinstance(extent, IntImm) and extent.value <= 0:
        return None
    return low, extent.value if isinstance(extent, IntImm) else 1
