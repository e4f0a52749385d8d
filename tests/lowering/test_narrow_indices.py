"""The pass narrow_indices, off by default: int64 becomes int32 where all values fit, and nowhere else."""
import re

import numpy as np
import pytest

import tilewright as tw
from tilewright.lowering import PassRecord, lower
from tilewright.script import from_source
from tilewright.tir import interp

PROGRAM = '''@T.prim_func
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(T.int64({extent})):
        B[{index}] = A[{index}]
'''


def narrowed(source):
    """What the pass gives of a program."""
    record = PassRecord()
    with tw.pass_options(enable=["narrow_indices"], instruments=[record]):
        flat = lower(from_source(source))
    return str(next(s for s in record.steps if s.name == "narrow_indices").after), flat


@pytest.mark.parametrize("index", ["i", "i + T.int64(0)", "T.int64(7) - i", "i // T.int64(2)", "i % T.int64(3)",
                                   "T.min(i, T.int64(3))", "T.max(i, T.int64(3))", "i * T.int64(1)"])
def test_what_fits_is_narrow_and_the_same(index):
    text, flat = narrowed(PROGRAM.format(extent=8, index=index))
    assert "int64" not in text
    a = np.arange(8, dtype="float32") + 1
    got, want = np.zeros(8, "float32"), np.zeros(8, "float32")
    interp.run(flat, a, got)
    interp.run(from_source(PROGRAM.format(extent=8, index=index)), a, want)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("extent, index", [
    (2**31, "i % T.int64(8)"),                                   # the end of the loop
    (8, "(i + T.int64(2147483647)) % T.int64(8)"),               # a part of the index
    (8, "(i * T.int64(1073741824)) % T.int64(8)"),
    (8, "(T.int64(-2147483644) - i) % T.int64(8)")])
def test_what_does_not_fit_stays(extent, index):
    text, _ = narrowed(PROGRAM.format(extent=extent, index=index))
    assert re.search(r"B\[.*T.int64.*\] =", text)


def test_a_loop_that_ends_at_the_limit_is_narrow():
    text, _ = narrowed(PROGRAM.format(extent=2**31 - 1, index="i % T.int64(8)"))
    assert "int64" not in text
