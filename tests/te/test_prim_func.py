"""Tensor expressions as functions of blocks."""
from __future__ import annotations

import pytest

from tilewright import te
from tilewright.support.errors import TensorExpressionError
from tilewright.tir.stmt import BlockRealize


def lines(func):
    return [line.strip() for line in func.script().splitlines()]


def test_matmul_is_one_block_with_an_init():
    a, b = te.placeholder((8, 16), name="A"), te.placeholder((16, 4), name="B")
    k = te.reduce_axis((0, 16), name="k")
    c = te.compute((8, 4), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    assert te.create_prim_func([a, b, c], name="mm").script().splitlines()[1:] == '''\
def mm(A: T.Buffer((8, 16), "float32"), B: T.Buffer((16, 4), "float32"), C: T.Buffer((8, 4), "float32")):
    T.func_attr({"tir.noalias": True})
    # with T.block("root"):
    for i, j, k in T.grid(8, 4, 16):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            T.reads(A[vi, vk], B[vk, vj])
            T.writes(C[vi, vj])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]'''.splitlines()


def test_intermediates_are_allocated_and_names_are_unique():
    x = te.placeholder((4,), name="x")
    y = te.compute((4,), lambda i: x[i] + 1.0, name="x")
    z = te.compute((4,), lambda i: y[i] * 2.0, name="x")
    func, names = te.lower_ops([x, z])
    assert isinstance(func.body, BlockRealize)
    assert [b.name for b in func.body.block.alloc_buffers] == ["x_2"]
    assert [b.name for b in func.buffers] == ["x", "x_1"]
    assert names == {y.op: "x", z.op: "x_1"}


def test_regions_are_the_hull_of_the_reads():
    x = te.placeholder((8, 8), name="x")
    y = te.compute((6, 8), lambda i, j: x[i, j] + x[i + 2, j] + x[1 + i, 0], name="y")
    reads = te.create_prim_func([x, y]).body.block.body.body.body.block.reads
    assert [str(r.region[0].extent) for r in reads] == ["3"] and str(reads[0].region[1].extent) == "8"


def test_a_reduction_axis_may_begin_anywhere():
    x = te.placeholder((8,), name="x")
    k = te.reduce_axis((2, 7), name="k")
    text = te.create_prim_func([x, te.compute((1,), lambda i: te.sum(x[k], axis=k), name="s")])
    assert "s[vi] = s[vi] + x[vk + 2]" in lines(text)
    assert "for i, k in T.grid(1, 5):" in lines(text)


def test_where_and_init_of_a_reduction():
    x = te.placeholder((8,), name="x")
    k = te.reduce_axis((0, 8), name="k")
    s = te.compute((1,), lambda i: te.max(x[k], axis=k, where=x[k] < 4.0, init=-1.0), name="s")
    text = lines(te.create_prim_func([x, s]))
    assert "s[vi] = T.float32(-1)" in text
    assert 's[vi] = T.max(s[vi], T.if_then_else(x[vk] < T.float32(4), x[vk], T.float32("-inf")))' in text


def test_tuple_reductions_update_together():
    x = te.placeholder((3, 9), name="x")
    k = te.reduce_axis((0, 9), name="k")
    argmax = te.comm_reducer(
        lambda a, b: (te.select(a[1] >= b[1], a[0], b[0]), te.select(a[1] >= b[1], a[1], b[1])),
        lambda i, v: (te.const(-1, i), te.min_value(v)), name="argmax")
    index, value = te.compute((3,), lambda i: argmax((k, x[i, k]), axis=k), name="am")
    text = lines(te.create_prim_func([x, index, value]))
    assert "am_v1_new: T.float32 = T.Select(am_v1[vi] >= x[vi, vk], am_v1[vi], x[vi, vk])" in text
    assert text[-2:] == ["am_v0[vi] = am_v0_new", "am_v1[vi] = am_v1_new"]


def test_symbolic_shapes_are_bound_by_arguments():
    n = te.var("n")
    x = te.placeholder((n,), name="x")
    y = te.compute((n,), lambda i: x[i] * 2.0, name="y")
    assert "for i in range(n):" in lines(te.create_prim_func([x, y]))
    scale = te.var("scale", "float32")
    z = te.compute((n,), lambda i: x[i] * scale, name="z")
    assert te.create_prim_func([x, z, scale]).params[2] is scale
    with pytest.raises(TensorExpressionError, match="the variable scale is bound by no argument"):
        te.create_prim_func([x, z])


def test_an_axis_of_another_operation_is_refused():
    x = te.placeholder((4,), name="x")
    y = te.compute((4,), lambda i: x[i] + 1.0, name="y")
    z = te.compute((4,), lambda i: x[y.op.axis[0]], name="z")
    with pytest.raises(TensorExpressionError, match="the variable i is bound by no argument"):
        te.create_prim_func([x, z])


@pytest.mark.parametrize("pick, message", [
    (lambda x, y: [y], "placeholder x is used by y and is not among the arguments"),
    (lambda x, y: [x, y, x], "x is given twice"),
    (lambda x, y: [x, y.op], "argument 1 is"),
])
def test_wrong_arguments(pick, message):
    x = te.placeholder((4,), name="x")
    y = te.compute((4,), lambda i: x[i] + 1.0, name="y")
    with pytest.raises(TensorExpressionError, match=message):
        te.create_prim_func(pick(x, y))


def test_extern_is_a_block_over_whole_buffers():
    x = te.placeholder((4, 4), name="x")
    y = te.extern((4,), [x], lambda ins, outs: te.call_packed("rows", ins[0], outs[0]), name="y")
    text = lines(te.create_prim_func([x, y]))
    assert "T.reads(x[0:4, 0:4])" in text and "T.writes(y[0:4])" in text
    assert any(line.startswith('T.call_packed("rows", T.access_ptr(x[0, 0], 4, 4') for line in text)
