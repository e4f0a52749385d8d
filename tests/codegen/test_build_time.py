"""Builds end: neither our passes nor LLVM's may take time that grows exponentially."""
from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import pytest
from kernels import HOST, flat, ramp, run, vector

import tilewright as tw
from tilewright import te
from tilewright.codegen.llvm import llvm_ir
from tilewright.schedule.analysis import accesses
from tilewright.script import from_source
from tilewright.tir.buffer import Load
from tilewright.tir.expr import Call, StringImm, Var
from tilewright.tir.stmt import Store, loop


def built(make: Callable[[], object]) -> object:
    """What make gives. A minute is far above what any machine takes, and nothing beside exponential growth."""
    start = time.process_time()
    module = make()
    assert time.process_time() - start < 60
    return module


@pytest.mark.parametrize("lanes", (1, 16))
def test_indices_that_are_read_from_memory_nested_deeply(lanes):
    """Each level doubled the time: once in the search for overflows, once where an index was checked and then used."""
    depth = 40
    a = te.placeholder((64,), "int32", name="A")

    def at(i):
        for _ in range(depth):
            i = a[te.floormod(i, 64)]
        return i

    y = te.compute((64,), at, name="Y")
    s = te.create_schedule(y.op)
    if lanes > 1:
        s[y].vectorize(s[y].split(y.op.axis[0], lanes)[1])
    f = built(lambda: tw.build(s, [a, y]))
    x = np.random.default_rng(0).permutation(64).astype("int32")
    out, expected = np.empty(64, "int32"), np.arange(64)
    f(x, out)
    for _ in range(depth):
        expected = x[expected]
    np.testing.assert_array_equal(out, expected)


def test_a_load_of_one_statement_is_made_once_and_of_another_again():
    a, b, i = vector("A", 64), vector("B", 64), Var("i")
    value = Load(a, (ramp(i * 8, 8),))
    twice = flat("twice", [a, b], loop(i, 8, Store(b, value * value + value, (ramp(i * 8, 8),))))
    assert llvm_ir([twice], HOST).count("load <8 x float>") == 1
    again = flat("again", [a], loop(i, 8, tw.tir.stmt.seq([Store(a, value * 2.0, (ramp(i * 8, 8),)),
                                                          Store(a, value + 1.0, (ramp(i * 8, 8),))])))
    x = np.arange(64, dtype="float32")
    run(again, x)
    np.testing.assert_array_equal(x, np.arange(64) * 2 + 1)


def test_a_load_is_made_again_after_a_call_that_may_change_memory():
    a, b, i = vector("A", 64), vector("B", 64), Var("i")
    value, call = Load(a, (i,)), Call("call_extern", (StringImm("absf"), Var("x", "float32")), "float32")
    called = call.replace(args=(StringImm("fabsf"), value))
    func = flat("called", [a, b], loop(i, 8, Store(b, value + called + value, (i,))))
    assert llvm_ir([func], HOST).count("load float") == 2


def test_the_tails_of_a_large_unrolled_tile_are_loops():
    """Eight ragged axes: each of the eight tails would hold the 256 statements once more, under conditions."""
    x = te.placeholder((5,) * 8, "int32", name="X")
    y = te.compute((5,) * 8, lambda *i: x[i] + 1, name="Y")
    s = te.create_schedule(y.op)
    outer, inner = zip(*(s[y].split(axis, 2) for axis in y.op.axis), strict=True)
    s[y].reorder(*outer, *inner)
    for axis in inner:
        s[y].unroll(axis)
    f = built(lambda: tw.build(s, [x, y]))
    a, b = np.arange(5**8, dtype="int32").reshape((5,) * 8), np.zeros((5,) * 8, "int32")
    f(a, b)
    np.testing.assert_array_equal(b, a + 1)


def test_hundreds_of_conditions_that_read_memory():
    a = te.placeholder((64,), "int32", name="A")
    y = te.compute((64,), lambda i: sum(
        te.all(*[a[(i + j) % 64] > j + k for j in range(6)]).astype("int32") for k in range(150)), name="Y")
    f = built(lambda: tw.build(te.create_schedule(y.op), [a, y]))
    x, out = np.random.default_rng(0).integers(0, 300, 64).astype("int32"), np.zeros(64, "int32")
    f(x, out)
    rows = np.stack([np.roll(x, -j) - j for j in range(6)]).min(axis=0)
    np.testing.assert_array_equal(out, np.clip(rows, 0, 150))


def test_a_block_of_hundreds_of_loads_of_one_buffer():
    """Each of them was compared with all before it, index by index."""
    a = te.placeholder((64,), "int32", name="A")
    y = te.compute((64,), lambda i: sum(
        te.if_then_else(a[(i + k) % 64] > k, a[(i * k) % 64], k) for k in range(400)), name="Y")
    s = te.create_schedule(y.op)
    s[y].vectorize(s[y].split(y.op.axis[0], 16)[1])
    f = built(lambda: tw.build(s, [a, y]))
    x, out = np.random.default_rng(0).integers(0, 400, 64).astype("int32"), np.zeros(64, "int32")
    f(x, out)
    i, k = np.ogrid[:64, :400]
    np.testing.assert_array_equal(out, np.where(x[(i + k) % 64] > k, x[(i * k) % 64], k).sum(axis=1))


def test_a_chain_of_conditions_is_followed_once(monkeypatch):
    """Each of the reads is under all conditions before its own: together they are half the square of their number."""
    count, calls, under = 200, [], accesses._under
    monkeypatch.setattr(accesses, "_under", lambda *args: (calls.append(args), under(*args))[1])
    a = te.placeholder((64,), "int32", name="A")

    def value(i):
        e = a[i]
        for k in range(count):
            e = te.if_then_else(a[i] > k, a[(i * k) % 64], e)
        return e

    y = te.compute((64,), value, name="Y")
    s = te.create_schedule(y.op)
    s[y].vectorize(s[y].split(y.op.axis[0], 16)[1])
    f = tw.build(s, [a, y])
    assert 0 < len(calls) <= 10 * count
    x, out = np.random.default_rng(0).integers(0, 300, 64).astype("int32"), np.zeros(64, "int32")
    f(x, out)
    last = np.minimum(x, count) - 1
    i = np.arange(64)
    np.testing.assert_array_equal(out, np.where(last >= 0, x[(i * last) % 64], x))


def test_a_chain_of_steps_at_the_level_of_quick_builds():
    """LLVM's code generator orders the terms of each sum in a long chain anew, so nothing writes such chains out."""
    f = built(lambda: tw.build(from_source("""@T.prim_func
def chain(A: T.Buffer((4,), "int32"), Q: T.Buffer((8,), "int32"), C: T.Buffer((8, 4), "int32")):
    for i in T.unroll(8):
        for j, k, l in T.grid(4, 8, 8):
            with T.block("C"):
                v, w, x, y = T.axis.remap("SSRR", [i, j, k, l])
                with T.init():
                    C[v, w] = w + Q[v]
                C[v, w] = C[v, w] + (T.if_then_else(A[Q[v] % 4] >= -2, 7, y) + Q[w])
"""), target="llvm -opt-level=1"))
    a, q, c = np.array([-9, 3, -9, 3], "int32"), np.arange(8, dtype="int32"), np.empty((8, 4), "int32")
    f(a, q, c)
    steps = np.where(a[q % 4] >= -2, 8 * 7, 28)[:, None]
    np.testing.assert_array_equal(c, q[:4] + q[:, None] + 8 * steps + 64 * q[:4])
