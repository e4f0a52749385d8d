"""Small functions that several tests of the IR use."""

from tilewright.tir import (
    COMM_REDUCE,
    Block,
    BlockRealize,
    BufferRegion,
    Evaluate,
    IntImm,
    IterVar,
    PrimFunc,
    Range,
    Store,
    Var,
    const,
    convert,
    decl_buffer,
    loop,
    range_of,
)


def points(*indices):
    """The region of one element."""
    return tuple(Range(convert(i), IntImm(1)) for i in indices)


def axis(extent, name, iter_type=0, start=0):
    return IterVar(range_of(start, extent), Var(name), iter_type)


def realize(block, *values, where=True):
    return BlockRealize(tuple(map(convert, values)), convert(where), block)


def root(body, *alloc):
    return realize(Block("root", (), (), (), body, alloc_buffers=alloc))


def function(body, *params, name="f", **attrs):
    """A PrimFunc whose parameters are buffers or scalar Vars."""
    handles = [p if isinstance(p, Var) else Var(p.name, "handle") for p in params]
    buffers = {h: p for h, p in zip(handles, params) if not isinstance(p, Var)}
    return PrimFunc(tuple(handles), body, buffers, {"global_symbol": name, **attrs})


def matmul(m=4, n=5, k=6, kinds=("serial", "serial", "serial"), dtype="float32"):
    """C[i, j] = sum_k A[i, k] * B[k, j] as a reduction block; its loops are of the given kinds."""
    A, B, C = (
        decl_buffer((m, k), dtype, "A"),
        decl_buffer((k, n), dtype, "B"),
        decl_buffer((m, n), dtype, "C"),
    )
    vi, vj, vk = axis(m, "vi"), axis(n, "vj"), axis(k, "vk", COMM_REDUCE)
    i, j, r = Var("i"), Var("j"), Var("k")
    block = Block(
        "C",
        (vi, vj, vk),
        (BufferRegion(A, points(vi, vk)), BufferRegion(B, points(vk, vj))),
        (BufferRegion(C, points(vi, vj)),),
        Store(C, C[vi, vj] + A[vi, vk] * B[vk, vj], (vi.var, vj.var)),
        Store(C, const(0, dtype), (vi.var, vj.var)),
    )
    body = loop(i, m, loop(j, n, loop(r, k, realize(block, i, j, r), kinds[2]), kinds[1]), kinds[0])
    return function(root(body), A, B, C, name="matmul")


def elementwise(n, value, *inputs, dtype="float32", kind="serial", out=None):
    """for i in range(n): out[i] = value(i), without blocks."""
    out = out or decl_buffer((n,), dtype, "out")
    i = Var("i")
    return function(loop(i, n, Store(out, value(i), (i,)), kind), *inputs, out)


def nothing():
    return Evaluate(IntImm(0))
