"""Splits a scheduled function whose arguments are partly constant: what follows from these alone is computed before.

Schedules pack operands, or transform them, in blocks of their own. Where all that such a block reads is constant, it
need not run at each call: it becomes part of a second function, and its result an argument of the first.
"""
from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from tilewright.tir import Block, BlockRealize, Buffer, Evaluate, For, IntImm, PrimFunc, Seq, Stmt, Var, seq
from tilewright.tir.accesses import uses_below
from tilewright.tir.iter_var import DATA_PARALLEL
from tilewright.tir.node import statements
from tilewright.tir.stmt import PARALLEL, SERIAL, map_sub_statements
from tilewright.tir.symbols import free_vars, fresh_copy

MOST_GROWTH = 8                      # a result of more bytes than this many times what it is made of is not kept


@dataclass(frozen=True)
class Split:
    """main: the function, with `prepared` buffers as parameters behind the inputs in `kept`; prepare: writes these.

    kept: positions of the parameters of the original function that main still has, `read`: those that prepare has.
    """
    main: PrimFunc
    prepare: PrimFunc
    prepared: tuple[Buffer, ...]
    kept: tuple[int, ...]
    read: tuple[int, ...]


def hoist_constants(func: PrimFunc, constant: Collection[int]) -> Split | None:
    """The two functions of a function in block form of which the parameters at some positions never change.

    None where no block depends on these alone. A block is taken out that is data-parallel, alone writes an allocated
    buffer, and reads constant parameters and buffers of such blocks only.
    """
    root = func.body.block if isinstance(func.body, BlockRealize) else None
    if root is None:
        return None
    known = {func.buffer_map[func.params[k]] for k in constant if func.params[k] in func.buffer_map}
    found = _constant_blocks(root, known)
    if not found:
        return None
    taken = {id(r) for r in found.values()}
    rest = _without(root.body, taken)
    used = {u.buffer for u in uses_below(rest)} | {b for s in statements(rest) for b in _declared(s)}
    prepared = tuple(b for b in found if b in used)
    if not prepared:
        return None
    allocated = tuple(b for b in root.alloc_buffers if b not in found)
    inputs = [(k, p) for k, p in enumerate(func.params)]
    kept = tuple(k for k, p in inputs if k not in constant or func.buffer_map[p] in used)
    params = {b: Var(b.name, "handle") for b in prepared}
    first_result = min((k for k in kept if k not in constant and _is_written(func, k)), default=len(func.params))
    order = [func.params[k] for k in kept if k < first_result]
    order += [*params.values(), *(func.params[k] for k in kept if k >= first_result)]
    mine = set(order)
    buffers = {**{p: b for p, b in func.buffer_map.items() if p in mine}, **{p: b for b, p in params.items()}}
    main = func.replace(params=tuple(order), buffer_map=buffers,
                        body=func.body.replace(block=root.replace(body=rest, alloc_buffers=allocated)))
    read = tuple(k for k, p in inputs if k in constant and any(
        u.buffer is func.buffer_map[p] for r in found.values() for u in uses_below(r)))
    return Split(main, _prepare(func, found, prepared, read), prepared, kept, read)


def _constant_blocks(root: Block, known: set[Buffer]) -> dict[Buffer, BlockRealize]:
    """The buffers that blocks make of constants, in order, each with the block."""
    realizes = [s for s in statements(root.body) if isinstance(s, BlockRealize)]
    writers: dict[Buffer | None, int] = {}
    for r in realizes:
        for b in {u.buffer for u in uses_below(r.block.body) if u.writes}:
            writers[b] = writers.get(b, 0) + 1
    allocated = {b for b in root.alloc_buffers if b.scope in ("", "global")}
    ready, found = set(known), {}
    for r in realizes:
        target = _made_of(r, ready)
        if target is not None and target in allocated and writers[target] == 1 and not _grows(target, r):
            ready.add(target)
            found[target] = r
    return found


