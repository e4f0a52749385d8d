"""parallel: its example, what it refuses, and how random schedules use it."""
from __future__ import annotations

from tests.fuzz.moves import Action, Chooser, find_loop, move
from tests.schedule.case import Case
from tests.schedule.core_support import scale
from tests.wrong_uses.programs import blocks, script
from tests.wrong_uses.schedule_programs import diagonal, product
from tests.wrong_uses.wrong_use import watch
from tilewright import te
from tilewright.schedule import Schedule

CASE = Case("parallel")
wrong = CASE.wrong


@CASE.example
def example():
    """
    sch.parallel(loop=l0)

    @T.prim_func
    def scale(A: T.Buffer((10,), "int32"), B: T.Buffer((10,), "int32")):
        T.func_attr({"tir.noalias": True})
        # with T.block("root"):
        for i in T.parallel(10):
            with T.block("B"):
                vi = T.axis.spatial(10, i)
                T.reads(A[vi])
                T.writes(B[vi])
                B[vi] = A[vi] * 3
    """
    sch = Schedule(scale())
    sch.parallel(sch.get_loops("B")[0])
    return sch


@wrong("a loop of another schedule",
       r"parallel\(loop=i\): loop i belongs to another schedule")
def foreign_loop():
    sch, _, _, _, _ = product()
    other = blocks()
    watch(sch).parallel(other.get_loops("C")[0])


@wrong("`parallel` of a reduction loop",
       r"parallel\(loop=k\): cannot parallel loop k: it carries the reduction axis of block C")
def parallel_reduction():
    sch, _, _, _, k = product()
    sch.parallel(k)


@wrong("`parallel` of a loop that carries a dependence",
       r"cannot parallel loop i: two of its iterations may touch the same element of A")
def parallel_stencil():
    sch = diagonal()
    sch.parallel(sch.get_loops("S")[0])


@wrong("`parallel` of a loop whose iterations read what they left in a buffer of their own",
       r"each iteration of the parallel loop j would have a X of its own, and block P reads there what an earlier")
def parallel_left_over():
    sch = script("""
X = T.alloc_buffer((8,), "int32")
for i, j in T.grid(8, 8):
    with T.block("P"):
        vi, vj = T.axis.remap("SS", [i, j])
        B[vi, vj] = X[vj]
    with T.block("Q"):
        vi, vj = T.axis.remap("SS", [i, j])
        X[vj] = A[vi, vj]
""")
    sch.parallel(sch.get_loops("P")[1])


@wrong("`parallel` between loops over threads that share a reduction",
       r"threads share the steps of block C, and could not join their parts: loop j, between the threads, is parallel")
def parallel_between_threads():
    a, k = te.placeholder((4, 6, 8), "int32", name="A"), te.reduce_axis((0, 8), name="k")
    sch = Schedule(te.create_prim_func([a, te.compute((4, 6), lambda i, j: te.sum(a[i, j, k], axis=k), name="C")]))
    i, j, steps = sch.get_loops("C")
    sch.bind(i, "threadIdx.y")
    sch.bind(steps, "threadIdx.x")
    watch(sch).parallel(j)


def _run(sch: Schedule, where: tuple[str, int]) -> None:
    sch.parallel(find_loop(sch, where))


@move("parallel", 0.4, 2, _run, on_threads=(0.4, 1))
def draw(chooser: Chooser, sch: Schedule, names: list[str]) -> Action | None:
    found = chooser.loop(sch, names)
    return found and ("parallel", found[0])
