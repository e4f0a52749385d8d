"""cache_write: its example, what it refuses, and how random schedules use it."""
from __future__ import annotations

import tilewright as tw
from tests.fuzz.moves import MOST_BLOCKS, SCOPES, Action, Chooser, find_block, move
from tests.schedule.case import Case
from tests.schedule.core_support import matmul as matmul_function
from tests.wrong_uses.programs import PRIVATE_MEMORY, VECTORS, N, blocks, chain, matmul, placeholders, script
from tests.wrong_uses.schedule_programs import (
    VECTORS_OF_16,
    float_vector,
    producer_and_consumer,
    product,
    rewritten,
    unwatched_product,
)
from tests.wrong_uses.wrong_use import watch
from tilewright import te
from tilewright.schedule import Schedule
from tilewright.tir.expr import IntImm
from tilewright.tir.stmt import Block, BlockRealize, IfThenElse, Store, seq

CASE = Case("cache_write")
wrong = CASE.wrong


@CASE.example
def example():
    """
    b0 = sch.cache_write(block='C', write_buffer_index=0, storage_scope='local')

    @T.prim_func
    def matmul(A: T.Buffer((4, 5), "int32"), B: T.Buffer((5, 6), "int32"), C: T.Buffer((4, 6), "int32")):
        T.func_attr({"tir.noalias": True})
        # with T.block("root"):
        C_local = T.alloc_buffer((4, 6), "int32", scope="local")
        for i, j, r in T.grid(4, 6, 5):
            with T.block("C"):
                vi, vj, vr = T.axis.remap("SSR", [i, j, r])
                T.reads(A[vi, vr], B[vr, vj])
                T.writes(C_local[vi, vj])
                with T.init():
                    C_local[vi, vj] = 0
                C_local[vi, vj] = C_local[vi, vj] + A[vi, vr] * B[vr, vj]
        for i, j in T.grid(4, 6):
            with T.block("C_local"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads(C_local[vi, vj])
                T.writes(C[vi, vj])
                C[vi, vj] = C_local[vi, vj]
    """
    sch = Schedule(matmul_function())
    sch.cache_write("C", 0, "local")
    return sch


@wrong("`cache_write(block, 0, \"registers\")`: an unknown memory scope",
       r"cache_write\(block=C, write_buffer_index=0, storage_scope='registers'\): 'registers' is not a storage")
def cache_write_scope():
    sch, block, _, _, _ = product()
    sch.cache_write(block, 0, "registers")


@wrong("`cache_write` of a block that stores at two places",
       r"block B does not store to B at one place in each iteration")
def cache_write_of_two_places():
    def twice(n):
        if not isinstance(n, Block) or n.name != "B":
            return None
        other = n.body.replace(indices=(n.body.indices[0], IntImm(0)))
        return n.replace(body=seq([n.body, other]))
    rewritten(blocks(chain), twice).cache_write("B", 0, "local")


@wrong("`cache_write` of a block that stores under a condition",
       r"block B stores to B in some iterations only; the copy would take elements that it has not written")
def cache_write_of_some_elements():
    def guarded(n):
        return n.replace(body=IfThenElse(n.iter_vars[0].var < 5, n.body)) if isinstance(n, Block) and n.name == "B" \
            else None
    rewritten(blocks(chain), guarded).cache_write("B", 0, "local")


@wrong("`cache_write` of a block that was moved, so that it fills no box",
       r"the points at which block C uses C_local or C there are no box")
def cache_write_of_no_box():
    sch = diagonal()
    sch.cache_write("C", 0, "local")


def diagonal():
    """C[i, j] = A[i, j] in loops of which the inner one starts where the outer stands"""
    a, _ = placeholders()
    c = te.compute((N, N), lambda i, j: a[i, j] + 1.0, name="C")
    sch = tw.Schedule(te.create_prim_func([a, c]))

    def skew(n):
        if not isinstance(n, BlockRealize) or n.block.name != "C":
            return None
        i, j = n.iter_values
        return n.replace(iter_values=(i, (i + j) % N))
    return rewritten(sch, skew)


@wrong("`cache_write` of a block in a loop that may have no iterations",
       r"B would be copied where loop k has no iterations and block P wrote nothing")
