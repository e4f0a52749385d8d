"""decompose_padding: its example, what it refuses, and how random schedules use it."""
from __future__ import annotations

from typing import Any

import tilewright as tw
from tests.fuzz.moves import Action, Chooser, find_block, find_loop, move
from tests.schedule.case import Case
from tests.wrong_uses.programs import N
from tests.wrong_uses.schedule_programs import int_vector, rewritten, scheduled, small_product
from tests.wrong_uses.wrong_use import watch
from tilewright import te
from tilewright.schedule import Schedule
from tilewright.schedule.state import BlockRV
from tilewright.script import tir as T
from tilewright.te.prim_func import create_prim_func
from tilewright.tir.expr import Call, Select
from tilewright.tir.stmt import For, IfThenElse, Store, seq

CASE = Case("decompose_padding")
wrong = CASE.wrong


def zero_padded(n: int = 8) -> Schedule:
    """P[i] = A[i - 1] in bounds, else 0; C = P + 1"""
    a = te.placeholder((n,), "int32", name="A")
    p = te.compute((n + 2,), lambda i: te.if_then_else(te.all(i >= 1, i <= n), a[i - 1], 0), name="P")
    return Schedule(create_prim_func([a, te.compute((n + 2,), lambda i: p[i] + 1, name="C")]))


@CASE.example
def example():
    """
    b1 = sch.decompose_padding(block='P', loop=l0)

    @T.prim_func
    def main(A: T.Buffer((8,), "int32"), C: T.Buffer((10,), "int32")):
        T.func_attr({"tir.noalias": True})
        # with T.block("root"):
        P = T.alloc_buffer((10,), "int32")
        for i in range(10):
            with T.block("P_pad_const"):
                vi = T.axis.spatial(10, i)
                T.reads()
                T.writes(P[vi])
                P[vi] = 0
        for i in range(8):
            with T.block("P"):
                vi = T.axis.spatial(8, i)
                T.reads(A[vi])
                T.writes(P[vi + 1])
                P[vi + 1] = A[vi]
        for i in range(10):
            with T.block("C"):
                vi = T.axis.spatial(10, i)
                T.reads(P[vi])
                T.writes(C[vi])
                C[vi] = P[vi] + 1
    """
    sch = zero_padded()
    sch.decompose_padding("P", sch.get_loops("P")[0])
    return sch


def padded(value=0):
    """P[i] = A[i - 2] inside, else value; C = P + 1"""
    a = int_vector()
    p = te.compute((N + 4,), lambda i: te.if_then_else(te.all(i >= 2, i < N + 2), a[i - 2], value), name="P")
    return a, p, te.compute((N + 4,), lambda i: p[i] + 1, name="C")


@wrong("`decompose_padding` at the loop of another block", r"loop i is not around block P")
def padding_other_loop():
    sch = scheduled(*padded())
    sch.decompose_padding("P", sch.get_loops("C")[0])


@wrong("`decompose_padding` with a block of one function and a loop of another", r"are in different functions")
def padding_two_functions():
    one = scheduled(*padded())
    sch = watch(tw.Schedule(tw.IRModule({"f": one.func, "g": scheduled(*padded()).func})))
    sch.decompose_padding(BlockRV("P", "f"), sch.get_loops(BlockRV("P", "g"))[0])


@wrong("`decompose_padding` of a block that computes", r"block C does not choose between two values")
def padding_of_sum():
    sch = scheduled(*padded())
    sch.decompose_padding("C", sch.get_loops("C")[0])


@wrong("`decompose_padding` of a reduction", r"block C does more than one store")
def padding_of_reduction():
    sch = scheduled(*small_product())
    sch.decompose_padding("C", sch.get_loops("C")[0])


@wrong("`decompose_padding` of a choice between two elements", r"neither value of block B is free of memory reads")
def padding_of_elements():
    a = int_vector()
    sch = scheduled(a, te.compute((N,), lambda i: te.if_then_else(i < 3, a[i], a[N - 1 - i]), name="B"))
    sch.decompose_padding("B", sch.get_loops("B")[0])


@wrong("`decompose_padding` of a choice that depends on an element", r"the condition of block B reads memory")
def padding_of_data():
    a = int_vector()
    sch = scheduled(a, te.compute((N,), lambda i: te.if_then_else(a[i] < 3, a[i], 0), name="B"))
    sch.decompose_padding("B", sch.get_loops("B")[0])


@wrong("`decompose_padding` below a bound loop", r"loop i is bound to threadIdx.x")
def padding_in_threads():
    sch = scheduled(*padded())
    i, = sch.get_loops("P")
    sch.bind(i, "threadIdx.x")
    watch(sch).decompose_padding("P", i)


@wrong("`decompose_padding` of a block that stands under a condition", r"there is a condition around block P")
def padding_under_condition():
    sch = scheduled(*padded())
    i, = sch.get_loops("P")
    inner = sch.split(i, [None, 4])[1]
    watch(sch)

    def guarded(n):
        here = isinstance(n, For) and n.loop_var is inner.var
        return n.replace(body=IfThenElse(n.loop_var < 9, n.body)) if here else None
    sch = rewritten(sch, guarded)
    sch.decompose_padding("P", sch.get_loops("P")[0])


@wrong("`decompose_padding` of a block whose buffer is read before it",
       r"block C reads P before block P has written it")
def padding_read_before():
    sch = scheduled(*padded())
    root = sch.root.block
    sch = rewritten(sch, lambda n: n.replace(body=seq(root.body.stmts[::-1])) if n is root else None)
    sch.decompose_padding("P", sch.get_loops("P")[0])


@wrong("`decompose_padding` of a block under a condition on what the loop writes",
       r"M, which is read on the way to block P, is written below loop i")
def padding_decided_inside():
    @T.prim_func
    def main(A: T.Buffer((8,), "int32"), P: T.Buffer((10,), "int32")):
        M = T.alloc_buffer((10,), "int32")
        for i in range(10):
            with T.block("M"):
                v = T.axis.spatial(10, i)
                M[v] = v % 2
            with T.block("P"):
                v = T.axis.spatial(10, i)
                T.where(M[i] == 1)
                P[v] = T.if_then_else(v >= 1 and v < 9, A[v - 1], 0)
    sch = watch(Schedule(main))
    sch.decompose_padding("P", sch.get_loops("P")[0])


def _run_decompose_padding(sch: Schedule, block: str, loop: Any) -> None:
    sch.decompose_padding(find_block(sch, block), find_loop(sch, loop))


@move("decompose_padding", 8, 3, _run_decompose_padding)
def decompose_padding(chooser: Chooser, sch: Schedule, names: list[str]) -> Action | None:
    """Of a block that stores a choice, if there is one."""
    rng = chooser.rng

    def chooses(name: str) -> bool:
        body = sch.realize(name).block.body
        return isinstance(body, Store) and (isinstance(body.value, Select) or isinstance(body.value, Call)
                                            and body.value.op == "if_then_else")
    fitting = [n for n in names if chooses(n) and sch.loops_above(n)]
    if not fitting and rng.random() < 0.97:
        return None
    name = rng.choice(fitting or names)
    loops = sch.loops_above(name)
    return ("decompose_padding", name, (name, rng.randrange(len(loops)))) if loops else None
