"""split: its example, what it refuses, and how random schedules use it."""
from __future__ import annotations

from tests.fuzz.moves import Action, Chooser, find_loop, move
from tests.schedule.case import Case
from tests.schedule.core_support import scale
from tests.wrong_uses.programs import blocks, chain, script
from tests.wrong_uses.schedule_programs import VECTORS_OF_16, chain_nest, product
from tests.wrong_uses.wrong_use import watch
from tilewright.schedule import Schedule
from tilewright.tir.expr import IntImm

CASE = Case("split")
wrong = CASE.wrong


@CASE.example
def example():
    """
    l1, l2 = sch.split(loop=l0, factors=[None, 4])

    @T.prim_func
    def scale(A: T.Buffer((10,), "int32"), B: T.Buffer((10,), "int32")):
        T.func_attr({"tir.noalias": True})
        # with T.block("root"):
        for i_0, i_1 in T.grid(3, 4):
            with T.block("B"):
                vi = T.axis.spatial(10, i_0 * 4 + i_1)
                T.where(i_0 * 4 + i_1 < 10)
                T.reads(A[vi])
                T.writes(B[vi])
                B[vi] = A[vi] * 3
    """
    sch = Schedule(scale())
    sch.split(sch.get_loops("B")[0], [None, 4])
    return sch


@wrong("`split(loop, [2, 4])`: the factors do not cover the loop",
       r"split\(loop=i, factors=\[2, 4\]\): the factors cover 8 iterations, loop i has 16")
def split_short():
    sch, _, i, _, _ = product()
    sch.split(i, [2, 4])


@wrong("`split(loop, [None, None])`",
       r"split\(loop=i, factors=\[None, None\]\): more than one factor is None")
def split_two_unknowns():
    sch, _, i, _, _ = product()
    sch.split(i, [None, None])


@wrong("`split(loop, [])`",
       r"split\(loop=i, factors=\[\]\): factors is \[\], not a list of integers")
def split_nothing():
    sch, _, i, _, _ = product()
    sch.split(i, [])


@wrong("`split(loop, [None, 0])`",
       r"split\(loop=i, factors=\[None, 0\]\): the factor 0 is not positive")
def split_zero():
    sch, _, i, _, _ = product()
    sch.split(i, [None, 0])


@wrong("`split(loop, [None, 1.5])`",
       r"split\(loop=i, factors=\[None, 1\.5\]\): the factor 1\.5 is not an integer or None")
def split_float():
    sch, _, i, _, _ = product()
    sch.split(i, [None, 1.5])


@wrong("`split(loop, 4)`: a number in place of a list",
       r"split\(loop=i, factors=4\): factors is 4, not a list of integers")
def split_number():
    sch, _, i, _, _ = product()
    sch.split(i, 4)


@wrong("`split(loop, [None, 2**63])`",
       r"split\(loop=i, factors=\[None, 9223372036854775808\]\): the factors cover 9223372036854775808")
def split_huge():
    sch, _, i, _, _ = product()
    sch.split(i, [None, 2**63])


@wrong("`split(block, ...)`: a block in place of a loop",
       r"split\(loop=C, factors=\[None, 4\]\): expected a loop, got block C")
def split_block():
    sch, block, _, _, _ = product()
    sch.split(block, [None, 4])


@wrong("`split(loop, factor=4)`: an argument that there is not",
       r"split\(loop, factors, .*\): missing a required argument: 'factors'")
def split_keyword():
    sch, _, i, _, _ = product()
    sch.split(i, factor=4)


@wrong("`split(loop, [4, 4], names=[\"a\"])`", r"2 factors, 1 names")
def split_names():
    sch = watch(blocks())
    sch.split(sch.get_loops("C")[0], [4, 4], names=["a"])


@wrong("`split(loop, [4, 4], names=\"ab\")`", r"names are a list of texts, not 'ab'")
def split_names_text():
    sch = watch(blocks())
    sch.split(sch.get_loops("C")[0], [4, 4], names="ab")


@wrong("`split(.., preserve_unit_iters=\"no\")`",
       r"preserve_unit_iters is True or False, not 'no'")
def flag_text():
    sch = watch(blocks())
    sch.split(sch.get_loops("C")[0], [4, 4], preserve_unit_iters="no")


@wrong("`split` without the condition that it needs", r"the factors do not divide the extent 16 of loop i")
def split_without_condition():
    sch = watch(blocks(chain))
    sch.split(sch.get_loops("B")[0], [None, 5], disable_predication=True)


@wrong("`split` of `for i in range(C[0])` over a block that writes `C`",
       r"(?s)C is read by the bounds of a loop, and written below it.*hint: keep what bounds read")
def split_of_bounds_that_change():
    sch = script("""
for i in range(C[0]):
    with T.block("C"):
        vi = T.axis.spatial(16, i)
        T.where(i < 16)
        C[vi] = A[vi]
""", VECTORS_OF_16)
    sch.split(sch.get_loops("C")[0], [None, 4])


@wrong("a handle after `remove_rv`", r"split\(loop=i, factors=\[None, 4\]\): loop i was removed by remove_rv")
def removed_handle():
    sch, _, i, _ = chain_nest()
    sch.remove_rv(i)
    sch.split(i, [None, 4])


def _run(sch: Schedule, where: tuple[str, int], factors: list[int | None], units: bool) -> None:
    sch.split(find_loop(sch, where), factors, preserve_unit_iters=units)


@move("split", 7, 2, _run)
def draw(chooser: Chooser, sch: Schedule, names: list[str]) -> Action | None:
    rng, found = chooser.rng, chooser.loop(sch, names)
    if found is None:
        return None
    where, loop = found
    f = rng.choice([1, 2, 2, 3, 4, 4, 5, 7, 8, 16])
    forms: list[list[int | None]] = [[None, f], [None, f], [f, None], [None, f, rng.choice([2, 3, 4])],
                                     [rng.choice([2, 3]), None, f]]
    if isinstance(loop.extent, IntImm) and loop.extent.value > 0:
        forms.append([-(-loop.extent.value // f), f])
    return ("split", where, rng.choice(forms), rng.random() < 0.8)
