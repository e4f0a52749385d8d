"""Products of every shape, lying in every way, against NumPy in float64: blocks of k, few rows, few columns."""
from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright import te, topi
from tilewright.lowering.passes import pass_options
from tilewright.rules import apply_rules
from tilewright.rules.apply import Scheduling
from tilewright.tir import For, walk

RANDOM = np.random.RandomState(5)
SHAPES = [(1, 1, 1), (1, 37, 300), (2, 61, 517), (8, 64, 64), (9, 65, 1300), (17, 10, 700), (50, 3, 129),
          (67, 31, 1009), (129, 100, 641), (130, 13, 11), (131, 130, 1031), (7, 300, 33),
          (300, 1, 77), (300, 8, 70), (260, 17, 3)]


def product(m, n, k, ta, tb, dtype="float32", batch=(), epilogue=False):
    a = te.placeholder((*batch, *((k, m) if ta else (m, k))), dtype, "A")
    b = te.placeholder((*batch, *((n, k) if tb else (k, n))), dtype, "B")
    c = topi.matmul(a, b, transpose_a=ta, transpose_b=tb)
    if epilogue:
        c = te.compute(c.shape, lambda *i: te.max(c(*i), te.const(0, dtype)) + te.const(1, dtype), name="D")
    return te.create_prim_func([a, b, c])


def check(m, n, k, ta, tb, dtype="float32", batch=(), epilogue=False, **build):
    def data(*shape):
        return (RANDOM.randint(-4, 5, (*batch, *shape)) / 2).astype(dtype)
    a, b = data(*((k, m) if ta else (m, k))), data(*((n, k) if tb else (k, n)))
    c = tw.nd.empty((*batch, m, n), dtype)
    tw.compile(product(m, n, k, ta, tb, dtype, batch, epilogue), **build)(tw.nd.array(a), tw.nd.array(b), c)
    x, y = a.astype("float64"), b.astype("float64")
    want = np.matmul(np.swapaxes(x, -1, -2) if ta else x, np.swapaxes(y, -1, -2) if tb else y)
    want = np.maximum(want, 0) + 1 if epilogue else want           # sums of quarters: exact in float32
    np.testing.assert_array_equal(c.numpy(), want.astype(dtype))


@pytest.mark.parametrize("ta, tb, epilogue", [
    (False, False, True), (False, True, False), (True, False, False), (True, True, True)])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_shapes(shape, ta, tb, epilogue):
    check(*shape, ta, tb, epilogue=epilogue)


@pytest.mark.parametrize("target", ["llvm -mcpu=haswell", "llvm -mcpu=x86-64", "llvm -num-cores=1", "llvm -num-cores=5",
                                    "c"])
@pytest.mark.parametrize("shape", [(67, 31, 1009), (131, 130, 700), (5, 70, 300)], ids=str)
@pytest.mark.parametrize("tb", [False, True])
def test_targets(shape, tb, target):
    check(*shape, False, tb, target=target)


@pytest.mark.parametrize("dtype", ["float64", "int32", "int64"])
@pytest.mark.parametrize("batch", [(), (3,), (1, 2)])
def test_types_and_batches(batch, dtype):
    check(70, 33, 650, False, True, dtype, batch)
    check(4, 130, 70, True, False, dtype, batch)


def test_indices_are_checked():
    with pass_options(checked=True):
        check(131, 100, 1031, False, False)
        check(17, 10, 700, False, True, epilogue=True)


def test_symbolic_extents():
    m, n, k = te.var("m"), te.var("n"), te.var("k")
    a, b = te.placeholder((m, k), name="A"), te.placeholder((k, n), name="B")
    f = tw.compile(te.create_prim_func([a, b, topi.matmul(a, b)]))
    for sizes in [(1, 1, 1), (5, 70, 3), (130, 67, 1025), (0, 5, 7), (6, 64, 512), (7, 65, 513), (3, 4, 0)]:
        x, y = RANDOM.rand(sizes[0], sizes[2]).astype("float32"), RANDOM.rand(sizes[2], sizes[1]).astype("float32")
        c = tw.nd.empty((sizes[0], sizes[1]), "float32")
        f(tw.nd.array(x), tw.nd.array(y), c)
        np.testing.assert_allclose(c.numpy(), x.astype("float64") @ y.astype("float64"), rtol=1e-5)


def test_strict_sums_are_in_the_order_of_the_program(monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_STRICT_MATH", "1")
    x, y = RANDOM.rand(130, 1300).astype("float32"), RANDOM.rand(1300, 40).astype("float32")
    c, want = tw.nd.empty((130, 40), "float32"), np.zeros((130, 40), "float32")
    tw.compile(product(130, 40, 1300, False, False))(tw.nd.array(x), tw.nd.array(y), c)
    for step in range(1300):
        want = want + x[:, step:step + 1] * y[step]
    np.testing.assert_array_equal(c.numpy(), want)


@pytest.mark.parametrize("m, n, k, tb, rule", [
    (1, 1000, 1000, True, "dots"), (8, 1000, 1000, True, "dots"), (9, 1000, 1000, True, "contraction"),
    (1000, 1, 1000, False, "dots"), (1, 1000, 1000, False, "contraction"), (500, 500, 500, True, "contraction")])
def test_which_rule(m, n, k, tb, rule):
    work = Scheduling(product(m, n, k, False, tb), tw.target("llvm -mcpu=x86-64-v4")).finish()
    assert [d.rule for d in work.decisions] == [rule]


def test_ragged_columns_have_no_masks_in_their_sums():
    """Ten columns are one vector of sixteen."""
    sch = apply_rules(product(100, 10, 300, False, False), tw.target("llvm -mcpu=x86-64-v4"))
    lanes = {n.extent.value for n in walk(sch.func.body) if isinstance(n, For) and n.kind == "vectorized"}
    assert 10 not in lanes and "T.where" not in str(sch.get(sch.get_block("matmul_update")))
