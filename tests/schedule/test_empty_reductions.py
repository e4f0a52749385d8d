"""Reductions over nothing: what starts is the same whatever the order of the loops and however they are cut."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice, permutations

import numpy as np
import pytest

from tilewright import te
from tilewright.schedule import Schedule
from tilewright.support.errors import ScheduleError
from tilewright.te.prim_func import create_prim_func
from tilewright.tir import interp
from tilewright.tir.stmt import PrimFunc

from .test_few_lines import Move, moved, program, refused, same

A = np.arange(64, dtype="int32").reshape(8, 8) + 1
OLD = np.full(8, 77, "int32")
PARAMETERS = ('A: T.Buffer((8, 8), "int32"), L: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32"), '
              "m: T.int32, p: T.int32")
LIMITS = np.array([5, 1, 4, 6, 2, 7, 5, 3], "int32")


def sums(lines: list[str], axis: str = "i", extent: str = "m", where: str = "") -> PrimFunc:
    """Sums of rows of A in C, below the loops and conditions of `lines`."""
    block = f"""
with T.block("C"):
    vi = T.axis.spatial(8, {axis})
    vk = T.axis.reduce({extent}, k)
    {f"T.where({where})" if where else "pass"}
    with T.init():
        C[vi] = 0
    C[vi] = C[vi] + A[vi, vk]
