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

from tilewright import tir
from tilewright.rules.dot_product import DotProduct, choose_dot, dot_product
from tilewright.rules.dots import dot_of_lines
from tilewright.rules.facts import names_of
from tilewright.rules.table import Match, Work, rule
from tilewright.schedule import Schedule
from tilewright.support.target import Target
from tilewright.tir import binary, cast, const, loop, rewrite, seq, walk
from tilewright.tir.buffer import element_region

_TYPES = ("int8", "int8", "int32")


def _matches(work: Work) -> Match | None:
    """A product of signed bytes that the target computes faster when it is rewritten: more than a few rows of it."""
    product = dot_product(work.first)
    if product is None or product.types != _TYPES or dot_of_lines(work.first, work.target) is not None:
        return None
    row = choose_dot(product, work.target)
    return work.match(plan=product) if row is not None and row.shifts and work.may_be_replaced else None


@rule("signed_product", phase="rewrite", priority=10, targets=("llvm",), matches=_matches)
def shift_signed_operands(sch: Schedule, match: Match, target: Target) -> tir.PrimFunc:
    """Compute a product of signed bytes as one of unsigned bytes, and what that adds to it apart."""
    func, product = sch.func, match.plan
    root = func.body
    assert isinstance(root, tir.BlockRealize)
    new, buffers = _statements(product, names_of(func))
    nest = next(s for s in walk(root.block.body) if isinstance(s, tir.Stmt) and not isinstance(s, tir.Block)
                and _is_nest_of(s, product.facts.block))
    body = rewrite(root.block.body, lambda s: new if s is nest else None)
    block = root.block.replace(body=body, alloc_buffers=root.block.alloc_buffers + buffers)
    return func.with_body(root.replace(block=block))


def _is_nest_of(s: tir.Stmt, block: tir.Block) -> bool:
    """True for the loops around the block and nothing else."""
    while not isinstance(s, tir.BlockRealize):
        inner = getattr(s, "body", None)
        if not isinstance(inner, tir.Stmt):
            return False
        s = inner
    return s.block is block


def _statements(product: DotProduct, taken: set[str]) -> tuple[tir.Stmt, tuple[tir.Buffer, ...]]:
    a, b, c = product.a, product.b, product.facts.written
    *batch, m, n, k = (iv.domain.extent for iv in product.facts.block.iter_vars)

    def buffer(base: str, shape: Sequence[tir.Expr], kind: str) -> tir.Buffer:
        numbered = (f"{base}_{p}" for p in itertools.count(1))
        name = next(x for x in itertools.chain([base], numbered) if x not in taken)
        taken.add(name)
        return tir.Buffer(name, tuple(shape), kind)

    shape_of_a = a.indices((*batch, m, k))
    shifted, sums = buffer(f"{a.buffer.name}_shifted", shape_of_a, "uint8"), buffer(
        f"{b.buffer.name}_sum", (*batch, n), "int32")
    dot = buffer(f"{c.name}_dot", (*batch, m, n), "int32")

    def of_b(*axes: tir.Expr) -> tir.Expr:
        return cast("int32", b.buffer[b.indices(axes)])

    def shift(*axes: tir.Expr) -> tir.Store:
        unsigned = tir.Call("reinterpret", (a.buffer[axes],), "uint8")
        return tir.Store(shifted, binary("bitxor", unsigned, const(128, "uint8")), axes)

    def add_up(*axes: tir.Expr) -> tir.Store:
        at = axes[:-1]
        return tir.Store(sums, sums[at] + of_b(*axes), at)

    def multiply(*axes: tir.Expr) -> tir.Store:
        *of, i, j, r = axes
        value = cast("int32", shifted[a.indices((*of, i, r))]) * of_b(*of, j, r)
        return tir.Store(dot, dot[axes[:-1]] + value, axes[:-1])

    def compensate(*axes: tir.Expr) -> tir.Store:
        *of, _, j = axes
        column = (*of, j)
        return tir.Store(c, dot[axes] - sums[column] * 128, axes)

    stmts = [_nest(shifted.name, shape_of_a, False, shift), _nest(sums.name, (*batch, n, k), True, add_up),
             _nest(dot.name, (*batch, m, n, k), True, multiply),
             _nest(product.facts.block.name, (*batch, m, n), False, compensate)]
    return seq(stmts), (shifted, sums, dot)


def _nest(name: str, extents: Sequence[tir.Expr], reduces: bool, body: Callable[..., tir.Store]) -> tir.Stmt:
    """Loops around a block over its own axes; the last of them, where it reduces, adds up from zero."""
    spatial = len(extents) - reduces
    axes = [tir.IterVar(tir.Range(tir.IntImm(0), n), tir.Var(f"i{p}" if p < spatial else "r"),
                    tir.DATA_PARALLEL if p < spatial else tir.COMM_REDUCE) for p, n in enumerate(extents)]
    store = body(*(x.var for x in axes))
    reads = tuple(element_region(x.buffer, x.indices) for x in walk(store.value)
                  if isinstance(x, tir.Load) and x.buffer is not store.buffer)
    init = tir.Store(store.buffer, const(0, store.buffer.dtype), store.indices) if reduces else None
    block = tir.Block(name, tuple(axes), reads, (element_region(store.buffer, store.indices),), store, init)
    loops = [tir.Var(f"{x.var.name}_{name}") for x in axes]
    stmt: tir.Stmt = tir.BlockRealize(tuple(loops), const(1, "bool"), block)
    for var, extent in reversed(list(zip(loops, extents, strict=True))):
        stmt = loop(var, extent, stmt)
    return stmt
