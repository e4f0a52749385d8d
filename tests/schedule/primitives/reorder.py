"""reorder: its example, what it refuses, and how random schedules use it."""
from __future__ import annotations

from tests.fuzz.moves import Action, Chooser, find_loop, move
from tests.schedule.case import Case
from tests.schedule.core_support import matmul
from tests.wrong_uses.programs import blocks, chain
from tests.wrong_uses.schedule_programs import diagonal, product
from tests.wrong_uses.wrong_use import watch
from tilewright.schedule import Schedule

CASE = Case("reorder")
wrong = CASE.wrong


@CASE.example
def example():
    """
    sch.reorder(l2, l0)

    @T.prim_func
    def matmul(A: T.Buffer((4, 5), "int32"), B: T.Buffer((5, 6), "int32"), C: T.Buffer((4, 6), "int32")):
        T.func_attr({"tir.noalias": True})
        # with T.block("root"):
        for r, j, i in T.grid(5, 6, 4):
            with T.block("C"):
                vi, vj, vr = T.axis.remap("SSR", [i, j, r])
                T.reads(A[vi, vr], B[vr, vj])
                T.writes(C[vi, vj])
                with T.init():
                    C[vi, vj] = 0
                C[vi, vj] = C[vi, vj] + A[vi, vr] * B[vr, vj]
    """
    sch = Schedule(matmul())
    i, _, k = sch.get_loops("C")
    sch.reorder(k, i)
    return sch


@wrong("`reorder(i, i)`",
       r"reorder\(i, i\): loop i is given twice")
def reorder_twice():
    sch, _, i, _, _ = product()
    sch.reorder(i, i)


@wrong("`reorder()` of loops of two nests",
       r"reorder\(i, j\): loops j and i are not nested in one another")
def reorder_nests():
    sch = blocks(chain)
    watch(sch).reorder(sch.get_loops("B")[0], sch.get_loops("C")[1])


@wrong("`reorder()` of nothing", r"there is no loop to reorder")
def reorder_nothing():
    watch(blocks()).reorder()


@wrong("`reorder` against a dependence", r"the order j, i breaks a dependence of block S on A")
def reorder_stencil():
    sch = diagonal()
    i, j = sch.get_loops("S")
    sch.reorder(j, i)


@wrong("`reorder` of loops with a statement between them", r"loop i holds more than the loop down to j")
def reorder_imperfect():
    sch = blocks(chain)
    i, j = sch.get_loops("C")
    sch.compute_at("B", i)
    watch(sch).reorder(j, i)


def _run(sch: Schedule, wheres: list[tuple[str, int]]) -> None:
    sch.reorder(*[find_loop(sch, where) for where in wheres])


@move("reorder", 5, 1, _run)
def draw(chooser: Chooser, sch: Schedule, names: list[str]) -> Action | None:
    rng, (name, loops) = chooser.rng, chooser.nest(sch, names)
    if len(loops) < 2:
        return None
    return ("reorder", [(name, n) for n in rng.sample(range(len(loops)), rng.randint(2, len(loops)))])
