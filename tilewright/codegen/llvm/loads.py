"""Loads and gathers, with predicates."""
from __future__ import annotations

from collections.abc import Iterator

from tilewright.codegen.llvm import memory
from tilewright.codegen.llvm.builder import LIKELY
from tilewright.codegen.llvm.context import EXPRESSIONS, FunctionEmitter, emits
from tilewright.codegen.llvm.index import index
from tilewright.codegen.llvm.types import memory_type, register_type, suffix, with_zero
from tilewright.codegen.queries import flat_index
from tilewright.lowering.affine import as_ramp
from tilewright.support.target.cpus import gathers
from tilewright.tir import dtype as dt
from tilewright.tir.arithmetic import binary
from tilewright.tir.buffer import Buffer, Load
from tilewright.tir.expr import Broadcast, Call, Expr, IntImm, Ramp


@emits(EXPRESSIONS, Load)
def emit_load(fn: FunctionEmitter, e: Load) -> str:
    """A scalar or vector load; lanes whose predicate is false give 0 and are not read."""
    at, dtype = flat_index(fn.name, e.buffer, e.indices), e.dtype
    if dt.lanes_of(dtype) == 1:
        return _load_element(fn, e.buffer, at)
    mask, ramp = None if e.predicate is None else fn.expr(e.predicate), as_ramp(at)
    if isinstance(ramp, Broadcast):
        return _load_broadcast(fn, e.buffer, ramp, mask)
    if isinstance(ramp, Ramp) and memory.is_contiguous(ramp):
        loaded = _load_contiguous(fn, e.buffer, ramp, mask)
    elif isinstance(ramp, Ramp) and mask is None:
        loaded = _load_strided(fn, e.buffer, ramp)
    else:
        loaded = _gather(fn, e, at, mask)
    return memory.from_memory(fn, loaded, dtype)


def _load_element(fn: FunctionEmitter, buffer: Buffer, at: Expr) -> str:
    where = memory.address(fn, buffer, index(fn, at))
    loaded = fn.effect(f"load {memory_type(buffer.dtype)}, ptr {where}, align {memory.alignment(buffer)}")
    return memory.from_memory(fn, loaded, buffer.dtype)


def _load_broadcast(fn: FunctionEmitter, buffer: Buffer, at: Broadcast, mask: str | None) -> str:
    type_ = register_type(buffer.dtype)
    if mask is None:
        return fn.broadcast(_load_element(fn, buffer, at.value), type_, at.lanes)
    read, done, before = fn.new_label("read"), fn.new_label("done"), fn.label
    fn.branch(fn.any_of(f"<{at.lanes} x i1> {mask}"), read, done)
    fn.start(read)
    with fn.region():
        value = _load_element(fn, buffer, at.value)
    after = fn.label
    fn.jump(done)
    fn.start(done)
    value = fn.effect(f"phi {type_} [ {'false' if type_ == 'i1' else with_zero(type_)}, %{before} ], "
                      f"[ {value}, %{after} ]")
    return fn.select(mask, f"<{at.lanes} x i1>", fn.broadcast(value, type_, at.lanes), "zeroinitializer",
                     f"<{at.lanes} x {type_}>")


def _load_contiguous(fn: FunctionEmitter, buffer: Buffer, ramp: Ramp, mask: str | None) -> str:
    type_, align = memory_type(dt.with_lanes(buffer.dtype, ramp.lanes)), memory.alignment(buffer)
    where, mask = memory.contiguous(fn, buffer, ramp, mask)
    if mask is None:
        loaded = fn.effect(f"load {type_}, ptr {where}, align {align}")
    else:
        loaded = _load_masked(fn, buffer, ramp.lanes, where, mask)
    return memory.ascending(fn, loaded, type_, ramp)


def _load_masked(fn: FunctionEmitter, buffer: Buffer, lanes: int, where: str, mask: str) -> str:
    """Register by register: where a whole one is masked off for certain, LLVM 22 reads it all the same when it is left
    to cut a vector for AVX2."""
    width = _register_bits(fn.module.features) // max(8, dt.bits_of(buffer.dtype))
    if lanes <= width:
        return _load_register(fn, buffer, lanes, where, mask)
    element, out = memory_type(buffer.dtype), ""
    for start in range(0, lanes, width):
        count = min(width, lanes - start)
        part = fn.value(f"shufflevector <{lanes} x i1> {mask}, <{lanes} x i1> poison, <{count} x i32> "
                        f"<{_numbers(start, count)}>")
        at = fn.value(f"getelementptr {element}, ptr {where}, i64 {start}")
        loaded = _load_register(fn, buffer, count, at, part)
        if not start:
            out = loaded
            continue
        whole = start + count
        wide = fn.value(f"shufflevector <{count} x {element}> {loaded}, <{count} x {element}> poison, <{start} x i32> "
                        f"<{_numbers(0, count, start)}>")
        out = fn.value(f"shufflevector <{start} x {element}> {out}, <{start} x {element}> {wide}, <{whole} x i32> "
                       f"<{_numbers(0, whole)}>")
    return out


def _register_bits(features: frozenset[str]) -> int:
    return 512 if "avx512f" in features else 256 if "avx" in features else 128


def _numbers(start: int, count: int, filled: int = 0) -> str:
    """The indices of a shuffle: start, start + 1, ..., and then what does not matter."""
    return ", ".join([*(f"i32 {k}" for k in range(start, start + count)), *["i32 poison"] * (filled - count)])


