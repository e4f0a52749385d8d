"""What operators refuse: when they are written down, or while the kernel runs."""
from __future__ import annotations

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
    "either size or scales is needed": lambda: topi.resize(tensor(4), 8, scales=2),
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
    "the last extent of scores is 4, not 3": lambda: topi.non_max_suppression(tensor(1, 3, 4), tensor(1, 2, 4)),
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_is_refused(message):
    with pytest.raises(TensorExpressionError, match=message):
        REFUSED[message]()
