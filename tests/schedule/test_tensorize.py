"""tensorize: matching up to order and layout, views, refusals that say what differs, lowering, calls, replay."""
from __future__ import annotations

import textwrap
import time

import numpy as np
import pytest

import tilewright as tw
from tests.schedule import tensor_intrinsics as intrinsics
from tilewright import te, tir
from tilewright.lowering.pipeline import lower
from tilewright.schedule import Schedule
from tilewright.script import tir as T
from tilewright.support.errors import ArgumentError, IRError, TilewrightError
from tilewright.te.prim_func import create_prim_func
from tilewright.tir import TensorIntrin, interp
from tilewright.tir.verify import verify

from .compute_support import body_text, refuses
from .core_support import check_replay


def product(n=8, m=12, k=16, form="nt", dtype="int32", combine=lambda a, b: a * b):
    """C = A @ B with A stored transposed for form[0] == "t", and B for form[1] == "t"."""
    a = te.placeholder((n, k) if form[0] == "n" else (k, n), dtype, name="A")
    b = te.placeholder((k, m) if form[1] == "n" else (m, k), dtype, name="B")
    r = te.reduce_axis((0, k), name="r")
    c = te.compute((n, m), lambda i, j: te.sum(combine(
        b[r, j] if form[1] == "n" else b[j, r], a[i, r] if form[0] == "n" else a[r, i]), axis=r), name="C")
    return create_prim_func([a, b, c])


def tiles(func, steps=8, order=(0, 1, 2)):
    """(schedule, the outermost loop of a tile of 4 by 4 by steps, whose loops stand in some order)."""
    sch = Schedule(func)
    block = sch.get_block("C")
    parts = [sch.split(loop, [None, size]) for loop, size in zip(sch.get_loops(block), (4, 4, steps))]
    inner = [parts[n][1] for n in order]
    sch.reorder(*[p[0] for p in parts], *inner)
    return sch, inner[0]


def check(sch, func, form="nt", n=8, m=12, k=16, externs=None):
    """Block form, both flat forms and replay give the product."""
    verify(sch.func)
    rng = np.random.default_rng(0)
    a, b = rng.integers(-9, 9, (n, k)).astype("int32"), rng.integers(-9, 9, (k, m)).astype("int32")
    stored = [np.ascontiguousarray(x.T if f == "t" else x) for x, f in zip((a, b), form)]
    for f in (sch.func, lower(sch.func, simple_mode=True), lower(sch.func)):
        c = np.full((n, m), 77, "int32")
        interp.run(f, *stored, c, externs=externs or {})
        np.testing.assert_array_equal(c, a @ b)
    check_replay(sch, func)
    if externs is None:
        c = np.full((n, m), 77, "int32")
        tw.build(sch.func, target="llvm")(*stored, c)
        np.testing.assert_array_equal(c, a @ b)


def test_a_tile_is_computed_by_an_intrinsic():
    func = product()
    sch, top = tiles(func)
    sch.decompose_reduction("C", sch.get_loops("C")[2])
    sch.tensorize(top, "test.loops")
    text = body_text(sch)
    assert textwrap.dedent(" " * 12 + text[text.index("with T.block(\"C_update_o\")"):]) == textwrap.dedent("""\
        with T.block("C_update_o"):
            vi_o, vj_o, vr_o = T.axis.remap("SSR", [i_0, j_0, r_0])
            A_offset = T.int32()
            A_1 = T.match_buffer(A[vi_o * 4:vi_o * 4 + 4, vr_o * 8:vr_o * 8 + 8], (4, 8), "int32", \
elem_offset=A_offset, offset_factor=1)
            B_offset = T.int32()
            B_1 = T.match_buffer(B[vj_o * 4:vj_o * 4 + 4, vr_o * 8:vr_o * 8 + 8], (4, 8), "int32", \
elem_offset=B_offset, offset_factor=1)
            C_offset = T.int32()
            C_1 = T.match_buffer(C[vi_o * 4:vi_o * 4 + 4, vj_o * 4:vj_o * 4 + 4], (4, 4), "int32", \
elem_offset=C_offset, offset_factor=1)
            for i, k in T.grid(4, 8):
                for j in T.vectorized(4):
                    C_1[i, j] = C_1[i, j] + A_1[i, k] * B_1[j, k]""")
    check(sch, func)


@pytest.mark.parametrize("name", ["test.loops", "test.blocks", "test.call"])
@pytest.mark.parametrize("form", ["nt", "nn", "tt", "tn"])
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2)])
def test_transposed_operands_in_any_order(form, order, name):
    func = product(form=form)
    sch, top = tiles(func, order=order)
    sch.tensorize(top, name)
    check(sch, func, form, externs={"test.product": intrinsics.product_packed} if name == "test.call" else None)


