"""What decoders of language models need beside attention: positions, choices of words, caches of keys and values."""
from __future__ import annotations

import math
from typing import Any

import numpy as np

from tilewright.support.errors import described
from tilewright.te.constant import constant as te_constant
from tilewright.te.definition import compute
from tilewright.te.extents import simplified
from tilewright.te.math import cos as cosine
from tilewright.te.math import exp, sin
from tilewright.te.tensor import Tensor, shape_text
from tilewright.tir import dtype as dt
from tilewright.tir.arithmetic import all_of, any_of, binary, if_then_else, negate, select
from tilewright.tir.conversion import cast, const
from tilewright.tir.expr import Expr
from tilewright.topi.attention import scaled_dot_product_attention
from tilewright.topi.cumulative import cumsum
from tilewright.topi.indexing import from_end, scatter, signed
from tilewright.topi.normalization import softmax
from tilewright.topi.shapes import (
    as_shape,
    axis_index,
    check,
    check_extent,
    check_numbers,
    check_rank,
    check_tensors,
    constant,
    replaced,
    same_extent,
)
from tilewright.topi.sorting import ordered
from tilewright.topi.types import FLOAT, accumulator, check_kind, dtype_name, rounded

MOST_HEADS = 1 << 16           # their slopes are written into the kernel


def _check_whole(op: str, **tensors: Tensor) -> None:
    """Each has integers."""
    for name, x in tensors.items():
        check(dt.is_integer(x.dtype), op, f"{name} is {x.dtype}, integers are needed",
              f'convert it: {name}.astype("int64")')


# positions


