"""How the functions of a tensor intrinsic are put together."""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from tilewright.tir.buffer import Buffer, BufferRegion, Load, element_region, whole_region
from tilewright.tir.expr import Expr, IntImm, Var
from tilewright.tir.iter_var import COMM_REDUCE, DATA_PARALLEL, IterVar
from tilewright.tir.node import walk
from tilewright.tir.stmt import Block, BlockRealize, PrimFunc, Stmt, Store, loop, range_of


def operand(name: str, shape: Sequence[int], dtype: str, strided: bool = False) -> Buffer:
    """A parameter of an implementation at any offset; `strided`: rows at any distance, else compact."""
    compact = [math.prod(shape[k + 1:]) for k in range(len(shape))]
    strides: list[Expr] = [IntImm(s) if s == 1 or not strided else Var(f"{name}_s{k}") for k, s in enumerate(compact)]
    return Buffer(name, tuple(IntImm(n) for n in shape), dtype, strides=tuple(strides),
                  elem_offset=Var(f"{name}_offset"), offset_factor=1)


def described(name: str, shape: Sequence[int], dtype: str) -> Buffer:
    """A parameter of a description."""
    return Buffer(name, tuple(IntImm(n) for n in shape), dtype, offset_factor=1)


def description(name: str, buffers: Sequence[Buffer], extents: Sequence[int], reduced: Sequence[bool],
                body: Callable[..., Store]) -> PrimFunc:
    """A nest over one block whose body is body(axes...); an axis is a reduction where `reduced` says so."""
    axes = [IterVar(range_of(0, n), Var(f"v{k}"), COMM_REDUCE if r else DATA_PARALLEL)
            for k, (n, r) in enumerate(zip(extents, reduced, strict=True))]
    store = body(*(a.var for a in axes))
    reads = tuple(element_region(x.buffer, x.indices) for x in walk(store.value) if isinstance(x, Load))
    block = Block(name, tuple(axes), reads, (element_region(store.buffer, store.indices),), store)
    loops = [Var(f"i{k}") for k in range(len(axes))]
    stmt: Stmt = BlockRealize(tuple(loops), IntImm(1, "bool"), block)
    for var, extent in reversed(list(zip(loops, extents, strict=True))):
        stmt = loop(var, extent, stmt)
    return _function(f"{name}_desc", buffers, stmt)


def implementation(name: str, buffers: Sequence[Buffer], written: Buffer, also_read: bool, body: Stmt) -> PrimFunc:
    """`body` as the root block, reading all buffers (the one written only if also_read)."""
    reads = tuple(whole_region(b) for b in buffers if b is not written or also_read)
    return _function(f"{name}_impl", buffers, body, reads, (whole_region(written),))


def _function(name: str, buffers: Sequence[Buffer], body: Stmt, reads: tuple[BufferRegion, ...] = (),
              writes: tuple[BufferRegion, ...] = ()) -> PrimFunc:
    params = tuple(Var(b.name.lower(), "handle") for b in buffers)
    root = BlockRealize((), IntImm(1, "bool"), Block("root", (), reads, writes, body))
    return PrimFunc(params, root, dict(zip(params, buffers, strict=True)), {"global_symbol": name})
