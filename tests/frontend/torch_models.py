"""Models with random weights, compiled and compared with PyTorch: `python -m tests.frontend.torch_models`.

Each goes through torch.export and through torch.compile with sizes as variables, and is compared at four sizes: results
within 1e-4 of the largest value. A line says the greatest difference, the sizes that vary, how many graphs dynamo made
of the model (one more for a batch of 1, of which it makes constants), and the seconds to the first result.

    python -m tests.frontend.torch_models [NAME ...] [--export] [--compile]
"""
from __future__ import annotations

import argparse
import sys
import time
import traceback
import warnings

import torch
import torch._dynamo
from torch import nn
from torch.export import Dim

from tests.frontend.torch_networks import MobileNetV2, ResNet
from tilewright.frontend import torch as frontend

TOLERANCE = 1e-4
BATCH, SEQUENCE = Dim("batch", min=1, max=64), Dim("sequence", min=2, max=64)


class First(nn.Module):
    """A model of transformers with keywords for its arguments and one tensor for its result."""

    def __init__(self, model, names, result):
        super().__init__()
        self.model, self.names, self.result = model, names, result

    def forward(self, *arguments):
        return getattr(self.model(**dict(zip(self.names, arguments)), return_dict=True), self.result)


def tokens(batch, sequence, vocabulary=99):
    return torch.randint(0, vocabulary, (batch, sequence)), torch.ones(batch, sequence, dtype=torch.int64)


def texts(batch, sequence):
    ids, mask = tokens(batch, sequence)
    mask[0, sequence - 1] = 0
    return ids, mask


def pictures(size):
    return lambda batch, sequence: (torch.randn(batch, 3, size, size),)


def _text(name, config, model, result="last_hidden_state", **sizes):
    import transformers as t
    made = getattr(t, model)(getattr(t, config)(vocab_size=99, **sizes)).eval()
    return First(made, ("input_ids", "attention_mask"), result), texts, ({0: BATCH, 1: SEQUENCE},) * 2


SMALL = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
GROUPED = {**SMALL, "num_key_value_heads": 2, "max_position_embeddings": 128}


def bert(): return _text("bert", "BertConfig", "BertModel", **SMALL, max_position_embeddings=80)
def roberta(): return _text("roberta", "RobertaConfig", "RobertaModel", **SMALL, max_position_embeddings=80)
def distilbert(): return _text("distilbert", "DistilBertConfig", "DistilBertModel", dim=32, n_layers=2, n_heads=4,
                               hidden_dim=64, max_position_embeddings=80)
def gpt2(): return _text("gpt2", "GPT2Config", "GPT2LMHeadModel", "logits", n_embd=32, n_layer=2, n_head=4,
                         n_positions=80, use_cache=False, bos_token_id=0, eos_token_id=0)
def llama(): return _text("llama", "LlamaConfig", "LlamaForCausalLM", "logits", **GROUPED, use_cache=False)
def qwen2(): return _text("qwen2", "Qwen2Config", "Qwen2ForCausalLM", "logits", **GROUPED, use_cache=False)
def mistral(): return _text("mistral", "MistralConfig", "MistralForCausalLM", "logits", **GROUPED, use_cache=False)
def t5_encoder(): return _text("t5", "T5Config", "T5EncoderModel", d_model=32, d_kv=8, d_ff=64, num_layers=2,
                               num_heads=4)


def t5():
    import transformers as t
    config = t.T5Config(vocab_size=99, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, use_cache=False)
    model = First(t.T5ForConditionalGeneration(config).eval(), ("input_ids", "attention_mask", "decoder_input_ids"),
                  "logits")
    return model, lambda b, s: (*texts(b, s), tokens(b, 7)[0]), ({0: BATCH, 1: SEQUENCE},) * 2 + ({0: BATCH},)


def _pictures(config, model, result, size, **sizes):
    import transformers as t
    made = getattr(t, model)(getattr(t, config)(**sizes)).eval()
    return First(made, ("pixel_values",), result), pictures(size), ({0: BATCH},)


def vit(): return _pictures("ViTConfig", "ViTModel", "last_hidden_state", 32, **SMALL, image_size=32, patch_size=8)
def convnext(): return _pictures("ConvNextConfig", "ConvNextModel", "last_hidden_state", 64,
                                 hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 2, 1])
def swin(): return _pictures("SwinConfig", "SwinModel", "last_hidden_state", 64, image_size=64, patch_size=4,
                             embed_dim=16, depths=[2, 2], num_heads=[2, 4], window_size=4)
def resnet_transformers(): return _pictures("ResNetConfig", "ResNetModel", "pooler_output", 64, embedding_size=8,
                                            hidden_sizes=[8, 16], depths=[2, 1], layer_type="basic")


