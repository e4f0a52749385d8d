"""Reductions whose loops repeat a step, leave one out, or begin with another one than that which starts them."""
from __future__ import annotations

import numpy as np
import pytest

from tests.schedule.test_few_lines import Move, ints, moved, program, refused, same
from tilewright.tir import interp
from tilewright.tir.stmt import PrimFunc

A = np.arange(64, dtype="int32").reshape(8, 8) + 1
FILL = """
    for z in range(8):
        with T.block("Z"):
            vz = T.axis.spatial(8, z)
            B[vz] = 5
"""
DOUBLE = """
    for j in range(8):
        with T.block("D"):
            vj = T.axis.spatial(8, j)
            D[vj] = B[vj] * 2
"""


def summed(loops: str, axes: str, term: str = "A[vi, vk]", start: bool = True, fill: bool = False) -> PrimFunc:
    """B[vi] = sum of term, and D = B * 2.

    loops: `i:8 k:3`, outermost first; axes: `i:8:i k:3:k`, each with its extent and value, i of outputs.
    """
    lines, indent = ['    B = T.alloc_buffer((8,), "int32")', FILL if fill else ""], "    "
    for loop in loops.split():
        name, extent = loop.split(":")
        lines.append(f"{indent}for {name} in range({extent}):")
        indent += "    "
    lines.append(f'{indent}with T.block("B"):')
    for axis in axes.split():
        name, extent, value = axis.split(":")
        lines.append(f"{indent}    v{name} = T.axis.{'spatial' if name == 'i' else 'reduce'}({extent}, {value})")
    lines += [f"{indent}    with T.init():", f"{indent}        B[vi] = 0"] if start else []
    lines.append(f"{indent}    B[vi] = B[vi] + {term}")
    return program(ints("A8x8 D8"), "\n".join(lines) + DOUBLE)


def kept(func: PrimFunc, move: Move) -> None:
    """The move is accepted, and D stays what it was."""
    want = np.full(8, 77, "int32")
    interp.run(func, A.copy(), want)
    for f in (func, moved(func, move)):
        same(f, [A, np.full(8, 77, "int32")], want)


def at_reader(s):
    s.compute_at("B", s.get_loops("D")[0])


def at_filler(s):
    s.reverse_compute_at("B", s.get_loops("Z")[0])


@pytest.mark.parametrize("loops, axes", [
    ("i:8 k:3 u:2", "i:8:i k:3:k"), ("k:3 u:2 i:8", "i:8:i k:3:k"), ("k:3 i:16", "i:8:i//2 k:3:k"),
    ("i:8 k:3 u:2 l:2", "i:8:i k:3:k l:2:l")])
def test_steps_that_run_twice_after_one_start(loops, axes):
    refused(summed(loops, axes), "may run a step of block B's reduction twice", at_reader)


@pytest.mark.parametrize("loops, axes", [
    ("u:2 i:8 k:3", "i:8:i k:3:k"), ("i:16 k:3", "i:8:i//2 k:3:k"), ("k:3 u:1 i:8", "i:8:i k:3:k"),
    ("i:2 k:3 l:4", "i:8:i*4+l k:3:k"), ("u:2 k:3 l:2 i:8", "i:8:i k:6:k*2+l")])
def test_whole_reductions_run_twice(loops, axes):
    kept(summed(loops, axes), at_reader)


@pytest.mark.parametrize("move", [at_reader, at_filler])
def test_steps_that_run_twice_without_a_start(move):
    refused(summed("u:2 i:8 k:3", "i:8:i k:3:k", start=False, fill=True),
            "may run a step of block B's reduction twice", move)
    kept(summed("i:8 k:3", "i:8:i k:3:k", start=False, fill=True), move)


@pytest.mark.parametrize("loops, axes, start", [
    ("i:8 k:3", "i:8:i k:3:k l:3:k", True), ("k:8", "i:8:k k:8:k", False), ("k:8", "i:8:k k:8:k", True)])
def test_axes_that_follow_one_loop(loops, axes, start):
    func = summed(loops, axes, start=start, fill=True)
    refused(func, "not shown to run its reduction exactly once", at_reader)


BACKWARDS = ["7-k", "(k+3)%8", "k//4*4+(3-k%4)"]


@pytest.mark.parametrize("value", BACKWARDS)
def test_steps_before_the_one_that_starts(value):
    func = summed("i:8 k:8 l:2", f"i:8:i k:8:{value} l:2:l", "A[vi, vk] * (vl + 1)", fill=True)
    refused(func, "breaks a dependence of block B on B", lambda s: s.reorder(*s.get_loops("B")[:0:-1]))
    for move in (at_reader, lambda s: s.cache_write("B", 0, "local"), lambda s: s.reindex("B", ("write", 0))):
        refused(func, "may not start its reduction|not shown to run its reduction", move)
    kept(func, lambda s: s.reorder(*s.get_loops("B")[1::-1]))


def test_an_order_with_all_other_steps_before_the_one_that_starts():
    func = summed("i:8 k:8", "i:8:i k:8:7-k", fill=True)

    def inner_first(s):
        s.reorder(*s.split(s.get_loops("B")[1], [None, 4])[::-1])
    kept(func, inner_first)


def test_a_start_in_the_middle_of_an_inner_loop():
    func = summed("i:8 k:4 l:4 m:2", "i:8:i k:4:(k+l)%4 m:2:m", "A[vi, vk] * (vm + 1)", fill=True)
    refused(func, "breaks a dependence of block B on B", lambda s: s.reorder(*s.get_loops("B")[:1:-1]))


@pytest.mark.parametrize("loops, axes", [
    ("x:24", "i:8:x//3 k:3:x%3"), ("x:6 y:4", "i:8:(x*4+y)//3 k:3:(x*4+y)%3")])
def test_loops_that_count_through_outputs_and_steps(loops, axes):
    kept(summed(loops, axes), at_reader)


@pytest.mark.parametrize("loops, axes", [
    ("y:4 x:6", "i:8:(x*4+y)//3 k:3:(x*4+y)%3"), ("x:16", "i:8:x//2 k:2:1-x%2"), ("x:16", "i:8:x//2 k:2:(x+x//2)%2")])
def test_loops_of_outputs_that_do_not_count_through_the_steps(loops, axes):
    refused(summed(loops, axes, fill=True), "may not start its reduction|not shown to run its reduction", at_reader)


@pytest.mark.parametrize("move", [
    lambda s: s.reverse_compute_at("D", s.get_loops("B")[0]), lambda s: s.reverse_compute_inline("D")])
def test_a_condition_on_a_quotient_whose_axis_does_not_begin_at_0(move):
    text = """
    B = T.alloc_buffer((8,), "int32")
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi, 1] + 1
    for j in range(4, 20):
        with T.block("D"):
            vj = T.axis.spatial((2, 6), j // 2)
            T.where(j < {end})
            D[vj] = B[vj] * 2
"""
    refused(program(ints("A8x8 D8"), text.format(end=8)), "block D runs only where j < 8", move)
    kept(program(ints("A8x8 D8"), text.format(end=12)), move)
