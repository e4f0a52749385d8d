"""Tiles of vectors that lie the other way round in memory: read or written line by line, transposed by shuffles.

    B[0:4] = A[0:256:64]                     tile[0:4] = A[0:4]              the lines of memory
    B[8:12] = A[1:257:64]         ->         tile[4:8] = A[64:68] ...
    B[16:20] = A[2:258:64]                   tile[16:20] = ...               shuffles
    B[24:28] = A[3:259:64]                   B[0:4] = ...

n vectors of n lanes are n * n accesses to single elements, or n to vectors and n * log2(n) shuffles (Eklundh, A Fast
Computer Method for Matrix Transposing, 1972). In each step the vectors of the first half are interleaved with those of
the second: the bits of an element's position turn by one. After log2(n) steps row and column have changed places.
"""
from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from tilewright.arith.linear import linear, structural_key
from tilewright.lowering.affine import as_ramp
from tilewright.lowering.options import PassOptions
from tilewright.lowering.scopes import SMALL_BYTES
from tilewright.lowering.walking import map_stmts, same_items
from tilewright.support.target import Target
from tilewright.tir import dtype as dt
from tilewright.tir.arithmetic import binary
from tilewright.tir.buffer import Buffer, Load
from tilewright.tir.expr import Binary, Call, Expr, IntImm, Let, Ramp, Select, Shuffle
from tilewright.tir.node import children, rewrite_top_down, walk
from tilewright.tir.stmt import Allocate, PrimFunc, Seq, Stmt, Store, seq
from tilewright.tir.symbols import uses_any

FEWEST = 4                       # vectors of a tile
MOST = 16
TOGETHER = 64                    # statements in which tiles are looked for at once


def transpose_tiles(func: PrimFunc, options: PassOptions, target: Target) -> PrimFunc:
    """Vectors whose lanes lie apart in memory, and which lie side by side, are parts of lines that are read or written.

    Of stores that follow each other without a predicate: loads from what none of them writes, and stores to what none
    of them reads, in which no element is written twice. The same elements are touched.
    """
    if not func.attrs.get("tir.noalias", True):
        return func

    def visit(stmt: Stmt) -> Stmt:
        new = map_stmts(stmt, visit)
        return _sequence(new, target.vector_bytes) if isinstance(new, Seq) else new
    return func.with_body(visit(func.body))


def _sequence(sequence: Seq, vector_bytes: int) -> Stmt:
    out: list[Stmt] = []
    for plain, group in groupby(sequence.stmts, lambda s: isinstance(s, Store) and s.predicate is None):
        stmts: list[Any] = [*group]
        if plain:
            for k in range(0, len(stmts), TOGETHER):
                out += _together(stmts[k:k + TOGETHER], vector_bytes)
        else:
            out += stmts
    return sequence if same_items(out, sequence.stmts) else seq(out)


def _together(stmts: list[Store], vector_bytes: int) -> Sequence[Stmt]:
    """Statements without predicates, in which the tiles that there are have been found."""
    if len(stmts) < FEWEST:
        return stmts
    memory = _Registers()
    read = _transposed_loads(stmts, memory, vector_bytes)
    return memory.around(_transposed_stores(stmts, read, memory, vector_bytes))


class _Registers:
    """Arrays for the vectors of a tile that is being transposed, which codegen keeps in registers."""

    def __init__(self) -> None:
        self.buffers: list[tuple[Buffer, int]] = []              # with the elements that are taken

    def keep(self, vectors: Sequence[Expr], made: list[Stmt]) -> list[Expr]:
        """The vectors as they are kept by statements that are added to `made`."""
        kind, lanes = dt.parse(vectors[0].dtype)
        most, size = SMALL_BYTES // dt.bytes_of(kind), len(vectors) * lanes
        fits = self.buffers and self.buffers[-1][0].dtype == kind and self.buffers[-1][1] + size <= most
        new = Buffer("tile", (IntImm(max(most, size)),), kind, scope="local")
        buffer, taken = self.buffers.pop() if fits else (new, 0)
        self.buffers.append((buffer, taken + size))
        at = [Ramp(IntImm(taken + k * lanes), IntImm(1), lanes) for k in range(len(vectors))]
        made += [Store(buffer, v, (a,)) for v, a in zip(vectors, at)]
        return [Load(buffer, (a,)) for a in at]

    def around(self, stmts: Sequence[Stmt]) -> Sequence[Stmt]:
        """The statements, where there are tiles within their allocations."""
        for buffer, _ in self.buffers:
            stmts = [Allocate(buffer, seq([*stmts]))]
        return stmts


