"""Operators of ONNX Runtime's own domain, against NumPy; each was compared with ONNX Runtime when it was written."""
import math

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.frontend.onnx_models import check, results
from tilewright.frontend.onnx import from_onnx
from tilewright.graph.compile import build_function
from tilewright.support.errors import ImportModelError

RNG = np.random.default_rng(0)
EYE = np.eye(8, dtype="float32")
S, Z, S2, Z2 = np.float32(0.1), np.uint8(120), np.float32(0.07), np.uint8(99)


def floats(*shape):
    return RNG.standard_normal(shape).astype("float32")


def octets(*shape, dtype="uint8"):
    return RNG.integers(*((0, 256) if dtype == "uint8" else (-128, 128)), shape).astype(dtype)


def run(op, inputs, constants=(), count=1, **attributes):
    found = results(op, inputs, 17, constants, count, "com.microsoft", **attributes)
    return found[0] if count == 1 else found


def near(got, wanted, tolerance=1e-5):
    check(got, np.asarray(wanted).astype(got.dtype), tolerance)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


# attention


def by_head(x, heads):
    return x.astype("float64").reshape(*x.shape[:2], heads, -1).transpose(0, 2, 1, 3)


def side_by_side(y):
    return y.transpose(0, 2, 1, 3).reshape(y.shape[0], y.shape[2], -1)


def attended(q, k, v, added=0.0):
    return side_by_side(softmax(q @ k.swapaxes(2, 3) / math.sqrt(q.shape[-1]) + added) @ v)


@pytest.mark.parametrize("one_way", [0, 1])
@pytest.mark.parametrize("mask", [None, [5, 7], [5, 7, 0, 2], "rows"])
@pytest.mark.parametrize("op", ["Attention", "MultiHeadAttention"])
def test_attention_behind_keys_of_before(op, mask, one_way):
    q, k, v = (floats(2, 3, 8) for _ in range(3))
    if op == "Attention":
        k = v = q
    old = floats(2, 2, 2, 4, 4)
    keys, values = (np.concatenate([o, by_head(x, 2)], 2) for o, x in zip(old, (k, v)))
    places, added = np.arange(7), np.zeros((2, 1, 3, 7))
    given = None
    if mask == "rows":
        given = (RNG.random((2, 7)) < 0.6).astype("int32")
        added = added + np.where(given > 0, 0, -1e4)[:, None, None]
    elif mask:
        given = np.array(mask, "int32")
        seen = (places < given[:2, None]) & (places >= (given[2:, None] if len(mask) == 4 else 0))
        added = added + np.where(seen, 0, -1e4)[:, None, None]
    if one_way:
        added = added + np.where(places <= 4 + np.arange(3)[:, None], 0, -np.inf)
    wanted = attended(by_head(q, 2), keys, values, added)
    if op == "Attention":
        y, present = run(op, [q, np.concatenate([EYE] * 3, 1), None, given, old], count=2, num_heads=2,
                         unidirectional=one_way)
        near(present, np.stack([keys, values]))
    else:
        y, *present = run(op, [q, k, v, None, given, None, *old], count=3, num_heads=2, unidirectional=one_way)
        near(present[0], keys)
        near(present[1], values)
    near(y, wanted, 2e-3)                                    # scores of -1e4 have steps of 1e-3


def test_queries_keys_and_values_in_one_tensor_or_by_head():
    packed, bias = floats(2, 3, 2, 3, 4), floats(24)
    q, k, v = (packed[:, :, :, i].reshape(2, 3, 8) for i in range(3))
    wanted = attended(*(by_head(x, 2) for x in (q, k, v)))
    near(run("MultiHeadAttention", [packed], num_heads=2), wanted)
    near(run("MultiHeadAttention", [q, packed[:, :, :, 1:]], num_heads=2), wanted)
    keys, values = (by_head(x, 2).astype("float32") for x in (k, v))
    wanted = attended(by_head(q + bias[:8], 2), keys, values)
    near(run("MultiHeadAttention", [q, keys, values, bias], num_heads=2), wanted)


