"""`call_packed("print", ...)` in a kernel: the same lines from machine code and from the interpreter."""
import numpy as np
import pytest
from by_hand import func_of

import tilewright as tw
from tilewright import te, tir
from tilewright.script import tir as T
from tilewright.tir import Evaluate, For, IntImm, Var, cast, const, seq


def printing(*stmts_of):
    """A function of A: f32[8] whose body is the statements."""
    a, p = tir.decl_buffer((8,), "float32", "A"), Var("a", "handle")
    return func_of([a], (p,), seq([make(a) for make in stmts_of]))


def say(*values):
    return lambda a: Evaluate(te.call_packed("print", *[v(a) if callable(v) else v for v in values]))


def lines(func, capsys, run):
    x = np.linspace(0, 1.1, 8).astype("float32")
    capsys.readouterr()
    (tw.build(func) if run == "native" else lambda y: tir.run(func, y))(x)
    return capsys.readouterr().out.splitlines()


@pytest.mark.parametrize("run", ["native", "interpreter"])
def test_values_of_every_kind(capsys, run):
    func = printing(
        say("start"), say("i =", IntImm(3), const(-4, "int64"), const(True, "bool")),
        say("x =", lambda a: a[2], const(0.1, "float64"), const(0.1, "float32")),
        say("halves", lambda a: cast("float16", a[1]), lambda a: cast("bfloat16", a[1])),
        say("vector", lambda a: a.vload(0, "float32x4"), lambda a: cast("int32x4", a.vload(4, "float32x4") * 10.0)),
        say("%d: %.2f and %s, %5.1f%%", IntImm(3), lambda a: a[1], "text", const(12.5, "float32")),
        say(lambda a: a))
    assert lines(func, capsys, run) == [
        "start", "i = 3 -4 True", "x = 0.31428573 0.1 0.1", "halves 0.1571 0.157227",
        "vector [0.         0.15714286 0.31428573 0.47142857] [ 6  7  9 11]", "3: 0.16 and text,  12.5%",
        "[0.         0.15714286 0.31428573 0.47142857 0.62857145 0.78571427", " 0.94285715 1.1       ]"]


@pytest.mark.parametrize("run", ["native", "interpreter"])
def test_lines_come_in_the_order_of_the_program(capsys, run):
    i = Var("i", "int32")
    func = printing(say("begin"), lambda a: For(i, IntImm(0), IntImm(4), "serial", say("A", i, a[i])(a)), say("end"))
    out = lines(func, capsys, run)
    assert out[0] == "begin" and out[-1] == "end" and out[1:5] == [
        "A 0 0.0", "A 1 0.15714286", "A 2 0.31428573", "A 3 0.47142857"]


def test_threads_print_whole_lines(capsys):
    i = Var("i", "int32")
    func = printing(lambda a: For(i, IntImm(0), IntImm(8), "parallel", say("row", i)(a)))
    assert sorted(lines(func, capsys, "native")) == [f"row {k}" for k in range(8)]


def test_a_format_that_does_not_fit_raises(capsys):
    for run in ("native", "interpreter"):
        with pytest.raises(tw.TilewrightError, match=r"print: the format '%d %d' does not fit 1 value\(s\)"):
            lines(printing(say("%d %d", IntImm(1))), capsys, run)


def test_a_vector_reaches_any_packed_function_as_a_tensor():
    seen = []
    tw.register_func("tests.print.keep", seen.append, override=True)
    a, p = tir.decl_buffer((8,), "float32", "A"), Var("a", "handle")
    body = Evaluate(te.call_packed("tests.print.keep", a.vload(2, "float32x4")))
    tw.build(func_of([a], (p,), body))(np.arange(8, dtype="float32"))
    np.testing.assert_array_equal(seen[0].numpy(), [2, 3, 4, 5])      # it owns its memory: still there


@T.prim_func
def talk(A: T.Buffer((3,), "float32")):
    for i in range(3):
        T.print("A", i, A[i])
    T.print(A)


@pytest.mark.parametrize("run", ["native", "interpreter"])
def test_print_in_a_script(capsys, run):
    x = np.array([1, 2.5, -1], "float32")
    (tw.build(talk) if run == "native" else lambda y: tir.run(talk, y))(x)
    assert capsys.readouterr().out.splitlines() == ["A 0 1.0", "A 1 2.5", "A 2 -1.0", "[ 1.   2.5 -1. ]"]
