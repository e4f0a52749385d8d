"""The weights of a model of Llama's shape in a file, by the names that layers.py has for them."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from tilewright.frontend.llama.config import Config, config_of_folder, config_of_gguf
from tilewright.frontend.weights import Blocks, quantized, read_gguf, read_safetensors
from tilewright.runtime.export import as_path
from tilewright.support.errors import ArgumentError, ImportModelError
from tilewright.support.files import shown

Weight = np.ndarray | Blocks
ROTATIONS = "rope_freqs.weight"                       # in GGUF: factors of the angles of rotations
DERIVED = ".rotary_emb.inv_freq"                      # in safetensors of old: what the description says too
WEIGHTS = {"float32": 0, "int8": 8, "int4": 4}         # kinds of matrices, with the bits of those in blocks

# name: (in safetensors, in GGUF); those of a layer have its number for %d
OUTSIDE = {"embedding": ("model.embed_tokens.weight", "token_embd.weight"),
           "norm": ("model.norm.weight", "output_norm.weight"), "head": ("lm_head.weight", "output.weight")}
MATRICES = {"q": ("self_attn.q_proj", "attn_q"), "k": ("self_attn.k_proj", "attn_k"),
            "v": ("self_attn.v_proj", "attn_v"), "out": ("self_attn.o_proj", "attn_output"),
            "gate": ("mlp.gate_proj", "ffn_gate"), "up": ("mlp.up_proj", "ffn_up"),
            "down": ("mlp.down_proj", "ffn_down")}
NORMS = {"before": ("input_layernorm", "attn_norm"), "between": ("post_attention_layernorm", "ffn_norm")}


def read_model(path: str | Path, weights: str | None = None) -> tuple[Config, dict[str, Weight]]:
    """(what the model is, its weights by name): of a GGUF file, or of a folder with config.json and safetensors.

    weights: "float32", "int8" or "int4", for all matrices but that of words; None: blocks of the file stay, all else is
    float32. Raises ImportModelError for a damaged file, a missing weight, or one of another shape.
    """
    if weights is not None and weights not in WEIGHTS:
        raise ArgumentError(f"weights={weights!r}", f"one of {', '.join(WEIGHTS)}, or None")
    path = as_path("load_llama", path)
    in_file: Mapping[str, Weight]
    if path.is_dir():
        config, in_file, column = config_of_folder(path), read_safetensors(path), 0
    else:
        read = read_gguf(path)
        factors = read.tensors.pop(ROTATIONS, None)
        config = config_of_gguf(read.metadata, path, None if factors is None else dense(factors))
        in_file, column = read.tensors, 1
    return config, model_tensors(config, in_file, column, weights, str(path))


def model_tensors(config: Config, in_file: Mapping[str, Weight], column: int, weights: str | None,
                  where: str) -> dict[str, Weight]:
    """The weights by the names of layers.py; column: 0 for names of safetensors, 1 for those of GGUF.

    Raises ImportModelError also for a tensor that is no weight of such a model: what it is for would be left out.
    """
    unread = {name: None for name in in_file if not name.endswith(DERIVED)}

    def taken(name: str, shape: tuple[int, ...]) -> Weight:
        found = in_file.get(name)
        if found is None:
            raise ImportModelError(f"{where}: there is no tensor {name}")
        if tuple(found.shape) != shape:
            raise ImportModelError(f"{where}: {name} has the shape {tuple(found.shape)}, and {shape} is needed")
        if not isinstance(found, Blocks) and found.dtype.kind not in "fV":      # V: the floats of ml_dtypes
            raise ImportModelError(f"{where}: the elements of {name} are {found.dtype}, and floats are needed",
                                   "GGUF has blocks of 8 and 4 bits, with their scales")
        unread.pop(name, None)
        return found

    def matrix(name: str, shape: tuple[int, ...]) -> Weight:
        return in_form(taken(name, shape), weights)

    c = config
    made: dict[str, Weight] = {
        "embedding": dense(taken(OUTSIDE["embedding"][column], (c.words, c.width))),
        "norm": dense(taken(OUTSIDE["norm"][column], (c.width,)))}
    head = OUTSIDE["head"][column]                         # absent where it is the matrix of words
    made["head"] = matrix(head if head in in_file else OUTSIDE["embedding"][column], (c.words, c.width))
    for layer in range(c.layers):
        made |= _layer(c, layer, column, in_file, taken, matrix)
    if unread:
        raise ImportModelError(f"{where}: {len(unread)} tensors are no weights of such a model: "
                               f"{shown(', '.join(list(unread)[:4]))}",
                               "weights that have scales beside them are not read")
    return made


def _layer(c: Config, layer: int, column: int, in_file: Mapping[str, Weight],
           taken: Callable[[str, tuple[int, ...]], Weight],
           matrix: Callable[[str, tuple[int, ...]], Weight]) -> dict[str, Weight]:
    prefix = f"model.layers.{layer}." if column == 0 else f"blk.{layer}."
    queries, keys = c.heads * c.head, c.groups * c.head
    shapes = {"q": (queries, c.width), "k": (keys, c.width), "v": (keys, c.width), "out": (c.width, queries),
              "gate": (c.inner, c.width), "up": (c.inner, c.width), "down": (c.width, c.inner)}
    made: dict[str, Weight] = {}
    for name, names in MATRICES.items():
        made[f"{layer}.{name}"] = matrix(f"{prefix}{names[column]}.weight", shapes[name])
        bias = f"{prefix}{names[column]}.bias"
        if bias in in_file:
            made[f"{layer}.{name}.bias"] = dense(taken(bias, shapes[name][:1]))
    for name, names in NORMS.items():
        made[f"{layer}.{name}"] = dense(taken(f"{prefix}{names[column]}.weight", (c.width,)))
    return made


def dense(w: Weight) -> np.ndarray:
    """The elements as float32 in memory."""
    return w.dense() if isinstance(w, Blocks) else np.require(w, np.float32, ["C", "A"])


def in_form(w: Weight, weights: str | None) -> Weight:
    """A matrix as `weights` says; one whose columns are no whole blocks stays float32."""
    if isinstance(w, Blocks) and weights in (None, {8: "int8", 4: "int4"}[w.bits]):
        return w
    plain = dense(w)
    bits = WEIGHTS[weights or "float32"]
    return quantized(plain, bits) if bits and plain.shape[1] % 32 == 0 else plain
