"""Decorators: what a function takes from the Python around it, modules, showing, TVM's names."""
from __future__ import annotations

import subprocess
import sys
import types

import numpy as np
import pytest

import tilewright as tw
from tests.script import annotated_early
from tests.script.round_trip import assert_round_trip
from tilewright import te, tir
from tilewright.compat import tvm
from tilewright.script import from_source, ir, ir_module, relax
from tilewright.script import tir as T

N = 4
DTYPE = "float32"
CONFIG = types.SimpleNamespace(rows=6)


def test_globals_and_closures():
    step = 2

    @T.prim_func
    def f(A: T.Buffer((N * 2,), DTYPE), B: T.Buffer((CONFIG.rows,), DTYPE)):
        for i in range(CONFIG.rows // step):
            if step == 2:
                B[i * step] = A[i] * N
            else:
                B[i] = undefined      # noqa: F821

    assert str(f.buffers[0].shape) == "(8,)" and "B[i * 2] = A[i] * T.float32(4)" in str(f)
    assert f.name == "f" and f.attrs == {"global_symbol": "f"}
    assert_round_trip(f)


@pytest.mark.parametrize("n", [3, 5])
def test_annotations_that_python_has_evaluated_see_local_names(n):
    f = annotated_early.make(n)                         # a file without `from __future__ import annotations`
    assert str(f.buffers[0].shape) == f"({n},)"


def test_variables_of_the_environment():
    m = te.var("m")

    @T.prim_func
    def f(a: T.handle, b: T.handle):
        A = T.match_buffer(a, (m,), "float32")
        B = T.match_buffer(b, (m,), "float32")
        for i in T.serial(m):
            with T.block("B"):
                vi = T.axis.spatial(m, i)
                B[vi] = A[vi]

    assert f.buffers[0].shape[0] is m
    assert_round_trip(f)


def test_modules_of_a_class():
    @ir_module
    class Module:
        """Two kernels."""
        @T.prim_func
        def first(A: T.Buffer[(N,), DTYPE]):
            A[0] = 1

        @T.prim_func(private=True)
        def second(A: T.Buffer[N, DTYPE]):
            A[1] = 1

    assert list(Module.functions) == ["first", "second"] and "global_symbol" not in Module["second"].attrs
    assert_round_trip(Module)
    assert ir.ir_module is ir_module


def test_a_script_is_scheduled_and_built():
    @T.prim_func
    def matmul(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16, 16), "float32"), C: T.Buffer((16, 16), "float32")):
        for i, j, k in T.grid(16, 16, 16):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = 0.0
                C[vi, vj] += A[vi, vk] * B[vk, vj]

    sch = tw.Schedule(matmul)
    i, j, k = sch.get_loops("C")
    jo, ji = sch.split(j, factors=[None, 8])
    sch.reorder(i, jo, k, ji)
    sch.vectorize(ji)
    assert_round_trip(sch.func)
    again = from_source(sch.func.script())
    a, b = np.random.default_rng(0).random((2, 16, 16), "float32")
    for func in (matmul, sch.func, again):
        c = np.empty((16, 16), "float32")
        tw.build(func, target="llvm")["matmul"](a, b, c)
        np.testing.assert_allclose(c, a.astype("float64") @ b, rtol=1e-5)


def test_loops_without_blocks_are_built_too():
    @T.prim_func
    def cumsum(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        B[0] = A[0]
        for i in range(1, 8):
            B[i] = B[i - 1] + A[i]

    a, b = np.arange(8, dtype="float32"), np.empty(8, "float32")
    tw.build(cumsum, target="llvm")["cumsum"](a, b)
    np.testing.assert_array_equal(b, np.cumsum(a))
    assert_round_trip(cumsum)
    assert_round_trip(tw.lower(cumsum))


def test_names_of_tvm():
    assert tvm.script.tir is T and tvm.script.ir_module is ir_module
    text = "@T.prim_func\ndef f(A: T.Buffer((8,), \"float32\")):\n    A[0] = 1.0"
    assert tir.structural_equal(tvm.script.from_source(text), from_source(text))
    assert tvm.ir.module.IRModule is tir.IRModule and tvm.script.ir.ir_module is ir_module
    assert tvm.script.relax.function is not relax.function and tvm.script.relax.Tensor((2,)).ndim == 1


def test_show_in_a_pipe_is_plain(capsys):
    func = from_source("@T.prim_func\ndef f(n: T.int32):\n    T.evaluate(n)")
    func.show()
    tir.IRModule({"f": func}).show()
    assert capsys.readouterr().out == f"{func}\n{tir.IRModule({'f': func})}\n"


def test_show_in_a_terminal_is_coloured(capsys, monkeypatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")
    func = from_source("@T.prim_func\ndef f(n: T.int32):\n    T.evaluate(n)")
    func.show()
    out = capsys.readouterr().out
    assert "\x1b[" in out and "prim_func" in out


def test_show_in_a_notebook_is_html(monkeypatch):
    shown = []

    class ZMQInteractiveShell:
        pass

    display = types.SimpleNamespace(HTML=lambda text: text, display=shown.append)
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=ZMQInteractiveShell, display=display))
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    func = from_source("@T.prim_func\ndef f(n: T.int32):\n    T.evaluate(n)")
    func.show()
    assert shown == [func._repr_html_()] and "<span" in shown[0] and "prim_func" in shown[0]


def test_the_parser_loads_nothing_heavy():
    code = ("import sys, tilewright.script; "
            "print([m for m in ('rich', 'pygments', 'IPython', 'torch') if m in sys.modules])")
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
