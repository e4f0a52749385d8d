"""Block axes that leave their domain are found, and only those that do in every run with something to do."""
from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

from tilewright.arith.axis_domains import departures
from tilewright.script import from_source
from tilewright.support.errors import InterpreterError
from tilewright.tir import interp

HEAD = """
@T.prim_func
def f(a: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n,), "int32")
    C = T.alloc_buffer((64,), "int32")
"""


def left(loops: str, axis: str, where: str = "") -> list[str]:
    """What departures says of a block with one axis."""
    lines = [*loops.split("\n"), "with T.block('b'):", f"    v = T.axis.{axis}",
             *([f"    T.where({where})"] * bool(where)), "    C[0] = 1"]
    depth, text = 1, HEAD
    for line in lines:
        text += "    " * depth + line + "\n"
        depth += line.endswith(":") and not line.startswith("with")
    return [f"{d.axis.var.name} = {d.value} not in {d.low}..{d.last}"
            for d in departures(from_source(text, check_well_formed=False))]


@pytest.mark.parametrize("loops, axis, where, expected", [
    ("for i in range(16):", "spatial(8, i)", "", "v = 15 not in 0..7"),
    ("for i in range(16):", "spatial(8, i)", "i < 8", ""),
    ("for i in range(16):", "spatial(8, i)", "i >= 0", "v = 15 not in 0..7"),
    ("for i in range(16):", "reduce((1, 16), i)", "", "v = 0 not in 1..15"),
    ("for i in range(16):", "spatial(15, 15 - i)", "", "v = 15 not in 0..14"),
    ("for i in range(16):", "opaque(3, i // 4)", "", "v = 3 not in 0..2"),
    ("for i in range(16):", "scan(3, i % 4)", "", "v = 3 not in 0..2"),
    ("for i in range(16):\n    if i < 8:", "spatial(8, i)", "", ""),
    ("for i in range(n):", "spatial(8, i)", "", ""),                         # n may be 8
    ("for i in range(16):", "spatial(n, i)", "", ""),
    ("for i in range(n):", "spatial(n - 1, i)", "", "v = n - 1 not in 0..n - 2"),
    ("for i in range(n):", "spatial(n, i + 1)", "", "v = n not in 0..n - 1"),
    ("for i in range(n):", "spatial(n, n - 1 - i)", "", ""),
    ("for i in range(0):", "spatial(0, i)", "", ""),
    ("for i in range(1):", "spatial(0, i)", "", "v = 0 not in 0..-1"),
    ("for i in range(8):\n    for j in range(i):", "spatial(7, j)", "", ""),
    ("for i in range(8):\n    for j in range(i):", "spatial(6, j)", "", "v = 6 not in 0..5"),
    ("for i in range(1):\n    for j in range(i):", "spatial(0, j)", "", ""),
    ("for i in range(8):\n    for j in range(n - i):", "spatial(n, i + j + 1)", "", ""),         # no j where n <= i
    ("while A[0] > 0:\n    for i in range(16):", "spatial(8, i)", "", ""),
    ("for i in range(16):", "spatial(8, A[i])", "", ""),
    ("for i in range(A[0]):", "spatial(8, i + 8)", "", ""),
])
def test_departures(loops, axis, where, expected):
    assert left(loops.replace("\n    ", "\n"), axis, where) == ([expected] if expected else [])


def test_axes_of_nested_blocks_follow_the_loops_outside():
    text = HEAD + """
    for i in range(8):
        with T.block("outer"):
            u = T.axis.spatial(8, i)
            for j in range(4):
                with T.block("inner"):
                    v = T.axis.spatial({}, u * 4 + j)
                    C[v] = 1
"""
    assert not list(departures(from_source(text.format(32), check_well_formed=False)))
    assert [str(d) for d in departures(from_source(text.format(31), check_well_formed=False))] == [
        "axis v of block inner reaches 31, outside its domain 0 to 30"]


def test_random_axes_leave_their_domain_when_the_interpreter_says_so():
    """Affine axes of rectangular loops: every departure is found, and none that is not there."""
    draw, seen = random.Random(5), set()
    for _, parts in itertools.product(range(60), (1, 2)):
        extents = [draw.randint(0, 4) for _ in range(parts)]
        value = " + ".join(f"{name} * {draw.randint(-3, 3)}" for name in "ij"[:parts]) + f" + {draw.randint(-1, 3)}"
        low = draw.randint(-4, 1)
        loops = "\n".join(f"for {name} in range({e}):" for name, e in zip("ij", extents))
        axis = f"spatial(({low}, {low + draw.randint(1, 14)}), {value})"
        found = left(loops, axis)
        text = HEAD
        for depth, line in enumerate(loops.split("\n"), 1):
            text += "    " * depth + line + "\n"
        indent = "    " * (parts + 1)
        text += f"{indent}with T.block('b'):\n{indent}    v = T.axis.{axis}\n{indent}    C[0] = 1\n"
        func = from_source(text, check_well_formed=False)
        try:
            interp.run(func, np.zeros(1, "int32"))
            leaves = False
        except InterpreterError as why:
            leaves = "outside its domain" in str(why)
        assert bool(found) == leaves, (loops, axis, found)
        seen.add(leaves)
    assert seen == {True, False}
