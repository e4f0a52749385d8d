"""read_at and write_at: their examples, what they refuse, and how random schedules use them."""
from __future__ import annotations

from typing import Any

from tests.fuzz.moves import MOST_BLOCKS, SCOPES, Action, Chooser, find_block, find_loop, move
from tests.schedule.case import Case
from tests.schedule.compute_support import chain
from tests.wrong_uses.schedule_programs import product
from tilewright.schedule import Schedule

READ_AT = Case("read_at")
WRITE_AT = Case("write_at")


@READ_AT.example
def example_of_read_at():
    """
    b3 = sch.read_at(loop=l1, block='C', read_buffer_index=0, storage_scope='local')

    @T.prim_func
    def main(A: T.Buffer((20,), "int32"), C: T.Buffer((20,), "int32")):
        T.func_attr({"tir.noalias": True})
        # with T.block("root"):
        B = T.alloc_buffer((20,), "int32")
        B_local = T.alloc_buffer((20,), "int32", scope="local")
        for i in range(20):
            with T.block("B"):
                vi = T.axis.spatial(20, i)
                T.reads(A[vi])
                T.writes(B[vi])
                B[vi] = A[vi] * 3
        for i_0 in range(4):
            with T.block("B_local_o"):
                v0_o = T.axis.spatial(4, i_0)
                T.reads(B[v0_o * 5:v0_o * 5 + 5])
                T.writes(B_local[v0_o * 5:v0_o * 5 + 5])
                T.block_attr({"auto_copy": True})
                for ax0 in range(5):
                    with T.block("B_local"):
                        v0_i = T.axis.spatial(5, ax0)
                        T.reads(B[v0_o * 5 + v0_i])
                        T.writes(B_local[v0_o * 5 + v0_i])
                        B_local[v0_o * 5 + v0_i] = B[v0_o * 5 + v0_i]
            for i_1 in range(5):
                with T.block("C"):
                    vi = T.axis.spatial(20, i_0 * 5 + i_1)
                    T.reads(B_local[vi])
                    T.writes(C[vi])
                    C[vi] = B_local[vi] - 1
    """
    sch = Schedule(chain())
    outer, _ = sch.split(sch.get_loops("C")[0], [None, 5])
    sch.read_at(outer, "C", 0, "local")
    return sch


@WRITE_AT.example
def example_of_write_at():
    """
    b3 = sch.write_at(loop=l1, block='B', write_buffer_index=0, storage_scope='local')

    @T.prim_func
    def main(A: T.Buffer((20,), "int32"), C: T.Buffer((20,), "int32")):
        T.func_attr({"tir.noalias": True})
        # with T.block("root"):
        B = T.alloc_buffer((20,), "int32")
        B_local = T.alloc_buffer((20,), "int32", scope="local")
        for i_0 in range(4):
            for i_1 in range(5):
                with T.block("B"):
                    vi = T.axis.spatial(20, i_0 * 5 + i_1)
                    T.reads(A[vi])
                    T.writes(B_local[vi])
                    B_local[vi] = A[vi] * 3
            with T.block("B_local_o"):
                vi_o = T.axis.spatial(4, i_0)
                T.reads(B_local[vi_o * 5:vi_o * 5 + 5])
                T.writes(B[vi_o * 5:vi_o * 5 + 5])
                T.block_attr({"auto_copy": True})
                for i in range(5):
                    with T.block("B_local"):
                        vi_i = T.axis.spatial(5, i)
                        T.reads(B_local[vi_o * 5 + vi_i])
                        T.writes(B[vi_o * 5 + vi_i])
                        B[vi_o * 5 + vi_i] = B_local[vi_o * 5 + vi_i]
        for i in range(20):
            with T.block("C"):
                vi = T.axis.spatial(20, i)
                T.reads(B[vi])
                T.writes(C[vi])
                C[vi] = B[vi] - 1
    """
    sch = Schedule(chain())
    outer, _ = sch.split(sch.get_loops("B")[0], [None, 5])
    sch.write_at(outer, "B", 0, "local")
    return sch


@READ_AT.wrong("`read_at` of a buffer that the block does not read", r"read_at\(.*\): block C reads no buffer 'D'")
def read_at_of_no_buffer():
    sch, block, i, *_ = product()
    sch.read_at(i, block, "D", "local")


@WRITE_AT.wrong("`write_at` of a buffer that the block does not write", r"write_at\(.*\): block C writes no buffer 'A'")
def write_at_of_no_buffer():
    sch, block, i, *_ = product()
    sch.write_at(i, block, "A", "local")


def _place(rng: Any, sch: Schedule, names: list[str]) -> tuple[str, int] | None:
    """A block and the position of one of its loops."""
    found = [name for name in names if sch.loops_above(name)]
    name = rng.choice(found) if found and len(names) <= MOST_BLOCKS else ""
    return (name, rng.randrange(len(sch.loops_above(name)))) if name else None


def _run_read_at(sch: Schedule, where: tuple[str, int], position: int, scope: str) -> None:
    sch.read_at(find_loop(sch, where), find_block(sch, where[0]), position, scope)


@move("read_at", early=2, late=2, run=_run_read_at)
def draw_read_at(chooser: Chooser, sch: Schedule, names: list[str]) -> Action | None:
    rng, place = chooser.rng, _place(chooser.rng, sch, names)
    if place is None or not sch.realize(place[0]).block.reads:
        return None
    return ("read_at", place, rng.randrange(len(sch.realize(place[0]).block.reads)), rng.choice(SCOPES))


def _run_write_at(sch: Schedule, where: tuple[str, int], scope: str) -> None:
    sch.write_at(find_loop(sch, where), find_block(sch, where[0]), 0, scope)


@move("write_at", early=2, late=2, run=_run_write_at)
def draw_write_at(chooser: Chooser, sch: Schedule, names: list[str]) -> Action | None:
    place = _place(chooser.rng, sch, names)
    return None if place is None else ("write_at", place, chooser.rng.choice(SCOPES))
