"""Nodes with attributes and elements that the samples of the onnx package have not, against NumPy."""
import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.frontend.onnx_models import check, results
from tilewright.frontend.onnx.backend import backend
from tilewright.support.errors import ImportModelError

RNG = np.random.default_rng(0)
X = RNG.standard_normal((3, 4)).astype("float32")
TABLE = np.arange(9).reshape(3, 3)


@pytest.mark.parametrize("op, wanted", [
    ("ReduceL1", np.abs(X)), ("ReduceL2", np.abs(X)), ("ReduceLogSumExp", X), ("ReduceMax", X), ("ReduceMean", X),
    ("ReduceMin", X), ("ReduceProd", X), ("ReduceSum", X), ("ReduceSumSquare", X * X)])
@pytest.mark.parametrize("axes", [[], [np.zeros(0, "int64")]])
def test_reductions_over_no_axes_are_of_each_element_alone(op, wanted, axes):
    check(results(op, [X, *axes], 18, (1,), noop_with_empty_axes=1)[0], wanted)


def test_the_logarithm_of_a_sum_over_no_axes():
    check(results("ReduceLogSum", [np.abs(X)], 18, noop_with_empty_axes=1)[0], np.log(np.abs(X)))


def test_the_logarithm_of_a_sum_of_exponentials_of_integers():
    x = np.array([[-3, 2], [5, 9]], "int32")
    check(results("ReduceLogSumExp", [x], 18, keepdims=0)[0], np.int32(np.log(np.exp(x.astype(float)).sum())))


@pytest.mark.parametrize("index, axis", [
    ([[0, 2]], 1), ([[0, 1], [2, -1]], 1), ([[0], [1]], 0), ([[-1, -2]], 0), ([[1, 2, 0]], 0)])
@pytest.mark.parametrize("constants", [(), (0, 1, 2)])
def test_an_index_of_fewer_places_than_x(index, axis, constants):
    index = np.array(index)
    updates, scattered, gathered = 100 + index, TABLE.copy(), np.empty_like(index)
    for at in np.ndindex(*index.shape):
        place = (*at[:axis], index[at], *at[axis + 1:])
        scattered[place], gathered[at] = updates[at], TABLE[place]
    check(results("GatherElements", [TABLE, index], 13, constants, axis=axis)[0], gathered)
    check(results("ScatterElements", [TABLE, index, updates], 16, constants, axis=axis)[0], scattered)


@pytest.mark.parametrize("constants", [(), (0, 1)])
def test_rows_of_no_indices_are_all_of_x(constants):
    check(results("GatherND", [TABLE, np.zeros((2, 0), "int64")], 13, constants)[0], np.stack([TABLE, TABLE]))


@pytest.mark.parametrize("shape, axis, wanted", [
    ((0, 3), 1, (0, 3)), ((0, 3), 0, (1, 0)), ((3, 0), 2, (0, 1)), ((2, 0, 3), 2, (0, 3))])
@pytest.mark.parametrize("constants", [(), (0,)])
def test_matrices_of_no_elements(shape, axis, wanted, constants):
    check(results("Flatten", [np.zeros(shape, "float32")], 13, constants, axis=axis)[0], np.zeros(wanted, "float32"))


@pytest.mark.parametrize("start, end, step, wanted", [
    (-10, -20, -1, [0]), (-4, -10, -2, [0]), (-2**31, -2**31, -1, [0]), (-2**63, -2**63, -1, [0]),
    (-10, 10, 1, [0, 1, 2]), (10, -10, -1, [2, 1, 0]), (-2**63, 2**63 - 1, 2, [0, 2]), (2**63 - 1, -2**63, -2, [2, 0]),
    (0, -1, -1, [])])
@pytest.mark.parametrize("constants", [(1, 2, 3, 4), (0, 1, 2, 3, 4)])
def test_ends_of_slices_are_brought_to_x(start, end, step, wanted, constants):
    inputs = [np.arange(3), *(np.array([v]) for v in (start, end, 0, step))]
    check(results("Slice", inputs, 13, constants)[0], np.array(wanted, "int64"))


