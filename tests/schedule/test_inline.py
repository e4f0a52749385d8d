"""compute_inline and reverse_compute_inline."""
from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tests.schedule.compute_support import (
    body_text,
    chain,
    check,
    matmul_bias,
    matmul_bias_reference,
    overwritten_between,
    refuses,
    stencil,
)
from tilewright import te
from tilewright.schedule import Schedule
from tilewright.script import from_source
from tilewright.script import tir as T
from tilewright.support.errors import CallError, ScheduleError
from tilewright.te.prim_func import create_prim_func
from tilewright.tir import interp


def test_expression_goes_into_every_consumer():
    func = stencil(4, 3)
    sch = Schedule(func)
    sch.compute_inline(sch.get_block("B"))
    assert body_text(sch) == """\
    for i, j in T.grid(4, 3):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = A[vi, vj] * 3 + A[vi + 2, vj] * 3"""
    assert "T.reads(A[vi:vi + 3, vj])" in str(sch)
    check(sch, func, lambda a: 3 * (a[:-2] + a[2:]), (6, 3))


def test_padding_into_a_convolution():
    a = te.placeholder((9,), "int32", name="A")
    w = te.placeholder((3,), "int32", name="W")
    p = te.compute((11,), lambda i: te.if_then_else(te.all(i >= 1, i < 10), a[i - 1], 0), name="P")
    r = te.reduce_axis((0, 3), name="r")
    c = te.compute((9,), lambda i: te.sum(p[i + r] * w[r], axis=r), name="C")
    func = create_prim_func([a, w, c])
    sch = Schedule(func)
    sch.compute_inline(sch.get_block("P"))
    assert [b.name for b in sch.get_blocks()] == ["C"]
    check(sch, func, lambda a, w: np.correlate(np.pad(a, 1), w, "valid"), (9,), (3,))


def test_transposed_and_reversed_indices_are_inverted():
    a = te.placeholder((5, 4), "int32", name="A")
    b = te.compute((4, 5), lambda i, j: a[j, i] + i, name="B")
    c = te.compute((4, 5), lambda i, j: b[3 - i, j] * 2, name="C")
    func = create_prim_func([a, c])
    sch = Schedule(func)
    sch.compute_inline(sch.get_block("B"))
    check(sch, func, lambda a: ((a.T + np.arange(4)[:, None])[::-1]) * 2, (5, 4))


def test_store_through_an_affine_map():
    """After a reverse inline the block stores at F[8 - v]; its iter var is found again."""
    a = te.placeholder((9,), "int32", name="A")
    b = te.compute((9,), lambda i: a[i] * i, name="B")
    c = te.compute((9,), lambda i: b[8 - i] + 1, name="C")
    d = te.compute((9,), lambda i: c[i] + i, name="D")
    func = create_prim_func([a, d])
    sch = Schedule(func)
    sch.reverse_compute_inline(sch.get_block("C"))
    sch.compute_inline(sch.get_block("B"))
    assert [x.name for x in sch.get_blocks()] == ["D"]
    check(sch, func, lambda a: (a * np.arange(9))[::-1] + 1 + np.arange(9), (9,))


