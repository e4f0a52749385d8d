"""Iterations of blocks: an einsum runs over padded operands."""
from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence

from tilewright.arith.analyzer import Analyzer
from tilewright.schedule.analysis.dataflow import block_statements, loads_of, require_leaf, same_indices
from tilewright.schedule.analysis.domains import Interval, domain_of
from tilewright.schedule.analysis.ordering import place_in
from tilewright.schedule.analysis.reducers import OPERATORS
from tilewright.schedule.primitive import primitive
from tilewright.schedule.primitives.block_layout import own_loops
from tilewright.schedule.primitives.caching import require_written
from tilewright.schedule.primitives.nest import nest
from tilewright.schedule.schedule import Schedule
from tilewright.schedule.state import BlockRV
from tilewright.support.errors import legal, require
from tilewright.tir.arithmetic import all_of, binary, ceildiv, if_then_else, minimum
from tilewright.tir.buffer import Buffer, Load, element_region
from tilewright.tir.conversion import cast, const, is_const
from tilewright.tir.dtype import is_integer
from tilewright.tir.expr import Binary, Call, Cast, Expr, FloatImm, IntImm, Var
from tilewright.tir.iter_var import COMM_REDUCE, DATA_PARALLEL, IterVar, Range
from tilewright.tir.node import Node, rewrite, substitute, walk
from tilewright.tir.ops import INTRINSICS
from tilewright.tir.stmt import Block, BlockRealize, For, Stmt, Store, seq
from tilewright.tir.symbols import replace_buffers


@primitive
def pad_einsum(sch: Schedule, block: BlockRV, padding: Sequence[int]) -> None:
    """Round the extents of an einsum block's iteration variables up, with padded copies of what it reads and writes.

        for i, j, k in grid(127, 127, 127): C[i, j] += A[i, k] * B[k, j]
    ->
        for i, k in grid(128, 128): A_pad[i, k] = if_then_else(i < 127 and k < 127, A[i, k], 0)
        for k, j in grid(128, 128): B_pad[k, j] = if_then_else(k < 127 and j < 127, B[k, j], 0)
        for i, j, k in grid(128, 128, 128): C_pad[i, j] += A_pad[i, k] * B_pad[k, j]
        for i, j in grid(127, 127): C[i, j] = C_pad[i, j]                               # padding [32, 32, 32]

    padding: for each iteration variable of the block the factor of which its new extent is a multiple; 1 leaves it.
    A buffer that no padded variable indexes is used as it is. Padding of the inputs is the identity of the reduction:
    0 for a sum, the least value for a maximum. The copies are blocks NAME_pad right before and after the block's loops.

    Legal when
    - all indices of the block are constants or single iteration variables;
    - each loop drives one of these over its domain;
    - the block starts the values that it writes;
    - a step of the reduction on padding changes nothing;
    - all of what the copies of the inputs read is written by then.
    """
    realize = sch.realize(block)
    require_leaf(sch, realize)
    loops = own_loops(sch, realize)
    old = realize.block
    factors = _factors(realize, padding)
    store = _only_store(realize)
    points = _points(realize)
    analyzer = sch.analyzer_at(None)
    extents: dict[Var, Expr] = {}
    for iv, f in zip(old.iter_vars, factors, strict=True):
        size = iv.domain.extent
        extents[iv.var] = analyzer.simplify(binary("mul", ceildiv(size, f), f)) if f > 1 else size
    grown = {iv.var: iv for iv in old.iter_vars if not analyzer.equal(extents[iv.var], iv.domain.extent)}
    _require_own_values(realize, store, grown)
    _require_harmless(realize, store, grown.values())
    copies: dict[Buffer, Buffer] = {}
    for buffer, indices in points.items():
        if any(i in grown for i in indices):
            copies[buffer] = _padded(sch, buffer, indices, extents, [b.name for b in copies.values()])
    whole = loops[0] if loops else realize
    place = place_in(sch, sch.index.loops_above(whole))
    for buffer in copies:
        if buffer is not store.buffer:
            _require_inside(realize, buffer, points[buffer], analyzer)
            require_written(sch, buffer, [_range(i, old) for i in points[buffer]], [realize], place, whole)
    op = _combiner(store)[0]
    parts = [_pad(buffer, copies[buffer], points[buffer], old, extents, OPERATORS[op](buffer.dtype), analyzer)
             for buffer in copies if buffer is not store.buffer]
    parts.append(_with_extents(loops, realize, _on_copies(old, copies, extents), extents))
    if store.buffer in copies:
        parts.append(_slice(copies[store.buffer], store.buffer, store.indices, old, analyzer))
    sch.replace(whole, seq(parts))
    sch.add_alloc(*copies.values())


def _require_inside(realize: BlockRealize, buffer: Buffer, indices: Sequence[Expr], analyzer: Analyzer) -> None:
    """The copy, which has no condition of the block's, stores at the constants among the indices."""
    for n, (index, extent) in enumerate(zip(indices, buffer.shape, strict=True)):
        legal(isinstance(index, Var) or analyzer.prove(binary("lt", index, extent)),
              f"the copy of {buffer.name} would read index {index} of dimension {n}, which has the extent {extent}; "
              f"block {realize.block.name} may not", realize, hint="cache_read what the block reads first")


