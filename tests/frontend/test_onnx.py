"""Models in the ONNX format: shapes of named sizes, functions, choices and loops, the interface of the onnx package."""
import numpy as np
import pytest
from onnx import helper

from tests.frontend.onnx_backend import cases, run_case
from tests.frontend.onnx_models import BOOL, FLOAT, INT64, graph, model, node, reference, tensor, transformer
from tests.frontend.onnx_table import PAGE, page
from tilewright.frontend.onnx import from_onnx
from tilewright.frontend.onnx.backend import backend
from tilewright.graph.compile import build_function
from tilewright.graph.ir.values import check_function
from tilewright.graph.plan.loaded import load
from tilewright.runtime import export
from tilewright.runtime.llvm import host_triple
from tilewright.support.errors import CallError, ImportModelError

RNG = np.random.default_rng(0)
SAMPLE = """
test_abs test_add_bcast test_add_uint8 test_argmax_default_axis_example test_averagepool_2d_ceil
test_basic_conv_with_padding test_batchnorm_example test_bitshift_left_uint8 test_cast_FLOAT_to_FLOAT8E4M3FN
test_cast_INT4_to_FLOAT test_celu test_clip_example test_concat_2d_axis_0 test_convtranspose_group_2
test_cumsum_1d_exclusive test_depthtospace_example test_dequantizelinear_axis
test_einsum_batch_matmul test_expand_dim_changed test_gather_negative_indices test_gelu_tanh_1
test_gemm_all_attributes test_gridsample_bilinear test_gru_with_initial_bias test_hardmax_axis_1
test_identity_sequence test_if test_if_seq test_layer_normalization_2d_axis0 test_logsoftmax_axis_1_expanded
test_loop11 test_lstm_with_initial_bias test_matmulinteger test_maxpool_2d_same_upper
test_maxunpool_export_with_output_shape test_mod_mixed_sign_int32 test_nllloss_NCd1_weight_ii
test_onehot_negative_indices test_reflect_pad test_pow_types_float32_int64 test_qlinearmatmul_2D_uint8_float32
test_quantizelinear_axis test_range_int32_type_negative_delta test_reduce_l2_keep_dims_example
test_reshape_negative_dim test_resize_upsample_scales_linear test_roialign_aligned_true test_scan9_sum
test_scatter_elements_with_axis test_sequence_map_add_2_sequences test_slice_neg_steps test_softmax_axis_0_expanded
test_split_to_sequence_1 test_squeeze_negative_axes test_top_k test_transpose_all_permutations_0 test_tril_neg
test_unsqueeze_two_axes test_where_example
""".split()


def built(proto, **options):
    function = from_onnx(proto, **options)
    check_function(function)
    return function, build_function(function)


def test_shapes_of_named_sizes_stay_sizes_and_one_build_serves_all():
    proto = transformer()
    function, run = built(proto)
    assert [str(p.type) for p in function.params] == ["int64[batch, length]"]
    assert [str(r.type) for r in function.results] == ["float32[batch, length, 16]"]
    for shape in ((1, 1), (2, 7), (3, 12)):
        ids = RNG.integers(0, 50, shape)
        np.testing.assert_allclose(np.asarray(run(ids)), reference(proto, ids)[0], atol=2e-5)


def test_a_table_of_as_many_positions_as_there_are_words():
    proto = model([node("Shape", "x", "length", start=1, end=2), node("Slice", "table zero length one", "t"),
                   node("Add", "x t", "y")], [tensor("x", ["batch", "words"])], [tensor("y", None)],
                  {"table": np.arange(8, dtype="float32")[None], "zero": np.array([0]), "one": np.array([1])})
    function, run = built(proto)
    assert str(function.results[0].type) == "float32[batch, words]"
    np.testing.assert_array_equal(np.asarray(run(np.ones((2, 5), "float32")))[1], 1 + np.arange(5))
    with pytest.raises(CallError):
        run(np.ones((2, 9), "float32"))


def number_of_rows(nodes, constants):
    """A model whose result y is made of s, the first extent of x."""
    return model([node("Shape", "x", "s", start=0, end=1), *nodes], [tensor("x", ["n", 3])], [tensor("y", None)],
                 {k: np.array(v) for k, v in constants.items()})


