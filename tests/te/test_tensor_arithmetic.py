"""Arithmetic of whole tensors: shapes, meaning, tags, refusals."""
from __future__ import annotations

import operator

import numpy as np
import pytest

import tilewright as tw
from tilewright import te
from tilewright.support.errors import CallError, TensorExpressionError, TilewrightError


def value(result, inputs):
    """What the tensor `result` is for inputs, by tensor."""
    out = np.empty([d.value for d in result.shape], result.dtype)
    tw.build(te.create_schedule(result.op), [*inputs, result])(*inputs.values(), out)
    return out


def tensors(dtype="float32", **shapes):
    """Placeholders by name, with values."""
    rng = np.random.default_rng(0)
    return {te.placeholder(shape, dtype, name=name): rng.integers(1, 9, shape).astype(dtype)
            for name, shape in shapes.items()}


OPERATORS = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "//": operator.floordiv,
             "%": operator.mod}
SHAPES = [((4, 5), (4, 5)), ((4, 5), (4, 1)), ((5,), (4, 5)), ((1, 5), (3, 4, 1)), ((1,), (6,)), ((1, 1), (1, 1))]


@pytest.mark.parametrize("a, b", SHAPES, ids=str)
@pytest.mark.parametrize("sign", OPERATORS)
def test_two_tensors_are_broadcast(sign, a, b):
    inputs = tensors("int32" if sign in ("//", "%") else "float32", A=a, B=b)
    (x, y), (u, v) = inputs, inputs.values()
    result = OPERATORS[sign](x, y)
    expected = OPERATORS[sign](u, v)
    assert tuple(d.value for d in result.shape) == expected.shape and result.op.tag == "broadcast"
    np.testing.assert_array_equal(value(result, inputs), expected)


@pytest.mark.parametrize("scalar", [2, 2.5, np.float32(3), te.const(4.0, "float32")], ids=str)
def test_a_scalar_stands_on_either_side(scalar):
    inputs = tensors(A=(4, 5))
    (a,), (x,) = inputs, inputs.values()
    number = getattr(scalar, "value", scalar)
    for result, expected in ((a - scalar, x - np.float32(number)), (scalar - a, np.float32(number) - x),
                             (scalar / a, np.float32(number) / x)):
        assert result.op.tag == "elemwise" and [iv.var.name for iv in result.op.axis] == ["ax0", "ax1"]
        np.testing.assert_array_equal(value(result, inputs), expected)


@pytest.mark.parametrize("sign", [operator.add, operator.sub, operator.mul, operator.truediv])
def test_an_array_stands_on_either_side(sign):
    A = te.placeholder((2, 3), name="A")
    a, row = np.arange(1, 7, dtype="float32").reshape(2, 3), np.array([2, 4, 8], "float32")
    for tensor, expected in ((sign(A, row), sign(a, row)), (sign(row, A), sign(row, a))):
        out = np.empty((2, 3), "float32")
        tw.compile([A, tensor])(a, out)
        np.testing.assert_array_equal(out, expected)
    assert (A + np.ones(3)).dtype == "float64"
    with pytest.raises(TensorExpressionError, match=r"the shapes \(2, 3\) and \(2,\) do not fit"):
        A + np.ones(2)


def test_a_tensor_without_dimensions_is_its_element():
    inputs = tensors(A=(4,), s=())
    a, s = inputs
    x, y = inputs.values()
    np.testing.assert_array_equal(value(a * s, inputs), x * y)
    scaled = te.compute((4,), lambda i: a[i] * (s + 1))
    np.testing.assert_array_equal(value(scaled, inputs), x * (y + 1))


def test_signs_and_conversions():
    inputs = tensors(A=(4, 5))
    (a,), (x,) = inputs, inputs.values()
    np.testing.assert_array_equal(value(-a, inputs), -x)
    converted = (a / 3).astype("int32")
    assert converted.dtype == "int32" and converted.op.name == "T_cast"
    np.testing.assert_array_equal(value(converted, inputs), (x / np.float32(3)).astype("int32"))


def test_normalisation_is_written_as_in_numpy_and_inlined():
    from tilewright.compat.te_schedule import auto_inline_broadcast
    inputs = tensors(X=(6, 4), mean=(6, 1), scale=(4,))
    x, mean, scale = inputs
    result = (x - mean) * scale / 2 + 1
    s = te.create_schedule(result.op)
    auto_inline_broadcast(s)
    assert [stage.op.name for stage in s.stages if stage.is_inlined] == ["T_subtract", "T_multiply", "T_divide"]
    u, m, k = inputs.values()
    out = np.empty((6, 4), "float32")
    tw.build(s, [*inputs, result])(u, m, k, out)
    np.testing.assert_allclose(out, (u - m) * k / 2 + 1, rtol=1e-6)


def test_extents_of_which_one_is_symbolic_must_be_equal():
    n, m = te.var("n"), te.var("m")
    a, b, c = (te.placeholder((d,), name=name) for d, name in ((n, "A"), (4, "B"), (m, "C")))
    assert str((a + a).shape[0]) == "n" and (a + b).shape[0].value == 4 and str((a + c).shape[0]) == "T.max(n, m)"
    f = tw.build(te.create_schedule((result := a + b).op), [a, b, result])
    x, out = np.arange(4, dtype="float32"), np.empty(4, "float32")
    f(x, x, out)
    np.testing.assert_array_equal(out, 2 * x)
    with pytest.raises(CallError):
        f(x[:3].copy(), x, out)


def test_a_scope_gives_the_tag():
    a = te.placeholder((4,), name="A")
    with te.tag_scope("mine"):
        assert (a + a).op.tag == (a * 2).op.tag == "mine"


@pytest.mark.parametrize("wrong, message", [
    (lambda a: a + te.placeholder((3, 5), name="B"), r"A \+ B: the shapes \(4, 5\) and \(3, 5\) do not fit"),
    (lambda a: a < 1, r"tensor A of shape \(4, 5\) is used as a number"),
    (lambda a: a & a, "is used as a number"),
    (lambda a: te.exp(a), "is used as a number"),
    (lambda a: a + "x", "the operand 'x' is a string"),
    (lambda a: a.astype("int32") / 2, "`/` on int32 is ambiguous"),
    (lambda a: a[0] + 1, r"A has 2 dimension\(s\), 1 index"),
])
def test_what_has_no_meaning_is_refused(wrong, message):
    with pytest.raises(TilewrightError, match=message):
        wrong(te.placeholder((4, 5), name="A"))


def test_axes_that_a_function_takes_by_star_have_names():
    a = te.placeholder((2, 3, 4), name="A")
    def axes(*more, **options):
        return [iv.var.name for iv in te.compute((2, 3, 4), *more, **options).op.axis]
    assert axes(lambda *i: a(*i)) == ["i0", "i1", "i2"]
    assert axes(lambda row, *i: a(row, *i)) == ["row", "i0", "i1"]
    assert axes(lambda row, *i: a(row, *i), varargs_names=["x", "y"]) == ["row", "x", "y"]
    with pytest.raises(TensorExpressionError, match=r"has 1 name\(s\), 2 are needed"):
        axes(lambda row, *i: a(row, *i), varargs_names=["x"])
    with pytest.raises(TensorExpressionError, match=r"3 dimension\(s\), the function takes 4"):
        axes(lambda p, q, r, t, *i: a(p, q, r))
