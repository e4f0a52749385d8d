"""Softmax and normalisation: what divides by sums of a row, a channel, a group."""
from __future__ import annotations

from typing import Any

from tilewright.support.errors import described
from tilewright.te.definition import compute
from tilewright.te.math import exp, log, rsqrt, sqrt
from tilewright.te.reduction import reduce_axis
from tilewright.te.reduction import sum as te_sum
from tilewright.te.tensor import Tensor, shape_text
from tilewright.tir.arithmetic import all_of, binary, if_then_else, maximum, power, select
from tilewright.tir.conversion import cast, const, min_value
from tilewright.tir.expr import Expr
from tilewright.topi.cumulative import cumsum
from tilewright.topi.reductions import (
    argmax,
    elements_along,
    largest_number,
    norm,
    reduced,
    squared_distances,
    wide_mean,
)
from tilewright.topi.shapes import (
    axis_index,
    axis_indices,
    broadcast_shapes,
    check,
    check_extent,
    check_numbers,
    check_rank,
    check_tensors,
    constant,
    element,
    quotient,
    replaced,
    same_shape,
)
from tilewright.topi.sorting import sort
from tilewright.topi.types import BOOL, FLOAT, accumulator, check_kind, rounded


def _floats(op: str, **tensors: Any) -> None:
    given = {name: x for name, x in tensors.items() if x is not None or name not in ("weight", "bias")}
    check_tensors(op, **given)
    for name, x in given.items():
        check_kind(op, name, x.dtype, FLOAT)


# softmax


def exponentials(name: str, x: Tensor, axis: int) -> tuple[Tensor, Tensor, Tensor]:
    """(largest, e = exp(x - largest), sum of e) along an axis, which stays of extent 1, in the type that adds up."""
    wide = accumulator(x.dtype)
    largest = reduced(f"{name}_max", x, axis, True, largest_number, lambda *i: cast(wide, x(*i)), {"no_gradient": True})
    e = compute(x.shape, lambda *i: exp(cast(wide, x(*i)) - element(largest, i)), name=f"{name}_exp")
    return largest, e, reduced(f"{name}_sum", e, axis, True, te_sum, lambda *i: e(*i))


def softmax(x: Tensor, *, axis: int = -1) -> Tensor:
    """y[i] = exp(x[i] - m) / sum over j of exp(x[j] - m) along an axis; m: the largest of x.

    The sum is at least 1, and what is multiplied by is its inverse.
    """
    _floats("softmax", x=x)
    _, e, total = exponentials("softmax", x, axis_index("softmax", axis, x.ndim))
    share = compute(total.shape, lambda *i: 1.0 / total(*i), name="softmax_share")
    return compute(x.shape, lambda *i: cast(x.dtype, e(*i) * element(share, i)), name="softmax")


def softmin(x: Tensor, *, axis: int = -1) -> Tensor:
    """The softmax of -x along an axis."""
    _floats("softmin", x=x)
    return softmax(compute(x.shape, lambda *i: -x(*i), name="softmin_negative"), axis=axis)


def log_softmax(x: Tensor, *, axis: int = -1) -> Tensor:
    """y[i] = x[i] - m - log(sum over j of exp(x[j] - m)) along an axis; m: the largest of x."""
    _floats("log_softmax", x=x)
    largest, _, total = exponentials("log_softmax", x, axis_index("log_softmax", axis, x.ndim))
    return compute(x.shape, lambda *i: cast(x.dtype, cast(total.dtype, x(*i)) - element(largest, i)
                                            - log(element(total, i))), name="log_softmax")


