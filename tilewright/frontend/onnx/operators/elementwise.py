"""Operators element by element: arithmetic, elementary functions, comparisons, logic, bits, types."""
from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from tilewright import te, topi
from tilewright.frontend.onnx.node import Node, Unsupported
from tilewright.frontend.onnx.operators.small_floats import decoded, encoded
from tilewright.frontend.onnx.registry import operator
from tilewright.frontend.onnx.tensors import CODED, NUMBERS, numpy_type, stored
from tilewright.frontend.onnx.values import Held
from tilewright.graph.ir.values import Value
from tilewright.tir import dtype as dt
from tilewright.topi.types import accumulator

Rules = dict[str, Callable[..., Any]]
UNARY: Rules = {
    "Abs": topi.abs, "Acos": topi.acos, "Acosh": topi.acosh, "Asin": topi.asin, "Asinh": topi.asinh, "Atan": topi.atan,
    "Atanh": topi.atanh, "BitwiseNot": topi.bitwise_not, "Ceil": topi.ceil, "Cos": topi.cos, "Cosh": topi.cosh,
    "Det": topi.det, "Erf": topi.erf, "Exp": topi.exp, "Floor": topi.floor, "IsNaN": topi.isnan, "Log": topi.log,
    "Neg": topi.negative, "Not": topi.logical_not, "Reciprocal": topi.reciprocal, "Round": topi.round,
    "Sign": topi.sign, "Sin": topi.sin, "Sinh": topi.sinh, "Sqrt": topi.sqrt, "Tan": topi.tan, "Tanh": topi.tanh,
}
BINARY: Rules = {
    "Add": topi.add, "And": topi.logical_and, "BitwiseAnd": topi.bitwise_and, "BitwiseOr": topi.bitwise_or,
    "BitwiseXor": topi.bitwise_xor, "Equal": topi.equal, "Greater": topi.greater,
    "GreaterOrEqual": topi.greater_equal, "Less": topi.less, "LessOrEqual": topi.less_equal, "Mul": topi.multiply,
    "Or": topi.logical_or, "Sub": topi.subtract, "Xor": topi.logical_xor,
}
VARIADIC: Rules = {"Max": topi.maximum, "Min": topi.minimum, "Sum": topi.add}


def unary(rule: Callable[..., Any]) -> Callable[[Node], Any]:
    """A row for a rule of one tensor."""
    return lambda n: n.emit(rule, n.value(0))


def operands(n: Node) -> tuple[Any, Any]:
    """Inputs 0 and 1, at most one of them a number; by the rules of versions below 7 in models of these."""
    a = n.operand(0)
    b = n.operand(1) if isinstance(a, Value) else n.value(1)
    axis = n.attr("axis")
    if axis is not None and n.version < 7 and isinstance(b, Value) and isinstance(a, Value):
        behind = a.ndim - axis % max(a.ndim, 1) - b.ndim
        if behind > 0:
            b = n.emit(topi.expand_dims, b, axis=tuple(range(b.ndim, b.ndim + behind)))
    return a, b


def binary(rule: Callable[..., Any]) -> Callable[[Node], Any]:
    """A row for a rule of two tensors that broadcast."""
    return lambda n: n.emit(rule, *operands(n))


def variadic(rule: Callable[..., Any]) -> Callable[[Node], Any]:
    """A row for a rule of two tensors that is applied to several."""
    return lambda n: narrowed(n, combined(n, rule, n.values()))


def combined(n: Node, rule: Callable[..., Any], values: Sequence[Value]) -> Value:
    """A rule of two tensors of one after the other, in the type that accumulates."""
    return functools.reduce(lambda a, b: n.emit(rule, a, b), [n.emit(wider, v) for v in values])


def narrowed(n: Node, value: Value) -> Value:
    """A value in the type of input 0."""
    made: Value = value if value.dtype == n.held(0).dtype else n.emit(topi.astype, value, n.held(0).dtype)
    return made


def wider(x: Any) -> Any:
    """x in the type that accumulates."""
    wide = accumulator(x.dtype)
    return x if wide == x.dtype else topi.astype(x, wide)


def emit_floats(n: Node, rule: Callable[..., Any], x: Value, *others: Any, **attributes: Any) -> Value:
    """What a rule of floats makes of a first tensor; of integers its result without the fraction, in their range."""
    made: Value = n.emit(rule, x, *others, **attributes) if dt.is_float(x.dtype) else \
        n.emit(through_floats, rule, x, *others, **attributes)
    return made


def through_floats(rule: Callable[..., Any], x: Any, *others: Any, **attributes: Any) -> Any:
    """A rule of floats of integers."""
    wide = "float32" if dt.bits_of(x.dtype) <= 16 else "float64"
    return topi.astype(rule(topi.astype(x, wide), *others, **attributes), x.dtype)


for _name, _rule in UNARY.items():
    operator(_name, text=f"`topi.{_rule.__name__}`")(unary(_rule))
for _name, _rule in BINARY.items():
    operator(_name, text=f"`topi.{_rule.__name__}`")(binary(_rule))
for _name, _rule in VARIADIC.items():
    operator(_name, text=f"`topi.{_rule.__name__}`, of one input after the other")(variadic(_rule))


@operator("Mean")
def mean(n: Node) -> Value:
    """The sum of the inputs, divided by their number."""
    return narrowed(n, n.emit(topi.multiply, combined(n, topi.add, n.values()), 1.0 / len(n)))


def truncated_quotient(a: Any, b: Any) -> te.Tensor:
    """y = a / b of integers, without the fraction; 0 where b is 0."""
    return topi.floor_divide(topi.subtract(a, topi.fmod(a, b)), b)


