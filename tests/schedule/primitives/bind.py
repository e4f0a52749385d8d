"""bind: its example, what it refuses, and how random schedules use it."""
from __future__ import annotations

from tests.fuzz.moves import Action, Chooser, find_loop, move
from tests.schedule.case import Case
from tests.schedule.core_support import scale
from tests.wrong_uses.programs import blocks, chain, script
from tests.wrong_uses.programs import blocks as blocks_of
from tests.wrong_uses.schedule_programs import COPY, THREADS, product, tile_beside_copy
from tests.wrong_uses.wrong_use import watch
from tilewright.schedule import Schedule

CASE = Case("bind")
wrong = CASE.wrong


@CASE.example
def example():
    """
    sch.bind(loop=l0, thread_axis='threadIdx.x')

    @T.prim_func
    def scale(A: T.Buffer((10,), "int32"), B: T.Buffer((10,), "int32")):
        T.func_attr({"tir.noalias": True})
        # with T.block("root"):
        for i in T.thread_binding(10, thread="threadIdx.x"):
            with T.block("B"):
                vi = T.axis.spatial(10, i)
                T.reads(A[vi])
                T.writes(B[vi])
                B[vi] = A[vi] * 3
    """
    sch = Schedule(scale())
    sch.bind(sch.get_loops("B")[0], "threadIdx.x")
    return sch


@wrong("`bind` of a reduction loop to blocks of threads, which cannot share it",
       r"bind\(loop=k, thread_axis='blockIdx\.x'\): cannot bind loop k: it carries the reduction axis of block C")
def bind_reduction():
    sch, _, _, _, k = product()
    sch.bind(k, "blockIdx.x")


@wrong("`bind` of a reduction loop to threads, each of which would repeat its steps",
       r"whose steps threads cannot share: the loops from k inwards may repeat steps of block C")
def bind_repeated():
    sch = script("""
for i, k, u in T.grid(8, 8, 2):
    with T.block("C"):
        vi, vk = T.axis.remap("SR", [i, k])
        with T.init():
            B[vi, 0] = 0
        B[vi, 0] = B[vi, 0] + A[vi, vk]
""")
    sch.bind(sch.get_loops("C")[1], "threadIdx.x")


@wrong("`bind(loop, \"threadIdx.w\")`",
       r"bind\(loop=i, thread_axis='threadIdx\.w'\): 'threadIdx\.w' is not a thread axis")
def bind_unknown():
    sch, _, i, _, _ = product()
    sch.bind(i, "threadIdx.w")


@wrong("`bind(loop, 3)`",
       r"bind\(loop=i, thread_axis=3\): 3 is not a thread axis")
def bind_number():
    sch, _, i, _, _ = product()
    sch.bind(i, 3)


@wrong("`bind` of loops of different extents to one axis",
       r"loop j has extent 16, and loop j_0, bound to threadIdx.x in the same kernel, has 8")
def bind_extents():
    sch = blocks(chain)
    i, j = sch.get_loops("C")
    sch.compute_at("B", i)
    sch.bind(sch.split(sch.get_loops("B")[1], [8, 2])[0], "threadIdx.x")
    watch(sch).bind(j, "threadIdx.x")


@wrong("`bind` of nested loops to one axis", r"loop i is bound to threadIdx.x, and the loops are nested")
def bind_nested():
    sch = blocks(chain)
    i, j = sch.get_loops("C")
    sch.bind(i, "threadIdx.x")
    watch(sch).bind(j, "threadIdx.x")


@wrong("`bind` of nested loops to one axis of the blocks of threads",
       r"loop i is bound to blockIdx.x, and the loops are nested")
def bind_nested_blocks():
    sch = blocks_of(chain)
    i, j = sch.get_loops("C")
    sch.bind(i, "blockIdx.x")
    watch(sch).bind(j, "blockIdx.x")


@wrong("`bind` of a copy to more threads than there are",
       r"loop a is bound to threadIdx.x with extent 8, inside loop i ")
def bind_larger():
    sch = tile_beside_copy(COPY, "B[vi, vj] = S[3 - vi, vj]", around='T.thread_binding(4, thread="threadIdx.x")')
    sch.bind(sch.get_loops("P")[1], "threadIdx.x")


@wrong("`bind` of a copy in local memory inside of a loop of the same axis",
       r"the loops are nested: threads share work .*, and block P writes S in scope local")
