"""Casts: by formulas, and by C's own; bools in memory."""
from __future__ import annotations

from tilewright.codegen.c.formulas import apply
from tilewright.codegen.c.printer import EXPRESSIONS, UNARY, Printer, Text, call, prints, within
from tilewright.codegen.c.types import stored_dtype, value_type
from tilewright.formulas import Formula
from tilewright.formulas.conversions import conversions
from tilewright.support.errors import CodegenError
from tilewright.tir import dtype as dt
from tilewright.tir.expr import Cast


@prints(EXPRESSIONS, Cast)
def print_cast(p: Printer, e: Cast) -> Text:
    if dt.lanes_of(e.value.dtype) != dt.lanes_of(e.type):
        raise CodegenError(f"{p.name}: cast from {e.value.dtype} to {e.type} changes the number of lanes")
    value, steps = conversions(e)
    x, source = p.text(value), value.dtype
    for step in steps:
        if isinstance(step, Formula):
            x, source = apply(p, step, x.text), step.results[0].dtype
        else:
            x, source = convert(p, x, source, step), step
    return x


def convert(p: Printer, x: Text, source: str, target: str) -> Text:
    """x of dtype source as dtype target (equal lanes), as C does it."""
    if dt.is_bool(target):
        return x if dt.is_bool(source) else not_zero(p, x, source)
    return plain(p, x, source, target)


def plain(p: Printer, x: Text, source: str, target: str) -> Text:
    """What C's own cast does; of conditions of several lanes, 0 and 1."""
    type_ = p.unit.type(value_type(target))
    if dt.lanes_of(target) == 1:
        return Text(f"({type_}){within(x, UNARY)}", UNARY)
    if dt.is_bool(source):
        return convert_vector(p, negated(x), value_type(source), type_)
    return convert_vector(p, x, value_type(source), type_)


def negated(x: Text) -> Text:
    """-x"""
    operand = within(x, UNARY)
    return Text(f"-({operand})" if operand.startswith("-") else f"-{operand}", UNARY)


def convert_vector(p: Printer, x: Text, source: str, target: str) -> Text:
    return x if source == target else call("__builtin_convertvector", x.text, p.unit.type(target))


def not_zero(p: Printer, x: Text, source: str) -> Text:
    """x != 0 as a condition."""
    if dt.lanes_of(source) == 1:
        return Text(f"{within(x, 14)} != 0", 14)
    return condition(p, Text(f"{within(x, 14)} != 0", 14), source)


def condition(p: Printer, x: Text, operands: str) -> Text:
    """The result of a comparison of vectors in the type that conditions have."""
    bits, lanes = dt.bits_of(operands), dt.lanes_of(operands)
    return convert_vector(p, x, f"i{32 if dt.is_bool(operands) else bits}x{lanes}", f"i32x{lanes}")


def from_memory(p: Printer, x: Text, dtype: str) -> Text:
    """The value of what lies in memory for dtype."""
    return not_zero(p, x, stored_dtype(dtype)) if dt.is_bool(dtype) else x


def to_memory(p: Printer, x: Text, dtype: str) -> Text:
    """What lies in memory for a value of dtype."""
    return plain(p, x, dtype, stored_dtype(dtype)) if dt.is_bool(dtype) and dt.lanes_of(dtype) > 1 else x
