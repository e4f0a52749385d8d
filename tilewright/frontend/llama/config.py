"""What a model of Llama's shape is: its extents, as config.json of transformers and the metadata of GGUF say them."""
from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tilewright.frontend.weights.files import DAMAGE, MOST_CONFIG, content, damage, parsed
from tilewright.support.errors import ImportModelError
from tilewright.support.files import shown

KINDS = ("llama", "mistral", "qwen2")


@dataclass(frozen=True)
class Config:
    """The extents of a model.

    - width: elements of a word between layers; inner: those inside of the two-layer network.
    - heads: of queries; groups: of keys and values, each for heads / groups heads; head: elements of one.
    - interleaved: rotations turn elements 2 * k and 2 * k + 1 of a head, not k and k + head / 2.
    - rope_scaling: nothing, "llama3" with its four numbers, "linear" with its factor, or "divided" with a number for
      each pair of elements, by which its angle is divided.
    - window: a word attends to that many words, itself included; 0: to all.
    """
    layers: int
    width: int
    inner: int
    heads: int
    groups: int
    head: int
    words: int
    eps: float = 1e-5
    rope_base: float = 10000.0
    rope_scaling: tuple[Any, ...] = ()
    interleaved: bool = False
    window: int = 0
    context: int = 2048

    def __post_init__(self) -> None:
        sizes = {k: getattr(self, k) for k in (
            "layers", "width", "inner", "heads", "groups", "head", "words", "context")}
        wrong = {k: n for k, n in sizes.items() if not isinstance(n, int) or isinstance(n, bool) or n < 1}
        if wrong or self.heads % self.groups or self.head % 2:
            raise ImportModelError(f"the extents {wrong or sizes} are not those of a model of Llama's shape",
                                   "groups divide heads, and a head has an even number of elements")
        if not isinstance(self.window, int) or isinstance(self.window, bool) or self.window < 0:
            raise ImportModelError(f"a word attends to {self.window!r} words, which is no number of words",
                                   "0 stands for all")
        numbers = {"eps": self.eps, "rope_base": self.rope_base,
                   **{f"rope_scaling[{k}]": n for k, n in enumerate(self.rope_scaling) if k}}
        name = next((name for name, n in numbers.items() if not 0 < n < math.inf), None)
        if name is not None:
            raise ImportModelError(f"{name} is {numbers[name]}, which is no positive number",
                                   "is the description of the model damaged?")
        if self.rope_scaling[:1] == ("llama3",) and not self.rope_scaling[2] < self.rope_scaling[3]:
            raise ImportModelError(f"low_freq_factor is {self.rope_scaling[2]}, high_freq_factor "
                                   f"{self.rope_scaling[3]}", "the first is the smaller one")

    def angles(self) -> np.ndarray:
        """The angle by which a pair of elements turns from word to word: float64[head / 2].

        Source: Su and others, RoFormer (2021); the scaling of Llama 3 as its model card and transformers have it.
        """
        angle = self.rope_base ** (-np.arange(0, self.head, 2) / self.head)
        if not self.rope_scaling:
            return angle
        kind, factor, *rest = self.rope_scaling
        if kind == "linear":
            return angle / factor
        if kind == "divided":
            return angle / np.array([factor, *rest])
        low, high, original = rest
        share = (original * angle / (2 * math.pi) - low) / (high - low)
        return angle * np.interp(share, [0, 1], [1 / factor, 1])

    def rotations(self, rows: int) -> tuple[np.ndarray, np.ndarray]:
        """(cosines, sines) of the first positions: float32[rows, head / 2]."""
        turned = np.arange(rows)[:, None] * self.angles()
        return np.cos(turned).astype(np.float32), np.sin(turned).astype(np.float32)


def config_of_folder(folder: Path) -> Config:
    """The Config that config.json in a folder holds. Raises ImportModelError where it is that of another model."""
    path = folder / "config.json"
    try:
        c = parsed(content(path, MOST_CONFIG))
    except DAMAGE as why:
        raise ImportModelError(f"{path} cannot be read: {damage(why)}") from None
    kind = c.get("model_type") if isinstance(c, dict) else None
    if kind not in KINDS:
        raise ImportModelError(f"{path}: the model is {shown(repr(kind))}, and those that are read are "
                               f"{', '.join(KINDS)}")
    if c.get("hidden_act", "silu") != "silu":
        raise ImportModelError(f"{path}: the activation is {shown(repr(c['hidden_act']))}, and silu alone is supported")
    try:
        return Config(
            layers=c["num_hidden_layers"], width=c["hidden_size"], inner=c["intermediate_size"],
            heads=c["num_attention_heads"], groups=c.get("num_key_value_heads") or c["num_attention_heads"],
            head=c.get("head_dim") or c["hidden_size"] // c["num_attention_heads"], words=c["vocab_size"],
            eps=float(c.get("rms_norm_eps", 1e-6)), rope_base=float(_rope(c).get("rope_theta", 10000.0)),
            rope_scaling=_scaling(_rope(c), path), window=_window(c, kind, path),
            context=c.get("max_position_embeddings", 2048))
    except DAMAGE as why:
        raise ImportModelError(f"{path} is not the description of a {kind}: {damage(why)}") from None


