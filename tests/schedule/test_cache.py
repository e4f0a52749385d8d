"""cache_read and cache_write."""
from __future__ import annotations

import numpy as np
import pytest

from tests.schedule.compute_support import (
    body_text,
    chain,
    check,
    loop_extents,
    matmul_bias,
    matmul_bias_reference,
    refuses,
    stencil,
)
from tests.schedule.test_few_lines import moved, program, refused, same
from tilewright import te
from tilewright.schedule import Schedule
from tilewright.script import from_source
from tilewright.te.prim_func import create_prim_func
from tilewright.tir import interp


def test_cache_write_moves_the_reduction():
    func = matmul_bias(4, 6, 5)
    sch = Schedule(func)
    copy = sch.cache_write(sch.get_block("C"), 0, "local")
    assert copy.name == "C_local"
    assert body_text(sch) == """\
    C = T.alloc_buffer((4, 6), "int32")
    C_local = T.alloc_buffer((4, 6), "int32", scope="local")
    for i, j, r in T.grid(4, 6, 5):
        with T.block("C"):
            vi, vj, vr = T.axis.remap("SSR", [i, j, r])
            with T.init():
                C_local[vi, vj] = 0
            C_local[vi, vj] = C_local[vi, vj] + A[vi, vr] * B[vr, vj]
    for i, j in T.grid(4, 6):
        with T.block("C_local"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = C_local[vi, vj]
    for i, j in T.grid(4, 6):
        with T.block("D"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = C[vi, vj] + vi"""
    check(sch, func, matmul_bias_reference, (4, 5), (5, 6))


def test_tiled_matmul_with_caches():
    func = matmul_bias()
    sch = Schedule(func)
    c, d = sch.get_block("C"), sch.get_block("D")
    copy = sch.cache_write(c, 0, "local")
    i, j, k = sch.get_loops(c)
    io, ii = sch.split(i, [None, 8])
    jo, ji = sch.split(j, [None, 8])
    ko, ki = sch.split(k, [None, 4])
    sch.reorder(io, jo, ko, ki, ii, ji)
    sch.reverse_compute_at(copy, jo)
    sch.reverse_compute_at(d, jo)
    packed = sch.cache_read(c, "B", "global")
    sch.compute_at(packed, ko)
    rows = sch.cache_read(c, 0, "shared")
    assert (packed.name, rows.name) == ("B_global", "A_shared")
    sch.compute_at(rows, io)
    assert loop_extents(sch, "B_global") == [3, 3, 4, 4, 8] and loop_extents(sch, "A_shared") == [3, 8, 13]
    check(sch, func, matmul_bias_reference, (20, 13), (13, 18))


def test_cache_read_copies_the_box_that_is_read():
    a = te.placeholder((20, 20), "int32", name="A")
    b = te.compute((4, 6), lambda i, j: a[i + 3, j * 2 + 1] + a[i + 5, j * 2], name="B")
    func = create_prim_func([a, b])
    sch = Schedule(func)
    sch.split(sch.get_loops(sch.get_block("B"))[0], [None, 3])
    sch.cache_read(sch.get_block("B"), "A", "shared.dyn")
    name = "A_shared_dyn"
    assert sch.get(sch.get_block(name)).writes[0].buffer.scope == "shared.dyn"
    assert loop_extents(sch, name)[0] == 6
    check(sch, func, lambda a: a[3:7, 1:12:2] + a[5:9, 0:12:2], (20, 20))


def test_some_consumers_read_the_copy():
    a = te.placeholder((6,), "int32", name="A")
    b = te.compute((6,), lambda i: a[i] + 1, name="B")
    c = te.compute((6,), lambda i: a[i] * 2, name="C")
    func = create_prim_func([a, b, c])
    sch = Schedule(func)
    sch.cache_read(sch.get_block("C"), 0, "local", [sch.get_block("C")])
    assert [x.name for x in sch.get_blocks()] == ["B", "A_local", "C"]
    assert sch.get(sch.get_block("B")).reads[0].buffer.name == "A"
    sch.cache_read(sch.get_block("B"), "A", "local")
    assert [x.name for x in sch.get_blocks()] == ["A_local_1", "B", "A_local", "C"]
    check(sch, func, lambda a: (a + 1, a * 2), (6,))


def test_below_a_shared_loop_the_copy_stays_in_the_loop():
    func = stencil()
    sch = Schedule(func)
    c = sch.get_block("C")
    io, _ = sch.split(sch.get_loops(c)[0], [None, 7])
    sch.compute_at(sch.get_block("B"), io)
    sch.cache_read(c, 0, "local")
    assert loop_extents(sch, "B_local") == [3, 9, 6]
    copy = sch.cache_write(sch.get_block("B"), 0, "shared")
    assert loop_extents(sch, copy.name) == [3, 9, 6]
    check(sch, func, lambda a: 3 * (a[:-2] + a[2:]), (22, 6))