""".replace("    pass\n", "").strip().splitlines()
    text = [" " * (4 * depth + 4) + line for depth, line in enumerate(lines)]
    return program(PARAMETERS, "\n".join([*text, *(" " * (4 * len(lines) + 4) + line for line in block)]) + "\n")


def all_nests() -> Iterator[tuple[list[str], str, str, str]]:
    for extent in ("0", "m"):
        for rows, axis in (("8", "i"), ("4", "i + 2"), ("1", "i"), ("p", "i"), ("0", "i")):
            for idle in ((), ("0",), ("p",)):
                loops = [f"for i in range({rows}):", f"for k in range({extent}):",
                         *(f"for u in range({e}):" for e in idle)]
                for order in permutations(loops):
                    for where in ("", "i < 3", "k < 2"):
                        yield list(order), axis, extent, where


def moves(sch: Schedule) -> Iterator[Move]:
    """Steps of all primitives that put the loops of C into another form."""
    def at(place: int, primitive: Callable[..., object], *args: object, **more: bool) -> Move:
        return lambda s: primitive(s, s.get_loops("C")[place], *args, **more)
    depth = len(sch.get_loops("C"))
    for n in range(depth - 1):
        yield lambda s, n=n: s.fuse(*s.get_loops("C")[n:n + 2])
        yield lambda s, n=n: s.reorder(*s.get_loops("C")[n:n + 2][::-1])
    for n in range(depth):
        yield at(n, Schedule.split, [None, 2])
        yield at(n, Schedule.split, [1, None], preserve_unit_iters=False)
        yield at(n, Schedule.loop_partition, [1, None], preserve_unit_iters=False)
        yield at(n, Schedule.rfactor, 0)
        yield lambda s, n=n: s.decompose_reduction("C", s.get_loops("C")[n])
    yield lambda s: s.blockize([s.get_block("C")])
    yield lambda s: s.cache_write("C", 0, "local")
    yield lambda s: s.transform_block_layout("C", lambda i, k: (i, k))


def result(func: PrimFunc, m: int, p: int) -> list[int]:
    c = OLD.copy()
    interp.run(func, A, LIMITS, c, m, p)
    return c.tolist()


def test_no_step_changes_what_starts():
    accepted = 0
    for lines, axis, extent, where in islice(all_nests(), 0, None, 11):
        func = sums(lines, axis, extent, where)
        sizes = [(0, 0), (0, 3), (2, 3)]
        want = [result(func, *size) for size in sizes]
        for move in moves(Schedule(func)):
            sch = Schedule(func)
            try:
                move(sch)
            except ScheduleError:
                continue
            accepted += 1
            assert [result(sch.func, *size) for size in sizes] == want, f"{func}\n{sch.func}"
    assert accepted > 400


def rows(*started: int) -> np.ndarray:
    out = OLD.copy()
    out[list(started)] = 0
    return out


LOOPS = {"i": "for i in range({}):", "k": "for k in range({}):", "u": "for u in range({}):", "j": "for j in range({}):"}


def nest(**extents: object) -> list[str]:
    return [LOOPS[name].format(extent) for name, extent in extents.items()]


@pytest.mark.parametrize("lines, axis, extent, where, move, started", [
    (nest(i=4, k=0), "i", "0", "", lambda s: s.reorder(*s.get_loops("C")[::-1]), [0, 1, 2, 3]),
    (nest(k=0), "3", "0", "", lambda s: s.decompose_reduction("C", s.get_loops("C")[0]), [3]),
    (nest(k=0), "3", "0", "", lambda s: s.blockize(s.get_loops("C")[0]), [3]),
    (nest(i=1, j=2, k=0), "i + 3", "0", "", lambda s: s.fuse(*s.get_loops("C")[:2]), [3]),
    (nest(u=0, i=8, k="m"), "i", "m", "i < 3", lambda s: s.split(s.get_loops("C")[1], [None, 2]), []),
    (nest(i=8, u=0, k="m"), "i", "m", "", lambda s: s.decompose_reduction("C", s.get_loops("C")[1]), []),
    (nest(i=8, u="p", k="m"), "i", "m", "", lambda s: s.decompose_reduction(
        "C_u0", s.loop_partition(s.get_loops("C")[1], [1, None], preserve_unit_iters=False)[0]), []),
    (nest(i=8, k="m", u=1), "i", "m", "", lambda s: s.split(s.get_loops("C")[1], [None, 2]), range(8)),
])
def test_what_starts(lines, axis, extent, where, move, started):
    func = sums(lines, axis, extent, where)
    want = rows(*started)
    same(func, [A, LIMITS, OLD, 0, 0], want)
    same(moved(func, move), [A, LIMITS, OLD, 0, 0], want)


@pytest.mark.parametrize("lines, axis, where, first, message", [
    (nest(i=4, k="m"), "i", "", 0, "would not tell which elements block C starts"),
    (nest(i=4, k=0), "i", "", 0, "would not tell which elements block C starts"),
    (nest(i=8, k=0), "i", "i < p", 0, "would not tell which elements block C starts"),
    (nest(j=2, i=4, k="m"), "j * 4 + i", "j < 1", 1, "would not tell which elements block C starts"),
    (nest(i=8, u="p", k="m"), "i", "", 1, "loop u may have no iterations"),
    (nest(i=8, k="m", u="p"), "i", "", 1, "loop u may have no iterations"),
    (nest(i=8, u=0, k="m"), "i", "", 1, "loop u may have no iterations"),
])
def test_a_fused_loop_that_would_not_tell_what_starts(lines, axis, where, first, message):
    func = sums(lines, axis, "0" if lines[-1] == LOOPS["k"].format(0) else "m", where)
    refused(func, message, lambda s: s.fuse(*s.get_loops("C")[first:first + 2]))


@pytest.mark.parametrize("lines, axis, extent, where", [
    (nest(i=8, k="m"), "i", "m", ""), (nest(k="m", i=8), "i", "m", ""), (nest(i=8, k=0), "i", "0", ""),
    (nest(i=8, k="m"), "i", "m", "k < 2"), (nest(u=1, k="m"), "3", "m", ""),
])
def test_a_fused_loop_that_tells_what_starts(lines, axis, extent, where):
    func = sums(lines, axis, extent, where)
    want = OLD.copy()
    interp.run(func, A, LIMITS, want, 0, 0)
    same(moved(func, lambda s: s.fuse(*s.get_loops("C"))), [A, LIMITS, OLD, 0, 0], want)


def test_iterations_at_once_do_not_start_the_same_elements():
    """A fused loop over a part of the rows would let each iteration of the loop around start all of them."""
    func = sums(nest(j=2, i=4, k="m"), "j * 4 + i")
    refused(func, "would not tell which elements block C starts", lambda s: s.fuse(*s.get_loops("C")[1:]))


def test_a_loop_inside_that_follows_the_fused_one():
    func = program('A: T.Buffer((8, 8), "int32"), C: T.Buffer((8, 8), "int32"), m: T.int32', """
    for i in range(8):
        for k in range(m):
            for j in range(i + 1):
                with T.block("C"):
                    vi = T.axis.spatial(8, i)
                    vj = T.axis.spatial(8, j)
                    vk = T.axis.reduce(m, k)
                    with T.init():
                        C[vi, vj] = 0
                    C[vi, vj] = C[vi, vj] + A[vi, vk]
