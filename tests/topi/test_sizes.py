"""One build of an operator with a symbolic extent serves every size, none and large ones too."""
from __future__ import annotations

import numpy as np

import tilewright as tw
from tests.topi.cases.regions import suppressed
from tilewright import te, topi


def test_numbers_of_elements_beyond_32_bits():
    """Of constants they are known; of symbols they are not multiplied in 32 bits."""
    n = te.var("n")
    large, open_ = te.placeholder((70000, 70000), "int8", name="x"), te.placeholder((n, n), name="x")
    assert [int(d) for d in topi.flatten(large).shape] == [4900000000]
    assert [int(d) for d in topi.reshape(large, (2, -1)).shape] == [2, 2450000000]
    assert str(topi.mean(te.placeholder((70000, 70000), name="x")).op.body[0]).endswith("/ T.float32(4900000000)")
    assert str(topi.mean(open_).op.body[0]).endswith('/ (T.Cast("float32", n) * T.Cast("float32", n))')
    assert 'T.Cast("int64", k0) * T.Cast("int64", n)' in str(topi.argmax(open_).op.body)


def test_places_beyond_32_bits():
    """Of results that are not in memory, read at a few places."""
    v, rows = te.compute((70000,), lambda i: i.astype("int64"), name="v"), te.compute(
        (70000, 70000), lambda i, j: i.astype("int64") * 10**6 + j.astype("int64"), name="rows")
    large = te.compute((2**31 - 1,), lambda i: i.astype("int64"), name="large")
    last = 70000 * 70000 - 1
    reads = [(topi.repeat(v, 70000, axis=0)(last), 69999), (topi.tile(v, 70000)(3 * 10**9), 10000),
             (topi.reshape(rows, (7, 700000000))(4, 200000000), 42857 * 10**6 + 10000),
             (topi.as_strided(rows, (2,), strides=3 * 10**9)(1), 42857 * 10**6 + 10000),
             (topi.concatenate([large, large])(2**32 - 3), 2**31 - 2),
             (topi.pad(v, 2**31 - 10, mode="edge")(2**31), 10)]
    f = tw.compile(te.create_prim_func([te.compute((1,), lambda _, e=e: e, name="read") for e, _ in reads]))
    found = [np.zeros(1, "int64") for _ in reads]
    f(*found)
    assert [int(y[0]) for y in found] == [wanted for _, wanted in reads]
    assert [int(n) for n in topi.unpack_int4(te.placeholder((2**31 - 1,), "uint8", name="x")).shape] == [2**32 - 2]


def test_orders_and_running_sums_of_any_size():
    n = te.var("n")
    x = te.placeholder((n,), name="x")
    values, _, counts, number = topi.unique(topi.floor(x))
    outs = [topi.sort(x), topi.argsort(x, descending=True), topi.cumsum(x, dtype="float64"), values, counts, number]
    f = tw.compile(te.create_prim_func([x, *outs]))
    rng = np.random.default_rng(0)
    for size in (0, 1, 2, 1023, 20000):
        given = rng.random(size, "float32") * 100
        ordered, places, sums, kept, often = (np.zeros(size, kind) for kind in (
            "float32", "int64", "float64", "float32", "int64"))
        found = np.zeros(1, "int64")
        f(given, ordered, places, sums, kept, often, found)
        np.testing.assert_array_equal(ordered, np.sort(given))
        np.testing.assert_array_equal(places, np.argsort(-given, kind="stable"))
        np.testing.assert_allclose(sums, np.cumsum(given, dtype="float64"), rtol=1e-12)
        wanted, repeats = np.unique(np.floor(given), return_counts=True)
        assert found[0] == len(wanted)
        np.testing.assert_array_equal(kept[:len(wanted)], wanted)
        np.testing.assert_array_equal(often[:len(wanted)], repeats)


