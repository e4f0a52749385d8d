"""What random programs have found, in its smallest form."""
from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright import te
from tilewright.lowering import lower
from tilewright.schedule import Schedule
from tilewright.script import tir as T
from tilewright.support.errors import ScheduleError
from tilewright.tir import interp


def check(func, inputs, want, native=True):
    """func gives `want` as its last argument, in block form, in flat form and (unless told) in native code."""
    want = np.asarray(want)
    forms = [func, lower(func), lower(func, simple_mode=True)]
    for form in forms:
        out = np.full_like(want, 93)
        interp.run(form, *[a.copy() for a in inputs], out)
        np.testing.assert_array_equal(out, want)
    if native:
        out = np.full_like(want, 93)
        tw.build(func, target="llvm -opt-level=1")[func.name](*inputs, out)
        np.testing.assert_array_equal(out, want)


def loops(sch, name):
    return sch.get_loops(sch.get_block(name))


def test_two_guards_of_one_loop_that_end_apart():
    a = te.placeholder((23,), "int32", "a")
    b = te.compute((23,), lambda i: a[i] * 2, name="b")
    c = te.compute((24,), lambda i: te.if_then_else(i < 23, b[i], 1), name="c")
    sch = Schedule(te.create_prim_func([a, c]))
    sch.compute_at(sch.get_block("b"), loops(sch, "c")[0], preserve_unit_loops=True)
    sch.split(loops(sch, "c")[0], [3, None, 16])
    x = np.arange(23, dtype="int32")
    check(sch.func, [x], np.append(x * 2, 1).astype("int32"))


def test_lanes_that_leave_their_private_buffer_unwritten():
    a = te.placeholder((2,), "int32", "a")
    k = te.reduce_axis((0, 2), "k")
    b = te.compute((2,), lambda i: te.max(a[i] + k, axis=k), name="b")
    c = te.compute((3, 3), lambda i, j: te.if_then_else(j < 2, b[te.minimum(j, 1)], 5), name="c")
    sch = Schedule(te.create_prim_func([a, c]))
    sch.compute_at(sch.get_block("b"), loops(sch, "c")[1])
    sch.vectorize(loops(sch, "c")[1])
    x = np.array([3, 8], "int32")
    check(sch.func, [x], np.tile(np.array([4, 9, 5], "int32"), (3, 1)))


@pytest.mark.parametrize("extent", [0, 1, 5])
@pytest.mark.parametrize("reducer, start", [("sum", 0), ("max", -2**31), ("min", 2**31 - 1), ("prod", 1)])
def test_reductions_of_symbolic_extent_start_even_when_there_is_nothing_to_reduce(extent, reducer, start):
    n = te.var("n")
    a = te.placeholder((3, n), "int32", "a")
    k = te.reduce_axis((0, n), "k")
    b = te.compute((3,), lambda i: getattr(te, reducer)(a[i, k], axis=k), name="b")
    x = np.arange(1, 3 * extent + 1, dtype="int32").reshape(3, extent)
    want = getattr(np, reducer)(x, axis=1, initial=start).astype("int32")
    check(te.create_prim_func([a, b]), [x], want)
    sch = Schedule(te.create_prim_func([a, b]))
    sch.fuse(*loops(sch, "b"))
    check(sch.func, [x], want)
    sch = Schedule(te.create_prim_func([a, b]))
    ko, _ = sch.split(loops(sch, "b")[1], [None, 4])
    sch.reorder(ko, loops(sch, "b")[0])
    check(sch.func, [x], want)


@pytest.mark.parametrize("fused", [False, True])
def test_reductions_of_no_elements(fused):
    a = te.placeholder((4, 0), "float32", "a")
    k = te.reduce_axis((0, 0), "k")
    b = te.compute((4,), lambda i: te.sum(a[i, k], axis=k), name="b")
    c = te.compute((4,), lambda i: b[i] + 1.0, name="c")
    sch = Schedule(te.create_prim_func([a, c]))
    if fused:
        sch.fuse(*loops(sch, "b"))
    check(sch.func, [np.zeros((4, 0), "float32")], np.ones(4, "float32"))


