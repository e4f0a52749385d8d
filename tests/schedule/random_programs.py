"""Random tensor programs and random schedules of the core primitives."""
from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

from tilewright import te
from tilewright.lowering.plan_buffer_allocation import plan_buffer_allocation
from tilewright.schedule import LoopRV, Schedule
from tilewright.support.errors import ScheduleError
from tilewright.te.prim_func import create_prim_func
from tilewright.tir import interp
from tilewright.tir.stmt import PrimFunc

TAGS = ("blockIdx.x", "blockIdx.y", "threadIdx.x", "threadIdx.y")


def program(rng: random.Random) -> tuple[PrimFunc, tuple[int, int]]:
    """A chain of one to three operations on int32[n, m], n and m constants or variables, and values of (n, m)."""
    sizes = rng.choice([(4, 6), (5, 7), (1, 9), (3, 3), (8, 2), (6, 1)])
    n, m = (size if rng.random() < 0.8 else te.var(name) for size, name in zip(sizes, "nm", strict=True))
    tensors = [te.placeholder((n, m), "int32", "A")]
    for number in range(rng.randint(1, 3)):
        x, y = rng.choice(tensors), tensors[-1]
        tensors.append(te.compute((n, m), _body(rng, x, y, n, m), name=f"T{number}"))
    return create_prim_func([tensors[0], tensors[-1]]), sizes


def _body(rng: random.Random, x: te.Tensor, y: te.Tensor, n: Any, m: Any) -> Callable[..., te.Tensor]:
    k, q = te.reduce_axis((0, m), name="k"), te.reduce_axis((0, 2), name="q")
    return rng.choice([
        lambda i, j: y[i, j] * 2 + x[i, j],
        lambda i, j: y[n - 1 - i, j] - x[i, m - 1 - j],
        lambda i, j: te.if_then_else(j > 0, y[i, j - 1], x[i, j]),
        lambda i, j: te.sum(y[i, k] * x[i, k] + j, axis=k),
        lambda i, j: te.max(y[(i + q) % n, k] - x[i, j], axis=[q, k]),
    ])


def random_schedule(rng: random.Random, func: PrimFunc, steps: int, accepted: Counter[str]) -> Schedule:
    """func after up to `steps` random calls of primitives; refused calls leave it as it was."""
    sch = Schedule(func)
    for _ in range(steps):
        block = rng.choice(sch.get_blocks())
        loops = sch.get_loops(block)
        if not loops:
            continue
        name, call = _call(rng, sch, block.name, loops)
        try:
            call()
            accepted[name] += 1
        except ScheduleError:
            accepted[f"{name} refused"] += 1
    return sch


Call = Callable[[], object]


def _call(rng: random.Random, sch: Schedule, block: str, loops: list[LoopRV]) -> tuple[str, Call]:
    """(the name of a primitive, a call of it on random arguments)."""
    loop, at = rng.choice(loops), rng.randrange(len(loops))
    factors = rng.choice([[None, rng.randint(1, 5)], [rng.randint(1, 4), None], [2, None, 2]])
    order = rng.sample(loops, rng.randint(1, len(loops)))
    calls: dict[str, Call] = {
        "split": lambda: sch.split(loop, factors),
        "fuse": lambda: sch.fuse(*loops[at:at + 2]),
        "reorder": lambda: sch.reorder(*order),
        "parallel": lambda: sch.parallel(loop),
        "vectorize": lambda: sch.vectorize(loop),
        "unroll": lambda: sch.unroll(loop),
        "bind": lambda: sch.bind(loop, rng.choice(TAGS)),
        "decompose_reduction": lambda: sch.decompose_reduction(block, loop),
        "compute_at": lambda: sch.compute_at(block, rng.choice(sch.get_loops(rng.choice(sch.get_blocks())))),
        "reverse_compute_at": lambda: sch.reverse_compute_at(
            block, rng.choice(sch.get_loops(rng.choice(sch.get_blocks())))),
    }
    weights = [4, 3, 5, 1, 1, 1, 0.5, 2, 3, 1]
    name = rng.choices(list(calls), weights)[0]
    return name, calls[name]


def meaning(func: PrimFunc, size: tuple[int, int]) -> np.ndarray:
    """The output of func on fixed integers, under the interpreter with its race detection."""
    a = np.random.default_rng(7).integers(-5, 5, size).astype("int32")
    out = np.full(size, 99, "int32")
    interp.run(plan_buffer_allocation(func), a, out)
    return out
