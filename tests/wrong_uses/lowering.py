"""Wrong programs that only the lowering can refuse: views, pipelines, threads."""
from __future__ import annotations

import tilewright as tw
from tilewright.script import from_source

from .wrong_use import Section

SECTION = Section("Lowering of scripts and annotations")
wrong = SECTION.wrong


def lowered(body: str) -> None:
    """tw.lower of f(A: int32[8, 8], B: int32[8, 8]) with this body"""
    lines = "\n".join(f"    {line}" for line in body.strip("\n").splitlines())
    tw.lower(from_source("@T.prim_func\ndef f(A: T.Buffer((8, 8), 'int32'), B: T.Buffer((8, 8), 'int32')):\n" + lines))


def view(match: str) -> None:
    """A block that copies A[1:5, 0:4] through the view V that `match` declares"""
    lowered(f"""
for i in range(1):
    with T.block("P"):
        vi = T.axis.spatial(1, i)
        T.reads(A[1:5, 0:4])
        T.writes(B[0:8, 0:8])
        V = T.match_buffer({match})
        B[vi, 0] = V{'[0, 0, 0]' if '(1, 4, 4)' in match else '[0]' if '(4,)' in match else '[0, 0]'}
""")


def pipeline(annotations: str, kind: str = "T.serial", second: str = "B[vi, 0] = X[0]") -> None:
    """A loop of two statements, the second of which reads what the first one writes"""
    lowered(f"""
for i in {kind}(8, annotations={annotations}):
    with T.block("outer"):
        v = T.axis.spatial(8, i)
        X = T.alloc_buffer((1,), "int32")
        with T.block("P"):
            vi = T.axis.spatial(8, v)
            X[0] = A[vi, 0]
        with T.block("Q"):
            vi = T.axis.spatial(8, v)
            {second}
""")


# ---- views

@wrong("a view of more dimensions than its memory", r"match_buffer V has 3 dimensions, its source A has 2")
def view_dimensions():
    view("A[1:5, 0:4], (1, 4, 4), 'int32'")


@wrong("a view of one dimension on a box of two",
       r"match_buffer V has 1 dimensions, its region of A has the extent 4 in a dimension before them")
def view_of_box():
    view("A[1:5, 0:4], (4,), 'int32'")


@wrong("a view whose strides are not those of the memory",
       r"match_buffer V: the stride of dimension 0 is 8, declared as 4")
def view_strides():
    view("A[1:5, 0:4], (4, 4), 'int32', strides=[4, 1]")


@wrong("a view at an offset that is no multiple of its offset_factor",
       r"match_buffer V: its offset 8 is no multiple of 16 \(offset_factor\)")
def view_offset():
    view("A[1:5, 0:4], (4, 4), 'int32', strides=[8, 1], offset_factor=16")


# ---- software pipelines

@wrong("`software_pipeline_stage` with a string", r"loop i: software_pipeline_stage is 'first', not a list of natural")
def pipeline_string():
    pipeline("{'software_pipeline_stage': 'first'}")


@wrong("`software_pipeline_stage` with three entries for two statements",
       r"loop i: software_pipeline_stage has 3 entries, the body has 2 statements")
def pipeline_count():
    pipeline("{'software_pipeline_stage': [0, 0, 1]}")


@wrong("`software_pipeline_order` that is no permutation",
       r"loop i: software_pipeline_order is \[1, 1\], not a permutation of 0 to 1")
def pipeline_order():
    pipeline("{'software_pipeline_stage': [0, 1], 'software_pipeline_order': [1, 1]}")


@wrong("a software pipeline of a parallel loop", r"loop i is parallel; only a serial loop is a software pipeline")
def pipeline_parallel():
    pipeline("{'software_pipeline_stage': [0, 1], 'software_pipeline_order': [0, 1]}", "T.parallel")


@wrong("a software pipeline that reads before it writes",
       r"loop i: statement 1 uses X after statement 0, and would run before it: stages 1 and 0")
