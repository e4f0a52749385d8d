"""One lane of every operator, cast and function as Python source, with the bounds of every integer.

A value is Python text. Integers are Python ints that wrap where the bounds say they may leave their dtype,
floats are NumPy scalars of their dtype (so every operation rounds), bools are bools.
"""
from __future__ import annotations

from typing import NamedTuple

from tilewright.support.errors import InterpreterError
from tilewright.tir import dtype as dt
from tilewright.tir.interp import support as rt
from tilewright.tir.ops import BINARY, INTRINSICS


class V(NamedTuple):
    """Python text of a value; low and high bound an integer (every lane of a vector)."""
    text: str
    low: int = 0
    high: int = 0


_COMPARE = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_DIVISIONS = {"floordiv": rt.floor_div, "floormod": rt.floor_mod, "truncdiv": rt.trunc_div, "truncmod": rt.trunc_mod}


def literal(value: int) -> V:
    return V(str(value) if value >= 0 else f"({value})", value, value)


def wrap(text: str, low: int, high: int, dtype: str) -> V:
    """text, an integer in [low, high], reduced to its dtype in two's complement."""
    least, most = dt.integer_range(dtype)
    if least <= low and high <= most:
        return literal(low) if low == high else V(text, low, high)
    mask = hex((1 << dt.bits_of(dtype)) - 1)
    if dt.is_signed(dtype):
        return V(f"(({text} + {hex(-least)} & {mask}) - {hex(-least)})", least, most)
    return V(f"({text} & {mask})", least, most)


def integer_binary(op: str, a: V, b: V, dtype: str) -> V:
    """a op b on integers of one dtype; division by zero gives 0, shifts by the width or more shift everything out."""
    if op in ("add", "sub"):
        if op == "add":
            text = b.text if a.text == "0" else a.text if b.text == "0" else f"({a.text} + {b.text})"
            return wrap(text, a.low + b.low, a.high + b.high, dtype)
        return wrap(a.text if b.text == "0" else f"({a.text} - {b.text})", a.low - b.high, a.high - b.low, dtype)
    if op == "mul":
        corners = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
        text = b.text if a.text == "1" else a.text if b.text == "1" else f"({a.text} * {b.text})"
        return wrap(text, min(corners), max(corners), dtype)
    if op in _DIVISIONS:
        return _integer_division(op, a, b, dtype)
    if op == "min":
        return V(f"min({a.text}, {b.text})", min(a.low, b.low), min(a.high, b.high))
    if op == "max":
        return V(f"max({a.text}, {b.text})", max(a.low, b.low), max(a.high, b.high))
    least, most = dt.integer_range(dtype)
    if op in ("shl", "shr"):
        bits = dt.bits_of(dtype)
        inside = 0 <= b.low and b.high < bits
        if op == "shr":
            text = f"({a.text} >> {b.text})" if inside else f"shift_right({a.text}, {b.text}, {bits})"
            return V(text, min(a.low, 0), max(a.high, 0))
        if inside:
            corners = [x << y for x in (a.low, a.high) for y in (b.low, b.high)]
            return wrap(f"({a.text} << {b.text})", min(corners), max(corners), dtype)
        return wrap(f"shift_left({a.text}, {b.text}, {bits})", least << bits, most << bits, dtype)
    symbol = {"bitand": "&", "bitor": "|", "bitxor": "^"}[op]
    low, high = least, most
    if a.low >= 0 and b.low >= 0:
        low, high = 0, min(a.high, b.high) if op == "bitand" else (1 << max(a.high, b.high).bit_length()) - 1
    return V(f"({a.text} {symbol} {b.text})", low, high)


