"""The function of a model of Llama's shape: from words, and what came before them, to scores of the next word.

Source: Touvron and others, LLaMA (2023); Ainslie and others, GQA (2023), for keys and values that heads share.
"""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tilewright import te, topi
from tilewright.frontend.llama.config import Config
from tilewright.frontend.weights.blocks import BLOCK
from tilewright.graph.ir.builder import BlockBuilder
from tilewright.graph.ir.types import TensorType
from tilewright.graph.ir.values import Function, Value
from tilewright.te.extents import simplified


def rotate(x: te.Tensor, cosines: te.Tensor, sines: te.Tensor, positions: te.Tensor, *, interleaved: bool) -> te.Tensor:
    """`topi.rotary_embedding` of heads T[n, h, d], by the angles of positions: int64[n]."""
    n, heads, d = x.shape
    turned = topi.rotary_embedding(te.compute((1, heads, n, d), lambda _, h, i, c: x[i, h, c], name="by_head"), cosines,
                                   sines, positions, interleaved=interleaved)
    return te.compute(x.shape, lambda i, h, c: turned[0, h, i, c], name="rotate")


def store_rows(cache: te.Tensor, rows: te.Tensor, *, start: Any) -> te.Tensor:
    """y[g, i] = rows[i - start, g] where there is that row, else cache[g, i].

    cache: T[g, context, d]; rows: T[n, g, d]; start: a number or an expression of sizes.
    """
    def element(g: Any, i: Any, d: Any) -> Any:
        new = te.all(i >= start, i < start + rows.shape[0])
        return te.if_then_else(new, rows[i - start, g, d], cache[g, i, d])
    return te.compute(cache.shape, element, name="store_rows")


def attend(query: te.Tensor, keys: te.Tensor, values: te.Tensor, seen: te.Tensor | None = None, *, past: Any,
           window: int = 0) -> te.Tensor:
    """The attention of new words to themselves and to those before them, heads side by side: T[n, h * d].

    query: T[n, h, d]; keys, values: T[g, context, d], of which past + n rows are filled; seen: bool[past], which of the
    words before are seen; window: how many words a word sees, itself included, 0 for all.
    """
    n, heads, d = query.shape
    total = simplified(past + n)
    k, v = (te.compute((1, t.shape[0], total, d), lambda _, g, j, c, t=t: t[g, j, c], name=name)
            for t, name in ((keys, "keys"), (values, "values")))
    q = te.compute((1, heads, n, d), lambda _, h, i, c: query[i, h, c], name="queries")

    def is_seen(_: Any, __: Any, i: Any, j: Any) -> Any:
        ahead = past + i - j
        parts = [ahead >= 0, *([ahead < window] if window else [])]
        if seen is not None:
            parts.append(te.if_then_else(j < past, seen[j], te.const(True, "bool")))
        return te.all(*parts)
    y = topi.scaled_dot_product_attention(q, k, v, te.compute((1, 1, n, total), is_seen, name="mask"))
    return te.compute((n, heads * d), lambda i, c: y[0, te.floordiv(c, d), i, te.floormod(c, d)], name="attend")


def last_row(x: te.Tensor) -> te.Tensor:
    """x[n - 1:]: T[1, c]."""
    return te.compute((1, x.shape[1]), lambda _, c: x[x.shape[0] - 1, c], name="last_row")


@dataclass
class Model:
    """A function and its parameters beside the words: weights by name, caches of keys and values by layer."""
    function: Function
    weights: dict[str, Value] = field(default_factory=dict)
    caches: dict[str, Value] = field(default_factory=dict)


def model_function(config: Config, types: Mapping[str, TensorType], context: int, new: Any, past: Any) -> Model:
    """The function of `new` words behind `past` others, each a number or a size.

    Parameters: words: int64[new]; positions: int64[new], by which heads are rotated; seen: bool[past], unless past is
    0; weights, of which types has names and types, with cosines and sines of positions; caches, which it updates.
    Result: the scores of the word behind the last: float32[1, words].
    """
    return _Builder(config, types, context, new, past).model()


