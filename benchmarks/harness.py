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

    def __init__(self, python: str, module: str, engine: str, threads: int,
                 settings: Mapping[str, str] | None = None) -> None:
        """settings: more variables of its environment."""
        env = {k: v for k, v in os.environ.items() if k != "OPENBLAS_CORETYPE"} | dict(settings or {})
        env |= dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(threads))
        self.engine = engine
        self.process = subprocess.Popen(
            [python, str(HERE / "worker.py"), module, engine, str(threads)], env=env, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)

    def ask(self, **command: Any) -> dict[str, Any]:
        assert self.process.stdin and self.process.stdout
        try:
            self.process.stdin.write(json.dumps(command) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            return {"error": "the process died"}
        line = self.process.stdout.readline()
        return json.loads(line) if line else {"error": "the process died"}

    def close(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()
        self.process.wait(timeout=60)


def start(module: str, engines: Sequence[str], threads: int, peers: str | None,
          settings: Mapping[str, str] | None = None) -> list[Worker]:
    """Workers for the engines; all but `tilewright...` need the peers' Python, and get the settings (see Worker)."""
    own = [e for e in engines if e.startswith("tilewright")]
    others = [e for e in engines if e not in own] if peers else []
    if len(others) < len(engines) - len(own):
        print("no --peers PYTHON given: only Tilewright is measured")
    return [Worker(sys.executable, module, e, threads) if e in own else
            Worker(str(peers), module, e, threads, settings) for e in engines if e in own + others]


def prepare(workers: Sequence[Worker], setup: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """What each engine answers to one case: facts, `seconds` of its first calls; or an `error`."""
    answers = {}
    for w in workers:
        answer = w.ask(setup=dict(setup))
        if "error" not in answer:
            answer |= w.ask(run=2)
        answers[w.engine] = answer
    return answers


def take_turns(workers: Sequence[Worker], answers: Mapping[str, Mapping[str, Any]], rounds: int,
               inner_seconds: float = 0.1, pause: float = PAUSE) -> dict[str, float]:
    """Median seconds per call of every engine that is prepared; they take turns for `rounds` rounds."""
    ready = [(w, max(1, min(200, int(inner_seconds / max(min(answers[w.engine]["seconds"]), 1e-6)))))
             for w in workers if "error" not in answers[w.engine]]
    samples: dict[str, list[float]] = {w.engine: [] for w, _ in ready}
    for _ in range(rounds):
        for w, inner in ready:
            time.sleep(pause)
            samples[w.engine].append(statistics.median(w.ask(run=inner)["seconds"]))
    return {name: statistics.median(values) for name, values in samples.items()}


def interleave(workers: Sequence[Worker], setup: Mapping[str, Any], rounds: int,
               inner_seconds: float = 0.1) -> dict[str, float]:
    """Median seconds per call of every engine on one case; engines take turns for `rounds` rounds.

    An engine that refuses the case is left out, with its error printed.
    """
    answers = prepare(workers, setup)
    for engine, answer in answers.items():
        if "error" in answer:
            print(f"  {engine}: {answer['error'][:150]}")
    return take_turns(workers, answers, rounds, inner_seconds)


def close(workers: Sequence[Worker]) -> None:
    for w in workers:
        w.close()
