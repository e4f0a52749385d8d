"""How many wrong functions the oracle lets pass: `python -m tests.fuzz.mutants --mutants 300 --seed 0`.

Random programs under random schedules, in the block form and lowered, are changed by one mutation. A mutant is caught
when the verifier or the interpreter objects or the outputs are not those of the NumPy reference. One that is not caught
is compared with the original over symbolic elements: it is equivalent, and does not count, or it was missed.
"""
from __future__ import annotations

import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace

import click

from tilewright.lowering.pipeline import lower
from tilewright.schedule import Schedule
from tilewright.support.errors import InterpreterError, StructuralError
from tilewright.tir.stmt import PrimFunc
from tilewright.tir.verify import verify

from . import generate, schedules
from .check import interpret
from .mutations import OPERATORS, accepts, mutations
from .programs import Input, Program
from .symbolic import equivalent, outputs
from .symbolic_memory import Conflict, Unsupported
from .terms import Terms
from .values import Reject, is_float

FORMS = ("block", "flat", "flat", "simple")
DRAWS = 192                                            # of the program's inputs
EACH = 4                                               # mutants of one program
VERDICTS = ("verifier", "bounds", "unwritten", "race", "region", "other check", "result", "equivalent", "missed")
KINDS = {"out of bounds": "bounds", "outside its domain": "bounds", "which nothing has written": "unwritten",
         "iterations of the": "race", "two lanes": "race", "its regions": "region"}


@dataclass(frozen=True)
class Mutant:
    seed: int
    form: str
    operator: str
    text: str
    verdict: str


def scheduled(seed: int) -> tuple[Program, Schedule] | None:
    """A program of constant extents under a random schedule, or None where the seed gives none that is judged here."""
    program = generate.program(seed)
    if program.is_symbolic or any(s.reducer == "argmax" for s in program.stages):
        return None                                    # sizes without end; a choice that depends on the order
    sch = Schedule(program.function())
    schedules.random_actions(random.Random(seed), sch, Counter(), Counter())
    return program, sch


def in_form(func: PrimFunc, form: str) -> PrimFunc:
    """func as it is, lowered, or lowered to the form that is meant for reading."""
    return func if form == "block" else lower(func, simple_mode=form == "simple")


def _small(i: Input) -> Input:
    """i in halves up to 2, or integers."""
    return replace(i, top=min(i.top, 2), bit=1 if is_float(i.dtype) else 0)


# how an input is drawn
KINDS_OF_DATA: tuple[Callable[[Input], Input], ...] = (
    lambda i: i, _small, lambda i: replace(i, top=i.top * 16), _small, lambda i: replace(i, mostly=1),
    lambda i: replace(_small(i), mostly=1), lambda i: replace(_small(i), mostly=0))


def draws(program: Program) -> Iterator[Program]:
    """The program with its own data, and with other data for which the reference values are certain.

    Small numbers, so that conditions on elements go both ways; large ones, so that minima and maxima do; a few among
    ones, so that products keep them; a kind for each input in the later draws. Scalars change as well.
    """
    yield program
    for k in range(1, DRAWS):
        rng = random.Random(program.seed + k)
        kinds = [KINDS_OF_DATA[k % 5]] * len(program.inputs) if k < DRAWS // 3 else rng.choices(
            KINDS_OF_DATA, k=len(program.inputs))
        scalars = {n: (d, v if k % 3 else rng.randint(0 if d.startswith("u") else -9, 9))
                   for n, (d, v) in program.scalars.items()}
        other = replace(program, seed=program.seed + 7919 * k, scalars=scalars,
                        inputs=[kind(i) for kind, i in zip(kinds, program.inputs, strict=True)])
        try:
            for run in range(len(other.bindings)):
                other.data(run)
        except Reject:
            continue
        yield other


def comparable(func: PrimFunc) -> bool:
    """True for a function that runs on symbols: no branch depends on data, no reduction is shared among threads."""
    try:
        return accepts(func) and bool(outputs(func, Terms()))
    except (Unsupported, Conflict):
        return False


def judge(program: Program, func: PrimFunc, mutant: PrimFunc, form: str) -> str:
    """The verdict of the oracle on a mutant of func, or of the comparison where it has no objection."""
    try:
        verify(mutant, stage="block" if form == "block" else "flat")
        if any(interpret(drawn, mutant) for drawn in draws(program)):
            return "result"
    except StructuralError:
        return "verifier"
    except InterpreterError as why:
        return next((kind for text, kind in KINDS.items() if text in str(why).split("\n")[0]), "other check")
    return "equivalent" if equivalent(func, mutant) else "missed"


def mutants_of(seed: int) -> list[Mutant]:
    """Up to EACH mutants of the program of a seed."""
    found = scheduled(seed)
    if found is None:
        return []
    program, sch = found
    rng, out = random.Random(seed + 1), []
    forms: dict[str, PrimFunc | None] = {}
    for _ in range(EACH):
        form = rng.choice(FORMS)
        if form not in forms:
            lowered = in_form(sch.func, form)
            forms[form] = lowered if comparable(lowered) else None
        func = forms[form]
        if func is None:
            continue
        operators = rng.sample(list(OPERATORS), len(OPERATORS))
        done = {(m.form, m.operator, m.text) for m in out}
        choices = next((c for c in (mutations(func, o) for o in operators) if c), [])
        choices = [m for m in choices if (form, m.operator, m.text) not in done]
        if choices:
            m = rng.choice(choices)
            out.append(Mutant(seed, form, m.operator, m.text, judge(program, func, m.apply(), form)))
    return out


def run_mutants(wanted: int, seed: int, jobs: int) -> list[Mutant]:
    """Mutants of the programs from seed on, until `wanted` of them are not equivalent."""
    out: list[Mutant] = []

    def enough() -> bool:
        return sum(m.verdict != "equivalent" for m in out) >= wanted

    with ProcessPoolExecutor(jobs) as pool:
        while not enough():
            for found in pool.map(mutants_of, range(seed, seed + 2 * jobs)):
                for m in found:
                    if not enough():
                        out.append(m)
            seed += 2 * jobs
    return out


def table(mutants: list[Mutant]) -> Iterator[str]:
    """One line per operator, and the sum."""
    yield f"{'operator':26}{'made':>6}" + "".join(f"{v:>13}" for v in VERDICTS)
    for name in (*OPERATORS, "all"):
        mine = [m for m in mutants if name in (m.operator, "all")]
        counts = Counter(m.verdict for m in mine)
        yield f"{name:26}{len(mine):6}" + "".join(f"{counts[v]:13}" for v in VERDICTS)


@click.command()
@click.option("--mutants", default=300, show_default=True, help="Mutants that are not equivalent.")
@click.option("--seed", default=0, show_default=True, help="Seed of the first program; the others follow.")
@click.option("--jobs", default=2, show_default=True, help="Processes.")
def main(mutants: int, seed: int, jobs: int) -> None:
    """Count the mutants that the oracle catches; exit status 1 when it missed one."""
    start = time.time()
    made = run_mutants(mutants, seed, jobs)
    print("\n".join(table(made)))
    missed = [m for m in made if m.verdict == "missed"]
    counted = sum(m.verdict != "equivalent" for m in made)
    print(f"{len(made)} mutants of {len({m.seed for m in made})} programs from seed {seed}: {counted} not equivalent, "
          f"{counted - len(missed)} caught, {len(missed)} missed, {time.time() - start:.0f} s")
    for m in missed:
        print(f"missed: seed {m.seed}, {m.form} form, {m.operator}: {m.text}")
    sys.exit(bool(missed))


if __name__ == "__main__":
    main()
