"""More losses, as in PyTorch: likelihoods, margins of classes, several labels at once, alignments of sequences.

reduction: as in the other losses.
"""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tilewright.te.definition import compute
from tilewright.te.extents import simplified
from tilewright.te.math import exp, isinf, log, log1p
from tilewright.te.reduction import max as te_max
from tilewright.te.reduction import reduce_axis
from tilewright.te.reduction import sum as te_sum
from tilewright.te.tensor import Tensor, shape_text
from tilewright.tir import dtype as dt
from tilewright.tir.arithmetic import absolute, all_of, binary, if_then_else, maximum, negate, power, select
from tilewright.tir.conversion import cast, const, convert
from tilewright.tir.expr import Expr
from tilewright.tir.ir_builder import BufferVar, IRBuilder
from tilewright.topi.indexing import signed
from tilewright.topi.losses import above_zero, common_float, finished, logistic, pointwise
from tilewright.topi.reductions import reduced
from tilewright.topi.shapes import (
    broadcast_shapes,
    check,
    check_extent,
    check_rank,
    check_tensors,
    constant,
    element,
    number,
    same_shape,
)
from tilewright.topi.statements import variable, written
from tilewright.topi.types import INDEX, accumulator


def _soft(e: Expr) -> Expr:
    """log(1 + exp(-e)), without overflow."""
    return log1p(exp(negate(absolute(e)))) + above_zero(negate(e))


def gaussian_nll_loss(x: Tensor, target: Tensor, var: Tensor, *, full: bool = False, eps: float = 1e-6,
                      reduction: str = "mean") -> Tensor:
    """(log(v) + (x - target) ** 2 / v) / 2, v: var, at least eps; with log(2 * pi) / 2 more where full holds."""
    def term(e: Expr, t: Expr, v: Expr) -> Expr:
        width = maximum(v, const(eps, v.dtype))
        loss = (log(width) + (e - t) * (e - t) / width) * 0.5
        return loss + 0.5 * math.log(2 * math.pi) if full else loss
    return pointwise("gaussian_nll_loss", term, reduction, x=x, target=target, var=var)


def poisson_nll_loss(x: Tensor, target: Tensor, *, log_input: bool = True, full: bool = False, eps: float = 1e-8,
                     reduction: str = "mean") -> Tensor:
    """exp(x) - target * x, or without log_input x - target * log(x + eps), of a Poisson distribution.

    full: with Stirling's formula of log(target!), t * log(t) - t + log(2 * pi * t) / 2, where the target is above 1.
    """
    def term(e: Expr, t: Expr) -> Expr:
        loss = exp(e) - t * e if log_input else e - t * log(e + eps)
        if not full:
            return loss
        one = const(1.0, t.dtype)
        above = maximum(t, one)
        more = above * log(above) - above + log(above * (2 * math.pi)) * 0.5
        return loss + select(binary("gt", t, one), more, const(0.0, t.dtype))
    return pointwise("poisson_nll_loss", term, reduction, x=x, target=target)


def soft_margin_loss(x: Tensor, target: Tensor, *, reduction: str = "mean") -> Tensor:
    """log(1 + exp(-target * x)), without overflow; target: 1 or -1."""
    return pointwise("soft_margin_loss", lambda e, t: _soft(e * t), reduction, x=x, target=target)


def margin_ranking_loss(a: Tensor, b: Tensor, target: Tensor, *, margin: float = 0.0,
                        reduction: str = "mean") -> Tensor:
    """max(margin - target * (a - b), 0): a comes before b where target is 1, behind it where it is -1."""
    return pointwise("margin_ranking_loss", lambda p, q, t: above_zero(margin - t * (p - q)), reduction, a=a, b=b,
                     target=target)


def sigmoid_focal_loss(x: Tensor, target: Tensor, *, alpha: float = 0.25, gamma: float = 2.0,
                       reduction: str = "mean") -> Tensor:
    """`binary_cross_entropy_with_logits` times (1 - q) ** gamma, q: how likely x takes the target to be.

    Times alpha where target is 1, 1 - alpha where it is 0, unless alpha is negative.
    Source: Lin and others, Focal Loss (2017), as in torchvision.
    """
    def term(e: Expr, t: Expr) -> Expr:
        p, rest = 1.0 / (1.0 + exp(negate(e))), 1.0 / (1.0 + exp(e))
        missed = p * (1.0 - t) + rest * t                               # 1 - q, without cancellation
        share = missed * missed if gamma == 2 else power(missed, float(gamma))
        loss = logistic(e, t) * share
        return loss if alpha < 0 else loss * (t * alpha + (1.0 - t) * (1.0 - alpha))
    return pointwise("sigmoid_focal_loss", term, reduction, x=x, target=target)


# classes


