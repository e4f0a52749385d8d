"""Tiles read and written across their lines: by vectors and shuffles, the same elements in an order nobody can tell."""
from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import tilewright as tw
from tilewright.lowering import lower
from tilewright.script import from_source
from tilewright.tir import Load, PrimFunc, Ramp, Shuffle, run, verify, walk

BACK_ENDS = ("llvm", "llvm -mcpu=haswell", "c")
HEAD = "from tilewright.script import tir as T\n@T.prim_func\n"


def copies(n: int, m: int, rows: int, lanes: int, kind: str, scatters: bool, value: str = "{}") -> PrimFunc:
    """B[j, i] = value(A[i, j]) by `rows` unrolled vectors, which lie apart in A or (scatters) in B."""
    i, j = ("j_1", "i_1") if scatters else ("i_1", "j_1")
    read = value.format(f"A[i_0 * {n} + i_1, j_0 * {m} + j_1]")
    a, b = (f'T.Buffer({shape}, "{kind}")' for shape in ((2 * n, 3 * m), (3 * m, 2 * n)))
    return from_source(f"""{HEAD}def main(A: {a}, B: {b}):
    for i_0, j_0 in T.grid(2, 3):
        for {j} in T.unroll({rows}):
            for {i} in T.vectorized({lanes}):
                B[j_0 * {m} + j_1, i_0 * {n} + i_1] = {read}
""")


def shuffles(func: PrimFunc) -> int:
    return sum(isinstance(n, Shuffle) for n in walk(func.body))


def apart(func: PrimFunc) -> int:
    """Loads and stores of vectors whose lanes lie apart."""
    return sum(isinstance(n, Ramp) and getattr(n.stride, "value", 0) != 1 for n in walk(func.body))


@pytest.mark.parametrize("scatters", [False, True])
@pytest.mark.parametrize("kind", ["float32", "float64", "int8", "uint16", "int64", "float16"])
@pytest.mark.parametrize("rows, lanes", [(4, 4), (16, 16), (8, 16), (16, 8), (4, 32), (7, 8), (12, 4), (32, 16)])
def test_transposed_tiles(rows: int, lanes: int, kind: str, scatters: bool) -> None:
    n, m = (rows, lanes) if scatters else (lanes, rows)
    func = copies(n, m, rows, lanes, kind, scatters)
    a = np.random.RandomState(rows).randint(-99, 99, (2 * n, 3 * m)).astype(kind)
    for target in BACK_ENDS:
        flat = lower(func, target)
        verify(flat, "flat")
        if tw.target(target).vector_bytes >= 4 * np.dtype(kind).itemsize:
            assert shuffles(flat) and (rows % 4 or not apart(flat))
        b = np.zeros((3 * m, 2 * n), kind)
        run(flat, a, b)
        np.testing.assert_array_equal(b, a.T)
    for target in ("llvm", "c"):
        x, y = tw.nd.array(a), tw.nd.empty(b.shape, kind)
        tw.build(func, target=target)(x, y)
        np.testing.assert_array_equal(y.numpy(), a.T)


@pytest.mark.parametrize("target", ["llvm", "c"])
def test_what_is_computed_of_a_tile(target: str) -> None:
    func = copies(16, 8, 8, 16, "float32", False, "T.max({} * T.float32(2) + T.float32(1), T.float32(0))")
    assert shuffles(lower(func, target))
    a = np.random.RandomState(0).randn(32, 24).astype("float32")
    y = tw.nd.empty((24, 32))
    tw.build(func, target=target)(tw.nd.array(a), y)
    np.testing.assert_allclose(y.numpy(), np.maximum(2 * a.T + 1, 0), rtol=1e-6)


@pytest.mark.parametrize("why, body", {
    "the buffer that is read is written": "A[i * 8 + j, 0] = A[j, i]",
    "three vectors are no tile": "if i < 3:\n                B[i, j] = A[j, i]",
    "a choice may leave the reads out": "B[i, j] = T.if_then_else(A[0, j] > T.float32(0), A[j, i], T.float32(0))",
}.items())
def test_what_stays_as_it_is(why: str, body: str) -> None:
    func = from_source(f"""{HEAD}def main(A: T.Buffer((64, 8), "float32"), B: T.Buffer((8, 8), "float32")):
    for i in T.unroll(8):
        for j in T.vectorized(8):
            {body}
""")
    assert not shuffles(lower(func)), why


def test_elements_that_are_written_twice_keep_their_last_value() -> None:
    func = from_source(f"""{HEAD}def main(A: T.Buffer((8, 8), "float32"), B: T.Buffer((40,), "float32")):
    for i in T.unroll(8):
        for j in T.vectorized(8):
            B[i + j * 4] = A[i, j]
""")
    a, b = np.arange(64, dtype="float32").reshape(8, 8), np.zeros(40, "float32")
    want = b.copy()
    for i in range(8):
        want[i:i + 29:4] = a[i]
    flat = lower(func)
    assert not shuffles(flat)
    run(flat, a, b)
    np.testing.assert_array_equal(b, want)