def bind_local():
    sch = tile_beside_copy(COPY, scope="local", around=THREADS)
    sch.bind(sch.get_loops("P")[1], "threadIdx.x")


@wrong("`bind` of a copy that depends on the thread",
       r"share the work of block P, and what block P computes depends on i")
def bind_dependent():
    sch = tile_beside_copy("""
for b in range(8):
    with T.block("P"):
        va, vb = T.axis.remap("SS", [i, b])
        S[va, vb] = A[va, vb]
""", "B[vi, vj] = S[vi, vj]", around=THREADS)
    sch.bind(sch.get_loops("P")[1], "threadIdx.x")


@wrong("`bind` around a copy that makes less than a thread reads",
       r"it is not shown that each, alone, would have written all")
def bind_partial():
    sch = tile_beside_copy(COPY.replace("T.grid(8, 8)", "T.grid(4, 8)"))
    sch.bind(sch.get_loops("P")[0], "threadIdx.x")


@wrong("`bind` around a copy below a condition on data", r"would meet below a condition on data")
def bind_below_data():
    sch = tile_beside_copy("if A[0, 0] > 0:" + COPY.replace("\n", "\n    ").rstrip()
               + '\n    with T.block("Q"):\n        va = T.axis.spatial(8, i)\n        B[va, 0] = 1',
               "B[vi, vj] = A[vi, vj]")
    sch.bind(sch.get_loops("P")[0], "threadIdx.x")


@wrong("`bind` around a copy below a condition on another thread axis",
       r"would not all meet at the barriers .* depends on y")
def bind_below_condition():
    sch = script("""
S = T.alloc_buffer((8, 8), "int32", scope="shared")
for y in T.thread_binding(8, thread="threadIdx.y"):
    for i in range(8):
        if y < 1:
            for a, b in T.grid(8, 8):
                with T.block("P"):
                    va, vb = T.axis.remap("SS", [a, b])
                    S[va, vb] = A[va, vb]
            with T.block("R"):
                vi = T.axis.spatial(8, i)
                B[vi, 0] = S[7 - vi, 0]
""")
    sch.bind(sch.get_loops("P")[1], "threadIdx.x")


@wrong("`bind` of two loops of one copy to one axis", r"several loops bound to threadIdx.x would stand in one nest")
def bind_both():
    sch = tile_beside_copy(COPY, around=THREADS)
    _, a, b = sch.get_loops("P")
    sch.bind(a, "threadIdx.x")
    watch(sch).bind(b, "threadIdx.x")


@wrong("`bind` of a loop whose iterations meet those of the loop around it",
       r"two threads that share the work of loop b may touch the same element of S")
def bind_overlapping():
    sch = tile_beside_copy("""
for a, b in T.grid(8, 8):
    with T.block("P"):
        va, vb = T.axis.remap("SS", [a, b])
        S[va + vb, 0] = A[va, vb]
""", "B[vi, vj] = S[7 - vi, 0]", around=THREADS, size=16)
    sch.bind(sch.get_loops("P")[2], "threadIdx.x")


@wrong("`bind` around a reduction in shared memory whose steps threads share",
       r"run block P together, and those of loop k ")
def bind_shared_reduction():
    sch = script("""
S = T.alloc_buffer((8,), "int32", scope="shared")
for i in range(8):
    for k in T.thread_binding(8, thread="threadIdx.y"):
        with T.block("P"):
            vk = T.axis.reduce(8, k)
            with T.init():
                S[0] = 0
            S[0] = S[0] + A[0, vk]
    for j in range(8):
        with T.block("R"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = S[0]
""")
    sch.bind(sch.get_loops("P")[0], "threadIdx.x")


TAGS = ("blockIdx.x", "blockIdx.y", "threadIdx.x", "threadIdx.y", "vthread")


def _run(sch: Schedule, where: tuple[str, int], tag: str) -> None:
    sch.bind(find_loop(sch, where), tag)


@move("bind", 0, 0, _run, on_threads=(0.7, 6))
def draw(chooser: Chooser, sch: Schedule, names: list[str]) -> Action | None:
    rng, (name, loops) = chooser.rng, chooser.nest(sch, names)
    if not loops:
        return None
    position = 0 if rng.random() < 0.5 else rng.randrange(len(loops))
    return ("bind", (name, position), rng.choice(TAGS))
