"""compute_at and reverse_compute_at: the loops they build, what they mean, what they refuse."""
from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tests.schedule.compute_support import (
    body_text,
    chain,
    check,
    loop_extents,
    matmul_bias,
    matmul_bias_reference,
    overwritten_between,
    refuses,
    stencil,
)
from tests.schedule.test_loops import refused
from tilewright import te
from tilewright.schedule import Schedule
from tilewright.script import from_source
from tilewright.script import tir as T
from tilewright.support.errors import ScheduleError
from tilewright.te.prim_func import create_prim_func
from tilewright.tir import For, IntImm, PrimFunc, interp, walk


def test_producer_moves_into_a_tile():
    sch = Schedule(chain(20))
    b, c = sch.get_block("B"), sch.get_block("C")
    io, _ = sch.split(sch.get_loops(c)[0], [None, 4])
    sch.compute_at(b, io)
    assert body_text(sch) == """\
    B = T.alloc_buffer((20,), "int32")
    for i_0 in range(5):
        for i in range(4):
            with T.block("B"):
                vi = T.axis.spatial(20, i_0 * 4 + i)
                B[vi] = A[vi] * 3
        for i_1 in range(4):
            with T.block("C"):
                vi = T.axis.spatial(20, i_0 * 4 + i_1)
                C[vi] = B[vi] - 1"""
    check(sch, chain(20), lambda a: a * 3 - 1, (20,))


