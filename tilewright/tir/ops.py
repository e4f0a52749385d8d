"""What the operators mean: one row per binary operator and per intrinsic function."""
from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class BinaryOp:
    """`a op b`: how it prints, folds on Python constants, and which laws it obeys.

    `fold` gets Python ints (integer and bool operands) or floats; it is never called with a zero divisor.
    """
    symbol: str                 # infix spelling, or the T.* function when `infix` is False
    precedence: int
    fold: Callable[[Any, Any], Any]
    compares: bool = False      # result is bool
    commutes: bool = False
    logical: bool = False       # operands are bool
    infix: bool = True


def trunc_div(a: int, b: int) -> int:
    """a / b rounded to zero, as in C."""
    q = abs(a) // abs(b)
    return q if (a < 0) == (b < 0) else -q


def trunc_mod(a: int, b: int) -> int:
    """a - b * trunc_div(a, b): the sign of a, as in C."""
    return a - b * trunc_div(a, b)


def _min(a: Any, b: Any) -> Any:
    return a if a != a or a < b else b          # NaN propagates


def _max(a: Any, b: Any) -> Any:
    return a if a != a or a > b else b


# Precedences follow Python's, so that printed text parses back to the same tree.
NOT_PRECEDENCE = 3

BINARY: dict[str, BinaryOp] = {
    "or": BinaryOp("or", 1, lambda a, b: a or b, logical=True, commutes=True),
    "and": BinaryOp("and", 2, lambda a, b: a and b, logical=True, commutes=True),
    "eq": BinaryOp("==", 4, operator.eq, compares=True, commutes=True),
    "ne": BinaryOp("!=", 4, operator.ne, compares=True, commutes=True),
    "lt": BinaryOp("<", 4, operator.lt, compares=True),
    "le": BinaryOp("<=", 4, operator.le, compares=True),
    "gt": BinaryOp(">", 4, operator.gt, compares=True),
    "ge": BinaryOp(">=", 4, operator.ge, compares=True),
    "add": BinaryOp("+", 9, operator.add, commutes=True),
    "sub": BinaryOp("-", 9, operator.sub),
    "mul": BinaryOp("*", 10, operator.mul, commutes=True),
    "div": BinaryOp("/", 10, operator.truediv),                       # floating point only
    "floordiv": BinaryOp("//", 10, operator.floordiv),                # rounds to minus infinity
    "floormod": BinaryOp("%", 10, operator.mod),
    "truncdiv": BinaryOp("T.truncdiv", 12, trunc_div, infix=False),  # rounds to zero; integers only
    "truncmod": BinaryOp("T.truncmod", 12, trunc_mod, infix=False),
    "min": BinaryOp("T.min", 12, _min, commutes=True, infix=False),
    "max": BinaryOp("T.max", 12, _max, commutes=True, infix=False),
    "bitand": BinaryOp("&", 7, operator.and_, commutes=True),
    "bitxor": BinaryOp("^", 6, operator.xor, commutes=True),
    "bitor": BinaryOp("|", 5, operator.or_, commutes=True),
    "shl": BinaryOp("<<", 8, operator.lshift),
    "shr": BinaryOp(">>", 8, operator.rshift),                    # arithmetic on signed, logical on unsigned
}


@dataclass(frozen=True)
class Intrinsic:
    """A function called by name: T.<name>(...).

    `kind`: "math" takes and gives floats elementwise; "pure" is any other function without effects;
    "effect" must be kept and kept in order. `evaluate` gives the value on Python floats for "math" functions.
    """
    arity: int                              # -1: any
    kind: str = "math"
    evaluate: Callable[..., Any] | None = None


def _sigmoid(x: float) -> float:
    return 1.0 / (1.0 + math.exp(-x)) if x >= 0 else math.exp(x) / (1.0 + math.exp(x))


_MATH: dict[str, Callable[[float], Any]] = {
    "exp": math.exp, "exp2": lambda x: 2.0 ** x, "expm1": math.expm1,
    "log": math.log, "log2": math.log2, "log10": math.log10, "log1p": math.log1p,
    "sqrt": math.sqrt, "rsqrt": lambda x: 1.0 / math.sqrt(x),
    "sin": math.sin, "cos": math.cos, "tan": math.tan, "asin": math.asin, "acos": math.acos,
    "atan": math.atan, "sinh": math.sinh, "cosh": math.cosh, "tanh": math.tanh, "sigmoid": _sigmoid,
    "erf": math.erf, "floor": math.floor, "ceil": math.ceil, "trunc": math.trunc,
    "round": round, "nearbyint": round,                              # ties to even
}
INTRINSICS: dict[str, Intrinsic] = {name: Intrinsic(1, "math", fn) for name, fn in _MATH.items()}
INTRINSICS |= {
    "pow": Intrinsic(2, "math", math.pow), "atan2": Intrinsic(2, "math", math.atan2),
    "fmod": Intrinsic(2, "math", math.fmod), "copysign": Intrinsic(2, "math", math.copysign),
    "fma": Intrinsic(3, "math", lambda a, b, c: a * b + c),
    "abs": Intrinsic(1, "pure"), "isnan": Intrinsic(1, "pure"), "isinf": Intrinsic(1, "pure"),
    "isfinite": Intrinsic(1, "pure"), "popcount": Intrinsic(1, "pure"), "clz": Intrinsic(1, "pure"),
    "bitwise_not": Intrinsic(1, "pure"), "reinterpret": Intrinsic(1, "pure"),
    "likely": Intrinsic(1, "pure"),            # the condition itself; marks a guard that mostly holds
    "checked_index": Intrinsic(2, "pure"),     # (i, extent): i where 0 <= i < extent, else an index of no element
    "if_then_else": Intrinsic(3, "pure"),          # (condition, a, b): only the branch taken is evaluated
    "call_extern": Intrinsic(-1, "effect"),        # (StringImm symbol, args...): a C function
    "call_packed": Intrinsic(-1, "effect"),        # (StringImm name, args...): a registered packed function
    "access_ptr": Intrinsic(-1, "pure"),
    "assume": Intrinsic(1, "effect"),
    "prefetch": Intrinsic(1, "effect"),            # (Load,): bring the element's line near
    "sync": Intrinsic(1, "effect"),                # (StringImm scope,): barrier of a thread block
}
