"""blockize: its example, what it refuses, and how random schedules use it."""
from __future__ import annotations

from typing import Any

import tilewright as tw
from tests.fuzz.moves import Action, Chooser, find_block, find_loop, move
from tests.schedule.case import Case
from tests.schedule.core_support import scale
from tests.wrong_uses.programs import blocks, chain, script
from tests.wrong_uses.schedule_programs import VECTORS_OF_16, elementwise, guarded, inner_of_split, scheduled_function
from tests.wrong_uses.wrong_use import watch
from tilewright import te
from tilewright.schedule import Schedule
from tilewright.script import tir as T

CASE = Case("blockize")
wrong = CASE.wrong


@CASE.example
def example():
    """
    b3 = sch.blockize(target=l2)

    @T.prim_func
    def scale(A: T.Buffer((12,), "int32"), B: T.Buffer((12,), "int32")):
        T.func_attr({"tir.noalias": True})
        # with T.block("root"):
        for i_0 in range(3):
            with T.block("B_o"):
                vi_o = T.axis.spatial(3, i_0)
                T.reads(A[vi_o * 4:vi_o * 4 + 4])
                T.writes(B[vi_o * 4:vi_o * 4 + 4])
                for i_1 in range(4):
                    with T.block("B"):
                        vi_i = T.axis.spatial(4, i_1)
                        T.reads(A[vi_o * 4 + vi_i])
                        T.writes(B[vi_o * 4 + vi_i])
                        B[vi_o * 4 + vi_i] = A[vi_o * 4 + vi_i] * 3
    """
    sch = Schedule(scale(12))
    sch.blockize(sch.split(sch.get_loops("B")[0], [3, 4])[1])
    return sch


@wrong("`blockize` of a reduction whose loop may not run over its domain",
       r"axis vk of block C has elements, and the axes of the new block none where its loops have no iterations")
def reduction_of_some_steps():
    sch = script("""
for i, k in T.grid(8, n):
    with T.block("C"):
        vi = T.axis.spatial(8, i)
        vk = T.axis.reduce(8, k)
        with T.init():
            B[vi, 0] = 0
        B[vi, 0] = B[vi, 0] + A[vi, vk]
""", "A: T.Buffer((8, 8), 'int32'), B: T.Buffer((8, 8), 'int32'), n: T.int32")
    sch.blockize(sch.get_loops("C")[0])


@wrong("`blockize` of a loop over a block with `T.where(A[i] > 0)`",
       r"A is read on the way to block C, in what is to be the new block")
def blockize_condition_on_data():
    sch = script("""
for i in range(16):
    with T.block("C"):
        vi = T.axis.spatial(16, i)
        T.where(A[i] > 0)
        C[vi] = 1
""", VECTORS_OF_16)
    sch.blockize(sch.get_loops("C")[0])


@wrong("`blockize` of an inner loop of a reduction whose first step `T.where(l * 4 + m > 0)` leaves out",
       r"block C may not start its reduction: its first step runs only where l \* 4 \+ m > 0")
def blockize_masked_start():
    sch = script("""
for i, l, m in T.grid(16, 4, 4):
    with T.block("C"):
        T.where(l * 4 + m > 0)
        vi = T.axis.spatial(16, i)
        vk = T.axis.reduce(16, l * 4 + m)
        with T.init():
            C[vi] = 0
        C[vi] = C[vi] + A[vk]
""", VECTORS_OF_16)
    sch.blockize(sch.get_loops("C")[2])


@T.prim_func
def mixed(A: T.Buffer((64,), "int32"), C: T.Buffer((64,), "int32")):
    for i, k, j in T.grid(4, 2, 8):
        with T.block("C"):
            T.where(i * j < 30)
            vi = T.axis.spatial(64, i * 16 + k * 8 + j)
            C[vi] = A[vi] + 1


@T.prim_func
def beside_steps(A: T.Buffer((4, 8), "int32"), C: T.Buffer((4,), "int32"), D: T.Buffer((4, 8), "int32")):
    for i, k in T.grid(4, 8):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = 0
            C[vi] = C[vi] + A[vi, vk]
        with T.block("D"):
            vi, vk = T.axis.remap("SS", [i, k])
            D[vi, vk] = A[vi, vk] + 1


@T.prim_func
def rows_of_data(N: T.Buffer((4,), "int32"), C: T.Buffer((4, 9), "int32")):
    for i in range(4):
        for j in range(N[i]):
            with T.block("C"):
                vi = T.axis.spatial(4, i)
                vj = T.axis.spatial(9, j)
                C[vi, vj] = vi + vj


