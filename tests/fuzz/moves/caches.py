"""Random rfactor, reindex, reindex_cache_read, reindex_cache_write, cache_index and cache_inplace."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright.schedule import Schedule
from tilewright.tir.expr import IntImm, Var
from tilewright.tir.iter_var import COMM_REDUCE
from tilewright.tir.node import walk
from tilewright.tir.stmt import Block

from ..schedules import SCOPES, Action, Chooser, find_block, find_loop, move

MOST_BLOCKS = 10


def _reductions(sch: Schedule, names: list[str]) -> list[tuple[str, list[int], int]]:
    """(block, positions of its reduction's loops, number of loops) of the blocks that start a reduction."""
    out = []
    for name in names:
        realize = sch.realize(name)
        driving = {n for iv, v in zip(realize.block.iter_vars, realize.iter_values) if iv.iter_type == COMM_REDUCE
                   for n in walk(v) if isinstance(n, Var)}
        loops = sch.loops_above(name)
        places = [k for k, loop in enumerate(loops) if loop.loop_var in driving]
        if places and realize.block.init is not None:
            out.append((name, places, len(loops)))
    return out


def _run_rfactor(sch: Schedule, where: tuple[str, int], axis: int, scope: str) -> None:
    sch.rfactor(find_loop(sch, where), axis, scope)


@move("rfactor", early=3, late=1, run=_run_rfactor)
def draw_rfactor(chooser: Chooser, sch: Schedule, names: list[str]) -> Action | None:
    rng = chooser.rng
    found = _reductions(sch, names)
    if not found or len(names) > MOST_BLOCKS:
        return None
    name, places, count = rng.choice(found)
    rank = len(sch.realize(name).block.writes[0].region)
    place = rng.choice(places) if rng.random() < 0.95 else rng.randrange(count)
    axis = rng.randint(-rank - 1, rank) if rng.random() < 0.95 else rank + 1
    return ("rfactor", (name, place), axis, rng.choice(["global", "global", "local"]))


def _kinds(rng: Any, block: Block) -> tuple[str, int] | None:
    kinds = [("read", n) for n in range(len(block.reads))] + [("write", n) for n in range(len(block.writes))]
    return rng.choice(kinds) if kinds else None


def _run_reindex(sch: Schedule, name: str, buffer: list[Any]) -> None:
    sch.reindex(find_block(sch, name), tuple(buffer))


@move("reindex", early=1.5, late=0.3, run=_run_reindex)
def draw_reindex(chooser: Chooser, sch: Schedule, names: list[str]) -> Action | None:
    if len(names) > MOST_BLOCKS:
        return None
    name = chooser.rng.choice(names)
    kind = _kinds(chooser.rng, sch.realize(name).block)
    return kind and ("reindex", name, list(kind))


def point_map(order: list[int], form: str, amount: int) -> Callable[..., tuple[Any, ...]]:
    """An index map of the iteration variables at the positions of `order`, the first of them changed by form."""
    def mapped(*v: Any) -> tuple[Any, ...]:
        first, *rest = [v[n] for n in order]
        if form == "split":
            return (first // amount, *rest, first % amount)
        if form == "shift":
            return (first + amount, *rest)
        if form == "coarse":
            return (first // amount, *rest)
        return (first, *rest)
    return mapped


def _draw_map(chooser: Chooser, block: Block, indices: list[Any]) -> list[Any] | None:
    """[order, form, amount] of a map that mostly keeps the elements at indices apart."""
    rng = chooser.rng
    used = {n for i in indices for n in walk(i)}
    order = [n for n, iv in enumerate(block.iter_vars) if iv.var in used]
    if not order or any(iv.dom is None or not isinstance(iv.dom.extent, IntImm) for iv in block.iter_vars):
        return None
    rng.shuffle(order)
    if rng.random() < 0.05:
        order = order[1:] or order
    return [order, rng.choice(["plain", "split", "split", "shift", "coarse" if rng.random() < 0.3 else "plain"]),
            rng.choice([1, 2, 3, 4])]


def _run_read(sch: Schedule, name: str, position: int, scope: str, form: list[Any]) -> None:
    sch.reindex_cache_read(find_block(sch, name), position, scope, point_map(*form))


@move("reindex_cache_read", early=1.8, late=0.3, run=_run_read)
def draw_reindex_cache_read(chooser: Chooser, sch: Schedule, names: list[str]) -> Action | None:
    return _draw_staged(chooser, sch, names, "reindex_cache_read", "reads")


def _run_write(sch: Schedule, name: str, position: int, scope: str, form: list[Any]) -> None:
    sch.reindex_cache_write(find_block(sch, name), position, scope, point_map(*form))


@move("reindex_cache_write", early=1.8, late=0.3, run=_run_write)
def draw_reindex_cache_write(chooser: Chooser, sch: Schedule, names: list[str]) -> Action | None:
    return _draw_staged(chooser, sch, names, "reindex_cache_write", "writes")


def _draw_staged(chooser: Chooser, sch: Schedule, names: list[str], primitive: str, kind: str) -> Action | None:
    rng = chooser.rng
    if len(names) > MOST_BLOCKS:
        return None
    name = rng.choice(names)
    block = sch.realize(name).block
    regions = getattr(block, kind)
    if not regions:
        return None
    position = rng.randrange(len(regions))
    form = _draw_map(chooser, block, [r.min for r in regions[position].region])
    return form and (primitive, name, position, rng.choice(SCOPES), form)


def _run_index(sch: Schedule, name: str, scope: str, repetitions: int) -> None:
    sch.cache_index(find_block(sch, name), scope, repetitions)


@move("cache_index", early=0.8, late=0.5, run=_run_index)
def draw_cache_index(chooser: Chooser, sch: Schedule, names: list[str]) -> Action | None:
    if len(names) > MOST_BLOCKS:
        return None
    rng = chooser.rng
    return ("cache_index", rng.choice(names), rng.choice(SCOPES), rng.choice([0, 0, 1, 2]))


def _run_inplace(sch: Schedule, name: str, position: int, scope: str) -> None:
    sch.cache_inplace(find_block(sch, name), position, scope)


@move("cache_inplace", early=2.5, late=1.5, run=_run_inplace)
def draw_cache_inplace(chooser: Chooser, sch: Schedule, names: list[str]) -> Action | None:
    """On a block that updates a buffer, such as what decompose_reduction leaves; sometimes on any."""
    rng = chooser.rng
    if len(names) > MOST_BLOCKS:
        return None
    fitting = [(n, k) for n in names for k, r in enumerate(sch.realize(n).block.reads)
               if any(w.buffer is r.buffer for w in sch.realize(n).block.writes)]
    if not fitting and rng.random() < 0.95:
        return None
    name, position = rng.choice(fitting) if fitting else (rng.choice(names), 0)
    return ("cache_inplace", name, position, rng.choice(SCOPES))


def _place(rng: Any, sch: Schedule, names: list[str]) -> tuple[str, int] | None:
    """A block and the position of one of its loops."""
    found = [name for name in names if sch.loops_above(name)]
    name = rng.choice(found) if found and len(names) <= MOST_BLOCKS else ""
    return (name, rng.randrange(len(sch.loops_above(name)))) if name else None


def _run_read_at(sch: Schedule, where: tuple[str, int], position: int, scope: str) -> None:
    sch.read_at(find_loop(sch, where), find_block(sch, where[0]), position, scope)


@move("read_at", early=2, late=2, run=_run_read_at)
def draw_read_at(chooser: Chooser, sch: Schedule, names: list[str]) -> Action | None:
    rng, place = chooser.rng, _place(chooser.rng, sch, names)
    if place is None or not sch.realize(place[0]).block.reads:
        return None
    return ("read_at", place, rng.randrange(len(sch.realize(place[0]).block.reads)), rng.choice(SCOPES))


def _run_write_at(sch: Schedule, where: tuple[str, int], scope: str) -> None:
    sch.write_at(find_loop(sch, where), find_block(sch, where[0]), 0, scope)


@move("write_at", early=2, late=2, run=_run_write_at)
def draw_write_at(chooser: Chooser, sch: Schedule, names: list[str]) -> Action | None:
    place = _place(chooser.rng, sch, names)
    return None if place is None else ("write_at", place, chooser.rng.choice(SCOPES))


def _run_cache_write_for(sch: Schedule, name: str, scope: str, consumers: list[str]) -> None:
    sch.cache_write(find_block(sch, name), 0, scope, [find_block(sch, c) for c in consumers])


@move("cache_write_for", early=1.5, late=1, run=_run_cache_write_for)
def draw_cache_write_for(chooser: Chooser, sch: Schedule, names: list[str]) -> Action | None:
    """cache_write whose result some consumers read."""
    rng = chooser.rng
    if len(names) > MOST_BLOCKS:
        return None
    found = [(name, sch.consumers(name)) for name in names if sch.consumers(name)]
    if not found:
        return None
    name, readers = rng.choice(found)
    return ("cache_write_for", name, rng.choice(SCOPES), rng.sample(readers, rng.randint(1, len(readers))))


_WIDER = {"int8": "int16", "int16": "int32", "int32": "int64", "uint8": "uint16", "float16": "float32",
          "float32": "float64"}                # dtypes that hold all values: the meaning stays


def _run_unsafe_set_dtype(sch: Schedule, name: str, position: int, dtype: str) -> None:
    sch.unsafe_set_dtype(find_block(sch, name), position, dtype)


@move("unsafe_set_dtype", early=0.7, late=0.7, run=_run_unsafe_set_dtype)
def draw_unsafe_set_dtype(chooser: Chooser, sch: Schedule, names: list[str]) -> Action | None:
    written = [t for t in chooser._private(sch, names) if t[1] == "write"]
    if not written:
        return None
    name, _, position = chooser.rng.choice(written)
    dtype = sch.realize(name).block.writes[position].buffer.dtype
    return ("unsafe_set_dtype", name, position, _WIDER[dtype]) if dtype in _WIDER else None
