"""What operators give at the ends of their ranges: where sums round, differences cancel, places do not exist."""
from __future__ import annotations

import math

import numpy as np
import pytest

import tilewright as tw
from tilewright import te, topi
from tilewright.support.errors import CallError
from tilewright.tir import dtype as dt


def run(f, *arrays):
    """What f of tensors gives, compiled."""
    args = [te.placeholder(a.shape, dt.canonical(a.dtype), name=f"x{n}") for n, a in enumerate(arrays)]
    found = f(*args)
    outs = list(found) if isinstance(found, tuple) else [found]
    results = [np.zeros([int(n) for n in x.shape], dt.numpy_dtype(x.dtype)) for x in outs]
    tw.compile(te.create_prim_func([*args, *outs]))(*(np.array(a, order="C") for a in arrays), *results)
    return results if isinstance(found, tuple) else results[0]


def floats(*values, dtype="float32"):
    return np.array(values, dtype)


def close(found, wanted, rtol=1e-6):
    np.testing.assert_allclose(found, wanted, rtol=rtol)


# random numbers


def test_the_largest_fraction_has_a_finite_extreme_value():
    place = 4531704                                        # of this key, the first whose upper 24 bits are all 1

    def at(key):
        y = topi.gumbel(key, place + 1)
        return te.compute((1,), lambda i: y(place), name="at")
    close(run(at, np.array([7, 9], "uint32")), [-math.log(-math.log(1 - 2.0**-24))], 1e-5)


def test_integers_in_the_upper_half_of_uint64():
    low = 2**63 + 5
    y = run(lambda key: topi.randint(key, 100, low=low, high=low + 3, dtype="uint64"), np.array([7, 9], "uint32"))
    assert set(y.tolist()) == {low, low + 1, low + 2}


# losses


def test_a_mean_over_the_batch_of_float16_is_rounded_once():
    x, t = np.full((512, 1000), -8, "float16"), np.full((512, 1000), 0.5, "float16")
    y = run(lambda *a: topi.kl_div(*a, reduction="batchmean"), x, t)
    close(y, 500 * (math.log(0.5) + 8), 1e-3)


def test_a_negative_probability_gives_nan():
    y = run(lambda *a: topi.kl_div(*a, reduction="none"), floats(1, 1, 1), floats(-0.5, 0, 1))
    np.testing.assert_array_equal(y, [np.nan, 0, -1])


X = floats(-25, -15, -12, 0, 12, 15, 25)


def logs(t):
    """-log of how likely X is taken for t, for a target t of 0 or 1."""
    return np.logaddexp(0, X.astype("float64") * (1 - 2 * t))


@pytest.mark.parametrize("target", [0, 1])
def test_likely_and_unlikely_targets_lose_no_digits(target):
    t, y = np.full(7, target, "float32"), logs(target)
    close(run(lambda *a: topi.binary_cross_entropy_with_logits(*a, reduction="none"), X, t), y)
    weighed = run(lambda x, t, p: topi.binary_cross_entropy_with_logits(x, t, None, p, reduction="none"), X, t,
                  np.full(7, 3, "float32"))
    close(weighed, y * (3 if target else 1))
    close(run(lambda *a: topi.multilabel_soft_margin_loss(*a, reduction="none"), X[:, None], t[:, None]), y)
    missed = -np.expm1(-y)
    close(run(lambda *a: topi.sigmoid_focal_loss(*a, alpha=-1, reduction="none"), X, t), y * missed**2, 1e-5)


def test_lengths_below_0_count_as_0():
    x, classes = np.log(np.full((3, 3, 4), 0.25, "float32")), np.ones((3, 2), "int32")
    y = run(lambda *a: topi.ctc_loss(*a, reduction="none"), x, classes, np.array([-1, 3, -2], "int32"),
            np.array([1, -1, -1], "int32"))
    close(y, [np.inf, 3 * math.log(4), 0])


# functions of elements


def test_gamma_functions_just_below_0():
    x = floats(-1e-300, -1e-20, -1e-17, -1e-10, -1.9999999999999998, -2.0000000000000004, -3.7, dtype="float64")
    close(run(topi.lgamma, x), [math.lgamma(v) for v in x], 1e-13)
    close(run(topi.digamma, x[1:4]), -1 / x[1:4], 1e-9)
    close(run(topi.lgamma, floats(-1e-20)), [math.lgamma(-1e-20)])


def test_cube_roots_of_very_large_and_small_numbers():
    x = floats(1e308, 27, 1e-300, -8, 5e-324, 0, np.inf, -np.inf, np.nan, dtype="float64")
    close(run(topi.cbrt, x), np.cbrt(x), 1e-15)


def test_a_bessel_function_where_exp_alone_is_infinite():
    x = floats(712, -713, dtype="float64")
    y = [math.exp(v / 2) * (1 + 1 / (8 * v) + 9 / (128 * v**2)) / math.sqrt(2 * math.pi * v) * math.exp(v / 2)
         for v in (712, 713)]
    close(run(topi.bessel_i0, x), y, 1e-8)


# quantization


