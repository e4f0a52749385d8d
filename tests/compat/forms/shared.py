"""What forms have in common: small programs, and checks of what they compute."""
import numpy as np

from tilewright.compat import tvm

te = tvm.te


def staged(n=8):
    """A schedule of B = A + 1, and its arguments."""
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] + 1, name="B")
    return te.create_schedule(B.op), [A, B]


def added(times, n=8):
    """A, A + 1, A + 1 + 1, ..."""
    tensors = [te.placeholder((n,), name="A")]
    for name in "BCDE"[:times]:
        tensors.append(te.compute((n,), lambda i, last=tensors[-1]: last[i] + 1, name=name))
    return tensors


def two_blocks():
    """C = B + 1, B = A + 1."""
    A, _, C = added(2)
    return te.create_prim_func([A, C])


def product():
    """B[i] = sum of A[i, k]."""
    A = te.placeholder((8, 6), name="A")
    k = te.reduce_axis((0, 6), name="k")
    return te.create_prim_func([A, te.compute((8,), lambda i: te.sum(A[i, k], axis=k), name="B")])


def run(func, *arrays):
    """The result in float32, of the shape of the last array, of a built function of these arrays."""
    out = np.zeros(arrays[-1].shape, "float32")
    func(*[np.asarray(a, "float32") for a in arrays], out)
    return out


def check_added(func):
    a = np.random.rand(8).astype("float32")
    np.testing.assert_allclose(run(func, a), a + 1, rtol=1e-6)


def check_product(func):
    a, b = np.random.rand(8, 6).astype("float32"), np.zeros(8, "float32")
    tvm.build(func)(a, b)
    np.testing.assert_allclose(b, a.sum(1), rtol=1e-5)


def parsed(body, parameters="A: T.Buffer((16,), 'float32')"):
    """A module of one function, main, with this body."""
    lines = "".join(f"    {line}\n" for line in body.split("\n"))
    return tvm.IRModule.from_expr(tvm.script.from_source(f"@T.prim_func\ndef main({parameters}):\n{lines}"))
