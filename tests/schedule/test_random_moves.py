"""Random programs under random moves, inlinings and caches mean what NumPy says; every primitive is exercised."""
from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tilewright import te
from tilewright.lowering.plan_buffer_allocation import plan_buffer_allocation
from tilewright.schedule import Schedule
from tilewright.support.errors import ScheduleError
from tilewright.te.prim_func import create_prim_func
from tilewright.tir import interp
from tilewright.tir.stmt import PrimFunc
from tilewright.tir.verify import verify

PROGRAMS = 120
STEPS = 9
ACCEPTED: Counter[str] = Counter()


class Operand:
    """A tensor, whose shape may be symbolic, with its value."""

    def __init__(self, tensor: Any, value: np.ndarray) -> None:
        self.tensor, self.value = tensor, value


def ragged(r: random.Random) -> int:
    return r.randint(1, 9)


def elementwise(r: random.Random, x: Operand, name: str) -> Operand:
    return Operand(te.compute(x.tensor.shape, lambda *i: x.tensor[i] * 2 + 1, name=name), x.value * 2 + 1)


def backwards(r: random.Random, x: Operand, name: str) -> Operand:
    last = x.tensor.shape[0] - 1
    return Operand(te.compute(x.tensor.shape, lambda *i: x.tensor[(last - i[0], *i[1:])] + 1, name=name),
                   x.value[::-1] + 1)


def stencil(r: random.Random, x: Operand, name: str) -> Operand:
    t, width = x.tensor, r.choice([2, 3])

    def at(*i: Any) -> Any:
        total = t[i]
        for q in range(1, width):
            total = total + te.if_then_else(i[0] + q < t.shape[0], t[(i[0] + q, *i[1:])], 0)
        return total
    value = x.value.copy()
    for q in range(1, width):
        value[:max(0, len(value) - q)] += x.value[q:]
    return Operand(te.compute(t.shape, at, name=name), value)


def pad(r: random.Random, x: Operand, name: str) -> Operand:
    t = x.tensor
    value = np.full_like(x.value, 7)
    value[..., 1:] = x.value[..., :-1]
    return Operand(te.compute(t.shape, lambda *i: te.if_then_else(i[-1] >= 1, t[(*i[:-1], i[-1] - 1)], 7), name=name),
                   value)


def reduce(r: random.Random, x: Operand, name: str) -> Operand:
    t, axis = x.tensor, r.randrange(x.value.ndim)
    k = te.reduce_axis((0, t.shape[axis]), name="k")
    if x.value.ndim == 1:
        n = ragged(r)
        return Operand(te.compute((n,), lambda i: te.sum(t[k] * (i + 1), axis=k), name=name),
                       x.value.sum() * (np.arange(n) + 1))
    rest = t.shape[:axis] + t.shape[axis + 1:]
    return Operand(te.compute(rest, lambda *i: te.sum(t[(*i[:axis], k, *i[axis:])], axis=k), name=name),
                   x.value.sum(axis))


def spread(r: random.Random, x: Operand, name: str) -> Operand:
    if x.value.ndim == 2:
        t = x.tensor
        return Operand(te.compute(t.shape[::-1], lambda i, j: t[j, i] + 3, name=name), x.value.T + 3)
    n = ragged(r)
    return Operand(te.compute((n, *x.tensor.shape), lambda i, j: x.tensor[j] + i, name=name),
                   x.value[None] + np.arange(n)[:, None])


def square(r: random.Random, x: Operand, name: str) -> Operand:
    """x times its transpose, or the outer difference."""
    t = x.tensor
    if x.value.ndim == 1:
        return Operand(te.compute((*t.shape, *t.shape), lambda i, j: t[i] - t[j], name=name),
                       x.value[:, None] - x.value[None])
    k = te.reduce_axis((0, t.shape[1]), name="k")
    return Operand(te.compute((t.shape[0], t.shape[0]), lambda i, j: te.sum(t[i, k] * t[j, k], axis=k), name=name),
                   x.value @ x.value.T)