@T.prim_func
def triangle(A: T.Buffer((16, 16), "int32"), C: T.Buffer((16, 16), "int32")):
    for i in range(16):
        for j in range(i + 1):
            with T.block("C"):
                vi = T.axis.spatial(16, i)
                vj = T.axis.spatial(16, j)
                C[vi, vj] = A[vi, vj] + 1


@T.prim_func
def sum_of_each_lane(A: T.Buffer((2, 4, 8), "int32"), D: T.Buffer((2, 4, 8), "int32"), E: T.Buffer((2, 4), "int32")):
    S = T.alloc_buffer((1,), "int32")
    for t in range(2):
        for i in T.parallel(4):
            with T.block("start"):
                S[0] = 0
            for k in range(8):
                with T.block("S"):
                    vt, vi, vk = T.axis.remap("SSR", [t, i, k])
                    S[0] = S[0] + A[vt, vi, vk]
                with T.block("D"):
                    vt, vi, vk = T.axis.remap("SSS", [t, i, k])
                    D[vt, vi, vk] = A[vt, vi, vk] * 2
            with T.block("E"):
                vt, vi = T.axis.remap("SS", [t, i])
                E[vt, vi] = S[0]


@wrong("`blockize([S, D])` in a parallel loop whose iterations have a sum each",
       r"each iteration of the parallel loop i has its own S; a block of several, ordered along loop t, would give "
       r"them one")
def blockize_own_sum():
    sch = watch(tw.Schedule(sum_of_each_lane))
    sch.blockize([sch.get_block("S"), sch.get_block("D")])


@wrong("`blockize([block])` below a loop whose extent is read from memory",
       r"the values of loop j are not bounded while loop i runs")
def blockize_below_data():
    sch = watch(tw.Schedule(rows_of_data))
    sch.blockize([sch.get_block("C")])


@wrong("`blockize(3)`", r"blockize\(target=3\): 3 is not a loop or a list of blocks")
def blockize_number():
    watch(blocks(chain)).blockize(3)


@wrong("`blockize(i)` of a loop with two blocks below it", r"2 blocks are in the subtree: B, C")
def blockize_two():
    sch = blocks(chain)
    sch.compute_at("B", sch.get_loops("C")[0])
    watch(sch).blockize(sch.get_loops("C")[0])


@wrong("`blockize(i)` of a loop with a condition in it", r"there is a IfThenElse between the loop and block C")
def blockize_condition():
    sch = scheduled_function(guarded)
    sch.blockize(sch.get_loops("C")[0])


@wrong("`blockize(i_0)` of a loop that steps over what the loops outside run through",
       r"axis vi is i_0 \* 4 \+ i_1, which is no outer\*c \+ inner for the loops i_0")
def blockize_strides():
    sch = elementwise()
    i0, i1 = sch.split(sch.get_loops("C")[0], [4, 4])
    sch.reorder(i1, i0)
    watch(sch).blockize(i0)


@wrong("`blockize(j)` below a condition that mixes loops", r"the condition i \* j < 30 of block C cannot be told")
def blockize_mixed_condition():
    sch = scheduled_function(mixed)
    sch.blockize(sch.get_loops("C")[2])


@wrong("`blockize(j)` of a loop as long as a split loop around says",
       r"the bounds 0 and i_0 \* 4 \+ i_1 \+ 1 of loop j cannot be told by the new block's axes")
def blockize_triangle():
    sch = Schedule(triangle)
    sch.split(sch.get_loops("C")[0], [None, 4])
    watch(sch).blockize(sch.get_loops("C")[2])


@wrong("`blockize(k)` of a loop that never runs, around an axis that has no values",
       r"axis vi of block C is 0 around the loops, which is not known to be in its domain where they never run")
def blockize_nothing():
    sch = script("""
for k in range(0):
    with T.block("C"):
        vi = T.axis.spatial(0, 0)
        C[vi] = A[vi]
""", VECTORS_OF_16)
    sch.blockize(sch.get_loops("C")[0])


@wrong("`blockize(ki)` of a sum that may have no terms, below a loop that runs all the same",
       r"axis vk of block C has n elements; where these are none, the new block's axes would not tell")
