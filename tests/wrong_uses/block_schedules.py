"""Wrong uses of the block schedule: each primitive refuses, shows the loops, and leaves them as they are."""
from __future__ import annotations

import tilewright as tw
from tilewright import te
from tilewright.script import from_source

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


@wrong("`Schedule(3)`",
       r"Schedule takes a PrimFunc or an IRModule, not int")
def schedule_of_number():
    tw.Schedule(3)


@wrong("`Schedule(tw.IRModule({}))`: nothing to schedule",
       r"the module has no kernel \(PrimFunc\) to schedule")
def schedule_of_nothing():
    tw.Schedule(tw.IRModule({}))


@wrong("`Schedule(lowered)`: a function that is lowered already",
       r"function main is not in block form")
def schedule_of_lowered():
    tensors = matmul()
    tw.Schedule(tw.lower(te.create_prim_func(list(tensors))))


@wrong("`Schedule(func)` of a function with a loop `i` of 16 iterations around `vi = T.axis.spatial(8, i)`",
       r"(?s)axis v of block b reaches 15, outside its domain 0 to 7.*# <-- here.*hint: .*T\.where\(i < 8\)")
def schedule_of_axis_that_leaves_its_domain():
    text = ('@T.prim_func\ndef f(A: T.Buffer((16,), "float32")):\n    for i in range(16):\n        with T.block("b"):\n'
            '            v = T.axis.spatial(8, i)\n            A[v] = 1.0\n')
    tw.Schedule(from_source(text, check_well_formed=False))


@wrong("`get_block(\"D\")` of a block that is not there",
       r"get_block\(name='D'\): function main has no block 'D'")
def unknown_block():
    watch(blocks()).get_block("D")


@wrong("`get_block(\"C\", \"other\")` of a function that is not there",
       r"get_block\(name='C', func_name='other'\): the module has no kernel 'other'")
def unknown_function():
    watch(blocks()).get_block("C", "other")


@wrong("`get_loops(3)`",
       r"get_loops\(block=3\): expected a block, got 3")
def loops_of_number():
    watch(blocks()).get_loops(3)


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


@wrong("a loop that `split` has replaced",
       r"vectorize\(loop=i\): loop i does not exist any more: split consumed it")
def stale_loop():
    sch, _, i, _, _ = product()
    sch.split(i, [None, 4])
    watch(sch).vectorize(i)


@wrong("a loop of another schedule",
       r"parallel\(loop=i\): loop i belongs to another schedule")
def foreign_loop():
    sch, _, _, _, _ = product()
    other = blocks()
    watch(sch).parallel(other.get_loops("C")[0])


@wrong("the name of a block that the function does not have",
       r"get_loops\(block='D'\): there is no block D in function main")
def no_such_block():
    sch, _, _, _, _ = product()
    watch(sch).get_loops("D")


@wrong("`fuse` of loops that are not nested directly",
       r"fuse\(i, k\): loop k is not the whole body of loop i")
def fuse_far():
    sch, _, i, _, k = product()
    sch.fuse(i, k)


@wrong("`fuse(j, i)`: the inner loop first",
       r"fuse\(j, i\): loop i is not the whole body of loop j")
def fuse_wrong_order():
    sch, _, i, j, _ = product()
    sch.fuse(j, i)


@wrong("`reorder(i, i)`",
       r"reorder\(i, i\): loop i is given twice")
def reorder_twice():
    sch, _, i, _, _ = product()
    sch.reorder(i, i)


@wrong("`reorder()` of loops of two nests",
       r"reorder\(i, j\): loops j and i are not nested in one another")
def reorder_nests():
    sch = blocks(chain)
    watch(sch).reorder(sch.get_loops("B")[0], sch.get_loops("C")[1])


@wrong("`vectorize` of a reduction loop",
       r"vectorize\(loop=k\): cannot vectorize loop k: it carries the reduction axis of block C")