@dataclass(frozen=True)
class _Access:
    """An access of the statement at `place` to the vector base, base + stride, ...; those with one `kin` have bases
    that differ by their `offset`s only."""
    place: int
    node: Load | Store
    ramp: Ramp
    kin: Hashable
    offset: int

    def line(self, lane: int, lanes: int) -> Ramp:
        """The elements from that of a lane on."""
        step = binary("mul", self.ramp.stride, IntImm(lane, self.ramp.stride.dtype))
        return Ramp(binary("add", self.ramp.base, step), IntImm(1, self.ramp.base.dtype), lanes)


def _access(place: int, node: Load | Store) -> _Access | None:
    """The access, where it is one to a vector whose lanes lie apart at a constant distance: at least the vectors of the
    smallest tile, so that no line shares elements with the next."""
    index = node.indices[-1]
    if len(node.indices) != 1 or node.predicate is not None or dt.lanes_of(index.dtype) < FEWEST \
            or dt.bits_of(node.buffer.dtype) < 8 or dt.is_bool(node.buffer.dtype):
        return None
    ramp = as_ramp(index)
    if not isinstance(ramp, Ramp) or any(isinstance(n, (Load, Call)) for n in walk(ramp)) \
            or isinstance(ramp.stride, IntImm) and 0 <= ramp.stride.value < FEWEST:
        return None
    atoms, offset = linear(ramp.base)
    kin = frozenset((structural_key(x), k) for x, k in atoms.items())
    return _Access(place, node, ramp, (node.buffer.data, structural_key(ramp.stride), ramp.lanes, kin), offset)


def _certain_loads(e: Expr) -> Iterator[Load]:
    """The loads that are made whatever values there are, at places that are known before e is evaluated."""
    if isinstance(e, Load):
        yield e
    elif isinstance(e, Let):
        yield from _certain_loads(e.value)
        yield from (x for x in _certain_loads(e.body) if not uses_any(x, {e.var}))
    elif not isinstance(e, Select) and not (isinstance(e, Call) and e.op == "if_then_else") \
            and not (isinstance(e, Binary) and e.op in ("and", "or")):
        for child in children(e):
            yield from _certain_loads(child)      # type: ignore[arg-type]


