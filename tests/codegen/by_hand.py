"""Functions whose body is written statement by statement."""
from tilewright.tir import Block, BlockRealize, BufferRegion, IntImm, PrimFunc, Range


def func_of(buffers, params, body, name="main"):
    """A function of the buffers whose root block holds body and may read and write all of them."""
    whole = tuple(BufferRegion(b, tuple(Range(IntImm(0, d.dtype), d) for d in b.shape)) for b in buffers)
    root = Block("root", (), whole, whole, body)
    return PrimFunc(params, BlockRealize((), IntImm(1, "bool"), root), dict(zip(params, buffers, strict=True)),
                    {"global_symbol": name})
