"""Loads and gathers, with predicates."""
from __future__ import annotations

from collections.abc import Callable

from tilewright.codegen.llvm import memory
from tilewright.codegen.llvm.context import EXPRESSIONS, FunctionEmitter, emits
from tilewright.codegen.llvm.faults import any_of, checked_lanes, inside
from tilewright.codegen.llvm.index import index
from tilewright.codegen.llvm.small_floats import from_memory
from tilewright.codegen.llvm.types import memory_type, register_type, suffix, with_zero
from tilewright.codegen.queries import as_ramp, depends_on_data
from tilewright.tir import dtype as dt
from tilewright.tir.buffer import Buffer, Load
from tilewright.tir.expr import Broadcast, Expr, Ramp


@emits(EXPRESSIONS, Load)
def emit_load(fn: FunctionEmitter, e: Load) -> str:
    """A scalar or vector load; lanes whose predicate is false give 0 and are not read."""
    at, dtype = memory.flat_index(fn, e.buffer, e.indices), e.dtype
    lanes = dt.lanes_of(dtype)
    if lanes == 1:
        return _load_scalar(fn, e.buffer, at, e.predicate)
    mask = memory.predicate_of(fn, e.predicate, lanes)
    ramp = as_ramp(at)
    if isinstance(ramp, Broadcast):
        return _load_broadcast(fn, e.buffer, ramp, mask)
    if isinstance(ramp, Ramp) and not (mask is not None and depends_on_data(at, fn.dependent)):
        ok = None
        if depends_on_data(at, fn.dependent):
            ok = inside(fn, e.buffer, at, memory.lane_index(fn, ramp, 0), memory.lane_index(fn, ramp, lanes - 1))
        if ok is not None:
            return _choose(fn, dtype, ok, lambda: _load_ramp(fn, e.buffer, ramp, at, None, dtype))
        return _load_ramp(fn, e.buffer, ramp, at, mask, dtype)
    return from_memory(
        fn, _gather(fn, e.buffer, at, checked_lanes(fn, e.buffer, at, mask, lanes), lanes), dtype
    )


def _load_ramp(
    fn: FunctionEmitter, buffer: Buffer, ramp: Ramp, at: Expr, mask: str | None, dtype: str
) -> str:
    if memory.is_contiguous(ramp):
        return from_memory(fn, _load_contiguous(fn, buffer, ramp, mask), dtype)
    if mask is None:
        return from_memory(fn, _load_strided(fn, buffer, ramp), dtype)
    return from_memory(fn, _gather(fn, buffer, at, mask, ramp.lanes), dtype)


def _load_scalar(fn: FunctionEmitter, buffer: Buffer, at: Expr, predicate: Expr | None) -> str:
    """A scalar load, behind a branch when a predicate or the mask of a vector branch guards it."""
    condition = None if predicate is None else fn.expr(predicate)
    if fn.mask is not None:
        any_lane = any_of(fn, fn.mask)
        condition = any_lane if condition is None else fn.value(f"and i1 {condition}, {any_lane}")
    return guarded_load(fn, buffer, at, condition)


def guarded_load(fn: FunctionEmitter, buffer: Buffer, at: Expr, condition: str | None) -> str:
    """buffer[at] if condition holds, else 0. An index from data is checked."""
    if condition is not None:
        return _choose(fn, buffer.dtype, condition, lambda: guarded_load(fn, buffer, at, None))
    where = index(fn, at)
    ok = inside(fn, buffer, at, where)
    if ok is not None:
        return _choose(fn, buffer.dtype, ok, lambda: _load_element(fn, buffer, where))
    return _load_element(fn, buffer, where)


def _load_element(fn: FunctionEmitter, buffer: Buffer, where: str) -> str:
    loaded = fn.effect(
        f"load {memory_type(buffer.dtype)}, ptr {memory.address(fn, buffer, where)}, align {memory.alignment(buffer)}"
    )
    return from_memory(fn, loaded, buffer.dtype)


def _choose(fn: FunctionEmitter, dtype: str, condition: str, make: Callable[[], str]) -> str:
    """make() where condition holds, else 0 (of dtype, which may be a vector)."""
    type_ = register_type(dtype)
    read, done, before = fn.new_label("read"), fn.new_label("done"), fn.label
    fn.branch(condition, read, done)
    fn.start(read)
    with fn.region():
        value = make()
    after = fn.label
    fn.jump(done)
    fn.start(done)
    zero = "false" if type_ == "i1" else with_zero(type_)
    return fn.effect(f"phi {type_} [ {zero}, %{before} ], [ {value}, %{after} ]")


def _load_broadcast(fn: FunctionEmitter, buffer: Buffer, at: Broadcast, mask: str | None) -> str:
    type_ = register_type(buffer.dtype)
    condition = None if mask is None else any_of(fn, f"<{at.lanes} x i1> {mask}")
    value = fn.broadcast(guarded_load(fn, buffer, at.value, condition), type_, at.lanes)
    if mask is None:
        return value
    return fn.select(mask, f"<{at.lanes} x i1>", value, "zeroinitializer", f"<{at.lanes} x {type_}>")


def _load_contiguous(fn: FunctionEmitter, buffer: Buffer, ramp: Ramp, mask: str | None) -> str:
    type_, align = memory_type(dt.with_lanes(buffer.dtype, ramp.lanes)), memory.alignment(buffer)
    where, mask = memory.contiguous(fn, buffer, ramp, mask)
    if mask is None:
        loaded = fn.effect(f"load {type_}, ptr {where}, align {align}")
    else:
        lanes_mask = f"<{ramp.lanes} x i1>"
        symbol = fn.module.declare(
            f"llvm.masked.load.{suffix(type_)}.p0", type_, f"ptr, {lanes_mask}, {type_}"
        )
        loaded = fn.effect(
            f"call {type_} {symbol}(ptr align {align} {where}, {lanes_mask} {mask}, {type_} zeroinitializer)"
        )
    return memory.ascending(fn, loaded, type_, ramp)


def _load_strided(fn: FunctionEmitter, buffer: Buffer, ramp: Ramp) -> str:
    """One scalar load per lane: no slower than a gather instruction, and known to every target."""
    element, type_ = memory_type(buffer.dtype), memory_type(dt.with_lanes(buffer.dtype, ramp.lanes))
    out = "poison"
    for lane, where in enumerate(memory.lane_addresses(fn, buffer, ramp)):
        loaded = fn.effect(f"load {element}, ptr {where}, align {memory.alignment(buffer)}")
        out = fn.value(f"insertelement {type_} {out}, {element} {loaded}, i64 {lane}")
    return out


def _gather(fn: FunctionEmitter, buffer: Buffer, at: Expr, mask: str | None, lanes: int) -> str:
    type_ = memory_type(dt.with_lanes(buffer.dtype, lanes))
    where = memory.addresses(fn, buffer, at, lanes)
    symbol = fn.module.declare(f"llvm.masked.gather.{suffix(type_)}.v{lanes}p0", type_,
                               f"<{lanes} x ptr>, <{lanes} x i1>, {type_}")
    return fn.effect(f"call {type_} {symbol}(<{lanes} x ptr> align {memory.alignment(buffer)} {where}, "
                     f"<{lanes} x i1> {mask or 'splat (i1 true)'}, {type_} zeroinitializer)")