@pytest.mark.parametrize("nodes, constants", [
    ([node("Equal", "s zero", "c"), node("Where", "c seven one", "y")], {"zero": [0], "seven": [7], "one": [1]}),
    ([node("Greater", "s zero", "c"), node("Squeeze", "c", "d"),
      node("If", "d", "y", then_branch=graph([node("Add", "s s", "a")], [], [tensor("a", None, INT64)]),
           else_branch=graph([node("Sub", "s seven", "b")], [], [tensor("b", None, INT64)]))],
     {"zero": [0], "seven": [7]}),
    ([node("Max", "s one", "t"), node("Add", "t t", "y")], {"one": [1]}),
    ([node("Neg", "s", "t"), node("Mod", "t five", "y", fmod=1)], {"five": [5]}),
    ([node("Neg", "s", "t"), node("Mod", "t five", "y")], {"five": [5]}),
    ([node("Less", "s five", "c"), node("Where", "c s five", "t"), node("Slice", "table zero t", "y")],
     {"zero": [0], "five": [5], "table": np.arange(9)}),
    ([node("Less", "s five", "c"), node("Cast", "c", "t", to=INT64), node("Not", "c", "d"),
      node("Where", "d t five", "y")], {"five": [5]}),
    ([node("Mod", "s four", "r"), node("Sub", "four r", "t"), node("Mod", "t four", "u"),
      node("Concat", "zeros u zero", "p", axis=0), node("Pad", "x p", "y")],
     {"four": [4], "zeros": [0, 1], "zero": [0]}),
    ([node("Cast", "s", "f", to=FLOAT), node("Mul", "half f", "t"), node("Floor", "t", "u"),
      node("Cast", "u", "v", to=INT64), node("Slice", "table zero v", "y")],
     {"half": np.array([0.5], "float32"), "zero": [0], "table": np.arange(9)}),
    ([node("Cast", "s", "f", to=FLOAT), node("Div", "f four", "t"), node("Mul", "t three", "u"),
      node("Cast", "u", "v", to=INT64), node("Ceil", "u", "w"), node("Slice", "table zero v", "y0"),
      node("ReduceSum", "y0 zero", "y1"), node("Cast", "y1", "y2", to=FLOAT), node("Add", "w u", "y3"),
      node("Add", "y2 y3", "y")],
     {"four": np.array([4], "float32"), "three": np.array([3], "float32"), "zero": [0], "table": np.arange(9)}),
    ([node("Squeeze", "s", "d"), node("OneHot", "places d values", "y")],
     {"places": [0, 2, -1], "values": np.array([1, 5], "float32")}),
    ([node("Concat", "s two", "t", axis=0), node("Tile", "row t", "y")],
     {"two": [2], "row": np.arange(3, dtype="float32")[None]}),
])
def test_what_is_computed_of_sizes_holds_for_every_size(nodes, constants):
    proto = number_of_rows(nodes, constants)
    _, run = built(proto)
    for rows in (0, 1, 5, 7):
        x = np.zeros((rows, 3), "float32")
        np.testing.assert_array_equal(np.asarray(run(x)), reference(proto, x)[0])


@pytest.mark.parametrize("nodes, constants, match", [
    ([node("Neg", "s", "t"), node("Slice", "table t most", "y")], {"table": np.arange(9), "most": [99]}, "n . -1 < 0"),
    ([node("Sub", "s one", "t"), node("Slice", "table t most", "y")],
     {"table": np.arange(9), "one": [1], "most": [99]}, "n - 1 >= 0"),
    ([node("Div", "nine s", "y")], {"nine": [9]}, "n > 0"),
    ([node("Sub", "s one", "t"), node("Div", "t three", "y")], {"one": [1], "three": [3]}, "n - 1 >= 0"),
])
def test_sizes_for_which_what_is_taken_for_granted_does_not_hold_are_refused(nodes, constants, match):
    proto = number_of_rows(nodes, constants)
    _, run = built(proto)
    for rows in (1, 5):
        x = np.zeros((rows, 3), "float32")
        np.testing.assert_array_equal(np.asarray(run(x)), reference(proto, x)[0])
    with pytest.raises(CallError, match=f"_[123] takes for granted that {match} where n = 0"):
        run(np.zeros((0, 3), "float32"))


def test_a_size_that_no_result_has_for_no_rows_is_refused():
    _, run = built(number_of_rows([node("Max", "s one", "t"), node("ConstantOfShape", "t", "y")], {"one": [1]}))
    assert np.asarray(run(np.zeros((2, 3), "float32"))).shape == (2,)
    with pytest.raises(CallError, match="makes T.max.n, 1. along a dimension of its result, and n is expected there"):
        run(np.zeros((0, 3), "float32"))


