"""reindex, reindex_cache_read, reindex_cache_write, cache_index, cache_inplace: print, meaning, replay, native code."""
from __future__ import annotations

import textwrap

import numpy as np
import pytest

import tilewright as tw
from tilewright import te
from tilewright.schedule import Schedule
from tilewright.support.errors import unchecked
from tilewright.te.prim_func import create_prim_func

from .compute_support import body_text
from .core_support import check, check_replay, matmul


def window():
    """B[i, j] = sum_k A[i + k, 7 - j]; C = B + 1."""
    a = te.placeholder((12, 8), "int32", name="A")
    k = te.reduce_axis((0, 3), name="k")
    b = te.compute((9, 8), lambda i, j: te.sum(a[i + k, 7 - j], axis=k), name="B")
    return create_prim_func([a, te.compute((9, 8), lambda i, j: b[i, j] + 1, name="C")])


def reference(a):
    return sum(a[k:k + 9, ::-1] for k in range(3)) + 1


def shown(sch, first, last):
    """The printed body from the line that starts with first to the one before last."""
    text = textwrap.dedent(body_text(sch))
    start = text.index(first)
    return text[start:text.index(last, start)] if last else text[start:]


def check_window(sch):
    check(sch, window(), reference, (12, 8), size=(9, 8))
    a, out = np.random.default_rng(0).integers(-9, 9, (12, 8)).astype("int32"), np.zeros((9, 8), "int32")
    tw.build(sch.func, target="llvm -opt-level=1")["main"](a, out)
    np.testing.assert_array_equal(out, reference(a))


def test_reindex_of_a_read():
    sch = Schedule(window())
    assert sch.get(sch.reindex("B", ("read", 0))).name == "A_reindex"
    assert shown(sch, "for i", "for i, j in T.grid(9, 8)") == textwrap.dedent("""\
        for i, j, k in T.grid(9, 8, 3):
            with T.block("A_reindex"):
                vi, vj, vk = T.axis.remap("SSS", [i, j, k])
                A_reindex[vi, vj, vk] = A[vi + vk, 7 - vj]
        for i, j, k in T.grid(9, 8, 3):
            with T.block("B"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    B[vi, vj] = 0
                B[vi, vj] = B[vi, vj] + A_reindex[vi, vj, vk]
        """)
    check_window(sch)


@pytest.mark.parametrize("buffer", [("write", 0), "B"])
def test_reindex_of_a_write(buffer):
    sch = Schedule(window())
    sch.reindex("B", buffer)
    assert "B[vi, vj] = B_reindex[vi, vj]" in str(sch)
    check_window(sch)


def test_reindex_of_a_buffer_itself():
    sch = Schedule(window())
    sch.reindex("C", sch.get(sch.get_block("C")).reads[0].buffer)
    assert "sch.reindex(block='C', buffer=['read', 0])" in str(sch.trace)
    check_window(sch)


def test_reindex_leaves_out_what_the_element_does_not_depend_on():
    func = matmul()
    sch = Schedule(func)
    sch.reindex("C", "B")
    assert [d.value for d in sch.get(sch.get_block("B_reindex")).writes[0].buffer.shape] == [6, 5]
    check(sch, func, lambda a, b: a @ b, (4, 5), (5, 6), size=(4, 6))


def test_reindex_cache_read():
    sch = Schedule(window())
    sch.reindex_cache_read("B", 0, "local", lambda i, j, k: (j, k, i))
    assert "index_map=lambda i, j, k: (j, k, i))" in str(sch.trace)
    assert shown(sch, "A_local = ", "for i, j in T.grid(9, 8)") == textwrap.dedent("""\
        A_local = T.alloc_buffer((8, 3, 9), "int32", scope="local")
        for i, j, k in T.grid(9, 8, 3):
            with T.block("A_local"):
                vi, vj, vk = T.axis.remap("SSS", [i, j, k])
                A_local[vj, vk, vi] = A[vi + vk, 7 - vj]
        for i, j, k in T.grid(9, 8, 3):
            with T.block("B"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    B[vi, vj] = 0
                B[vi, vj] = B[vi, vj] + A_local[vj, vk, vi]
        """)
    check_window(sch)


def test_reindex_cache_write():
    sch = Schedule(window())
    sch.reindex_cache_write("B", 0, "local", "lambda i, j, k: (j // 4, i, j % 4)")
    assert shown(sch, "B_local = ", "for i, j in T.grid(9, 8):\n    with T.block(\"C\")") == textwrap.dedent("""\
        B_local = T.alloc_buffer((2, 9, 4), "int32", scope="local")
        for i, j, k in T.grid(9, 8, 3):
            with T.block("B"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    B_local[vj // 4, vi, vj % 4] = 0
                B_local[vj // 4, vi, vj % 4] = B_local[vj // 4, vi, vj % 4] + A[vi + vk, 7 - vj]
        for i, j in T.grid(9, 8):
            with T.block("B_local"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = B_local[vj // 4, vi, vj % 4]
        """)
    check_window(sch)


def test_elements_outside_of_the_buffer_are_not_copied():
    """The program reads A[i - 1] behind a condition only."""
    a = te.placeholder((10,), "int32", name="A")
    b = te.compute((10,), lambda i: te.if_then_else(i > 0, a[i - 1], 0), name="B")
    func = create_prim_func([a, b])
    for stage in (lambda s: s.reindex("B", "A"), lambda s: s.reindex_cache_read("B", 0, "global", lambda i: (9 - i,))):
        sch = Schedule(func)
        stage(sch)
        assert "T.where(" in str(sch)
        check(sch, func, lambda x: np.concatenate([[0], x[:-1]]), (10,), size=(10,))


