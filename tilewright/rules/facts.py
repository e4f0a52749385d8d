"""What the blocks of a function are: the facts by which rules match."""
from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass

from tilewright.arith.linear import linear
from tilewright.schedule import BlockRV, Schedule
from tilewright.support.target import Target
from tilewright.tir import (
    COMM_REDUCE,
    ORDERED,
    SERIAL,
    Binary,
    Block,
    Buffer,
    Call,
    Cast,
    Expr,
    For,
    IntImm,
    Load,
    PrimFunc,
    Var,
    dtype,
    structural_equal,
    walk,
)
from tilewright.tir.ops import INTRINSICS

OWNER = "schedule_rule"          # the annotation of blocks that are left to the rule that it names
CONSTANT = "constant_params"     # the attribute of functions with the positions of parameters that never change
SYMBOLIC = 1024                  # what a size that is not known is taken for
_OF_SIZES: dict[str, Callable[[int, int], int]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "min": min, "max": max,
    "floordiv": lambda a, b: a // max(b, 1)}


@dataclass(frozen=True)
class BlockFacts:
    """spatial, reduced: extents of the block's iteration (None: symbolic); loads: its reads of memory."""
    rv: BlockRV
    block: Block
    spatial: tuple[int | None, ...]
    reduced: tuple[int | None, ...]
    loads: tuple[Load, ...]

    @property
    def is_reduction(self) -> bool:
        return bool(self.reduced)

    @property
    def is_opaque(self) -> bool:
        """Loops of its own inside (`te.extern`), or results in several buffers: few rules take it apart."""
        return len(self.block.writes) != 1 or any(isinstance(n, For) for n in walk(self.block.body))

    @property
    def written(self) -> Buffer:
        """The buffer of its (only) result."""
        return self.block.writes[0].buffer

    @property
    def register_bytes(self) -> int:
        """Bytes of an element of its result in a register: the smaller floats are computed in float32."""
        kind = self.written.dtype
        return dtype.bytes_of("float32" if kind in dtype.SMALL_FLOATS else kind)

    @property
    def spatial_axes(self) -> list[Var]:
        return [v.var for v in self.block.iter_vars if v.iter_type != COMM_REDUCE]

    @property
    def reduced_axes(self) -> list[Var]:
        return [v.var for v in self.block.iter_vars if v.iter_type == COMM_REDUCE]

    @property
    def points(self) -> int:
        """Iterations of the block; a size that is not known counts as SYMBOLIC."""
        return math.prod(_taken_for(v.domain.extent) for v in self.block.iter_vars)

    @property
    def operands(self) -> list[Load]:
        """What it reads, but for the accumulators of a reduction."""
        return [x for x in self.loads if not any(x.buffer is w.buffer for w in self.block.writes)]

    @property
    def is_contraction(self) -> bool:
        """A reduction of two factors that each miss one of the spatial axes, so that every element is read often; what
        reads one element twice has one factor."""
        if not self.is_reduction or len(self.operands) != 2 or structural_equal(self.operands[0], self.operands[1]):
            return False
        return all(any(not uses(x, v) for v in self.spatial_axes) for x in self.operands)

    @property
    def is_costly(self) -> bool:
        """Calls a function such as exp: worth neither computing twice nor without vectors."""
        return any(isinstance(n, Call) and INTRINSICS[n.op].kind != "pure" for n in walk(self.block.body))

    @property
    def runs_along_last_axis(self) -> bool:
        """The operands that vary with the last spatial axis, one at least, vary with it in steps of one element."""
        if not self.spatial:
            return False
        axis = self.spatial_axes[-1]
        varying = [x for x in self.operands if uses(x, axis)]
        return bool(varying) and all(
            steps_by_one(x.indices[-1], axis) and not any(n is axis for i in x.indices[:-1] for n in walk(i))
            for x in varying)

    def lanes(self, target: Target) -> int:
        """Elements of a vector register, of the widest type that the block touches."""
        widest = max(dtype.bytes_of(b.dtype) for b in (self.written, *(x.buffer for x in self.loads)))
        return max(1, target.vector_bytes // widest)


def _taken_for(extent: Expr) -> int:
    """An extent where each size that is not known is SYMBOLIC; that for what is no arithmetic of sizes, too."""
    match extent:
        case IntImm(value):
            return value
        case Cast(_, value):
            return _taken_for(value)
        case Binary(op, a, b) if op in _OF_SIZES:
            return max(_OF_SIZES[op](_taken_for(a), _taken_for(b)), 1)
    return SYMBOLIC


def uses(x: Load, v: Var) -> bool:
    """True when v occurs in the indices of x."""
    return any(n is v for i in x.indices for n in walk(i))


def steps_by_one(index: Expr, v: Var) -> bool:
    """True when index is v plus what does not depend on v."""
    atoms, _ = linear(index)
    return atoms.pop(v, 0) == 1 and not any(n is v for atom in atoms for n in walk(atom))


def facts_of(sch: Schedule, rv: BlockRV) -> BlockFacts:
    """The facts of a block."""
    block = sch.get(rv)
    assert isinstance(block, Block)
    extents: dict[bool, list[int | None]] = {False: [], True: []}
    for v in block.iter_vars:
        extent = v.domain.extent
        extents[v.iter_type == COMM_REDUCE].append(extent.value if isinstance(extent, IntImm) else None)
    loads = tuple(n for n in walk(block.body) if isinstance(n, Load))
    return BlockFacts(rv, block, tuple(extents[False]), tuple(extents[True]), loads)


def names_of(func: PrimFunc) -> set[str]:
    """The names of its buffers and blocks, which a rule that rewrites it gives to no others."""
    blocks = [n for n in walk(func.body) if isinstance(n, Block)]
    return {b.name for b in (*func.buffers, *(b for n in blocks for b in n.alloc_buffers))} | {n.name for n in blocks}


def is_local(sch: Schedule, facts: BlockFacts) -> bool:
    """True when the block writes no buffer that is an argument of the function."""
    return not any(facts.written is b for b in sch.func.buffers)


def is_constant(sch: Schedule, buffer: Buffer) -> bool:
    """True for an argument of the function that is the same in every call: what is made of it alone is made once."""
    func = sch.func
    return any(func.buffer_map.get(func.params[k]) is buffer for k in func.attrs.get(CONSTANT, ()))


def kernel_blocks(sch: Schedule) -> list[BlockFacts]:
    """Facts of all blocks but the root, in program order."""
    return [facts_of(sch, rv) for rv in sch.get_blocks()]


def is_unscheduled(sch: Schedule, rv: BlockRV) -> bool:
    """True when the block stands alone in a plain nest of its own axes, in order, as te.create_prim_func makes it."""
    realize, loops = sch.realize(rv), sch.loops_above(sch.realize(rv))
    if not isinstance(realize.predicate, IntImm) or len(loops) != len(realize.iter_values):
        return False
    shared = int(is_step(sch, rv))
    own = loops[shared:]
    return (all(loop.kind == SERIAL and not loop.annotations for loop in loops)
            and all(value is loop.loop_var for value, loop in zip(realize.iter_values[shared:], own))
            and all(loop.body is below for loop, below in zip(own, [*own[1:], realize])))


def is_step(sch: Schedule, rv: BlockRV) -> bool:
    """True when the block is computed in every step of a scan: its outermost loop runs a block in order."""
    loops = sch.loops_above(sch.realize(rv))
    return bool(loops) and any(iv.iter_type == ORDERED for s in walk(loops[0]) if isinstance(s, Block)
                               for iv in s.iter_vars)