def test_a_scale_is_never_0():
    x = floats(1e-45, 0)
    y, scale = run(topi.absmax_quantize, x)
    assert (y.tolist(), scale.tolist()) == ([0, 0], [1])
    y, scale, zero = run(topi.dynamic_quantize, x)
    assert (y.tolist(), float(scale), int(zero)) == ([0, 0], 1, 0)


def test_integers_of_64_bits_are_dequantized_without_wrapping():
    close(run(lambda x: topi.dequantize(x, 1.0, 1), np.array([2**63 + 2**40, 0], "uint64")), [2.0**63, -1])
    close(run(lambda x: topi.dequantize(x, 1.0, 1), np.array([-2**63])), [-2.0**63])


# lines, places


def test_the_largest_of_no_differences_is_0():
    y = run(lambda a, b: topi.pairwise_distance(a, b, p=math.inf), np.zeros((2, 0), "float32"), np.zeros((
        2, 0), "float32"))
    np.testing.assert_array_equal(y, [0, 0])


def test_a_quantile_of_an_array_without_dimensions_has_no_axis_of_its_own():
    close(run(lambda x: topi.quantile(x, q=np.array(0.5)), floats(1, 2, 4)), 2)


def test_a_box_of_nan_overlaps_with_none():
    boxes = floats([np.nan] * 4, [0, 0, 2, 2], [0, 0, 2, 2], [5, 5, 6, 6])
    kept, number = run(lambda *a: topi.nms(*a, iou_threshold=0.5), boxes, floats(4, 3, 2, 1))
    assert (kept.tolist(), number.tolist()) == ([0, 1, 3, -1], [3])


def test_the_pixel_next_to_the_largest_number_below_a_half():
    x = np.arange(9, dtype="float32")[::-1].reshape(1, 1, 3, 3)
    below = np.nextafter(np.float32(0.5), np.float32(0))
    y = run(lambda *a: topi.roi_pool(*a, 1), x, floats([below, below, 2, 2], [0.5, 0.5, 2, 2]), np.zeros(2, "int32"))
    assert y.ravel().tolist() == [8, 4]


def test_all_shares_together_leave_nothing_out():
    x = floats(30, 0, 1, 2, -3)
    np.testing.assert_array_equal(run(lambda x: topi.top_p_filter(x, p=1.0), x), x)


@pytest.mark.parametrize("column", [2, -1, 2**30, -2**30, 2**62, -2**62, 2**63 - 1, -2**63])
def test_columns_of_blocks_do_not_wrap(column):
    data, indptr, b = np.ones((1, 1, 4), "float32"), np.array([0, 1]), np.ones((8, 1), "float32")
    with pytest.raises(CallError, match="outside of its extent 8"):
        run(topi.bsr_matmul, data, np.array([column]), indptr, b)
    assert run(topi.bsr_matmul, data, np.array([1]), indptr, b).tolist() == [[4]]


@pytest.mark.parametrize("mode, wanted", [("clip", 4), ("wrap", 1)])
def test_the_largest_numbers_of_uint64_are_no_negative_indices(mode, wanted):
    last, x = np.array([2**64 - 1], "uint64"), floats(1, 2, 4)
    assert run(lambda x, i: topi.take(x, i, axis=0, mode=mode), x, last) == [wanted]
    for f in (lambda x, i: topi.take(x, i, axis=0), lambda x, i: topi.index_get(x, [i])):
        with pytest.raises(CallError, match="outside of its"):
            run(f, x, last)
    assert run(lambda n: topi.sequence_mask(n, size=2), last).all()


@pytest.mark.parametrize("k", [2**31 - 1, -2**31, 2**40, -2**40])
def test_diagonals_far_off(k):
    x = np.arange(1, 7, dtype="float32").reshape(2, 3)
    np.testing.assert_array_equal(run(lambda x: topi.tril(x, k=k), x), np.tril(x, k))
    np.testing.assert_array_equal(run(lambda x: topi.triu(x, k=k), x), np.triu(x, k))
    np.testing.assert_array_equal(run(lambda x: topi.roll(x, k, axis=1), x), np.roll(x, k, 1))


@pytest.mark.parametrize("begin, end, step", [(-2**62, 2**63 - 1, 2**40), (2**40, -2**40, -2**62), (1, 4, 2**31)])
def test_slices_far_beyond_the_ends(begin, end, step):
    x = np.arange(5, dtype="float32")
    y = run(lambda x: topi.strided_slice(x, begin=begin, end=end, strides=step), x)
    np.testing.assert_array_equal(y, x[begin:end:step])


def test_repetitions_end_where_the_size_does():
    x = floats(1, 2, 3)
    for times, wanted in (([1, 2**63 - 1, 1], [1, 2, 2, 2]), ([2, -1, 1], [1, 1, 3, 0])):
        y = run(lambda x, n: topi.repeat_interleave(x, n, size=4), x, np.array(times))
        assert y.tolist() == wanted


# pooling, images


