"""Reductions that do not start where their loops begin, or more than once: what may still be scheduled, and how not."""
from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tests.schedule.core_support import check_replay
from tilewright.lowering import lower
from tilewright.schedule import Schedule
from tilewright.script import from_source
from tilewright.support.errors import ScheduleError
from tilewright.tir import interp
from tilewright.tir.stmt import THREAD_BINDING

A = np.arange(64, dtype="int32").reshape(8, 8) + 1


def indented(text, columns):
    return text.replace("\n", "\n" + " " * columns)


def steps(loops, i="i", k="k", extent=3, where="", buffer="C", after=""):
    """The sums of the first elements of each row, as a block S below loops, one in each line; the text after S."""
    lines = loops.split("; ") + ['with T.block("S"):']
    text = "\n".join("    " * n + line + (":" if n < len(lines) - 1 else "") for n, line in enumerate(lines))
    return text + indented(f"""
vi = T.axis.spatial(8, {i})
vk = T.axis.reduce({extent}, {k})
{f"T.where({where})" if where else ""}
with T.init():
    {buffer}[vi] = 0
{buffer}[vi] = {buffer}[vi] + A[vi, vk]""", 4 * len(lines)) + indented(after, 4 * len(lines) - 4)


def sums(loops, **axes):
    """The function of these steps, from A to C; p and m are scalars."""
    return from_source(f"""@T.prim_func
def main(A: T.Buffer((8, 8), "int32"), C: T.Buffer((8,), "int32"), p: T.int32, m: T.int32):
    {indented(steps(loops, **axes), 4)}
""")


def unchanged(func, out, *scalars):
    """out is what func computes: lowered and, if no loop is bound to threads, natively."""
    for p, m in scalars or [(1, 3)]:
        want = np.full(8, 77, "int32")
        interp.run(func, A, want, p, m)
        runs = [lambda *a, f=f: interp.run(f, *a) for f in (out, lower(out))]
        if not any(loop.kind == THREAD_BINDING for loop in Schedule(out).index.loops.values()):
            runs.append(tw.build(out)["main"])
        for run in runs:
            got = np.full(8, 77, "int32")
            run(A, got, p, m)
            np.testing.assert_array_equal(got, want)


def refused(func, message, move):
    sch = Schedule(func)
    before = str(sch.func)
    with pytest.raises(ScheduleError, match=message):
        move(sch)
    assert str(sch.func) == before


def moved(func, move):
    sch = Schedule(func)
    move(sch)
    check_replay(sch, func)
    return sch.func


def blockized(position):
    return lambda sch: sch.blockize(sch.get_loops("S")[position])


def bound(position):
    return lambda sch: sch.bind(sch.get_loops("S")[position], "threadIdx.x")


ROWS = "for i in range(8); "


@pytest.mark.parametrize("func, position, message", [
    (sums(ROWS + "for k in range(3); for u in range(2)"), 2, "run block S more than once"),
    (sums(ROWS + "for k in range(3); for u in range(p)"), 2, "run block S more than once"),
    (sums(ROWS + "for k in range(3); for u in range(0)"), 2, "block S never runs"),
    (sums("for k in range(3); for i in range(16)", i="i // 2"), 1, "run block S more than once"),
    (sums("for k, l in T.grid(2, 2); for i in range(8 - l * 4)", k="k * 2 + l", extent=4), 1, "depend on the step"),
    (sums("for k in range(2); for l in range(2); for i in range(7)", i="i + l", k="k * 2 + l", extent=4), 1,
     "the step decides which output"),
    (sums(ROWS + "for k in range(1, 3)"), 1, "starts its reduction at vk = 0, and would start it at 1"),
    (sums(ROWS + "for k in range(2)", k="k + 1"), 0, "would start it at 1"),
])
def test_a_block_that_would_start_once_what_starts_at_other_steps(func, position, message):
    refused(func, message, blockized(position))


@pytest.mark.parametrize("func, position", [
    (sums(ROWS + "for k in range(3); for u in range(2)"), 1),                        # starts inside of the new block
    (sums(ROWS + "for k in range(2); for u in range(2); for l in range(2)", k="k * 2 + l", where="k * 2 + l < 3"), 3),
    (sums("for k in range(3); for i in range(p)"), 1),
    (sums("for k in range(2); for i in range(8 - k * 4)", extent=2), 1),
    (sums(ROWS + "for k in range(2)"), 1),
    (sums(ROWS + "for k in range(3)", k="2 - k"), 1),
])
def test_a_block_that_starts_as_often_as_its_steps_did(func, position):
    unchanged(func, moved(func, blockized(position)), (0, 3), (2, 3), (8, 3))


def test_a_block_around_one_step_that_is_not_the_first():
    refused(sums("for i in range(8)", k="1"), "would start it at 1",
            lambda sch: sch.blockize(sch.get_loops("S")[0], preserve_unit_iters=False))


