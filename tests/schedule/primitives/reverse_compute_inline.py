"""reverse_compute_inline: its example, what it refuses, and how random schedules use it."""
from __future__ import annotations

import tilewright as tw
from tests.fuzz.moves import Action, Chooser, find_block, move
from tests.schedule.case import Case
from tests.schedule.compute_support import chain
from tests.wrong_uses.programs import N, placeholders, script
from tests.wrong_uses.schedule_programs import DOUBLED, VECTORS_OF_16, producer_and_consumer
from tests.wrong_uses.wrong_use import watch
from tilewright import te
from tilewright.schedule import Schedule

CASE = Case("reverse_compute_inline")
wrong = CASE.wrong


@CASE.example
def example():
    """
    sch.reverse_compute_inline(block='C')

    @T.prim_func
    def main(A: T.Buffer((20,), "int32"), C: T.Buffer((20,), "int32")):
        T.func_attr({"tir.noalias": True})
        # with T.block("root"):
        for i in range(20):
            with T.block("B"):
                vi = T.axis.spatial(20, i)
                T.reads(A[vi])
                T.writes(C[vi])
                C[vi] = A[vi] * 3 - 1
    """
    sch = Schedule(chain())
    sch.reverse_compute_inline("C")
    return sch


@wrong("`reverse_compute_inline` of a block with two producers",
       r"reverse_compute_inline\(block=Z\): block Y stands between block X and block Z and touches the same")
def reverse_inline_two():
    a, b = placeholders()
    x = te.compute((N, N), lambda i, j: a[i, j] + 1.0, name="X")
    y = te.compute((N, N), lambda i, j: b[i, j] + 1.0, name="Y")
    z = te.compute((N, N), lambda i, j: x[i, j] + y[i, j], name="Z")
    sch = tw.Schedule(te.create_prim_func([a, b, z]))
    watch(sch).reverse_compute_inline(sch.get_block("Z"))


@wrong("`reverse_compute_inline` of a block whose indices do not tell the iteration",
       r"the indices \(vi \+ vj\) of block Q do not determine its iter vars")
def inline_ambiguous():
    producer_and_consumer("X[vi] = A[vi]", """
for i, j in T.grid(4, 4):
    with T.block("Q"):
        vi, vj = T.axis.remap("SS", [i, j])
        M[vi, vj] = X[vi + vj] + 1
""", arguments="A: T.Buffer((8,), 'int32'), M: T.Buffer((4, 4), 'int32')").reverse_compute_inline("Q")


@wrong("`reverse_compute_inline` of a block that reads an argument only",
       r"block P has no producer that it can be dissolved into")
def reverse_inline_first():
    producer_and_consumer("X[vi] = A[vi]").reverse_compute_inline("P")


@wrong("`reverse_compute_inline` of a block that reads two elements", r"block Q reads more than one element of X")
def reverse_inline_window():
    producer_and_consumer("X[vi] = A[vi]", "B[vi] = X[vi] + X[7 - vi]").reverse_compute_inline("Q")


@wrong("`reverse_compute_inline` of padding: the producer does not run for all that is written",
       r"block Q reads X only where a condition holds, and block P is not shown to run for all its elements")
def reverse_inline_padding():
    producer_and_consumer("X[vi] = A[vi]", """
for i in range(16):
    with T.block("Q"):
        vi = T.axis.spatial(16, i)
        B[vi] = T.if_then_else(vi < 8, X[vi], 0)
""", arguments="A: T.Buffer((8,), 'int32'), B: T.Buffer((16,), 'int32')").reverse_compute_inline("Q")


@wrong("`reverse_compute_inline` of a block that runs every other point of its domain only",
       r"the loops around block Q are not shown to run a box of its domain, and dissolved it might run more")
def reverse_inline_steps():
    producer_and_consumer("X[vi] = A[vi]", """
for i in range(4):
    with T.block("Q"):
        vi = T.axis.spatial(8, i * 2)
        B[vi] = X[vi]
""").reverse_compute_inline("Q")


@wrong("`reverse_compute_inline` of a block that reads where data says",
       r"which element of X block Q reads depends on data")
def reverse_inline_gather():
    producer_and_consumer("X[vi] = A[vi]", "B[vi] = X[A[vi]]").reverse_compute_inline("Q")


@wrong("`reverse_compute_inline` of `A[vi] = B[vi]` into `B[vi] = A[15 - vi]`",
       r"block W writes what block B reads at other elements")
def reverse_inline_in_place():
    sch = script(DOUBLED.replace("A[vi] * 2", "A[15 - vi]") + """
for i in range(16):
    with T.block("W"):
        vi = T.axis.spatial(16, i)
        A[vi] = B[vi]
""", VECTORS_OF_16)
    sch.reverse_compute_inline("W")


@wrong("`reverse_compute_inline` of a block that stores to `C[vi // 2]`",
       r"two iterations of block C may write one element of C, so that their order decides its value")
def inline_block_that_writes_twice():
    sch = script(DOUBLED + """
for i in range(16):
    with T.block("C"):
        vi = T.axis.spatial(16, i)
        C[vi // 2] = B[15 - vi]
""", VECTORS_OF_16)
    sch.reverse_compute_inline("C")


def _run(sch: Schedule, name: str) -> None:
    sch.reverse_compute_inline(find_block(sch, name))


@move("reverse_compute_inline", 8, 0, _run)
def draw(chooser: Chooser, sch: Schedule, names: list[str]) -> Action | None:
    fitting = [n for n in names if sch.producers(n)]
    alone = [n for n in fitting if sch.realize(n).block.init is None
             and any(sch.consumers(p) == [n] for p in sch.producers(n))]
    if alone and chooser.rng.random() < 0.8:           # the others are refused
        fitting = alone
    return ("reverse_compute_inline", chooser.rng.choice(fitting)) if fitting else None
