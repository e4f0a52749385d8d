"""One random program under a random schedule, checked against its reference in four ways."""
from __future__ import annotations

import random
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

import tilewright as tw
from tests.fuzz.moves import Action, Unresolved
from tilewright.lowering import PASSES, lower
from tilewright.rules import apply_rules
from tilewright.schedule import Schedule
from tilewright.support.errors import ScheduleError
from tilewright.tir import interp
from tilewright.tir.expr import IntImm
from tilewright.tir.node import walk
from tilewright.tir.stmt import BlockRealize, PrimFunc
from tilewright.tir.verify import verify

from . import generate, schedules, values
from .kinds.common import SlowBuild, fenced, is_beside, target_of, timed_build
from .programs import Program


@dataclass
class Report:
    """What happened to one seed. kind: "ok", or where it went wrong; program: the kind of program."""
    seed: int
    kind: str = "ok"
    program: str = "schedules"
    detail: str = ""
    accepted: dict[str, int] = field(default_factory=dict)
    refused: dict[str, int] = field(default_factory=dict)
    reduction: bool = False
    ragged: bool = False
    symbolic: bool = False
    threads: bool = False
    native: bool = False
    seconds: dict[str, float] = field(default_factory=dict)
    actions: list[Any] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


class Failure(Exception):
    """A check failed; kind names it."""

    def __init__(self, kind: str, detail: str) -> None:
        super().__init__(f"{kind}: {detail}")
        self.kind, self.detail = kind, detail


def compare(program: Program, run: int, args: Sequence[np.ndarray], known: dict[str, values.Value]) -> str:
    """"" when the outputs among args are right, else where they are not; inputs must not have changed."""
    fresh = program.data(run)[0]
    for name, got, old in zip(program.argument_names(), args, fresh, strict=True):
        if name not in program.outputs:
            if got.tobytes() != old.tobytes():
                return f"the input {name} was changed"
            continue
        v = known[name]
        if v.magnitude is None:
            wrong = got != v.x
        else:
            wide = got.astype(np.float64).astype(values.WIDE) if got.dtype != np.float64 else got.astype(values.WIDE)
            with np.errstate(all="ignore"):
                near = np.abs(wide - v.x) <= v.tolerance()
            same = np.isnan(wide) & np.isnan(v.x) | (wide == v.x)
            wrong = ~np.where(np.isfinite(v.x), near | (wide == v.x), same)
        if np.any(wrong):
            at = tuple(int(n) for n in np.argwhere(np.atleast_1d(wrong))[0])
            where = at if got.shape else ()
            return (f"{name}{list(where)} is {got[where]}, expected {v.x[where]} (weight {v.weight:g}); "
                    f"{int(np.sum(wrong))} of {got.size} elements, sizes {program.bindings[run]}")
    return ""


def interpret(program: Program, func: PrimFunc, check: bool = True) -> str:
    """"" when the interpreter gives the reference values on every binding, else what is wrong."""
    for run in range(len(program.bindings)):
        args, numbers, known = program.data(run)
        interp.run(func, *args, *numbers, check=check)
        wrong = compare(program, run, args, known)
        if wrong:
            return wrong
    return ""


def execute(program: Program, func: PrimFunc, target: str, seconds: dict[str, float] | None = None) -> str:
    """"" when native code gives the reference values on every binding, else what is wrong."""
    module = timed_build(lambda: tw.build(func, target=target), {} if seconds is None else seconds)
    for run in range(len(program.bindings)):
        args, numbers, known = program.data(run)
        pairs = [fenced(a) for a in args]
        module[func.name](*(inner for _, inner in pairs), *numbers)
        wrong = compare(program, run, [inner for _, inner in pairs], known)
        for name, (memory, inner) in zip(program.argument_names(), pairs, strict=True):
            inner.reshape(-1).view(np.uint8)[...] = 0xA5
            if not wrong and np.any(memory != 0xA5):
                wrong = f"memory beside {name} was written, sizes {program.bindings[run]}"
        if wrong:
            return wrong
    return ""


def first_wrong_pass(program: Program, func: PrimFunc) -> str:
    """The first pass after which the interpreter disagrees, or objects."""
    for p in PASSES:
        try:
            func = p.run(func)
            verify(func, stage=p.stage)
            wrong = interpret(program, func)
        except Exception as why:
            wrong = f"{type(why).__name__}: {why}".splitlines()[0]
        if wrong:
            return f"{p.name}: {wrong}"
    return ""


def first_wrong_primitive(program: Program, actions: Sequence[Action]) -> str:
    """The first of the actions after which the interpreter disagrees on the block form, or objects."""
    sch = Schedule(program.function())
    for action in ((), *actions):
        try:
            if action:
                schedules.perform(sch, action)
            wrong = interpret(program, sch.func)
        except Exception as why:
            wrong = f"{type(why).__name__}: {why}".splitlines()[0]
        if wrong:
            return f"{action}: {wrong}" if action else f"the program before any primitive: {wrong}"
    return ""


def located(program: Program, sch: Schedule, kind: str, actions: Sequence[Action]) -> str:
    """Where it went wrong: the primitive, the pass, or code generation."""
    if kind.startswith(("block form", "verify")):
        return f"first wrong after {first_wrong_primitive(program, actions)}"
    if kind.startswith(("flat form", "lower")):
        return f"first wrong after {first_wrong_pass(program, sch.func)}"
    return "every pass agrees: code generation is wrong" if kind.startswith("native") else ""


