"""Random software pipelines and double buffers: annotations, kept where the function still lowers."""
from __future__ import annotations

from tilewright.lowering.pipeline import lower
from tilewright.schedule import Schedule
from tilewright.support.errors import LowerError, ScheduleError
from tilewright.tir.stmt import SERIAL, For, Seq

from ..schedules import Action, Chooser, find_block, find_loop, move


def _tried(sch: Schedule, what: object, annotations: dict[str, object]) -> None:
    trial = sch.copy()
    for s in (trial, sch):
        for key, value in annotations.items():
            s.annotate(what, key, value)
        try:
            lower(trial.func)
        except LowerError as why:
            raise ScheduleError(str(why)) from None


def run_pipeline(sch: Schedule, where: tuple[str, int], stages: list[int], order: list[int]) -> None:
    _tried(sch, find_loop(sch, where), {"software_pipeline_stage": stages, "software_pipeline_order": order})


@move("software_pipeline", 0, 0, run_pipeline, last=0.25)
def draw_pipeline(chooser: Chooser, sch: Schedule, names: list[str]) -> Action | None:
    rng, fitting = chooser.rng, []
    for name in names:
        for position, loop in enumerate(sch.loops_above(name)):
            if isinstance(loop, For) and loop.kind == SERIAL and isinstance(loop.body, Seq):
                fitting.append(((name, position), len(loop.body.stmts)))
    if not fitting:
        return None
    where, count = rng.choice(fitting)
    stages = sorted(rng.choice([0, 1, 1, 2]) for _ in range(count))
    order = list(range(count))
    if rng.random() < 0.3:
        rng.shuffle(order)
    return ("software_pipeline", where, stages, order)


def run_double_buffer(sch: Schedule, name: str) -> None:
    _tried(sch, find_block(sch, name), {"double_buffer_scope": 0})


@move("double_buffer", 0, 0, run_double_buffer, last=0.5)
def draw_double_buffer(chooser: Chooser, sch: Schedule, names: list[str]) -> Action | None:
    """Mostly of a block beside what reads its result, in a serial loop."""
    inner = [n for n in names if any(_repeated_beside(sch, n, c) for c in sch.consumers(n))]
    if not inner and chooser.rng.random() < 0.05:
        inner = [n for n in names if sch.loops_above(n)]
    return ("double_buffer", chooser.rng.choice(inner)) if inner else None


def _repeated_beside(sch: Schedule, name: str, consumer: str) -> bool:
    """True when a serial loop around both blocks holds several statements."""
    around = sch.loops_above(consumer)
    return any(isinstance(loop.body, Seq) and loop.kind == SERIAL and any(loop is other for other in around)
               for loop in sch.loops_above(name))
