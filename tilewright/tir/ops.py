"""What the operators mean: one row per binary operator and per intrinsic function."""
from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright.tir import dtype as dt


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
    """A function called by name: T.<name>(...), and te.<name>(...) for those that take numbers only.

    kind: "math" takes and gives floats elementwise; "pure" is any other function without effects;
    "effect" must be kept and kept in order.
    meaning: what a function of numbers gives for x, or for a, b, c: the docstring of te's function.
    ulp: of floats, the largest error that tests allow in float32 and in float64, in units of the last place, on
    processors with fused multiply-adds.
    evaluate: what the interpreter computes. Of floats: evaluate(*args) on Python floats, rounded once to the dtype.
    Of integers: evaluate(dtype, *args) on Python ints, with a result that the dtype holds.
    special: the value on NumPy float64 where `evaluate` raises (a domain, an overflow); None: NumPy's function of
    that name, if it has one.
    llvm: the intrinsic of LLVM that computes it, then the constant operands that follow the arguments.
    expansion: expansion(f, *args) is the function in terms of others, f.<name>; code generation uses it where there is
    neither `llvm` nor a rule of its own. Floats of 16 and 8 bits are expanded in float32 and rounded once.
    """
    arity: int                              # -1: any
    kind: str = "math"
    evaluate: Callable[..., Any] | None = None
    special: Callable[..., Any] | None = None
    operands: str = ""                      # "float" or "integer": other arguments are refused
    predicate: bool = False                 # gives a bool
    llvm: tuple[str, ...] = ()
    expansion: Callable[..., Any] | None = None
    meaning: str = ""
    ulp: tuple[float, float] | None = None


def _math(meaning: str, ulp: float | tuple[float, float], evaluate: Callable[..., Any],
          special: Callable[..., Any] | None = None, arity: int = 1, llvm: str = "",
          expansion: Callable[..., Any] | None = None) -> Intrinsic:
    """A function of floats."""
    return Intrinsic(arity, "math", evaluate, special, "float", llvm=(llvm,) if llvm else (), expansion=expansion,
                     meaning=meaning, ulp=ulp if isinstance(ulp, tuple) else (ulp, ulp))


def _bits(meaning: str, evaluate: Callable[..., Any], *llvm: str, arity: int = 1) -> Intrinsic:
    """A function of integers."""
    return Intrinsic(arity, "pure", evaluate, operands="integer", llvm=llvm, meaning=meaning)


def _predicate(meaning: str, expansion: Callable[..., Any]) -> Intrinsic:
    """A question about a float."""
    return Intrinsic(1, "pure", operands="float", predicate=True, expansion=expansion, meaning=meaning)


def _sigmoid(x: float) -> float:
    return 1.0 / (1.0 + math.exp(-x)) if x >= 0 else math.exp(x) / (1.0 + math.exp(x))


def _hypot(f: Any, x: Any, y: Any) -> Any:
    """sqrt(x*x + y*y) without overflow on the way: m sqrt(1 + (n / m)^2), m the larger; infinite if x or y is."""
    large, small = f.max(f.abs(x), f.abs(y)), f.min(f.abs(x), f.abs(y))
    ratio = small / f.select(large > 0, large, 1.0)
    return f.select(f.isinf(x), f.abs(x), f.select(f.isinf(y), f.abs(y), large * f.sqrt(1.0 + ratio * ratio)))


_LOG_2 = math.log(2.0)
_LARGE = 1e8                                # 1 + x * x is x * x from here on


def _asinh(f: Any, x: Any) -> Any:
    """log(a + sqrt(a*a + 1)) with the sign of x, a = |x|; by log1p, which keeps small a, and log(2 a) for a large a."""
    a = f.abs(x)
    near = f.log1p(a + a * a / (1.0 + f.sqrt(1.0 + a * a)))
    return f.copysign(f.select(a > _LARGE, f.log(a) + _LOG_2, near), x)


def _acosh(f: Any, x: Any) -> Any:
    """log(x + sqrt(x*x - 1)); by log1p of what is above 1, which keeps x near 1, and log(2 x) for a large x."""
    t = x - 1.0
    near = f.log1p(t + f.sqrt(t * (t + 2.0)))
    return f.select(x < 1.0, math.nan, f.select(x > _LARGE, f.log(x) + _LOG_2, near))


def _atanh(f: Any, x: Any) -> Any:
    """log((1 + a) / (1 - a)) / 2 with the sign of x, a = |x|; by log1p, which keeps small a."""
    a = f.abs(x)
    far = 2.0 * a / (1.0 - a)
    return f.copysign(0.5 * f.log1p(f.select(a < 0.5, 2.0 * a + far * a, far)), x)