def masked_softmax(x: Tensor, mask: Tensor, *, axis: int = -1) -> Tensor:
    """The `softmax` of the elements where mask holds, 0 elsewhere; mask: bools, broadcasts to x.

    A line without an element is 0. Raises TensorExpressionError where mask does not fit.
    """
    op = "masked_softmax"
    _floats(op, x=x)
    check_tensors(op, mask=mask)
    check_kind(op, "mask", mask.dtype, BOOL, "compare first: topi.not_equal(x, 0)")
    check(same_shape(broadcast_shapes(op, mask.shape, x.shape), x.shape), op, f"mask has the shape "
          f"{shape_text(mask.shape)}, x {shape_text(x.shape)}")
    at, wide = axis_index(op, axis, x.ndim), accumulator(x.dtype)
    low, zero = min_value(wide), const(0.0, wide)
    largest = reduced(f"{op}_max", x, at, True, largest_number, lambda *i: if_then_else(
        element(mask, i), cast(wide, x(*i)), low), {"no_gradient": True})
    e = compute(x.shape, lambda *i: if_then_else(element(mask, i), exp(cast(wide, x(*i)) - element(largest, i)), zero),
                name=f"{op}_exp")
    total = reduced(f"{op}_sum", e, at, True, te_sum, lambda *i: e(*i))
    share = compute(total.shape, lambda *i: select(binary("gt", total(*i), zero), 1.0 / maximum(
        total(*i), const(1.0, wide)), zero), name=f"{op}_share")
    return compute(x.shape, lambda *i: cast(x.dtype, e(*i) * element(share, i)), name=op)


def sparsemax(x: Tensor, *, axis: int = -1) -> Tensor:
    """y = max(x - t, 0) along an axis, with the t for which the sum is 1. Source: Martins and Astudillo (2016)."""
    op = "sparsemax"
    _floats(op, x=x)
    at, wide = axis_index(op, axis, x.ndim), accumulator(x.dtype)
    check(constant(x.shape[at]) != 0, op, f"x has the shape {shape_text(x.shape)}, without an element along axis "
          f"{axis}")
    falling = sort(rounded(x, wide), axis=at, descending=True)
    sums = cumsum(falling, axis=at)

    def counts(*i: Any) -> Expr:
        rank = cast(wide, i[at]) + 1.0
        return cast("int64", binary("gt", rank * falling(*i) + 1.0, sums(*i)))
    size = reduced(f"{op}_size", x, at, True, te_sum, counts)

    def level(*i: Any) -> Expr:
        return (sums(*replaced(i, at, size(*i) - 1)) - 1.0) / cast(wide, size(*i))
    limit = compute(size.shape, level, name=f"{op}_level")
    return compute(x.shape, lambda *i: cast(x.dtype, maximum(cast(wide, x(*i)) - element(limit, i), const(0.0, wide))),
                   name=op)


def hardmax(x: Tensor, *, axis: int = -1) -> Tensor:
    """y = 1 for the largest element along an axis, the first of equals, 0 for the others."""
    op = "hardmax"
    check_tensors(op, x=x)
    at = axis_index(op, axis, x.ndim)
    if constant(x.shape[at]) == 0:
        return compute(x.shape, lambda *i: const(0, x.dtype), name=op)
    place = argmax(x, axis=at, keepdims=True)
    return compute(x.shape, lambda *i: cast(x.dtype, binary("eq", cast(place.dtype, i[at]), element(place, i))),
                   name=op)


# norms


def _at(t: Tensor | None, *indices: Any) -> Expr | None:
    return None if t is None else t(*indices)


def _scaled(e: Expr, weight: Expr | None, bias: Expr | None) -> Expr:
    """e * weight + bias in the type of e."""
    out = e if weight is None else binary("mul", e, cast(e.dtype, weight))
    return out if bias is None else binary("add", out, cast(e.dtype, bias))


def _per_channel(op: str, x: Tensor, axis: int = 1, **tensors: Tensor | None) -> None:
    """Vectors with one element for each channel."""
    for name, t in tensors.items():
        if t is not None:
            check_rank(op, name, t, 1)
            check_extent(op, f"the extent of {name}", t.shape[0], x.shape[axis],
                         f"x has the shape {shape_text(x.shape)}")


