"""Wrong uses of blockize and tensorize."""
from __future__ import annotations

import functools

import tilewright as tw
from tilewright import te, tir
from tilewright.schedule import Schedule
from tilewright.script import tir as T
from tilewright.tir import TensorIntrin

from ..programs import blocks, chain
from ..wrong_use import Section, watch

SECTION = Section("Blocks of blocks, and tensor intrinsics")
wrong = SECTION.wrong


def scheduled(func):
    return watch(Schedule(func))


def split(sch, name="C", factor=4, loop=-1):
    """The inner loop of a split"""
    return sch.split(sch.get_loops(name)[loop], [None, factor])[1]


def elementwise(n=16, reads=lambda a, i: a[i] + 1):
    """C[i] = A[i] + 1"""
    a = te.placeholder((2 * n,), "int32", name="A")
    c = te.compute((n,), lambda i: reads(a, i), name="C")
    return Schedule(te.create_prim_func([a, c]))


@functools.cache
def vector(count=1, extent=4, touched=4, call=False, factor=0):
    """An intrinsic that adds 1 to (or adds up) `touched` of `extent` elements"""
    ins = [te.placeholder((extent,), "int32", name=f"x{k}") for k in range(count)]
    y = te.compute((touched,), lambda i: ins[0][i] + (ins[1][i] if count > 1 else 1), name="y")
    return te.decl_tensor_intrin(y.op, lambda i, o: te.call_packed("f", *(i if call else [])),
                                 default_buffer_params={"offset_factor": factor}).compute


@functools.cache
def product(steps=4):
    """C[i] = sum of A[i, k], int32, 4 by `steps`"""
    a = te.placeholder((4, steps), "int32", name="a")
    k = te.reduce_axis((0, steps), name="k")
    c = te.compute((4,), lambda i: te.sum(a[i, k], axis=k), name="c")
    return te.decl_tensor_intrin(c.op, lambda i, o: te.call_packed("f")).compute


def sums(n=16, k=8):
    """C[i] = sum of A[i, k]"""
    a = te.placeholder((n, k), "int32", name="A")
    r = te.reduce_axis((0, k), name="r")
    c = te.compute((n,), lambda i: te.sum(a[i, r], axis=r), name="C")
    return Schedule(te.create_prim_func([a, c]))