def test_flattened_index_is_split_again():
    a = te.placeholder((3, 4), "int32", name="A")
    b = te.compute((12,), lambda i: a[i // 4, i % 4] * 2, name="B")
    c = te.compute((3, 4), lambda i, j: b[i * 4 + j] + i, name="C")
    func = create_prim_func([a, c])
    sch = Schedule(func)
    sch.reverse_compute_inline(sch.get_block("C"))
    check(sch, func, lambda a: a * 2 + np.arange(3)[:, None], (3, 4))
    sch = Schedule(func)
    sch.compute_inline(sch.get_block("B"))
    check(sch, func, lambda a: a * 2 + np.arange(3)[:, None], (3, 4))


def test_reverse_inline_of_an_epilogue_with_another_input():
    a = te.placeholder((5, 4), "int32", name="A")
    bias = te.placeholder((4,), "int32", name="bias")
    b = te.compute((5, 4), lambda i, j: a[i, j] * 2, name="B")
    c = te.compute((5, 4), lambda i, j: te.max(b[i, j] + bias[j], 0), name="C")
    func = create_prim_func([a, bias, c])
    sch = Schedule(func)
    sch.reverse_compute_inline(sch.get_block("C"))
    assert [x.name for x in sch.get_blocks()] == ["B"]
    check(sch, func, lambda a, b: np.maximum(a * 2 + b, 0), (5, 4), (4,))


def test_reverse_inline_of_a_part_is_guarded():
    a = te.placeholder((9,), "int32", name="A")
    b = te.compute((9,), lambda i: a[i] * 2, name="B")
    c = te.compute((5,), lambda i: b[i + 2] + 1, name="C")
    func = create_prim_func([a, c])
    sch = Schedule(func)
    sch.reverse_compute_inline(sch.get_block("C"))
    assert "T.where(" in str(sch)
    check(sch, func, lambda a: 2 * a[2:7] + 1, (9,))


@pytest.mark.parametrize("n, shape, index", [
    (31, (8, 4), "v // 4, v % 4"), (7, (5, 3), "v // 3, v % 3"), (5, (4, 4), "v // 2, v % 2 * 2"),
    (5, (16, 1), "v * 3, 0"),
    (8, (2, 4), "v // 4, v % 4")])
def test_reverse_inline_of_elements_that_are_no_box(n, shape, index):
    """The producer makes more than the consumer reads: it runs for the elements that are read."""
    func = from_source(f'''@T.prim_func
def main(A: T.Buffer({shape}), C: T.Buffer(({n},))):
    B = T.alloc_buffer({shape})
    for i, j in T.grid{shape}:
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for i in range({n}):
        with T.block("C"):
            v = T.axis.spatial({n}, i)
            C[v] = B[{index}] + T.Cast("float32", v)
''')
    sch = Schedule(func)
    sch.reverse_compute_inline("C")
    assert ("T.where" in body_text(sch)) == (shape[0] * shape[1] > n)
    a, v = np.random.default_rng(0).random(shape).astype("float32"), np.arange(n)
    expected = a[eval(index)] * 2 + v.astype("float32")
    for run in (lambda *x: interp.run(sch.func, *x), tw.build(sch.func)):
        c = np.zeros(n, "float32")
        run(a, c)
        np.testing.assert_array_equal(c, expected)


@pytest.mark.parametrize(("index", "value"), [
    (lambda i: (i, i), np.diagonal), (lambda i: (3, i), lambda x: x[3]), (lambda i: (i, 0), lambda x: x[:, 0])])
def test_reverse_inline_of_a_diagonal_and_of_a_row(index, value):
    a = te.placeholder((5, 5), "int32", name="A")
    b = te.compute((5, 5), lambda i, j: a[i, j] * 2, name="B")
    func = create_prim_func([a, te.compute((5,), lambda i: b[index(i)] + 1, name="C")])
    sch = Schedule(func)
    sch.reverse_compute_inline(sch.get_block("C"))
    check(sch, func, lambda a: value(a) * 2 + 1, (5, 5))


@pytest.mark.parametrize("size", [1, 7])
def test_symbolic_inline(size):
    n = te.var("n")
    for primitive, block in [("compute_inline", "B"), ("reverse_compute_inline", "C")]:
        func = chain(n)
        sch = Schedule(func)
        getattr(sch, primitive)(sch.get_block(block))
        assert len(sch.get_blocks()) == 1
        check(sch, func, lambda a: a * 3 - 1, (size,))


def test_after_splitting():
    func = matmul_bias(6, 7, 5)
    a = Schedule(func)
    d = a.get_block("D")
    a.split(a.get_loops(d)[0], [None, 4])
    refuses(a, lambda: a.reverse_compute_inline(d), "reverse_compute_inline(block=D)", "block C is a reduction")
    refuses(a, lambda: a.compute_inline(a.get_block("C")), "partial sums")
    refuses(a, lambda: a.compute_inline(d), "D, an output of the function", "reverse_compute_inline")
    check(a, func, matmul_bias_reference, (6, 5), (5, 7))


def test_refusals():
    sch = Schedule(stencil())
    refuses(sch, lambda: sch.reverse_compute_inline(sch.get_block("C")), "block C reads more than one element of B")
    refuses(sch, lambda: sch.reverse_compute_inline(sch.get_block("B")), "no producer that it can be dissolved into")
    sch = Schedule(overwritten_between())
    refuses(sch, lambda: sch.compute_inline(sch.get_block("B")), "block U writes A between block B")


def test_a_value_that_is_used_twice_stays():
    a = te.placeholder((6,), "int32", name="A")
    b = te.compute((6,), lambda i: a[i] + 1, name="B")
    c = te.compute((6,), lambda i: b[i] * 2, name="C")
    d = te.compute((6,), lambda i: b[i] * 3, name="D")
    sch = Schedule(create_prim_func([a, c, d]))
    refuses(sch, lambda: sch.reverse_compute_inline(sch.get_block("C")), "B is read by block D as well")
    sch.compute_inline(sch.get_block("B"))
    check(sch, create_prim_func([a, c, d]), lambda a: ((a + 1) * 2, (a + 1) * 3), (6,))


def test_a_guarded_use_of_a_part_stays():
    """C[0] does not need B, and no instance of B would compute it."""
    a = te.placeholder((6,), "int32", name="A")
    b = te.compute((6,), lambda i: a[i] + 1, name="B")
    c = te.compute((6,), lambda i: te.if_then_else(i >= 1, b[i - 1], 7), name="C")
    sch = Schedule(create_prim_func([a, c]))
    refuses(sch, lambda: sch.reverse_compute_inline(sch.get_block("C")), "only where a condition holds")


@T.prim_func
def scratch(A: T.Buffer((24,), "int32"), B: T.Buffer((12,), "int32")):
    P = T.alloc_buffer((24,), "int32")
    for i in range(24):
        with T.block("P"):
            vi = T.axis.spatial(24, i)
            P[vi] = A[vi] + 1
    for i in range(12):
        with T.block("B"):
            vi = T.axis.spatial(12, i)
            V = T.match_buffer(A[vi:vi + 2], (2,), "int32", offset_factor=1)
            c = T.alloc_buffer((1,), "int32")
            c[0] = P[vi]
            while c[0] >= 12:
                c[0] = c[0] - 12
            B[vi] = c[0] + V[1]


def test_a_block_with_buffers_and_views_of_its_own():
    """They are not among the regions of the block, which a reader that was inlined into it states anew."""
    sch = Schedule(scratch)
    sch.compute_inline("P")
    assert "T.reads(A[0:24])" in str(sch.func)
    assert from_source(sch.func.script()).script() == sch.func.script()
    a, o = np.arange(24, dtype="int32") * 7, np.zeros(12, "int32")
    interp.run(sch.func, a, o)
    np.testing.assert_array_equal(o, (a[:12] + 1) % 12 + a[1:13])


@T.prim_func
def unused_view(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32")):
    P = T.alloc_buffer((8,), "int32")
    for i in range(8):
        with T.block("P"):
            vi = T.axis.spatial(8, i)
            P[vi] = A[vi] + 1
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            V = T.match_buffer(P[vi:vi + 1], (1,), "int32", offset_factor=1)  # noqa: F841
            B[vi] = vi
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = P[vi] * 2


def test_a_buffer_that_is_viewed_does_not_vanish():
    """Also where nothing reads the view."""
    sch = Schedule(unused_view)
    before = sch.func.script()
    with pytest.raises(ScheduleError, match="P would vanish, and block B has a view of it"):
        sch.compute_inline("P")
    assert sch.func.script() == before


@pytest.mark.parametrize("body", ["x: T.int32 = X[vi]; C[vi] = B[x]", "for k in range(3): C[vi] = B[X[k + vi % 2]]"])
def test_what_a_block_reads_at_an_index_of_its_own_may_be_any_element(body):
    lines = "\n            ".join(body.split("; "))
    func = from_source(f"""
@T.prim_func
def main(X: T.Buffer((4,), "int32"), A: T.Buffer((4,), "int32"), C: T.Buffer((4,), "int32")):
    B = T.alloc_buffer((4,), "int32")
    for i in range(4):
        with T.block("B"):
            vi = T.axis.spatial(4, i)
            B[vi] = A[vi] * 2
    for i in range(4):
        with T.block("C"):
            vi = T.axis.spatial(4, i)
            {lines}
""")
    sch = Schedule(func)
    sch.compute_inline("B")
    assert "A[0:4]" in str(next(r for r in sch.get(sch.get_block("C")).reads if r.buffer.name == "A"))
    x, a, c = np.array([2, 0, 3, 1], "int32"), np.arange(4, dtype="int32"), np.zeros(4, "int32")
    interp.run(sch.func, x, a, c)
    np.testing.assert_array_equal(c, 2 * (x if "k" not in body else x[2 + np.arange(4) % 2]))


def test_a_value_that_wraps_is_not_inlined_into_the_axis_of_a_block():
    sch = Schedule(from_source('''@T.prim_func
def f(C: T.Buffer((8,), "int32")):
    X = T.alloc_buffer((8,), "int32")
    for i in range(8):
        with T.block("P"):
            v = T.axis.spatial(8, i)
            X[v] = v * 3
    for i in range(8):
        with T.block("Q"):
            v = T.axis.opaque(8, X[i] * 1103515245 % 8)
            C[v] = 1
'''))
    refuses(sch, lambda: sch.compute_inline("P"), "index i * 3 * 1103515245 % 8 of block Q may wrap around")


def test_what_a_block_reads_in_loops_that_start_where_others_are_is_bounded_by_numbers():
    func = from_source('''@T.prim_func
def f(A: T.Buffer((16,), "int32"), C: T.Buffer((2,), "int32")):
    B = T.alloc_buffer((16,), "int32")
    for i in range(16):
        with T.block("B"):
            v = T.axis.spatial(16, i)
            B[v] = A[v] * 2
    for i in range(2):
        with T.block("C"):
            v = T.axis.spatial(2, i)
            C[v] = 0
            for x in range(4):
                for y in range(x, x + 4):
                    C[v] = C[v] + B[y + v * 8]
''')
    sch = Schedule(func)
    sch.compute_inline("B")
    assert [str(r) for r in sch.get("C").reads] == ["C[v]", "A[0:16]"]
    a, c = np.arange(16, dtype="int32"), np.zeros(2, "int32")
    interp.run(sch.func, a, c)
    np.testing.assert_array_equal(c, [sum(2 * a[v * 8 + x + y] for x in range(4) for y in range(4)) for v in (0, 1)])


@pytest.mark.parametrize("shape", [(20,), (4, 5)])
@pytest.mark.parametrize("far", [2**40, 2**32, -2**40, -2**32 - 3, 2**63 - 1, -2**63])
def test_an_index_beyond_the_type_of_the_axes_stays_out_of_range(shape, far):
    """Elements of a buffer with axes of int32, read by int64 from data."""
    x, i = te.placeholder(shape, name="X"), te.placeholder((3,), "int64", name="I")
    row = te.compute((20,), lambda k: (x[k] if len(shape) == 1 else x[k // 5, k % 5]) * 2.0, name="row")
    y = te.compute((3,), lambda k: row[i[k]], name="Y")
    sch = Schedule(te.create_prim_func([x, i, y]))
    sch.compute_inline("row")
    f = tw.build(sch.mod["main"])
    values, out = np.arange(20, dtype="float32").reshape(shape), np.full(3, -1, "float32")
    f(values, np.array([0, 19, 7]), out)
    np.testing.assert_array_equal(out, [0, 38, 14])
    with pytest.raises(CallError, match="outside"):
        f(values, np.array([0, far, 3]), out)


ALSO_WRITTEN = """
def func(A: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32")):
    B = T.alloc_buffer((8,), "int32")
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi] + 1
{before}    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = B[vi] * 2
{after}"""
ANOTHER = """    for i in range({extent}):
        with T.block("D"):
            vi = T.axis.spatial({extent}, i)
            C[vi] = {value}
"""


@pytest.mark.parametrize("extent, value", [(8, "A[vi]"), (4, "A[vi + 4]"), (7, "C[vi + 1]"), (8, "C[vi] + A[7 - vi]")])
def test_what_others_write_behind_a_consumer_stays_behind_it(extent, value):
    text = ALSO_WRITTEN.format(before="", after=ANOTHER.format(extent=extent, value=value))
    sch = Schedule(from_source("@T.prim_func" + text))
    old = sch.func
    sch.reverse_compute_inline("C")
    assert "alloc_buffer" not in str(sch.func)
    a, want, got = np.arange(8, dtype="int32") ** 2, np.zeros(8, "int32"), np.zeros(8, "int32")
    interp.run(old, a, want)
    interp.run(sch.func, a, got)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("extent, value", [(8, "A[vi]"), (1, "A[vi + 7]")])
def test_a_consumer_is_not_moved_before_what_others_write_in_its_place(extent, value):
    text = ALSO_WRITTEN.format(before=ANOTHER.format(extent=extent, value=value), after="")
    sch = Schedule(from_source("@T.prim_func" + text))
    refuses(sch, lambda: sch.reverse_compute_inline("C"), "block D stands between block B and block C")