def batch_norm(x: Tensor, mean: Tensor, var: Tensor, weight: Tensor | None = None, bias: Tensor | None = None, *,
               eps: float = 1e-5, axis: int = 1) -> Tensor:
    """y = (x - mean[c]) / sqrt(var[c] + eps) * weight[c] + bias[c], with the moments that are given.

    x: T[b, c, ...], channels along `axis`; the others: T[c]. Raises TensorExpressionError where extents differ.
    """
    op = "batch_norm"
    _floats(op, x=x, mean=mean, var=var, weight=weight, bias=bias)
    at = axis_index(op, axis, x.ndim)
    _per_channel(op, x, at, mean=mean, var=var, weight=weight, bias=bias)
    wide = accumulator(x.dtype)
    inverse = compute(var.shape, lambda c: rsqrt(cast(wide, var(c)) + eps), name="batch_norm_scale")

    def element_of(*i: Any) -> Expr:
        scaled = (cast(wide, x(*i)) - cast(wide, mean(i[at]))) * inverse(i[at])
        return cast(x.dtype, _scaled(scaled, _at(weight, i[at]), _at(bias, i[at])))
    return compute(x.shape, element_of, name=op)


def batch_norm_training(x: Tensor, mean: Tensor, var: Tensor, weight: Tensor | None = None,
                        bias: Tensor | None = None, *, momentum: float = 0.1, eps: float = 1e-5,
                        axis: int = 1) -> tuple[Tensor, Tensor, Tensor]:
    """(y, new mean, new var): `batch_norm` by the moments of x over all axes but that of the channels.

    new = (1 - momentum) * old + momentum * moment; the variance that is kept is divided by n - 1. Shapes as in
    `batch_norm`. Raises TensorExpressionError where extents differ.
    """
    op = "batch_norm_training"
    _floats(op, x=x, mean=mean, var=var, weight=weight, bias=bias)
    at = axis_index(op, axis, x.ndim)
    _per_channel(op, x, at, mean=mean, var=var, weight=weight, bias=bias)
    axes = tuple(a for a in range(x.ndim) if a != at)
    center = wide_mean("batch_norm_mean", x, axes)
    total = squared_distances("batch_norm_sum", x, center, axes)
    y = _normalized(op, x, center, total, elements_along(x, axes, total.dtype), eps,
                    lambda i: (_at(weight, i[at]), _at(bias, i[at])))
    n = elements_along(x, axes, total.dtype)

    def place(c: Any) -> tuple[Any, ...]:
        return tuple(c if a == at else 0 for a in range(x.ndim))

    def blend(old: Expr, moment: Expr) -> Expr:
        return cast(old.dtype, cast(moment.dtype, old) * (1.0 - momentum) + moment * momentum)
    return (y, compute(mean.shape, lambda c: blend(mean(c), center(*place(c))), name="running_mean"),
            compute(var.shape, lambda c: blend(var(c), total(*place(c)) / maximum(n - 1.0, 0.0)), name="running_var"))


def _normalized(name: str, x: Tensor, center: Tensor, total: Tensor, n: Expr, eps: float, affine: Any) -> Tensor:
    """(x - center) / sqrt(total / n + eps) * weight + bias; affine(indices) gives weight and bias, or None."""
    scale = compute(total.shape, lambda *i: rsqrt(total(*i) / n + eps), name=f"{name}_scale")
    return compute(x.shape, lambda *i: cast(x.dtype, _scaled(
        (cast(scale.dtype, x(*i)) - element(center, i)) * element(scale, i), *affine(i))), name=name)


def layer_norm(x: Tensor, weight: Tensor | None = None, bias: Tensor | None = None, *, axes: int = 1,
               eps: float = 1e-5) -> Tensor:
    """y = (x - mean) / sqrt(var + eps) * weight + bias, with the moments over the last `axes` axes; two passes.

    weight, bias: tensors of these last dimensions. Raises TensorExpressionError where extents differ.
    """
    op = "layer_norm"
    _floats(op, x=x, weight=weight, bias=bias)
    last = _last_axes(op, x, axes, weight=weight, bias=bias)
    center = wide_mean("layer_norm_mean", x, last)
    total = squared_distances("layer_norm_sum", x, center, last)
    return _normalized(op, x, center, total, elements_along(x, last, total.dtype), eps,
                       lambda i: (_at(weight, *i[last[0]:]), _at(bias, *i[last[0]:])))