def clip():
    import transformers as t
    shared = {**SMALL, "projection_dim": 16}
    config = t.CLIPConfig(text_config={**shared, "vocab_size": 99, "max_position_embeddings": 70, "eos_token_id": 98},
                          vision_config={**shared, "image_size": 32, "patch_size": 8}, projection_dim=16)
    model = First(t.CLIPModel(config).eval(), ("input_ids", "attention_mask", "pixel_values"), "logits_per_image")
    return (model, lambda b, s: (*texts(b, s), torch.randn(b, 3, 32, 32)),
            ({0: BATCH, 1: SEQUENCE}, {0: BATCH, 1: SEQUENCE}, {0: BATCH}))


def whisper():
    import transformers as t
    from transformers.models.whisper.modeling_whisper import WhisperEncoder
    config = t.WhisperConfig(vocab_size=99, d_model=32, encoder_layers=2, encoder_attention_heads=4, encoder_ffn_dim=64,
                             num_mel_bins=16, max_source_positions=24, pad_token_id=0)
    return First(WhisperEncoder(config).eval(), ("input_features",), "last_hidden_state"), \
        lambda b, s: (torch.randn(b, 16, 48),), ({0: BATCH},)


def resnet(): return ResNet().eval(), pictures(64), ({0: BATCH},)
def mobilenet_v2(): return MobileNetV2().eval(), pictures(64), ({0: BATCH},)


MODELS = {f.__name__: f for f in (bert, distilbert, roberta, gpt2, llama, qwen2, mistral, t5_encoder, t5, vit, clip,
                                  whisper, convnext, swin, resnet, resnet_transformers, mobilenet_v2)}


def difference(got, wanted):
    """The largest difference, as a part of the largest value."""
    if got.shape != wanted.shape or got.dtype != wanted.dtype:
        return float("inf")
    return ((got - wanted).abs().max() / wanted.abs().max().clamp(min=1.0)).item()


def through_export(model, inputs, dynamic):
    shapes = (dynamic,) if isinstance(model, First) else dynamic        # First takes *arguments
    return frontend.compile_exported_program(torch.export.export(model, inputs(2, 11), dynamic_shapes=shapes))


def through_compile(model, inputs, dynamic):
    """torch.compile with the same sizes as variables: all that texts have, the first one of pictures."""
    run = torch.compile(model, backend=frontend.backend, dynamic=True if any(map(has_sequence, dynamic)) else None)

    def marked(*arguments):
        for x, sizes in zip(arguments, dynamic):
            if len(x) > 1 and not has_sequence(sizes):
                torch._dynamo.mark_dynamic(x, 0)
        return run(*arguments)
    return marked


def has_sequence(sizes):
    return SEQUENCE in sizes.values()


PATHS = {"torch.export": through_export, "torch.compile": through_compile}
SIZES = ((2, 11), (3, 17), (1, 5), (5, 33))            # batch and sequence of the inputs that are compared


def check(name, path):
    """(greatest difference, names of the sizes that vary, graphs that dynamo made, seconds to the first result)"""
    torch.manual_seed(0)
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    model, inputs, dynamic = MODELS[name]()
    start = time.time()
    run = PATHS[path](model, inputs, dynamic)
    worst, seconds = 0.0, None
    for batch, sequence in SIZES:
        arguments = inputs(batch, sequence)
        with torch.no_grad():
            got = run(*arguments)
            seconds = time.time() - start if seconds is None else seconds
            worst = max(worst, difference(got, model(*arguments)))
    names = dict.fromkeys(d.__name__ for sizes in dynamic for d in sizes.values())
    return worst, ", ".join(names), torch._dynamo.utils.counters["stats"]["unique_graphs"], seconds


ROW = "{:20} {:14} {:>10}  {:16} {:>6} {:>8}"


def main(arguments=None):
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--export", action="store_true")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args(arguments)
    warnings.filterwarnings("ignore")
    both = options.export == options.compile
    paths = [p for p, on in zip(PATHS, (options.export, options.compile)) if on or both]
    failed = 0
    print(ROW.format("model", "path", "difference", "sizes that vary", "graphs", "seconds"), flush=True)
    for name in options.names or MODELS:
        for path in paths:
            try:
                worst, sizes, graphs, seconds = check(name, path)
            except Exception as error:
                if options.verbose:
                    traceback.print_exc()
                failed += 1
                print(f"{name:20} {path:14} FAILED: {type(error).__name__}: {str(error)[:600]}", flush=True)
                continue
            failed += not worst <= TOLERANCE
            print(ROW.format(name, path, f"{worst:.1e}", sizes, graphs or "", f"{seconds:.1f}")
                  + ("" if worst <= TOLERANCE else "  FAILED"), flush=True)
    print(f"{failed} failed")
    return failed


if __name__ == "__main__":
    sys.exit(main())