@pytest.mark.parametrize("func", [
    sums(ROWS + "for k in range(3); for u in range(2)"),
    sums(ROWS + "for k in range(3); for u in range(p)"),
    sums(ROWS + "for k in range(2); for l in range(4)", k="k * 2 + l // 2", extent=4),
])
def test_threads_do_not_share_steps_that_are_repeated(func):
    refused(func, "the loops from k inwards may repeat steps of block S", bound(1))


@pytest.mark.parametrize("func, position", [
    (sums(ROWS + "for u in range(2); for k in range(3)"), 2),                        # all of them, twice
    (sums(ROWS + "for k in range(2); for l in range((m + 1) // 2); for u in range(1)", k="k * ((m + 1) // 2) + l",
          extent="m", where="k * ((m + 1) // 2) + l < m"), 1),
])
def test_threads_share_steps_that_run_once(func, position):
    unchanged(func, moved(func, bound(position)), (1, 0), (1, 3), (1, 8))


def test_outputs_of_which_the_first_step_reaches_some():
    func = sums("for k in range(2); for i in range(4 + k * 4)", extent=2)
    refused(func, "the iterations of loop i depend on the step",
            lambda s: s.decompose_reduction("S", s.get_loops("S")[0]))


READ = """
for j in range(8):
    with T.block("C"):
        vt, vj = T.axis.remap("SS", [t, j])
        C[vt, vj] = B[vj]"""
READ_ONE = """
with T.block("C"):
    vt = T.axis.spatial(4, t)
    vj = T.axis.spatial(8, {j})
    C[vt, vj] = B[vj]"""
FIRST = """
for z in range(8):
    with T.block("first"):
        vt, vz = T.axis.remap("SS", [t, z])
        T.where(t < 1)
        B[vz] = 100
"""


def in_each_iteration(body):
    """The body below a loop over t, rows of C; it has a buffer B."""
    return from_source(f"""@T.prim_func
def main(A: T.Buffer((8, 8), "int32"), C: T.Buffer((4, 8), "int32")):
    B = T.alloc_buffer((8,), "int32")
    for t in range(4):
        {indented(body, 8)}
""")


@pytest.mark.parametrize("body", [
    FIRST + steps(ROWS + "for k in range(1, 3)", buffer="B") + READ,
    steps(ROWS + "for k in range(T.min(t, 1), 3)", buffer="B") + READ,
    steps(ROWS + "for k in range(3); if k >= T.min(t, 1)", buffer="B", after=READ_ONE.format(j="i")),
    steps("for k in range(3); for i in range(T.max(1 - t, T.min(k, 1)) * 8)", buffer="B", after=READ_ONE.format(j="i")),
    FIRST + steps("for k in range(2); for i in range(7)", i="i + k", extent=2, buffer="B",
                  after=READ_ONE.format(j="i + k")),
])
def test_a_sum_that_goes_on_from_an_earlier_iteration_keeps_their_order(body):
    func = in_each_iteration(body)
    want = np.zeros((4, 8), "int32")
    interp.run(func, A, want)
    assert (want[0] != want[1]).any()
    for kind in ("parallel", "vectorize"):
        refused(func, "two of its iterations may touch the same element of B",
                lambda s, kind=kind: getattr(s, kind)(s.get_loops("C")[0]))
    for run in (lambda *a: interp.run(lower(func), *a), tw.build(func)["main"]):
        got = np.zeros((4, 8), "int32")
        run(A, got)
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("body", [
    steps(ROWS + "for k in range(3)", buffer="B") + READ,
    steps("for k in range(2); for i in range(8); for l in range(2)", k="k * 2 + l", where="k * 2 + l < 3",
          buffer="B") + READ,
    steps("for f in range(24)", i="f // 3", k="f % 3", buffer="B", after=READ_ONE.format(j="f // 3")),
])
def test_a_sum_that_starts_in_each_iteration_is_its_own(body):
    func = in_each_iteration(body)
    out = moved(func, lambda s: s.parallel(s.get_loops("C")[0]))
    want = np.repeat(A[None, :, :3].sum(2), 4, 0)
    for run in (lambda *a: interp.run(func, *a), lambda *a: interp.run(out, *a), tw.build(out)["main"]):
        got = np.zeros((4, 8), "int32")
        run(A, got)
        np.testing.assert_array_equal(got, want)


def test_a_consumer_of_a_sum_that_goes_on_stays_behind_it():
    func = in_each_iteration(steps(ROWS + "for k in range(T.min(t, 1), 3)", buffer="B") + READ)
    refused(func, "what block C reads of block S is not all computed in one iteration of loop i",
            lambda s: s.reverse_compute_at("C", s.get_loops("S")[1]))
    moved(in_each_iteration(steps(ROWS + "for k in range(3)", buffer="B") + READ),
          lambda s: s.reverse_compute_at("C", s.get_loops("S")[1]))
