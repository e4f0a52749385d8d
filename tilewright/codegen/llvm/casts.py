"""Casts: floats to integers truncate and saturate, wide floats become small ones with one rounding."""
from __future__ import annotations

from tilewright.codegen.llvm.context import EXPRESSIONS, FunctionEmitter, emits
from tilewright.codegen.llvm.formulas import inline
from tilewright.codegen.llvm.small_floats import round_small
from tilewright.codegen.llvm.types import register_type, with_element, with_zero
from tilewright.codegen.queries import compute_dtype
from tilewright.formulas.conversions import double_to_odd, integer_to_double, saturating
from tilewright.support.errors import CodegenError
from tilewright.tir import dtype as dt
from tilewright.tir.dtype import SMALL_FLOATS
from tilewright.tir.expr import Cast


@emits(EXPRESSIONS, Cast)
def emit_cast(fn: FunctionEmitter, e: Cast) -> str:
    """Float to integer truncates and saturates (NaN gives 0); a narrower integer wraps; to bool is != 0."""
    source, target = e.value.dtype, e.type
    x = fn.expr(e.value)
    return x if source == target else convert(fn, x, source, target)


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
    opcode, from_ = "sitofp" if dt.is_signed(source) else "uitofp", register_type(source)
    if dt.element_of(target) not in SMALL_FLOATS or dt.bits_of(source) <= 16:
        return round_small(fn, fn.value(f"{opcode} {from_} {x} to {register_type(target)}"), target)
    wide = (inline(fn, integer_to_double(source), x) if dt.bits_of(source) == 64 else
            fn.value(f"{opcode} {from_} {x} to {with_element(from_, 'double')}"))
    return _resize_float(fn, wide, dt.with_lanes("float64", dt.lanes_of(source)), target)


def _resize_float(fn: FunctionEmitter, x: str, source: str, target: str) -> str:
    from_, to = register_type(source), register_type(target)
    if dt.element_of(source) == "float64":
        if dt.element_of(target) in SMALL_FLOATS:
            return round_small(fn, inline(fn, double_to_odd(dt.lanes_of(source)), x), target)
        x = fn.value(f"fptrunc {from_} {x} to {to}")
    elif to != from_:
        x = fn.value(f"fpext {from_} {x} to {to}")
    return round_small(fn, x, target)


def _saturate(fn: FunctionEmitter, x: str, source: str, target: str) -> str:
    """Truncation that saturates; NaN gives 0. LLVM's own intrinsic falls apart into scalars on vectors."""
    if dt.lanes_of(source) > 1:
        return inline(fn, saturating(compute_dtype(source), target), x)
    from_, to = register_type(source), register_type(target)
    return fn.call("fptosi.sat" if dt.is_signed(target) else "fptoui.sat", to, ((from_, x),), mangled=(to, from_))
