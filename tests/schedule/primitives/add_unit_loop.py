"""add_unit_loop: its example, what it refuses, and how random schedules use it."""
from __future__ import annotations

from tests.fuzz.moves import Action, Chooser, find_block, find_loop, move
from tests.schedule.case import Case
from tests.schedule.core_support import scale
from tests.wrong_uses.schedule_programs import chain_blocks
from tilewright.schedule import Schedule

CASE = Case("add_unit_loop")
wrong = CASE.wrong


@CASE.example
def example():
    """
    l0 = sch.add_unit_loop(block_or_loop='B')

    @T.prim_func
    def scale(A: T.Buffer((10,), "int32"), B: T.Buffer((10,), "int32")):
        T.func_attr({"tir.noalias": True})
        # with T.block("root"):
        for i, u in T.grid(10, 1):
            with T.block("B"):
                vi = T.axis.spatial(10, i)
                T.reads(A[vi])
                T.writes(B[vi])
                B[vi] = A[vi] * 3
    """
    sch = Schedule(scale())
    sch.add_unit_loop("B")
    return sch


@wrong("`add_unit_loop(root)`", r"add_unit_loop\(block_or_loop='root'\): the root block has no loops")
def unit_loop_of_root():
    sch, _, _ = chain_blocks()
    sch.add_unit_loop("root")


def run_unit(sch: Schedule, target: str | tuple[str, int]) -> None:
    sch.add_unit_loop(find_block(sch, target) if isinstance(target, str) else find_loop(sch, target))


@move("add_unit_loop", 0.6, 0.5, run_unit)
def draw_unit(chooser: Chooser, sch: Schedule, names: list[str]) -> Action | None:
    found = chooser.loop(sch, names) if chooser.rng.random() < 0.5 else None
    return ("add_unit_loop", found[0] if found else chooser.rng.choice(names))
