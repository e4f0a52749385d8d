"""The built-in rules: right on every shape and dtype, and what they schedule is what they promise."""
from __future__ import annotations

import itertools
import random
from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest
from fuzz import check as fuzz
from fuzz.generate import program as random_program

import tilewright as tw
from tilewright import te, topi
from tilewright.rules import apply_rules, contraction
from tilewright.rules.blocking import Blocks, Tile, choose_blocks, choose_blocks_in_place, choose_tile, registers
from tilewright.rules.facts import kernel_blocks
from tilewright.rules.reduction import rows_in_flight
from tilewright.schedule import Schedule
from tilewright.support.errors import ArgumentError
from tilewright.tir import For, walk

TARGET = tw.target("llvm -num-cores=4 -opt-level=1")
NUMPY = {"float64": np.float64, "float32": np.float32, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16,
         "int32": np.int32}
EPSILON = {"float64": 2.0 ** -52, "float32": 2.0 ** -23, "float16": 2.0 ** -10, "bfloat16": 2.0 ** -7, "int32": 0.0}
RANDOM = np.random.RandomState(11)


def data(shape, dtype):
    if dtype == "int32":
        return RANDOM.randint(-9, 10, shape).astype(dtype)
    return RANDOM.uniform(-1, 1, shape).astype(NUMPY[dtype])


def wide(a):
    return a.astype("int64" if a.dtype.kind == "i" else "float64")


def run(func, inputs, shape, dtype):
    """The result of func (inputs, then one output), compiled with the rules; the output starts as garbage."""
    out = np.full(shape, 77, NUMPY[dtype])
    kept = [a.copy() for a in inputs]
    tw.compile(func, target=TARGET)(*inputs, out)
    for a, b in zip(inputs, kept):
        np.testing.assert_array_equal(a, b)
    return out


def close(got, want, terms, dtype):
    """got is want, but for the rounding of `terms` additions of numbers of size 1."""
    np.testing.assert_allclose(wide(got), want, rtol=4 * EPSILON[dtype], atol=2 * (terms + 4) * EPSILON[dtype])


def kinds(sch):
    """The kinds of loops around each block."""
    return {b.rv.name: [sch.get(rv).kind for rv in sch.get_loops(b.rv)] for b in kernel_blocks(sch)}


def scopes(sch):
    return {b.written.name: b.written.scope for b in kernel_blocks(sch)}


# ---- products of matrices

def matmul(m, k, n, dtype="float32", ta=False, tb=False, epilogue=None):
    """C = A @ B, A or B stored transposed; with an epilogue D = epilogue(C, i, j)."""
    a = te.placeholder((k, m) if ta else (m, k), dtype, name="A")
    b = te.placeholder((n, k) if tb else (k, n), dtype, name="B")
    r = te.reduce_axis((0, k), name="k")
    c = te.compute((m, n), lambda i, j: te.sum((a[r, i] if ta else a[i, r]) * (b[j, r] if tb else b[r, j]), axis=r),
                   name="C")
    if epilogue is not None:
        c = te.compute((m, n), lambda i, j: epilogue(c, i, j), name="D")
    return te.create_prim_func([a, b, c])


SHAPES = [(0, 3, 4), (3, 0, 4), (3, 4, 0), (1, 1, 1), (1, 7, 5), (13, 1, 7), (5, 9, 1), (17, 19, 23), (33, 64, 7),
          (8, 16, 128), (31, 2, 65)]


@pytest.mark.parametrize("ta, tb", [(False, False), (False, True), (True, False), (True, True)])
def test_products_of_every_shape(ta, tb):
    for (m, k, n), dtype in zip(SHAPES, itertools.cycle(["float32", "float64", "int32", "float32"])):
        a, b = data((k, m) if ta else (m, k), dtype), data((n, k) if tb else (k, n), dtype)
        got = run(matmul(m, k, n, dtype, ta, tb), [a, b], (m, n), dtype)
        close(got, wide(a.T if ta else a) @ wide(b.T if tb else b), k, dtype)


@pytest.mark.parametrize("dtype", NUMPY)
def test_products_of_every_dtype(dtype):
    a, b = data((19, 37), dtype), data((37, 41), dtype)
    close(run(matmul(19, 37, 41, dtype), [a, b], (19, 41), dtype), wide(a) @ wide(b), 37, dtype)


