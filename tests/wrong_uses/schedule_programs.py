"""What wrong uses of several primitives begin with."""
from __future__ import annotations

import functools

import tilewright as tw
from tilewright import te
from tilewright.schedule import Schedule
from tilewright.script import tir as T
from tilewright.tir.buffer import BufferRegion, MatchBuffer, decl_buffer
from tilewright.tir.expr import IntImm
from tilewright.tir.iter_var import Range
from tilewright.tir.node import rewrite
from tilewright.tir.stmt import Block, BlockRealize

from .programs import N, blocks, chain, matmul, script
from .wrong_use import watch


def product():
    """sch, block C, loops i, j, k of the matrix product, watched"""
    sch = blocks()
    block = sch.get_block("C")
    loops = sch.get_loops(block)
    return watch(sch), block, *loops


def unwatched_product():
    """sch, block C, loops i, j, k of the matrix product"""
    sch = blocks()
    return sch, sch.get_block("C"), *sch.get_loops("C")


def scheduled(*tensors):
    """A schedule of a program whose arguments are the placeholders and the last of tensors."""
    args = [t for t in tensors if t is tensors[-1] or not t.op.axis]
    return watch(tw.Schedule(te.create_prim_func(args, name="main")))


def rewritten(sch, fn):
    """A schedule of sch's function with its body rewritten."""
    return watch(tw.Schedule(sch.func.with_body(rewrite(sch.func.body, fn))))


def float_vector(name="A", n=N, dtype="float32"):
    return te.placeholder((n,), dtype, name=name)


def whole(buffer):
    return BufferRegion(buffer, tuple(Range(IntImm(0), d) for d in buffer.shape))


def viewed(sch, name, buffer_name):
    """sch with a view of a buffer that the block `name` uses."""
    def view(n):
        if not isinstance(n, Block) or n.name != name:
            return None
        buffer = next(r.buffer for r in (*n.reads, *n.writes) if r.buffer.name == buffer_name)
        return n.replace(match_buffers=(MatchBuffer(decl_buffer(buffer.shape, buffer.dtype, "V"), whole(buffer)),))
    return rewritten(sch, view)


def partly(sch, name):
    """sch with the block `name` running for the first rows only."""
    def less(n):
        rows = isinstance(n, BlockRealize) and n.block.name == name
        return n.replace(predicate=n.iter_values[0] < 3) if rows else None
    return rewritten(sch, less)


def two_functions():
    """A schedule of two functions, which both have a block C."""
    functions = {name: te.create_prim_func(list(matmul()), name=name) for name in ("first", "second")}
    return watch(tw.Schedule(tw.IRModule(functions)))


def diagonal():
    """A[i + 1, j] = A[i, j + 1] in a block S"""
    return script("""
for i, j in T.grid(7, 7):
    with T.block("S"):
        vi, vj = T.axis.remap("SS", [i, j])
        A[vi + 1, vj] = A[vi, vj + 1]
""")


def int_vector(n=N, name="A"):
    return te.placeholder((n,), "int32", name=name)


def watched_chain():
    """B = A + 1, C = B * 2, matrices"""
    return watch(blocks(chain))