def test_running_sums_along_an_extent_that_is_an_expression():
    m, n = te.var("m"), te.var("n")
    for extent, number in ((m * 3, lambda m, n: m * 3), (m * n, lambda m, n: m * n), (m + n, lambda m, n: m + n)):
        sizes = [te.placeholder((v,), name=f"size_{v.name}") for v in (m, n)]
        x = te.placeholder((extent, 2), name="x")
        f = tw.compile(te.create_prim_func([*sizes, x, topi.cumsum(x, axis=0, reverse=True)]))
        for values in ((1, 1), (5, 4)):
            given = np.random.default_rng(0).random((number(*values), 2), "float32")
            y = np.zeros_like(given)
            f(*(np.zeros(v, "float32") for v in values), given, y)
            np.testing.assert_allclose(y, np.cumsum(given[::-1], axis=0)[::-1], rtol=1e-5)


def test_scattered_sums_of_many_rows():
    rows, n = te.var("rows"), te.var("n")
    x, i, updates = te.placeholder((rows, 8), name="x"), te.placeholder((n, 1), "int32", name="i"), te.placeholder(
        (n, 8), name="updates")
    f = tw.compile(te.create_prim_func([x, i, updates, topi.scatter_nd(x, i, updates, reduction="add")]))
    rng = np.random.default_rng(0)
    for count, several in ((5, 0), (1, 3), (100, 5000)):
        given, where = rng.random((count, 8), "float32"), rng.integers(-count, count, (several, 1)).astype("int32")
        more, y = rng.random((several, 8), "float32"), np.zeros((count, 8), "float32")
        f(given, where, more, y)
        wanted = given.astype("float64")
        np.add.at(wanted, where[:, 0], more)
        np.testing.assert_allclose(y, wanted, rtol=1e-5)


def test_boxes_that_stay_of_any_number():
    n = te.var("n")
    boxes, scores = te.placeholder((n, 4), name="boxes"), te.placeholder((n,), name="scores")
    kept, number = topi.nms(boxes, scores, iou_threshold=0.3)
    f = tw.compile(te.create_prim_func([boxes, scores, kept, number]))
    rng = np.random.default_rng(0)
    for size in (0, 1, 300):
        low = rng.random((size, 2)) * 8
        given, ranks = np.concatenate([low, low + 1 + rng.random((size, 2))], 1).astype("float32"), rng.random(
            size, "float32")
        found, several = np.zeros(size, "int64"), np.zeros(1, "int64")
        f(given, ranks, found, several)
        wanted = suppressed(given, ranks, size, 0.3, None)
        assert several[0] == len(wanted)
        np.testing.assert_array_equal(found, wanted + [-1] * (size - len(wanted)))


def test_a_cache_of_any_length():
    rows, size = te.var("rows"), te.var("size")
    cache, new = te.placeholder((2, 3, size, 4), name="cache"), te.placeholder((2, 3, rows, 4), name="new")
    start = te.placeholder((2,), "int32", name="start")
    f = tw.compile(te.create_prim_func([cache, new, start, topi.update_cache(cache, new, start)]))
    rng = np.random.default_rng(0)
    for count, extent, first in ((0, 5, (0, 5)), (1, 1, (0, 0)), (7, 100, (93, 4)), (40, 64, (0, 24))):
        old, more = rng.random((2, 3, extent, 4), "float32"), rng.random((2, 3, count, 4), "float32")
        y, wanted = np.zeros_like(old), old.copy()
        f(old, more, np.array(first, "int32"), y)
        for b, at in enumerate(first):
            wanted[b, :, at:at + count] = more[b]
        np.testing.assert_array_equal(y, wanted)


