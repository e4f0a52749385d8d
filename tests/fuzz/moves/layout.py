"""Random use of the primitives that change layouts, pad, and keep what iterations share."""
from __future__ import annotations

from typing import Any

from tilewright.arith.linear import linear
from tilewright.schedule import Schedule
from tilewright.schedule.index_map import IndexMap
from tilewright.support.errors import ScheduleError
from tilewright.tir.buffer import Load
from tilewright.tir.expr import Call, IntImm, Select, Var
from tilewright.tir.iter_var import COMM_REDUCE
from tilewright.tir.node import walk
from tilewright.tir.stmt import Store

from ..schedules import Action, Chooser, find_block, find_loop, move


def _run_transform_block_layout(sch: Schedule, block: str, index_map: str) -> None:
    sch.transform_block_layout(find_block(sch, block), IndexMap(index_map))


@move("transform_block_layout", 3, 1, _run_transform_block_layout)
def transform_block_layout(chooser: Chooser, sch: Schedule, names: list[str]) -> Action | None:
    """Rotate, fuse, split or flip iteration variables; now and then across the kinds, or by what does not divide."""
    rng = chooser.rng
    name = rng.choice(names)
    axes = sch.realize(name).block.iter_vars
    if not axes:
        return None
    sizes = [iv.dom.extent.value if iv.dom is not None and isinstance(iv.dom.extent, IntImm) else 0 for iv in axes]
    names_of = [f"i{n}" for n in range(len(axes))]
    at: list[str] = list(names_of)
    n = rng.randrange(len(axes))
    form = rng.choice(["rotate", "fuse", "fuse", "split", "split", "flip"])
    if form == "rotate":
        at = at[n:] + at[:n]
    elif form == "fuse" and n + 1 < len(axes) and sizes[n + 1]:
        same = axes[n].iter_type == axes[n + 1].iter_type
        if same or rng.random() < 0.1:
            at[n:n + 2] = [f"i{n} * {sizes[n + 1]} + i{n + 1}"]
    elif form == "split":
        fitting = [f for f in (2, 3, 4, 5, 7) if sizes[n] and sizes[n] % f == 0]
        f = rng.choice(fitting if fitting and rng.random() < 0.9 else [2, 3, 4])
        at[n:n + 1] = rng.choice([[f"i{n} // {f}", f"i{n} % {f}"], [f"i{n} % {f}", f"i{n} // {f}"]])
    elif form == "flip" and sizes[n]:
        at[n] = f"{sizes[n] - 1} - i{n}"
    return ("transform_block_layout", name, f"lambda {', '.join(names_of)}: ({', '.join(at)},)")


def _run_padded_layout(sch: Schedule, block: str, where: list[Any], index_map: str, pad_value: Any) -> None:
    sch.transform_layout(find_block(sch, block), tuple(where), IndexMap(index_map), pad_value=pad_value)


@move("padded_layout", 2, 0.5, _run_padded_layout)
def padded_layout(chooser: Chooser, sch: Schedule, names: list[str]) -> Action | None:
    """transform_layout with a pad_value."""
    rng = chooser.rng
    choices = chooser._private(sch, names)
    if not choices:
        return None
    name, kind, position = rng.choice(choices)
    rank = len(getattr(sch.realize(name).block, f"{kind}s")[position].buffer.shape)
    if not rank:
        return None
    d, f = rng.randrange(rank), rng.choice([2, 3, 4, 8])
    old = [f"i{n}" for n in range(rank)]
    new = rng.choice([[*old[:d], f"i{d} // {f}", *old[d + 1:], f"i{d} % {f}"], [*old[:d], f"i{d} + {f}", *old[d + 1:]],
                      [*old[:d], f"i{d} // {f}", f"i{d} % {f}", *old[d + 1:]]])
    value = rng.choice([0, 1, f"lambda {', '.join(f'j{n}' for n in range(len(new)))}: j0 + 1"])
    return ("padded_layout", name, [kind, position], f"lambda {', '.join(old)}: ({', '.join(new)},)", value)