def small_product():
    """C[i, j] = sum of A[i, k] * B[k, j], int32, with extents 5, 6, 7"""
    a, b = te.placeholder((5, 7), "int32", name="A"), te.placeholder((7, 6), "int32", name="B")
    k = te.reduce_axis((0, 7), name="k")
    return a, b, te.compute((5, 6), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")


def window(n=N):
    """B = 3*A; C[i] = B[i] + B[i + 2]"""
    a = int_vector(n + 2)
    b = te.compute((n + 2,), lambda i: a[i] * 3, name="B")
    return a, b, te.compute((n,), lambda i: b[i] + b[i + 2], name="C")


def chain_blocks(program=chain):
    """sch, block B, block C of B = A + 1, C = B * 2, watched"""
    sch = blocks(program)
    found = sch.get_block("B"), sch.get_block("C")
    return watch(sch), *found

VECTORS_OF_8 = "A: T.Buffer((8,), 'int32'), B: T.Buffer((8,), 'int32')"


def producer_and_consumer(producer, consumer="B[vi] = X[vi]", between="", size=8, arguments=VECTORS_OF_8):
    """A block P that makes X, statements between, and a block Q that uses X."""
    return script(f"""
X = T.alloc_buffer(({size},), "int32")
{over_8(producer, "P")}
{between}
{over_8(consumer, "Q")}
""", arguments)


def over_8(body, name):
    """body, a statement of vi, for vi in [0, 8) as a block; a nest of loops as it is."""
    if body.lstrip("\n").startswith("for"):
        return body.strip("\n")
    lines = "\n".join(f"        {line}" for line in body.strip("\n").splitlines())
    return f"for i in range(8):\n    with T.block(\"{name}\"):\n        vi = T.axis.spatial(8, i)\n{lines}"

VECTORS_OF_16 = "A: T.Buffer((16,), 'int32'), C: T.Buffer((16,), 'int32')"

DOUBLED = """
B = T.alloc_buffer((16,), "int32")
for i in range(16):
    with T.block("B"):
        vi = T.axis.spatial(16, i)
        B[vi] = A[vi] * 2
"""


def chain_nest():
    """sch, block B, its loops i and j of 16 iterations, watched"""
    sch = blocks(chain)
    block = sch.get_block("B")
    loops = sch.get_loops(block)
    return watch(sch), block, *loops


def scheduled_function(func):
    return watch(Schedule(func))


def inner_of_split(sch, name="C", factor=4, loop=-1):
    """The inner loop of a split"""
    return sch.split(sch.get_loops(name)[loop], [None, factor])[1]


def elementwise(n=16, reads=lambda a, i: a[i] + 1):
    """C[i] = A[i] + 1"""
    a = te.placeholder((2 * n,), "int32", name="A")
    c = te.compute((n,), lambda i: reads(a, i), name="C")
    return Schedule(te.create_prim_func([a, c]))


@functools.cache
def vector_intrinsic(count=1, extent=4, touched=4, call=False, factor=0):
    """An intrinsic that adds 1 to (or adds up) `touched` of `extent` elements"""
    ins = [te.placeholder((extent,), "int32", name=f"x{k}") for k in range(count)]
    y = te.compute((touched,), lambda i: ins[0][i] + (ins[1][i] if count > 1 else 1), name="y")
    return te.decl_tensor_intrin(y.op, lambda i, o: te.call_packed("f", *(i if call else [])),
                                 default_buffer_params={"offset_factor": factor}).compute


@T.prim_func
def guarded(A: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32")):
    for i in range(8):
        if i < 4:
            with T.block("C"):
                vi = T.axis.spatial(8, i)
                C[vi] = A[vi] + 1


@T.prim_func
def blockless(A: T.Buffer((4,), "int32"), C: T.Buffer((4,), "int32")):
    with T.block("root"):
        T.reads(A[0:4])
        T.writes(C[0:4])
        for i in range(4):
            C[i] = A[i] + 1


def tile_beside_copy(copy, use="B[vi, vj] = S[7 - vi, vj]", scope="shared", around="range(8)", size=8):
    """Loops i and j; in each iteration of i the nest `copy`, a block R over j after it, and S in a scope."""
    lines = "\n".join(f"    {line}" for line in copy.strip("\n").splitlines())
    return script(f"""
S = T.alloc_buffer(({size}, {size}), "int32", scope="{scope}")
for i in {around}:
{lines}
    for j in range(8):
        with T.block("R"):
            vi, vj = T.axis.remap("SS", [i, j])
            {use}
""")

COPY = """
for a, b in T.grid(8, 8):
    with T.block("P"):
        va, vb = T.axis.remap("SS", [a, b])
        S[va, vb] = A[va, vb]
"""

THREADS = 'T.thread_binding(8, thread="threadIdx.x")'
