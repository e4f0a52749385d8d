"""Floats of 16 and 8 bits: held as float32 in registers, rounded after every operation, small in memory only."""
from __future__ import annotations

import math

from tilewright.codegen.llvm.context import FunctionEmitter
from tilewright.codegen.llvm.types import float_literal, memory_type, register_type, splat, with_element
from tilewright.tir import dtype as dt
from tilewright.tir.dtype import SMALL_FLOATS, SmallFloat


def has_half(fn: FunctionEmitter) -> bool:
    """True when the CPU converts float16 itself. LLVM would call library functions that nobody links."""
    return "sse2" not in fn.module.features or "f16c" in fn.module.features


def _constant(type_: str, value: float) -> str:
    return splat(type_, float_literal(value, "float32"))


def _integer(type_: str, value: int) -> str:
    return splat(with_element(type_, "i32"), str(value))


def round_small(fn: FunctionEmitter, x: str, dtype: str) -> str:
    """x, computed in float32, rounded to the precision of dtype when that is a float of 16 or 8 bits."""
    element = dt.element_of(dtype)
    if element not in SMALL_FLOATS:
        return x
    type_ = register_type(dtype)
    if element == "bfloat16":
        bits = with_element(type_, "i32")
        kept = fn.value(f"and {bits} {_rounded_bits(fn, x, type_)}, {splat(bits, '-65536')}")
        return fn.value(f"bitcast {bits} {kept} to {type_}")
    half = with_element(type_, "half")
    if element == "float16" and has_half(fn):
        return fn.value(f"fpext {half} {fn.value(f'fptrunc {type_} {x} to {half}')} to {type_}")
    return _round_mantissa(fn, x, type_, SMALL_FLOATS[element])


def _round_mantissa(fn: FunctionEmitter, x: str, type_: str, form: SmallFloat) -> str:
    """x rounded to a format with fewer exponent bits than float32.

    Normal numbers lose mantissa bits, ties to even; below them adding (and subtracting) a power of two leaves just
    the bits that the format has.
    """
    bits, mask, lost = with_element(type_, "i32"), with_element(type_, "i1"), 23 - form.mantissa
    magnitude = fn.call("fabs", type_, ((type_, x),))
    raw = fn.value(f"bitcast {type_} {magnitude} to {bits}")
    odd = fn.value(f"and {bits} {fn.value(f'lshr {bits} {raw}, {_integer(type_, lost)}')}, {_integer(type_, 1)}")
    increment = fn.value(f"add {bits} {odd}, {_integer(type_, (1 << lost - 1) - 1)}")
    moved = fn.value(f"add {bits} {raw}, {increment}")
    kept = fn.value(f"and {bits} {moved}, {_integer(type_, -(1 << lost))}")
    normal = fn.value(f"bitcast {bits} {kept} to {type_}")
    step = _constant(type_, _alignment(form))
    tiny = fn.value(f"fsub {type_} {fn.value(f'fadd {type_} {magnitude}, {step}')}, {step}")
    is_tiny = fn.value(f"fcmp olt {type_} {magnitude}, {_constant(type_, form.least_normal)}")
    y = fn.select(is_tiny, mask, tiny, normal, type_)
    too_large = fn.value(f"fcmp ogt {type_} {y}, {_constant(type_, form.largest)}")
    beyond = _constant(type_, math.nan if form.infinity is None else math.inf)
    y = fn.select(too_large, mask, beyond, y, type_)
    y = fn.select(fn.value(f"fcmp uno {type_} {x}, {x}"), mask, x, y, type_)
    return fn.call("copysign", type_, ((type_, y), (type_, x)))


def _alignment(form: SmallFloat) -> float:
    """The number whose float32 neighbours lie as far apart as the subnormal numbers of the format."""
    return form.least_normal * 2.0 ** (23 - form.mantissa)


def _rounded_bits(fn: FunctionEmitter, x: str, type_: str) -> str:
    """Bits of the float x after adding the rounding increment of bfloat16: its upper half is the result.

    A NaN stays one: the increment could carry into the exponent, so its top mantissa bit is set instead.
    """
    bits, mask = with_element(type_, "i32"), with_element(type_, "i1")
    raw = fn.value(f"bitcast {type_} {x} to {bits}")
    upper = fn.value(f"lshr {bits} {raw}, {splat(bits, '16')}")
    odd = fn.value(f"and {bits} {upper}, {splat(bits, '1')}")
    increment = fn.value(f"add {bits} {odd}, {splat(bits, '32767')}")
    moved = fn.value(f"add {bits} {raw}, {increment}")
    quiet = fn.value(f"or {bits} {raw}, {splat(bits, '4194304')}")
    unordered = fn.value(f"fcmp uno {type_} {x}, {x}")
    return fn.select(unordered, mask, quiet, moved, bits)


