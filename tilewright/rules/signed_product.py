"""Products of signed bytes for targets whose instruction takes unsigned ones: A is shifted by 128 once and for all.

    C[i, j] = sum over k of A[i, k] * B[k, j]
->
    A_shifted[i, k] = A[i, k] + 128                                     as uint8
    B_sum[j] = sum over k of B[k, j]
    C_dot[i, j] = sum over k of A_shifted[i, k] * B[k, j]
    C[i, j] = C_dot[i, j] - 128 * B_sum[j]

Exact: int32 arithmetic wraps, so distributivity holds in it whatever the sums are. (oneDNN's compensation for int8
does the same.)
"""
from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

from tilewright.rules.dot_product import DotProduct, choose_dot, dot_product
from tilewright.rules.table import Match, Work, rule
from tilewright.schedule import Schedule
from tilewright.support.target import Target
from tilewright.tir import (
    COMM_REDUCE,
    DATA_PARALLEL,
    Block,
    BlockRealize,
    Buffer,
    Call,
    Expr,
    IntImm,
    IterVar,
    Load,
    PrimFunc,
    Range,
    Stmt,
    Store,
    Var,
    binary,
    cast,
    const,
    loop,
    rewrite,
    seq,
    walk,
)
from tilewright.tir.buffer import element_region

_TYPES = ("int8", "int8", "int32")


def _matches(work: Work) -> Match | None:
    """A product of signed bytes that the target computes faster when it is rewritten."""
    product = dot_product(work.first)
    if product is None or product.types != _TYPES:
        return None
    row = choose_dot(product, work.target)
    return work.match(plan=product) if row is not None and row.shifts else None


@rule("signed_product", phase="rewrite", priority=10, targets=("llvm",), matches=_matches)
def shift_signed_operands(sch: Schedule, match: Match, target: Target) -> PrimFunc:
    """Compute a product of signed bytes as one of unsigned bytes, and what that adds to it apart."""
    func, product = sch.func, match.plan
    root = func.body
    assert isinstance(root, BlockRealize)
    new, buffers = _statements(product, {b.name for b in _names(func)})
    nest = next(s for s in walk(root.block.body) if isinstance(s, Stmt) and not isinstance(s, Block)
                and _is_nest_of(s, product.facts.block))
    body = rewrite(root.block.body, lambda s: new if s is nest else None)
    block = root.block.replace(body=body, alloc_buffers=root.block.alloc_buffers + buffers)
    return func.with_body(root.replace(block=block))


def _names(func: PrimFunc) -> list[Buffer | Block]:
    blocks = [n for n in walk(func.body) if isinstance(n, Block)]
    return [*func.buffers, *(b for n in blocks for b in n.alloc_buffers), *blocks]


def _is_nest_of(s: Stmt, block: Block) -> bool:
    """True for the loops around the block and nothing else."""
    while not isinstance(s, BlockRealize):
        inner = getattr(s, "body", None)
        if not isinstance(inner, Stmt):
            return False
        s = inner
    return s.block is block


def _statements(product: DotProduct, taken: set[str]) -> tuple[Stmt, tuple[Buffer, ...]]:
    a, b, c = product.a, product.b, product.facts.written
    batch, (m, n, k) = product.batch, product.extents

    def buffer(base: str, shape: Sequence[int], kind: str) -> Buffer:
        numbered = (f"{base}_{p}" for p in itertools.count(1))
        name = next(x for x in itertools.chain([base], numbered) if x not in taken)
        taken.add(name)
        return Buffer(name, tuple(IntImm(e) for e in shape), kind)

    shape_of_a = a.indices((*batch, m, k))
    shifted, sums = buffer(f"{a.buffer.name}_shifted", shape_of_a, "uint8"), buffer(
        f"{b.buffer.name}_sum", (*batch, n), "int32")
    dot = buffer(f"{c.name}_dot", (*batch, m, n), "int32")

    def of_b(*axes: Expr) -> Expr:
        return cast("int32", b.buffer[b.indices(axes)])

    def shift(*axes: Expr) -> Store:
        return Store(shifted, binary("bitxor", Call("reinterpret", (a.buffer[axes],), "uint8"), const(128, "uint8")),
                     axes)

    def add_up(*axes: Expr) -> Store:
        at = axes[:-1]
        return Store(sums, sums[at] + of_b(*axes), at)

    def multiply(*axes: Expr) -> Store:
        *of, i, j, r = axes
        value = cast("int32", shifted[a.indices((*of, i, r))]) * of_b(*of, j, r)
        return Store(dot, dot[axes[:-1]] + value, axes[:-1])

    def compensate(*axes: Expr) -> Store:
        *of, _, j = axes
        column = (*of, j)
        return Store(c, dot[axes] - sums[column] * 128, axes)

    stmts = [_nest(shifted.name, shape_of_a, False, shift), _nest(sums.name, (*batch, n, k), True, add_up),
             _nest(dot.name, (*batch, m, n, k), True, multiply),
             _nest(product.facts.block.name, (*batch, m, n), False, compensate)]
    return seq(stmts), (shifted, sums, dot)


def _nest(name: str, extents: Sequence[int], reduces: bool, body: Callable[..., Store]) -> Stmt:
    """Loops around a block over its own axes; the last of them, where it reduces, adds up from zero."""
    spatial = len(extents) - reduces
    axes = [IterVar(Range(IntImm(0), IntImm(n)), Var(f"i{p}" if p < spatial else "r"),
                    DATA_PARALLEL if p < spatial else COMM_REDUCE) for p, n in enumerate(extents)]
    store = body(*(x.var for x in axes))
    reads = tuple(element_region(x.buffer, x.indices) for x in walk(store.value)
                  if isinstance(x, Load) and x.buffer is not store.buffer)
    init = Store(store.buffer, const(0, store.buffer.dtype), store.indices) if reduces else None
    block = Block(name, tuple(axes), reads, (element_region(store.buffer, store.indices),), store, init)
    loops = [Var(f"{x.var.name}_{name}") for x in axes]
    stmt: Stmt = BlockRealize(tuple(loops), const(1, "bool"), block)
    for var, extent in reversed(list(zip(loops, extents, strict=True))):
        stmt = loop(var, extent, stmt)
    return stmt