def cache_write_of_nothing():
    sch = script("""
for k in range(n):
    with T.block("P"):
        vi = T.axis.spatial(1, 0)
        B[vi, 0] = 3
""", "B: T.Buffer((8, 8), 'int32'), n: T.int32")
    sch.cache_write("P", 0, "local")


@wrong("`cache_write` inside of the loop of a reduction that may have no elements",
       r"S would not be copied where loop k has no iterations and block S starts its reduction")
def cache_write_of_a_start():
    sch = script("""
for k in range(n):
    with T.block("S"):
        vk = T.axis.reduce(n, k)
        with T.init():
            S[0] = 7
        S[0] = S[0] + vk
    with T.block("X"):
        vk = T.axis.spatial(n, k)
        X[vk] = S[0]
""", "S: T.Buffer((1,), 'int32'), n: T.int32, X: T.Buffer((8,), 'int32')")
    sch.cache_write("S", 0, "local")


@wrong("`cache_write` of what each iteration of a parallel loop has to itself",
       r"cannot parallel loop t: two of its iterations may touch the same element of X_local")
def cache_write_of_private_memory():
    script(PRIVATE_MEMORY).cache_write("X", 0, "local")


@wrong("`cache_write` of a block that stores vectors", r"block B does not store to B at one place in each iteration")
def cache_write_of_vectors():
    script(VECTORS).cache_write("B", 0, "local")


@wrong("`cache_write` of a block whose iterations must stay in order", r"iteration vi of block B must run in order")
def cache_write_of_what_runs_in_order():
    script("""
for i in range(8):
    with T.block("B"):
        vi = T.axis.opaque(8, i)
        B[vi, 0] = A[vi, 0]
""").cache_write("B", 0, "local")


@wrong("`cache_write(block, [], scope)`", r"cache_write\(block=C, .*\): no buffer is given")
def cache_write_nothing():
    sch, c, *_ = unwatched_product()
    watch(sch).cache_write(c, [], "local")


@wrong("`cache_write` of two buffers that are written at other indices",
       r"X\.v0 and X\.v1 are not written and used alike")
def cache_write_unlike():
    a = float_vector()
    x, y = te.compute((N,), lambda i: (a[i], a[i] + 1), name="X")
    sch = tw.Schedule(te.create_prim_func([a, x, y]))
    sch = rewritten(sch, lambda n: n.replace(indices=(N - 1 - n.indices[0],)) if isinstance(n, Store)
                    and n.buffer.name == "X.v1" else None)
    sch.cache_write("X", [0, 1], "local")


@wrong("`cache_write` for a consumer that reads something else", r"block B does not read C")
def cache_write_stranger():
    sch = watch(blocks(chain))
    sch.cache_write("C", 0, "local", consumer_blocks=["B"])


@wrong("`cache_write` for a consumer inside of another block", r"block B and block P are not inside the same block")
def cache_write_nested_consumer():
    sch = script("""
P = T.alloc_buffer((8, 8), "int32")
for i, j in T.grid(8, 8):
    with T.block("P"):
        vi, vj = T.axis.remap("SS", [i, j])
        P[vi, vj] = A[vi, vj] + 1
for i in range(8):
    with T.block("row"):
        vr = T.axis.spatial(8, i)
        for j in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, vr)
                vj = T.axis.spatial(8, j)
                B[vi, vj] = P[vi, vj] * 2
""")
    sch.cache_write("P", 0, "local", consumer_blocks=["B"])


@wrong("`cache_write` for a consumer of what another block writes as well",
       r"block B may read elements of P that block P has not written by then")
def cache_write_two_writers():
    sch = watch(script("""
P = T.alloc_buffer((16,), "int32")
for i in range(16):
    with T.block("first"):
        v = T.axis.spatial(16, i)
        P[v] = 1
for i in range(8):
    with T.block("P"):
        v = T.axis.spatial(8, i)
        P[v] = 2
for i in range(16):
    with T.block("B"):
        v = T.axis.spatial(16, i)
        B[v] = P[v]
""", "B: T.Buffer((16,), 'int32')"))
    sch.cache_write("P", 0, "local", consumer_blocks=["B"])


@wrong("`cache_write` for a consumer that stands before the block",
       r"block B may read elements of P that block P has not written by then")