def test_cache_write_of_an_output_after_splits():
    for n in (te.var("n"), 11):
        func = chain(n)
        sch = Schedule(func)
        c = sch.get_block("C")
        io, ii = sch.split(sch.get_loops(c)[0], [None, 4])
        copy = sch.cache_write(c, "C", "local")
        sch.reverse_compute_at(copy, io)
        assert loop_extents(sch, copy.name)[1] == 4
        check(sch, func, lambda a: a * 3 - 1, (11,))


def test_zero_d():
    a = te.placeholder((7,), "int32", name="A")
    r = te.reduce_axis((0, 7), name="r")
    b = te.compute((), lambda: te.sum(a[r], axis=r), name="B")
    c = te.compute((), lambda: b() * 2, name="C")
    func = create_prim_func([a, c])
    sch = Schedule(func)
    sch.cache_write(sch.get_block("B"), 0, "local")
    sch.cache_read(sch.get_block("C"), 0, "shared")
    check(sch, func, lambda a: np.asarray(a.sum() * 2), (7,))


def test_two_outputs():
    a = te.placeholder((5,), "int32", name="A")
    b, c = te.compute((5,), lambda i: (a[i] + 1, a[i] * 2), name="B")
    d = te.compute((5,), lambda i: b[i] - c[i], name="D")
    func = create_prim_func([a, d])
    sch = Schedule(func)
    block = sch.get_block("B")
    copy = sch.cache_write(block, 1, "local")
    io, _ = sch.split(sch.get_loops(sch.get_block("D"))[0], [None, 2])
    sch.compute_at(copy, io)
    sch.compute_at(block, io)
    assert loop_extents(sch, "B") == [3, 2]
    check(sch, func, lambda a: a + 1 - 2 * a, (5,))


def test_one_block_copies_several_outputs():
    a = te.placeholder((5,), "int32", name="A")
    b, c = te.compute((5,), lambda i: (a[i] + 1, a[i] * 2), name="B")
    func = create_prim_func([a, te.compute((5,), lambda i: b[i] - c[i], name="D")])
    sch = Schedule(func)
    copy = sch.cache_write("B", ["B.v1", 0], "local")
    assert sch.get(copy).name == "B_v1_local"
    assert [w.buffer.name for w in sch.get(copy).writes] == ["B.v1", "B.v0"]
    assert [w.buffer.name for w in sch.get(sch.get_block("B")).writes] == ["B_v0_local", "B_v1_local"]
    sch.compute_at("B", sch.split(sch.get_loops(copy)[0], [None, 2])[0])
    check(sch, func, lambda a: a + 1 - 2 * a, (5,))


def test_refusals():
    sch = Schedule(matmul_bias())
    c = sch.get_block("C")
    refuses(sch, lambda: sch.cache_read(c, 2, "local"),
            "cache_read(block=C, read_buffer_index=2, storage_scope='local')",
            "block C reads 2 buffer(s), there is no number 2", "A, B")
    refuses(sch, lambda: sch.cache_read(c, "Z", "local"), "block C reads no buffer 'Z'")
    refuses(sch, lambda: sch.cache_write(c, 0, ""), "scope")
    refuses(sch, lambda: sch.cache_read(c, 0, "local", [sch.get_block("D")]), "block D does not read A")
    sch.decompose_reduction(c, sch.get_loops(c)[0])
    refuses(sch, lambda: sch.cache_write(c, 0, "local"), "before decompose_reduction")
    sch.cache_read(sch.get_block("D"), "C", "local")
    check(sch, matmul_bias(), matmul_bias_reference, (20, 13), (13, 18))


def test_a_copy_has_nothing_to_do_with_what_else_its_reader_reads():
    """The writer of A writes D too, after the reader has read that: this says nothing about a copy of A."""
    sch = Schedule(from_source("""@T.prim_func
def main(X: T.Buffer((9,), "int32"), D: T.Buffer((9,), "int32"), C: T.Buffer((8,), "int32")):
    A = T.alloc_buffer((9,), "int32")
    for i in range(8):
        with T.block("A"):
            v = T.axis.spatial(8, i)
            A[v] = X[v]
            D[v] = X[v] * 2
        with T.block("C"):
            v = T.axis.spatial(8, i)
            C[v] = A[v] + D[v + 1]
"""))
    sch.cache_read("C", [r.buffer.name for r in sch.get(sch.get_block("C")).reads].index("A"), "local")
    x, d, out = np.arange(9, dtype="int32"), np.full(9, 100, "int32"), np.zeros(8, "int32")
    interp.run(sch.func, x, d, out)
    np.testing.assert_array_equal(out, x[:8] + 100)


USE = """
    for i, r in T.grid(8, {extent}):
        with T.block("use"):
            vi, vr = T.axis.remap("SR", [i, r])
            C[vi] = S[vi]
"""
MAKE = """
    for r{loop}, i in T.grid({extent}, 8):
        with T.block("make"):
            vi = T.axis.spatial(8, i)
            S[vi] = A[vi]
"""


