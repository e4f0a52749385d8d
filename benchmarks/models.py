"""Whole models beside PyTorch, ONNX Runtime and OpenVINO: latency, time to the first result, memory.

    python benchmarks/models.py --peers /tmp/peers/bin/python [--models resnet18 bert] [--batch 1 8] [--threads 2]

The networks have random weights; every engine gets the same ONNX file, PyTorch the network itself, and
`tilewright_file` the library that `export` wrote of it in another process. Engines run in processes of their own and
take turns; a row has the median of a call and the ratio ours / theirs, below 1 where Tilewright is faster. A result
that differs from PyTorch's is an error, and makes the exit status 1.
"""
from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import harness

NAMES = ("resnet18", "resnet50", "mobilenet_v2", "bert", "gpt2", "minilm")
ENGINES = ("tilewright", "tilewright_file", "onnxruntime", "openvino", "torch", "torch_compiled")


def measure(name: str, batch: int, asked: argparse.Namespace) -> dict[str, Any]:
    """The figures of one model."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([asked.peers, "-m", "model_cases.networks", name, str(batch), folder], check=True,
                       cwd=harness.HERE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        workers = harness.start("model_cases.engines", asked.engines, asked.threads, asked.peers)
        try:
            answers = harness.prepare(workers, {"folder": folder, "name": name})
            seconds = harness.take_turns(workers, answers, asked.rounds, 0.3)
        finally:
            harness.close(workers)
    return {"model": name, "batch": batch, "threads": asked.threads, "seconds": seconds, "answers": answers}


def show(row: dict[str, Any]) -> None:
    ours = row["seconds"].get("tilewright")
    print(f"{row['model']} batch {row['batch']}, {row['threads']} thread(s)")
    for engine, answer in row["answers"].items():
        if "error" in answer:
            print(f"    {engine:16s} {answer['error'][:300]}")
            continue
        t = row["seconds"][engine]
        ratio = "" if ours is None or engine.startswith("tilewright") else f"ours / theirs {ours / t:5.2f}"
        print(f"    {engine:16s} {t * 1e3:9.2f} ms   first result {answer['first_seconds']:6.2f} s   "
              f"{answer['peak_mb']:6.0f} MB   difference {answer['difference']:.1e}   {ratio}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", required=True, help="a Python with benchmarks/peers.txt installed")
    parser.add_argument("--models", nargs="+", default=NAMES, choices=NAMES)
    parser.add_argument("--batch", nargs="+", type=int, default=[1])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--engines", nargs="+", default=ENGINES)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", help="write the rows to this file, a line of JSON each")
    asked = parser.parse_args()
    failed = False
    for name in asked.models:
        for batch in asked.batch:
            row = measure(name, batch, asked)
            show(row)
            failed |= "error" in row["answers"].get("tilewright", {})
            if asked.out:
                with Path(asked.out).open("a") as file:
                    file.write(json.dumps(row) + "\n")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