def grouped(q, k, v, old, before, heads, groups, window=None, sink=None, bias=0.0, cap=None):
    """(y, keys, values) of rows that follow `before` keys, of one sequence."""
    q, k, v = (by_head(x[None], n)[0] for x, n in ((q, heads), (k, groups), (v, groups)))
    keys, values = (np.concatenate([o[:, :before], x], 1) for o, x in zip(old, (k, v)))
    keys, values = keys.repeat(heads // groups, 0), values.repeat(heads // groups, 0)
    scores = q @ keys.swapaxes(1, 2) / math.sqrt(q.shape[-1])
    scores = scores if cap is None else cap * np.tanh(scores / cap)
    ahead = before + np.arange(len(q[0]))[:, None] - np.arange(len(keys[0]))
    scores = np.where((ahead >= 0) & (ahead < (window or 99)), scores + bias, -np.inf)
    if sink is not None:
        scores = np.concatenate([scores, np.broadcast_to(sink[:, None, None], (heads, len(q[0]), 1))], 2)
    y = softmax(scores)[..., :len(keys[0])] @ values
    return side_by_side(y[None])[0], keys[::heads // groups], values[::heads // groups]


@pytest.mark.parametrize("attributes, extra", [
    ({}, {}), ({"local_window_size": 2}, {}), ({"softcap": 0.5}, {11: floats(4)}), ({"smooth_softmax": 1}, {}),
    ({}, {10: floats(2, 4, 1, 7)})])
@pytest.mark.parametrize("packed", [False, True])
def test_groups_of_queries_over_caches(attributes, extra, packed):
    q, k, v, old = floats(2, 1, 32), floats(2, 1, 16), floats(2, 1, 16), floats(2, 2, 2, 9, 8)
    inputs = [np.concatenate([q, k, v], 2), None, None] if packed else [q, k, v]
    inputs += [*old, np.array([6, 3], "int32"), np.array(7, "int32"), None, None, None, None, None]
    for place, given in extra.items():
        inputs[place] = given
    y, keys, values = run("GroupQueryAttention", inputs, (6,), 3, num_heads=4, kv_num_heads=2, **attributes)
    sink = np.zeros(4) if "smooth_softmax" in attributes else extra.get(11)
    for b, before in enumerate((6, 3)):
        bias = extra[10][b, :, :, :before + 1] if 10 in extra else 0.0
        wanted = grouped(q[b], k[b], v[b], old[:, b], before, 4, 2, attributes.get("local_window_size"), sink, bias,
                         attributes.get("softcap"))
        for got, want in zip((y[b], keys[b, :, :before + 1], values[b, :, :before + 1]), wanted):
            near(got, want)


def rotated(x, cos, sin, places):
    """x: T[b, h, l, d] by halves, of the angles in rows of tables."""
    half = cos.shape[1]
    c, s, a, b = cos[places][:, None], sin[places][:, None], x[..., :half], x[..., half:2 * half]
    return np.concatenate([a * c - b * s, a * s + b * c, x[..., 2 * half:]], -1)


def test_one_build_of_a_decoder_serves_prompts_and_steps():
    nodes = [helper.make_node("Shape", ["mask"], ["shape"]), helper.make_node("Gather", ["shape", "one"], ["t"]),
             helper.make_node("Cast", ["t"], ["total"], to=6),
             helper.make_node("ReduceSum", ["mask", "axis"], ["sum"], keepdims=0),
             helper.make_node("Sub", ["sum", "one"], ["e"]), helper.make_node("Cast", ["e"], ["ends"], to=6),
             helper.make_node("GroupQueryAttention", ["q", "k", "v", "ok", "ov", "ends", "total", "cos", "sin"],
                              ["y", "keys", "values"], domain="com.microsoft", num_heads=4, kv_num_heads=2,
                              do_rotary=1)]
    shapes = {"q": [2, "s", 64], "k": [2, "s", 32], "v": [2, "s", 32], "ok": [2, 2, "p", 16], "ov": [2, 2, "p", 16],
              "mask": [2, "t"]}
    cos, sin = floats(32, 8), floats(32, 8)
    infos = [helper.make_tensor_value_info(n, TensorProto.INT64 if n == "mask" else TensorProto.FLOAT, shape)
             for n, shape in shapes.items()]
    constants = {"one": np.int64(1), "axis": np.array([1]), "cos": cos, "sin": sin}
    graph = helper.make_graph(nodes, "decoder", infos, [helper.make_empty_tensor_value_info(n) for n in (
        "y", "keys", "values")], [numpy_helper.from_array(v, n) for n, v in constants.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17),
                                                    helper.make_opsetid("com.microsoft", 1)])
    built = build_function(from_onnx(model))
    for rows, past, total in ((5, 0, 5), (1, 5, 6), (3, 5, 8), (1, 12, 7), (4, 12, 4)):
        q, k, v, old = floats(2, rows, 64), floats(2, rows, 32), floats(2, rows, 32), floats(2, 2, 2, past, 16)
        y, keys, values = map(np.asarray, built(q, k, v, *old, np.ones((2, total), "int64")))
        assert keys.shape == values.shape == (2, 2, max(past, total), 16)
        places = total - rows + np.arange(rows)[None].repeat(2, 0)
        turned = [side_by_side(rotated(by_head(x, n), cos, sin, places)) for x, n in ((q, 4), (k, 2))]
        for b in range(2):
            wanted = grouped(turned[0][b], turned[1][b], v[b], old[:, b], total - rows, 4, 2)
            for got, want in zip((y[b], keys[b, :, :total], values[b, :, :total]), wanted):
                near(got, want)


@pytest.mark.parametrize("places", [np.array([[3, 1, 8], [0, 2, 5]]), np.array([4])])
@pytest.mark.parametrize("part", [False, True])
def test_rotations_of_heads_side_by_side(places, part):
    x, cos, sin = floats(2, 3, 16), floats(9, 2), floats(9, 2)
    heads = 2 if part else 4
    wanted = rotated(by_head(x, heads), cos, sin, places if places.ndim == 2 else places + np.arange(3)[None])
    attributes = {"num_heads": heads, "rotary_embedding_dim": 4} if part else {}
    near(run("RotaryEmbedding", [x, places, cos, sin], **attributes), side_by_side(wanted))


# weights in blocks


def unpacked(packed, bits):
    parts = [(packed >> shift) & (2**bits - 1) for shift in range(0, 8, bits)]
    return np.stack(parts, -1).reshape(*packed.shape[:-1], -1).astype("float64")


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("inner, block", [(64, 16), (40, 32)])
@pytest.mark.parametrize("zero", ["none", "packed", "floats"])
def test_products_by_weights_in_blocks(bits, inner, block, zero):
    blocks = -(-inner // block)
    x, packed, scale, bias = floats(2, 3, inner), octets(5, blocks, block * bits // 8), floats(5, blocks), floats(5)
    zeros = {"none": None, "packed": octets(5, -(-blocks * bits // 8)), "floats": floats(5, blocks)}[zero]
    offset = np.full((5, blocks), 2.0**(bits - 1)) if zeros is None else unpacked(zeros, bits)[:, :blocks] if \
        zero == "packed" else zeros
    weight = (unpacked(packed, bits) - offset[..., None]) * scale[..., None]
    wanted = x @ weight.reshape(5, -1)[:, :inner].T + bias
    attributes = {"K": inner, "N": 5, "bits": bits, "block_size": block}
    near(run("MatMulNBits", [x, packed, scale, zeros, None, bias], (1, 2, 3), **attributes), wanted, 1e-3)
    flat = [x, packed, scale.reshape(-1), None if zeros is None else zeros.reshape(-1), None, bias]
    near(run("MatMulNBits", flat, **attributes), wanted, 1e-3)
    if inner % block == 0 and zero != "floats" and bits != 2:
        rows = packed.reshape(5, -1), np.array([[4, 0], [1, 1]]), scale, zeros
        got = run("GatherBlockQuantized", rows[:3] if zeros is None else rows, (0, 2, 3), bits=bits, block_size=block)
        near(got, weight.reshape(5, -1)[rows[1]])


@pytest.mark.parametrize("kind, low, number", [("UINT4", 0, 21), ("INT4", -8, 22)])
def test_a_table_of_four_bits(kind, low, number):
    assert number == getattr(TensorProto, kind)
    table, scale = RNG.integers(low, low + 16, (6, 32)), floats(6, 2)
    node = helper.make_node("GatherBlockQuantized", ["t", "i", "s"], ["y"], domain="com.microsoft", block_size=16)
    graph = helper.make_graph([node], "g", [helper.make_tensor_value_info("i", TensorProto.INT64, [2])],
                              [helper.make_empty_tensor_value_info("y")],
                              [helper.make_tensor("t", number, table.shape, table.reshape(-1)),
                               numpy_helper.from_array(scale, "s")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21),
                                                    helper.make_opsetid("com.microsoft", 1)])
    got = np.asarray(build_function(from_onnx(model))(np.array([5, 2])))
    near(got, (table * scale.repeat(16, 1))[[5, 2]])


# integers that stand for floats


def read(q, scale=S, zero=Z):
    return (q.astype("float64") - float(zero)) * float(scale)


def written(y, dtype, scale=S2, zero=Z2):
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    return np.clip(np.round(y / float(scale)) + float(zero), low, high)


def leaky(x):
    return np.where(x < 0, 0.3 * x, x)


def pool(x):
    return np.stack([x[..., i:i + 2, j:j + 2].mean((2, 3)) for i in (0, 2) for j in (0, 2)], -1).reshape(
        *x.shape[:2], 2, 2)


@pytest.mark.parametrize("op, shapes, rule, attributes", [
    ("QLinearAdd", [(2, 3, 4), (4,)], np.add, {}), ("QLinearMul", [(2, 3), (1, 3)], np.multiply, {}),
    ("QLinearSigmoid", [(3, 5)], lambda x: 1 / (1 + np.exp(-x)), {}),
    ("QLinearLeakyRelu", [(3, 5)], leaky, {"alpha": 0.3}),
    ("QLinearSoftmax", [(3, 5)], softmax, {"opset": 13}),
    ("QLinearReduceMean", [(2, 3, 4)], lambda x: x.mean((1, 2)), {"axes": [1, -1], "keepdims": 0}),
    ("QLinearGlobalAveragePool", [(2, 3, 4, 5)], lambda x: x.mean((2, 3), keepdims=True), {}),
    ("QLinearGlobalAveragePool", [(2, 4, 5, 3)], lambda x: x.mean((1, 2), keepdims=True), {"channels_last": 1}),
    ("QLinearAveragePool", [(2, 3, 4, 5)], pool, {"kernel_shape": [2, 2], "strides": [2, 2]}),
    ("QLinearAveragePool", [(2, 4, 5, 3)], lambda x: pool(x.transpose(0, 3, 1, 2)).transpose(0, 2, 3, 1),
     {"kernel_shape": [2, 2], "strides": [2, 2], "channels_last": 1})])
@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize("zeros", [False, True])
def test_integers_that_stand_for_floats(op, shapes, rule, attributes, dtype, zeros):
    zero, last = (np.array(v).astype(dtype) for v in (Z, Z2))
    given = [octets(*shape, dtype=dtype) for shape in shapes]
    inputs = [i for q in given for i in (q, S, zero if zeros else None)]
    got = run(op, [*inputs, S2, last], **attributes)
    wanted = written(rule(*(read(q, S, zero if zeros else 0) for q in given)), dtype, S2, last)
    assert got.dtype == np.dtype(dtype) and got.shape == wanted.shape
    assert np.abs(got.astype(float) - wanted).max() <= 1     # halves of sums in float32 may round the other way


def test_integers_that_stand_for_floats_are_chosen_and_joined():
    a, b, chosen = octets(2, 3), octets(2, 3), np.array([[True], [False]])
    got = run("QLinearWhere", [chosen, a, S, Z, b, S2, Z2, S2, Z2])
    assert np.abs(got - written(np.where(chosen, read(a), read(b, S2, Z2)), "uint8")).max() <= 1
    got = run("QLinearConcat", [S2, Z2, a, S, Z, b, S2, Z2], axis=-1)
    assert np.abs(got - written(np.concatenate([read(a), read(b, S2, Z2)], -1), "uint8")).max() <= 1


@pytest.mark.parametrize("right", ["uint8", "int8"])
def test_products_of_integers_as_floats(right):
    a, b, bias = octets(2, 3, 8), octets(8, 5, dtype=right), floats(5)
    scales, zeros = np.abs(floats(5)), np.arange(5).astype(right)
    exact = (a.astype("int64") - int(Z)) @ (b.astype("int64") - zeros)
    got = run("MatMulIntegerToFloat", [a, b, S, scales, Z, zeros, bias], (1,))
    near(got, exact * float(S) * scales + bias, 1e-4)
    got = run("QGemm", [a[0].T, S, Z, b.T, scales, zeros, np.full(5, 7, "int32")], transA=1, transB=1, alpha=0.5)
    near(got, 0.5 * (exact[0] + 7) * float(S) * scales, 1e-4)
    got = run("QGemm", [a[0], S, Z, b, scales, zeros, None, np.float32(9), Z2])
    wanted = written(exact[0] * float(S) * scales, "uint8", 9)
    assert got.dtype == np.uint8 and np.abs(got - wanted).max() <= 1
    x = floats(3, 8)
    step = (max(x.max(), 0) - min(x.min(), 0)) / 255
    zero = np.round(-min(x.min(), 0) / step)
    whole = np.clip(np.round(x / step) + zero, 0, 255) - zero
    near(run("DynamicQuantizeMatMul", [x, b, scales, zeros, bias]), whole @ (b.astype("int64") - zeros) * step * scales
         + bias, 1e-3)


def test_attention_of_integers():
    x, weight, bias = octets(2, 3, 8), octets(8, 24, dtype="int8"), floats(24)
    whole = read(x, 0.02) @ read(weight, 0.02, 3) + bias
    got = run("QAttention", [x, weight, bias, np.float32(0.02), np.float32(0.02), None, Z, np.int8(3)], num_heads=2)
    near(got, attended(*(by_head(part, 2) for part in np.split(whole, 3, -1))), 1e-3)


def test_channels_last():
    x, weight = octets(2, 6, 5, 3), octets(4, 3, 2, 2, dtype="int8")
    common = [S, Z, weight, S2, np.int8(0), np.float32(9), Z2]
    first = results("QLinearConv", [x.transpose(0, 3, 1, 2), *common], 17)[0]
    np.testing.assert_array_equal(run("QLinearConv", [x, *common], channels_last=1), first.transpose(0, 2, 3, 1))
    got = run("NhwcMaxPool", [x], kernel_shape=[2, 2], strides=[2, 2])
    np.testing.assert_array_equal(got, x[:, :6, :4].reshape(2, 3, 2, 2, 2, 3).max((2, 4)))


@pytest.mark.parametrize("dtype", ["uint16", "int16"])
def test_integers_of_16_bits(dtype):
    x, scale, zero = 9 * floats(3, 4), np.abs(floats(4)) + np.float32(0.1), np.array([0, 9, 99, 999], dtype)
    q = run("QuantizeLinear", [x, scale, zero], axis=1)
    assert q.dtype == np.dtype(dtype)
    near(q, np.clip(np.round(x / scale) + zero, np.iinfo(dtype).min, np.iinfo(dtype).max))
    near(run("DequantizeLinear", [q, scale, zero], axis=1), (q.astype("float64") - zero) * scale)


# layers


def normalised(x, weight, bias, eps=1e-12):
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + eps) * weight + bias


def test_sums_of_embeddings():
    ids, kinds, mask = RNG.integers(0, 9, (2, 4)), RNG.integers(0, 2, (2, 4)), np.array([[1, 1, 1, 0], [1, 0, 0, 0]])
    tables, weight, bias = [floats(9, 8), floats(6, 8), floats(2, 8)], floats(8), floats(8)
    whole = tables[0][ids] + tables[1][:4] + tables[2][kinds]
    given = [a.astype("int32") for a in (ids, kinds, mask)]
    y, words, total = run("EmbedLayerNormalization", [*given[:2], *tables, weight, bias, given[2]], count=3)
    near(y, normalised(whole, weight, bias), 1e-4)
    near(total, whole)
    assert words.tolist() == [3, 1] and words.dtype == np.int32
    assert run("EmbedLayerNormalization", [*given[:2], *tables, weight, bias], count=2, mask_index_type=0)[1].tolist() \
        == [0, 0]
    tables = [octets(*t.shape) for t in (*tables, weight, bias)]
    y, words = run("QEmbedLayerNormalization", [*given[:2], *tables, given[2], *[S] * 5, *[Z] * 5], count=2)
    t = [read(x) for x in tables]
    near(y, normalised(t[0][ids] + t[1][:4] + t[2][kinds], *t[3:]), 1e-4)
    assert words.tolist() == [3, 1]


ACTIVATIONS = [("Relu", {}, lambda y: np.maximum(y, 0)), ("Tanh", {}, np.tanh), ("LeakyRelu", {"alpha": 0.3}, leaky),
               ("HardSigmoid", {"alpha": 0.3, "beta": 0.4}, lambda y: np.clip(0.3 * y + 0.4, 0, 1))]


@pytest.mark.parametrize("name, given, rule", ACTIVATIONS)
def test_products_with_an_activation(name, given, rule):
    a, b, c = floats(3, 4), floats(5, 4), floats(5)
    near(run("FusedGemm", [a, b, c], transB=1, beta=2.0, activation=name, **{
        f"activation_{k}": v for k, v in given.items()}), rule(a @ b.T + 2 * c))
    x, weight, bias, more = floats(1, 4, 1, 6), floats(5, 4, 1, 1), floats(5), floats(1, 5, 1, 6)
    wanted = np.einsum("bchw,fc->bfhw", x, weight[:, :, 0, 0]) + bias[:, None, None] + more
    options = {"activation_params": list(given.values())} if given else {}
    near(run("FusedConv", [x, weight, bias, more], activation=name, **options), rule(wanted))


def erf_gelu(x):
    return x * (1 + np.vectorize(math.erf)(x / math.sqrt(2))) / 2


def tanh_gelu(x):
    return x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2


@pytest.mark.parametrize("op, rule", [
    ("Gelu", erf_gelu), ("BiasGelu", erf_gelu), ("FastGelu", tanh_gelu), ("QuickGelu", lambda x: x / (
        1 + np.exp(-1.702 * x)))])
def test_gates_of_one_tensor(op, rule):
    x, bias = floats(2, 3, 8), floats(8)
    if op != "BiasGelu":
        near(run(op, [x]), rule(x.astype("float64")))
    if op in ("BiasGelu", "FastGelu"):
        near(run(op, [x, bias]), rule((x + bias).astype("float64")))


@pytest.mark.parametrize("shape", [(2, 3, 8), (1, 3, 8), (3, 8)])
def test_sums_that_are_normalised(shape):
    x, skip, weight, shift, bias = floats(2, 3, 8), floats(*shape), floats(8), floats(8), floats(8)
    total = (x + skip + bias).astype("float64")
    names = {"count": (0, 3), "epsilon": 0.1}
    y, whole = run("SkipLayerNormalization", [x, skip, weight, shift, bias], **names)
    near(y, normalised(total, weight, shift, 0.1))
    near(whole, total)
    y, whole = run("SkipSimplifiedLayerNormalization", [x, skip, weight, bias], **names)
    near(y, total / np.sqrt((total**2).mean(-1, keepdims=True) + 0.1) * weight)
    near(whole, total)
    y = results("SimplifiedLayerNormalization", [x, weight], 17, axis=-1, epsilon=0.1)[0]
    near(y, x / np.sqrt((x.astype("float64")**2).mean(-1, keepdims=True) + 0.1) * weight)


def test_halves_of_which_one_is_a_gate():
    x, bias = floats(2, 3, 8), floats(8)
    a, b = np.split((x + bias).astype("float64"), 2, -1)
    near(run("BiasSplitGelu", [x, bias]), a * erf_gelu(b))


# refusals


X3 = floats(2, 3, 8)


@pytest.mark.parametrize("op, inputs, attributes, match", [
    ("GroupQueryAttention", [X3, X3, X3, None, None, np.array([2, 2], "int32"), np.array(3, "int32")],
     {"num_heads": 2, "kv_num_heads": 2, "k_quant_type": "PER_TENSOR"}, "attribute k_quant_type is PER_TENSOR"),
    ("GroupQueryAttention", [X3, X3, X3, None, None, np.array([2, 2], "int32"), np.array(4, "int32")],
     {"num_heads": 2, "kv_num_heads": 2}, "3 new keys of 4 in all, and no cache"),
    ("GroupQueryAttention", [X3] * 17, {"num_heads": 2, "kv_num_heads": 2}, "input 16, which is not known"),
    ("MultiHeadAttention", [X3, X3, X3, None, np.arange(8, dtype="int32")], {"num_heads": 2}, r"of the shape \(8,\)"),
    ("MatMulNBits", [X3, octets(5, 1, 8), floats(5, 1)], {"K": 8, "N": 5, "bits": 3, "block_size": 16}, "bits is 3"),
    ("MatMulNBits", [X3, octets(5, 1, 7), floats(5, 1)], {"K": 8, "N": 5, "block_size": 16}, "the weight has"),
    ("RotaryEmbedding", [X3, np.array([0]), floats(9, 2), floats(9, 2)], {"scale": 2.0}, "attribute scale of 2.0"),
    ("MultiHeadAttention", [X3, X3, X3], {"num_heads": 2, "unidirectional": 2}, "unidirectional is 2, 0 or 1"),
    ("GatherBlockQuantized", [octets(5, 32), np.array([1]), floats(5, 2)], {"block_size": 16}, "input 2 has the shape"),
    ("QLinearAdd", [octets(3), floats(3), Z, octets(3), S, Z, S, Z], {}, r"input 1 has the shape \(3,\), one number"),
    ("QLinearAveragePool", [octets(1, 1, 4, 4), S, Z, S, Z], {"kernel_shape": [3, 3], "ceil_mode": 1,
                                                              "count_include_pad": 1}, "ceil_mode and count_include"),
    ("FusedConv", [floats(1, 1, 3, 3), floats(1, 1, 1, 1)], {"activation": "Foo"}, "attribute activation is 'Foo'")])
def test_what_is_not_supported_is_refused(op, inputs, attributes, match):
    with pytest.raises(ImportModelError, match=match):
        run(op, inputs, (6,), **attributes)


def test_results_that_are_not_made_are_refused_where_they_are_read():
    assert run("SkipLayerNormalization", [X3, X3, X3[0, 0]]).shape == X3.shape
    with pytest.raises(ImportModelError, match="'y1', a result of an operator of which others alone are supported"):
        run("SkipLayerNormalization", [X3, X3, X3[0, 0]], count=2)