def _load_register(fn: FunctionEmitter, buffer: Buffer, lanes: int, where: str, mask: str) -> str:
    type_, lanes_mask = memory_type(dt.with_lanes(buffer.dtype, lanes)), f"<{lanes} x i1>"
    if lanes == 1:
        type_ = f"<1 x {type_}>"
    symbol = fn.module.declare(f"llvm.masked.load.{suffix(type_)}.p0", type_, f"ptr, {lanes_mask}, {type_}")
    return fn.effect(f"call {type_} {symbol}(ptr align {memory.alignment(buffer)} {where}, {lanes_mask} {mask}, "
                     f"{type_} zeroinitializer)")


def _load_strided(fn: FunctionEmitter, buffer: Buffer, ramp: Ramp) -> str:
    """Whole vectors where few elements lie between those of the lanes, else one scalar load per lane: no slower than a
    gather instruction, and known to every target."""
    stride = ramp.stride.value if isinstance(ramp.stride, IntImm) else 0
    if 2 <= stride <= MOST_VECTORS and ramp.lanes >= LEAST_LANES:
        return _load_and_choose(fn, buffer, ramp, stride)
    return _load_each(fn, buffer, memory.lane_addresses(fn, buffer, ramp), ramp.lanes)


def _load_each(fn: FunctionEmitter, buffer: Buffer, addresses: Iterator[str], lanes: int) -> str:
    element, type_, out = memory_type(buffer.dtype), memory_type(dt.with_lanes(buffer.dtype, lanes)), "poison"
    for lane, where in enumerate(addresses):
        loaded = fn.effect(f"load {element}, ptr {where}, align {memory.alignment(buffer)}")
        out = fn.value(f"insertelement {type_} {out}, {element} {loaded}, i64 {lane}")
    return out


MOST_VECTORS = 4                 # that are loaded for one
LEAST_LANES = 4


def _load_and_choose(fn: FunctionEmitter, buffer: Buffer, ramp: Ramp, stride: int) -> str:
    """The lanes out of `stride` vectors that together hold the elements from the first to the last, and no others.

    What lies between two elements of a buffer is memory of it, or of the one that it is a view of.
    """
    lanes, type_ = ramp.lanes, memory_type(dt.with_lanes(buffer.dtype, ramp.lanes))
    last, out = (lanes - 1) * stride + 1 - lanes, "poison"
    for part in range(stride):
        start = min(part * lanes, last)
        at = index(fn, binary("add", ramp.base, IntImm(start, ramp.base.dtype)))
        where = memory.address(fn, buffer, at)
        loaded = fn.effect(f"load {type_}, ptr {where}, align {memory.alignment(buffer)}")
        chosen = (lanes + k * stride - start if k * stride // lanes == part else k for k in range(lanes))
        order = ", ".join(f"i32 {k}" for k in chosen)
        out = fn.value(f"shufflevector {type_} {out}, {type_} {loaded}, <{lanes} x i32> <{order}>")
    return out


def _gather(fn: FunctionEmitter, e: Load, at: Expr, mask: str | None) -> str:
    """By an instruction where the CPU has a fast one, or where data decides which lanes are read; else lane by lane."""
    indices = memory.signed_indices(fn, at)
    if gathers(fn.module.features, dt.bits_of(e.buffer.dtype)):
        return _gather_at_once(fn, e, indices, mask or "splat (i1 true)")
    if mask is None or e.predicate is None:
        return _gather_by_lane(fn, e, indices)
    if not _holds_without_fault(e.predicate):
        return _gather_at_once(fn, e, indices, mask)
    every, some, done = fn.new_label("every"), fn.new_label("some"), fn.new_label("done")
    fn.branch(fn.all_of(f"<{dt.lanes_of(e.dtype)} x i1> {mask}"), every, some, f", !prof {fn.module.metadata(LIKELY)}")
    fn.start(every)
    by_lane = _gather_by_lane(fn, e, indices)
    fn.jump(done)
    fn.start(some)
    at_once = _gather_at_once(fn, e, indices, mask)
    fn.jump(done)
    fn.start(done)
    return fn.effect(f"phi {memory_type(e.dtype)} [ {by_lane}, %{every} ], [ {at_once}, %{some} ]")


def _holds_without_fault(predicate: Expr) -> bool:
    """True when a lane is left out only because its index is outside."""
    if isinstance(predicate, Call) and predicate.op == "inside":
        return _holds_without_fault(predicate.args[0])
    return isinstance(predicate, Broadcast) and isinstance(predicate.value, IntImm) and predicate.value.value != 0


def _gather_by_lane(fn: FunctionEmitter, e: Load, indices: str) -> str:
    with fn.region():
        return _load_each(fn, e.buffer, memory.gathered_addresses(fn, e.buffer, indices), dt.lanes_of(e.dtype))


def _gather_at_once(fn: FunctionEmitter, e: Load, indices: str, mask: str) -> str:
    """By LLVM's intrinsic, which it takes apart where the CPU has no such instruction."""
    lanes, type_ = dt.lanes_of(e.dtype), memory_type(e.dtype)
    with fn.region():
        where = memory.addresses(fn, e.buffer, indices)
    symbol = fn.module.declare(f"llvm.masked.gather.{suffix(type_)}.v{lanes}p0", type_,
                               f"<{lanes} x ptr>, <{lanes} x i1>, {type_}")
    return fn.effect(f"call {type_} {symbol}(<{lanes} x ptr> align {memory.alignment(e.buffer)} {where}, "
                     f"<{lanes} x i1> {mask}, {type_} zeroinitializer)")
