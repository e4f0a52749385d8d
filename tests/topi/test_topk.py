"""The first elements of an order, which are kept while a row passes by: every size around the blocks, every kind."""
from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tests.topi.cases.sorting import order
from tilewright import te, topi
from tilewright.tir import dtype as dt
from tilewright.tir import interp
from tilewright.topi.sorting import BLOCK, FEW, IN_REGISTERS

KINDS = ("float16", "bfloat16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32",
         "uint64", "bool")


def program(shape, kind, k, axis=-1, largest=True):
    x = te.placeholder(shape, kind, name="x")
    return te.create_prim_func([x, *topi.topk(x, k=k, axis=axis, largest=largest)])


def check(run, x, k, axis=-1, largest=True):
    """run(x, values, places) gives what a stable sort begins with."""
    wanted = np.take(order(x, axis, largest), range(k), axis)
    values, places = np.zeros(wanted.shape, x.dtype), np.zeros(wanted.shape, "int64")
    run(np.array(x), values, places)
    np.testing.assert_array_equal(places, wanted)
    np.testing.assert_array_equal(values.view("uint8"), np.take_along_axis(x, wanted, axis).view("uint8"))


def drawn(kind, *shape, seed=0):
    """Few different numbers, the limits of the type among them; of floats zeros of both signs, infinities, NaN."""
    rng = np.random.default_rng(seed)
    if kind == "bool":
        return rng.random(shape) < 0.2
    if dt.is_float(kind):
        some = np.array([-2, -1, -0.0, 0.0, 1, 2, 3, np.inf, -np.inf, np.nan, -np.nan])
    else:
        low, high = dt.integer_range(kind)
        some = np.array([low, low + 1, 0, 1, 2, 3, high - 1, high], dtype=object)
    return some[rng.integers(0, len(some), shape)].astype(dt.numpy_dtype(kind))


@pytest.mark.parametrize("target", ["llvm", "c"])
@pytest.mark.parametrize("k", [1, 2, IN_REGISTERS, IN_REGISTERS + 1, FEW, FEW + 1])
def test_any_number_of_rows_and_columns(k, target):
    f = tw.compile(program((te.var("m"), te.var("n")), "float32", k), target=target)
    for m, n in ((0, k), (1, k), (3, k + 1), (2, k + BLOCK - 1), (1, k + BLOCK), (5, k + 97), (2, 1009)):
        check(f, drawn("float32", m, n, seed=n), k)
        check(f, np.random.default_rng(n).random((m, n), "float32"), k)


@pytest.mark.parametrize("target", ["llvm", "c"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_type_has_its_limits(kind, target):
    for k, largest in ((2, True), (20, False)):
        f = tw.compile(program((4, 131), kind, k, largest=largest), target=target)
        check(f, drawn(kind, 4, 131), k, largest=largest)
        for n in range(6):                                 # rows of equals, the last and the first of the order
            check(f, np.broadcast_to(drawn(kind, 4, 1, seed=n), (4, 131)), k, largest=largest)


@pytest.mark.parametrize("largest", [True, False])
def test_rows_in_order_and_against_it(largest):
    f = tw.compile(program((2, 500), "int32", 30, largest=largest))
    up = np.arange(500, dtype="int32") // 3
    check(f, np.stack([up, up[::-1]]), 30, largest=largest)


@pytest.mark.parametrize(("n", "k"), [(1, 1), (7, 7), (BLOCK, 3), (BLOCK + 1, 9), (70, 10)])
def test_the_interpreter_reads_nothing_that_is_not_there(n, k):
    for kind in ("float32", "int8"):
        func = program((2, n, 2), kind, k, axis=1, largest=kind == "int8")
        check(lambda *arrays, func=func: interp.run(func, *arrays), drawn(kind, 2, n, 2), k, 1, kind == "int8")


def test_none_of_them():
    x = np.ones((3, 5), "float32")
    check(tw.compile(program((3, 5), "float32", 0)), x, 0)
    check(tw.compile(program((3, 0), "float32", 0)), x[:, :0], 0)


def test_a_number_that_is_known_at_the_call():
    n, k = te.var("n"), te.var("k")
    x, y = te.placeholder((n,), name="x"), te.placeholder((k,), name="y")
    values, places = topi.topk(x, k=k)
    f = tw.compile(te.create_prim_func([x, y, values, te.compute((k,), lambda i: places[i] + y[i].astype("int64"))]))
    given = drawn("float32", 200)
    for count in (0, 1, 7, 200):
        check(lambda a, *out: f(a, np.zeros(len(out[0]), "float32"), *out), given, count)
