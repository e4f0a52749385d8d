"""Attention as ONNX Runtime fuses it: projections, masks by lengths, keys and values of what came before."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright import te, topi
from tilewright.frontend.onnx.node import Node, Unsupported
from tilewright.frontend.onnx.operators.attention import heads_of, joined_heads
from tilewright.frontend.onnx.operators.quantized import float_product
from tilewright.frontend.onnx.registry import CONTRIB, operator
from tilewright.frontend.onnx.values import holds, simple
from tilewright.graph.ir.values import Value
from tilewright.te.extents import simplified
from tilewright.tir.arithmetic import all_of, binary, maximum
from tilewright.tir.conversion import cast

_KNOWN = ("num_heads", "unidirectional", "scale", "mask_filter_value")
_OF_INPUTS = ("do_rotary", "past_present_share_buffer", *_KNOWN)
MINUS_INFINITY = -float("inf")


# masks


def filtered(mask: Any, value: float) -> Any:
    """What is added to the scores [b, h, l, s]: a number where the mask, T[b, s] or T[b, l, s], is 0, else 0."""
    full = topi.expand_dims(mask, axis=(1, 2) if mask.ndim == 2 else (1,))
    return topi.where(topi.greater(full, 0), 0.0, topi.full((), value))


def filtered_by_ends(ends: te.Tensor, batch: Any, columns: Any, value: float) -> te.Tensor:
    """As `filtered`: the keys before ends[b] stay, and where there are more, from ends[batch + b] on."""
    pairs = holds("ne", ends.shape[0], batch)

    def added(b: Any, _: Any, __: Any, j: Any) -> Any:
        at = cast("int64", j)
        seen = [binary("lt", at, cast("int64", ends(b)))]
        if pairs:
            seen.append(binary("ge", at, cast("int64", ends(binary("add", b, batch)))))
        return te.select(all_of(*seen), te.const(0.0, "float32"), te.const(value, "float32"))
    return te.compute((batch, 1, 1, columns), added, name="filtered_by_ends")


def causal(added: te.Tensor | None, rows: Any, columns: Any, past: Any) -> te.Tensor:
    """What is added to the scores too, and -inf for key j of query i where j > past + i."""
    shape = (1, 1) if added is None else added.shape[:2]

    def element(b: Any, h: Any, i: Any, j: Any) -> Any:
        if added is None:
            own: Any = te.const(0.0, "float32")
        else:
            own = added(*(0 if simple(n) == 1 else v for v, n in zip((b, h, i, j), added.shape)))
        return te.select(binary("le", j, binary("add", past, i)), own, te.const(MINUS_INFINITY, own.dtype))
    return te.compute((*shape, rows, columns), element, name="causal")


def _added(n: Node, mask: int, bias: int | None, batch: Any, columns: Any) -> Value | None:
    """The sum of what a mask and a bias of the scores add; `mask` and `bias` are numbers of inputs."""
    parts = [n.value(bias)] if bias is not None and n.has(bias) else []
    if n.has(mask):
        value, given = n.attr("mask_filter_value", -1e4), n.held(mask).shape
        if len(given) == 1 and any(holds("eq", given[0], simple(k * batch)) for k in (1, 2)):
            parts.append(n.emit(filtered_by_ends, n.value(mask), batch, columns, value))
        elif len(given) in (2, 3):
            parts.append(n.emit(filtered, n.value(mask), value))
        else:
            raise Unsupported(f"a mask of the shape {given}, of {batch} sequences")
    return n.emit(topi.add, *parts) if len(parts) == 2 else parts[0] if parts else None


# attention of heads


def _attended(n: Node, q: Value, k: Value, v: Value, past: Any, mask: int, bias: int | None) -> Value:
    """`topi.scaled_dot_product_attention` of heads T[b, h, l, d]; past: how many keys there were before."""
    rows, columns = q.shape[2], k.shape[2]
    added = _added(n, mask, bias, q.shape[0], columns)
    one_way = n.flag("unidirectional") and not holds("eq", rows, 1)         # the last query sees all keys
    if one_way and not holds("eq", simple(rows + past), columns):
        raise Unsupported(f"the attribute unidirectional of {rows} queries and {columns} keys: the numbers differ")
    if one_way and past != 0:
        added, one_way = n.emit(causal, added, rows, columns, past), False
    y = n.emit(topi.scaled_dot_product_attention, q, k, v, added, is_causal=one_way, scale=n.attr("scale") or None)
    return n.emit(joined_heads, y)


def _behind(n: Node, past: Value, new: Value) -> Value:
    """The keys or values of before, T[b, h, p, d], with the new ones behind them."""
    made: Value = n.emit(topi.concatenate, [past, new], axis=2)
    return made


def parts_of_heads(x: Any, count: int) -> Any:
    """T[b, l, h, count, d] as `count` tensors T[b, l, h * d]."""
    b, length, heads, _, d = x.shape
    return tuple(topi.reshape(topi.squeeze(part, axis=3), (b, length, heads * d))
                 for part in topi.split(x, [1] * count, axis=3))


def _given(n: Node) -> tuple[Value, Value, Value]:
    """Queries, keys and values, T[b, l, h * d] each, of inputs that hold them side by side or alone."""
    packed = [n.held(k).shape[3] if n.has(k) and n.rank(k) == 5 else 0 for k in (0, 1)]
    if packed[0] == 3 and not n.has(1) and not n.has(2):
        q, k, v = n.emit(parts_of_heads, n.value(0), 3)
        return q, k, v
    if packed[1] == 2 and n.rank() == 3 and not n.has(2):
        k, v = n.emit(parts_of_heads, n.value(1), 2)
        return n.value(0), k, v
    if n.rank() != 3 or n.rank(1) != 3 or n.rank(2) != 3:
        raise Unsupported("queries, keys and values of the shapes "
                          f"{', '.join(str(n.held(k).shape) for k in range(3) if n.has(k))}")
    return n.value(0), n.value(1), n.value(2)


@operator("MultiHeadAttention", domain=CONTRIB, attributes=_KNOWN, inputs=8)
def multi_head_attention(n: Node) -> Any:
    """`topi.scaled_dot_product_attention` of heads side by side, with a bias, a mask, and keys of before."""
    heads = n.required("num_heads")
    if n.has(1) and n.has(2) and n.rank(1) == n.rank(2) == 4:                        # of heads already: those of before
        if n.has(6) or n.has(7):
            raise Unsupported("keys of before beside keys of 4 dimensions")
        q, k, v = n.value(0), n.value(1), n.value(2)
        if n.has(3):                                                                 # that of keys is in them already
            own = n.emit(topi.strided_slice, n.value(3), begin=[0], end=[q.shape[-1]], axes=[0])
            q = n.emit(topi.add, q, own)
        return _attended(n, n.emit(heads_of, q, heads), k, v, 0, 4, 5), k, v
    q, k, v = _given(n)
    if n.has(3):
        bias = n.emit(topi.split, n.value(3), [q.shape[-1], k.shape[-1], v.shape[-1]], axis=0)
        q, k, v = (n.emit(topi.add, x, b) for x, b in zip((q, k, v), bias))
    q, k, v = (n.emit(heads_of, x, heads) for x in (q, k, v))
    past: Any = 0
    if n.has(6) or n.has(7):
        past = n.shape(6)[2]
        k, v = _behind(n, n.value(6), k), _behind(n, n.value(7), v)
    return _attended(n, q, k, v, past, 4, 5), k, v


def _projected(n: Node, x: Value, sizes: Sequence[int], mask: int, past: int,
               bias: int | None) -> Any:
    """(y, keys and values T[2, b, h, s, d]) of T[b, l, c]: queries, keys and values of these sizes side by side."""
    if n.flag("do_rotary") or n.flag("past_present_share_buffer"):
        raise Unsupported("the attribute do_rotary or past_present_share_buffer: rotations, or caches that are shared")
    q, k, v = (n.emit(heads_of, part, n.required("num_heads")) for part in n.emit(topi.split, x, list(sizes), axis=2))
    before: Any = 0
    if n.has(past):
        before = n.shape(past)[3]
        old = n.emit(topi.split, n.value(past), [1, 1], axis=0)
        k, v = (_behind(n, n.emit(topi.squeeze, o, axis=0), new) for o, new in zip(old, (k, v)))
    y = _attended(n, q, k, v, before, mask, bias)
    return (y, n.emit(topi.stack, [k, v], axis=0)) if n.wants(1) else y


@operator("Attention", domain=CONTRIB, attributes=(*_OF_INPUTS, "qkv_hidden_sizes", "rotary_embedding_dim"), inputs=6)
def packed_attention(n: Node) -> Any:
    """`topi.scaled_dot_product_attention` of the thirds of x times a weight, with a mask and keys of before."""
    x = n.emit(topi.matmul, n.value(0), n.value(1))
    if n.has(2):
        x = n.emit(topi.add, x, n.value(2))
    return _projected(n, x, n.attr("qkv_hidden_sizes") or [x.shape[-1] // 3] * 3, 3, 4, 5)


@operator("QAttention", domain=CONTRIB, attributes=_OF_INPUTS, inputs=9)
def quantized_attention(n: Node) -> Any:
    """As Attention, of `topi.matmul_integer` of x and the weight."""
    x = float_product(n, (0, 3, 6), (1, 4, 7), 2)
    return _projected(n, x, [x.shape[-1] // 3] * 3, 5, 8, None)


# rotations


def shifted_rows(start: te.Tensor, batch: Any, rows: Any) -> te.Tensor:
    """y[b, i] = start[b] + i, or start[0] + i for all b: int64[batch, rows]."""
    own = simple(start.shape[0]) != 1 if start.ndim else False

    def at(b: Any, i: Any) -> Any:
        first = start(b if own else 0) if start.ndim else start()
        return binary("add", cast("int64", first), cast("int64", i))
    return te.compute((batch, rows), at, name="shifted_rows")


@operator("RotaryEmbedding", domain=CONTRIB, inputs=4, attributes=(
    "interleaved", "is_packed_batching", "num_heads", "rotary_embedding_dim", "scale"))
def rotary_embedding(n: Node) -> Value:
    """`topi.rotary_embedding`."""
    x, cos, sin = n.value(0), n.value(2), n.value(3)
    if n.attr("scale", 1.0) != 1 or n.flag("is_packed_batching"):
        raise Unsupported(f"the attribute scale of {n.attr('scale', 1.0)}, or is_packed_batching")
    flat = x.ndim == 3
    if flat:
        heads = n.attr("num_heads", 0) if n.attr("rotary_embedding_dim", 0) else simple(
            x.shape[2] // simple(cos.shape[1] * 2))
        x = n.emit(heads_of, x, heads)
    positions = n.value(1)
    if positions.ndim < 2:
        if positions.ndim == 1 and not holds("eq", positions.shape[0], 1):
            raise Unsupported(f"positions of the shape {positions.shape}: one, or one of each row, are needed")
        positions = n.emit(shifted_rows, positions, x.shape[0], x.shape[2])
    y = n.emit(topi.rotary_embedding, x, cos, sin, positions, interleaved=n.flag("interleaved"))
    return n.emit(joined_heads, y) if flat else y


# groups of queries


def lengths_before(ends: te.Tensor, rows: Any, total: Any, first: bool) -> te.Tensor:
    """How many keys each sequence had: int64[b], of the places of their last ones; none where rows make up the total.
    """
    def length(b: Any) -> Any:
        if first:
            return te.const(0, "int64")
        have = binary("sub", cast("int64", ends(b)) + 1, cast("int64", rows))
        return te.select(binary("eq", rows, total), te.const(0, "int64"), have)
    return te.compute(ends.shape, length, name="lengths_before")


def places_of_rows(places: te.Tensor, batch: Any, rows: Any, total: Any) -> te.Tensor:
    """The places of rows that are given; where rows make up the total, all follow from the first of them."""
    def at(b: Any, i: Any) -> Any:
        first = binary("add", cast("int64", places(0, 0)), cast("int64", i))
        return te.select(binary("eq", rows, total), first, cast("int64", places(b, i)))
    return te.compute((batch, rows), at, name="places_of_rows")


def lengths_behind(before: te.Tensor, ends: te.Tensor, rows: Any, one_way: bool) -> te.Tensor:
    """How many keys each sequence has in the end; those of padding too where queries do not see what comes later."""
    return te.compute(ends.shape, lambda b: before(b) + cast("int64", rows) if one_way else cast("int64", ends(b)) + 1,
                      name="lengths_behind")


def seen_scores(seen: te.Tensor, bias: te.Tensor | None, sink: te.Tensor | None, heads: int, sinks: bool) -> te.Tensor:
    """What is added to the scores [b, h, l, s]: a bias where a key is seen, else -inf; in a column behind them a sink.

    seen: bool[b, 1, l, s]; sink: T[h], 0 without it.
    """
    b, _, rows, columns = seen.shape
    zero, none = te.const(0.0, "float32"), te.const(MINUS_INFINITY, "float32")
    several = bias is not None and simple(bias.shape[1]) != 1 or sink is not None

    def of_key(i: tuple[Any, ...]) -> Any:
        own: Any = zero
        if bias is not None:
            place = (0 if simple(m) == 1 else v for v, m in zip(i[:2], bias.shape))
            own = te.if_then_else(binary("lt", i[3], bias.shape[3]), bias(*place, *i[2:]).astype("float32"), zero)
        return te.select(seen(i[0], 0, i[2], i[3]), own, none)

    def element(*i: Any) -> Any:
        if not sinks:
            return of_key(i)
        last = zero if sink is None else sink(i[1]).astype("float32")
        return te.if_then_else(binary("lt", i[3], columns), of_key(i), last)
    width = simplified(binary("add", columns, 1)) if sinks else columns
    return te.compute((b, heads if several else 1, rows, width), element, name="seen_scores")


_OF_GROUPS = {"do_rotary": None, "rotary_interleaved": None, "num_heads": None, "kv_num_heads": None, "scale": None,
              "softcap": None, "local_window_size": None, "smooth_softmax": None, "causal": None,
              "qk_norm_epsilon": None, "q_norm_epsilon": None, "k_norm_epsilon": None,
              "k_quant_type": "NONE", "v_quant_type": "NONE", "kv_cache_bit_width": 0, "qk_output": 0,
              "sliding_window_cache": 0}                     # attribute -> the only value that is supported


@operator("GroupQueryAttention", domain=CONTRIB, attributes=tuple(_OF_GROUPS), inputs=16)
def group_query_attention(n: Node) -> Any:
    """`topi.scaled_dot_product_attention` over caches, rotated, by lengths of sequences, with sinks and windows."""
    for name, only in _OF_GROUPS.items():
        if only is not None and n.attr(name, only) != only:
            raise Unsupported(f"the attribute {name} is {n.attr(name)}")
    window = n.attr("local_window_size", -1)
    if window < 1 and window != -1:
        raise Unsupported(f"the attribute local_window_size is {window}, -1 or a number of keys is needed")
    if n.has(12) or n.has(13) or any(n.has(k) and n.held(k).dtype != n.held(0).dtype for k in (3, 4)):
        raise Unsupported("caches that are quantized")
    q, k, v = _of_groups(n)
    rows, total, ends = q.shape[2], n.number(6, "the length of all keys"), n.value(5)
    if ends.ndim != 1:
        ends = n.emit(topi.reshape, ends, (q.shape[0],))
    before = n.emit(lengths_before, ends, rows, total, not n.has(3) or bool(holds("eq", rows, total)))
    if n.flag("do_rotary"):
        places = n.emit(places_of_rows, n.value(9), q.shape[0], rows, total) if n.has(9) else n.emit(
            shifted_rows, before, q.shape[0], rows)
        q, k = (n.emit(topi.rotary_embedding, x, n.value(7), n.value(8), places,
                       interleaved=n.flag("rotary_interleaved")) for x in (q, k))
    one_way = n.flag("causal", 1)
    keys, values = (n.emit(topi.update_cache, _cache(n, at, x, total), x, before) for at, x in ((3, k), (4, v)))
    have = n.emit(lengths_behind, before, ends, rows, one_way)
    seen = n.emit(topi.attention_mask, have, rows, keys.shape[2], is_causal=one_way,
                  window=window if window > 0 else None)
    sinks = n.attr("smooth_softmax", -1) != -1 and n.flag("smooth_softmax") or n.has(11)
    if n.has(10) or sinks:
        seen = n.emit(seen_scores, seen, n.optional(10), n.optional(11), q.shape[1], sinks)
    of, by = (n.emit(topi.pad, x, [(0, 0), (0, 0), (0, 1), (0, 0)]) if sinks else x for x in (keys, values))
    y = n.emit(topi.scaled_dot_product_attention, q, of, by, seen, scale=n.attr("scale") or None,
               softcap=n.attr("softcap", 0.0))
    return n.emit(joined_heads, y), keys, values


def _of_groups(n: Node) -> tuple[Value, Value, Value]:
    """Queries T[b, h, l, d], keys and values T[b, g, l, d], normalised where there are weights for it."""
    heads, groups = n.required("num_heads"), n.required("kv_num_heads")
    x = n.value(0)
    if n.has(1) != n.has(2) or n.has(3) != n.has(4) or x.ndim != 3 or heads < 1 or groups < 1 or heads % groups:
        raise Unsupported(f"queries of the shape {x.shape} in {heads} heads, of keys and values in {groups}")
    if not n.has(1):
        whole = heads + 2 * groups
        if not isinstance(x.shape[2], int) or x.shape[2] % whole:
            raise Unsupported(f"queries, keys and values of the width {x.shape[2]}, in {whole} heads")
        width = x.shape[2] // whole
        q, k, v = n.emit(topi.split, x, [heads * width, groups * width, groups * width], axis=2)
    else:
        q, k, v = x, n.value(1), n.value(2)
    q, k, v = n.emit(heads_of, q, heads), n.emit(heads_of, k, groups), n.emit(heads_of, v, groups)
    if n.has(14) or n.has(15):
        eps = n.attr("qk_norm_epsilon", 1e-6)
        q = n.emit(topi.rms_norm, q, n.value(14), eps=n.attr("q_norm_epsilon", eps))
        k = n.emit(topi.rms_norm, k, n.value(15), eps=n.attr("k_norm_epsilon", eps))
    return q, k, v


def _cache(n: Node, at: int, new: Value, total: Any) -> Value:
    """The cache of before, input `at`, in the length of all keys at least: T[b, g, s, d]."""
    b, groups, rows, d = new.shape
    if not n.has(at):
        if not holds("eq", rows, total):
            raise Unsupported(f"{rows} new keys of {total} in all, and no cache of those before")
        return new
    cache = n.value(at)
    have = cache.shape[2]
    if holds("ge", have, total):
        return cache
    more = simple(binary("sub", total, have)) if holds("le", have, total) else simple(
        maximum(binary("sub", total, have), 0))
    padded: Value = n.emit(topi.pad, cache, [(0, 0), (0, 0), (0, more), (0, 0)])
    return padded

