"""The kinds of programs that the long run draws, with their shares of it."""
from __future__ import annotations

import random
import time
import traceback
from types import ModuleType

from .. import check
from ..check import Report
from . import bindings, blocks, gathers, guards, integers, sizes
from .common import Case, SlowBuild, Wrong, target_of

SHARES = {"schedules": 20, "integers": 20, "bindings": 10, "blocks": 25, "gathers": 10, "sizes": 15}
MODULES: dict[str, ModuleType] = {"integers": integers, "bindings": bindings, "blocks": blocks, "gathers": gathers,
                                  "sizes": sizes, "guards": guards}    # guards has no share: `--kind guards`


def kind_of(seed: int) -> str:
    """The kind that a mixed run draws for a seed."""
    return random.Random(f"kind {seed}").choices(list(SHARES), list(SHARES.values()))[0]


def check_seed(kind: str, seed: int) -> Report:
    """The report of the program of a kind that a seed gives."""
    if kind == "schedules":
        return check.check_seed(seed)
    module, case, report = MODULES[kind], Case(target_of(seed)), Report(seed, program=kind, native=True)
    start = time.perf_counter()
    try:
        module.check(module.program(seed), case)
    except (Wrong, SlowBuild) as why:
        report.kind = "wrong" if isinstance(why, Wrong) else "slow build"
        report.detail = f"{why} ({case.target})"
    except Exception as why:
        where = traceback.extract_tb(why.__traceback__)[-1]
        report.kind = "raised"
        place = f"{where.filename.rsplit('/', 1)[-1]}:{where.lineno}"
        report.detail = f"{type(why).__name__} at {place}: {why} ({case.target})\n{traceback.format_exc()}"
    report.accepted, report.refused, report.seconds = dict(case.accepted), dict(case.refused), case.seconds
    report.seconds[kind] = time.perf_counter() - start
    return report


def describe(kind: str, seed: int) -> str:
    """The program of a seed, for a failure's report."""
    return check.describe(seed) if kind == "schedules" else MODULES[kind].describe(MODULES[kind].program(seed))
