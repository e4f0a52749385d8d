"""What a tensor expression is, and what is refused where it is written."""
from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright import te, tir
from tilewright.script import from_source
from tilewright.support.errors import IRError, ScriptError, TensorExpressionError, TilewrightError
from tilewright.tir import interp

A = te.placeholder((4, 5), name="A")
N = te.var("n")
K = te.reduce_axis((0, 5), name="k")


def test_placeholder_has_shape_dtype_and_name():
    assert (A.dtype, A.ndim, [int(d) for d in A.shape], A.op.name, A.name) == ("float32", 2, [4, 5], "A", "A")
    assert repr(A) == "Tensor(shape=[4, 5], op.name=A)"
    assert te.placeholder((2,)).op.name == "placeholder"
    assert te.placeholder((np.int64(3), 2), dtype=np.float64).dtype == "float64"
    assert [d.dtype for d in te.placeholder((np.int64(3), 2)).shape] == ["int32", "int32"]


def test_axes_are_named_after_the_function():
    def names(tensor):
        return [iv.var.name for iv in (*tensor.op.axis, *tensor.op.reduce_axis)]
    assert names(te.compute((4, 5), lambda *i: A(*i))) == ["i0", "i1"]
    assert names(te.compute((4,), lambda row: te.sum(A[row, K], axis=K))) == ["row", "k"]
    assert names(te.compute((1,), lambda _: 0.0)) == ["_"]


def test_numbers_take_the_type_of_the_tensor():
    x = te.placeholder((3,), "float16", "x")
    assert te.compute((3,), lambda i: te.max(0, x[i])).dtype == "float16"
    assert te.compute((3,), lambda i: x[i] * np.float64(2.5) / 3).dtype == "float16"
    assert te.compute((3,), lambda _: 1).dtype == "int32"
    assert te.compute((3,), lambda i: x[i] > 0).dtype == "bool"


def test_tensors_are_dictionary_keys_and_zero_d_tensors_are_numbers():
    total = te.compute((), lambda: A[0, 0], name="total")
    assert total.shape == () and {total: 1}[total] == 1 and total != A and total in [A, total]
    assert te.compute((4,), lambda i: A[i, 0] / total).dtype == "float32"
    assert A[1][2].dtype == "float32"


def test_shapes_compare_by_structure():
    b = te.placeholder((N, 5), name="b")
    assert A.shape[1] == b.shape[1] and b.shape[0] == N and not bool(b.shape[0] == A.shape[0])


def test_several_outputs_share_one_operation():
    double, square = te.compute((4, 5), lambda i, j: (A[i, j] * 2.0, A[i, j] * A[i, j]), name="both")
    assert double.op is square.op and (double.value_index, square.value_index) == (0, 1)
    assert square.name == "both.v1" and square.op.output(1) is square


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min"])
def test_a_reduction_prints_with_the_name_of_its_reducer(name):
    assert str(getattr(te, name)(A[0, K], axis=K)).startswith(f"{name}(")
    with pytest.raises(TensorExpressionError, match=rf"write te\.{name}\("):
        getattr(te, name)(A[0, K])


@pytest.mark.parametrize("body", [
    lambda i: -te.sum(A[i, K], axis=K), lambda i: te.sum(A[i, K], axis=K) / 4.0,
    lambda i: 1.0 + te.max(A[i, K], axis=K), lambda i: te.log(te.sum(A[i, K], axis=K)),
    lambda i: te.sum(te.sum(A[i, K], axis=K), axis=te.reduce_axis((0, 2)))])
def test_reductions_are_top_level(body):
    text = ("Reductions are only allowed at the top level of compute. "
            "Please create another tensor for further composition")
    with pytest.raises(TensorExpressionError, match=text):
        te.compute((4,), body)


