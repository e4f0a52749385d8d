"""Losses, as in PyTorch: distances of what a network gives from what it should give.

reduction: "none" (each term), "sum", or "mean" of the terms. Floats of 16 bits are computed in float32 and rounded
once, at the end.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright.te.definition import compute
from tilewright.te.math import exp, log, log1p, sqrt
from tilewright.te.reduction import sum as te_sum
from tilewright.te.tensor import Tensor, shape_text
from tilewright.tir import dtype as dt
from tilewright.tir.arithmetic import absolute, binary, if_then_else, maximum, negate, select
from tilewright.tir.conversion import cast, const
from tilewright.tir.expr import Expr
from tilewright.topi.indexing import signed
from tilewright.topi.normalization import log_softmax
from tilewright.topi.reductions import norm, reduced
from tilewright.topi.shapes import (
    broadcast_shapes,
    check,
    check_choice,
    check_extent,
    check_numbers,
    check_rank,
    check_tensors,
    element,
    number,
    pairs,
    product,
)
from tilewright.topi.types import FLOAT, accumulator, check_kind, common_type, rounded

REDUCTIONS = ("none", "mean", "sum")


def finished(op: str, terms: Tensor, reduction: str, dtype: str, count: Callable[[], Expr] | None = None) -> Tensor:
    """The terms, their sum, or their sum divided by `count` (default: how many there are), in dtype."""
    if reduction == "none":
        return rounded(terms, dtype, f"{op}_rounded")
    total = reduced(f"{op}_sum", terms, None, False, te_sum, terms)
    if reduction == "sum":
        return rounded(total, dtype, f"{op}_rounded")
    n = number(product(terms.shape), terms.dtype) if count is None else count()
    return compute((), lambda: cast(dtype, binary("div", total(), n)), name=op)


def common_float(op: str, reduction: str, **tensors: Any) -> str:
    """The common type of the tensors that are given, a float."""
    given = {name: x for name, x in tensors.items() if x is not None or name not in ("weight", "pos_weight")}
    check_tensors(op, **given)
    check_choice(op, "reduction", reduction, REDUCTIONS)
    common = common_type(op, *given.values())
    check_kind(op, "an operand", common, FLOAT)
    return common


def pointwise(op: str, f: Callable[..., Expr], reduction: str, count: Callable[[str], Expr] | None = None,
              **tensors: Any) -> Tensor:
    """The reduction of f of elements, which broadcast; f gets None for a tensor that is not given.

    count(dtype): what a mean divides by, if not the number of terms.
    """
    dtype = common_float(op, reduction, **tensors)
    wide = accumulator(dtype)
    shape = broadcast_shapes(op, *(x.shape for x in tensors.values() if x is not None))
    terms = compute(shape, lambda *i: f(*(None if x is None else cast(wide, element(x, i)) for x in tensors.values())),
                    name=f"{op}_terms")
    return finished(op, terms, reduction, dtype, None if count is None else lambda: count(wide))


def above_zero(e: Expr) -> Expr:
    return maximum(e, const(0.0, e.dtype))


def logistic(e: Expr, t: Expr, weight: Expr | None = None) -> Expr:
    """-weight * t * log(sigmoid(e)) - (1 - t) * log(1 - sigmoid(e)), without overflow and cancellation."""
    tail = log1p(exp(negate(absolute(e))))
    own = t * (tail + above_zero(negate(e)))
    return (own if weight is None else own * weight) + (1.0 - t) * (tail + above_zero(e))


def mse_loss(x: Tensor, target: Tensor, *, reduction: str = "mean") -> Tensor:
    """(x - target) ** 2, term by term."""
    return pointwise("mse_loss", lambda a, b: (a - b) * (a - b), reduction, x=x, target=target)


def l1_loss(x: Tensor, target: Tensor, *, reduction: str = "mean") -> Tensor:
    """|x - target|, term by term."""
    return pointwise("l1_loss", lambda a, b: absolute(a - b), reduction, x=x, target=target)


def smooth_l1_loss(x: Tensor, target: Tensor, *, beta: float = 1.0, reduction: str = "mean") -> Tensor:
    """d * d / (2 * beta) where d = |x - target| < beta, else d - beta / 2."""
    check_numbers("smooth_l1_loss", beta=beta)
    check(beta >= 0, "smooth_l1_loss", f"beta is {beta}, below 0")
    if beta == 0:
        return l1_loss(x, target, reduction=reduction)

    def term(a: Expr, b: Expr) -> Expr:
        d = absolute(a - b)
        return select(binary("lt", d, const(float(beta), d.dtype)), d * d * (0.5 / beta), d - 0.5 * beta)
    return pointwise("smooth_l1_loss", term, reduction, x=x, target=target)


def huber_loss(x: Tensor, target: Tensor, *, delta: float = 1.0, reduction: str = "mean") -> Tensor:
    """d * d / 2 where d = |x - target| <= delta, else delta * (d - delta / 2)."""
    check_numbers("huber_loss", delta=delta)
    check(delta > 0, "huber_loss", f"delta is {delta}, not above 0")

    def term(a: Expr, b: Expr) -> Expr:
        d = absolute(a - b)
        return select(binary("le", d, const(float(delta), d.dtype)), d * d * 0.5, (d - 0.5 * delta) * float(delta))
    return pointwise("huber_loss", term, reduction, x=x, target=target)


def binary_cross_entropy(x: Tensor, target: Tensor, weight: Tensor | None = None, *,
                         reduction: str = "mean") -> Tensor:
    """-weight * (target * log(x) + (1 - target) * log(1 - x)); logarithms are at least -100."""
    def term(p: Expr, t: Expr, w: Expr | None) -> Expr:
        least = const(-100.0, p.dtype)
        loss = (t - 1.0) * maximum(log1p(negate(p)), least) - t * maximum(log(p), least)
        return loss if w is None else loss * w
    return pointwise("binary_cross_entropy", term, reduction, x=x, target=target, weight=weight)


def binary_cross_entropy_with_logits(x: Tensor, target: Tensor, weight: Tensor | None = None,
                                     pos_weight: Tensor | None = None, *, reduction: str = "mean") -> Tensor:
    """`binary_cross_entropy` of sigmoid(x), without overflow; pos_weight multiplies target * log(sigmoid(x))."""
    def term(e: Expr, t: Expr, w: Expr | None, p: Expr | None) -> Expr:
        loss = logistic(e, t, p)
        return loss if w is None else loss * w
    return pointwise("binary_cross_entropy_with_logits", term, reduction, x=x, target=target, weight=weight,
                      pos_weight=pos_weight)


def kl_div(x: Tensor, target: Tensor, *, log_target: bool = False, reduction: str = "mean") -> Tensor:
    """target * (log(target) - x), 0 * log(0) = 0, where x is a logarithm; exp(target) * (target - x) with log_target.

    reduction "batchmean": the sum divided by the first extent.
    """
    op = "kl_div"
    check_choice(op, "reduction", reduction, (*REDUCTIONS, "batchmean"))

    def term(e: Expr, t: Expr) -> Expr:
        if log_target:
            return exp(t) * (t - e)
        zero = const(0.0, t.dtype)
        return if_then_else(binary("eq", t, zero), zero, t * log(t)) - t * e
    if reduction != "batchmean":
        return pointwise(op, term, reduction, x=x, target=target)
    check_rank(op, "x", x, 1, 100)
    return pointwise(op, term, "mean", lambda wide: number(x.shape[0], wide), x=x, target=target)


def hinge_embedding_loss(x: Tensor, target: Tensor, *, margin: float = 1.0, reduction: str = "mean") -> Tensor:
    """x where target is 1, max(margin - x, 0) where it is -1."""
    def term(e: Expr, t: Expr) -> Expr:
        one, zero = const(1.0, t.dtype), const(0.0, t.dtype)
        apart = select(binary("ne", t, one), above_zero(margin - e), zero)
        return apart + select(binary("ne", t, negate(one)), e, zero)
    return pointwise("hinge_embedding_loss", term, reduction, x=x, target=target)


def cosine_embedding_loss(a: Tensor, b: Tensor, target: Tensor, *, margin: float = 0.0,
                          reduction: str = "mean") -> Tensor:
    """1 - cos(a, b) where target is 1, max(cos(a, b) - margin, 0) where it is -1; cos along the last axis.

    a, b: T[n, d] and target: [n], or T[d] and a number. cos = a . b / sqrt((a . a + 1e-12) * (b . b + 1e-12)).
    """
    op = "cosine_embedding_loss"
    dtype = common_float(op, reduction, a=a, b=b)
    check_tensors(op, target=target)
    check_rank(op, "a", a, 1, 2)
    check_rank(op, "b", b, a.ndim)
    check_rank(op, "target", target, a.ndim - 1)
    wide, shape = accumulator(dtype), broadcast_shapes(op, a.shape, b.shape)
    full = {n: compute(shape, lambda *i, x=x: cast(wide, element(x, i)), name=f"{op}_{n}") for n, x in pairs("ab", (
        a, b))}

    def dot(u: Tensor, v: Tensor) -> Tensor:
        return reduced(f"{op}_dot", u, -1, False, te_sum, lambda *i: u(*i) * v(*i))
    both, own, other = (dot(full[u], full[v]) for u, v in ("ab", "aa", "bb"))

    def term(*i: Any) -> Expr:
        cosine = both(*i) / sqrt((own(*i) + 1e-12) * (other(*i) + 1e-12))
        t, one, zero = cast(wide, element(target, i)), const(1.0, wide), const(0.0, wide)
        apart = select(binary("eq", t, negate(one)), above_zero(cosine - margin), zero)
        return select(binary("eq", t, one), one - cosine, apart)
    terms = compute(broadcast_shapes(op, both.shape, target.shape), term, name=f"{op}_terms")
    return finished(op, terms, reduction, dtype)


def triplet_margin_loss(anchor: Tensor, positive: Tensor, negative: Tensor, *, margin: float = 1.0, p: float = 2.0,
                        eps: float = 1e-6, swap: bool = False, reduction: str = "mean") -> Tensor:
    """max(d(anchor, positive) - d(anchor, negative) + margin, 0), d(a, b): the norm of order p of a - b + eps.

    The norm is along the last axis. swap: d(positive, negative) where it is the smaller distance of negative.
    """
    op = "triplet_margin_loss"
    dtype = common_float(op, reduction, anchor=anchor, positive=positive, negative=negative)
    wide = accumulator(dtype)

    def distance(a: Tensor, b: Tensor) -> Tensor:
        apart = compute(broadcast_shapes(op, a.shape, b.shape), lambda *i: cast(wide, element(a, i)) - cast(
            wide, element(b, i)) + eps, name=f"{op}_apart")
        return norm(apart, axis=-1, ord=p)
    near, far = distance(anchor, positive), distance(anchor, negative)
    third = distance(positive, negative) if swap else None
    given = [d for d in (near, far, third) if d is not None]

    def term(*i: Any) -> Expr:
        away = element(far, i) if third is None else binary("min", element(far, i), element(third, i))
        return above_zero(element(near, i) - away + margin)
    terms = compute(broadcast_shapes(op, *(d.shape for d in given)), term, name=f"{op}_terms")
    return finished(op, terms, reduction, dtype)


# classes


def class_axis(op: str, x: Tensor, weight: Tensor | None) -> int:
    check_rank(op, "x", x, 1, 100)
    axis = 0 if x.ndim == 1 else 1
    if weight is not None:
        check_rank(op, "weight", weight, 1)
        check_extent(op, "the extent of weight", weight.shape[0], x.shape[axis], f"x has the shape "
                     f"{shape_text(x.shape)}")
    return axis


def _by_class(op: str, logs: Tensor, target: Tensor, weight: Tensor | None, ignore_index: int, reduction: str,
              dtype: str, smoothing: float) -> Tensor:
    """The loss of logarithms of probabilities for classes that target says."""
    axis, wide = 0 if logs.ndim == 1 else 1, logs.dtype
    shape = logs.shape[:axis] + logs.shape[axis + 1:]
    check_rank(op, "target", target, len(shape))
    for n, (own, wanted) in enumerate(zip(target.shape, shape)):
        check_extent(op, f"extent {n} of target", own, wanted)

    def scale(c: Any) -> Expr:
        return const(1.0, wide) if weight is None else cast(wide, weight(c))

    def counted(value: Callable[..., Expr]) -> Callable[..., Expr]:
        """value(class, indices...), 0 where the class is ignored."""
        def at(*i: Any) -> Expr:
            c = signed(target(*i))
            return if_then_else(binary("eq", c, const(ignore_index, c.dtype)), const(0.0, wide), value(c, *i))
        return at
    chosen = counted(lambda c, *i: negate(logs(*i[:axis], c, *i[axis:])) * scale(c))
    rest: Callable[..., Expr] | None = None
    if smoothing:
        classes = number(logs.shape[axis], wide)
        every = reduced(f"{op}_smooth", logs, axis, False, te_sum, lambda *i: logs(*i) * scale(i[axis]))
        rest = counted(lambda c, *i: negate(every(*i)) / classes)

    def term(*i: Any) -> Expr:
        return chosen(*i) if rest is None else chosen(*i) * (1.0 - smoothing) + rest(*i) * smoothing
    terms = compute(shape, term, name=f"{op}_terms")

    def count() -> Expr:
        weights = compute(shape, counted(lambda c, *i: scale(c)), name=f"{op}_weights")
        return reduced(f"{op}_count", weights, None, False, te_sum, weights)()
    return finished(op, terms, reduction, dtype, count)


def nll_loss(x: Tensor, target: Tensor, weight: Tensor | None = None, *, ignore_index: int = -100,
             reduction: str = "mean") -> Tensor:
    """-weight[c] * x[b, c, ...] of the class c = target[b, ...]; 0 where c is ignore_index.

    x: logarithms, T[b, classes, ...] or T[classes]. "mean" divides by the sum of the weights that count.
    A class out of range is an error of the kernel while it runs.
    """
    op = "nll_loss"
    dtype = common_float(op, reduction, x=x, weight=weight)
    check_tensors(op, target=target)
    check(dt.is_integer(target.dtype), op, f"target is {target.dtype}, integers are needed")
    class_axis(op, x, weight)
    return _by_class(op, rounded(x, accumulator(dtype), f"{op}_wide"), target, weight, ignore_index, reduction, dtype,
                     0.0)


def cross_entropy(x: Tensor, target: Tensor, weight: Tensor | None = None, *, ignore_index: int = -100,
                  label_smoothing: float = 0.0, reduction: str = "mean") -> Tensor:
    """`nll_loss` of log_softmax(x) over the classes; for a target of floats -sum over c of weight[c] * t[c] * log p[c].

    x: T[b, classes, ...] or T[classes]; target: integers without the axis of the classes, or probabilities of the
    shape of x. label_smoothing s: t * (1 - s) + s / classes in the place of t. "mean" divides by the sum of the weights
    that count, or for probabilities by the number of terms.
    """
    op = "cross_entropy"
    dtype = common_float(op, reduction, x=x, weight=weight)
    check_tensors(op, target=target)
    check_numbers(op, label_smoothing=label_smoothing)
    check(0 <= label_smoothing <= 1, op, f"label_smoothing is {label_smoothing}, not between 0 and 1")
    axis, wide = class_axis(op, x, weight), accumulator(dtype)
    logs = log_softmax(rounded(x, wide, f"{op}_wide"), axis=axis)
    if dt.is_integer(target.dtype):
        return _by_class(op, logs, target, weight, ignore_index, reduction, dtype, float(label_smoothing))
    check_kind(op, "target", target.dtype, FLOAT)
    check_rank(op, "target", target, x.ndim)
    for n, (own, wanted) in enumerate(zip(target.shape, x.shape)):
        check_extent(op, f"extent {n} of target", own, wanted)
    classes = number(x.shape[axis], wide)

    def term(*i: Any) -> Expr:
        share = cast(wide, target(*i))
        if label_smoothing:
            share = share * (1.0 - label_smoothing) + label_smoothing / classes
        loss = negate(logs(*i)) * share
        return loss if weight is None else loss * cast(wide, weight(i[axis]))
    return finished(op, reduced(f"{op}_terms", x, axis, False, te_sum, term), reduction, dtype)


__all__ = ["binary_cross_entropy", "binary_cross_entropy_with_logits", "cosine_embedding_loss", "cross_entropy",
           "hinge_embedding_loss", "huber_loss", "kl_div", "l1_loss", "mse_loss", "nll_loss", "smooth_l1_loss",
           "triplet_margin_loss"]
