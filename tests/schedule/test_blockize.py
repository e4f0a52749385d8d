"""blockize: print, meaning, nested blocks under other primitives and in lowering, replay."""
from __future__ import annotations

import textwrap

import numpy as np
import pytest

import tilewright as tw
from tilewright import te
from tilewright.lowering.pipeline import lower
from tilewright.schedule import Schedule
from tilewright.script import from_source
from tilewright.script import tir as T
from tilewright.support.errors import InterpreterError, ScheduleError
from tilewright.te.prim_func import create_prim_func
from tilewright.tir import interp
from tilewright.tir.verify import verify

from .compute_support import body_text, check, refuses
from .core_support import check_replay, matmul, scale


def product(a, b):
    return a @ b


def tiled(n=12, m=8, k=16, steps=8):
    """The schedule of a product in tiles of 4 by 4 by steps, its block and its loops."""
    func = matmul(n, m, k)
    sch = Schedule(func)
    block = sch.get_block("C")
    i, j, r = sch.get_loops(block)
    parts = [*sch.split(i, [None, 4]), *sch.split(j, [None, 4]), *sch.split(r, [None, steps])]
    sch.reorder(*parts[::2], *parts[1::2])
    return func, sch, block, parts[::2] + parts[1::2]


def check_matmul(sch, func, n=12, m=8, k=16):
    """Block form, flat form, machine code and replay all give the product."""
    check(sch, func, product, (n, k), (k, m))
    rng = np.random.default_rng(1)
    a, b = rng.integers(-9, 9, (n, k)).astype("int32"), rng.integers(-9, 9, (k, m)).astype("int32")
    for run in (lambda *x: interp.run(lower(sch.func), *x), tw.build(sch.func, target="llvm")):
        c = np.full((n, m), 77, "int32")
        run(a, b, c)
        np.testing.assert_array_equal(c, a @ b)
    check_replay(sch, func)


def test_a_loop_becomes_a_block():
    func = scale(16)
    sch = Schedule(func)
    i, = sch.get_loops(sch.get_block("B"))
    _, inner = sch.split(i, [None, 4])
    outer = sch.blockize(inner)
    assert outer.name == "B_o"
    assert textwrap.dedent("\n".join(str(sch.func).split("\n")[4:])) == textwrap.dedent("""\
        for i_0 in range(4):
            with T.block("B_o"):
                vi_o = T.axis.spatial(4, i_0)
                T.reads(A[vi_o * 4:vi_o * 4 + 4])
                T.writes(B[vi_o * 4:vi_o * 4 + 4])
                for i_1 in range(4):
                    with T.block("B"):
                        vi_i = T.axis.spatial(4, i_1)
                        T.reads(A[vi_o * 4 + vi_i])
                        T.writes(B[vi_o * 4 + vi_i])
                        B[vi_o * 4 + vi_i] = A[vi_o * 4 + vi_i] * 3""")
    check(sch, func, lambda a: 3 * a, (16,))
    check_replay(sch, func)


def test_the_new_block_starts_a_reduction_that_it_does_not_finish():
    func, sch, block, loops = tiled()
    outer = sch.blockize(loops[3])
    assert textwrap.dedent(body_text(sch)) == textwrap.dedent("""\
        for i_0, j_0, r_0 in T.grid(3, 2, 2):
            with T.block("C_o"):
                vi_o, vj_o, vr_o = T.axis.remap("SSR", [i_0, j_0, r_0])
                with T.init():
                    for i_1_init, j_1_init in T.grid(4, 4):
                        with T.block("C_init"):
                            vi_i_init, vj_i_init = T.axis.remap("SS", [i_1_init, j_1_init])
                            C[vi_o * 4 + vi_i_init, vj_o * 4 + vj_i_init] = 0
                for i_1, j_1, r_1 in T.grid(4, 4, 8):
                    with T.block("C"):
                        vi_i, vj_i, vr_i = T.axis.remap("SSR", [i_1, j_1, r_1])
                        C[vi_o * 4 + vi_i, vj_o * 4 + vj_i] = C[vi_o * 4 + vi_i, vj_o * 4 + vj_i] + """
                                                                   """A[vi_o * 4 + vi_i, vr_o * 8 + vr_i] * """
                                                                   """B[vr_o * 8 + vr_i, vj_o * 4 + vj_i]""")
    assert [rv.var.name for rv in sch.get_loops(outer)] == ["i_0", "j_0", "r_0"]
    assert [rv.var.name for rv in sch.get_loops(block)] == ["i_1", "j_1", "r_1"]
    check_matmul(sch, func)


