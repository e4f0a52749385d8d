"""Axes that lie side by side wherever they are used become one: rows of a batch of sequences are rows.

For kernels whose callers give addresses and sizes, since shapes of parameters change:

    for i0, i1, i2 in T.grid(b, n, 384):            for i1, i2 in T.grid(b * n, 384):
        C[i0, i1, i2] = A[i0, i1, i2] + B[i2]   ->      C[i1, i2] = A[i1, i2] + B[i2]
"""
from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from tilewright.tir import (
    Block,
    BlockRealize,
    Buffer,
    BufferRegion,
    Expr,
    For,
    IterVar,
    Load,
    PrimFunc,
    Range,
    Seq,
    Stmt,
    Store,
    Var,
    binary,
    is_const,
    seq,
)
from tilewright.tir.accesses import uses_below
from tilewright.tir.equal import structural_equal
from tilewright.tir.iter_var import DATA_PARALLEL
from tilewright.tir.node import Node, rewrite, walk
from tilewright.tir.stmt import SERIAL

T = TypeVar("T")
Pair = tuple[Var, Var]
Place = tuple[Buffer, int]                            # dimensions k and k + 1 of a buffer


def merge_axes(func: PrimFunc) -> PrimFunc:
    """func, in block form and not scheduled, with axes merged until no two can be.

    Two data-parallel axes of a block are merged where all that it accesses by one of them it accesses by both, as
    indices of neighbouring dimensions of the same extents; so are these dimensions, in all blocks that use them.
    """
    root = func.body.block if isinstance(func.body, BlockRealize) else None
    while root is not None and (found := _first(root)) is not None:
        func = _merged(func, root, found)
        root = func.body.block                        # type: ignore[attr-defined]
    return func


@dataclass(frozen=True)
class _Nest:
    """Loops around a block, each of which is one of its axes."""
    loops: tuple[For, ...]
    realize: BlockRealize

    @property
    def axes(self) -> dict[Var, IterVar]:
        return {iv.var: iv for iv in self.realize.block.iter_vars}


def _nest(stmt: Stmt) -> _Nest | None:
    """The statement as such loops; None where it is anything else."""
    loops: list[For] = []
    while isinstance(stmt, For) and stmt.kind == SERIAL and not stmt.annotations:
        loops.append(stmt)
        stmt = stmt.body
    if not isinstance(stmt, BlockRealize) or len(loops) != len(stmt.iter_values):
        return None
    block = stmt.block
    plain = (is_const(stmt.predicate, 1) and not (block.alloc_buffers or block.match_buffers or block.annotations)
             and all(value is at.loop_var and is_const(at.min, 0) and _same(at.extent, iv.domain.extent)
                     for value, at, iv in zip(stmt.iter_values, loops, block.iter_vars)))
    return _Nest(tuple(loops), stmt) if plain else None


def _parts(root: Block) -> tuple[Stmt, ...]:
    return root.body.stmts if isinstance(root.body, Seq) else (root.body,)


def _same(a: Expr, b: Expr) -> bool:
    return a.dtype == b.dtype and structural_equal(a, b)


@dataclass(frozen=True)
class _Found:
    """What becomes one together."""
    axes: set[Pair]
    places: set[Place]


def _first(root: Block) -> _Found | None:
    """The first axes that can be merged, with all that has to be merged with them."""
    parts = [(s, _nest(s)) for s in _parts(root)]
    nests = [n for _, n in parts if n is not None]
    search = _Search(nests, {u.buffer for s, n in parts if n is None for u in uses_below(s)})
    refused: set[Pair] = set()
    for nest in nests:
        for access in _accesses(nest.realize.block):
            for u, v in zip(access.indices, access.indices[1:]):
                if isinstance(u, Var) and isinstance(v, Var) and (u, v) not in refused:
                    found = search.closure((u, v))
                    if found is not None:
                        return found
                    refused.add((u, v))
    return None


def _nodes(block: Block) -> Iterator[Node]:
    """What a block computes with, each node as often as it stands there."""
    for part in (block.body, block.init):
        if part is not None:
            yield from walk(part)


def _accesses(block: Block) -> list[Load | Store]:
    return [n for n in _nodes(block) if isinstance(n, (Load, Store))]


