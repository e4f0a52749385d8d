"""reverse_compute_at: its example, what it refuses, and how random schedules use it."""
from __future__ import annotations

import tilewright as tw
from tests.fuzz.moves import Action, Chooser, find_block, find_loop, move
from tests.schedule.case import Case
from tests.schedule.core_support import matmul_relu
from tests.wrong_uses.programs import blocks, chain, matmul, script
from tests.wrong_uses.schedule_programs import DOUBLED, VECTORS_OF_8, VECTORS_OF_16
from tests.wrong_uses.wrong_use import watch
from tilewright import te
from tilewright.schedule import Schedule

CASE = Case("reverse_compute_at")
wrong = CASE.wrong


@CASE.example
def example():
    """
    sch.reverse_compute_at(block='D', loop=l0)

    @T.prim_func
    def matmul_relu(A: T.Buffer((4, 5), "int32"), B: T.Buffer((5, 6), "int32"), D: T.Buffer((4, 6), "int32")):
        T.func_attr({"tir.noalias": True})
        # with T.block("root"):
        C = T.alloc_buffer((4, 6), "int32")
        for i in range(4):
            for j, r in T.grid(6, 5):
                with T.block("C"):
                    vi, vj, vr = T.axis.remap("SSR", [i, j, r])
                    T.reads(A[vi, vr], B[vr, vj])
                    T.writes(C[vi, vj])
                    with T.init():
                        C[vi, vj] = 0
                    C[vi, vj] = C[vi, vj] + A[vi, vr] * B[vr, vj]
            for j in range(6):
                with T.block("D"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    T.reads(C[vi, vj])
                    T.writes(D[vi, vj])
                    D[vi, vj] = T.max(C[vi, vj], 0)
    """
    sch = Schedule(matmul_relu())
    sch.reverse_compute_at("D", sch.get_loops("C")[0])
    return sch


@wrong("`reverse_compute_at` of a block that does not read",
       r"reverse_compute_at\(block=B, loop=i\): no producer of block B is below loop i")
def reverse_of_producer():
    sch = blocks(chain)
    watch(sch).reverse_compute_at(sch.get_block("B"), sch.get_loops("C")[0])


@wrong("`reverse_compute_at` between a reader and a producer that comes after it",
       r"a producer of block R comes after one of its consumers in loop i")
def place_impossible():
    sch = script("""
X = T.alloc_buffer((8,), "int32")
for i in range(8):
    with T.block("S"):
        vi = T.axis.spatial(8, i)
        B[vi, 0] = A[vi, 0]
    with T.block("P"):
        vi = T.axis.spatial(8, i)
        X[vi] = 3
for i in range(8):
    with T.block("R"):
        vi = T.axis.spatial(8, i)
        A[vi, 0] = X[vi]
""")
    sch.reverse_compute_at("R", sch.get_loops("P")[0])


BACKWARDS = """
X = T.alloc_buffer((8, 8), "int32")
for k in {loop}(8):
    for i in range(8):
        with T.block("P"):
            vi = T.axis.spatial(8, i)
            vk = T.axis.spatial(8, {index})
            X[vi, vk] = A[vi, vk]
for i, k in T.grid(8, 8):
    with T.block("R"):
        vi, vk = T.axis.remap("SR", [i, k])
        with T.init():
            B[vi, 0] = 0
        B[vi, 0] = B[vi, 0] + X[vi, vk]
"""


@wrong("`reverse_compute_at` of a reduction where it would begin with its last step",
       r"the reduction over vk would not begin at its first step 0, where block R initialises")
def reverse_backwards():
    sch = script(BACKWARDS.format(loop="range", index="7 - k"))
    sch.reverse_compute_at("R", sch.get_loops("P")[0])


@wrong("`reverse_compute_at` of a reduction at a parallel loop that would run its steps",
       r"the parallel loop k would run a reduction of block R")
def reverse_parallel():
    sch = script(BACKWARDS.format(loop="T.parallel", index="k"))
    sch.reverse_compute_at("R", sch.get_loops("P")[0])


@wrong("`reverse_compute_at` at a loop of a reduction",
       r"what block D reads of block C is not all computed in one iteration of loop k")
