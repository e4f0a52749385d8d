"""Wrong uses of the core primitives that take unusual programs: other functions, odd loops, dependences, views."""
from __future__ import annotations

import tilewright as tw
from tilewright import te

from ..programs import blocks, chain, matmul, script
from ..wrong_use import Section, watch

SECTION = Section("Blocks of unusual programs")
wrong = SECTION.wrong


def module():
    """A schedule of two functions, which both have a block C."""
    functions = {name: te.create_prim_func(list(matmul()), name=name) for name in ("first", "second")}
    return watch(tw.Schedule(tw.IRModule(functions)))


def stencil():
    """A[i + 1, j] = A[i, j + 1] in a block S"""
    return script("""
for i, j in T.grid(7, 7):
    with T.block("S"):
        vi, vj = T.axis.remap("SS", [i, j])
        A[vi + 1, vj] = A[vi, vj + 1]
""")


@wrong("`get_blocks(\"other\")` of a function that is not there", r"the module has no kernel 'other'")
def blocks_of_unknown():
    watch(blocks()).get_blocks("other")


@wrong("`get_block(3)`", r"a block is asked for by its name, not by 3")
def block_number():
    watch(blocks()).get_block(3)


@wrong("`get_block(\"C\")` where two functions have one", r"functions first, second have a block C")
def block_of_two():
    functions = {"main": te.create_prim_func(list(chain())), **module().mod.functions}
    del functions["main"]
    a, _, c = chain()
    other = te.create_prim_func([a, te.compute((16, 16), lambda i, j: a[i, j], name="Q")])
    watch(tw.Schedule(tw.IRModule({"main": other, **functions}))).get_block("C")


@wrong("a block of another schedule", r"block C belongs to another schedule")
def block_of_another():
    block = module().get_block("C", "first")
    watch(blocks()).get_loops(block)


@wrong("a loop of another schedule", r"loop i belongs to another schedule")
def loop_of_another():
    sch = module()
    loop = sch.get_loops(sch.get_block("C", "first"))[0]
    watch(blocks()).unroll(loop)


@wrong("`split(loop, [4, 4], names=[\"a\"])`", r"2 factors, 1 names")
def split_names():
    sch = watch(blocks())
    sch.split(sch.get_loops("C")[0], [4, 4], names=["a"])


@wrong("`split(loop, [4, 4], names=\"ab\")`", r"names are a list of texts, not 'ab'")
def split_names_text():
    sch = watch(blocks())
    sch.split(sch.get_loops("C")[0], [4, 4], names="ab")


@wrong("`fuse(i, j, name=3)`", r"the name of a loop is a text, not 3")
def fuse_name():
    sch = watch(blocks())
    sch.fuse(*sch.get_loops("C")[:2], name=3)


@wrong("`split(.., preserve_unit_iters=\"no\")`",
       r"preserve_unit_iters is True or False, not 'no'")
def flag_text():
    sch = watch(blocks())
    sch.split(sch.get_loops("C")[0], [4, 4], preserve_unit_iters="no")


@wrong("`fuse` of three loops of 2**30 iterations", r"the loops have \d+ iterations together, more than 64 bits count")
def fuse_huge():
    sch = script("""
for i, j, k in T.grid(1073741824, 1073741824, 1073741824):
    with T.block("S"):
        vi, vj, vk = T.axis.remap("SSR", [i, j, k])
        A[vi % 8, vj % 8] = B[vi % 8, vk % 8]
""")
    sch.fuse(*sch.get_loops("S"))


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


@wrong("`fuse()` of nothing", r"there is no loop to fuse")
def fuse_nothing():
    watch(blocks()).fuse()


@wrong("`reorder()` of nothing", r"there is no loop to reorder")
def reorder_nothing():
    watch(blocks()).reorder()


@wrong("`fuse` of a triangular nest", r"the bounds of loop j depend on loop i, so they cannot be fused")
def fuse_triangle():
    sch = script("""
for i in range(8):
    for j in range(i + 1):
        with T.block("S"):
            vi = T.axis.spatial(8, i)
            vj = T.axis.spatial(8, j)
            B[vi, vj] = A[vi, vj]
""")
    sch.fuse(*sch.get_loops("S"))


@wrong("`reorder` against a dependence", r"the order j, i breaks a dependence of block S on A")
def reorder_stencil():
    sch = stencil()
    i, j = sch.get_loops("S")
    sch.reorder(j, i)


@wrong("`parallel` of a loop that carries a dependence",
       r"cannot parallel loop i: two of its iterations may touch the same element of A")
def parallel_stencil():
    sch = stencil()
    sch.parallel(sch.get_loops("S")[0])


@wrong("`reorder` of loops with a statement between them", r"loop i holds more than the loop down to j")
def reorder_imperfect():
    sch = blocks(chain)
    i, j = sch.get_loops("C")
    sch.compute_at("B", i)
    watch(sch).reorder(j, i)


