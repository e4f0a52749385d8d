"""Wrong uses of compute_at, reverse_compute_at, compute_inline and reverse_compute_inline on unusual programs."""
from __future__ import annotations

import tilewright as tw
from tilewright import te
from tilewright.tir.buffer import Load, MatchBuffer, decl_buffer
from tilewright.tir.expr import Call, IntImm, Ramp
from tilewright.tir.node import rewrite
from tilewright.tir.stmt import Block, Evaluate, seq

from ..programs import blocks, chain, matmul, script
from ..wrong_use import Section, watch

SECTION = Section("Moving and inlining blocks of unusual programs")
wrong = SECTION.wrong

VECTORS = "A: T.Buffer((8,), 'int32'), B: T.Buffer((8,), 'int32')"


def pair(producer, consumer="B[vi] = X[vi]", between="", size=8, arguments=VECTORS):
    """A block P that makes X, statements between, and a block Q that uses X."""
    return script(f"""
X = T.alloc_buffer(({size},), "int32")
{loops(producer, "P")}
{between}
{loops(consumer, "Q")}
""", arguments)


def loops(body, name):
    """body, a statement of vi, for vi in [0, 8) as a block; a nest of loops as it is."""
    if body.lstrip("\n").startswith("for"):
        return body.strip("\n")
    lines = "\n".join(f"        {line}" for line in body.strip("\n").splitlines())
    return f"for i in range(8):\n    with T.block(\"{name}\"):\n        vi = T.axis.spatial(8, i)\n{lines}"


def block_rewritten(sch, name, fn):
    """sch with the block `name` rewritten by fn."""
    def change(n):
        return fn(n) if isinstance(n, Block) and n.name == name else None
    return watch(tw.Schedule(sch.func.with_body(rewrite(sch.func.body, change))))


def at_consumer(sch):
    """compute_at of P at the loop of Q."""
    sch.compute_at("P", sch.get_loops("Q")[0])


# ---- which blocks can be moved at all

@wrong("`compute_inline(\"root\")`", r"the root block cannot be moved")
def inline_root():
    watch(blocks()).compute_inline("root")


@wrong("`compute_inline` of a block that holds another", r"block \w+ holds other blocks")
def inline_outer():
    sch = blocks(chain)
    outer = sch.blockize(sch.get_loops("B")[1])
    watch(sch).compute_inline(outer)


@wrong("`reindex` of a block inside another", r"block B lies inside another block")
def reindex_inner():
    sch = blocks(chain)
    sch.blockize(sch.get_loops("B")[1])
    watch(sch).reindex("B", ("read", 0))


@wrong("`compute_inline` inside a block of what is read outside of it", r"block B writes B, an output of the function")
def inline_inner():
    sch = blocks(chain)
    sch.blockize(sch.get_loops("B")[1])
    watch(sch).compute_inline("B")


@wrong("`cache_read` in a block that starts a reduction", r"block C_o around block C has an init")
def cache_below_init():
    sch = tw.Schedule(te.create_prim_func(list(matmul())))
    i, j, k = sch.get_loops("C")
    sch.reorder(k, i, j)
    sch.blockize(i)
    watch(sch).cache_read("C", 0, "local")


@wrong("`cache_write` of the update after `decompose_reduction`",
       r"reduction block C_update does not initialise what it writes")
def at_update():
    a, b, c = matmul()
    sch = tw.Schedule(te.create_prim_func([a, b, te.compute((16, 16), lambda i, j: c[i, j] * 2.0, name="D")]))
    sch.decompose_reduction("C", sch.get_loops("C")[0])
    watch(sch).cache_write("C_update", 0, "local")


@wrong("`compute_at` of a block that reads what it writes", r"block P reads X, which it also writes")
def at_increment():
    at_consumer(pair("X[vi] = X[vi] + A[vi]"))


@wrong("`cache_write` of a reduction that nothing starts", r"reduction block P does not initialise what it writes")
def cache_without_init():
    pair("""
for i, k in T.grid(8, 8):
    with T.block("P"):
        vi, vk = T.axis.remap("SR", [i, k])
        X[vi] = X[vi] + A[vk]
""").cache_write("P", 0, "local")


@wrong("`cache_write` of a reduction between whose steps another block writes",
       r"X is written by block P and by block W, which may come between two steps of its reduction")
def cache_between_steps():
    pair("""
for k in range(8):
    for i in range(8):
        with T.block("P"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                X[vi] = 0
            X[vi] = X[vi] + A[vk]
    for j in range(8):
        with T.block("W"):
            vj = T.axis.spatial(8, j)
            X[vj] = 0
""").cache_write("P", 0, "local")


@wrong("`compute_at` of a block whose reduction axis says which element is written",
       r"a reduction axis of block P indexes X")
def at_scattered_reduction():
    at_consumer(pair("""
for i, k in T.grid(8, 8):
    with T.block("P"):
        vi, vk = T.axis.remap("SR", [i, k])
        with T.init():
            X[(vi + vk) % 8] = 0
        X[(vi + vk) % 8] = A[vk]
"""))


