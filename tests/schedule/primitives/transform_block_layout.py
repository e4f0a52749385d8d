"""transform_block_layout: its example, what it refuses, and how random schedules use it."""
from __future__ import annotations

from tests.fuzz.moves import Action, Chooser, find_block, move
from tests.schedule.case import Case
from tests.schedule.layout_support import transposed
from tests.wrong_uses.programs import N, script
from tests.wrong_uses.schedule_programs import rewritten, scheduled, small_product, watched_chain
from tests.wrong_uses.wrong_use import watch
from tilewright import te
from tilewright.schedule import Schedule
from tilewright.schedule.index_map import IndexMap
from tilewright.tir.buffer import BufferRegion
from tilewright.tir.expr import IntImm
from tilewright.tir.stmt import BlockRealize, Store

CASE = Case("transform_block_layout")
wrong = CASE.wrong


@CASE.example
def example():
    """
    sch.transform_block_layout(block='C', index_map=lambda i, j: (i * 6 + j,))

    @T.prim_func
    def main(A: T.Buffer((6, 5), "int32"), C: T.Buffer((4, 6), "int32")):
        T.func_attr({"tir.noalias": True})
        # with T.block("root"):
        for ax0 in range(24):
            with T.block("C"):
                v0 = T.axis.spatial(24, ax0)
                T.reads(A[v0 % 6, v0 // 6 + 1])
                T.writes(C[v0 // 6, v0 % 6])
                C[v0 // 6, v0 % 6] = A[v0 % 6, v0 // 6 + 1] * 2
    """
    sch = transposed()
    sch.transform_block_layout("C", lambda i, j: (i * 6 + j,))
    return sch


@wrong("`transform_block_layout` onto one axis of 2**32 iterations",
       r"the 4294967296 points of the map do not fit an index of type int32")
def block_layout_huge():
    sch = script("""
for i, j in T.grid(65536, 65536):
    with T.block("S"):
        vi, vj = T.axis.remap("SS", [i, j])
        A[vi, vj] = B[vi, vj]
""", "A: T.Buffer((65536, 65536), 'int8'), B: T.Buffer((65536, 65536), 'int8')")
    sch.transform_block_layout("S", lambda i, j: (i * 65536 + j,))


@wrong("`transform_block_layout` by a map without an inverse",
       r"the map \(vi, vj\) -> \(vi // 2, vj\) has no known inverse")
def block_layout_not_one_to_one():
    watched_chain().transform_block_layout("B", lambda i, j: (i // 2, j))


@wrong("`transform_block_layout` by a divisor that does not divide", r"does not take the domain of block B onto a box")
def block_layout_ragged():
    watched_chain().transform_block_layout("B", lambda i, j: (i // 3, i % 3, j))


@wrong("`transform_block_layout` to variables that start at 2", r"the new variable vi \+ 2 starts at 2, not at 0")
def block_layout_offset():
    watched_chain().transform_block_layout("B", lambda i, j: (i + 2, j))


@wrong("`transform_block_layout` with a separator", r"a separator is no iteration variable")
def block_layout_separator():
    watched_chain().transform_block_layout("B", lambda i, j: (i, IndexMap.AXIS_SEPARATOR, j))


@wrong("`transform_block_layout` that fuses a reduction with an output axis", r"mixes a reduction of block C")
def block_layout_mixed():
    scheduled(*small_product()).transform_block_layout("C", lambda i, j, k: (i, j * 7 + k))


@wrong("`transform_block_layout` after a loop was made parallel", r"a loop of block B is not serial, or is annotated")
def block_layout_parallel():
    sch = watched_chain()
    sch.parallel(sch.get_loops("B")[0])
    watch(sch).transform_block_layout("B", lambda i, j: (j, i))


@wrong("`transform_block_layout` after split", r"vi of block B is i_0 \* 4 \+ i_1: no loop runs exactly its domain")
def block_layout_split():
    sch = watched_chain()
    sch.split(sch.get_loops("B")[0], [None, 4])
    watch(sch).transform_block_layout("B", lambda i, j: (j, i))


@wrong("`transform_block_layout` of a block that shares its loops", r"the loops of block C hold more than the block")
def block_layout_shared():
    sch = watched_chain()
    sch.compute_at("B", sch.get_loops("C")[1])
    watch(sch).transform_block_layout("C", lambda i, j: (j, i))


@wrong("`transform_block_layout` where one loop drives two variables", r"a loop drives two variables of block B")
def block_layout_diagonal():
    sch = watched_chain()

    def diagonal(n):
        if isinstance(n, BlockRealize) and n.block.name == "B":
            return n.replace(iter_values=(n.iter_values[1], n.iter_values[1]))
        return None
    rewritten(sch, diagonal).transform_block_layout("B", lambda i, j: (j, i))


@wrong("`transform_block_layout` of a block whose iterations depend on one another",
       r"two iterations may touch the same element of A, which is written")
def block_layout_in_place():
    a = te.placeholder((N, N), "int32", name="A")
    sch = scheduled(a, te.compute((N, N), lambda i, j: a[N - 1 - i, j] + 1, name="B"))
    here, there = sch.func.buffers

    def in_place(n):
        same = isinstance(n, (Store, BufferRegion)) and n.buffer is there
        return n.replace(buffer=here) if same else None
    rewritten(sch, in_place).transform_block_layout("B", lambda i, j: (j, i))


def _run_transform_block_layout(sch: Schedule, block: str, index_map: str) -> None:
    sch.transform_block_layout(find_block(sch, block), IndexMap(index_map))


@move("transform_block_layout", 3, 1, _run_transform_block_layout)
def transform_block_layout(chooser: Chooser, sch: Schedule, names: list[str]) -> Action | None:
    """Rotate, fuse, split or flip iteration variables; now and then across the kinds, or by what does not divide."""
    rng = chooser.rng
    name = rng.choice(names)
    axes = sch.realize(name).block.iter_vars
    if not axes:
        return None
    sizes = [iv.dom.extent.value if iv.dom is not None and isinstance(iv.dom.extent, IntImm) else 0 for iv in axes]
    names_of = [f"i{n}" for n in range(len(axes))]
    at: list[str] = list(names_of)
    n = rng.randrange(len(axes))
    form = rng.choice(["rotate", "fuse", "fuse", "split", "split", "flip"])
    if form == "rotate":
        at = at[n:] + at[:n]
    elif form == "fuse" and n + 1 < len(axes) and sizes[n + 1]:
        same = axes[n].iter_type == axes[n + 1].iter_type
        if same or rng.random() < 0.1:
            at[n:n + 2] = [f"i{n} * {sizes[n + 1]} + i{n + 1}"]
    elif form == "split":
        fitting = [f for f in (2, 3, 4, 5, 7) if sizes[n] and sizes[n] % f == 0]
        f = rng.choice(fitting if fitting and rng.random() < 0.9 else [2, 3, 4])
        at[n:n + 1] = rng.choice([[f"i{n} // {f}", f"i{n} % {f}"], [f"i{n} % {f}", f"i{n} // {f}"]])
    elif form == "flip" and sizes[n]:
        at[n] = f"{sizes[n] - 1} - i{n}"
    return ("transform_block_layout", name, f"lambda {', '.join(names_of)}: ({', '.join(at)},)")