def _classes(op: str, x: Tensor, target: Tensor, weight: Tensor | None, reduction: str, labels: bool) -> str:
    """The type of the loss of x: T[b, c] or T[c]; target: integers of the classes, without their axis unless labels."""
    dtype = common_float(op, reduction, x=x, weight=weight)
    check_tensors(op, target=target)
    check(dt.is_integer(target.dtype), op, f"target is {target.dtype}, integers are needed")
    check_rank(op, "x", x, 1, 2)
    wanted = x.shape if labels else x.shape[:-1]
    check(same_shape(target.shape, wanted), op, f"target has the shape {shape_text(target.shape)}, "
          f"{shape_text(wanted)} is needed")
    if weight is not None:
        check_rank(op, "weight", weight, 1)
        check_extent(op, "the extent of weight", weight.shape[0], x.shape[-1])
    return dtype


def multi_margin_loss(x: Tensor, target: Tensor, weight: Tensor | None = None, *, p: int = 1, margin: float = 1.0,
                      reduction: str = "mean") -> Tensor:
    """The mean over classes i, but for that of the target, of weight[y] * max(margin - x[y] + x[i], 0) ** p, y: target.

    x: T[b, c] or T[c]; target: integers [b] or a scalar; weight: T[c]; p: 1 or 2. The mean divides by c.
    A class out of range is an error of the kernel.
    """
    op = "multi_margin_loss"
    dtype = _classes(op, x, target, weight, reduction, False)
    check(p in (1, 2), op, f"p is {p}", "1 or 2")
    wide, classes = accumulator(dtype), x.shape[-1]

    def term(*i: Any) -> Expr:
        y = signed(target(*i[:-1]))
        apart = above_zero(cast(wide, x(*i)) - cast(wide, x(*i[:-1], y)) + margin)
        e = apart if p == 1 else apart * apart
        e = e if weight is None else e * cast(wide, weight(y))
        return if_then_else(binary("eq", y, i[-1]), const(0.0, wide), e)
    total = reduced(f"{op}_total", x, -1, False, te_sum, term)
    terms = compute(total.shape, lambda *i: total(*i) / number(classes, wide), name=f"{op}_terms")
    return finished(op, terms, reduction, dtype)


def multilabel_margin_loss(x: Tensor, target: Tensor, *, reduction: str = "mean") -> Tensor:
    """The sum over labels y and the classes i that are none of max(1 - x[y] + x[i], 0), divided by how many classes.

    x: T[b, c] or T[c]; target: integers of this shape, the labels in front of the first negative number.
    """
    op = "multilabel_margin_loss"
    dtype = _classes(op, x, target, None, reduction, True)
    wide, classes = accumulator(dtype), x.shape[-1]

    def some(name: str, condition: Callable[..., Expr]) -> Tensor:
        """1 where the condition holds for some element k of the target, else 0."""
        k = reduce_axis((0, classes), name="k")
        return compute(x.shape, lambda *i: te_max(cast("int32", condition(
            signed(target(*i[:-1], k)), k.var, *i)), axis=k), name=name)
    ended = some(f"{op}_ended", lambda label, k, *i: all_of(binary("le", k, i[-1]), binary("lt", label, 0)))
    labels = some(f"{op}_labels", lambda label, k, *i: all_of(binary("eq", label, i[-1]), binary(
        "eq", ended(*i[:-1], k), 0)))
    j, n = reduce_axis((0, classes), name="j"), reduce_axis((0, classes), name="i")

    def term(*i: Any) -> Expr:
        there = binary("eq", ended(*i, j), 0)
        y = select(there, signed(target(*i, j)), const(0, signed(target(*i, j)).dtype))
        apart = above_zero(1.0 - cast(wide, x(*i, y)) + cast(wide, x(*i, n)))
        counts = all_of(there, binary("eq", labels(*i, n), 0))
        return te_sum(if_then_else(counts, apart, const(0.0, wide)), axis=[j, n])
    total = compute(x.shape[:-1], term, name=f"{op}_total")
    terms = compute(total.shape, lambda *i: total(*i) / number(classes, wide), name=f"{op}_terms")
    return finished(op, terms, reduction, dtype)


def multilabel_soft_margin_loss(x: Tensor, target: Tensor, weight: Tensor | None = None, *,
                                reduction: str = "mean") -> Tensor:
    """The mean over the last axis of `binary_cross_entropy_with_logits` by weight, each label on its own.

    x: T[..., c]; target: of the shape of x; weight: broadcasts to it.
    """
    op = "multilabel_soft_margin_loss"
    dtype = common_float(op, reduction, x=x, target=target, weight=weight)
    check_rank(op, "x", x, 1, 100)
    check(same_shape(target.shape, x.shape), op, f"target has the shape {shape_text(target.shape)}, x "
          f"{shape_text(x.shape)}")
    if weight is not None:
        found = broadcast_shapes(op, weight.shape, x.shape)
        check(same_shape(found, x.shape), op, f"weight has the shape {shape_text(weight.shape)}, x "
              f"{shape_text(x.shape)}")
    wide = accumulator(dtype)

    def term(*i: Any) -> Expr:
        e, t = cast(wide, x(*i)), cast(wide, target(*i))
        loss = logistic(e, t)
        return loss if weight is None else loss * cast(wide, element(weight, i))
    total = reduced(f"{op}_total", x, -1, False, te_sum, term)
    terms = compute(total.shape, lambda *i: total(*i) / number(x.shape[-1], wide), name=f"{op}_terms")
    return finished(op, terms, reduction, dtype)


