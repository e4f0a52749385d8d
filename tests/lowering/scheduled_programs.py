"""Scheduled functions built by hand, for the tests of the passes."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tilewright.tir.arithmetic import all_of, ceildiv, if_then_else
from tilewright.tir.buffer import Buffer, BufferRegion, Load, decl_buffer
from tilewright.tir.conversion import convert
from tilewright.tir.expr import Expr, IntImm, Var
from tilewright.tir.iter_var import COMM_REDUCE, DATA_PARALLEL, IterVar, Range
from tilewright.tir.node import walk
from tilewright.tir.stmt import Block, BlockRealize, PrimFunc, Stmt, Store, loop, seq

TRUE = IntImm(1, "bool")


def block(name: str, domains: Sequence[Any], values: Sequence[Expr], body: Callable[..., Stmt],
          kinds: str = "", where: Expr = TRUE, init: Callable[..., Stmt] | None = None) -> BlockRealize:
    """A realized block; kinds has one of S and R per axis (S by default)."""
    axes = [Var(f"v{n}") for n in range(len(values))]
    iters = tuple(IterVar(Range(IntImm(0), convert(d)), v, COMM_REDUCE if k == "R" else DATA_PARALLEL)
                  for d, v, k in zip(domains, axes, kinds or "S" * len(axes), strict=True))
    start, main = init(*axes) if init is not None else None, body(*axes)
    reads, writes = _regions([main] if start is None else [start, main])
    return BlockRealize(tuple(values), where, Block(name, iters, reads, writes, main, start))


def _regions(stmts: Sequence[Stmt]) -> tuple[tuple[BufferRegion, ...], tuple[BufferRegion, ...]]:
    """What statements of single elements read and write."""
    found: dict[type, dict[Buffer, BufferRegion]] = {Load: {}, Store: {}}
    for stmt in stmts:
        for node in walk(stmt):
            if isinstance(node, (Load, Store)):
                point = tuple(Range(i, IntImm(1, i.dtype)) for i in node.indices)
                found[type(node)].setdefault(node.buffer, BufferRegion(node.buffer, point))
    reads = {b: r for b, r in found[Load].items() if b not in found[Store]}
    return tuple(reads.values()), tuple(found[Store].values())


def function(name: str, buffers: Sequence[Buffer], body: Stmt, allocated: Sequence[Buffer] = ()) -> PrimFunc:
    params = tuple(Var(b.name, "handle") for b in buffers)
    root = Block("root", (), (), (), body, alloc_buffers=tuple(allocated))
    return PrimFunc(params, BlockRealize((), TRUE, root), dict(zip(params, buffers, strict=True)),
                    {"global_symbol": name, "tir.noalias": True})


def tiled_matmul(m: Any, n: Any, k: Any, tm: int = 8, tn: int = 32, tk: int = 4, pack: bool = True,
                 parallel: bool = True, vec: int = 0, fused: bool = False) -> PrimFunc:
    """C = A @ B, a tm x tn tile of C accumulated in a local buffer; vec < tn cuts the tile into vectors."""
    vec = vec or tn
    A, B, C = decl_buffer((m, k), name="A"), decl_buffer((k, n), name="B"), decl_buffer((m, n), name="C")
    tiles_m, tiles_n, steps = ceildiv(convert(m), tm), ceildiv(convert(n), tn), ceildiv(convert(k), tk)
    P = decl_buffer((tiles_n, k, tn), name="P")
    L = decl_buffer((m, n), name="C_local", scope="local")
    if fused:
        f = Var("io_jo_fused")
        io, jo = f // tiles_n, f % tiles_n
        io_loop = jo_loop = f
    else:
        io, jo = Var("io"), Var("jo")
        io_loop, jo_loop = io, jo
    ko, ki = Var("ko"), Var("ki")
    depth = ko * tk + ki

    def tile(name: str, body: Callable[..., Stmt], reduce: bool) -> Stmt:
        """The loops over one tile around a block."""
        ii, jv, ji = Var("ii"), Var("jv"), Var("ji")
        i, j = io * tm + ii, jo * tn + (jv * vec + ji if vec < tn else ji)
        terms = [(i, m, tm), (j, n, tn)] + ([(depth, k, tk)] if reduce else [])
        where = all_of(*[e < bound for e, bound, t in terms if not isinstance(bound, int) or bound % t])
        values, domains = ([i, j, depth], [m, n, k]) if reduce else ([i, j], [m, n])
        inner: Stmt = block(name, domains, values, body, "SSR" if reduce else "SS", where)
        inner = loop(ji, vec, inner, "vectorized")
        if vec < tn:
            inner = loop(jv, tn // vec, inner, "unroll")
        return loop(ii, tm, inner, "unroll")

    def source(vk: Expr, vj: Expr) -> Expr:
        return P[vj // tn, vk, vj % tn] if pack else B[vk, vj]

    init = tile("C_init", lambda vi, vj: Store(L, convert(0.0), (vi, vj)), False)
    def add(vi: Expr, vj: Expr, vk: Expr) -> Stmt:
        return Store(L, L[vi, vj] + A[vi, vk] * source(vk, vj), (vi, vj))

    update = tile("C_update", add, True)
    write = tile("C", lambda vi, vj: Store(C, L[vi, vj], (vi, vj)), False)
    body = seq([init, loop(ko, steps, loop(ki, tk, update)), write])
    if fused:
        nest: Stmt = loop(io_loop, tiles_m * tiles_n, body, "parallel" if parallel else "serial")
    else:
        nest = loop(io_loop, tiles_m, loop(jo_loop, tiles_n, body), "parallel" if parallel else "serial")
    if not pack:
        return function("matmul", (A, B, C), nest, (L,))
    pj, pk, pi = Var("pj"), Var("pk"), Var("pi")

    def packed(vj: Expr, vk: Expr, vi: Expr) -> Stmt:
        value = B[vk, vj * tn + vi]
        if not isinstance(n, int) or n % tn:
            value = if_then_else(vj * tn + vi < n, value, 0.0)
        return Store(P, value, (vj, vk, vi))

    packing = loop(pj, tiles_n, loop(pk, k, loop(pi, tn, block("P", [tiles_n, k, tn], [pj, pk, pi], packed),
                                                 "vectorized")), "parallel" if parallel else "serial")
    return function("matmul", (A, B, C), seq([packing, nest]), (P, L))