def _run_decompose_padding(sch: Schedule, block: str, loop: Any) -> None:
    sch.decompose_padding(find_block(sch, block), find_loop(sch, loop))


@move("decompose_padding", 8, 3, _run_decompose_padding)
def decompose_padding(chooser: Chooser, sch: Schedule, names: list[str]) -> Action | None:
    """Of a block that stores a choice, if there is one."""
    rng = chooser.rng

    def chooses(name: str) -> bool:
        body = sch.realize(name).block.body
        return isinstance(body, Store) and (isinstance(body.value, Select) or isinstance(body.value, Call)
                                            and body.value.op == "if_then_else")
    fitting = [n for n in names if chooses(n) and sch.loops_above(n)]
    if not fitting and rng.random() < 0.97:
        return None
    name = rng.choice(fitting or names)
    loops = sch.loops_above(name)
    return ("decompose_padding", name, (name, rng.randrange(len(loops)))) if loops else None


def _run_pad_einsum(sch: Schedule, block: str, padding: list[int]) -> None:
    sch.pad_einsum(find_block(sch, block), padding)


@move("pad_einsum", 4, 1, _run_pad_einsum)
def pad_einsum(chooser: Chooser, sch: Schedule, names: list[str]) -> Action | None:
    """Of a block with plain indices mostly; a reduction axis less often than others."""
    rng = chooser.rng
    fitting = [n for n in names if _is_plain(sch, n)]
    name = rng.choice(fitting if fitting and rng.random() < 0.9 else names)
    axes = sch.realize(name).block.iter_vars
    if not axes or len(names) > 9:
        return None
    factors = [rng.choice([1, 2, 3, 4, 8]) if iv.iter_type != COMM_REDUCE or rng.random() < 0.4 else 1 for iv in axes]
    return ("pad_einsum", name, factors)


def _is_plain(sch: Schedule, name: str) -> bool:
    """True when each loop drives one variable, and every index is a variable or a constant."""
    realize = sch.realize(name)
    points = [n for n in walk(realize.block.body) if isinstance(n, (Load, Store))]
    return all(isinstance(v, Var) for v in realize.iter_values) and all(
        isinstance(i, (Var, IntImm)) for n in points for i in n.indices)


def _run_rolling_buffer(sch: Schedule, block: str, where: Any) -> None:
    """Compute block at a loop, if one is given, and let its buffer be circular; or neither."""
    saved = sch.snapshot()
    try:
        if where is not None:
            sch.compute_at(find_block(sch, block), find_loop(sch, where))
        sch.rolling_buffer(find_block(sch, block), 0)
    except ScheduleError:
        sch.restore(saved)
        raise


def _slides(sch: Schedule, producer: str, consumer: str) -> bool:
    """True when the consumer reads several elements along a dimension, or a sum of variables."""
    written = [w.buffer for w in sch.realize(producer).block.writes]
    regions = [r for r in sch.realize(consumer).block.reads if any(r.buffer is b for b in written)]
    return any(isinstance(d.extent, IntImm) and d.extent.value > 1 or len(linear(d.min)[0]) > 1
               for r in regions for d in r.region)


@move("rolling_buffer", 2, 1, _run_rolling_buffer, last=0.8)
def rolling_buffer(chooser: Chooser, sch: Schedule, names: list[str]) -> Action | None:
    """Of a block at a loop where its windows overlap, if there is one; sometimes at any."""
    rng = chooser.rng
    actions: list[Action] = []
    for name in names:
        for consumer in sch.consumers(name):
            if _slides(sch, name, consumer) or rng.random() < 0.1:
                actions.append(("rolling_buffer", name, None))
                actions += [("rolling_buffer", name, (consumer, n)) for n in range(len(sch.loops_above(consumer)))]
    rng.shuffle(actions)
    if actions and rng.random() < 0.1:
        return actions[0]
    for action in actions[:6]:
        trial = sch.copy()
        try:
            _run_rolling_buffer(trial, *action[1:])
        except ScheduleError:
            continue
        return action
    return None