@pytest.mark.parametrize("base, exponent", [
    (np.array([3, -3, 7], "int32"), np.array([18, 17, 10], "float32")),
    (np.array([3, -3, 7], "int32"), np.array([18, 17, 10], "int64")),
    (np.array([-1, -1], "float32"), np.array([2**24 + 1, 2**31 - 1])),
    (np.array([2, 9], "float32"), np.array([0.5, -0.5])),
    (np.array([-2.5, 3], "float32"), np.array(2.0000001)), (np.array([-2.5, 3], "float32"), np.array(2.0))])
@pytest.mark.parametrize("constants", [(), (0, 1)])
def test_powers_in_two_types_are_computed_in_one_that_holds_both(base, exponent, constants):
    with np.errstate(invalid="ignore"):
        wanted = np.power(base.astype("float64"), exponent.astype("float64")).astype(base.dtype)
    check(results("Pow", [base, exponent], 15, constants)[0], wanted)


@pytest.mark.parametrize("constants", [(), (0, 1)])
def test_powers_of_integers_by_negative_exponents(constants):
    base, exponent = np.array([2, 1, -1, -1, 3], "int32"), np.array([-1, -3, -3, -2, 2], "int32")
    check(results("Pow", [base, exponent], 15, constants)[0], np.array([0, 1, -1, 1, 9], "int32"))


@pytest.mark.parametrize("dtype, x", [
    ("uint8", [[0, 255, 3]]), ("int8", [[-128, 127, 3]]), ("int32", [[7, -9, 2**31 - 1]])])
def test_integers_are_resized_in_floats(dtype, x):
    x = np.array(x, dtype)
    wanted = np.trunc(np.stack([linear(row, 6, 2.0) for row in x])).astype(dtype)
    check(results("Resize", [x, None, np.array([1, 2], "float32")], 13, (2,), mode="linear")[0], wanted)


@pytest.mark.parametrize("given, size", [("scales", 6), ("sizes", 6), ("sizes", 2)])
def test_half_pixels_without_their_half(given, size):
    x = RNG.standard_normal(3).astype("float32")
    chosen = [np.zeros(0, "float32"), np.array([size])] if given == "sizes" else [np.array([size / 3], "float32")]
    inputs = [x, np.zeros(0, "float32"), *chosen]
    got = results("Resize", inputs, 11, range(1, len(inputs)), mode="nearest", nearest_mode="floor",
                  coordinate_transformation_mode="tf_half_pixel_for_nn")[0]
    check(got, x[np.floor((np.arange(size) + 0.5) * 3 / size).astype(int)])


def test_integers_are_shrunk():
    check(results("Shrink", [np.array([-3, -1, 0, 2, 5], "int8")], 9, lambd=1.5, bias=1.0)[0],
          np.array([-2, 0, 0, 1, 4], "int8"))


def test_a_batch_of_numbers_is_normalised_as_one_channel():
    x, ones = RNG.standard_normal(5).astype("float32"), np.ones(1, "float32")
    check(results("BatchNormalization", [x, ones, ones, ones, ones], 15, epsilon=0.0)[0], x)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


@pytest.mark.parametrize("options, of_gate, of_new, clip", [
    ({"activations": ["HardSigmoid", "Tanh", "Tanh"]}, lambda x: np.clip(0.2 * x + 0.5, 0, 1), np.tanh, np.inf),
    ({"activations": ["HardSigmoid", "LeakyRelu", "Softsign"], "activation_alpha": [0.3, 0.1],
      "activation_beta": [0.4]}, lambda x: np.clip(0.3 * x + 0.4, 0, 1), lambda x: np.where(x < 0, 0.1 * x, x), np.inf),
    ({"clip": 0.25}, sigmoid, np.tanh, 0.25), ({"input_forget": 1}, sigmoid, np.tanh, np.inf)])
@pytest.mark.parametrize("peepholes", [False, True])
def test_recurrent_layers_of_other_activations(options, of_gate, of_new, clip, peepholes):
    x, w, r, p = (RNG.standard_normal(s).astype("float32") for s in ((2, 1, 2), (1, 12, 2), (1, 12, 3), (1, 9)))
    of_cell = {"Softsign": lambda x: x / (1 + abs(x))}.get(options.get("activations", ["Tanh"])[-1], np.tanh)
    h = c = np.zeros(3)
    pi, po, pf = p[0].reshape(3, 3) * peepholes
    for row in x[:, 0]:
        i, o, f, g = (w[0] @ row + r[0] @ h).reshape(4, 3)
        i, f = (of_gate(np.clip(e + q * c, -clip, clip)) for e, q in ((i, pi), (f, pf)))
        f = 1 - i if "input_forget" in options else f
        c = f * c + i * of_new(np.clip(g, -clip, clip))
        h = of_gate(np.clip(o + po * c, -clip, clip)) * of_cell(np.clip(c, -clip, clip))
    got = results("LSTM", [x, w, r, None, None, None, None, p][:8 if peepholes else 3], 14, count=3, hidden_size=3,
                  **options)
    check(got[1], h[None, None].astype("float32"), 1e-5)
    check(got[2], c[None, None].astype("float32"), 1e-5)