def vectorize_reduction():
    sch, _, _, _, k = product()
    sch.vectorize(k)


@wrong("`parallel` of a reduction loop",
       r"parallel\(loop=k\): cannot parallel loop k: it carries the reduction axis of block C")
def parallel_reduction():
    sch, _, _, _, k = product()
    sch.parallel(k)


@wrong("`bind` of a reduction loop to blocks of threads, which cannot share it",
       r"bind\(loop=k, thread_axis='blockIdx\.x'\): cannot bind loop k: it carries the reduction axis of block C")
def bind_reduction():
    sch, _, _, _, k = product()
    sch.bind(k, "blockIdx.x")


@wrong("`unroll` of a parallel loop",
       r"unroll\(loop=i\): loop i is parallel already")
def unroll_parallel():
    sch, _, i, _, _ = product()
    sch.parallel(i)
    watch(sch).unroll(i)


@wrong("`vectorize` of a loop of symbolic extent",
       r"vectorize\(loop=i\): cannot vectorize loop i: its extent n is not a constant")
def vectorize_symbolic():
    n = te.var("n")
    a = te.placeholder((n,), name="A")
    c = te.compute((n,), lambda i: a[i] + 1.0, name="C")
    sch = tw.Schedule(te.create_prim_func([a, c]))
    watch(sch).vectorize(sch.get_loops("C")[0])


@wrong("`bind(loop, \"threadIdx.w\")`",
       r"bind\(loop=i, thread_axis='threadIdx\.w'\): 'threadIdx\.w' is not a thread axis")
def bind_unknown():
    sch, _, i, _, _ = product()
    sch.bind(i, "threadIdx.w")


@wrong("`bind(loop, 3)`",
       r"bind\(loop=i, thread_axis=3\): 3 is not a thread axis")
def bind_number():
    sch, _, i, _, _ = product()
    sch.bind(i, 3)


@wrong("`compute_at` of a block into its own loop",
       r"compute_at\(block=C, loop=i\): block C is below loop i already")
def at_own_loop():
    sch, block, i, _, _ = product()
    sch.compute_at(block, i)


@wrong("`compute_at` of the output into its producer's loops",
       r"compute_at\(block=C, loop=i\): block C writes C, an output of the function")
def output_at_producer():
    sch = blocks(chain)
    watch(sch).compute_at(sch.get_block("C"), sch.get_loops("B")[0])


@wrong("`reverse_compute_at` of a block that does not read",
       r"reverse_compute_at\(block=B, loop=i\): no producer of block B is below loop i")
def reverse_of_producer():
    sch = blocks(chain)
    watch(sch).reverse_compute_at(sch.get_block("B"), sch.get_loops("C")[0])


@wrong("`compute_inline` of the output",
       r"compute_inline\(block=C\): block C writes C, an output of the function")
def inline_output():
    sch = blocks(chain)
    watch(sch).compute_inline(sch.get_block("C"))


@wrong("`compute_inline` of a reduction",
       r"compute_inline\(block=C\): block C is a reduction: its buffer holds partial sums until the last step")
def inline_reduction():
    a, b, c = matmul()
    d = te.compute((N, N), lambda i, j: c[i, j] + 1.0, name="D")
    sch = tw.Schedule(te.create_prim_func([a, b, d]))
    watch(sch).compute_inline(sch.get_block("C"))


@wrong("`compute_inline` that makes an expression too long",
       r"compute_inline\(block=C1\): block Y would have 31247 operations, \d+ inside one another; it may have 20000")
def inline_too_much():
    x = te.placeholder((64,), name="X")
    y = x
    for n in range(3):
        y = te.compute((64,), lambda i, y=y: sum(y[(i + k) % 64] for k in range(10)), name=f"C{n}")
    out = te.compute((64,), lambda i: sum(y[(i * k) % 64] for k in range(2)), name="Y")
    sch = tw.Schedule(te.create_prim_func([x, out]))
    sch.compute_inline(sch.get_block("C2"))
    sch.compute_inline(sch.get_block("C0"))
    watch(sch).compute_inline(sch.get_block("C1"))