@wrong("`compute_at` of a block with an iteration that does not say what is written",
       r"iteration vi of block P does not determine what is written")
def at_last_value():
    at_consumer(pair("X[0] = A[vi]", "B[vi] = X[0]", size=1))


@wrong("`compute_at` of a block that runs only where a condition holds", r"block P runs only where i \+ A\[i\] < 8")
def at_condition():
    at_consumer(pair("""
for i in range(8):
    with T.block("P"):
        vi = T.axis.spatial(8, i)
        T.where(i + A[i] < 8)
        X[vi] = A[vi]
"""))


@wrong("`compute_at` of a reduction of which each step runs twice",
       r"the loops around block P are not shown to run its reduction exactly once")
def at_doubled_reduction():
    at_consumer(pair("""
for i, k in T.grid(8, 16):
    with T.block("P"):
        vi = T.axis.spatial(8, i)
        vk = T.axis.reduce(8, k // 2)
        with T.init():
            X[vi] = 0
        X[vi] = X[vi] + A[vk]
"""))


@wrong("`compute_at` of a block whose loops run an unknown part of its domain",
       r"block P may run for an unknown part only of the domain of vi")
def at_unknown_part():
    sch = watch(tw.Schedule(tw.script.from_source("""
@T.prim_func
def main(a: T.handle, b: T.handle):
    n = T.int32()
    m = T.int32()
    A = T.match_buffer(a, (n,), "int32")
    B = T.match_buffer(b, (m,), "int32")
    X = T.alloc_buffer((m,), "int32")
    for i in range(n):
        with T.block("P"):
            vi = T.axis.spatial(m, i)
            X[vi] = A[vi]
    for i in range(m):
        with T.block("Q"):
            vi = T.axis.spatial(m, i)
            B[vi] = X[vi]
""")))
    at_consumer(sch)


# ---- what a move must not change

@wrong("`compute_at` past a block that writes what the moved one reads",
       r"moving block P could change whether it runs before or after block W, and both touch A")
def at_past_writer():
    at_consumer(pair("X[vi] = A[vi]", between=loops("A[vi] = 0", "W")))


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
""", VECTORS)
    sch.reverse_compute_at("Q", sch.get_loops("P")[0])


# ---- compute_inline

@wrong("`compute_inline` of a block of two stores", r"block P is more than one store of one value")
def inline_two_stores():
    pair("X[vi] = A[vi]\nX[vi] = A[vi] + 1").compute_inline("P")


@wrong("`reverse_compute_inline` of a block whose indices do not tell the iteration",
       r"the indices \(vi \+ vj\) of block Q do not determine its iter vars")
def inline_ambiguous():
    pair("X[vi] = A[vi]", """
for i, j in T.grid(4, 4):
    with T.block("Q"):
        vi, vj = T.axis.remap("SS", [i, j])
        M[vi, vj] = X[vi + vj] + 1
""", arguments="A: T.Buffer((8,), 'int32'), M: T.Buffer((4, 4), 'int32')").reverse_compute_inline("Q")


@wrong("`compute_inline` of a value that may wrap into an index, where it would not",
       r"the index vi \* 3 \* 1103515245 % 8 of block Q may wrap around in int32 while it loads from X")
def inline_wrapping_index():
    pair("X[vi] = vi * 3", "B[vi] = A[X[vi] * 1103515245 % 8]").compute_inline("P")


@wrong("`compute_inline` into a block that writes what the vanishing one reads",
       r"block Q writes A, which block P reads")
def inline_into_writer():
    pair("X[vi] = A[vi]", "A[vi] = X[7 - vi]").compute_inline("P")


@wrong("`compute_inline` past a block that writes what the vanishing one reads",
       r"block W writes A between block P, which reads it, and block Q")
def inline_past_writer():
    pair("X[vi] = A[vi]", between=loops("A[vi] = 0", "W")).compute_inline("P")


@wrong("`compute_inline` into a block that views the buffer as another (match_buffer)",
       r"block Q views X as another buffer")
def inline_into_view():
    def view(block):
        region = block.reads[0]
        shape = tuple(r.extent for r in region.region)
        return block.replace(match_buffers=(MatchBuffer(decl_buffer(shape, "int32", "V"), region),))
    block_rewritten(pair("X[vi] = A[vi]"), "Q", view).compute_inline("P")


@wrong("`compute_inline` into a block that only says that it reads the buffer",
       r"block Q reads X in a way that cannot be seen")
def inline_into_nothing():
    block_rewritten(pair("X[vi] = A[vi]"), "Q",
                    lambda block: block.replace(body=Evaluate(IntImm(0)), writes=())).compute_inline("P")


@wrong("`compute_inline` into a block that takes the address of the buffer",
       r"block Q uses X otherwise than by reading elements")
def inline_into_address():
    block_rewritten(pair("X[vi] = A[vi]"), "Q", lambda block: block.replace(
        body=seq([block.body, Evaluate(block.reads[0].buffer.data)]))).compute_inline("P")


@wrong("`compute_inline` into a block that calls a function with the address of an element",
       r"block Q uses the address of X")
def inline_into_call_by_address():
    block_rewritten(pair("X[vi] = A[vi]"), "Q", lambda block: block.replace(body=seq([block.body, Evaluate(
        Call("access_ptr", (Load(block.reads[0].buffer, (IntImm(0),)), IntImm(4)), "handle"))]))).compute_inline("P")


@wrong("`compute_inline` into a block that reads vectors", r"block Q reads vectors of X")
def inline_into_vectors():
    def wide(block):
        buffer = block.reads[0].buffer
        load = Load(buffer, (Ramp(IntImm(0), IntImm(1), 4),))
        return block.replace(body=seq([block.body, Evaluate(load)]))
    block_rewritten(pair("X[vi] = A[vi]"), "Q", wide).compute_inline("P")


# ---- reverse_compute_inline

@wrong("`reverse_compute_inline` of a block that reads an argument only",
       r"block P has no producer that it can be dissolved into")
def reverse_inline_first():
    pair("X[vi] = A[vi]").reverse_compute_inline("P")


@wrong("`reverse_compute_inline` of a block that reads two elements", r"block Q reads more than one element of X")
def reverse_inline_window():
    pair("X[vi] = A[vi]", "B[vi] = X[vi] + X[7 - vi]").reverse_compute_inline("Q")


@wrong("`reverse_compute_inline` of padding: the producer does not run for all that is written",
       r"block Q reads X only where a condition holds, and block P is not shown to run for all its elements")
def reverse_inline_padding():
    pair("X[vi] = A[vi]", """