def linear(x, size, scale):
    """x: T[n] by half pixels at a scale, in float64."""
    places = np.clip((np.arange(size) + 0.5) / scale - 0.5, 0, len(x) - 1)
    return np.interp(places, np.arange(len(x)), x.astype("float64"))


@pytest.mark.parametrize("sizes, policy", [
    ((10, 9), "not_larger"), ((3, 4), "not_larger"), ((10, 9), "not_smaller"), ((7, 8), "not_smaller")])
def test_sizes_that_keep_the_shares_are_resized_by_one_scale(sizes, policy):
    x = RNG.standard_normal((7, 5)).astype("float32")
    scale = (min if policy == "not_larger" else max)(s / e for s, e in zip(sizes, x.shape))
    rows, columns = (int(np.floor(scale * e + 0.5)) for e in x.shape)
    wanted = np.stack([linear(row, columns, scale) for row in x])
    wanted = np.stack([linear(column, rows, scale) for column in wanted.T], axis=1)
    inputs = [x, None, None, np.array(sizes)]
    made, = results("Resize", inputs, 18, (3,), mode="linear", keep_aspect_ratio_policy=policy)
    check(made, wanted.astype("float32"), 1e-5)


@pytest.mark.parametrize("scale, size", [(0.7, 7), (2.3, 23), (0.3, 3), (1.1, 11)])
def test_sizes_by_scales_are_products_of_floats_of_32_bits(scale, size):
    made, = results("Resize", [np.zeros(10, "float32"), None, np.array([scale], "float32")], 19, (2,), mode="linear")
    assert made.shape == (size,)


@pytest.mark.parametrize("scale, wanted", [(0.6, [0, 2, 4]), (0.8, [0, 2, 3, 4]), (1.5, [0, 0, 1, 2, 2, 3, 4])])
def test_the_nearest_element_in_version_10_is_above_where_x_shrinks(scale, wanted):
    x = np.arange(5, dtype="float32")
    check(results("Resize", [x, np.array([scale], "float32")], 10, (1,))[0], np.array(wanted, "float32"))


@pytest.mark.parametrize("parts, inverse", [(2, 0), (1, 1)])
def test_one_sided_transforms_are_of_real_numbers(parts, inverse):
    with pytest.raises(ImportModelError, match=f"the last extent of x is {parts}"):
        results("DFT", [RNG.standard_normal((2, 5, parts)).astype("float32")], 17, onesided=1, inverse=inverse)


@pytest.mark.parametrize("axis", [0, 2])
def test_hardmax_of_no_elements(axis):
    shape = tuple(0 if k == axis else 2 for k in range(3))
    for opset in (11, 13):
        check(results("Hardmax", [np.zeros(shape, "float32")], opset, axis=axis)[0], np.zeros(shape, "float32"))


def test_shrink_by_a_negative_bound():
    x = np.array([0.0, 0.5, -0.5, 3.0, -3.0], "float32")
    wanted = np.where(x < 0.6, x + np.float32(0.2), x - np.float32(0.2))
    check(results("Shrink", [x], 20, lambd=-0.6, bias=0.2)[0], wanted)


def test_a_scale_of_one_element_is_that_of_all():
    x = np.array([-1.0, 0.0, 0.5, 1.5], "float32")
    for scale, zero in (((), ()), ((1,), (1,)), ((1,), ())):
        inputs = [x, np.full(scale, 0.1, "float32"), np.full(zero, 3, "uint8")]
        check(results("QuantizeLinear", inputs, 13)[0], np.array([0, 3, 8, 18], "uint8"))
        back, = results("DequantizeLinear", [np.array([0, 3, 8, 18], "uint8"), *inputs[1:]], 13)
        check(back, np.array([-0.3, 0, 0.5, 1.5], "float32"))


