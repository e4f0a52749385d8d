"""set_scope: its example, what it refuses, and how random schedules use it."""
from __future__ import annotations

from tests.fuzz.moves import SCOPES, Action, Chooser, allocated, find_block, move
from tests.schedule.case import Case
from tests.schedule.compute_support import chain
from tests.wrong_uses.programs import blocks, script
from tests.wrong_uses.schedule_programs import product
from tests.wrong_uses.wrong_use import watch
from tilewright.schedule import Schedule

CASE = Case("set_scope")
wrong = CASE.wrong


@CASE.example
def example():
    """
    sch.set_scope(block='B', buffer_index=0, storage_scope='local')

    @T.prim_func
    def main(A: T.Buffer((20,), "int32"), C: T.Buffer((20,), "int32")):
        T.func_attr({"tir.noalias": True})
        # with T.block("root"):
        B = T.alloc_buffer((20,), "int32", scope="local")
        for i in range(20):
            with T.block("B"):
                vi = T.axis.spatial(20, i)
                T.reads(A[vi])
                T.writes(B[vi])
                B[vi] = A[vi] * 3
        for i in range(20):
            with T.block("C"):
                vi = T.axis.spatial(20, i)
                T.reads(B[vi])
                T.writes(C[vi])
                C[vi] = B[vi] - 1
    """
    sch = Schedule(chain())
    sch.set_scope("B", 0, "local")
    return sch


@wrong("`set_scope` of an argument's memory",
       r"set_scope\(block=C, buffer_index=0, storage_scope='local'\): C is an argument of the function")
def scope_of_argument():
    sch, block, _, _, _ = product()
    sch.set_scope(block, 0, "local")


@wrong("`set_scope(block, 1, \"local\")` of a block that writes one buffer",
       r"block C writes 1 buffer\(s\), there is no number 1")
def scope_of_nothing():
    watch(blocks()).set_scope("C", 1, "local")


@wrong("`set_scope(P, 0, \"local\")` of shared memory that one iteration fills for the next",
       r"each iteration of the thread_binding loop t would have a X of its own, and block Q reads there what an")
def scope_left_over():
    sch = script("""
X = T.alloc_buffer((8,), "int32", scope="shared")
for o in range(2):
    for t in T.thread_binding(8, "threadIdx.x"):
        with T.block("P"):
            vi = T.axis.spatial(8, t)
            T.where(o < 1)
            X[vi] = A[vi, 0]
        with T.block("Q"):
            vo, vi = T.axis.remap("SS", [o, t])
            B[vi, vo] = X[vi]
""")
    sch.set_scope("P", 0, "local")


def _run(sch: Schedule, name: str, position: int, scope: str) -> None:
    sch.set_scope(find_block(sch, name), position, scope)


@move("set_scope", 1.5, 1.5, _run)
def draw(chooser: Chooser, sch: Schedule, names: list[str]) -> Action | None:
    written = [t for t in allocated(sch, names) if t[1] == "write"]
    if not written:
        return None
    name, _, position = chooser.rng.choice(written)
    return ("set_scope", name, position, chooser.rng.choice(SCOPES))