def test_what_is_counted_of_any_size():
    n = te.var("n")
    x, groups = te.placeholder((n,), name="x"), te.placeholder((n,), "int32", name="groups")
    places, number = topi.nonzero(topi.greater(x, 0.5))
    f = tw.compile(te.create_prim_func([x, groups, places, number, topi.segment_reduce(
        x, groups, segments=7, reduction="mean")]))
    rng = np.random.default_rng(0)
    for size in (0, 1, 5000):
        given, which = rng.random(size, "float32"), rng.integers(0, 7, size).astype("int32")
        found, several, means = np.zeros((size, 1), "int64"), np.zeros(1, "int64"), np.zeros(7, "float32")
        f(given, which, found, several, means)
        wanted = np.argwhere(given > 0.5)
        assert several[0] == len(wanted)
        np.testing.assert_array_equal(found[:len(wanted)], wanted)
        rows = [given[which == g].astype("float64") for g in range(7)]
        np.testing.assert_allclose(means, [r.mean() if len(r) else 0 for r in rows], rtol=1e-4)


def test_patches_of_images_of_any_size():
    h, w = te.var("h"), te.var("w")
    x = te.placeholder((1, 2, h, w), name="x")
    y = topi.unfold(x, 3, padding=1, stride=2)
    f = tw.compile(te.create_prim_func([x, y, topi.fold(y, (h, w), 3, padding=1, stride=2)]))
    rng = np.random.default_rng(0)
    for extents in ((1, 1), (5, 8), (33, 64)):
        given, out = rng.random((1, 2, *extents), "float32"), [(n - 1) // 2 + 1 for n in extents]
        columns, back = np.zeros((1, 18, out[0] * out[1]), "float32"), np.zeros_like(given)
        f(given, columns, back)
        times = [np.array([sum((i + 1 - k) % 2 == 0 and 0 <= (i + 1 - k) // 2 < m for k in range(3)) for i in range(n)])
                 for n, m in zip(extents, out)]
        np.testing.assert_allclose(back, given * np.multiply.outer(*times), rtol=1e-6)


def test_a_recurrent_layer_of_any_number_of_steps():
    steps, batch = te.var("steps"), te.var("batch")
    x, weight = te.placeholder((steps, batch, 3), name="x"), te.placeholder((8, 3), name="weight")
    recurrent = te.placeholder((8, 2), name="recurrent")
    f = tw.compile(te.create_prim_func([x, weight, recurrent, *topi.lstm(x, weight, recurrent)]))
    rng = np.random.default_rng(0)
    w, r = rng.random((8, 3), "float32") - 0.5, rng.random((8, 2), "float32") - 0.5
    for extents in ((0, 2), (1, 1), (50, 4)):
        given, y = rng.random((*extents, 3), "float32"), np.zeros((*extents, 2), "float32")
        last, cell = np.zeros((extents[1], 2), "float32"), np.zeros((extents[1], 2), "float32")
        f(given, w, r, y, last, cell)
        h, c = np.zeros((extents[1], 2)), np.zeros((extents[1], 2))
        for t in range(extents[0]):
            i, g, n, o = np.split(given[t] @ w.T + h @ r.T, 4, 1)
            c = c / (1 + np.exp(-g)) + np.tanh(n) / (1 + np.exp(-i))
            h = np.tanh(c) / (1 + np.exp(-o))
            np.testing.assert_allclose(y[t], h, rtol=1e-4)
        np.testing.assert_allclose(last, h, rtol=1e-4)
        np.testing.assert_allclose(cell, c, rtol=1e-4)


def test_a_layer_of_four_bits_for_any_number_of_rows():
    n, inner, outputs, block = te.var("n"), 64, 17, 32
    x, weight = te.placeholder((n, inner), name="x"), te.placeholder((outputs, inner // 2), "uint8", name="weight")
    scale = te.placeholder((outputs, inner // block), name="scale")
    f = tw.compile(te.create_prim_func([x, weight, scale, topi.linear_int4(x, weight, scale, block=block)]))
    rng = np.random.default_rng(0)
    q, s = rng.integers(0, 16, (outputs, inner)), rng.random((outputs, inner // block), "float32")
    for rows in (0, 1, 33):
        given, y = rng.random((rows, inner), "float32"), np.zeros((rows, outputs), "float32")
        f(given, (q[:, ::2] | q[:, 1::2] << 4).astype("uint8"), s, y)
        np.testing.assert_allclose(y, given @ ((q - 8) * np.repeat(s, block, 1)).T, rtol=1e-4, atol=1e-3)


def test_transforms_of_any_number_of_elements():
    n, rows = te.var("n"), te.var("rows")
    x = te.placeholder((rows, n), name="x")
    y = topi.rfft(x)
    f = tw.compile(te.create_prim_func([x, y, topi.irfft(y, size=n)]))
    rng = np.random.default_rng(0)
    for count, size in ((0, 4), (1, 1), (3, 2), (2, 7), (5, 300)):
        given = rng.random((count, size), "float32")
        spectrum, back = np.zeros((count, size // 2 + 1, 2), "float32"), np.zeros_like(given)
        f(given, spectrum, back)
        np.testing.assert_allclose(spectrum[..., 0] + 1j * spectrum[..., 1], np.fft.rfft(given), atol=1e-4 * size)
        np.testing.assert_allclose(back, given, atol=1e-4)


def test_sparse_products_of_any_size():
    rows, columns, width = (te.var(name) for name in ("rows", "columns", "width"))
    x, b = te.placeholder((rows, columns), name="x"), te.placeholder((columns, width), name="b")
    data, indices, indptr = topi.dense_to_csr(x)
    f = tw.compile(te.create_prim_func([x, b, topi.csr_matmul(data, indices, indptr, b)]))
    rng = np.random.default_rng(0)
    for m, k, n in ((0, 3, 2), (1, 1, 1), (40, 70, 5)):
        dense, other = rng.random((m, k), "float32"), rng.random((k, n), "float32")
        dense[dense < 0.8] = 0
        y = np.zeros((m, n), "float32")
        f(dense, other, y)
        np.testing.assert_allclose(y, dense.astype("float64") @ other, rtol=1e-4)


def test_alignments_of_any_number_of_steps():
    steps, batch = te.var("steps"), te.var("batch")
    x = te.placeholder((steps, batch, 2), name="x")
    target, size = te.placeholder((batch, 1), "int32", name="target"), te.placeholder((batch,), "int32", name="size")
    count = te.placeholder((batch,), "int32", name="count")
    loss = topi.ctc_loss(x, target, count, size, reduction="none")
    f = tw.compile(te.create_prim_func([x, target, count, size, loss]))
    for extents in ((1, 0), (1, 2), (300, 3)):
        given, y = np.full((*extents, 2), np.log(0.5), "float32"), np.zeros(extents[1], "float32")
        ones = np.ones(extents[1], "int32")
        f(given, ones[:, None], ones * extents[0], ones, y)
        ways = extents[0] * (extents[0] + 1) // 2             # blanks, one run of the element, blanks
        np.testing.assert_allclose(y, np.full(extents[1], extents[0] * np.log(2) - np.log(ways)), rtol=1e-4)


def test_equations_and_medians_of_any_size():
    n, m = te.var("n"), te.var("m")
    a, b = te.placeholder((n, n), name="a"), te.placeholder((n, m), name="b")
    f = tw.compile(te.create_prim_func([a, b, topi.solve(a, b), topi.median(b, axis=1)[0]]))
    rng = np.random.default_rng(0)
    for size, columns in ((0, 3), (1, 1), (60, 7)):
        matrix = rng.random((size, size), "float32") + size * np.eye(size, dtype="float32")[::-1]
        right, y, middle = rng.random((size, columns), "float32"), np.zeros((size, columns), "float32"), np.zeros(
            size, "float32")
        f(matrix, right, y, middle)
        np.testing.assert_allclose(y, np.linalg.solve(matrix.astype("float64"), right), rtol=1e-3, atol=1e-5)
        np.testing.assert_array_equal(middle, np.sort(right)[:, (columns - 1) // 2])
