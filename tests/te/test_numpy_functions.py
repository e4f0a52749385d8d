"""NumPy's functions, `math` and Python's conversions on expressions: operators work, the rest says what to use."""
import math
import operator

import numpy as np
import pytest

import tilewright as tw
from tilewright import te
from tilewright.support.errors import IRError

A = te.placeholder((4,), name="A")
N, K = te.var("n"), te.reduce_axis((0, 4), name="k")

REFUSED = [
    (lambda: np.exp(A[0]), r"np\.exp computes now.*te\.exp\(x\)"),
    (lambda: np.exp(K), r"te\.exp\(x\)"),
    (lambda: np.exp(A), r"te\.exp\(x\)"),
    (lambda: np.maximum(A[0], 0), r"te\.max\(a, b\)"),
    (lambda: np.maximum(0, A[0]), r"te\.max\(a, b\)"),
    (lambda: np.arctan2(A[0], A[1]), r"te\.atan2"),
    (lambda: np.logical_and(A[0] > 0, A[1] > 0), r"te\.all"),
    (lambda: np.sum(A[0]), r"np\.add\.reduce.*te\.sum\(A\[i, k\], axis=k\)"),
    (lambda: np.square(A[0]), r"x \* x"),
    (lambda: np.add(A[0], 1.0, out=np.zeros(1)), r"write a te\.compute"),
    (lambda: operator.iadd(np.zeros(2), A[0]), r"write a te\.compute"),
    (lambda: np.heaviside(A[0], 1.0), "the functions of expressions are in te"),
    (lambda: np.array([1.0, 2.0]) * A[0], "is not an expression"),
    (lambda: A[0] * np.array([1.0, 2.0]), "is not an expression"),
    (lambda: math.exp(A[0]), r"its value is known only when the kernel runs.*te\.exp"),
    (lambda: math.sqrt(N), r"te\.sqrt"),
    (lambda: math.floor(A[0]), "known only when the kernel runs"),
    (lambda: float(A[0]), r'astype\("float32"\)'),
    (lambda: float(A), r'astype\("float32"\)'),
    (lambda: int(A[0]), r'astype\("int32"\)'),
    (lambda: round(A[0]), r"te\.round\(x\)"),
    (lambda: np.float32(A[0]), "known only when the kernel runs"),
    (lambda: np.array(A[0], dtype="float32"), "known only when the kernel runs"),
    (lambda: 1 if A[0] > 0 else 2, "no truth value.*te.if_then_else"),
    (lambda: 1 if A[0] else 2, "no truth value"),
    (lambda: A[0] > 0 and A[1] > 0, "te.all"),
    (lambda: min(A[0], 3), "no truth value"),
    (lambda: np.clip(A[0], 0, 1), "no truth value|te.min"),
    (lambda: np.where(A[0] > 0, 1, 2), "te.if_then_else"),
]


@pytest.mark.parametrize("compute, message", REFUSED, ids=range(len(REFUSED)))
def test_what_computes_now_is_refused_with_what_to_use(compute, message):
    with pytest.raises(IRError) as caught:
        compute()
    assert caught.match("(?s)" + message)


def test_operators_with_numbers_of_numpy_are_those_of_expressions():
    x, n = np.arange(1, 5, dtype="float32"), np.arange(4)

    def values(expression):
        out = te.compute((4,), expression, name="out")
        f = tw.build(te.create_schedule(out.op), [A, out])
        result = np.zeros(4, out.dtype)
        f(x, result)
        return result

    two, five = np.float32(2), np.int32(5)
    for operate in (operator.add, operator.sub, operator.mul, operator.truediv, operator.pow, operator.lt, operator.le,
                    operator.gt, operator.ge, operator.eq, operator.ne):
        np.testing.assert_allclose(values(lambda i, f=operate: f(two, A[i])), operate(two, x), rtol=1e-6)
        np.testing.assert_allclose(values(lambda i, f=operate: f(A[i], two)), operate(x, two), rtol=1e-6)
    for operate in (operator.floordiv, operator.mod, operator.and_, operator.or_, operator.xor, operator.lshift,
                    operator.rshift):
        np.testing.assert_array_equal(values(lambda i, f=operate: f(five, i + 1)), operate(five, n + 1))
        np.testing.assert_array_equal(values(lambda i, f=operate: f(i, five)), operate(n, five))


def test_constants_are_numbers():
    extent = A.shape[0]
    assert float(extent) == 4.0 and int(extent) == 4 and math.sqrt(extent) == 2.0 and round(float(extent)) == 4
    assert np.prod(A.shape) == 4 and list(range(extent)) == [0, 1, 2, 3]
    assert float(te.const(2.5, "float32")) == 2.5
    assert (np.arange(3) == A[0]) is False and (np.arange(3) != A[0]) is True


@pytest.mark.parametrize("use", [lambda i: [1.0, 2.0][i], lambda i: (1, 2)[i + 1], lambda i: list(range(i)), hex])
def test_an_expression_is_no_index_of_python(use):
    with pytest.raises(IRError, match="an index of a Python sequence, or range.., of an expression(?s:.*)te.constant"):
        te.compute((2,), use)