@pytest.mark.parametrize("wrong, message", [
    (lambda: te.compute((1,), lambda: 0.0), r"1 dimension\(s\), the function takes 0"),
    (lambda: te.compute((4,), lambda i, j: A[i, j]), r"1 dimension\(s\), the function takes 2"),
    (lambda: te.compute((4,), lambda i: A[i, 0, 0]), r"A has 2 dimension\(s\), 3 index"),
    (lambda: te.compute((4,), lambda i: A(i)), r"A has 2 dimension\(s\), 1 index"),
    (lambda: te.compute((4,), lambda i: A[i] + 1.0), r"A has 2 dimension\(s\), 1 index"),
    (lambda: te.compute((4,), lambda i: A * 2.0), r"tensor T_multiply of shape \(4, 5\) is used as a number"),
    (lambda: te.compute((4,), lambda i: A[i, 5]), r"index 5 of dimension 1 is outside the shape \(4, 5\)"),
    (lambda: te.compute((4,), lambda i: A[-1, i]), "index -1 of dimension 0 is outside"),
    (lambda: te.compute((4,), lambda i: A[i, 1.5]), "index 1 is float32, not an integer"),
    (lambda: te.compute((4,), lambda i: A[i, :2]), "index 1 is a slice"),
    (lambda: te.compute((4,), lambda i: A[i, K]), "reduction axis k is used outside a reduction over it"),
    (lambda: te.compute((4,), lambda i: te.sum(A[i, K], axis=i)), "not a reduction axis"),
    (lambda: te.compute((4,), lambda i: te.sum(A[i, K], axis=0)), "axis 0 is not a reduction axis"),
    (lambda: te.compute((4,), lambda i: te.sum(A[i, K], axis=[K, K])), "k is given twice"),
    (lambda: te.compute((4,), lambda i: te.sum(A[i, K], axis=[])), "no reduction axis"),
    (lambda: te.sum(A[0, K]), "expected an expression and a reduction axis"),
    (lambda: te.sum(A[0, K], axis=te.thread_axis("threadIdx.x")), "threadIdx.x is not a reduction axis"),
    (lambda: te.sum(A[0, K], axis=K, where=K), "`where` is int32, not a condition"),
    (lambda: te.compute((4,), lambda i: None), "the function returns None"),
    (lambda: te.compute((4,), 3.0), "3.0 is not a function"),
    (lambda: te.compute((-4,), lambda i: 0.0), r"extent 0 of shape \(-4,\) is -4"),
    (lambda: te.placeholder((3.5,)), "is 3.5, not an integer"),
    (lambda: te.placeholder(np.zeros(3)), "not an integer"),
    (lambda: te.placeholder((np.array(2.5),)), "not an integer"),
    (lambda: te.placeholder(("n",)), "not an integer"),
    (lambda: te.reduce_axis((3, 0)), "ends before it begins"),
    (lambda: te.reduce_axis(7), "7 is not a range"),
    (lambda: te.thread_axis("thread.x"), "'thread.x' is not a thread axis"),
    (lambda: te.placeholder((3,), "float33"), "'float33' is not a dtype"),
    (lambda: te.extern((3,), [3], lambda i, o: None), "the input 3 is not a tensor"),
    (lambda: te.extern((3,), [A], lambda i, o: None), "gives None, not a statement"),
    (lambda: te.compute((4,), lambda i: A[i, 0] + te.const(1, "bool")), "promote"),
    (lambda: te.compute((4,), lambda i: te.exp(i)), "exp of int32"),
    (lambda: te.compute((4,), lambda i: i / 2), "`/` on int32 is ambiguous"),
    (lambda: te.compute((4,), lambda i: A[i, 0] if i < 2 else 0.0), "no truth value"),
    (lambda: te.compute((4,), lambda i, *, scale: A[i, 0]), "the function needs scale="),
    (lambda: te.compute((4,), lambda *i: A[i[0], 0], varargs_names=[3]), "is \\[3\\], not a list of names"),
    (lambda: te.compute((4,), lambda *i: A[i[0], 0], varargs_names="i"), "is 'i', not a list of names"),
    (lambda: te.sum((A[0, K], A[1, K]), axis=K), "sum: 2 values are reduced, and it takes one"),
    (lambda: te.comm_reducer(lambda x, y: x + y, 0), "fidentity is 0, not a function"),
    (lambda: te.infinity("int32"), "int32 has no infinity"),
    (lambda: te.infinity("float8_e4m3fn"), "float8_e4m3fn has no infinity"),
    (lambda: te.extern([(3,), (3,)], [A], None, dtype=["int8"]), r"2 shape\(s\) and 1 dtype\(s\)"),
    (lambda: te.extern((3,), [A], None, in_buffers=[3]), "3 is given for A, which is no buffer"),
    (lambda: te.extern((3,), [A], None, in_buffers=[tir.decl_buffer((4, 5), "int32")]), "is int32.*not float32"),
    (lambda: te.extern((3,), [A], None, in_buffers=[tir.decl_buffer((4, 6))]), r"\(4, 6\), not float32\(4, 5\)"),
    (lambda: te.extern((3,), [A], None, out_buffers=[tir.decl_buffer((4,), "int32")]), r"int32\(4,\), not int32\(3,\)"),
])
def test_wrong_expressions_are_refused_where_they_are_written(wrong, message):
    with pytest.raises(TilewrightError, match=message):
        wrong()


