"""Attention: softmax of products of queries and keys, times values."""
from __future__ import annotations

import math
from typing import Any

from tilewright.te.definition import compute
from tilewright.te.extents import simplified
from tilewright.te.math import exp, isinf, tanh
from tilewright.te.reduction import sum as te_sum
from tilewright.te.tensor import Tensor, shape_text
from tilewright.tir import dtype as dt
from tilewright.tir.arithmetic import all_of, binary, select
from tilewright.tir.conversion import cast, const
from tilewright.tir.expr import Expr
from tilewright.topi.contraction import contraction, reduction_axis
from tilewright.topi.products import linear
from tilewright.topi.reductions import largest_number, reduced
from tilewright.topi.shapes import (
    broadcast_shapes,
    check,
    check_extent,
    check_rank,
    check_tensors,
    constant,
    element,
    number,
    quotient,
    same_shape,
)
from tilewright.topi.types import FLOAT, accumulator, check_kind, common_type, rounded


def scaled_dot_product_attention(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None, *,
                                 is_causal: bool = False, scale: float | None = None, softcap: float = 0.0) -> Tensor:
    """y[b, h, i] = sum over j of softmax over j of (scale * q[b, h, i] k[b, g, j] + mask[b, h, i, j]) * v[b, g, j].

    query: T[b, h, l, d]; key: T[b, g, s, d]; value: T[b, g, s, e]; y: T[b, h, l, e], h = g * heads of a group, which
    share keys and values: g = h // (heads of a group). Without h and g: T[b, l, d] and so on.
    mask: bools (False: leave out) or numbers to be added, broadcasts to [b, h, l, s]. is_causal: j <= i only.
    scale: default 1 / sqrt(d). softcap: c * tanh(scores / c) before the mask. A row without a key gives 0.
    Raises TensorExpressionError where extents differ. Source: Vaswani and others (2017).
    """
    op = "scaled_dot_product_attention"
    check_tensors(op, query=query, key=key, value=value)
    check_rank(op, "query", query, 3, 4)
    for name, t in (("key", key), ("value", value)):
        check_rank(op, name, t, query.ndim)
    dtype = common_type(op, query, key, value)
    check_kind(op, "an operand", dtype, FLOAT)
    check(0 <= softcap < math.inf, op, f"softcap is {softcap}", "a number above 0, or 0 for none")
    wide, heads = accumulator(dtype), query.ndim == 4
    groups = key.shape[1] if heads else None
    per = quotient(op, "the number of query heads", query.shape[1], groups) if heads else None
    _check_shapes(op, query, key, value)
    lead = (query.shape[0], groups, per) if heads else (query.shape[0],)
    scores = _scores(op, query, key, mask, lead, per, is_causal, scale, softcap, wide)
    weights = _safe_softmax(scores)
    j = reduction_axis(value.shape[-2], "j")

    def factors(*i: Any) -> tuple[Expr, Expr]:
        return weights(*i[:-1], j), value(*i[:1], *([i[1]] if heads else []), j, i[-1])
    y = contraction("attention", (*lead, query.shape[-2], value.shape[-1]), factors, [j], wide)
    if not heads:
        return rounded(y, dtype, "attention_rounded")
    return compute((*query.shape[:-1], value.shape[-1]), lambda b, h, i, e: cast(dtype, y(b, *_head(h, per), i, e)),
                   name="attention_merged")


def _head(h: Any, per: Any) -> tuple[Any, Any]:
    """(the group of a head, its number in the group)."""
    return (h, 0) if constant(per) == 1 else (binary("floordiv", h, per), binary("floormod", h, per))


def _check_shapes(op: str, query: Tensor, key: Tensor, value: Tensor) -> None:
    shapes = f"query, key and value have the shapes {shape_text(query.shape)}, {shape_text(key.shape)} and " \
        f"{shape_text(value.shape)}"
    check_extent(op, "the batch of key", key.shape[0], query.shape[0], shapes)
    check_extent(op, "the last extent of key", key.shape[-1], query.shape[-1], shapes)
    for n in range(query.ndim - 1):
        check_extent(op, f"extent {n} of value", value.shape[n], key.shape[n], shapes)


