"""annotate and unannotate: their examples, what they refuse, and how random schedules use them."""
from __future__ import annotations

from typing import Any

from tests.fuzz.moves import Action, Chooser, find_block, find_loop, move
from tests.schedule.case import Case
from tests.schedule.core_support import scale
from tests.wrong_uses.programs import blocks
from tests.wrong_uses.schedule_programs import COPY, THREADS, product, tile_beside_copy
from tests.wrong_uses.wrong_use import watch
from tilewright.lowering.pipeline import lower
from tilewright.schedule import Schedule
from tilewright.support.errors import LowerError, ScheduleError
from tilewright.tir.stmt import SERIAL, For, Seq

ANNOTATE = Case("annotate")
UNANNOTATE = Case("unannotate")


@ANNOTATE.example
def example_of_annotate():
    """
    sch.annotate(block_or_loop='B', ann_key='layout', ann_val=[1, 'rows'])

    @T.prim_func
    def scale(A: T.Buffer((10,), "int32"), B: T.Buffer((10,), "int32")):
        T.func_attr({"tir.noalias": True})
        # with T.block("root"):
        for i in range(10):
            with T.block("B"):
                vi = T.axis.spatial(10, i)
                T.reads(A[vi])
                T.writes(B[vi])
                T.block_attr({"layout": [1, "rows"]})
                B[vi] = A[vi] * 3
    """
    sch = Schedule(scale())
    sch.annotate("B", "layout", [1, "rows"])
    return sch


@UNANNOTATE.example
def example_of_unannotate():
    """
    sch.unannotate(block_or_loop=l0, ann_key='first')

    @T.prim_func
    def scale(A: T.Buffer((10,), "int32"), B: T.Buffer((10,), "int32")):
        T.func_attr({"tir.noalias": True})
        # with T.block("root"):
        for i in T.serial(10, annotations={"second": 2}):
            with T.block("B"):
                vi = T.axis.spatial(10, i)
                T.reads(A[vi])
                T.writes(B[vi])
                B[vi] = A[vi] * 3
    """
    sch = Schedule(scale())
    loop, = sch.get_loops("B")
    sch.annotate(loop, "first", 1)
    sch.annotate(loop, "second", 2)
    sch.unannotate(loop, "first")
    return sch


@ANNOTATE.wrong("`annotate` under a key that is there already",
                r"annotate\(block_or_loop=C, ann_key='key', ann_val=2\): block C has the annotation 'key' already")
def annotate_twice():
    sch, block, _, _, _ = product()
    sch.annotate(block, "key", 1)
    watch(sch).annotate(block, "key", 2)


@ANNOTATE.wrong(
    "`annotate` with a function as the value",
    r"annotate\(block_or_loop=C, ann_key='key', ann_val=print\): the value of type builtin_function_or_method")
def annotate_function():
    sch, block, _, _, _ = product()
    sch.annotate(block, "key", print)


@UNANNOTATE.wrong("`unannotate` of a key that is not there",
                  r"unannotate\(block_or_loop=C, ann_key='key'\): block C has no annotation 'key'")
def unannotate_missing():
    sch, block, _, _, _ = product()
    sch.unannotate(block, "key")


@ANNOTATE.wrong("`annotate(loop, 3, 1)`", r"the key 3 is not a string")
def annotate_number():
    sch = watch(blocks())
    sch.annotate(sch.get_loops("C")[0], 3, 1)


@ANNOTATE.wrong("any primitive where a thread writes alone what all fill together",
                r"would fill S together, and also each thread by")
def annotate_mixed():
    sch = tile_beside_copy(COPY + """
with T.block("Q"):
    va = T.axis.spatial(8, i)
    S[va, 0] = 1
""", around=THREADS)
    sch.annotate("R", "note", 1)


@ANNOTATE.wrong("any primitive where each thread calls what fills all of a shared buffer",
                r"each thread of loop i would make the calls of block P, which write S, and all of them the same")
def annotate_calls():
    sch = tile_beside_copy("""
with T.block("P"):
    T.reads(A[0:8, 0:8])
    T.writes(S[0:8, 0:8])
    T.evaluate(T.call_extern("int32", "fill", T.address_of(S[0, 0]), T.address_of(A[0, 0])))
""", around=THREADS)
    sch.annotate("R", "note", 1)


def _target(sch: Schedule, what: Any) -> Any:
    return find_block(sch, what) if isinstance(what, str) else find_loop(sch, what)


def _run_annotate(sch: Schedule, what: Any, key: str, value: Any) -> None:
    sch.annotate(_target(sch, what), key, value)


@move("annotate", 0.3, 2, _run_annotate)
def draw_annotate(chooser: Chooser, sch: Schedule, names: list[str]) -> Action | None:
    rng = chooser.rng
    found = chooser.loop(sch, names) if rng.random() < 0.5 else None
    key, value = rng.choice(["note", "hint", "order"]), rng.choice([1, "text", [1, 2], 0.5])
    return ("annotate", found[0] if found else rng.choice(names), key, value)


def _run_unannotate(sch: Schedule, what: Any, key: str) -> None:
    sch.unannotate(_target(sch, what), key)


@move("unannotate", 0.1, 0, _run_unannotate)
def draw_unannotate(chooser: Chooser, sch: Schedule, names: list[str]) -> Action | None:
    marked = [n for n in names if sch.realize(n).block.annotations]
    if not marked:
        return None
    name = chooser.rng.choice(marked)
    return ("unannotate", name, next(iter(sch.realize(name).block.annotations)))


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
