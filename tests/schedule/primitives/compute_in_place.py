"""compute_in_place: its example, what it refuses, and how random schedules use it."""
from __future__ import annotations

from tests.fuzz.moves import Action, Chooser, find_block, move
from tests.schedule.case import Case
from tests.schedule.compute_support import chain
from tests.wrong_uses.programs import script
from tests.wrong_uses.wrong_use import watch
from tilewright.schedule import Schedule

CASE = Case("compute_in_place")
wrong = CASE.wrong


@CASE.example
def example():
    """
    sch.compute_in_place(block='C', read_buffer_index=0)

    @T.prim_func
    def main(A: T.Buffer((20,), "int32"), C: T.Buffer((20,), "int32")):
        T.func_attr({"tir.noalias": True})
        # with T.block("root"):
        for i in range(20):
            with T.block("B"):
                vi = T.axis.spatial(20, i)
                T.reads(A[vi])
                T.writes(C[vi])
                C[vi] = A[vi] * 3
        for i in range(20):
            with T.block("C"):
                vi = T.axis.spatial(20, i)
                T.reads(C[vi])
                T.writes(C[vi])
                C[vi] = C[vi] - 1
    """
    sch = Schedule(chain())
    sch.compute_in_place("C", 0)
    return sch


STEPS = """
X = T.alloc_buffer((8, 8), "int32")
for i, j in T.grid(8, 8):
    with T.block("X"):
        vi, vj = T.axis.remap("SS", [i, j])
        X[vi, vj] = A[vi, vj]
for i, j in T.grid(8, 8):
    with T.block("B"):
        vi, vj = T.axis.remap("SS", [i, j])
        {where}
        B[vi, vj] = {value}
{after}
"""
AFTER = """
for i, j in T.grid(8, 8):
    with T.block("Y"):
        vi, vj = T.axis.remap("SS", [i, j])
        Y[vi, vj] = X[vi, vj]
"""


def steps(value: str = "X[vi, vj] + 1", where: str = "T.where(True)", after: str = "", more: str = "") -> Schedule:
    text = STEPS.format(value=value, where=where, after=after)
    return watch(script(more + text))


@wrong("`compute_in_place` of an argument", r"A is no memory of the function's own")
def argument():
    steps("X[vi, vj] + A[vi, vj]").compute_in_place("B", "A")


@wrong("`compute_in_place` of the transpose", r"block B reads other elements of X than that of B which it writes")
def transpose():
    steps("X[vj, vi]").compute_in_place("B", "X")


@wrong("`compute_in_place` over half of the result", r"block B runs only where i < 4")
def half():
    steps(where="T.where(i < 4)").compute_in_place("B", "X")


@wrong("`compute_in_place` of a block that computes the first half", r"block B is not shown to write all of B")
def first_half():
    watch(script("""
X = T.alloc_buffer((8, 8), "int32")
for i, j in T.grid(4, 8):
    with T.block("X"):
        vi, vj = T.axis.remap("SS", [i, j])
        X[vi, vj] = A[vi, vj]
for i, j in T.grid(4, 8):
    with T.block("B"):
        vi, vj = T.axis.remap("SS", [i, j])
        B[vi, vj] = X[vi, vj] + 1
""")).compute_in_place("B", "X")


@wrong("`compute_in_place` of what is computed twice",
       r"the loops around block B are not shown to compute each element exactly once")
def twice():
    sch = watch(script("""
X = T.alloc_buffer((8, 8), "int32")
for i, j in T.grid(8, 8):
    with T.block("X"):
        vi, vj = T.axis.remap("SS", [i, j])
        X[vi, vj] = A[vi, vj]
for i, j, r in T.grid(8, 8, 2):
    with T.block("B"):
        vi, vj = T.axis.remap("SS", [i, j])
        B[vi, vj] = X[vi, vj] + 1
"""))
    sch.compute_in_place("B", "X")


@wrong("`compute_in_place` where the result is read", r"B is used by other blocks than B")
def result_read():
    steps(after=AFTER.replace("X[vi, vj]", "B[vi, vj]"), more='Y = T.alloc_buffer((8, 8), "int32")\n').compute_in_place(
        "B", "X")


@wrong("`compute_in_place` of memory whose address is taken", r"the function uses X or B other than by its elements")
def address():
    steps(after="""
with T.block("Y"):
    T.reads(X[0, 0])
    T.writes()
    T.evaluate(T.call_extern("int32", "look", X.data))
""").compute_in_place("B", "X")


@wrong("`compute_in_place` of what is read later", r"block Y may use an element of X after block B has written over it")
def later():
    steps(after=AFTER, more='Y = T.alloc_buffer((8, 8), "int32")\n').compute_in_place("B", "X")


@wrong("`compute_in_place` of memory in another scope", r"X and B are not of one shape, dtype, scope and layout")
def other_scope():
    watch(script(STEPS.format(value="X[vi, vj]", where="T.where(True)", after="").replace(
        '8), "int32")', '8), "int32", scope="local")'))).compute_in_place("B", "X")


@wrong("`compute_in_place` of rows of which an iteration reads the one before",
       r"block Z may use an element of X after block B has written over it")
def row_before():
    sch = watch(script("""
X = T.alloc_buffer((8, 8), "int32")
Z = T.alloc_buffer((8, 8), "int32")
for i in range(8):
    for j in range(8):
        with T.block("X"):
            vi, vj = T.axis.remap("SS", [i, j])
            X[vi, vj] = A[vi, vj]
    for j in range(8):
        with T.block("Z"):
            vi, vj = T.axis.remap("SS", [i, j])
            Z[vi, vj] = X[T.max(vi - 1, 0), vj]
    for j in range(8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = X[vi, vj] + Z[vi, vj]
"""))
    sch.compute_in_place("B", "X")


def run(sch: Schedule, name: str, position: int) -> None:
    sch.compute_in_place(find_block(sch, name), position)


@move("compute_in_place", 0.5, 1.0, run)
def draw(chooser: Chooser, sch: Schedule, names: list[str]) -> Action | None:
    arguments = {id(b) for b in sch.func.buffers}
    rows = [("compute_in_place", n, k) for n in names for k, r in enumerate(sch.realize(n).block.reads)
            if id(r.buffer) not in arguments]
    return chooser.rng.choice(rows) if rows else None
