"""Products ask for constant columns before they need them, where there are many; results are NumPy's."""
from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright import te, topi
from tilewright.graph import BlockBuilder
from tilewright.rules.apply import Scheduling


def trace(func, constant):
    return str(Scheduling(func, tw.target("llvm -mcpu=x86-64-v4 -num-cores=1"), constant).finish().schedule.trace)


def asked_for(columns, constant):
    x, w = te.placeholder((64, 256), name="x"), te.placeholder((columns, 256), name="w")
    return "sch.prefetch(" in trace(te.create_prim_func([x, w, topi.linear(x, w)]), constant)


def test_many_constant_columns_are_asked_for():
    assert asked_for(128, [1])                                      # 128 KiB
    assert not asked_for(96, [1]) and not asked_for(128, [0])       # fewer; packed in the call, and so in a cache


@pytest.mark.parametrize("rows, constant, packed", [(64, [1], True), (64, [], False), (8, [1], False), (200, [], True)])
def test_constant_columns_are_packed_for_some_rows(rows, constant, packed):
    """Where packing costs nothing; else from more rows on. A few rows read columns once, as they lie."""
    x, w = te.placeholder((rows, 256), name="x"), te.placeholder((256, 192), name="w")
    assert ("cache_read(" in trace(te.create_prim_func([x, w, topi.matmul(x, w)]), constant)) == packed


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("target", ["llvm -num-cores=1", "llvm -num-cores=2", "c"])
@pytest.mark.parametrize("shape", [(150, 256, 200), (64, 1300, 128), (17, 40, 1030)], ids=str)
def test_results(shape, target, transposed):
    rows, depth, columns = shape
    a, w = (np.random.default_rng(1).integers(-4, 5, s).astype("float32") for s in ((rows, depth), (columns, depth)))
    bb = BlockBuilder()
    x = bb.param("x", (rows, depth))
    with bb.function("main", [x]):
        y = bb.emit_te(topi.linear, x, bb.const(w)) if transposed else bb.emit_te(
            topi.matmul, x, bb.const(np.ascontiguousarray(w.T)))
        bb.emit_func_output(bb.emit_te(topi.relu, y))
    got = tw.compile(bb.get()["main"], target=target)(a).numpy()
    np.testing.assert_array_equal(got, np.maximum(a.astype("float64") @ w.T, 0))