def _last_axes(op: str, x: Tensor, axes: int, **tensors: Tensor | None) -> tuple[int, ...]:
    """The last `axes` axes; the tensors that are given have their extents."""
    check(isinstance(axes, int) and 1 <= axes <= x.ndim, op, f"axes is {described(axes)}, x has {x.ndim} dimension(s)")
    for name, t in tensors.items():
        if t is not None:
            check_rank(op, name, t, axes)
            for n, (found, wanted) in enumerate(zip(t.shape, x.shape[-axes:])):
                check_extent(op, f"extent {n} of {name}", found, wanted, f"x has the shape {shape_text(x.shape)}")
    return tuple(range(x.ndim - axes, x.ndim))


def rms_norm(x: Tensor, weight: Tensor | None = None, *, axes: int = 1, eps: float = 1e-6) -> Tensor:
    """y = x / sqrt(mean of x * x + eps) * weight, with the mean over the last `axes` axes.

    weight: a tensor of these last dimensions. Raises TensorExpressionError where extents differ.
    """
    op = "rms_norm"
    _floats(op, x=x, weight=weight)
    last = _last_axes(op, x, axes, weight=weight)
    wide = accumulator(x.dtype)

    def square(*i: Any) -> Expr:
        return binary("mul", cast(wide, x(*i)), cast(wide, x(*i)))
    total = reduced("rms_norm_sum", x, last, True, te_sum, square)
    n = elements_along(x, last, wide)
    scale = compute(total.shape, lambda *i: rsqrt(total(*i) / n + eps), name="rms_norm_scale")
    return compute(x.shape, lambda *i: cast(x.dtype, _scaled(
        cast(wide, x(*i)) * element(scale, i), _at(weight, *i[last[0]:]), None)), name=op)


def group_norm(x: Tensor, weight: Tensor | None = None, bias: Tensor | None = None, *, groups: int,
               eps: float = 1e-5) -> Tensor:
    """y = (x - mean) / sqrt(var + eps) * weight[c] + bias[c], with the moments over the channels of a group and space.

    x: T[b, c, ...]; weight, bias: T[c]. The groups are an axis of their own, merged by a copy.
    Raises TensorExpressionError where groups does not divide the channels or extents differ.
    """
    op = "group_norm"
    _floats(op, x=x, weight=weight, bias=bias)
    check_rank(op, "x", x, 2, 100)
    check(isinstance(groups, int) and groups >= 1, op, f"groups is {described(groups)}")
    _per_channel(op, x, weight=weight, bias=bias)
    per = quotient(op, "the number of channels", x.shape[1], groups)

    def channel(g: Any, c: Any) -> Expr:
        return binary("add", binary("mul", g, per), c)
    split = compute((x.shape[0], groups, per, *x.shape[2:]), lambda b, g, c, *i: x(b, channel(g, c), *i),
                    name="group_norm_split")
    axes = tuple(range(2, split.ndim))
    center = wide_mean("group_norm_mean", split, axes)
    total = squared_distances("group_norm_sum", split, center, axes)
    y = _normalized(op, split, center, total, elements_along(split, axes, total.dtype), eps, lambda i: (
        _at(weight, channel(i[1], i[2])), _at(bias, channel(i[1], i[2]))))
    return compute(x.shape, lambda b, c, *i: y(b, binary("floordiv", c, per), binary("floormod", c, per), *i),
                   name="group_norm_merged")


def instance_norm(x: Tensor, weight: Tensor | None = None, bias: Tensor | None = None, *, eps: float = 1e-5) -> Tensor:
    """y = (x - mean) / sqrt(var + eps) * weight[c] + bias[c], with the moments over the space of each channel.

    x: T[b, c, *spatial]; weight, bias: T[c]. Raises TensorExpressionError where extents differ.
    """
    op = "instance_norm"
    _floats(op, x=x, weight=weight, bias=bias)
    check_rank(op, "x", x, 3, 100)
    _per_channel(op, x, weight=weight, bias=bias)
    axes = tuple(range(2, x.ndim))
    center = wide_mean("instance_norm_mean", x, axes)
    total = squared_distances("instance_norm_sum", x, center, axes)
    return _normalized(op, x, center, total, elements_along(x, axes, total.dtype), eps,
                       lambda i: (_at(weight, i[1]), _at(bias, i[1])))


