"""Scalar expressions of random programs as data, and what they are in NumPy.

Nothing here comes from the compiler: the meaning of an operator is written once more, from docs/low_bit.md and
docs/script.md. Integers wrap, division by zero gives 0, shifts by a negative amount or by the width or more shift
everything out, floats become integers by truncation and saturation.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

SIGNED, UNSIGNED = ("int8", "int16", "int32", "int64"), ("uint8", "uint16", "uint32", "uint64")
INTEGERS, FLOATS = SIGNED + UNSIGNED, ("float16", "float32", "float64")
COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")
ARITHMETIC = ("add", "sub", "mul", "floordiv", "floormod", "truncdiv", "truncmod", "shl", "shr", "and", "or", "xor",
              "min", "max")


@dataclass(frozen=True, eq=False)
class Scalar:
    """op(args) of dtype. A leaf has no args: op "name" (value is its name) or "const" (value is the number)."""
    op: str
    dtype: str
    args: tuple[Scalar, ...] = ()
    value: Any = None


def name(text: str, dtype: str) -> Scalar:
    return Scalar("name", dtype, value=text)


def const(value: Any, dtype: str) -> Scalar:
    return Scalar("const", dtype, value=value)


def bits(dtype: str) -> int:
    return 8 * np.dtype(dtype).itemsize


def limits(dtype: str) -> tuple[int, int]:
    """(least, greatest) integer of dtype."""
    info = np.iinfo(dtype)
    return int(info.min), int(info.max)


def wrapped(value: int, dtype: str) -> int:
    """The integer that dtype makes of value."""
    low, high = limits(dtype)
    return (value - low) % (high - low + 1) + low


def _truncdiv(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    floor = np.floor_divide(a, b)
    if a.dtype.kind == "u":
        return floor
    rest = (b != 0) & (np.remainder(a, b) != 0) & ((a < 0) != (b < 0))
    return floor + rest.astype(a.dtype)


def _amount(b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(where the amount is inside of the width, an amount that is)."""
    width = bits(b.dtype.name)
    inside = (b >= 0) & (b < width)
    return inside, np.where(inside, b, 0).astype(b.dtype)


def _shl(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    inside, amount = _amount(b)
    return np.where(inside, np.left_shift(a, amount), np.zeros_like(a)).astype(a.dtype)


def _shr(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    inside, amount = _amount(b)
    sign = -(a < 0).astype(a.dtype) if a.dtype.kind == "i" else np.zeros_like(a)
    return np.where(inside, np.right_shift(a, amount), sign).astype(a.dtype)


def converted(a: np.ndarray, dtype: str) -> np.ndarray:
    """a as dtype."""
    if dtype == "bool":
        return a != 0
    if a.dtype.kind == "f" and dtype in INTEGERS:
        low, high = limits(dtype)
        whole = [0 if x != x else low if x <= low else high if x >= high else int(x) for x in a.astype("float64").flat]
        return np.array(whole, dtype).reshape(a.shape)
    return a.astype(dtype)


MEANING: dict[str, Callable[..., np.ndarray]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "min": np.minimum, "max": np.maximum,
    "floordiv": np.floor_divide, "floormod": np.remainder, "truncdiv": _truncdiv, "truncmod": np.fmod,
    "shl": _shl, "shr": _shr, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
    "neg": np.negative, "invert": np.invert, "abs": np.abs, "not": np.logical_not,
    "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal, "eq": np.equal, "ne": np.not_equal,
    "all": np.logical_and, "any": np.logical_or, "select": np.where, "if": np.where, "likely": lambda a: a,
}


def evaluate(e: Scalar, known: Mapping[str, np.ndarray], memo: dict[int, np.ndarray] | None = None) -> np.ndarray:
    """The values of e; known: those of its names, arrays of one shape and of the dtypes of the names."""
    memo = {} if memo is None else memo
    if id(e) not in memo:
        if e.op == "name":
            out = known[e.value]
        elif e.op == "const":
            out = np.array(e.value, e.dtype)
        else:
            args = [evaluate(a, known, memo) for a in e.args]
            with np.errstate(all="ignore"):
                out = converted(args[0], e.dtype) if e.op == "cast" else MEANING[e.op](*args)
        assert out.dtype == e.dtype, (e.op, e.dtype, out.dtype)
        memo[id(e)] = out
    return memo[id(e)]


# as text of a script ---------------------------------------------------------------------------------------------
_INFIX = {"add": "+", "sub": "-", "mul": "*", "floordiv": "//", "floormod": "%", "shl": "<<", "shr": ">>", "and": "&",
          "or": "|", "xor": "^", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!=", "all": "and",
          "any": "or"}
_CALLS = {"truncdiv": "T.truncdiv", "truncmod": "T.truncmod", "min": "T.min", "max": "T.max", "abs": "T.abs",
          "select": "T.Select", "if": "T.if_then_else", "likely": "T.likely"}
_PREFIX = {"neg": "-", "invert": "~", "not": "not "}


def literal(value: Any, dtype: str) -> str:
    if dtype == "bool":
        return f"T.boolean({bool(value)})"
    if dtype in FLOATS:
        return f"T.{dtype}({float(value)!r})" if np.isfinite(value) else f'T.{dtype}("{float(value)}")'
    return f"T.{dtype}({int(value)})"


def text(e: Scalar, names: Mapping[str, str]) -> str:
    """e in a script, in brackets; names: what stands there for each name."""
    if e.op == "name":
        return names[e.value]
    if e.op == "const":
        return literal(e.value, e.dtype)
    args = [text(a, names) for a in e.args]
    if e.op == "cast":
        return f'T.cast({args[0]}, "{e.dtype}")'
    if e.op in _INFIX:
        return f"({args[0]} {_INFIX[e.op]} {args[1]})"
    if e.op in _PREFIX:
        return f"({_PREFIX[e.op]}{args[0]})"
    return f"{_CALLS[e.op]}({', '.join(args)})"


# as an expression of te ------------------------------------------------------------------------------------------
def expression(e: Scalar, names: Mapping[str, Any], te: Any) -> Any:
    """e by the operators and functions of the module te; names: what stands there for each name."""
    if e.op == "name":
        return names[e.value]
    if e.op == "const":
        return te.const(e.value, e.dtype)
    args = [expression(a, names, te) for a in e.args]
    match e.op:
        case "cast":
            return args[0].astype(e.dtype)
        case "neg":
            return -args[0]
        case "invert":
            return ~args[0]
        case "all" | "any" | "likely" | "abs":
            return getattr(te, e.op)(*args)
        case "not":
            return te.logical_not(*args)
        case "select":
            return te.Select(*args)
        case "if":
            return te.if_then_else(*args)
        case "min" | "max":
            return getattr(te, f"{e.op}imum")(*args)
        case "truncdiv" | "truncmod":
            return getattr(te, e.op)(*args)
    return _PYTHON[e.op](*args)


_PYTHON: dict[str, Callable[[Any, Any], Any]] = {
    op: eval(f"lambda a, b: a {sign} b") for op, sign in _INFIX.items() if op not in ("all", "any")}
