"""unroll: its example, what it refuses, and how random schedules use it."""
from __future__ import annotations

from tests.fuzz.moves import Action, Chooser, find_loop, may_copy, move
from tests.schedule.case import Case
from tests.schedule.core_support import scale
from tests.wrong_uses.programs import blocks
from tests.wrong_uses.schedule_programs import product, two_functions
from tests.wrong_uses.wrong_use import watch
from tilewright.schedule import Schedule

CASE = Case("unroll")
wrong = CASE.wrong


@CASE.example
def example():
    """
    sch.unroll(loop=l0)

    @T.prim_func
    def scale(A: T.Buffer((10,), "int32"), B: T.Buffer((10,), "int32")):
        T.func_attr({"tir.noalias": True})
        # with T.block("root"):
        for i in T.unroll(10):
            with T.block("B"):
                vi = T.axis.spatial(10, i)
                T.reads(A[vi])
                T.writes(B[vi])
                B[vi] = A[vi] * 3
    """
    sch = Schedule(scale())
    sch.unroll(sch.get_loops("B")[0])
    return sch


@wrong("`unroll` of a parallel loop",
       r"unroll\(loop=i\): loop i is parallel already")
def unroll_parallel():
    sch, _, i, _, _ = product()
    sch.parallel(i)
    watch(sch).unroll(i)


@wrong("a loop of another schedule", r"loop i belongs to another schedule")
def loop_of_another():
    sch = two_functions()
    loop = sch.get_loops(sch.get_block("C", "first"))[0]
    watch(blocks()).unroll(loop)


def _run(sch: Schedule, where: tuple[str, int]) -> None:
    sch.unroll(find_loop(sch, where))


@move("unroll", 0.4, 3, _run)
def draw(chooser: Chooser, sch: Schedule, names: list[str]) -> Action | None:
    found = chooser.loop(sch, names)
    return ("unroll", found[0]) if found and may_copy(sch, found[1]) else None