@pytest.mark.parametrize("mode, how", [("reflect", "reflect"), ("edge", "edge"), ("wrap", "wrap")])
def test_borders_of_what_negative_ones_have_cut(mode, how):
    x = np.arange(15, dtype="float32").reshape(3, 5)
    made, = results("Pad", [x, np.array([-1, 2, 1, -2])], 19, (1,), mode=mode)
    check(made, np.pad(x[1:, :3], [(0, 1), (2, 0)], mode=how))
    made, = results("Pad", [x, np.array([0, -2, 0, 2])], 19, (1,), mode=mode)
    check(made, np.pad(x[:, 2:], [(0, 0), (0, 2)], mode=how))


def test_products_of_integers_stay_integers():
    a, b, c = (RNG.integers(-9, 9, s).astype("int32") for s in ((2, 3), (3, 4), (4,)))
    check(results("Gemm", [a, b, c], 13, alpha=2.0, beta=3.0)[0], (2 * (a @ b) + 3 * c).astype("int32"))
    check(results("Gemm", [a, b], 13, alpha=-2.0)[0], (-2 * (a @ b)).astype("int32"))
    with pytest.raises(ImportModelError, match="alpha is 0.5"):
        results("Gemm", [a, b, c], 13, alpha=0.5)


@pytest.mark.parametrize("name, first", [("HannWindow", 0), ("HammingWindow", 4 / 46), ("BlackmanWindow", 0)])
def test_windows_of_one_number_follow_their_formula(name, first):
    check(results(name, [np.int64(1)], 17, (0,))[0], np.array([first], "float32"))


def test_moments_of_a_layer_have_the_type_of_the_stash():
    x = RNG.standard_normal((3, 4))
    _, mean, deviation = results("LayerNormalization", [x, np.ones(4)], 17, count=3, epsilon=0.5)
    check(mean, x.mean(-1, keepdims=True).astype("float32"))
    check(deviation, (1 / np.sqrt(x.var(-1, keepdims=True) + 0.5)).astype("float32"))


def test_batches_whose_elements_are_normalised_one_by_one():
    x = RNG.standard_normal((3, 2, 4)).astype("float32")
    scale, bias, mean, var = (RNG.random((2, 4)).astype("float32") for _ in range(4))
    made, = results("BatchNormalization", [x, scale, bias, mean, var], 7, spatial=0)
    check(made, (x - mean) / np.sqrt(var + np.float32(1e-5)) * scale + bias, 1e-5)


def test_moments_without_a_name_are_not_asked_for():
    x, ones = RNG.standard_normal((3, 2)).astype("float32"), np.ones(2, "float32")
    node = helper.make_node("BatchNormalization", ["x", "s", "s", "s", "s"], ["y", "", "", ""])
    infos = [helper.make_tensor_value_info(k, 1, v.shape) for k, v in (("x", x), ("s", ones))]
    graph = helper.make_graph([node], "g", infos, [helper.make_empty_tensor_value_info("y")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 9)])
    check(backend().prepare(model).run([x, ones])[0], (x - 1) / np.sqrt(np.float32(1 + 1e-5)) + 1, 1e-5)


@pytest.mark.parametrize("opset, kind", [(7, "float32"), (10, "bool"), (13, "bool")])
def test_what_a_dropout_keeps_has_a_type_by_version(opset, kind):
    check(results("Dropout", [X], opset, count=2)[1], np.ones(X.shape, kind))


def test_directions_with_activations_of_their_own():
    x = RNG.standard_normal((2, 1, 3)).astype("float32")
    weight, again = (RNG.standard_normal((2, 2, k)).astype("float32") for k in (3, 2))
    y, _ = results("RNN", [x, weight, again], 14, count=2, hidden_size=2, direction="bidirectional",
                   activations=["Relu", "Tanh"])
    first = np.maximum(x[0] @ weight[0].T, 0)
    check(y[:, 0], np.stack([first, np.maximum(x[1] @ weight[0].T + first @ again[0].T, 0)]), 1e-5)
    last = np.tanh(x[1] @ weight[1].T)
    check(y[:, 1], np.stack([np.tanh(x[0] @ weight[1].T + last @ again[1].T), last]), 1e-5)


def halves(*values):
    return np.array(values, "float16")


