"""compute_at: its example, what it refuses, and how random schedules use it."""
from __future__ import annotations

import tilewright as tw
from tests.fuzz.moves import Action, Chooser, find_block, find_loop, move
from tests.schedule.case import Case
from tests.schedule.compute_support import stencil
from tests.wrong_uses.programs import blocks, chain, script
from tests.wrong_uses.schedule_programs import (
    DOUBLED,
    VECTORS_OF_16,
    chain_blocks,
    chain_nest,
    over_8,
    producer_and_consumer,
    product,
    two_functions,
)
from tests.wrong_uses.wrong_use import watch
from tilewright import te
from tilewright.schedule import Schedule

CASE = Case("compute_at")
wrong = CASE.wrong


@CASE.example
def example():
    """
    sch.compute_at(block='B', loop=l2)

    @T.prim_func
    def main(A: T.Buffer((22, 6), "int32"), C: T.Buffer((20, 6), "int32")):
        T.func_attr({"tir.noalias": True})
        # with T.block("root"):
        B = T.alloc_buffer((22, 6), "int32")
        for i_0 in range(5):
            for i, j in T.grid(6, 6):
                with T.block("B"):
                    vi = T.axis.spatial(22, i_0 * 4 + i)
                    vj = T.axis.spatial(6, j)
                    T.reads(A[vi, vj])
                    T.writes(B[vi, vj])
                    B[vi, vj] = A[vi, vj] * 3
            for i_1, j in T.grid(4, 6):
                with T.block("C"):
                    vi = T.axis.spatial(20, i_0 * 4 + i_1)
                    vj = T.axis.spatial(6, j)
                    T.reads(B[vi:vi + 3, vj])
                    T.writes(C[vi, vj])
                    C[vi, vj] = B[vi, vj] + B[vi + 2, vj]
    """
    sch = Schedule(stencil())
    sch.compute_at("B", sch.split(sch.get_loops("C")[0], [5, 4])[0])
    return sch


@wrong("`compute_at` of a block into its own loop",
       r"compute_at\(block=C, loop=i\): block C is below loop i already")
def at_own_loop():
    sch, block, i, _, _ = product()
    sch.compute_at(block, i)


@wrong("`compute_at` of the output into its producer's loops",
       r"compute_at\(block=C, loop=i\): block C writes C, an output of the function")
def output_at_producer():
    sch = blocks(chain)
    watch(sch).compute_at(sch.get_block("C"), sch.get_loops("B")[0])


@wrong("`compute_at` at a loop of another function", r"block C and loop i are in different functions")
def place_elsewhere():
    sch = two_functions()
    sch.compute_at(sch.get_block("C", "first"), sch.get_loops(sch.get_block("C", "second"))[0])


@wrong("`compute_at` of a block that nothing reads", r"nothing reads what block T computes")
def place_unread():
    sch = script("""
X = T.alloc_buffer((8, 8), "int32")
for i, j in T.grid(8, 8):
    with T.block("T"):
        vi, vj = T.axis.remap("SS", [i, j])
        X[vi, vj] = A[vi, vj]
for i, j in T.grid(8, 8):
    with T.block("S"):
        vi, vj = T.axis.remap("SS", [i, j])
        B[vi, vj] = A[vi, vj]
""")
    sch.compute_at("T", sch.get_loops("S")[0])


@wrong("`compute_at` at a loop that is not around every consumer",
       r"block C reads B's result and is not below loop i")
def place_not_around_all():
    a, b, c = chain()
    d = te.compute((16, 16), lambda i, j: b[i, j] * 3.0, name="D")
    sch = watch(tw.Schedule(te.create_prim_func([a, c, d])))
    sch.compute_at("B", sch.get_loops("D")[0])


@wrong("`compute_at` at a loop that is around no consumer", r"no consumer of block B is below loop i")
def place_around_none():
    a, b, c = chain()
    d = te.compute((16, 16), lambda i, j: a[i, j] * 3.0, name="D")
    sch = watch(tw.Schedule(te.create_prim_func([a, d, c])))
    sch.compute_at("B", sch.get_loops("D")[0])


@wrong("`compute_at` of what a reduction starts from, inside of its loops",
       r"block C starts its reduction with Y, also where loop k has no iterations, and it is written inside of that")
