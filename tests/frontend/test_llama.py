"""Models of Llama's shape against a model in NumPy, float64, that reads all words at once."""
import json
import os
from dataclasses import replace

import numpy as np
import pytest

from tests.frontend.weights_files import plain, q4_0, q8_0, write_gguf, write_safetensors
from tilewright.frontend.llama import Config, Decoder, load_llama
from tilewright.frontend.llama.config import config_of_folder
from tilewright.frontend.llama.tensors import in_form
from tilewright.frontend.weights import Blocks, read_safetensors
from tilewright.support.errors import ArgumentError, ImportModelError

TINY = Config(layers=2, width=32, inner=64, heads=4, groups=2, head=8, words=37, context=24)
SHAPES = {"q": (32, 32), "k": (16, 32), "v": (16, 32), "out": (32, 32), "gate": (64, 32), "up": (64, 32),
          "down": (32, 64)}


def weights(config, bias=False, seed=0):
    rng = np.random.default_rng(seed)

    def array(*shape): return (rng.standard_normal(shape) * 0.3).astype("float32")
    made = {"embedding": array(config.words, 32), "norm": 1 + array(32), "head": array(config.words, 32)}
    for layer in range(config.layers):
        made |= {f"{layer}.{name}": array(*shape) for name, shape in SHAPES.items()}
        made |= {f"{layer}.{name}": 1 + array(32) for name in ("before", "between")}
        if bias:
            made |= {f"{layer}.{name}.bias": array(SHAPES[name][0]) for name in "qkv"}
    return made