def test_a_reduction_of_no_elements_starts_outside_of_a_loop_that_never_runs():
    a = te.placeholder((2, 3), "int32", "a")
    k = te.reduce_axis((0, 0), "k")
    b = te.compute((2,), lambda i: te.max(a[i, k], axis=k), name="b")
    sch = Schedule(te.create_prim_func([a, b]))
    outer, inner = sch.split(loops(sch, "b")[0], [2, None])
    sch.reorder(outer, loops(sch, "b")[2], inner)
    never = sch.fuse(*loops(sch, "b")[1:])
    last = sch.add_unit_loop(sch.get_block("b"))
    with pytest.raises(ScheduleError, match="drives a reduction axis"):
        sch.decompose_reduction(sch.get_block("b"), last)
    sch.decompose_reduction(sch.get_block("b"), never)
    check(sch.func, [np.zeros((2, 3), "int32")], np.full(2, -2**31, "int32"))


@pytest.mark.parametrize("fused", [False, True])
def test_the_parts_of_a_reduction_of_no_elements(fused):
    a = te.placeholder((4, 3), "int32", "a")
    k = te.reduce_axis((0, 0), "k")
    sch = Schedule(te.create_prim_func([a, te.compute((4,), lambda i: te.sum(a[i, k], axis=k), name="b")]))
    row, column = loops(sch, "b")
    outer, inner = sch.split(column, [None, 2])
    if fused:
        sch.fuse(row, outer)
        with pytest.raises(ScheduleError, match="drives output and reduction axes"):
            sch.rfactor(inner, 0)
    else:
        sch.rfactor(inner, 0)
    check(sch.func, [np.zeros((4, 3), "int32")], np.zeros(4, "int32"))


def test_a_moved_reduction_of_no_elements_starts_all_of_its_outputs():
    a = te.placeholder((2, 0), "int32", "a")
    b = te.compute((2, 0), lambda i, j: a[i, j] + 1, name="b")
    k = te.reduce_axis((0, 0), "k")
    c = te.compute((2,), lambda i: te.sum(b[i, k], axis=k), name="c")
    sch = Schedule(te.create_prim_func([a, c]))
    sch.fuse(*loops(sch, "c"))
    sch.reverse_compute_at(sch.get_block("c"), loops(sch, "b")[0])
    check(sch.func, [np.zeros((2, 0), "int32")], np.zeros(2, "int32"))


def test_a_reduction_of_unknown_extent_below_a_loop_that_never_runs():
    n = te.var("n")
    a = te.placeholder((n,), "int32", "a")
    k = te.reduce_axis((0, n), "k")
    b = te.compute((0, n), lambda i, j: te.sum(a[k] + i + j, axis=k), name="b")
    sch = Schedule(te.create_prim_func([a, b]))
    sch.fuse(*loops(sch, "b")[:2])
    for extent in (0, 3):
        check(sch.func, [np.zeros(extent, "int32")], np.zeros((0, extent), "int32"))


def test_loops_of_different_integer_types_fuse():
    n = te.var("n", "int64")
    a = te.placeholder((n, 6), "int32", "a")
    b = te.compute((6, n), lambda i, j: a[j, i], name="b")
    sch = Schedule(te.create_prim_func([a, b]))
    sch.fuse(*loops(sch, "b"))
    x = np.arange(30, dtype="int32").reshape(5, 6)
    check(sch.func, [x], x.T.copy())


def test_a_consumer_of_one_column_makes_its_producer_run_for_that_column_only():
    a = te.placeholder((5, 13), "int8", "a")
    b = te.compute((5, 13), lambda i, j: a[i, j] + te.const(1, "int8"), name="b")
    c = te.compute((5,), lambda i: b[i, te.maximum(i - i - 3, 0)], name="c")
    sch = Schedule(te.create_prim_func([a, c]))
    sch.reverse_compute_inline(sch.get_block("c"))
    x = np.arange(65, dtype="int8").reshape(5, 13)
    check(sch.func, [x], x[:, 0] + np.int8(1))
    with pytest.raises(ScheduleError, match="does not determine what is written"):
        sch.cache_write(sch.get_block("b"), 0, "local")


