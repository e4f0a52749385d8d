"""Products ask for constant columns before they need them, where there are many; results are NumPy's."""
from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright import te, topi
from tilewright.graph import BlockBuilder
from tilewright.rules.apply import Scheduling


def asked_for(columns, constant):
    x, w = te.placeholder((64, 256), name="x"), te.placeholder((columns, 256), name="w")
    func = te.create_prim_func([x, w, topi.linear(x, w)])
    trace = str(Scheduling(func, tw.target("llvm -mcpu=x86-64-v4 -num-cores=1"), constant).finish().schedule.trace)
    return "sch.prefetch(" in trace


def test_many_constant_columns_are_asked_for():
    assert asked_for(128, [1])                                      # 128 KiB
    assert not asked_for(96, [1]) and not asked_for(128, [0])       # fewer; packed in the call, and so in a cache


@pytest.mark.parametrize("target", ["llvm -num-cores=1", "llvm -num-cores=2", "c"])
@pytest.mark.parametrize("shape", [(150, 256, 200), (64, 1300, 128)], ids=str)
def test_results(shape, target):
    rows, depth, columns = shape
    a, w = (np.random.default_rng(1).integers(-4, 5, s).astype("float32") for s in ((rows, depth), (columns, depth)))
    bb = BlockBuilder()
    x = bb.param("x", (rows, depth))
    with bb.function("main", [x]):
        bb.emit_func_output(bb.emit_te(topi.relu, bb.emit_te(topi.linear, x, bb.const(w))))
    got = tw.compile(bb.get()["main"], target=target)(a).numpy()
    np.testing.assert_array_equal(got, np.maximum(a.astype("float64") @ w.T, 0))
