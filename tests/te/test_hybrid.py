"""Hybrid functions that cannot be read, and indices that no buffer takes, are refused in our own words."""
# The words of the language have no definition in Python, and what is wrong here is meant.
# ruff: noqa: F821
from __future__ import annotations

import pytest

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


@pytest.mark.parametrize("function, message", [
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
