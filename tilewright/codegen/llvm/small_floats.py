"""float16 and bfloat16: held as float32 in registers, rounded after every operation, 16 bits in memory."""
from __future__ import annotations

from tilewright.codegen.llvm.context import FunctionEmitter
from tilewright.codegen.llvm.types import SMALL_FLOATS, register_type, splat, with_element
from tilewright.tir import dtype as dt


def round_small(fn: FunctionEmitter, x: str, dtype: str) -> str:
    """x, computed in float32, rounded to the precision of dtype when that is a 16-bit float."""
    element = dt.element_of(dtype)
    if element not in SMALL_FLOATS:
        return x
    type_ = register_type(dtype)
    if element == "float16":
        half = fn.value(f"fptrunc {type_} {x} to {with_element(type_, 'half')}")
        return fn.value(f"fpext {with_element(type_, 'half')} {half} to {type_}")
    bits = with_element(type_, "i32")
    kept = fn.value(f"and {bits} {_rounded_bits(fn, x, type_)}, {splat(bits, '-65536')}")
    return fn.value(f"bitcast {bits} {kept} to {type_}")


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
    if element == "float16":
        return fn.value(f"fpext {with_element(type_, 'half')} {x} to {type_}")
    if element == "bfloat16":
        bits = with_element(type_, "i32")
        wide = fn.value(f"zext {with_element(type_, 'i16')} {x} to {bits}")
        moved = fn.value(f"shl {bits} {wide}, {splat(bits, '16')}")
        return fn.value(f"bitcast {bits} {moved} to {type_}")
    return x


def to_memory(fn: FunctionEmitter, x: str, dtype: str) -> str:
    """The memory form of a register value, which is already rounded to dtype."""
    element, type_ = dt.element_of(dtype), register_type(dtype)
    if element == "bool":
        return fn.value(f"zext {type_} {x} to {with_element(type_, 'i8')}")
    if element == "float16":
        return fn.value(f"fptrunc {type_} {x} to {with_element(type_, 'half')}")
    if element == "bfloat16":
        bits = with_element(type_, "i32")
        raw = fn.value(f"bitcast {type_} {x} to {bits}")
        upper = fn.value(f"lshr {bits} {raw}, {splat(bits, '16')}")
        return fn.value(f"trunc {bits} {upper} to {with_element(type_, 'i16')}")
    return x