# Instructions of GPUs that programs name: they parse, print and are scheduled; there is no code for them on a CPU.
# Those called as T.name(...), and as T.name(dtype, ...).
_GPU_PLAIN = (
    "tvm_load_matrix_sync", "tvm_store_matrix_sync", "tvm_fill_fragment", "tvm_mma_sync", "tvm_bmma_sync",
    "ptx_commit_group", "ptx_wait_group", "ptx_cp_async_barrier", "ptx_init_barrier_thread_count",
    "ptx_arrive_barrier", "ptx_arrive_barrier_expect_tx", "ptx_wait_barrier", "create_barriers",
    "simdgroup_load", "simdgroup_store", "simdgroup_multiply_accumulate", "make_filled_simdgroup_matrix",
)
GPU_DTYPE_FIRST = (
    "ptx_mma", "ptx_mma_sp", "ptx_ldmatrix", "ptx_cp_async", "ptx_cp_async_bulk", "mma_store", "mma_fill")
GPU_INSTRUCTIONS = (*_GPU_PLAIN, *GPU_DTYPE_FIRST)


def _unsigned(x: int, dtype: str) -> int:
    """The bits of an element as a number that is not negative."""
    return x & ((1 << dt.bits_of(dtype)) - 1)


def _all_bits(f: Any, x: Any) -> Any:
    return f.bitxor(x, -1 if dt.is_signed(x.dtype) else dt.integer_range(x.dtype)[1])


