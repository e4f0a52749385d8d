"""cache_inplace: its example, what it refuses, and how random schedules use it."""
from __future__ import annotations

import tilewright as tw
from tests.fuzz.moves import MOST_BLOCKS, SCOPES, Action, Chooser, find_block, move
from tests.schedule.case import Case
from tests.schedule.core_support import matmul
from tests.wrong_uses.programs import N, placeholders, script
from tests.wrong_uses.schedule_programs import partly, rewritten, unwatched_product
from tests.wrong_uses.wrong_use import watch
from tilewright import te
from tilewright.schedule import Schedule
from tilewright.tir.expr import IntImm
from tilewright.tir.stmt import Block, IfThenElse
from tilewright.tir.symbols import replace_buffers

CASE = Case("cache_inplace")
wrong = CASE.wrong


@CASE.example
def example():
    """
    b4, b5 = sch.cache_inplace(block='C_update', read_buffer_index='C', storage_scope='local')

    @T.prim_func
    def matmul(A: T.Buffer((4, 5), "int32"), B: T.Buffer((5, 6), "int32"), C: T.Buffer((4, 6), "int32")):
        T.func_attr({"tir.noalias": True})
        # with T.block("root"):
        C_local = T.alloc_buffer((4, 6), "int32", scope="local")
        for i_init, j_init in T.grid(4, 6):
            with T.block("C_init"):
                vi_init, vj_init = T.axis.remap("SS", [i_init, j_init])
                T.reads()
                T.writes(C[vi_init, vj_init])
                C[vi_init, vj_init] = 0
        for ax0, ax1 in T.grid(4, 6):
            with T.block("C_local"):
                v0, v1 = T.axis.remap("SS", [ax0, ax1])
                T.reads(C[v0, v1])
                T.writes(C_local[v0, v1])
                C_local[v0, v1] = C[v0, v1]
        for i, j, r in T.grid(4, 6, 5):
            with T.block("C_update"):
                vi, vj, vr = T.axis.remap("SSR", [i, j, r])
                T.reads(C_local[vi, vj], A[vi, vr], B[vr, vj])
                T.writes(C_local[vi, vj])
                C_local[vi, vj] = C_local[vi, vj] + A[vi, vr] * B[vr, vj]
        for ax0, ax1 in T.grid(4, 6):
            with T.block("C_local_back"):
                v0, v1 = T.axis.remap("SS", [ax0, ax1])
                T.reads(C_local[v0, v1])
                T.writes(C[v0, v1])
                C[v0, v1] = C_local[v0, v1]
    """
    sch = Schedule(matmul())
    sch.decompose_reduction("C", sch.get_loops("C")[0])
    sch.cache_inplace("C_update", "C", "local")
    return sch


def update(name="C"):
    """The chain of two products, its first one decomposed: B_update reads and writes B, which the function allocates"""
    a, b = placeholders()
    k = te.reduce_axis((0, N), name="k")
    c = te.compute((N, N), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    d = te.compute((N, N), lambda i, j: c[i, j] + 1.0, name="D")
    sch = tw.Schedule(te.create_prim_func([a, b, d]))
    sch.decompose_reduction("C", sch.get_loops("C")[0])
    return sch


@wrong("`cache_inplace(C, \"A\", ...)`: the block does not write it", r"block C reads A and does not write it")
def cache_inplace_of_an_input():
    sch, block, *_ = unwatched_product()
    watch(sch).cache_inplace(block, "A", "local")


@wrong("`cache_inplace` of a buffer with strides of its own", r"C has strides of its own")
def cache_inplace_of_strides():
    sch = update()
    old = sch.get(sch.get_block("C_update")).writes[0].buffer
    strided = old.replace(strides=(IntImm(2 * N), IntImm(2)), data=None)
    watch(tw.Schedule(sch.func.with_body(replace_buffers(sch.func.body, {old: strided})))).cache_inplace(
        "C_update", "C", "local")


@wrong("`cache_inplace` of elements that are written only in part",
       r"the copy would read elements of C that may not be written by then")
def cache_inplace_too_early():
    partly(update(), "C_init").cache_inplace("C_update", "C", "local")


@wrong("`cache_inplace` behind a writer whose loop may have no iterations",
       r"the copy would read elements of C that may not be written by then")
def cache_inplace_of_what_may_not_be():
    script("""
C = T.alloc_buffer((8,), "int32")
for u in range(n):
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = 5
for i in range(8):
    for u in range(n):
        with T.block("C_update"):
            vi = T.axis.spatial(8, i)
            C[vi] = C[vi] + 1
for u in range(n):
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = C[vi]
""", "B: T.Buffer((8,), 'int32'), n: T.int32").cache_inplace("C_update", "C", "local")


@wrong("`cache_inplace` of a block in a branch with others", r"block C_update shares a branch with other blocks")
def cache_inplace_in_a_branch():
    sch = update()

    def branch(n):
        root = isinstance(n, Block) and n.name == "root"
        return n.replace(body=IfThenElse(IntImm(1, "bool"), n.body)) if root else None
    rewritten(sch, branch).cache_inplace("C_update", "C", "local")


def _run_inplace(sch: Schedule, name: str, position: int, scope: str) -> None:
    sch.cache_inplace(find_block(sch, name), position, scope)


@move("cache_inplace", early=2.5, late=1.5, run=_run_inplace)
def draw_cache_inplace(chooser: Chooser, sch: Schedule, names: list[str]) -> Action | None:
    """On a block that updates a buffer, such as what decompose_reduction leaves; sometimes on any."""
    rng = chooser.rng
    if len(names) > MOST_BLOCKS:
        return None
    fitting = [(n, k) for n in names for k, r in enumerate(sch.realize(n).block.reads)
               if any(w.buffer is r.buffer for w in sch.realize(n).block.writes)]
    if not fitting and rng.random() < 0.95:
        return None
    name, position = rng.choice(fitting) if fitting else (rng.choice(names), 0)
    return ("cache_inplace", name, position, rng.choice(SCOPES))
