"""Random merges, partitions, unit loops, orders of iter vars, alignments and separators."""
from __future__ import annotations

from tilewright.schedule import Schedule
from tilewright.tir.expr import IntImm
from tilewright.tir.stmt import SERIAL, For, Seq

from ..schedules import Action, Chooser, find_block, find_loop, move


def run_merge(sch: Schedule, wheres: list[tuple[str, int]]) -> None:
    sch.merge(*[find_loop(sch, w) for w in wheres])


@move("merge", 2.5, 0.5, run_merge)
def draw_merge(chooser: Chooser, sch: Schedule, names: list[str]) -> Action | None:
    """Mostly loops of two nests that stand side by side, with equal extents; sometimes any two."""
    rng = chooser.rng
    nests = [(name, loops) for name in names if (loops := sch.loops_above(name))]
    pairs = []
    for (a, x), (b, y) in zip(nests, nests[1:]):
        shared = sum(p is q for p, q in zip(x, y))
        depth = 0
        for p, q in zip(x[shared:], y[shared:]):
            if not _alike(p, q):
                break
            pairs.append([(a, shared + depth), (b, shared + depth)])
            depth += 1
            if isinstance(p.body, Seq) or isinstance(q.body, Seq):
                break
    if pairs and rng.random() < 0.95:
        return ("merge", rng.choice(pairs))
    if len(nests) < 2 or rng.random() < 0.7:
        return None
    (a, x), (b, y) = rng.sample(nests, 2)
    return ("merge", [(a, rng.randrange(len(x))), (b, rng.randrange(len(y)))])


def _alike(p: For, q: For) -> bool:
    same = isinstance(p.extent, IntImm) and isinstance(q.extent, IntImm) and p.extent.value == q.extent.value
    return same and p.kind == q.kind == SERIAL and not p.annotations and not q.annotations


def run_partition(sch: Schedule, where: tuple[str, int], factors: list[int | None], units: bool) -> None:
    sch.loop_partition(find_loop(sch, where), factors, preserve_unit_iters=units)


@move("loop_partition", 0.7, 0.7, run_partition)
def draw_partition(chooser: Chooser, sch: Schedule, names: list[str]) -> Action | None:
    rng = chooser.rng
    found = chooser._loop(sch, names)
    if found is None or len(names) > 6:
        return None
    where, loop = found
    most = loop.extent.value - 1 if isinstance(loop.extent, IntImm) and rng.random() < 0.9 else 4
    f = rng.randint(1, max(1, min(most, 5)))
    factors = rng.choice([[f], [f, None], [None, f], [f, 1], [1, None]])
    return ("loop_partition", where, factors, rng.random() < 0.8)


def run_unit(sch: Schedule, target: str | tuple[str, int]) -> None:
    sch.add_unit_loop(find_block(sch, target) if isinstance(target, str) else find_loop(sch, target))


@move("add_unit_loop", 0.6, 0.5, run_unit)
def draw_unit(chooser: Chooser, sch: Schedule, names: list[str]) -> Action | None:
    found = chooser._loop(sch, names) if chooser.rng.random() < 0.5 else None
    return ("add_unit_loop", found[0] if found else chooser.rng.choice(names))


def run_iter_vars(sch: Schedule, name: str, order: list[int]) -> None:
    sch.reorder_block_iter_var(find_block(sch, name), order)


@move("reorder_block_iter_var", 0.7, 0.4, run_iter_vars)
def draw_iter_vars(chooser: Chooser, sch: Schedule, names: list[str]) -> Action | None:
    rng, name = chooser.rng, chooser.rng.choice(names)
    order = list(range(len(sch.realize(name).block.iter_vars)))
    rng.shuffle(order)
    return ("reorder_block_iter_var", name, order)


def run_align(sch: Schedule, name: str, index: int, axis: int, factor: int, offset: int) -> None:
    sch.storage_align(find_block(sch, name), index, axis, factor, offset)


@move("storage_align", 1, 0.7, run_align)
def draw_align(chooser: Chooser, sch: Schedule, names: list[str]) -> Action | None:
    rng = chooser.rng
    own = [t for t in chooser._private(sch, names) if t[1] == "write"]
    if not own:
        return None
    name, _, index = rng.choice(own)
    rank, factor = sch.realize(name).block.writes[index].buffer.ndim, rng.choice([1, 2, 4, 8, 16])
    return ("storage_align", name, index, rng.randrange(-rank, rank), factor, rng.randrange(factor)) if rank else None


def run_separator(sch: Schedule, name: str, buffer: list[object], axes: list[int]) -> None:
    sch.set_axis_separator(find_block(sch, name), tuple(buffer), axes)


@move("set_axis_separator", 0.5, 0.4, run_separator)
def draw_separator(chooser: Chooser, sch: Schedule, names: list[str]) -> Action | None:
    rng, name = chooser.rng, chooser.rng.choice(names)
    block = sch.realize(name).block
    kind = rng.choice(["read", "write"])
    regions = block.reads if kind == "read" else block.writes
    if not regions:
        return None
    index = rng.randrange(len(regions))
    rank = regions[index].buffer.ndim
    axes = sorted(rng.randrange(rank + 1) for _ in range(rng.choice([0, 1, 2])))
    return ("set_axis_separator", name, [kind, index], axes)
