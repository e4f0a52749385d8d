"""Accesses that are certain to be out of bounds are refused; those that may be inside are not."""
from __future__ import annotations

import ast

import numpy as np
import pytest

import tilewright as tw
from tilewright.script import from_source
from tilewright.support.errors import CallError, InterpreterError, LowerError
from tilewright.tir import interp


def function(body: str):
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    head = "@T.prim_func\ndef f(A: T.Buffer((8,), 'int32'), B: T.Buffer((8,), 'int32'), n: T.int32):\n"
    return from_source(head + lines)


@pytest.mark.parametrize("body", [
    "for i in range(8):\n    B[7 - i] = A[i]",
    "for i, j in T.grid(2, 4):\n    B[i * 4 + j] = A[3 - j + 4 * i]",
    "for i in range(9):\n    if i < 8:\n        B[i] = A[i]",
    "for i in range(8):\n    B[i] = T.if_then_else(i < 7, A[i + 1], 0)",
    "for i in range(n):\n    B[i] = A[i + 1]",
    "for i in range(8):\n    B[A[i] % 8] = n",
    "for i in range(0):\n    B[9] = 1",
    "for i in range(8):\n    for j in range(i):\n        B[i + j - 8] = 1",
    "for i in range(8):\n    T.prefetch(A[i + 8])\n    B[i] = A[i]",
])
def test_what_may_be_inside_is_left_alone(body):
    tw.lower(function(body))


@pytest.mark.parametrize("body, message", [
    ("for i in range(8):\n    B[i] = A[i + 1]",
     r"A\[i \+ 1\] is out of bounds: index 0 runs from 1 to 8, the extent is 8"),
    ("for i in range(8):\n    B[6 - i] = 0", r"B\[6 - i\] is out of bounds: index 0 runs from -1 to 6"),
    ("B[n] = A[8]", r"A\[8\] is out of bounds: index 0 is 8, the extent is 8"),
    ("for i in T.parallel(8):\n    B[i * 2] = 1", r"index 0 runs from 0 to 14"),
    ("x = A[8]\nif n > 0:\n    B[0] = x", r"A\[8\] is out of bounds"),
])
def test_what_is_outside_is_refused(body, message):
    with pytest.raises(LowerError, match=message) as why:
        tw.lower(function(body))
    assert "# <-- here" in str(why.value)


# ---- slices

HEAD = "@T.prim_func\ndef f(A: T.Buffer((16,), 'int32'), B: T.Buffer((%s), 'int32')):\n"


def flat(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.strip("\n").splitlines())


@pytest.mark.parametrize("shape, body, message", [
    ("16,", "B[8:24] = A[0:16]", r"index 0 runs from 8 to 23, the extent is 16"),
    ("16,", "B[0:16] = A[8:24]", r"A\[.*\] is out of bounds: index 0 runs from 8 to 23, the extent is 16"),
    ("16,", "for i in range(4):\n    B[i * 8:i * 8 + 8] = A[0:8]", r"index 0 runs from 0 to 31, the extent is 16"),
    ("4, 4", "B[3, 0:16] = A[0:16]", r"index 1 runs from 0 to 15, 12 element\(s\) behind the end of B"),
    ("4, 4", "for i in range(2):\n    B[i, 0:16] = A[0:16]", r"4 element\(s\) behind the end of B"),
    ("4, 4", "B[4, 0:4] = A[0:4]", r"index 0 is 4, the extent is 4"),
    ("4, 4", "B[1, T.Ramp(-1, 1, 4)] = A[0:4]", r"index 1 runs from -1 to 2, the extent is 4"),
    ("16,", "B[T.Ramp(3, -1, 8)] = A[0:8]", r"index 0 runs from -4 to 3, the extent is 16"),
])
def test_slices_outside_are_refused(shape, body, message):
    func = from_source(HEAD % shape + flat(body))
    with pytest.raises(LowerError, match=message):
        tw.lower(func)
    x, y = np.arange(16, dtype="int32"), np.zeros(ast.literal_eval(f"({shape})"), "int32")
    with pytest.raises(InterpreterError, match="is out of bounds"):
        interp.run(func, x, y)
    with pytest.raises(CallError, match="outside of its extent"):
        tw.build(func, checked=True)(x, y)


@pytest.mark.parametrize("body", [
    "B[0, 0:16] = A[0:16]",
    "for i in range(2):\n    B[i * 2, 0:8] = A[i * 8:i * 8 + 8]",
    "for i in range(4):\n    B[i, T.Ramp(3, -1, 4)] = A[i * 4:i * 4 + 4]",
    "B[2, 2:8] = A[0:6]",
    "B[0, T.Ramp(0, 5, 4)] = A[0:4]",
])
def test_slices_that_run_over_rows_are_inside(body):
    func = from_source(HEAD % "4, 4" + flat(body))
    x, want = np.arange(16, dtype="int32"), np.zeros((4, 4), "int32")
    interp.run(func, x, want)
    for checked in (False, True):
        y = np.zeros((4, 4), "int32")
        tw.build(func, checked=checked)(x, y)
        np.testing.assert_array_equal(y, want)
    assert want.any()


def test_a_slice_leaves_no_row_of_a_buffer_with_gaps():
    func = from_source(HEAD.replace("(%s), 'int32'", "(4, 4), 'int32', strides=[8, 1]") + flat("B[0, 0:8] = A[0:8]"))
    with pytest.raises(LowerError, match=r"index 1 runs from 0 to 7"):
        tw.lower(func)