def place_below_the_start():
    sch = script("""
Y = T.alloc_buffer((8, 8), "int32")
for i in range(8):
    with T.block("Y"):
        vi = T.axis.spatial(8, i)
        Y[vi, 0] = A[vi, 0]
for i, k in T.grid(8, n):
    with T.block("C"):
        vi = T.axis.spatial(8, i)
        vk = T.axis.reduce(n, k)
        with T.init():
            B[vi, 0] = Y[vi, 0]
        B[vi, 0] = B[vi, 0] + A[vi, vk]
""", "A: T.Buffer((8, 8), 'int32'), B: T.Buffer((8, 8), 'int32'), n: T.int32")
    sch.compute_at("Y", sch.get_loops("C")[1])


@wrong("`compute_at` at a loop inside a block", r"loop j and block B are not inside the same block")
def place_in_block():
    sch = blocks(chain)
    _, j = sch.get_loops("C")
    sch.blockize(j)
    watch(sch).compute_at("B", sch.get_loops("C")[0])


@wrong("`compute_at` of an output of which the consumer needs a part",
       r"block P would not be shown to compute all of A, an output of the function")
def at_part_of_output():
    sch = script("""
for i in range(8):
    with T.block("P"):
        vi = T.axis.spatial(8, i)
        A[vi] = vi
for i in range(4):
    with T.block("C"):
        vi = T.axis.spatial(4, i)
        B[vi] = A[vi] * 2
""", "A: T.Buffer((8,), 'int32'), B: T.Buffer((4,), 'int32')")
    watch(sch).compute_at("P", sch.get_loops("C")[0])


@wrong("`compute_at` of a block to a reader that reads first what the caller gave",
       r"block D may read an element of A before block C writes it")
def read_before_written():
    sch = script("""
for t in range(8):
    with T.block("C"):
        vi = T.axis.spatial(8, t)
        A[vi] = 1
    for i in range(1):
        with T.block("D"):
            vi = T.axis.spatial(8, t)
            B[vi] = A[7 - vi]
""", "A: T.Buffer((8,), 'int32'), B: T.Buffer((8,), 'int32')")
    sch.compute_at("C", sch.get_loops("D")[1])


@wrong("`compute_at`, below an `if`, of what another iteration computes",
       r"block C stands below a condition, and vi would be t - 1 there instead of t")
def another_iteration():
    sch = script("""
X = T.alloc_buffer((8,), "int32")
for t in range(1, 8):
    if t > n:
        for i in range(1):
            with T.block("C"):
                vi = T.axis.spatial(8, t)
                X[vi] = A[vi]
        for i in range(1):
            with T.block("D"):
                vi = T.axis.spatial((1, 8), t)
                B[vi] = X[vi - 1]
""", "n: T.int32, A: T.Buffer((8,), 'int32'), B: T.Buffer((8,), 'int32')")
    sch.compute_at("C", sch.get_loops("D")[1])


@wrong("`compute_at(block, loop, index=-3)`", r"index is -3, not -1 \(late\), -2 \(early\) or a position")
def place_unknown():
    sch, b, c = chain_blocks()
    sch.compute_at(b, sch.get_loops(c)[0], index=-3)


@wrong("`compute_at(block, loop, index=1)` after its consumer", r"position 1 in loop i is not between")
def place_late():
    sch, b, c = chain_blocks()
    sch.compute_at(b, sch.get_loops(c)[0], index=1)


def at_consumer(sch):
    """compute_at of P at the loop of Q."""
    sch.compute_at("P", sch.get_loops("Q")[0])


@wrong("`compute_at` of a block that reads what it writes", r"block P reads X, which it also writes")
def at_increment():
    at_consumer(producer_and_consumer("X[vi] = X[vi] + A[vi]"))


@wrong("`compute_at` of a block whose reduction axis says which element is written",
       r"a reduction axis of block P indexes X")
