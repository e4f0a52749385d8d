"""TVM's names of operators take TVM's arguments, and give what NumPy gives."""
from __future__ import annotations

import inspect

import numpy as np
import pytest

import tilewright as tw
from tests.topi import references
from tilewright import te
from tilewright.compat.topi import elements, images, nn, transform
from tilewright.compat.topi.elements import BOTH
from tilewright.support.errors import ArgumentError, TensorExpressionError
from tilewright.te.tensor import Tensor

RNG = np.random.default_rng(0)
A, B = RNG.random((2, 3, 4), "float32") + 0.5, RNG.random((3, 1), "float32") + 0.5
N, M = RNG.integers(-5, 9, (2, 3)).astype("int32"), RNG.integers(1, 4, (2, 3)).astype("int32")
X, W = RNG.random((1, 4, 5, 6), "float32"), RNG.random((4, 4, 3, 3), "float32") - 0.5
C, D = RNG.random(4, "float32") + 0.5, RNG.random(4, "float32")
ROWS = np.array([[2, 0, 1], [1, 1, 0]], "int32")
PLACES = np.array([[1, 0], [2, 1]], "int32")


def run(f, *arrays):
    """What f of tensors gives, compiled."""
    args = [te.placeholder(a.shape, str(a.dtype), name=f"x{n}") for n, a in enumerate(arrays)]
    found = f(*args)
    outs = list(found) if isinstance(found, (list, tuple)) else [found]
    results = [np.zeros([int(n) for n in x.shape], x.dtype) for x in outs]
    tw.compile(te.create_prim_func([*args, *outs]))(*(np.array(a, order="C") for a in arrays), *results)
    return results if isinstance(found, (list, tuple)) else results[0]


def check(f, arrays, *wanted):
    found = run(f, *arrays)
    for got, y in zip(found if isinstance(found, list) else [found], wanted, strict=True):
        assert got.shape == np.shape(y)
        np.testing.assert_allclose(got, y, rtol=1e-4, atol=1e-5)


def softmax(x, axis=-1):
    return references.softmax(x.astype("float64"), axis)


def last(x):
    return np.moveaxis(x, 1, -1)


def standard(x, axes, eps=1e-5):
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + eps)


def between(x, size):
    """Images in another size, whose elements lie at the quotients of the sizes (bilinear, "asymmetric")."""
    for axis, m in zip((2, 3), size):
        n = x.shape[axis]
        at = np.arange(m) * n / m
        low = np.floor(at).astype(int)
        part = (at - low).reshape((-1, 1) if axis == 2 else (-1,))
        x = np.take(x, low, axis) * (1 - part) + np.take(x, np.minimum(low + 1, n - 1), axis) * part
    return x


