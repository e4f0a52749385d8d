"""Macros, and functions of Python that a script calls while it is parsed."""
from __future__ import annotations

import functools

import numpy as np
import pytest

import tilewright as tw
from tests.script.round_trip import assert_round_trip
from tilewright.script import from_source
from tilewright.script import tir as T
from tilewright.support.errors import ScriptError
from tilewright.tir import assert_structural_equal

at = 3


def ran(func, *arrays):
    """The arrays after func has run, natively and under the interpreter, which must agree."""
    native, oracle = ([a.copy() for a in arrays] for _ in range(2))
    tw.build(func)(*native)
    tw.tir.interp.run(func, *oracle)
    for a, b in zip(native, oracle, strict=True):
        np.testing.assert_array_equal(a, b)
    return native


@T.macro
def update(i, *loops, target, value=2.0, **others):
    vi, vk = T.axis.remap("SR", [i, loops[0]])
    with T.init():
        target[vi] = T.float32(0)
    target[vi] += others["source"][vi, vk] * value


def test_a_macro_in_a_block_defines_its_axes():
    @T.prim_func
    def rows(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4,), "float32")):
        for i, k in T.grid(4, 8):
            with T.block("B"):
                update(i, k, target=B, source=A)

    @T.prim_func
    def written(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4,), "float32")):
        T.func_attr({"global_symbol": "rows"})
        for i, k in T.grid(4, 8):
            with T.block("B"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    B[vi] = T.float32(0)
                B[vi] += A[vi, vk] * 2.0

    assert_structural_equal(rows, written)
    assert_round_trip(rows)
    a = np.arange(32, dtype="float32").reshape(4, 8)
    assert (ran(rows, a, np.zeros(4, "float32"))[1] == 2 * a.sum(1)).all()


@T.macro(hygienic=True)
def at_definition(A, B):
    B[0] = A[at]


@T.macro(hygienic=False)
def at_call(A, B):
    B[1] += A[at]


def test_hygiene_says_whose_names_a_macro_sees():
    @T.prim_func
    def f(A: T.Buffer((8,), "int32"), B: T.Buffer((2,), "int32")):
        B[1] = 0
        for at in range(8):    # noqa: B007
            at_definition(A, B)
            at_call(A, B)

    a = np.array([1, 2, 4, 8, 16, 32, 64, 128], "int32")
    assert ran(f, a, np.zeros(2, "int32"))[1].tolist() == [8, 255]


def test_names_of_a_macro_end_with_it():
    @T.macro(hygienic=False)
    def twice(B, x):
        y = x * 2
        B[0] = y

    @T.prim_func
    def f(B: T.Buffer((2,), "int32"), n: T.int32):
        y = n + 1
        twice(B, n)
        B[1] = y
    b = np.zeros(2, "int32")
    tw.build(f)(b, 5)
    assert b.tolist() == [10, 6]


def test_macros_call_macros_and_stand_in_texts():
    func = from_source('''
from tvm.script import tir as T

@T.macro
def store(A, i, x):
    A[i] = x

@T.macro(hygienic=False)
def both(x):
    store(A, 0, x)
    store(A, 1, x + 1)

@T.prim_func
def f(A: T.Buffer((2,), "int32")):
    both(6)
''')
    assert ran(func, np.zeros(2, "int32"))[0].tolist() == [6, 7]


def lerp(a, b, t=0.5):
    return a * (1.0 - t) + b * t


def window(A, i, size):
    return functools.reduce(lambda x, y: x + y, [A[i + k] for k in range(size)])


def test_functions_of_python_give_expressions():
    blend = functools.partial(lerp, t=0.25)

    @T.prim_func
    def f(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32"), C: T.Buffer((6,), "float32")):
        for i in range(6):
            C[i] = window(A, i, 3) + blend(A[i], B[i])

    a, b = (np.arange(8, dtype="float32") * s for s in (1, 8))
    expected = a[:6] + a[1:7] + a[2:] + 0.75 * a[:6] + 0.25 * b[:6]
    np.testing.assert_allclose(ran(f, a, b, np.zeros(6, "float32"))[2], expected)
    assert_round_trip(f)


def test_a_form_of_T_under_another_name():
    allocate = T.alloc_buffer

    @T.prim_func
    def f(A: T.Buffer((4,), "float32")):
        B = allocate((4,), "float32")
        for i in range(4):
            with T.block("B"):
                v = T.axis.spatial(4, i)
                B[v] = 1.0
                A[v] = B[v]
    assert "B = T.alloc_buffer((4,)" in str(f)


TEXT = "@T.macro\ndef fill(A, i):\n    A[i] = {}\n@T.prim_func\ndef f(A: T.Buffer((4,), 'int32')):\n    {}"


@pytest.mark.parametrize(("text", "said"), [
    (TEXT.format(1, "fill(A)"), "missing a required argument: 'i'"),
    (TEXT.format("i.x", "fill(A, 0)"), "has no attribute 'x'|int"),
    (TEXT.format(1, "A[0] = fill(A, 0)"), r"the macro fill stands for statements(.|\n)*hint: a macro stands on a line"),
    (TEXT.format(1, "A[0] = T.exp.fn(1.0)"), "cannot be called in a script"),
    (TEXT.format("n", "fill(A, 4)"), r"<script>:3: the name 'n' is not defined here"),
    ("@T.macro\ndef f(A):\n    f(A)\n@T.prim_func\ndef g(A: T.Buffer((4,), 'int32')):\n    f(A)", "too deeply"),
])
def test_wrong_calls_of_macros(text, said):
    with pytest.raises(ScriptError, match=said):
        from_source(text)


def test_a_macro_is_called_in_scripts_only():
    with pytest.raises(ScriptError, match="the macro update was called outside a script"):
        update(1)
    with pytest.raises(ScriptError, match="@T.macro stands on a function, not on"):
        T.macro(3)


def _copies(Y, X, i):
    Y[i] = X[i]


def _exponent(x):
    return np.exp(x)


def _stores_by_python():
    @T.prim_func
    def f(X: T.Buffer((8,), "float32"), Y: T.Buffer((8,), "float32")):
        for i in range(8):
            _copies(Y, X, i)


def _numpy_by_python():
    @T.prim_func
    def f(X: T.Buffer((8,), "float32")):
        for i in range(8):
            X[i] = _exponent(X[i])


def _numpy():
    @T.prim_func
    def f(X: T.Buffer((8,), "float32")):
        for i in range(8):
            X[i] = np.exp(X[i])


def _numpy_of_another_name():
    @T.prim_func
    def f(X: T.Buffer((8,), "float32")):
        for i in range(8):
            X[i] = np.maximum(X[i], 0)


@pytest.mark.parametrize(("wrong", "hint"), [
    (_stores_by_python, "a helper function gives a value; statements go under @T.macro"),
    (_numpy_by_python, "T.exp(x)"), (_numpy, "write T.exp"), (_numpy_of_another_name, "write T.max(a, b)"),
])
def test_hints_for_python_in_a_script(wrong, hint):
    with pytest.raises(ScriptError) as caught:
        wrong()
    assert f"\n\nhint: {hint}" in str(caught.value)


def test_an_error_comes_without_the_calls_of_the_parser():
    with pytest.raises(ScriptError) as caught:
        _numpy_by_python()
    frames = [entry.name for entry in caught.traceback]
    assert frames == ["test_an_error_comes_without_the_calls_of_the_parser", "_numpy_by_python", "prim_func",
                      "parse_function"]
    assert caught.value.__cause__ is None and caught.value.__suppress_context__
