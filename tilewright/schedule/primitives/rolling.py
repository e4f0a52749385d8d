"""Memory of buffers: what neighbouring iterations share is kept.

A sliding window with a circular buffer, as in Halide's sliding window optimisation and storage folding (Ragan-Kelley
et al., PLDI 2013); the primitive and its predicate are TVM's.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.arith.linear import linear
from tilewright.schedule.analysis.dataflow import (
    holds_blocks,
    is_output,
    readers_of,
    require_stage,
    takes_address,
)
from tilewright.schedule.analysis.density import is_dense
from tilewright.schedule.analysis.domains import Interval
from tilewright.schedule.analysis.iteration import beyond_domain, require_no_branch
from tilewright.schedule.analysis.mixed_radix import bindings
from tilewright.schedule.analysis.ordering import BEFORE, changing_input, order, place_in
from tilewright.schedule.analysis.parts import common_loops, loops_within
from tilewright.schedule.analysis.required import Place, inside, relaxed
from tilewright.schedule.outside import outside_of
from tilewright.schedule.primitive import primitive
from tilewright.schedule.primitives.caching import chosen
from tilewright.schedule.schedule import Schedule
from tilewright.schedule.state import BlockRV
from tilewright.support.errors import legal, require
from tilewright.tir.arithmetic import all_of, any_of, binary
from tilewright.tir.buffer import Buffer, BufferRegion, Load, MatchBuffer
from tilewright.tir.expr import Expr, IntImm, Var
from tilewright.tir.iter_var import COMM_REDUCE, OPAQUE, Range
from tilewright.tir.node import Node, rewrite, substitute, walk
from tilewright.tir.stmt import SERIAL, THREAD_BINDING, UNROLLED, Block, BlockRealize, For, Store


@dataclass(frozen=True)
class Window:
    """How one dimension of what an iteration computes moves: from low, `extent` elements, `step` further with loop."""
    dim: int
    loop: For
    position: int                                          # of loop among the loops around producer and consumers
    low: Expr
    extent: int
    step: int

    @property
    def overlap(self) -> int:
        """How many elements the iteration of loop before has computed as well."""
        return self.extent - self.step


@primitive
def rolling_buffer(sch: Schedule, block: BlockRV, write_buffer_index: int) -> None:
    """Compute, in each iteration of a loop, only what the one before has not, and keep the rest in a circular buffer.

        for y in range(64):
            for i in range(3): B[y + i] = f(y + i)                      # compute_at put B here
            C[y] = B[y] + B[y + 1] + B[y + 2]
    ->
        for y in range(64):
            for i in range(3):
                if y == 0 or i >= 2: B[(y + i) % 3] = f(y + i)
            C[y] = B[y % 3] + B[(y + 1) % 3] + B[(y + 2) % 3]

    write_buffer_index: the position of the buffer among those that block writes. The buffer becomes circular along the
    dimension that moves with the outermost of the loops around the block and its readers whose iterations overlap;
    along dimensions that move with a loop further inside, nothing is computed twice either. The iteration variables
    that move are opaque from now on: their iterations must stay in order.

    Legal when
    - the function allocates the buffer;
    - the block alone gives its buffers values, each depending on nothing else;
    - each iteration of the loops around the block and all readers computes all that they read there, a box that moves
      with one loop for each dimension;
    - the loops from the circular one inwards run in order.
    """
    realize = sch.realize(block)
    require_stage(sch, realize)
    region = chosen(realize, realize.block.writes, write_buffer_index, "writes")
    buffer = region.buffer
    require(not is_output(sch, buffer), f"{buffer.name} is an argument of the function", realize,
            hint="cache_write makes a buffer that may be circular")
    require(len(realize.block.writes) == 1, f"block {realize.block.name} writes more than one buffer", realize)
    readers = [r for r in readers_of(sch, buffer) if r is not realize]
    require(bool(readers), f"nothing reads {buffer.name}", realize)
    _require_plain_uses(sch, buffer, [realize, *readers])
    loops = _shared(sch, realize, readers)
    place = place_in(sch, loops)
    box = relaxed(realize, region, loops_within(sch.index, realize, place.loop_vars), place)
    windows = _windows(box, loops)
    require(bool(windows), f"the parts of {buffer.name} that the iterations of the loops around block "
            f"{realize.block.name} and its readers compute do not overlap", realize, *loops,
            hint="compute_at a consumer that reads neighbouring elements first")
    roll = min(windows, key=lambda w: w.position)
    _require_separate(realize, box, windows, loops)
    require_no_branch(sch, realize, roll.loop)
    _require_in_order(sch, realize, loops[roll.position:], roll)
    _require_window(sch, realize, region, readers, box, place)
    _fold(sch, realize, region, readers, windows, roll)


def _require_plain_uses(sch: Schedule, buffer: Buffer, users: Sequence[BlockRealize]) -> None:
    """All uses of buffer are loads and stores of elements, in blocks beside each other."""
    for user in users:
        require(not holds_blocks(user.block), f"block {user.block.name} holds other blocks", user)
        hidden = any(n is buffer.data or isinstance(n, MatchBuffer) and n.source.buffer is buffer
                     or takes_address(n, buffer) for n in walk(user.block))
        hidden = hidden or bool(outside_of(sch.index).of(user, buffer))
        require(not hidden, f"block {user.block.name} uses {buffer.name} other than by its elements", user)


def _shared(sch: Schedule, realize: BlockRealize, readers: Sequence[BlockRealize]) -> list[For]:
    """The loops around the block and all readers, outermost first."""
    shared = common_loops(sch.index, realize, readers[0])
    for reader in readers[1:]:
        here = common_loops(sch.index, realize, reader)
        shared = [loop for loop in shared if any(loop is other for other in here)]
    return shared


def _windows(box: Sequence[Interval], loops: Sequence[For]) -> list[Window]:
    """The dimensions of box that overlap between neighbouring iterations of the innermost loop that moves them."""
    found = []
    positions = {loop.loop_var: n for n, loop in enumerate(loops)}
    for dim, (low, extent) in enumerate(box):
        terms, _ = linear(low)
        moving = [n for e in terms for n in walk(e) if isinstance(n, Var) and n in positions]
        if not moving or not isinstance(extent, IntImm):
            continue
        var = max(moving, key=lambda v: positions[v])
        loop, step = loops[positions[var]], terms.get(var, 0)
        once = sum(n is var for n in moving) == 1
        longer = not isinstance(loop.extent, IntImm) or loop.extent.value > 1
        if once and longer and 0 < step < extent.value:
            found.append(Window(dim, loop, positions[var], low, extent.value, step))
    return found


# ---- legality

def _require_separate(realize: BlockRealize, box: Sequence[Interval], windows: Sequence[Window],
                      loops: Sequence[For]) -> None:
    """The loop of a window moves no other dimension, and no other loop depends on it."""
    for w in windows:
        for dim, (low, _) in enumerate(box):
            legal(dim == w.dim or not any(n is w.loop.loop_var for n in walk(low)),
                  f"loop {w.loop.loop_var.name} moves two dimensions of what block {realize.block.name} writes", w.loop,
                  realize)
        for loop in loops:
            legal(not any(n is w.loop.loop_var for e in (loop.min, loop.extent) for n in walk(e)),
                  f"the bounds of loop {loop.loop_var.name} depend on loop {w.loop.loop_var.name}", loop)


def _require_window(sch: Schedule, realize: BlockRealize, region: BufferRegion, readers: Sequence[BlockRealize],
                    box: Sequence[Interval], place: Place) -> None:
    """Each iteration of the place computes a box, whole, and readers read nothing else."""
    name, buffer = realize.block.name, region.buffer
    extra = beyond_domain(realize, sch.analyzer_at(realize))
    legal(not extra, f"block {name} runs only where {extra[0] if extra else ''}", realize)
    legal(is_dense(realize, region, loops_within(sch.index, realize, place.loop_vars), place),
          f"block {name} may leave out elements of the part of {buffer.name} that an iteration computes", realize)
    for reader in readers:
        for r in reader.block.reads:
            if r.buffer is buffer:
                needed = relaxed(reader, r, loops_within(sch.index, reader, place.loop_vars), place)
                legal(inside(needed, box, buffer, place) and order(sch, sch.index, realize, reader) <= {BEFORE},
                      f"block {reader.block.name} reads elements of {buffer.name} that its iteration does not compute",
                      reader, realize)


def _require_in_order(sch: Schedule, realize: BlockRealize, loops: Sequence[For], roll: Window) -> None:
    """The iterations of loops come one after the other, and what the block reads is the same in all of them."""
    for loop in loops:
        legal(loop.kind in (SERIAL, UNROLLED), f"iterations of the {loop.kind} loop {loop.loop_var.name} have no order",
              loop, hint=f"call rolling_buffer on a serial {loop.loop_var.name}")
    for loop in sch.index.loops_above(realize):
        legal(loop.kind != THREAD_BINDING or not any(n is loop.loop_var for n in walk(roll.low)),
              f"the window moves with loop {loop.loop_var.name}, which is bound to {loop.thread_tag}", loop)
    changing = changing_input(sch, sch.index, realize, roll.loop)
    if changing is not None:
        writer, reader = (part.realize for part in changing)
        legal(False, f"block {writer.block.name} writes {changing[0].region.buffer.name}, which block "
              f"{reader.block.name} reads, and is not known to write the same values in each iteration", writer, reader,
              hint="of a chain of blocks, make the buffer of the last one circular first")


# ---- the rewrite

def _fold(sch: Schedule, realize: BlockRealize, region: BufferRegion, readers: Sequence[BlockRealize],
          windows: Sequence[Window], roll: Window) -> None:
    """Let the buffer be circular along roll, and the block compute what is new in all windows."""
    buffer, size = region.buffer, IntImm(roll.extent, region.buffer.shape[roll.dim].dtype)
    shape = (*buffer.shape[:roll.dim], size, *buffer.shape[roll.dim + 1:])
    new = buffer.replace(shape=shape, data=None)
    values, block, above = bindings(realize), realize.block, sch.index.loops_above(realize)
    around = above[:above.index(roll.loop)]                  # each iteration of these starts the buffer anew
    moving = [w for w in windows if w.position >= roll.position]
    fresh = [_is_new(substitute(region.region[w.dim].min, values), w) for w in moving]
    here = sch.analyzer_at(realize)
    driven = {n for w in moving for n in walk(region.region[w.dim].min)}
    iter_vars = tuple(iv.replace(iter_type=OPAQUE) if iv.var in driven and iv.iter_type != COMM_REDUCE else iv
                      for iv in block.iter_vars)
    guard = all_of(realize.predicate, *[here.simplify(c) for c in fresh])
    ring = _circular(block.replace(iter_vars=()), buffer, new, roll.dim).replace(iter_vars=iter_vars)
    sch.replace(realize, realize.replace(predicate=guard, block=ring))
    for reader in readers:
        now = sch.realize(reader.block.name)
        sch.replace(now, now.replace(block=_circular(now.block, buffer, new, roll.dim)))
    sch.remove_alloc(buffer)
    sch.add_alloc(new)
    sch.own_values |= {(x.loop_var, new, frozenset(outer.loop_var for outer in around[:n]))
                       for n, x in enumerate(around) if x.kind not in (SERIAL, UNROLLED)}


def _is_new(index: Expr, window: Window) -> Expr:
    """The element at index is not one of those that the iteration before has computed."""
    first = binary("eq", window.loop.loop_var, window.loop.min)
    return any_of(first, binary("ge", index, binary("add", window.low, window.overlap)))


def _circular(block: Block, old: Buffer, new: Buffer, dim: int) -> Block:
    """block with its accesses to old turned to new, modulo the extent of dimension dim."""
    size = new.shape[dim]

    def at(indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
        return (*indices[:dim], binary("floormod", indices[dim], size), *indices[dim + 1:])

    def step(n: Node) -> Node | None:
        if isinstance(n, (Load, Store)) and n.buffer is old:
            return n.replace(buffer=new, indices=at(n.indices))
        if isinstance(n, BufferRegion) and n.buffer is old:
            r = n.region[dim]
            one = isinstance(r.extent, IntImm) and r.extent.value == 1
            first = binary("floormod", r.min, size)
            ring = Range(first, IntImm(1, first.dtype)) if one else Range(IntImm(0, size.dtype), size)
            return BufferRegion(new, (*n.region[:dim], ring, *n.region[dim + 1:]))
        return None
    return rewrite(block, step)
