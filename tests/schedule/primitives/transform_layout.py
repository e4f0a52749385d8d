"""transform_layout: its example, what it refuses, and how random schedules use it."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tilewright as tw
from tests.fuzz.moves import Action, Chooser, allocated, find_block, move
from tests.schedule.case import Case
from tests.schedule.compute_support import stencil
from tests.wrong_uses.programs import N, blocks, chain
from tests.wrong_uses.schedule_programs import (
    elementwise,
    inner_of_split,
    int_vector,
    rewritten,
    scheduled,
    vector_intrinsic,
    watched_chain,
    window,
)
from tests.wrong_uses.wrong_use import watch
from tilewright import te
from tilewright.schedule import Schedule
from tilewright.schedule.index_map import IndexMap
from tilewright.tir import TensorIntrin
from tilewright.tir.buffer import BufferRegion, MatchBuffer, decl_buffer
from tilewright.tir.expr import IntImm
from tilewright.tir.iter_var import Range
from tilewright.tir.stmt import Block
from tilewright.tir.symbols import replace_buffers

CASE = Case("transform_layout")
wrong = CASE.wrong


@CASE.example
def example():
    """
    sch.transform_layout(block='B', buffer=['write', 0], index_map=lambda i, j: (j // 2, i, j % 2))

    @T.prim_func
    def main(A: T.Buffer((22, 6), "int32"), C: T.Buffer((20, 6), "int32")):
        T.func_attr({"tir.noalias": True})
        # with T.block("root"):
        B = T.alloc_buffer((3, 22, 2), "int32")
        for i, j in T.grid(22, 6):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads(A[vi, vj])
                T.writes(B[vj // 2, vi, vj % 2])
                B[vj // 2, vi, vj % 2] = A[vi, vj] * 3
        for i, j in T.grid(20, 6):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads(B[vj // 2, vi:vi + 3, vj % 2])
                T.writes(C[vi, vj])
                C[vi, vj] = B[vj // 2, vi, vj % 2] + B[vj // 2, vi + 2, vj % 2]
    """
    sch = Schedule(stencil())
    sch.transform_layout("B", ("write", 0), lambda i, j: (j // 2, i, j % 2))
    return sch


@wrong("`transform_layout` with a map that is not one to one",
       r"transform_layout\(block=B, buffer=\['write', 0\], index_map=lambda i, j: \(i // 2, j\)\): the map \(i,")
def layout_not_injective():
    sch = blocks(chain)
    watch(sch).transform_layout(sch.get_block("B"), ("write", 0), lambda i, j: (i // 2, j))


@wrong("`transform_layout` with a map of too few axes",
       r"transform_layout\(block=B, buffer=\['write', 0\], index_map=<lambda>\): index_map takes 1 indices, not 2")
def layout_arity():
    sch = blocks(chain)
    watch(sch).transform_layout(sch.get_block("B"), ("write", 0), lambda i: (i,))


@wrong("`transform_layout(..., lambda i, j: (i, 1 // 0))`: an index map that fails",
       r"transform_layout\(.*\): index_map raised ZeroDivisionError: ")
def layout_that_fails():
    watched_chain().transform_layout("B", ("write", 0), lambda i, j: (i, 1 // 0))


@wrong("`transform_layout(B, 3, ...)`", r'the buffer is 3, not \("read", n\), \("write", n\) or a name')
def layout_of_number():
    watched_chain().transform_layout("B", 3, lambda i, j: (j, i))


@wrong("`transform_layout` of a buffer that the block does not have", r"block B has no buffer 'Z'")
def layout_of_unknown():
    watched_chain().transform_layout("B", "Z", lambda i, j: (j, i))


@wrong("`transform_layout` of an argument", r"A is an argument of the function")
def layout_of_argument():
    watched_chain().transform_layout("B", "A", lambda i, j: (j, i))


@wrong("`transform_layout` of an argument that hides an extent", r"with the new layout of A no argument tells n")
def layout_that_hides_an_extent():
    n = te.var("n")
    a = te.placeholder((n,), name="A")
    sch = watch(tw.Schedule(te.create_prim_func([a, te.compute((4,), lambda i: a[i], name="B")])))
    sch.transform_layout("B", "A", lambda i: (i // 4, i % 4), of_arguments=True)


@wrong("`transform_layout` of a buffer with strides", r"B has strides of its own")
def layout_of_strided():
    sch = watched_chain()
    old = sch.get(sch.get_block("B")).writes[0].buffer
    new = old.replace(strides=(IntImm(N), IntImm(1)), data=None)
    sch = watch(tw.Schedule(sch.func.with_body(replace_buffers(sch.func.body, {old: new}))))
    sch.transform_layout("B", "B", lambda i, j: (j, i))


@wrong("`transform_layout` by a map to places before the first", r"the new index i - 1 is not known to start at 0")
def layout_from_minus_one():
    watched_chain().transform_layout("B", "B", lambda i, j: (i - 1, j))


@wrong("`transform_layout` by a map that is not one to one",
       r"is not known to give every element of B a place of its own")
def layout_two_in_one():
    watched_chain().transform_layout("B", "B", lambda i, j: (i // 2, j))


@wrong("`transform_layout(..., pad_value=0, assume_injective_transform=True)`: which elements are padding is unknown",
       r"the padding of B is not known: index_map is not shown to be one to one")
def layout_unknown_padding():
    watched_chain().transform_layout("B", "B", lambda i, j: (i * j, i + j), pad_value=0,
                                     assume_injective_transform=True)


@wrong("`transform_layout(..., pad_value=\"x\")`", r"'x' is not the text of an index map")
def layout_pad_text():
    watched_chain().transform_layout("B", "B", lambda i, j: (j, i), pad_value="x")


@wrong("`transform_layout(..., pad_value=[1, 2])`",
       r"pad_value is \[1, 2\], not a number or a function of the indices")
def layout_pad_list():
    watched_chain().transform_layout("B", "B", lambda i, j: (j, i), pad_value=[1, 2])


@wrong("`transform_layout` with a pad_value of too few indices", r"pad_value takes 1 indices, not 2")
def layout_pad_arity():
    watched_chain().transform_layout("B", "B", lambda i, j: (j, i), pad_value=lambda i: i)


@wrong("`transform_layout` with the text of a pad_value of too few indices", r"pad_value takes 1 indices, not 2")
def layout_pad_text_arity():
    watched_chain().transform_layout("B", "B", lambda i, j: (j, i), pad_value="lambda i: i")


@wrong("`transform_layout` with a pad_value that a trace cannot store", r"pad_value cannot be written down as")
def layout_pad_unwritable():
    watched_chain().transform_layout("B", "B", lambda i, j: (j, i), pad_value=lambda i, j: te.var("i"))


@wrong("`transform_layout` by the text of a map of too few axes", r"index_map takes 1 indices, not 2")
def layout_text_arity():
    watched_chain().transform_layout("B", "B", "lambda i: (i,)")


@wrong("`transform_layout(..., \"i, j\")`", r"'i, j' is not the text of an index map")
def layout_no_lambda():
    watched_chain().transform_layout("B", "B", "i, j")


@wrong("`transform_layout(..., 7)`", r"index_map is 7, not a function of the old indices")
def layout_number():
    watched_chain().transform_layout("B", "B", 7)


@wrong("`transform_layout` by a map that gives text", r"index_map gives 'x', not an index")
def layout_gives_text():
    watched_chain().transform_layout("B", "B", lambda i, j: (i, "x"))


@wrong("`transform_layout` by a map that a trace cannot store", r"an index map has no ")
def layout_unwritable():
    watched_chain().transform_layout("B", "B", lambda i, j: (i, te.truncdiv(j, 2), te.truncmod(j, 2)))


@wrong("`transform_layout` by a map of a variable that is none of its axes", r"index_map cannot be written down as")
def layout_foreign_variable():
    watched_chain().transform_layout("B", "B", lambda i, j: (te.var("i"), j))


@wrong("`transform_layout` by a map that divides by zero", r"j // 0 divides by 0")
def layout_by_zero():
    watched_chain().transform_layout("B", "B", "lambda i, j: (i, j // 0)")


@wrong("`transform_layout` of memory that is passed by its address", r"B is passed by its address")
def layout_of_address():
    a = te.placeholder((8,), name="A")
    b = te.compute((8,), lambda i: a[i] + 1.0, name="B")
    c = te.extern([(8,)], [b], lambda ins, outs: te.call_packed("copy", ins[0], outs[0]), dtype="float32", name="C")
    scheduled(a, b, c).transform_layout("B", "B", lambda i: (i // 4, i % 4))


@wrong("`transform_layout` of a buffer of which a block writes a part that is no box in the new layout",
       r"block B writes a part of B that is no box in the new layout")
def layout_no_box():
    sch = scheduled(*window())

    def three_at_once(n):
        if not isinstance(n, BufferRegion) or n.buffer.name != "B":
            return None
        return BufferRegion(n.buffer, tuple(Range(r.min, IntImm(3)) for r in n.region))
    rewritten(sch, three_at_once).transform_layout("B", "B", lambda i: (i // 4, i % 4))


@wrong("`transform_layout` with a pad_value below a vectorized loop", r"B is used below the vectorized loop i only")
def layout_pad_in_lanes():
    a = int_vector()
    k = te.reduce_axis((0, 3), name="k")
    b = te.compute((N,), lambda i: te.sum(a[i] * k, axis=k), name="B")
    sch = scheduled(a, b, te.compute((N,), lambda i: b[i] * 2, name="C"))
    i, = sch.get_loops("C")
    sch.compute_at("B", i)
    sch.vectorize(i)
    watch(sch).transform_layout("B", "B", lambda i: (i // 3, i % 3), pad_value=0)


@wrong("`transform_layout` of a buffer that a block sees as another one", r"B is viewed as another buffer")
def layout_of_viewed():
    sch = watched_chain()

    def viewing(n):
        if not isinstance(n, Block) or n.name != "C":
            return None
        view = MatchBuffer(decl_buffer((1, 1), name="view"), n.reads[0])
        return n.replace(match_buffers=(view,))
    rewritten(sch, viewing).transform_layout("B", "B", lambda i, j: (j, i))


@wrong("`transform_layout` of a view of another buffer", r"view is a view of B")
def layout_of_view():
    sch = watched_chain()

    def viewing(n):
        if not isinstance(n, Block) or n.name != "C":
            return None
        view = MatchBuffer(decl_buffer((1, 1), name="view"), n.reads[0])
        seen = BufferRegion(view.buffer, (Range(IntImm(0), IntImm(1)),) * 2)
        return n.replace(match_buffers=(view,), reads=(*n.reads, seen))
    rewritten(sch, viewing).transform_layout("C", "view", lambda i, j: (j, i))


@wrong("`transform_layout(block, \"y\", ...)` of a view that tensorize made", r"y is a view of C")
def layout_of_tensorized_view():
    sch = elementwise()
    inner = inner_of_split(sch)
    one = vector_intrinsic()
    sch.tensorize(inner, TensorIntrin(one.desc, one.desc))
    block = next(b for b in sch.get_blocks() if b.name != "C_o")
    watch(sch).transform_layout(block, ("write", 0), lambda i: (i // 2, i % 2))


def layout_map(kind: str, amount: int, axis: int, shape: list[int]) -> Callable[..., tuple[Any, ...]]:
    """An index map of a tensor of this shape."""
    def mapped(*i: Any) -> tuple[Any, ...]:
        at = list(i)
        if kind == "rotate":
            return tuple(at[axis:] + at[:axis])
        if kind == "split":
            return (*at[:axis], at[axis] // amount, *at[axis + 1:], at[axis] % amount)
        if kind == "tile":
            return (*at[:axis], at[axis] // amount, at[axis] % amount, *at[axis + 1:])
        if kind == "reverse":
            return (*at[:axis], shape[axis] - 1 - at[axis], *at[axis + 1:])
        if kind == "pad":
            return (*at[:axis], at[axis] + amount, *at[axis + 1:])
        flat = at[0]
        for extent, index in zip(shape[1:], at[1:]):
            flat = flat * extent + index
        return (flat,)
    return mapped


def _run(sch: Schedule, name: str, buffer: list[Any], form: list[Any]) -> None:
    sch.transform_layout(find_block(sch, name), tuple(buffer), layout_map(*form))


@move("transform_layout", 2.5, 1, _run)
def draw(chooser: Chooser, sch: Schedule, names: list[str]) -> Action | None:
    rng, choices = chooser.rng, allocated(sch, names)
    if not choices:
        return None
    name, kind, position = rng.choice(choices)
    shape = getattr(sch.realize(name).block, f"{kind}s")[position].buffer.shape
    if not shape:
        return None
    sizes = [d.value if isinstance(d, IntImm) else 0 for d in shape]
    form = rng.choice(["rotate", "split", "tile", "flat", "reverse", "pad"])
    return ("transform_layout", name, [kind, position],
            [form, rng.choice([1, 2, 3, 4, 8]), rng.randrange(len(sizes)), sizes])


def _run_padded_layout(sch: Schedule, block: str, where: list[Any], index_map: str, pad_value: Any) -> None:
    sch.transform_layout(find_block(sch, block), tuple(where), IndexMap(index_map), pad_value=pad_value)


@move("padded_layout", 2, 0.5, _run_padded_layout)
def padded_layout(chooser: Chooser, sch: Schedule, names: list[str]) -> Action | None:
    """transform_layout with a pad_value."""
    rng = chooser.rng
    choices = allocated(sch, names)
    if not choices:
        return None
    name, kind, position = rng.choice(choices)
    rank = len(getattr(sch.realize(name).block, f"{kind}s")[position].buffer.shape)
    if not rank:
        return None
    d, f = rng.randrange(rank), rng.choice([2, 3, 4, 8])
    old = [f"i{n}" for n in range(rank)]
    new = rng.choice([[*old[:d], f"i{d} // {f}", *old[d + 1:], f"i{d} % {f}"], [*old[:d], f"i{d} + {f}", *old[d + 1:]],
                      [*old[:d], f"i{d} // {f}", f"i{d} % {f}", *old[d + 1:]]])
    value = rng.choice([0, 1, f"lambda {', '.join(f'j{n}' for n in range(len(new)))}: j0 + 1"])
    return ("padded_layout", name, [kind, position], f"lambda {', '.join(old)}: ({', '.join(new)},)", value)