def reverse_in_reduction():
    a, b, c = matmul()
    d = te.compute((16, 16), lambda i, j: c[i, j] * 2.0, name="D")
    sch = tw.Schedule(te.create_prim_func([a, b, d]))
    i, j, k = sch.get_loops("C")
    sch.reorder(i, k, j)
    watch(sch).reverse_compute_at("D", k)


@wrong("`reverse_compute_at` of a reduction at a loop that it does not use",
       r"every iteration of loop i would run the same part of block R")
def reverse_repeated():
    sch = script("""
X = T.alloc_buffer((8,), "int32")
for i in T.parallel(4):
    for j in range(8):
        with T.block("P"):
            vi, vj = T.axis.remap("SS", [i, j])
            X[vj] = A[vj]
for k in range(8):
    with T.block("R"):
        vk = T.axis.reduce(8, k)
        with T.init():
            B[0] = 0
        B[0] = B[0] + X[vk]
""", "A: T.Buffer((8,), 'int32'), B: T.Buffer((1,), 'int32')")
    sch.reverse_compute_at("R", sch.get_loops("P")[0])


@wrong("`reverse_compute_at` where the parts overlap", r"the parts of block D that the iterations of loop i0 would run")
def reverse_overlap():
    sch = script("""
X = T.alloc_buffer((20,), "int32")
for i0, i1 in T.grid(4, 6):
    with T.block("C"):
        vi = T.axis.spatial(20, i0 * 4 + i1)
        X[vi] = A[vi]
for i in range(18):
    with T.block("D"):
        vi = T.axis.spatial(18, i)
        B[vi] = X[vi]
""", "A: T.Buffer((20,), 'int32'), B: T.Buffer((18,), 'int32')")
    sch.reverse_compute_at("D", sch.get_loops("C")[0])


@wrong("`reverse_compute_at` of a block below an `if`",
       r"block D stands below a condition; staged or moved, it would lose it")
def reverse_out_of_branch():
    sch = script("""
X = T.alloc_buffer((8,), "int32")
for i in range(8):
    with T.block("C"):
        vi = T.axis.spatial(8, i)
        X[vi] = A[vi]
for i in range(8):
    if n > 3:
        with T.block("D"):
            vi = T.axis.spatial(8, i)
            B[vi] = X[vi]
""", "n: T.int32, A: T.Buffer((8,), 'int32'), B: T.Buffer((8,), 'int32')")
    sch.reverse_compute_at("D", sch.get_loops("C")[0])


@wrong("`reverse_compute_at` where a producer is complete after the loop only",
       r"what block Q reads of block R is not all computed in one iteration of loop i")
def reverse_incomplete():
    sch = script("""
X = T.alloc_buffer((8,), "int32")
Y = T.alloc_buffer((8,), "int32")
for i in range(8):
    for j in range(8):
        with T.block("R"):
            vj, vi = T.axis.remap("SR", [j, i])
            with T.init():
                X[vj] = 0
            X[vj] = X[vj] + A[vi, vj]
    with T.block("P"):
        vi = T.axis.spatial(8, i)
        Y[vi] = A[vi, 0]
for i, j in T.grid(8, 8):
    with T.block("Q"):
        vi, vj = T.axis.remap("SS", [i, j])
        B[vi, vj] = X[vj] + Y[vi]
""")
    sch.reverse_compute_at("Q", sch.get_loops("P")[0])


@wrong("`reverse_compute_at` into a parallel loop whose other iterations read what the block writes",
       r"iterations of the parallel loop i would conflict in A between blocks \w and \w")
def reverse_race():
    sch = script("""
X = T.alloc_buffer((7,), "int32")
for i in T.parallel(7):
    with T.block("P"):
        vi = T.axis.spatial(7, i)
        X[vi] = vi
    with T.block("R"):
        vi = T.axis.spatial(7, i)
        B[vi] = A[vi + 1]
for i in range(7):
    with T.block("Q"):
        vi = T.axis.spatial(7, i)
        A[vi] = X[vi] * 2
""", VECTORS_OF_8)
    sch.reverse_compute_at("Q", sch.get_loops("P")[0])


@wrong("`reverse_compute_at` at a loop that may have no iterations",
       r"block Q would not run where loop r has no iterations")
