"""A table of kernels by the rules of `compile`, beside the machine's roof and the peers.

    python benchmarks/kernels.py --peers /tmp/peers/bin/python [--threads 1 2] [--families products] [--rows REGEX]
    python benchmarks/kernels.py --random 50 --seed 1 ...       rows drawn from the ranges of the families
    python benchmarks/kernels.py --symbolic ...                 leading extents as variables, beside constant ones
    python benchmarks/kernels.py --summarize FILE...            the summary of what --out wrote

A row: µs of a call (medians of interleaved rounds) of Tilewright and of each peer; time of the best peer / ours; the
share of the roof, the larger one of operations / peak and bytes / bandwidth for as many bytes (a function such as exp
counts as one operation); time from te to a callable, without the cache of objects; size of the object. Every result is
compared with NumPy's in float64 before it is timed; a wrong one of Tilewright, or an error, makes the exit status 1.
What each engine is given are inputs, weights too; the peers' processes keep the memory that they free.
--extra adds the largest rows, and those of batch 8; torch_compiled is an engine when --engines names it.
"""
from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import harness
from kernel_cases import FAMILIES, drawn, rows
from kernel_cases.report import Measured, print_row, print_summary, title
from kernel_cases.roof import Roof
from kernel_cases.rows import Row

ENGINES = ["tilewright", "numpy", "torch", "jax", "onnxruntime"]
KEPT_MEMORY = {"GLIBC_TUNABLES": "glibc.malloc.mmap_threshold=4294967295:glibc.malloc.trim_threshold=4294967295"}
PAUSE = {1: 0.01}                  # seconds before each turn: on one thread no other engine's threads go on spinning
INNER_SECONDS = 0.03


class Table:
    """The workers of some engines on some threads; it measures rows."""

    def __init__(self, engines: Sequence[str], threads: int, peers: str | None, rounds: int) -> None:
        self.threads, self.peers, self.rounds, self.roof = threads, peers, rounds, Roof(threads)
        self.workers = self._start(engines)
        self.engines = [w.engine for w in self.workers]

    def _start(self, engines: Sequence[str]) -> list[harness.Worker]:
        return harness.start("kernel_cases.engines", engines, self.threads, self.peers, KEPT_MEMORY)

    def measure(self, family: str, row: Row) -> Measured:
        self.workers = [w if w.process.poll() is None else self._start([w.engine])[0] for w in self.workers]
        answers = harness.prepare(self.workers, row.data())
        seconds = harness.take_turns(self.workers, answers, self.rounds, INNER_SECONDS,
                                     PAUSE.get(self.threads, harness.PAUSE))
        ours = answers["tilewright"]
        least = None if "error" in ours else self.roof.seconds(row.operations, row.nbytes(ours["dtypes"]), row.kind)
        return Measured(family, row.name, self.threads, seconds, {e: a["error"] for e, a in answers.items()
                                                                  if "error" in a}, least,
                        ours.get("compile_seconds"), ours.get("object_bytes"))

    def close(self) -> None:
        harness.close(self.workers)
        self.roof.close()


def chosen(options: argparse.Namespace) -> list[tuple[str, Row]]:
    """The rows that the options ask for."""
    if options.random:
        found = drawn(options.families, options.random, options.seed)
    else:
        found = rows(options.families, options.extra)
    return [(family, row) for family, row in found if re.search(options.rows, row.name)]


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", help="Python of an environment with benchmarks/peers.txt")
    parser.add_argument("--engines", nargs="+", help=f"default: {' '.join(ENGINES)}")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--families", nargs="+", default=list(FAMILIES), choices=list(FAMILIES))
    parser.add_argument("--rows", default="", metavar="REGEX", help="rows whose name has a match")
    parser.add_argument("--extra", action="store_true", help="the largest rows too, and those of batch 8")
    parser.add_argument("--random", type=int, default=0, metavar="N", help="N rows drawn at random instead")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--symbolic", action="store_true", help="leading extents as variables, beside constant ones")
    parser.add_argument("--list", action="store_true", help="the rows' names, and nothing else")
    parser.add_argument("--out", type=Path, help="a file to which each row is added as a line of JSON")
    parser.add_argument("--summarize", type=Path, nargs="+", metavar="FILE", help="of what --out wrote, and no more")
    return parser.parse_args()


def measured(options: argparse.Namespace) -> list[Measured]:
    """Measure the rows that the options ask for, and print and keep each."""
    engines = options.engines or (["tilewright", "tilewright_symbolic"] if options.symbolic else ENGINES)
    engines = engines if "tilewright" in engines else ["tilewright", *engines]
    found = []
    for threads in options.threads:
        table = Table(engines, threads, options.peers, options.rounds)
        print(title(table.engines, threads))
        for family, row in chosen(options):
            m = table.measure(family, row)
            print_row(m, table.engines)
            if options.out:
                with options.out.open("a") as file:
                    file.write(m.line() + "\n")
            found.append(m)
        table.close()
    return found


def main() -> None:
    options = parsed()
    if options.list:
        print("\n".join(f"{family:14} {row.name}" for family, row in chosen(options)))
        return
    lines: list[dict[str, Any]] = [json.loads(line) for path in options.summarize or ()
                                   for line in path.read_text().splitlines()]
    found = [Measured(**line) for line in lines] if options.summarize else measured(options)
    print_summary(found)
    sys.exit(any("tilewright" in m.errors for m in found))


if __name__ == "__main__":
    main()
