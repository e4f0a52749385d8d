"""Programs in block form of a few lines, each of a kind for which a condition of a primitive did not hold."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tests.schedule.core_support import check_replay
from tilewright.lowering import lower
from tilewright.schedule import Schedule
from tilewright.script import from_source
from tilewright.support.errors import ScheduleError
from tilewright.tir import interp
from tilewright.tir.stmt import THREAD_BINDING, PrimFunc
from tilewright.tir.verify import verify

Move = Callable[[Schedule], object]
A4 = np.array([3, -1, 4, 2], "int32")


def program(parameters: str, body: str) -> PrimFunc:
    return from_source(f"@T.prim_func\ndef main({parameters}):\n{body}")


def ints(parameters: str) -> str:
    """`A4 C3x4` as parameters: buffers of int32."""
    out = []
    for p in parameters.split():
        shape = ", ".join(p[1:].split("x"))
        out.append(f'{p[0]}: T.Buffer(({shape},), "int32")')
    return ", ".join(out)


def same(func: PrimFunc, args: list[Any], want: np.ndarray) -> None:
    """The last array of args becomes want: in block form, lowered, and natively where no loop is bound to threads."""
    runs: list[Callable[..., object]] = [lambda *a, f=f: interp.run(f, *a)
                                         for f in (func, lower(func), lower(func, simple_mode=True))]
    if not any(loop.kind == THREAD_BINDING for loop in Schedule(func).index.loops.values()):
        runs.append(tw.build(func)["main"])
    last = max(k for k, a in enumerate(args) if isinstance(a, np.ndarray))
    for run in runs:
        copies = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
        run(*copies)
        np.testing.assert_array_equal(copies[last], want)


def moved(func: PrimFunc, move: Move) -> PrimFunc:
    sch = Schedule(func)
    move(sch)
    verify(sch.func, "block")
    check_replay(sch, func)
    return sch.func


def refused(func: PrimFunc, message: str, move: Move) -> None:
    sch = Schedule(func)
    before = str(sch.func)
    with pytest.raises(ScheduleError, match=message):
        move(sch)
    assert str(sch.func) == before


@pytest.mark.parametrize("n, m", [(0, 0), (1, 1), (2, 3), (4, 4), (0, 4)])
def test_the_product_of_two_extents_below_0_is_no_iteration(n, m):
    func = program('A: T.Buffer((4, 4), "int32"), C: T.Buffer((4, 4), "int32"), n: T.int32, m: T.int32', """
    for i, j in T.grid(n - 2, m - 2):
        with T.block("C"):
            vi = T.axis.spatial(4, i)
            vj = T.axis.spatial(4, j)
            C[vi, vj] = A[vi, vj] + 1
""")
    a, c = np.arange(16, dtype="int32").reshape(4, 4), np.full((4, 4), -7, "int32")
    want = c.copy()
    rows, columns = max(n - 2, 0), max(m - 2, 0)
    want[:rows, :columns] = a[:rows, :columns] + 1
    same(moved(func, lambda s: s.fuse(*s.get_loops("C"))), [a, c, n, m], want)


ONCE = """
    X = T.alloc_buffer((1,), "int32")
    for i in range(4):
        for t in range({times}):
            with T.block("X"):
                v = T.axis.spatial(1, 0)
                X[v] = A[v] * 2
        for u in range(1):
            with T.block("C"):
                vi = T.axis.spatial(4, i)
                C[vi] = X[0] + vi
"""


@pytest.mark.parametrize("times", ["1 - i", "L[i]", "T.max(2 - i * 2, 0)"])
def test_what_a_loop_that_does_not_always_run_leaves_for_later_iterations(times):
    func = program(ints("A4 L4 C4"), ONCE.format(times=times))
    args, want = [A4, np.array([1, 0, 0, 2], "int32"), np.zeros(4, "int32")], [6, 7, 8, 9]
    same(func, args, want)
    for move in (lambda s: s.parallel(s.get_loops("C")[0]), lambda s: s.vectorize(s.get_loops("C")[0]),
                 lambda s: s.bind(s.get_loops("C")[0], "threadIdx.x")):
        refused(func, "two of its iterations may touch the same element of X", move)


@pytest.mark.parametrize("times", ["n", "2", "n + 1"])
def test_a_loop_that_runs_alike_in_all_iterations_leaves_them_their_own_buffers(times):
    func = program(ints("A4 C4") + ", n: T.int32", ONCE.format(times=times))
    out = moved(func, lambda s: s.parallel(s.get_loops("C")[0]))
    same(out, [A4, np.zeros(4, "int32"), 2], [6, 7, 8, 9])


SOME = """
    X = T.alloc_buffer((2,), "int32")
    for i in range(4):
        for t in range({times}):
            with T.block("X"):
                v = T.axis.spatial(2, {at})
                X[v] = A[v] * 2
        with T.block("C"):
            vi = T.axis.spatial(4, i)
            C[vi] = X[{read}] + vi
