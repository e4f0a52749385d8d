"""Engines in processes of their own, run in turn: round after round, every engine once, medians and ratios."""
from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PAUSE = 0.3          # seconds between engines: threads of the one before may go on spinning for a while


class Worker:
    """A process that runs one engine (see worker.py)."""

    def __init__(self, python: str, module: str, engine: str, threads: int) -> None:
        env = {k: v for k, v in os.environ.items() if k != "OPENBLAS_CORETYPE"}
        env |= dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(threads))
        self.engine = engine
        self.process = subprocess.Popen(
            [python, str(HERE / "worker.py"), module, engine, str(threads)], env=env, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)

    def ask(self, **command: Any) -> dict[str, Any]:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        return json.loads(line) if line else {"error": "the process died"}

    def close(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()
        self.process.wait(timeout=60)


def start(module: str, engines: Sequence[str], threads: int, peers: str | None) -> list[Worker]:
    """Workers for the engines; all but `tilewright...` need the peers' Python."""
    own = [e for e in engines if e.startswith("tilewright")]
    others = [e for e in engines if e not in own] if peers else []
    if len(others) < len(engines) - len(own):
        print("no --peers PYTHON given: only Tilewright is measured")
    return [Worker(sys.executable if e in own else str(peers), module, e, threads)
            for e in engines if e in own + others]


def interleave(workers: Sequence[Worker], setup: Mapping[str, Any], rounds: int,
               inner_seconds: float = 0.1) -> dict[str, float]:
    """Median seconds per call of every engine on one case; engines take turns for `rounds` rounds.

    An engine that refuses the case is left out, with its error printed.
    """
    ready: list[tuple[Worker, int]] = []
    for w in workers:
        answer = w.ask(setup=dict(setup))
        if "error" not in answer:
            answer = w.ask(run=2)
        if "error" in answer:
            print(f"  {w.engine}: {answer['error'][:150]}")
            continue
        each = min(answer["seconds"])
        ready.append((w, max(1, min(200, int(inner_seconds / max(each, 1e-6))))))
    samples: dict[str, list[float]] = {w.engine: [] for w, _ in ready}
    for _ in range(rounds):
        for w, inner in ready:
            time.sleep(PAUSE)
            samples[w.engine].append(statistics.median(w.ask(run=inner)["seconds"]))
    return {name: statistics.median(values) for name, values in samples.items()}


def close(workers: Sequence[Worker]) -> None:
    for w in workers:
        w.close()