def test_a_branch_that_only_some_sizes_fit_is_taken_for_the_others():
    branches = {"then_branch": graph([node("Squeeze", "x front", "a")], [], [tensor("a", None)]),
                "else_branch": graph([node("Neg", "x", "b")], [], [tensor("b", None)])}
    proto = number_of_rows([node("Equal", "s one", "c"), node("If", "c", "y", **branches)],
                           {"one": [1], "front": [0]})
    function, run = built(proto)
    assert "equal" not in function.attrs
    np.testing.assert_array_equal(np.asarray(run(np.ones((2, 3), "float32"))), -np.ones((2, 3)))
    with pytest.raises(CallError, match="If_2 takes for granted that not n == 1 where n = 1"):
        run(np.ones((1, 3), "float32"))


@pytest.mark.parametrize("mode", ["reflect", "edge", "wrap"])
def test_borders_that_sizes_decide_repeat_elements(mode):
    proto = number_of_rows([node("Sub", "s one", "t"), node("Concat", "t zeros t zeros", "p", axis=0),
                            node("Pad", "x p", "y", mode=mode)], {"one": [1], "zeros": [0]})
    proto.opset_import[0].version = 19
    _, run = built(proto)
    for rows in (1, 2, 5):
        x = RNG.standard_normal((rows, 3)).astype("float32")
        np.testing.assert_array_equal(np.asarray(run(x)), np.pad(x, ((rows - 1,) * 2, (0, 0)), mode=mode))


def test_borders_that_are_beyond_what_can_be_mirrored_are_refused():
    _, run = built(number_of_rows([node("Concat", "s zeros zeros zeros", "p", axis=0),
                                   node("Pad", "x p", "y", mode="reflect")], {"zeros": [0]}))
    with pytest.raises(CallError, match="extent 0 is n, too small for a reflect border of n"):
        run(np.ones((2, 3), "float32"))


@pytest.mark.parametrize("auto_pad", ["SAME_UPPER", "SAME_LOWER"])
@pytest.mark.parametrize("op, kernel, dilation", [("Conv", 3, 1), ("Conv", 1, 1), ("Conv", 2, 2), ("MaxPool", 3, 1)])
def test_borders_of_windows_that_sizes_decide(auto_pad, op, kernel, dilation):
    own = {"kernel_shape": [kernel]} if op == "MaxPool" else {}
    weight = {"w": RNG.standard_normal((3, 2, kernel)).astype("float32")}
    nodes = [node(op, "x" if own else "x w", "y", auto_pad=auto_pad, strides=[2], dilations=[dilation], **own)]
    _, run = built(model(nodes, [tensor("x", [1, 2, "n"])], [tensor("y", None)], weight))
    for extent in (1, 5, 8):
        x = RNG.standard_normal((1, 2, extent)).astype("float32")
        _, fixed = built(model(nodes, [tensor("x", [1, 2, extent])], [tensor("y", None)], weight))
        np.testing.assert_allclose(np.asarray(run(x)), np.asarray(fixed(x)), rtol=1e-5, atol=1e-6)


def test_conditions_of_a_way_that_is_not_taken_are_forgotten():
    proto = number_of_rows([node("Sub", "s one", "t"), node("Sub", "s two", "d"), node("Div", "t d", "y")],
                           {"one": [1], "two": [2]})
    function, run = built(proto)
    assert "conditions" not in function.attrs
    np.testing.assert_array_equal(np.asarray(run(np.zeros((0, 3), "float32"))), [0])


def test_numbers_that_are_made_of_sizes_have_64_bits():
    proto = model([node("Shape", "x", "s", start=0, end=1), node("Mul", "s s", "t"), node("Add", "t b", "y")],
                  [tensor("x", ["n", 0]), tensor("b", [1], INT64)], [tensor("y", None)])
    _, run = built(proto)
    np.testing.assert_array_equal(np.asarray(run(np.zeros((70000, 0), "float32"), np.array([1]))), [4900000001])


