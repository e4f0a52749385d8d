"""What operators refuse: when they are written down, or while the kernel runs."""
from __future__ import annotations

import math

import numpy as np
import pytest

import tilewright as tw
from tilewright import te, topi
from tilewright.support.errors import CallError, TensorExpressionError


def tensor(*shape, dtype="float32"):
    return te.placeholder(shape, dtype, name="x")


@pytest.mark.parametrize("op", ["take", "gather", "scatter"])
def test_an_index_out_of_range_is_an_error_of_the_call(op):
    x, i = tensor(4), te.placeholder((2,), "int64", name="i")
    updates = te.placeholder((2,), "float32", name="updates")
    more = (updates,) if op == "scatter" else ()
    f = tw.compile(te.create_prim_func([x, i, *more, getattr(topi, op)(x, i, *more, axis=0)]))
    given = [np.ones(2, "float32")] * len(more)
    y = np.zeros(4 if op == "scatter" else 2, "float32")
    f(np.arange(4, dtype="float32"), np.array([-4, 3]), *given, y)
    for wrong in (4, -5):
        with pytest.raises(CallError, match="outside of its 4 elements"):
            f(np.arange(4, dtype="float32"), np.array([0, wrong]), *given, y)


REFUSED = {
    "indices are float32": lambda: topi.take(tensor(4), tensor(2)),
    "mode is 'wild'": lambda: topi.take(tensor(4), tensor(2, dtype="int32"), mode="wild"),
    "extent 1 of indices is 5, that of x only 3": lambda: topi.gather(tensor(4, 3), tensor(2, 5, dtype="int32")),
    "a number from 0 to 1 is needed": lambda: topi.gather_nd(tensor(4), tensor(2, 2, dtype="int32")),
    "updates are int32, x is float32": lambda: topi.scatter(tensor(4), tensor(2, dtype="int32"), tensor(
        2, dtype="int32")),
    "extent 0 of updates is 3, not 2": lambda: topi.scatter_nd(tensor(4), tensor(2, 1, dtype="int32"), tensor(3)),
    "padding_idx is 7, weight has 4 rows": lambda: topi.embedding(tensor(2, dtype="int32"), tensor(4, 3),
                                                                   padding_idx=7),
    "k is 5, there are 4 elements along axis 0": lambda: topi.topk(tensor(4), k=5),
    "reduction is 'total'": lambda: topi.mse_loss(tensor(4), tensor(4), reduction="total"),
    "extent 0 of target is 3, not 2": lambda: topi.cross_entropy(tensor(2, 5), tensor(3, dtype="int32")),
    "the extent of weight is 4, not 5": lambda: topi.nll_loss(tensor(2, 5), tensor(2, dtype="int32"), tensor(4)),
    "x is int32, floats are needed": lambda: topi.resize(tensor(4, dtype="int32"), 8),
    "size, scales or both are needed": lambda: topi.resize(tensor(4)),
    "the scale 1.5 no integer": lambda: topi.resize(tensor(te.var("n")), scales=1.5),
    "the last extent of grid is 3, not 2": lambda: topi.grid_sample(tensor(1, 1, 2, 2), tensor(1, 5, 5, 3)),
    "the last extent of boxes is 5, not 4": lambda: topi.roi_align(tensor(1, 1, 2, 2), tensor(3, 5), tensor(
        3, dtype="int32"), 2),
    "key is float32, uint32 is needed": lambda: topi.uniform(tensor(2), 4),
    "p is 2, not between 0 and 1": lambda: topi.dropout(tensor(4), tensor(2, dtype="uint32"), p=2),
    "an integer of up to 16 bits is needed": lambda: topi.quantize(tensor(4), 0.1, dtype="int32"),
    "the extent of scale is 3, not 4": lambda: topi.quantize(tensor(4), tensor(3), axis=0),
    "value is int32, x is float32": lambda: topi.searchsorted(tensor(4), tensor(2, dtype="int32")),
    "cos has 5 angles, x only 8 elements": lambda: topi.rotary_embedding(tensor(1, 4, 8), tensor(4, 5), tensor(4, 5)),
    "extent 0 of cos is 3, not 4": lambda: topi.rotary_embedding(tensor(1, 4, 8), tensor(3, 4), tensor(3, 4)),
    "width is 5, an even number": lambda: topi.rotary_angles(3, width=5),
    "updates have 5 elements along axis 1, x only 4": lambda: topi.update_cache(tensor(2, 4, 3), tensor(
        2, 5, 3), tensor(2, dtype="int32")),
    "lengths is float32, integers are needed": lambda: topi.attention_mask(tensor(2), 3, 3),
    "the extent of lengths is 3, not 2": lambda: topi.cached_attention(*[tensor(2, 1, 4, 4)] * 3, tensor(
        3, dtype="int32")),
    "mode is 'median'": lambda: topi.roi_align(tensor(1, 1, 2, 2), tensor(3, 4), tensor(3, dtype="int32"), 2,
                                               mode="median"),
    "the last extent of b is 5, not 4": lambda: topi.box_iou(tensor(3, 4), tensor(3, 5)),
    "the extent of scores is 4, not 3": lambda: topi.nms(tensor(3, 4), tensor(4), iou_threshold=0.5),
    "mask is float32, bools are needed": lambda: topi.masked_select(tensor(4), tensor(4)),
    "condition has 5 elements, axis 0 only 4": lambda: topi.compress(tensor(4), tensor(5, dtype="bool"), axis=0),
    "source is int32, x is float32": lambda: topi.masked_scatter(tensor(4), tensor(4, dtype="bool"), tensor(
        4, dtype="int32")),
    "2 indices are given, x has 1": lambda: topi.index_put(tensor(4), [tensor(2, dtype="int32")] * 2, tensor(2)),
    "index_reduce: extent 0 of updates is 3, not 2": lambda: topi.index_reduce(tensor(4), tensor(
        2, dtype="int32"), tensor(3)),
    "segment_reduce: x is int32, floats are needed": lambda: topi.segment_reduce(tensor(4, dtype="int32"), tensor(
        4, dtype="int32"), segments=2, reduction="mean"),
    "weights are given, and reduction is 'mean'": lambda: topi.embedding_bag(tensor(4, dtype="int32"), tensor(
        3, 2), tensor(2, dtype="int32"), tensor(4)),
    "weights have the shape": lambda: topi.bincount(tensor(4, dtype="int32"), tensor(3), size=4),
    "low is 2, high is 1": lambda: topi.histogram(tensor(4), bins=3, low=2, high=1),
    "axis and batch_axis are both 1": lambda: topi.reverse_sequence(tensor(4, 3), tensor(3, dtype="int32"), axis=1),
    "the last extent of x is 5, not 4": lambda: topi.fold(tensor(1, 4, 5), (3, 3), 2),
    "extent 1 of x is 6, no multiple of 4": lambda: topi.fold(tensor(1, 6, 4), (3, 3), 2),
    "a window of 5 elements with dilation 1 does not fit": lambda: topi.sliding_window(tensor(4), size=5),
    "indices have the shape": lambda: topi.max_unpool(tensor(1, 1, 2), tensor(1, 1, 3, dtype="int32"), 4),
    "the padded extent 0 is 5, no multiple of 2": lambda: topi.space_to_batch(tensor(1, 1, 5), block=2),
    "the batch of x is 3, no multiple of 2": lambda: topi.batch_to_space(tensor(3, 1, 5), block=2),
    "updates have the shape": lambda: topi.slice_scatter(tensor(4), tensor(3), begin=0, end=2),
    "extent 0 is n, a constant is needed": lambda: topi.center_crop_pad(tensor(te.var("n")), 4),
    "p is 0, a positive number": lambda: topi.global_lp_pool(tensor(1, 1, 4), p=0),
    "extent 0 of recurrent is 5, not 8": lambda: topi.lstm(tensor(3, 1, 4), tensor(8, 4), tensor(5, 2)),
    "extent 0 of weight is 8, not 6": lambda: topi.gru(tensor(3, 1, 4), tensor(8, 4), tensor(6, 2)),
    "extent 1 of start is 3, not 2": lambda: topi.rnn(tensor(3, 1, 4), tensor(2, 4), tensor(2, 2), None, None,
                                                      tensor(1, 3)),
    "nonlinearity is 'sine'": lambda: topi.rnn(tensor(3, 1, 4), tensor(2, 4), tensor(2, 2), nonlinearity="sine"),
    "a is float32, int8 or uint8": lambda: topi.matmul_integer(tensor(3, 4), tensor(4, 3)),
    "the extent of b_zero is 4, not 3": lambda: topi.matmul_integer(tensor(3, 4, dtype="int8"), tensor(
        4, 3, dtype="int8"), 0, tensor(4, dtype="int8")),
    "x_zero has the shape": lambda: topi.conv_integer(tensor(1, 1, 4, dtype="uint8"), tensor(
        1, 1, 1, dtype="int8"), tensor(3, dtype="uint8")),
    "bias is float32, int32 is needed": lambda: topi.quantized_conv(tensor(1, 1, 4, dtype="uint8"), 1.0, 0, tensor(
        1, 1, 1, dtype="int8"), 1.0, 0, 1.0, 0, tensor(1)),
    "size is 9, x has 8 elements": lambda: topi.unpack_int4(tensor(4, dtype="uint8"), size=9),
    "extent 1 of weight is 3, not 4": lambda: topi.linear_int4(tensor(2, 8), tensor(5, 3, dtype="uint8"), tensor(
        5, 2), block=4),
    "extent 1 of scale is 3, not 2": lambda: topi.linear_int4(tensor(2, 8), tensor(5, 4, dtype="uint8"), tensor(
        5, 3), block=4),
    "block is given, and no axis": lambda: topi.quantize(tensor(4), tensor(2), block=2),
    "the last extent of x is 4, not 2": lambda: topi.fft(tensor(3, 4)),
    "axis is -1, that of the pairs": lambda: topi.fft(tensor(3, 2), axis=-1),
    "norm is 'unit'": lambda: topi.rfft(tensor(4), norm="unit"),
    "x has 4 elements, a frame 5": lambda: topi.stft(tensor(4), length=5, step=1),
    "step is 5, above the length 4": lambda: topi.istft(tensor(3, 3, 2), length=4, step=5),
    "the number of bins of x is 3, not 5": lambda: topi.istft(tensor(3, 3, 2), length=8, step=2),
    "dtype is int32, floats are needed": lambda: topi.hann_window(4, dtype="int32"),
    "low is 9, high is 3": lambda: topi.mel_weights(bins=2, length=16, rate=100, low=9, high=3),
    "indices is float32, integers are needed": lambda: topi.csr_matmul(tensor(4), tensor(4), tensor(3), tensor(2, 2)),
    "the extent of indices is 3, not 4": lambda: topi.csr_to_dense(tensor(4), *[tensor(3, dtype="int32")] * 2,
                                                                   columns=4),
    "extent 0 of a is 3, not 2": lambda: topi.csr_sampled_matmul(tensor(3, 2), tensor(2, 4), *[tensor(
        3, dtype="int32")] * 2),
    "indptr has no element": lambda: topi.csr_softmax(tensor(4), tensor(0, dtype="int32")),
    "eps is 0.7, not between": lambda: topi.logit(tensor(4), eps=0.7),
    "popcount: x is float32": lambda: topi.popcount(tensor(4)),
    "activation is 'sine'": lambda: topi.gated(tensor(4), tensor(4), activation="sine"),
    "cap is 0, a positive number": lambda: topi.softcap(tensor(4), cap=0),
    "mask has the shape": lambda: topi.masked_softmax(tensor(4), tensor(2, 4, dtype="bool")),
    "scale has the shape": lambda: topi.weight_norm(tensor(4, 3), tensor(4, 3)),
    "p is -1, a number of at least 0": lambda: topi.cdist(tensor(4, 3), tensor(2, 3), p=-1),
    "the last extent of b is 2, not 3": lambda: topi.cdist(tensor(4, 3), tensor(2, 2)),
    "the extent along axis -1 is 4, not 3": lambda: topi.cross(tensor(4), tensor(4)),
    "target has the shape": lambda: topi.multi_margin_loss(tensor(4, 3), tensor(4, 3, dtype="int32")),
    "p is 3": lambda: topi.multi_margin_loss(tensor(4, 3), tensor(4, dtype="int32"), p=3),
    "target is float32, integers are needed": lambda: topi.multilabel_margin_loss(tensor(4, 3), tensor(4, 3)),
    "the batch of lengths is 3, not 2": lambda: topi.ctc_loss(tensor(5, 2, 4), tensor(2, 3, dtype="int32"), tensor(
        3, dtype="int32"), tensor(2, dtype="int32")),
    "there is no element along axis 0": lambda: topi.median(tensor(0), axis=0),
    "k is 5, there are 4 elements along axis -1": lambda: topi.kthvalue(tensor(4), k=5),
    "q is 2, not made of numbers from 0 to 1": lambda: topi.quantile(tensor(4), q=2),
    "the last extent of x is 3, not 4": lambda: topi.det(tensor(4, 3)),
    "extent -2 of b is 3, not 4": lambda: topi.solve(tensor(4, 4), tensor(3, 2)),
    "exponent is 0.5, not an integer": lambda: topi.matrix_power(tensor(4, 4), exponent=0.5),
    "rate is 0, a positive number": lambda: topi.exponential(tensor(2, dtype="uint32"), 3, rate=0),
    "low is 3, high is 3": lambda: topi.randint(tensor(2, dtype="uint32"), 3, low=3, high=3),
    "beyond the range of int8": lambda: topi.randint(tensor(2, dtype="uint32"), 3, high=300, dtype="int8"),
    "without an element to choose": lambda: topi.multinomial(tensor(0), tensor(2, dtype="uint32"), samples=2),
    "extent 2 of theta is 2, not 3": lambda: topi.affine_grid(tensor(1, 2, 2), (4, 4)),
    "the number of channels is 5, no multiple of 2": lambda: topi.channel_shuffle(tensor(1, 5), groups=2),
    "element number 6 is read, x has 4": lambda: topi.as_strided(tensor(4), (3,), strides=(3,)),
    "n is 5, there are 4 elements": lambda: topi.diff(tensor(4), n=5),
    "p is 1.5, not between 0 and 1": lambda: topi.top_p_filter(tensor(4), p=1.5),
    "the padding depends on the extents n and 3": lambda: topi.conv(tensor(1, 1, te.var("n")), tensor(1, 1, 3),
                                                                    padding="same_upper"),
    "indexed_matmul: the extent of indices is 3": lambda: topi.indexed_matmul(tensor(4, 2), tensor(2, 2, 2), tensor(
        3, dtype="int32")),
    "the extent of ends is 3, not 2": lambda: topi.grouped_matmul(tensor(4, 2), tensor(2, 2, 2), tensor(
        3, dtype="int32")),
    "extent 1 of delta is 3, not 5": lambda: topi.selective_scan(tensor(1, 5, 2), tensor(1, 3, 2), tensor(
        2, 3), tensor(1, 5, 3), tensor(1, 5, 3)),
    "scatter_reduce: x is int32, floats are needed": lambda: topi.scatter_reduce(*[tensor(4, dtype="int32")] * 3,
                                                                                 reduction="mean"),
    "the extent of repeats is 3, not 4": lambda: topi.repeat_interleave(tensor(4), tensor(3, dtype="int32"), size=9),
    "float8_e5m2 has no zero point": lambda: topi.quantize(tensor(4), 0.1, 3, dtype="float8_e5m2"),
    "block is 0, a number of at least": lambda: topi.absmax_quantize(tensor(4), block=0),
    "without an element along axis -1": lambda: topi.sparsemax(tensor(3, 0)),
    "1 extent.s. are needed": lambda: topi.sequence_mask(tensor(4, dtype="int32"), size=(2, 3)),
    "cap is 'high', a number is needed": lambda: topi.softcap(tensor(4), cap="high"),
    "x is None, not a tensor": lambda: topi.softmax(None),
    "target is None, not a tensor": lambda: topi.binary_cross_entropy(tensor(4), None),
    "offset is 0.5, not an integer": lambda: topi.diagonal(tensor(4, 4), offset=0.5),
    "tau is 0, a positive number": lambda: topi.gumbel_softmax(tensor(4), tensor(2, dtype="uint32"), tau=0),
    "start is None, a number is needed": lambda: topi.linspace(None, 1, 4),
    "stop is an integer that is too large": lambda: topi.linspace(0, 10**400, 4),
    "from 0 to nan there are nan steps of 1": lambda: topi.arange(math.nan),
    "from 0.5 to 2 there are inf steps of 5e-324": lambda: topi.arange(0.5, 2, 5e-324),
    "base is -1, a positive number": lambda: topi.rotary_angles(3, width=4, base=-1),
    "base is 0, a positive number": lambda: topi.sinusoidal_positions(3, width=4, base=0),
    "heads is 2147483648, a number from 1 to 65536": lambda: topi.alibi_bias(3, 3, heads=2**31),
    r"the shapes \(5,\), \(2, 3\) do not fit": lambda: topi.multilabel_soft_margin_loss(
        tensor(2, 3), tensor(2, 3), tensor(5)),
    r"weight has the shape \(2, 2, 3\), x \(2, 3\)": lambda: topi.multilabel_soft_margin_loss(
        tensor(2, 3), tensor(2, 3), tensor(2, 2, 3)),
    "zero_point is 0.5, not an integer": lambda: topi.quantize(tensor(4), 0.1, 0.5),
    "low is 0, high is inf": lambda: topi.mel_weights(bins=3, length=8, rate=math.inf, low=0, high=math.inf),
    "bins is 2147483648, length is 8": lambda: topi.mel_weights(bins=2**31, length=8, rate=16, low=0, high=8),
    "2147483648 elements are transformed": lambda: topi.rfft(tensor(4), size=2**31),
    "padding is None, not made of integers": lambda: topi.unfold(tensor(1, 1, 4, 4), 2, padding=None),
    "a name and at most two numbers": lambda: topi.rnn(tensor(2, 3, 4), tensor(5, 4), tensor(5, 5), nonlinearity=(
        "leakyrelu", 0.1, 0.2, 0.3)),
    r"nonlinearity is \(\)": lambda: topi.rnn(tensor(2, 3, 4), tensor(5, 4), tensor(5, 5), nonlinearity=()),
    "a number of leakyrelu is 'a'": lambda: topi.rnn(tensor(2, 3, 4), tensor(5, 4), tensor(5, 5), nonlinearity=(
        "leakyrelu", "a")),
    "activations is None, 2 are needed": lambda: topi.gru(tensor(2, 3, 4), tensor(15, 4), tensor(
        15, 5), activations=None),
    "clip is -1, below 0": lambda: topi.rnn(tensor(2, 3, 4), tensor(5, 4), tensor(5, 5), clip=-1),
    "the last extent of scores is 4, not 3": lambda: topi.non_max_suppression(tensor(1, 3, 4), tensor(1, 2, 4)),
    "alpha is inf, and the product int32": lambda: topi.addmm(*[tensor(2, 2, dtype="int32")] * 3, alpha=math.inf),
    "c is float32, and the product int32": lambda: topi.addmm(tensor(2, 2), *[tensor(2, 2, dtype="int32")] * 2),
    "bias is int64, and the product int32": lambda: topi.linear(*[tensor(2, 2, dtype="int32")] * 2, tensor(
        2, dtype="int64")),
    "bias is float32, and the product int32": lambda: topi.linear(*[tensor(2, 2, dtype="int32")] * 2, tensor(2)),
    "axes is True": lambda: topi.tensordot(tensor(3), tensor(3), axes=True),
    "vecdot: a has the shape": lambda: topi.vecdot(tensor(), tensor()),
    r"mask has the shape \(5, 3\), which does not broadcast": lambda: topi.scaled_dot_product_attention(
        tensor(1, 1, 4), tensor(1, 3, 4), tensor(1, 3, 4), tensor(5, 3)),
    "softcap is inf": lambda: topi.scaled_dot_product_attention(*[tensor(1, 3, 4)] * 3, softcap=math.inf),
    "the extent of in_bias is 4, not 12": lambda: topi.multi_head_attention(
        *[tensor(1, 3, 4)] * 3, tensor(12, 4), tensor(4), tensor(4, 4), None, heads=2),
    "extent 1 of in_weight is 2, not 4": lambda: topi.multi_head_attention(
        *[tensor(1, 3, 4)] * 3, tensor(12, 2), None, tensor(4, 4), None, heads=2),
    "scales is inf, 1 positive number": lambda: topi.resize(tensor(4), scales=math.inf),
    r"regions is \[\(0.0,\)\], 1 pair": lambda: topi.resize(tensor(4), 3, regions=[(0.0,)],
                                                          coordinates="tf_crop_and_resize"),
    "regions is 'a', a number is needed": lambda: topi.resize(tensor(4), 3, regions=[("a", 1.0)],
                                                              coordinates="tf_crop_and_resize"),
    "x_zero is 0.5, not an integer": lambda: topi.conv_integer(*[tensor(1, 1, 4, dtype="int8")] * 2, 0.5),
    r"x_zero is array\(\[0., 0.\]\), a number": lambda: topi.conv_integer(*[tensor(1, 1, 4, dtype="int8")] * 2,
                                                                       np.zeros(2)),
    "a_zero is float32, integers or bools": lambda: topi.matmul_integer(*[tensor(2, 2, dtype="int8")] * 2, tensor()),
    "y_scale is 0, not a positive number": lambda: topi.quantized_matmul(
        tensor(2, 2, dtype="int8"), 1.0, 0, tensor(2, 2, dtype="int8"), 1.0, 0, 0, 0),
    "the extents are True, not made of integers": lambda: topi.topk(tensor(4), k=True),
    "the extents are Tensor.*, not made of integers": lambda: topi.one_hot(tensor(4, dtype="int32"), depth=tensor(
        dtype="int32")),
    r"weight has the shape \(\), 3 dimension": lambda: topi.conv_integer(tensor(1, 1, 4, dtype="int8"), tensor(
        dtype="int8")),
    "y_zero is 300, beyond int8": lambda: topi.quantized_matmul(
        tensor(2, 2, dtype="int8"), 1.0, 0, tensor(2, 2, dtype="int8"), 1.0, 0, 1.0, 300),
    "shift is 'x', not made of integers": lambda: topi.roll(tensor(), "x"),
    "sections is True": lambda: topi.split(tensor(4), True),
    "begin is 0.5, no integer": lambda: topi.strided_slice(tensor(4), begin=0.5, end=3),
    "the step True is no integer": lambda: topi.strided_slice(tensor(4), begin=0, end=3, strides=True),
    "shift is 0.5, not made of integers": lambda: topi.roll(tensor(4), 0.5, axis=0),
    "axis1 is 5": lambda: topi.swapaxes(tensor(4), axis1=5, axis2=0),
    "start is 7, and there are 1": lambda: topi.flatten(tensor(), start=7),
    "low is -inf, high is 1": lambda: topi.histogram(tensor(4), bins=3, low=-math.inf, high=1),
    "conv: the kernel has no element": lambda: topi.conv(tensor(1, 2, 4), tensor(3, 2, 0)),
    "conv_transpose: the kernel has no element": lambda: topi.conv_transpose(tensor(1, 2, 4), tensor(2, 3, 0)),
    "extent 0 of offset is 5, not 2": lambda: topi.deform_conv2d(tensor(2, 2, 4, 4), tensor(5, 8, 3, 3), tensor(
        3, 2, 2, 2)),
    "extent 1 of mask is 9, not 4": lambda: topi.deform_conv2d(tensor(1, 2, 4, 4), tensor(1, 8, 3, 3), tensor(
        3, 2, 2, 2), None, tensor(1, 9, 3, 3)),
    "offset is int32, floats are needed": lambda: topi.deform_conv2d(tensor(1, 2, 4, 4), tensor(
        1, 8, 3, 3, dtype="int32"), tensor(3, 2, 2, 2)),
    "size is 0, numbers of at least 1": lambda: topi.adaptive_max_pool(tensor(1, 2, 4), 0),
    r"x has the shape \(1, 2, 0\), without a pixel": lambda: topi.adaptive_avg_pool(tensor(1, 2, 0), 2),
    "adaptive_max_pool: x is bool": lambda: topi.adaptive_max_pool(tensor(1, 2, 4, dtype="bool"), 2),
    "lp_pool: p is inf": lambda: topi.lp_pool(tensor(1, 2, 4), 2, p=math.inf),
    "divisor is 0": lambda: topi.avg_pool(tensor(1, 2, 4), 2, divisor=0),
    "padding is 'same', not made of integers": lambda: topi.conv_transpose(tensor(1, 2, 4), tensor(2, 3, 1),
                                                                           padding="same"),
    "crop is 'same', not made of integers": lambda: topi.batch_to_space(tensor(4, 2, 4), block=2, crop="same"),
    "dtype is int8, which does not hold the place 299": lambda: topi.argsort(tensor(300), dtype="int8"),
    "dtype is bool, integers or floats": lambda: topi.argmax(tensor(3), dtype="bool"),
    "crop is 5, more than the extents": lambda: topi.batch_to_space(tensor(4, 2, 4), block=2, crop=5),
}


def test_more_updates_than_rows_are_an_error_of_the_call():
    n, m = te.var("n"), te.var("m")
    x, i, updates = tensor(n, 3), te.placeholder((m, 2), "int64", name="i"), te.placeholder((m, 2), name="updates")
    f = tw.compile(te.create_prim_func([x, i, updates, topi.scatter(x, i, updates, axis=1)]))
    whole = np.zeros((8, 3), "float32")
    with pytest.raises(CallError, match="out of bounds"):
        f(np.zeros((2, 3), "float32"), np.zeros((8, 2), "int64"), np.ones((8, 2), "float32"), whole[:2])
    assert not whole.any()


@pytest.mark.parametrize("message", REFUSED)
def test_what_is_refused(message):
    with pytest.raises(TensorExpressionError, match=message):
        REFUSED[message]()