def normalize(x: Tensor, *, p: float = 2.0, axis: Any = 1, eps: float = 1e-12) -> Tensor:
    """y = x / max(norm of order p of x over axes, eps)."""
    op = "normalize"
    _floats(op, x=x)
    wide = accumulator(x.dtype)
    size = norm(rounded(x, wide), axis=axis, keepdims=True, ord=p)
    return compute(x.shape, lambda *i: cast(x.dtype, cast(wide, x(*i)) / maximum(element(size, i), const(eps, wide))),
                   name=op)


def mean_variance_norm(x: Tensor, *, axis: Any = (0, 2, 3), eps: float = 1e-9) -> Tensor:
    """y = (x - mean) / (sqrt(var) + eps), with the moments over axes (ONNX's MeanVarianceNormalization)."""
    op = "mean_variance_norm"
    _floats(op, x=x)
    axes = axis_indices(op, axis, x.ndim)
    center = wide_mean(f"{op}_mean", x, axes)
    total = squared_distances(f"{op}_sum", x, center, axes)
    n = elements_along(x, axes, total.dtype)
    scale = compute(total.shape, lambda *i: 1.0 / (sqrt(total(*i) / n) + eps), name=f"{op}_scale")
    return compute(x.shape, lambda *i: cast(x.dtype, (cast(scale.dtype, x(*i)) - element(center, i))
                                            * element(scale, i)), name=op)


def weight_norm(x: Tensor, scale: Tensor, *, axis: int = 0) -> Tensor:
    """y = x * scale / the norm of x over all axes but one (torch's weight_norm).

    scale: broadcasts to the norms, whose other extents are 1. Source: Salimans and Kingma (2016).
    """
    op = "weight_norm"
    _floats(op, x=x, scale=scale)
    at, wide = axis_index(op, axis, x.ndim), accumulator(x.dtype)
    size = norm(rounded(x, wide), axis=tuple(a for a in range(x.ndim) if a != at), keepdims=True)
    check(same_shape(broadcast_shapes(op, scale.shape, size.shape), size.shape), op, f"scale has the shape "
          f"{shape_text(scale.shape)}, the norms {shape_text(size.shape)}")
    ratio = compute(size.shape, lambda *i: cast(wide, element(scale, i)) / size(*i), name=f"{op}_ratio")
    return compute(x.shape, lambda *i: cast(x.dtype, cast(wide, x(*i)) * element(ratio, i)), name=op)


def local_response_norm(x: Tensor, *, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Tensor:
    """y[b, c] = x[b, c] / (k + alpha / size * sum over c' of x[b, c'] ** 2) ** beta, c - size // 2 <= c' < c -
    size // 2 + size.

    x: T[b, c, ...]; channels outside are left out. Source: Krizhevsky, Sutskever, Hinton (2012).
    """
    op = "local_response_norm"
    _floats(op, x=x)
    check_rank(op, "x", x, 2, 100)
    check(isinstance(size, int) and size >= 1, op, f"size is {described(size)}, an integer of at least 1 is needed")
    check_numbers(op, alpha=alpha, beta=beta, k=k)
    wide = accumulator(x.dtype)
    r = reduce_axis((0, size), name="k")

    def term(b: Any, c: Any, *i: Any) -> Expr:
        at = binary("sub", binary("add", c, r), size // 2)
        there = all_of(binary("ge", at, 0), binary("lt", at, x.shape[1]))
        e = if_then_else(there, cast(wide, x(b, at, *i)), const(0.0, wide))
        return te_sum(binary("mul", e, e), axis=r)
    total = compute(x.shape, term, name="local_response_norm_sum")
    return compute(x.shape, lambda *i: cast(x.dtype, cast(wide, x(*i)) / power(total(*i) * (alpha / size) + k, beta)),
                   name=op)


__all__ = ["batch_norm", "batch_norm_training", "group_norm", "hardmax", "instance_norm", "layer_norm",
           "local_response_norm", "log_softmax", "masked_softmax", "mean_variance_norm", "normalize", "rms_norm",
           "softmax", "softmin", "sparsemax", "weight_norm"]
