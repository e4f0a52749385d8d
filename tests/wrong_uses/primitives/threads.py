"""Wrong uses of what the threads of a block do together."""
from __future__ import annotations

from tilewright import te
from tilewright.schedule import Schedule

from ..programs import blocks as blocks_of
from ..programs import chain, script
from ..wrong_use import Section, watch

SECTION = Section("Shared memory that threads fill together")
wrong = SECTION.wrong


def tile(copy, use="B[vi, vj] = S[7 - vi, vj]", scope="shared", around="range(8)", size=8):
    """Loops i and j; in each iteration of i the nest `copy`, a block R over j after it, and S in a scope."""
    lines = "\n".join(f"    {line}" for line in copy.strip("\n").splitlines())
    return script(f"""
S = T.alloc_buffer(({size}, {size}), "int32", scope="{scope}")
for i in {around}:
{lines}
    for j in range(8):
        with T.block("R"):
            vi, vj = T.axis.remap("SS", [i, j])
            {use}
""")


COPY = """
for a, b in T.grid(8, 8):
    with T.block("P"):
        va, vb = T.axis.remap("SS", [a, b])
        S[va, vb] = A[va, vb]
"""
THREADS = 'T.thread_binding(8, thread="threadIdx.x")'


@wrong("`bind` of nested loops to one axis of the blocks of threads",
       r"loop i is bound to blockIdx.x, and the loops are nested")
def bind_nested_blocks():
    sch = blocks_of(chain)
    i, j = sch.get_loops("C")
    sch.bind(i, "blockIdx.x")
    watch(sch).bind(j, "blockIdx.x")


@wrong("`parallel` between loops over threads that share a reduction",
       r"threads share the steps of block C, and could not join their parts: loop j, between the threads, is parallel")
def parallel_between_threads():
    a, k = te.placeholder((4, 6, 8), "int32", name="A"), te.reduce_axis((0, 8), name="k")
    sch = Schedule(te.create_prim_func([a, te.compute((4, 6), lambda i, j: te.sum(a[i, j, k], axis=k), name="C")]))
    i, j, steps = sch.get_loops("C")
    sch.bind(i, "threadIdx.y")
    sch.bind(steps, "threadIdx.x")
    watch(sch).parallel(j)


@wrong("`bind` of a copy to more threads than there are",
       r"loop a is bound to threadIdx.x with extent 8, inside loop i ")
def bind_larger():
    sch = tile(COPY, "B[vi, vj] = S[3 - vi, vj]", around='T.thread_binding(4, thread="threadIdx.x")')
    sch.bind(sch.get_loops("P")[1], "threadIdx.x")


@wrong("`bind` of a copy in local memory inside of a loop of the same axis",
       r"the loops are nested: threads share work .*, and block P writes S in scope local")
def bind_local():
    sch = tile(COPY, scope="local", around=THREADS)
    sch.bind(sch.get_loops("P")[1], "threadIdx.x")


@wrong("`bind` of a copy that depends on the thread",
       r"share the work of block P, and what block P computes depends on i")
def bind_dependent():
    sch = tile("""
for b in range(8):
    with T.block("P"):
        va, vb = T.axis.remap("SS", [i, b])
        S[va, vb] = A[va, vb]
""", "B[vi, vj] = S[vi, vj]", around=THREADS)
    sch.bind(sch.get_loops("P")[1], "threadIdx.x")


@wrong("`bind` around a copy that makes less than a thread reads",
       r"it is not shown that each, alone, would have written all")
def bind_partial():
    sch = tile(COPY.replace("T.grid(8, 8)", "T.grid(4, 8)"))
    sch.bind(sch.get_loops("P")[0], "threadIdx.x")


@wrong("`bind` around a copy below a condition on data", r"would meet below a condition on data")
def bind_below_data():
    sch = tile("if A[0, 0] > 0:" + COPY.replace("\n", "\n    ").rstrip()
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
    sch = tile(COPY, around=THREADS)
    _, a, b = sch.get_loops("P")
    sch.bind(a, "threadIdx.x")
    watch(sch).bind(b, "threadIdx.x")


@wrong("`bind` of a loop whose iterations meet those of the loop around it",
       r"two threads that share the work of loop b may touch the same element of S")
def bind_overlapping():
    sch = tile("""
for a, b in T.grid(8, 8):
    with T.block("P"):
        va, vb = T.axis.remap("SS", [a, b])
        S[va + vb, 0] = A[va, vb]
""", "B[vi, vj] = S[7 - vi, 0]", around=THREADS, size=16)
    sch.bind(sch.get_loops("P")[2], "threadIdx.x")


@wrong("any primitive where a thread writes alone what all fill together",
       r"would fill S together, and also each thread by")
def annotate_mixed():
    sch = tile(COPY + """
with T.block("Q"):
    va = T.axis.spatial(8, i)
    S[va, 0] = 1
""", around=THREADS)
    sch.annotate("R", "note", 1)


@wrong("`bind` around a reduction in shared memory whose steps threads share",
       r"run block P together, and those of loop k ")
def bind_reduction():
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


@wrong("any primitive where each thread calls what fills all of a shared buffer",
       r"each thread of loop i would make the calls of block P, which write S, and all of them the same")
def annotate_calls():
    sch = tile("""
with T.block("P"):
    T.reads(A[0:8, 0:8])
    T.writes(S[0:8, 0:8])
    T.evaluate(T.call_extern("int32", "fill", T.address_of(S[0, 0]), T.address_of(A[0, 0])))
""", around=THREADS)
    sch.annotate("R", "note", 1)
