"""One word of a language model with 1.1 billion weights, beside PyTorch, and the share of what memory can give.

    python benchmarks/language_models.py --peers /tmp/peers/bin/python [--layers 22] [--threads 2]

A word takes all weights from memory once. A row has the median of a word behind 128 others, the bytes of the weights
over it, and the share of the speed at which the sum of a large array reads memory in the same run. The difference is
that of the first scores from PyTorch's, over the greatest score; matrices in blocks of 8 and 4 bits differ by nature.
"""
from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile

import harness

ENGINES = ("tilewright_read", "tilewright_float32", "tilewright_int8", "tilewright_int4", "torch")
MOST_DIFFERENCE = 1e-3                             # of float32


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", required=True, help="a Python with benchmarks/peers.txt installed")
    parser.add_argument("--layers", type=int, default=22)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--engines", nargs="+", default=ENGINES)
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([asked.peers, "-m", "model_cases.decoders", str(asked.layers), folder], check=True,
                       cwd=harness.HERE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        workers = harness.start("model_cases.decoders", asked.engines, asked.threads, asked.peers)
        try:
            answers = harness.prepare(workers, {"folder": folder})
            seconds = harness.take_turns(workers, answers, asked.rounds, 0.5)
        finally:
            harness.close(workers)
    most = answers["tilewright_read"]["bytes"] / seconds["tilewright_read"] if "tilewright_read" in seconds else 0.0
    failed = False
    for engine, answer in answers.items():
        if "error" in answer:
            failed |= engine.startswith("tilewright")
            print(f"{engine:20s} {answer['error'][:300]}")
            continue
        speed = answer["bytes"] / seconds[engine]
        wrong = answer["difference"] > MOST_DIFFERENCE and engine == "tilewright_float32"
        failed |= wrong
        share = f"{speed / most:5.0%} of reading  " if most else ""
        figures = [f"{seconds[engine] * 1e3:8.2f} ms", f"{answer['bytes'] / 1e9:5.2f} GB", f"{speed / 1e9:5.1f} GB/s",
                   f"{share}first scores {answer['first_seconds']:6.2f} s",
                   f"first word behind others {answer['next_seconds']:5.2f} s",
                   f"difference {answer['difference']:.1e}"]
        print(f"{engine:20s} {'  '.join(figures)}{'  WRONG' if wrong else ''}", flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