@pytest.mark.parametrize("units", [True, False])
@pytest.mark.parametrize(("sizes", "steps"), [((12, 8, 8), 8), ((10, 7, 16), 8), ((10, 7, 11), 4)])
def test_whole_and_ragged_reductions(sizes, steps, units):
    func, sch, _, loops = tiled(*sizes, steps)
    sch.blockize(loops[3], preserve_unit_iters=units)
    check_matmul(sch, func, *sizes)


def test_other_primitives_work_inside_and_outside():
    func, sch, block, loops = tiled()
    outer = sch.blockize(loops[3])
    start = sch.decompose_reduction(outer, loops[2])
    sch.parallel(loops[0])
    i, j, r = sch.get_loops(block)
    sch.reorder(r, i, j)
    j0, j1 = sch.split(j, [2, 2])
    sch.vectorize(j1)
    sch.unroll(j0)
    sch.fuse(*sch.get_loops("C_init"))
    assert start.name == "C_o_init" and sch.get(outer).name == "C_o_update"
    check_matmul(sch, func)


def test_a_new_block_states_whole_dimensions_where_loops_in_it_start_where_others_are():
    sch = Schedule(from_source('''@T.prim_func
def f(B: T.Buffer((16,), "int32"), C: T.Buffer((2, 16), "int32"), D: T.Buffer((2, 8), "int32")):
    for i in range(2):
        for x in range(4):
            for y in range(x, x + 4):
                with T.block("P"):
                    u, w = T.axis.remap("SS", [i, y])
                    C[u, w] = B[w]
        for z in range(8):
            with T.block("Q"):
                u, w = T.axis.remap("SS", [i, z])
                D[u, w] = C[u, w]
'''))
    new = sch.get(sch.blockize(["P", "Q"]))
    assert [str(r) for r in new.reads] == ["B[0:16]", "C[vi, 0:8]"]
    assert [str(r) for r in new.writes] == ["C[vi, 0:16]", "D[vi, 0:8]"]


def test_blocks_that_write_the_bound_of_a_loop_around_them_are_refused():
    sch = Schedule(from_source('''@T.prim_func
def f(N: T.Buffer((1,), "int32"), A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
    for i in range(2):
        for j in range(N[0]):
            with T.block("B"):
                v = T.axis.spatial(8, i * 4 + j)
                B[v] = A[v]
            with T.block("N"):
                v = T.axis.spatial(1, 0)
                N[v] = 3
'''))
    refuses(sch, lambda: sch.blockize(["B", "N"]), "N is read by the bounds of a loop, and written below it")


def test_blocks_nest_twice():
    func, sch, block, loops = tiled()
    sch.blockize(loops[3])
    sch.blockize(sch.get_loops(block)[2])
    assert [b.name for b in sch.get_blocks()] == ["C_o", "C_init", "C_o_1", "C"]
    check_matmul(sch, func)


def test_several_blocks_in_one():
    a = te.placeholder((6, 5), "int32", name="A")
    b = te.compute((6, 5), lambda i, j: a[i, j] * 3, name="B")
    c = te.compute((6, 5), lambda i, j: b[i, j] - j, name="C")
    func = create_prim_func([a, c])
    sch = Schedule(func)
    sch.compute_at("B", sch.get_loops("C")[0])
    both = sch.blockize([sch.get_block("B"), sch.get_block("C")])
    assert [rv.var.name for rv in sch.get_loops(both)] == ["i"]
    assert [r.buffer.name for r in sch.get(both).writes] == ["B", "C"]
    check(sch, func, lambda x: x * 3 - np.arange(5), (6, 5))
    got = np.full((6, 5), 7, "int32")
    x = np.arange(30, dtype="int32").reshape(6, 5)
    tw.build(sch.func, target="llvm")(x, got)
    np.testing.assert_array_equal(got, x * 3 - np.arange(5))


