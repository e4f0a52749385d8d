"""rfactor: its example, what it refuses, and how random schedules use it."""
from __future__ import annotations

from tests.fuzz.moves import MOST_BLOCKS, Action, Chooser, find_loop, move
from tests.schedule.case import Case
from tests.wrong_uses.programs import N, blocks, chain, script
from tests.wrong_uses.schedule_programs import (
    VECTORS_OF_16,
    float_vector,
    rewritten,
    scheduled,
    unwatched_product,
    viewed,
)
from tests.wrong_uses.wrong_use import watch
from tilewright import te
from tilewright.schedule import Schedule
from tilewright.te.prim_func import create_prim_func
from tilewright.tir.expr import Var
from tilewright.tir.iter_var import COMM_REDUCE
from tilewright.tir.node import walk
from tilewright.tir.stmt import Block, BlockRealize, For, loop

CASE = Case("rfactor")
wrong = CASE.wrong


def row_sums() -> Schedule:
    """B[i] = sum of A[i, k]"""
    a, k = te.placeholder((4, 12), "int32", name="A"), te.reduce_axis((0, 12), name="k")
    return Schedule(create_prim_func([a, te.compute((4,), lambda i: te.sum(a[i, k], axis=k), name="B")]))


@CASE.example
def example():
    """
    b4 = sch.rfactor(loop=l3, factor_axis=0)

    @T.prim_func
    def main(A: T.Buffer((4, 12), "int32"), B: T.Buffer((4,), "int32")):
        T.func_attr({"tir.noalias": True})
        # with T.block("root"):
        B_rf = T.alloc_buffer((4, 4), "int32")
        for i, k_0, k_1 in T.grid(4, 3, 4):
            with T.block("B_rf"):
                v_k_1, vi, v_k_0 = T.axis.remap("SSR", [k_1, i, k_0])
                T.reads(A[vi, v_k_0 * 4 + v_k_1])
                T.writes(B_rf[v_k_1, vi])
                with T.init():
                    B_rf[v_k_1, vi] = 0
                B_rf[v_k_1, vi] = B_rf[v_k_1, vi] + A[vi, v_k_0 * 4 + v_k_1]
        for i, k_1 in T.grid(4, 4):
            with T.block("B"):
                vi, v_k_1 = T.axis.remap("SR", [i, k_1])
                T.reads(B_rf[v_k_1, vi])
                T.writes(B[vi])
                with T.init():
                    B[vi] = 0
                B[vi] = B[vi] + B_rf[v_k_1, vi]
    """
    sch = row_sums()
    sch.rfactor(sch.split(sch.get_loops("B")[1], [3, 4])[1], 0)
    return sch


@wrong("`rfactor(i, 0)` of a loop of the output", r"loop i drives no reduction axis of block C")
def rfactor_output():
    sch, _, i, _, _ = unwatched_product()
    watch(sch).rfactor(i, 0)


@wrong("`rfactor(k, 3)` of a matrix", r"factor_axis is 3; C has 2 dimension\(s\)")
def rfactor_axis():
    sch, _, _, _, k = unwatched_product()
    watch(sch).rfactor(k, 3)


@wrong("`rfactor` of a loop around several blocks", r"loop i has 2 blocks below it")
def rfactor_of_two():
    sch, block, _, j, _ = unwatched_product()
    sch.decompose_reduction(block, j)
    watch(sch).rfactor(sch.get_loops(block)[0], 0)


@wrong("`rfactor` of a block without a reduction", r"block B is not a reduction with an init")
def rfactor_of_elements():
    sch = watch(blocks(chain))
    sch.rfactor(sch.get_loops("B")[0], 0)


@wrong("`rfactor` of a combiner that is not known", r"block B is not known to combine terms by an associative operator")
def rfactor_of_differences():
    def difference(n):
        if not isinstance(n, Block) or n.name != "B":
            return None
        return n.replace(body=n.body.replace(value=n.body.value.a - n.body.value.b))
    a = float_vector()
    k = te.reduce_axis((0, N), name="k")
    sch = rewritten(scheduled(a, te.compute((), lambda: te.sum(a[k], axis=k), name="B")), difference)
    sch.rfactor(sch.get_loops("B")[0], 0)


@wrong("`rfactor` of a block with a view (match_buffer)", r"block C has views of buffers \(match_buffer\)")
def rfactor_of_a_view():
    sch = viewed(blocks(), "C", "A")
    sch.rfactor(sch.get_loops("C")[2], 0)


