"""A language model of Llama's shape with random weights, and engines that read one word after another.

    python -m model_cases.decoders LAYERS FOLDER    writes what transformers saves, and data.npz: scores

Runs where PyTorch and transformers are installed; the engines of Tilewright need neither.
"""
from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

Prepared = tuple[Callable[[], object], dict[str, Any]]
WORDS = [1, 5, 17, 290, 3]
PAST = 128                       # words that have been read before one is measured
READ = 1 << 30                   # bytes that the engine `tilewright_read` reads


def _tilewright(threads: int, folder: str, weights: str) -> Prepared:
    import tilewright as tw
    from tilewright.frontend.llama import load_llama
    tw.set_num_threads(threads)
    data = np.load(Path(folder, "data.npz"))
    start = time.perf_counter()
    decoder = load_llama(folder, weights=weights, target=f"llvm -num-cores={threads}")
    scores = decoder(WORDS).numpy()
    first = time.perf_counter() - start
    decoder(np.arange(PAST))
    start = time.perf_counter()
    decoder([7])
    facts = {"first_seconds": first, "next_seconds": time.perf_counter() - start, "difference": float(
        np.abs(scores - data["scores"]).max() / np.abs(data["scores"]).max())}
    words = decoder.config.words * decoder.config.width * 4

    def word() -> None:
        decoder.reset(PAST)
        decoder([7])
    return word, {**facts, "bytes": decoder.nbytes - words}


def prepare_tilewright_float32(threads: int, folder: str) -> Prepared:
    return _tilewright(threads, folder, "float32")


def prepare_tilewright_int8(threads: int, folder: str) -> Prepared:
    return _tilewright(threads, folder, "int8")


def prepare_tilewright_int4(threads: int, folder: str) -> Prepared:
    return _tilewright(threads, folder, "int4")


def prepare_tilewright_read(threads: int, folder: str) -> Prepared:
    """Sums of the rows of an array that no cache holds: what memory gives to these threads."""
    import tilewright as tw
    from tilewright import te, topi
    tw.set_num_threads(threads)
    x = te.placeholder((READ // (4 << 14), 1 << 14), name="X")
    f = tw.compile([x, topi.sum(x, axis=1)], target=f"llvm -num-cores={threads}")
    a, b = tw.nd.array(np.ones((READ // (4 << 14), 1 << 14), "float32")), tw.nd.array(
        np.zeros(READ // (4 << 14), "float32"))
    return lambda: f(a, b), {"bytes": READ, "difference": 0.0, "first_seconds": 0.0, "next_seconds": 0.0}


def prepare_torch(threads: int, folder: str) -> Prepared:
    import torch
    from transformers import DynamicCache, LlamaForCausalLM
    torch.set_num_threads(threads)
    start = time.perf_counter()
    model = LlamaForCausalLM.from_pretrained(folder, attn_implementation="sdpa").eval()
    with torch.inference_mode():
        model(torch.tensor([WORDS]))
        first = time.perf_counter() - start
        cache = DynamicCache()
        model(torch.arange(PAST)[None], past_key_values=cache)

    def word() -> None:
        with torch.inference_mode():
            model(torch.tensor([[7]]), past_key_values=cache)
            cache.crop(-1)
    start = time.perf_counter()
    word()
    held = sum(p.numel() * p.element_size() for n, p in model.named_parameters() if "embed" not in n)
    return word, {"bytes": held, "difference": 0.0, "first_seconds": first, "next_seconds": time.perf_counter() - start}


def main() -> None:
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM
    layers, folder = int(sys.argv[1]), Path(sys.argv[2])
    torch.manual_seed(0)
    model = LlamaForCausalLM(LlamaConfig(hidden_size=2048, intermediate_size=5632, num_hidden_layers=layers,
                                         vocab_size=32000, num_attention_heads=32, num_key_value_heads=4)).eval()
    model.save_pretrained(folder)
    with torch.inference_mode():
        np.savez(folder / "data.npz", scores=model(torch.tensor([WORDS])).logits[0, -1].numpy())


if __name__ == "__main__":
    main()
