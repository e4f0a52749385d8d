"""What the tests would miss: `python -m tests.fuzz.compiler_mutants --mutants 400 --seed 0 --map FOLDER --out FILE`.

The compiler gets one defect at a time (compiler_mutations.py). The tests that run the changed line, by a map that
`python -m tests.fuzz.coverage_map FOLDER` has made, run until one fails; then random programs for a while. Where the
changed code is that of functions alone, this happens in children of a process that has imported everything and
collected the tests; else in a copy of the repository. What survives is printed with its diff. Results are lines of
JSON in FILE; mutants that are there are left out.
"""
from __future__ import annotations

import difflib
import functools
import itertools
import json
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
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import click

from .compiler_mutations import Mutation, modules, mutations
from .coverage_map import ROOT, CoverageMap
from .kinds.table import check_seed, kind_of
from .planting import Change, Functions, plant
from .warm import BROKEN, FAILED, PASSED, Outcome, Warm, fork, wait

COPIED = ("tilewright", "tests", "docs", "benchmarks", "README.md", "pyproject.toml", "Makefile", "LICENSE")
MEMORY = 12 << 30                                      # bytes of address space for a run
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


class Ground(Protocol):
    """Where a mutant lives."""

    def tests(self, nodes: Sequence[str], limit: float) -> Outcome: ...

    def fuzz(self, seconds: float) -> Outcome:
        """Random programs, until one fails: the name is "KIND SEED"."""


class Child:
    """Functions with changed code, in children of this process."""

    def __init__(self, warm: Warm, changes: list[Change]) -> None:
        self.warm, self.changes = warm, changes

    def tests(self, nodes: Sequence[str], limit: float) -> Outcome:
        return self.warm.run(nodes, limit, lambda: plant(self.changes))

    def fuzz(self, seconds: float) -> Outcome:
        return run_programs((f"{kind_of(seed)} {seed}" for seed in itertools.count()), seconds,
                            lambda: plant(self.changes))


def run_programs(programs: Any, seconds: float, before: Any = lambda: None) -> Outcome:
    """Check programs in a child, one after the other, until one fails or the time is over."""
    with tempfile.TemporaryDirectory() as folder:
        last = Path(folder, "last")

        def child() -> int:
            before()
            end = time.monotonic() + seconds
            for program in programs:
                last.write_text(program)
                kind, seed = program.split()
                if check_seed(kind, int(seed)).kind != "ok":
                    return FAILED
                if time.monotonic() > end:
                    return PASSED
            return PASSED
        status = wait(fork(child), SLACK + 2 * seconds)
        return status, last.read_text() if last.exists() else ""


class Copy:
    """A copy of the repository in a folder, in which a file is changed."""

    def __init__(self, folder: Path, root: Path = ROOT) -> None:
        self.root = folder
        folder.mkdir(exist_ok=True)
        for name in COPIED:
            if (root / name).is_dir():
                shutil.copytree(root / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
            elif (root / name).exists():
                shutil.copy(root / name, folder / name)

    def imports(self, limit: float) -> bool:
        return self.run([sys.executable, "-c", "import tilewright, tilewright.te, tilewright.graph"], limit)[0] == 0

    def tests(self, nodes: Sequence[str], limit: float) -> Outcome:
        status, text = self.run([sys.executable, "-m", "pytest", "-q", "-x", "--no-header", "--tb=line", "-p",
                                 "no:cacheprovider", *nodes], limit)
        return (status if status is None else FAILED if status not in (0, 5) else PASSED), _failed(text)

    def fuzz(self, seconds: float) -> Outcome:
        status, text = self.run([sys.executable, "-m", "tests.fuzz.run", "--first", "--jobs", "1", "--no-details",
                                 "--limit", "60", "--programs", "100000", "--seconds", str(seconds)],
                                SLACK + 2 * seconds)
        found = re.match(r"\w+ \d+(?=:)", text)
        return (status if status is None else FAILED if status else PASSED), found.group() if found else ""

    def run(self, command: Sequence[str], limit: float) -> tuple[int | None, str]:
        """(exit status, what it printed); None after the limit, when all of its processes have been ended."""
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(self.root), os.environ.get("PYTHONPATH", "")]),
                       "TILEWRIGHT_CACHE_DIR": str(self.root / "cache"), "PYTHONDONTWRITEBYTECODE": "1"}
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


