"""loop_partition: its example, what it refuses, and how random schedules use it."""
from __future__ import annotations

from tests.fuzz.moves import Action, Chooser, find_loop, move
from tests.schedule.case import Case
from tests.schedule.core_support import scale
from tests.wrong_uses.schedule_programs import chain_blocks
from tests.wrong_uses.wrong_use import watch
from tilewright.schedule import Schedule
from tilewright.tir.expr import IntImm

CASE = Case("loop_partition")
wrong = CASE.wrong


@CASE.example
def example():
    """
    l1, l2 = sch.loop_partition(loop=l0, factors=[2, None])

    @T.prim_func
    def scale(A: T.Buffer((10,), "int32"), B: T.Buffer((10,), "int32")):
        T.func_attr({"tir.noalias": True})
        # with T.block("root"):
        for i0 in range(2):
            with T.block("B_i0"):
                vi = T.axis.spatial(10, i0)
                T.reads(A[vi])
                T.writes(B[vi])
                B[vi] = A[vi] * 3
        for i1 in range(2, 10):
            with T.block("B_i1"):
                vi = T.axis.spatial(10, i1)
                T.reads(A[vi])
                T.writes(B[vi])
                B[vi] = A[vi] * 3
    """
    sch = Schedule(scale())
    sch.loop_partition(sch.get_loops("B")[0], [2, None])
    return sch


@wrong("`loop_partition(i, [2**40, None])`", r"the factors cover 1099511627776 iterations, int32 counts 2147483647")
def partition_huge():
    sch, b, _ = chain_blocks()
    sch.loop_partition(sch.get_loops(b)[0], [2**40, None])


@wrong("`loop_partition(i, [10, 10])`: more than the loop has",
       r"loop_partition\(loop=i, factors=\[10, 10\]\): the factors cover 20 iterations, loop i has 16")
def partition_long():
    sch, b, _ = chain_blocks()
    sch.loop_partition(sch.get_loops(b)[0], [10, 10])


@wrong("`loop_partition(i, [None, 16])`: nothing is left to infer",
       r"the factors cover 16 iterations, loop i has 16[^$]*an inferred part has one iteration at least")
def partition_nothing_left():
    sch, b, _ = chain_blocks()
    sch.loop_partition(sch.get_loops(b)[0], [None, 16])


@wrong("`loop_partition` of an annotated loop", r"loop i is annotated with note")
def partition_annotated():
    sch, b, _ = chain_blocks()
    i, _ = sch.get_loops(b)
    sch.annotate(i, "note", 1)
    watch(sch).loop_partition(i, [4, None])


def run_partition(sch: Schedule, where: tuple[str, int], factors: list[int | None], units: bool) -> None:
    sch.loop_partition(find_loop(sch, where), factors, preserve_unit_iters=units)


@move("loop_partition", 0.7, 0.7, run_partition)
def draw_partition(chooser: Chooser, sch: Schedule, names: list[str]) -> Action | None:
    rng = chooser.rng
    found = chooser.loop(sch, names)
    if found is None or len(names) > 6:
        return None
    where, loop = found
    most = loop.extent.value - 1 if isinstance(loop.extent, IntImm) and rng.random() < 0.9 else 4
    f = rng.randint(1, max(1, min(most, 5)))
    factors = rng.choice([[f], [f, None], [None, f], [f, 1], [1, None]])
    return ("loop_partition", where, factors, rng.random() < 0.8)
