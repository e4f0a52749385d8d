"""reindex and its kin: their examples, what they refuse, and how random schedules use them."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.fuzz.moves import MOST_BLOCKS, SCOPES, Action, Chooser, find_block, move
from tests.schedule.case import Case
from tests.schedule.core_support import matmul
from tests.schedule.layout_support import transposed
from tests.wrong_uses.programs import PRIVATE_MEMORY, VECTORS, N, blocks, chain, script
from tests.wrong_uses.schedule_programs import float_vector, scheduled, unwatched_product
from tests.wrong_uses.wrong_use import watch
from tilewright import te
from tilewright.schedule import Schedule
from tilewright.schedule.index_map import IndexMap
from tilewright.tir.expr import IntImm
from tilewright.tir.node import walk
from tilewright.tir.stmt import Block

REINDEX_CACHE_READ = Case("reindex_cache_read")
REINDEX_CACHE_WRITE = Case("reindex_cache_write")
REINDEX = Case("reindex")


@REINDEX_CACHE_READ.example
def example_of_reindex_cache_read():
    """
    b0 = sch.reindex_cache_read(block='C', read_buffer_index='A', storage_scope='local', index_map=lambda i, j: (j // 2, i, j % 2))

    @T.prim_func
    def main(A: T.Buffer((6, 5), "int32"), C: T.Buffer((4, 6), "int32")):
        T.func_attr({"tir.noalias": True})
        # with T.block("root"):
        A_local = T.alloc_buffer((3, 4, 2), "int32", scope="local")
        for i, j in T.grid(4, 6):
            with T.block("A_local"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads(A[vj, vi + 1])
                T.writes(A_local[vj // 2, vi, vj % 2])
                A_local[vj // 2, vi, vj % 2] = A[vj, vi + 1]
        for i, j in T.grid(4, 6):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads(A_local[vj // 2, vi, vj % 2])
                T.writes(C[vi, vj])
                C[vi, vj] = A_local[vj // 2, vi, vj % 2] * 2
    """  # noqa: E501
    sch = transposed()
    sch.reindex_cache_read("C", "A", "local", lambda i, j: (j // 2, i, j % 2))
    return sch


@REINDEX_CACHE_WRITE.example
def example_of_reindex_cache_write():
    """
    b0 = sch.reindex_cache_write(block='C', write_buffer_index=0, storage_scope='local', index_map=lambda i, j, k: (j // 2, i, j % 2))

    @T.prim_func
    def matmul(A: T.Buffer((4, 5), "int32"), B: T.Buffer((5, 6), "int32"), C: T.Buffer((4, 6), "int32")):
        T.func_attr({"tir.noalias": True})
        # with T.block("root"):
        C_local = T.alloc_buffer((3, 4, 2), "int32", scope="local")
        for i, j, r in T.grid(4, 6, 5):
            with T.block("C"):
                vi, vj, vr = T.axis.remap("SSR", [i, j, r])
                T.reads(A[vi, vr], B[vr, vj])
                T.writes(C_local[vj // 2, vi, vj % 2])
                with T.init():
                    C_local[vj // 2, vi, vj % 2] = 0
                C_local[vj // 2, vi, vj % 2] = C_local[vj // 2, vi, vj % 2] + A[vi, vr] * B[vr, vj]
        for i, j in T.grid(4, 6):
            with T.block("C_local"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads(C_local[vj // 2, vi, vj % 2])
                T.writes(C[vi, vj])
                C[vi, vj] = C_local[vj // 2, vi, vj % 2]
    """  # noqa: E501
    sch = Schedule(matmul())
    sch.reindex_cache_write("C", 0, "local", lambda i, j, k: (j // 2, i, j % 2))
    return sch


@REINDEX.example
def example_of_reindex():
    """
    b0 = sch.reindex(block='C', buffer=['read', 0])

    @T.prim_func
    def main(A: T.Buffer((6, 5), "int32"), C: T.Buffer((4, 6), "int32")):
        T.func_attr({"tir.noalias": True})
        # with T.block("root"):
        A_reindex = T.alloc_buffer((4, 6), "int32")
        for i, j in T.grid(4, 6):
            with T.block("A_reindex"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads(A[vj, vi + 1])
                T.writes(A_reindex[vi, vj])
                A_reindex[vi, vj] = A[vj, vi + 1]
        for i, j in T.grid(4, 6):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads(A_reindex[vi, vj])
                T.writes(C[vi, vj])
                C[vi, vj] = A_reindex[vi, vj] * 2
    """
    sch = transposed()
    sch.reindex("C", ("read", 0))
    return sch


@REINDEX.wrong("`reindex(C, (\"read\", 0))` of a buffer that is read at two places",
               r"block C does not read B at one place in each iteration")
def reindex_of_two_places():
    a = float_vector(n=N + 2)
    b = te.compute((N + 2,), lambda i: a[i] * 2.0, name="B")
    c = te.compute((N,), lambda i: b[i] + b[i + 2], name="C")
    scheduled(a, b, c).reindex("C", ("read", 0))


@REINDEX.wrong("`reindex(B, \"A\")` of vectors", r"block B does not read A at one place in each iteration")
def reindex_of_vectors():
    script(VECTORS).reindex("B", "A")


@REINDEX.wrong("`reindex(X, \"X\")` of what each iteration of a parallel loop has to itself",
               r"cannot parallel loop t: two of its iterations may touch the same element of X_reindex")
def reindex_of_private_memory():
    script(PRIVATE_MEMORY).reindex("X", "X")


@REINDEX.wrong("`reindex(C, (\"read\", 0))` of a read that is not known to stay inside",
               r"whether the element of A that block C uses exists is checked when it is used, and the copy uses all")
def reindex_of_what_may_not_exist():
    a, m = float_vector(), te.var("m")
    c = te.compute((m,), lambda i: te.if_then_else(i < 4, a[i + m], 0.0), name="C")
    assert "checked_index" in str(te.create_prim_func([a, c]))
    scheduled(a, c).reindex("C", ("read", 0))


@REINDEX.wrong(
    "`reindex(C, (\"read\", 7))`",
    r"block C reads 2 buffer\(s\), there is no number 7")
def reindex_of_no_buffer():
    sch, block, *_ = unwatched_product()
    watch(sch).reindex(block, ("read", 7))


@REINDEX.wrong("`reindex` of elements that depend on data",
               r"which element of T block C uses depends on data")
def reindex_of_data():
    t, index = float_vector("T"), float_vector("I", dtype="int32")
    scheduled(t, index, te.compute((N,), lambda i: t[index[i]], name="C")).reindex("C", "T")


@REINDEX_CACHE_READ.wrong("`reindex_cache_read(C_update, \"C\", ...)`: the block writes it, too",
                          r"block C_update writes C as well as reading it")
def reindex_cache_read_of_an_update():
    sch, block, i, _, _ = unwatched_product()
    sch.decompose_reduction(block, i)
    watch(sch).reindex_cache_read(block, "C", "local", lambda i, j, k: (i, j))


@REINDEX_CACHE_READ.wrong(
    "`reindex_cache_read(C, 0, \"local\", lambda i, j, k: (i // 2, k))`: two elements in one place",
    r"the new indices \(vi // 2, vk\) are not known to be a place of its own for every element of A")
def reindex_cache_read_mixed():
    sch, block, *_ = unwatched_product()
    watch(sch).reindex_cache_read(block, 0, "local", lambda i, j, k: (i // 2, k))


@REINDEX_CACHE_READ.wrong("`reindex_cache_read` with a separator in the map", r"index_map has a separator")
def reindex_cache_read_separated():
    sch, block, *_ = unwatched_product()
    watch(sch).reindex_cache_read(block, 0, "local", lambda i, j, k: (i, IndexMap.AXIS_SEPARATOR, k))


@REINDEX_CACHE_WRITE.wrong("`reindex_cache_write(C, 0, \"local\", lambda i, j, k: (i, j, k))`: with the reduction",
                           r"the new indices depend on the reduction vk")
def reindex_cache_write_reduced():
    sch, block, *_ = unwatched_product()
    watch(sch).reindex_cache_write(block, 0, "local", lambda i, j, k: (i, j, k))


@REINDEX.wrong("`reindex` of a block inside another", r"block B lies inside another block")
def reindex_inner():
    sch = blocks(chain)
    sch.blockize(sch.get_loops("B")[1])
    watch(sch).reindex("B", ("read", 0))


def _kinds(rng: Any, block: Block) -> tuple[str, int] | None:
    kinds = [("read", n) for n in range(len(block.reads))] + [("write", n) for n in range(len(block.writes))]
    return rng.choice(kinds) if kinds else None


def _run_reindex(sch: Schedule, name: str, buffer: list[Any]) -> None:
    sch.reindex(find_block(sch, name), tuple(buffer))


@move("reindex", early=1.5, late=0.3, run=_run_reindex)
def draw_reindex(chooser: Chooser, sch: Schedule, names: list[str]) -> Action | None:
    if len(names) > MOST_BLOCKS:
        return None
    name = chooser.rng.choice(names)
    kind = _kinds(chooser.rng, sch.realize(name).block)
    return kind and ("reindex", name, list(kind))


def point_map(order: list[int], form: str, amount: int) -> Callable[..., tuple[Any, ...]]:
    """An index map of the iteration variables at the positions of `order`, the first of them changed by form."""
    def mapped(*v: Any) -> tuple[Any, ...]:
        first, *rest = [v[n] for n in order]
        if form == "split":
            return (first // amount, *rest, first % amount)
        if form == "shift":
            return (first + amount, *rest)
        if form == "coarse":
            return (first // amount, *rest)
        return (first, *rest)
    return mapped


def _draw_map(chooser: Chooser, block: Block, indices: list[Any]) -> list[Any] | None:
    """[order, form, amount] of a map that mostly keeps the elements at indices apart."""
    rng = chooser.rng
    used = {n for i in indices for n in walk(i)}
    order = [n for n, iv in enumerate(block.iter_vars) if iv.var in used]
    if not order or any(iv.dom is None or not isinstance(iv.dom.extent, IntImm) for iv in block.iter_vars):
        return None
    rng.shuffle(order)
    if rng.random() < 0.05:
        order = order[1:] or order
    return [order, rng.choice(["plain", "split", "split", "shift", "coarse" if rng.random() < 0.3 else "plain"]),
            rng.choice([1, 2, 3, 4])]


def _run_read(sch: Schedule, name: str, position: int, scope: str, form: list[Any]) -> None:
    sch.reindex_cache_read(find_block(sch, name), position, scope, point_map(*form))


@move("reindex_cache_read", early=1.8, late=0.3, run=_run_read)
def draw_reindex_cache_read(chooser: Chooser, sch: Schedule, names: list[str]) -> Action | None:
    return _draw_staged(chooser, sch, names, "reindex_cache_read", "reads")


def _run_write(sch: Schedule, name: str, position: int, scope: str, form: list[Any]) -> None:
    sch.reindex_cache_write(find_block(sch, name), position, scope, point_map(*form))


@move("reindex_cache_write", early=1.8, late=0.3, run=_run_write)
def draw_reindex_cache_write(chooser: Chooser, sch: Schedule, names: list[str]) -> Action | None:
    return _draw_staged(chooser, sch, names, "reindex_cache_write", "writes")


def _draw_staged(chooser: Chooser, sch: Schedule, names: list[str], primitive: str, kind: str) -> Action | None:
    rng = chooser.rng
    if len(names) > MOST_BLOCKS:
        return None
    name = rng.choice(names)
    block = sch.realize(name).block
    regions = getattr(block, kind)
    if not regions:
        return None
    position = rng.randrange(len(regions))
    form = _draw_map(chooser, block, [r.min for r in regions[position].region])
    return form and (primitive, name, position, rng.choice(SCOPES), form)
