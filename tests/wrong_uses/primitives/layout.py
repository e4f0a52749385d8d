"""Wrong uses of transform_layout, transform_block_layout, decompose_padding, pad_einsum and rolling_buffer."""
from __future__ import annotations

import tilewright as tw
from tilewright import te
from tilewright.schedule.index_map import IndexMap
from tilewright.schedule.state import BlockRV
from tilewright.tir.buffer import BufferRegion, MatchBuffer, decl_buffer
from tilewright.tir.expr import IntImm
from tilewright.tir.iter_var import Range
from tilewright.tir.node import rewrite
from tilewright.tir.stmt import Block, BlockRealize, For, IfThenElse, Store, seq
from tilewright.tir.symbols import replace_buffers

from ..programs import N, blocks, chain
from ..wrong_use import Section, watch

SECTION = Section("Layouts, padding and circular buffers")
wrong = SECTION.wrong


def scheduled(*tensors):
    """A schedule of a program whose arguments are the placeholders and the last of tensors."""
    args = [t for t in tensors if t is tensors[-1] or not t.op.axis]
    return watch(tw.Schedule(te.create_prim_func(args, name="main")))


def vector(n=N, name="A"):
    return te.placeholder((n,), "int32", name=name)


def pair():
    """B = A + 1, C = B * 2, matrices"""
    return watch(blocks(chain))


def rewritten(sch, fn):
    """A schedule of sch's function with its body rewritten."""
    return watch(tw.Schedule(sch.func.with_body(rewrite(sch.func.body, fn))))


