"""Small models that, together, run most of the compiler: for defects that are planted in it."""
import numpy as np

from tilewright import te, topi
from tilewright.graph import BlockBuilder, size
from tilewright.graph.ir.regions import If, Loop

RNG = np.random.default_rng(0)
N = size("n")


def array(*shape):
    return RNG.standard_normal(shape).astype("float32") / 2


def function(name, params, body):
    bb = BlockBuilder()
    with bb.function(name, params):
        bb.emit_func_output(body(bb, *params))
    return bb.get()[name]


W1, B1, W2, W3, C1, SCALE = array(24, 6), array(24), array(5, 12), array(12, 12), array(12), np.abs(array(4)) + 0.5
FILTER, FILTER3, IMAGE_W, ROW = array(4, 3, 3, 3), array(4, 4, 3, 3), array(3, 4), array(1, 7)


def perceptron():
    """Products with weights, packed while the model is compiled; views; rows; two results of one value."""
    def body(bb, x):
        h = bb.emit_te(topi.relu, bb.emit_te(topi.linear, x, bb.const(W1), bb.const(B1)))
        y = bb.emit_te(topi.linear, bb.emit_te(topi.reshape, h, (N * 2, 12)), bb.const(W2))
        y = bb.emit_te(topi.multiply, y, 0.5)
        return [bb.emit_te(topi.softmax, y, axis=-1), bb.emit_te(topi.sum, y, axis=(0,)), y]
    return function("perceptron", [BlockBuilder.param("x", (N, 6))], body)


def images():
    """Convolutions, batch normalisation that becomes part of weights, pooling."""
    def body(bb, x):
        four = [bb.const(a) for a in (C1[:4], SCALE, SCALE * 2, C1[4:8])]
        y = bb.emit_te(topi.conv, x, bb.const(FILTER), bb.const(C1[:4]), padding=1)
        y = bb.emit_te(topi.relu, bb.emit_te(topi.batch_norm, y, *four))
        z = bb.emit_te(topi.conv, y, bb.const(FILTER3), padding=1, stride=2)
        y = bb.emit_te(topi.add, bb.emit_te(topi.max_pool, y, 2, stride=2), z)
        y = bb.emit_te(topi.flatten, bb.emit_te(topi.global_avg_pool, y), start=1)
        return bb.emit_te(topi.linear, y, bb.const(IMAGE_W))
    return function("images", [BlockBuilder.param("x", (1, 3, 8, 8))], body)


def attention():
    """Heads, transposes that cancel, normalisation, products of activations, equal calls, residuals."""
    def body(bb, x):
        w = bb.const(W3)
        h = bb.emit_te(topi.layer_norm, x, bb.const(C1), bb.const(C1), eps=1e-2)
        heads = [bb.emit_te(topi.reshape, bb.emit_te(topi.linear, h, w), (N, 3, 4)) for _ in range(2)]
        q, k = (bb.emit_te(topi.transpose, head, (1, 0, 2)) for head in heads)
        again = bb.emit_te(topi.transpose, bb.emit_te(topi.transpose, q, (0, 2, 1)), (0, 2, 1))
        scores = bb.emit_te(topi.softmax, bb.emit_te(topi.matmul, again, k, transpose_b=True), axis=-1)
        y = bb.emit_te(topi.transpose, bb.emit_te(topi.matmul, scores, k), (1, 0, 2))
        y = bb.emit_te(topi.gelu, bb.emit_te(topi.reshape, y, (N, 12)))
        y = bb.emit_te(topi.add, y, x)
        return bb.emit_te(topi.concatenate, [y, bb.emit_te(topi.strided_slice, x, begin=(2,), end=(9,), axes=(1,))],
                          axis=1)
    return function("attention", [BlockBuilder.param("x", (N, 12))], body)


def mirror(t):
    return te.compute((t.shape[0], 7), lambda i, j: t[i, 6 - j] - t[i, j], name="mirror")


def mixed():
    """Integers, bools, running sums, places, elements at places that a tensor says, constants that are folded."""
    def body(bb, x, k):
        row = bb.emit_te(topi.exp, bb.emit_te(topi.multiply, bb.const(ROW), 0.5))
        total = bb.emit_te(topi.add, bb.emit_te(topi.matmul, row, row, transpose_b=True), 1.0)
        y = bb.emit_te(topi.where, bb.emit_te(topi.greater, x, 0.0), bb.emit_te(topi.multiply, x, row), total)
        run = bb.emit_te(topi.cumsum, y, axis=1)
        chosen = bb.emit_te(topi.take, run, bb.emit_te(topi.remainder, k, 3), axis=0)
        return [bb.emit_te(mirror, chosen), bb.emit_te(topi.argmax, x, axis=1), bb.emit_te(topi.max, y, axis=(1,)),
                bb.emit_te(topi.sum, bb.emit_te(topi.astype, k, "int32"))]
    return function("mixed", [BlockBuilder.param("x", (3, 7)), BlockBuilder.param("k", (N,), "int64")], body)


def regions():
    """A choice and a loop."""
    x, i = BlockBuilder.param("x", (N, 5)), BlockBuilder.param("i", (), "int64")
    grow = function("grow", [i, x], lambda bb, i, x: [
        bb.emit_te(topi.less, i, 9), bb.emit_te(topi.tanh, bb.emit_te(topi.add, x, 0.5)),
        bb.emit_te(topi.max, x, axis=1)])
    then = function("then", [x], lambda bb, x: bb.emit_te(topi.softmax, x, axis=-1))
    orelse = function("orelse", [x], lambda bb, x: bb.emit_te(topi.negative, x))

    def body(bb, x, flag):
        y, tops = bb.emit_call(Loop(grow, 1, 3), [bb.const(np.array(3)), bb.const(np.array(True)), x])
        z, = bb.emit_call(If(then, orelse), [flag, y])
        return [bb.emit_te(topi.sum, z, axis=(0,)), tops]
    return function("regions", [BlockBuilder.param("x", (N, 5)), BlockBuilder.param("flag", (), "bool")], body)


def inputs_of(name):
    """Arrays for the parameters of a model."""
    rng = np.random.default_rng(1)
    x = {"perceptron": (3, 6), "images": (1, 3, 8, 8), "attention": (5, 12), "mixed": (3, 7), "regions": (4, 5)}[name]
    more = {"mixed": [np.array([2, 7, 0, -1])], "regions": [np.array(True)]}.get(name, [])
    return [rng.standard_normal(x).astype("float32"), *more]


MODELS = {f.__name__: f for f in (regions, mixed, images, perceptron, attention)}    # the fastest first
