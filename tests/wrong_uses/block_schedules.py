"""Wrong uses of block schedules that no primitive refuses."""
from __future__ import annotations

import tilewright as tw
from tilewright import te
from tilewright.script import from_source

from .programs import blocks, chain, matmul
from .wrong_use import Section, watch

SECTION = Section("Blocks (`sch = tilewright.Schedule(func)`)")
wrong = SECTION.wrong


@wrong("`Schedule(3)`",
       r"Schedule takes a PrimFunc or an IRModule, not int")
def schedule_of_number():
    tw.Schedule(3)


@wrong("`Schedule(tw.IRModule({}))`: nothing to schedule",
       r"the module has no kernel \(PrimFunc\) to schedule")
def schedule_of_nothing():
    tw.Schedule(tw.IRModule({}))


@wrong("`Schedule(lowered)`: a function that is lowered already",
       r"function main is not in block form")
def schedule_of_lowered():
    tensors = matmul()
    tw.Schedule(tw.lower(te.create_prim_func(list(tensors))))


@wrong("`Schedule(func)` of a function with a loop `i` of 16 iterations around `vi = T.axis.spatial(8, i)`",
       r"(?s)axis v of block b reaches 15, outside its domain 0 to 7.*# <-- here.*hint: .*T\.where\(i < 8\)")
def schedule_of_axis_that_leaves_its_domain():
    text = ('@T.prim_func\ndef f(A: T.Buffer((16,), "float32")):\n    for i in range(16):\n        with T.block("b"):\n'
            '            v = T.axis.spatial(8, i)\n            A[v] = 1.0\n')
    tw.Schedule(from_source(text, check_well_formed=False))


@wrong("a trace replayed on a function that has no such block",
       r"get_loops gave 2 handle\(s\) here, the trace has 3: the function has another structure than the one")
def replay_elsewhere():
    sch = blocks()
    sch.parallel(sch.get_loops("C")[0])
    other = watch(blocks(chain))
    sch.trace.apply_to_schedule(other)


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


@wrong("`compute_inline` of a buffer that another block views",
       r"P would vanish, and block C has a view of it")
def inlining_of_what_is_viewed():
    text = """
@T.prim_func
def f(A: T.Buffer((16,), "int32"), C: T.Buffer((16,), "int32")):
    P = T.alloc_buffer((16,), "int32")
    for i in range(16):
        with T.block("P"):
            vi = T.axis.spatial(16, i)
            P[vi] = A[vi] + 1
    for i in range(16):
        with T.block("C"):
            vi = T.axis.spatial(16, i)
            V = T.match_buffer(P[vi:vi + 1], (1,), "int32", offset_factor=1)
            C[vi] = vi
"""
    watch(tw.Schedule(from_source(text))).compute_inline("P")