for i in range(16):
    with T.block("Q"):
        vi = T.axis.spatial(16, i)
        B[vi] = T.if_then_else(vi < 8, X[vi], 0)
""", arguments="A: T.Buffer((8,), 'int32'), B: T.Buffer((16,), 'int32')").reverse_compute_inline("Q")


# ---- what other blocks and loops do

@wrong("`compute_inline` of a block of which another overwrites the result",
       r"X is written by block P and by block W, so P alone does not give its values")
def inline_second_writer():
    pair("X[vi] = A[vi]", between=loops("X[vi] = 0", "W")).compute_inline("P")


@wrong("`reverse_compute_inline` of a block that reads where data says",
       r"which element of X block Q reads depends on data")
def reverse_inline_gather():
    pair("X[vi] = A[vi]", "B[vi] = X[A[vi]]").reverse_compute_inline("Q")


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


@wrong("`parallel` of a loop whose iterations read what they left in a buffer of their own",
       r"each iteration of the parallel loop j would have a X of its own, and block P reads there what an earlier")
def parallel_left_over():
    sch = script("""
X = T.alloc_buffer((8,), "int32")
for i, j in T.grid(8, 8):
    with T.block("P"):
        vi, vj = T.axis.remap("SS", [i, j])
        B[vi, vj] = X[vj]
    with T.block("Q"):
        vi, vj = T.axis.remap("SS", [i, j])
        X[vj] = A[vi, vj]
""")
    sch.parallel(sch.get_loops("P")[1])


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


@wrong("`set_scope(P, 0, \"local\")` of shared memory that one iteration fills for the next",
       r"each iteration of the thread_binding loop t would have a X of its own, and block Q reads there what an")
def scope_left_over():
    sch = script("""
X = T.alloc_buffer((8,), "int32", scope="shared")
for o in range(2):
    for t in T.thread_binding(8, "threadIdx.x"):
        with T.block("P"):
            vi = T.axis.spatial(8, t)
            T.where(o < 1)
            X[vi] = A[vi, 0]
        with T.block("Q"):
            vo, vi = T.axis.remap("SS", [o, t])
            B[vi, vo] = X[vi]
""")
    sch.set_scope("P", 0, "local")


@wrong("`decompose_reduction` where threads share the steps", r"threads share the reduction of block C: each has a")
def decompose_threads():
    sch = blocks()
    i, _, k = sch.get_loops("C")
    sch.bind(k, "threadIdx.x")
    watch(sch).decompose_reduction("C", i)


@wrong("`compute_at` of a block that runs the diagonal of its domain only",
       r"the loops around block P are not shown to run all of its domain, and moved it might run more")
def compute_diagonal():
    sch = script("""
X = T.alloc_buffer((8, 8), "int32")
for i in range(8):
    with T.block("P"):
        vi, vj = T.axis.remap("SS", [i, i])
        X[vi, vj] = A[vi, vj]
for i in range(8):
    with T.block("Q"):
        vi = T.axis.spatial(8, i)
        B[vi, 0] = X[vi, vi]
""")
    sch.compute_at("P", sch.get_loops("Q")[0])
