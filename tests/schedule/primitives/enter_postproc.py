"""enter_postproc: its example, what it refuses, and how random schedules use it."""
from __future__ import annotations

from tests.schedule.case import Case
from tests.schedule.core_support import scale
from tests.wrong_uses.schedule_programs import chain_nest
from tests.wrong_uses.wrong_use import watch
from tilewright.schedule import Schedule

CASE = Case("enter_postproc")
wrong = CASE.wrong


@CASE.example
def example():
    """
    sch.enter_postproc()

    @T.prim_func
    def scale(A: T.Buffer((10,), "int32"), B: T.Buffer((10,), "int32")):
        T.func_attr({"tir.noalias": True})
        # with T.block("root"):
        for i in range(10):
            with T.block("B"):
                vi = T.axis.spatial(10, i)
                T.reads(A[vi])
                T.writes(B[vi])
                B[vi] = A[vi] * 3
    """
    sch = Schedule(scale())
    sch.enter_postproc()
    return sch


@wrong("`enter_postproc()` twice", r"the postprocessors have begun already")
def postproc_twice():
    sch, _, _, _ = chain_nest()
    sch.enter_postproc()
    watch(sch).enter_postproc()
