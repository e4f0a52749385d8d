"""Random primitives on stages inside the tiles of another block, against the function as it was.

`python -m tests.schedule.test_nested_random 1000 2000` runs a range of seeds.
"""
from __future__ import annotations

import random
import sys

import numpy as np
import pytest

import tilewright as tw
from tilewright.schedule import Schedule
from tilewright.script import tir as T
from tilewright.support.errors import ScheduleError
from tilewright.tir import interp

STEPS = 6


@T.prim_func
def tiles(A: T.Buffer((8, 8), "int32"), D: T.Buffer((8, 8), "int32")):
    P = T.alloc_buffer((8, 8), "int32")
    for i, j in T.grid(8, 8):
        with T.block("P"):
            vi, vj = T.axis.remap("SS", [i, j])
            P[vi, vj] = A[vi, vj] * 3
    for i, j in T.grid(2, 4):
        with T.block("tile"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(P[vi * 4:vi * 4 + 4, 0:8])
            T.writes(D[vi * 4:vi * 4 + 4, vj * 2:vj * 2 + 2])
            B = T.alloc_buffer((4, 2), "int32")
            E = T.alloc_buffer((4, 2), "int32")
            for x, y in T.grid(4, 2):
                with T.block("B"):
                    vx, vy = T.axis.remap("SS", [x, y])
                    B[vx, vy] = P[vi * 4 + vx, vj * 2 + vy] + P[vi * 4 + vx, 7 - vy]
            for x, y, k in T.grid(4, 2, 2):
                with T.block("E"):
                    vx, vy, vk = T.axis.remap("SSR", [x, y, k])
                    with T.init():
                        E[vx, vy] = 0
                    E[vx, vy] = E[vx, vy] + B[vx, vk] * (vy + 1)
            for x, y in T.grid(4, 2):
                with T.block("D"):
                    vx, vy = T.axis.remap("SS", [x, y])
                    D[vi * 4 + vx, vj * 2 + vy] = E[vx, vy] - B[vx, 1 - vy]


ON_BLOCKS = ("compute_inline", "reverse_compute_inline")
ON_BUFFERS = ("cache_read", "cache_write")
AT_LOOPS = ("compute_at", "reverse_compute_at")
ON_LOOPS = ("parallel", "blockize")
STAGED = ("read_at", "write_at")


def step(rng: random.Random, sch: Schedule) -> None:
    """One primitive with arguments drawn at random; it may refuse."""
    names = [name for name in sch.block_names("main") if name != "root"]
    block, loops = rng.choice(names), sch.get_loops(rng.choice(names))
    name = rng.choice([*ON_BLOCKS, *ON_BUFFERS, *AT_LOOPS, *ON_LOOPS, *STAGED, "split", "fuse"])
    call = getattr(sch, name)
    if name in ON_BLOCKS:
        call(block)
    elif name in ON_BUFFERS:
        call(block, 0, "local")
    elif name in STAGED and sch.get_loops(block):
        call(rng.choice(sch.get_loops(block)), block, 0, "local")
    elif name in AT_LOOPS and loops:
        call(block, rng.choice(loops))
    elif name in ON_LOOPS and loops:
        call(rng.choice(loops))
    elif name == "split" and loops:
        call(rng.choice(loops), [None, 2])
    elif name == "fuse" and len(loops) > 1:
        call(*loops[:2])


def check(seed: int) -> int:
    """How many primitives were accepted. Raises AssertionError where the result is another one."""
    a = np.arange(64, dtype="int32").reshape(8, 8)
    expected, got, native = (np.zeros_like(a) for _ in range(3))
    interp.run(tiles, a, expected)
    rng, sch, accepted = random.Random(seed), Schedule(tiles), 0
    for _ in range(STEPS):
        try:
            step(rng, sch)
            accepted += 1
        except ScheduleError:
            pass
    interp.run(sch.func, a, got)
    np.testing.assert_array_equal(got, expected, err_msg=str(sch.trace))
    if seed % 8 == 0:
        tw.build(sch.func)(a, native)
        np.testing.assert_array_equal(native, expected, err_msg=str(sch.trace))
    return accepted


@pytest.mark.parametrize("first", range(0, 64, 16))
def test_stages_inside_of_tiles(first):
    assert sum(check(seed) for seed in range(first, first + 16)) > 32


if __name__ == "__main__":
    low, high = map(int, sys.argv[1:3])
    print(f"{high - low} schedules, {sum(check(seed) for seed in range(low, high))} primitives accepted")