def _scores(op: str, query: Tensor, key: Tensor, mask: Tensor | None, lead: tuple[Any, ...], per: Any, causal: bool,
            scale: float | None, softcap: float, wide: str) -> Tensor:
    """s[b, g, m, i, j]: the scaled products, -inf where a key is left out."""
    heads, d = len(lead) == 3, query.shape[-1]
    k = reduction_axis(d, "d")

    def head(i: tuple[Any, ...]) -> tuple[Any, ...]:
        return (i[0], binary("add", binary("mul", i[1], per), i[2])) if heads else (i[0],)

    products = contraction("attention_scores", (*lead, query.shape[-2], key.shape[-2]), lambda *i: (
        query(*head(i), i[-2], k), key(*i[:2 if heads else 1], i[-1], k)), [k], wide)
    size = constant(d)
    if scale is None and size is not None:
        scale = 1.0 / math.sqrt(max(size, 1))
    factor = const(scale, wide) if scale is not None else const(1.0, wide) / number(d, wide) ** 0.5
    if mask is not None:
        check_tensors(op, mask=mask)
        full = (*query.shape[:-1], key.shape[-2])
        check(same_shape(broadcast_shapes(op, mask.shape, full), full), op, f"mask has the shape "
              f"{shape_text(mask.shape)}, which does not broadcast to {shape_text(full)}")
    out = const(-float("inf"), wide)

    def masked(*i: Any) -> Expr:
        s = products(*i) * factor
        if softcap:
            s = tanh(s / softcap) * softcap
        place = (*head(i), *i[-2:])
        if mask is not None:
            m = element(mask, place)
            s = select(m, s, out) if dt.is_bool(m.dtype) else s + cast(wide, m)
        return select(all_of(binary("le", i[-1], i[-2])), s, out) if causal else s
    return compute(products.shape, masked, name="attention_masked")


def _safe_softmax(scores: Tensor) -> Tensor:
    """The softmax of rows; 0 of a row that is -inf everywhere."""
    wide = scores.dtype
    largest = reduced("attention_max", scores, -1, True, largest_number, lambda *i: scores(*i), {"no_gradient": True})

    def power(*i: Any) -> Expr:
        m = element(largest, i)
        return exp(scores(*i) - select(isinf(m), const(0.0, wide), m))
    e = compute(scores.shape, power, name="attention_exp")
    total = reduced("attention_sum", e, -1, True, te_sum, lambda *i: e(*i))

    def inverse(*i: Any) -> Expr:
        return 1.0 / select(binary("eq", total(*i), const(0.0, wide)), const(1.0, wide), total(*i))
    share = compute(total.shape, inverse, name="attention_share")
    return compute(scores.shape, lambda *i: e(*i) * element(share, i), name="attention_softmax")


def multi_head_attention(query: Tensor, key: Tensor, value: Tensor, in_weight: Tensor, in_bias: Tensor | None,
                         out_weight: Tensor, out_bias: Tensor | None, mask: Tensor | None = None, *, heads: int,
                         is_causal: bool = False) -> Tensor:
    """The linear map of the heads' attention over linear maps of query, key and value (torch.nn.MultiheadAttention).

    query: T[b, l, n]; key, value: T[b, s, n]; in_weight: T[3 * n, n] and in_bias: T[3 * n], for queries, keys and
    values in this order; out_weight: T[n, n]; out_bias: T[n]; mask as in `scaled_dot_product_attention`.
    Raises TensorExpressionError where heads does not divide n or extents differ.
    """
    op = "multi_head_attention"
    check_tensors(op, query=query, key=key, value=value, in_weight=in_weight, out_weight=out_weight)
    check_rank(op, "query", query, 3)
    check_rank(op, "in_weight", in_weight, 2)
    n = query.shape[-1]
    check_extent(op, "extent 0 of in_weight", in_weight.shape[0], simplified(n * 3))
    check_extent(op, "extent 1 of in_weight", in_weight.shape[1], n)
    if in_bias is not None:
        check_rank(op, "in_bias", in_bias, 1)
        check_extent(op, "the extent of in_bias", in_bias.shape[0], simplified(n * 3))
    check(heads >= 1, op, f"heads is {heads}, a number of at least 1 is needed")
    per = quotient(op, "the last extent of query", n, heads)

    def projected(x: Tensor, part: int) -> Tensor:
        offset = simplified(n * part)
        weight = compute((n, n), lambda o, c: in_weight(binary("add", o, offset), c), name="projection_weight")
        bias = in_bias if in_bias is None else compute((n,), lambda o, b=in_bias: b(binary("add", o, offset)),
                                                       name="projection_bias")
        y = linear(x, weight, bias)
        return compute((x.shape[0], heads, x.shape[1], per), lambda b, h, i, d: y(b, i, binary("add", binary(
            "mul", h, per), d)), name="heads")
    q, k, v = projected(query, 0), projected(key, 1), projected(value, 2)
    y = scaled_dot_product_attention(q, k, v, mask, is_causal=is_causal)
    joined = compute(query.shape, lambda b, i, c: y(b, binary("floordiv", c, per), i, binary("floormod", c, per)),
                     name="joined")
    return linear(joined, out_weight, out_bias)


__all__ = ["multi_head_attention", "scaled_dot_product_attention"]