""")
    refused(func, "would not tell which elements block C starts", lambda s: s.fuse(*s.get_loops("C")[:2]))


BETWEEN = {
    "extent": (0, ["for k in range(m):", "for i in range(L[0]):"]),
    "extent below a loop of no axis": (1, ["for k in range(m):", "for u in range(5):", "for i in range(L[u]):"]),
    "branch": (0, ["for k in range(m):", "for i in range(8):", "if L[i] > 3:"]),
    "branch of the loop": (1, ["for k in range(m):", "for i in range(8):", "if L[i] > 3:"]),
}


@pytest.mark.parametrize("place, lines", BETWEEN.values(), ids=BETWEEN)
@pytest.mark.parametrize("cut", [
    lambda s, n: s.split(s.get_loops("C")[n], [None, 4]),
    lambda s, n: s.loop_partition(s.get_loops("C")[n], [2, None]),
])
def test_a_condition_between_the_loops_of_a_reduction_and_its_block(place, lines, cut):
    """Where the extent of an inner loop is read from memory, the condition of a loop that was cut stands around it."""
    func = sums(lines)
    after = moved(func, lambda s: cut(s, place))
    for m in (0, 3):
        want = OLD.copy()
        interp.run(func, A, LIMITS, want, m, 0)
        assert m or set(want.tolist()) == {0, 77}
        same(after, [A, LIMITS, OLD, m, 0], want)


def test_a_moved_reduction_over_nothing_keeps_to_the_loops_that_drive_nothing():
    func = program(PARAMETERS.replace("m:", 'D: T.Buffer((8,), "int32"), m:'), """
    for u in range(p):
        for i in range(8):
            for k in range(0):
                with T.block("C"):
                    vi = T.axis.spatial(8, i)
                    vk = T.axis.reduce(0, k)
                    with T.init():
                        C[vi] = 0
                    C[vi] = C[vi] + A[vi, vk]
    for j in range(8):
        with T.block("D"):
            vj = T.axis.spatial(8, j)
            D[vj] = C[vj]
""")
    refused(func, "block C would run where loop u has no iterations",
            lambda s: s.compute_at("C", s.get_loops("D")[0]))


@pytest.mark.parametrize("schedule", [
    lambda s: s.fuse(*s.get_loops("C")),
    lambda s: s.fuse(*s.split(s.get_loops("C")[1], [None, 2])),
    lambda s: s.rfactor(s.split(s.get_loops("C")[1], [None, 2])[1], 0),
    lambda s: s.decompose_reduction("C", s.get_loops("C")[0]),
    lambda s: (s.reorder(*s.get_loops("C")[::-1]), s.decompose_reduction("C", s.get_loops("C")[0])),
    lambda s: s.compute_at("C", s.get_loops("D")[0]),
    lambda s: (s.fuse(*s.get_loops("C")), s.compute_at("C", s.get_loops("D")[0])),
    lambda s: s.reverse_compute_at("D", s.get_loops("C")[0]),
    lambda s: (s.blockize(s.get_loops("C")[1]), s.blockize(s.get_loops("D")[0])),
    lambda s: s.loop_partition(s.get_loops("C")[0], [3, None]),
])
def test_sums_of_no_terms_are_0(schedule):
    a, k = te.placeholder((8, 0), "int32", name="A"), te.reduce_axis((0, 0), name="k")
    c = te.compute((8,), lambda i: te.sum(a[i, k], axis=k), name="C")
    func = create_prim_func([a, te.compute((8,), lambda i: c[i] + 5, name="D")])
    same(moved(func, schedule), [np.zeros((8, 0), "int32"), OLD], np.full(8, 5, "int32"))


@pytest.mark.parametrize("loops", [
    ("for i in range(8):", "for j in range(i, 3):", "for k in range(m):"),
    ("for i in range(8):", "for j in range(1, 3):", "for k in range(m):"),
    ("for i in range(8):", "for k in range(1, m):", "for j in range(1, 3):"),
])
def test_parts_of_a_loop_start_what_has_no_terms(loops):
    text = [" " * (4 * depth + 4) + line for depth, line in enumerate(loops)]
    func = program(PARAMETERS, "\n".join(text) + """
                with T.block("C"):
                    vi = T.axis.spatial(8, i)
                    vj = T.axis.reduce(3, j)
                    vk = T.axis.reduce(m, k)
                    with T.init():
                        C[vi] = 0
                    C[vi] = C[vi] + A[vi, vk] * vj
""")
    for place in range(3):
        part = moved(func, lambda s, n=place: s.loop_partition(s.get_loops("C")[n], [1, None]))
        for m in (0, 1, 3):
            assert result(part, m, 0) == result(func, m, 0)