@pytest.mark.parametrize("form", ["nt", "tn"])
def test_callbacks_read_and_write_strided_views(form):
    @tw.register_func("test.product", override=True)
    def called(a, b, c, sa, tb):
        assert (sa, tb) == ((16, 1) if form == "nt" else (1, 12))
        c.copyfrom(c.numpy() + a.numpy() @ b.numpy().T)

    func = product(form=form)
    sch, top = tiles(func)
    sch.tensorize(top, "test.call")
    a, b = np.arange(128, dtype="int32").reshape(8, 16), np.arange(192, dtype="int32").reshape(16, 12) - 50
    stored = [np.ascontiguousarray(x.T if f == "t" else x) for x, f in zip((a, b), form)]
    c = np.full((8, 12), 77, "int32")
    tw.build(sch.func, target="llvm")(*stored, c)
    np.testing.assert_array_equal(c, a @ b)


def test_a_condition_of_a_description_may_hold_for_each_point():
    def conditional(n):
        return n.replace(predicate=n.iter_values[0] < 4) if isinstance(n, tir.BlockRealize) and n.iter_values else None
    desc = intrinsics.product_desc
    TensorIntrin.register("test.conditional", desc.with_body(tir.rewrite(desc.body, conditional)),
                          intrinsics.product_loops, override=True)
    sch, top = tiles(product())
    sch.tensorize(top, "test.conditional")
    check(sch, product())


def test_a_block_can_be_tensorized_after_blockize():
    func = product()
    sch, top = tiles(func)
    outer = sch.blockize(top)
    sch.tensorize(outer, TensorIntrin.get("test.blocks"))
    assert [b.name for b in sch.get_blocks()] == ["C_o", "C_init", "step"]
    sch.parallel(sch.get_loops(outer)[0])
    verify(sch.func)
    again = Schedule(func)
    sch.trace.apply_to_schedule(again)                 # an intrinsic without a registered name is no JSON
    assert tir.structural_equal(again.func, sch.func)


def test_a_tensorized_reduction_can_be_decomposed():
    func = product()
    sch, top = tiles(func)
    sch.tensorize(top, "test.loops")
    sch.decompose_reduction("C_o", sch.get_loops("C_o")[2])
    check(sch, func)


def test_two_tensorized_blocks_have_names_and_loops_of_their_own():
    a = te.placeholder((8,), "int32", name="A")
    b = te.compute((8,), lambda i: a[i] + 1, name="B")
    c = te.compute((8,), lambda i: b[i] + 1, name="C")
    func = create_prim_func([a, c])
    sch = Schedule(func)
    add_one = intrinsics.te_vector(lambda x: x + 1).compute
    for name in "BC":
        i, = sch.get_loops(name)
        sch.tensorize(sch.split(i, [None, 4])[1], add_one)
    verify(sch.func)
    got = np.zeros(8, "int32")
    tw.build(sch.func, target="llvm")(np.arange(8, dtype="int32"), got)
    np.testing.assert_array_equal(got, np.arange(8) + 2)


def scaling():
    """The intrinsic y[i] = x[i] * factor of four elements."""
    factor = te.var("factor", "int32")
    x = te.placeholder((4,), "int32", name="x")
    y = te.compute((4,), lambda i: x[i] * factor, name="y")

    def body(ins, outs, scalars):
        i = te.var("i")
        return tir.loop(i, 4, outs[0].vstore((i,), ins[0][i] * scalars[0]))
    return te.decl_tensor_intrin(y.op, body, scalar_params=[factor])


def test_a_scalar_parameter_stands_for_no_element_of_memory():
    a, f = (te.placeholder((n,), "int32", name=name) for n, name in ((12, "A"), (1, "F")))
    c = te.compute((12,), lambda i: a[i] * f[0], name="C")
    s = te.create_schedule(c.op)
    s[c].tensorize(s[c].split(c.op.axis[0], factor=4)[1], scaling())
    with pytest.raises(TilewrightError, match=r"the scalar factor of the description stands for `F\[0\]`"):
        tw.build(s, [a, f, c], "llvm")


def test_a_scalar_parameter_stands_for_any_value():
    a, by = te.placeholder((12,), "int32", name="A"), te.var("by", "int32")
    c = te.compute((12,), lambda i: a[i] * (by + 1), name="C")
    s = te.create_schedule(c.op)
    _, inner = s[c].split(c.op.axis[0], factor=4)
    s[c].tensorize(inner, scaling())
    got = np.zeros(12, "int32")
    tw.build(s, [a, by, c], "llvm")(np.arange(12, dtype="int32"), 6, got)
    np.testing.assert_array_equal(got, np.arange(12) * 7)