def model(c, w, words):
    """The scores behind each of the words."""
    w = {n: (a.dense() if isinstance(a, Blocks) else a).astype("float64") for n, a in w.items()}
    n, half = len(words), c.head // 2
    angle = np.arange(n)[:, None] * c.angles()

    def norm(x, name): return x / np.sqrt((x * x).mean(1, keepdims=True) + c.eps) * w[name]
    def product(name, x): return x @ w[name].T + w.get(f"{name}.bias", 0)

    def turned(x):
        y = np.empty_like(x)
        first, second = (slice(0, None, 2), slice(1, None, 2)) if c.interleaved else (slice(half), slice(half, None))
        cos, sin = np.cos(angle)[:, None], np.sin(angle)[:, None]
        y[..., first] = x[..., first] * cos - x[..., second] * sin
        y[..., second] = x[..., first] * sin + x[..., second] * cos
        return y
    ahead = np.arange(n)[:, None] - np.arange(n)
    seen = (ahead >= 0) & ((ahead < c.window) if c.window else True)
    x = w["embedding"][words]
    for k in range(c.layers):
        h = norm(x, f"{k}.before")
        q = turned(product(f"{k}.q", h).reshape(n, c.heads, c.head))
        keys, values = (product(f"{k}.{p}", h).reshape(n, c.groups, -1).repeat(c.heads // c.groups, 1) for p in "kv")
        s = np.where(seen, np.einsum("ihd,jhd->hij", q, turned(keys)) / np.sqrt(c.head), -np.inf)
        p = np.exp(s - s.max(-1, keepdims=True))
        a = np.einsum("hij,jhd->ihd", p / p.sum(-1, keepdims=True), values).reshape(n, -1)
        x = x + product(f"{k}.out", a)
        h = norm(x, f"{k}.between")
        g = product(f"{k}.gate", h)
        x = x + product(f"{k}.down", g / (1 + np.exp(-g)) * product(f"{k}.up", h))
    return product("head", norm(x, "norm"))


@pytest.fixture(autouse=True, scope="module")
def objects_are_kept(tmp_path_factory):
    """What is compiled for one decoder serves the others; the verifier, which other tests have, would keep it out."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path_factory.mktemp("objects")))
        patch.setenv("TILEWRIGHT_CACHE", "1")
        patch.delenv("TILEWRIGHT_VERIFY", raising=False)
        yield


WORDS = np.random.default_rng(3).integers(0, TINY.words, 24)


def agree(decoder, c, w, parts, tolerance=2e-4):
    wanted, at = model(c, w, WORDS), 0
    for n in parts:
        at += n
        np.testing.assert_allclose(decoder(WORDS[at - n:at]).numpy(), wanted[at - 1], rtol=tolerance, atol=tolerance)
    assert decoder.length == at


def test_words_in_parts_of_any_size():
    w = weights(TINY)
    decoder = Decoder(TINY, w, context=24)
    agree(decoder, TINY, w, (5, 1, 1, 3, 1, 2, 11))
    for parts in ((24,), (1, 1, 1), (23, 1)):
        decoder.reset()
        agree(decoder, TINY, w, parts)
    assert set(decoder._compiled) == {"start", "next", "more"}      # one build serves all sizes


@pytest.mark.parametrize("changes", [
    {"interleaved": True}, {"window": 3}, {"rope_scaling": ("linear", 4.0)},
    {"rope_scaling": ("llama3", 8.0, 1.0, 4.0, 16.0), "rope_base": 500.0}, {"groups": 4}, {"groups": 1, "eps": 1e-2}])
def test_models_of_other_kinds(changes):
    c = Config(**{**{f: getattr(TINY, f) for f in TINY.__dataclass_fields__}, **changes})
    w = weights(c, bias=True)
    for k in range(c.layers):
        for part in "kv":
            w[f"{k}.{part}"] = np.random.default_rng(k).standard_normal((c.groups * c.head, 32)).astype("float32")
            w[f"{k}.{part}.bias"] = w[f"{k}.{part}"][:, 0].copy()
    agree(Decoder(c, w, context=24), c, w, (7, 1, 2))


@pytest.mark.parametrize("form, blocks", [("int8", 8), ("int4", 4)])
def test_matrices_in_blocks(form, blocks):
    w = {n: in_form(a, form) if a.ndim == 2 and n != "embedding" else a for n, a in weights(TINY).items()}
    assert w["0.q"].bits == blocks
    decoder = Decoder(TINY, w, context=24)
    agree(decoder, TINY, w, (6, 1, 1, 2))
    assert decoder.nbytes < Decoder(TINY, weights(TINY), context=24).nbytes


def test_generate_takes_the_likeliest_word():
    w = weights(TINY)
    decoder, read, made = Decoder(TINY, w, context=24), [1, 2, 3], []
    for _ in range(6):
        made.append(int(np.argmax(model(TINY, w, [*read, *made])[-1])))
    assert decoder.generate(read, 6) == made
    decoder.reset()
    assert decoder.generate(read, 6, stop=made[2:3]) == made[:made.index(made[2]) + 1]
    drawn = []
    for seed in range(3):
        decoder.reset()
        drawn.append(decoder.generate(read, 8, temperature=2.0, seed=seed))
    decoder.reset()
    assert drawn[0] != drawn[1] and decoder.generate(read, 8, temperature=2.0, seed=2) == drawn[2]


def test_wrong_words_change_nothing():
    w = weights(TINY)
    decoder = Decoder(TINY, w, context=8)
    decoder([1, 2, 3])
    for wrong in ([], [37], [-1], [1.5], [[1]], "ab", [1] * 6, None, [[1], [1, 2]]):
        with pytest.raises(ArgumentError):
            decoder(wrong)
    for call in (lambda: decoder.reset(4), lambda: decoder.reset(-1), lambda: decoder.generate([1], -1),
                 lambda: decoder.generate([1], 2, temperature=float("nan")), lambda: Decoder(TINY, w, context=0),
                 lambda: decoder.generate([1], 2, temperature="hot"), lambda: decoder.generate([1], 2, seed=-1),
                 lambda: decoder.generate([1], 2, stop=3), lambda: Decoder(TINY, w, context=2**60)):
        with pytest.raises(ArgumentError):
            call()
    assert decoder.length == 3
    np.testing.assert_allclose(decoder([4]).numpy(), model(TINY, w, [1, 2, 3, 4])[-1], rtol=2e-4, atol=2e-4)
    decoder.reset(2)
    np.testing.assert_allclose(decoder([9]).numpy(), model(TINY, w, [1, 2, 9])[-1], rtol=2e-4, atol=2e-4)


SAFE = {"q": "self_attn.q_proj", "k": "self_attn.k_proj", "v": "self_attn.v_proj", "out": "self_attn.o_proj",
        "gate": "mlp.gate_proj", "up": "mlp.up_proj", "down": "mlp.down_proj", "before": "input_layernorm",
        "between": "post_attention_layernorm"}
GGUF = {"q": "attn_q", "k": "attn_k", "v": "attn_v", "out": "attn_output", "gate": "ffn_gate", "up": "ffn_up",
        "down": "ffn_down", "before": "attn_norm", "between": "ffn_norm"}
HF = {"model_type": "llama", "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "vocab_size": 37,
      "num_attention_heads": 4, "num_key_value_heads": 2, "rms_norm_eps": 1e-5, "max_position_embeddings": 24}


def folder(path, w, tied=False, **changes):
    """As transformers writes a model."""
    named = {"model.embed_tokens.weight": w["embedding"], "model.norm.weight": w["norm"]}
    if not tied:
        named["lm_head.weight"] = w["head"]
    for name, a in w.items():
        layer, _, part = name.partition(".")
        if part:
            own, _, bias = part.partition(".")
            named[f"model.layers.{layer}.{SAFE[own]}.{bias or 'weight'}"] = a
    write_safetensors(path / "model.safetensors", named)
    (path / "config.json").write_text(json.dumps({**HF, **changes}))
    return path


def test_a_folder_of_transformers(tmp_path):
    w = weights(TINY, bias=True)
    agree(load_llama(folder(tmp_path, w)), TINY, w, (5, 1, 2))
    c = config_of_folder(folder(tmp_path, w, tied=True, model_type="mistral", sliding_window=3, rope_scaling={
        "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 16}))
    assert c.window == 3 and c.rope_scaling == ("llama3", 8.0, 1.0, 4.0, 16.0)
    agree(load_llama(tmp_path, context=9), c, {**w, "head": w["embedding"]}, (5, 1, 2))


def test_a_gguf_file(tmp_path):
    w, named, held = weights(TINY), {}, {}
    for name, a in w.items():
        layer, _, part = name.partition(".")
        place = f"blk.{layer}.{GGUF[part]}.weight" if part else {
            "embedding": "token_embd", "norm": "output_norm", "head": "output"}[name] + ".weight"
        pack = plain if a.ndim == 1 or name == "embedding" else q4_0 if "down" in name else q8_0
        named[place] = (a.shape, pack(a))
        held[name] = named[place][1][2]
    metadata = {
        "general.architecture": "llama", "llama.block_count": 2, "llama.embedding_length": 32,
        "llama.context_length": 24, "llama.feed_forward_length": 64, "llama.attention.head_count": 4,
        "llama.attention.head_count_kv": 2, "llama.attention.layer_norm_rms_epsilon": 1e-5,
        "llama.rope.freq_base": 10000.0, "llama.vocab_size": 37}
    write_gguf(tmp_path / "m.gguf", metadata, named)
    c = Config(**{**{f: getattr(TINY, f) for f in TINY.__dataclass_fields__}, "interleaved": True})
    for said, factors, scaling in (
            ({"llama.rope.scaling.factor": 4.0}, None, ("linear", 4.0)),
            ({"llama.rope.scaling.type": "none", "llama.rope.scaling.factor": 4.0}, None, ()),
            ({}, np.array([1, 2, 3, 8], "float32"), ("divided", 1.0, 2.0, 3.0, 8.0))):
        more = {} if factors is None else {"rope_freqs.weight": ((4,), plain(factors))}
        write_gguf(tmp_path / "scaled.gguf", {**metadata, **said}, {**named, **more})
        scaled = replace(c, rope_scaling=scaling)
        by = factors if factors is not None else scaling[1] if scaling else 1.0
        np.testing.assert_allclose(scaled.angles(), 10000.0 ** (-np.arange(4) / 4) / by)
        agree(load_llama(tmp_path / "scaled.gguf", weights="float32"), scaled, held, (5, 1))
    for said, message in (({"llama.rope.dimension_count": 4}, "4 of 8 elements"),
                          ({"llama.block_count": 1}, "no weights")):
        write_gguf(tmp_path / "wrong.gguf", {**metadata, **said}, named)
        with pytest.raises(ImportModelError, match=message):
            load_llama(tmp_path / "wrong.gguf")
    decoder = load_llama(tmp_path / "m.gguf")
    assert "0.q.numbers" in decoder._weights and decoder._weights["0.down.numbers"].dtype == "uint8"
    agree(decoder, c, held, (5, 1, 2))
    agree(load_llama(tmp_path / "m.gguf", weights="float32"), c, held, (5, 1))


@pytest.mark.parametrize("changes, words", [
    ({"model_type": "gemma"}, "gemma"), ({"hidden_act": "gelu"}, "gelu"),
    ({"num_attention_heads": 0}, "ZeroDivision|extents"),
    ({"num_key_value_heads": 3}, "extents"), ({"hidden_size": 33}, "extents|shape"), ({"vocab_size": 36}, "shape"),
    ({"num_hidden_layers": 3}, "no tensor"), ({"hidden_size": "a"}, "description|extents"),
    ({"rope_scaling": {"rope_type": "yarn", "factor": 2.0}}, "yarn"),
    ({"rope_scaling": {"rope_type": "linear"}}, "factor"), ({"num_hidden_layers": 1}, "9 tensors are no weights"),
    ({"rms_norm_eps": float("nan")}, "eps is nan"), ({"rope_theta": 0}, "rope_base is 0"),
    ({"rope_scaling": {"rope_type": "linear", "factor": float("inf")}}, "rope_scaling.1. is inf"),
    ({"partial_rotary_factor": 0.5}, "0.5 of a head"),
    ({"model_type": "mistral", "sliding_window": "7"}, "attends to '7' words"),
    ({"rms_norm_eps": 10**400}, "OverflowError"),
    ({"rope_scaling": {"rope_type": "llama3", "factor": 8, "low_freq_factor": 4, "high_freq_factor": 4,
                       "original_max_position_embeddings": 16}}, "low_freq_factor is 4.0"),
    ({"model_type": "qwen2", "use_sliding_window": True, "layer_types": {"a": 1, "b": 2}}, "0 of 2 layers"),
    ({"model_type": "qwen2", "use_sliding_window": True, "num_hidden_layers": 10**12}, "of 1000000000000 layers"),
    ({"model_type": "qwen2", "use_sliding_window": True, "sliding_window": 3, "max_window_layers": 1},
     "1 of 2 layers")])
def test_descriptions_that_do_not_fit_are_refused(tmp_path, changes, words):
    with pytest.raises(ImportModelError, match=words):
        load_llama(folder(tmp_path, weights(TINY), **changes))


def test_descriptions_that_are_none_are_refused(tmp_path):
    description = tmp_path / "config.json"
    for text, words in (('{"model_type": "llama", "model_type": "llama"}', "is there twice"),
                        (" " * (1 << 20) + "{}", "more than 1048576 bytes"), ("[" * 100000, "RecursionError")):
        description.write_text(text)
        with pytest.raises(ImportModelError, match=words):
            config_of_folder(tmp_path)
    description.unlink()
    os.mkfifo(description)
    with pytest.raises(ImportModelError, match="not a regular file"):
        config_of_folder(tmp_path)


@pytest.mark.parametrize("changes, window", [
    ({"model_type": "mistral"}, 4096), ({"model_type": "mistral", "sliding_window": None}, 0),
    ({"sliding_window": 5}, 0), ({"model_type": "qwen2", "sliding_window": 5}, 0),
    ({"model_type": "qwen2", "sliding_window": 5, "use_sliding_window": True}, 0),
    ({"model_type": "qwen2", "sliding_window": 5, "use_sliding_window": True, "max_window_layers": 0}, 5),
    ({"model_type": "qwen2", "sliding_window": 5, "use_sliding_window": True, "layer_types": ["sliding_attention"] * 2},
     5)])
def test_windows_are_those_of_transformers(tmp_path, changes, window):
    (tmp_path / "config.json").write_text(json.dumps({**HF, **changes}))
    assert config_of_folder(tmp_path).window == window


def test_weights_with_scales_beside_them_are_refused(tmp_path):
    w = weights(TINY)
    for extra, message in (
            ({"model.layers.0.self_attn.q_proj.weight_scale": np.ones(1, "float32")}, "q_proj.weight_scale"),
            ({"model.norm.weight": np.ones(32, "int64")}, "int64, and floats are needed")):
        folder(tmp_path, w)
        read = dict(read_safetensors(tmp_path))
        write_safetensors(tmp_path / "model.safetensors", {**{n: np.array(a) for n, a in read.items()}, **extra})
        with pytest.raises(ImportModelError, match=message):
            load_llama(tmp_path)


def test_forms_that_are_not_there_are_refused(tmp_path):
    with pytest.raises(ArgumentError, match="int4"):
        load_llama(folder(tmp_path, weights(TINY)), weights="int3")
    (tmp_path / "config.json").write_text("[")
    with pytest.raises(ImportModelError):
        load_llama(tmp_path)
    with pytest.raises(ImportModelError):
        load_llama(tmp_path / "none.gguf")