class _Builder:
    def __init__(self, config: Config, types: Mapping[str, TensorType], context: int, new: Any, past: Any) -> None:
        self.config, self.new, self.past = config, new, past
        self.builder = BlockBuilder()
        param = self.builder.param
        self.words, self.positions = param("words", (new,), "int64"), param("positions", (new,), "int64")
        self.seen = None if isinstance(past, int) else param("seen", (past,), "bool")
        self.weights = {name: param(name.replace(".", "_"), t.shape, t.dtype) for name, t in types.items()}
        cache = (config.groups, context, config.head)
        self.caches = {f"{layer}.{part}": param(f"{part}_{layer}", cache)
                       for layer in range(config.layers) for part in ("keys", "values")}
        self.updates: dict[Value, Value] = {}

    def emit(self, rule: Any, *args: Any, **kwargs: Any) -> Value:
        made: Value = self.builder.emit_te(rule, *args, **kwargs)
        return made

    def model(self) -> Model:
        given = [v for v in (self.words, self.positions, self.seen) if v is not None]
        with self.builder.function("llama", [*given, *self.weights.values(), *self.caches.values()]):
            x = self.emit(topi.embedding, self.words, self.weights["embedding"])
            for layer in range(self.config.layers):
                with self.builder.source(f"layer {layer}"):
                    x = self.layer(layer, x)
            x = self.norm("norm", self.emit(last_row, x))
            self.builder.emit_func_output(self.product("head", x), updates=self.updates)
        return Model(self.builder.get()["llama"], self.weights, self.caches)

    def layer(self, layer: int, x: Value) -> Value:
        h = self.norm(f"{layer}.before", x)
        query = self.rotated(self.heads(f"{layer}.q", h, self.config.heads))
        keys = self.kept(f"{layer}.keys", self.rotated(self.heads(f"{layer}.k", h, self.config.groups)))
        values = self.kept(f"{layer}.values", self.heads(f"{layer}.v", h, self.config.groups))
        rest = [] if self.seen is None else [self.seen]
        attended = self.emit(attend, query, keys, values, *rest, past=self.past, window=self.config.window)
        x = self.emit(topi.add, x, self.product(f"{layer}.out", attended))
        h = self.norm(f"{layer}.between", x)
        inner = self.emit(topi.gated, self.product(f"{layer}.up", h), self.product(f"{layer}.gate", h))
        return self.emit(topi.add, x, self.product(f"{layer}.down", inner))

    def norm(self, name: str, x: Value) -> Value:
        return self.emit(topi.rms_norm, x, self.weights[name], eps=self.config.eps)

    def heads(self, name: str, x: Value, count: int) -> Value:
        return self.emit(topi.reshape, self.product(name, x), shape=(self.new, count, self.config.head))

    def product(self, name: str, x: Value) -> Value:
        """x times a matrix, transposed, and what is added to it."""
        w, bias = self.weights, self.weights.get(f"{name}.bias")
        rest = [] if bias is None else [bias]
        if name in w:
            return self.emit(topi.linear, x, w[name], *rest)
        return self.emit(topi.linear_blocks, x, w[f"{name}.numbers"], w[f"{name}.scale"], *rest, block=BLOCK)

    def rotated(self, x: Value) -> Value:
        """Heads, turned by the angles of the positions of their words."""
        return self.emit(rotate, x, self.weights["cosines"], self.weights["sines"], self.positions,
                         interleaved=self.config.interleaved)

    def kept(self, name: str, rows: Value) -> Value:
        """The keys or values of a layer with those of the new words."""
        cache = self.caches[name]
        self.updates[cache] = self.emit(store_rows, cache, rows, start=self.past)
        return self.updates[cache]
