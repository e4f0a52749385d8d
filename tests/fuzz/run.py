"""The long run: `python -m tests.fuzz.run --programs 2000 --seed 0`."""
from __future__ import annotations

import json
import resource
import statistics
import sys
import time
from collections import Counter
from collections.abc import Iterable
from typing import Any

import click

from .check import describe
from .pool import check_seeds
from .schedules import MOVES, PRIMITIVES


class Summary:
    """Counts over the reports of a run."""

    def __init__(self) -> None:
        self.reports: list[dict[str, Any]] = []
        self.accepted: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self.seconds: Counter[str] = Counter()

    def add(self, report: dict[str, Any]) -> None:
        self.reports.append(report)
        self.accepted.update(report["accepted"])
        self.refused.update(report["refused"])
        self.seconds.update(report["seconds"])

    @property
    def failures(self) -> list[dict[str, Any]]:
        return sorted((r for r in self.reports if r["kind"] != "ok"), key=lambda r: r["seed"])

    def share(self, key: str) -> float:
        return sum(bool(r[key]) for r in self.reports) / max(len(self.reports), 1)

    @property
    def median(self) -> float:
        """Accepted primitives of a program."""
        return statistics.median([sum(r["accepted"].values()) for r in self.reports] or [0])

    @property
    def slowest_build(self) -> tuple[float, int]:
        """(seconds, seed) of the program whose build took longest."""
        return max(((r["seconds"].get("build", 0.0), r["seed"]) for r in self.reports), default=(0.0, 0))

    def text(self) -> str:
        kinds = dict(Counter(r["kind"] for r in self.failures))
        shares = ("reduction", "ragged", "symbolic", "threads", "native")
        lines = [f"{len(self.reports)} programs, {len(self.failures)} failures {kinds or ''}",
                 ", ".join(f"{k} {self.share(k):.0%}" for k in shares),
                 f"accepted primitives per program: median {self.median:g}",
                 "primitive               accepted  refused"]
        lines += [f"{p:24}{self.accepted[p]:8}{self.refused[p]:9}" for p in (*PRIMITIVES, *MOVES)]
        lines.append("seconds: " + ", ".join(f"{k} {v:.1f}" for k, v in self.seconds.items()))
        spent, seed = self.slowest_build
        lines.append(f"slowest build: {spent:.2f} s of one core, seed {seed}")
        return "\n".join(lines)


def run_programs(seeds: Iterable[int], jobs: int, limit: float, progress: bool = False) -> Summary:
    summary = Summary()
    for report in check_seeds(seeds, jobs, limit):
        summary.add(report)
        if progress and report["kind"] != "ok":
            print(f"seed {report['seed']}: {report['kind']}: {report['detail'].splitlines()[0][:200]}", flush=True)
    return summary


@click.command()
@click.option("--programs", default=2000, show_default=True, help="Number of programs.")
@click.option("--seed", default=0, show_default=True, help="Seed of the first; the others follow.")
@click.option("--jobs", default=2, show_default=True, help="Processes.")
@click.option("--limit", default=120.0, show_default=True, help="Seconds for one program.")
@click.option("--details/--no-details", default=True, show_default=True,
              help="Print program and trace of each failure.")
@click.option("--out", default="", help="File that receives the reports, one line of JSON each.")
def main(programs: int, seed: int, jobs: int, limit: float, details: bool, out: str) -> None:
    """Check random programs under random schedules; exit status 1 when one is wrong."""
    start = time.time()
    summary = run_programs(range(seed, seed + programs), jobs, limit, progress=True)
    if out:
        with open(out, "w") as f:
            f.writelines(json.dumps(r) + "\n" for r in summary.reports)
    for r in summary.failures if details else ():
        print(f"\n==== seed {r['seed']}: {r['kind']}\n{r['detail']}\n\n{describe(r['seed'])}")
    print(summary.text())
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = spent.ru_utime + spent.ru_stime
    print(f"{time.time() - start:.0f} s; {cpu:.0f} s of CPU, {cpu / max(programs, 1):.3f} a program")
    sys.exit(bool(summary.failures))


if __name__ == "__main__":
    main()