def is_ragged(func: PrimFunc) -> bool:
    """True when some block runs under a condition."""
    return any(isinstance(n, BlockRealize) and not isinstance(n.predicate, IntImm) for n in walk(func.body))


def replay(sch: Schedule, func: PrimFunc) -> None:
    again = Schedule(func)
    try:
        sch.trace.apply_to_schedule(again)
    except ScheduleError as why:
        raise Failure("replay", str(why)) from None
    if str(again) != str(sch):
        raise Failure("replay", f"the replayed trace gives another text\n{sch}\n---\n{again}")


def check_schedule(program: Program, sch: Schedule, report: Report, target: str) -> None:
    """Raise Failure unless the scheduled function is right in the block form, the flat form and native code."""
    func = sch.func
    clock = time.perf_counter()

    def lap(name: str) -> None:
        nonlocal clock
        now = time.perf_counter()
        report.seconds[name] = now - clock
        clock = now

    try:
        verify(func)
    except Exception as why:
        raise Failure("verify", str(why)) from None
    if not is_beside():
        check_forms(program, func, lap)
    if not report.threads:
        report.native = True
        wrong = _guarded("native", lambda: execute(program, func, target, report.seconds))
        lap("native")
        if wrong:
            raise Failure("native", f"{wrong} ({target})")


def check_forms(program: Program, func: PrimFunc, lap: Callable[[str], None]) -> None:
    """Raise Failure unless the interpreter gives the reference values for the block form and the flat form."""
    wrong = _guarded("block form", lambda: interpret(program, func))
    lap("block form")
    if wrong:
        raise Failure("block form", wrong)
    flat = _guarded("lower", lambda: _lowered(func))
    lap("lower")
    wrong = _guarded("flat form", lambda: interpret(program, flat))
    lap("flat form")
    if wrong:
        raise Failure("flat form", wrong)


def check_simple_mode(program: Program, func: PrimFunc) -> None:
    """Raise Failure unless the form that is meant for reading is right as well."""
    wrong = _guarded("simple mode", lambda: interpret(program, _lowered(func, simple_mode=True)))
    if wrong:
        raise Failure("simple mode", wrong)


def check_rules(program: Program, report: Report, target: str) -> None:
    """Raise Failure unless the program scheduled by the built-in rules is right."""
    func = program.function()
    wrong = _guarded("rules", lambda: execute(program, apply_rules(func, tw.target(target)).func, target,
                                              report.seconds))
    if wrong:
        raise Failure("rules", f"{wrong} ({target})")


def _lowered(func: PrimFunc, simple_mode: bool = False) -> PrimFunc:
    flat = lower(func, simple_mode=simple_mode)
    verify(flat, stage="flat")
    return flat


def _guarded(kind: str, call: Any) -> Any:
    try:
        return call()
    except SlowBuild as why:
        raise Failure("slow build", str(why)) from None
    except Exception as why:
        where = traceback.extract_tb(why.__traceback__)[-1]
        raise Failure(f"{kind} raised", f"{type(why).__name__} at {where.filename.rsplit('/', 2)[-1]}:{where.lineno}: "
                      f"{str(why).strip()}") from None


def run_actions(program: Program, actions: Sequence[Action]) -> Schedule:
    """The schedule after those of the actions that are legal."""
    sch = Schedule(program.function())
    for action in actions:
        try:
            schedules.perform(sch, action)
        except (ScheduleError, Unresolved):
            pass
    return sch


def check_seed(seed: int) -> Report:
    """The report of one seed."""
    report = Report(seed)
    clock = time.perf_counter()
    program = generate.program(seed)
    report.reduction, report.symbolic = program.has_reduction, program.is_symbolic
    report.seconds["program"] = time.perf_counter() - clock
    sch = None
    try:
        func = program.function()
        accepted: Counter[str] = Counter()
        refused: Counter[str] = Counter()
        sch = Schedule(func)
        clock = time.perf_counter()
        try:
            report.actions = schedules.random_actions(random.Random(seed), sch, accepted, refused)
        finally:
            report.accepted, report.refused = dict(accepted), dict(refused)
            report.seconds["schedule"] = time.perf_counter() - clock
        report.ragged = is_ragged(sch.func)
        report.threads = schedules.uses_threads(sch)
        check_schedule(program, sch, report, target_of(seed))
        clock = time.perf_counter()
        if seed % 4 == 0 and not is_beside():
            check_simple_mode(program, sch.func)
            report.seconds["simple mode"] = time.perf_counter() - clock
        elif seed % 4 == 1:
            check_rules(program, report, target_of(seed))
            report.seconds["rules"] = time.perf_counter() - clock
        clock = time.perf_counter()
        if not is_beside():
            replay(sch, func)
        report.seconds["replay"] = time.perf_counter() - clock
    except Failure as why:
        report.kind, report.detail = why.kind, why.detail
        if sch is not None:
            report.detail += f"\n{located(program, sch, why.kind, report.actions)}"
    except Exception as why:
        report.kind = "crash"
        report.detail = f"{type(why).__name__}: {why}\n{traceback.format_exc()}"
    return report


def describe(seed: int) -> str:
    """The program, the schedule and the trace of a seed, for a failure's report."""
    program = generate.program(seed)
    text = [str(program.function()), f"sizes {program.bindings}"]
    sch = Schedule(program.function())
    try:
        schedules.random_actions(random.Random(seed), sch, Counter(), Counter())
    except Exception as why:
        text.append(f"raised {type(why).__name__}: {why}")
    text += [str(sch.trace), str(sch)]
    return "\n\n".join(text)
