"""decompose_reduction: its example, what it refuses, and how random schedules use it."""
from __future__ import annotations

import tilewright as tw
from tests.fuzz.moves import Action, Chooser, find_block, find_loop, move
from tests.schedule.case import Case
from tests.schedule.core_support import matmul as matmul_function
from tests.wrong_uses.programs import blocks, chain, matmul, script
from tests.wrong_uses.schedule_programs import VECTORS_OF_16, product
from tests.wrong_uses.wrong_use import watch
from tilewright import te
from tilewright.schedule import Schedule

CASE = Case("decompose_reduction")
wrong = CASE.wrong


@CASE.example
def example():
    """
    b3 = sch.decompose_reduction(block='C', loop=l1)

    @T.prim_func
    def matmul(A: T.Buffer((4, 5), "int32"), B: T.Buffer((5, 6), "int32"), C: T.Buffer((4, 6), "int32")):
        T.func_attr({"tir.noalias": True})
        # with T.block("root"):
        for i in range(4):
            for j_init in range(6):
                with T.block("C_init"):
                    vi_init, vj_init = T.axis.remap("SS", [i, j_init])
                    T.reads()
                    T.writes(C[vi_init, vj_init])
                    C[vi_init, vj_init] = 0
            for j, r in T.grid(6, 5):
                with T.block("C_update"):
                    vi, vj, vr = T.axis.remap("SSR", [i, j, r])
                    T.reads(C[vi, vj], A[vi, vr], B[vr, vj])
                    T.writes(C[vi, vj])
                    C[vi, vj] = C[vi, vj] + A[vi, vr] * B[vr, vj]
    """
    sch = Schedule(matmul_function())
    sch.decompose_reduction("C", sch.get_loops("C")[1])
    return sch


@wrong("`decompose_reduction` at a loop inside the reduction",
       r"decompose_reduction\(block=C, loop=j\): loop k, outside of j, drives a reduction axis of block C")
def decompose_inside():
    sch, block, _, _, k = product()
    sch.reorder(k, sch.get_loops(block)[1])
    watch(sch).decompose_reduction(block, sch.get_loops(block)[2])


@wrong("`decompose_reduction` of a block without a reduction",
       r"decompose_reduction\(block=B, loop=i\): block B is not a reduction with an init")
def decompose_elementwise():
    sch = blocks(chain)
    watch(sch).decompose_reduction(sch.get_block("B"), sch.get_loops("B")[0])


@wrong("`decompose_reduction` where threads share the steps", r"threads share the reduction of block C: each has a")
def decompose_threads():
    sch = blocks()
    i, _, k = sch.get_loops("C")
    sch.bind(k, "threadIdx.x")
    watch(sch).decompose_reduction("C", i)


MASKED = """
for i, k in T.grid(16, 16):
    with T.block("C"):
        T.where(k > 0)
        vi, vk = T.axis.remap("SR", [i, k])
        with T.init():
            C[vi] = 0
        C[vi] = C[vi] + A[vk]
"""


@wrong("`decompose_reduction` of a reduction whose first step `T.where(k > 0)` leaves out",
       r"block C may not start its reduction: its first step runs only where k > 0")
def decompose_masked_start():
    sch = script(MASKED, VECTORS_OF_16)
    sch.decompose_reduction("C", sch.get_loops("C")[1])


@wrong("`decompose_reduction` of a block with `T.where(M[i] > 0)` below a loop in which `M` is written",
       r"M, which is read on the way to block C, is written below loop i")
def decompose_below_written_condition():
    sch = script("""
M = T.alloc_buffer((16,), "int32")
for i in range(16):
    with T.block("M"):
        vi = T.axis.spatial(16, i)
        M[vi] = A[vi]
    for k in range(16):
        with T.block("C"):
            T.where(M[i] > 0)
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = 0
            C[vi] = C[vi] + A[vk]
""", VECTORS_OF_16)
    sch.decompose_reduction("C", sch.get_loops("C")[0])


@wrong("`decompose_reduction` of a reduction that starts with what other iterations write",
       r"block C starts its reduction with C, which may be written in between")
def decompose_start_that_reads():
    sch = script("""
for i, k in T.grid(16, 16):
    with T.block("C"):
        vi, vk = T.axis.remap("SR", [i, k])
        with T.init():
            C[vi] = C[15 - vi]
        C[vi] = C[vi] + A[vk]
""", VECTORS_OF_16)
    sch.decompose_reduction("C", sch.get_loops("C")[0])


@wrong("`decompose_reduction` at the loop of an axis that does not say which element is written",
       r"iteration vt of block C does not determine what is written: each starts the reduction again")
def decompose_started_again():
    sch = script("""
for i, t, k in T.grid(16, 2, 16):
    with T.block("C"):
        vi, vt, vk = T.axis.remap("SSR", [i, t, k])
        with T.init():
            C[vi] = vt
        C[vi] = C[vi] + A[vk]
""", VECTORS_OF_16)
    sch.decompose_reduction("C", sch.get_loops("C")[0])