def reverse_idle():
    sch = watch(tw.Schedule(tw.script.from_source("""
@T.prim_func
def main(a: T.handle, B: T.Buffer((8,), "int32")):
    n = T.int32()
    A = T.match_buffer(a, (8, n), "int32")
    X = T.alloc_buffer((8,), "int32")
    for i, r in T.grid(8, n):
        with T.block("P"):
            vi, vr = T.axis.remap("SR", [i, r])
            with T.init():
                X[vi] = 0
            X[vi] = X[vi] + A[vi, vr]
    for i in range(8):
        with T.block("Q"):
            vi = T.axis.spatial(8, i)
            B[vi] = X[vi]
""")))
    sch.reverse_compute_at("Q", sch.get_loops("P")[1])


@wrong("`reverse_compute_at` of the last use of a buffer that a parallel loop's iterations then have to themselves",
       r"each iteration of the parallel loop p would have a X of its own, and block Q reads there what an earlier")
def move_left_over():
    sch = script("""
X = T.alloc_buffer((8,), "int32")
for o in range(2):
    for p in T.parallel(8):
        with T.block("P"):
            vi = T.axis.spatial(8, p)
            T.where(o < 1)
            X[vi] = A[vi, 0]
        with T.block("Q"):
            vo, vi = T.axis.remap("SS", [o, p])
            B[vi, vo] = X[vi]
for i in range(8):
    with T.block("R"):
        vi = T.axis.spatial(8, i)
        B[vi, 7] = X[vi]
""")
    sch.reverse_compute_at("R", sch.get_loops("P")[1])


@wrong("`reverse_compute_at` of a block with `vi = T.axis.spatial(16, B[15 - i] % 16)`",
       r"axis vi of block C is B\[15 - i\] % 16, which depends on data or a let")
def move_block_of_data():
    sch = script(DOUBLED + """
for i in range(16):
    with T.block("C"):
        vi = T.axis.spatial(16, B[15 - i] % 16)
        C[vi] = A[vi] + B[vi]
""", VECTORS_OF_16)
    sch.reverse_compute_at("C", sch.get_loops("B")[0])


def _run(sch: Schedule, name: str, where: tuple[str, int], units: bool, index: int) -> None:
    sch.reverse_compute_at(find_block(sch, name), find_loop(sch, where), preserve_unit_loops=units, index=index)


@wrong("`reverse_compute_at` under a condition that its producer is under",
       r"block C would run only where a condition holds")
def under_a_condition():
    sch = script("""
X = T.alloc_buffer((8, 8), "int32")
if n > 1:
    for i, j in T.grid(8, 8):
        with T.block("P"):
            vi, vj = T.axis.remap("SS", [i, j])
            X[vi, vj] = A[vi, vj]
for i, j in T.grid(8, 8):
    with T.block("C"):
        vi, vj = T.axis.remap("SS", [i, j])
        B[vi, vj] = T.if_then_else(n > 1, X[vi, vj], 0)
""", "A: T.Buffer((8, 8), 'int32'), B: T.Buffer((8, 8), 'int32'), n: T.int32")
    sch.reverse_compute_at("C", sch.get_loops("P")[0])


@wrong("`reverse_compute_at` of a block that leaves a variable that it uses",
       r"x would be used outside of the statement that binds it")
def leaving_a_let():
    sch = script("""
X = T.alloc_buffer((8, 8), "int32")
for i, j in T.grid(8, 8):
    with T.block("P"):
        vi, vj = T.axis.remap("SS", [i, j])
        X[vi, vj] = A[vi, vj]
x: T.int32 = n * 2
for i, j in T.grid(8, 8):
    with T.block("C"):
        vi, vj = T.axis.remap("SS", [i, j])
        B[vi, vj] = X[vi, vj] + x
""", "A: T.Buffer((8, 8), 'int32'), B: T.Buffer((8, 8), 'int32'), n: T.int32")
    sch.reverse_compute_at("C", sch.get_loops("P")[0])


@move("reverse_compute_at", 5, 1, _run)
def draw(chooser: Chooser, sch: Schedule, names: list[str]) -> Action | None:
    found = chooser.block_and_place(sch, names, sch.producers)
    return found and ("reverse_compute_at", *found)