def _window(c: Mapping[str, Any], kind: str, path: Path) -> Any:
    """The window of all layers; the defaults are those of transformers."""
    if not c.get("use_sliding_window", kind == "mistral"):
        return 0
    window = c.get("sliding_window", 4096) or 0
    if kind == "mistral" or not window:
        return window
    first, layers = c.get("max_window_layers", 28), c["num_hidden_layers"]
    if c.get("layer_types"):
        kinds = list(c["layer_types"])
        layers, narrow = len(kinds), kinds.count("sliding_attention")
        others = layers - narrow - kinds.count("full_attention")
    else:
        narrow, others = layers - min(max(first, 0), layers), 0
    if others or 0 < narrow < layers:
        raise ImportModelError(f"{path}: {narrow} of {layers} layers have a window, and models are supported of which "
                               "all have it or none")
    return window if narrow else 0


def _rope(c: Mapping[str, Any]) -> dict[str, Any]:
    """What is said of rotations, in the older and the newer place."""
    older, newer = c.get("rope_scaling") or {}, c.get("rope_parameters") or {}
    own = {name: c[name] for name in ("rope_theta", "partial_rotary_factor") if name in c}
    return {**own, **older, **newer}


def _scaling(rope: Mapping[str, Any], path: Path) -> tuple[Any, ...]:
    if rope.get("partial_rotary_factor", 1) != 1:
        raise ImportModelError(f"{path}: rotations of {rope['partial_rotary_factor']} of a head are not supported",
                               "models whose heads are turned as a whole are read")
    kind = rope.get("rope_type", rope.get("type", "default"))
    if kind == "default":
        return ()
    if kind == "linear":
        return ("linear", float(rope["factor"]))
    if kind == "llama3":
        return ("llama3", *(float(rope[k]) for k in ("factor", "low_freq_factor", "high_freq_factor",
                                                      "original_max_position_embeddings")))
    raise ImportModelError(f"{path}: rotations of the kind {shown(repr(kind))} are not supported",
                           "default, linear and llama3 are")


def config_of_gguf(metadata: Mapping[str, Any], path: Path, factors: np.ndarray | None = None) -> Config:
    """The Config that the metadata of a GGUF file hold. Raises ImportModelError where it is that of another model.

    factors: what the angles of the pairs of elements are divided by, which such files have as a tensor.
    """
    kind = metadata.get("general.architecture")
    if kind not in KINDS:
        raise ImportModelError(f"{path}: the model is {shown(repr(kind))}, and those that are read are "
                               f"{', '.join(KINDS)}")

    def of(name: str, default: Any = None) -> Any:
        found = metadata.get(f"{kind}.{name}", default)
        if found is None:
            raise KeyError(f"{kind}.{name}")
        return found
    try:
        heads = of("attention.head_count")
        head = of("attention.key_length", of("embedding_length") // heads)
        if of("rope.dimension_count", head) != head:
            raise ImportModelError(f"{path}: rotations of {of('rope.dimension_count')} of {head} elements of a head "
                                   "are not supported", "models whose heads are turned as a whole are read")
        return Config(
            layers=of("block_count"), width=of("embedding_length"), inner=of("feed_forward_length"), heads=heads,
            groups=of("attention.head_count_kv", heads),
            head=head, words=of("vocab_size", len(metadata.get("tokenizer.ggml.tokens", ())) or None),
            eps=float(of("attention.layer_norm_rms_epsilon")), rope_base=float(of("rope.freq_base", 10000.0)),
            rope_scaling=_scaling_of_gguf(of, path, factors, head), interleaved=kind != "qwen2",
            window=of("attention.sliding_window", 0), context=of("context_length", 2048))
    except DAMAGE as why:
        raise ImportModelError(f"{path} is not the description of a {kind}: {damage(why)}") from None


def _scaling_of_gguf(of: Callable[..., Any], path: Path, factors: np.ndarray | None, head: int) -> tuple[Any, ...]:
    """As llama.cpp has it: a factor that says nothing of its kind is linear, and that of the kind "none" counts not."""
    factor = float(of("rope.scaling.factor", of("rope.scale_linear", 0)))
    kind = of("rope.scaling.type", "linear" if factor else "none")
    if kind not in ("none", "linear") or kind == "linear" and factors is not None:
        raise ImportModelError(f"{path}: rotations of the kind {shown(repr(kind))} are not supported"
                               + (" beside a tensor of factors" if factors is not None else ""))
    if factors is not None:
        if factors.shape != (head // 2,):
            raise ImportModelError(f"{path}: the factors of rotations have the shape {factors.shape}, and "
                                   f"{(head // 2,)} is needed")
        return ("divided", *map(float, factors))
    return ("linear", float(of("rope.scaling.factor", factor or None))) if kind == "linear" else ()
