"""Loads and gathers, with predicates."""
from __future__ import annotations

from tilewright.codegen.llvm import memory
from tilewright.codegen.llvm.context import EXPRESSIONS, FunctionEmitter, emits
from tilewright.codegen.llvm.index import index
from tilewright.codegen.llvm.types import memory_type, register_type, suffix, with_zero
from tilewright.codegen.queries import flat_index
from tilewright.lowering.affine import as_ramp
from tilewright.tir import dtype as dt
from tilewright.tir.arithmetic import binary
from tilewright.tir.buffer import Buffer, Load
from tilewright.tir.expr import Broadcast, Expr, IntImm, Ramp


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
        loaded = _gather(fn, e.buffer, at, mask, dt.lanes_of(dtype))
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
    element, type_ = memory_type(buffer.dtype), memory_type(dt.with_lanes(buffer.dtype, ramp.lanes))
    out = "poison"
    for lane, where in enumerate(memory.lane_addresses(fn, buffer, ramp)):
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


def _gather(fn: FunctionEmitter, buffer: Buffer, at: Expr, mask: str | None, lanes: int) -> str:
    type_ = memory_type(dt.with_lanes(buffer.dtype, lanes))
    where = memory.addresses(fn, buffer, at, lanes)
    symbol = fn.module.declare(f"llvm.masked.gather.{suffix(type_)}.v{lanes}p0", type_,
                               f"<{lanes} x ptr>, <{lanes} x i1>, {type_}")
    return fn.effect(f"call {type_} {symbol}(<{lanes} x ptr> align {memory.alignment(buffer)} {where}, "
                     f"<{lanes} x i1> {mask or 'splat (i1 true)'}, {type_} zeroinitializer)")
