"""What LLVM copies of loops, and where it looks for more vectors: only where that is worth its time."""
from __future__ import annotations

import re

import pytest
from kernels import Cpu

import tilewright as tw
from tilewright import te, topi
from tilewright.codegen.llvm import llvm_ir
from tilewright.codegen.llvm.compile import gathers_lanes
from tilewright.driver import lower
from tilewright.script import from_source

AVX512 = Cpu("skylake-avx512", "", "x86_64-unknown-linux-gnu")


def kept_whole(source: str, target: Cpu = AVX512) -> list[bool]:
    """Of each loop, the first to end first: whether LLVM is told to make no copies of it."""
    module = lower(from_source(source))
    (func,) = module.functions.values()
    text = llvm_ir([func], target)
    disable = re.search(r"^(!\d+) = !{!\"llvm.loop.unroll.disable\"}", text, re.M)
    hints = dict(re.findall(r"^(!\d+) = distinct !{(.*)}$", text, re.M))
    loops = re.findall(r"br i1 %v\d+, label %loop\d+, label %endloop\d+(?:, !llvm.loop (!\d+))?", text)
    return [disable is not None and disable[1] in re.split(r", ", hints.get(at, "")) for at in loops]


def copy(lanes: int, outer: int = 3, inner: int = 100) -> str:
    return (f"@T.prim_func\ndef f(A: T.Buffer(({outer}, {inner * lanes}), \"float32\"), "
            f"B: T.Buffer(({inner * lanes * outer},), \"float32\")):\n"
            f"    for i in range({outer}):\n        for j in range({inner}):\n"
            f"            for k in T.vectorized({lanes}):\n"
            f"                B[i * {lanes * inner} + j * {lanes} + k] = A[i, j * {lanes} + k] + T.float32(1)\n")


@pytest.mark.parametrize("source, inner, outer", [
    (copy(64), True, True),                       # four registers an iteration, and a long loop below the outer one
    (copy(16), False, True),
    (copy(64, inner=4), False, False),            # short: LLVM writes it out
])
def test_loops_with_enough_work_are_not_copied(source, inner, outer):
    assert kept_whole(source) == [inner, outer]


def test_how_much_work_is_enough_depends_on_the_registers():
    assert kept_whole(copy(32), Cpu("haswell", "", "x86_64-unknown-linux-gnu"))[0]
    assert not kept_whole(copy(32))[0]


def test_lanes_that_are_read_one_by_one():
    x = te.placeholder((8, 256, 14, 14), name="x")
    for y, one_by_one in ((topi.transpose(x, (0, 2, 3, 1)), True), (topi.relu(x), False)):
        assert gathers_lanes(tw.compile([x, y], target="llvm -mcpu=znver4").get_source("ll")) == one_by_one