def test_a_product_with_an_epilogue_that_reads_it_transposed():
    n = 37
    a, b = data((n, 8), "float32"), data((8, n), "float32")
    got = run(matmul(n, 8, n, epilogue=lambda c, i, j: c[j, i] + 1.0), [a, b], (n, n), "float32")
    close(got, (wide(a) @ wide(b)).T + 1, 8, "float32")


def test_a_matrix_times_itself():
    a = te.placeholder((20, 20), name="A")
    k = te.reduce_axis((0, 20), name="k")
    c = te.compute((20, 20), lambda i, j: te.sum(a[i, k] * a[k, j], axis=k), name="C")
    x = data((20, 20), "float32")
    close(run(te.create_prim_func([a, c]), [x], (20, 20), "float32"), wide(x) @ wide(x), 20, "float32")


@pytest.mark.parametrize("seed", range(6))
def test_a_bad_tile_is_never_wrong(seed, monkeypatch):
    rng = random.Random(seed)
    tile = Tile(rng.choice([1, 2, 3, 5, 7, 20]), rng.choice([1, 3, 8, 16, 24, 100]))
    blocks = Blocks(rng.choice([1, 3, 7, 13, 40, 100]), tile.columns * rng.choice([1, 2, 50]),
                    tile.rows * rng.choice([1, 2, 5, 50]))
    monkeypatch.setattr(contraction, "choose_tile", lambda *_: tile)
    monkeypatch.setattr(contraction, "choose_blocks", lambda *_, **__: blocks)
    monkeypatch.setattr(contraction, "choose_blocks_in_place", lambda *_: replace(blocks, panels_outside=seed % 2 > 0))
    m, k, n = (rng.choice([1, 6, 13, 32, 50]) for _ in range(3))
    ta, tb = rng.random() < 0.5, rng.random() < 0.5
    a, b = data((k, m) if ta else (m, k), "float32"), data((n, k) if tb else (k, n), "float32")
    func = matmul(m, k, n, "float32", ta, tb, epilogue=lambda c, i, j: c[i, j] * 2.0)
    tw.lower(apply_rules(func, TARGET).func)
    want = 2 * (wide(a.T if ta else a) @ wide(b.T if tb else b))
    close(run(func, [a, b], (m, n), "float32"), want, 2 * k, "float32")