@pytest.mark.parametrize("kind", ["vectorize", "parallel", "bind"])
def test_iterations_that_run_at_once_keep_what_each_has(kind):
    """The iterations of both loops write one element of B where the index is cut off: each needs a B of its own."""
    a = te.placeholder((16,), "int32", name="A")
    b = te.compute((16,), lambda i: a[15 - i] * 2, name="B")
    c = te.compute((16,), lambda i: b[te.max(te.min(i + 3, 15), 0)] + i, name="C")
    func = create_prim_func([a, c])
    sch = Schedule(func)
    i, = sch.get_loops("C")
    sch.compute_at("B", i)
    _, inner = sch.split(i, [None, 4])
    getattr(sch, kind)(inner, *(["threadIdx.x"] if kind == "bind" else []))
    both = sch.get(sch.blockize([sch.get_block("B"), sch.get_block("C")]))
    assert [b.name for b in both.alloc_buffers] == ["B"] and [r.buffer.name for r in both.writes] == ["C"]
    want = np.arange(16)[15 - np.minimum(np.arange(16) + 3, 15)] * 2 + np.arange(16)
    verify(sch.func)
    runs = [lambda *x: interp.run(sch.func, *x), lambda *x: interp.run(lower(sch.func), *x)]
    for run in runs if kind == "bind" else [*runs, tw.build(sch.func, target="llvm")]:
        got = np.full(16, 7, "int32")
        run(np.arange(16, dtype="int32"), got)
        np.testing.assert_array_equal(got, want)
    check_replay(sch, func)


def test_one_block_of_several_that_use_what_each_iteration_has():
    """A step of a sum that each thread has is a block; the sum stays one for all steps of its thread."""
    @T.prim_func
    def func(A: T.Buffer((2, 4, 8), "int32"), D: T.Buffer((2, 4, 8), "int32"), E: T.Buffer((2, 4), "int32")):
        S = T.alloc_buffer((1,), "int32")
        for t in range(2):
            for i in T.parallel(4):
                with T.block("start"):
                    S[0] = 0
                for k in range(8):
                    with T.block("S"):
                        vt, vi, vk = T.axis.remap("SSR", [t, i, k])
                        S[0] = S[0] + A[vt, vi, vk]
                    with T.block("D"):
                        vt, vi, vk = T.axis.remap("SSS", [t, i, k])
                        D[vt, vi, vk] = S[0]
                with T.block("E"):
                    vt, vi = T.axis.remap("SS", [t, i])
                    E[vt, vi] = S[0]

    sch = Schedule(func)
    sch.blockize([sch.get_block("D")])
    a = np.arange(64, dtype="int32").reshape(2, 4, 8)
    for run in (lambda *x: interp.run(lower(sch.func), *x), tw.build(sch.func, target="llvm")):
        d, e = np.zeros_like(a), np.zeros((2, 4), "int32")
        run(a, d, e)
        np.testing.assert_array_equal(d, a.cumsum(2))
        np.testing.assert_array_equal(e, a.sum(2))


def test_symbolic_extents():
    n = te.var("n")
    func = scale(n)
    sch = Schedule(func)
    i, = sch.get_loops("B")
    _, inner = sch.split(i, [None, 4])
    sch.blockize(inner)
    verify(sch.func)
    for size in (1, 4, 7, 16):
        a, b = np.arange(size, dtype="int32"), np.zeros(size, "int32")
        interp.run(sch.func, a, b)
        np.testing.assert_array_equal(b, 3 * a)
        tw.build(sch.func, target="llvm")(a, b)
        np.testing.assert_array_equal(b, 3 * a)


