"""Small models of transformers, saved and loaded as decoders: `python -m tests.frontend.llama_models`.

Needs PyTorch and transformers. Prints for each model the greatest difference of scores from PyTorch's, for words that
are read at once, one by one, and some at a time. Exit status 1 where one is above 1e-4.
"""
from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import transformers as t

from tilewright.frontend.llama import load_llama

SIZES = {"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 3, "num_attention_heads": 4,
         "vocab_size": 101, "num_key_value_heads": 2, "max_position_embeddings": 64,
         "initializer_range": 0.2}
LLAMA3 = {"rope_type": "llama3", "rope_theta": 500.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 16}
MODELS = {
    "Llama": lambda: t.LlamaForCausalLM(t.LlamaConfig(**SIZES)),
    "Llama 3, scaled rotations, one matrix of words": lambda: t.LlamaForCausalLM(t.LlamaConfig(
        **SIZES, rope_parameters=LLAMA3, tie_word_embeddings=True)),
    "Llama with terms": lambda: t.LlamaForCausalLM(t.LlamaConfig(**SIZES, attention_bias=True, mlp_bias=True)),
    "Mistral, window of 7": lambda: t.MistralForCausalLM(t.MistralConfig(**SIZES, sliding_window=7)),
    "Mistral, heads of 24": lambda: t.MistralForCausalLM(t.MistralConfig(**SIZES, head_dim=24, sliding_window=None)),
    "Qwen 2, window of 7": lambda: t.Qwen2ForCausalLM(t.Qwen2Config(
        **SIZES, use_sliding_window=True, sliding_window=7, max_window_layers=0)),
    "Qwen 2": lambda: t.Qwen2ForCausalLM(t.Qwen2Config(**SIZES)),
}
PARTS = ([30], [1] * 12, [5, 1, 9, 1, 1, 3])


def difference(make: Callable[[], Any]) -> float:
    """The greatest difference of scores."""
    torch.manual_seed(0)
    model = make().eval()
    with torch.no_grad():
        for name, p in model.named_parameters():
            if name.endswith(("bias", "norm.weight")):
                p.add_(torch.randn_like(p) * 0.1)
    words = np.random.default_rng(1).integers(0, 101, 30)
    with torch.inference_mode():
        wanted = model(torch.tensor(words[None])).logits[0].numpy()
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        decoder = load_llama(folder)
    worst = 0.0
    for parts in PARTS:
        decoder.reset()
        for n in parts:
            at = decoder.length + n
            scores = decoder(words[at - n:at]).numpy()
            worst = max(worst, float(np.abs(scores - wanted[at - 1]).max() / np.abs(wanted[at - 1]).max()))
    return worst


def main() -> None:
    failed = False
    for name, make in MODELS.items():
        worst = difference(make)
        failed |= not worst < 1e-4
        print(f"{name:50s} {worst:.1e}{'' if worst < 1e-4 else '  WRONG'}", flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