def test_nested_virtual_threads_are_different_threads():
    a = te.placeholder((2, 2), "int32", "a")
    b = te.compute((2, 2), lambda i, j: a[i, j] * 3, name="b")
    sch = Schedule(te.create_prim_func([a, b]))
    for loop in loops(sch, "b"):
        sch.bind(loop, "vthread")
    x = np.arange(4, dtype="int32").reshape(2, 2)
    check(sch.func, [x], x * 3, native=False)


def test_the_parts_of_a_tuple_may_be_needed_in_different_places():
    a = te.placeholder((8, 4), "int32", "a")
    k = te.reduce_axis((0, 4), "k")
    pair = te.comm_reducer(lambda x, y: (x[0] + y[0], te.maximum(x[1], y[1])),
                           lambda t, u: (te.const(0, t), te.min_value(u)), name="pair")
    s, m = te.compute((8,), lambda i: pair((a[i, k], a[i, k]), axis=k), name="s")
    c = te.compute((2,), lambda i: s[i] + m[7 - i], name="c")
    sch = Schedule(te.create_prim_func([a, c]))
    sch.compute_at(sch.get_block("s"), loops(sch, "c")[0])
    x = np.arange(32, dtype="int32").reshape(8, 4)
    check(sch.func, [x], x.sum(1)[:2].astype("int32") + x.max(1)[[7, 6]])


def test_a_parallel_loop_knows_the_extents_that_its_checked_indices_need():
    n = te.var("n")
    a, p = te.placeholder((n + 1, 4), "int32", "a"), te.placeholder((n,), "uint8", "p")
    b = te.compute((n,), lambda i: a[i, te.minimum(p[i].astype("int32"), 3)], name="b")
    sch = Schedule(te.create_prim_func([a, p, b]))
    sch.parallel(loops(sch, "b")[0])
    x, at = np.arange(24, dtype="int32").reshape(6, 4), np.array([0, 9, 2, 3, 1], "uint8")
    check(sch.func, [x, at], x[np.arange(5), np.minimum(at, 3)])


@pytest.mark.parametrize("extent", [0, 1, 5])
def test_nothing_starts_outside_the_outputs_where_a_loop_over_them_was_cut(extent):
    n = te.var("n")
    a, k = te.placeholder((n,), "int32", "a"), te.reduce_axis((0, n), "k")
    c = te.compute((n,), lambda i: te.sum(a[k] + i, axis=k), name="c")
    sch = Schedule(te.create_prim_func([a, c]))
    i, r = loops(sch, "c")
    sch.reorder(r, i)
    sch.loop_partition(i, [1, None])
    x = np.arange(extent, dtype="int32")
    check(sch.func, [x], (x.sum() + extent * x).astype("int32"))