def blockize_sum_over_nothing():
    sch = script("""
for ko, ki in T.grid(T.max(n, 1), 4):
    with T.block("C"):
        vk = T.axis.reduce(n, ko * 4 + ki)
        T.where(ko * 4 + ki < n)
        with T.init():
            B[0] = 0
        B[0] = B[0] + A[vk]
""", "A: T.Buffer((8,), 'int32'), B: T.Buffer((1,), 'int32'), n: T.int32")
    sch.blockize(sch.get_loops("C")[1])


REPEATED = """
for i, k in T.grid(8, 8):
    for u in range({times}):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi, 0] = 0
            B[vi, 0] = B[vi, 0] + A[vi, vk]
"""


@wrong("`blockize(u)` of a loop that repeats each step of a sum, which starts again each time",
       r"the loops from u inwards run block C more than once for the same point")
def blockize_repeated():
    sch = script(REPEATED.format(times=2))
    sch.blockize(sch.get_loops("C")[2])


@wrong("`blockize(u)` of a loop of no iterations in each step of a sum",
       r"block C never runs, and the new block would start its reduction")
def blockize_idle():
    sch = script(REPEATED.format(times=0))
    sch.blockize(sch.get_loops("C")[2])


@wrong("`blockize(k)` of a sum whose loop does not begin at its first step",
       r"block C starts its reduction at vk = 0, and would start it at 1 in the new block")
def blockize_late_steps():
    sch = script("""
for i in range(8):
    for k in range(1, 8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            vk = T.axis.reduce(8, k)
            with T.init():
                B[vi, 0] = 0
            B[vi, 0] = B[vi, 0] + A[vi, vk]
""")
    sch.blockize(sch.get_loops("C")[1])


@wrong("`blockize(k)` of a sum that may have no terms, whose loop drives its output too",
       r"where axis vk of block C has no elements, the whole domain of axis vi starts")
def blockize_part_of_outputs():
    sch = script("""
for k in range(n):
    with T.block("C"):
        vi = T.axis.spatial(8, k)
        vk = T.axis.reduce(n, k)
        with T.init():
            B[vi] = 0
        B[vi] = B[vi] + A[vk]
""", "A: T.Buffer((8,), 'int32'), B: T.Buffer((8,), 'int32'), n: T.int32")
    sch.blockize(sch.get_loops("C")[0])


@wrong("`blockize([root])`", r"the root block cannot be put into a block")
def blockize_root():
    sch = watch(blocks(chain))
    sch.blockize([sch.get_block("root")])


@wrong("`blockize([C, C_o])`: a block and one inside it", r"blocks C_o and C are in different blocks")
def blockize_scopes():
    sch = elementwise()
    outer = sch.blockize(inner_of_split(sch))
    watch(sch).blockize([outer, sch.get_block("C")])


@wrong("`blockize([C, D])` where C starts a reduction over a loop around both",
       r"block C reduces over loops around the blocks, and starts its reduction among them")
def blockize_reduction():
    sch = scheduled_function(beside_steps)
    sch.blockize([sch.get_block("C"), sch.get_block("D")])


@wrong("`blockize([B, D])` with block C between them", r"block C stands between them")
def blockize_gap():
    a = te.placeholder((4,), "int32", name="A")
    b = te.compute((4,), lambda i: a[i] + 1, name="B")
    c = te.compute((4,), lambda i: b[i] + 1, name="C")
    d = te.compute((4,), lambda i: c[i] + b[i], name="D")
    sch = scheduled_function(te.create_prim_func([a, d]))
    sch.blockize([sch.get_block("B"), sch.get_block("D")])


def _run_blockize(sch: Schedule, where: Any, units: bool) -> None:
    target = find_loop(sch, where) if isinstance(where[1], int) else [find_block(sch, b) for b in where]
    sch.blockize(target, preserve_unit_iters=units)


@move("blockize", early=0.4, late=1.5, run=_run_blockize)
def draw_blockize(chooser: Chooser, sch: Schedule, names: list[str]) -> Action | None:
    rng = chooser.rng
    name = rng.choice(names)
    loops = sch.loops_above(name)
    if rng.random() < 0.15:
        beside = [n for n in names if sch.index.scope_of(sch.realize(n)) is sch.index.scope_of(sch.realize(name))]
        return ("blockize", [name, rng.choice(beside)], True)
    if not loops:
        return None
    place = len(loops) - 1 - min(rng.choice([0, 0, 1, 1, 2, 3]), len(loops) - 1)
    return ("blockize", (name, place), rng.random() < 0.7)