def test_reads_stay_behind_writes_of_what_they_read() -> None:
    func = from_source(f"""{HEAD}def main(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8, 8), "float32")):
    for i in T.unroll(8):
        for j in T.vectorized(8):
            B[i, j] = A[j, i]
            A[j, i] = B[i, j] + T.float32(1)
""")
    a, b = np.arange(64, dtype="float32").reshape(8, 8), np.zeros((8, 8), "float32")
    kept = a.copy()
    run(lower(func), a, b)
    np.testing.assert_array_equal(b, kept.T)
    np.testing.assert_array_equal(a, kept + 1)


def test_symbolic_distances_between_lines() -> None:
    func = from_source(f"""{HEAD}def main(a: T.handle, b: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (16, n), "float32")
    B = T.match_buffer(b, (n, 16), "float32")
    for j_0 in range(n // 8):
        for j_1 in T.unroll(8):
            for i in T.vectorized(16):
                B[j_0 * 8 + j_1, i] = A[i, j_0 * 8 + j_1]
""")
    flat = lower(func)
    assert shuffles(flat) and all(isinstance(n.indices[0], Ramp) for n in walk(flat.body) if isinstance(n, Load))
    a = np.random.RandomState(0).rand(16, 24).astype("float32")
    y = tw.nd.empty((24, 16))
    tw.build(func)(tw.nd.array(a), y)
    np.testing.assert_array_equal(y.numpy(), a.T)


@pytest.mark.parametrize("target", ["llvm", "c"])
@pytest.mark.parametrize("kind", ["float32", "int8", "bool", "bfloat16"])
@pytest.mark.parametrize("indices", [[0, 4, 1, 5], [7, 7, 0, 0, 1, 2, 3, 6], [3, 1]])
def test_shuffles_take_the_lanes_that_they_name(indices: list[int], kind: str, target: str) -> None:
    n = len(indices)
    func = from_source(f"""{HEAD}def main(A: T.Buffer((8,), "{kind}"), B: T.Buffer(({n},), "{kind}")):
    B[0:{n}] = T.Shuffle([A[0:4], A[4:8]], {indices})
""")
    assert from_source(str(func)).body is not None and str(from_source(str(func))) == str(func)
    a = np.random.RandomState(0).randint(0, 2 if kind == "bool" else 100, 8).astype("float32")
    typed = a.astype(ml_dtypes.bfloat16 if kind == "bfloat16" else kind)
    x, y = tw.nd.array(typed), tw.nd.empty((n,), kind)
    tw.build(func, target=target)(x, y)
    np.testing.assert_array_equal(y.numpy(), typed[indices])
    out = np.zeros(n, typed.dtype)
    run(func, typed, out)
    np.testing.assert_array_equal(out, typed[indices])


def test_one_lane_is_a_scalar_and_three_vectors_are_one_behind_the_other() -> None:
    func = from_source(f"""{HEAD}def main(A: T.Buffer((12,), "int32"), B: T.Buffer((5,), "int32")):
    B[0:4] = T.Shuffle([A[0:4], A[4:8], A[8:12]], [11, 0, 6, 3])
    B[4] = T.Shuffle([A[0:4], A[4:8], A[8:12]], [9])
""")
    for target in ("llvm", "c"):
        x, y = tw.nd.array(np.arange(12, dtype="int32")), tw.nd.empty((5,), "int32")
        tw.build(func, target=target)(x, y)
        assert y.numpy().tolist() == [11, 0, 6, 3, 9]


@pytest.mark.parametrize("text, message", [
    ("T.Shuffle([], [0])", "there are no vectors"),
    ("T.Shuffle([A[0:4], A[0:8]], [0])", r"expected vectors of one type"),
    ("T.Shuffle([A[0:4]], [4])", "lane 4 of 4"),
    ("T.Shuffle([A[0]], [0])", "expected vectors of one type"),
])
def test_shuffles_that_name_no_lanes(text: str, message: str) -> None:
    with pytest.raises(tw.TilewrightError, match=message):
        from_source(f"""{HEAD}def main(A: T.Buffer((8,), "int32")):
    A[0] = {text}
""")


def test_what_is_read_at_a_place_that_a_let_names_stays_inside_of_it() -> None:
    columns = " + ".join(f"A[x * 8 + j * 64 + {k}]" for k in range(4))
    func = from_source(f"""{HEAD}def main(A: T.Buffer((4096,), "float32"), q: T.int64, B: T.Buffer((40,), "float32")):
    x = T.int64()
    for j in T.vectorized(T.int64(8)):
        B[j] = T.Let({columns}, where={{x: q + T.int64(1)}})
""" + "".join(f"""
    for j in T.vectorized(T.int64(8)):
        B[j + {8 * k}] = {k}.0
""" for k in range(1, 5)))
    a, b = np.arange(4096, dtype="float32"), np.zeros(40, "float32")
    tw.build(func)["main"](a, 1, b)
    np.testing.assert_array_equal(b[:8], (a[16:20] + 64 * np.arange(8)[:, None]).sum(1))
