"""float16 and bfloat16: held as float32 in registers, rounded after every operation, 16 bits in memory."""
from __future__ import annotations

from tilewright.codegen.llvm.context import FunctionEmitter
from tilewright.codegen.llvm.types import SMALL_FLOATS, float_literal, register_type, splat, with_element
from tilewright.tir import dtype as dt


def has_half(fn: FunctionEmitter) -> bool:
    """True when the CPU converts float16 itself. LLVM would call library functions that nobody links."""
    return "sse2" not in fn.module.features or "f16c" in fn.module.features


def _constant(type_: str, value: float) -> str:
    return splat(type_, float_literal(value, "float32"))


def _integer(type_: str, value: int) -> str:
    return splat(with_element(type_, "i32"), str(value))


def round_small(fn: FunctionEmitter, x: str, dtype: str) -> str:
    """x, computed in float32, rounded to the precision of dtype when that is a 16-bit float."""
    element = dt.element_of(dtype)
    if element not in SMALL_FLOATS:
        return x
    type_ = register_type(dtype)
    if element == "float16":
        return _round_half(fn, x, type_)
    bits = with_element(type_, "i32")
    kept = fn.value(f"and {bits} {_rounded_bits(fn, x, type_)}, {splat(bits, '-65536')}")
    return fn.value(f"bitcast {bits} {kept} to {type_}")


def _round_half(fn: FunctionEmitter, x: str, type_: str) -> str:
    """x rounded to float16 and back."""
    half, bits, mask = (with_element(type_, e) for e in ("half", "i32", "i1"))
    if has_half(fn):
        return fn.value(f"fpext {half} {fn.value(f'fptrunc {type_} {x} to {half}')} to {type_}")
    magnitude = fn.call("fabs", type_, ((type_, x),))
    # normal numbers: 13 bits less, ties to even; below 2**-14 adding 1/2 leaves just the bits that float16 has
    raw = fn.value(f"bitcast {type_} {magnitude} to {bits}")
    odd = fn.value(f"and {bits} {fn.value(f'lshr {bits} {raw}, {_integer(type_, 13)}')}, {_integer(type_, 1)}")
    moved = fn.value(f"add {bits} {raw}, {fn.value(f'add {bits} {odd}, {_integer(type_, 4095)}')}")
    normal = fn.value(f"bitcast {bits} {fn.value(f'and {bits} {moved}, {_integer(type_, -8192)}')} to {type_}")
    shifted = fn.value(f"fadd {type_} {magnitude}, {_constant(type_, 0.5)}")
    tiny = fn.value(f"fsub {type_} {shifted}, {_constant(type_, 0.5)}")
    is_tiny = fn.value(f"fcmp olt {type_} {magnitude}, {_constant(type_, 2.0**-14)}")
    y = fn.select(is_tiny, mask, tiny, normal, type_)
    too_large = fn.value(f"fcmp ogt {type_} {y}, {_constant(type_, 65504.0)}")
    y = fn.select(too_large, mask, _constant(type_, float("inf")), y, type_)
    y = fn.select(fn.value(f"fcmp uno {type_} {x}, {x}"), mask, x, y, type_)
    return fn.call("copysign", type_, ((type_, y), (type_, x)))


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
    """The register form of a value just loaded: bool from a byte, the 16-bit floats widened."""
    element, type_ = dt.element_of(dtype), register_type(dtype)
    if element == "bool":
        byte = with_element(type_, "i8")
        return fn.value(f"icmp ne {byte} {x}, {splat(byte, '0')}")
    if element not in SMALL_FLOATS:
        return x
    short, half, bits = (with_element(type_, e) for e in ("i16", "half", "i32"))
    if element == "float16" and has_half(fn):
        return fn.value(f"fpext {half} {fn.value(f'bitcast {short} {x} to {half}')} to {type_}")
    wide = fn.value(f"zext {short} {x} to {bits}")
    if element == "float16":
        return _widen_half(fn, wide, type_)
    return fn.value(f"bitcast {bits} {fn.value(f'shl {bits} {wide}, {_integer(type_, 16)}')} to {type_}")