"""


@pytest.mark.parametrize("times, at, read", [
    ("2 - i * 2", "t", 1), ("2 - i * 2", "t % 2", 1), ("2 - i * 2", "t // 2", 0), ("T.max(2 - i * 2, 0)", "1 - t", 0),
    ("L[i]", "t", 0)])
def test_a_loop_that_tells_the_element_and_does_not_always_run(times, at, read):
    func = program(ints("A4 L4 C4"), SOME.format(times=times, at=at, read=read))
    same(func, [A4, np.array([1, 0, 0, 2], "int32"), np.zeros(4, "int32")], A4[read] * 2 + np.arange(4))
    for move in (lambda s: s.parallel(s.get_loops("C")[0]), lambda s: s.bind(s.get_loops("C")[0], "threadIdx.x")):
        refused(func, "two of its iterations may touch the same element of X", move)


NOT_ALL = """
    X = T.alloc_buffer((4, 2), "int32")
    for i in range(4):
        with T.block("X"):
            vi = T.axis.spatial(4, i)
            for t in range(2 - vi):
                for j in range(2):
                    X[vi, j] = A[vi] * 2 + j
    for i, j in T.grid(4, 2):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = T.if_then_else(vi < 2, X[vi, vj] + 1, 0)
"""


def test_a_block_that_writes_its_region_in_a_loop_that_may_stand_still_does_not_fill_it():
    func = program(ints("A4 C4x2"), NOT_ALL)
    refused(func, "may not be written by then", lambda s: s.cache_read("C", 0, "local"))
    refused(func, "may not be written by then", lambda s: s.reindex("C", ("read", 0)))


def test_loops_that_have_one_extent_only_where_both_run_are_not_merged():
    func = program(ints("A4 C4"), ONCE.format(times="1 - i"))
    refused(func, "loop t has extent 1 - i, and loop u has 1", lambda s: s.merge(s.get_loops("X")[1],
                                                                                 s.get_loops("C")[1]))


FROM_ITSELF = """
    for i, k in T.grid(3, 4):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = C[vi] * 2
            C[vi] = C[vi] + A[vi, vk]
"""


@pytest.mark.parametrize("move", [
    lambda s: s.cache_write("C", 0, "local"), lambda s: s.reindex("C", ("write", 0)),
    lambda s: s.write_at(s.get_loops("C")[0], "C", 0, "local"), lambda s: s.pad_einsum("C", [2, 2]),
    lambda s: s.rfactor(s.get_loops("C")[1], 0)])
def test_a_reduction_that_starts_with_what_was_there_keeps_its_buffer(move):
    func = program(ints("A3x4 C3"), FROM_ITSELF)
    refused(func, "starts its reduction with C|that it starts itself", move)


def test_steps_ahead_of_the_start_stay_ahead_of_it():
    func = program(ints("A4 C6"), """
    for i, j in T.grid(3, 4):
        with T.block("C"):
            vi = T.axis.spatial(6, i + j)
            vk = T.axis.reduce(4, j)
            with T.init():
                C[vi] = 0
            C[vi] = C[vi] + A[vk]
""")
    refused(func, "breaks a dependence of block C", lambda s: s.reorder(*s.get_loops("C")[::-1]))
    func = moved(func, lambda s: s.split(s.get_loops("C")[0], [None, 2]))
    refused(func, "breaks a dependence of block C", lambda s: s.reorder(*s.get_loops("C")[1::-1]))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16"])
@pytest.mark.parametrize("move", [lambda s: s.cache_index("C", "local"), lambda s: s.reindex("C", ("read", 0))])
def test_indices_of_copies_are_not_of_few_bits(dtype, move):
    func = program(ints("A4 C4"), f"""
    for i in T.serial(T.{dtype}(4)):
        with T.block("C"):
            vi = T.axis.spatial(T.{dtype}(4), i)
            C[vi] = A[T.{dtype}(3) - vi] + 1
""")
    refused(func, f"the new index vi of block C is {dtype}", move)


def test_a_box_of_more_than_32_bits_is_the_whole_dimension():
    func = program(ints("A4 L3 C3"), """
    for i in range(3):
        for k in range(L[i]):
            with T.block("C"):
                vi = T.axis.spatial(3, i)
                vk = T.axis.reduce(4, k)
                with T.init():
                    C[vi] = 0
                C[vi] = C[vi] + A[vk]
