"""fuse: its example, what it refuses, and how random schedules use it."""
from __future__ import annotations

from tests.fuzz.moves import Action, Chooser, find_loop, move
from tests.schedule.case import Case
from tests.schedule.core_support import matmul
from tests.wrong_uses.programs import blocks, script
from tests.wrong_uses.schedule_programs import product
from tests.wrong_uses.wrong_use import watch
from tilewright import te
from tilewright.schedule import Schedule

CASE = Case("fuse")
wrong = CASE.wrong


@CASE.example
def example():
    """
    l3 = sch.fuse(l0, l1)

    @T.prim_func
    def matmul(A: T.Buffer((4, 5), "int32"), B: T.Buffer((5, 6), "int32"), C: T.Buffer((4, 6), "int32")):
        T.func_attr({"tir.noalias": True})
        # with T.block("root"):
        for i_j_fused, r in T.grid(24, 5):
            with T.block("C"):
                vi = T.axis.spatial(4, i_j_fused // 6)
                vj = T.axis.spatial(6, i_j_fused % 6)
                vr = T.axis.reduce(5, r)
                T.reads(A[vi, vr], B[vr, vj])
                T.writes(C[vi, vj])
                with T.init():
                    C[vi, vj] = 0
                C[vi, vj] = C[vi, vj] + A[vi, vr] * B[vr, vj]
    """
    sch = Schedule(matmul())
    sch.fuse(*sch.get_loops("C")[:2])
    return sch


@wrong("`fuse` of loops that are not nested directly",
       r"fuse\(i, k\): loop k is not the whole body of loop i")
def fuse_far():
    sch, _, i, _, k = product()
    sch.fuse(i, k)


@wrong("`fuse(j, i)`: the inner loop first",
       r"fuse\(j, i\): loop i is not the whole body of loop j")
def fuse_wrong_order():
    sch, _, i, j, _ = product()
    sch.fuse(j, i)


@wrong("`fuse(i, j, name=3)`", r"the name of a loop is a text, not 3")
def fuse_name():
    sch = watch(blocks())
    sch.fuse(*sch.get_loops("C")[:2], name=3)


@wrong("`fuse` of three loops of 2**30 iterations", r"the loops have \d+ iterations together, more than 64 bits count")
def fuse_huge():
    sch = script("""
for i, j, k in T.grid(1073741824, 1073741824, 1073741824):
    with T.block("S"):
        vi, vj, vk = T.axis.remap("SSR", [i, j, k])
        A[vi % 8, vj % 8] = B[vi % 8, vk % 8]
""")
    sch.fuse(*sch.get_loops("S"))


@wrong("`fuse` of some rows with the loop of a sum that may have no steps",
       r"the fused loop would not tell which elements block C starts where its reduction has no steps")
def fuse_of_some_rows():
    sch = script("""
for i, k in T.grid(4, n):
    with T.block("C"):
        vi = T.axis.spatial(8, i)
        vk = T.axis.reduce(n, k)
        with T.init():
            B[vi, 0] = 0
        B[vi, 0] = B[vi, 0] + A[vi, vk]
""", "A: T.Buffer((8, 8), 'int32'), B: T.Buffer((8, 8), 'int32'), n: T.int32")
    sch.fuse(*sch.get_loops("C"))


@wrong("`fuse` of a loop that may not run and drives nothing with the loop of a sum that may have no steps",
       r"loop u may have no iterations, and then block C does not start its reduction")
def fuse_with_idle_loop():
    sch = script("""
for i, u, k in T.grid(8, p, n):
    with T.block("C"):
        vi = T.axis.spatial(8, i)
        vk = T.axis.reduce(n, k)
        with T.init():
            B[vi, 0] = 0
        B[vi, 0] = B[vi, 0] + A[vi, vk]
""", "A: T.Buffer((8, 8), 'int32'), B: T.Buffer((8, 8), 'int32'), n: T.int32, p: T.int32")
    sch.fuse(*sch.get_loops("C")[1:])


@wrong("`fuse()` of nothing", r"there is no loop to fuse")
def fuse_nothing():
    watch(blocks()).fuse()


@wrong("`fuse` of a triangular nest", r"the bounds of loop j depend on loop i, so they cannot be fused")
def fuse_triangle():
    sch = script("""
for i in range(8):
    for j in range(i + 1):
        with T.block("S"):
            vi = T.axis.spatial(8, i)
            vj = T.axis.spatial(8, j)
            B[vi, vj] = A[vi, vj]
""")
    sch.fuse(*sch.get_loops("S"))


@wrong("`fuse` of a part of an output axis with the loop of a sum of nothing",
       r"the fused loop would not tell which elements block C starts where its reduction has no steps")
def fuse_part_with_nothing():
    a = te.placeholder((8, 0), name="A")
    k = te.reduce_axis((0, 0), name="k")
    sch = blocks(lambda: (a, te.compute((8,), lambda i: te.sum(a[i, k], axis=k), name="C")))
    i, k = sch.get_loops(sch.get_block("C"))
    _, inner = sch.split(i, [None, 2])
    watch(sch).fuse(inner, k)


def _run(sch: Schedule, wheres: list[tuple[str, int]]) -> None:
    sch.fuse(*[find_loop(sch, where) for where in wheres])


@move("fuse", 4, 1, _run)
def draw(chooser: Chooser, sch: Schedule, names: list[str]) -> Action | None:
    rng, (name, loops) = chooser.rng, chooser.nest(sch, names)
    if len(loops) < 2:
        return None
    first = rng.randrange(len(loops) - 1)
    count = min(rng.choice([2, 2, 3]), len(loops) - first)
    return ("fuse", [(name, first + n) for n in range(count)])
