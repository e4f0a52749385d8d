"""vectorize: its example, what it refuses, and how random schedules use it."""
from __future__ import annotations

import tilewright as tw
from tests.fuzz.moves import Action, Chooser, find_loop, may_copy, move
from tests.schedule.case import Case
from tests.schedule.core_support import scale
from tests.wrong_uses.schedule_programs import product
from tests.wrong_uses.wrong_use import watch
from tilewright import te
from tilewright.schedule import Schedule

CASE = Case("vectorize")
wrong = CASE.wrong


@CASE.example
def example():
    """
    sch.vectorize(loop=l0)

    @T.prim_func
    def scale(A: T.Buffer((10,), "int32"), B: T.Buffer((10,), "int32")):
        T.func_attr({"tir.noalias": True})
        # with T.block("root"):
        for i in T.vectorized(10):
            with T.block("B"):
                vi = T.axis.spatial(10, i)
                T.reads(A[vi])
                T.writes(B[vi])
                B[vi] = A[vi] * 3
    """
    sch = Schedule(scale())
    sch.vectorize(sch.get_loops("B")[0])
    return sch


@wrong("a loop that `split` has replaced",
       r"vectorize\(loop=i\): loop i does not exist any more: split consumed it")
def stale_loop():
    sch, _, i, _, _ = product()
    sch.split(i, [None, 4])
    watch(sch).vectorize(i)


@wrong("`vectorize` of a reduction loop",
       r"vectorize\(loop=k\): cannot vectorize loop k: it carries the reduction axis of block C")
def vectorize_reduction():
    sch, _, _, _, k = product()
    sch.vectorize(k)


@wrong("`vectorize` of a loop of symbolic extent",
       r"vectorize\(loop=i\): cannot vectorize loop i: its extent n is not a constant")
def vectorize_symbolic():
    n = te.var("n")
    a = te.placeholder((n,), name="A")
    c = te.compute((n,), lambda i: a[i] + 1.0, name="C")
    sch = tw.Schedule(te.create_prim_func([a, c]))
    watch(sch).vectorize(sch.get_loops("C")[0])


def _run(sch: Schedule, where: tuple[str, int]) -> None:
    sch.vectorize(find_loop(sch, where))


@move("vectorize", 0.4, 3, _run)
def draw(chooser: Chooser, sch: Schedule, names: list[str]) -> Action | None:
    rng, (name, loops) = chooser.rng, chooser.nest(sch, names)
    if not loops:
        return None
    position = len(loops) - 1 if rng.random() < 0.6 else rng.randrange(len(loops))
    return ("vectorize", (name, position)) if may_copy(sch, loops[position]) else None
