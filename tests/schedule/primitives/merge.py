"""merge: its example, what it refuses, and how random schedules use it."""
from __future__ import annotations

from tests.fuzz.moves import Action, Chooser, find_loop, move
from tests.schedule.case import Case
from tests.wrong_uses.programs import N, blocks
from tests.wrong_uses.schedule_programs import chain_blocks
from tests.wrong_uses.wrong_use import watch
from tilewright import te
from tilewright.schedule import Schedule
from tilewright.te.prim_func import create_prim_func
from tilewright.tir.expr import IntImm
from tilewright.tir.stmt import SERIAL, For, Seq

CASE = Case("merge")
wrong = CASE.wrong


def two_outputs() -> Schedule:
    """B = A + 1, C = A * 2"""
    a = te.placeholder((6,), "int32", name="A")
    return Schedule(create_prim_func([a, te.compute((6,), lambda i: a[i] + 1, name="B"),
                                      te.compute((6,), lambda i: a[i] * 2, name="C")]))


@CASE.example
def example():
    """
    l2 = sch.merge(l0, l1)

    @T.prim_func
    def main(A: T.Buffer((6,), "int32"), B: T.Buffer((6,), "int32"), C: T.Buffer((6,), "int32")):
        T.func_attr({"tir.noalias": True})
        # with T.block("root"):
        for i_m in range(6):
            with T.block("B"):
                vi = T.axis.spatial(6, i_m)
                T.reads(A[vi])
                T.writes(B[vi])
                B[vi] = A[vi] + 1
            with T.block("C"):
                vi = T.axis.spatial(6, i_m)
                T.reads(A[vi])
                T.writes(C[vi])
                C[vi] = A[vi] * 2
    """
    sch = two_outputs()
    sch.merge(sch.get_loops("B")[0], sch.get_loops("C")[0])
    return sch


def three_stages():
    """A, B, C, D, D[i] = C[i] + B[i] after C[i] = A[15 - i]"""
    a = te.placeholder((N,), name="A")
    b = te.compute((N,), lambda i: a[i] + 1.0, name="B")
    c = te.compute((N,), lambda i: b[N - 1 - i] * 2.0, name="C")
    d = te.compute((N,), lambda i: c[i] + b[i], name="D")
    return a, b, c, d


@wrong("`merge(loop)` of one loop", r"merge\(i\): 1 loop is given; merge takes two or more")
def merge_one():
    sch, b, _ = chain_blocks()
    sch.merge(sch.get_loops(b)[0])


@wrong("`merge(i, i)`", r"merge\(i, i\): loop i is given twice")
def merge_twice():
    sch, b, _ = chain_blocks()
    i, _ = sch.get_loops(b)
    sch.merge(i, i)


@wrong("`merge(i, j)` of loops nested in one another", r"loops i, j are not in nests that stand side by side")
def merge_nested():
    sch, b, _ = chain_blocks()
    sch.merge(*sch.get_loops(b))


@wrong("`merge` of loops of different extents", r"loop i_0 has extent 4, and loop i has 16")
def merge_extents():
    sch, b, c = chain_blocks()
    i0, _ = sch.split(sch.get_loops(b)[0], [4, 4])
    watch(sch).merge(i0, sch.get_loops(c)[0])


@wrong("`merge` of loops at different depths", r"loops i, j are 1, 2 loops deep in their nests")
def merge_depths():
    sch, b, c = chain_blocks()
    sch.merge(sch.get_loops(b)[0], sch.get_loops(c)[1])


@wrong("`merge` of a parallel loop", r"merge\(i, i\): loop i is parallel; only a serial loop can be merged")
def merge_parallel():
    sch, b, c = chain_blocks()
    i, k = sch.get_loops(b)[0], sch.get_loops(c)[0]
    sch.parallel(i)
    watch(sch).merge(i, k)


@wrong("`merge` of loops with another nest between them", r"other statements stand between the nests of loops i, i")
def merge_apart():
    sch = blocks(three_stages)
    sch.get_block("B")
    b, d = sch.get_loops("B")[0], sch.get_loops("D")[0]
    watch(sch).merge(b, d)


@wrong("`merge` of a loop beside which other statements stand", r"loop j is not the innermost of a perfect nest")
def merge_imperfect():
    sch, b, c = chain_blocks()
    i, j = sch.get_loops(b)
    sch.cache_read(b, 0, "local")
    sch.compute_at("A_local", i)
    watch(sch).merge(j, sch.get_loops(c)[1])


@wrong("`merge` of a producer with a consumer that reads ahead",
       r"a later iteration of one loop touches elements of B before an earlier one of the other would")
def merge_reads_ahead():
    sch = blocks(three_stages)
    b, c = sch.get_loops("B")[0], sch.get_loops("C")[0]
    watch(sch).merge(b, c)


def run_merge(sch: Schedule, wheres: list[tuple[str, int]]) -> None:
    sch.merge(*[find_loop(sch, w) for w in wheres])


@move("merge", 2.5, 0.5, run_merge)
def draw_merge(chooser: Chooser, sch: Schedule, names: list[str]) -> Action | None:
    """Mostly loops of two nests that stand side by side, with equal extents; sometimes any two."""
    rng = chooser.rng
    nests = [(name, loops) for name in names if (loops := sch.loops_above(name))]
    pairs = []
    for (a, x), (b, y) in zip(nests, nests[1:]):
        shared = sum(p is q for p, q in zip(x, y))
        depth = 0
        for p, q in zip(x[shared:], y[shared:]):
            if not _alike(p, q):
                break
            pairs.append([(a, shared + depth), (b, shared + depth)])
            depth += 1
            if isinstance(p.body, Seq) or isinstance(q.body, Seq):
                break
    if pairs and rng.random() < 0.95:
        return ("merge", rng.choice(pairs))
    if len(nests) < 2 or rng.random() < 0.7:
        return None
    (a, x), (b, y) = rng.sample(nests, 2)
    return ("merge", [(a, rng.randrange(len(x))), (b, rng.randrange(len(y)))])


def _alike(p: For, q: For) -> bool:
    same = isinstance(p.extent, IntImm) and isinstance(q.extent, IntImm) and p.extent.value == q.extent.value
    return same and p.kind == q.kind == SERIAL and not p.annotations and not q.annotations