def rotary_angles(rows: Any, *, width: int, base: float = 10000.0, dtype: Any = "float32") -> tuple[Tensor, Tensor]:
    """(cos, sin) of i / base ** (2 * k / width), each T[rows, width / 2]: the rotations of positions i.

    rows: the extent, which may be symbolic; width: how many elements of a head are rotated. Source: Su and others,
    RoFormer (2021). Raises TensorExpressionError for an odd width, a base that is not positive and a type that is no
    float.
    """
    op, kind = "rotary_angles", dtype_name(dtype)
    check(isinstance(width, int) and width > 0 and width % 2 == 0, op, f"width is {described(width)}, an even number "
          "is needed")
    check_kind(op, "dtype", kind, FLOAT)
    check_numbers(op, base=base)
    check(0 < base < math.inf, op, f"base is {base}, a positive number is needed")
    (extent,), wide = as_shape(op, rows, 1), accumulator(kind)

    def angle(i: Expr, k: Expr) -> Expr:
        return cast(wide, i) * exp(cast(wide, k) * (-2.0 * math.log(base) / width))
    shape = (extent, width // 2)
    return (compute(shape, lambda i, k: cast(kind, cosine(angle(i, k))), name="rotary_cos"),
            compute(shape, lambda i, k: cast(kind, sin(angle(i, k))), name="rotary_sin"))


def rotary_embedding(x: Tensor, cos: Tensor, sin: Tensor, positions: Tensor | None = None, *,
                     interleaved: bool = False) -> Tensor:
    """(y[p], y[q]) = (x[p] * cos - x[q] * sin, x[p] * sin + x[q] * cos) for pairs p, q of a head's elements.

    x: T[b, h, l, d] or T[b, l, d]. cos, sin: T[n, r], of the positions [b, l] or [l], or, without positions, T[l, r]
    or T[b, l, r] itself. The pair of k < r: (k, k + r), or (2 * k, 2 * k + 1) where they are interleaved; elements
    from 2 * r on stay. Source: Su and others, RoFormer (2021). Raises TensorExpressionError where extents differ.
    """
    op = "rotary_embedding"
    check_tensors(op, x=x, cos=cos, sin=sin)
    check_rank(op, "x", x, 3, 4)
    check_kind(op, "x", x.dtype, FLOAT)
    _check_rotation(op, x, cos, sin, positions)
    rows, d, half = x.shape[-2], x.shape[-1], cos.shape[-1]
    known, most = constant(half), constant(d)
    check(known is None or most is None or 2 * known <= most, op, f"cos has {half} angles, x only {d} elements a head")
    whole, wide = same_extent(d, simplified(half * 2)), accumulator(x.dtype)

    def row(table: Tensor, i: tuple[Any, ...], k: Any) -> Expr:
        if positions is not None:
            at = positions(i[0], i[-2]) if positions.ndim == 2 else positions(i[-2])
            return cast(wide, table(from_end(at, table.shape[0]), k))
        return cast(wide, table(i[0], i[-2], k) if table.ndim == 3 else table(i[-2], k))

    def rotated(i: tuple[Any, ...]) -> Expr:
        k = i[-1]
        if interleaved:
            first, pair = binary("eq", binary("floormod", k, 2), 0), binary("floordiv", k, 2)
            other = select(first, binary("add", k, 1), binary("sub", k, 1))
        else:
            first = binary("lt", k, half)
            pair = select(first, k, binary("sub", k, half))
            other = select(first, binary("add", k, half), binary("sub", k, half))
        partner = cast(wide, x(*i[:-1], other))
        turn = row(sin, i, pair)
        return cast(x.dtype, cast(wide, x(*i)) * row(cos, i, pair) + partner * select(first, negate(turn), turn))

    def at(*i: Any) -> Expr:
        return rotated(i) if whole else if_then_else(binary("lt", i[-1], binary("mul", half, 2)), rotated(i), x(*i))
    check(positions is None or constant(cos.shape[0]) != 0 or constant(rows) == 0, op, "cos has no row")
    return compute(x.shape, at, name=op)


def _check_rotation(op: str, x: Tensor, cos: Tensor, sin: Tensor, positions: Tensor | None) -> None:
    check_rank(op, "cos", cos, 2, 2 if positions is not None else 3)
    check_rank(op, "sin", sin, cos.ndim)
    for n, (a, b) in enumerate(zip(sin.shape, cos.shape)):
        check_extent(op, f"extent {n} of sin", a, b, f"cos has the shape {shape_text(cos.shape)}")
    lead = (x.shape[0], x.shape[-2])
    if positions is None:
        for n, (a, b) in enumerate(zip(cos.shape[:-1], lead[3 - cos.ndim:])):
            check_extent(op, f"extent {n} of cos", a, b, f"x has the shape {shape_text(x.shape)}")
        return
    check_tensors(op, positions=positions)
    check_rank(op, "positions", positions, 1, 2)
    _check_whole(op, positions=positions)
    for n, (a, b) in enumerate(zip(positions.shape, lead[2 - positions.ndim:])):
        check_extent(op, f"extent {n} of positions", a, b, f"x has the shape {shape_text(x.shape)}")


def sinusoidal_positions(rows: Any, *, width: int, base: float = 10000.0, dtype: Any = "float32") -> Tensor:
    """y[i, 2 * k] = sin(i / base ** (2 * k / width)), y[i, 2 * k + 1] its cosine; y: T[rows, width].

    Source: Vaswani and others (2017). Raises TensorExpressionError for an odd width and a type that is no float.
    """
    turn, lift = rotary_angles(rows, width=width, base=base, dtype=dtype)

    def at(i: Expr, c: Expr) -> Expr:
        k = binary("floordiv", c, 2)
        return select(binary("eq", binary("floormod", c, 2), 0), lift(i, k), turn(i, k))
    return compute((turn.shape[0], width), at, name="sinusoidal_positions")


def alibi_bias(rows: Any, columns: Any, *, heads: int, dtype: Any = "float32") -> Tensor:
    """y[h, i, j] = -slope[h] * |columns - rows + i - j|, which attention adds to its scores: T[heads, rows, columns].

    slope[h] = 2 ** (-8 * (h + 1) / heads); where heads is no power of 2, those of the next lower one, then every
    second of those of its double. Source: Press, Smith and Lewis, ALiBi (2021).
    """
    op, kind = "alibi_bias", dtype_name(dtype)
    check(1 <= heads <= MOST_HEADS, op, f"heads is {heads}, a number from 1 to {MOST_HEADS} is needed")
    check_kind(op, "dtype", kind, FLOAT)
    lower = 1 << heads.bit_length() - 1
    slopes = [2.0 ** (-8.0 * (h + 1) / lower) for h in range(lower)]
    slopes += [2.0 ** (-4.0 * (2 * h + 1) / lower) for h in range(heads - lower)]
    table, wide = te_constant(np.array(slopes, accumulator(kind))), accumulator(kind)
    shape = as_shape(op, (heads, rows, columns))
    lead = binary("sub", shape[2], shape[1])

    def at(h: Expr, i: Expr, j: Expr) -> Expr:
        far = binary("sub", binary("add", lead, i), j)
        return cast(kind, negate(table(h)) * cast(wide, binary("max", far, binary("sub", 0, far))))
    return compute(shape, at, name=op)


# sampling


def top_p_filter(x: Tensor, *, p: float) -> Tensor:
    """x where an element is among the likeliest of the softmax of its row that together reach p, else -inf.

    x: T[..., n], logits. An element stays where those before it, by falling likelihood, add up to less than p; at least
    one stays. Source: Holtzman and others, Nucleus Sampling (2019). Raises TensorExpressionError unless 0 <= p <= 1.
    """
    op = "top_p_filter"
    check_tensors(op, x=x)
    check_rank(op, "x", x, 1, 100)
    check_kind(op, "x", x.dtype, FLOAT)
    check_numbers(op, p=p)
    check(0 <= p <= 1, op, f"p is {p}, not between 0 and 1")
    if p == 1:                                               # sums of the shares that come before may round to 1
        return compute(x.shape, lambda *i: x(*i), name=op)
    wide, order = accumulator(x.dtype), ordered(op, x, x.ndim - 1, True)
    shares = softmax(rounded(x, wide, f"{op}_wide"))
    falling = compute(x.shape, lambda *i: shares(*i[:-1], order(*i)), name=f"{op}_falling")
    before = cumsum(falling, axis=-1, exclusive=True)
    stays = compute(x.shape, lambda *i: cast("int8", any_of(binary("lt", before(*i), const(float(p), wide)), binary(
        "eq", i[-1], 0))), name=f"{op}_stays")
    chosen = scatter(compute(x.shape, lambda *i: const(0, "int8"), name=f"{op}_none"), order, stays, axis=-1)
    return compute(x.shape, lambda *i: select(binary("ne", chosen(*i), const(0, "int8")), x(*i), const(
        -math.inf, x.dtype)), name=op)


# caches


def update_cache(x: Tensor, updates: Tensor, start: Tensor, *, axis: int = -2, circular: bool = False) -> Tensor:
    """x[b], with updates[b, ..., i, ...] at index start[b] + i along an axis (ONNX's TensorScatter).

    x: T[b, ...]; updates: the same but for the extent along the axis; start: integers [b]. What reaches over the end is
    left out; in a circular cache it continues from index 0. Raises TensorExpressionError where shapes or types differ.
    """
    op = "update_cache"
    check_tensors(op, x=x, updates=updates, start=start)
    check_rank(op, "x", x, 2, 100)
    check_rank(op, "updates", updates, x.ndim)
    check_rank(op, "start", start, 1)
    _check_whole(op, start=start)
    check(updates.dtype == x.dtype, op, f"updates are {updates.dtype}, x is {x.dtype}",
          f'convert them: updates.astype("{x.dtype}")')
    at = axis_index(op, axis, x.ndim)
    check(at != 0, op, "the axis is that of the batch")
    check_extent(op, "the extent of start", start.shape[0], x.shape[0], f"x has the shape {shape_text(x.shape)}")
    for n, (a, b) in enumerate(zip(updates.shape, x.shape)):
        if n != at:
            check_extent(op, f"extent {n} of updates", a, b, f"x has the shape {shape_text(x.shape)}")
    extent, several = x.shape[at], updates.shape[at]
    known, most = constant(several), constant(extent)
    check(known is None or most is None or known <= most, op, f"updates have {several} elements along axis {at}, x "
          f"only {extent}")
    if known == 0 or most == 0:
        return compute(x.shape, lambda *i: x(*i), name=op)

    def element(*i: Any) -> Expr:
        k = binary("sub", cast(signed(start(i[0])).dtype, i[at]), signed(start(i[0])))
        if circular:
            k = binary("floormod", k, extent)
        new = all_of(*([] if circular else [binary("ge", k, 0)]), binary("lt", k, several))
        return if_then_else(new, updates(*replaced(i, at, k)), x(*i))
    return compute(x.shape, element, name=op)


def attention_mask(lengths: Tensor, rows: Any, columns: Any, *, is_causal: bool = True,
                   window: int | None = None) -> Tensor:
    """bool[b, 1, rows, columns]: query i, at position p = lengths[b] - rows + i, sees key j < lengths[b].

    is_causal: only j <= p. window: only |p - j| < window. lengths: integers [b], how many keys there are.
    """
    op = "attention_mask"
    check_tensors(op, lengths=lengths)
    check_rank(op, "lengths", lengths, 1)
    _check_whole(op, lengths=lengths)
    check(window is None or isinstance(window, int) and window >= 1, op, f"window is {described(window)}, a number of "
          "at least 1 is needed")
    m, n = as_shape(op, (rows, columns))

    def seen(b: Expr, _: Expr, i: Expr, j: Expr) -> Expr:
        have = cast("int64", lengths(b))
        ahead = binary("sub", have - cast("int64", m) + i, j)
        out = [binary("lt", j, have)]
        if is_causal:
            out.append(binary("ge", ahead, 0))
        if window is not None:
            out.append(binary("lt", ahead, window))
            if not is_causal:
                out.append(binary("gt", ahead, -window))
        return all_of(*out)
    return compute((lengths.shape[0], 1, m, n), seen, name=op)


def cached_attention(query: Tensor, key: Tensor, value: Tensor, lengths: Tensor, *, is_causal: bool = True,
                     window: int | None = None, scale: float | None = None, softcap: float = 0.0) -> Tensor:
    """`scaled_dot_product_attention` over caches of which lengths[b] keys are filled, the last of them for the queries.

    query: T[b, h, l, d]; key: T[b, g, s, d]; value: T[b, g, s, e]; lengths: integers [b], those of the queries
    included; is_causal, window: as in `attention_mask`. Raises TensorExpressionError where extents differ.
    """
    op = "cached_attention"
    check_tensors(op, query=query, key=key)
    check_rank(op, "query", query, 4)
    check_rank(op, "key", key, 4)
    mask = attention_mask(lengths, query.shape[2], key.shape[2], is_causal=is_causal, window=window)
    check_extent(op, "the extent of lengths", lengths.shape[0], query.shape[0])
    return scaled_dot_product_attention(query, key, value, mask, scale=scale, softcap=softcap)


def group_query_attention(query: Tensor, key: Tensor, value: Tensor, key_cache: Tensor, value_cache: Tensor,
                          lengths: Tensor, *, window: int | None = None, scale: float | None = None,
                          softcap: float = 0.0) -> tuple[Tensor, Tensor, Tensor]:
    """(y, keys, values): the caches with the new keys and values at lengths[b], and causal attention over them.

    query: T[b, h, l, d]; key, value: T[b, g, l, d]; key_cache, value_cache: T[b, g, s, d]; lengths: integers [b], how
    many keys the caches hold before. Source: Ainslie and others, GQA (2023).
    Raises TensorExpressionError where shapes or types differ.
    """
    op = "group_query_attention"
    check_tensors(op, query=query, key=key, value=value, lengths=lengths)
    check_rank(op, "query", query, 4)
    check_rank(op, "key", key, 4)
    check_extent(op, "extent 2 of key", key.shape[2], query.shape[2], "as many new keys as queries")
    keys, values = (update_cache(cache, new, lengths) for cache, new in ((key_cache, key), (value_cache, value)))
    more = cast("int64", query.shape[2])
    total = compute(lengths.shape, lambda b: cast("int64", lengths(b)) + more, name="lengths_now")
    y = cached_attention(query, keys, values, total, window=window, scale=scale, softcap=softcap)
    return y, keys, values


def gather_pages(pages: Tensor, table: Tensor) -> Tensor:
    """y[b, g, s, d] = pages[table[b, s // page], g, s % page, d]: a cache that lies in pages, as one.

    pages: T[n, g, page, d]; table: integers [b, m], the pages of each sequence; y: T[b, g, m * page, d].
    Source: Kwon and others, PagedAttention (2023). An entry out of range is an error of the kernel.
    """
    op = "gather_pages"
    check_tensors(op, pages=pages, table=table)
    check_rank(op, "pages", pages, 4)
    check_rank(op, "table", table, 2)
    _check_whole(op, table=table)
    count, groups, page, width = pages.shape
    shape = (table.shape[0], groups, simplified(binary("mul", table.shape[1], page)), width)
    if constant(count) == 0 or constant(page) == 0:
        check(any(constant(n) == 0 for n in shape), op, f"pages have the shape {shape_text(pages.shape)}, without an "
              "element")
        return compute(shape, lambda *i: const(0, pages.dtype), name=op)
    return compute(shape, lambda b, g, s, d: pages(from_end(table(b, binary("floordiv", s, page)), count), g, binary(
        "floormod", s, page), d), name=op)


__all__ = ["alibi_bias", "attention_mask", "cached_attention", "gather_pages", "group_query_attention",
           "rotary_angles", "rotary_embedding", "sinusoidal_positions", "top_p_filter", "update_cache"]