def test_combined_dtypes_that_do_not_promote_are_refused():
    u = te.placeholder((4,), "uint8", "u")
    s = te.placeholder((4,), "int8", "s")
    with pytest.raises(IRError, match="uint8 and int8, which do not promote"):
        te.compute((4,), lambda i: u[i] + s[i])


def test_expressions_print():
    c = te.compute((4,), lambda i: te.sum(A[i, K] * 2.0, axis=K), name="c")
    assert str(c.op.body[0]) == "sum(A[i, k] * T.float32(2), axis=[k])"


@pytest.mark.parametrize(("thing", "name", "hint"), [
    (lambda: tw, "compille", "did you mean compile?"),
    (lambda: te, "placehoder", "did you mean te.placeholder?"),
    (lambda: tw.Schedule(_doubled()), "vectorise", "did you mean vectorize?"),
    (lambda: tw.build(_doubled(), name="double"), "get_functon", "did you mean get_function?"),
    (lambda: tw.build(_doubled(), name="double"), "double", 'its functions go by subscription: f["double"]'),
])
def test_a_name_that_is_nearly_right(thing, name, hint):
    with pytest.raises(AttributeError) as caught:
        getattr(thing(), name)
    assert str(caught.value).endswith(f"no attribute {name!r}\n\nhint: {hint}")
    with pytest.raises(AttributeError, match="no attribute 'zzzzzz'$"):
        thing().zzzzzz                                           # noqa: B018


def _doubled():
    A = te.placeholder((4,), name="A")
    return te.create_prim_func([A, te.compute((4,), lambda i: A[i] * 2.0, name="B")])


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("extra", [0, 1])
def test_extents_of_both_types(dtype, extra):
    n = te.var("n", dtype)
    X = te.placeholder((n, n + extra), name="X")
    k = te.reduce_axis((0, n + extra), name="k")
    Y = te.compute((n,), lambda i: te.sum(X[i, k], k), name="Y")
    x, y, z = np.random.default_rng(0).standard_normal((5, 5 + extra)).astype("float32"), *np.zeros((2, 5), "float32")
    tw.compile([X, Y])(x, y)
    interp.run(te.create_prim_func([X, Y]), x, z)
    np.testing.assert_allclose(y, x.sum(1), rtol=1e-5)
    np.testing.assert_allclose(z, x.sum(1), rtol=1e-5)


@pytest.mark.parametrize("dtype", ["int8", "int16", "uint8", "uint16", "uint32", "uint64"])
def test_sizes_of_other_types_are_refused_where_they_are_written(dtype):
    n = te.var("n", dtype)
    for make in (lambda: te.placeholder((4, n)), lambda: te.compute((4, n + 1), lambda i, j: 0.0),
                 lambda: te.reduce_axis((0, n))):
        with pytest.raises(TensorExpressionError, match=rf"of type {dtype}: a size is an int32 or int64"):
            make()
    for line in ("A = T.alloc_buffer((4, n))", "A = T.match_buffer(a, (4,), strides=(n,))",
                 "A = T.match_buffer(a, (n,))"):
        with pytest.raises(ScriptError, match=rf"buffer A: \w+ \d is n, of type {dtype}: a size is an int32 or int64"):
            from_source(f"@T.prim_func\ndef f(a: T.handle, n: T.{dtype}):\n    {line}\n    T.evaluate(0)\n")


def test_constants_of_other_types_are_sizes():
    assert [str(d.dtype) for d in te.placeholder((te.const(3, "uint8"), te.const(2, "uint64"))).shape] == ["int32"] * 2


@pytest.mark.parametrize("first, second", [(683, 217), (te.var("n"), 5), (5, te.var("m"))])
def test_the_other_side_of_a_choice_knows_that_the_condition_fails(first, second):
    """Of two arrays that follow each other neither is read outside, with constant or symbolic lengths."""
    a, b = te.placeholder((4, first), name="a"), te.placeholder((4, second), name="b")
    c = te.compute((4, a.shape[1] + b.shape[1]), lambda i, j: te.if_then_else(j < first, a[i, j], b[i, j - first]))
    assert "checked_index" not in str(c.op.body[0])
    wrong = te.compute(c.shape, lambda i, j: te.if_then_else(j < first, a[i, j], b[i, j - first + 1]))
    assert "checked_index" in str(wrong.op.body[0])