def cache_write_earlier_consumer():
    sch = watch(script("""
for i in range(16):
    with T.block("B"):
        v = T.axis.spatial(16, i)
        B[v] = P[v]
for i in range(16):
    with T.block("P"):
        v = T.axis.spatial(16, i)
        P[v] = 2
""", "P: T.Buffer((16,), 'int32'), B: T.Buffer((16,), 'int32')"))
    sch.cache_write("P", 0, "local", consumer_blocks=["B"])


@wrong("`cache_write` of the update after `decompose_reduction`",
       r"reduction block C_update does not initialise what it writes")
def at_update():
    a, b, c = matmul()
    sch = tw.Schedule(te.create_prim_func([a, b, te.compute((16, 16), lambda i, j: c[i, j] * 2.0, name="D")]))
    sch.decompose_reduction("C", sch.get_loops("C")[0])
    watch(sch).cache_write("C_update", 0, "local")


@wrong("`cache_write` of a reduction that nothing starts", r"reduction block P does not initialise what it writes")
def cache_without_init():
    producer_and_consumer("""
for i, k in T.grid(8, 8):
    with T.block("P"):
        vi, vk = T.axis.remap("SR", [i, k])
        X[vi] = X[vi] + A[vk]
""").cache_write("P", 0, "local")


@wrong("`cache_write` of a reduction between whose steps another block writes",
       r"X is written by block P and by block W, which may come between two steps of its reduction")
def cache_between_steps():
    producer_and_consumer("""
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


@wrong("`cache_write` of a block with `T.where(C[i] > 0)` that writes `C`",
       r"C, which block C writes, is read on the way to it")
def cached_below_its_own_condition():
    sch = script("""
for i in range(16):
    with T.block("C"):
        T.where(C[i] > 0)
        vi = T.axis.spatial(16, i)
        C[vi] = A[vi]
""", VECTORS_OF_16)
    sch.cache_write("C", 0, "local")


def _run(sch: Schedule, name: str, position: int, scope: str) -> None:
    sch.cache_write(find_block(sch, name), position, scope)


@move("cache_write", 3, 0.3, _run)
def draw(chooser: Chooser, sch: Schedule, names: list[str]) -> Action | None:
    if len(names) > 9:
        return None
    return ("cache_write", chooser.rng.choice(names), 0, chooser.rng.choice(SCOPES))


def _run_cache_write_for(sch: Schedule, name: str, scope: str, consumers: list[str]) -> None:
    sch.cache_write(find_block(sch, name), 0, scope, [find_block(sch, c) for c in consumers])


@wrong("`cache_write` of a reduction that starts with what was there",
       r"block S starts its reduction with B, which it also writes")
def cache_write_of_what_was_there():
    sch = script("""
for i, k in T.grid(8, 8):
    with T.block("S"):
        vi, vk = T.axis.remap("SR", [i, k])
        with T.init():
            B[vi, 0] = B[vi, 0] * 2
        B[vi, 0] = B[vi, 0] + A[vi, vk]
""")
    sch.cache_write("S", 0, "local")


@move("cache_write_for", early=1.5, late=1, run=_run_cache_write_for)
def draw_cache_write_for(chooser: Chooser, sch: Schedule, names: list[str]) -> Action | None:
    """cache_write whose result some consumers read."""
    rng = chooser.rng
    if len(names) > MOST_BLOCKS:
        return None
    found = [(name, sch.consumers(name)) for name in names if sch.consumers(name)]
    if not found:
        return None
    name, readers = rng.choice(found)
    return ("cache_write_for", name, rng.choice(SCOPES), rng.sample(readers, rng.randint(1, len(readers))))


@wrong("`cache_write` of a block that runs in some instances of the block around it",
       r"the points at which block P uses B_local or B there are no box")
def cache_write_of_some_instances():
    sch = script("""
B = T.alloc_buffer((4,), "int32")
for x in range(8):
    with T.block("O"):
        vx = T.axis.opaque(8, x)
        for i in range(4):
            with T.block("P"):
                vi = T.axis.spatial(4, i)
                v2 = T.axis.spatial(1, vx)
                T.where(vx < 1)
                B[vi] = vi
        for i in range(4):
            with T.block("X"):
                vi = T.axis.spatial(4, i)
                X[vx, vi] = B[vi]
""", "X: T.Buffer((8, 4), 'int32')")
    sch.cache_write("P", 0, "local")
