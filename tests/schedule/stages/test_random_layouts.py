"""Random programs whose stages have other layouts, caches of split loops and groups: the meaning stays."""
from __future__ import annotations

import random

import numpy as np
import pytest

from tilewright import te
from tilewright.support.errors import ScheduleError
from tilewright.tir import interp

from .test_random_schedules import loops_of, operation

PROGRAMS = 60


def program(rng: random.Random) -> tuple[list[te.Tensor], list[te.Tensor]]:
    n, m = rng.choice([(4, 6), (8, 8), (1, 9), (12, 4)])
    inputs = [te.placeholder((n, m), "int32", "a"), te.placeholder((n, m), "int32", "b")]
    made = list(inputs)
    for number in range(rng.randint(2, 4)):
        made.append(operation(rng, rng.choice(made), made[-1], f"t{number}"))
    return inputs, made


def divisor(rng: random.Random, extent: int) -> int:
    return rng.choice([d for d in range(1, extent + 1) if extent % d == 0])


def index_map(rng: random.Random, shape: list[int]):
    """(a map onto a box, what it makes of an array)."""
    kind = rng.choice(["turn", "split", "flat", "panels"])
    d = divisor(rng, shape[-1])
    return {
        "turn": (lambda *i: i[::-1], lambda x: x.transpose(*reversed(range(x.ndim)))),
        "split": (lambda *i: [*i[:-1], i[-1] // d, i[-1] % d], lambda x: x.reshape(*x.shape[:-1], -1, d)),
        "flat": (lambda *i: [*i[:-2], i[-2] * shape[-1] + i[-1]], lambda x: x.reshape(*x.shape[:-2], -1)),
        "panels": (lambda *i: [i[-1] // d, *i[:-1], i[-1] % d],
                   lambda x: np.moveaxis(x.reshape(*x.shape[:-1], -1, d), -2, 0)),
    }[kind if len(shape) > 1 else "split"]


def of(d) -> int:
    return d.value


def lay_out(rng: random.Random, s, t: te.Tensor):
    """Lays t out once or twice; what that makes of an array."""
    shape, change = [of(d) for d in t.shape], []
    for _ in range(rng.randint(1, 2)):
        mapped, made = index_map(rng, shape)
        s[t].transform_layout(mapped)
        change.append(made)
        shape = list(made(np.zeros(shape)).shape)

    def whole(x):
        for made in change:
            x = made(x)
        return np.ascontiguousarray(x)
    return whole


def cache(rng: random.Random, s, t: te.Tensor) -> te.Tensor:
    """A cache of t whose dimensions are loops."""
    i, j = t.op.axis
    for axis in rng.sample([i, j], rng.randint(0, 2)):
        extent = of(axis.dom.extent)
        s[t].split(axis, **{rng.choice(["factor", "nparts"]): divisor(rng, extent)})
    spatial = [iv for iv in s[t].leaf_iter_vars if iv.iter_type == 0]
    s[t].reorder(*rng.sample(spatial, len(spatial)))
    if rng.random() < 0.3 and len(spatial) > 1:
        s[t].fuse(*s[t].leaf_iter_vars[:2]) if s[t].leaf_iter_vars[1].iter_type == 0 else None
    return s.cache_write(t, "local")


def scheduled(seed: int):
    rng = random.Random(seed)
    inputs, made = program(rng)
    s = te.create_schedule(made[-1].op)
    layouts = {}
    for t in [*inputs, *made[2:]]:
        if t in s and rng.random() < 0.4:
            layouts[t] = lay_out(rng, s, t)
        elif t in s and t not in inputs and rng.random() < 0.6:
            copy = cache(rng, s, t)
            if rng.random() < 0.5:
                lay_out(rng, s, copy)
            if rng.random() < 0.6:
                s[copy].compute_at(s[t], rng.choice(s[t].leaf_iter_vars))
    last = s[made[-1]]
    if rng.random() < 0.4 and len(made) > 3 and made[2] in s and s.needs(last, s[made[2]]):
        group = s.create_group(outputs=made[-2] if made[-2] in s else made[2], inputs=made[2], include_inputs=True)
        group.compute_at(last, rng.choice(last.leaf_iter_vars))
    return s, inputs, made[-1], layouts


def ran(seed: int) -> bool:
    """Whether the schedule of this seed is legal; if so, it computes what the program says."""
    s, inputs, out, layouts = scheduled(seed)
    args = [*(t for t in inputs if t in s), out]
    try:
        func = s.replay(args).func
    except ScheduleError:
        return False
    rng = np.random.default_rng(seed)
    arrays = [rng.integers(-9, 9, [of(d) for d in t.shape]).astype("int32") for t in args]
    want = [a.copy() for a in arrays]
    interp.run(loops_of(te.create_prim_func(args)), *want)
    given = [layouts[t](a) if t in layouts else a for t, a in zip(args, arrays)]
    interp.run(loops_of(func), *given)
    np.testing.assert_array_equal(given[-1], layouts[out](want[-1]) if out in layouts else want[-1])
    return True


@pytest.mark.parametrize("block", range(6))
def test_random_layouts_keep_the_meaning(block):
    legal = [ran(seed) for seed in range(block * PROGRAMS // 6, (block + 1) * PROGRAMS // 6)]
    assert sum(legal) >= len(legal) // 2
