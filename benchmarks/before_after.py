"""Two checkouts of Tilewright beside each other: what a change costs or gains, in one run.

    python benchmarks/before_after.py OLD [--rounds 7] [--only matmul]

OLD is a checkout of another commit (`git worktree add ../old COMMIT`). Each case is prepared by both, by their own
benchmarks' files, and called in turn; what is printed is the median of the rounds' ratios, time of this checkout over
time of OLD, with the quartiles. Then the processor time that fresh processes take for the import, for a first build of
a tiled matrix product without any cache, and for a call; and what each primitive costs (benchmarks/primitives.py).
Above 1 this checkout is slower.
"""
from __future__ import annotations

import argparse
import functools
import math
import os
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import harness
from low_bit_matmul import CASES as LOW_BIT
from matmul import MLP, SQUARE

HERE = Path(__file__).resolve().parents[1]
PRODUCTS = [(name, dict(zip(("m", "k", "n", "ta", "tb"), shape))) for name, *shape in SQUARE + MLP]

# module, engine, threads, cases
TIMED: list[tuple[str, str, int, list[tuple[str, dict[str, Any]]]]] = [
    *(("matmul", "tilewright", threads, PRODUCTS) for threads in (1, 2)),
    *(("matmul", "tilewright_rules", threads, PRODUCTS) for threads in (1, 2)),
    ("matmul", "tilewright_seed", 1, PRODUCTS[:3]),
    ("low_bit_matmul", "tilewright", 1, [(case, {"size": "512", "case": case}) for case in LOW_BIT]),
    *(("lstm", "tilewright", threads, [("lstm", {"steps": 128, "batch": 32, "width": 256})]) for threads in (1, 2)),
    *(("mnist_mlp", "tilewright", threads, [(f"epoch by {b}", {"batch": b, "data": None}) for b in (1000, 100)])
      for threads in (1, 2)),
]
FRESH = {
    "import tilewright": ("", "import tilewright.te, tilewright.schedule, tilewright.driver"),
    "build of a tiled product": ("""
import tilewright as tw
from tilewright import te
a, b = (te.placeholder((512, 512), name=n) for n in "AB")
k = te.reduce_axis((0, 512), name="k")
c = te.compute((512, 512), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
""", """
s = te.create_schedule(c.op)
xo, yo, xi, yi = s[c].tile(*c.op.axis, 32, 32)
ko, ki = s[c].split(k, 4)
s[c].reorder(xo, yo, ko, xi, ki, yi)
s[c].vectorize(yi)
s[c].parallel(xo)
tw.build(s, [a, b, c])
"""),
    "100,000 calls of a function": ("""
import numpy as np, tilewright as tw
from tilewright import te
x = te.placeholder((4,), name="X")
f = tw.build(te.create_schedule((y := te.compute((4,), lambda i: x[i] + 1.0, name="Y")).op), [x, y])
args = tw.runtime.array(np.ones(4, "float32")), tw.runtime.array(np.ones(4, "float32"))
f = getattr(f, "entry", None) or f
f(*args)
""", "for _ in range(100_000): f(*args)"),
}


def environment(tree: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(tree), "TILEWRIGHT_CACHE": "0"}


class Tree(harness.Worker):
    """A worker of one checkout, with its own package and its own benchmarks."""

    def __init__(self, tree: Path, module: str, engine: str, threads: int) -> None:
        self.engine = engine
        self.process = subprocess.Popen(
            [sys.executable, str(tree / "benchmarks" / "worker.py"), module, engine, str(threads)],
            env=environment(tree), text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)


def quartiles(ratios: list[float]) -> str:
    low, middle, high = statistics.quantiles(ratios, n=4)
    return f"{middle:6.3f}  ({low:.3f} to {high:.3f})"