@pytest.mark.parametrize("n, size", [(160000, 16000), (160001, 16000)])
def test_adaptive_windows_whose_places_times_sizes_leave_32_bits(n, size):
    x = np.random.default_rng(0).random((1, 1, n), "float32")
    starts, ends = np.arange(size) * n // size, -(-np.arange(1, size + 1) * n // size)
    sums = np.concatenate([[0], np.cumsum(x.ravel(), dtype="float64")])
    means = (sums[ends] - sums[starts]) / (ends - starts)
    close(run(lambda x: topi.adaptive_avg_pool(x, size), x).ravel(), means, 1e-5)
    y, places = run(lambda x: topi.adaptive_max_pool(x, size, return_indices=True), x)
    wanted = [s + int(np.argmax(x[0, 0, s:e])) for s, e in zip(starts, ends)]
    np.testing.assert_array_equal(places.ravel(), wanted)
    np.testing.assert_array_equal(y.ravel(), x.ravel()[wanted])


def test_a_window_that_is_not_whole_may_be_the_only_one():
    x = floats(1, 9, 3, 7).reshape(1, 1, 4)
    for f, wanted in ((topi.max_pool, 3), (topi.avg_pool, 2)):
        assert run(lambda x, f=f: f(x, 3, stride=2, dilation=2, ceil_mode=True), x).ravel().tolist() == [wanted]


def test_places_in_images_of_more_than_2_to_31_pixels():
    x = te.compute((1, 1, 70000, 70000), lambda b, c, i, j: i.astype("float32"), name="x")
    y, places = topi.max_pool(x, 1, stride=60000, return_indices=True)
    found, where = np.zeros((1, 1, 2, 2), "float32"), np.zeros((1, 1, 2, 2), "int64")
    tw.compile(te.create_prim_func([y, places]))(found, where)
    assert where.ravel().tolist() == [0, 60000, 60000 * 70000, 60000 * 70000 + 60000]


@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
def test_places_that_are_no_numbers(mode):
    """Beyond the image at the border; NaN is at the first pixel. As torch has them."""
    x = np.arange(1, 10, dtype="float32").reshape(1, 1, 3, 3)
    grid = floats([np.inf, 0], [0, -np.inf], [np.nan, 0], [0, np.nan]).reshape(1, 1, 4, 2)
    y = run(lambda *a: topi.grid_sample(*a, mode=mode, padding_mode="border"), x, grid)
    assert y.ravel().tolist() == [6, 2, 4, 2]


def test_places_of_deformed_windows_are_not_rounded_to_bfloat16():
    kind = dt.numpy_dtype("bfloat16")
    x = (np.arange(600) % 2).reshape(1, 1, 1, 600).astype(kind)
    y = run(topi.deform_conv2d, x, np.zeros((1, 2, 1, 600), kind), np.ones((1, 1, 1, 1), kind))
    np.testing.assert_array_equal(y.astype("float32"), x.astype("float32"))


# products


def test_products_of_several_are_rounded_once():
    a, b = np.full((8, 8), 100, "float16"), np.full((8, 8), 1e-3, "float16")
    y = (a.astype("float64") @ a @ b).astype("float16")
    close(run(lambda *m: topi.einsum("ij,jk,kl->il", *m), a, a, b), y, 2e-3)
    close(run(lambda a, b: topi.bilinear(b, a, topi.reshape(a, (1, 8, 8))), a, b), 640, 2e-3)


def test_a_bias_is_added_before_a_sum_is_rounded():
    """1024 + 0.5 is 1024 in float16, to the even neighbour, and 1025 with another 0.25."""
    two, b = np.array([[1024, 0.5]], "float16"), np.array([0.25], "float16")
    assert run(lambda x, w, b: topi.linear(x, w, b), two, np.ones((1, 2), "float16"), b).tolist() == [[1025]]
    assert run(topi.conv, two.reshape(1, 2, 1), np.ones((1, 2, 1), "float16"), b).ravel().tolist() == [1025]
    assert run(topi.conv_transpose, two.reshape(1, 2, 1), np.ones((2, 1, 1), "float16"), b).ravel().tolist() == [1025]


def test_what_a_factor_of_0_leaves_out_counts_for_nothing():
    c, a = np.full((2, 2), np.nan, "float32"), np.eye(2, dtype="float32")
    np.testing.assert_array_equal(run(lambda *m: topi.addmm(*m, beta=0.0), c, a, a), a)


def test_no_groups_and_no_features():
    y = run(topi.grouped_matmul, np.ones((3, 2), "float32"), np.ones((0, 2, 4), "float32"), np.zeros(0, "int32"))
    np.testing.assert_array_equal(y, np.zeros((3, 4)))
    shapes = ((1, 2, 0), (1, 3, 0), (1, 3, 2))
    y = run(topi.scaled_dot_product_attention, *(np.ones(s, "float32") for s in shapes))
    np.testing.assert_array_equal(y, np.ones((1, 2, 2)))


def test_the_sign_of_a_determinant_of_nan():
    sign, size = run(topi.slogdet, floats([np.nan, 0], [0, 1]))
    assert np.isnan(sign) and np.isnan(size)


def test_results_are_tensors_of_their_own():
    x = np.eye(2, dtype="float32")
    np.testing.assert_array_equal(run(topi.multi_dot, x), x)
    np.testing.assert_array_equal(run(lambda x: topi.matrix_power(x, exponent=1), x), x)