@pytest.mark.parametrize("extent, parts, legal", [
    ("0", (USE, MAKE), False), ("n", (USE, MAKE), False), ("n", (MAKE, USE), False), ("3", (MAKE, USE), True)])
def test_a_copy_reads_what_has_been_written_also_where_loops_have_no_iterations(extent, parts, legal):
    """A reader that never runs may stand before the writer, and one of 0 times behind a writer of 0 times."""
    func = from_source(
        '@T.prim_func\ndef main(A: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32"), n: T.int32):\n'
        '    S = T.alloc_buffer((8,), "int32")\n' + "".join(p.format(extent=extent, loop="_0") for p in parts))
    sch = Schedule(func)
    if not legal:
        refuses(sch, lambda: sch.cache_read(sch.get_block("use"), "S", "local"), "may not be written by then")
        return
    sch.cache_read(sch.get_block("use"), "S", "local")
    out = np.zeros(8, "int32")
    interp.run(sch.func, np.arange(8, dtype="int32"), out, 0)
    np.testing.assert_array_equal(out, np.arange(8))


def test_a_copy_goes_as_far_as_the_loops_that_a_predicate_cuts():
    """i * 2 + j < n with i, j below 1 and 2 is not all of n: only two elements are written, and copied."""
    sch = Schedule(from_source("""
@T.prim_func
def main(a: T.handle, c: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n,), "int32")
    C = T.match_buffer(c, (n,), "int32")
    for i, j in T.grid(1, 2):
        with T.block("C"):
            vi = T.axis.spatial(n, i * 2 + j)
            T.where(i * 2 + j < n)
            C[vi] = A[vi]
"""))
    sch.cache_write("C", 0, "local")
    for n in (1, 2, 5):
        out = np.full(n, 7, "int32")
        interp.run(sch.func, np.arange(n, dtype="int32"), out)
        np.testing.assert_array_equal(out, [0, 1, 7, 7, 7][:n])


def test_what_a_consumer_reads_all_of_is_written_whatever_else_it_reads():
    """No one block writes all of X; that Q reads all of it says that it is written."""
    func = from_source("""
@T.prim_func
def main(A: T.Buffer((8,), "int32"), W: T.Buffer((8, 3), "int32"), C: T.Buffer((8,), "int32")):
    X = T.alloc_buffer((8,), "int32")
    for i in range(4):
        with T.block("low"):
            v = T.axis.spatial(4, i)
            X[v] = A[v]
    for i in range(4):
        with T.block("high"):
            v = T.axis.spatial(4, i)
            X[v + 4] = A[v + 4] * 2
    for i in range(8):
        with T.block("Q"):
            v = T.axis.spatial(8, i)
            C[v] = X[v] * W[v, 1]
""")
    sch = Schedule(func)
    sch.cache_read("Q", "X", "local")
    check(sch, func, lambda a, w: a * [1, 1, 1, 1, 2, 2, 2, 2] * w[:, 1], (8,), (8, 3))


@pytest.mark.parametrize("runs", ["n", "2"])
def test_the_writer_before_an_update_in_place_runs_where_its_loop_has_iterations(runs):
    func = program("B: T.Buffer((4,), 'int32'), n: T.int32", f"""
    C = T.alloc_buffer((4,), "int32")
    for u in range({runs}):
        for i in range(4):
            with T.block("C"):
                vi = T.axis.spatial(4, i)
                C[vi] = vi
    for u in range(n):
        for i in range(4):
            with T.block("C_update"):
                vi = T.axis.spatial(4, i)
                C[vi] = C[vi] + 5
    for u in range(n):
        for i in range(4):
            with T.block("B"):
                vi = T.axis.spatial(4, i)
                B[vi] = C[vi]
""")
    stored, want = np.full(4, 77, "int32"), np.arange(4, dtype="int32") + 10
    if runs == "n":
        refused(func, "may not be written by then", lambda s: s.cache_inplace("C_update", 0, "local"))
    else:
        func = moved(func, lambda s: s.cache_inplace("C_update", 0, "local"))
    same(func, [stored, 0], stored)
    same(func, [stored, 2], want)


@pytest.mark.parametrize("move", [lambda s: s.cache_write("X", 0, "local"), lambda s: s.reindex("X", "X")])
@pytest.mark.parametrize("kind", ["T.parallel", "range"])
def test_the_copy_of_what_each_iteration_has_to_itself_is_not_shared(kind, move):
    func = program("A: T.Buffer((4,), 'int32'), B: T.Buffer((3,), 'int32')", f"""
    X = T.alloc_buffer((4,), "int32")
    for t in {kind}(3):
        for i in range(4):
            with T.block("X"):
                vi = T.axis.spatial(4, i)
                X[vi] = A[vi]
        with T.block("B"):
            vt = T.axis.spatial(3, t)
            B[vt] = vt
""")
    args, want = [np.zeros(4, "int32"), np.full(3, 77, "int32")], np.arange(3, dtype="int32")
    same(func, args, want)
    if kind == "range":
        same(moved(func, move), args, want)
    else:
        refused(func, "two of its iterations may touch the same element of X_", move)
