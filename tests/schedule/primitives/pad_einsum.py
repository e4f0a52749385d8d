"""pad_einsum: its example, what it refuses, and how random schedules use it."""
from __future__ import annotations

import tilewright as tw
from tests.fuzz.moves import Action, Chooser, find_block, move
from tests.schedule.case import Case
from tests.schedule.core_support import matmul
from tests.wrong_uses.programs import N
from tests.wrong_uses.schedule_programs import int_vector, rewritten, scheduled, small_product
from tests.wrong_uses.wrong_use import watch
from tilewright import te
from tilewright.schedule import Schedule
from tilewright.tir.buffer import Load
from tilewright.tir.expr import IntImm, Var
from tilewright.tir.iter_var import COMM_REDUCE
from tilewright.tir.node import walk
from tilewright.tir.stmt import Block, Store, seq

CASE = Case("pad_einsum")
wrong = CASE.wrong


@CASE.example
def example():
    """
    sch.pad_einsum(block='C', padding=[1, 4, 4])

    @T.prim_func
    def matmul(A: T.Buffer((4, 5), "int32"), B: T.Buffer((5, 6), "int32"), C: T.Buffer((4, 6), "int32")):
        T.func_attr({"tir.noalias": True})
        # with T.block("root"):
        C_pad = T.alloc_buffer((4, 8), "int32")
        A_pad = T.alloc_buffer((4, 8), "int32")
        B_pad = T.alloc_buffer((8, 8), "int32")
        for i, r in T.grid(4, 8):
            with T.block("A_pad"):
                vi, vr = T.axis.remap("SS", [i, r])
                T.reads(A[vi, vr])
                T.writes(A_pad[vi, vr])
                A_pad[vi, vr] = T.if_then_else(vr < 5, A[vi, vr], 0)
        for r, j in T.grid(8, 8):
            with T.block("B_pad"):
                vr, vj = T.axis.remap("SS", [r, j])
                T.reads(B[vr, vj])
                T.writes(B_pad[vr, vj])
                B_pad[vr, vj] = T.if_then_else(vj < 6 and vr < 5, B[vr, vj], 0)
        for i, j, r in T.grid(4, 8, 8):
            with T.block("C"):
                vi, vj, vr = T.axis.remap("SSR", [i, j, r])
                T.reads(A_pad[vi, vr], B_pad[vr, vj])
                T.writes(C_pad[vi, vj])
                with T.init():
                    C_pad[vi, vj] = 0
                C_pad[vi, vj] = C_pad[vi, vj] + A_pad[vi, vr] * B_pad[vr, vj]
        for i, j in T.grid(4, 6):
            with T.block("C_pad"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads(C_pad[vi, vj])
                T.writes(C[vi, vj])
                C[vi, vj] = C_pad[vi, vj]
    """
    sch = Schedule(matmul(4, 6, 5))
    sch.pad_einsum("C", [1, 4, 4])
    return sch


@wrong("`pad_einsum` with too few factors",
       r"padding is \[8, 8\], not one factor for each of the 3 variables of block C")
def einsum_arity():
    scheduled(*small_product()).pad_einsum("C", [8, 8])


@wrong("`pad_einsum` of a block that reads a column only where there is one",
       r"the copy of A would read index 2 of dimension 1, which has the extent n; block C may not")
def einsum_guarded_column():
    n = te.var("n")
    a = te.placeholder((n, n), "int32", name="A")
    scheduled(a, te.compute((n,), lambda i: te.if_then_else(n > 2, a[i, 2], 1), name="C")).pad_einsum("C", [4])


@wrong("`pad_einsum` by 0", r"the factor 0 is not a positive integer")
def einsum_zero():
    scheduled(*small_product()).pad_einsum("C", [8, 8, 0])


@wrong("`pad_einsum` of a convolution",
       r"block C uses A\[vi \+ vk\]: an index is neither one variable of the block nor")
def einsum_convolution():
    a, k = int_vector(N + 2), te.reduce_axis((0, 3), name="k")
    scheduled(a, te.compute((N,), lambda i: te.sum(a[i + k], axis=k), name="C")).pad_einsum("C", [3, 1])


@wrong("`pad_einsum` of a block that reads a buffer at two places", r"block C uses A at two places")
def einsum_two_places():
    a = te.placeholder((7, 7), "int32", name="A")
    scheduled(a, te.compute((7, 7), lambda i, j: a[i, j] + a[j, i], name="C")).pad_einsum("C", [4, 4])


@wrong("`pad_einsum` of a block of two results", r"block \w+ does more than one store")
def einsum_two_results():
    a = int_vector()
    b, c = te.compute((N,), lambda i: (a[i] + 1, a[i] * 2), name="B")
    func = te.create_prim_func([a, b, c], name="main")
    sch = watch(tw.Schedule(func))
    sch.pad_einsum(sch.get_blocks()[0], [3])


@wrong("`pad_einsum` of a sum in which one factor only has the padded axis", r"reduces over vk, and a step on padding")
def einsum_not_neutral():
    a, b = te.placeholder((5, 7), name="A"), te.placeholder((5,), name="B")
    k = te.reduce_axis((0, 7), name="k")
    scheduled(a, b, te.compute((5,), lambda i: te.sum(a[i, k] * b[i], axis=k), name="C")).pad_einsum("C", [1, 4])


@wrong("`pad_einsum` of the steps of a reduction that another block starts",
       r"block C_update does not give each element of C one value that it starts itself")
def einsum_without_init():
    sch = scheduled(*small_product())
    sch.decompose_reduction("C", sch.get_loops("C")[0])
    watch(sch).pad_einsum("C_update", [4, 4, 4])


@wrong("`pad_einsum` of a block that calls out", r"block C calls T.call_extern\(.*\), which may have an effect")
def einsum_effect():
    a = te.placeholder((7,), name="A")
    sch = scheduled(a, te.compute((7,), lambda i: te.call_extern("float32", "sinf", a[i]), name="C"))
    sch.pad_einsum("C", [4])


@wrong("`pad_einsum` of a block whose init does two stores", r"the init of block C does more than one store")
def einsum_init():
    sch = scheduled(*small_product())

    def twice(n):
        return n.replace(init=seq([n.init, n.init])) if isinstance(n, Block) and n.name == "C" else None
    rewritten(sch, twice).pad_einsum("C", [4, 4, 4])


def _run_pad_einsum(sch: Schedule, block: str, padding: list[int]) -> None:
    sch.pad_einsum(find_block(sch, block), padding)


@move("pad_einsum", 4, 1, _run_pad_einsum)
def pad_einsum(chooser: Chooser, sch: Schedule, names: list[str]) -> Action | None:
    """Of a block with plain indices mostly; a reduction axis less often than others."""
    rng = chooser.rng
    fitting = [n for n in names if _is_plain(sch, n)]
    name = rng.choice(fitting if fitting and rng.random() < 0.9 else names)
    axes = sch.realize(name).block.iter_vars
    if not axes or len(names) > 9:
        return None
    factors = [rng.choice([1, 2, 3, 4, 8]) if iv.iter_type != COMM_REDUCE or rng.random() < 0.4 else 1 for iv in axes]
    return ("pad_einsum", name, factors)


def _is_plain(sch: Schedule, name: str) -> bool:
    """True when each loop drives one variable, and every index is a variable or a constant."""
    realize = sch.realize(name)
    points = [n for n in walk(realize.block.body) if isinstance(n, (Load, Store))]
    return all(isinstance(v, Var) for v in realize.iter_values) and all(
        isinstance(i, (Var, IntImm)) for n in points for i in n.indices)