def test_the_tile_fits_the_registers():
    for target in [tw.target(f"llvm -mcpu=x86-64{level}") for level in ("", "-v3", "-v4")]:
        for m, n, itemsize in itertools.product((1, 5, 64, 1000), (1, 10, 256, 1000), (1, 2, 4, 8)):
            tile = choose_tile(m, n, itemsize, target)
            vectors = -(-tile.columns * itemsize // target.vector_bytes)
            assert tile.rows * vectors < registers(target)


@pytest.mark.parametrize("choose", [choose_blocks, choose_blocks_in_place])
@pytest.mark.parametrize("m, n, k", [*itertools.product((1, 1021), (1, 4099), (1, 640, 641, 5003))])
def test_blocks_are_of_nearly_the_same_size(m, n, k, choose):
    tile = choose_tile(m, n, 4, TARGET)
    blocks = choose(1, m, n, k, tile, 4, TARGET)
    for extent, part, unit in [(m, blocks.rows, tile.rows), (n, blocks.columns, tile.columns), (k, blocks.depth, 1)]:
        count = -(-extent // part)
        assert part % unit == 0 and part * (count - 1) < extent and part - extent / count < count + 2 * unit


@pytest.mark.parametrize("m, n, k", [(1000, 256, 784), (1000, 256, 100), (256, 256, 256), (700, 1024, 64)])
@pytest.mark.parametrize("cores", [2, 4])
def test_threads_have_as_many_blocks_each(m, n, k, cores):
    target = tw.target(f"llvm -mcpu=x86-64-v4 -num-cores={cores}")
    blocks = choose_blocks(1, m, n, k, choose_tile(m, n, 4, target), 4, target)
    slabs, shares = -(-n // blocks.columns), -(-m // blocks.rows)
    assert (slabs if slabs % cores == 0 else shares) % cores == 0 or slabs * shares >= 8 * cores


@pytest.mark.parametrize("dtype, columns", [("float16", 16), ("bfloat16", 16), ("float8_e4m3fn", 16), ("float32", 16),
                                            ("float64", 8)])
def test_the_tile_of_small_floats_counts_lanes_of_float32(dtype, columns):
    a, b = te.placeholder((64, 64), dtype, "a"), te.placeholder((64, 64), dtype, "b")
    k = te.reduce_axis((0, 64), "k")
    c = te.compute((64, 64), lambda i, j: te.min(a[i, k] + b[k, j], axis=k), "c")
    sch = apply_rules(te.create_prim_func([a, b, c]), tw.target("llvm -mcpu=x86-64-v4"))
    lanes = [n.extent.value for n in walk(sch.func.body) if isinstance(n, For) and n.kind == "vectorized"]
    assert lanes and all(n % columns == 0 and n <= 4 * columns for n in lanes)


@pytest.mark.parametrize("m, n, k, cores, rows, columns", [
    (128, 128, 128, 2, 132, 64), (128, 768, 768, 2, 128, 384),          # each thread has as many panels of columns
    (64, 196, 192, 2, 32, 240), (16, 4096, 64, 4, 16, 1056),            # five panels, but eight strips; two strips
    (64, 40, 64, 8, 13, 48), (128, 128, 128, 1, 132, 128)])             # too few for all threads; one thread
def test_threads_share_a_product_in_place_evenly(m, n, k, cores, rows, columns):
    target = tw.target(f"llvm -mcpu=x86-64-v4 -num-cores={cores}")
    tile = choose_tile(m, n, 4, target)
    blocks = choose_blocks_in_place(1, m, n, k, tile, 4, target)
    assert (blocks.rows, blocks.columns) == (rows, columns)


def test_lines_of_short_sums_are_whole():
    """What threads share are lines, so that LLVM finds neighbours in a loop; where there are too few, all results."""
    def outermost(*shape):
        x = te.placeholder(shape, name="x")
        sch = apply_rules(te.create_prim_func([x, topi.max_pool(x, 2, stride=2)]), TARGET)
        loops = [n for n in walk(sch.func.body) if isinstance(n, For)]
        return [(n.kind, n.extent.value) for n in loops if n.extent.value > 2]
    assert outermost(1, 64, 56, 56) == [("parallel", 64 * 28), ("serial", 28)]
    assert outermost(1, 1, 4, 30000) == [("parallel", 2 * 15000)]


def test_a_product_is_tiled_packed_and_parallel():
    sch = apply_rules(matmul(128, 256, 512, tb=True, epilogue=lambda c, i, j: te.max(c[i, j], 0.0)), TARGET)
    found = kinds(sch)
    assert scopes(sch)["C"] == "local"
    assert found["D"][0] == "parallel" and found["D"][-2:] == ["unroll", "vectorized"]
    assert found["C_update"][-2:] == ["unroll", "vectorized"]
    assert found["B_global"][-1] == "vectorized" and found["B_global"][0] == "parallel"
    panels = sch.get(sch.get_block("B_global")).writes[0].buffer
    assert len(panels.shape) == 3 and panels.shape[-1].value % (TARGET.vector_bytes // 4) == 0


def test_a_small_product_runs_on_one_thread():
    assert "parallel" not in str(apply_rules(matmul(16, 16, 16), TARGET))


# ---- sums

def reduction(shape, axes, dtype="float32", reducer=te.sum, epilogue=None):
    a = te.placeholder(shape, dtype, name="A")
    reduced = {d: te.reduce_axis((0, shape[d]), name=f"k{d}") for d in axes}
    kept = [d for d in range(len(shape)) if d not in axes]

    def element(*i):
        index = dict(zip(kept, i)) | reduced
        return reducer(a[tuple(index[d] for d in range(len(shape)))], axis=list(reduced.values()))
    b = te.compute([shape[d] for d in kept], element, name="S")
    if epilogue is not None:
        b = te.compute(b.shape, lambda *i: epilogue(b(*i)), name="T")
    return te.create_prim_func([a, b])


@pytest.mark.parametrize("axes", [(0,), (1,), (0, 1), (2,), (0, 2), (1, 2), (0, 1, 2)])
def test_sums_over_every_axis(axes):
    for shape, dtype in zip([(5, 7, 11), (1, 64, 33), (3, 1, 40), (2, 0, 3), (16, 3, 1)],
                            ["float32", "float64", "int32", "float32", "float32"]):
        a = data(shape, dtype)
        got = run(reduction(shape, axes, dtype), [a], np.sum(a, axes).shape, dtype)
        close(got, wide(a).sum(axes), a.size, dtype)


@pytest.mark.parametrize("dtype", NUMPY)
@pytest.mark.parametrize("axis", [0, 1])
def test_sums_with_an_epilogue_in_every_dtype(dtype, axis):
    a = data((37, 45), dtype)
    got = run(reduction((37, 45), (axis,), dtype, epilogue=lambda x: x * 2 + 1), [a], (a.shape[1 - axis],), dtype)
    close(got, wide(a).sum(axis) * 2 + 1, 4 * 45, dtype)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("reducer, reference", [(te.max, np.max), (te.min, np.min), (te.prod, np.prod)])
def test_other_reductions(reducer, reference, axis):
    a = data((9, 50), "float32")
    got = run(reduction((9, 50), (axis,), reducer=reducer), [a], (a.shape[1 - axis],), "float32")
    np.testing.assert_allclose(got, reference(wide(a), axis), rtol=1e-5, atol=1e-30)


def test_sums_of_columns_are_vectors():
    sch = apply_rules(reduction((1000, 100), (0,)), TARGET)
    assert kinds(sch)["S_update"][-1] == "vectorized" and scopes(sch)["S_local"] == "local"
    assert kinds(sch)["S_local"][0] == "parallel"


def test_strict_sums_of_rows_run_side_by_side(monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_STRICT_MATH", "1")
    sch = apply_rules(reduction((1000, 100), (1,), epilogue=lambda x: x + 1.0), TARGET)
    assert kinds(sch)["S_update"] == ["parallel", "serial", "unroll"] and scopes(sch)["S"] == "local"
    assert sch.get(sch.get_loops("S_update")[-1]).extent.value == 8


def test_how_many_rows_run_side_by_side():
    assert rows_in_flight(1000, (100,)) == 8 and rows_in_flight(100, (100,)) == 5
    assert rows_in_flight(11, (8, 8)) == 8 and rows_in_flight(3, (100,)) == 3
    assert rows_in_flight(1, (100,)) == 1 and rows_in_flight(1000, (10,)) == 1 and rows_in_flight(None, (None,)) == 8


def test_a_costly_function_is_not_summed_without_vectors():
    a = te.placeholder((64, 100), name="A")
    e = te.compute((64, 100), lambda i, j: te.exp(a[i, j]), name="E")
    k = te.reduce_axis((0, 100), name="k")
    s = te.compute((64,), lambda i: te.sum(e[i, k], axis=k), name="S")
    func = te.create_prim_func([a, s])
    found = kinds(apply_rules(func, TARGET))
    assert found["E"][-1] == found["S_rf_update"][-1] == "vectorized"
    assert found["E"][0] == found["S_update"][0] == "parallel"
    x = data((64, 100), "float32")
    np.testing.assert_allclose(run(func, [x], (64,), "float32"), np.exp(wide(x)).sum(1), rtol=1e-5)


# ---- elementwise

@pytest.mark.parametrize("dtype", NUMPY)
def test_elementwise_on_every_shape(dtype):
    for shape in [(), (0,), (1,), (7,), (1000,), (13, 1), (3, 5, 7), (0, 4), (64, 130)]:
        a = te.placeholder(shape, dtype, name="A")
        b = te.compute(shape, lambda *i, a=a: a(*i) * 2, name="B")
        c = te.compute(shape, lambda *i, b=b: b(*i) + 1, name="C")
        x = data(shape, dtype)
        close(run(te.create_prim_func([a, c]), [x], shape, dtype), wide(x) * 2 + 1, 4, dtype)


@pytest.mark.parametrize("shape", [(1, 1), (17, 5), (64, 33), (0, 3)])
def test_transposes_and_broadcasts(shape):
    m, n = shape
    a, b = te.placeholder((n, m), name="A"), te.placeholder((n,), name="B")
    c = te.compute((m, n), lambda i, j: a[j, i] + b[j], name="C")
    x, y = data((n, m), "float32"), data((n,), "float32")
    close(run(te.create_prim_func([a, b, c]), [x, y], (m, n), "float32"), wide(x).T + wide(y), 2, "float32")


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "int32"])
@pytest.mark.parametrize("shape, order", [
    ((48, 70), (1, 0)), ((16, 16), (1, 0)), ((15, 40), (1, 0)), ((40, 15), (1, 0)), ((3, 20, 5, 33), (0, 2, 3, 1)),
    ((3, 5, 20, 33), (0, 3, 1, 2)), ((20, 4, 33), (2, 1, 0)), ((20, 4, 33), (1, 2, 0))])
def test_transposed_copies(shape, order, dtype):
    """Whole and ragged tiles, and extents that are none."""
    result = tuple(shape[k] for k in order)
    for symbolic in (False, True):
        n = te.var("n")
        a = te.placeholder((n, *shape[1:]) if symbolic else shape, dtype, name="A")
        b = te.compute(tuple(a.shape[k] for k in order),
                       lambda *i, a=a: a(*(i[order.index(k)] for k in range(len(order)))), name="B")
        x = data(shape, dtype)
        got = run(te.create_prim_func([a, b]), [x], result, dtype)
        np.testing.assert_array_equal(got, x.transpose(order))


def test_a_transposition_uses_whole_cache_lines():
    """Tiles of 16 x 16 in float32; nothing else changes its loops, a row that is broadcast included."""
    a, v = te.placeholder((64, 64), name="A"), te.placeholder((64,), name="V")
    turned = te.compute((64, 64), lambda i, j: a[j, i] + v[i], name="T")
    straight = te.compute((64, 64), lambda i, j: a[i, j] + v[i], name="S")
    found = {}
    for t in (turned, straight):
        sch = apply_rules(te.create_prim_func([a, v, t]), tw.target("llvm -mcpu=x86-64-v4 -num-cores=1"))
        found[t.name] = [(loop.kind, loop.extent.value) for loop in map(sch.get, sch.get_loops(t.name))]
    assert found == {"T": [("serial", 4), ("serial", 4), ("unroll", 16), ("vectorized", 16)],
                     "S": [("serial", 64), ("serial", 1), ("vectorized", 64)]}


def test_elementwise_is_fused_vectorized_and_parallel():
    a = te.placeholder((300, 301), name="A")
    b = te.compute((300, 301), lambda i, j: a[i, j] * 2.0, name="B")
    c = te.compute((300, 301), lambda i, j: te.exp(b[i, j]), name="C")
    sch = apply_rules(te.create_prim_func([a, c]), TARGET)
    assert kinds(sch) == {"C": ["parallel", "vectorized"]}
    assert not any(n.extent.value > 4 * TARGET.vector_bytes for n in walk(sch.func.body)
                   if isinstance(n, For) and n.kind == "vectorized")


@pytest.mark.parametrize("known", [(), (2,), (1, 2), (0,), (1,)])
def test_elementwise_of_unknown_sizes_is_vectorized_and_parallel(known):
    """Also where what is known is the last extent, and where all axes are one."""
    sizes = [e if d in known else te.var(f"n{d}") for d, e in enumerate((3, 5, 96))]
    for merged in (False, True):
        a = te.placeholder([sizes[0] * sizes[1] * sizes[2]] if merged else sizes, name="A")
        b = te.compute(a.shape, lambda *i, a=a: te.exp(a(*i)), name="B")
        declared = [s for s in sizes if not isinstance(s, int)] if merged else []
        func = te.create_prim_func([a, b, *declared])
        assert kinds(apply_rules(func, TARGET)) == {"B": ["parallel", "vectorized"]}
        x = data(1440 if merged else (3, 5, 96), "float32")
        out = np.empty_like(x)
        tw.compile(func, target=TARGET)(x, out, *(e for d, e in enumerate((3, 5, 96)) if declared and d not in known))
        close(out, np.exp(wide(x)), 4, "float32")


def test_a_costly_value_that_is_read_often_is_kept():
    a = te.placeholder((100,), name="A")
    b = te.compute((100,), lambda i: te.exp(a[i]), name="B")
    c = te.compute((98,), lambda i: b[i] + b[i + 1] + b[i + 2], name="C")
    assert len(kernel_blocks(apply_rules(te.create_prim_func([a, c]), TARGET))) == 2


# ---- batches of products

LAYOUTS = {"bik,bkj": ("bik", "bkj"), "bik,bjk": ("bik", "bjk"), "bki,bkj": ("bki", "bkj"), "bki,bjk": ("bki", "bjk"),
           "bik,kj": ("bik", "kj"), "ik,bjk": ("ik", "bjk"), "ibk,bkj": ("ibk", "bkj"), "abik,abjk": ("abik", "abjk"),
           "abik,bkj": ("abik", "bkj")}


def batched(layouts, extents, dtype, symbolic=()):
    """(A, B, C) of C[*batch, i, j] = sum_k A * B, the axes of A and B in the order of their letters."""
    sizes = {c: te.var(c) if c in symbolic else n for c, n in extents.items()}
    a, b = (te.placeholder(tuple(sizes[c] for c in axes), dtype, name=name) for name, axes in zip("AB", layouts))
    k = te.reduce_axis((0, sizes["k"]), name="k")
    result = "".join(c for c in "abij" if c in "ij" or any(c in axes for axes in layouts))

    def dot(*at):
        index = {**dict(zip(result, at)), "k": k}
        return te.sum(a(*(index[c] for c in layouts[0])) * b(*(index[c] for c in layouts[1])), axis=k)
    return a, b, te.compute(tuple(sizes[c] for c in result), dot, name="C"), result


SIZES = ({"a": 2, "b": 3, "i": 16, "j": 32, "k": 8}, {"a": 1, "b": 5, "i": 7, "j": 19, "k": 13},
         {"a": 3, "b": 1, "i": 1, "j": 33, "k": 3}, {"a": 2, "b": 2, "i": 40, "j": 1, "k": 1})


@pytest.mark.parametrize("dtype, symbolic, sizes", [
    ("float32", "", SIZES), ("float32", "b", SIZES[1::2]), ("float32", "ijk", SIZES[1:2]),
    ("float64", "", SIZES[1:2])])
@pytest.mark.parametrize("layouts", LAYOUTS)
def test_batches_of_products(layouts, dtype, symbolic, sizes):
    for extents in sizes:
        a, b, c, result = batched(LAYOUTS[layouts], extents, dtype, symbolic)
        x, y = (data(tuple(extents[axis] for axis in axes), dtype) for axes in LAYOUTS[layouts])
        got = run(te.create_prim_func([a, b, c]), [x, y], tuple(extents[axis] for axis in result), dtype)
        close(got, np.einsum(f"{layouts}->{result}", wide(x), wide(y)), extents["k"], dtype)


def test_a_batch_with_an_epilogue_is_one_nest():
    a, b, c, _ = batched(("bik", "bjk"), {"b": 6, "i": 64, "j": 64, "k": 64}, "float32")
    d = te.compute((6, 64, 64), lambda *i: te.max(c(*i) * 0.5, 0.0), name="D")
    sch = apply_rules(te.create_prim_func([a, b, d]), TARGET)
    found = kinds(sch)
    assert found["C_update"][-1] == "vectorized" and found["C_update"][-2] == "unroll" and found["D"][0] == "parallel"
    assert scopes(sch)["C"] == "local" and found["B_global"][0] == "parallel"
    x, y = data((6, 64, 64), "float32"), data((6, 64, 64), "float32")
    got = run(te.create_prim_func([a, b, d]), [x, y], (6, 64, 64), "float32")
    close(got, np.maximum(np.einsum("bik,bjk->bij", wide(x), wide(y)) * 0.5, 0), 64, "float32")


def test_products_of_few_rows_are_no_batch():
    for rows, rule in ((1, "row_reduction"), (3, "row_reduction"), (4, "contraction")):
        *args, _ = batched(("bik", "bjk"), {"b": 8, "i": rows, "j": 64, "k": 32}, "float32")
        assert [d.rule for d in tw.explain(args, str(TARGET)).decisions] == [rule]


# ---- rows

def softmax(rows, columns, dtype="float32"):
    x = te.placeholder((rows, columns), dtype, name="X")
    j = te.reduce_axis((0, columns), name="j")
    m = te.compute((rows,), lambda i: te.max(x[i, j], axis=j), name="M")
    e = te.compute((rows, columns), lambda i, j: te.exp(x[i, j] - m[i]), name="E")
    k = te.reduce_axis((0, columns), name="k")
    s = te.compute((rows,), lambda i: te.sum(e[i, k], axis=k), name="S")
    return te.create_prim_func([x, te.compute((rows, columns), lambda i, j: e[i, j] / s[i], name="Y")])


@pytest.mark.parametrize("rows, columns, dtype", [
    (1, 1, "float32"), (0, 5, "float32"), (7, 3, "float64"), (13, 32, "float32"), (1000, 10, "float32"),
    (11, 100, "float16"), (24, 129, "float32"), (5, 64, "bfloat16")])
def test_softmax(rows, columns, dtype):
    x = data((rows, columns), dtype)
    e = np.exp(wide(x) - wide(x).max(1, keepdims=True)) if x.size else wide(x)
    got = run(softmax(rows, columns, dtype), [x], (rows, columns), dtype)
    np.testing.assert_allclose(wide(got), e / e.sum(1, keepdims=True), rtol=(columns + 8) * EPSILON[dtype])


@pytest.mark.parametrize("strict, block, loop", [("0", "S_rf_update", "vectorized"), ("1", "S", "unroll")])
def test_a_chain_is_computed_row_by_row(strict, block, loop, monkeypatch):
    """Sums run in lanes, or those of several rows side by side where each has to keep its order."""
    monkeypatch.setenv("TILEWRIGHT_STRICT_MATH", strict)
    sch = apply_rules(softmax(1000, 100), TARGET)
    found = kinds(sch)
    assert all(k[0] == "parallel" for k in found.values())
    assert found["E"][-1] == found["Y"][-1] == "vectorized" and found[block][-1] == loop
    assert len({sch.get_loops(b.rv)[0].var for b in kernel_blocks(sch)}) == 1


def test_a_product_before_a_chain_keeps_its_tile():
    a, b = te.placeholder((40, 30), name="A"), te.placeholder((30, 50), name="B")
    k, j = te.reduce_axis((0, 30), name="k"), te.reduce_axis((0, 50), name="j")
    c = te.compute((40, 50), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    m = te.compute((40,), lambda i: te.max(c[i, j], axis=j), name="M")
    d = te.compute((40, 50), lambda i, j: c[i, j] - m[i], name="D")
    func = te.create_prim_func([a, b, d])
    assert kinds(apply_rules(func, TARGET))["C_update"][-1] == "vectorized"
    x, y = data((40, 30), "float32"), data((30, 50), "float32")
    product = wide(x) @ wide(y)
    close(run(func, [x, y], (40, 50), "float32"), product - product.max(1, keepdims=True), 60, "float32")


# ---- extents known at the call

@pytest.mark.parametrize("sizes", [(1, 1, 1), (3, 5, 7), (16, 64, 33), (0, 4, 5), (5, 0, 3)])
def test_symbolic_extents(sizes):
    m, k, n = (te.var(name) for name in "mkn")
    rows, depth, columns = sizes
    a, b = data((rows, depth), "float32"), data((depth, columns), "float32")
    close(run(_symbolic_matmul, [a, b], (rows, columns), "float32"), wide(a) @ wide(b), depth, "float32")
    close(run(_symbolic_columns, [a], (depth,), "float32"), wide(a).sum(0), rows, "float32")
    close(run(_symbolic_rows, [a], (rows,), "float32"), wide(a).sum(1) + 1, depth, "float32")
    if depth:
        e = np.exp(wide(a) - wide(a).max(1, keepdims=True))
        close(run(_symbolic_softmax, [a], (rows, depth), "float32"), e / e.sum(1, keepdims=True), depth, "float32")


def _functions_of_symbols():
    m, k, n = (te.var(name) for name in "mkn")
    rows = reduction((m, n), (1,), epilogue=lambda x: x + 1.0)
    return matmul(m, k, n), reduction((m, n), (0,)), rows, softmax(m, n)


_symbolic_matmul, _symbolic_columns, _symbolic_rows, _symbolic_softmax = _functions_of_symbols()


@pytest.mark.parametrize("names, sizes", [
    *itertools.product(["mkn", "m", "k", "n", "mn"], [(1, 1, 1), (13, 7, 5), (30, 33, 70), (65, 3, 130)]),
    ("mkn", (0, 4, 5)), ("mkn", (5, 0, 3)), ("mkn", (4, 5, 0)), ("m", (0, 4, 5)), ("k", (5, 0, 3)), ("n", (4, 5, 0))])
def test_products_with_some_symbolic_extents(names, sizes):
    rows, depth, columns = sizes
    m, k, n = (te.var(name) if name in names else size for name, size in zip("mkn", sizes))
    a, b = data((rows, depth), "float32"), data((depth, columns), "float32")
    close(run(matmul(m, k, n), [a, b], (rows, columns), "float32"), wide(a) @ wide(b), depth, "float32")


def test_symbolic_products_have_the_tile_of_constant_ones():
    unrolled = [kind for kind in kinds(apply_rules(_symbolic_matmul, TARGET))["C_update"] if kind == "unroll"]
    assert len(unrolled) == 1


def test_symbolic_extents_are_vectorized_too():
    assert kinds(apply_rules(_symbolic_matmul, TARGET))["C_update"][-1] == "vectorized"
    assert kinds(apply_rules(_symbolic_columns, TARGET))["S_update"][-1] == "vectorized"


# ---- what rules leave alone

def test_opaque_blocks_and_tuples():
    a = te.placeholder((20, 50), "int32", name="A")
    k = te.reduce_axis((0, 50), name="k")
    largest = te.comm_reducer(
        lambda x, y: (te.if_then_else(x[1] >= y[1], x[0], y[0]), te.max(x[1], y[1])),
        lambda t0, t1: (te.const(-1, t0), te.min_value(t1)))
    index, value = te.compute((20,), lambda i: largest((k.var, a[i, k]), axis=k), name="argmax")
    func = te.create_prim_func([a, index, value])
    x = RANDOM.randint(-99, 99, (20, 50)).astype("int32")
    found, most = np.zeros(20, "int32"), np.zeros(20, "int32")
    tw.compile(func, target=TARGET)(x, found, most)
    np.testing.assert_array_equal(found, x.argmax(1))
    np.testing.assert_array_equal(most, x.max(1))


def test_an_output_that_is_read_again():
    a = te.placeholder((40, 50), name="A")
    k = te.reduce_axis((0, 50), name="k")
    s = te.compute((40,), lambda i: te.sum(a[i, k], axis=k), name="S")
    d = te.compute((40, 50), lambda i, j: a[i, j] - s[i], name="D")
    x, sums, out = data((40, 50), "float32"), np.zeros(40, "float32"), np.zeros((40, 50), "float32")
    tw.compile(te.create_prim_func([a, s, d]), target=TARGET)(x, sums, out)
    close(sums, wide(x).sum(1), 50, "float32")
    close(out, wide(x) - wide(x).sum(1)[:, None], 50, "float32")


@pytest.mark.parametrize("stride, h, w", [(1, 9, 34), (2, 8, 9), (1, 3, 3)])
def test_convolutions(stride, h, w):
    x, f = te.placeholder((2, 3, h, w), name="X"), te.placeholder((5, 3, 3, 3), name="F")
    c, r, s = (te.reduce_axis((0, 3), name=n) for n in "crs")
    oh, ow = (h - 3) // stride + 1, (w - 3) // stride + 1
    y = te.compute((2, 5, oh, ow), lambda b, m, i, j: te.sum(
        x[b, c, i * stride + r, j * stride + s] * f[m, c, r, s], axis=[c, r, s]), name="Y")
    func = te.create_prim_func([x, f, y])
    a, k = data((2, 3, h, w), "float32"), data((5, 3, 3, 3), "float32")
    want = sum(np.einsum("bchw,mc->bmhw", wide(a[:, :, p:p + stride * (oh - 1) + 1:stride,
                                                q:q + stride * (ow - 1) + 1:stride]), wide(k[:, :, p, q]))
               for p in range(3) for q in range(3))
    close(run(func, [a, k], (2, 5, oh, ow), "float32"), want, 27, "float32")
    if (stride, w) == (1, 34):
        assert kinds(apply_rules(func, TARGET))["Y_update"][-1] == "vectorized"


def test_what_is_scheduled_already_is_refused():
    sch = Schedule(matmul(8, 8, 8))
    i, _, _ = sch.get_loops("C")
    sch.split(i, [None, 4])
    with pytest.raises(ArgumentError, match="block C have been scheduled already"):
        apply_rules(sch.func, TARGET)
    parallel = Schedule(matmul(8, 8, 8))
    parallel.parallel(parallel.get_loops("C")[0])
    with pytest.raises(ArgumentError, match=r"build\(...\) takes a schedule as it is"):
        tw.compile(parallel)


def test_the_trace_of_the_rules_replays():
    for func in (matmul(30, 200, 300, tb=True), reduction((100, 100), (1,)), softmax(30, 70)):
        sch, again = apply_rules(func, TARGET), Schedule(func)
        sch.trace.apply_to_schedule(again)
        assert str(again) == str(sch)


def test_random_programs():
    for seed in range(7000, 7030):
        program = random_program(seed)
        fuzz.check_schedule(program, apply_rules(program.function(), TARGET), fuzz.Report(seed), str(TARGET))


@pytest.mark.parametrize("n, m, parallel", [(300, 500, True), (3, 5, False)])
def test_threads_share_each_step_of_a_scan_that_is_large_enough(n, m, parallel):
    x, s = te.placeholder((6, n, m), name="X"), te.placeholder((6, n, m), name="S")
    init = te.compute((1, n, m), lambda _, i, j: x[0, i, j], name="I")
    update = te.compute((6, n, m), lambda t, i, j: s[t - 1, i, j] * 0.5 + x[t, i, j], name="U")
    func = te.create_prim_func([x, te.scan(init, update, s, inputs=[x], name="R")])
    text = str(apply_rules(func, tw.target("llvm -num-cores=2")).func)
    assert ("T.parallel(" in text[text.index("R_idx"):]) is parallel
