"""Vectors of elements at indices from data: by an instruction where that is fast, else lane by lane."""
import re

import numpy as np
import pytest

import tilewright as tw
from tilewright import topi
from tilewright.script import from_source
from tilewright.support.errors import CallError
from tilewright.te import placeholder

X86 = "llvm -mtriple=x86_64-unknown-linux-gnu -mcpu="
TARGETS = ["llvm", "llvm -opt-level=0", "llvm -mcpu=x86-64", "llvm -mcpu=haswell", "llvm -mattr=+fast-gather"]


def gather(columns, dtype="float32", index="int64"):
    x, at = placeholder((3, 40), dtype, name="x"), placeholder((3, columns), index, name="at")
    return [x, at, topi.gather(x, at, axis=1)]


@pytest.mark.parametrize("cpu, dtype, by_instruction", [
    ("skylake-avx512", "float32", True), ("sapphirerapids", "int64", True), ("skylake", "float32", True),
    ("znver3", "float32", False), ("haswell", "float64", False), ("sapphirerapids", "int16", False)])
def test_which_cpus_gather_by_an_instruction(cpu, dtype, by_instruction):
    code = tw.compile(gather(32, dtype), target=X86 + cpu).get_source("s")
    assert bool(re.search(r"\bvp?gather", code)) == by_instruction


@pytest.mark.parametrize("cpu, by_lane", [("znver4", True), ("skylake-avx512", False)])
def test_lanes_that_are_all_inside(cpu, by_lane):
    assert ("vinsertps" in tw.compile(gather(32), target=X86 + cpu).get_source("s")) == by_lane


@pytest.mark.parametrize("cpu", ["znver4", "znver5", "skylake-avx512"])
def test_tables(cpu):
    """Without checks and masks CPUs of AMD, where loads take less time than the instruction, have no use for it."""
    table = from_source("""
from tilewright.script import tir as T
@T.prim_func
def main(x: T.Buffer((256,), "float32"), at: T.Buffer((16,), "uint8"), out: T.Buffer((16,), "float32")):
    for i in T.vectorized(16):
        out[i] = x[T.Cast("int32", at[i])]
""")
    assert ("vgather" in tw.build(table, target=X86 + cpu).get_source("s")) == (not cpu.startswith("zn"))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype, index", [
    ("bool", "uint8"), ("int8", "int8"), ("float16", "int64"), ("float32", "uint8"), ("float32", "int32"),
    ("float64", "int8"), ("float64", "int64")])
def test_places_along_an_axis(dtype, index, target):
    random = np.random.default_rng(0)
    for columns in (2, 7, 32, 75):
        x, at = random.integers(0, 2, (3, 40)).astype(dtype), random.integers(0, 40, (3, columns)).astype(index)
        out, kernel = np.zeros((3, columns), dtype), tw.compile(gather(columns, dtype, index), target=target)
        kernel(x, at, out)
        want = np.take_along_axis(x, at.astype("int64"), 1)
        np.testing.assert_array_equal(out, want)
        at[1, columns // 2] = 40
        with pytest.raises(CallError, match="40 of x is outside of its extent 40"):
            kernel(x, at, out)
        want[1, columns // 2] = 0
        np.testing.assert_array_equal(out, want)
