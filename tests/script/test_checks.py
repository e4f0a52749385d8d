"""Assertions and attributes of scripts: what they parse to, and that assertions are checked when the kernel runs."""
from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tests.script.test_constructs import check, parse
from tilewright.script import from_source
from tilewright.script import tir as T
from tilewright.support.errors import CallError, InterpreterError, IRError, ScriptError
from tilewright.tir import interp
from tilewright.tir.assertion import assertion
from tilewright.tir.expr import Call, StringImm, Var
from tilewright.tir.stmt import Evaluate
from tilewright.tir.verify.types import type_mismatch


@T.prim_func
def roots(a: T.handle, n: T.int32):
    A = T.match_buffer(a, (n,), "float32")
    assert n % 4 == 0, "the length is a multiple of 4"
    T.Assert(n > 0, "there are elements")
    with T.Assert(n < 100):
        for i in range(n):
            with T.block("B"):
                vi = T.axis.spatial(n, i)
                assert A[vi] >= 0, "no element of the 100 % is negative"
                A[vi] = T.sqrt(A[vi])


CASES = [
    (np.arange(8), ""),
    (np.ones(7), r"roots: the length is a multiple of 4 \(n % 4 == 0 does not hold\)"),
    (np.ones(0), r"roots: there are elements \(n (> 0|>= 1) does not hold\)"),
    (np.ones(100), r"roots: the assertion n < (T\.int64\()?100\)? does not hold"),
    ([1, 2, 3, -4], r"roots: no element of the 100 % is negative \(A\[\w+( \* 4 \+ \w+)?\] >= T.float32\(0\) does not"),
]


def schedules():
    yield "as it is", tw.Schedule(roots)
    sch = tw.Schedule(roots)
    outer, inner = sch.split(sch.get_loops("B")[0], [None, 4])
    sch.parallel(outer)
    sch.vectorize(inner)
    yield "parallel and vectorised", sch
    sch = tw.Schedule(roots)
    sch.unroll(sch.split(sch.get_loops("B")[0], [None, 4])[1])
    yield "unrolled", sch


def test_assertions_are_checked_when_the_kernel_runs():
    for name, sch in schedules():
        runs = [(tw.build(sch), CallError), (lambda *args, func=sch.func: interp.run(func, *args), InterpreterError),
                (lambda *args, func=tw.lower(sch)["main"]: interp.run(func, *args), InterpreterError)]
        for run, error in runs:
            for values, message in CASES:
                x = np.array(values, "float32")
                if not message:
                    run(x, len(x))
                    np.testing.assert_allclose(x, np.sqrt(np.array(values, "float32")), err_msg=name)
                    continue
                with pytest.raises(error) as caught:
                    run(x, len(x))
                lowered = run is runs[-1][0]              # its indices are wide
                assert caught.match(message.split(r" \(")[0] if lowered else message)


def test_assertions_are_checked_under_the_rules():
    f = tw.compile(roots)
    x = np.arange(8, dtype="float32")
    f(x, 8)
    np.testing.assert_allclose(x, np.sqrt(np.arange(8)), rtol=1e-6)
    with pytest.raises(CallError, match="multiple of 4"):
        f(np.ones(5, "float32"), 5)


def test_the_first_assertion_that_fails_is_the_one_reported():
    with pytest.raises(CallError, match="multiple of 4"):
        tw.build(roots)(-np.ones(103, "float32"), 103)


def test_assertions_come_back_as_they_are():
    printed = 'T.Assert(n > 3, "more than 3")\nA[0, 0] = T.float32(1)'
    check(printed)
    check('assert n > 3, "more than 3"\nA[0, 0] = 1.0', printed)
    check('with T.Assert(n > 3, "more than 3"):\n    A[0, 0] = 1.0', printed)
    check('assert 4 > 3, "known"\nA[0, 0] = 1.0', "A[0, 0] = T.float32(1)")
    check('with T.Assert(4 > 3):\n    A[0, 0] = 1.0', "A[0, 0] = T.float32(1)")
    check('T.Assert(A[0, 0] > T.float32(0), "")')


def test_an_assertion_is_well_formed_or_refused():
    n = Var("n")
    assert isinstance(assertion(n > 0, StringImm("text")), Evaluate)
    with pytest.raises(IRError, match="the condition of an assertion is int32, not a bool"):
        assertion(n)
    assert type_mismatch(Call("Assert", (n, StringImm("")), "int32")) == "the condition is int32, not a bool"
    assert type_mismatch(Call("Assert", (n > 0, n), "int32")) == "the message is no text"


def test_threads_and_pragmas_as_attributes():
    launched = parse("""
        with T.launch_thread("threadIdx.x", 8) as tx:
            A[tx, 0] = 1.0
    """)
    parsed = parse("""
        tx = T.env_thread("threadIdx.x")
        with T.attr(tx, "thread_extent", 8):
            A[tx, 0] = 1.0
    """)
    after = parse("""
        tx = T.env_thread("threadIdx.x")
        T.attr(tx, "thread_extent", 8)
        A[tx, 0] = 1.0
    """)
    assert str(parsed) == str(launched) == str(after)
    func = parse("""
        with T.attr(0, "pragma_auto_unroll_max_step", 16):
            for i in range(8):
                A[i, 0] = 1.0
    """)
    assert func.body.annotations == {"pragma_auto_unroll_max_step": 16}


def test_buffer_store_is_an_assignment():
    check("T.buffer_store(A, 1, [n, 0])", "A[n, 0] = T.float32(1)")
    one = parse("T.buffer_store(A, T.exp(A[0, 0]), (0, 1))")
    assert str(one) == str(parse("A[0, 1] = T.exp(A[0, 0])"))


def test_a_storage_barrier_is_a_barrier():
    assert "T.sync(\"shared\")" in str(from_source(
        "@T.prim_func\ndef f(A: T.Buffer((8,), 'float32')):\n    T.tvm_storage_sync('shared')\n"))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_hypot_does_not_overflow_on_the_way(dtype):
    big = float(np.finfo(dtype).max) / 2
    tiny = float(np.finfo(dtype).tiny)
    values = [0.0, -0.0, 1.0, 3.0, -4.0, big, -big, tiny, np.inf, -np.inf, np.nan]
    x, y = (g.ravel().astype(dtype) for g in np.meshgrid(values, values))
    func = from_source(f"""@T.prim_func
def f(X: T.Buffer(({len(x)},), "{dtype}"), Y: T.Buffer(({len(x)},), "{dtype}"), Z: T.Buffer(({len(x)},), "{dtype}")):
    for i in range({len(x)}):
        Z[i] = T.hypot(X[i], Y[i])
""")
    out = np.zeros_like(x)
    tw.build(func)(x, y, out)
    want = np.hypot(x.astype("longdouble"), y.astype("longdouble")).astype(dtype)
    np.testing.assert_allclose(out.astype("float64"), want.astype("float64"), rtol=4 * np.finfo(dtype).eps)


def test_a_condition_that_is_no_condition():
    with pytest.raises(ScriptError, match="not a bool"):
        parse("assert n")
