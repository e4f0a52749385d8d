"""TVM's names: programs in the spellings of 2018 and of te, missing names, scripts under `tilewright tvm`."""
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import tilewright as tw
from tilewright.compat import namespace
from tilewright.compat import tvm as ours


@pytest.fixture
def tvm():
    """`import tvm` means ours in this test."""
    before, path = dict(sys.modules), list(sys.meta_path)
    namespace.install()
    import tvm
    yield tvm
    for name in [n for n in sys.modules if n.split(".")[0] in ("tvm", "topi")]:
        del sys.modules[name]
    sys.modules.update({n: m for n, m in before.items() if n.split(".")[0] in ("tvm", "topi")})
    sys.meta_path[:] = path


def script(tmp_path, text, *args, name="script.py"):
    """The finished process of a script under `tilewright tvm`."""
    path = tmp_path / name
    path.write_text(textwrap.dedent(text))
    return subprocess.run([sys.executable, "-m", "tilewright.cli.main", "tvm", str(path), *args], cwd=tmp_path,
                          capture_output=True, text=True, timeout=60)


# ---- programs in process

def test_the_spelling_of_2018(tvm):
    n = tvm.var("n")
    a, b = tvm.placeholder((n,), name="A"), tvm.placeholder((n,), name="B")
    c = tvm.compute((n,), lambda i: a[i] + b[i], name="C")
    s = tvm.create_schedule(c.op)
    xo, xi = s[c].split(c.op.axis[0], factor=32)
    s[c].vectorize(xi)
    s[c].parallel(xo)
    print(tvm.lower(s, [a, b, c], simple_mode=True))
    f = tvm.build(s, [a, b, c], "llvm", target_host="llvm", name="add")
    ctx = tvm.context("llvm", 0)
    x, y = (tvm.nd.array(np.random.rand(100).astype("float32"), ctx=ctx) for _ in range(2))
    z = tvm.nd.empty((100,), "float32", ctx)
    f(x, y, z)
    np.testing.assert_array_equal(z.asnumpy(), x.asnumpy() + y.asnumpy())
    assert ctx == tvm.cpu(0) and f.time_evaluator("add", ctx, number=2)(x, y, z).mean > 0


def test_the_spelling_of_te(tvm):
    from tvm import te
    m, k = te.size_var("m"), te.reduce_axis((0, 8), name="k")
    a = te.placeholder((m, 8), name="A", dtype="float32")
    b = te.compute((m,), lambda i: te.sum(a[i, k], axis=k), name="B")
    c = te.compute((m,), lambda i: te.max(0, b(i)) + tvm.tir.const(1, "float32"), name="C")
    s = te.create_schedule(c.op)
    s[b].compute_at(s[c], s[c].op.axis[0])
    lib = tvm.build(s, [a, c], target=tvm.target.Target("llvm -mcpu=native", host="llvm"), name="f")
    x, y = tvm.nd.array(np.random.randn(5, 8).astype("float32"), tvm.device("cpu", 0)), tvm.nd.empty((5,))
    lib["f"](x, y)
    tvm.testing.assert_allclose(y.numpy(), np.maximum(x.numpy().sum(1), 0) + 1, rtol=1e-5)
    assert lib.entry_name == "f" and isinstance(x, tvm.nd.NDArray) and isinstance(x, tvm.runtime.NDArray)


def test_block_schedules(tvm):
    a = tvm.te.placeholder((16, 16), name="A")
    b = tvm.te.compute((16, 16), lambda i, j: a[i, j] * 2.0, name="B")
    sch = tvm.tir.Schedule(tvm.te.create_prim_func([a, b]), debug_mask="all")
    i, j = sch.get_loops(sch.get_block("B"))
    _, inner = sch.split(j, factors=[None, 4])
    sch.vectorize(inner)
    f = tvm.build(sch.mod, target="llvm")
    x, y = np.random.rand(16, 16).astype("float32"), np.zeros((16, 16), "float32")
    f(x, y)
    np.testing.assert_array_equal(y, 2 * x)
    assert isinstance(sch.mod, tvm.IRModule) and tvm.ir.structural_equal(sch.mod["main"], sch.mod["main"])


def test_errors_are_those_of_tvm(tvm):
    from tvm import te
    a = te.placeholder((4, 5), name="A")
    k = te.reduce_axis((0, 5), name="k")
    with pytest.raises(tvm.error.InternalError, match="Reductions are only allowed at the top level of compute"):
        te.compute((4,), lambda i: te.sum(a[i, k], axis=k) + 1.0)
    c = te.compute((4, 5), lambda i, j: a[i, j], name="C")
    f = tvm.build(te.create_schedule(c.op), [a, c], "llvm", name="copy")
    with pytest.raises(tvm._ffi.base.TVMError, match=r"copy: argument A.shape\[0\] is 3, expected 4"):
        f(np.zeros((3, 5), "float32"), np.zeros((4, 5), "float32"))
    assert tvm.TVMError is tvm.error.TVMError is tw.TilewrightError


def test_packed_functions(tvm):
    @tvm.register_func("tests.compat.twice", override=True)
    def twice(x):
        return 2 * x

    assert tvm.get_global_func("tests.compat.twice")(21) == 42
    tvm._ffi.register_func("tests.compat.twice", lambda x: 3 * x, override=True)
    assert tvm.get_global_func("tests.compat.twice")(2) == 6


def test_devices(tvm):
    assert tvm.cpu(0) == tvm.nd.cpu(0) == tvm.device("llvm", 0) == tvm.context("llvm -mcpu=native", 0)
    assert tvm.runtime.enabled("llvm") and not tvm.runtime.enabled("cuda")
    assert tvm.cuda(0) == tvm.gpu(0)


def test_modules_are_found_under_every_name(tvm):
    import topi
    import tvm.te.create_prim_func if False else None  # noqa
    assert topi is tvm.topi
