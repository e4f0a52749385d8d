"""Stores and scatters, with predicates."""
from __future__ import annotations

from collections.abc import Callable

from tilewright.codegen.llvm import memory
from tilewright.codegen.llvm.context import STATEMENTS, FunctionEmitter, emits
from tilewright.codegen.llvm.faults import checked_lanes, inside
from tilewright.codegen.llvm.index import index
from tilewright.codegen.llvm.small_floats import to_memory
from tilewright.codegen.llvm.types import memory_type, register_type, suffix
from tilewright.codegen.queries import as_ramp, depends_on_data
from tilewright.support.errors import CodegenError
from tilewright.tir import dtype as dt
from tilewright.tir.buffer import Buffer
from tilewright.tir.expr import Expr, Ramp
from tilewright.tir.stmt import Store


@emits(STATEMENTS, Store)
def emit_store(fn: FunctionEmitter, s: Store) -> None:
    """A scalar or vector store; lanes whose predicate is false keep their value."""
    at = memory.flat_index(fn, s.buffer, s.indices)
    lanes = dt.lanes_of(at.dtype)
    dtype = dt.with_lanes(s.buffer.dtype, lanes)
    if dt.element_of(s.value.dtype) != s.buffer.dtype:
        raise CodegenError(
            f"{fn.name}: a {s.value.dtype} value is stored to {s.buffer.name}, which holds {s.buffer.dtype}"
        )
    if lanes == 1:
        _store_scalar(fn, s, at)
        return
    value = fn.expr(s.value)
    if dt.lanes_of(s.value.dtype) == 1:
        value = fn.broadcast(value, register_type(s.buffer.dtype), lanes)
    value = to_memory(fn, value, dtype)
    mask = memory.predicate_of(fn, s.predicate, lanes)
    ramp = as_ramp(at)
    if depends_on_data(at, fn.dependent):
        mask = checked_lanes(fn, s.buffer, at, mask, lanes)
    if isinstance(ramp, Ramp) and memory.is_contiguous(ramp):
        _store_contiguous(fn, s.buffer, ramp, value, mask)
    elif isinstance(ramp, Ramp) and mask is None:
        _store_strided(fn, s.buffer, ramp, value)
    else:
        _scatter(fn, s.buffer, at, value, mask, lanes)


def _store_scalar(fn: FunctionEmitter, s: Store, at: Expr) -> None:
    condition = None if s.predicate is None else fn.expr(s.predicate)
    _only_if(fn, condition, lambda: _store_element(fn, s, at))


def _store_element(fn: FunctionEmitter, s: Store, at: Expr) -> None:
    value, element = to_memory(fn, fn.expr(s.value), s.buffer.dtype), memory_type(s.buffer.dtype)
    where = index(fn, at)

    def put() -> None:
        fn.do(f"store {element} {value}, ptr {memory.address(fn, s.buffer, where)}, align {memory.alignment(s.buffer)}")
    _only_if(fn, inside(fn, s.buffer, at, where), put)


def _only_if(fn: FunctionEmitter, condition: str | None, emit: Callable[[], None]) -> None:
    if condition is None:
        emit()
        return
    write, done = fn.new_label("write"), fn.new_label("done")
    fn.branch(condition, write, done)
    fn.start(write)
    with fn.region():
        emit()
    fn.jump(done)
    fn.start(done)


def _store_contiguous(fn: FunctionEmitter, buffer: Buffer, ramp: Ramp, value: str, mask: str | None) -> None:
    type_, lanes, align = memory_type(dt.with_lanes(buffer.dtype, ramp.lanes)), ramp.lanes, memory.alignment(buffer)
    value = memory.ascending(fn, value, type_, ramp)
    where, mask = memory.contiguous(fn, buffer, ramp, mask)
    if mask is None:
        fn.do(f"store {type_} {value}, ptr {where}, align {align}")
        return
    symbol = fn.module.declare(
        f"llvm.masked.store.{suffix(type_)}.p0", "void", f"{type_}, ptr, <{lanes} x i1>"
    )
    fn.do(f"call void {symbol}({type_} {value}, ptr align {align} {where}, <{lanes} x i1> {mask})")


def _store_strided(fn: FunctionEmitter, buffer: Buffer, ramp: Ramp, value: str) -> None:
    element, type_ = memory_type(buffer.dtype), memory_type(dt.with_lanes(buffer.dtype, ramp.lanes))
    for lane, where in enumerate(memory.lane_addresses(fn, buffer, ramp)):
        one = fn.value(f"extractelement {type_} {value}, i64 {lane}")
        fn.do(f"store {element} {one}, ptr {where}, align {memory.alignment(buffer)}")


def _scatter(fn: FunctionEmitter, buffer: Buffer, at: Expr, value: str, mask: str | None, lanes: int) -> None:
    """Lanes in order: of several lanes with one index the last one wins."""
    type_ = memory_type(dt.with_lanes(buffer.dtype, lanes))
    where = memory.addresses(fn, buffer, at, lanes)
    symbol = fn.module.declare(f"llvm.masked.scatter.{suffix(type_)}.v{lanes}p0", "void",
                               f"{type_}, <{lanes} x ptr>, <{lanes} x i1>")
    fn.do(f"call void {symbol}({type_} {value}, <{lanes} x ptr> align {memory.alignment(buffer)} {where}, "
          f"<{lanes} x i1> {mask or 'splat (i1 true)'})")