@pytest.mark.parametrize("count, fitting, refused", [(2, (0, 1, 3, 4), ()), (3, (4, 6, 7), (1,))])
def test_the_last_part_of_a_split_by_a_number_is_the_smaller_one(count, fitting, refused):
    parts = [f"y{k}" for k in range(count)]
    _, run = built(model([node("Split", "x", " ".join(parts), num_outputs=count)], [tensor("x", ["n", 2])],
                         [tensor(y, None) for y in parts]))
    for rows in fitting:
        x = RNG.standard_normal((rows, 2)).astype("float32")
        step = -(-rows // count)
        for k, y in enumerate(run(x)):
            np.testing.assert_array_equal(np.asarray(y), x[k * step:(k + 1) * step])
    for rows in refused:
        with pytest.raises(CallError, match="is negative where n = 1"):
            run(np.zeros((rows, 2), "float32"))


@pytest.mark.parametrize("op, opset, shape, attributes, fitting, refused", [
    ("Split", 13, ["n", 2], {"axis": 0}, (4, 2), (3, 2)),
    ("SpaceToDepth", 13, [1, 1, "n", "m"], {"blocksize": 2}, (1, 1, 4, 2), (1, 1, 4, 3)),
    ("Squeeze", 13, ["n", 1, 3], {}, (2, 1, 3), (1, 1, 3))])
def test_extents_that_an_operator_does_not_fit_are_refused(op, opset, shape, attributes, fitting, refused):
    outs = ["y", "z"] if op == "Split" else ["y"]
    proto = model([node(op, "x", " ".join(outs), **attributes)], [tensor("x", shape)],
                  [tensor(y, None) for y in outs], opset=opset)
    _, run = built(proto)
    x = RNG.standard_normal(fitting).astype("float32")
    made = run(x)
    for got, want in zip(made if isinstance(made, tuple) else [made], reference(proto, x), strict=True):
        np.testing.assert_array_equal(np.asarray(got), want)
    with pytest.raises(CallError, match="no multiple of 2 where|is 1, and stays where"):
        run(np.zeros(refused, "float32"))


def test_equal_parts_of_what_does_not_divide_are_refused():
    for held in ({}, {"x": np.zeros(3, "float32")}):
        proto = model([node("Split", "x", "y z")], [] if held else [tensor("x", [3])],
                      [tensor("y", None), tensor("z", None)], held, opset=13)
        with pytest.raises(ImportModelError, match="extent 0 of the shape .3,. is 3, no multiple of 2"):
            from_onnx(proto)


def test_results_whose_size_elements_decide(tmp_path):
    proto = model([node("NonZero", "x", "places"), node("Compress", "x keep", "rows", axis=0), node("Relu", "x", "y")],
                  [tensor("x", ["n", 3]), tensor("keep", ["n"], BOOL)],
                  [tensor("places", None, INT64), tensor("y", None), tensor("rows", None)])
    function, run = built(proto)
    check_function(function)
    runs = [run]
    if export.has_linker(host_triple()):
        run.export(tmp_path / "model.so")
        runs.append(load(tmp_path / "model.so"))
    for keep in ([True, False, True], [False] * 3):
        x = np.array([[0, 1, 2], [3, 0, 0], [0, 0, -1]], "float32")
        for made in runs:
            for got, want in zip(made(x, np.array(keep)), reference(proto, x, np.array(keep)), strict=True):
                np.testing.assert_array_equal(np.asarray(got), want)


TABLE = {"table": np.arange(8, dtype="float32")[None], "zero": np.array([0]), "one": np.array([1]),
         "three": np.array([3]), "open": np.array([-1])}


@pytest.mark.parametrize("nodes, shape", [
    ([node("Slice", "table zero length one", "t"), node("Relu", "t", "y")], "1, T.min(words, 8)"),
    ([node("Slice", "table zero length one", "t"), node("Unsqueeze", "t one", "y")], "1, 1, T.min(words, 8)"),
    ([node("Slice", "table zero length one", "t"), node("Reshape", "t open", "y")], "T.min(words, 8)"),
    ([node("Add", "length three", "end"), node("Slice", "table three end one", "t"), node("Neg", "t", "y")],
     "1, T.min(words + 3, 8) - 3"),
    ([node("Slice", "table zero length one", "t"), node("ReduceSum", "t", "sum", keepdims=0),
      node("Add", "x sum", "y")], "batch, words"),
])
def test_slices_whose_end_a_size_says_are_clipped(nodes, shape):
    proto = model([node("Shape", "x", "length", start=1, end=2), *nodes], [tensor("x", ["batch", "words"])],
                  [tensor("y", None)], TABLE)
    function, run = built(proto)
    assert str(function.results[0].type) == f"float32[{shape}]"
    for words in (1, 5, 8, 9, 30):
        x = RNG.standard_normal((2, words)).astype("float32")
        np.testing.assert_allclose(np.asarray(run(x)), reference(proto, x)[0], rtol=1e-6)


@pytest.mark.parametrize("nodes, extra", [
    ([node("Slice", "table zero length one", "t"), node("Concat", "x t", "y", axis=0)], {}),
    ([node("Slice", "table zero length one", "t"), node("Shape", "x", "s"), node("Expand", "t s", "y")], {}),
    ([node("Slice", "table zero length one", "t"), node("Transpose", "t", "u"), node("MatMul", "x u", "y")], {}),
    ([node("Concat", "length length", "ends", axis=0), node("Slice", "mask begins ends axes", "m"),
      node("MatMul", "x m", "y")], {"mask": np.tril(np.ones((8, 8), "float32")), "begins": np.array([0, 0]),
                                    "axes": np.array([0, 1])}),
])
def test_slices_beside_tensors_of_the_size_that_they_say(nodes, extra):
    proto = model([node("Shape", "x", "length", start=1, end=2), *nodes], [tensor("x", ["batch", "words"])],
                  [tensor("y", None)], {**TABLE, **extra})
    run = built(proto)[1]
    for words in (1, 5, 8):
        x = RNG.standard_normal((2, words)).astype("float32")
        np.testing.assert_allclose(np.asarray(run(x)), reference(proto, x)[0], rtol=1e-5)
    with pytest.raises(CallError):
        run(np.ones((2, 9), "float32"))


def test_nodes_name_the_calls_that_they_become():
    proto = model([helper.make_node("Relu", ["x"], ["y"], name="first")], [tensor("x", [3])], [tensor("y", [3])])
    assert [c.source for c in from_onnx(proto).calls] == ["first"]


def test_shapes_are_given_for_inputs():
    proto = model([node("Relu", "x", "y")], [helper.make_tensor_value_info("x", FLOAT, None)], [tensor("y", None)])
    with pytest.raises(ImportModelError, match="'x' has no shape"):
        from_onnx(proto)
    function = from_onnx(proto, shapes={"x": ("n", 3)})
    assert str(function.results[0].type) == "float32[n, 3]"
    unnamed = model([node("Relu", "x", "y")], [tensor("x", [None, None])], [tensor("y", None)])
    assert str(from_onnx(unnamed).results[0].type) == "float32[x_0, x_1]"


@pytest.mark.parametrize(("nodes", "shapes", "equal", "sizes"), [
    ([node("Add", "a b", "y")], (["k", 4], ["m", 4]), {"m": "k"}, {"k": 3, "m": 3}),
    ([node("Concat", "a c", "t", axis=0), node("Add", "t b", "y")], (["k", 4], ["m", 4]), {"m": "k + 2"},
     {"k": 3, "m": 5}),
    ([node("MatMul", "a b", "y")], (["k", "m"], [4, 3]), {"m": "4"}, {"k": 3, "m": 4}),
    ([node("Squeeze", "a front", "t"), node("Add", "t b", "y")], (["k", "m"], ["o"]), {"k": "1", "o": "m"},
     {"k": 1, "m": 4, "o": 4}),
])
def test_sizes_that_operators_need_to_be_equal_are_one(nodes, shapes, equal, sizes):
    proto = model(nodes, [tensor(n, s) for n, s in zip("ab", shapes)], [tensor("y", None)],
                  {"c": np.ones((2, 4), "float32"), "front": np.array([0])})
    function, run = built(proto)
    assert function.attrs["equal"] == equal
    a, b = (RNG.standard_normal([sizes.get(d, d) for d in s]).astype("float32") for s in shapes)
    np.testing.assert_allclose(np.asarray(run(a, b)), reference(proto, a, b)[0], rtol=1e-5)
    with pytest.raises(CallError, match="is needed"):
        run(a, np.ones([d + 1 for d in b.shape], "float32"))


def test_sizes_that_nothing_makes_equal_stay_apart():
    proto = model([node("Concat", "a b", "y", axis=0)], [tensor("a", ["k", 4]), tensor("b", ["m", 4])],
                  [tensor("y", None)])
    assert "equal" not in built(proto)[0].attrs


def test_an_input_that_decides_a_shape_is_named_and_can_be_given():
    proto = model([node("Reshape", "x s", "y")], [tensor("x", [6]), tensor("s", [2], INT64)], [tensor("y", None)])
    with pytest.raises(ImportModelError, match="the shape has to be known") as found:
        from_onnx(proto)
    assert found.value.needs == ("s",)
    function, run = built(proto, values={"s": np.array([2, -1])})
    x = RNG.standard_normal(6).astype("float32")
    np.testing.assert_array_equal(np.asarray(run(x)), x.reshape(2, 3))
    prepared = backend().prepare(proto)
    for shape in ([3, 2], [1, 6]):
        np.testing.assert_array_equal(prepared.run([x, np.array(shape)])[0], x.reshape(shape))


def test_functions_of_the_file_are_written_out():
    twice = helper.make_function("own", "Scaled", ["x"], ["y"], [
        helper.make_node("Constant", [], ["c"]), node("Mul", "x c", "y")], [helper.make_opsetid("", 18)], ["factor"])
    twice.node[0].attribute.add(name="value_float", ref_attr_name="factor", type=1)
    proto = model([helper.make_node("Scaled", ["x"], ["y"], domain="own", factor=2.5)], [tensor("x", ["n"])],
                  [tensor("y", ["n"])], functions=[twice], domains=["own"])
    _, run = built(proto)
    x = RNG.standard_normal(5).astype("float32")
    np.testing.assert_allclose(np.asarray(run(x)), 2.5 * x, rtol=1e-6)


def branches():
    return (graph([node("Add", "x x", "a")], [], [tensor("a", None)]),
            graph([node("Mul", "x x", "b")], [], [tensor("b", None)]))


def test_a_known_condition_chooses_its_branch():
    yes, no = branches()
    proto = model([node("Shape", "x", "s"), node("Size", "s", "r"), node("Equal", "r two", "c"),
                   node("If", "c", "y", then_branch=yes, else_branch=no)], [tensor("x", ["n", "m"])],
                  [tensor("y", None)], {"two": np.int64(2)})
    _, run = built(proto)
    x = RNG.standard_normal((2, 3)).astype("float32")
    np.testing.assert_allclose(np.asarray(run(x)), x + x)


def test_a_loop_of_known_turns_is_written_out():
    body = graph([node("Add", "v x", "w"), node("Identity", "c", "d")],
                 [tensor("i", [], INT64), tensor("c", [], BOOL), tensor("v", None)],
                 [tensor("d", [], BOOL), tensor("w", None), tensor("w", None)])
    proto = model([node("Loop", "turns  x", "last all", body=body)], [tensor("x", ["n"])],
                  [tensor("last", None), tensor("all", None)], {"turns": np.int64(3)})
    proto.graph.node[0].input[:] = ["turns", "", "x"]
    function, run = built(proto)
    assert str(function.results[1].type) == "float32[3, n]"
    x = RNG.standard_normal(4).astype("float32")
    last, rows = (np.asarray(r) for r in run(x))
    np.testing.assert_allclose(last, 4 * x, rtol=1e-6)
    np.testing.assert_allclose(rows, np.stack([2 * x, 3 * x, 4 * x]), rtol=1e-6)


def test_a_condition_that_is_computed_chooses_when_the_model_runs():
    yes, no = branches()
    proto = model([node("ReduceSum", "x", "t", keepdims=0), node("Greater", "t zero", "c"), node("Exp", "x", "e"),
                   node("If", "c", "y", then_branch=yes, else_branch=no), node("Add", "y e", "z")],
                  [tensor("x", ["n", "m"])], [tensor("z", None)], {"zero": np.float32(0)})
    _, run = built(proto)
    x = np.abs(RNG.standard_normal((2, 3))).astype("float32")
    np.testing.assert_allclose(np.asarray(run(x)), x + x + np.exp(x), rtol=1e-6)
    np.testing.assert_allclose(np.asarray(run(-x)), x * x + np.exp(-x), rtol=1e-6)


def test_a_loop_until_a_condition_runs_with_the_model():
    body = graph([node("Mul", "v f", "w"), node("ReduceSum", "w", "t", keepdims=0), node("Less", "t limit", "d")],
                 [tensor("i", [], INT64), tensor("c", [], BOOL), tensor("v", None)],
                 [tensor("d", [], BOOL), tensor("w", None)])
    proto = model([helper.make_node("Loop", ["turns", "", "x"], ["y"], body=body)],
                  [tensor("x", ["n"]), tensor("f", ["n"]), tensor("turns", [], INT64)], [tensor("y", None)],
                  {"limit": np.float32(100)})
    _, run = built(proto)
    x, f = np.ones(3, "float32"), np.full(3, 2, "float32")
    np.testing.assert_array_equal(np.asarray(run(x, f, np.array(100))), np.full(3, 64))
    np.testing.assert_array_equal(np.asarray(run(x, f, np.array(2))), np.full(3, 4))


@pytest.mark.parametrize("length", ["t", 3, 20])
@pytest.mark.parametrize("back", [0, 1])
def test_scans_over_known_and_unknown_lengths(length, back):
    body = graph([node("Mul", "h r", "a"), node("Add", "a k", "b"), node("Identity", "b", "y")],
                 [tensor("h", None), tensor("r", None)], [tensor("b", None), tensor("y", None)])
    proto = model([helper.make_node("Scan", ["h0", "x"], ["last", "all"], body=body, num_scan_inputs=1,
                                    scan_input_axes=[1], scan_output_axes=[1], scan_input_directions=[back])],
                  [tensor("h0", ["n"]), tensor("x", ["n", length]), tensor("k", ["n"])],
                  [tensor("last", None), tensor("all", None)])
    function, run = built(proto)
    assert str(function.results[1].type) == f"float32[n, {length}]"
    h, k, count = RNG.standard_normal(2).astype("float32"), RNG.standard_normal(2).astype("float32"), 5
    x = RNG.standard_normal((2, count if length == "t" else length)).astype("float32")
    last, rows = (np.asarray(r) for r in run(h, x, k))
    wanted = []
    for t in range(x.shape[1]):
        h = h * x[:, -1 - t if back else t] + k
        wanted.append(h)
    np.testing.assert_allclose(last, h, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(rows, np.stack(wanted, 1), rtol=1e-4, atol=1e-5)


def test_a_result_whose_size_elements_decide_is_counted():
    proto = model([node("NonZero", "x", "p"), node("Relu", "x", "y")], [tensor("x", ["n", 3])],
                  [tensor("p", None, INT64), tensor("y", None)])
    function, run = built(proto)
    assert function.attrs["results"] == (("p", None, "int64", (1, 2)), ("y", None, "float32", None))
    x = np.array([[0, 2, 0], [3, 0, 0]], "float32")
    assert function.attrs["counted"] == ((0, 1, 2),)
    np.testing.assert_array_equal(np.asarray(run(x)[0]), np.nonzero(x))
    np.testing.assert_array_equal(backend().prepare(proto).run([x])[0], np.nonzero(x))
    behind = model([node("NonZero", "x", "p"), node("Shape", "p", "s")], [tensor("x", ["n", 3])],
                   [tensor("s", None, INT64)])
    with pytest.raises(ImportModelError, match="size of input 0 depends on elements"):
        from_onnx(behind)


def test_results_that_are_sequences_are_listed():
    proto = model([node("SplitToSequence", "x", "y", axis=0)], [tensor("x", [3, 2])],
                  [helper.make_tensor_sequence_value_info("y", FLOAT, None)])
    function, run = built(proto)
    assert function.attrs["results"] == (("y", 3, "float32", None),)
    assert len(backend().prepare(proto).run([np.zeros((3, 2), "float32")])[0]) == 3


def test_constants_decide_sizes():
    proto = model([node("NonZero", "c", "p"), node("Squeeze", "p zero", "q"), node("Gather", "x q", "y")],
                  [tensor("x", [4])], [tensor("y", None)],
                  {"c": np.array([0, 1, 0, 1], "float32"), "zero": np.array([0])})
    _, run = built(proto)
    np.testing.assert_array_equal(np.asarray(run(np.arange(4, dtype="float32"))), [1, 3])


CASES = {case.name: case for _, case in cases()}


@pytest.mark.parametrize("name", SAMPLE)
def test_cases_of_the_onnx_package(name):
    if name not in CASES:
        pytest.skip("this release of the onnx package has no such case")
    run_case(CASES[name])


def test_one_node_runs_by_itself():
    x = RNG.standard_normal((2, 3)).astype("float32")
    np.testing.assert_allclose(backend().run_node(node("Exp", "x", "y"), [x])[0], np.exp(x), rtol=1e-6)
    assert backend().supports_device("CPU") and not backend().supports_device("CUDA")


def test_the_page_is_up_to_date():
    assert PAGE.read_text() == page(), "run python -m tests.frontend.onnx_table"