def test_steps_points_and_windows_of_the_operands():
    a = te.placeholder((3, 9, 5), "int32", name="A")
    c = te.compute((3, 4, 5), lambda i, j, k: a[i, 2 * j + 1, k] * 3, name="C")
    func = create_prim_func([a, c])
    sch = Schedule(func)
    i, j, k = sch.get_loops("C")
    sch.reorder(i, k, j)
    sch.tensorize(j, intrinsics.te_vector(lambda x: 3 * x).compute)
    verify(sch.func)
    data = np.arange(135, dtype="int32").reshape(3, 9, 5)
    for run in (lambda *x: interp.run(sch.func, *x), lambda *x: interp.run(lower(sch.func), *x),
                tw.build(sch.func, target="llvm")):
        got = np.zeros((3, 4, 5), "int32")
        run(data, got)
        np.testing.assert_array_equal(got, data[:, 1::2, :] * 3)


def test_implementations_with_buffers_and_views_of_their_own():
    @T.prim_func
    def through_a_copy(a: T.handle, c: T.handle):
        A = T.match_buffer(a, (4,), "int32")
        C = T.match_buffer(c, (4,), "int32")
        B = T.alloc_buffer((4,), "int32")
        for i in range(4):
            with T.block("copy"):
                vi = T.axis.spatial(4, i)
                B[vi] = A[vi]
        for i in range(2):
            with T.block("half"):
                vi = T.axis.spatial(2, i)
                T.reads(B[vi * 2:vi * 2 + 2])
                T.writes(C[vi * 2:vi * 2 + 2])
                V = T.match_buffer(C[vi * 2:vi * 2 + 2], (2,), "int32")
                for j in range(2):
                    V[j] = B[vi * 2 + j] + 1
    a = te.placeholder((8,), "int32", name="A")
    b = te.compute((8,), lambda i: a[i] + 1, name="B")
    c = te.compute((8,), lambda i: b[i] + 1, name="C")
    func = create_prim_func([a, c])
    sch = Schedule(func)
    intrin = TensorIntrin(intrinsics.te_vector(lambda x: x + 1).compute.desc, through_a_copy)
    for name in "BC":
        sch.tensorize(sch.split(sch.get_loops(name)[0], [None, 4])[1], intrin)
    verify(sch.func)
    assert [b.name for b in sch.get_blocks()] == ["B_o", "copy", "half", "C_o", "copy_1", "half_1"]
    x = np.arange(8, dtype="int32")
    for run in (lambda *z: interp.run(sch.func, *z), lambda *z: interp.run(lower(sch.func), *z),
                tw.build(sch.func, target="llvm")):
        got = np.zeros(8, "int32")
        run(x, got)
        np.testing.assert_array_equal(got, x + 2)


def test_padded_einsum_can_be_tensorized():
    func = product(6, 10, 13)
    sch = Schedule(func)
    sch.pad_einsum("C", [4, 4, 8])
    parts = [sch.split(loop, [None, size]) for loop, size in zip(sch.get_loops("C"), (4, 4, 8))]
    sch.reorder(*[p[0] for p in parts], *[p[1] for p in parts])
    sch.tensorize(parts[0][1], "test.loops")
    check(sch, func, n=6, m=10, k=13)


def test_a_convolution_through_reindex():
    a, w = te.placeholder((6, 9, 4), "int32", name="A"), te.placeholder((4, 2, 4), "int32", name="W")
    r, q = te.reduce_axis((0, 2), name="r"), te.reduce_axis((0, 4), name="q")
    c = te.compute((6, 8, 4), lambda b, x, o: te.sum(a[b, x + r, q] * w[o, r, q], axis=[r, q]), name="C")
    func = create_prim_func([a, w, c])
    sch = Schedule(func)
    sch.reindex("C", ("read", 0))
    sch.reindex("C", ("read", 1))
    sch.transform_layout("C", ("read", 0), lambda *i: (*i[:-2], i[-2] * 4 + i[-1]))
    sch.transform_layout("C", ("read", 1), lambda *i: (*i[:-2], i[-2] * 4 + i[-1]))
    sch.transform_block_layout("C", lambda b, x, o, r, q: (b, x, o, r * 4 + q))
    sch.tensorize(sch.split(sch.get_loops("C")[1], [None, 4])[1], "test.loops")
    rng = np.random.default_rng(0)
    data, weights = rng.integers(-9, 9, (6, 9, 4)).astype("int32"), rng.integers(-9, 9, (4, 2, 4)).astype("int32")
    want = sum(np.einsum("bxq,oq->bxo", data[:, n:n + 8], weights[:, n]) for n in range(2))
    for run in (lambda *z: interp.run(sch.func, *z), tw.build(sch.func, target="llvm")):
        got = np.zeros((6, 8, 4), "int32")
        run(data, weights, got)
        np.testing.assert_array_equal(got, want)