@wrong("`reverse_compute_inline` of a block with two producers",
       r"reverse_compute_inline\(block=Z\): block Y stands between block X and block Z and touches the same")
def reverse_inline_two():
    a, b = placeholders()
    x = te.compute((N, N), lambda i, j: a[i, j] + 1.0, name="X")
    y = te.compute((N, N), lambda i, j: b[i, j] + 1.0, name="Y")
    z = te.compute((N, N), lambda i, j: x[i, j] + y[i, j], name="Z")
    sch = tw.Schedule(te.create_prim_func([a, b, z]))
    watch(sch).reverse_compute_inline(sch.get_block("Z"))


@wrong("`cache_read(block, 5, \"local\")`: a buffer that the block does not have",
       r"cache_read\(block=C, read_buffer_index=5, storage_scope='local'\): block C reads 2 buffer\(s\), there")
def cache_read_far():
    sch, block, _, _, _ = product()
    sch.cache_read(block, 5, "local")


@wrong("`cache_read(block, \"Q\", \"local\")`: a buffer by a wrong name",
       r"cache_read\(block=C, read_buffer_index='Q', storage_scope='local'\): block C reads no buffer 'Q'")
def cache_read_name():
    sch, block, _, _, _ = product()
    sch.cache_read(block, "Q", "local")


@wrong("`cache_write(block, 0, \"registers\")`: an unknown memory scope",
       r"cache_write\(block=C, write_buffer_index=0, storage_scope='registers'\): 'registers' is not a storage")
def cache_write_scope():
    sch, block, _, _, _ = product()
    sch.cache_write(block, 0, "registers")


@wrong("`set_scope` of an argument's memory",
       r"set_scope\(block=C, buffer_index=0, storage_scope='local'\): C is an argument of the function")
def scope_of_argument():
    sch, block, _, _, _ = product()
    sch.set_scope(block, 0, "local")


@wrong("`decompose_reduction` at a loop inside the reduction",
       r"decompose_reduction\(block=C, loop=j\): loop k, outside of j, drives a reduction axis of block C")
def decompose_inside():
    sch, block, _, _, k = product()
    sch.reorder(k, sch.get_loops(block)[1])
    watch(sch).decompose_reduction(block, sch.get_loops(block)[2])


@wrong("`decompose_reduction` of a block without a reduction",
       r"decompose_reduction\(block=B, loop=i\): block B is not a reduction with an init")
def decompose_elementwise():
    sch = blocks(chain)
    watch(sch).decompose_reduction(sch.get_block("B"), sch.get_loops("B")[0])


@wrong("`annotate` under a key that is there already",
       r"annotate\(block_or_loop=C, ann_key='key', ann_val=2\): block C has the annotation 'key' already")
def annotate_twice():
    sch, block, _, _, _ = product()
    sch.annotate(block, "key", 1)
    watch(sch).annotate(block, "key", 2)


@wrong("`annotate` with a function as the value",
       r"annotate\(block_or_loop=C, ann_key='key', ann_val=print\): the value of type builtin_function_or_method")
def annotate_function():
    sch, block, _, _, _ = product()
    sch.annotate(block, "key", print)


@wrong("`unannotate` of a key that is not there",
       r"unannotate\(block_or_loop=C, ann_key='key'\): block C has no annotation 'key'")
def unannotate_missing():
    sch, block, _, _, _ = product()
    sch.unannotate(block, "key")


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


@wrong("a trace replayed on a function that has no such block",
       r"get_loops gave 2 handle\(s\) here, the trace has 3: the function has another structure than the one")
def replay_elsewhere():
    sch = blocks()
    sch.parallel(sch.get_loops("C")[0])
    other = watch(blocks(chain))
    sch.trace.apply_to_schedule(other)
