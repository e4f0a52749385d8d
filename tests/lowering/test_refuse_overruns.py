"""Accesses that are certain to be out of bounds are refused; those that may be inside are not."""
from __future__ import annotations

import pytest

import tilewright as tw
from tilewright.script import from_source
from tilewright.support.errors import LowerError


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
