"""set_axis_separator: its example, what it refuses, and how random schedules use it."""
from __future__ import annotations

from tests.fuzz.moves import Action, Chooser, find_block, move
from tests.schedule.case import Case
from tests.schedule.compute_support import stencil
from tests.wrong_uses.schedule_programs import chain_blocks
from tilewright.schedule import Schedule

CASE = Case("set_axis_separator")
wrong = CASE.wrong


@CASE.example
def example():
    """
    sch.set_axis_separator(block='B', buffer=['write', 0], axis_separators=[1])

    @T.prim_func
    def main(A: T.Buffer((22, 6), "int32"), C: T.Buffer((20, 6), "int32")):
        T.func_attr({"tir.noalias": True})
        # with T.block("root"):
        B = T.alloc_buffer((22, 6), "int32", axis_separators=[1])
        for i, j in T.grid(22, 6):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads(A[vi, vj])
                T.writes(B[vi, vj])
                B[vi, vj] = A[vi, vj] * 3
        for i, j in T.grid(20, 6):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads(B[vi:vi + 3, vj])
                T.writes(C[vi, vj])
                C[vi, vj] = B[vi, vj] + B[vi + 2, vj]
    """
    sch = Schedule(stencil())
    sch.set_axis_separator("B", ("write", 0), [1])
    return sch


@wrong("`set_axis_separator(block, (\"write\", 0), 1)`", r"axis_separators is 1, not a list of axes")
def separators_number():
    sch, b, _ = chain_blocks()
    sch.set_axis_separator(b, ("write", 0), 1)


@wrong("`set_axis_separator` with separators that fall", r"the separators \[2, 1\] do not rise from 0 to 2")
def separators_fall():
    sch, b, _ = chain_blocks()
    sch.set_axis_separator(b, ("write", 0), [2, 1])


@wrong("`set_axis_separator` of a buffer that the block does not use", r"block B has no buffer 'Z'")
def separators_of_nothing():
    sch, b, _ = chain_blocks()
    sch.set_axis_separator(b, "Z", [1])


def run_separator(sch: Schedule, name: str, buffer: list[object], axes: list[int]) -> None:
    sch.set_axis_separator(find_block(sch, name), tuple(buffer), axes)


@move("set_axis_separator", 0.5, 0.4, run_separator)
def draw_separator(chooser: Chooser, sch: Schedule, names: list[str]) -> Action | None:
    rng, name = chooser.rng, chooser.rng.choice(names)
    block = sch.realize(name).block
    kind = rng.choice(["read", "write"])
    regions = block.reads if kind == "read" else block.writes
    if not regions:
        return None
    index = rng.randrange(len(regions))
    rank = regions[index].buffer.ndim
    axes = sorted(rng.randrange(rank + 1) for _ in range(rng.choice([0, 1, 2])))
    return ("set_axis_separator", name, [kind, index], axes)
