"""TVM's names: programs in the spellings of 2018 and of te, missing names, scripts under `tilewright tvm`."""
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import tilewright as tw
from tilewright.compat import tvm as ours


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
    import tilewright.compat.tvm as full
    import topi
    import tvm.runtime
    import tvm.testing
    from tilewright.compat.tvm import te as inner
    from tvm import nd, te, tir
    assert full is tvm is ours and inner is te is tvm.te and topi is tvm.topi
    assert nd.array is tvm.ndarray.array and tir.Select is not None and tvm.__file__
    assert "placeholder" in dir(tvm.te) and not [n for n in dir(tvm) if n.startswith("_") and n != "_ffi"]


# ---- names that are not there

MISSING = {
    "tvm.relay": "tilewright.graph", "tvm.te.gradient": "tilewright.graph.gradients",
    "tvm.hardware_intrin": "in no release",
    "tvm.plceholder": "did you mean placeholder", "tvm.te.Compute": "did you mean compute",
    "tvm.nd.Array": "did you mean array", "tvm.topi.cuda": "docs/topi.md lists",
    "tvm.topi.nn.conv2dd": "did you mean conv2d", "tvm.foo": r"dir\(tvm\)",
    "tvm.tir.transform.LowerAutoCopy": "tvm.lower runs all of them", "tvm.error.Nothing": r"dir\(tvm.error\)",
}


@pytest.mark.parametrize("name", MISSING)
def test_a_missing_name_says_what_to_use(tvm, name):
    with pytest.raises(AttributeError, match="does not exist in tilewright.compat.tvm") as caught:
        eval(name)
    assert caught.match(MISSING[name]) and not hasattr(tvm, "relay")


@pytest.mark.parametrize("statement, hint", [
    ("import tvm.relay", "tilewright.graph"), ("from tvm import relay", "tilewright.graph"),
    ("from tvm import te, autotvm", "write the schedule"),
    ("from tvm.contrib import mkl", "TILEWRIGHT_BLAS"),
    ("import tvm.te.autodiff", "gradients"),
    ("import tvm.foo", r"dir\(tvm\)"), ("from tvm import plceholder", "did you mean placeholder"),
])
def test_an_import_of_what_is_missing_says_what_to_use(tvm, statement, hint):
    with pytest.raises(ImportError, match="does not exist in tilewright.compat.tvm") as caught:
        exec(statement, {})
    assert caught.match(hint)


def test_other_imports_are_left_alone(tvm):
    with pytest.raises(ModuleNotFoundError, match="No module named 'tvmx'"):
        __import__("tvmx")
    assert getattr(tvm, "__nothing__", 3) == 3


# ---- scripts

SCRIPT = """
    import os
    import sys
    import helper
    import tvm
    from tvm import te

    print("args", sys.argv[1:], os.path.basename(sys.argv[0]), __name__, os.path.basename(__file__), helper.value)
    A = te.placeholder((4,), name="A")
    B = te.compute((4,), lambda i: A[i] + 1.0, name="B")
    f = tvm.build(te.create_schedule(B.op), [A, B], "llvm", name="f")
    x, y = tvm.nd.array([1.0, 2.0, 3.0, 4.0]).numpy().astype("float32"), tvm.nd.empty((4,))
    f(tvm.nd.array(x), y)
    print(y.asnumpy().tolist())
"""


def test_a_script_gets_its_arguments_and_its_folder(tmp_path):
    (tmp_path / "helper.py").write_text("value = 7\n")
    done = script(tmp_path, SCRIPT, "--epochs", "3", "-h", "x y")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["args ['--epochs', '3', '-h', 'x y'] script.py __main__ script.py 7",
                                        "[2.0, 3.0, 4.0, 5.0]"]


@pytest.mark.parametrize("line, code, message", [
    ("import sys; sys.exit(3)", 3, ""), ("raise SystemExit('no data')", 1, "no data\n"), ("exit()", 0, "")])
def test_a_script_chooses_its_exit_code(tmp_path, line, code, message):
    done = script(tmp_path, line)
    assert (done.returncode, done.stderr) == (code, message)


def test_a_script_that_fails_shows_its_own_traceback(tmp_path):
    done = script(tmp_path, """
        def work(n):
            return 1 // n

        work(0)
    """)
    lines = done.stderr.splitlines()
    assert done.returncode == 1 and lines[0].startswith("Traceback") and lines[-1].startswith("ZeroDivisionError")
    assert [line.split(", ")[0].strip() for line in lines if line.startswith("  File")] == [
        f'File "{tmp_path / "script.py"}"'] * 2


def test_a_script_that_is_not_python(tmp_path):
    done = script(tmp_path, "def broken(:")
    assert done.returncode == 1 and "SyntaxError" in done.stderr and "runpy" not in done.stderr


def test_a_script_that_asks_for_what_is_missing(tmp_path):
    done = script(tmp_path, "from tvm import relay")
    assert done.returncode == 1
    assert "ModuleNotFoundError: tvm.relay does not exist in tilewright.compat.tvm" in done.stderr
    assert "hint: Relay left TVM in 0.20; build the model with tilewright.graph" in done.stderr


def test_a_script_that_is_not_there(tmp_path):
    done = subprocess.run([sys.executable, "-m", "tilewright.cli.main", "tvm", "nowhere.py"], cwd=tmp_path,
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and "nowhere.py" in done.stderr and "Traceback" not in done.stderr