def test_a_reader_in_a_loop_of_the_writer_copies_there():
    func = window()
    sch = Schedule(func)
    io, _ = sch.split(sch.get_loops("C")[0], [None, 4])
    sch.compute_at("B", io)
    sch.reindex("C", "B")
    assert sch.get_loops("B_reindex")[0] == io
    check_window(sch)


def test_reindex_of_unknown_extents():
    n, m = te.var("n"), te.var("m")
    a = te.placeholder((n, m), "int32", name="A")
    func = create_prim_func([a, te.compute((m, n), lambda i, j: a[j, i] + 1, name="B")])
    sch = Schedule(func)
    sch.reindex("B", ("read", 0))
    check_replay(sch, func)
    x, out = np.arange(12, dtype="int32").reshape(3, 4), np.zeros((4, 3), "int32")
    tw.build(sch.func, target="llvm -opt-level=1")["main"](x, out)
    np.testing.assert_array_equal(out, x.T + 1)


# ---- cache_index

def resize():
    """B[i, j] = A[i // 4 + j // 4, j // 2] + A[j // 4, i]."""
    a = te.placeholder((6, 12), "int32", name="A")
    b = te.compute((12, 12), lambda i, j: a[i // 4 + j // 4, j // 2] + a[j // 4, i], name="B")
    return create_prim_func([a, b])


def resize_reference(a):
    i, j = np.ogrid[:12, :12]
    return a[i // 4 + j // 4, j // 2] + a[j // 4, i]


def test_indices_computed_ahead():
    sch = Schedule(resize())
    made = sch.cache_index("B", "global")
    assert [sch.get(b).name for b in made] == ["index_0", "index_1", "index_2"]
    assert textwrap.dedent(body_text(sch)) == textwrap.dedent("""\
        index_var_0 = T.alloc_buffer((12, 12), "int32")
        index_var_1 = T.alloc_buffer((12,), "int32")
        index_var_2 = T.alloc_buffer((12,), "int32")
        for i, j in T.grid(12, 12):
            with T.block("index_0"):
                vi, vj = T.axis.remap("SS", [i, j])
                index_var_0[vi, vj] = vi // 4 + vj // 4
        for j in range(12):
            with T.block("index_1"):
                vj = T.axis.spatial(12, j)
                index_var_1[vj] = vj // 2
        for j in range(12):
            with T.block("index_2"):
                vj = T.axis.spatial(12, j)
                index_var_2[vj] = vj // 4
        for i, j in T.grid(12, 12):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[index_var_0[vi, vj], index_var_1[vj]] + A[index_var_2[vj], vi]""")
    check(sch, resize(), resize_reference, (6, 12), size=(12, 12))


def test_indices_that_repeat():
    sch = Schedule(resize())
    assert len(sch.cache_index("B", "global", 2)) == 1
    assert "A[vi // 4 + index_var_0[vj], vj // 2] + A[index_var_0[vj], vi]" in str(sch)
    check(sch, resize(), resize_reference, (6, 12), size=(12, 12))


def test_nothing_to_compute_ahead():
    func = matmul()
    sch = Schedule(func)
    assert sch.cache_index("C", "global") == [] and sch.func is func
    check_replay(sch, func)


def test_what_may_not_be_computed_ahead_stays():
    a = te.placeholder((20,), "int32", name="A")
    p = te.placeholder((8,), "int32", name="P")
    n = te.var("n")
    b = te.compute((8,), lambda i: a[p[i + 0] + 1] + a[i // n], name="B")
    sch = Schedule(create_prim_func([a, p, n, b]))
    assert sch.cache_index("B", "global") == []


# ---- cache_inplace

def updating(at):
    """The product with its reduction started at loop `at`, so that C_update reads and writes C."""
    sch = Schedule(matmul())
    sch.decompose_reduction("C", sch.get_loops("C")[at])
    return sch


@pytest.mark.parametrize("at", [0, 1, 2])
def test_an_update_in_a_copy(at):
    sch = updating(at)
    before, after = sch.cache_inplace("C_update", "C", "local")
    assert [sch.get(b).name for b in (before, after)] == ["C_local", "C_local_back"]
    assert len(sch.get_loops(before)) == at + 2
    check(sch, matmul(), lambda a, b: a @ b, (4, 5), (5, 6), size=(4, 6))


def test_an_update_in_a_copy_prints():
    sch = updating(0)
    sch.cache_inplace("C_update", 0, "local")
    assert shown(sch, "for ax0", "") == textwrap.dedent("""\
        for ax0, ax1 in T.grid(4, 6):
            with T.block("C_local"):
                v0, v1 = T.axis.remap("SS", [ax0, ax1])
                C_local[v0, v1] = C[v0, v1]
        for i, j, r in T.grid(4, 6, 5):
            with T.block("C_update"):
                vi, vj, vr = T.axis.remap("SSR", [i, j, r])
                C_local[vi, vj] = C_local[vi, vj] + A[vi, vr] * B[vr, vj]
        for ax0, ax1 in T.grid(4, 6):
            with T.block("C_local_back"):
                v0, v1 = T.axis.remap("SS", [ax0, ax1])
                C[v0, v1] = C_local[v0, v1]""")


def test_without_the_checks_a_map_may_mix_elements():
    sch = Schedule(window())
    with unchecked():
        sch.reindex_cache_read("B", 0, "local", lambda i, j, k: (i // 2, j, k))
    assert "A_local[vi // 2, vj, vk]" in str(sch)