def _made_of(realize: BlockRealize, ready: set[Buffer]) -> Buffer | None:
    """The buffer that a block writes, where it is a function of its axes and of `ready` buffers alone."""
    block = realize.block
    plain = not (block.init or block.alloc_buffers or block.match_buffers)
    if not plain or any(iv.iter_type != DATA_PARALLEL for iv in block.iter_vars):
        return None
    if any(isinstance(s, (Evaluate, BlockRealize)) for s in statements(block.body)):
        return None
    axes = {iv.var for iv in block.iter_vars}
    if any(not isinstance(iv.domain.extent, IntImm) for iv in block.iter_vars) or set(free_vars(block.body)) - axes:
        return None
    written = {u.buffer for u in uses_below(block.body) if u.writes}
    if len(written) != 1 or None in written:
        return None
    target, = written
    read = {u.buffer for u in uses_below(block.body) if u.reads and u.buffer is not target}
    itself = any(u.reads and u.buffer is target for u in uses_below(block.body))
    return target if read and read <= ready and not itself else None


def _grows(target: Buffer, realize: BlockRealize) -> bool:
    def elements(b: Buffer) -> int:
        n = 1
        for e in b.shape:
            n *= e.value if isinstance(e, IntImm) else 1
        return n
    sources = {u.buffer for u in uses_below(realize.block.body) if u.reads and u.buffer is not None}
    return elements(target) > MOST_GROWTH * sum(map(elements, sources))


def _without(stmt: Stmt, taken: set[int]) -> Stmt:
    """stmt without some block realizations, and without loops around nothing else."""
    if id(stmt) in taken:
        return Seq(())
    new = map_sub_statements(stmt, lambda s: _without(s, taken))
    if isinstance(new, Seq):
        return seq(s for s in new.stmts if not _is_empty(s))
    if new is not stmt and any(_is_empty(s) for s in _bodies(new)) and isinstance(new, For):
        return Seq(())
    return new


def _bodies(stmt: Stmt) -> list[Stmt]:
    return [stmt.body] if isinstance(stmt, For) else []


def _is_empty(stmt: Stmt) -> bool:
    return isinstance(stmt, Seq) and not stmt.stmts


def _declared(stmt: Stmt) -> list[Buffer]:
    block = stmt.block if isinstance(stmt, BlockRealize) else None
    return [] if block is None else [r.buffer for r in (*block.reads, *block.writes)]


def _is_written(func: PrimFunc, position: int) -> bool:
    buffer = func.buffer_map.get(func.params[position])
    return buffer is None or any(u.writes and u.touches(buffer) for u in uses_below(func.body))


def _prepare(func: PrimFunc, found: dict[Buffer, BlockRealize], prepared: tuple[Buffer, ...],
             read: tuple[int, ...]) -> PrimFunc:
    """The function that computes the prepared buffers: each block over all of its axes."""
    nests = []
    for r in found.values():
        axes = r.block.iter_vars
        loops = [Var(iv.var.name, iv.var.dtype) for iv in axes]
        nest: Stmt = BlockRealize(tuple(loops), IntImm(1, "bool"), r.block)
        for k, (v, iv) in reversed(list(enumerate(zip(loops, axes)))):
            nest = For(v, iv.domain.min, iv.domain.extent, PARALLEL if k == 0 else SERIAL, nest)
        nests.append(nest)
    outs = {Var(b.name, "handle"): b for b in prepared}
    params = (*(func.params[k] for k in read), *outs)
    buffers = {**{func.params[k]: func.buffer_map[func.params[k]] for k in read}, **outs}
    root = Block("root", (), (), (), seq(nests), alloc_buffers=tuple(b for b in found if b not in prepared))
    made = PrimFunc(params, BlockRealize((), IntImm(1, "bool"), root), buffers,
                    {"global_symbol": f"{func.name}_prepare", "tir.noalias": True})
    return fresh_copy(made)