@wrong("`annotate(loop, 3, 1)`", r"the key 3 is not a string")
def annotate_number():
    sch = watch(blocks())
    sch.annotate(sch.get_loops("C")[0], 3, 1)


@wrong("`bind` of loops of different extents to one axis",
       r"loop j has extent 16, and loop j_0, bound to threadIdx.x in the same kernel, has 8")
def bind_extents():
    sch = blocks(chain)
    i, j = sch.get_loops("C")
    sch.compute_at("B", i)
    sch.bind(sch.split(sch.get_loops("B")[1], [8, 2])[0], "threadIdx.x")
    watch(sch).bind(j, "threadIdx.x")


@wrong("`bind` of nested loops to one axis", r"loop i is bound to threadIdx.x, and the loops are nested")
def bind_nested():
    sch = blocks(chain)
    i, j = sch.get_loops("C")
    sch.bind(i, "threadIdx.x")
    watch(sch).bind(j, "threadIdx.x")


@wrong("`compute_at` at a loop of another function", r"block C and loop i are in different functions")
def place_elsewhere():
    sch = module()
    sch.compute_at(sch.get_block("C", "first"), sch.get_loops(sch.get_block("C", "second"))[0])


@wrong("`compute_at` of a block that nothing reads", r"nothing reads what block T computes")
def place_unread():
    sch = script("""
X = T.alloc_buffer((8, 8), "int32")
for i, j in T.grid(8, 8):
    with T.block("T"):
        vi, vj = T.axis.remap("SS", [i, j])
        X[vi, vj] = A[vi, vj]
for i, j in T.grid(8, 8):
    with T.block("S"):
        vi, vj = T.axis.remap("SS", [i, j])
        B[vi, vj] = A[vi, vj]
""")
    sch.compute_at("T", sch.get_loops("S")[0])


@wrong("`compute_at` at a loop that is not around every consumer",
       r"block C reads B's result and is not below loop i")
def place_not_around_all():
    a, b, c = chain()
    d = te.compute((16, 16), lambda i, j: b[i, j] * 3.0, name="D")
    sch = watch(tw.Schedule(te.create_prim_func([a, c, d])))
    sch.compute_at("B", sch.get_loops("D")[0])


@wrong("`compute_at` at a loop that is around no consumer", r"no consumer of block B is below loop i")
def place_around_none():
    a, b, c = chain()
    d = te.compute((16, 16), lambda i, j: a[i, j] * 3.0, name="D")
    sch = watch(tw.Schedule(te.create_prim_func([a, d, c])))
    sch.compute_at("B", sch.get_loops("D")[0])


@wrong("`compute_at` at a loop inside a block", r"loop j and block B are not inside the same block")
def place_in_block():
    sch = blocks(chain)
    _, j = sch.get_loops("C")
    sch.blockize(j)
    watch(sch).compute_at("B", sch.get_loops("C")[0])


@wrong("`reverse_compute_at` between a reader and a producer that comes after it",
       r"a producer of block R comes after one of its consumers in loop i")
def place_impossible():
    sch = script("""
X = T.alloc_buffer((8,), "int32")
for i in range(8):
    with T.block("S"):
        vi = T.axis.spatial(8, i)
        B[vi, 0] = A[vi, 0]
    with T.block("P"):
        vi = T.axis.spatial(8, i)
        X[vi] = 3
for i in range(8):
    with T.block("R"):
        vi = T.axis.spatial(8, i)
        A[vi, 0] = X[vi]
""")
    sch.reverse_compute_at("R", sch.get_loops("P")[0])


BACKWARDS = """
X = T.alloc_buffer((8, 8), "int32")
for k in {loop}(8):
    for i in range(8):
        with T.block("P"):
            vi = T.axis.spatial(8, i)
            vk = T.axis.spatial(8, {index})
            X[vi, vk] = A[vi, vk]
for i, k in T.grid(8, 8):
    with T.block("R"):
        vi, vk = T.axis.remap("SR", [i, k])
        with T.init():
            B[vi, 0] = 0
        B[vi, 0] = B[vi, 0] + X[vi, vk]
"""


@wrong("`reverse_compute_at` of a reduction where it would begin with its last step",
       r"the reduction over vk would not begin at its first step 0, where block R initialises")
def reverse_backwards():
    sch = script(BACKWARDS.format(loop="range", index="7 - k"))
    sch.reverse_compute_at("R", sch.get_loops("P")[0])


@wrong("`reverse_compute_at` of a reduction at a parallel loop that would run its steps",
       r"the parallel loop k would run a reduction of block R")
def reverse_parallel():
    sch = script(BACKWARDS.format(loop="T.parallel", index="k"))
    sch.reverse_compute_at("R", sch.get_loops("P")[0])


