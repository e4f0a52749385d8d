"""Hybrid functions that cannot be read, and indices that no buffer takes, are refused in our own words."""
# The words of the language have no definition in Python, and what is wrong here is meant.
# ruff: noqa: F821
from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright import te
from tilewright.support.errors import TensorExpressionError
from tilewright.te import hybrid


@hybrid.script
def calls_itself(a):
    out = output_tensor((8,), "float32")
    for i in range(8):
        out[i] = calls_itself(a)[i]
    return out


@hybrid.script
def two_indices(a):
    out = output_tensor((8,), "float32")
    out[0, 0] = a[0]
    return out


@hybrid.script
def half_an_index(a):
    out = output_tensor((8,), "float32")
    out[0.5] = a[0]
    return out


@hybrid.script
def a_number_as_condition(a):
    out = output_tensor((8,), "float32")
    while a[0]:
        out[0] = 1.0
    return out


@hybrid.script
def without_end(a):
    out = output_tensor((8,), "float32")
    while True:
        out[0] = 1.0
    return out


@hybrid.script
def half_a_loop(a):
    out = output_tensor((8,), "float32")
    for i in range(1.5):
        out[i] = 1.0
    return out


@hybrid.script
def product_of_matrices(a):
    out = output_tensor((8,), "float32")
    x = a[0]
    x @= a[1]
    out[0] = x
    return out


@hybrid.script
def too_large(a):
    out = output_tensor((8,), "float32")
    out[0] = 2.0 ** 10000
    return out


@pytest.mark.parametrize("function, message", [
    (a_number_as_condition, r"the condition `a\[0\]` is float32, not a bool"),
    (without_end, "the condition is always True"),
    (half_a_loop, "is float32, not an integer"),
    (product_of_matrices, "is not part of the language"),
    (too_large, "Numerical result out of range"),
    (calls_itself, "calls itself"),
    (two_indices, r"has 1 dimension\(s\), 2 index\(es\) given"),
    (half_an_index, "is float32, not an integer"),
])
def test_refused(function, message):
    with pytest.raises(TensorExpressionError, match=message):
        function(te.placeholder((8,), name="a"))


def test_only_plain_functions_are_read():
    async def waits(a):
        return a
    with pytest.raises(TensorExpressionError, match="it is no plain `def`"):
        hybrid.script(waits)


@hybrid.script
def swapped(a):
    out = output_tensor((8,), "float32")
    for i in range(8):
        x, y = a[i], 1.0
        x, y = y, x
        out[i] = x * 10.0 + y
    return out


@hybrid.script
def fibonacci(a):
    out = output_tensor((8,), "float32")
    x = 0.0
    y = a[3]
    for i in range(8):
        out[i] = x
        x, y = y, x + y
    return out


@hybrid.script
def swapped_elements(a):
    out = output_tensor((8,), "float32")
    for i in range(8):
        out[i] = a[i]
    out[0], out[1] = out[1], out[0]
    return out


@hybrid.script
def remembered(a):
    out = output_tensor((8,), "float32")
    x = a[0]
    before = (x, x + 1.0)
    x = 7.0
    for i in range(8):
        out[i] = before[0] + 10.0 * before[1] + 100.0 * x
    return out


@hybrid.script
def converted(a):
    out = output_tensor((8,), "float32")
    for i in range(8):
        x = int64(a[i] * 50000000.0)
        out[i] = float32(int64(int8(x)) + int64(int16(x)) + int64(int32(x)) + int64(uint8(x)) + int64(uint16(x)))
    return out


@hybrid.script
def counted(a, count=3):
    out = output_tensor((8,), "float32")
    for i in range(8):
        count += 2
        out[i] = float32(count)
    return out


@hybrid.script
def bits(a):
    out = output_tensor((8,), "float32")
    for i in range(8):
        out[i] = float32(popcount(int32(2.0 - a[i])) + popcount(int64(-1)) + popcount(7)) + float32(bfloat16(a[i]))
    while 0:
        out[0] = 1.0
    return out


@pytest.mark.parametrize("function", [swapped, fibonacci, swapped_elements, remembered, converted, counted, bits])
def test_assignments_mean_what_they_mean_in_python(function):
    a = te.placeholder((8,), name="a")
    out = function(a)
    x, y = np.arange(1, 9, dtype="float32"), np.zeros(8, "float32")
    tw.build(te.create_schedule(out.op), [a, out])(x, y)
    np.testing.assert_array_equal(y, function(x))
