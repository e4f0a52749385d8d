"""Wrong uses of the block schedule: each primitive refuses, shows the loops, and leaves them as they are."""
from __future__ import annotations

import tilewright as tw
from tilewright import te

from .programs import N, blocks, chain, matmul, placeholders
from .wrong_use import Section, watch

SECTION = Section("Blocks (`sch = tilewright.Schedule(func)`)")
wrong = SECTION.wrong


def product():
    """sch, block C, loops i, j, k of the matrix product, watched"""
    sch = blocks()
    block = sch.get_block("C")
    loops = sch.get_loops(block)
    return watch(sch), block, *loops


@wrong("`Schedule(3)`", "")
def schedule_of_number():
    tw.Schedule(3)


@wrong("`Schedule(tw.IRModule({}))`: nothing to schedule", "")
def schedule_of_nothing():
    tw.Schedule(tw.IRModule({}))


@wrong("`Schedule(lowered)`: a function that is lowered already", "")
def schedule_of_lowered():
    tensors = matmul()
    tw.Schedule(tw.lower(te.create_prim_func(list(tensors))))


@wrong("`get_block(\"D\")` of a block that is not there", "")
def unknown_block():
    watch(blocks()).get_block("D")


@wrong("`get_block(\"C\", \"other\")` of a function that is not there", "")
def unknown_function():
    watch(blocks()).get_block("C", "other")


@wrong("`get_loops(3)`", "")
def loops_of_number():
    watch(blocks()).get_loops(3)


@wrong("`split(loop, [2, 4])`: the factors do not cover the loop", "")
def split_short():
    sch, _, i, _, _ = product()
    sch.split(i, [2, 4])


@wrong("`split(loop, [None, None])`", "")
def split_two_unknowns():
    sch, _, i, _, _ = product()
    sch.split(i, [None, None])


@wrong("`split(loop, [])`", "")
def split_nothing():
    sch, _, i, _, _ = product()
    sch.split(i, [])


@wrong("`split(loop, [None, 0])`", "")
def split_zero():
    sch, _, i, _, _ = product()
    sch.split(i, [None, 0])


@wrong("`split(loop, [None, 1.5])`", "")
def split_float():
    sch, _, i, _, _ = product()
    sch.split(i, [None, 1.5])


@wrong("`split(loop, 4)`: a number in place of a list", "")
def split_number():
    sch, _, i, _, _ = product()
    sch.split(i, 4)


@wrong("`split(loop, [None, 2**63])`", "")
def split_huge():
    sch, _, i, _, _ = product()
    sch.split(i, [None, 2**63])


@wrong("`split(block, ...)`: a block in place of a loop", "")
def split_block():
    sch, block, _, _, _ = product()
    sch.split(block, [None, 4])


@wrong("`split(loop, factor=4)`: an argument that there is not", "")
def split_keyword():
    sch, _, i, _, _ = product()
    sch.split(i, factor=4)


@wrong("a loop that `split` has replaced", "")
def stale_loop():
    sch, _, i, _, _ = product()
    sch.split(i, [None, 4])
    watch(sch).vectorize(i)


@wrong("a loop of another schedule", "")
def foreign_loop():
    sch, _, _, _, _ = product()
    other = blocks()
    sch.parallel(other.get_loops("C")[0])


@wrong("`fuse` of loops that are not nested directly", "")
def fuse_far():
    sch, _, i, _, k = product()
    sch.fuse(i, k)


@wrong("`fuse` of a spatial and a reduction loop of one block", "")
def fuse_wrong_order():
    sch, _, i, j, _ = product()
    sch.fuse(j, i)


@wrong("`reorder(i, i)`", "")
def reorder_twice():
    sch, _, i, _, _ = product()
    sch.reorder(i, i)


@wrong("`reorder()` of loops of two nests", "")
def reorder_nests():
    sch = blocks(chain)
    watch(sch).reorder(sch.get_loops("B")[0], sch.get_loops("C")[1])


@wrong("`vectorize` of a reduction loop", "")
def vectorize_reduction():
    sch, _, _, _, k = product()
    sch.vectorize(k)


@wrong("`parallel` of a reduction loop", "")
def parallel_reduction():
    sch, _, _, _, k = product()
    sch.parallel(k)


@wrong("`parallel` of a loop that carries a dependence", "")
def bind_reduction():
    sch, _, _, _, k = product()
    sch.bind(k, "threadIdx.x")


@wrong("`unroll` of a parallel loop", "")
def unroll_parallel():
    sch, _, i, _, _ = product()
    sch.parallel(i)
    watch(sch).unroll(i)