def at_scattered_reduction():
    at_consumer(producer_and_consumer("""
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
    at_consumer(producer_and_consumer("X[0] = A[vi]", "B[vi] = X[0]", size=1))


@wrong("`compute_at` of a block that runs only where a condition holds", r"block P runs only where i \+ A\[i\] < 8")
def at_condition():
    at_consumer(producer_and_consumer("""
for i in range(8):
    with T.block("P"):
        vi = T.axis.spatial(8, i)
        T.where(i + A[i] < 8)
        X[vi] = A[vi]
"""))


@wrong("`compute_at` of a reduction of which each step runs twice",
       r"the loops around block P are not shown to run its reduction exactly once")
def at_doubled_reduction():
    at_consumer(producer_and_consumer("""
for i, k in T.grid(8, 16):
    with T.block("P"):
        vi = T.axis.spatial(8, i)
        vk = T.axis.reduce(8, k // 2)
        with T.init():
            X[vi] = 0
        X[vi] = X[vi] + A[vk]
"""))


@wrong("`compute_at` of a reduction below a loop, inside of that of its steps, that runs each twice",
       r"the loops from k inwards may run a step of block P's reduction twice")
def at_repeated_steps():
    at_consumer(producer_and_consumer("""
for i, k, u in T.grid(8, 8, 2):
    with T.block("P"):
        vi, vk = T.axis.remap("SR", [i, k])
        with T.init():
            X[vi] = 0
        X[vi] = X[vi] + A[vk]
"""))


@wrong("`compute_at` of a reduction that runs its steps backwards, after another block gave the buffer its values",
       r"block P may not start its reduction: its loops begin at vk = 7 - k, which need not be 0 there")
def at_last_step():
    at_consumer(producer_and_consumer(over_8("X[vi] = 1", "Z") + """
for i, k in T.grid(8, 8):
    with T.block("P"):
        vi = T.axis.spatial(8, i)
        vk = T.axis.reduce(8, 7 - k)
        with T.init():
            X[vi] = 0
        X[vi] = X[vi] + A[vk]
"""))


@wrong("`compute_at` of a reduction of which a loop runs outputs and steps, the first step of some late",
       r"block P may not start its reduction: loops of outputs run its steps, and do not count on in vi = ")
def at_steps_out_of_order():
    at_consumer(producer_and_consumer("""
for y, x in T.grid(4, 6):
    with T.block("P"):
        vi = T.axis.spatial(8, (x * 4 + y) // 3)
        vk = T.axis.reduce(3, (x * 4 + y) % 3)
        with T.init():
            X[vi] = 0
        X[vi] = X[vi] + A[vk]
"""))


@wrong("`compute_at` past a block that writes what the moved one reads",
       r"moving block P could change whether it runs before or after block W, and both touch A")
def at_past_writer():
    at_consumer(producer_and_consumer("X[vi] = A[vi]", between=over_8("A[vi] = 0", "W")))


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


@wrong("`compute_at` of a block below a loop that may have no iterations, to where it would run nevertheless",
       r"block P would run where loop t has no iterations")
def compute_repeated():
    sch = script("""
X = T.alloc_buffer((8,), "int32")
for t, i in T.grid(m, 8):
    with T.block("P"):
        vi = T.axis.spatial(8, i)
        X[vi] = A[vi]
for i, t in T.grid(8, m):
    with T.block("Q"):
        vi = T.axis.spatial(8, i)
        B[vi] = X[vi]
""", "A: T.Buffer((8,), 'int32'), B: T.Buffer((8,), 'int32'), m: T.int32")
    sch.compute_at("P", sch.get_loops("Q")[0])


@wrong("`compute_at` into a loop whose bounds read what the block computes",
       r"(?s)B is read on the way to block C, outside of the body of loop k.*hint: choose an outer loop")
def compute_at_own_bounds():
    sch = script(DOUBLED + """
for i in range(16):
    for k in range(B[i] % 4):
        with T.block("C"):
            vi = T.axis.spatial(16, i)
            vk = T.axis.opaque(4, k)
            C[vi] = vk
""", VECTORS_OF_16)
    sch.compute_at("B", sch.get_loops("C")[1])


@wrong("`compute_at` at a place that another schedule sampled", r"place root belongs to another schedule")
def location_of_another():
    sch, block, _, _ = chain_nest()
    place = blocks(chain).sample_compute_location("B", decision=-1)
    sch.compute_at(block, place)


def _run(sch: Schedule, name: str, where: tuple[str, int], units: bool, index: int) -> None:
    sch.compute_at(find_block(sch, name), find_loop(sch, where), preserve_unit_loops=units, index=index)


@move("compute_at", 6, 1, _run)
def draw(chooser: Chooser, sch: Schedule, names: list[str]) -> Action | None:
    found = chooser.block_and_place(sch, names, sch.consumers)
    return found and ("compute_at", *found)