CONV = references.conv(X, W, 1, ((1, 1), (1, 1)))
BYTES, HUNDREDS = np.array([[[[0, 255], [255, 0]]]], "uint8"), np.full((1, 4, 2, 2), 100, "int8")
IMM = te.const
CASES = {
    "elements": [
        (lambda t: lambda a, b: t.add(a, b), [A, B], A + B), (lambda t: lambda a: t.add(a, 2.0), [A], A + 2),
        (lambda t: lambda a: t.subtract(te.const(1.0), a), [A], 1 - A),
        (lambda t: lambda a, b: t.divide(a, b), [N, M], np.trunc(N / M)),
        (lambda t: lambda a, b: t.divide(a, b), [A, B], A / B),
        (lambda t: lambda a, b: t.floor_mod(a, b), [N, M], N % M),
        (lambda t: lambda a, b: t.mod(a, b), [N, M], np.fmod(N, M)),
        (lambda t: lambda a, b: t.maximum(a, b), [A, B], np.maximum(A, B)), (lambda t: t.exp, [A], np.exp(A)),
        (lambda t: lambda a: t.clip(a, 0.7, 1.1), [A], np.clip(A, 0.7, 1.1)),
        (lambda t: lambda a: t.cast(a, "int32"), [A], np.floor(A)), (lambda t: t.identity, [A], A),
        (lambda t: lambda a, b: t.elemwise_sum([a, b, a]), [N, M], 2 * N + M),
        (lambda t: lambda a: t.full_like(a, 3), [A], np.full_like(A, 3)),
        (lambda t: lambda a: t.left_shift(a, 2), [M], M << 2), (lambda t: lambda a, b: t.greater(a, b), [A, B], A > B),
        (lambda t: lambda a: t.sum(a, axis=(0, -1)), [N], N.sum()),
        (lambda t: lambda a: t.sum(a, axis=1), [A], A.sum(1)),
        (lambda t: lambda a: t.max(a, axis=1, keepdims=True), [A], A.max(1, keepdims=True)),
        (lambda t: lambda a: t.argmax(a, axis=1), [A], A.argmax(1)), (lambda t: t.prod, [M], M.prod()),
        (lambda t: lambda a: t.argmin(a, axis=1, select_last_index=True), [M], 2 - M[:, ::-1].argmin(1)),
        (lambda t: lambda a: t.collapse_sum(a, (3, 1)), [A], A.sum((0, 2))[:, None]),
        (lambda t: lambda a: t.reinterpret(a, "int32"), [A], A.view("int32")),
        (lambda t: lambda a, b: t.broadcast_mul(a, b), [A, B], A * B),
        (lambda t: lambda a: t.subtract(0.5, a), [N], 0.5 - N),
        (lambda t: lambda a: t.divide(IMM(1.5), a), [M], 1.5 / M),
        (lambda t: lambda a: t.bitwise_not(data=a), [N], ~N), (lambda t: lambda a: t.sum(a, IMM(1)), [A], A.sum(1)),
        (lambda t: lambda a: t.power(2, a), [M], 2 ** M),
    ],
    "shapes": [
        (lambda t: lambda a: t.expand_dims(a, 1, 2), [N], N[:, None, None]), (lambda t: t.transpose, [N], N.T),
        (lambda t: lambda a: t.transpose(a, (1, 0, 2)), [A], A.transpose(1, 0, 2)),
        (lambda t: lambda a: t.flip(a, 1), [A], A[:, ::-1]),
        (lambda t: lambda a: t.strided_slice(a, [0, 2], [2, 0], [1, -1]), [A], A[0:2, 2:0:-1]),
        (lambda t: lambda a: t.strided_slice(a, [0, 1], [2, 2], slice_mode="size"), [A], A[0:2, 1:3]),
        (lambda t: lambda a: t.reshape(a, (6, 4)), [A], A.reshape(6, 4)),
        (lambda t: lambda a: t.squeeze(a, 1), [B], B[:, 0]),
        (lambda t: lambda a, b: t.concatenate((a, b), axis=1), [N, M], np.concatenate([N, M], 1)),
        (lambda t: lambda a, b: t.stack([a, b], axis=1), [N, M], np.stack([N, M], 1)),
        (lambda t: lambda a: t.split(a, [1, 3], axis=2), [A], *np.split(A, [1, 3], 2)),
        (lambda t: lambda a: t.split(a, 2, axis=0), [A], *np.split(A, 2)),
        (lambda t: lambda a, i: t.take(a, i, axis=1), [A, ROWS], A[:, ROWS]),
        (lambda t: lambda a, i: t.gather(a, 1, i), [A[:, :, 0].copy(), ROWS], np.take_along_axis(A[:, :, 0], ROWS, 1)),
        (lambda t: lambda a, i: t.gather_nd(a, i), [A, PLACES], A[PLACES[0], PLACES[1]]),
        (lambda t: lambda a, b: t.matmul(a, b, transp_b=True), [N, M], N @ M.T),
        (lambda t: lambda a, b: t.tensordot(a, b, [1, 1]), [N, M], np.tensordot(N, M, ([1], [1]))),
        (lambda t: lambda a: t.tile(a, (2, 1)), [N], np.tile(N, (2, 1))),
        (lambda t: lambda a: t.repeat(a, 2, 1), [N], np.repeat(N, 2, 1)),
        (lambda t: lambda a, b: t.where(a, a, b), [N, M], np.where(N, N, M)),
        (lambda t: lambda i: t.one_hot(i, 1.0, 0.0, 3, -1, "float32"), [ROWS], np.eye(3)[ROWS]),
        (lambda t: lambda a: t.broadcast_to(a, (2, 3, 4)), [B], np.broadcast_to(B, (2, 3, 4))),
        (lambda t: lambda a: t.trilu(a, 1, True), [A], np.triu(A, 1)),
        (lambda t: lambda x: t.layout_transform(x, "NCHW", "NHWC"), [X], last(X)),
        (lambda t: lambda x: t.layout_transform(x, "NCHW", "NCHW2c"), [X],
         X.reshape(1, 2, 2, 5, 6).transpose(0, 1, 3, 4, 2)),
        (lambda t: lambda x: t.layout_transform(t.layout_transform(x, "NCHW", "NCHW2c"), "NCHW2c", "NCHW"), [X], X),
        (lambda t: lambda a, n: t.sequence_mask(a, n, mask_value=-1, axis=1),
         [N, np.array([1, 2], "int32")], np.where(np.arange(3) < [[1], [2]], N, -1)),
        (lambda t: lambda a, i, j: t.adv_index(a, [i, j]), [A, PLACES[0], PLACES[1]], A[PLACES[0], PLACES[1]]),
        (lambda t: lambda a: t.sliding_window(a, 1, [2, 3], [1, 1]), [A],
         np.lib.stride_tricks.sliding_window_view(A, (2, 3), (1, 2))),
        (lambda t: lambda a: t.sort(a, axis=1, is_ascend=False), [N], -np.sort(-N, 1)),
        (lambda t: lambda a: t.argsort(a, axis=1), [A], A.argsort(1)),
        (lambda t: lambda a: t.topk(a, 2, axis=1, ret_type="values"), [N], -np.sort(-N, 1)[:, :2]),
        (lambda t: t.cumsum, [N], np.cumsum(N)), (lambda t: lambda a: t.shape(a), [A], [2, 3, 4]),
        (lambda t: lambda a: t.ndarray_size(a), [A], 24),
        (lambda t: lambda a: t.ndarray_size(te.placeholder((70000, 70000)), "int64"), [A], 4900000000),
        (lambda t: lambda a: t.shape(a), [np.array(1.0, "float32")], np.zeros(0)),
        (lambda t: lambda a: t.strided_slice(a, [-2], [2], slice_mode="size"), [D], D[-2:]),
        (lambda t: lambda a: t.strided_slice(a, [IMM(1)], [IMM(3)], [IMM(1)], [IMM(1)]), [A], A[:, 1:3]),
        (lambda t: lambda a: t.split(a, np.int64(2), IMM(-1)), [A], *np.split(A, 2, -1)),
        (lambda t: lambda a: t.repeat(a, IMM(2), IMM(1)), [N], N.repeat(2, 1)),
        (lambda t: lambda a: t.tile(a, IMM(2)), [N], np.tile(N, 2)),
        (lambda t: lambda a, b: t.tensordot(a, b, IMM(1)), [N, M.T.copy()], N @ M.T),
        (lambda t: lambda a: t.sliding_window(a, -2, [2, 3], 1), [A],
         np.lib.stride_tricks.sliding_window_view(A, (2, 3), (1, 2))),
        (lambda t: lambda a: t.topk(a, 0, axis=1), [A], -np.sort(-A, 1), (-A).argsort(1)),
        (lambda t: lambda a: t.searchsorted(sorted_sequence=a, values=a), [np.arange(4.0)], np.arange(4)),
    ],
    "layers": [
        (lambda t: lambda x, w: t.nn.conv2d(x, w, 1, 1, 1), [X, W], CONV),
        (lambda t: lambda x, w: t.nn.conv2d_nchw(x, w, (1, 1), "SAME", 1), [X, W], CONV),
        (lambda t: lambda x, w: t.nn.conv2d_nhwc(x, w, 1, (1, 1, 1, 1), 1), [last(X), W.transpose(2, 3, 1, 0)],
         last(CONV)),
        (lambda t: lambda x, w: t.nn.conv2d(x, w, 1, 1, 1, data_layout="HWCN"),
         [X.transpose(2, 3, 1, 0), W.transpose(2, 3, 1, 0)], CONV.transpose(2, 3, 1, 0)),
        (lambda t: lambda x, w: t.nn.group_conv2d_nchw(x, w, 2, 1, 1, 2), [X, W[:, :2].copy()],
         references.conv(X, W[:, :2], 2, 1, 1, 2)),
        (lambda t: lambda x, w: t.nn.depthwise_conv2d_nchw(x, w, 1, 1), [X, W[:, :2].copy()],
         references.conv(X, W[:, :2].reshape(8, 1, 3, 3), 1, 1, 1, 4)),
        (lambda t: lambda x, w: t.nn.conv2d_transpose_nchw(x, w, (2, 2), (1, 1), "float32", (1, 0)), [X, W],
         references.conv_transpose(X, W, 2, 1, (1, 0))),
        (lambda t: lambda x, w: t.nn.conv1d(x, w, 2, 1), [X[:, :, 0], W[:, :, 0]],
         references.conv(X[:, :, 0], W[:, :, 0], 2, 1)),
        (lambda t: lambda a, b, c: t.nn.dense(a, b, c), [A[0], A[1], C[:3].copy()], A[0] @ A[1].T + C[:3]),
        (lambda t: lambda a, b: t.nn.batch_matmul(a, b), [A, A + 1], A @ (A + 1).swapaxes(1, 2)),
        (lambda t: lambda x: t.nn.pool2d(x, [2, 2], [2, 2], (1, 1), [0, 0, 1, 0], "max"), [X],
         references.pooled(X, (2, 2), (2, 2), ((0, 1), (0, 0)), 1, False, lambda v, p, n: np.max(v)).astype("float32")),
        (lambda t: lambda x: t.nn.pool(x, 2, 2, 0, "avg", layout="NHWC"), [last(X)],
         last(X[:, :, :4].reshape(1, 4, 2, 2, 3, 2).mean((3, 5)))),
        (lambda t: lambda x: t.nn.global_pool(x, "avg"), [X], X.mean((2, 3), keepdims=True)),
        (lambda t: lambda x: t.nn.adaptive_pool(x, (1, 3), "max"), [X],
         X.reshape(1, 4, 5, 3, 2).max((2, 4))[:, :, None]),
        (lambda t: lambda a: t.nn.softmax(a, axis=1), [A], softmax(A, 1)),
        (lambda t: t.nn.log_softmax, [A], np.log(softmax(A))),
        (lambda t: lambda x, g, b, m, v: t.nn.batch_norm(x, g, b, m, v), [X, C, D, D, C],
         (X - D[:, None, None]) / np.sqrt(C[:, None, None] + 1e-5) * C[:, None, None] + D[:, None, None], D, C),
        (lambda t: lambda x, g, b, m, v: t.nn.batch_norm(x, g, b, m, v, training=True), [X, C, D, D, C],
         standard(X, (0, 2, 3)) * C[:, None, None] + D[:, None, None], D * 0.9 + X.mean((0, 2, 3)) * 0.1,
         C * 0.9 + X.var((0, 2, 3)) * 0.1),
        (lambda t: lambda a, g, b: t.nn.layer_norm(a, g, b, [-1]), [A, C, D], standard(A, -1) * C + D),
        (lambda t: lambda a, w: t.nn.rms_norm(a, w, [2]), [A, C],
         A / np.sqrt((A * A).mean(-1, keepdims=True) + 1e-5) * C),
        (lambda t: lambda x, g, b: t.nn.instance_norm(x, g, b, 1, [2, 3]), [X, C, D],
         standard(X, (2, 3)) * C[:, None, None] + D[:, None, None]),
        (lambda t: lambda x: t.nn.l2_normalize(x, 1e-6, [1]), [X], X / np.sqrt((X * X).sum(1, keepdims=True))),
        (lambda t: lambda a: t.nn.leaky_relu(a, 0.1), [A - 1], np.where(A > 1, A - 1, (A - 1) * 0.1)),
        (lambda t: lambda x, b: t.nn.bias_add(x, b), [X, C], X + C[:, None, None]),
        (lambda t: lambda x, s, b: t.nn.scale_shift_nchw(x, s, b), [X, C, D], X * C[:, None, None] + D[:, None, None]),
        (lambda t: t.nn.flatten, [X], X.reshape(1, -1)),
        (lambda t: lambda a: t.nn.pad(a, [0, 1], [1, 2], 7.0), [A[0]],
         np.pad(A[0], ((0, 1), (1, 2)), constant_values=7)),
        (lambda t: lambda a: t.nn.mirror_pad(a, [0, 1], mode="REFLECT"), [A[0]],
         np.pad(A[0], ((0, 0), (1, 1)), mode="reflect")),
        (lambda t: lambda a: t.nn.dilate(a, [2, 1]), [A[0]], np.insert(A[0], [1, 2], 0, 0)),
        (lambda t: lambda x: t.nn.depth_to_space(x, 2, mode="CRD"), [X],
         X.reshape(1, 1, 2, 2, 5, 6).transpose(0, 1, 4, 2, 5, 3).reshape(1, 1, 10, 12)),
        (lambda t: lambda x: t.nn.upsampling(x, 2, 3), [X], X.repeat(2, 2).repeat(3, 3)),
        (lambda t: lambda x: t.nn.upsampling(x, 2, 1.5, method="bilinear"), [X], between(X, (10, 9))),
        (lambda t: lambda x: t.nn.upsampling(x, 0.5, 0.5), [X], X[:, :, [0, 2]][:, :, :, ::2]),
        (lambda t: lambda x, w: t.nn.conv2d(x, w, 1, 1, 1, layout="NCHW"), [X, W], CONV),
        (lambda t: lambda x, w: t.nn.conv1d_ncw(data=x, kernel=w, strides=2, padding=1), [X[:, :, 0], W[:, :, 0]],
         references.conv(X[:, :, 0], W[:, :, 0], 2, 1)),
        (lambda t: lambda x, w: t.nn.conv3d_ndhwc(x, w, 1, (0, 1, 1), 1, 1),
         [last(X)[:, None], W.transpose(2, 3, 1, 0)[None]], last(CONV)[:, None]),
        (lambda t: lambda x, w: t.nn.depthwise_conv2d_nhwc(x, w, 1, 1, 1, "HWIO"),
         [last(X), W[:, :2].transpose(2, 3, 1, 0)], last(references.conv(X, W[:, :2].reshape(8, 1, 3, 3), 1, 1, 1, 4))),
        (lambda t: lambda x, w: t.nn.conv2d_transpose_nchw(x, w, 1, 0, "int32", 0), [HUNDREDS, HUNDREDS.swapaxes(0, 1)[
            :, :, :1, :1].copy()], np.full((1, 1, 2, 2), 40000)),
        (lambda t: lambda x, g, b: t.nn.instance_norm(x, g, b, [2, 3], 1e-3), [X, C, D],
         standard(X, (2, 3), 1e-3) * C[:, None, None] + D[:, None, None]),
        (lambda t: t.nn.flatten, [D], D[:, None]), (lambda t: lambda x: t.nn.dilate(x, 2), [D[:0]], D[:0]),
    ],
    "images": [
        (lambda t: lambda x: t.image.resize2d(x, None, (4, 4)), [BYTES],
         [[[[0, 63, 191, 255], [63, 95, 159, 191], [191, 159, 95, 63], [255, 191, 63, 0]]]]),
        (lambda t: lambda x: t.image.resize2d(x, None, (1, 4), out_dtype="float32"), [BYTES],
         np.full((1, 1, 1, 4), 127.5)),
        (lambda t: lambda x: t.image.resize2d(x, None, (10, 12), method="nearest_neighbor",
                                              coordinate_transformation_mode="asymmetric"), [X],
         X.repeat(2, 2).repeat(2, 3)),
        (lambda t: lambda x, a: t.image.grid_sample(x, t.image.affine_grid(a, (5, 6))),
         [X, np.array([[[1, 0, 0], [0, -1, 0]]], "float32")], X[:, :, ::-1]),
        (lambda t: lambda x, r: t.vision.roi_pool_nchw(x, r, (1, 1), 1.0),
         [X, np.array([[0, 1, 1, 3, 2]], "float32")], X[:, :, 1:3, 1:4].max((2, 3), keepdims=True)),
        (lambda t: lambda x, r: t.vision.roi_align_nchw(x, r, (2, 2), 1.0, "avg", 1, True),
         [X, np.array([[0, 1.5, 0.5, 3.5, 2.5]], "float32")], X[:, :, [0, 1]][:, :, :, [1, 2]] / 4 + X[:, :, [0, 1]][
             :, :, :, [2, 3]] / 4 + X[:, :, [1, 2]][:, :, :, [1, 2]] / 4 + X[:, :, [1, 2]][:, :, :, [2, 3]] / 4),
    ],
}


