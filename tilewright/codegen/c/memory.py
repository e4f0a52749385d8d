"""Loads and stores, with predicates; indices from data are checked."""
from __future__ import annotations

from collections.abc import Callable

from tilewright.codegen.c import helpers
from tilewright.codegen.c.conversions import convert_vector, from_memory, to_memory
from tilewright.codegen.c.expressions import index
from tilewright.codegen.c.printer import (
    AND,
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
from tilewright.codegen.c.unit import c_string
from tilewright.codegen.messages import dimension_message, escaped, message
from tilewright.codegen.queries import as_ramp, checked_dimensions, compute_dtype, depends_on_data
from tilewright.support.errors import CodegenError, with_hint
from tilewright.tir import dtype as dt
from tilewright.tir.arithmetic import binary
from tilewright.tir.buffer import Buffer, Load
from tilewright.tir.expr import Broadcast, Expr, IntImm, Ramp
from tilewright.tir.stmt import Store


def flat_index(p: Printer, buffer: Buffer, indices: tuple[Expr, ...]) -> Expr:
    """The one index of a flat access. Raises CodegenError for an access that was not flattened."""
    if len(indices) > 1:
        raise CodegenError(with_hint(f"{p.name}: {buffer.name} is accessed with {len(indices)} indices; C code needs "
                                     "one", "lower the function first: tilewright.lowering(func)"))
    return indices[0] if indices else IntImm(0)


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


def _inside(p: Printer, buffer: Buffer, at: Expr, where: str) -> str:
    """The condition that an element whose index is from data exists; where it does not, a message is left."""
    name = helpers.inside(p.unit, p.name)
    size = " * ".join(within(index(p, e), 18) for e in buffer.shape) or "1"
    checks = [f"{name}({index(p, i).text}, {index(p, n).text}, "
              f"{c_string(dimension_message(p.name, buffer, i, n))})" for i, n in checked_dimensions(at)]
    return " && ".join([*checks, f"{name}({where}, {size}, {c_string(escaped(message(p.name, buffer, at)))})"])


@prints(EXPRESSIONS, Load)
def print_load(p: Printer, e: Load) -> Text:
    """A scalar or vector load; lanes whose predicate is false give 0 and are not read."""
    at = flat_index(p, e.buffer, e.indices)
    lanes = dt.lanes_of(e.dtype)
    if lanes == 1:
        return _load_scalar(p, e.buffer, at, e.predicate)
    ramp, mask = as_ramp(at), predicate_of(p, e.predicate, lanes)
    if isinstance(ramp, Broadcast):
        one = _load_scalar(p, e.buffer, ramp.value, None, some_lane(p, mask, lanes))
        stored = -1 if dt.is_bool(e.dtype) else None
        value = f"-(int32_t){within(one, UNARY)}" if stored else one.text
        every = call(helpers.splat(p.unit, value_type(e.dtype)), value)
        if mask is None:
            return every
        type_, bits = value_type(e.dtype), 32 if dt.is_bool(e.dtype) else dt.bits_of(compute_dtype(e.dtype))
        wide = convert_vector(p, Text(mask), f"i32x{lanes}", f"i{bits}x{lanes}").text
        return call(helpers.select(p.unit, type_), wide, every.text, f"({p.unit.type(type_)}){{0}}")
    return from_memory(p, _load_vector(p, e.buffer, at, ramp, mask, lanes), e.dtype)


def _load_scalar(p: Printer, buffer: Buffer, at: Expr, predicate: Expr | None, some: str | None = None) -> Text:
    """A scalar load, of 0 where a condition around it does not hold or the element does not exist."""
    conditions = [] if predicate is None else [p.at(predicate, AND)]
    conditions += [some] if some else [text for text in [p.mask and some_lane(p, p.mask[1], p.mask[0])] if text]
    where = index(p, at)
    if depends_on_data(at, p.dependent):
        conditions.append(_inside(p, buffer, at, where.text))
    value = from_memory(p, Text(f"{pointer(p, buffer)}[{where.text}]"), buffer.dtype)
    if not conditions:
        return value
    return Text(f"{' && '.join(conditions)} ? {within(value, CHOICE + 1)} : 0", CHOICE)


def _load_vector(p: Printer, buffer: Buffer, at: Expr, ramp: Expr | None, mask: str | None, lanes: int) -> Text:
    type_ = p.unit.type(value_type(dt.with_lanes(stored_dtype(buffer.dtype), lanes)))
    if isinstance(ramp, Ramp) and not depends_on_data(at, p.dependent):
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
    lanes_at, mask = _checked_lanes(p, buffer, at, mask, lanes)
    return call(helpers.gather(p.unit, type_, f"i64x{lanes}"), pointer(p, buffer), lanes_at, mask)


def _wide(p: Printer, e: Expr, lanes: int) -> str:
    """An integer expression, a vector or a scalar for all lanes, as a vector of int64_t."""
    if dt.lanes_of(e.dtype) == 1:
        return call(helpers.splat(p.unit, f"i64x{lanes}"), index(p, e).text).text
    return convert_vector(p, p.text(e), value_type(e.dtype), f"i64x{lanes}").text


def _checked_lanes(p: Printer, buffer: Buffer, at: Expr, mask: str | None, lanes: int) -> tuple[str, str]:
    """(the index of each lane, the mask without lanes whose index, taken from data, lies outside of the buffer)."""
    where = _wide(p, at, lanes)
    mask = mask or call(helpers.splat(p.unit, f"i32x{lanes}"), "-1").text
    if not depends_on_data(at, p.dependent):
        return where, mask
    one = helpers.inside(p.unit, p.name)
    name = f"{one}_x{lanes}"
    p.unit.helper(name, lambda: f"static i32x{lanes} {name}(i64x{lanes} at, i64x{lanes} extent, i32x{lanes} mask, "
                  f"const char *form) {{\n    for (int k = 0; k < {lanes}; ++k)\n"
                  f"        if (mask[k] && !{one}(at[k], extent[k], form)) mask[k] = 0;\n    return mask;\n}}")
    for i, n in checked_dimensions(at):
        form = c_string(dimension_message(p.name, buffer, i, n))
        mask = call(name, _wide(p, i, lanes), _wide(p, n, lanes), mask, form).text
    size = " * ".join(within(index(p, e), 18) for e in buffer.shape) or "1"
    extent = call(helpers.splat(p.unit, f"i64x{lanes}"), size).text
    return where, call(name, where, extent, mask, c_string(escaped(message(p.name, buffer, at)))).text


def predicate_of(p: Printer, predicate: Expr | None, lanes: int) -> str | None:
    """The mask under which an access of `lanes` lanes happens; None: always."""
    mask = None if predicate is None else p.at(predicate, 12)
    if predicate is not None and dt.lanes_of(predicate.dtype) == 1:
        mask = call(helpers.splat(p.unit, f"i32x{lanes}"), f"-(int32_t){p.at(predicate, UNARY)}").text
    if p.mask is None or p.mask[0] != lanes:
        return mask
    around = p.mask[1]
    return around if mask is None else f"({mask} & ({around}))"


def some_lane(p: Printer, mask: str | None, lanes: int) -> str | None:
    """The condition that a mask holds in some lane."""
    return None if mask is None else f"{helpers.any_lane(p.unit, lanes)}({mask})"


@prints(STATEMENTS, Store)
def print_store(p: Printer, s: Store) -> None:
    """A scalar or vector store; lanes whose predicate is false keep their value."""
    at = flat_index(p, s.buffer, s.indices)
    lanes = dt.lanes_of(at.dtype)
    if dt.element_of(s.value.dtype) != s.buffer.dtype:
        raise CodegenError(
            f"{p.name}: a {s.value.dtype} value is stored to {s.buffer.name}, which holds {s.buffer.dtype}")
    if lanes == 1:
        _store_scalar(p, s, at)
        return
    value, dtype = p.text(s.value), dt.with_lanes(s.buffer.dtype, lanes)
    if dt.lanes_of(s.value.dtype) == 1:
        number = f"-(int32_t){within(value, UNARY)}" if dt.is_bool(dtype) else value.text
        value = call(helpers.splat(p.unit, value_type(dtype)), number)
    _store_vector(p, s.buffer, at, to_memory(p, value, dtype).text, predicate_of(p, s.predicate, lanes), lanes)


def _store_scalar(p: Printer, s: Store, at: Expr) -> None:
    conditions = [] if s.predicate is None else [p.at(s.predicate, AND)]
    where = index(p, at)
    value = to_memory(p, p.text(s.value), s.buffer.dtype)

    def put() -> None:
        p.line(f"{pointer(p, s.buffer)}[{where.text}] = {value.text};")
    if depends_on_data(at, p.dependent):
        conditions.append(_inside(p, s.buffer, at, where.text))
    only_if(p, " && ".join(conditions), put)


def only_if(p: Printer, condition: str, put: Callable[[], None]) -> None:
    """What put prints, under the condition if there is one."""
    if not condition:
        put()
        return
    with p.block(f"if ({condition})"):
        put()


def _store_vector(p: Printer, buffer: Buffer, at: Expr, value: str, mask: str | None, lanes: int) -> None:
    ramp, type_ = as_ramp(at), p.unit.type(value_type(dt.with_lanes(stored_dtype(buffer.dtype), lanes)))
    if isinstance(ramp, Ramp) and not depends_on_data(at, p.dependent):
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
    lanes_at, mask = _checked_lanes(p, buffer, at, mask, lanes)
    p.line(f"{helpers.scatter(p.unit, type_, f'i64x{lanes}')}({pointer(p, buffer)}, {value}, {lanes_at}, {mask});")