@wrong("`decompose_reduction` of a reduction over `k` that starts with `C[vi] = vk`",
       r"how block C starts its reduction depends on the step")
def decompose_start_of_the_step():
    sch = script("""
for i, k in T.grid(16, 16):
    with T.block("C"):
        vi, vk = T.axis.remap("SR", [i, k])
        with T.init():
            C[vi] = vk
        C[vi] = C[vi] + A[vk]
""", VECTORS_OF_16)
    sch.decompose_reduction("C", sch.get_loops("C")[1])


@wrong("`decompose_reduction` at a loop of another block", r"loop i is not around block C")
def decompose_elsewhere():
    a, b, c = matmul()
    d = te.compute((16, 16), lambda i, j: c[i, j] * 2.0, name="D")
    sch = watch(tw.Schedule(te.create_prim_func([a, b, d])))
    sch.decompose_reduction("C", sch.get_loops("D")[0])


@wrong("`decompose_reduction` at a loop fused of an output and a reduction axis",
       r"loop j_k_fused drives output and reduction axes of block C")
def decompose_fused():
    sch = blocks()
    _, j, k = sch.get_loops("C")
    fused = sch.fuse(j, k)
    watch(sch).decompose_reduction("C", fused)


@wrong("`decompose_reduction` of a block with views",
       r"block C starts its reduction through views of buffers \(match_buffer\)")
def decompose_views():
    sch = script("""
for i, k in T.grid(8, 8):
    with T.block("C"):
        vi, vk = T.axis.remap("SR", [i, k])
        T.reads(A[vi, vk])
        T.writes(B[vi, 0])
        X = T.match_buffer(B[vi, 0], (1, 1), "int32")
        with T.init():
            X[0, 0] = 0
        X[0, 0] = X[0, 0] + A[vi, vk]
""")
    sch.decompose_reduction("C", sch.get_loops("C")[0])


@wrong("`decompose_reduction` at a loop that repeats the reduction", r"run block C more than once for the same point")
def decompose_repeated():
    sch = script("""
for i, u, k in T.grid(8, 2, 8):
    with T.block("C"):
        vi, vk = T.axis.remap("SR", [i, k])
        with T.init():
            B[vi, 0] = 0
        B[vi, 0] = B[vi, 0] + A[vi, vk]
""")
    sch.decompose_reduction("C", sch.get_loops("C")[1])


@wrong("`decompose_reduction` of outputs of which each step reaches fewer",
       r"block C may not start its reduction: the iterations of loop i depend on the step")
def decompose_fewer():
    sch = script("""
for k in range(4):
    for i in range(8 - k):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            vk = T.axis.reduce(4, k)
            with T.init():
                B[vi, 0] = 0
            B[vi, 0] = B[vi, 0] + A[vi, vk]
""")
    sch.decompose_reduction("C", sch.get_loops("C")[0])


@wrong("`decompose_reduction` where something uses the output first",
       r"B is touched below loop i before block C starts it")
def decompose_late():
    sch = script("""
for i in range(8):
    with T.block("P"):
        vi = T.axis.spatial(8, i)
        A[vi, 0] = B[vi, 0]
    for k in range(8):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi, 0] = 0
            B[vi, 0] = B[vi, 0] + 1
""")
    sch.decompose_reduction("C", sch.get_loops("P")[0])


@wrong("`decompose_reduction` of a guard over output and reduction loops",
       r"the condition .* of block C mixes output and reduction loops")
def decompose_mixed():
    sch = script("""
for i, k in T.grid(8, 8):
    with T.block("C"):
        vi, vk = T.axis.remap("SR", [i, k])
        T.where(i + k < 12)
        with T.init():
            B[vi, 0] = 0
        B[vi, 0] = B[vi, 0] + A[vi, vk]
""")
    sch.decompose_reduction("C", sch.get_loops("C")[1])


@wrong("`decompose_reduction` of a reduction that threads share", r"threads share the reduction of block C")
def decompose_between_threads():
    sch = blocks()
    *_, k = sch.get_loops("C")
    sch.bind(k, "threadIdx.x")
    watch(sch).decompose_reduction("C", k)


def _run(sch: Schedule, name: str, where: tuple[str, int]) -> None:
    sch.decompose_reduction(find_block(sch, name), find_loop(sch, where))


@move("decompose_reduction", 2, 3, _run)
def draw(chooser: Chooser, sch: Schedule, names: list[str]) -> Action | None:
    reducing = [n for n in names if sch.realize(n).block.init is not None and sch.loops_above(n)]
    if not reducing:
        return None
    name = chooser.rng.choice(reducing)
    return ("decompose_reduction", name, (name, chooser.rng.randrange(len(sch.loops_above(name)))))