LEFT, RIGHT = np.full((4, 200), 30, "float16"), np.full((200, 4), 30, "float16")
NORMAL = 400 * RNG.standard_normal((64, 2))
CONTRIB = {"domain": "com.microsoft"}


@pytest.mark.parametrize("op, inputs, attributes, wanted", [
    ("Gemm", [LEFT, RIGHT], {"alpha": 0.01}, np.full((4, 4), 1800)),
    ("Gemm", [LEFT, RIGHT, np.ones((4, 4), "float16")], {"alpha": 0.01, "beta": 2.0}, np.full((4, 4), 1802)),
    ("Gemm", [2 * LEFT, RIGHT, np.full((4, 4), -6e4, "float16")], {"beta": 5.0}, np.full((4, 4), 6e4)),
    ("Gemm", [LEFT, RIGHT, np.full((4, 4), -6e4, "float16")], {"beta": 2.0}, np.full((4, 4), 6e4)),
    ("FusedMatMul", [LEFT, RIGHT], {"alpha": 0.01, **CONTRIB}, np.full((4, 4), 1800)),
    ("ReduceL2", [halves(300, 300, 300, 300)], {"keepdims": 0}, 600),
    ("ReduceLogSum", [halves(6e4, 6e4)], {"keepdims": 0}, np.log(12e4)),
    ("Mean", [halves(6e4), halves(6e4)], {}, [6e4]),
    ("Sum", [halves(6e4), halves(6e4), halves(-6e4)], {}, [6e4]),
    ("SkipLayerNormalization", [halves(6e4, -6e4)[None], halves(6e4, -6e4)[None], halves(1, 1)], CONTRIB, [[1, -1]]),
    ("SkipSimplifiedLayerNormalization", [halves(6e4, -6e4)[None], halves(6e4, -6e4)[None], halves(1, 1)], CONTRIB,
     [[1, -1]])])
def test_floats_of_16_bits_are_combined_in_32(op, inputs, attributes, wanted):
    check(results(op, inputs, 13, **attributes)[0], np.asarray(wanted, "float64").astype("float16"), 1e-3)


def test_moments_of_floats_of_16_bits_have_32():
    x = NORMAL.astype("float16")
    y, mean, var = results("BatchNormalization", [x, halves(1, 1), halves(0, 0), halves(0, 0), halves(1, 1)], 15,
                           count=3, training_mode=1, momentum=0.999)
    wide = x.astype("float64")
    check(y, ((wide - wide.mean(0)) / np.sqrt(wide.var(0) + 1e-5)).astype("float16"), 2e-3)
    check(mean, (0.001 * wide.mean(0)).astype("float16"), 2e-3)
    check(var, (0.999 + 0.001 * wide.var(0)).astype("float16"), 2e-3)


@pytest.mark.parametrize("kind", ["int32", "int64", "uint64"])
def test_means_of_integers_are_of_integers(kind):
    check(results("ReduceMean", [np.array([16777217, 16777217], kind)], 13, keepdims=0)[0], np.array(16777217, kind))
    x = np.array([[3, 4], [5, 8]], kind) * np.array(1 if kind == "uint64" else -1).astype(kind)
    check(results("ReduceMean", [x], 13, axes=[1])[0], np.trunc(x.sum(1, keepdims=True) / 2).astype(kind))


