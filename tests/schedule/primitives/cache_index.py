"""cache_index: its example, what it refuses, and how random schedules use it."""
from __future__ import annotations

from tests.fuzz.moves import MOST_BLOCKS, SCOPES, Action, Chooser, find_block, move
from tests.schedule.case import Case
from tests.wrong_uses.programs import script
from tests.wrong_uses.schedule_programs import unwatched_product
from tests.wrong_uses.wrong_use import watch
from tilewright import te
from tilewright.schedule import Schedule
from tilewright.te.prim_func import create_prim_func

CASE = Case("cache_index")
wrong = CASE.wrong


@CASE.example
def example():
    """
    b0, = sch.cache_index(block='B', storage_scope='global')

    @T.prim_func
    def main(A: T.Buffer((30,), "int32"), B: T.Buffer((8, 4), "int32")):
        T.func_attr({"tir.noalias": True})
        # with T.block("root"):
        index_var_0 = T.alloc_buffer((8, 4), "int32")
        for i, j in T.grid(8, 4):
            with T.block("index_0"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads()
                T.writes(index_var_0[vi, vj])
                index_var_0[vi, vj] = vi // 2 + vj * 3
        for i, j in T.grid(8, 4):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads(A[vi // 2 + vj * 3], index_var_0[vi, vj])
                T.writes(B[vi, vj])
                B[vi, vj] = A[index_var_0[vi, vj]]
    """
    a = te.placeholder((30,), "int32", name="A")
    sch = Schedule(create_prim_func([a, te.compute((8, 4), lambda i, j: a[i // 2 + j * 3], name="B")]))
    sch.cache_index("B", "global")
    return sch


@wrong("`cache_index` of a block whose axes have few bits", r"the new index vi of block C is int8")
def cache_index_of_few_bits():
    sch = script("""
for i in T.serial(T.int8(8)):
    with T.block("C"):
        vi = T.axis.spatial(T.int8(8), i)
        B[vi, 0] = A[T.int8(7) - vi, 0]
""")
    sch.cache_index("C", "global")


@wrong("`cache_index(C, \"global\", -1)`", r"cse_thresh is -1, not a number of repetitions")
def cache_index_never():
    sch, block, *_ = unwatched_product()
    watch(sch).cache_index(block, "global", -1)


def _run_index(sch: Schedule, name: str, scope: str, repetitions: int) -> None:
    sch.cache_index(find_block(sch, name), scope, repetitions)


@move("cache_index", early=0.8, late=0.5, run=_run_index)
def draw_cache_index(chooser: Chooser, sch: Schedule, names: list[str]) -> Action | None:
    if len(names) > MOST_BLOCKS:
        return None
    rng = chooser.rng
    return ("cache_index", rng.choice(names), rng.choice(SCOPES), rng.choice([0, 0, 1, 2]))