def _widen_half(fn: FunctionEmitter, wide: str, type_: str) -> str:
    """The float of the float16 in the low bits: its exponent is moved by a multiplication, which is exact."""
    bits, mask = with_element(type_, "i32"), with_element(type_, "i1")
    low = fn.value(f"and {bits} {wide}, {_integer(type_, 0x7FFF)}")
    placed = fn.value(f"shl {bits} {low}, {_integer(type_, 13)}")
    finite = fn.value(f"fmul {type_} {fn.value(f'bitcast {bits} {placed} to {type_}')}, {_constant(type_, 2.0**112)}")
    endless = fn.value(f"bitcast {bits} {fn.value(f'or {bits} {placed}, {_integer(type_, 0x7F800000)}')} to {type_}")
    is_endless = fn.value(f"icmp uge {bits} {low}, {_integer(type_, 0x7C00)}")
    magnitude = fn.select(is_endless, mask, endless, finite, type_)
    sign = fn.value(f"bitcast {bits} {fn.value(f'shl {bits} {wide}, {_integer(type_, 16)}')} to {type_}")
    return fn.call("copysign", type_, ((type_, magnitude), (type_, sign)))


def to_memory(fn: FunctionEmitter, x: str, dtype: str) -> str:
    """The memory form of a register value, which is already rounded to dtype."""
    element, type_ = dt.element_of(dtype), register_type(dtype)
    if element == "bool":
        return fn.value(f"zext {type_} {x} to {with_element(type_, 'i8')}")
    if element not in SMALL_FLOATS:
        return x
    short, half, bits = (with_element(type_, e) for e in ("i16", "half", "i32"))
    if element == "float16" and has_half(fn):
        return fn.value(f"bitcast {half} {fn.value(f'fptrunc {type_} {x} to {half}')} to {short}")
    if element == "float16":
        return fn.value(f"trunc {bits} {_narrow_half(fn, x, type_)} to {short}")
    raw = fn.value(f"bitcast {type_} {x} to {bits}")
    return fn.value(f"trunc {bits} {fn.value(f'lshr {bits} {raw}, {_integer(type_, 16)}')} to {short}")


def _narrow_half(fn: FunctionEmitter, x: str, type_: str) -> str:
    """The bits of a float that has the precision of float16, in the low half of an i32."""
    bits, mask = with_element(type_, "i32"), with_element(type_, "i1")
    magnitude = fn.call("fabs", type_, ((type_, x),))
    raw = fn.value(f"bitcast {type_} {magnitude} to {bits}")
    rebased = fn.value(f"sub {bits} {raw}, {_integer(type_, 112 << 23)}")
    normal = fn.value(f"lshr {bits} {rebased}, {_integer(type_, 13)}")
    shifted = fn.value(f"fadd {type_} {magnitude}, {_constant(type_, 0.5)}")
    tiny = fn.value(f"and {bits} {fn.value(f'bitcast {type_} {shifted} to {bits}')}, {_integer(type_, 0x3FF)}")
    is_tiny = fn.value(f"fcmp olt {type_} {magnitude}, {_constant(type_, 2.0**-14)}")
    y = fn.select(is_tiny, mask, tiny, normal, bits)
    infinite = fn.value(f"fcmp oeq {type_} {magnitude}, {_constant(type_, float('inf'))}")
    y = fn.select(infinite, mask, _integer(type_, 0x7C00), y, bits)
    unordered = fn.value(f"fcmp uno {type_} {x}, {x}")
    y = fn.select(unordered, mask, _integer(type_, 0x7E00), y, bits)
    signed = fn.value(f"bitcast {type_} {x} to {bits}")
    sign = fn.value(f"and {bits} {fn.value(f'lshr {bits} {signed}, {_integer(type_, 16)}')}, {_integer(type_, 0x8000)}")
    return fn.value(f"or {bits} {y}, {sign}")