def test_symbolic_outer_extents():
    n = te.var("n")
    a = te.placeholder((n * 4,), "int32", name="A")
    one = te.placeholder((n,), "int32", name="N")
    c = te.compute((n * 4,), lambda i: a[i] * 2, name="C")
    d = te.compute((n,), lambda i: one[i] + 1, name="D")
    func = create_prim_func([one, a, c, d])
    sch = Schedule(func)
    i, = sch.get_loops("C")
    sch.tensorize(sch.split(i, [None, 4])[1], intrinsics.te_vector(lambda x: x * 2).compute)
    x, got = np.arange(12, dtype="int32"), np.zeros(12, "int32")
    tw.build(sch.func, target="llvm")(np.zeros(3, "int32"), x, got, np.zeros(3, "int32"))
    np.testing.assert_array_equal(got, x * 2)


def test_what_is_tensorized_in_a_cache_keeps_its_layout():
    func = product()
    sch, top = tiles(func)
    cache = sch.cache_write("C", 0, "global")
    sch.reverse_compute_at(cache, sch.get_loops("C")[1])
    sch.decompose_reduction("C", sch.get_loops("C")[2])
    sch.tensorize(sch.get_loops("C")[3], "test.call")
    check(sch, func, externs={"test.product": intrinsics.product_packed})


# ---- refusals

def test_refusals_say_what_differs():
    sch, top = tiles(product(combine=lambda a, b: a + b))
    refuses(sch, lambda: sch.tensorize(top, "test.loops"), "the description has the expression",
            "A[vi, vk] * B[vj, vk]")
    sch, top = tiles(product(dtype="int64"))
    refuses(sch, lambda: sch.tensorize(top, "test.loops"), "dtype int32", "int64")
    sch, top = tiles(product(), steps=4)
    refuses(sch, lambda: sch.tensorize(top, "test.loops"), "vk: reduction 8", "reduction 4")
    sch, top = tiles(product(10, 12, 16))
    refuses(sch, lambda: sch.tensorize(top, "test.loops"), "runs only where", "pad_einsum")
    sch, top = tiles(product())
    sch.cache_read("C", 0, "local")
    refuses(sch, lambda: sch.tensorize(top, "test.loops"), "scope 'global'", "scope 'local'")
    sch, top = tiles(product())
    refuses(sch, lambda: sch.tensorize(top, intrinsics.te_product(False).update), "stride 16", "compact")
    refuses(sch, lambda: sch.tensorize(top, intrinsics.te_product().compute), "decompose_reduction first")


def test_axes_that_fit_in_no_order_are_refused_at_once():
    def plus_one(*shape):
        a = te.placeholder(shape, name="A")
        return create_prim_func([a, te.compute(shape, lambda *i: a(*i) + 1.0, name="B")])

    desc = plus_one(*[2] * 9, 3)                       # 10! orders of the axes of the program, none of which fits
    TensorIntrin.register("ten_axes", desc, desc, override=True)
    sch = Schedule(plus_one(*[2] * 10))
    start = time.process_time()
    refuses(sch, lambda: sch.tensorize(sch.get_loops("B")[0], "ten_axes"), "the description has the axes")
    assert time.process_time() - start < 5


def test_a_transposed_operand_has_another_unit_stride():
    sch, top = tiles(product(form="tt"))
    refuses(sch, lambda: sch.tensorize(top, intrinsics.te_product().update), "A has the stride 8 along dimension 0",
            "asks for the stride 1")


def test_offsets_are_multiples_of_the_factor():
    x = te.placeholder((4,), "int32", name="x")
    y = te.compute((4,), lambda i: x[i] + 1, name="y")
    aligned = te.decl_tensor_intrin(y.op, lambda ins, outs: te.call_packed("f", *ins, *outs),
                                    default_buffer_params={"offset_factor": 4})
    for start, fine in ((0, True), (2, False)):
        a = te.placeholder((20,), "int32", name="A")
        c = te.compute((16,), lambda i, a=a, start=start: a[i + start] + 1, name="C")
        sch = Schedule(create_prim_func([a, c]))
        _, inner = sch.split(sch.get_loops("C")[0], [None, 4])
        if fine:
            sch.tensorize(inner, aligned.compute)
        else:
            refuses(sch, lambda sch=sch, inner=inner: sch.tensorize(inner, aligned.compute), "offset", "offset_factor")