def in_turn(case: str, measure: Callable[[int], float], rounds: int) -> tuple[float, list[float]]:
    """The median of new / old, round by round, and the medians of both; measure(0) is of OLD, measure(1) of this.

    Which of the two is first changes from round to round.
    """
    pairs = [{side: measure(side) for side in ((0, 1) if k % 2 else (1, 0))} for k in range(rounds)]
    ratios = [pair[1] / pair[0] for pair in pairs]
    print(f"  {case:34}{quartiles(ratios)}", flush=True)
    return statistics.median(ratios), [statistics.median(pair[side] for pair in pairs) for side in (0, 1)]


def median_call(workers: list[Tree], calls: int, side: int) -> float:
    return statistics.median(workers[side].ask(run=calls)["seconds"])


def compare_kernels(old: Path, rounds: int, only: str) -> list[float]:
    out = []
    for module, engine, threads, cases in TIMED:
        if only not in module:
            continue
        print(f"{module}, {engine}, {threads} threads")
        workers = [Tree(tree, module, engine, threads) for tree in (old, HERE)]
        for name, setup in cases:
            answers = [w.ask(setup=setup) for w in workers]
            if any("error" in a for a in answers):
                print(f"  {name}: {answers}")
                continue
            each = max(min(w.ask(run=3)["seconds"]) for w in workers)
            measure = functools.partial(median_call, workers, max(1, min(500, int(0.15 / each))))
            out.append(in_turn(name, measure, rounds)[0])
        harness.close(workers)
    return out


def fresh_seconds(trees: tuple[Path, Path], before: str, code: str, side: int) -> float:
    """Processor time of some code in a process of its own, without what stands before it."""
    text = f"{before}\nimport time\nstart = time.process_time()\n{code}\nprint(time.process_time() - start)"
    return float(subprocess.run([sys.executable, "-c", text], env=environment(trees[side]), capture_output=True,
                                text=True, check=True).stdout)


def compare_processes(old: Path, rounds: int) -> None:
    print("fresh processes, processor time")
    for name, (before, code) in FRESH.items():
        medians = in_turn(name, functools.partial(fresh_seconds, (old, HERE), before, code), rounds)[1]
        print(f"    medians: {1e3 * medians[0]:.0f} ms of OLD, {1e3 * medians[1]:.0f} ms of this")


def primitive_times(tree: Path) -> dict[str, float]:
    """Least processor time of each primitive, in milliseconds."""
    text = subprocess.run([sys.executable, str(tree / "benchmarks" / "primitives.py")], env=environment(tree),
                          capture_output=True, text=True, check=True).stdout
    return {m[1].strip(): float(m[2]) for m in re.finditer(r"^(\S.*?)\s+[\d.]+\s+([\d.]+)\s*$", text, re.MULTILINE)}


def compare_primitives(old: Path, rounds: int) -> None:
    print("primitives, least processor time")
    runs = {tree: [primitive_times(tree) for _ in range(rounds)] for tree in (old, HERE)}
    least = {tree: {name: min(r[name] for r in found) for name in found[0]} for tree, found in runs.items()}
    ratios = {name: least[HERE][name] / least[old][name] for name in least[old].keys() & least[HERE].keys()}
    for name, ratio in sorted(ratios.items(), key=lambda item: -item[1])[:8]:
        print(f"  {name:34}{ratio:6.3f}  ({least[HERE][name]:.3f} ms)")
    print(f"  geometric mean of {len(ratios)}: {statistics.geometric_mean(ratios.values()):.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("old", type=Path, help="the other checkout")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", default="", help="kernels of modules with this in their name, and nothing else")
    options = parser.parse_args()
    old, start = options.old.resolve(), time.time()
    ratios = compare_kernels(old, options.rounds, options.only)
    if ratios:
        print(f"kernels: geometric mean of {len(ratios)}: {math.exp(statistics.fmean(map(math.log, ratios))):.3f}, "
              f"worst {max(ratios):.3f}")
    if not options.only:
        compare_processes(old, options.rounds)
        compare_primitives(old, 3)
    print(f"{time.time() - start:.0f} s")


if __name__ == "__main__":
    main()