@operator("Div")
def div(n: Node) -> Value:
    """`topi.divide`; of integers without the fraction."""
    a, b = operands(n)
    dtype = n.held(0).dtype
    if dt.is_float(dtype):
        return n.emit(topi.divide, a, b)
    return n.emit(topi.floor_divide if dt.is_unsigned(dtype) else truncated_quotient, a, b)


@operator("Mod")
def mod(n: Node) -> Value:
    """`topi.remainder`, or with fmod `topi.fmod`."""
    return n.emit(topi.fmod if n.attr("fmod", 0) else topi.remainder, *operands(n))


@operator("Pow")
def pow_(n: Node) -> Value:
    """`topi.power` in a type that holds both, converted to that of the base."""
    a, b = operands(n)
    base, exponent = n.held(0).dtype, n.held(1).dtype
    if base == exponent or dt.is_float(base) and not isinstance(b, Value) and dt.numpy_dtype(base).type(b) == b:
        return n.emit(topi.power, a, b)
    wide = "float64" if any(dt.bits_of(d) >= 32 for d in (base, exponent) if d != "float32") else "float32"
    if not dt.is_float(base) and not dt.is_float(exponent):
        wide = max(base, exponent, key=dt.bits_of)
    a, b = (n.emit(topi.astype, x, wide) if isinstance(x, Value) else x for x in (a, b))
    return n.emit(topi.astype, n.emit(topi.power, a, b), base)


@operator("Clip", until=10)
def clip_by_numbers(n: Node) -> Value:
    """`topi.clip`."""
    return n.emit(topi.clip, n.value(0), n.attr("min"), n.attr("max"))


@operator("Clip", since=11)
def clip(n: Node) -> Value:
    """`topi.clip`."""
    low, high = (n.operand(k) if n.has(k) else None for k in (1, 2))
    return n.emit(topi.clip, n.value(0), low, high)


@operator("IsInf")
def is_inf(n: Node) -> Value:
    """`topi.isinf`, `topi.isposinf` or `topi.isneginf`."""
    up, down = n.attr("detect_positive", 1), n.attr("detect_negative", 1)
    if not up and not down:
        return n.emit(topi.zeros_like, n.value(0), dtype="bool")
    return n.emit(topi.isinf if up and down else topi.isposinf if up else topi.isneginf, n.value(0))


@operator("Where")
def where(n: Node) -> Value:
    """`topi.where`."""
    return n.emit(topi.where, n.value(0), n.operand(1), n.value(2))


@operator("BitShift")
def bit_shift(n: Node) -> Value:
    """`topi.bitwise_left_shift` or `topi.bitwise_right_shift`."""
    left = n.required("direction") == "LEFT"
    return n.emit(topi.bitwise_left_shift if left else topi.bitwise_right_shift, *operands(n))


# types


def saturated(x: te.Tensor, dtype: str) -> te.Tensor:
    """y = x in dtype, at most the largest and at least the smallest number of it."""
    x = x if dt.is_float(x.dtype) else topi.astype(x, "float32")
    return te.compute(x.shape, lambda *i: te.saturate_cast(dtype, x(*i)), name="saturated")


def reinterpreted(x: te.Tensor, dtype: str) -> te.Tensor:
    """y = the number of dtype that has the bits of x."""
    if dt.is_bool(x.dtype):
        return topi.astype(x, dtype)
    return te.compute(x.shape, lambda *i: te.reinterpret(dtype, x(*i)), name="reinterpreted")


def low_bits(x: te.Tensor, bits: int, signed: bool) -> te.Tensor:
    """y = x as an integer of so many bits, in one of 8: what is beyond it is cut off."""
    whole = topi.astype(topi.astype(x, "int32"), "uint8")
    kept = topi.bitwise_and(whole, 2**bits - 1)
    if not signed:
        return kept
    half = 2**(bits - 1)
    return topi.subtract(topi.astype(topi.bitwise_xor(kept, half), "int8"), half)


def converted(n: Node, number: int) -> Held:
    """Input 0 in the data type of a number."""
    x, (kind, dtype) = n.value(0), stored(number, "the result")
    if n.held(0).kind in CODED:
        if kind == n.held(0).kind:
            return n.held(0)
        x = decoded(n, x, n.held(0).kind, dtype if kind == dtype and dt.is_float(dtype) else "float32")
    if kind in CODED:
        return Held.of(encoded(n, x, kind), kind)
    if kind != dtype:
        bits, signed = int(kind[-1]), dtype == "int8"
        return Held.of(n.emit(low_bits, x, bits, signed), kind)
    if dtype.startswith("float8") and n.attr("saturate", 1):
        return Held.of(n.emit(saturated, x, dtype), kind)
    return Held.of(n.emit(topi.astype, x, dtype), kind)


@operator("Cast", since=6)
def cast(n: Node) -> Held:
    """`topi.astype`; to floats of 8 bits saturated."""
    return converted(n, n.attr("to", 1))


@operator("CastLike")
def cast_like(n: Node) -> Held:
    """`topi.astype`, to the type of the second input."""
    return converted(n, NUMBERS[n.held(1).kind])


@operator("BitCast")
def bit_cast(n: Node) -> Held:
    """The numbers of another type that have the same bits."""
    kind, dtype = n.dtype()
    x = n.held(0)
    if numpy_type(dtype).itemsize != numpy_type(x.dtype).itemsize or kind != dtype or x.kind != x.dtype:
        raise Unsupported(f"from {x.kind} to {kind}: the types have different numbers of bits, or below 8")
    return Held.of(n.emit(reinterpreted, n.value(0), dtype))