# alignments


def ctc_loss(x: Tensor, target: Tensor, lengths: Tensor, target_lengths: Tensor, *, blank: int = 0,
             zero_infinity: bool = False, reduction: str = "mean") -> Tensor:
    """-log of how likely the steps of x give the target, with blanks and repetitions between its elements left out.

    x: logarithms of probabilities, T[steps, b, classes]; target: integers [b, s]; lengths, target_lengths: integers
    [b], how many steps and elements of each sequence count, none below 0. zero_infinity: 0 for what no alignment
    gives. "mean" divides each by the length of its target (at least 1) first. A class out of range is an error of the
    kernel. Source: Graves and others, CTC (2006).
    """
    op = "ctc_loss"
    dtype = common_float(op, reduction, x=x)
    check_tensors(op, target=target, lengths=lengths, target_lengths=target_lengths)
    for name, t, rank in (("x", x, 3), ("target", target, 2), ("lengths", lengths, 1), ("target_lengths",
                                                                                        target_lengths, 1)):
        check_rank(op, name, t, rank)
        check(name == "x" or dt.is_integer(t.dtype), op, f"{name} is {t.dtype}, integers are needed")
        check_extent(op, f"the batch of {name}", t.shape[1 if name == "x" else 0], x.shape[1])
    wide, batch, room = accumulator(dtype), x.shape[1], target.shape[1]
    states, none = simplified(room * 2 + 1), const(-math.inf, wide)

    def joined(*logs: Expr) -> Expr:
        """The logarithm of the sum of what they are logarithms of."""
        top = logs[0]
        for e in logs[1:]:
            top = maximum(top, e)
        shift = select(isinf(top), const(0.0, wide), top)
        total = exp(logs[0] - shift)
        for e in logs[1:]:
            total = total + exp(e - shift)
        return log(total) + shift

    def whole(length: Expr) -> Expr:
        return maximum(cast(INDEX, length), const(0, INDEX))

    def write(ib: IRBuilder, ins: list[BufferVar], outs: list[BufferVar]) -> None:
        (logs, classes, steps, sizes), (loss, alpha) = ins, outs
        with ib.for_range(0, batch, name="b") as b:
            last = ib.let("last", whole(sizes[b]) * 2)                  # the state of the blank at the end
            count = ib.let("count", whole(steps[b]))

            def label(k: Expr) -> Expr:
                return signed(classes[b, binary("floordiv", k, 2)])
            with ib.for_range(0, states, name="k") as k:
                alpha[b, 0, k] = select(binary("eq", k, 0), const(0.0, wide), none)
            with ib.for_range(const(0, INDEX), count, name="t") as t:
                old, new = (binary("floormod", binary("add", t, n), 2) for n in (0, 1))
                with ib.for_range(const(0, INDEX), last + 1, name="k") as k:
                    own = variable(ib, const(blank, "int64"), "int64", "own")
                    skips = variable(ib, const(False, "bool"), "bool", "skips")
                    with ib.if_scope(binary("eq", binary("floormod", k, 2), 1)):
                        own[0] = cast("int64", label(k))
                        with ib.if_scope(binary("gt", k, 1)):
                            skips[0] = binary("ne", label(k), label(k - 2))
                    first = all_of(binary("eq", t, 0), binary("gt", k, 0))
                    same = select(first, none, alpha[b, old, k])
                    before = if_then_else(binary("gt", k, 0), alpha[b, old, maximum(k - 1, const(0, INDEX))], none)
                    skipped = if_then_else(skips[0], alpha[b, old, maximum(k - 2, const(0, INDEX))], none)
                    alpha[b, new, k] = joined(same, before, skipped) + cast(wide, logs[t, b, own[0]])
            with ib.if_scope(binary("eq", count, 0)):
                loss[b] = select(binary("eq", last, 0), const(0.0, wide), negate(none))
            with ib.else_scope():
                now = binary("floormod", count, 2)
                end = if_then_else(binary("gt", last, 0), alpha[b, now, maximum(last - 1, const(0, INDEX))], none)
                loss[b] = negate(joined(alpha[b, now, last], end))
    losses, _ = written(f"{op}_alignments", [((batch,), wide), ((batch, convert(2), states), wide)],
                        [x, target, lengths, target_lengths], write)

    def term(b: Expr) -> Expr:
        e = losses(b)
        value = select(isinf(e), const(0.0, wide), e) if zero_infinity else e
        if reduction != "mean":
            return value
        return value / cast(wide, maximum(cast(INDEX, target_lengths(b)), const(1, INDEX)))
    terms = compute((batch,), term, name=f"{op}_terms")
    check(constant(x.shape[2]) != 0, op, "x has no class")
    return finished(op, terms, reduction, dtype)


__all__ = ["ctc_loss", "gaussian_nll_loss", "margin_ranking_loss", "multi_margin_loss", "multilabel_margin_loss",
           "multilabel_soft_margin_loss", "poisson_nll_loss", "sigmoid_focal_loss", "soft_margin_loss"]