""")
    def move(s: Schedule) -> None:
        s.loop_partition(s.get_loops("C")[1], [1, None])
        s.cache_read("C_k0", 0, "local")
    same(moved(func, move), [A4, np.array([2, 4, 1], "int32"), np.zeros(3, "int32")], [2, 8, 3])


@pytest.mark.parametrize("body", ["C[vi] = A[vi] + x", "C[x] = A[vi]", "C[vi] = A[x]"])
def test_a_block_computes_from_its_axes_alone(body):
    func = program(ints("A4 C4"), f"""
    for i in range(4):
        x: T.int32 = 3 - i
        with T.block("C"):
            vi = T.axis.spatial(4, i)
            {body}
""")
    with pytest.raises(ScheduleError, match="block C uses x, which is bound outside of it"):
        Schedule(func)


def test_a_block_stays_inside_of_the_lets_that_it_uses():
    func = program(ints("A4 C4") + ", n: T.int32", """
    X = T.alloc_buffer((4,), "int32")
    for i in range(4):
        with T.block("X"):
            vi = T.axis.spatial(4, i)
            X[vi] = A[vi] * 2
    x: T.int32 = n - 4
    for i in range(4):
        with T.block("C"):
            vi = T.axis.spatial(4, i)
            C[vi] = X[vi] + x
""")
    for move in (lambda s: s.reverse_compute_at("C", s.get_loops("X")[0]), lambda s: s.reverse_compute_inline("C")):
        refused(func, "x would be used outside of the statement that binds it", move)
    same(moved(func, lambda s: s.compute_at("X", s.get_loops("C")[0])), [A4, np.zeros(4, "int32"), 7], A4 * 2 + 3)


STEPS = """
    for i in range({rows}):
        for k in range({steps}):
            with T.block("C"):
                vi = T.axis.spatial(4, i)
                vk = T.axis.reduce(4, k)
                with T.init():
                    C[vi] = 0
                C[vi] = C[vi] + A[vk]
"""


@pytest.mark.parametrize("rows, steps", [("4", "n"), ("2, 4", "2 - i"), ("4", "T.max(2 - i, 0)")])
@pytest.mark.parametrize("move", [lambda s: s.decompose_reduction("C", s.get_loops("C")[1]),
                                  lambda s: s.rfactor(s.get_loops("C")[1], 0)])
def test_a_reduction_whose_loop_has_no_steps_does_not_start(rows, steps, move):
    func = program(ints("A4 C4") + ", n: T.int32", STEPS.format(rows=rows, steps=steps))
    refused(func, "loop k may have no iterations|extent of loop k depends", move)


def test_a_block_made_of_a_reduction_has_elements_where_the_reduction_has():
    def blockized(s: Schedule) -> object:
        return s.blockize(s.get_loops("C")[0])
    for rows, steps in (("4", "n"), ("2, 4", "2 - i")):
        func = program(ints("A4 C4") + ", n: T.int32", STEPS.format(rows=rows, steps=steps))
        refused(func, "the axes of the new block none where its loops have no iterations", blockized)
    func = program(ints("A4 C4") + ", n: T.int32", STEPS.format(rows="4", steps="n"))
    halves = moved(func, lambda s: s.split(s.get_loops("C")[1], [None, 2]))
    refused(halves, "the axes of the new block none", lambda s: s.blockize(s.get_loops("C")[2]))
    func = program(ints("A4 C4"), STEPS.format(rows="4", steps="T.max(2 - i, 0)"))
    same(moved(func, blockized), [A4, np.full(4, 9, "int32")], [2, 3, 9, 9])


@pytest.mark.parametrize("n", [0, 1, 4])
@pytest.mark.parametrize("move", [lambda s: s.decompose_reduction("C", s.get_loops("C")[1]),
                                  lambda s: s.rfactor(s.split(s.get_loops("C")[1], [None, 3])[1], 0),
                                  lambda s: s.rfactor(s.split(s.get_loops("C")[1], [None, 3])[0], 0),
                                  lambda s: s.blockize(s.get_loops("C")[0])])
def test_a_reduction_over_no_elements_starts_wherever_it_is_moved(move, n):
    func = program(ints("A4 C4") + ", n: T.int32", STEPS.format(rows="4", steps="n").replace("reduce(4", "reduce(n"))
    same(moved(func, move), [A4, np.full(4, 9, "int32"), n], np.full(4, A4[:n].sum()))


@pytest.mark.parametrize("move", [lambda s: s.compute_at("Y", s.get_loops("C")[1]),
                                  lambda s: s.read_at(s.get_loops("C")[1], "C", 0, "local")])
def test_what_a_reduction_starts_from_is_not_made_inside_of_its_loops(move):
    body = STEPS.format(rows="4", steps="n").replace("reduce(4", "reduce(n").replace("C[vi] = 0", "C[vi] = Y[vi]")
    func = program(ints("A4 C4") + ", n: T.int32", """
    Y = T.alloc_buffer((4,), "int32")
    for i in range(4):
        with T.block("Y"):
            vi = T.axis.spatial(4, i)
            Y[vi] = A[vi] * 3
