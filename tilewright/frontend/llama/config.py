"""What a model of Llama's shape is: its extents, as config.json of transformers and the metadata of GGUF say them."""
from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tilewright.support.errors import ImportModelError

KINDS = ("llama", "mistral", "qwen2")


@dataclass(frozen=True)
class Config:
    """The extents of a model.

    - width: elements of a word between layers; inner: those inside of the two-layer network.
    - heads: of queries; groups: of keys and values, each for heads / groups heads; head: elements of one.
    - interleaved: rotations turn elements 2 * k and 2 * k + 1 of a head, not k and k + head / 2.
    - rope_scaling: "" or "llama3" with its four numbers, or "linear" with its factor.
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
        c = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as why:
        raise ImportModelError(f"{path} cannot be read: {why}") from None
    kind = c.get("model_type") if isinstance(c, dict) else None
    if kind not in KINDS:
        raise ImportModelError(f"{path}: the model is {kind!r}, and those that are read are {', '.join(KINDS)}")
    if c.get("hidden_act", "silu") != "silu":
        raise ImportModelError(f"{path}: the activation is {c['hidden_act']!r}, and silu alone is supported")
    try:
        windowed = c.get("sliding_window") if c.get("use_sliding_window", kind == "mistral") else 0
        return Config(
            layers=c["num_hidden_layers"], width=c["hidden_size"], inner=c["intermediate_size"],
            heads=c["num_attention_heads"], groups=c.get("num_key_value_heads") or c["num_attention_heads"],
            head=c.get("head_dim") or c["hidden_size"] // c["num_attention_heads"], words=c["vocab_size"],
            eps=float(c.get("rms_norm_eps", 1e-6)), rope_base=float(_rope(c).get("rope_theta", 10000.0)),
            rope_scaling=_scaling(_rope(c), path), window=windowed or 0,
            context=c.get("max_position_embeddings", 2048))
    except (KeyError, TypeError, ValueError, ZeroDivisionError) as why:
        raise ImportModelError(f"{path} is not the description of a {kind}: {type(why).__name__}: {why}") from None


def _rope(c: Mapping[str, Any]) -> dict[str, Any]:
    """What is said of rotations, in the older and the newer place."""
    older, newer = c.get("rope_scaling") or {}, c.get("rope_parameters") or {}
    return {"rope_theta": c.get("rope_theta", 10000.0), **older, **newer}


def _scaling(rope: Mapping[str, Any], path: Path) -> tuple[Any, ...]:
    kind = rope.get("rope_type", rope.get("type", "default"))
    if kind == "default":
        return ()
    if kind == "linear":
        return ("linear", float(rope["factor"]))
    if kind == "llama3":
        return ("llama3", *(float(rope[k]) for k in ("factor", "low_freq_factor", "high_freq_factor",
                                                      "original_max_position_embeddings")))
    raise ImportModelError(f"{path}: rotations of the kind {kind!r} are not supported",
                           "default, linear and llama3 are")


def config_of_gguf(metadata: Mapping[str, Any], path: Path) -> Config:
    """The Config that the metadata of a GGUF file hold. Raises ImportModelError where it is that of another model."""
    kind = metadata.get("general.architecture")
    if kind not in KINDS:
        raise ImportModelError(f"{path}: the model is {kind!r}, and those that are read are {', '.join(KINDS)}")

    def of(name: str, default: Any = None) -> Any:
        found = metadata.get(f"{kind}.{name}", default)
        if found is None:
            raise KeyError(f"{kind}.{name}")
        return found
    try:
        if of("rope.scaling.type", "none") not in ("none", "linear"):
            raise ImportModelError(f"{path}: rotations of the kind {of('rope.scaling.type')!r} are not supported")
        linear = of("rope.scaling.type", "none") == "linear"
        heads = of("attention.head_count")
        return Config(
            layers=of("block_count"), width=of("embedding_length"), inner=of("feed_forward_length"), heads=heads,
            groups=of("attention.head_count_kv", heads),
            head=of("attention.key_length", of("embedding_length") // heads),
            words=of("vocab_size", len(metadata.get("tokenizer.ggml.tokens", ())) or None),
            eps=float(of("attention.layer_norm_rms_epsilon")), rope_base=float(of("rope.freq_base", 10000.0)),
            rope_scaling=("linear", float(of("rope.scaling.factor"))) if linear else (), interleaved=kind != "qwen2",
            context=of("context_length", 2048))
    except (KeyError, TypeError, ValueError, ZeroDivisionError) as why:
        raise ImportModelError(f"{path} is not the description of a {kind}: {type(why).__name__}: {why}") from None