def _tiles(accesses: Sequence[_Access], vector_bytes: int) -> Iterator[list[_Access]]:
    """Accesses of one kin whose offsets follow each other, as many as they have lanes or a power of two below."""
    kins: defaultdict[Hashable, dict[int, _Access]] = defaultdict(dict)
    for a in accesses:
        kins[a.kin].setdefault(a.offset, a)
    for by_offset in kins.values():
        first = next(iter(by_offset.values()))
        lanes = first.ramp.lanes
        most = min(MOST, lanes & -lanes, vector_bytes // dt.bytes_of(first.node.buffer.dtype))
        at = min(by_offset)
        while at <= max(by_offset):
            count = next((n for n in (16, 8, 4) if n <= most and all(at + k in by_offset for k in range(n))), 0)
            if count:
                yield [by_offset[at + k] for k in range(count)]
            at += count or 1


def _transposed(rows: Sequence[Expr], memory: _Registers) -> tuple[list[Stmt], list[Expr]]:
    """(steps, columns) of n rows of n lanes, which are kept in registers."""
    n, made = len(rows), list[Stmt]()
    for step in reversed(range(n.bit_length() - 1)):
        columns: list[Expr] = [Shuffle(pair, tuple(k // 2 + k % 2 * n for k in lanes))
                               for pair in zip(rows[:n // 2], rows[n // 2:]) for lanes in (range(n), range(n, 2 * n))]
        rows = memory.keep(columns, made) if step else columns
    return made, [*rows]


def _transposed_loads(stmts: list[Store], memory: _Registers, vector_bytes: int) -> list[list[Stmt]]:
    """The statements, each behind the steps that read the lines of the tiles that it is the first to read."""
    written = {s.buffer.data for s in stmts}
    found = [(k, x) for k, s in enumerate(stmts) for x in _certain_loads(s.value) if x.buffer.data not in written]
    loads = [a for a in (_access(k, x) for k, x in found) if a is not None]
    before: list[list[Stmt]] = [[] for _ in stmts]
    values: dict[Hashable, Expr] = {}
    for tile in _tiles(loads, vector_bytes):
        n, first, lanes = len(tile), tile[0], tile[0].ramp.lanes
        columns: list[list[Expr]] = [[] for _ in tile]
        for lane in range(0, lanes, n):
            lines, place = [first.line(lane + k, n) for k in range(n)], before[min(a.place for a in tile)]
            rows = memory.keep([Load(first.node.buffer, (line,)) for line in lines], place)
            steps, vectors = _transposed(rows, memory)
            place += steps
            for column, v in zip(columns, vectors, strict=True):
                column.append(v)
        for a, parts in zip(tile, columns, strict=True):
            values[a.kin, a.offset] = parts[0] if n == lanes else Shuffle(tuple(parts), tuple(range(lanes)))
    new = {id(a.node): values.get((a.kin, a.offset)) for a in loads}
    return [[*before[k], rewrite_top_down(s, lambda n: new.get(id(n))) if values else s] for k, s in enumerate(stmts)]


def _transposed_stores(stmts: list[Store], ready: list[list[Stmt]], memory: _Registers,
                       vector_bytes: int) -> list[Stmt]:
    """The statements as they are ready, where the last one of a tile is the first to write lines.

    Only where all writes to a buffer are of one kin, and no element is written twice.
    """
    read = {n.buffer.data for s in stmts for n in walk(s) if isinstance(n, Load)}
    by_memory: defaultdict[Any, list[_Access | None]] = defaultdict(list)
    for k, s in enumerate(stmts):
        by_memory[s.buffer.data].append(_access(k, s))
    for data, found in by_memory.items():
        stores = [a for a in found if a is not None]
        if data in read or len(stores) < len(found) or not _are_apart(stores):
            continue
        for tile in _tiles(stores, vector_bytes):
            _write_lines(tile, ready, memory)
    return [s for group in ready for s in group]


def _are_apart(stores: list[_Access]) -> bool:
    """True when no element is written twice."""
    stride = stores[0].ramp.stride
    if len({a.kin for a in stores}) > 1 or not isinstance(stride, IntImm):
        return False
    elements = [a.offset + lane * stride.value for a in stores for lane in range(a.ramp.lanes)]
    return len({*elements}) == len(elements)


def _write_lines(tile: list[_Access], ready: list[list[Stmt]], memory: _Registers) -> None:
    """Keep what the statements of a tile write; after the last of them, write it line by line."""
    n, first, lanes = len(tile), tile[0], tile[0].ramp.lanes
    stores: list[Stmt] = []
    kept = memory.keep([_value_of(ready[a.place]) for a in tile], stores)
    for a, store in zip(tile, stores, strict=True):
        ready[a.place].append(store)
    last = ready[max(a.place for a in tile)]
    for lane in range(0, lanes, n):
        rows = [v if n == lanes else Shuffle((v,), tuple(range(lane, lane + n))) for v in kept]
        steps, lines = _transposed(rows, memory)
        last += steps
        last += [Store(first.node.buffer, line, (first.line(lane + k, n),)) for k, line in enumerate(lines)]


def _value_of(ready: list[Stmt]) -> Expr:
    """What the last of the statements stores, which is taken away."""
    old = ready.pop()
    assert isinstance(old, Store)
    return old.value
