"""One build of a model for all sizes beside builds for constant ones.

    python benchmarks/one_build.py --peers /tmp/peers/bin/python [--models bert gpt2] [--threads 2]

A transformer with random weights is compiled once for any batch and any length, and once for each pair of sizes. Both
run in turn; what is printed is the median time of each and the ratio, time of the constant build over that of the one
for all: 1 where sizes that are known gain nothing. Results that differ, or kernels that are compiled after the first
build, are errors, and make the exit status 1.
"""
from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import harness
import numpy as np

SIZES = ((1, 16), (1, 64), (1, 128), (1, 200), (1, 512), (2, 37), (4, 64), (8, 16), (8, 128))
WORDS = 30000


def seconds_in_turn(calls: Sequence[Callable[[Any], object]], x: Any, rounds: int) -> list[float]:
    """The median time of each call on x; they take turns."""
    samples: list[list[float]] = [[] for _ in calls]
    for _ in range(rounds):
        for call, own in zip(calls, samples):
            start = time.perf_counter()
            call(x)
            own.append(time.perf_counter() - start)
    return [statistics.median(s) for s in samples]


def measure(name: str, options: argparse.Namespace) -> bool:
    """Print the rows of a model; whether all was right."""
    import tilewright as tw
    from tilewright.lowering import PassRecord
    tw.set_num_threads(options.threads)
    target = f"llvm -num-cores={options.threads}"
    good, ratios = True, []
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([options.peers, "-m", "model_cases.networks", name, "any", folder], check=True,
                       cwd=harness.HERE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        path, record, start = str(Path(folder, "model.onnx")), PassRecord(), time.perf_counter()
        run = tw.compile(path, target=target)
        print(f"{name}, {options.threads} thread(s): one build for all sizes in {time.perf_counter() - start:.1f} s")
        for batch, length in SIZES:
            x = tw.nd.array(np.random.default_rng(0).integers(0, WORDS, (batch, length)))
            with tw.pass_options(instruments=[record]):
                got = np.asarray(run(x))
            one = tw.compile(path, target=target, shapes={"x": (batch, length)})
            wanted = np.asarray(one(x))
            error = float(np.abs(got - wanted).max() / np.abs(wanted).max())
            fixed, free = seconds_in_turn([one, run], x, options.rounds)
            ratios.append(fixed / free)
            good &= error < 1e-4 and not record.steps
            print(f"    batch {batch}, length {length:3d}: constant {fixed * 1e3:9.2f} ms   for all "
                  f"{free * 1e3:9.2f} ms   ratio {ratios[-1]:5.3f}   difference {error:.1e}"
                  f"{'   COMPILED' if record.steps else ''}", flush=True)
    print(f"    geometric mean {statistics.geometric_mean(ratios):.3f}, least {min(ratios):.3f}")
    return good


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", required=True, help="a Python with benchmarks/peers.txt installed")
    parser.add_argument("--models", nargs="+", default=["bert", "gpt2"], choices=["bert", "gpt2", "minilm"])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    os.environ["TILEWRIGHT_CACHE"] = "0"
    results = [measure(name, options) for name in options.models]
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main()