def test_a_written_buffer_stands_for_one_of_the_description():
    a = te.placeholder((8,), "int32", name="A")
    c = te.compute((8,), lambda i: a[i] + a[i], name="C")
    sch = Schedule(create_prim_func([a, c]))
    _, inner = sch.split(sch.get_loops("C")[0], [None, 4])
    sch.tensorize(inner, intrinsics.te_vector(lambda x, y: x + y, inputs=2).compute)
    verify(sch.func)


# ---- the registry

def test_registry():
    found = TensorIntrin.get("test.loops")
    assert found.desc is intrinsics.product_desc and found.impl is intrinsics.product_loops
    assert "test.loops" in TensorIntrin.list() and TensorIntrin.get("missing", allow_missing=True) is None
    with pytest.raises(ArgumentError, match="no tensor intrinsic 'missing'"):
        TensorIntrin.get("missing")
    with pytest.raises(ArgumentError, match="registered already"):
        TensorIntrin.register("test.loops", found.desc, found.impl)
    with pytest.raises(IRError, match=r"takes \(a buffer, a buffer, a buffer\)"):
        TensorIntrin(found.desc, intrinsics.te_vector(lambda x: x).compute.impl)


@T.prim_func
def twice_desc(A: T.Buffer((4, 4), "float32"), B: T.Buffer((4, 4), "float32")):
    with T.block("root"):
        T.reads(A[0:4, 0:4])
        T.writes(B[0:4, 0:4])
        for i, j in T.grid(4, 4):
            with T.block("twice"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * 2.0


@T.prim_func
def twice_by_rows(A: T.Buffer((4, 4), "float32"), B: T.Buffer((4, 4), "float32")):
    with T.block("root"):
        T.reads(A[0:4, 0:4])
        T.writes(B[0:4, 0:4])
        for i, j in T.grid(4, 2):
            B.vstore([i, j * 2], A.vload([i, j * 2], "float32x2") * 2.0)


@T.prim_func
def twice_at_once(A: T.Buffer((4, 4), "float32"), B: T.Buffer((4, 4), "float32")):
    with T.block("root"):
        T.reads(A[0:4, 0:4])
        T.writes(B[0:4, 0:4])
        B.vstore([0, 0], A.vload([0, 0], "float32x16") * 2.0)


def doubled(shape, read, n=8, m=8):
    """(function B[i, j] = 2 A[read(i, j)], its schedule, the outer loop of tiles of 4 by 4)"""
    a = te.placeholder(shape, name="A")
    func = create_prim_func([a, te.compute((n, m), lambda i, j: a[read(i, j)] * 2.0, name="B")])
    sch = Schedule(func)
    (i0, i1), (j0, j1) = (sch.split(loop, [None, 4]) for loop in sch.get_loops("B"))
    sch.reorder(i0, j0, i1, j1)
    return func, sch, i1


@pytest.mark.parametrize("impl, m", [(twice_by_rows, 8), (twice_by_rows, 4), (twice_at_once, 4)])
def test_vectors_of_an_intrinsic_lie_along_rows(impl, m):
    func, sch, tile = doubled((8, m), lambda i, j: (i, j), m=m)
    sch.tensorize(tile, TensorIntrin(twice_desc, impl))
    a = np.random.default_rng(0).normal(size=(8, m)).astype("float32")
    for run in (lambda *x: interp.run(sch.func, *x), tw.build(sch.func)):
        out = np.zeros((8, m), "float32")
        run(a, out)
        np.testing.assert_array_equal(out, 2 * a.astype("float64"))


@pytest.mark.parametrize("impl, shape, read, why", [
    (twice_by_rows, (8, 8), lambda i, j: (j, i), "the last axis of A, which is dimension 0 of A of 2 dimension(s)"),
    (twice_by_rows, (8, 16), lambda i, j: (i, 2 * j), "the last axis of A, which is dimension 1, in steps of 2, of A"),
    (twice_at_once, (8, 8), lambda i, j: (i, j),
     "A has the stride 8 along dimension 0, the buffer A of the intrinsic is compact and so has the stride 4"),
])
def test_vectors_of_an_intrinsic_across_rows_are_refused(impl, shape, read, why):
    _, sch, tile = doubled(shape, read)
    refuses(sch, lambda: sch.tensorize(tile, TensorIntrin(twice_desc, impl)), why)