def test_an_axis_that_does_not_divide_is_refused():
    sch = Schedule(scale(12))
    i, = sch.get_loops("B")
    i0, i1 = sch.split(i, [3, 4])
    sch.reorder(i1, i0)
    refuses(sch, lambda: sch.blockize(i0), "axis vi is", "no outer*c + inner")


@pytest.mark.parametrize("order", ["reduction outside", "reduction inside"])
def test_reductions_of_symbolic_extent_may_be_empty(order):
    n = te.var("k")
    a, k = te.placeholder((8, n), "int32", name="A"), te.reduce_axis((0, n), name="k")
    c = te.compute((8,), lambda i: te.sum(a[i, k], axis=k), name="C")
    func = create_prim_func([a, c])
    sch = Schedule(func)
    i, r = sch.get_loops("C")
    i0, i1 = sch.split(i, [None, 4])
    if order == "reduction outside":
        r0, r1 = sch.split(r, [None, 4])
        sch.reorder(i0, r0, i1, r1)
    sch.blockize(i1)
    verify(sch.func)
    built = tw.build(sch.func, target="llvm")
    for size in (0, 1, 4, 7):
        data = np.arange(8 * size, dtype="int32").reshape(8, size)
        for run in (lambda *x: interp.run(sch.func, *x), lambda *x: interp.run(lower(sch.func), *x), built):
            got = np.full(8, 7, "int32")
            run(data, got)
            np.testing.assert_array_equal(got, data.sum(1))


def test_digits_of_one_value_do_not_count():
    func = scale(7)
    sch = Schedule(func)
    i, = sch.get_loops("B")
    sch.blockize(sch.split(i, [1, 7, 1])[1])
    assert sch.get(sch.get_block("B")).iter_vars[0].dom.extent.value == 7
    check(sch, func, lambda a: 3 * a, (7,))


def test_an_axis_that_starts_above_zero_in_a_unit_loop():
    a = te.placeholder((6,), "int32", name="A")
    c = te.compute((1,), lambda i: a[i + 3] * 2, name="C")
    func = create_prim_func([a, c])
    sch = Schedule(func)
    cache = sch.cache_read("C", 0, "local")
    sch.compute_at(cache, sch.get_loops("C")[0], preserve_unit_loops=True)
    sch.blockize(sch.get_loops(cache)[-1])
    check(sch, func, lambda x: 2 * x[3:4], (6,))


@T.prim_func
def triangle(a: T.handle, d: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n, n), "int32")
    D = T.match_buffer(d, (n,), "int32")
    for i in range(n):
        for j in range(i + 1):
            with T.block("D"):
                vi = T.axis.spatial(n, i)
                vj = T.axis.reduce(n, j)
                with T.init():
                    D[vi] = 0
                D[vi] = D[vi] + A[vi, vj]


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("steps, bound", [(1, "vi_o + 1"), (2, "vi_o // 2 + 1")])
def test_a_loop_as_long_as_one_around_says(steps, bound, keep):
    """The bounds of the loops inside are told by the axes of the new block."""
    sch = Schedule(triangle)
    loop = sch.get_loops("D")[1]
    if steps > 1:
        loop, _ = sch.split(loop, [None, steps])
    sch.blockize(loop, preserve_unit_iters=keep)
    assert f"({bound}" in str(sch.func)
    assert from_source(sch.func.script()).script() == sch.func.script()
    x = np.arange(81, dtype="int32").reshape(9, 9)
    for run in (lambda *args: interp.run(sch.func, *args), tw.build(sch.func)):
        y = np.full(9, 77, "int32")
        run(x, y)
        np.testing.assert_array_equal(y, np.tril(x).sum(1))
    check_replay(sch, triangle)