class _Search:
    """Which axes and dimensions have to be merged with two axes."""

    def __init__(self, nests: list[_Nest], fixed: set[Buffer | None]) -> None:
        self.fixed = fixed
        self.nest_of = {v: n for n in nests for v in n.axes}
        self.accesses: dict[Buffer, list[Load | Store]] = {}
        for n in nests:
            for access in _accesses(n.realize.block):
                self.accesses.setdefault(access.buffer, []).append(access)

    def closure(self, pair: Pair) -> _Found | None:
        """All of it; None where something stands in the way."""
        axes: set[Pair] = set()
        places: set[Place] = set()
        left = {pair}
        while left:
            axes |= left
            touched = [self._of_axes(*p) for p in left]
            if None in touched:
                return None
            new = {p for found in touched for p in found or ()} - places
            places |= new
            through = [self._of_place(*p) for p in new]
            if None in through:
                return None
            left = {p for found in through for p in found or ()} - axes
        ends = [v for p in axes for v in p], [(b, d) for b, k in places for d in (k, k + 1)]
        return _Found(axes, places) if all(len({*x}) == len(x) for x in ends) else None

    def _of_axes(self, u: Var, v: Var) -> list[Place] | None:
        """The dimensions that a block accesses by two of its axes; None where it uses one of them otherwise."""
        nest = self.nest_of.get(u)
        if nest is None or nest is not self.nest_of.get(v) or u is v:
            return None
        a, b = nest.axes[u], nest.axes[v]
        if not a.iter_type == b.iter_type == DATA_PARALLEL or a.domain.extent.dtype != b.domain.extent.dtype:
            return None
        block = nest.realize.block
        found = [(x, k) for x in _accesses(block) for k, at in enumerate(zip(x.indices, x.indices[1:]))
                 if at[0] is u and at[1] is v]
        if sum(n is u or n is v for n in _nodes(block)) != 2 * len(found):
            return None
        fits = all(_same(x.buffer.shape[k], a.domain.extent) and _same(x.buffer.shape[k + 1], b.domain.extent)
                   for x, k in found)
        return [(x.buffer, k) for x, k in found] if fits else None

    def _of_place(self, buffer: Buffer, k: int) -> list[Pair] | None:
        """The axes by which blocks access two dimensions; None where anything else does."""
        if buffer in self.fixed or buffer.strides or buffer.axis_separators or not _starts_at_zero(buffer):
            return None
        found = [x.indices[k:k + 2] for x in self.accesses[buffer]]
        if not all(isinstance(i, Var) for at in found for i in at):
            return None
        return [(u, v) for u, v in found]  # type: ignore[misc]


def _starts_at_zero(buffer: Buffer) -> bool:
    return buffer.elem_offset is None or is_const(buffer.elem_offset, 0)


def _merged(func: PrimFunc, root: Block, found: _Found) -> PrimFunc:
    """func with these axes and dimensions merged."""
    places: dict[Buffer, list[int]] = {}
    for buffer, k in found.places:
        places.setdefault(buffer, []).append(k)
    table = {buffer: _flat(buffer, at) for buffer, at in places.items()}
    second = {v: u for u, v in found.axes}

    def visit(node: Node) -> Node | None:
        if isinstance(node, (Load, Store)) and node.buffer in table:
            return replace(node, buffer=table[node.buffer], indices=_without(node.indices, places[node.buffer]))
        if isinstance(node, BufferRegion) and node.buffer in table:
            return BufferRegion(table[node.buffer], _without(node.region, places[node.buffer]))
        return None

    body = seq([rewrite(_one_axis(s, second), visit) for s in _parts(root)])
    allocated = tuple(table.get(b, b) for b in root.alloc_buffers)
    block = root.replace(body=body, alloc_buffers=allocated)
    return func.replace(body=func.body.replace(block=block),
                        buffer_map={p: table.get(b, b) for p, b in func.buffer_map.items()})


def _without(items: tuple[T, ...], places: list[int]) -> tuple[T, ...]:
    """Indices or ranges without those of the first of two dimensions: the second stands for both."""
    return tuple(x for k, x in enumerate(items) if k not in places)


def _flat(buffer: Buffer, places: list[int]) -> Buffer:
    shape = list(buffer.shape)
    for k in places:
        shape[k + 1] = binary("mul", shape[k], shape[k + 1])
    return replace(buffer, shape=_without(tuple(shape), places))


def _one_axis(stmt: Stmt, second: Mapping[Var, Var]) -> Stmt:
    """The nest with one axis, the second, in the place of two."""
    nest = _nest(stmt)
    axes = nest.axes if nest is not None else {}
    merged = {v: u for v, u in second.items() if v in axes}
    if nest is None or not merged:
        return stmt
    gone = {*merged.values()}
    block = nest.realize.block
    extent = {v: binary("mul", axes[u].domain.extent, axes[v].domain.extent) for v, u in merged.items()}
    kept = [(iv, at) for iv, at in zip(block.iter_vars, nest.loops) if iv.var not in gone]
    own = tuple(replace(iv, dom=Range(iv.domain.min, extent.get(iv.var, iv.domain.extent))) for iv, _ in kept)
    made: Stmt = replace(nest.realize, iter_values=tuple(at.loop_var for _, at in kept),
                         block=replace(block, iter_vars=own))
    for iv, at in reversed(kept):
        made = replace(at, extent=extent.get(iv.var, at.extent), body=made)
    return made