class Judge:
    """Says of mutants what catches them. It works in a child for each mutant."""

    def __init__(self, warm: Warm, known: CoverageMap, limits: Limits, folder: Path) -> None:
        self.warm, self.known, self.limits, self.folder = warm, known, limits, folder
        self.functions = Functions()

    def judge(self, m: Mutation, place: int) -> dict[str, Any]:
        """The verdict on a mutant: "import", "test", "slow", "died", "fuzz" or "survived"; by: the test or program,
        which does not fail without the defect."""
        source, start = (ROOT / m.path).read_text(), time.monotonic()
        changes = [] if m.top else self.functions.changes(m, ROOT)
        if changes:
            verdict, by = self._verdict(m, Child(self.warm, changes))
        else:
            copy = Copy(self.folder / str(place))
            (copy.root / m.path).write_text(m.apply(source))
            verdict, by = self._verdict(m, copy) if copy.imports(SLACK) else ("import", "")
            shutil.rmtree(copy.root)
        spent = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        return {"file": m.path, "line": m.first, "operator": m.operator, "verdict": verdict, "by": by,
                "diff": diff_of(m, source), "seconds": round(time.monotonic() - start, 1),
                "cpu": round(sum(u.ru_utime + u.ru_stime for u in spent), 1)}

    def _verdict(self, m: Mutation, ground: Ground) -> tuple[str, str]:
        broken: set[str] = set()                       # what fails without the defect, too
        while True:
            nodes, seconds = self._chosen(m, broken)
            status, by = ground.tests(nodes, SLACK + 4 * seconds) if nodes else (PASSED, "")
            if status is None:
                return "slow", by
            if status == PASSED:
                break
            if by not in self.warm.items or self.warm.run([by], 10 * SLACK)[0] == PASSED:
                return "died" if status == BROKEN else "test", by
            broken.add(by)
        status, by = ground.fuzz(self.limits.fuzz) if self.limits.fuzz else (PASSED, "")
        if status is None:
            return "slow", by
        if status != PASSED and (not by or run_programs([by], 10 * SLACK)[0] == PASSED):
            return "fuzz", by
        return "survived", f"{len(nodes)} tests"

    def _chosen(self, m: Mutation, broken: set[str]) -> tuple[list[str], float]:
        """The tests of a mutant, and the seconds that they take."""
        tests, spent = [], 0.0
        for node, seconds in self.known.tests(m.path, m.first, m.last, m.top):
            if spent + seconds > self.limits.suite:
                break
            if node not in broken and node in self.warm.items:
                tests.append(node)
                spent += seconds
        return tests, spent


def run_mutants(chosen: Sequence[tuple[int, Mutation]], folder: Path, limits: Limits, jobs: int, out: Path,
                tests: Sequence[str] = ()) -> None:
    """Append the verdict of each to `out`, as they come. folder: of the map; tests: paths, by default the suite."""
    def work(warm: Warm) -> None:
        with tempfile.TemporaryDirectory() as copies:
            judge = Judge(warm, CoverageMap(folder), limits, Path(copies))

            def one(drawn: tuple[int, Mutation], place: int) -> None:
                r = {"mutant": drawn[0], **judge.judge(drawn[1], place)}
                with out.open("a") as f:
                    f.write(json.dumps(r) + "\n")
                print(f"{r['mutant']}: {r['operator']}, {r['file']}:{r['line']}: {r['verdict']} {r['by'][:120]} "
                      f"({r['seconds']} s, {r['cpu']} of CPU)", flush=True)
            warm.each(chosen, jobs, one)
    Warm.serve(work, tests)


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
    if chosen:
        run_mutants(chosen, folder, Limits(suite_seconds, fuzz_seconds), jobs, out)
    results = [json.loads(line) for line in out.read_text().splitlines()]
    print(summary(sorted(results, key=lambda r: r["mutant"])))


if __name__ == "__main__":
    main()
