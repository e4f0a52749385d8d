"""Casts: floats to integers truncate and saturate, wide floats become small ones with one rounding."""
from __future__ import annotations

from tilewright.codegen.llvm.context import EXPRESSIONS, FunctionEmitter, constant_of, emits
from tilewright.codegen.llvm.small_floats import round_small
from tilewright.codegen.llvm.types import register_type, splat, with_element, with_zero
from tilewright.support.errors import CodegenError
from tilewright.tir import dtype as dt
from tilewright.tir.dtype import SMALL_FLOATS
from tilewright.tir.expr import Cast


@emits(EXPRESSIONS, Cast)
def emit_cast(fn: FunctionEmitter, e: Cast) -> str:
    """Float to integer truncates and saturates (NaN gives 0); a narrower integer wraps; to bool is != 0."""
    source, target = e.value.dtype, e.type
    x = fn.expr(e.value)
    if source == target:
        return x
    return convert(fn, x, source, target)


def convert(fn: FunctionEmitter, x: str, source: str, target: str) -> str:
    """The operand x of dtype source as dtype target (equal lanes)."""
    if dt.lanes_of(source) != dt.lanes_of(target):
        raise CodegenError(f"{fn.name}: cast from {source} to {target} changes the number of lanes")
    from_, to = register_type(source), register_type(target)
    if dt.is_bool(target):
        test = "fcmp une" if dt.is_float(source) else "icmp ne"
        return x if dt.is_bool(source) else fn.value(f"{test} {from_} {x}, {with_zero(from_)}")
    if dt.is_float(source):
        if dt.is_float(target):
            return _resize_float(fn, x, source, target)
        return _saturate(fn, x, source, target)
    if dt.is_float(target):
        return _float_of_integer(fn, x, source, target)
    narrow, wide = dt.bits_of(target), dt.bits_of(source)
    if narrow == wide:
        return x
    opcode = "trunc" if narrow < wide else ("sext" if dt.is_signed(source) else "zext")
    return fn.value(f"{opcode} {from_} {x} to {to}")


def _float_of_integer(fn: FunctionEmitter, x: str, source: str, target: str) -> str:
    """The nearest float; to a small one through a float64 that holds the integer, or is rounded to odd."""
    from_, to = register_type(source), register_type(target)
    opcode = "sitofp" if dt.is_signed(source) else "uitofp"
    if dt.element_of(target) not in SMALL_FLOATS or dt.bits_of(source) <= 16:
        return round_small(fn, fn.value(f"{opcode} {from_} {x} to {to}"), target)
    if dt.bits_of(source) == 64:
        high = fn.value(f"and {from_} {x}, {splat(from_, '-2048')}")
        rest = fn.value(f"icmp ne {from_} {high}, {x}")
        odd = fn.value(f"or {from_} {high}, {splat(from_, '2048')}")
        shifted = fn.value(f"add {from_} {x}, {splat(from_, str(1 << 53))}") if dt.is_signed(source) else x
        large = fn.value(f"icmp ugt {from_} {shifted}, {splat(from_, str(1 << 53 + dt.is_signed(source)))}")
        mask = with_element(from_, "i1")
        x = fn.select(fn.value(f"and {mask} {rest}, {large}"), mask, odd, x, from_)
    double = with_element(from_, "double")
    return _resize_float(fn, fn.value(f"{opcode} {from_} {x} to {double}"),
                         dt.with_lanes("float64", dt.lanes_of(source)), target)


def _resize_float(fn: FunctionEmitter, x: str, source: str, target: str) -> str:
    from_, to = register_type(source), register_type(target)
    if from_ == "double" or from_.endswith("double>"):
        if dt.element_of(target) in SMALL_FLOATS:
            return round_small(fn, _round_to_odd(fn, x, from_), target)
        x = fn.value(f"fptrunc {from_} {x} to {to}")
    elif to != from_:
        x = fn.value(f"fpext {from_} {x} to {to}")
    return round_small(fn, x, target)


def _round_to_odd(fn: FunctionEmitter, x: str, double: str) -> str:
    """float64 to float32 so that a second rounding to 16 bits equals a single one (Boldo and
    Melquiond, 2008).
    """
    single, bits, mask = (
        with_element(double, "float"),
        with_element(double, "i32"),
        with_element(double, "i1"),
    )
    near = fn.value(f"fptrunc {double} {x} to {single}")
    back = fn.value(f"fpext {single} {near} to {double}")
    magnitude = fn.call("fabs", double, ((double, x),))
    rounded = fn.call("fabs", double, ((double, back),))
    raw = fn.value(f"bitcast {single} {near} to {bits}")
    above = fn.value(f"fcmp ogt {double} {rounded}, {magnitude}")
    inexact = fn.value(f"fcmp one {double} {rounded}, {magnitude}")
    down = fn.value(f"add {bits} {raw}, {fn.value(f'sext {mask} {above} to {bits}')}")
    odd = fn.value(f"or {bits} {down}, {fn.value(f'zext {mask} {inexact} to {bits}')}")
    return fn.value(f"bitcast {bits} {odd} to {single}")


def _saturate(fn: FunctionEmitter, x: str, source: str, target: str) -> str:
    """Truncation that saturates; NaN gives 0. LLVM's own intrinsic falls apart into scalars on vectors."""
    from_, to = register_type(source), register_type(target)
    low, high = dt.integer_range(target)
    if dt.lanes_of(target) == 1:
        name = "fptosi.sat" if dt.is_signed(target) else "fptoui.sat"
        return fn.call(name, to, ((from_, x),), mangled=(to, from_))
    mask = with_element(from_, "i1")
    floor, ceiling = (
        constant_of(source_compute(source), float(low)),
        constant_of(source_compute(source), float(high + 1)),
    )
    too_low = fn.value(f"fcmp olt {from_} {x}, {floor}")
    not_high = fn.value(f"fcmp olt {from_} {x}, {ceiling}")
    ordered = fn.value(f"fcmp ord {from_} {x}, {with_zero(from_)}")
    not_low = fn.value(f"fcmp oge {from_} {x}, {floor}")
    inside = fn.value(f"and {mask} {not_low}, {not_high}")
    safe = fn.select(inside, mask, x, with_zero(from_), from_)
    result = fn.value(f"{'fptosi' if dt.is_signed(target) else 'fptoui'} {from_} {safe} to {to}")
    too_high = fn.value(f"xor {mask} {not_high}, splat (i1 true)")
    above = fn.value(f"and {mask} {ordered}, {too_high}")
    result = fn.select(above, mask, constant_of(target, high), result, to)
    return fn.select(too_low, mask, constant_of(target, low), result, to)


def source_compute(dtype: str) -> str:
    """The dtype in which values of dtype are held in registers: float32 for those of 16 and 8 bits."""
    element, lanes = dt.parse(dtype)
    return dt.with_lanes("float32", lanes) if element in SMALL_FLOATS else dtype
