"""Floats that the graph has no type for: codes in uint8, which are read by a table and made by rounding."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from tilewright import te, topi
from tilewright.frontend.onnx.node import Node
from tilewright.graph.ir.values import Value
from tilewright.tir.arithmetic import binary
from tilewright.tir.conversion import const


@dataclass(frozen=True)
class Form:
    """A form of floats: bits of the mantissa, the bias of the exponent, the place of the sign.

    largest: the code of the largest number; nan: that of NaN; beyond: that of what is larger, unless it is saturated;
    zeros: -0 has a code of its own.
    """
    mantissa: int
    bias: int
    largest: int
    nan: int
    beyond: int
    zeros: bool
    sign: int


FORMS = {
    "float8_e4m3fnuz": Form(3, 8, 0x7F, 0x80, 0x80, False, 7),
    "float8_e5m2fnuz": Form(2, 16, 0x7F, 0x80, 0x80, False, 7),
    "float4_e2m1fn": Form(1, 1, 7, 8, 7, True, 3),
}


def decoded(n: Node, x: Value, kind: str, dtype: str) -> Value:
    """The numbers of dtype that codes stand for: all of them are exact."""
    codes = np.arange(16 if kind == "float4_e2m1fn" else 256, dtype="uint8")
    table = n.constant(codes.view(getattr(ml_dtypes, kind)).astype("float32"))
    y = n.emit(topi.take, table, n.emit(topi.astype, x, "int32"), axis=0)
    return y if dtype == "float32" else n.emit(topi.astype, y, dtype)


def encoded(n: Node, x: Value, kind: str) -> Value:
    """The codes of the numbers next to x, of two the even one."""
    wide = x if x.dtype == "float32" else n.emit(topi.astype, x, "float32")
    saturate = bool(n.attr("saturate", 1))
    if kind == "float8_e8m0fnu":
        return n.emit(powers_of_two, wide, n.attr("round_mode", "up"), saturate)
    return n.emit(codes_of, wide, kind, saturate)


def codes_of(x: te.Tensor, kind: str, saturate: bool) -> te.Tensor:
    """y: uint8, the code of the number of a kind next to x: float32."""
    f = FORMS[kind]
    shift = 23 - f.mantissa

    def u(value: int) -> Any:
        return const(value, "uint32")

    def code(*i: Any) -> Any:
        bits = te.reinterpret("uint32", x(*i))
        size = bits & u(0x7FFFFFFF)
        value = te.reinterpret("float32", size)
        even = (size >> u(shift)) & u(1)
        normal = ((size + u((1 << shift - 1) - 1) + even) >> u(shift)) - u(127 - f.bias << f.mantissa)
        small = te.nearbyint(te.minimum(value, const(1.0, "float32")) * 2.0**(f.bias - 1 + f.mantissa)).astype("uint32")
        found = te.select(value < const(2.0**(1 - f.bias), "float32"), small, normal)
        most = f.largest if saturate else f.beyond
        limited = te.select(binary("gt", found, u(f.largest)), u(most), found)
        sign = (bits >> u(31)) << u(f.sign)
        if not f.zeros:
            sign = te.select(binary("eq", limited, u(0)), u(0), sign)
        signed = limited | sign
        return te.select(te.isnan(x(*i)), u(f.nan), signed).astype("uint8")
    return te.compute(x.shape, code, name="codes")


def powers_of_two(x: te.Tensor, rounding: str, saturate: bool) -> te.Tensor:
    """y: uint8, the exponent of the power of two next to x: float32, at least 0."""
    extra = {"up": 0x7FFFFF, "down": 0, "nearest": 0x400000}.get(rounding, 0x7FFFFF)

    def code(*i: Any) -> Any:
        size = te.reinterpret("uint32", x(*i)) & const(0x7FFFFFFF, "uint32")
        found = (size + const(extra, "uint32")) >> const(23, "uint32")
        outside = binary("gt", found, const(254, "uint32"))
        if not saturate:
            outside = te.any(outside, binary("eq", size, const(0, "uint32")))
        limited = te.select(outside, const(254 if saturate else 255, "uint32"), found)
        return te.select(te.isnan(x(*i)), const(255, "uint32"), limited).astype("uint8")
    return te.compute(x.shape, code, name="exponents")
