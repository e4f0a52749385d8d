"""unsafe_set_dtype: its example, what it refuses, and how random schedules use it."""
from __future__ import annotations

from tests.fuzz.moves import Action, Chooser, allocated, find_block, move
from tests.schedule.case import Case
from tests.schedule.compute_support import chain as chain_function
from tests.wrong_uses.programs import blocks, chain
from tests.wrong_uses.schedule_programs import viewed
from tests.wrong_uses.wrong_use import watch
from tilewright.schedule import Schedule

CASE = Case("unsafe_set_dtype")
wrong = CASE.wrong


@CASE.example
def example():
    """
    sch.unsafe_set_dtype(block='B', buffer_index=0, dtype='int64')

    @T.prim_func
    def main(A: T.Buffer((20,), "int32"), C: T.Buffer((20,), "int32")):
        T.func_attr({"tir.noalias": True})
        # with T.block("root"):
        B = T.alloc_buffer((20,), "int64")
        for i in range(20):
            with T.block("B"):
                vi = T.axis.spatial(20, i)
                T.reads(A[vi])
                T.writes(B[vi])
                B[vi] = T.Cast("int64", A[vi] * 3)
        for i in range(20):
            with T.block("C"):
                vi = T.axis.spatial(20, i)
                T.reads(B[vi])
                T.writes(C[vi])
                C[vi] = T.Cast("int32", B[vi]) - 1
    """
    sch = Schedule(chain_function())
    sch.unsafe_set_dtype("B", 0, "int64")
    return sch


@wrong("`unsafe_set_dtype` of an argument", r"C is no memory of the function's own")
def dtype_of_an_argument():
    watch(blocks(chain)).unsafe_set_dtype("C", 0, "float16")


@wrong("`unsafe_set_dtype` to what is no dtype", r"'half' is not a dtype")
def dtype_that_is_none():
    watch(blocks(chain)).unsafe_set_dtype("B", 0, "half")


@wrong("`unsafe_set_dtype` to vectors", r"'float32x4' is no dtype of elements")
def dtype_of_vectors():
    watch(blocks(chain)).unsafe_set_dtype("B", 0, "float32x4")


@wrong("`unsafe_set_dtype` of a buffer with a view (match_buffer)", r"the function uses B other than by its elements")
def dtype_of_a_view():
    viewed(blocks(chain), "C", "B").unsafe_set_dtype("B", 0, "float16")


_WIDER = {"int8": "int16", "int16": "int32", "int32": "int64", "uint8": "uint16", "float16": "float32",
          "float32": "float64"}                # dtypes that hold all values: the meaning stays


def _run_unsafe_set_dtype(sch: Schedule, name: str, position: int, dtype: str) -> None:
    sch.unsafe_set_dtype(find_block(sch, name), position, dtype)


@move("unsafe_set_dtype", early=0.7, late=0.7, run=_run_unsafe_set_dtype)
def draw_unsafe_set_dtype(chooser: Chooser, sch: Schedule, names: list[str]) -> Action | None:
    written = [t for t in allocated(sch, names) if t[1] == "write"]
    if not written:
        return None
    name, _, position = chooser.rng.choice(written)
    dtype = sch.realize(name).block.writes[position].buffer.dtype
    return ("unsafe_set_dtype", name, position, _WIDER[dtype]) if dtype in _WIDER else None
