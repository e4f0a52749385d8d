"""Turns vectorised loops into vector statements."""
from __future__ import annotations

from tilewright.lowering.code_size import code_size
from tilewright.lowering.copying import specialize
from tilewright.lowering.relax_guards import PADDED
from tilewright.lowering.scopes import analyzer_for, loop_scope
from tilewright.lowering.vector_code import Lanes, vector_statement
from tilewright.lowering.vector_expressions import NotVectorizable
from tilewright.lowering.walking import map_stmts
from tilewright.tir import dtype as dt
from tilewright.tir.arithmetic import binary
from tilewright.tir.buffer import Load
from tilewright.tir.expr import IntImm, Var
from tilewright.tir.node import statements, walk
from tilewright.tir.stmt import SERIAL, VECTORIZED, Allocate, For, IfThenElse, PrimFunc, Stmt, Store, loop, seq
from tilewright.tir.symbols import expressions

MAX_LANES = 64
MIN_LANES = 8               # fewer of them make no shorter code: a register of the longest elements
MAX_VECTOR_CODE = 4096             # instructions of a vector statement; one that has more works on fewer lanes


def vectorize(func: PrimFunc) -> PrimFunc:
    """No vectorised loops are left: their bodies work on vectors with one lane per iteration.

    Loops inside a vectorised one stay loops over vector statements; buffers allocated inside hold one
    element per lane; conditions that differ between lanes become predicates of loads and stores. Long loops
    are cut into vectors of at most MAX_LANES lanes, or of fewer where the code for so many would be long. A loop
    of symbolic extent, around other vectors, or with a body that has no vector form (calls with effects, updates
    of one element by several lanes) runs lane by lane.
    """
    if not any(isinstance(s, For) and s.kind == VECTORIZED for s in statements(func.body)):
        return func
    analyzer = analyzer_for(func, settled=True)
    readable = _readable_memory(func)

    def visit(stmt: Stmt) -> Stmt:
        if isinstance(stmt, IfThenElse) and stmt.else_case is None:
            with analyzer.branch(stmt.condition):
                return map_stmts(stmt, visit)
        if not isinstance(stmt, For):
            return map_stmts(stmt, visit)
        with loop_scope(analyzer, stmt.loop_var, stmt.min, stmt.extent):
            new = map_stmts(stmt, visit)
            if not isinstance(new, For) or new.kind != VECTORIZED:
                return new
            return _vector_loop(new, Lanes(analyzer, readable))

    return func.with_body(visit(func.body))


def _readable_memory(func: PrimFunc) -> set[Var]:
    """The pointers behind which any element may be read, also in a lane that is masked off.

    Memory that the function writes or allocates may hold elements that nobody has written, or that another thread
    is writing, unless it is PADDED.
    """
    loaded: set[Var] = set()
    guarded: set[Var] = set()
    padded: set[Var] = set()
    for s in statements(func.body):
        if isinstance(s, Store):
            guarded.add(s.buffer.data)
        elif isinstance(s, Allocate):
            (padded if PADDED in s.annotations else guarded).add(s.buffer.data)
        loaded.update(e.buffer.data for whole in expressions(s) for e in walk(whole) if isinstance(e, Load))
    return loaded - guarded | padded


def _vector_loop(s: For, state: Lanes) -> Stmt:
    serial = s.replace(kind=SERIAL)
    if not isinstance(s.extent, IntImm) or _has_vectors(s.body):
        return serial
    count = s.extent.value
    if count == 1:
        return specialize(s.body, {s.loop_var: s.min})
    if count > MAX_LANES:
        return _long_loop(s, count, next((w for w in (64, 32, 16, 8) if count % w == 0), 32), state)
    try:
        new = vector_statement(s, count, state)
    except NotVectorizable:
        return serial
    lanes = _fewer_lanes(count, code_size(new))
    return new if lanes == count else _long_loop(s, count, lanes, state)


def _fewer_lanes(count: int, size: int) -> int:
    """The lanes of which the code is short enough, given its size for count lanes; count where it is."""
    lanes = count
    while lanes % 2 == 0 and lanes > MIN_LANES and size * lanes > MAX_VECTOR_CODE * count:
        lanes //= 2
    return lanes


def _long_loop(s: For, count: int, width: int, state: Lanes) -> Stmt:
    """A serial loop over vectors of width lanes, and a shorter vector for what is left."""
    var = s.loop_var
    outer, lane = Var(f"{var.name}.o", var.type), Var(f"{var.name}.v", var.type)
    start = binary("add", s.min, binary("mul", outer, IntImm(width, var.type)))
    state.analyzer.bind(outer, 0, count // width)
    whole = _chunk(s, lane, start, width, state, fresh=count % width > 0)
    parts: list[Stmt] = [loop(outer, count // width, whole)]
    if count % width:
        rest = Var(f"{var.name}.v", var.type)
        start = binary("add", s.min, IntImm(count - count % width, var.type))
        parts.append(_chunk(s, rest, start, count % width, state, fresh=False))
    return seq(parts)


def _chunk(s: For, lane: Var, start: object, width: int, state: Lanes, fresh: bool) -> Stmt:
    state.analyzer.bind(lane, 0, width)
    value = binary("add", start, lane)
    body = specialize(s.body, {s.loop_var: value}, fresh=True) if fresh else specialize(s.body, {s.loop_var: value})
    short = For(lane, IntImm(0, lane.type), IntImm(width, lane.type), VECTORIZED, body)
    return _vector_loop(short, Lanes(state.analyzer, state.readable))


def _has_vectors(stmt: Stmt) -> bool:
    return any(isinstance(s, Store) and dt.lanes_of(s.value.dtype) > 1 for s in statements(stmt))