def _range(index: Expr, block: Block) -> Interval:
    """The values of an index, a constant or a variable of the block."""
    return next((domain_of(iv) for iv in block.iter_vars if iv.var is index), (index, IntImm(1, index.dtype)))


def _factors(realize: BlockRealize, padding: Sequence[int]) -> list[int]:
    count = len(realize.block.iter_vars)
    given = list(padding) if isinstance(padding, (list, tuple)) else None
    require(given is not None and len(given) == count,
            f"padding is {padding!r}, not one factor for each of the {count} variables of block {realize.block.name}",
            realize)
    assert given is not None
    factors = [f.value if isinstance(f, IntImm) else f for f in given]
    for f in factors:
        require(type(f) is int and f > 0, f"the factor {f!r} is not a positive integer", realize)
    return factors


def _only_store(realize: BlockRealize) -> Store:
    body = realize.block.body
    require(isinstance(body, Store) and len(realize.block.writes) == 1,
            f"block {realize.block.name} does more than one store", realize)
    assert isinstance(body, Store)
    require(realize.block.init is None or isinstance(realize.block.init, Store),
            f"the init of block {realize.block.name} does more than one store", realize)
    return body


def _points(realize: BlockRealize) -> dict[Buffer, tuple[Expr, ...]]:
    """For each buffer the indices at which the block touches it. Refuses what is no einsum."""
    block = realize.block
    variables = {iv.var for iv in block.iter_vars}
    out: dict[Buffer, tuple[Expr, ...]] = {}
    touched: list[Store | Load] = [*loads_of(block_statements(block))]
    touched += [s for s in block_statements(block) if isinstance(s, Store)]
    for t in touched:
        used = [i for i in t.indices if not isinstance(i, IntImm)]
        require(all(i in variables for i in used) and len(set(used)) == len(used),
                f"block {block.name} uses {t.buffer.name}[{', '.join(map(str, t.indices))}]: an index is neither one "
                "variable of the block nor a constant", realize, hint="pad_einsum is for products such as matmul")
        known = out.setdefault(t.buffer, t.indices)
        require(same_indices(known, t.indices), f"block {block.name} uses {t.buffer.name} at two places", realize)
    return out


# ---- what padding must be

def _require_own_values(realize: BlockRealize, store: Store, grown: Mapping[Var, IterVar]) -> None:
    """What the block writes depends on nothing that was there before, and padding is written beside it."""
    block = realize.block
    kinds = {iv.var: iv.iter_type for iv in block.iter_vars}
    own = loads_of(block_statements(block), store.buffer)
    begun = block.init is not None and not loads_of([block.init], store.buffer)
    starts = begun or not own and COMM_REDUCE not in kinds.values()
    apart = all((kinds[v] == DATA_PARALLEL) == any(i is v for i in store.indices) for v in grown)
    legal(starts and apart and all(k in (DATA_PARALLEL, COMM_REDUCE) for k in kinds.values()),
          f"block {block.name} does not give each element of {store.buffer.name} one value that it starts itself",
          realize, hint="call pad_einsum before decompose_reduction")


_IDEMPOTENT = ("max", "min", "bitor", "bitand")


def _combiner(store: Store) -> tuple[str, Expr | None]:
    """(op, e) of a block that stores own op e, op one of OPERATORS; ("add", None) of others."""
    value = store.value
    if isinstance(value, Binary) and value.op in OPERATORS:
        own = [isinstance(e, Load) and e.buffer is store.buffer for e in (value.a, value.b)]
        if own[0] != own[1]:
            return value.op, value.b if own[0] else value.a
    return "add", None


def _require_harmless(realize: BlockRealize, store: Store, grown: Iterable[IterVar]) -> None:
    """The value can be computed on padding, and a step of a reduction there leaves the result as it is."""
    name, (op, step) = realize.block.name, _combiner(store)
    for n in walk(store.value):
        legal(not (isinstance(n, Call) and INTRINSICS[n.op].kind == "effect"),
              f"block {name} calls {n}, which may have an effect, on padding as well", realize)
    for iv in grown:
        if iv.iter_type == COMM_REDUCE:
            legal(step is not None and _is_neutral(op, step, iv.var),
                  f"block {name} reduces over {iv.var.name}, and a step on padding is not known to change nothing",
                  realize, hint=f"pad other variables, or let every factor depend on {iv.var.name}")


def _is_neutral(op: str, step: Expr, var: Var) -> bool:
    """True when a step with var in the padding changes nothing: it gives the identity of op, or repeats a step."""
    if op in _IDEMPOTENT and not any(n is var for n in walk(step)):
        return True
    padded = _on_padding(step, var, op)
    return isinstance(padded, (IntImm, FloatImm)) and bool(padded.equal(OPERATORS[op](padded.dtype)))


