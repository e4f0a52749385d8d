"""Wrong uses of decompose_reduction."""
from __future__ import annotations

import tilewright as tw
from tilewright import te

from ..programs import blocks, matmul, script
from ..wrong_use import Section, watch

SECTION = Section("Reductions")
wrong = SECTION.wrong


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


@wrong("`decompose_reduction` at a loop fused of an output axis and a reduction over nothing",
       r"loop i_k_fused never runs, so it does not tell which elements block C is to start")
def decompose_nothing():
    a, k = te.placeholder((4, 0), "int32", name="A"), te.reduce_axis((0, 0), name="k")
    c = te.compute((4,), lambda i: te.sum(a[i, k], axis=k), name="C")
    sch = tw.Schedule(te.create_prim_func([a, c]))
    fused = sch.fuse(*sch.get_loops("C"))
    watch(sch).decompose_reduction("C", fused)


@wrong("`decompose_reduction` inside a loop that never runs, of a reduction over nothing",
       r"loop i_k_fused, outside of u, never runs, and block C is to start all the same")
def decompose_inside_nothing():
    a, k = te.placeholder((4, 0), "int32", name="A"), te.reduce_axis((0, 0), name="k")
    c = te.compute((4,), lambda i: te.sum(a[i, k], axis=k), name="C")
    sch = tw.Schedule(te.create_prim_func([a, c]))
    sch.fuse(*sch.get_loops("C"))
    unit = sch.add_unit_loop("C")
    watch(sch).decompose_reduction("C", unit)


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
