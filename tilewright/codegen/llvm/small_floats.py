"""Floats of 16 and 8 bits: held as float32 in registers, rounded after every operation, small in memory only."""
from __future__ import annotations

from tilewright.codegen.llvm.context import FunctionEmitter
from tilewright.codegen.llvm.formulas import inline
from tilewright.codegen.llvm.types import memory_type, register_type, splat, with_element
from tilewright.formulas.small_floats import narrowed, rounded, widened
from tilewright.tir import dtype as dt
from tilewright.tir.dtype import SMALL_FLOATS


def _is_native(fn: FunctionEmitter, element: str) -> bool:
    """True when the CPU converts the float itself: float16. LLVM would call library functions that nobody links."""
    return element == "float16" and ("sse2" not in fn.module.features or "f16c" in fn.module.features)


def round_small(fn: FunctionEmitter, x: str, dtype: str) -> str:
    """x, computed in float32, rounded to the precision of dtype when that is a float of 16 or 8 bits."""
    element = dt.element_of(dtype)
    if element not in SMALL_FLOATS:
        return x
    if not _is_native(fn, element):
        return inline(fn, rounded(dtype), x)
    type_ = register_type(dtype)
    half = with_element(type_, "half")
    return fn.value(f"fpext {half} {fn.value(f'fptrunc {type_} {x} to {half}')} to {type_}")


def from_memory(fn: FunctionEmitter, x: str, dtype: str) -> str:
    """The register form of a value just loaded: bool from a byte, the floats of 16 and 8 bits widened."""
    element, type_ = dt.element_of(dtype), register_type(dtype)
    if element == "bool":
        byte = with_element(type_, "i8")
        return fn.value(f"icmp ne {byte} {x}, {splat(byte, '0')}")
    if element not in SMALL_FLOATS:
        return x
    if not _is_native(fn, element):
        value = inline(fn, widened(dtype), x)
    else:
        half = with_element(type_, "half")
        value = fn.value(f"fpext {half} {fn.value(f'bitcast {memory_type(dtype)} {x} to {half}')} to {type_}")
    fn.stored[value] = dtype, x
    return value


def to_memory(fn: FunctionEmitter, x: str, dtype: str) -> str:
    """The memory form of a register value, which is already rounded to dtype."""
    element, type_ = dt.element_of(dtype), register_type(dtype)
    if element == "bool":
        return fn.value(f"zext {type_} {x} to {with_element(type_, 'i8')}")
    if element not in SMALL_FLOATS:
        return x
    known = fn.stored.get(x)
    if known is not None and known[0] == dtype:            # a copy
        return known[1]
    if not _is_native(fn, element):
        return inline(fn, narrowed(dtype), x)
    half = with_element(type_, "half")
    return fn.value(f"bitcast {half} {fn.value(f'fptrunc {type_} {x} to {half}')} to {memory_type(dtype)}")