@wrong("`reverse_compute_at` at a loop of a reduction",
       r"what block D reads of block C is not all computed in one iteration of loop k")
def reverse_in_reduction():
    a, b, c = matmul()
    d = te.compute((16, 16), lambda i, j: c[i, j] * 2.0, name="D")
    sch = tw.Schedule(te.create_prim_func([a, b, d]))
    i, j, k = sch.get_loops("C")
    sch.reorder(i, k, j)
    watch(sch).reverse_compute_at("D", k)


@wrong("`reverse_compute_at` of a reduction at a loop that it does not use",
       r"every iteration of loop i would run the same part of block R")
def reverse_repeated():
    sch = script("""
X = T.alloc_buffer((8,), "int32")
for i in T.parallel(4):
    for j in range(8):
        with T.block("P"):
            vi, vj = T.axis.remap("SS", [i, j])
            X[vj] = A[vj]
for k in range(8):
    with T.block("R"):
        vk = T.axis.reduce(8, k)
        with T.init():
            B[0] = 0
        B[0] = B[0] + X[vk]
""", "A: T.Buffer((8,), 'int32'), B: T.Buffer((1,), 'int32')")
    sch.reverse_compute_at("R", sch.get_loops("P")[0])


@wrong("`compute_at` of an output of which the consumer needs a part",
       r"block P would not be shown to compute all of A, an output of the function")
def at_part_of_output():
    sch = script("""
for i in range(8):
    with T.block("P"):
        vi = T.axis.spatial(8, i)
        A[vi] = vi
for i in range(4):
    with T.block("C"):
        vi = T.axis.spatial(4, i)
        B[vi] = A[vi] * 2
""", "A: T.Buffer((8,), 'int32'), B: T.Buffer((4,), 'int32')")
    watch(sch).compute_at("P", sch.get_loops("C")[0])


@wrong("`reverse_compute_at` where the parts overlap", r"the parts of block D that the iterations of loop i0 would run")
def reverse_overlap():
    sch = script("""
X = T.alloc_buffer((20,), "int32")
for i0, i1 in T.grid(4, 6):
    with T.block("C"):
        vi = T.axis.spatial(20, i0 * 4 + i1)
        X[vi] = A[vi]
for i in range(18):
    with T.block("D"):
        vi = T.axis.spatial(18, i)
        B[vi] = X[vi]
""", "A: T.Buffer((20,), 'int32'), B: T.Buffer((18,), 'int32')")
    sch.reverse_compute_at("D", sch.get_loops("C")[0])


@wrong("`set_scope(block, 1, \"local\")` of a block that writes one buffer", r"block C writes no buffer 1")
def scope_of_nothing():
    watch(blocks()).set_scope("C", 1, "local")


@wrong("`reverse_compute_at` of a block below an `if`",
       r"block D stands below a condition; staged or moved, it would lose it")
def reverse_out_of_branch():
    sch = script("""
X = T.alloc_buffer((8,), "int32")
for i in range(8):
    with T.block("C"):
        vi = T.axis.spatial(8, i)
        X[vi] = A[vi]
for i in range(8):
    if n > 3:
        with T.block("D"):
            vi = T.axis.spatial(8, i)
            B[vi] = X[vi]
""", "n: T.int32, A: T.Buffer((8,), 'int32'), B: T.Buffer((8,), 'int32')")
    sch.reverse_compute_at("D", sch.get_loops("C")[0])


@wrong("`compute_at` of a block to a reader that reads first what the caller gave",
       r"block D may read an element of A before block C writes it")
def read_before_written():
    sch = script("""
for t in range(8):
    with T.block("C"):
        vi = T.axis.spatial(8, t)
        A[vi] = 1
    for i in range(1):
        with T.block("D"):
            vi = T.axis.spatial(8, t)
            B[vi] = A[7 - vi]
""", "A: T.Buffer((8,), 'int32'), B: T.Buffer((8,), 'int32')")
    sch.compute_at("C", sch.get_loops("D")[1])


@wrong("`compute_at`, below an `if`, of what another iteration computes",
       r"block C stands below a condition, and vi would be t - 1 there instead of t")
def another_iteration():
    sch = script("""
X = T.alloc_buffer((8,), "int32")
for t in range(1, 8):
    if t > n:
        for i in range(1):
            with T.block("C"):
                vi = T.axis.spatial(8, t)
                X[vi] = A[vi]
        for i in range(1):
            with T.block("D"):
                vi = T.axis.spatial((1, 8), t)
                B[vi] = X[vi - 1]
""", "n: T.int32, A: T.Buffer((8,), 'int32'), B: T.Buffer((8,), 'int32')")
    sch.compute_at("C", sch.get_loops("D")[1])
