"""How values look in LLVM IR: types in registers and in memory, constants, intrinsic suffixes."""
from __future__ import annotations

import functools
import struct

from tilewright.tir import dtype as dt

_ELEMENTS = {"bool": "i1", "float32": "float", "float64": "double", "handle": "ptr"}
_SUFFIX = {"float": "f32", "double": "f64", "half": "f16", "ptr": "p0"}


@functools.cache
def register_type(dtype: str) -> str:
    """LLVM type of a value of dtype in a register: i1 for bool, an integer for the floats of 16 and 8 bits."""
    element, lanes = dt.parse(dtype)
    type_ = _ELEMENTS.get(element) or f"i{dt.bits_of(element)}"
    return type_ if lanes == 1 else f"<{lanes} x {type_}>"


@functools.cache
def memory_type(dtype: str) -> str:
    """LLVM type of dtype in memory: a byte for bool."""
    return with_element(register_type(dtype), "i8") if dt.is_bool(dtype) else register_type(dtype)


@functools.cache
def suffix(llvm_type: str) -> str:
    """The mangled name of an LLVM type in an intrinsic's name: `<16 x float>` is v16f32."""
    if llvm_type.startswith("<"):
        lanes, element = llvm_type[1:-1].split(" x ")
        return f"v{lanes}{suffix(element)}"
    return _SUFFIX.get(llvm_type, llvm_type)


@functools.cache
def with_element(llvm_type: str, element: str) -> str:
    """llvm_type with another element type and the same number of lanes."""
    if llvm_type.startswith("<"):
        return f"{llvm_type.split(' x ')[0]} x {element}>"
    return element


@functools.cache
def lanes_of_type(llvm_type: str) -> int:
    return int(llvm_type[1:].split(" ")[0]) if llvm_type.startswith("<") else 1


def float_literal(value: float, element: str) -> str:
    """The constant in LLVM's hexadecimal form, rounded to the element type first."""
    value = dt.nearest(value, element)
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


@functools.lru_cache(4096)
def int_literal(value: int, element: str) -> str:
    """An integer or bool constant."""
    if element == "bool":
        return "true" if value else "false"
    if dt.is_unsigned(element) and value >= 1 << dt.bits_of(element) - 1:
        value -= 1 << dt.bits_of(element)        # LLVM's integers have no sign; print them as it does
    return str(value)


def with_zero(type_: str) -> str:
    """Zero of an LLVM type, scalar or vector."""
    if type_.startswith("<"):
        return "zeroinitializer"
    return "0.0" if type_ in ("float", "double") else "0"


def splat(llvm_type: str, constant: str) -> str:
    """A scalar constant as a constant of llvm_type."""
    if not llvm_type.startswith("<"):
        return constant
    return f"splat ({llvm_type[1:-1].split(' x ')[1]} {constant})"