def summed():
    """C[i, j] = sum of A[i, k] * B[k, j], int32, with extents 5, 6, 7"""
    a, b = te.placeholder((5, 7), "int32", name="A"), te.placeholder((7, 6), "int32", name="B")
    k = te.reduce_axis((0, 7), name="k")
    return a, b, te.compute((5, 6), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")


def stencil(n=N):
    """B = 3*A; C[i] = B[i] + B[i + 2]"""
    a = vector(n + 2)
    b = te.compute((n + 2,), lambda i: a[i] * 3, name="B")
    return a, b, te.compute((n,), lambda i: b[i] + b[i + 2], name="C")


def padded(value=0):
    """P[i] = A[i - 2] inside, else value; C = P + 1"""
    a = vector()
    p = te.compute((N + 4,), lambda i: te.if_then_else(te.all(i >= 2, i < N + 2), a[i - 2], value), name="P")
    return a, p, te.compute((N + 4,), lambda i: p[i] + 1, name="C")


# ---- transform_layout

@wrong("`transform_layout(B, 3, ...)`", r'the buffer is 3, not \("read", n\), \("write", n\) or a name')
def layout_of_number():
    pair().transform_layout("B", 3, lambda i, j: (j, i))


@wrong("`transform_layout` of a buffer that the block does not have", r"block B has no buffer 'Z'")
def layout_of_unknown():
    pair().transform_layout("B", "Z", lambda i, j: (j, i))


@wrong("`transform_layout` of an argument", r"A is an argument of the function")
def layout_of_argument():
    pair().transform_layout("B", "A", lambda i, j: (j, i))


@wrong("`transform_layout` of an argument that hides an extent", r"with the new layout of A no argument tells n")
def layout_that_hides_an_extent():
    n = te.var("n")
    a = te.placeholder((n,), name="A")
    sch = watch(tw.Schedule(te.create_prim_func([a, te.compute((4,), lambda i: a[i], name="B")])))
    sch.transform_layout("B", "A", lambda i: (i // 4, i % 4), of_arguments=True)


@wrong("`transform_layout` of a buffer with strides", r"B has strides of its own")
def layout_of_strided():
    sch = pair()
    old = sch.get(sch.get_block("B")).writes[0].buffer
    new = old.replace(strides=(IntImm(N), IntImm(1)), data=None)
    sch = watch(tw.Schedule(sch.func.with_body(replace_buffers(sch.func.body, {old: new}))))
    sch.transform_layout("B", "B", lambda i, j: (j, i))


@wrong("`transform_layout` by a map to places before the first", r"the new index i - 1 is not known to start at 0")
def layout_from_minus_one():
    pair().transform_layout("B", "B", lambda i, j: (i - 1, j))


@wrong("`transform_layout` by a map that is not one to one",
       r"is not known to give every element of B a place of its own")
def layout_two_in_one():
    pair().transform_layout("B", "B", lambda i, j: (i // 2, j))


@wrong("`transform_layout(..., pad_value=0, assume_injective_transform=True)`: which elements are padding is unknown",
       r"the padding of B is not known: index_map is not shown to be one to one")
def layout_unknown_padding():
    pair().transform_layout("B", "B", lambda i, j: (i * j, i + j), pad_value=0, assume_injective_transform=True)


@wrong("`transform_layout(..., pad_value=\"x\")`", r"'x' is not the text of an index map")
def layout_pad_text():
    pair().transform_layout("B", "B", lambda i, j: (j, i), pad_value="x")


@wrong("`transform_layout(..., pad_value=[1, 2])`",
       r"pad_value is \[1, 2\], not a number or a function of the indices")
def layout_pad_list():
    pair().transform_layout("B", "B", lambda i, j: (j, i), pad_value=[1, 2])


@wrong("`transform_layout` with a pad_value of too few indices", r"pad_value takes 1 indices, not 2")
def layout_pad_arity():
    pair().transform_layout("B", "B", lambda i, j: (j, i), pad_value=lambda i: i)


@wrong("`transform_layout` with the text of a pad_value of too few indices", r"pad_value takes 1 indices, not 2")
def layout_pad_text_arity():
    pair().transform_layout("B", "B", lambda i, j: (j, i), pad_value="lambda i: i")


@wrong("`transform_layout` with a pad_value that a trace cannot store", r"pad_value cannot be written down as")
def layout_pad_unwritable():
    pair().transform_layout("B", "B", lambda i, j: (j, i), pad_value=lambda i, j: te.var("i"))


@wrong("`transform_layout` by the text of a map of too few axes", r"index_map takes 1 indices, not 2")
def layout_text_arity():
    pair().transform_layout("B", "B", "lambda i: (i,)")


@wrong("`transform_layout(..., \"i, j\")`", r"'i, j' is not the text of an index map")
def layout_no_lambda():
    pair().transform_layout("B", "B", "i, j")


@wrong("`transform_layout(..., 7)`", r"index_map is 7, not a function of the old indices")
def layout_number():
    pair().transform_layout("B", "B", 7)


@wrong("`transform_layout` by a map that gives text", r"index_map gives 'x', not an index")
def layout_gives_text():
    pair().transform_layout("B", "B", lambda i, j: (i, "x"))


@wrong("`transform_layout` by a map that a trace cannot store", r"an index map has no ")
def layout_unwritable():
    pair().transform_layout("B", "B", lambda i, j: (i, te.truncdiv(j, 2), te.truncmod(j, 2)))


@wrong("`transform_layout` by a map of a variable that is none of its axes", r"index_map cannot be written down as")
def layout_foreign_variable():
    pair().transform_layout("B", "B", lambda i, j: (te.var("i"), j))


@wrong("`transform_layout` by a map that divides by zero", r"j // 0 divides by 0")
def layout_by_zero():
    pair().transform_layout("B", "B", "lambda i, j: (i, j // 0)")


@wrong("`transform_layout` of memory that is passed by its address", r"B is passed by its address")
def layout_of_address():
    a = te.placeholder((8,), name="A")
    b = te.compute((8,), lambda i: a[i] + 1.0, name="B")
    c = te.extern([(8,)], [b], lambda ins, outs: te.call_packed("copy", ins[0], outs[0]), dtype="float32", name="C")
    scheduled(a, b, c).transform_layout("B", "B", lambda i: (i // 4, i % 4))


@wrong("`transform_layout` of a buffer of which a block writes a part that is no box in the new layout",
       r"block B writes a part of B that is no box in the new layout")
def layout_no_box():
    sch = scheduled(*stencil())

    def three_at_once(n):
        if not isinstance(n, BufferRegion) or n.buffer.name != "B":
            return None
        return BufferRegion(n.buffer, tuple(Range(r.min, IntImm(3)) for r in n.region))
    rewritten(sch, three_at_once).transform_layout("B", "B", lambda i: (i // 4, i % 4))


@wrong("`transform_layout` with a pad_value below a vectorized loop", r"B is used below the vectorized loop i only")
def layout_pad_in_lanes():
    a = vector()
    k = te.reduce_axis((0, 3), name="k")
    b = te.compute((N,), lambda i: te.sum(a[i] * k, axis=k), name="B")
    sch = scheduled(a, b, te.compute((N,), lambda i: b[i] * 2, name="C"))
    i, = sch.get_loops("C")
    sch.compute_at("B", i)
    sch.vectorize(i)
    watch(sch).transform_layout("B", "B", lambda i: (i // 3, i % 3), pad_value=0)


# ---- transform_block_layout

@wrong("`transform_block_layout` by a map without an inverse",
       r"the map \(vi, vj\) -> \(vi // 2, vj\) has no known inverse")
def block_layout_not_one_to_one():
    pair().transform_block_layout("B", lambda i, j: (i // 2, j))


@wrong("`transform_block_layout` by a divisor that does not divide", r"does not take the domain of block B onto a box")
def block_layout_ragged():
    pair().transform_block_layout("B", lambda i, j: (i // 3, i % 3, j))


@wrong("`transform_block_layout` to variables that start at 2", r"the new variable vi \+ 2 starts at 2, not at 0")
def block_layout_offset():
    pair().transform_block_layout("B", lambda i, j: (i + 2, j))


@wrong("`transform_block_layout` with a separator", r"a separator is no iteration variable")
def block_layout_separator():
    pair().transform_block_layout("B", lambda i, j: (i, IndexMap.AXIS_SEPARATOR, j))


@wrong("`transform_block_layout` that fuses a reduction with an output axis", r"mixes a reduction of block C")
def block_layout_mixed():
    scheduled(*summed()).transform_block_layout("C", lambda i, j, k: (i, j * 7 + k))


@wrong("`transform_block_layout` after a loop was made parallel", r"a loop of block B is not serial, or is annotated")
def block_layout_parallel():
    sch = pair()
    sch.parallel(sch.get_loops("B")[0])
    watch(sch).transform_block_layout("B", lambda i, j: (j, i))


@wrong("`transform_block_layout` after split", r"vi of block B is i_0 \* 4 \+ i_1: no loop runs exactly its domain")
def block_layout_split():
    sch = pair()
    sch.split(sch.get_loops("B")[0], [None, 4])
    watch(sch).transform_block_layout("B", lambda i, j: (j, i))


@wrong("`transform_block_layout` of a block that shares its loops", r"the loops of block C hold more than the block")
def block_layout_shared():
    sch = pair()
    sch.compute_at("B", sch.get_loops("C")[1])
    watch(sch).transform_block_layout("C", lambda i, j: (j, i))


@wrong("`transform_block_layout` where one loop drives two variables", r"a loop drives two variables of block B")
def block_layout_diagonal():
    sch = pair()

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


# ---- decompose_padding

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
    sch = scheduled(*summed())
    sch.decompose_padding("C", sch.get_loops("C")[0])


@wrong("`decompose_padding` of a choice between two elements", r"neither value of block B is free of memory reads")
def padding_of_elements():
    a = vector()
    sch = scheduled(a, te.compute((N,), lambda i: te.if_then_else(i < 3, a[i], a[N - 1 - i]), name="B"))
    sch.decompose_padding("B", sch.get_loops("B")[0])


@wrong("`decompose_padding` of a choice that depends on an element", r"the condition of block B reads memory")
def padding_of_data():
    a = vector()
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


# ---- pad_einsum

@wrong("`pad_einsum` with too few factors",
       r"padding is \[8, 8\], not one factor for each of the 3 variables of block C")
def einsum_arity():
    scheduled(*summed()).pad_einsum("C", [8, 8])


@wrong("`pad_einsum` of a block that reads a column only where there is one",
       r"the copy of A would read index 2 of dimension 1, which has the extent n; block C may not")
def einsum_guarded_column():
    n = te.var("n")
    a = te.placeholder((n, n), "int32", name="A")
    scheduled(a, te.compute((n,), lambda i: te.if_then_else(n > 2, a[i, 2], 1), name="C")).pad_einsum("C", [4])


@wrong("`pad_einsum` by 0", r"the factor 0 is not a positive integer")
def einsum_zero():
    scheduled(*summed()).pad_einsum("C", [8, 8, 0])


@wrong("`pad_einsum` of a convolution",
       r"block C uses A\[vi \+ vk\]: an index is neither one variable of the block nor")
def einsum_convolution():
    a, k = vector(N + 2), te.reduce_axis((0, 3), name="k")
    scheduled(a, te.compute((N,), lambda i: te.sum(a[i + k], axis=k), name="C")).pad_einsum("C", [3, 1])


@wrong("`pad_einsum` of a block that reads a buffer at two places", r"block C uses A at two places")
def einsum_two_places():
    a = te.placeholder((7, 7), "int32", name="A")
    scheduled(a, te.compute((7, 7), lambda i, j: a[i, j] + a[j, i], name="C")).pad_einsum("C", [4, 4])


@wrong("`pad_einsum` of a block of two results", r"block \w+ does more than one store")
def einsum_two_results():
    a = vector()
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
    sch = scheduled(*summed())
    sch.decompose_reduction("C", sch.get_loops("C")[0])
    watch(sch).pad_einsum("C_update", [4, 4, 4])


@wrong("`pad_einsum` of a block that calls out", r"block C calls T.call_extern\(.*\), which may have an effect")
def einsum_effect():
    a = te.placeholder((7,), name="A")
    sch = scheduled(a, te.compute((7,), lambda i: te.call_extern("float32", "sinf", a[i]), name="C"))
    sch.pad_einsum("C", [4])


@wrong("`pad_einsum` of a block whose init does two stores", r"the init of block C does more than one store")
def einsum_init():
    sch = scheduled(*summed())

    def twice(n):
        return n.replace(init=seq([n.init, n.init])) if isinstance(n, Block) and n.name == "C" else None
    rewritten(sch, twice).pad_einsum("C", [4, 4, 4])


# ---- rolling_buffer

@wrong("`rolling_buffer(block, 1)` of a block that writes one buffer",
       r"block B writes 1 buffer\(s\), there is no number 1")
def rolling_number():
    scheduled(*stencil()).rolling_buffer("B", 1)


@wrong("`rolling_buffer` of an output", r"C is an argument of the function")
def rolling_output():
    scheduled(*stencil()).rolling_buffer("C", 0)


@wrong("`rolling_buffer` of a buffer that nothing reads", r"nothing reads B")
def rolling_unread():
    sch = scheduled(*stencil())
    root = sch.root.block
    sch = rewritten(sch, lambda n: n.replace(body=root.body.stmts[0]) if n is root else None)
    sch.rolling_buffer("B", 0)


@wrong("`rolling_buffer` before compute_at", r"compute do not overlap")
def rolling_apart():
    scheduled(*stencil()).rolling_buffer("B", 0)


def slid(program=stencil, position=0):
    """sch with block B computed at a loop of block C"""
    sch = scheduled(*program())
    sch.compute_at("B", sch.get_loops("C")[position])
    return watch(sch)


@wrong("`rolling_buffer` below a parallel loop", r"iterations of the parallel loop i have no order")
def rolling_parallel():
    sch = slid()
    sch.parallel(sch.get_loops("C")[0])
    watch(sch).rolling_buffer("B", 0)


@wrong("`rolling_buffer` of a block that runs only for some iterations", r"block B runs only where ")
def rolling_guarded():
    sch = slid()

    def sometimes(n):
        if isinstance(n, BlockRealize) and n.block.name == "B":
            return n.replace(predicate=n.iter_values[0] % 2 < 1)
        return None
    rewritten(sch, sometimes).rolling_buffer("B", 0)


@wrong("`rolling_buffer` of a block that leaves out elements", r"block B may leave out elements of the part of B")
def rolling_sparse():
    sch = slid()

    def doubled(n):
        if isinstance(n, BlockRealize) and n.block.name == "B":
            loops = sch.loops_above("B")
            return n.replace(iter_values=(loops[0].loop_var + loops[1].loop_var * 2,))
        return n.replace(extent=IntImm(2)) if isinstance(n, For) and n.extent.value == 3 else None
    rewritten(sch, doubled).rolling_buffer("B", 0)


@wrong("`rolling_buffer` with a reader that looks further",
       r"block C reads elements of B that its iteration does not compute")
def rolling_far():
    sch = slid()

    def further(n):
        wide = isinstance(n, BufferRegion) and n.buffer.name == "B" and n.region[0].extent.value == 3
        return n.replace(region=tuple(Range(r.min, IntImm(5)) for r in n.region)) if wide else None
    rewritten(sch, further).rolling_buffer("B", 0)


@wrong("`rolling_buffer` where a loop moves two dimensions", r"loop i moves two dimensions of what block B writes")
def rolling_diagonal():
    a = te.placeholder((N, N), "int32", name="A")
    b = te.compute((N, N), lambda i, j: a[i, j] * 3, name="B")
    c = te.compute((N - 2,), lambda i: b[i, i] + b[i + 1, i + 1], name="C")
    slid(lambda: (a, b, c)).rolling_buffer("B", 0)


@wrong("`rolling_buffer` where the window moves with a bound loop",
       r"the window moves with loop i_0, which is bound to")
def rolling_bound():
    sch = scheduled(*stencil())
    outer, inner = sch.split(sch.get_loops("C")[0], [None, 4])
    sch.compute_at("B", inner)
    sch.bind(outer, "blockIdx.x")
    watch(sch).rolling_buffer("B", 0)


@wrong("`rolling_buffer` of a block that writes two buffers", r"block \w+ writes more than one buffer")
def rolling_two_results():
    a = vector()
    b, c = te.compute((N,), lambda i: (a[i] + 1, a[i] * 2), name="B")
    sch = scheduled(a, te.compute((N - 1,), lambda i: b[i] + b[i + 1] + c[i], name="D"))
    sch.rolling_buffer(sch.get_blocks()[0], 0)


@wrong("`rolling_buffer` of a buffer that a reader passes by its address", r"block C uses B other than by its elements")
def rolling_address():
    a = te.placeholder((8,), name="A")
    b = te.compute((8,), lambda i: a[i] + 1.0, name="B")
    c = te.extern([(8,)], [b], lambda ins, outs: te.call_packed("copy", ins[0], outs[0]), dtype="float32", name="C")
    scheduled(a, b, c).rolling_buffer("B", 0)


@wrong("`rolling_buffer` of a buffer that a block inside another one reads", r"block outer holds other blocks")
def rolling_nested():
    sch = slid()

    def wrapped(n):
        if not isinstance(n, BlockRealize) or n.block.name != "C":
            return None
        i, = sch.get_loops("C")
        outer = Block("outer", (), n.block.reads, n.block.writes, n.replace(iter_values=(IntImm(0),)))
        return BlockRealize((), IntImm(1, "bool"), outer) if i else None
    rewritten(sch, wrapped).rolling_buffer("B", 0)


@wrong("`rolling_buffer` where the bounds of a loop depend on the one that the window moves with",
       r"the bounds of loop j depend on loop i")
def rolling_triangle():
    a = te.placeholder((N + 2, N), "int32", name="A")
    b = te.compute((N + 2, N), lambda i, j: a[i, j] * 3, name="B")
    sch = slid(lambda: (a, b, te.compute((N, N), lambda i, j: b[i, j] + b[i + 2, j], name="C")), 1)
    i, j = sch.loops_above("C")

    def triangular(n):
        return n.replace(extent=i.loop_var + 1) if isinstance(n, For) and n.loop_var is j.loop_var else None
    rewritten(sch, triangular).rolling_buffer("B", 0)


@wrong("`rolling_buffer` of the first of a chain before the last",
       r"block B writes B, which block C reads, and is not known")
def rolling_first():
    a, b, c = stencil()
    d = te.compute((N - 2,), lambda i: c[i] + c[i + 2], name="D")
    sch = scheduled(a, b, c, d)
    i, = sch.get_loops("D")
    sch.compute_at("C", i)
    sch.compute_at("B", i)
    sch.rolling_buffer("B", 0)
    watch(sch).rolling_buffer("C", 0)


@wrong("`transform_layout` of a buffer that a block sees as another one", r"B is viewed as another buffer")
def layout_of_viewed():
    sch = pair()

    def viewing(n):
        if not isinstance(n, Block) or n.name != "C":
            return None
        view = MatchBuffer(decl_buffer((1, 1), name="view"), n.reads[0])
        return n.replace(match_buffers=(view,))
    rewritten(sch, viewing).transform_layout("B", "B", lambda i, j: (j, i))


@wrong("`transform_layout` of a view of another buffer", r"view is a view of B")
def layout_of_view():
    sch = pair()

    def viewing(n):
        if not isinstance(n, Block) or n.name != "C":
            return None
        view = MatchBuffer(decl_buffer((1, 1), name="view"), n.reads[0])
        seen = BufferRegion(view.buffer, (Range(IntImm(0), IntImm(1)),) * 2)
        return n.replace(match_buffers=(view,), reads=(*n.reads, seen))
    rewritten(sch, viewing).transform_layout("C", "view", lambda i, j: (j, i))