@pytest.mark.parametrize("family", CASES)
def test_the_operators_of(family, tvm):
    for make, arrays, *wanted in CASES[family]:
        check(make(tvm.topi), arrays, *wanted)


def test_functions_of_expressions_are_expressions(tvm):
    n = tvm.te.var("n")
    assert not isinstance(tvm.topi.add(n, 1), Tensor) and str(tvm.topi.floor_mod(n, 4)) == str(n % 4)
    assert str(tvm.topi.equal(n, 3)) == "n == 3" and str(tvm.topi.divide(n, 3)) == "T.truncdiv(n, 3)"
    for name in BOTH.keys() - {"power", "log_add_exp"}:       # of floats
        assert not isinstance(getattr(tvm.topi, name)(n, 3), Tensor), name
    assert str(tvm.topi.power(te.const(2.0), te.const(3.0)).dtype) == "float32"
    assert str(tvm.topi.log_add_exp(te.const(2.0), te.const(3.0)).dtype) == "float32"


def test_symbolic_extents(tvm):
    n = te.var("n")
    x = te.placeholder((n, 3), name="x")
    shapes = {(n, 1): (n, 1), (1, 3): (1, 3), (3,): (3,)}
    for want, shape in shapes.items():
        assert [str(d) for d in tvm.topi.collapse_sum(x, want).shape] == [str(d) for d in shape]
    y = tvm.topi.nn.upsampling(te.placeholder((1, 1, n, n), name="x"), 2, 3)
    assert [str(d) for d in y.shape] == ["1", "1", "n * 2", "n * 3"]