def test_a_padded_layout_has_elements_that_nothing_writes():
    a = te.placeholder((7, 3), "int32", "a")
    k = te.reduce_axis((0, 3), "k")
    b = te.compute((7,), lambda i: te.sum(a[i, k], axis=k), name="b")
    c = te.compute((7,), lambda i: b[i] + 1, name="c")
    sch = Schedule(te.create_prim_func([a, c]))
    sch.reverse_compute_at(sch.get_block("c"), loops(sch, "b")[0])
    sch.transform_layout(sch.get_block("b"), ("write", 0), lambda i: (i // 2, i % 2))
    sch.split(loops(sch, "b")[0], [None, 16])
    try:
        sch.cache_read(sch.get_block("c"), 0, "local")
    except ScheduleError:
        pass
    x = np.arange(21, dtype="int32").reshape(7, 3)
    check(sch.func, [x], (x.sum(1) + 1).astype("int32"))


def test_a_comparison_of_data_keeps_to_sides_that_do_not_wrap():
    a, b = te.placeholder((3,), "int64", "a"), te.placeholder((3,), "int32", "b")
    c = te.compute((3,), lambda i: te.if_then_else(a[i] > b[i].astype("int64") * b[i].astype("int64") + 2, 1, 0),
                   name="c")
    x = np.array([-2**63, 2**63 - 1, 7], "int64")
    check(te.create_prim_func([a, b, c]), [x, np.array([5, -3, 2], "int32")], np.array([0, 1, 1], "int32"))


def test_an_index_of_any_size_bounds_nothing():
    n = te.var("n", "int64")
    a, c = te.placeholder((32,), "int32", "a"), te.placeholder((n,), "int32", "c")
    b = te.compute((n,), lambda i: te.if_then_else(i < 32, a[i], 0) + c[i], name="b")
    sch = Schedule(te.create_prim_func([a, c, b]))
    copy = sch.cache_read(sch.get_block("b"), 0, "global")
    sch.cache_write(copy, 0, "shared")
    for extent in (5, 40):
        x, z = np.arange(32, dtype="int32"), np.arange(extent, dtype="int32")
        check(sch.func, [x, z], np.resize(np.append(x, np.zeros(8, "int32")), extent) + z)


@pytest.mark.parametrize("divisor", [-2, -1, -3])
def test_the_least_integer_has_no_opposite(divisor):
    a = te.placeholder((4,), "int32", "a")
    q = te.compute((4,), lambda i: te.floordiv(a[i] * 2 + a[i], divisor) ^ te.floormod(a[i], divisor), name="q")
    x = np.array([-2**31, 2**31 - 1, -7, 6], "int32")
    with np.errstate(over="ignore"):
        want = ((x * 3 // divisor) ^ (x % divisor)).astype("int32")
    check(te.create_prim_func([a, q]), [x], want)


def test_a_circular_buffer_outlives_the_parallel_loops_inside_the_one_that_carries_it():
    a = te.placeholder((6, 4), "int32", "a")
    b = te.compute((6, 4), lambda i, j: a[i, j] * 3, name="b")
    c = te.compute((3, 1), lambda i, j: b[i, j] + b[i + 1, j + 3] + b[i + 3, j + 1], name="c")
    sch = Schedule(te.create_prim_func([a, c]))
    sch.compute_at(sch.get_block("b"), loops(sch, "c")[1])
    sch.rolling_buffer(sch.get_block("b"), 0)
    sch.parallel(loops(sch, "b")[-1])
    x = np.arange(24, dtype="int32").reshape(6, 4)
    check(sch.func, [x], np.stack([3 * (x[i, :1] + x[i + 1, 3:] + x[i + 3, 1:2]) for i in range(3)]))


def window():
    """c[i] = b[i] + b[i - 1], with b's and c's loops merged: b lives longer than an iteration."""
    a = te.placeholder((5, 4), "int32", "a")
    b = te.compute((5, 4), lambda i, j: a[i, j] * 3, name="b")
    c = te.compute((5, 4), lambda i, j: b[i, j] + te.if_then_else(i > 0, b[i - 1, j], 0), name="c")
    sch = Schedule(te.create_prim_func([a, c]))
    sch.merge(loops(sch, "b")[0], loops(sch, "c")[0])
    return sch


def test_values_of_the_previous_iteration_of_merged_loops():
    sch = window()
    x = np.arange(20, dtype="int32").reshape(5, 4)
    want = 3 * x + np.concatenate([np.zeros((1, 4), "int32"), 3 * x[:-1]])
    check(sch.func, [x], want)
    sch.merge(loops(sch, "b")[1], loops(sch, "c")[1])
    check(sch.func, [x], want)
    with pytest.raises(ScheduleError, match="reads there what an earlier iteration of a loop around it left"):
        sch.parallel(loops(sch, "b")[1])


def test_the_padding_of_an_einsum_that_reads_under_a_condition():
    a, b = te.placeholder((3,), "int32", "a"), te.placeholder((6,), "int32", "b")
    c = te.compute((2, 6), lambda i, j: te.if_then_else(j < 3, a[j], 0) * b[j], name="c")
    sch = Schedule(te.create_prim_func([a, b, c]))
    sch.pad_einsum(sch.get_block("c"), [2, 8])
    x, y = np.arange(1, 4, dtype="int32"), np.arange(1, 7, dtype="int32")
    check(sch.func, [x, y], np.tile(np.append(x, [0, 0, 0]) * y, (2, 1)).astype("int32"))


def test_a_block_around_a_reduction_whose_loops_are_outside_starts_it():
    a = te.placeholder((3, 4), "int32", "a")
    k = te.reduce_axis((0, 4), "k")
    c = te.compute((3,), lambda i: te.sum(a[i, k], axis=k), name="c")
    sch = Schedule(te.create_prim_func([a, c]))
    sch.blockize([sch.get_block("c")])
    x = np.arange(12, dtype="int32").reshape(3, 4)
    check(sch.func, [x], x.sum(1).astype("int32"))


def test_a_block_around_a_loop_with_a_unit_digit_in_its_condition():
    a = te.placeholder((3, 2), "int32", "a")
    k = te.reduce_axis((0, 2), "k")
    c = te.compute((3,), lambda i: te.sum(a[i, k], axis=k), name="c")
    sch = Schedule(te.create_prim_func([a, c]))
    sch.reorder(loops(sch, "c")[1], loops(sch, "c")[0])
    sch.split(loops(sch, "c")[1], [4, None])
    sch.blockize(loops(sch, "c")[1])
    x = np.arange(6, dtype="int32").reshape(3, 2)
    check(sch.func, [x], x.sum(1).astype("int32"))


def test_a_copy_of_more_than_was_written():
    a = te.placeholder((3,), "int32", "a")
    s = te.placeholder((16,), "int32", "s")
    init = te.compute((3,), lambda t: a[t], name="init")
    step = te.compute((16,), lambda t: s[t - 3] + 1, name="step")
    out = te.scan(init, step, s, name="out")
    sch = Schedule(te.create_prim_func([a, te.compute((16,), lambda i: out[i] * 2, name="c")]))
    sch.split(loops(sch, "init")[0], [None, 16])
    with pytest.raises(ScheduleError, match="written"):
        sch.cache_inplace(sch.get_block("step"), 0, "local")


def test_padding_that_ends_at_a_wider_symbol():
    n = te.var("n", "int64")
    a = te.placeholder((n,), "int32", "a")
    b = te.compute((7,), lambda i: te.if_then_else(i.astype("int64") < n, a[i.astype("int64")], 0), name="b")
    sch = Schedule(te.create_prim_func([a, b]))
    sch.decompose_padding(sch.get_block("b"), loops(sch, "b")[0])
    for extent in (0, 3, 7, 20):
        x = np.arange(1, extent + 1, dtype="int32")
        check(sch.func, [x], np.resize(np.append(x, np.zeros(7, "int32")), 7) if extent < 7 else x[:7])


def test_a_circular_buffer_of_each_parallel_part():
    a = te.placeholder((17,), "int32", "a")
    b = te.compute((17,), lambda i: a[i] * 3, name="b")
    c = te.compute((16,), lambda i: b[i] + b[i + 1], name="c")
    sch = Schedule(te.create_prim_func([a, c]))
    _, part, inner = sch.split(loops(sch, "c")[0], [2, None, 4])
    sch.parallel(part)
    sch.compute_at(sch.get_block("b"), inner)
    sch.rolling_buffer(sch.get_block("b"), 0)
    x = np.arange(17, dtype="int32")
    check(sch.func, [x], 3 * (x[:-1] + x[1:]))


def folded(extent):
    """b = a * 3, kept in rows of 4 and computed in 2 * N * 2 steps; c = b + 1."""
    a = te.placeholder((extent,), "int32", "a")
    b = te.compute((extent,), lambda i: a[i] * 3, name="b")
    sch = Schedule(te.create_prim_func([a, te.compute((extent,), lambda i: b[i] + 1, name="c")]))
    sch.transform_layout(sch.get_block("b"), ("write", 0), lambda i: (i // 4, i % 4))
    _, middle, inner = sch.split(loops(sch, "b")[0], [2, None, 2])
    sch.fuse(*sch.split(middle, [None, 1]), inner)
    return sch


@pytest.mark.parametrize("extent", [14, 18])
def test_a_copy_of_rows_of_which_the_last_is_not_whole(extent):
    with pytest.raises(ScheduleError, match="may not be written"):
        folded(extent).cache_read("c", 0, "local")


@pytest.mark.parametrize("extent", [16, 20])
def test_a_copy_of_whole_rows(extent):
    sch = folded(extent)
    sch.cache_read("c", 0, "local")
    x = np.arange(extent, dtype="int32")
    check(sch.func, [x], 3 * x + 1)


def test_a_copy_of_padded_rows_of_which_one_element_is_read():
    m = te.var("m")
    a, p = te.placeholder((m,), "int32", "a"), te.placeholder((2,), "int32", "p")
    b = te.compute((m,), lambda i: a[i] * 3, name="b")
    sch = Schedule(te.create_prim_func([a, p, te.compute((2,), lambda i: b[p[i]] + 1, name="c")]))
    plain = Schedule(sch.func)
    plain.cache_read("c", "b", "local")
    sch.transform_layout(sch.get_block("b"), ("write", 0), lambda i: (i // 4, i % 4))
    with pytest.raises(ScheduleError, match="may not be written"):
        sch.cache_read("c", "b", "local")
    for extent in (4, 6):
        x, at = np.arange(extent, dtype="int32"), np.array([3, 1], "int32")
        for func in (sch.func, plain.func):
            check(func, [x, at], 3 * x[at] + 1)


def rows_in_a_block(inner):
    """b = a * 3 in a block with its own loop over the first `inner` of a row; c = b[0, 0] + b[1, 2]."""
    @T.prim_func
    def rows(a: T.Buffer((2, 4), "int32"), c: T.Buffer((1,), "int32")):
        b = T.alloc_buffer((2, 4), "int32")
        for i in range(2):
            with T.block("b"):
                v = T.axis.spatial(2, i)
                T.reads(a[v, 0:4])
                T.writes(b[v, 0:4])
                for j in range(inner):
                    b[v, j] = a[v, j] * 3
        for i in range(1):
            with T.block("c"):
                v = T.axis.spatial(1, i)
                T.reads(b[0:2, 0:4])
                T.writes(c[v])
                c[v] = b[0, 0] + b[1, 2]
    return Schedule(rows)


def test_a_copy_of_rows_that_a_block_writes_in_a_loop_of_its_own():
    sch, x = rows_in_a_block(4), np.arange(5, 13, dtype="int32").reshape(2, 4)
    sch.cache_read("c", "b", "local")
    check(sch.func, [x], 3 * (x[0, :1] + x[1, 2:3]))
    with pytest.raises(ScheduleError, match="may not be written"):
        rows_in_a_block(3).cache_read("c", "b", "local")


@pytest.mark.parametrize("copied", [
    lambda sch: sch.cache_write("b", 0, "shared"),
    lambda sch: sch.reindex_cache_write("b", 0, "shared", lambda i: (i, 0)),
    lambda sch: sch.cache_read("c", "b", "shared")])
def test_a_copy_in_shared_memory_of_what_each_thread_has_for_itself(copied):
    a = te.placeholder((8,), "int32", "a")
    b = te.compute((8,), lambda i: a[i] * 3, name="b")
    sch = Schedule(te.create_prim_func([a, te.compute((6, 8), lambda i, j: b[j] + i, name="c")]))
    sch.compute_at(sch.get_block("b"), loops(sch, "c")[0])
    sch.bind(loops(sch, "c")[0], "threadIdx.x")
    x = np.arange(8, dtype="int32")
    copied(sch)                                        # the same for all: the first of them fills it
    check(sch.func, [x], 3 * x + np.arange(6, dtype="int32")[:, None], native=False)
    assert str(lower(sch.func)).count("T.sync") == 2


def test_a_block_of_a_reduction_over_nothing_that_was_split_and_fused():
    a, k = te.placeholder((0,), "int32", "a"), te.reduce_axis((0, 0), "k")
    sch = Schedule(te.create_prim_func([a, te.compute((), lambda: te.max(a[k], axis=k), name="c")]))
    outer, middle, inner = sch.split(loops(sch, "c")[0], [None, 16, 2])
    one, two, three = sch.split(inner, [None, 2, 3])
    four, _ = sch.split(one, [2, None])
    sch.fuse(outer, middle, four)
    with pytest.raises(ScheduleError, match="no outer"):
        sch.blockize(three)
    check(sch.func, [np.zeros(0, "int32")], np.array(-2**31, "int32"))


def test_the_start_of_a_reduction_beside_padding_that_lanes_write():
    a, k = te.placeholder((3,), "int32", "a"), te.reduce_axis((0, 3), "k")
    b = te.compute((19,), lambda i: te.sum(a[k] * i, axis=k), name="b")
    sch = Schedule(te.create_prim_func([a, te.compute((19,), lambda i: b[i] * 2, name="c")]))
    sch.compute_at(sch.get_block("b"), loops(sch, "c")[0])
    sch.transform_layout(sch.get_block("b"), ("write", 0), lambda i: (i + 3,), pad_value=0)
    sch.vectorize(loops(sch, "c")[0])
    with pytest.raises(ScheduleError, match="cannot vectorize loop"):
        sch.decompose_reduction(sch.get_block("b"), loops(sch, "b")[0])
    x = np.arange(1, 4, dtype="int32")
    check(sch.func, [x], 12 * np.arange(19, dtype="int32"))


@pytest.mark.parametrize("first, then", [
    (lambda sch, one, six: sch.parallel(six), lambda sch, one, six: sch.bind(one, "threadIdx.x")),
    (lambda sch, one, six: sch.bind(one, "threadIdx.x"), lambda sch, one, six: sch.parallel(six))])
def test_iterations_inside_of_threads_have_no_shared_memory_of_their_own(first, then):
    a = te.placeholder((8,), "int32", "a")
    b = te.compute((8,), lambda i: a[i] * 3, name="b")
    sch = Schedule(te.create_prim_func([a, te.compute((6, 8), lambda i, j: b[j] + i, name="c")]))
    one, six = sch.split(loops(sch, "c")[0], [1, 6])
    sch.compute_at(sch.get_block("b"), six)
    sch.set_scope("b", 0, "shared")
    first(sch, one, six)
    with pytest.raises(ScheduleError, match="cannot parallel loop"):
        then(sch, one, six)
    x = np.arange(8, dtype="int32")
    check(sch.func, [x], 3 * x + np.arange(6, dtype="int32")[:, None], native=False)


def last_of_rows():
    """c[i] = the last of a[i, :], stored through a view of c."""
    @T.prim_func
    def last(a: T.Buffer((4, 8), "int32"), c: T.Buffer((4,), "int32")):
        for i in range(4):
            with T.block("row"):
                v = T.axis.spatial(4, i)
                T.reads(a[v, 0:8])
                T.writes(c[v])
                one = T.match_buffer(c[v:v + 1], (1,), "int32", offset_factor=1)
                for j in range(8):
                    with T.block("last"):
                        u = T.axis.spatial(8, j)
                        T.reads(a[v, u])
                        T.writes(one[0])
                        one[0] = a[v, u]
    return Schedule(last)


def test_a_view_is_no_buffer_of_an_iteration_of_its_own():
    sch = last_of_rows()
    with pytest.raises(ScheduleError, match="the same element of one"):
        sch.parallel(loops(sch, "last")[-1])
    x = np.arange(32, dtype="int32").reshape(4, 8)
    check(sch.func, [x], x[:, -1])


@pytest.mark.parametrize("extent", [0, 3, 16])
def test_a_condition_that_is_one_for_all_lanes_and_read_for_some(extent):
    n = te.var("n")
    a = te.placeholder((n,), "int32", "a")
    sch = Schedule(te.create_prim_func([a, te.compute((16,), lambda i: te.if_then_else(
        i < n, te.if_then_else(a[n - 1] > 1, 2, 3), 7), name="c")]))
    sch.vectorize(loops(sch, "c")[0])
    x = np.arange(extent, dtype="int32")
    want = [2 + (x[-1] <= 1) if i < extent else 7 for i in range(16)]
    check(sch.func, [x], np.array(want, "int32"))


def test_a_block_below_a_condition_of_two_parts():
    @T.prim_func
    def either(b: T.Buffer((8,), "int32")):
        for i in range(8):
            with T.block("first"):
                v = T.axis.spatial(8, i)
                b[v] = 0
        for i, j, k in T.grid(2, 2, 2):
            with T.block("b"):
                v = T.axis.spatial(8, i * 4 + j * 2 + k)
                T.where(i * 4 + j * 2 + k < 3 or i * 4 + j * 2 + k > 5)
                b[v] = v + 1
    sch = Schedule(either)
    with pytest.raises(ScheduleError, match="cannot be told by the new block's axes"):
        sch.blockize(loops(sch, "b")[2])
    x = np.arange(8, dtype="int32")
    check(sch.func, [], np.where((x < 3) | (x > 5), x + 1, 0).astype("int32"))


def test_a_buffer_without_elements_stays_so():
    a, p = te.placeholder((2, 0), "int32", "a"), te.placeholder((4,), "int32", "p")
    b = te.compute((2, 0), lambda i, j: a[i, j] + 1, name="b")
    sch = Schedule(te.create_prim_func([a, p, te.compute((4,), lambda i: te.if_then_else(
        p[i] > 0, te.if_then_else(i < 2, b[te.minimum(i, 1), p[i]], 0), 3), name="c")]))
    sch.reverse_compute_at("c", loops(sch, "b")[0])
    sch.vectorize(loops(sch, "c")[-1])
    x = np.array([0, -1, 0, -3], "int32")
    check(sch.func, [np.zeros((2, 0), "int32"), x], np.full(4, 3, "int32"))


def test_an_intrinsic_at_indices_wider_than_the_extents():
    def plus_one(name, extent):
        x = te.placeholder((extent,), "int32", "x")
        return x, te.compute((tw.tir.IntImm(extent, "int64"),), lambda i: x[i] + 1, name=name)
    four = te.create_prim_func(plus_one("y", 4))
    sch = Schedule(te.create_prim_func(plus_one("c", 8)))
    sch.tensorize(sch.split(loops(sch, "c")[0], [None, 4])[1], tw.tir.TensorIntrin(four, four))
    x = np.arange(8, dtype="int32")
    check(sch.func, [x], x + 1)


def test_a_circular_copy_of_each_lane_below_a_loop_that_moves_it_too():
    a, k, m = te.placeholder((8, 8), "int32", "a"), te.reduce_axis((0, 2), "k"), te.reduce_axis((0, 2), "m")
    b = te.compute((8, 8), lambda i, j: a[i, j] * 3, name="b")
    c = te.compute((5, 5), lambda i, j: te.minimum(b[i, j], b[i + 3, j + 3]), name="c")
    sch = Schedule(te.create_prim_func([a, te.compute((4, 4), lambda i, j: te.sum(c[i + k, j + m], axis=[k, m]),
                                                      name="d")]))
    sch.compute_inline("c")
    _, lanes, outer, inner = loops(sch, "d")
    sch.compute_at("b", outer)
    copy = sch.cache_write("b", 0, "local")
    sch.vectorize(lanes)
    sch.compute_at(copy, inner)
    sch.rolling_buffer(copy, 0)
    x = np.arange(64, dtype="int32").reshape(8, 8) % 11
    y = 3 * np.minimum(x[:5, :5], x[3:, 3:])
    check(sch.func, [x], y[:-1, :-1] + y[1:, :-1] + y[:-1, 1:] + y[1:, 1:])


def test_padding_that_iterations_write_to_buffers_of_their_own_keeps_the_block_beside_it():
    @T.prim_func
    def unread(a: T.Buffer((6,), "int32"), c: T.Buffer((6,), "int32")):
        b = T.alloc_buffer((6,), "int32")
        for i in range(6):
            with T.block("c"):
                v = T.axis.spatial(6, i)
                c[v] = a[v] * 2
        for i in range(6):
            with T.block("b"):
                v = T.axis.spatial(6, i)
                x: T.int32 = c[v]
                b[v] = x + v
    sch = Schedule(unread)
    sch.transform_layout("b", ("write", 0), lambda i: (i + 2,), pad_value=0)
    sch.parallel(loops(sch, "b_pad")[0])
    with pytest.raises(ScheduleError, match="parallel loop i would conflict in b"):
        sch.reverse_compute_at("b", loops(sch, "c")[0])
    x = np.arange(6, dtype="int32")
    check(sch.func, [x], 2 * x)