def _integer_division(op: str, a: V, b: V, dtype: str) -> V:
    natural = a.low >= 0 and b.low > 0
    if b.low > 0 and (natural or op.startswith("floor")):
        if op.endswith("div"):
            corners = [x // y for x in (a.low, a.high) for y in (b.low, b.high)]
            return V(f"({a.text} // {b.text})", min(corners), max(corners))
        if natural and a.high < b.low:
            return a
        return V(f"({a.text} % {b.text})", 0, b.high - 1 if not natural else min(b.high - 1, a.high))
    name = _DIVISIONS[op].__name__
    reach = max(abs(a.low), abs(a.high), 1)
    if op == "floormod":
        reach = max(abs(b.low), abs(b.high), 1)
    return wrap(f"{name}({a.text}, {b.text})", -reach, reach, dtype)


def compare(op: str, a: V, b: V, integers: bool) -> V:
    """The comparison as a bool, decided here where the bounds of integers decide it."""
    if integers:
        low, high = (a, b) if op in ("lt", "le") else (b, a)
        strict = op in ("lt", "gt")
        if op in ("lt", "le", "gt", "ge"):
            if low.high < high.low or (not strict and low.high == high.low):
                return V("True")
            if low.low > high.high or (strict and low.low == high.high):
                return V("False")
        elif a.low == a.high == b.low == b.high:
            return V(str(op == "eq"))
        elif a.high < b.low or b.high < a.low:
            return V(str(op == "ne"))
    return V(f"({a.text} {_COMPARE[op]} {b.text})")


def scalar_binary(op: str, a: V, b: V, dtype: str) -> V:
    """One lane of `a op b`, both of dtype; text only, no statements."""
    if op in _COMPARE:
        return compare(op, a, b, dt.is_integer(dtype))
    if op in ("and", "or"):
        return logical(op, a, b)
    if dt.is_bool(dtype):
        if op in ("min", "max"):
            return logical("and" if op == "min" else "or", a, b)
        return V(f"({a.text} {BINARY[op].symbol} {b.text})")
    if dt.is_integer(dtype):
        return integer_binary(op, a, b, dtype)
    if op in ("min", "max"):
        return V(f"{op}imum({a.text}, {b.text})")
    return V(f"({a.text} {BINARY[op].symbol} {b.text})")


def logical(op: str, a: V, b: V) -> V:
    decides = "False" if op == "and" else "True"
    if decides in (a.text, b.text):
        return V(decides)
    neutral = "True" if op == "and" else "False"
    if a.text == neutral or b.text == neutral:
        return b if a.text == neutral else a
    return V(f"({a.text} {op} {b.text})")


def scalar_cast(x: V, source: str, target: str) -> V:
    """One lane of x converted from source to target."""
    if source == target:
        return x
    if dt.is_bool(target):
        return V(f"({x.text} != 0)")
    if dt.is_float(target):
        if dt.is_float(source):
            return V(f"{target}({x.text})")
        text = f"int({x.text})" if dt.is_bool(source) else x.text
        exact = dt.is_bool(source) or max(abs(x.low), abs(x.high)) <= 1 << 53
        return V(f"{target}({text})" if exact else f'wide_int_to_float({text}, "{target}")')
    low, high = dt.integer_range(target)
    if dt.is_float(source):
        return V(f"to_int({x.text}, {low}, {high})", low, high)
    if dt.is_bool(source):
        return V(f"int({x.text})", 0, 1)
    return wrap(x.text, x.low, x.high, target)


def scalar_call(op: str, args: list[V], source: str, target: str) -> V:
    """One lane of a pure intrinsic whose (last) operand has dtype source and whose result has dtype target."""
    text = ", ".join(a.text for a in args)
    low, high = (0, 0) if not dt.is_integer(target) else dt.integer_range(target)
    if INTRINSICS[op].evaluate is not None:
        return V(f"{op}_{source}({text})", low, high)
    x = args[0]
    match op:
        case "abs" if dt.is_float(source):
            return V(f"abs({x.text})")
        case "abs":
            return wrap(f"abs({x.text})", 0, max(abs(x.low), abs(x.high)), source)
        case "isnan":
            return V(f"({x.text} != {x.text})")
        case "isinf":
            return V(f"(abs({x.text}) == infinity)")
        case "isfinite":
            return V(f"(abs({x.text}) < infinity)")
        case "bitwise_not":
            signed = dt.is_signed(source)
            return V(f"(~{x.text})", ~x.high, ~x.low) if signed else V(f"({hex(high)} - {x.text})", low, high)
        case "reinterpret":
            return V(f'reinterpret({x.text}, "{source}", "{target}")', low, high)
        case "likely":
            return x
        case "checked_index":
            return V(f"({x.text} if 0 <= {x.text} < {args[1].text} else -1)", -1, args[1].high - 1)
    raise InterpreterError(f"the interpreter has no rule for {op}")
