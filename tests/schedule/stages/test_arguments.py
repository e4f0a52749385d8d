"""The arguments of a scheduled function: inlined ones, outputs that are none, variables that nothing binds."""
from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright import te
from tilewright.support.errors import ScheduleError, TensorExpressionError


def chain(n=8):
    a = te.placeholder((n,), name="A")
    b = te.compute((n,), lambda i: a[i] + 1, name="B")
    c = te.compute((n,), lambda i: b[i] * 2, name="C")
    return a, b, c


@pytest.mark.parametrize("n", [8, te.var("n")])
def test_an_inlined_argument_stays_as_it_was(n):
    a, b, c = chain(n)
    s = te.create_schedule(c.op)
    s[b].compute_inline()
    x, y, z = np.arange(8, dtype="float32"), np.full(8, 7, "float32"), np.empty(8, "float32")
    tw.build(s, [a, b, c])(x, y, z)
    np.testing.assert_array_equal(z, (x + 1) * 2)
    np.testing.assert_array_equal(y, 7)
    assert s.fingerprint([a, b, c]) != s.fingerprint([a, c])
    assert "for i in range(8)" not in str(s.replay([a, b, c])) or n == 8


def test_an_argument_that_is_computed_is_written():
    a, b, c = chain()
    x, y, z = np.arange(8, dtype="float32"), np.full(8, 7, "float32"), np.empty(8, "float32")
    tw.build(te.create_schedule(c.op), [a, b, c])(x, y, z)
    np.testing.assert_array_equal(y, x + 1)


def test_an_output_that_is_no_argument_is_memory_of_the_function():
    a, b, c = chain()
    text = str(tw.lower(te.create_schedule(c.op), [a], simple_mode=True))
    assert "C = T.decl_buffer" in text and "A_1[i] + T.float32(1)" in text
    both = te.create_schedule([b.op, c.op])
    x, y = np.arange(8, dtype="float32"), np.empty(8, "float32")
    tw.build(both, [a, b])(x, y)                          # one of two outputs
    np.testing.assert_array_equal(y, x + 1)


def test_a_function_without_results_is_not_built():
    a, b, c = chain()
    s = te.create_schedule(c.op)
    s[b].compute_inline()
    for args in ([a], [a, b]):
        with pytest.raises(ScheduleError, match="the function would have no result: none of its arguments"):
            tw.build(s, args)
        assert tw.lower(s, args).functions


def test_an_external_function_is_called_without_an_argument_for_its_result():
    seen = []
    tw.register_func("test.arguments.note", lambda x, y: seen.append(x.numpy().copy()), override=True)
    a = te.placeholder((4,), name="A")
    y = te.extern((1,), [a], lambda ins, outs: te.call_packed("test.arguments.note", ins[0], outs[0]), name="Y")
    tw.build(te.create_schedule(y.op), [a])(np.arange(4, dtype="float32"))
    np.testing.assert_array_equal(seen, [[0, 1, 2, 3]])


def test_a_variable_that_nothing_binds_is_a_parameter_of_what_is_looked_at():
    n = te.var("n")
    a = te.placeholder((8,), name="A")
    b = te.compute((8,), lambda i: a[i] * n, name="B")
    s = te.create_schedule(b.op)
    lowered = tw.lower(s, [a, b])["default_function"]
    assert lowered.params[2] is n
    with pytest.raises(TensorExpressionError, match="the variable n is bound by no argument"):
        tw.build(s, [a, b])
    with pytest.raises(TensorExpressionError, match="the variable n is bound by no argument"):
        te.create_prim_func([a, b])


def test_an_override_of_the_type_of_indices_changes_nothing():
    a, _, c = chain()
    plain = te.create_prim_func([a, c])
    for dtype in (None, "int32", "int64"):
        assert tw.tir.structural_equal(te.create_prim_func([a, c], dtype), plain)
    with pytest.raises(TensorExpressionError, match="index_dtype_override is 'mm', not int32 or int64"):
        te.create_prim_func([a, c], "mm")
