"""What the tests would miss: `python -m tests.fuzz.compiler_mutants --mutants 400 --seed 0 --map FOLDER --out FILE`.

A copy of the repository gets one defect at a time (compiler_mutations.py). The tests that run the changed line, by a
map that `python -m tests.fuzz.coverage_map FOLDER` has made, run until one fails; then random programs for a while.
What survives is printed with its diff. Results are lines of JSON in FILE; mutants that are there are left out.
"""
from __future__ import annotations

import difflib
import functools
import json
import multiprocessing
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from .compiler_mutations import Mutation, modules, mutations
from .coverage_map import ROOT, CoverageMap

COPIED = ("tilewright", "tests", "docs", "benchmarks", "README.md", "pyproject.toml", "Makefile", "LICENSE")
MEMORY = 12 << 30                                      # bytes of address space for a run
_FUZZ = (sys.executable, "-m", "tests.fuzz.run", "--first", "--jobs", "1", "--no-details", "--limit", "60")
SLACK = 40.0                                           # seconds that a run may take beside its tests


def drawn(count: int, seed: int, root: Path = ROOT) -> list[Mutation]:
    """`count` mutations: first an operator, then a place, so that rare operators take part."""
    every = {operator: list(places) for operator, places in _by_operator(root).items()}
    rng = random.Random(seed)
    for places in every.values():
        rng.shuffle(places)
    out: list[Mutation] = []
    while len(out) < count and any(every.values()):
        operator = rng.choice([o for o, places in sorted(every.items()) if places])
        out.append(every[operator].pop())
    return out


@functools.cache
def _by_operator(root: Path) -> dict[str, list[Mutation]]:
    out: dict[str, list[Mutation]] = {}
    for path in modules(root):
        for m in mutations(str(path.relative_to(root)), path.read_text()):
            out.setdefault(m.operator, []).append(m)
    return out


def diff_of(m: Mutation, source: str) -> str:
    lines = difflib.unified_diff(source.splitlines(), m.apply(source).splitlines(), m.path, m.path, lineterm="", n=1)
    return "\n".join(lines)


@dataclass
class Limits:
    """Seconds: of the tests of one mutant by the map, and of random programs."""
    suite: float
    fuzz: float


class Place:
    """A copy of the repository in which mutants run, one at a time."""

    def __init__(self, folder: Path) -> None:
        self.root = folder
        self.sound = {"tests", "the run"}              # what does not fail without a defect, or broke down as a whole
        self.broken: set[str] = set()                  # those that do: they say nothing
        folder.mkdir(exist_ok=True)
        for name in COPIED:
            source = ROOT / name
            if source.is_dir():
                shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
            elif source.exists():
                shutil.copy(source, folder / name)

    def judge(self, m: Mutation, known: CoverageMap, limits: Limits) -> dict[str, Any]:
        """The verdict on a mutant: "import", "test", "slow", "fuzz" or "survived"; by: the test or program, which does
        not fail without the defect."""
        file = self.root / m.path
        source = file.read_text()
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        start = time.monotonic()
        while True:
            self._write(file, m.apply(source))
            try:
                verdict, by = self._verdict(m, known, limits)
            finally:
                self._write(file, source)
            if verdict not in ("test", "fuzz") or self._is_sound(by):
                break
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return {"file": m.path, "line": m.first, "operator": m.operator, "verdict": verdict, "by": by,
                "diff": diff_of(m, source), "seconds": round(time.monotonic() - start, 1),
                "cpu": round(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, 1)}

    def _is_sound(self, by: str) -> bool:
        """Whether what failed passes on the repository as it is."""
        if by not in self.sound | self.broken:
            kind, _, seed = by.partition(" ")
            command = ([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", by] if "::" in by or not seed
                       else [*_FUZZ, "--kind", kind, "--seed", seed, "--programs", "1"])
            status, _ = self.run(command, 10 * SLACK)
            (self.broken if status else self.sound).add(by)
        return by in self.sound

    def _write(self, file: Path, text: str) -> None:
        """A module with nothing compiled of it left: times of files do not tell two changes in a second apart."""
        file.write_text(text)
        for compiled in (file.parent / "__pycache__").glob(f"{file.stem}.*.pyc"):
            compiled.unlink()

    def _verdict(self, m: Mutation, known: CoverageMap, limits: Limits) -> tuple[str, str]:
        status, _ = self.run([sys.executable, "-c", "import tilewright, tilewright.te, tilewright.graph"], SLACK)
        if status:
            return "import", ""
        tests, spent = [], 0.0
        for node, seconds in known.tests(m.path, m.first, m.last, m.top):
            if spent + seconds > limits.suite:
                break
            if node in self.broken:
                continue
            tests.append(node)
            spent += seconds
        if tests:
            status, text = self.run([sys.executable, "-m", "pytest", "-q", "-x", "--no-header", "--tb=line", "-p",
                                     "no:cacheprovider", *tests], SLACK + 4 * spent)
            if status not in (0, 5):
                return ("slow" if status is None else "test"), _failed(text)
        command = [*_FUZZ, "--programs", "100000", "--seconds", str(limits.fuzz)]
        status, text = self.run(command, SLACK + 2 * limits.fuzz)
        if status is None:
            return "slow", ""
        found = re.match(r"\w+ \d+(?=:)", text)
        program = found.group() if found else "the run"
        return ("fuzz", program) if status and program not in self.broken else ("survived", f"{len(tests)} tests")

    def run(self, command: Sequence[str], limit: float) -> tuple[int | None, str]:
        """(exit status, what it printed); None after the limit, when all of its processes have been ended."""
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(self.root), os.environ.get("PYTHONPATH", "")]),
                       "TILEWRIGHT_CACHE_DIR": str(self.root / "cache"), "OPENBLAS_NUM_THREADS": "1"}
        process = subprocess.Popen(command, cwd=self.root, env=environment, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True, start_new_session=True, preexec_fn=_bounded)
        try:
            text, _ = process.communicate(timeout=limit)
            return process.returncode, text
        except subprocess.TimeoutExpired:
            return None, ""
        finally:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()


