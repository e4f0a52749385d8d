"""Casts: floats to integers truncate and saturate, wide floats become small ones with one rounding."""
from __future__ import annotations

from tilewright.codegen.c.formulas import apply
from tilewright.codegen.c.printer import EXPRESSIONS, UNARY, Printer, Text, call, prints, within
from tilewright.codegen.c.types import stored_dtype, value_type
from tilewright.codegen.queries import compute_dtype
from tilewright.formulas.conversions import double_to_odd, integer_to_double, saturating
from tilewright.formulas.small_floats import narrowed, rounded, widened
from tilewright.support.errors import CodegenError
from tilewright.tir import dtype as dt
from tilewright.tir.dtype import SMALL_FLOATS
from tilewright.tir.expr import Cast


@prints(EXPRESSIONS, Cast)
def print_cast(p: Printer, e: Cast) -> Text:
    source, target = e.value.dtype, e.type
    x = p.text(e.value)
    if source == target:
        return x
    if dt.lanes_of(source) != dt.lanes_of(target):
        raise CodegenError(f"{p.name}: cast from {source} to {target} changes the number of lanes")
    return convert(p, x, source, target)


def convert(p: Printer, x: Text, source: str, target: str) -> Text:
    """x of dtype source as dtype target (equal lanes)."""
    if dt.is_bool(target):
        return x if dt.is_bool(source) else not_zero(p, x, source)
    if dt.is_float(source):
        if dt.is_float(target):
            return _resize(p, x, source, target)
        return apply(p, saturating(compute_dtype(source), target), x.text)
    if not dt.is_float(target):
        return plain(p, x, source, target)
    if dt.element_of(target) in SMALL_FLOATS and dt.bits_of(source) > 16:
        lanes = dt.lanes_of(source)
        wide = (apply(p, integer_to_double(source), x.text) if dt.bits_of(source) == 64 else
                plain(p, x, source, dt.with_lanes("float64", lanes)))
        return _resize(p, wide, dt.with_lanes("float64", lanes), target)
    return round_small(p, plain(p, x, source, compute_dtype(target)), target)


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
    bits, lanes = dt.bits_of(compute_dtype(operands)), dt.lanes_of(operands)
    return convert_vector(p, x, f"i{32 if dt.is_bool(operands) else bits}x{lanes}", f"i32x{lanes}")


def _resize(p: Printer, x: Text, source: str, target: str) -> Text:
    if dt.element_of(source) == "float64" and dt.element_of(target) in SMALL_FLOATS:
        return round_small(p, apply(p, double_to_odd(dt.lanes_of(source)), x.text), target)
    from_, to = compute_dtype(source), compute_dtype(target)
    return round_small(p, x if from_ == to else plain(p, x, from_, to), target)


def round_small(p: Printer, x: Text, dtype: str) -> Text:
    """x, computed in float32, rounded to the precision of dtype when that is a float of 16 or 8 bits."""
    return apply(p, rounded(dtype), x.text) if dt.element_of(dtype) in SMALL_FLOATS else x


def from_memory(p: Printer, x: Text, dtype: str) -> Text:
    """The value of what lies in memory for dtype."""
    element = dt.element_of(dtype)
    if element == "bool":
        return not_zero(p, x, stored_dtype(dtype))
    return apply(p, widened(dtype), x.text)._replace(stored=x.text) if element in SMALL_FLOATS else x


def to_memory(p: Printer, x: Text, dtype: str) -> Text:
    """What lies in memory for a value of dtype: of one that comes from there, the same bits, those of a NaN too."""
    element = dt.element_of(dtype)
    if element == "bool":
        return plain(p, x, dtype, stored_dtype(dtype)) if dt.lanes_of(dtype) > 1 else x
    if element in SMALL_FLOATS:
        return Text(x.stored, 0) if x.stored else apply(p, narrowed(dtype), x.text)
    return x
