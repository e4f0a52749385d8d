"""prefetch: its example, what it refuses, and how random schedules use it."""
from __future__ import annotations

from typing import Any

from tests.fuzz.moves import Action, Chooser, find_block, find_loop, move
from tests.schedule.case import Case
from tests.schedule.core_support import matmul
from tests.wrong_uses.programs import blocks
from tests.wrong_uses.wrong_use import watch
from tilewright.schedule import Schedule

CASE = Case("prefetch")
wrong = CASE.wrong


@CASE.example
def example():
    """
    sch.prefetch(block='C', read_buffer_index=1, loop=l2, offset=2)

    @T.prim_func
    def matmul(A: T.Buffer((4, 5), "int32"), B: T.Buffer((5, 6), "int32"), C: T.Buffer((4, 6), "int32")):
        T.func_attr({"tir.noalias": True})
        # with T.block("root"):
        for i, j in T.grid(4, 6):
            for r in T.serial(5, annotations={"prefetch": [["B", 2]]}):
                with T.block("C"):
                    vi, vj, vr = T.axis.remap("SSR", [i, j, r])
                    T.reads(A[vi, vr], B[vr, vj])
                    T.writes(C[vi, vj])
                    with T.init():
                        C[vi, vj] = 0
                    C[vi, vj] = C[vi, vj] + A[vi, vr] * B[vr, vj]
    """
    sch = Schedule(matmul())
    sch.prefetch("C", 1, sch.get_loops("C")[2], 2)
    return sch


def product():
    sch = blocks()
    block = sch.get_block("C")
    loops = sch.get_loops(block)
    return watch(sch), block, *loops


@wrong("`prefetch(C, 2, k)`: C reads two buffers", r"block C reads 2 buffer\(s\), there is no number 2")
def prefetch_of_no_buffer():
    sch, block, _, _, k = product()
    sch.prefetch(block, 2, k)


@wrong("`prefetch` at a loop of another block", r"loop \w+ is not around block C")
def prefetch_elsewhere():
    sch, block, i, _, k = product()
    other = sch.cache_read(block, 0, "local")
    sch.prefetch(block, 0, sch.get_loops(watch(sch) and other)[0])


@wrong("`prefetch` at a parallel loop", r"loop i is parallel: its iterations have no order")
def prefetch_in_parallel():
    sch, block, i, _, _ = product()
    sch.parallel(i)
    watch(sch).prefetch(block, 0, i)


@wrong("`prefetch(C, 0, k, 0)`: not ahead", r"the offset 0 is not a positive number of iterations")
def prefetch_now():
    sch, block, _, _, k = product()
    sch.prefetch(block, 0, k, 0)


@wrong("`prefetch` twice", r"loop k prefetches A that far ahead already")
def prefetch_twice():
    sch, block, _, _, k = product()
    sch.prefetch(block, 0, k)
    watch(sch).prefetch(block, 0, k)


def run(sch: Schedule, block: str, index: int, where: tuple[str, int], offset: int) -> None:
    sch.prefetch(find_block(sch, block), index, find_loop(sch, where), offset)


@move("prefetch", 0.3, 1.2, run)
def draw(chooser: Chooser, sch: Schedule, names: list[str]) -> Action | None:
    name = chooser.rng.choice(names)
    loops: list[Any] = sch.loops_above(name)
    reads = sch.realize(name).block.reads
    if not loops or not reads:
        return None
    where = (name, chooser.rng.randrange(len(loops)))
    return ("prefetch", name, chooser.rng.randrange(len(reads)), where, chooser.rng.choice([1, 1, 2, 5]))
