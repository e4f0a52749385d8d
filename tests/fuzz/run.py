"""The long run: `python -m tests.fuzz.run --programs 2000 --seed 0 [--kind NAME]`."""
from __future__ import annotations

import json
import math
import os
import resource
import statistics
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import click

from tests.fuzz.moves import FAVOURED, MOVES, in_order

from .kinds.common import BACK_END, BESIDE
from .kinds.table import MODULES, SHARES, describe, kind_of
from .pool import Drawn, check_programs

KINDS = tuple(dict.fromkeys((*SHARES, *MODULES)))


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
        return sorted((r for r in self.reports if r["kind"] != "ok"), key=lambda r: (r["program"], r["seed"]))

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [r for r in self.reports if r["program"] == kind]

    def share(self, key: str) -> float:
        """Of tensor programs under schedules."""
        reports = self.of("schedules")
        return sum(bool(r[key]) for r in reports) / max(len(reports), 1)

    @property
    def median(self) -> float:
        """Accepted primitives of a program that is scheduled by them."""
        scheduled = [*self.of("schedules"), *self.of("blocks")]
        return statistics.median([sum(r["accepted"].values()) for r in scheduled] or [0])

    @property
    def slowest_build(self) -> tuple[float, str, int]:
        """(seconds, kind, seed) of the program whose build took longest."""
        return max(((r["seconds"].get("build", 0.0), r["program"], r["seed"]) for r in self.reports),
                   default=(0.0, "", 0))

    def text(self) -> str:
        kinds = dict(Counter(f"{r['program']}: {r['kind']}" for r in self.failures))
        shares = ("reduction", "ragged", "symbolic", "threads", "native")
        lines = [f"{len(self.reports)} programs, {len(self.failures)} failures {kinds or ''}",
                 ", ".join(f"{k} {len(self.of(k))}" for k in KINDS),
                 "of schedules: " + ", ".join(f"{k} {self.share(k):.0%}" for k in shares),
                 f"accepted primitives per program: median {self.median:g}",
                 "move                    accepted  refused"]
        lines += [f"{p:24}{self.accepted[p]:8}{self.refused[p]:9}" for p in in_order()]
        lines.append("seconds: " + ", ".join(f"{k} {v:.1f}" for k, v in self.seconds.items()))
        spent, kind, seed = self.slowest_build
        faults = [f"{r['program']} {r['seed']}" for r in self.reports if r["faults"]]
        if faults:
            lines.append(f"LLVM failed, and compiled with less effort: {len(faults)} programs: {', '.join(faults)}")
        lines.append(f"slowest build: {spent:.2f} s of one core, {kind} {seed}")
        return "\n".join(lines)


def run_programs(programs: Iterable[Drawn], jobs: int, limit: float, progress: bool = False,
                 seconds: float = math.inf, first: bool = False) -> Summary:
    """The reports of the programs; no more are begun after so many seconds, or, with first, after a failure."""
    summary, end = Summary(), time.monotonic() + seconds

    def wanted() -> Iterator[Drawn]:
        for p in programs:
            if time.monotonic() > end or first and summary.failures:
                return
            yield p
    for report in check_programs(wanted(), jobs, limit):
        summary.add(report)
        if progress and report["kind"] != "ok":
            what = report["detail"].splitlines()[0][:200]
            print(f"{report['program']} {report['seed']}: {report['kind']}: {what}", flush=True)
    return summary


@click.command()
@click.option("--programs", default=2000, show_default=True, help="Number of programs.")
@click.option("--seed", default=0, show_default=True, help="Seed of the first; the others follow.")
@click.option("--kind", type=click.Choice(list(KINDS)), help="Programs of this kind alone.")
@click.option("--jobs", default=2, show_default=True, help="Processes.")
@click.option("--limit", default=120.0, show_default=True, help="Seconds for one program.")
@click.option("--seconds", default=math.inf, help="Begin no more programs after so many seconds.")
@click.option("--favour", default="", help="Primitives, by commas, that half of all moves of schedules are drawn from.")
@click.option("--back-end", default="llvm", show_default=True, help="Kind of target on which programs run.")
@click.option("--beside", is_flag=True, help="Compare with LLVM's code for the same loops, not with the interpreter.")
@click.option("--first", is_flag=True, help="Stop at the first failure.")
@click.option("--details/--no-details", default=True, show_default=True,
              help="Print program and trace of each failure.")
@click.option("--out", default="", help="File that receives the reports, one line of JSON each.")
def main(programs: int, seed: int, kind: str | None, jobs: int, limit: float, seconds: float, favour: str,
         back_end: str, beside: bool, first: bool, details: bool, out: str) -> None:
    """Check random programs; exit status 1 when one is wrong."""
    unknown = [name for name in filter(None, favour.split(",")) if name not in MOVES]
    if unknown:
        raise click.BadParameter(f"no schedule is drawn with {', '.join(unknown)}", param_hint="--favour")
    os.environ[BACK_END] = back_end
    os.environ[BESIDE] = "1" if beside else ""
    os.environ[FAVOURED] = favour                          # also for the processes that check programs
    start = time.time()
    seeds = range(seed, seed + programs)
    summary = run_programs(((kind or kind_of(s), s) for s in seeds), jobs, limit, True, seconds, first)
    if out:
        with open(out, "w") as f:
            f.writelines(json.dumps(r) + "\n" for r in summary.reports)
    for r in summary.failures if details else ():
        print(f"\n==== {r['program']} {r['seed']}: {r['kind']}\n{r['detail']}\n\n{describe(r['program'], r['seed'])}")
    print(summary.text())
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = spent.ru_utime + spent.ru_stime
    print(f"{time.time() - start:.0f} s; {cpu:.0f} s of CPU, {cpu / max(len(summary.reports), 1):.3f} a program")
    sys.exit(bool(summary.failures))


if __name__ == "__main__":
    main()