""" + body)
    refused(func, "block C starts its reduction with Y(_local)?, also where loop k has no iterations", move)
    out = moved(func, lambda s: s.compute_at("Y", s.get_loops("C")[0]))
    for n in (0, 3):
        same(out, [A4, np.zeros(4, "int32"), n], A4 * 3 + A4[:n].sum())


STATE = """
    X = T.alloc_buffer((1,), "int32")
    Y = T.alloc_buffer((2,), "int32")
    for i in range(4):
        with T.block("X"):
            vi = T.axis.spatial(4, i)
            X[0] = A[vi] * 2
        for j in range(2):
            with T.block("Y"):
                vi, vj = T.axis.remap("SS", [i, j])
                Y[vj] = X[0] + vj
        with T.block("C"):
            vi = T.axis.spatial(4, i)
            C[vi] = Y[0] + Y[1] * X[0]
"""


@pytest.mark.parametrize("move", [lambda s: s.compute_inline("C"),
                                  lambda s: s.compute_at("C", s.get_loops("C_reindex")[0])])
def test_what_reads_a_buffer_that_each_iteration_fills_anew_stays_in_the_iteration(move):
    func = program(ints("A4 C4"), STATE)
    copied = moved(func, lambda s: s.reindex("C", ("write", 0)))
    same(copied, [A4, np.zeros(4, "int32")], A4 * 2 + (A4 * 2 + 1) * A4 * 2)
    refused(copied, "between block C, which reads it|could change whether it runs before or after", move)


@pytest.mark.parametrize("buffer", ["X", "Y"])
def test_threads_do_not_share_what_each_computes_from_memory_of_its_own(buffer):
    func = program(ints("A4 C4"), STATE)
    bound = moved(func, lambda s: s.bind(s.get_loops("C")[0], "threadIdx.x"))
    same(bound, [A4, np.zeros(4, "int32")], A4 * 2 + (A4 * 2 + 1) * A4 * 2)
    refused(bound, "what block X computes depends on i|may touch the same element of X",
            lambda s: s.set_scope(buffer, 0, "shared"))


@pytest.mark.parametrize("move", [lambda s: s.cache_read("X", 1, "local"), lambda s: s.reindex("X", ("read", 1)),
                                  lambda s: s.cache_read("C", 1, "local")])
def test_each_iteration_of_a_while_reads_what_the_one_before_wrote(move):
    func = program(ints("A4 C4"), """
    N = T.alloc_buffer((1,), "int32")
    X = T.alloc_buffer((4,), "int32")
    with T.block("N"):
        N[0] = 0
    while N[0] < 3:
        for i in range(4):
            with T.block("X"):
                vi = T.axis.spatial(4, i)
                X[vi] = A[vi] + N[0]
        for i in range(4):
            with T.block("C"):
                vi = T.axis.spatial(4, i)
                C[vi] = C[vi] + X[3 - vi]
        with T.block("M"):
            N[0] = N[0] + 1
""")
    same(func, [A4, np.zeros(4, "int32")], A4[::-1] * 3 + 3)
    refused(func, "is not complete before its first consumer|may not be written by then", move)


def test_what_is_needed_outside_of_a_condition_is_not_computed_under_it():
    func = program(ints("A4 C4") + ", n: T.int32", """
    X = T.alloc_buffer((4,), "int32")
    Y = T.alloc_buffer((4,), "int32")
    for i in range(4):
        with T.block("X"):
            vi = T.axis.spatial(4, i)
            X[vi] = A[vi] * 2
    if n > 1:
        for i in range(4):
            with T.block("Y"):
                vi = T.axis.spatial(4, i)
                Y[vi] = X[vi] + 1
    for i in range(4):
        with T.block("C"):
            vi = T.axis.spatial(4, i)
            C[vi] = T.if_then_else(n > 1, Y[vi], X[vi])