def _on_padding(e: Expr, var: Var, op: str) -> Expr:
    """e where the loads that var indexes give the identity of op, folded."""
    def step(n: Node) -> Node | None:
        if isinstance(n, Load):
            return OPERATORS[op](n.dtype) if any(i is var for i in n.indices) else None
        if isinstance(n, Cast) and isinstance(n.value, (IntImm, FloatImm)):
            return cast(n.type, n.value)
        if not isinstance(n, Binary) or n.op not in _FOLDS:
            return None
        if n.op == "mul" and is_integer(n.dtype) and any(is_const(x, 0) for x in (n.a, n.b)):
            return const(0, n.dtype)
        if isinstance(n.a, IntImm) and isinstance(n.b, IntImm):
            return binary(n.op, n.a, n.b)
        if isinstance(n.a, FloatImm) and isinstance(n.b, FloatImm):
            return _rounded(n.op, n.a, n.b)
        return None
    return rewrite(e, step)


def _rounded(op: str, a: FloatImm, b: FloatImm) -> Expr | None:
    """a op b where no rounding can occur."""
    plain = all(x.value in (0, 1) or math.isinf(x.value) for x in (a, b))
    return const(_FOLDS[op](a.value, b.value), a.dtype) if plain or op in ("max", "min") else None


_FOLDS: Mapping[str, Callable[..., float]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "max": max, "min": min,
}


# ---- the padded program

def _padded(sch: Schedule, buffer: Buffer, indices: Sequence[Expr], extents: Mapping[Var, Expr],
            taken: Sequence[str]) -> Buffer:
    """A buffer for the rounded extents of the variables that index it."""
    shape = tuple(extents[i] if isinstance(i, Var) else d for i, d in zip(indices, buffer.shape, strict=True))
    name = sch.fresh_block(f"{buffer.name}_pad")
    name = sch.fresh_block(f"{name}_{len(taken)}") if name in taken else name
    return Buffer(name, shape, buffer.dtype, scope=buffer.scope)


def _pad(buffer: Buffer, padded: Buffer, indices: Sequence[Expr], block: Block, extents: Mapping[Var, Expr],
         fill: Expr, analyzer: Analyzer) -> Stmt:
    """padded[i, ...] = buffer[i, ...] where i is in the block's domain and in buffer, else fill."""
    iter_vars, fresh = _axes(indices, extents)
    size = dict(zip(indices, buffer.shape, strict=True))
    conditions = []
    for iv in block.iter_vars:
        if iv.var not in fresh:
            continue
        end = iv.domain.extent
        if not analyzer.prove(binary("le", end, size[iv.var])):          # the block reads under a condition of its own
            end = minimum(end, size[iv.var])
        if not analyzer.equal(end, extents[iv.var]):
            conditions.append(binary("lt", fresh[iv.var], analyzer.simplify(end)))
    at = tuple(substitute(i, fresh) for i in indices)
    value = if_then_else(all_of(*conditions), Load(buffer, at), fill)
    return _copy(padded.name, iter_vars, buffer, padded, at, value, analyzer)


def _slice(padded: Buffer, buffer: Buffer, indices: Sequence[Expr], block: Block, analyzer: Analyzer) -> Stmt:
    """buffer[i, ...] = padded[i, ...] over the block's domain."""
    extents = {iv.var: iv.domain.extent for iv in block.iter_vars}
    iter_vars, fresh = _axes(indices, extents)
    at = tuple(substitute(i, fresh) for i in indices)
    return _copy(padded.name, iter_vars, padded, buffer, at, Load(padded, at), analyzer)


def _axes(indices: Sequence[Expr], extents: Mapping[Var, Expr]) -> tuple[
        tuple[IterVar, ...], dict[Var, Expr]]:
    """New iteration variables for those in indices, in the order of the indices."""
    fresh: dict[Var, Expr] = {i: Var(i.name, i.dtype) for i in indices if isinstance(i, Var)}
    made = [IterVar(Range(IntImm(0, v.dtype), extents[v]), var, DATA_PARALLEL) for v, var in fresh.items()
            if isinstance(var, Var)]
    return tuple(made), fresh


def _copy(name: str, iter_vars: tuple[IterVar, ...], source: Buffer, target: Buffer, at: tuple[Expr, ...],
          value: Expr, analyzer: Analyzer) -> Stmt:
    block = Block(name, iter_vars, (element_region(source, at),), (element_region(target, at),),
                  Store(target, value, at))
    with analyzer.scope():
        return nest(block, {}, analyzer, preserve_unit_loops=True)


def _on_copies(block: Block, copies: Mapping[Buffer, Buffer], extents: Mapping[Var, Expr]) -> Block:
    """The block on the padded buffers, over the rounded extents."""
    iter_vars = tuple(iv.replace(dom=Range(IntImm(0, iv.var.dtype), extents[iv.var])) for iv in block.iter_vars)
    return replace_buffers(block, copies).replace(iter_vars=iter_vars)


def _with_extents(loops: Sequence[For], realize: BlockRealize, block: Block, extents: Mapping[Var, Expr]) -> Stmt:
    """The loops of the block, each over the new extent of the variable that it drives."""
    drives = {value: extents[iv.var] for iv, value in realize.bound}
    out: Stmt = realize.replace(block=block)
    for loop in reversed(loops):
        out = loop.replace(extent=drives[loop.loop_var], body=out)
    return out