INTRINSICS: dict[str, Intrinsic] = {
    "exp": _math("e to the power of x", 1.25, math.exp),
    "exp2": _math("2 to the power of x", 1.25, lambda x: 2.0 ** x),
    "expm1": _math("exp(x) - 1, which keeps small x", 2, math.expm1),
    "log": _math("the natural logarithm of x", 1, math.log),
    "log2": _math("the logarithm of x to the base 2", 1, math.log2),
    "log10": _math("the logarithm of x to the base 10", 1, math.log10),
    "log1p": _math("log(1 + x), which keeps small x", 1.25, math.log1p),
    "sqrt": _math("the square root of x", 0.5, math.sqrt, llvm="sqrt"),
    "rsqrt": _math("1 / sqrt(x)", 1.5, lambda x: 1.0 / math.sqrt(x), lambda x: 1 / np.sqrt(x),
                   expansion=lambda f, x: 1.0 / f.sqrt(x)),
    "sin": _math("the sine of x, in radians", (0.51, 1), math.sin),
    "cos": _math("the cosine of x, in radians", (0.51, 1), math.cos),
    "tan": _math("the tangent of x, in radians", (0.51, 2.5), math.tan),
    "asin": _math("the angle between -pi/2 and pi/2 whose sine is x", 1.5, math.asin, np.arcsin),
    "acos": _math("the angle between 0 and pi whose cosine is x", 1, math.acos, np.arccos),
    "atan": _math("the angle between -pi/2 and pi/2 whose tangent is x", 2, math.atan),
    "sinh": _math("(exp(x) - exp(-x)) / 2", 2.5, math.sinh), "cosh": _math("(exp(x) + exp(-x)) / 2", 2, math.cosh),
    "tanh": _math("sinh(x) / cosh(x)", 3, math.tanh),
    "asinh": _math("the number whose sinh is x", 3, math.asinh, np.arcsinh, expansion=_asinh),
    "acosh": _math("the number of at least 0 whose cosh is x", 3, math.acosh, np.arccosh, expansion=_acosh),
    "atanh": _math("the number whose tanh is x", 3, math.atanh, np.arctanh, expansion=_atanh),
    "sigmoid": _math("1 / (1 + exp(-x))", 2.5, _sigmoid, lambda x: 1 / (1 + np.exp(-x))),
    "erf": _math("2 / sqrt(pi) times the integral of exp(-t * t) from 0 to x", 1.25, math.erf),
    "floor": _math("the largest integer that is not above x", 0, math.floor, llvm="floor"),
    "ceil": _math("the smallest integer that is not below x", 0, math.ceil, llvm="ceil"),
    "trunc": _math("x without its fraction", 0, math.trunc, llvm="trunc"),
    "round": _math("the integer next to x, the even one of two", 0, round, llvm="roundeven"),
    "nearbyint": _math("the integer next to x, the even one of two", 0, round, np.rint, llvm="roundeven"),
    "pow": _math("a to the power of b", (0.51, 1), math.pow, np.power, arity=2),
    "atan2": _math("the angle of the point (b, a), between -pi and pi", 2, math.atan2, arity=2),
    "hypot": _math("sqrt(a * a + b * b), without overflow on the way", 2, math.hypot, arity=2, expansion=_hypot),
    "fmod": _math("a - b * trunc(a / b), exactly: the remainder with the sign of a, as in C", 0, math.fmod, arity=2),
    "copysign": _math("|a| with the sign of b", 0, math.copysign, arity=2, llvm="copysign"),
    "ldexp": Intrinsic(2, "math", lambda k, x: math.ldexp(x, int(k)), lambda k, x: np.ldexp(x, int(k))),
                                               # (k, x): x * 2**k for an integer k
    "fma": _math("a * b + c, rounded once", 0.5, lambda a, b, c: a * b + c, arity=3, llvm="fma"),
    "isnan": _predicate("True where x is no number", lambda f, x: f.ne(x, x)),
    "isinf": _predicate("True where x is an infinity", lambda f, x: f.eq(f.abs(x), math.inf)),
    "isfinite": _predicate("True where x is neither an infinity nor NaN", lambda f, x: f.lt(f.abs(x), math.inf)),
    "popcount": _bits("how many bits of x are 1", lambda dtype, x: _unsigned(x, dtype).bit_count(), "ctpop"),
    "clz": _bits("how many bits of x above its highest 1 are 0",
                 lambda dtype, x: dt.bits_of(dtype) - _unsigned(x, dtype).bit_length(), "ctlz", "i1 false"),
    "abs": Intrinsic(1, "pure"),
    "bitwise_not": Intrinsic(1, "pure", operands="integer", expansion=_all_bits,
                             meaning="x with every bit the other way, as ~x"),
    "reinterpret": Intrinsic(1, "pure"),
    "unguarded": Intrinsic(1, "pure"),         # (a division, a shift or a cast of a float to an integer): its operands
                                               # need no guard: no divisor 0, no shift by the width, nothing cut
    "likely": Intrinsic(1, "pure", predicate=True),   # the condition itself; marks a guard that mostly holds
    "table": Intrinsic(2, "pure"),             # (StringImm data, index): an element of a table of constants
    "checked_index": Intrinsic(2, "pure"),     # (i, extent): i, where an access checks that 0 <= i < extent
    "inside": Intrinsic(4, "pure"),            # (lanes, i, extent, StringImm message): lanes where 0 <= i < extent; the
                                               # call of the kernel raises where lanes are left out
    "no_fault": Intrinsic(0, "pure"),          # (): whether nothing was outside so far
    "some": Intrinsic(1, "pure"),              # (lanes,): whether one of them is true
    "if_then_else": Intrinsic(3, "pure"),          # (condition, a, b): only the branch taken is evaluated
    "call_extern": Intrinsic(-1, "effect"),        # (StringImm symbol, args...): a C function
    "call_function": Intrinsic(-1, "effect"),      # (StringImm name, args...): a function of the module
    "call_packed": Intrinsic(-1, "effect"),        # (StringImm name, args...): a registered packed function
    "call_parallel": Intrinsic(-1, "effect"),      # (StringImm name, min, extent, args...): name(begin, end, args...)
                                                   # for ranges that make up all of min, ..., min + extent - 1
    "call_kernel": Intrinsic(-1, "effect"),        # (StringImm name, (StringImm axis, extent)..., args...):
                                                   # name(args...) on a device, by so many threads
    "call_llvm_pure_intrin": Intrinsic(-1, "pure"),   # (StringImm name, args...): an intrinsic function of LLVM
    "call_llvm_intrin": Intrinsic(-1, "effect"),
    "access_ptr": Intrinsic(-1, "pure"),
    "array": Intrinsic(-1, "pure"),                # (values...): the address of a new array of them, 8 bytes each, or
                                                   # of one value of any dtype
    "fault": Intrinsic(0, "pure"),                 # (): where the message of an error of the function is left
    "strides": Intrinsic(-1, "pure"),              # (strides...): the last argument of access_ptr to memory that is
                                                   # not compact
    "assume": Intrinsic(1, "effect"),
    "ret": Intrinsic(1, "effect"),                 # (value,): what the function returns, at its end
    "Assert": Intrinsic(2, "effect"),              # (condition, StringImm message): an error where it does not hold
    "prefetch": Intrinsic(1, "effect"),            # (Load,): bring the element's line near
    "sync": Intrinsic(1, "effect"),                # (StringImm scope,): barrier of a thread block
    **{name: Intrinsic(-1, "effect") for name in GPU_INSTRUCTIONS},
}