def test_a_program_with_a_schedule_of_topi(tvm):
    x = tvm.te.placeholder((16, 8), name="x")
    y = tvm.topi.nn.relu(tvm.topi.subtract(x, 1.0))
    with tvm.target.Target("llvm"):
        s = tvm.topi.generic.schedule_injective([y])
    f = tvm.build(s, [x, y])
    a, out = RNG.random((16, 8), "float32") * 2, np.zeros((16, 8), "float32")
    f(a, out)
    np.testing.assert_array_equal(out, np.maximum(a - 1, 0))


REFUSED = {
    "collapse_sum: the shape .4, 3. does not broadcast": lambda t, x: t.collapse_sum(x, (4, 3)),
    "sequence_mask: axis is -1": lambda t, x: t.sequence_mask(x, x, axis=-1),
    "the extent of valid_length is 3, not 4": lambda t, x: t.sequence_mask(x, vector(3)),
    "strides has 3 element": lambda t, x: t.sliding_window(x, 1, [2, 2], [1, 1, 1]),
    "no multiple of 3 in NCHW3c": lambda t, x: t.layout_transform(x, "NCHW", "NCHW3c"),
    "the extent of c in CHW2c": lambda t, x: t.layout_transform(x, "CHW2c", "CHW"),
    "'NHW4c' is no layout": lambda t, x: t.layout_transform(x, "NCHW", "NHW4c"),
    "'NCHW2c2c' is no layout": lambda t, x: t.layout_transform(x, "NCHW", "NCHW2c2c"),
    "slice_mode is 'sizes'": lambda t, x: t.strided_slice(x, [0], [1], slice_mode="sizes"),
    "split: axis is 5": lambda t, x: t.split(x, 2, 5),
    "kernel_layout is 'OIHW'": lambda t, x: t.nn.depthwise_conv2d_nhwc(x, x, 1, 0, 1, "OIHW"),
    "output_padding is smaller": lambda t, x: t.nn.conv2d_transpose_nchw(x, x, 1, 0, "float32", 1),
    r"for 2 group.s. extent 1 of data is 4, not 8": lambda t, x: t.nn.deformable_conv2d_nchw(x, x, x, 1, 0, 1, 1, 2),
    "conv2d: data has the shape .4,.": lambda t, x: t.nn.conv2d(vector(4), x, 1, 0, 1),
    "oshape is": lambda t, x: t.nn.batch_matmul(*[te.placeholder((2, 3, 4), name="x")] * 2, oshape=(2, 3, 4)),
    "tensor_a has the shape": lambda t, x: t.nn.batch_matmul(x, x),
    "layouts of schedulers": lambda t, x: t.nn.dense(x, x, auto_scheduler_rewritten_layout="4x4"),
    "global_pool: pool_type is 'sum'": lambda t, x: t.nn.global_pool(x, "sum"),
    "adaptive_pool: pool_type is 'sum'": lambda t, x: t.nn.adaptive_pool(x, 1, "sum"),
    "global_pool: the layout": lambda t, x: t.nn.global_pool(x, "max", "HWCN"),
    "depth_to_space: the layout": lambda t, x: t.nn.depth_to_space(x, 2, "HWCN"),
    "momentum is 2.0": lambda t, x: t.nn.batch_norm(x, *[vector(4)] * 4, training=True, momentum=2.0),
    "the extent of moving_mean is 3": lambda t, x: t.nn.batch_norm(x, *[vector(3)] * 4, training=True),
    "group_norm: axes is .2.": lambda t, x: t.nn.group_norm(x, vector(4), vector(4), 2, 1, [2]),
    "instance_norm: axes is .2.": lambda t, x: t.nn.instance_norm(x, vector(4), vector(4), 1, [2]),
    "bias_add: axis is 5": lambda t, x: t.nn.bias_add(x, vector(4), 5),
    "the extent of bias is 9": lambda t, x: t.nn.bias_add(x, vector(9)),
    "the extent of Shift is 9": lambda t, x: t.nn.scale_shift_nchw(x, vector(4), vector(9)),
    "pad: pad_before has 1": lambda t, x: t.nn.pad(x, [1]),
    "pad: pad_after has 2": lambda t, x: t.nn.pad(vector(4), [1], [1, 2]),
    "mirror_pad: mode is 'EDGE'": lambda t, x: t.nn.mirror_pad(vector(4), [1], mode="EDGE"),
    "dilate: strides has 2": lambda t, x: t.nn.dilate(x, [2, 2]),
    "dilate: strides is 0": lambda t, x: t.nn.dilate(x, 0),
    "the method is 'best'": lambda t, x: t.nn.upsampling(x, 2, 2, method="best"),
    "upsampling: the layout": lambda t, x: t.nn.upsampling(x, 2, 2, "NCHW4c"),
    "rounding_method is 'up'": lambda t, x: t.image.resize2d(x, None, (2, 2), method="nearest_neighbor",
                                                             rounding_method="up"),
    "grid_sample: the layout": lambda t, x: t.image.grid_sample(x, x, layout="NHWC"),
    "extent 1 of rois is 4": lambda t, x: t.vision.roi_pool_nchw(x, te.placeholder((1, 4), name="r"), 1, 1.0),
    "roi_align_nchw: mode is .1.": lambda t, x: t.vision.roi_align_nchw(x, x, 1, 1.0, [1]),
    "it has data, indices and indptr": lambda t, x: t.sparse.csrmm(x, x),
    "layouts without blocks": lambda t, x: t.nn.conv2d(x, x, 1, 0, 1, data_layout="NCHW4c"),
    "2 or 4 numbers are needed": lambda t, x: t.nn.pool2d(x, 2, 2, 1, (1, 1, 1), "max"),
    '"VALID", "SAME" or numbers': lambda t, x: t.nn.conv2d(x, x, 1, "FULL", 1),
    '"max" or "avg"': lambda t, x: t.nn.pool2d(x, 2, 2, 1, 0, "median"),
    "the last axes are taken": lambda t, x: t.nn.layer_norm(x, x, x, [1]),
    "layout_transform: NCHW to NHW": lambda t, x: t.layout_transform(x, "NCHW", "NHW"),
    "the bounds are tensors": lambda t, x: t.strided_slice(x, x, x),
    "ret_type is 'all'": lambda t, x: t.topk(x, ret_type="all"),
    "the method is 3": lambda t, x: t.image.resize2d(x, None, (5, 5), method=3),
    "upsampling: a scale is inf": lambda t, x: t.nn.upsampling(x, float("inf"), 2),
    "scale is 'a', a number is needed": lambda t, x: t.nn.upsampling(x, 2, "a"),
    "l2_normalize: eps is -1, below 0": lambda t, x: t.nn.l2_normalize(x, -1),
    "momentum is 'a', a number is needed": lambda t, x: t.nn.batch_norm(x, *[vector(4)] * 4, training=True,
                                                                         momentum="a"),
    "tensordot: axes is .., a number or two": lambda t, x: t.tensordot(x, x, ()),
    "full: shape is 5, a list or a tuple": lambda t, x: t.full(5, "float32", 1.0),
    "elemwise_sum: xs is 3": lambda t, x: t.elemwise_sum(3),
    "pad: pad_before is 1": lambda t, x: t.nn.pad(x, 1),
    "mirror_pad: pad_after is 1": lambda t, x: t.nn.mirror_pad(x, [1] * 4, 1),
    "resize2d: size is 5": lambda t, x: t.image.resize2d(x, None, 5),
    "upsampling: output_shape is 5": lambda t, x: t.nn.upsampling(x, 2, 2, output_shape=5),
    "affine_grid: target_shape is None": lambda t, x: t.image.affine_grid(x, None),
    "transpose: axes is 1": lambda t, x: t.transpose(x, 1),
    "strided_slice: begin is 0": lambda t, x: t.strided_slice(x, 0, [1]),
    "strided_slice: strides is 1": lambda t, x: t.strided_slice(x, [0], [1], 1),
    "concatenate: a_tuple is 1": lambda t, x: t.concatenate(1),
    "stack: tensors is 1": lambda t, x: t.stack(1),
    "split: indices_or_sections is 2.5": lambda t, x: t.split(x, 2.5),
    "meshgrid: a_tuple is 'ij'": lambda t, x: t.meshgrid("ij", "ij"),
    "adv_index: indices is 1": lambda t, x: t.adv_index(x, 1),
    "broadcast_to: shape is 4": lambda t, x: t.broadcast_to(x, 4),
}


