"""Stores and scatters, with predicates."""
from __future__ import annotations

from tilewright.codegen.llvm import memory
from tilewright.codegen.llvm.context import STATEMENTS, FunctionEmitter, emits
from tilewright.codegen.llvm.index import index
from tilewright.codegen.llvm.types import memory_type, register_type, suffix
from tilewright.codegen.queries import flat_index
from tilewright.lowering.affine import as_ramp
from tilewright.support.errors import CodegenError
from tilewright.tir import dtype as dt
from tilewright.tir.buffer import Buffer
from tilewright.tir.expr import Expr, Ramp
from tilewright.tir.stmt import Store


@emits(STATEMENTS, Store)
def emit_store(fn: FunctionEmitter, s: Store) -> None:
    """A scalar or vector store; lanes whose predicate is false keep their value."""
    at = flat_index(fn.name, s.buffer, s.indices)
    lanes = dt.lanes_of(at.dtype)
    dtype = dt.with_lanes(s.buffer.dtype, lanes)
    if dt.element_of(s.value.dtype) != s.buffer.dtype:
        raise CodegenError(
            f"{fn.name}: a {s.value.dtype} value is stored to {s.buffer.name}, which holds {s.buffer.dtype}"
        )
    value = fn.expr(s.value)
    if lanes == 1:
        value, where = memory.to_memory(fn, value, dtype), memory.address(fn, s.buffer, index(fn, at))
        fn.do(f"store {memory_type(dtype)} {value}, ptr {where}, align {memory.alignment(s.buffer)}")
        return
    if dt.lanes_of(s.value.dtype) == 1:
        value = fn.broadcast(value, register_type(s.buffer.dtype), lanes)
    value = memory.to_memory(fn, value, dtype)
    mask, ramp = None if s.predicate is None else fn.expr(s.predicate), as_ramp(at)
    if isinstance(ramp, Ramp) and memory.is_contiguous(ramp):
        _store_contiguous(fn, s.buffer, ramp, value, mask)
    elif isinstance(ramp, Ramp) and mask is None:
        _store_strided(fn, s.buffer, ramp, value)
    else:
        _scatter(fn, s.buffer, at, value, mask, lanes)


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
    where = memory.addresses(fn, buffer, memory.signed_indices(fn, at))
    symbol = fn.module.declare(f"llvm.masked.scatter.{suffix(type_)}.v{lanes}p0", "void",
                               f"{type_}, <{lanes} x ptr>, <{lanes} x i1>")
    fn.do(f"call void {symbol}({type_} {value}, <{lanes} x ptr> align {memory.alignment(buffer)} {where}, "
          f"<{lanes} x i1> {mask or 'splat (i1 true)'})")
