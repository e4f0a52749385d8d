"""split_lanes: vectors of odd lengths become powers of two, and the result stays the same."""
import numpy as np
import pytest

from tilewright import te
from tilewright.driver import build
from tilewright.lowering.split_lanes import MAX_LANES, split_lanes
from tilewright.tir import VECTORIZED, Buffer, For, IntImm, PrimFunc, Store, Var, interp, loop, structural_equal, walk


@pytest.mark.parametrize("extent", [1, 2, 3, 7, 16, 48, 100, 255, 256, 257, 700, 1024])
def test_lengths(extent):
    a, p, i = Buffer("A", (IntImm(extent),), "int32"), Var("A", "handle"), Var("i")
    func = PrimFunc((p,), loop(i, extent, Store(a, i * 3 + 1, (i,)), VECTORIZED), {p: a})
    out = split_lanes(func)
    lengths = [n.extent.value for n in walk(out.body) if isinstance(n, For) and n.kind == VECTORIZED]
    assert all(x & (x - 1) == 0 and x <= MAX_LANES for x in lengths)
    got = np.full(extent, -1, "int32")
    interp.run(out, got)
    np.testing.assert_array_equal(got, np.arange(extent) * 3 + 1)


def test_a_loop_of_symbolic_extent_stays():
    n, p, i = Var("n"), Var("A", "handle"), Var("i")
    a = Buffer("A", (n,), "int32")
    func = PrimFunc((p, n), loop(i, n, Store(a, i * 3 + 1, (i,)), VECTORIZED), {p: a})
    assert structural_equal(split_lanes(func), func)


@pytest.mark.parametrize("extent", [3, 10, 48, 100])
def test_native_code_of_a_reduction_below_an_odd_vector(extent):
    a = te.placeholder((5, 7), name="A")
    b = te.placeholder((7, extent), name="B")
    k = te.reduce_axis((0, 7), name="k")
    c = te.compute((5, extent), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    s = te.create_schedule(c.op)
    s[c].vectorize(c.op.axis[1])
    s[c].reorder(c.op.axis[0], k, c.op.axis[1])
    x, y = np.random.rand(5, 7).astype("float32"), np.random.rand(7, extent).astype("float32")
    z = np.empty((5, extent), "float32")
    build(s, [a, b, c], "llvm", name="f")(x, y, z)
    np.testing.assert_allclose(z, x.astype("float64") @ y, rtol=1e-5)