def vector(n):
    return te.placeholder((n,), name="v")


@pytest.mark.parametrize("message", REFUSED)
def test_what_is_refused(message, tvm):
    with pytest.raises((ArgumentError, TensorExpressionError), match=message):
        REFUSED[message](tvm.topi, te.placeholder((1, 4, 5, 6), name="x"))


@pytest.mark.parametrize("names", [elements.NAMES, transform.NAMES, nn.NAMES, images.IMAGE, images.VISION])
def test_what_is_no_tensor_is_refused(names):
    for f in names.values():
        parameters = list(inspect.signature(f).parameters.values())
        tensors = [p.name for p in parameters if p.annotation == "Tensor" and p.kind is not p.VAR_POSITIONAL]
        for wrong in tensors:
            with pytest.raises(TensorExpressionError, match="is 3, not a tensor"):
                f(**{p.name: 3 if p.name == wrong else te.placeholder((2, 2), name="x")
                     for p in parameters if p.default is p.empty or p.name == wrong})


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "float32", "float16"])
def test_a_sequence_that_is_longer_than_the_type_of_its_length_counts(dtype, tvm):
    lengths = np.array([100, 0], dtype)
    y = run(lambda x, n: tvm.topi.sequence_mask(x, n, 0, 0), np.ones((300, 2), "float32"), lengths)
    assert y.sum(0).tolist() == [100, 0]


def test_every_function_says_what_it_gives():
    families = (elements.NAMES, transform.NAMES, nn.NAMES, images.IMAGE, images.VISION, images.SPARSE, images.GENERIC)
    for names in families:
        for name, f in names.items():
            assert f.__doc__, name