@pytest.mark.parametrize("factor", [1, 3, 7, 20, 32])
def test_stencil_needs_the_hull_with_a_predicate(factor):
    func = stencil()
    sch = Schedule(func)
    io, _ = sch.split(sch.get_loops(sch.get_block("C"))[0], [None, factor])
    sch.compute_at(sch.get_block("B"), io, preserve_unit_loops=True)
    assert loop_extents(sch, "B") == [-(-20 // factor), min(factor + 2, 22), 6]
    check(sch, func, lambda a: 3 * (a[:-2] + a[2:]), (22, 6))


def test_unit_loops_vanish_unless_preserved():
    for preserve, extents in [(False, [20, 6]), (True, [20, 6, 1, 1])]:
        sch = Schedule(matmul_bias(20, 6, 5))
        loops = sch.get_loops(sch.get_block("D"))
        sch.compute_at(sch.get_block("C"), loops[1], preserve_unit_loops=preserve)
        assert loop_extents(sch, "C") == [*extents, 5]
        check(sch, matmul_bias(20, 6, 5), matmul_bias_reference, (20, 5), (5, 6))


def test_reduction_keeps_its_axis_and_init():
    func = matmul_bias()
    sch = Schedule(func)
    i, j = sch.get_loops(sch.get_block("D"))
    io, ii = sch.split(i, [None, 8])
    jo, ji = sch.split(j, [None, 8])
    sch.reorder(io, jo, ii, ji)
    sch.compute_at(sch.get_block("C"), jo)
    assert loop_extents(sch, "C") == [3, 3, 8, 8, 13]
    assert sch.get(sch.get_block("C")).init is not None
    check(sch, func, matmul_bias_reference, (20, 13), (13, 18))


def test_symbolic_extent():
    n = te.var("n")
    func = chain(n)
    for size in (1, 4, 9):
        sch = Schedule(func)
        io, _ = sch.split(sch.get_loops(sch.get_block("C"))[0], [None, 4])
        sch.compute_at(sch.get_block("B"), io)
        assert loop_extents(sch, "B")[1] == 4
        assert "i_0 * 4 + i < n" in str(sch)
        check(sch, func, lambda a: a * 3 - 1, (size,))


def test_a_loop_of_extents_zero_and_one():
    for n in (0, 1):
        func = chain(n)
        sch = Schedule(func)
        sch.compute_at(sch.get_block("B"), sch.get_loops(sch.get_block("C"))[0])
        check(sch, func, lambda a: a * 3 - 1, (n,))


def test_several_consumers_with_different_maps():
    a = te.placeholder((16, 16), "int32", name="A")
    b = te.compute((16, 16), lambda i, j: a[i, j] * 2, name="B")
    c = te.compute((16,), lambda i: b[i, 0] + b[0, 15 - i], name="C")
    func = create_prim_func([a, c])
    sch = Schedule(func)
    io, _ = sch.split(sch.get_loops(sch.get_block("C"))[0], [None, 4])
    sch.compute_at(sch.get_block("B"), io)
    check(sch, func, lambda a: 2 * a[:, 0] + 2 * a[0, ::-1], (16, 16))


def test_reversed_and_strided_reads():
    a = te.placeholder((20,), "int32", name="A")
    b = te.compute((20,), lambda i: a[i] + 1, name="B")
    c = te.compute((10,), lambda i: b[19 - i * 2], name="C")
    func = create_prim_func([a, c])
    sch = Schedule(func)
    io, _ = sch.split(sch.get_loops(sch.get_block("C"))[0], [None, 3])
    sch.compute_at(sch.get_block("B"), io)
    assert loop_extents(sch, "B") == [4, 5]
    check(sch, func, lambda a: a[19::-2] + 1, (20,))


def test_data_dependent_reads_take_the_whole_dimension():
    a = te.placeholder((8,), "int32", name="A")
    table = te.placeholder((5,), "int32", name="I")
    b = te.compute((8,), lambda i: a[i] + 1, name="B")
    c = te.compute((5,), lambda i: b[te.max(0, te.min(7, table[i]))], name="C")
    func = create_prim_func([a, table, c])
    sch = Schedule(func)
    sch.compute_at(sch.get_block("B"), sch.get_loops(sch.get_block("C"))[0])
    assert loop_extents(sch, "B") == [5, 8]
    check(sch, func, lambda a, i: a[np.clip(i, 0, 7)] + 1, (8,), (5,))


def test_chain_of_producers():
    a = te.placeholder((30,), "int32", name="A")
    b = te.compute((30,), lambda i: a[i] + 1, name="B")
    c = te.compute((28,), lambda i: b[i] + b[i + 2], name="C")
    d = te.compute((26,), lambda i: c[i] * c[i + 2], name="D")
    func = create_prim_func([a, d])

    def reference(a):
        c = a[:-2] + a[2:] + 2
        return c[:-2] * c[2:]
    sch = Schedule(func)
    io, _ = sch.split(sch.get_loops(sch.get_block("D"))[0], [None, 8])
    sch.compute_at(sch.get_block("C"), io)
    sch.compute_at(sch.get_block("B"), io)
    assert loop_extents(sch, "B") == [4, 12] and loop_extents(sch, "C") == [4, 10]
    check(sch, func, reference, (30,))


def test_below_a_parallel_loop_each_iteration_has_its_own_part():
    func = stencil()
    sch = Schedule(func)
    io, _ = sch.split(sch.get_loops(sch.get_block("C"))[0], [None, 5])
    sch.parallel(io)
    sch.compute_at(sch.get_block("B"), io)
    check(sch, func, lambda a: 3 * (a[:-2] + a[2:]), (22, 6))


def test_position_in_the_loop():
    a = te.placeholder((6,), "int32", name="A")
    b = te.compute((6,), lambda i: a[i] + 1, name="B")
    p = te.compute((6,), lambda i: a[i] * 2, name="P")
    c = te.compute((6,), lambda i: b[i] * p[i], name="C")
    func = create_prim_func([a, c])
    for index, order in [(-1, ["P", "B", "C"]), (-2, ["B", "P", "C"]), (0, ["B", "P", "C"]), (1, ["P", "B", "C"])]:
        sch = Schedule(func)
        i, = sch.get_loops(sch.get_block("C"))
        sch.compute_at(sch.get_block("P"), i)
        sch.compute_at(sch.get_block("B"), i, index=index)
        assert [rv.name for rv in sch.get_blocks()] == order
        check(sch, func, lambda a: (a + 1) * a * 2, (6,))
    refuses(Schedule(func), lambda: _at(Schedule(func), 2), "compute_at(block=B, loop=i, index=2)", "position 2",
            "(0 to 0)")


def _at(sch, index):
    sch.compute_at(sch.get_block("B"), sch.get_loops(sch.get_block("C"))[0], index=index)


# ---- reverse_compute_at

def test_consumer_follows_a_tile_of_its_producer():
    func = matmul_bias()
    sch = Schedule(func)
    c, d = sch.get_block("C"), sch.get_block("D")
    i, j, k = sch.get_loops(c)
    io, ii = sch.split(i, [None, 8])
    jo, ji = sch.split(j, [None, 6])
    sch.reorder(io, jo, k, ii, ji)
    sch.reverse_compute_at(d, jo)
    assert loop_extents(sch, "D") == [3, 3, 8, 6]
    check(sch, func, matmul_bias_reference, (20, 13), (13, 18))


def test_consumer_reduction_may_share_the_loop_that_feeds_it():
    a = te.placeholder((6, 7), "int32", name="A")
    b = te.compute((6, 7), lambda i, j: a[i, j] * 2, name="B")
    r = te.reduce_axis((0, 7), name="r")
    c = te.compute((6,), lambda i: te.sum(b[i, r], axis=r), name="C")
    func = create_prim_func([a, c])
    sch = Schedule(func)
    _, j = sch.get_loops(sch.get_block("B"))
    sch.reverse_compute_at(sch.get_block("C"), j)
    assert loop_extents(sch, "C") == [6, 7]
    check(sch, func, lambda a: 2 * a.sum(1), (6, 7))


def test_a_sum_over_a_window_follows_the_row_that_it_reads():
    a = te.placeholder((6, 10), "int32", name="A")
    b = te.compute((6, 10), lambda i, j: a[i, j] * 2, name="B")
    r = te.reduce_axis((0, 3), name="r")
    c = te.compute((6, 8), lambda i, j: te.sum(b[i, j + r], axis=r), name="C")
    func = create_prim_func([a, c])
    sch = Schedule(func)
    sch.reverse_compute_at("C", sch.get_loops("B")[0])
    assert loop_extents(sch, "C") == [6, 8, 3]
    check(sch, func, lambda a: 2 * (a[:, :-2] + a[:, 1:-1] + a[:, 2:]), (6, 10))


def test_symbolic_consumer():
    n = te.var("n")
    func = chain(n)
    sch = Schedule(func)
    io, _ = sch.split(sch.get_loops(sch.get_block("B"))[0], [None, 4])
    sch.reverse_compute_at(sch.get_block("C"), io)
    for size in (1, 4, 11):
        check(sch, func, lambda a: a * 3 - 1, (size,))


def test_incomplete_sums_are_not_read():
    sch = Schedule(matmul_bias())
    i, j, k = sch.get_loops(sch.get_block("C"))
    sch.reorder(i, k, j)
    refuses(sch, lambda: sch.reverse_compute_at(sch.get_block("D"), k), "reverse_compute_at(block=D, loop=r)",
            "what block D reads of block C is not all computed in one iteration of loop r", "# <-- here", "hint:")


def test_overlapping_parts_are_refused():
    sch = Schedule(stencil())
    i, _ = sch.get_loops(sch.get_block("B"))
    io, _ = sch.split(i, [None, 4])
    refuses(sch, lambda: sch.reverse_compute_at(sch.get_block("C"), io), "block C")


def test_last_sum_must_come_first():
    """The init of a reduction runs at its first step, so the steps may not come in reverse."""
    a = te.placeholder((9,), "int32", name="A")
    b = te.compute((9,), lambda i: a[8 - i], name="B")
    r = te.reduce_axis((0, 9), name="r")
    c = te.compute((1,), lambda i: te.sum(b[8 - r], axis=r), name="C")
    sch = Schedule(create_prim_func([a, c]))
    loop, = sch.get_loops(sch.get_block("B"))
    refuses(sch, lambda: sch.reverse_compute_at(sch.get_block("C"), loop), "first step 0")


# ---- refusals

def test_refusals_of_compute_at():
    sch = Schedule(matmul_bias())
    c, d = sch.get_block("C"), sch.get_block("D")
    i, j, k = sch.get_loops(c)
    di, _ = sch.get_loops(d)
    refuses(sch, lambda: sch.compute_at(d, i), "compute_at(block=D, loop=i)", "D, an output of the function",
            "reverse_compute_at")
    refuses(sch, lambda: sch.compute_at(c, i), "block C is below loop i already")
    refuses(sch, lambda: sch.reverse_compute_at(c, di), "no producer of block C is below loop i")


def test_the_update_of_a_reduction_moves_as_a_whole():
    sch = Schedule(matmul_bias())
    c, d = sch.get_block("C"), sch.get_block("D")
    i, j, k = sch.get_loops(c)
    sch.decompose_reduction(c, i)
    sch.compute_at(c, sch.get_loops(d)[0])
    assert sch.get_loops(c)[0] == sch.get_loops(d)[0]
    check(sch, matmul_bias(), matmul_bias_reference, (20, 13), (13, 18))


def test_every_consumer_must_be_below():
    a = te.placeholder((6,), "int32", name="A")
    b = te.compute((6,), lambda i: a[i] + 1, name="B")
    c = te.compute((6,), lambda i: b[i] * 2, name="C")
    d = te.compute((6,), lambda i: b[i] * 3, name="D")
    sch = Schedule(create_prim_func([a, c, d]))
    i, = sch.get_loops(sch.get_block("D"))
    refuses(sch, lambda: sch.compute_at(sch.get_block("B"), i), "block C reads B's result and is not below loop i")


def test_a_write_between_is_not_passed():
    """B reads A, then U overwrites A, then C reads B: B may not move behind U."""
    func = overwritten_between()
    sch = Schedule(func)
    b, loop = sch.get_block("B"), sch.get_loops(sch.get_block("C"))[0]
    refuses(sch, lambda: sch.compute_at(b, loop), "before or after block U", "both touch A")


def test_a_parallel_loop_keeps_what_its_iterations_had_for_themselves():
    """E is recomputed below each iteration of a parallel loop; its reader may not leave that loop."""
    a = te.placeholder((6,), "int32", name="A")
    e = te.compute((6,), lambda i: a[i] + 1, name="E")
    f = te.compute((6, 4), lambda i, j: e[i] + j, name="F")
    g = te.compute((6, 4), lambda i, j: f[i, j] * 2, name="G")
    func = create_prim_func([a, g])
    sch = Schedule(func)
    i, j = sch.get_loops(sch.get_block("F"))
    sch.compute_at(sch.get_block("E"), j)
    sch.parallel(j)
    g_i = sch.get_loops(sch.get_block("G"))[0]
    refuses(sch, lambda: sch.compute_at(sch.get_block("F"), g_i), "parallel loop j", "conflict in E")


def test_a_writer_does_not_leave_a_loop_whose_iterations_have_what_it_writes_for_themselves():
    """Where U writes B after the loop, its iterations no longer have a B each, and all of them start the same B."""
    @T.prim_func
    def started_in_each(a: T.Buffer((6,), "int32"), c: T.Buffer((6,), "int32")):
        b = T.alloc_buffer((6,), "int32")
        d = T.alloc_buffer((6,), "int32")
        for i in range(6):
            with T.block("D"):
                v = T.axis.spatial(6, i)
                d[v] = a[v] * 2
        for j in T.parallel(6):
            for k in range(6):
                with T.block("B"):
                    v = T.axis.spatial(6, k)
                    T.where(k < 1)
                    b[v] = 0
            with T.block("U"):
                v = T.axis.spatial(5, j)
                T.where(j < 5)
                b[v + 1] = d[v]
        for i in range(6):
            with T.block("C"):
                v = T.axis.spatial(6, i)
                c[v] = a[v]
    sch = Schedule(started_in_each)
    refuses(sch, lambda: sch.reverse_compute_at("U", sch.get_loops("D")[0]), "parallel loop j", "conflict in b")


# ---- what other blocks write as well, and work done again

def test_an_elementwise_consumer_runs_again_in_each_iteration():
    """Where the producer runs again and again, so may its consumer: nothing changes."""
    sch = Schedule(matmul_bias())
    i, _ = sch.get_loops(sch.get_block("D"))
    sch.compute_at(sch.get_block("C"), i)
    loops = sch.get_loops(sch.get_block("C"))
    assert len(loops) == 3


def test_a_block_moves_away_from_another_that_writes_other_elements():
    a = te.placeholder((16,), "int32", name="A")
    b = te.compute((16,), lambda i: a[i] * 3, name="B")
    c = te.compute((16,), lambda i: b[i] + 1, name="C")
    func = create_prim_func([a, c])
    sch = Schedule(func)
    for block in ("B", "C"):
        sch.loop_partition(sch.get_loops(block)[0], [8, None])
    sch.reverse_compute_at("C_i1", sch.get_loops("B_i1")[0])
    check(sch, func, lambda a: a * 3 + 1, (16,))


def test_an_output_moves_to_a_consumer_of_all_of_it():
    a = te.placeholder((16,), "int32", name="A")
    b = te.compute((16,), lambda i: a[i] * 3, name="B")
    c = te.compute((16,), lambda i: b[i] + 1, name="C")
    func = create_prim_func([a, b, c])
    sch = Schedule(func)
    sch.compute_at("B", sch.get_loops("C")[0])
    assert len(sch.get_loops("B")) == 1


# ---- consumers of a part, of one element, and of nothing

@pytest.mark.parametrize("loop", [0, 1])
def test_a_consumer_of_the_first_element_runs_again_after_it(loop):
    """Each run finds the element complete: the first iteration has written it."""
    a = te.placeholder((5, 3), "int32", name="A")
    b = te.compute((5, 3), lambda i, j: a[i, j] * 3, name="B")
    func = create_prim_func([a, te.compute((), lambda: b[0, 0] + 1, name="C"), b])
    sch = Schedule(func)
    sch.reverse_compute_at("C", sch.get_loops("B")[loop])
    assert len(sch.get_loops("C")) == loop + 1
    data = np.arange(15, dtype="int32").reshape(5, 3)
    first, rest = np.zeros((), "int32"), np.zeros((5, 3), "int32")
    interp.run(sch.func, data, first, rest)
    assert first == data[0, 0] * 3 + 1 and (rest == data * 3).all()


def test_a_consumer_of_the_second_element_does_not_run_before_it():
    a = te.placeholder((5,), "int32", name="A")
    b = te.compute((5,), lambda i: a[i] * 3, name="B")
    sch = Schedule(create_prim_func([a, te.compute((), lambda: b[1] + 1, name="C"), b]))
    refuses(sch, lambda: sch.reverse_compute_at("C", sch.get_loops("B")[0]), "is not all computed in one iteration")


def test_a_consumer_of_a_part_runs_where_the_part_is_made():
    """The loops of the producer run more than the domain of the consumer, which the predicate leaves out of them."""
    a = te.placeholder((6, 4), "int32", name="A")
    b = te.compute((6, 4), lambda i, j: a[i, j] * 3, name="B")
    func = create_prim_func([a, te.compute((6, 2), lambda i, j: b[i, j] + 1, name="C")])
    sch = Schedule(func)
    fused = sch.fuse(*sch.get_loops("B"))
    sch.reverse_compute_at("C", fused)
    assert len(sch.get_loops("C")) == 1
    check(sch, func, lambda a: a[:, :2] * 3 + 1, (6, 4))


def test_a_block_of_an_empty_domain_goes_anywhere():
    a = te.placeholder((0, 4), "int32", name="A")
    r = te.reduce_axis((0, 4), name="r")
    b = te.compute((0,), lambda i: te.sum(a[i, r], axis=r), name="B")
    sch = Schedule(create_prim_func([a, te.compute((0,), lambda i: b[i] + 1, name="C")]))
    sch.reverse_compute_at("C", sch.get_loops("B")[1])
    out = np.zeros(0, "int32")
    interp.run(sch.func, np.zeros((0, 4), "int32"), out)


def from_elsewhere() -> PrimFunc:
    """C[t] reads B[t], which block B has not written yet in the first iterations: it is what block Z left."""
    @T.prim_func
    def func(A: T.Buffer((4,), "int32"), C: T.Buffer((4,), "int32")):
        B = T.alloc_buffer((4,), "int32")
        for t in range(4):
            with T.block("Z"):
                vt = T.axis.spatial(4, t)
                B[vt] = 5
        for t in range(4):
            for _ in range(1):
                with T.block("B"):
                    vt = T.axis.spatial(4, 3 - t)
                    B[vt] = A[vt] * 2
            for _ in range(1):
                with T.block("C"):
                    vt = T.axis.spatial(4, t)
                    C[vt] = B[vt]
    return func


def from_the_caller() -> PrimFunc:
    """C[t] reads elements of the output D, which hold what the caller gave until block B writes them."""
    @T.prim_func
    def func(A: T.Buffer((4,), "int32"), C: T.Buffer((4,), "int32"), D: T.Buffer((4,), "int32")):
        for t in range(4):
            for _ in range(1):
                with T.block("B"):
                    vt = T.axis.spatial(4, t)
                    D[vt] = A[vt] * 2
            for _ in range(1):
                with T.block("C"):
                    vt = T.axis.spatial(4, t)
                    C[vt] = D[3 - vt]
    return func


@pytest.mark.parametrize("make", [from_elsewhere, from_the_caller])
def test_a_consumer_that_reads_before_the_producer_writes_stays(make):
    func = make()
    a, c, d = np.arange(1, 5, dtype="int32"), np.zeros(4, "int32"), np.full(4, 7, "int32")
    interp.run(func, *(a, c, d)[:len(func.params)])
    assert list(c) == ([5, 5, 6, 8] if make is from_elsewhere else [7, 7, 4, 2])
    for primitive, block, other in (("compute_at", "B", "C"), ("reverse_compute_at", "C", "B")):
        for depth in (0, 1):
            sch = Schedule(func)
            loop = sch.get_loops(other)[depth]
            refused("before block B writes it|is below loop t already", getattr(sch, primitive), block, loop)


@pytest.mark.parametrize("inside", [False, True], ids=["the block itself", "a block around it"])
def test_a_block_that_changes_a_buffer_through_views_of_it_is_not_run_again(inside):
    sch = Schedule(from_source("""
@T.prim_func
def main(A: T.Buffer((8, 5), "int32"), B: T.Buffer((8, 5), "int32")):
    for i in range(8):
        with T.block("change"):
            vi = T.axis.spatial(8, i)
            row = T.match_buffer(A[vi, 0:5], (5,), "int32", offset_factor=1)
            out = T.match_buffer(A[vi, 0:5], (5,), "int32", offset_factor=1)
            for j in range(5):
                out[j] = j + row[2]
    for i, j in T.grid(8, 5):
        with T.block("copy"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj]
"""))
    i, j = sch.get_loops("copy")
    moved = sch.blockize(sch.get_loops("change")[0]) if inside else sch.get_block("change")
    with pytest.raises(ScheduleError, match="block change(_o)? reads A, which it also writes"):
        sch.compute_at(moved, j)


def test_an_extent_that_only_a_type_limits_is_that_of_the_dimension():
    """The loop variable is of int32, and what it is cast from has 64 bits: the copy had 2**31 - 1 iterations."""
    func = from_source("""@T.prim_func
def main(given: T.handle, out: T.handle):
    n = T.int64()
    A = T.match_buffer(given, (n,))
    C = T.match_buffer(out, (n, n))
    B = T.alloc_buffer((n,))
    for i in range(n):
        with T.block("B"):
            v = T.axis.spatial(n, i)
            B[v] = A[v] + T.float32(1)
    for i in range(n):
        for j in range(T.Cast("int32", n)):
            with T.block("C"):
                u = T.axis.spatial(n, i)
                v = T.axis.spatial(n, T.Cast("int64", j))
                C[u, v] = B[v] * T.float32(2)
""")
    sch = Schedule(func)
    sch.compute_at(sch.get_block("B"), sch.get_loops(sch.get_block("C"))[0])
    extents = [s.extent for s in walk(sch.mod["main"].body) if isinstance(s, For)]
    assert not any(isinstance(e, IntImm) for e in extents)
    a, c = np.arange(5, dtype="float32"), np.zeros((5, 5), "float32")
    tw.build(sch)(a, c)
    np.testing.assert_array_equal(c, np.tile(2 * (a + 1), (5, 1)))
