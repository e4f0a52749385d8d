"""reorder_block_iter_var: its example, what it refuses, and how random schedules use it."""
from __future__ import annotations

from tests.fuzz.moves import Action, Chooser, find_block, move
from tests.schedule.case import Case
from tests.schedule.core_support import matmul
from tests.wrong_uses.schedule_programs import chain_blocks
from tilewright.schedule import Schedule

CASE = Case("reorder_block_iter_var")
wrong = CASE.wrong


@CASE.example
def example():
    """
    sch.reorder_block_iter_var(block='C', new_order=[2, 0, 1])

    @T.prim_func
    def matmul(A: T.Buffer((4, 5), "int32"), B: T.Buffer((5, 6), "int32"), C: T.Buffer((4, 6), "int32")):
        T.func_attr({"tir.noalias": True})
        # with T.block("root"):
        for i, j, r in T.grid(4, 6, 5):
            with T.block("C"):
                vr, vi, vj = T.axis.remap("RSS", [r, i, j])
                T.reads(A[vi, vr], B[vr, vj])
                T.writes(C[vi, vj])
                with T.init():
                    C[vi, vj] = 0
                C[vi, vj] = C[vi, vj] + A[vi, vr] * B[vr, vj]
    """
    sch = Schedule(matmul())
    sch.reorder_block_iter_var("C", [2, 0, 1])
    return sch


@wrong("`reorder_block_iter_var(block, [0, 0])`",
       r"new_order is \[0, 0\], not a permutation of the 2 iter vars of block B")
def iter_vars_twice():
    sch, b, _ = chain_blocks()
    sch.reorder_block_iter_var(b, [0, 0])


def run_iter_vars(sch: Schedule, name: str, order: list[int]) -> None:
    sch.reorder_block_iter_var(find_block(sch, name), order)


@move("reorder_block_iter_var", 0.7, 0.4, run_iter_vars)
def draw_iter_vars(chooser: Chooser, sch: Schedule, names: list[str]) -> Action | None:
    rng, name = chooser.rng, chooser.rng.choice(names)
    order = list(range(len(sch.realize(name).block.iter_vars)))
    rng.shuffle(order)
    return ("reorder_block_iter_var", name, order)
