"""storage_align: its example, what it refuses, and how random schedules use it."""
from __future__ import annotations

import tilewright as tw
from tests.fuzz.moves import Action, Chooser, allocated, find_block, move
from tests.schedule.case import Case
from tests.schedule.compute_support import stencil
from tests.wrong_uses.schedule_programs import chain_blocks
from tilewright.schedule import Schedule
from tilewright.tir.expr import IntImm
from tilewright.tir.symbols import replace_buffers

CASE = Case("storage_align")
wrong = CASE.wrong


@CASE.example
def example():
    """
    sch.storage_align(block='B', buffer_index=0, axis=0, factor=8, offset=1)

    @T.prim_func
    def main(A: T.Buffer((22, 6), "int32"), C: T.Buffer((20, 6), "int32")):
        T.func_attr({"tir.noalias": True})
        # with T.block("root"):
        B = T.alloc_buffer((22, 6), "int32")
        for i, j in T.grid(22, 6):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads(A[vi, vj])
                T.writes(B[vi, vj])
                T.block_attr({"buffer_dim_align": [[0, 0, 8, 1]]})
                B[vi, vj] = A[vi, vj] * 3
        for i, j in T.grid(20, 6):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads(B[vi:vi + 3, vj])
                T.writes(C[vi, vj])
                C[vi, vj] = B[vi, vj] + B[vi + 2, vj]
    """
    sch = Schedule(stencil())
    sch.storage_align("B", 0, 0, 8, 1)
    return sch


@wrong("`storage_align` of a buffer that is not written", r"block B writes no buffer 1")
def align_unknown():
    sch, b, _ = chain_blocks()
    sch.storage_align(b, 1, 0, 8, 1)


@wrong("`storage_align` of an argument", r"C is an argument of the function, which lies as the caller laid it")
def align_argument():
    sch, _, c = chain_blocks()
    sch.storage_align(c, 0, 0, 8, 1)


@wrong("`storage_align` of an axis that there is not", r"axis is 2, B has 2 dimension\(s\)")
def align_axis():
    sch, b, _ = chain_blocks()
    sch.storage_align(b, 0, 2, 8, 1)


@wrong("`storage_align` by a factor of 0", r"factor is 0, not a positive integer")
def align_factor():
    sch, b, _ = chain_blocks()
    sch.storage_align(b, 0, 0, 0, 0)


@wrong("`storage_align` with an offset of the factor", r"offset is 8, not an integer from 0 to 7")
def align_offset():
    sch, b, _ = chain_blocks()
    sch.storage_align(b, 0, 0, 8, 8)


@wrong("`storage_align` of a buffer with strides", r"B has strides of its own")
def align_strided():
    sch, b, _ = chain_blocks()
    old = sch.get(b).writes[0].buffer
    body = replace_buffers(sch.func.body, {old: old.replace(strides=(IntImm(32), IntImm(1)), data=None)})
    strided = tw.Schedule(sch.func.with_body(body))
    strided.storage_align("B", 0, 0, 8, 1)


def run_align(sch: Schedule, name: str, index: int, axis: int, factor: int, offset: int) -> None:
    sch.storage_align(find_block(sch, name), index, axis, factor, offset)


@move("storage_align", 1, 0.7, run_align)
def draw_align(chooser: Chooser, sch: Schedule, names: list[str]) -> Action | None:
    rng = chooser.rng
    own = [t for t in allocated(sch, names) if t[1] == "write"]
    if not own:
        return None
    name, _, index = rng.choice(own)
    rank, factor = sch.realize(name).block.writes[index].buffer.ndim, rng.choice([1, 2, 4, 8, 16])
    return ("storage_align", name, index, rng.randrange(-rank, rank), factor, rng.randrange(factor)) if rank else None
