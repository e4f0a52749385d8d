"""Wrong uses of primitives on programs that read memory outside of the bodies of blocks."""
from __future__ import annotations

import tilewright as tw
from tilewright.script import from_source

from ..programs import script
from ..wrong_use import Section

SECTION = Section("Reads in conditions, bounds and the axes of blocks")
wrong = SECTION.wrong

VECTORS = "A: T.Buffer((16,), 'int32'), C: T.Buffer((16,), 'int32')"
PRODUCER = """
B = T.alloc_buffer((16,), "int32")
for i in range(16):
    with T.block("B"):
        vi = T.axis.spatial(16, i)
        B[vi] = A[vi] * 2
"""
MASKED = """
for i, k in T.grid(16, 16):
    with T.block("C"):
        T.where(k > 0)
        vi, vk = T.axis.remap("SR", [i, k])
        with T.init():
            C[vi] = 0
        C[vi] = C[vi] + A[vk]
"""


@wrong("`compute_inline` of a block whose buffer a statement outside of every block reads",
       r"(?s)a statement outside of every block touches B.*hint: put it into a block")
def loose_reader():
    sch = script(PRODUCER + "for i in range(16):\n    C[i] = B[15 - i]\n", VECTORS)
    sch.compute_inline("B")


@wrong("`cache_write` of a block with `T.where(C[i] > 0)` that writes `C`",
       r"C, which block C writes, is read on the way to it")
def cached_below_its_own_condition():
    sch = script("""
for i in range(16):
    with T.block("C"):
        T.where(C[i] > 0)
        vi = T.axis.spatial(16, i)
        C[vi] = A[vi]
""", VECTORS)
    sch.cache_write("C", 0, "local")


@wrong("`reverse_compute_at` of a block with `vi = T.axis.spatial(16, B[15 - i] % 16)`",
       r"axis vi of block C is B\[15 - i\] % 16, which depends on data or a let")
def move_block_of_data():
    sch = script(PRODUCER + """
for i in range(16):
    with T.block("C"):
        vi = T.axis.spatial(16, B[15 - i] % 16)
        C[vi] = A[vi] + B[vi]
""", VECTORS)
    sch.reverse_compute_at("C", sch.get_loops("B")[0])


@wrong("`split` of `for i in range(C[0])` over a block that writes `C`",
       r"(?s)C is read by the bounds of a loop, and written below it.*hint: keep what bounds read")
def split_of_bounds_that_change():
    sch = script("""
for i in range(C[0]):
    with T.block("C"):
        vi = T.axis.spatial(16, i)
        T.where(i < 16)
        C[vi] = A[vi]
""", VECTORS)
    sch.split(sch.get_loops("C")[0], [None, 4])


@wrong("`blockize` of a loop over a block with `T.where(A[i] > 0)`",
       r"A is read on the way to block C, in what is to be the new block")
def blockize_condition_on_data():
    sch = script("""
for i in range(16):
    with T.block("C"):
        vi = T.axis.spatial(16, i)
        T.where(A[i] > 0)
        C[vi] = 1
""", VECTORS)
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
""", VECTORS)
    sch.blockize(sch.get_loops("C")[2])


@wrong("`decompose_reduction` of a reduction whose first step `T.where(k > 0)` leaves out",
       r"block C may not start its reduction: its first step runs only where k > 0")
def decompose_masked_start():
    sch = script(MASKED, VECTORS)
    sch.decompose_reduction("C", sch.get_loops("C")[1])


@wrong("`rfactor` of a reduction whose loop runs from the last step to the first",
       r"block C may not start its reduction: its loops begin at vk = 15 - k, which need not be 0 there")
def rfactor_backwards():
    sch = script("""
for i, k in T.grid(16, 16):
    with T.block("C"):
        vi = T.axis.spatial(16, i)
        vk = T.axis.reduce(16, 15 - k)
        with T.init():
            C[vi] = 0
        C[vi] = C[vi] + A[vk]
""", VECTORS)
    sch.rfactor(sch.get_loops("C")[1], 0)


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
""", VECTORS)
    sch.decompose_reduction("C", sch.get_loops("C")[0])


@wrong("`compute_at` into a loop whose bounds read what the block computes",
       r"(?s)B is read on the way to block C, outside of the body of loop k.*hint: choose an outer loop")
def compute_at_own_bounds():
    sch = script(PRODUCER + """
for i in range(16):
    for k in range(B[i] % 4):
        with T.block("C"):
            vi = T.axis.spatial(16, i)
            vk = T.axis.opaque(4, k)
            C[vi] = vk
""", VECTORS)
    sch.compute_at("B", sch.get_loops("C")[1])


@wrong("`reverse_compute_inline` of `A[vi] = B[vi]` into `B[vi] = A[15 - vi]`",
       r"block W writes what block B reads at other elements")
def reverse_inline_in_place():
    sch = script(PRODUCER.replace("A[vi] * 2", "A[15 - vi]") + """
for i in range(16):
    with T.block("W"):
        vi = T.axis.spatial(16, i)
        A[vi] = B[vi]
""", VECTORS)
    sch.reverse_compute_inline("W")


@wrong("`Schedule(func)` of a function with `T.block_attr({\"n\": C[0]})` that writes `C`",
       r"f: an annotation reads C, which the function writes")
def schedule_of_annotation_that_changes():
    text = """
@T.prim_func
def f(A: T.Buffer((16,), "int32"), C: T.Buffer((16,), "int32")):
    for i in range(16):
        with T.block("C"):
            vi = T.axis.spatial(16, i)
            T.block_attr({"n": C[0]})
            C[vi] = A[vi]
"""
    tw.Schedule(from_source(text))


@wrong("`Schedule(func)` of a function with `T.alloc_buffer((C[0],))` that writes `C`",
       r"f: the declaration of a buffer reads C, which the function writes")
def schedule_of_extent_that_changes():
    text = """
@T.prim_func
def f(A: T.Buffer((16,), "int32"), C: T.Buffer((16,), "int32")):
    with T.block("root"):
        B = T.alloc_buffer((C[0],), "int32")
        for i in range(16):
            with T.block("C"):
                vi = T.axis.spatial(16, i)
                C[vi] = A[vi]
"""
    tw.Schedule(from_source(text))


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
""", VECTORS)
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
""", VECTORS)
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
""", VECTORS)
    sch.decompose_reduction("C", sch.get_loops("C")[1])


@wrong("`reverse_compute_inline` of a block that stores to `C[vi // 2]`",
       r"two iterations of block C may write one element of C, so that their order decides its value")
def inline_block_that_writes_twice():
    sch = script(PRODUCER + """
for i in range(16):
    with T.block("C"):
        vi = T.axis.spatial(16, i)
        C[vi // 2] = B[15 - vi]
""", VECTORS)
    sch.reverse_compute_inline("C")
