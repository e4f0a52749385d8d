"""Tables of constants in scripts."""
from __future__ import annotations

import numpy as np
import pytest
from ml_dtypes import bfloat16

import tilewright as tw
from tests.script.round_trip import assert_round_trip
from tilewright.script import from_source
from tilewright.script import tir as T
from tilewright.support.errors import ScriptError
from tilewright.tir import interp

WEIGHTS = np.array([[1.0, 2.0], [3.0, 4.0]], "float32")


def results(func, *arrays):
    native, oracle = ([a.copy() for a in arrays] for _ in range(2))
    tw.build(func)(*native)
    interp.run(func, *oracle)
    for a, b in zip(native, oracle, strict=True):
        np.testing.assert_array_equal(a, b)
    return native


def test_constants_in_plain_loops():
    @T.prim_func
    def f(A: T.Buffer((4,), "float32")):
        K = T.allocate_const([1.0, 2.0, 3.0, 4.0], "float32", [4])
        KB = T.Buffer((4,), "float32", data=K)
        for i in range(4):
            A[i] = KB[i] * 2.0

    assert results(f, np.zeros(4, "float32"))[0].tolist() == [2, 4, 6, 8]
    assert_round_trip(f)


def test_constants_beside_blocks_are_scheduled_with_them():
    @T.prim_func
    def f(A: T.Buffer((8, 2), "float32"), C: T.Buffer((8, 2), "float32")):
        K = T.allocate_const(data=WEIGHTS, dtype="float32", shape=[2, 2])
        W = T.decl_buffer((2, 2), "float32", data=K)
        for i, j, k in T.grid(8, 2, 2):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = 0.0
                C[vi, vj] += A[vi, vk] * W[vk, vj]

    sch = tw.Schedule(f)
    sch.parallel(sch.get_loops("C")[0])
    sch.cache_read("C", 1, "local")
    a = np.arange(16, dtype="float32").reshape(8, 2)
    for func in (f, sch.func):
        np.testing.assert_array_equal(results(func, a, np.zeros_like(a))[1], a @ WEIGHTS)
    assert_round_trip(f)


HEAD = "@T.prim_func\ndef f(A: T.Buffer((4,), 'int32'), n: T.int32):\n"


@pytest.mark.parametrize(("body", "said"), [
    ("K = T.allocate_const(['x'], 'int32', [1])", "takes numbers, not"),
    ("K = T.allocate_const([1, 2], 'int32', [3])", "2 numbers are given for 3 elements"),
    ("K = T.allocate_const([1, 2], 'int32', [n])", "the extent n is not a constant"),
    ("K = T.allocate_const([1] * 2000, 'int32', [2000])", "2000 numbers, the most are 1024"),
    ("K = T.allocate_const([300], 'int8', [1])\nB = T.Buffer((1,), 'int8', data=K)", "300"),
    ("K = T.allocate_const([1, 2], 'int32', [2])\nB = T.Buffer((3,), 'int32', data=K)", "cannot be over 2 constants"),
    ("K = T.allocate_const([1, 2])", "is missing"),
    ("K = T.allocate_const([[1, 2], [3]], 'int32', [3])", "takes numbers, not"),
    ("K = T.allocate_const([1, 2], 'int32', [2])\nB = T.Buffer((2,), 'int32', data=K, strides=(2,))", "strides="),
    ("K = T.allocate_const([1, 2], 'int32', [2])\nB = T.Buffer((2,), 'int32', data=K, elem_offset=1)", "elem_offset="),
])
def test_wrong_constants(body, said):
    with pytest.raises(ScriptError, match=said):
        from_source(HEAD + "".join(f"    {line}\n" for line in body.split("\n")))


@pytest.mark.parametrize(("data", "dtype"), [
    ([2**53 + 1, 1.0], "int64"), ([2**64 - 1, 0], "uint64"), ([-2**63, 2**63 - 1], "int64"),
    ([0.1, 2**24 + 1], "float64"),
    (np.array([1.5, -2.0]).astype(bfloat16), "bfloat16"),
])
def test_numbers_are_not_rounded_to_one_dtype(data, dtype):
    func = from_source(f"@T.prim_func\ndef f(A: T.Buffer((2,), {dtype!r})):\n"
                       f"    K = T.allocate_const(data, {dtype!r}, [2])\n    B = T.Buffer((2,), {dtype!r}, data=K)\n"
                       "    for i in range(2):\n        A[i] = B[i]\n", extra_vars={"data": data})
    got, = results(func, np.zeros(2, dtype))
    assert got.tolist() == [type(x)(w) for x, w in zip(got.tolist(), data)]