def from_memory(fn: FunctionEmitter, x: str, dtype: str) -> str:
    """The register form of a value just loaded: bool from a byte, the floats of 16 and 8 bits widened."""
    element, type_ = dt.element_of(dtype), register_type(dtype)
    if element == "bool":
        byte = with_element(type_, "i8")
        return fn.value(f"icmp ne {byte} {x}, {splat(byte, '0')}")
    if element not in SMALL_FLOATS:
        return x
    short, half, bits = memory_type(dtype), with_element(type_, "half"), with_element(type_, "i32")
    if element == "float16" and has_half(fn):
        return fn.value(f"fpext {half} {fn.value(f'bitcast {short} {x} to {half}')} to {type_}")
    wide = fn.value(f"zext {short} {x} to {bits}")
    if element == "bfloat16":
        return fn.value(f"bitcast {bits} {fn.value(f'shl {bits} {wide}, {_integer(type_, 16)}')} to {type_}")
    return _widen(fn, wide, type_, SMALL_FLOATS[element])


def _widen(fn: FunctionEmitter, wide: str, type_: str, form: SmallFloat) -> str:
    """The float of the format's bits in an i32: its exponent is moved by a multiplication, which is exact."""
    bits, mask = with_element(type_, "i32"), with_element(type_, "i1")
    sign_bit = form.exponent + form.mantissa
    low = fn.value(f"and {bits} {wide}, {_integer(type_, (1 << sign_bit) - 1)}")
    placed = fn.value(f"shl {bits} {low}, {_integer(type_, 23 - form.mantissa)}")
    scale = _constant(type_, 2.0 ** (127 - form.bias))
    finite = fn.value(f"fmul {type_} {fn.value(f'bitcast {bits} {placed} to {type_}')}, {scale}")
    endless = fn.value(f"bitcast {bits} {fn.value(f'or {bits} {placed}, {_integer(type_, 0x7F800000)}')} to {type_}")
    first = form.nan if form.infinity is None else form.infinity
    is_endless = fn.value(f"icmp uge {bits} {low}, {_integer(type_, first)}")
    magnitude = fn.select(is_endless, mask, endless, finite, type_)
    moved = fn.value(f"shl {bits} {wide}, {_integer(type_, 31 - sign_bit)}")
    sign = fn.value(f"bitcast {bits} {moved} to {type_}")
    return fn.call("copysign", type_, ((type_, magnitude), (type_, sign)))


def to_memory(fn: FunctionEmitter, x: str, dtype: str) -> str:
    """The memory form of a register value, which is already rounded to dtype."""
    element, type_ = dt.element_of(dtype), register_type(dtype)
    if element == "bool":
        return fn.value(f"zext {type_} {x} to {with_element(type_, 'i8')}")
    if element not in SMALL_FLOATS:
        return x
    short, half, bits = memory_type(dtype), with_element(type_, "half"), with_element(type_, "i32")
    if element == "float16" and has_half(fn):
        return fn.value(f"bitcast {half} {fn.value(f'fptrunc {type_} {x} to {half}')} to {short}")
    if element == "bfloat16":
        raw = fn.value(f"bitcast {type_} {x} to {bits}")
        return fn.value(f"trunc {bits} {fn.value(f'lshr {bits} {raw}, {_integer(type_, 16)}')} to {short}")
    return fn.value(f"trunc {bits} {_narrow(fn, x, type_, SMALL_FLOATS[element])} to {short}")


def _narrow(fn: FunctionEmitter, x: str, type_: str, form: SmallFloat) -> str:
    """The format's bits, in the low part of an i32, of a float that has its precision."""
    bits, mask = with_element(type_, "i32"), with_element(type_, "i1")
    magnitude = fn.call("fabs", type_, ((type_, x),))
    raw = fn.value(f"bitcast {type_} {magnitude} to {bits}")
    rebased = fn.value(f"sub {bits} {raw}, {_integer(type_, (127 - form.bias) << 23)}")
    normal = fn.value(f"lshr {bits} {rebased}, {_integer(type_, 23 - form.mantissa)}")
    shifted = fn.value(f"fadd {type_} {magnitude}, {_constant(type_, _alignment(form))}")
    subnormal = _integer(type_, (1 << form.mantissa) - 1)
    tiny = fn.value(f"and {bits} {fn.value(f'bitcast {type_} {shifted} to {bits}')}, {subnormal}")
    is_tiny = fn.value(f"fcmp olt {type_} {magnitude}, {_constant(type_, form.least_normal)}")
    y = fn.select(is_tiny, mask, tiny, normal, bits)
    if form.infinity is not None:
        infinite = fn.value(f"fcmp oeq {type_} {magnitude}, {_constant(type_, math.inf)}")
        y = fn.select(infinite, mask, _integer(type_, form.infinity), y, bits)
    unordered = fn.value(f"fcmp uno {type_} {x}, {x}")
    y = fn.select(unordered, mask, _integer(type_, form.nan), y, bits)
    sign_bit = form.exponent + form.mantissa
    signed = fn.value(f"bitcast {type_} {x} to {bits}")
    moved = fn.value(f"lshr {bits} {signed}, {_integer(type_, 31 - sign_bit)}")
    sign = fn.value(f"and {bits} {moved}, {_integer(type_, 1 << sign_bit)}")
    return fn.value(f"or {bits} {y}, {sign}")
