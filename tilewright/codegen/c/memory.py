"""Loads and stores, with predicates."""
from __future__ import annotations

from tilewright.codegen.c import helpers
from tilewright.codegen.c.conversions import convert_vector, from_memory, to_memory
from tilewright.codegen.c.expressions import index
from tilewright.codegen.c.printer import (
    CHOICE,
    EXPRESSIONS,
    STATEMENTS,
    SUM,
    UNARY,
    Printer,
    Text,
    call,
    prints,
    within,
)
from tilewright.codegen.c.types import memory_type, stored_dtype, value_type
from tilewright.codegen.queries import flat_index
from tilewright.lowering.affine import as_ramp
from tilewright.support.errors import CodegenError, with_hint
from tilewright.tir import dtype as dt
from tilewright.tir.arithmetic import binary
from tilewright.tir.buffer import Buffer, Load
from tilewright.tir.expr import Broadcast, Call, Expr, IntImm, Ramp
from tilewright.tir.node import walk
from tilewright.tir.stmt import Store


def pointer(p: Printer, buffer: Buffer) -> str:
    """The pointer to the buffer's data, of its element type."""
    found = p.names.get(buffer.data)
    if found is None:
        raise CodegenError(with_hint(f"{p.name}: buffer {buffer.name} is neither an argument nor allocated here",
                                     "its `data` variable must be the one of an argument's buffer or of an Allocate"))
    known = p.buffers.get(buffer.data)
    if known is None or memory_type(known.dtype) != memory_type(buffer.dtype):
        return f"(({memory_type(buffer.dtype)} *){found})"
    return found


def address(p: Printer, buffer: Buffer, at: Expr) -> str:
    """The address of an element."""
    where = index(p, at)
    return pointer(p, buffer) if where.text == "0" else f"{pointer(p, buffer)} + {within(where, SUM + 1)}"


@prints(EXPRESSIONS, Load)
def print_load(p: Printer, e: Load) -> Text:
    """A scalar or vector load; lanes whose predicate is false give 0 and are not read."""
    at, lanes = flat_index(p.name, e.buffer, e.indices), dt.lanes_of(e.dtype)
    if lanes == 1:
        return _load_element(p, e.buffer, at)
    ramp, mask = as_ramp(at), None if e.predicate is None else p.expr(e.predicate)
    if isinstance(ramp, Broadcast):
        one = _load_element(p, e.buffer, ramp.value)
        if mask is not None:
            one = Text(f"{helpers.any_lane(p.unit, lanes)}({mask}) ? {within(one, CHOICE + 1)} : 0", CHOICE)
        value = f"-(int32_t){within(one, UNARY)}" if dt.is_bool(e.dtype) else one.text
        every = call(helpers.splat(p.unit, value_type(e.dtype)), value)
        if mask is None:
            return every
        type_, bits = value_type(e.dtype), 32 if dt.is_bool(e.dtype) else dt.bits_of(e.dtype)
        wide = convert_vector(p, Text(mask), f"i32x{lanes}", f"i{bits}x{lanes}").text
        return call(helpers.select(p.unit, type_), wide, every.text, f"({p.unit.type(type_)}){{0}}")
    return from_memory(p, _load_vector(p, e.buffer, at, ramp, mask, lanes), e.dtype)


def _load_element(p: Printer, buffer: Buffer, at: Expr) -> Text:
    return from_memory(p, Text(f"{pointer(p, buffer)}[{index(p, at).text}]"), buffer.dtype)