def pipeline_backwards():
    pipeline("{'software_pipeline_stage': [1, 0]}")


@wrong("a software pipeline in which the next iteration overwrites what this one still reads",
       r"loop i: statement 0 of the next iteration would run before statement 1, and both use A")
def pipeline_outliving():
    pipeline("{'software_pipeline_stage': [0, 1], 'software_pipeline_order': [0, 1]}", second="A[vi, 0] = X[0]")


@wrong("a double buffer that no loop fills", r"block P is annotated with double_buffer_scope, and no loop runs it")
def double_buffer_alone():
    lowered("""
with T.block("P"):
    T.block_attr({"double_buffer_scope": 0})
    B[0, 0] = A[0, 0]
""")


# ---- threads

@wrong("a thread axis of 8 inside the same axis of 4",
       r"loop j is bound to threadIdx\.x with extent 8, inside loop i which is bound to it with extent 4")
def thread_extents():
    lowered("""
for i in T.thread_binding(4, thread="threadIdx.x"):
    for j in T.thread_binding(8, thread="threadIdx.x"):
        with T.block("P"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj]
""")


@wrong("`storage_align` of a buffer whose address goes to a call",
       r"S is aligned by storage_align, and its strides are fixed")
def aligned_and_passed_on():
    lowered("""
S = T.alloc_buffer((8, 8), "int32")
for i, j in T.grid(8, 8):
    with T.block("P"):
        vi, vj = T.axis.remap("SS", [i, j])
        T.block_attr({"buffer_dim_align": [[0, 0, 32, 5]]})
        S[vi, vj] = A[vi, vj]
for i in range(1):
    with T.block("Q"):
        vi = T.axis.spatial(1, i)
        T.reads(S[0:8, 0:8])
        T.writes(B[0:8, 0:8])
        T.evaluate(T.call_packed("no.such.function", S.access_ptr("r"), B.access_ptr("w")))
""")


@wrong("memory that is allocated as integers and seen as floats",
       r"f: the memory of P is of int32, Q sees it as float32")
def two_types():
    lowered("""
for i in range(1):
    P = T.decl_buffer((8,), "int32")
    Q = T.Buffer((8,), "float32", data=P.data)
    P[i] = A[i, i]
    Q[i] = T.float32(1)
""")


# ---- accesses that are certain to be out of bounds

@wrong("a loop over one element too many", r"f: B\[i, 0\] is out of bounds: index 0 runs from 0 to 8, the extent is 8")
def loop_too_long():
    lowered("for i in range(9):\n    B[i, 0] = A[0, 0]")


@wrong("a negative index", r"f: A\[0, -1\] is out of bounds: index 1 is -1, the extent is 8")
def negative_index():
    lowered("B[0, 0] = A[0, -1]")


@wrong("a slice that runs past its buffer",
       r"f: B\[7, T.Ramp\(0, 1, 16\)\] is out of bounds: index 1 runs from 0 to 15, 8 element\(s\) behind the end of B")
def slice_too_long():
    lowered("B[7, 0:16] = A[0, 0:16]")


@wrong("an access past a view", r"f: V\[4, 0\] is out of bounds: index 0 is 4, the extent is 4")
def past_a_view():
    lowered("""
for i in range(1):
    with T.block("P"):
        vi = T.axis.spatial(1, i)
        T.reads(A[1:5, 0:4])
        T.writes(B[0:8, 0:8])
        V = T.match_buffer(A[1:5, 0:4], (4, 4), 'int32', offset_factor=1)
        B[vi, 0] = V[4, 0]
""")


@wrong("a loop that leaves its buffer for every size",
       r"f: A\[i \+ 1\] is out of bounds: index 0 runs from 1 to n, the extent is n")
def outside_for_every_size():
    tw.lower(from_source("@T.prim_func\ndef f(a: T.handle):\n    n = T.int32()\n"
                         "    A = T.match_buffer(a, (n,), 'int32')\n    for i in range(n):\n        A[i + 1] = 0\n"))