""")
    refused(func, "reads X's result and is not below loop i", lambda s: s.compute_at("X", s.get_loops("Y")[0]))
    refused(func, "would run only where a condition holds", lambda s: s.reverse_compute_at("C", s.get_loops("Y")[0]))
    for n in (0, 2):
        same(func, [A4, np.zeros(4, "int32"), n], A4 * 2 + (n > 1))


SOME_STEPS = """
    X = T.alloc_buffer((4,), "int32")
    for i in range(4):
        with T.block("Z"):
            vi = T.axis.spatial(4, i)
            X[vi] = 5
    for i in range(4):
        for k in range({steps}):
            with T.block("X"):
                vi = T.axis.spatial(4, i)
                vk = T.axis.reduce({domain}, k)
                X[vi] = X[vi] + A[vk]
    for i in range(4):
        with T.block("C"):
            vi = T.axis.spatial(4, i)
            C[vi] = X[vi] + 1
"""


@pytest.mark.parametrize("steps, domain", [("2 - i * 2", 2), ("T.min(n, 1)", 1)])
def test_a_reduction_runs_no_steps_elsewhere_that_it_did_not_run(steps, domain):
    func = program(ints("A4 C4") + ", n: T.int32", SOME_STEPS.format(steps=steps, domain=domain))
    for move in (lambda s: s.compute_at("X", s.get_loops("C")[0]),
                 lambda s: s.reverse_compute_at("X", s.get_loops("Z")[0])):
        refused(func, "not shown to run its reduction exactly once", move)


@pytest.mark.parametrize("move", [
    lambda s: s.reverse_compute_at("C", s.get_loops("X")[0]), lambda s: s.reverse_compute_inline("C"),
    lambda s: s.write_at(s.get_loops("C")[0], "C", 0, "local"), lambda s: s.cache_write("C", 0, "local"),
    lambda s: s.reindex("C", ("write", 0))])
def test_a_loop_of_one_value_may_have_none(move):
    func = program(ints("A4 C4") + ", n: T.int32", """
    X = T.alloc_buffer((4,), "int32")
    for i in range(4):
        with T.block("X"):
            vi = T.axis.spatial(4, i)
            X[vi] = A[vi] * 5
    for i in range(4):
        for k in range(T.min(n, 1)):
            with T.block("C"):
                vi = T.axis.spatial(4, i)
                vk = T.axis.spatial(1, k)
                C[vi + vk] = X[vi] + A[vk]
""")
    sch = Schedule(func)
    try:
        move(sch)
    except ScheduleError:
        return
    for n in (0, 1):
        same(sch.func, [A4, np.full(4, 9, "int32"), n], A4 * 5 + 3 if n else np.full(4, 9))


def test_nor_is_it_inside_of_a_block():
    body = STEPS.format(rows="4", steps="n").replace("reduce(4", "reduce(n").replace("C[vi] = 0", "C[vi] = A[vi]")
    func = moved(program(ints("A4 C4") + ", n: T.int32", body), lambda s: s.blockize(s.get_loops("C")[0]))
    refused(func, "starts its reduction with A_local, also where loop k has no iterations",
            lambda s: s.read_at(s.get_loops("C")[1], "C", 0, "local"))


@pytest.mark.parametrize("where", ["T.where(Y[i] > 0)", "T.where(i < 3)", ""])
def test_a_fused_loop_tells_which_elements_start(where):
    rows = "4" if where else "2"
    func = program(ints("A4 C4") + ", n: T.int32", f"""
    Y = T.alloc_buffer((4,), "int32")
    for i in range(4):
        with T.block("Y"):
            vi = T.axis.spatial(4, i)
            Y[vi] = A[vi] * 3
    for i, k in T.grid({rows}, n):
        with T.block("C"):
            vi = T.axis.spatial(4, i)
            vk = T.axis.reduce(n, k)
            {where}
            with T.init():
                C[vi] = 1
            C[vi] = C[vi] + Y[vk]
""")
    refused(func, "would not tell which elements block C starts", lambda s: s.fuse(*s.get_loops("C")))
    if "Y" in where:
        refused(func, "starts its reduction with Y, also where loop k has no iterations",
                lambda s: s.compute_at("Y", s.get_loops("C")[1]))
    taken = {"T.where(Y[i] > 0)": A4 > 0, "T.where(i < 3)": np.arange(4) < 3, "": np.arange(4) < 2}[where]
    for n in (0, 3):
        same(func, [A4, np.full(4, 9, "int32"), n], np.where(taken, 1 + 3 * A4[:n].sum(), 9))