def _load_vector(p: Printer, buffer: Buffer, at: Expr, ramp: Expr | None, mask: str | None, lanes: int) -> Text:
    type_ = p.unit.type(value_type(dt.with_lanes(stored_dtype(buffer.dtype), lanes)))
    if isinstance(ramp, Ramp):
        step = ramp.stride.value if isinstance(ramp.stride, IntImm) else None
        first = ramp.base if step != -1 else binary("sub", ramp.base, IntImm(lanes - 1, ramp.base.dtype))
        where = address(p, buffer, first)
        if step in (1, -1):
            if step == -1 and mask is not None:
                mask = f"{helpers.reverse(p.unit, f'i32x{lanes}')}({mask})"
            text = call(helpers.load(p.unit, type_), where) if mask is None else call(
                helpers.load_masked(p.unit, type_), where, mask)
            return text if step == 1 else call(helpers.reverse(p.unit, type_), text.text)
        if mask is None:
            return call(helpers.load_strided(p.unit, type_), where, index(p, ramp.stride).text)
    return call(helpers.gather(p.unit, type_, f"i64x{lanes}"), pointer(p, buffer), *_wide(p, at, mask, lanes))


def _wide(p: Printer, at: Expr, mask: str | None, lanes: int) -> tuple[str, str]:
    """(the index of each lane, the mask)"""
    where = convert_vector(p, p.text(at), value_type(at.dtype), f"i64x{lanes}").text
    return where, mask or call(helpers.splat(p.unit, f"i32x{lanes}"), "-1").text


@prints(STATEMENTS, Store)
def print_store(p: Printer, s: Store) -> None:
    """A scalar or vector store; lanes whose predicate is false keep their value."""
    at = flat_index(p.name, s.buffer, s.indices)
    lanes = dt.lanes_of(at.dtype)
    if dt.element_of(s.value.dtype) != s.buffer.dtype:
        raise CodegenError(
            f"{p.name}: a {s.value.dtype} value is stored to {s.buffer.name}, which holds {s.buffer.dtype}")
    value, dtype = p.text(s.value), dt.with_lanes(s.buffer.dtype, lanes)
    if lanes == 1:
        p.line(f"{pointer(p, s.buffer)}[{index(p, at).text}] = {to_memory(p, value, dtype).text};")
        return
    if dt.lanes_of(s.value.dtype) == 1:
        number = f"-(int32_t){within(value, UNARY)}" if dt.is_bool(dtype) else value.text
        value = call(helpers.splat(p.unit, value_type(dtype)), number)
    mask, stored = None if s.predicate is None else p.expr(s.predicate), to_memory(p, value, dtype).text
    if s.predicate is not None and any(isinstance(n, Call) and n.op == "inside" for n in walk(s.predicate)):
        own = p.fresh("value")                   # what it reads is asked for first: C may take arguments in any order
        p.line(f"const {p.unit.type(value_type(stored_dtype(dtype)))} {own} = {stored};")
        stored = own
    _store_vector(p, s.buffer, at, stored, mask, lanes)


def _store_vector(p: Printer, buffer: Buffer, at: Expr, value: str, mask: str | None, lanes: int) -> None:
    ramp, type_ = as_ramp(at), p.unit.type(value_type(dt.with_lanes(stored_dtype(buffer.dtype), lanes)))
    if isinstance(ramp, Ramp):
        step = ramp.stride.value if isinstance(ramp.stride, IntImm) else None
        first = ramp.base if step != -1 else binary("sub", ramp.base, IntImm(lanes - 1, ramp.base.dtype))
        where = address(p, buffer, first)
        if step == -1:
            value = f"{helpers.reverse(p.unit, type_)}({value})"
            mask = mask and f"{helpers.reverse(p.unit, f'i32x{lanes}')}({mask})"
        if step in (1, -1):
            name = helpers.store(p.unit, type_) if mask is None else helpers.store_masked(p.unit, type_)
            p.line(f"{name}({', '.join([where, value, *([mask] if mask else [])])});")
            return
        if mask is None:
            p.line(f"{helpers.store_strided(p.unit, type_)}({where}, {value}, {index(p, ramp.stride).text});")
            return
    where, mask = _wide(p, at, mask, lanes)
    p.line(f"{helpers.scatter(p.unit, type_, f'i64x{lanes}')}({pointer(p, buffer)}, {value}, {where}, {mask});")
