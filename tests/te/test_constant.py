"""Arrays of NumPy in tensor expressions: constant tensors, and what the code reads of them."""
from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright import te, tir
from tilewright.script import from_source
from tilewright.script import tir as T
from tilewright.support.errors import IRError, ScheduleError, StructuralError, TensorExpressionError
from tilewright.tir.constant_table import text_of

WINDOW = np.hanning(20).astype("float32")


def value(result, *inputs, schedule=None):
    """What result is for (placeholder, array) pairs, by native code and by the interpreter."""
    s = schedule or te.create_schedule(result.op)
    args = [*(t for t, _ in inputs), result]
    outs = [np.full([int(d) for d in map(str, result.shape)], 7, result.dtype) for _ in range(2)]
    tw.build(s, args)(*(x for _, x in inputs), outs[0])
    tir.interp.run(s.replay(args).func, *(x for _, x in inputs), outs[1])
    np.testing.assert_allclose(*outs, rtol=1e-6, atol=1e-6)                       # native code contracts a * b + c
    return outs[0]


def vector(n=20):
    return te.placeholder((n,), name="A"), np.random.default_rng(0).standard_normal(n).astype("float32")


def test_an_array_of_the_module_and_one_of_the_function_around():
    a, x = vector(18)
    table = np.array([[3, 1, 2], [-128, 5, 127]], "int8")
    b = te.compute((18,), lambda i: a[i] * WINDOW[i] + table[i // 9, i % 3] + float(table.max()), name="B")
    assert [t.name for t in b.op.input_tensors] == ["A", "WINDOW", "table"]
    i = np.arange(18)
    np.testing.assert_allclose(value(b, (a, x)), x * WINDOW[:18] + table[i // 9, i % 3] + 127, rtol=1e-6)


@pytest.mark.parametrize("factor", [3, 8, 16])
def test_lanes_of_vectors_read_tables(factor):
    a, x = vector(18)
    b = te.compute((18,), lambda i: a[i] * WINDOW[i] + WINDOW[(i * 7) % 20] - WINDOW[3], name="B")
    s = te.create_schedule(b.op)
    outer, inner = s[b].split(b.op.axis[0], factor)
    s[b].vectorize(inner)
    i = np.arange(18)
    expected = x * WINDOW[:18] + WINDOW[i * 7 % 20] - WINDOW[3]
    np.testing.assert_allclose(value(b, (a, x), schedule=s), expected, rtol=1e-5, atol=1e-6)
    out = np.empty(18, "float32")
    tir.interp.run(tw.lower(s, [a, b])["default_function"], x, out)
    np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16",
                                   "float32", "float64", "bool"])
def test_elements_of_every_type_are_exact(dtype):
    info = np.iinfo(dtype) if dtype[0] in "iu" else None
    ends = [info.min, info.max, 1] if info else [True, False, True] if dtype == "bool" else [-0.5, np.inf, 1e-3]
    table = np.array([ends, ends[::-1]], dtype)
    result = te.compute((2, 3), lambda i, j: table[i, j])
    assert result.dtype == dtype
    np.testing.assert_array_equal(value(result), table)


def test_a_table_is_what_it_was_when_it_was_read():
    table = np.arange(4, dtype="float32")
    result = te.compute((4,), lambda i: table[i])
    table[:] = 0
    np.testing.assert_array_equal(value(result), np.arange(4))


def test_parts_of_tables_and_explicit_constants():
    table = np.arange(12, dtype="float32").reshape(3, 4)
    row = te.compute((4,), lambda j: table[1][j] + table[2, 3])
    np.testing.assert_array_equal(value(row), table[1] + 11)
    weights = te.constant([[1.0, 2.0], [3.0, 4.0]], name="weights")
    assert weights.dtype == "float64" and weights.shape[0].value == 2
    k = te.reduce_axis((0, 2), name="k")
    total = te.compute((2,), lambda i: te.sum(weights[i, k], axis=k))
    np.testing.assert_array_equal(value(total), [3, 7])


def test_an_index_from_data_is_cut():
    index = te.placeholder((9,), "int32", name="I")
    with pytest.raises(TensorExpressionError, match="index 0 of a constant is not known to stay inside of the shape"):
        te.compute((9,), lambda i: WINDOW[index[i]])
    cut = te.compute((9,), lambda i: WINDOW[te.max(te.min(index[i], 19), 0)])
    given = np.array([-5, 0, 3, 19, 20, 100, 7, -1, 2], "int32")
    np.testing.assert_array_equal(value(cut, (index, given)), WINDOW[given.clip(0, 19)])
    guarded = te.compute((22,), lambda i: te.if_then_else(te.all(i >= 1, i < 21), WINDOW[i - 1], 0.0))
    np.testing.assert_array_equal(value(guarded), np.pad(WINDOW, 1))
    with pytest.raises(TensorExpressionError, match="index 0 runs from 0 to 20, outside of the shape"):
        te.compute((21,), lambda i: WINDOW[i])


@pytest.mark.parametrize("factor, shift", [(8, 1), (8, 7), (16, 3), (32, 20)])
def test_vectors_that_begin_before_a_table_or_end_behind_it(factor, shift):
    n = 20 + shift
    padded = te.compute((n + 12,), lambda i: te.if_then_else(te.all(i >= shift, i < n), WINDOW[i - shift], 0.0))
    s = te.create_schedule(padded.op)
    s[padded].vectorize(s[padded].split(padded.op.axis[0], factor)[1])
    np.testing.assert_array_equal(value(padded, schedule=s), np.pad(WINDOW, (shift, 12)))


def test_indices_of_small_types_reach_the_elements_that_they_can_name():
    program = f"""
@T.prim_func
def read(I: T.Buffer((8,), "KIND"), B: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32")):
    for i in T.vectorized(8):
        B[i] = T.table("int32", "{text_of(np.arange(300), "int32")}", I[i])
    for i in range(8):
        C[i] = T.table("int32", "{text_of(np.arange(300), "int32")}", I[i])
"""
    for kind, last in (("int8", 127), ("uint8", 255), ("int16", 299)):
        index, outs = np.array([0, 1, 5, 43, 100, last, 20, 3], kind), np.zeros((2, 8), "int32")
        tw.build(from_source(program.replace("KIND", kind)))(index, *outs)
        np.testing.assert_array_equal(outs, [index, index])


@pytest.mark.parametrize("lanes", [1, 8])
def test_an_index_of_a_table_does_not_wrap(lanes):
    far = te.compute((16,), lambda i: WINDOW[i * 65536 * 65536 // 65536 // 65536] + WINDOW[i * 65536 % 20])
    s = te.create_schedule(far.op)
    s[far].vectorize(s[far].split(far.op.axis[0], lanes)[1])
    i = np.arange(16)
    np.testing.assert_array_equal(value(far, schedule=s), WINDOW[:16] + WINDOW[i * 65536 % 20])


def test_a_value_that_wraps_is_not_put_into_the_index_of_a_table():
    a, x = te.placeholder((16,), "int32", name="A"), np.arange(16, dtype="int32")
    big = te.compute((16,), lambda i: i * 65536 * 65536, name="big")
    cut = te.compute((16,), lambda i: WINDOW[te.max(te.min(big[i] // 65536 // 65536, 19), 0)] + a[i], name="cut")
    np.testing.assert_array_equal(value(cut, (a, x)), WINDOW[0] + x)
    s = te.create_schedule(cut.op)
    s[big].compute_inline()
    with pytest.raises(ScheduleError, match="may wrap around in int32 while it loads from big"):
        tw.build(s, [a, cut])


def test_programs_with_tables_print_parse_compile_and_differ():
    a, x = vector()
    b = te.compute((20,), lambda i: a[i] * WINDOW[i], name="B")
    func = te.create_prim_func([a, b])
    assert tir.structural_equal(from_source(str(func)), func) and 'T.table("float32", "' in str(func)
    out = np.empty(20, "float32")
    tw.compile(func)(x, out)
    np.testing.assert_array_equal(out, x * WINDOW)

    def print_of(table):
        b = te.compute((20,), lambda i: a[i] * table[i], name="B")
        return te.create_schedule(b.op).fingerprint([a, b])
    assert print_of(WINDOW) == print_of(WINDOW.copy()) != print_of(WINDOW + 1)
    swapped = np.frombuffer(WINDOW.tobytes(), WINDOW.dtype.newbyteorder())         # other numbers of the same bytes
    assert print_of(WINDOW.astype(swapped.dtype)) == print_of(WINDOW) != print_of(swapped)


def test_what_a_constant_cannot_be():
    a, _ = vector()
    weights = te.constant(WINDOW, name="weights")
    b = te.compute((20,), lambda i: a[i] * weights[i], name="B")
    s = te.create_schedule(b.op)
    with pytest.raises(TensorExpressionError, match="argument 1, weights, is a constant, which no caller gives"):
        tw.build(s, [a, weights, b])
    with pytest.raises(ScheduleError, match="weights is a constant"):
        s.cache_read(weights, "local", [b])
    with pytest.raises(ScheduleError, match="weights is a constant"):
        s[weights].transform_layout(lambda i: [i // 4, i % 4])
    with pytest.raises(TensorExpressionError, match="the input weights is a constant"):
        te.extern((1,), [weights], lambda ins, outs: te.call_packed("f", *ins, *outs))
    for wrong in (np.array([]), np.float32(3), np.array(["x"])):
        with pytest.raises(TensorExpressionError, match="is no array of numbers with dimensions"):
            te.constant(wrong)


@pytest.mark.parametrize("call, message", [
    ('T.table("float32", "AAAA", vi)', "the data of a table is no array of float32"),
    ('T.table("float32", "?", vi)', "the data of a table is no array of float32"),
    ('T.table("bfloat16", "AAAA", vi)', "a table of bfloat16 has no form"),
])
def test_a_table_that_is_none_is_refused(call, message):
    with pytest.raises((IRError, StructuralError, tw.support.errors.TilewrightError), match=message):
        tw.build(from_source(f"""
@T.prim_func
def f(B: T.Buffer((4,), "float32")):
    for i in range(4):
        with T.block("B"):
            vi = T.axis.spatial(4, i)
            B[vi] = T.Cast("float32", {call})
"""))


def test_a_script_says_what_to_do_with_an_array():
    with pytest.raises(tw.support.errors.ScriptError, match="an array of NumPy has no element(?s:.*)T.allocate_const"):
        @T.prim_func
        def func(A: T.Buffer((8,), "float32")):
            for i in range(8):
                A[i] = WINDOW[i]


def test_an_array_without_dimensions_is_the_number_that_it_holds():
    a, x = vector()
    two = np.array(2, "float32")
    b = te.compute((20,), lambda i: a[i] * (two + 1), name="B")
    np.testing.assert_array_equal(value(b, (a, x)), x * 3)