STAGES: list[Callable[[random.Random, Operand, str], Operand]] = [
    elementwise, backwards, stencil, pad, reduce, spread, square]


def program(r: random.Random) -> tuple[PrimFunc, list[np.ndarray], list[np.ndarray]]:
    """A function, its inputs and its outputs, of 2 to 5 stages; one in five has a symbolic extent."""
    rng = np.random.default_rng(r.randrange(1 << 30))
    sizes = [ragged(r) for _ in range(r.choice([1, 2, 2]))]
    shape: list[Any] = list(sizes)
    if r.random() < 0.2:
        shape[0] = te.var("n")
    first = Operand(te.placeholder(tuple(shape), "int32", name="A"), rng.integers(-3, 4, sizes))
    made = [first]
    for stage in range(r.randint(2, 5)):
        source = made[-1] if r.random() < 0.75 else r.choice(made)
        made.append(r.choice(STAGES)(r, source, f"S{stage}"))
    read = {t for x in made[1:] for t in x.tensor.op.input_tensors}
    outputs = [x for x in made[1:] if x.tensor not in read or r.random() < 0.1]
    func = create_prim_func([first.tensor, *(x.tensor for x in outputs)])
    return func, [first.value.astype("int32")], [x.value.astype("int32") for x in outputs]


def step(r: random.Random, sch: Schedule) -> tuple[str, Callable[[], Any]]:
    """A random call of a primitive."""
    block = r.choice(sch.get_blocks())
    loops = sch.get_loops(block)
    name = r.choice(["split", "reverse_compute_inline"] * 3 + ["fuse", "reorder", "reorder", "parallel"]
                    + ["compute_inline"] + ["compute_at", "reverse_compute_at"] * 4 + ["cache_read", "cache_write"] * 2)
    if name == "split":
        return name, lambda: sch.split(r.choice(loops), r.choice([[None, 2], [None, 3], [2, None], [4, None]]))
    if name == "fuse":
        return name, lambda: sch.fuse(*loops[-2:])
    if name == "reorder":
        return name, lambda: sch.reorder(*r.sample(loops, len(loops)))
    if name == "parallel":
        return name, lambda: sch.parallel(r.choice(loops))
    if name in ("compute_at", "reverse_compute_at"):
        near = sch.get_consumers(block) if name == "compute_at" else sch.get_producers(block)
        targets = [loop for b in near for loop in sch.get_loops(b)] or loops
        target, unit, index = r.choice(targets), r.random() < 0.3, r.choice([-1, -1, -2])
        return name, lambda: getattr(sch, name)(block, target, preserve_unit_loops=unit, index=index)
    if name == "cache_read":
        return name, lambda: sch.cache_read(block, 0, "shared", [block] if r.random() < 0.3 else None)
    if name == "cache_write":
        return name, lambda: sch.cache_write(block, 0, "local")
    return name, lambda: getattr(sch, name)(block)


@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_random_program(seed):
    r = random.Random(seed)
    func, inputs, outputs = program(r)
    sch = Schedule(func)
    for _ in range(STEPS):
        if not sch.get_loops(sch.get_blocks()[0]):
            continue
        name, call = step(r, sch)
        before = sch.func
        try:
            call()
            ACCEPTED[name] += 1
        except ScheduleError as why:
            assert sch.func is before
            assert name in str(why)
    verify(sch.func, "block")
    results = [np.full_like(o, 77) for o in outputs]
    interp.run(plan_buffer_allocation(sch.func), *[x.copy() for x in inputs], *results)
    for got, want in zip(results, outputs, strict=True):
        np.testing.assert_array_equal(got, want, err_msg=str(sch.func))


def test_every_primitive_was_accepted():
    names = ["compute_at", "reverse_compute_at", "compute_inline", "reverse_compute_inline", "cache_read",
             "cache_write"]
    assert all(ACCEPTED[name] >= 10 for name in names), ACCEPTED