def _bounded() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def _failed(text: str) -> str:
    """The first test, or test file, that pytest names as failed."""
    found = [line for line in text.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return found[0].split(" ", 1)[1].split(" - ")[0] if found else "tests"


_here: dict[str, Any] = {}                             # of a worker process: its Place, the map, the limits


def _start(folders: Any, known: CoverageMap, limits: Limits) -> None:
    _here.update(place=Place(Path(folders.get())), known=known, limits=limits)


def _judge(number: int, m: Mutation) -> dict[str, Any]:
    return {"mutant": number, **_here["place"].judge(m, _here["known"], _here["limits"])}


def run_mutants(chosen: Sequence[tuple[int, Mutation]], known: CoverageMap, limits: Limits, jobs: int,
                out: Path) -> None:
    """Append the verdict of each to `out`, as they come."""
    with tempfile.TemporaryDirectory() as folder:
        folders = multiprocessing.Queue()              # type: ignore[var-annotated]
        for k in range(jobs):
            folders.put(os.path.join(folder, f"copy{k}"))
        with ProcessPoolExecutor(jobs, initializer=_start, initargs=(folders, known, limits)) as pool:
            for done in as_completed([pool.submit(_judge, number, m) for number, m in chosen]):
                r = done.result()
                with out.open("a") as f:
                    f.write(json.dumps(r) + "\n")
                print(f"{r['mutant']}: {r['operator']}, {r['file']}:{r['line']}: {r['verdict']} {r['by'][:120]} "
                      f"({r['seconds']} s, {r['cpu']} of CPU)", flush=True)


def summary(results: Sequence[dict[str, Any]]) -> str:
    verdicts = Counter(r["verdict"] for r in results)
    caught = len(results) - verdicts["survived"]
    cpu = sum(r["cpu"] for r in results) / max(len(results), 1)
    lines = [f"{len(results)} mutants, {caught} caught ({caught / max(len(results), 1):.1%}), {cpu:.0f} s of CPU each: "
             + ", ".join(f"{v} {n}" for v, n in verdicts.most_common()),
             "operator              mutants  survived"]
    for operator, n in sorted(Counter(r["operator"] for r in results).items()):
        left = sum(r["operator"] == operator and r["verdict"] == "survived" for r in results)
        lines.append(f"{operator:22}{n:7}{left:10}")
    survivors = [r for r in results if r["verdict"] == "survived"]
    lines += [f"\n{r['mutant']}: {r['operator']}, {r['by']}\n{r['diff']}" for r in survivors]
    return "\n".join(lines)


@click.command()
@click.option("--mutants", default=400, show_default=True, help="Number of mutants.")
@click.option("--seed", default=0, show_default=True, help="What the places are drawn with.")
@click.option("--map", "folder", required=True, type=click.Path(path_type=Path, exists=True), help="The coverage map.")
@click.option("--out", required=True, type=click.Path(path_type=Path), help="File of results; a run goes on with it.")
@click.option("--jobs", default=2, show_default=True, help="Processes.")
@click.option("--suite-seconds", default=240.0, show_default=True, help="Of the tests of one mutant.")
@click.option("--fuzz-seconds", default=60.0, show_default=True, help="Of random programs, where no test fails.")
def main(mutants: int, seed: int, folder: Path, out: Path, jobs: int, suite_seconds: float,
         fuzz_seconds: float) -> None:
    """Plant defects in copies of the compiler and see which are caught."""
    done = {json.loads(line)["mutant"] for line in out.read_text().splitlines()} if out.exists() else set()
    chosen = [(k, m) for k, m in enumerate(drawn(mutants, seed)) if k not in done]
    run_mutants(chosen, CoverageMap(folder), Limits(suite_seconds, fuzz_seconds), jobs, out)
    results = [json.loads(line) for line in out.read_text().splitlines()]
    print(summary(sorted(results, key=lambda r: r["mutant"])))


if __name__ == "__main__":
    main()