@pytest.mark.parametrize("n", (1, 2, 5))
def test_a_condition_that_the_domain_of_the_new_axis_implies_is_kept_around_it(n):
    size = te.var("n")
    a, k = te.placeholder((size + 1,), "int32", name="A"), te.reduce_axis((0, size), name="k")
    b = te.compute((size + 1,), lambda i: te.sum(a[i] + k, axis=k), name="B")
    sch = Schedule(create_prim_func([a, b, size]))
    _, inner = sch.split(sch.fuse(*sch.get_loops("B")), [None, 7])
    copy = sch.cache_read("B", 0, "local")
    sch.compute_at(copy, inner, preserve_unit_loops=True)          # beyond the last element in the last iterations
    sch.blockize(sch.get_loops(copy)[-1])
    x, got = np.arange(n + 1, dtype="int32"), np.zeros(n + 1, "int32")
    interp.run(sch.func, x, got, n)
    assert got.tolist() == (x * n + n * (n - 1) // 2).tolist()


def test_an_axis_that_runs_backwards_as_far_as_data_says_keeps_its_domain():
    sch = Schedule(from_source("""
@T.prim_func
def main(N: T.Buffer((3,), "int32"), A: T.Buffer((8,), "int32"), B: T.Buffer((3,), "int32")):
    for i in range(3):
        for k in range(N[i] % 5):
            with T.block("B"):
                vi = T.axis.spatial(3, i)
                vk = T.axis.reduce((4, 8), 7 - k)
                B[vi] = B[vi] + A[vk]
"""))
    sch.read_at(sch.get_loops("B")[1], "B", "A", "global")
    sizes, x, got = np.array([0, 2, 4], "int32"), np.arange(8, dtype="int32"), np.zeros(3, "int32")
    interp.run(sch.func, sizes, x, got)
    assert got.tolist() == [0, 13, 22]


def test_the_new_block_runs_only_where_its_axes_are_in_their_domains():
    """The copy is of A[i, i - 3], which for most i is outside of A; so is the axis of the new block."""
    @T.prim_func
    def func(a: T.handle, c: T.handle):
        n = T.int64()
        A = T.match_buffer(a, (n, 1), "int32")
        C = T.match_buffer(c, (n,), "int32")
        for i in range(n):
            with T.block("C"):
                vi = T.axis.spatial(n, i)
                C[vi] = T.if_then_else(vi - T.int64(3) >= T.int64(0) and vi - T.int64(3) < T.int64(1),
                                       A[vi, vi - T.int64(3)], -1)

    sch = Schedule(func)
    sch.read_at(sch.get_loops("C")[0], "C", "A", "local")
    got = np.zeros(8, "int32")
    interp.run(sch.func, np.arange(10, 18, dtype="int32").reshape(8, 1), got)
    np.testing.assert_array_equal(got, [13 if i == 3 else -1 for i in range(8)])
    check_replay(sch, func)


def test_the_start_of_a_new_block_says_what_the_block_inside_reads():
    """The start of the blockized sum is a block in a block, which reads A at an index that is no interval."""
    @T.prim_func
    def func(A: T.Buffer((3,), "int32"), B: T.Buffer((4, 5), "int32"), C: T.Buffer((5,), "int32")):
        for k, i in T.grid(4, 5):
            with T.block("C"):
                vk, vi = T.axis.remap("RS", [k, i])
                with T.init():
                    C[vi] = A[(vi + 1) % 3]
                C[vi] = C[vi] + B[vk, vi]

    sch = Schedule(func)
    k, i = sch.get_loops("C")
    start = sch.decompose_reduction(sch.blockize(i), k)
    verify(sch.func)
    assert "T.reads(A[0:3])" in str(sch.func)
    assert sch.get(start).reads[0].buffer.name == "A"
    a, b, got = np.array([5, 6, 7], "int32"), np.arange(20, dtype="int32").reshape(4, 5), np.zeros(5, "int32")
    interp.run(sch.func, a, b, got)
    np.testing.assert_array_equal(got, a[(np.arange(5) + 1) % 3] + b.sum(0))
    check_replay(sch, func)


@pytest.mark.parametrize("n", [1, 2, 3, 5])
@pytest.mark.parametrize("fused", [False, True])
def test_a_condition_with_a_size_that_the_reduction_has_too_holds_for_the_start(n, fused):
    """Columns and steps are both n, and the last tile of columns ends behind them."""
    size = te.var("n")
    a, k = te.placeholder((size, 4), "int32", name="A"), te.reduce_axis((0, size), name="k")
    func = create_prim_func([a, te.compute((4, size), lambda i, j: te.sum(a[k, i] + j, axis=k), name="C")])
    sch = Schedule(func)
    i, j, r = sch.get_loops("C")
    sch.reorder(i, r, j)
    if fused:
        sch.fuse(i, r)
    sch.blockize(sch.split(j, [None, 2])[-1])
    x = np.arange(4 * n, dtype="int32").reshape(n, 4)
    want = (x.sum(0)[:, None] + n * np.arange(n)).astype("int32")
    for run in (lambda *args: interp.run(sch.func, *args), lambda *args: interp.run(lower(sch.func), *args),
                tw.build(sch.func, target="llvm")):
        got = np.full((4, n), 77, "int32")
        run(x, got)
        np.testing.assert_array_equal(got, want)
    check_replay(sch, func)


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("place", range(4))
def test_a_reduction_over_nothing_is_started_though_its_loop_never_runs(place, fused):
    """That of two axes in one loop is of no steps, and no axis says so: refused, and right where it is not."""
    a = te.placeholder((4, 0), "int64", name="A")
    k = [te.reduce_axis((0, n), name=f"k{n}") for n in (5, 0)]
    b = te.compute((4, 3), lambda i, j: te.min(a[i, k[1]] + k[0].astype("int64"), axis=k), name="B")
    for target in range(5 - fused):
        sch = Schedule(te.create_prim_func([a, b]))
        i, j, *steps = sch.get_loops("B")
        steps = [sch.fuse(*steps)] if fused else steps
        sch.reorder(*[(i, j, *steps), (i, *steps, j), (*steps, i, j), (steps[-1], i, j, *steps[:-1])][place])
        try:
            sch.blockize(sch.get_loops("B")[target - 1] if target else [sch.get_block("B")])
        except ScheduleError:
            assert fused
            continue
        out = np.zeros((4, 3), "int64")
        interp.run(sch.func, np.zeros((4, 0), "int64"), out)
        assert np.all(out == np.iinfo("int64").max)


def tile(place, kind="range"):
    """A loop in a block that keeps values in a buffer of the function."""
    return from_source(f"""@T.prim_func
def main(D: T.Buffer((8,), "int32")):
    C = T.alloc_buffer((8,), "int32")
    for t in range(2):
        with T.block("tile"):
            vt = T.axis.spatial(2, t)
            for i in {kind}(8):
                with T.block("B"):
                    vi = T.axis.spatial(8, i)
                    C[{place}] = vi
                    D[vi] = C[{place}] + vt
""")


def test_a_loop_in_a_block_shares_what_the_block_declares():
    sch = Schedule(tile("vi // 2"))
    refuses(sch, lambda: sch.parallel(sch.get_loops("B")[-1]), "may touch the same element of C")
    shared = tile("vi // 2", "T.parallel")
    for form in (shared, lower(shared)):
        with pytest.raises(InterpreterError, match="touch element 0 of C"):
            interp.run(form, np.zeros(8, "int32"))
    sch = Schedule(from_source("""@T.prim_func
def main(D: T.Buffer((8,), "int32")):
    C = T.alloc_buffer((8,), "int32")
    for i in T.parallel(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            C[vi // 2] = vi
            D[vi] = C[vi // 2]
"""))
    refuses(sch, lambda: sch.blockize(sch.get_loops("B")[0]), "may touch the same element of C")
    sch = Schedule(tile("7 - vi"))
    sch.parallel(sch.get_loops("B")[-1])
    for run in (lambda d: interp.run(sch.func, d), lambda d: interp.run(lower(sch.func), d), tw.build(sch.func)):
        d = np.zeros(8, "int32")
        run(d)
        np.testing.assert_array_equal(d, 1 + np.arange(8))
