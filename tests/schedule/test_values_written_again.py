"""Blocks whose inputs change between iterations of the loops around them write other values each time: consumers stay
in the iteration whose values they read."""
from __future__ import annotations

import numpy as np
import pytest

from tests.schedule.test_few_lines import ints, moved, program, refused, same

FIRST = np.arange(12, dtype="int32").reshape(3, 4) + 1
STORED = np.full((3, 4), 77, "int32")

COUNTS = """
        for y in range(4):
            with T.block("Y"):
                vy = T.axis.spatial(4, y)
                B[vy] = B[vy] + 1
"""
CHAIN = """
        for x in range(4):
            with T.block("X"):
                vt = T.axis.spatial(3, t)
                vx = T.axis.spatial(4, x)
                X[vx] = A[vt, vx]
        for y in range(4):
            with T.block("Y"):
                vy = T.axis.spatial(4, y)
                B[vy] = X[vy] + 1
"""
SAME = CHAIN.replace("A[vt, vx]", "A[0, vx]").replace("                vt = T.axis.spatial(3, t)\n", "")


def stages(rows: str, makes: str, takes: str, inside: bool = False):
    """`rows` give B in each of 3 iterations of t, D is made of it, E of D and B, in the same loop or in one behind."""
    around, t = ("", "t") if inside else ("    for u in range(3):\n", "u")
    return program(ints("A3x4 B4 E3x4"), f"""
    D = T.alloc_buffer((3, 4), "int32")
    X = T.alloc_buffer((4,), "int32")
    for t in range(3):
{rows}
        for j in range(4):
            with T.block("D"):
                vt = T.axis.spatial(3, t)
                vj = T.axis.spatial(4, j)
                D[vt, vj] = {makes}
{around}        for k in range(4):
            with T.block("E"):
                vt = T.axis.spatial(3, {t})
                vk = T.axis.spatial(4, k)
                E[vt, vk] = {takes}
""")


def values(rows: str) -> np.ndarray:
    """What B is in the iterations of t, starting at 0."""
    if rows == COUNTS:
        return np.repeat(np.arange(1, 4, dtype="int32")[:, None], 4, axis=1)
    return FIRST + 1 if rows == CHAIN else np.repeat(FIRST[:1] + 1, 3, axis=0)


def args() -> list[np.ndarray]:
    return [FIRST, np.zeros(4, "int32"), STORED]


PRODUCER = [lambda s: s.compute_at("D", s.get_loops("E")[0]), lambda s: s.compute_at("D", s.get_loops("E")[1]),
            lambda s: s.compute_inline("D")]
CONSUMER = [lambda s: s.reverse_compute_at("E", s.get_loops("D")[0]), lambda s: s.reverse_compute_inline("E")]


@pytest.mark.parametrize("move", PRODUCER)
@pytest.mark.parametrize("rows", [COUNTS, CHAIN])
def test_a_producer_does_not_leave_the_iterations_of_what_it_reads(rows, move):
    func = stages(rows, "B[vj] * 2", "D[vt, vk] + 1")
    same(func, args(), values(rows) * 2 + 1)
    refused(func, "block Y", move)


@pytest.mark.parametrize("move", CONSUMER)
@pytest.mark.parametrize("rows", [COUNTS, CHAIN])
def test_a_consumer_of_the_last_values_does_not_join_the_iterations(rows, move):
    func = stages(rows, "A[vt, vj] * 2", "D[vt, vk] + B[vk]")
    same(func, args(), FIRST * 2 + values(rows)[-1])
    refused(func, "block Y", move)


@pytest.mark.parametrize("move", PRODUCER)
def test_a_producer_of_values_that_are_written_again_leaves(move):
    func = stages(SAME, "B[vj] * 2", "D[vt, vk] + 1")
    same(moved(func, move), args(), values(SAME) * 2 + 1)


@pytest.mark.parametrize("move", CONSUMER)
def test_a_consumer_of_values_that_are_written_again_joins(move):
    func = stages(SAME, "A[vt, vj] * 2", "D[vt, vk] + B[vk]")
    same(moved(func, move), args(), FIRST * 2 + values(SAME))


@pytest.mark.parametrize("move", [lambda s: s.compute_at("D", s.get_loops("E")[1]), lambda s: s.compute_inline("D"),
                                  lambda s: s.reverse_compute_at("E", s.get_loops("D")[1]),
                                  lambda s: s.cache_read("D", "B", "local")])
@pytest.mark.parametrize("rows", [COUNTS, CHAIN])
def test_a_block_moves_within_the_iteration_of_what_it_reads(rows, move):
    func = stages(rows, "B[vj] * 2", "D[vt, vk] + 1", inside=True)
    same(moved(func, move), args(), values(rows) * 2 + 1)


@pytest.mark.parametrize("move, message", [(PRODUCER[1], "block D"), (PRODUCER[2], "block Y")])
@pytest.mark.parametrize("rows", [COUNTS, CHAIN])
def test_a_block_does_not_move_to_another_iteration(rows, move, message):
    func = stages(rows, "B[vj] * 2", "T.if_then_else(vt > 0, D[T.max(vt - 1, 0), vk], 0)", inside=True)
    want = np.zeros_like(FIRST)
    want[1:] = values(rows)[:-1] * 2
    same(func, args(), want)
    refused(func, message, move)


def test_one_copy_serves_what_is_read_in_one_iteration():
    func = stages(CHAIN, "B[vj] * 2", "D[vt, vk] + 1")
    same(moved(func, lambda s: s.cache_read("Y", "X", "local")), args(), values(CHAIN) * 2 + 1)