@pytest.mark.parametrize("kind, beyond, most", [("FLOAT8E4M3FN", np.nan, 448), ("FLOAT8E5M2", np.inf, 57344)])
@pytest.mark.parametrize("saturate", [0, 1, None])
@pytest.mark.parametrize("source", ["float32", "int32"])
def test_what_is_beyond_floats_of_8_bits(kind, beyond, most, saturate, source):
    number = getattr(TensorProto, kind)
    attributes = {} if saturate is None else {"saturate": saturate}
    wanted = np.array([most, -most, 3] if saturate != 0 else [beyond, -beyond, 3], "float32")
    one, zero = numpy_helper.from_array(np.float32(1), "s"), helper.make_tensor("z", number, [], [0.0])
    for node, constants in ((helper.make_node("Cast", ["x"], ["q"], to=number, **attributes), []),
                            (helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"], **attributes), [one, zero])):
        x = np.array([100000, -100000, 3], source)
        back = helper.make_node("Cast", ["q"], ["y"], to=TensorProto.FLOAT)
        info = helper.make_tensor_value_info("x", helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
        graph = helper.make_graph([node, back], "g", [info], [helper.make_empty_tensor_value_info("y")], constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)])
        check(backend().prepare(model).run([x])[0], wanted)


@pytest.mark.parametrize("batch_a", [0, 1])
@pytest.mark.parametrize("batch_b", [0, 1])
@pytest.mark.parametrize("swapped", [0, 1])
def test_products_of_matrices_whose_batch_lies_inside(batch_a, batch_b, swapped):
    a, b = RNG.standard_normal((2, 3, 4)).astype("float32"), RNG.standard_normal((2, 4, 5)).astype("float32")
    given = [np.swapaxes(x, 1, 2) if swapped else x for x in (a, b)]
    given = [np.ascontiguousarray(np.moveaxis(x, 0, 1) if moved else x)
             for x, moved in zip(given, (batch_a, batch_b))]
    made, = results("FusedMatMul", given, 13, alpha=0.5, transA=swapped, transB=swapped, transBatchA=batch_a,
                    transBatchB=batch_b, **CONTRIB)
    check(made, 0.5 * (a @ b), 1e-5)


def attended(q, k, v, added):
    """Attention of two heads of four elements, in float64."""
    q, k, v = (x.astype("float64").reshape(*x.shape[:2], 2, -1).transpose(0, 2, 1, 3) for x in (q, k, v))
    scores = q @ k.swapaxes(2, 3) / 2 + added
    scores = np.exp(scores - scores.max(-1, keepdims=True))
    y = scores / scores.sum(-1, keepdims=True) @ v
    return y.transpose(0, 2, 1, 3).reshape(y.shape[0], y.shape[2], -1).astype("float32")


@pytest.mark.parametrize("shape", [(2, 3), (2, 3, 3)])
@pytest.mark.parametrize("attributes, value", [({}, -1e4), ({"mask_filter_value": -3.0}, -3.0)])
@pytest.mark.parametrize("causal", [0, 1])
def test_keys_that_a_mask_leaves_out_have_the_value_that_is_said(shape, attributes, value, causal):
    q, k, v = (RNG.standard_normal((2, 3, 8)).astype("float32") for _ in range(3))
    mask = (RNG.random(shape) < 0.5).astype("int32")
    mask[0] = 0
    added = np.where(mask > 0, 0, value).reshape(2, 1, *([1] if mask.ndim == 2 else []), *shape[1:])
    if causal:
        added = added + np.where(np.tri(3) > 0, 0, -np.inf)
    made, = results("MultiHeadAttention", [q, k, v, None, mask], 13, num_heads=2, unidirectional=causal, **attributes,
                    **CONTRIB)
    check(made, attended(q, k, v, added), 2e-3)          # scores of -1e4 have steps of 1e-3
    weight = np.eye(8, 24, dtype="float32") + np.eye(8, 24, 8, dtype="float32") + np.eye(8, 24, 16, dtype="float32")
    made, = results("Attention", [q, weight, None, mask], 13, num_heads=2, unidirectional=causal, **attributes,
                    **CONTRIB)
    check(made, attended(q, q, q, added), 2e-3)


def test_the_last_query_sees_all_keys():
    q, k, v = (RNG.standard_normal((2, rows, 8)).astype("float32") for rows in (1, 4, 4))
    check(results("MultiHeadAttention", [q, k, v], 13, num_heads=2, unidirectional=1, **CONTRIB)[0],
          attended(q, k, v, 0), 1e-4)
    with pytest.raises(ImportModelError, match="unidirectional of 4 queries and 1 keys: the numbers differ"):
        results("MultiHeadAttention", [k, q, q], 13, num_heads=2, unidirectional=1, **CONTRIB)


@pytest.mark.parametrize("op, inputs", [
    ("FusedMatMul", [X, X]), ("Gelu", [X]), ("SimplifiedLayerNormalization", [X, X[0]]), ("QuickGelu", [X]),
    ("EmbedLayerNormalization", [TABLE, None, X, X, None, X[0], X[0]])])
def test_attributes_that_are_not_known_are_refused(op, inputs):
    with pytest.raises(ImportModelError, match="the attribute of_later_versions, which is not known"):
        results(op, inputs, 13, of_later_versions=1, **CONTRIB)