@wrong("`vectorize` of a loop of symbolic extent", "")
def vectorize_symbolic():
    n = te.var("n")
    a = te.placeholder((n,), name="A")
    c = te.compute((n,), lambda i: a[i] + 1.0, name="C")
    sch = tw.Schedule(te.create_prim_func([a, c]))
    watch(sch).vectorize(sch.get_loops("C")[0])


@wrong("`bind(loop, \"threadIdx.w\")`", "")
def bind_unknown():
    sch, _, i, _, _ = product()
    sch.bind(i, "threadIdx.w")


@wrong("`bind(loop, 3)`", "")
def bind_number():
    sch, _, i, _, _ = product()
    sch.bind(i, 3)


@wrong("`compute_at` of a block into its own loop", "")
def at_own_loop():
    sch, block, i, _, _ = product()
    sch.compute_at(block, i)


@wrong("`compute_at` of the output into its producer's loops", "")
def output_at_producer():
    sch = blocks(chain)
    watch(sch).compute_at(sch.get_block("C"), sch.get_loops("B")[0])


@wrong("`reverse_compute_at` of a block that does not read", "")
def reverse_of_producer():
    sch = blocks(chain)
    watch(sch).reverse_compute_at(sch.get_block("B"), sch.get_loops("C")[0])


@wrong("`compute_inline` of the output", "")
def inline_output():
    sch = blocks(chain)
    watch(sch).compute_inline(sch.get_block("C"))


@wrong("`compute_inline` of a reduction", "")
def inline_reduction():
    a, b, c = matmul()
    d = te.compute((N, N), lambda i, j: c[i, j] + 1.0, name="D")
    sch = tw.Schedule(te.create_prim_func([a, b, d]))
    watch(sch).compute_inline(sch.get_block("C"))


@wrong("`reverse_compute_inline` of a block with two producers", "")
def reverse_inline_two():
    a, b = placeholders()
    x = te.compute((N, N), lambda i, j: a[i, j] + 1.0, name="X")
    y = te.compute((N, N), lambda i, j: b[i, j] + 1.0, name="Y")
    z = te.compute((N, N), lambda i, j: x[i, j] + y[i, j], name="Z")
    sch = tw.Schedule(te.create_prim_func([a, b, z]))
    watch(sch).reverse_compute_inline(sch.get_block("Z"))


@wrong("`cache_read(block, 5, \"local\")`: a buffer that the block does not have", "")
def cache_read_far():
    sch, block, _, _, _ = product()
    sch.cache_read(block, 5, "local")


@wrong("`cache_read(block, \"Q\", \"local\")`: a buffer by a wrong name", "")
def cache_read_name():
    sch, block, _, _, _ = product()
    sch.cache_read(block, "Q", "local")


@wrong("`cache_write(block, 0, \"registers\")`: an unknown memory scope", "")
def cache_write_scope():
    sch, block, _, _, _ = product()
    sch.cache_write(block, 0, "registers")


@wrong("`set_scope` of an argument's memory", "")
def scope_of_argument():
    sch, block, _, _, _ = product()
    sch.set_scope(block, 0, "local")


@wrong("`decompose_reduction` at a loop inside the reduction", "")
def decompose_inside():
    sch, block, _, _, k = product()
    sch.reorder(k, sch.get_loops(block)[1])
    watch(sch).decompose_reduction(block, sch.get_loops(block)[2])


@wrong("`decompose_reduction` of a block without a reduction", "")
def decompose_elementwise():
    sch = blocks(chain)
    watch(sch).decompose_reduction(sch.get_block("B"), sch.get_loops("B")[0])


@wrong("`annotate` under a key that is there already", "")
def annotate_twice():
    sch, block, _, _, _ = product()
    sch.annotate(block, "key", 1)
    watch(sch).annotate(block, "key", 2)


@wrong("`annotate` with a function as the value", "")
def annotate_function():
    sch, block, _, _, _ = product()
    sch.annotate(block, "key", print)


@wrong("`unannotate` of a key that is not there", "")
def unannotate_missing():
    sch, block, _, _, _ = product()
    sch.unannotate(block, "key")


@wrong("`transform_layout` with a map that is not one to one", "")
def layout_not_injective():
    sch, block, _, _, _ = product()
    sch.transform_layout(block, ("write", 0), lambda i, j: (i // 2, j))


@wrong("`transform_layout` with a map of too few axes", "")
def layout_arity():
    sch = blocks(chain)
    watch(sch).transform_layout(sch.get_block("B"), ("write", 0), lambda i: (i,))


@wrong("a trace replayed on a function that has no such block", "")
def replay_elsewhere():
    sch = blocks()
    sch.parallel(sch.get_loops("C")[0])
    other = watch(blocks(chain))
    sch.trace.apply_to_schedule(other)