@wrong("`rfactor` below a loop of the reduction that holds other statements",
       r"a loop of the reduction of block C has other statements in it, too")
def rfactor_in_company():
    sch, block, i, j, k = unwatched_product()
    ko, ki = sch.split(k, [None, 4])
    copy = sch.cache_read(block, 0, "local")
    sch.compute_at(copy, ko)
    watch(sch).rfactor(ki, 0)


@wrong("`rfactor` where a loop drives output and reduction axes",
       r"loop \w+ drives output and reduction axes of block C")
def rfactor_of_a_mixed_loop():
    sch, _, i, j, k = unwatched_product()
    j_k = sch.fuse(j, k)
    watch(sch).rfactor(j_k, 0)


@wrong("`rfactor` where an extent depends on another loop", r"the extent of loop k depends on other loops")
def rfactor_of_a_triangle():
    sch = blocks()
    i = sch.loops_above("C")[0].loop_var

    def triangle(n):
        return n.replace(extent=i + 1) if isinstance(n, For) and n.loop_var.name == "k" else None
    sch = rewritten(sch, triangle)
    sch.rfactor(sch.get_loops("C")[2], 0)


@wrong("`rfactor` of a loop of threads", r"loop k is thread_binding")
def rfactor_of_threads():
    def bound(n):
        k = isinstance(n, For) and n.loop_var.name == "k"
        return n.replace(kind="thread_binding", thread_tag="threadIdx.x") if k else None
    sch = rewritten(blocks(), bound)
    sch.rfactor(sch.get_loops("C")[2], 0)


@wrong("`rfactor` under a condition on output and reduction loops",
       r"the condition i \+ k < 20 of block C mixes output and reduction loops")
def rfactor_under_a_condition():
    def guarded(n):
        if not isinstance(n, BlockRealize) or n.block.name != "C":
            return None
        return n.replace(predicate=n.iter_values[0] + n.iter_values[2] < 20)
    sch = rewritten(blocks(), guarded)
    sch.rfactor(sch.get_loops("C")[2], 0)


@wrong("`rfactor` where every step of the reduction runs twice",
       r"the loops around block C may run a step of the reduction twice")
def rfactor_twice():
    def again(n):
        return loop(Var("t"), 2, n) if isinstance(n, For) and n.loop_var.name == "k" else None
    sch = rewritten(blocks(), again)
    sch.rfactor(sch.get_loops("C")[3], 0)


@wrong("`rfactor` of a reduction whose loop runs from the last step to the first",
       r"block C may not start its reduction: its loops begin at vk = 15 - k, which need not be 0 there")
def rfactor_backwards():
    sch = script("""
for i, k in T.grid(16, 16):
    with T.block("C"):
        vi = T.axis.spatial(16, i)
        vk = T.axis.reduce(16, 15 - k)
        with T.init():
            C[vi] = 0
        C[vi] = C[vi] + A[vk]
""", VECTORS_OF_16)
    sch.rfactor(sch.get_loops("C")[1], 0)


def _reductions(sch: Schedule, names: list[str]) -> list[tuple[str, list[int], int]]:
    """(block, positions of its reduction's loops, number of loops) of the blocks that start a reduction."""
    out = []
    for name in names:
        realize = sch.realize(name)
        driving = {n for iv, v in zip(realize.block.iter_vars, realize.iter_values) if iv.iter_type == COMM_REDUCE
                   for n in walk(v) if isinstance(n, Var)}
        loops = sch.loops_above(name)
        places = [k for k, loop in enumerate(loops) if loop.loop_var in driving]
        if places and realize.block.init is not None:
            out.append((name, places, len(loops)))
    return out


def _run_rfactor(sch: Schedule, where: tuple[str, int], axis: int, scope: str) -> None:
    sch.rfactor(find_loop(sch, where), axis, scope)


@move("rfactor", early=3, late=1, run=_run_rfactor)
def draw_rfactor(chooser: Chooser, sch: Schedule, names: list[str]) -> Action | None:
    rng = chooser.rng
    found = _reductions(sch, names)
    if not found or len(names) > MOST_BLOCKS:
        return None
    name, places, count = rng.choice(found)
    rank = len(sch.realize(name).block.writes[0].region)
    place = rng.choice(places) if rng.random() < 0.95 else rng.randrange(count)
    axis = rng.randint(-rank - 1, rank) if rng.random() < 0.95 else rank + 1
    return ("rfactor", (name, place), axis, rng.choice(["global", "global", "local"]))