@T.prim_func
def guarded(A: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32")):
    for i in range(8):
        if i < 4:
            with T.block("C"):
                vi = T.axis.spatial(8, i)
                C[vi] = A[vi] + 1


@T.prim_func
def repeated(A: T.Buffer((4,), "int32"), C: T.Buffer((4,), "int32")):
    for i, _z in T.grid(4, 2):
        with T.block("C"):
            vi = T.axis.spatial(4, i)
            C[vi] = A[vi] + 1


@T.prim_func
def mixed(A: T.Buffer((64,), "int32"), C: T.Buffer((64,), "int32")):
    for i, k, j in T.grid(4, 2, 8):
        with T.block("C"):
            T.where(i * j < 30)
            vi = T.axis.spatial(64, i * 16 + k * 8 + j)
            C[vi] = A[vi] + 1


@T.prim_func
def blockless(A: T.Buffer((4,), "int32"), C: T.Buffer((4,), "int32")):
    with T.block("root"):
        T.reads(A[0:4])
        T.writes(C[0:4])
        for i in range(4):
            C[i] = A[i] + 1


@T.prim_func
def symbolic(a: T.handle, c: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (4, n), "int32")
    C = T.match_buffer(c, (4,), "int32")
    for i in range(4):
        with T.block("C"):
            vi = T.axis.spatial(4, i)
            C[vi] = A[vi, 0] + 1


@T.prim_func
def beside_steps(A: T.Buffer((4, 8), "int32"), C: T.Buffer((4,), "int32"), D: T.Buffer((4, 8), "int32")):
    for i, k in T.grid(4, 8):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = 0
            C[vi] = C[vi] + A[vi, vk]
        with T.block("D"):
            vi, vk = T.axis.remap("SS", [i, k])
            D[vi, vk] = A[vi, vk] + 1


# ---- blockize

@T.prim_func
def rows_of_data(N: T.Buffer((4,), "int32"), C: T.Buffer((4, 9), "int32")):
    for i in range(4):
        for j in range(N[i]):
            with T.block("C"):
                vi = T.axis.spatial(4, i)
                vj = T.axis.spatial(9, j)
                C[vi, vj] = vi + vj


@T.prim_func
def triangle(A: T.Buffer((16, 16), "int32"), C: T.Buffer((16, 16), "int32")):
    for i in range(16):
        for j in range(i + 1):
            with T.block("C"):
                vi = T.axis.spatial(16, i)
                vj = T.axis.spatial(16, j)
                C[vi, vj] = A[vi, vj] + 1


@T.prim_func
def sum_of_each_lane(A: T.Buffer((2, 4, 8), "int32"), D: T.Buffer((2, 4, 8), "int32"), E: T.Buffer((2, 4), "int32")):
    S = T.alloc_buffer((1,), "int32")
    for t in range(2):
        for i in T.parallel(4):
            with T.block("start"):
                S[0] = 0
            for k in range(8):
                with T.block("S"):
                    vt, vi, vk = T.axis.remap("SSR", [t, i, k])
                    S[0] = S[0] + A[vt, vi, vk]
                with T.block("D"):
                    vt, vi, vk = T.axis.remap("SSS", [t, i, k])
                    D[vt, vi, vk] = A[vt, vi, vk] * 2
            with T.block("E"):
                vt, vi = T.axis.remap("SS", [t, i])
                E[vt, vi] = S[0]


@wrong("`blockize([S, D])` in a parallel loop whose iterations have a sum each",
       r"each iteration of the parallel loop i has its own S; a block of several, ordered along loop t, would give "
       r"them one")
def blockize_own_sum():
    sch = watch(tw.Schedule(sum_of_each_lane))
    sch.blockize([sch.get_block("S"), sch.get_block("D")])


@wrong("`blockize([block])` below a loop whose extent is read from memory",
       r"the values of loop j are not bounded while loop i runs")
def blockize_below_data():
    sch = watch(tw.Schedule(rows_of_data))
    sch.blockize([sch.get_block("C")])


@wrong("`blockize(3)`", r"blockize\(target=3\): 3 is not a loop or a list of blocks")
def blockize_number():
    watch(blocks(chain)).blockize(3)


@wrong("`blockize(i)` of a loop with two blocks below it", r"2 blocks are in the subtree: B, C")
def blockize_two():
    sch = blocks(chain)
    sch.compute_at("B", sch.get_loops("C")[0])
    watch(sch).blockize(sch.get_loops("C")[0])


@wrong("`blockize(i)` of a loop with a condition in it", r"there is a IfThenElse between the loop and block C")
def blockize_condition():
    sch = scheduled(guarded)
    sch.blockize(sch.get_loops("C")[0])


@wrong("`blockize(i_0)` of a loop that steps over what the loops outside run through",
       r"axis vi is i_0 \* 4 \+ i_1, which is no outer\*c \+ inner for the loops i_0")
def blockize_strides():
    sch = elementwise()
    i0, i1 = sch.split(sch.get_loops("C")[0], [4, 4])
    sch.reorder(i1, i0)
    watch(sch).blockize(i0)


@wrong("`blockize(j)` below a condition that mixes loops", r"the condition i \* j < 30 of block C cannot be told")
def blockize_mixed_condition():
    sch = scheduled(mixed)
    sch.blockize(sch.get_loops("C")[2])


@wrong("`blockize(j)` of a loop as long as a split loop around says",
       r"the bounds 0 and i_0 \* 4 \+ i_1 \+ 1 of loop j cannot be told by the new block's axes")
def blockize_triangle():
    sch = Schedule(triangle)
    sch.split(sch.get_loops("C")[0], [None, 4])
    watch(sch).blockize(sch.get_loops("C")[2])


@wrong("`blockize(i_j)` of a loop that never runs, around an axis that has no values",
       r"axis vi of block C is 0 around the loops, which is not known to be in its domain where they never run")
def blockize_nothing():
    a = te.placeholder((0, 4), "int32", name="A")
    sch = Schedule(te.create_prim_func([a, te.compute((0, 4), lambda i, j: a[i, j] + 1, name="C")]))
    fused = sch.fuse(*sch.get_loops("C"))
    watch(sch).blockize(fused)


@wrong("`blockize(k)` of a sum over nothing whose loops were split and fused", r"axis vk of block C has 0 elements")
def blockize_sum_over_nothing():
    a, k = te.placeholder((0,), "int32", name="A"), te.reduce_axis((0, 0), name="k")
    sch = Schedule(te.create_prim_func([a, te.compute((), lambda: te.sum(a[k], axis=k), name="C")]))
    outer, inner = sch.split(sch.get_loops("C")[0], [None, 6])
    two, three = sch.split(inner, [2, 3])
    sch.fuse(outer, two)
    watch(sch).blockize(three)


@wrong("`blockize([root])`", r"the root block cannot be put into a block")
def blockize_root():
    sch = watch(blocks(chain))
    sch.blockize([sch.get_block("root")])


@wrong("`blockize([C, C_o])`: a block and one inside it", r"blocks C_o and C are in different blocks")
def blockize_scopes():
    sch = elementwise()
    outer = sch.blockize(split(sch))
    watch(sch).blockize([outer, sch.get_block("C")])


@wrong("`blockize([C, D])` where C starts a reduction over a loop around both",
       r"block C reduces over loops around the blocks, and starts its reduction among them")
def blockize_reduction():
    sch = scheduled(beside_steps)
    sch.blockize([sch.get_block("C"), sch.get_block("D")])


@wrong("`blockize([B, D])` with block C between them", r"block C stands between them")
def blockize_gap():
    a = te.placeholder((4,), "int32", name="A")
    b = te.compute((4,), lambda i: a[i] + 1, name="B")
    c = te.compute((4,), lambda i: b[i] + 1, name="C")
    d = te.compute((4,), lambda i: c[i] + b[i], name="D")
    sch = scheduled(te.create_prim_func([a, d]))
    sch.blockize([sch.get_block("B"), sch.get_block("D")])


# ---- tensorize

@wrong("`tensorize(i, \"missing\")`", r"no tensor intrinsic 'missing' is registered")
def tensorize_missing():
    sch = watch(elementwise())
    sch.tensorize(sch.get_loops("C")[0], "missing")


@wrong("`tensorize(i, intrin)` with a description without a block",
       r"the description of blockless has no block inside its root block")
def tensorize_blockless():
    sch = watch(elementwise())
    sch.tensorize(sch.get_loops("C")[0], TensorIntrin(blockless, blockless))


@wrong("`tensorize(i, intrin)` with a description that runs its points twice",
       r"the description of repeated does not run each point of block C once")
def tensorize_repeating_description():
    sch = watch(elementwise(4))
    sch.tensorize(sch.get_loops("C")[0], TensorIntrin(repeated, repeated))


@wrong("`tensorize(i, intrin)` with an extent that is not constant",
       r"the extent n of an intrinsic's buffer is not a constant")
def tensorize_symbolic():
    a = te.placeholder((4, 8), "int32", name="A")
    c = te.compute((4,), lambda i: a[i, 0] + 1, name="C")
    sch = scheduled(te.create_prim_func([a, c]))
    sch.tensorize(sch.get_loops("C")[0], TensorIntrin(symbolic, symbolic))


@wrong("`tensorize(root, intrin)`", r"the root block cannot be tensorized")
def tensorize_root():
    sch = watch(elementwise())
    sch.tensorize("root", vector())


@wrong("`tensorize(C_o, intrin)` of what is tensorized already", r"block C_o has views of buffers \(match_buffer\)")
def tensorize_twice():
    sch = elementwise()
    sch.tensorize(split(sch), vector())
    watch(sch).tensorize("C_o", vector())


@wrong("`tensorize(r_1, intrin)` of a part of a reduction, by an intrinsic that starts it",
       r"steps of the reduction run outside of the part that is to be tensorized")
def tensorize_part_of_reduction():
    sch = sums()
    i0, i1 = sch.split(sch.get_loops("C")[0], [None, 4])
    r0, r1 = sch.split(sch.get_loops("C")[-1], [None, 4])
    sch.reorder(i0, r0, i1, r1)
    watch(sch).tensorize(i1, product())


@wrong("`tensorize(i_1, intrin)` of a ragged tile", r"block C runs only where .*, so it may compute a part only")
def tensorize_ragged():
    sch = elementwise(14)
    inner = split(sch)
    watch(sch).tensorize(inner, vector())


@wrong("`tensorize(i, intrin)` of points that run twice",
       r"the loops inside do not run each point of block C exactly once")
def tensorize_repeated():
    sch = scheduled(repeated)
    sch.tensorize(sch.get_loops("C")[0], vector())


@wrong("`tensorize(i_1, intrin)` with another operator", r"the description has the expression `1`, the program `7`")
def tensorize_other_value():
    sch = elementwise(reads=lambda a, i: a[i] + 7)
    inner = split(sch)
    watch(sch).tensorize(inner, vector())


@wrong("`tensorize(i_1, intrin)` with another extent", r"the description has the axes .*data-parallel 4.*extents .*8")
def tensorize_other_extent():
    sch = elementwise()
    inner = split(sch, factor=8)
    watch(sch).tensorize(inner, vector())


@wrong("`tensorize([B, C], intrin)` of two blocks", r"the description has 1 block\(s\), the program 2 \(B, C\)")
def tensorize_two_blocks():
    sch = blocks(chain)
    sch.compute_at("B", sch.get_loops("C")[0])
    both = sch.blockize([sch.get_block("B"), sch.get_block("C")])
    watch(sch).tensorize(both, vector())


@wrong("`tensorize(i_1, intrin)` by an intrinsic that takes a buffer for nothing",
       r"the description does not use its parameter x1")
def tensorize_unused():
    sch = elementwise()
    one = vector()
    spare = tir.decl_buffer((4,), "int32", "x1")
    handle = tir.Var("x1", "handle")
    desc, impl = (f.replace(params=(*f.params, handle), buffer_map={**f.buffer_map, handle: spare})
                  for f in (one.desc, one.impl))
    inner = split(sch)
    watch(sch).tensorize(inner, TensorIntrin(desc, impl))


@wrong("`tensorize(i_1, intrin)` that writes what it reads elsewhere",
       r"A stands for y, which is written, and for x0")
def tensorize_in_place():
    @T.prim_func
    def update(A: T.Buffer((16,), "int32")):
        for i in range(16):
            with T.block("C"):
                vi = T.axis.spatial(16, i)
                A[vi] = A[vi] + 1
    sch = Schedule(update)
    inner = split(sch)
    watch(sch).tensorize(inner, vector())


@wrong("`tensorize(i_1, intrin)` by an intrinsic that reaches beyond the buffer",
       r"x0 would be vi_o \* 4 \+ 16 to .* \+ 8 of dimension 0 of A, which has the extent 32")
def tensorize_beyond():
    sch = elementwise(reads=lambda a, i: a[i + 16] + 1)
    inner = split(sch)
    watch(sch).tensorize(inner, vector(extent=8))


@wrong("`tensorize(i_1, intrin)` of every second element, by a call on compact memory",
       r"A has the stride 2 along dimension 0, the buffer x0 of the intrinsic is compact and so has the stride 1")
def tensorize_strided():
    sch = elementwise(reads=lambda a, i: a[2 * i] + 1)
    inner = split(sch)
    watch(sch).tensorize(inner, vector(call=True))


@wrong("`tensorize(i_1, intrin)` at an offset that is no multiple of offset_factor",
       r"x0 starts at the offset .* of A, which is not known to be a multiple of 4 \(offset_factor\)")
def tensorize_offset():
    sch = elementwise(reads=lambda a, i: a[i + 2] + 1)
    inner = split(sch)
    watch(sch).tensorize(inner, vector(factor=4))


@T.prim_func
def viewing(a: T.handle, c: T.handle):
    A = T.match_buffer(a, (4,), "int32")
    C = T.match_buffer(c, (4,), "int32")
    for i in range(2):
        with T.block("half"):
            vi = T.axis.spatial(2, i)
            T.reads(A[vi * 2:vi * 2 + 2])
            T.writes(C[vi * 2:vi * 2 + 2])
            V = T.match_buffer(A[vi * 2:vi * 2 + 2], (2,), "int32")
            for j in range(2):
                C[vi * 2 + j] = V[j] + 1


@wrong("`tensorize(i_1, intrin)` of every second element, by an intrinsic that has views of its own",
       r"the implementation views parts of A, which lies across the dimensions of A in another order")
def tensorize_viewing():
    sch = elementwise(reads=lambda a, i: a[2 * i] + 1)
    inner = split(sch)
    watch(sch).tensorize(inner, TensorIntrin(vector().desc, viewing))


@T.prim_func
def diagonal(A: T.Buffer((4,), "int32"), C: T.Buffer((4, 4), "int32")):
    for i in range(4):
        with T.block("C"):
            vi = T.axis.spatial(4, i)
            C[vi, vi] = A[vi] + 1


@wrong("`tensorize(i_1, intrin)` with a description that writes a diagonal",
       r"block C of the description of diagonal is not known to write every element of a box of C")
def tensorize_diagonal():
    sch = elementwise()
    inner = split(sch)
    watch(sch).tensorize(inner, TensorIntrin(diagonal, diagonal))


@wrong("`tensorize(i_1, intrin)` that writes every second element", r"C is written in steps of 2 elements")
def tensorize_gaps():
    @T.prim_func
    def spread(A: T.Buffer((32,), "int32"), C: T.Buffer((64,), "int32")):
        for i in range(16):
            with T.block("C"):
                vi = T.axis.spatial(16, i)
                C[vi * 2] = A[vi] + 1
    sch = Schedule(spread)
    inner = split(sch)
    watch(sch).tensorize(inner, vector())


@wrong("`tensorize(i_1, intrin)` of a block that computes with memory of its own",
       r"x, which stands for x0, is memory of a block that is to be replaced")
def tensorize_own_memory():
    @T.prim_func
    def scratch(C: T.Buffer((16,), "int32")):
        for i in range(16):
            with T.block("C"):
                vi = T.axis.spatial(16, i)
                x = T.alloc_buffer((16,), "int32")
                C[vi] = x[vi] + 1
    sch = Schedule(scratch)
    inner = split(sch)
    watch(sch).tensorize(inner, vector())


@wrong("`transform_layout(block, \"y\", ...)` of a view that tensorize made", r"y is a view of C")
def layout_of_view():
    sch = elementwise()
    inner = split(sch)
    one = vector()
    sch.tensorize(inner, TensorIntrin(one.desc, one.desc))
    block = next(b for b in sch.get_blocks() if b.name != "C_o")
    watch(sch).transform_layout(block, ("write", 0), lambda i: (i // 2, i % 2))


@wrong("`TensorIntrin(desc, 3)`", r"the implementation of a tensor intrinsic is a PrimFunc, not a int")
def intrinsic_of_number():
    TensorIntrin(blockless, 3)


@wrong("`TensorIntrin(desc, lowered)`: an implementation that is lowered already", r"is not in block form")
def intrinsic_of_lowered():
    TensorIntrin(blockless, tw.lower(guarded)["guarded"])


@wrong("`TensorIntrin(desc, impl)` of buffers of different dtypes", r"of the description is int32, .* int8")
def intrinsic_dtypes():
    handle = blockless.params[0]
    impl = blockless.replace(buffer_map={**blockless.buffer_map, handle: tir.decl_buffer((4,), "int8", "A")})
    TensorIntrin(blockless, impl)


@wrong("`TensorIntrin(desc, impl)` of buffers of different shapes",
       r"has the shape \(4\), A of the implementation \(5\)")
def intrinsic_shapes():
    handle = blockless.params[0]
    impl = blockless.replace(buffer_map={**blockless.buffer_map, handle: tir.decl_buffer((5,), "int32", "A")})
    TensorIntrin(blockless, impl)


@wrong("`TensorIntrin.register(3, desc, impl)`", r"the name 3 of a tensor intrinsic is not a string with characters")
def intrinsic_name():
    TensorIntrin.register(3, blockless, blockless)


def doubled(shape, reads, name):
    """A schedule of B[i, j] = reads(A, i, j) * 2, of 16 by 16"""
    a = te.placeholder(shape, name="A")
    b = te.compute((16, 16), lambda i, j: reads(a, i, j) * 2.0, name=name)
    return Schedule(te.create_prim_func([a, b]))


@functools.cache
def vectors(shape, lanes):
    """y = x * 2 of a shape, by one vector"""
    x = te.placeholder(shape, name="x")
    y = te.compute(shape, lambda *i: x(*i) * 2.0, name="y")
    at = [0] * len(shape)
    return te.decl_tensor_intrin(y.op, lambda i, o: o[0].vstore(at, i[0].vload(at, f"float32x{lanes}") * 2.0)).compute


@wrong("an intrinsic that loads a vector along an axis that is not the operand's last",
       r"vectors along the last axis of x, which is dimension 0 of A of 2 dimension\(s\)")
def vector_across_rows():
    sch = doubled((16, 16), lambda a, i, j: a[j, i], "B")
    inner = split(sch, "B", 8)
    watch(sch).tensorize(inner, vectors((8,), 8))


@wrong("an intrinsic that loads a vector from every other element",
       r"vectors along the last axis of x, which is dimension 1, in steps of 2, of A of 2 dimension\(s\)")
def vector_of_steps():
    sch = doubled((16, 32), lambda a, i, j: a[i, 2 * j], "B")
    inner = split(sch, "B", 8)
    watch(sch).tensorize(inner, vectors((8,), 8))


@wrong("an intrinsic that loads four rows of four as one vector, on a wider matrix",
       r"A has the stride 16 along dimension 0, the buffer x of the intrinsic is compact and so has the stride 4")
def vector_over_rows():
    sch = doubled((16, 16), lambda a, i, j: a[i, j], "B")
    (i0, i1), (j0, j1) = (sch.split(loop, [None, 4]) for loop in sch.get_loops("B"))
    sch.reorder(i0, j0, i1, j1)
    watch(sch).tensorize(i1, vectors((4, 4), 16))
