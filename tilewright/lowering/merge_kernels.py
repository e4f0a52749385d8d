"""Takes serial loops around kernels, and the kernels beside them, into one kernel where threads keep to their data."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.arith.analyzer import Analyzer
from tilewright.arith.dependence import Domain, direction_vectors
from tilewright.lowering.copying import specialize
from tilewright.lowering.scopes import analyzer_for, loop_scope
from tilewright.lowering.walking import map_stmts
from tilewright.schedule.analysis.accesses import Collector, Touch
from tilewright.tir.buffer import Buffer
from tilewright.tir.expr import Expr, Var
from tilewright.tir.node import statements
from tilewright.tir.shared_work import is_shared
from tilewright.tir.stmt import SERIAL, THREAD_BINDING, Allocate, Evaluate, For, PrimFunc, Seq, Stmt, seq
from tilewright.tir.symbols import uses_any


def merge_kernels(func: PrimFunc) -> PrimFunc:
    """A serial loop around kernels (nests of loops bound to thread axes) is inside of one kernel, with what comes
    before and after it under the same axes, where each element goes from step to step in one thread.

        for t: for b in blockIdx.x: body     ->     for b in blockIdx.x: for t: body

    That is so when no dependence that the loop carries, or that leads from kernel to kernel, is between two threads.
    Elsewhere every iteration launches kernels of its own, and the launches are what threads wait for. Expects loops
    with N-dimensional buffers. A kernel in which threads share work is left alone.
    """
    if not any(isinstance(s, For) and s.kind == THREAD_BINDING for s in statements(func.body)):
        return func
    return func.with_body(_visit(func.body, analyzer_for(func)).stmt)


@dataclass
class _Host:
    """A statement outside of kernels; `steps`: it is a kernel that holds the steps of a loop."""
    stmt: Stmt
    steps: bool = False


def _visit(stmt: Stmt, analyzer: Analyzer) -> _Host:
    match stmt:
        case For() if stmt.kind == THREAD_BINDING:
            return _Host(stmt)
        case For() if stmt.kind == SERIAL:
            with loop_scope(analyzer, stmt.loop_var, stmt.min, stmt.extent):
                body = _visit(stmt.body, analyzer)
            return _entered(stmt.replace(body=body.stmt) if body.stmt is not stmt.body else stmt, analyzer)
        case Seq(stmts):
            return _merged([_visit(s, analyzer) for s in stmts], stmt, analyzer)
        case Allocate():
            inner = _visit(stmt.body, analyzer)
            return _Host(stmt if inner.stmt is stmt.body else stmt.replace(body=inner.stmt))
    return _Host(map_stmts(stmt, lambda s: _visit(s, analyzer).stmt))


def _entered(loop: For, analyzer: Analyzer) -> _Host:
    """The loop inside the kernel that its body is, where that is legal.

    What is allocated in the loop becomes each thread's own, since no thread reads there what another one writes.
    """
    allocated, body = [], loop.body
    while isinstance(body, Allocate) and not is_shared(body.buffer):
        allocated.append(body)
        body = body.body
    if isinstance(body, Seq):
        body = _joined([*body.stmts], analyzer)
    threads, core = _kernel(body)
    if not threads or any(uses_any(e, {loop.loop_var}) for t in threads for e in (t.min, t.extent)):
        return _Host(loop)
    with loop_scope(analyzer, loop.loop_var, loop.min, loop.extent):
        if not _keeps_to_threads([core], [loop, *threads], analyzer):
            return _Host(loop)
    for s in reversed(allocated):
        core = s.replace(body=core)
    return _Host(_around(threads, loop.replace(body=core)), steps=True)


def _merged(parts: Sequence[_Host], old: Seq, analyzer: Analyzer) -> _Host:
    """The statements in order, each kernel that holds the steps of a loop joined with the kernels beside it."""
    out: list[_Host] = []
    for part in parts:
        joined = None
        if out and (part.steps or out[-1].steps):
            joined = _join(out[-1].stmt, part.stmt, analyzer)
        if joined is None:
            out.append(part)
        else:
            out[-1] = _Host(joined, True)
            while len(out) > 1 and (joined := _join(out[-2].stmt, out[-1].stmt, analyzer)) is not None:
                out[-2:] = [_Host(joined, True)]
    stmts = [p.stmt for p in out]
    if len(stmts) == len(old.stmts) and all(a is b for a, b in zip(stmts, old.stmts)):
        return _Host(old)
    return _Host(seq(stmts), len(out) == 1 and out[0].steps)


def _joined(stmts: list[Stmt], analyzer: Analyzer) -> Stmt:
    """The kernels as one, as far as they can be joined from the first on."""
    first, *rest = stmts
    for k, s in enumerate(rest):
        joined = _join(first, s, analyzer)
        if joined is None:
            return seq([first, *rest[k:]])
        first = joined
    return first


def _join(a: Stmt, b: Stmt, analyzer: Analyzer) -> Stmt | None:
    """One kernel that does a, then b; None where they are no kernels over the same threads, or share data otherwise
    than in one thread."""
    (mine, first), (theirs, second) = _kernel(a), _kernel(b)
    same = bool(mine) and len(mine) == len(theirs) and all(
        x.thread_tag == y.thread_tag and analyzer.equal(x.min, y.min) and analyzer.equal(x.extent, y.extent)
        for x, y in zip(mine, theirs))
    if not same:
        return None
    table: dict[Var, Expr] = {y.loop_var: x.loop_var for x, y in zip(mine, theirs)}
    second = specialize(second, table)
    return _around(mine, seq([first, second])) if _keeps_to_threads([first, second], mine, analyzer) else None


def _kernel(stmt: Stmt) -> tuple[list[For], Stmt]:
    """(the thread loops of a perfect nest, what one thread does)."""
    threads: list[For] = []
    while isinstance(stmt, For) and stmt.kind == THREAD_BINDING:
        threads.append(stmt)
        stmt = stmt.body
    return threads, stmt


def _around(threads: Sequence[For], core: Stmt) -> Stmt:
    for t in reversed(threads):
        core = t.replace(body=core)
    return core


def _keeps_to_threads(cores: Sequence[Stmt], nest: Sequence[For], analyzer: Analyzer) -> bool:
    """True when no two accesses of one element that order counts for are in different threads.

    With one core, nest is a serial loop and the thread loops: what counts is carried by the serial loop. With two,
    nest is the thread loops: what counts is between the cores.
    """
    if any(isinstance(s, Evaluate) or isinstance(s, For) and s.kind == THREAD_BINDING
           for core in cores for s in statements(core)):
        return False
    private = {s.buffer for core in cores for s in statements(core) if isinstance(s, Allocate)}
    domains = {loop.loop_var: (loop.min, loop.extent) for loop in nest}
    variables = [loop.loop_var for loop in nest]
    groups = [_touches(core, private) for core in cores]
    with analyzer.scope():
        for loop in nest:
            analyzer.bind(loop.loop_var, loop.min, loop.extent)
        for x in groups[0]:
            for y in groups[-1]:
                if x.buffer is y.buffer and (x.writes or y.writes) and _between_threads(
                        x, y, variables, domains, analyzer, serial=len(cores) == 1):
                    return False
    return True


def _between_threads(x: Touch, y: Touch, variables: Sequence[Var], domains: dict[Var, Domain], analyzer: Analyzer,
                     serial: bool) -> bool:
    vectors = direction_vectors(x.access, y.access, variables, domains, analyzer)
    return any(any(v[1:]) and v[0] != 0 if serial else any(v) for v in vectors)


def _touches(core: Stmt, private: set[Buffer]) -> list[Touch]:
    return [t for t in Collector(core).touches if t.buffer not in private]
