"""Functions of elements, with NumPy's broadcasting: arithmetic, elementary functions, comparisons, logic, choices."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tilewright.support.errors import described
from tilewright.te import math as te_math
from tilewright.te.constant import constant as te_constant
from tilewright.te.definition import compute, placeholder
from tilewright.te.reduction import prod, reduce_axis
from tilewright.te.scan import scan
from tilewright.te.tensor import Tensor
from tilewright.tir import dtype as dt
from tilewright.tir.arithmetic import absolute, all_of, any_of, binary, negate, select
from tilewright.tir.arithmetic import logical_not as is_false
from tilewright.tir.conversion import cast, const, convert
from tilewright.tir.expr import Expr
from tilewright.topi.reductions import truth
from tilewright.topi.shapes import broadcast_shapes, check, check_tensors, element
from tilewright.topi.types import (
    ANY,
    BOOL,
    DEFAULT_FLOAT,
    FLOAT,
    INTEGER,
    NUMBER,
    accumulator,
    check_kind,
    common_type,
    dtype_name,
)

Element = Callable[..., Expr]


def elementwise(op: str, f: Element, *operands: Any, kind: str = ANY, dtype: str | None = None) -> Tensor:
    """f of the elements of tensors, numbers and arrays, which broadcast, converted to their common type.

    FLOAT converts other types to float32; floats of 16 bits are computed in float32 and rounded once. dtype: that of
    the result, where it is not the common one (or bool). Raises TensorExpressionError for a type that is not of the
    kind.
    """
    given = [te_constant(x) if isinstance(x, np.ndarray) and x.ndim else x for x in operands]
    check(any(isinstance(x, Tensor) for x in given), op, f"no operand is a tensor: {described(operands[0])}")
    common = common_type(op, *given)
    if kind == FLOAT and not dt.is_float(common):
        common = DEFAULT_FLOAT
    check_kind(op, "an operand", common, kind)
    wide, result = accumulator(common), dtype or common

    def read(x: Any, i: tuple[Any, ...]) -> Expr:
        return cast(wide, element(x, i)) if isinstance(x, Tensor) else convert(x, wide).astype(wide)

    def at(*i: Any) -> Expr:
        value = f(*(read(x, i) for x in given))
        return value if value.dtype == "bool" else cast(result, value)
    return compute(broadcast_shapes(op, *(x.shape for x in given if isinstance(x, Tensor))), at, name=op)


def _unary(op: str, formula: str, f: Element, kind: str = FLOAT) -> Callable[[Tensor], Tensor]:
    def function(x: Tensor) -> Tensor:
        check_tensors(op, x=x)
        return elementwise(op, f, x, kind=kind)
    function.__name__ = function.__qualname__ = op
    function.__doc__ = f"y = {formula}, element by element."
    return function


def _binary(op: str, formula: str, f: Element, kind: str = NUMBER) -> Callable[[Any, Any], Tensor]:
    def function(a: Any, b: Any) -> Tensor:
        return elementwise(op, f, a, b, kind=kind)
    function.__name__ = function.__qualname__ = op
    function.__doc__ = f"y = {formula}; a and b broadcast, one may be a number."
    return function


def _of(name: str) -> Element:
    """The operator of expressions of this name."""
    return lambda a, b: binary(name, a, b)


def _or_logic(name: str, logic: str) -> Element:
    """The operator of numbers, and of bools the logical one (as in NumPy)."""
    return lambda a, b: binary(logic if dt.is_bool(a.dtype) else name, a, b)


def _zero(e: Expr) -> Expr:
    return const(0, e.dtype)


def _sign(x: Expr) -> Expr:
    if dt.is_unsigned(x.dtype):
        return cast(x.dtype, binary("gt", x, _zero(x)))
    negative = select(binary("lt", x, _zero(x)), const(-1, x.dtype), x)
    return select(binary("gt", x, _zero(x)), const(1, x.dtype), negative)


def _question(name: str, of_integers: bool) -> Element:
    """isnan and the like, which have one answer for integers."""
    f = te_math.FUNCTIONS[name]
    return lambda x: f(x) if dt.is_float(x.dtype) else const(of_integers, "bool")


_ROUND = {name: getattr(te_math, name) for name in ("floor", "ceil", "trunc", "round")}
_F = te_math.FUNCTIONS

abs = _unary("abs", "|x|", absolute, NUMBER)
negative = _unary("negative", "-x; unsigned integers wrap", lambda x: binary("sub", _zero(x), x) if dt.is_unsigned(
    x.dtype) else negate(x), NUMBER)
sign = _unary("sign", "1, 0 or -1: the sign of x; NaN for NaN", _sign, NUMBER)
square = _unary("square", "x * x", lambda x: binary("mul", x, x), NUMBER)
reciprocal = _unary("reciprocal", "1 / x", lambda x: binary("div", const(1.0, x.dtype), x))
exp = _unary("exp", "e ** x", _F["exp"])
exp2 = _unary("exp2", "2 ** x", _F["exp2"])
expm1 = _unary("expm1", "exp(x) - 1", _F["expm1"])
log = _unary("log", "the natural logarithm of x", _F["log"])
log2 = _unary("log2", "the logarithm of x to the base 2", _F["log2"])
log10 = _unary("log10", "the logarithm of x to the base 10", _F["log10"])
log1p = _unary("log1p", "log(1 + x)", _F["log1p"])
sqrt = _unary("sqrt", "the square root of x", _F["sqrt"])
rsqrt = _unary("rsqrt", "1 / sqrt(x)", _F["rsqrt"])
sin = _unary("sin", "the sine of x", _F["sin"])
cos = _unary("cos", "the cosine of x", _F["cos"])
tan = _unary("tan", "the tangent of x", _F["tan"])
asin = _unary("asin", "the angle whose sine is x", _F["asin"])
acos = _unary("acos", "the angle whose cosine is x", _F["acos"])
atan = _unary("atan", "the angle whose tangent is x", _F["atan"])
sinh = _unary("sinh", "(exp(x) - exp(-x)) / 2", _F["sinh"])
cosh = _unary("cosh", "(exp(x) + exp(-x)) / 2", _F["cosh"])
tanh = _unary("tanh", "sinh(x) / cosh(x)", _F["tanh"])
asinh = _unary("asinh", "the number whose sinh is x", _F["asinh"])
acosh = _unary("acosh", "the number of at least 0 whose cosh is x", _F["acosh"])
atanh = _unary("atanh", "the number whose tanh is x", _F["atanh"])
erf = _unary("erf", "2 / sqrt(pi) times the integral of exp(-t * t) from 0 to x", _F["erf"])
floor = _unary("floor", "the largest integer that is not above x", _ROUND["floor"], NUMBER)
ceil = _unary("ceil", "the smallest integer that is not below x", _ROUND["ceil"], NUMBER)
trunc = _unary("trunc", "x without its fraction", _ROUND["trunc"], NUMBER)
round = _unary("round", "the integer next to x, the even one of two", _ROUND["round"], NUMBER)
isnan = _unary("isnan", "True where x is NaN", _question("isnan", False), ANY)
isinf = _unary("isinf", "True where x is an infinity", _question("isinf", False), ANY)
isfinite = _unary("isfinite", "True where x is neither an infinity nor NaN", _question("isfinite", True), ANY)
logical_not = _unary("logical_not", "x == 0", lambda x: is_false(truth(x)), ANY)
bitwise_not = _unary("bitwise_not", "x with every bit the other way; of bools: not", lambda x: ~x, INTEGER)


add = _binary("add", "a + b; of bools: or", _or_logic("add", "or"), ANY)
subtract = _binary("subtract", "a - b", _of("sub"))
multiply = _binary("multiply", "a * b; of bools: and", _or_logic("mul", "and"), ANY)
divide = _binary("divide", "a / b, of integers in float32", _of("div"), FLOAT)
floor_divide = _binary("floor_divide", "the largest integer that is not above a / b; 0 for integers where b is 0",
                       _of("floordiv"))
remainder = _binary("remainder", "a - b * floor(a / b), with the sign of b; 0 for integers where b is 0",
                    _of("floormod"))
fmod = _binary("fmod", "a - b * trunc(a / b), with the sign of a", lambda a, b: _F["fmod"](a, b) if dt.is_float(
    a.dtype) else binary("truncmod", a, b))
maximum = _binary("maximum", "the larger of a and b; NaN where one is NaN", _or_logic("max", "or"), ANY)
minimum = _binary("minimum", "the smaller of a and b; NaN where one is NaN", _or_logic("min", "and"), ANY)
atan2 = _binary("atan2", "the angle of the point (b, a), between -pi and pi", _F["atan2"], FLOAT)
hypot = _binary("hypot", "sqrt(a * a + b * b), without overflow on the way", _F["hypot"], FLOAT)
copysign = _binary("copysign", "|a| with the sign of b", _F["copysign"], FLOAT)
equal = _binary("equal", "a == b", _of("eq"), ANY)
not_equal = _binary("not_equal", "a != b", _of("ne"), ANY)


def _ordered(name: str) -> Element:
    return lambda a, b: binary(name, *(cast("uint8", e) if dt.is_bool(e.dtype) else e for e in (a, b)))


less = _binary("less", "a < b", _ordered("lt"), ANY)
less_equal = _binary("less_equal", "a <= b", _ordered("le"), ANY)
greater = _binary("greater", "a > b", _ordered("gt"), ANY)
greater_equal = _binary("greater_equal", "a >= b", _ordered("ge"), ANY)
logical_and = _binary("logical_and", "a != 0 and b != 0", lambda a, b: binary("and", truth(a), truth(b)), ANY)
logical_or = _binary("logical_or", "a != 0 or b != 0", lambda a, b: binary("or", truth(a), truth(b)), ANY)
logical_xor = _binary("logical_xor", "(a != 0) != (b != 0)", lambda a, b: binary("ne", truth(a), truth(b)), ANY)
bitwise_and = _binary("bitwise_and", "a & b", _of("bitand"), INTEGER)
bitwise_or = _binary("bitwise_or", "a | b", _of("bitor"), INTEGER)
bitwise_xor = _binary("bitwise_xor", "a ^ b", lambda a, b: binary("ne" if dt.is_bool(a.dtype) else "bitxor", a, b),
                      INTEGER)


def _shift(name: str) -> Element:
    """A shift by any amount: by as many bits as there are or more, 0 or the sign is left (as in NumPy)."""
    def f(a: Expr, b: Expr) -> Expr:
        bits = dt.bits_of(a.dtype)
        beyond = binary("ge", b, const(bits, b.dtype))
        if dt.is_signed(b.dtype):
            beyond = any_of(beyond, binary("lt", b, _zero(b)))
        most = binary(name, a, const(bits - 1, a.dtype)) if name == "shr" and dt.is_signed(a.dtype) else _zero(a)
        return select(beyond, most, binary(name, a, binary("bitand", b, const(bits - 1, b.dtype))))
    return f


def bitwise_left_shift(a: Any, b: Any) -> Tensor:
    """y = a << b of integers; 0 where b is not below the number of bits; a and b broadcast, one may be a number."""
    check_kind("bitwise_left_shift", "the common type", common_type("bitwise_left_shift", a, b), NUMBER)
    return elementwise("bitwise_left_shift", _shift("shl"), a, b, kind=INTEGER)


def bitwise_right_shift(a: Any, b: Any) -> Tensor:
    """y = a >> b of integers, which keeps the sign; a and b broadcast, one may be a number."""
    check_kind("bitwise_right_shift", "the common type", common_type("bitwise_right_shift", a, b), NUMBER)
    return elementwise("bitwise_right_shift", _shift("shr"), a, b, kind=INTEGER)


def logaddexp(a: Any, b: Any) -> Tensor:
    """y = log(exp(a) + exp(b)), as max(a, b) + log1p(exp(-|a - b|)); a and b broadcast, one may be a number."""
    def f(x: Expr, y: Expr) -> Expr:
        far = absolute(binary("sub", x, y))
        same = binary("eq", x, y)                           # infinities too, whose difference is NaN
        gap = select(same, _zero(x), far)
        return binary("add", binary("max", x, y), _F["log1p"](_F["exp"](negate(gap))))
    return elementwise("logaddexp", f, a, b, kind=FLOAT)


def power(a: Any, b: Any) -> Tensor:
    """y = a ** b; of integers by squaring, wrapping; a and b broadcast.

    For a negative exponent integers have what is left of 1 / a ** -b without a fraction: 1 of 1, 1 or -1 of -1, else 0.
    Raises TensorExpressionError for bools.
    """
    common = common_type("power", a, b)
    check_kind("power", "an operand", common, NUMBER)
    if dt.is_float(common):
        return elementwise("power", _F["pow"], a, b, kind=FLOAT)
    if isinstance(b, int):
        return elementwise("power", lambda x: _squared(x, b) if b >= 0 else _inverted(x, const(b % 2, common)), a)
    base = compute((), lambda: const(a, common), name="power_base") if isinstance(a, int) else a
    base, exponent = (elementwise("power_operand", lambda e: e, x, dtype=common) for x in (base, b))
    return _integer_power(base, exponent, common)


def _squared(x: Expr, exponent: int) -> Expr:
    """x ** exponent, exponent >= 0."""
    if exponent == 0:
        return const(1, x.dtype)
    half = _squared(x, exponent // 2) if exponent > 1 else None
    out = x if half is None else binary("mul", half, half)
    return binary("mul", out, x) if exponent > 1 and exponent % 2 else out


def _inverted(x: Expr, odd: Expr) -> Expr:
    """x ** exponent of integers for a negative exponent, which is odd or even."""
    one = const(1, x.dtype)
    if not dt.is_signed(x.dtype):
        return cast(x.dtype, binary("eq", x, one))
    sign = select(binary("eq", odd, const(0, odd.dtype)), one, const(-1, x.dtype))
    return select(binary("eq", x, one), one, select(binary("eq", x, const(-1, x.dtype)), sign, _zero(x)))


def _integer_power(a: Tensor, b: Tensor, dtype: str) -> Tensor:
    """The product over the bits of b of a ** (2 ** bit)."""
    bits = dt.bits_of(dtype)
    state = placeholder((bits, *a.shape), dtype, name="squares_state")
    first = compute((1, *a.shape), lambda t, *i: a(*i), name="squares_first")
    step = compute(state.shape, lambda t, *i: binary("mul", state(t - 1, *i), state(t - 1, *i)), name="squares_step")
    squares = scan(first, step, state, inputs=[a], name="squares")
    k = reduce_axis((0, bits), name="bit")
    shape = broadcast_shapes("power", a.shape, b.shape)

    def factor(*i: Any) -> Expr:
        e = element(b, i)
        chosen = binary("eq", binary("bitand", binary("shr", e, cast(e.dtype, k.var)), const(1, e.dtype)),
                        const(1, e.dtype))
        own = i[len(i) - a.ndim:]
        base = squares(k, *(0 if getattr(n, "value", 0) == 1 else v for v, n in zip(own, a.shape)))
        return prod(select(chosen, base, const(1, dtype)), axis=k)
    y = compute(shape, factor, name="power_bits")
    if not dt.is_signed(dtype):
        return y

    def whole(*i: Any) -> Expr:
        e = element(b, i)
        below = _inverted(element(a, i), binary("bitand", e, const(1, dtype)))
        return select(binary("lt", e, const(0, dtype)), below, y(*i))
    return compute(shape, whole, name="power")


def where(condition: Tensor, a: Any, b: Any) -> Tensor:
    """y = a where condition holds, else b; all broadcast, a and b may be numbers.

    Raises TensorExpressionError unless condition is a bool tensor.
    """
    op = "where"
    check_tensors(op, condition=condition)
    check_kind(op, "condition", condition.dtype, BOOL, "compare first: topi.not_equal(x, 0)")
    given = [te_constant(x) if isinstance(x, np.ndarray) and x.ndim else x for x in (a, b)]
    common = common_type(op, *given)

    def read(x: Any, i: tuple[Any, ...]) -> Expr:
        return cast(common, element(x, i)) if isinstance(x, Tensor) else convert(x, common).astype(common)
    shape = broadcast_shapes(op, condition.shape, *(x.shape for x in given if isinstance(x, Tensor)))
    return compute(shape, lambda *i: select(element(condition, i), read(given[0], i), read(given[1], i)), name=op)


def clip(x: Tensor, min: Any = None, max: Any = None) -> Tensor:
    """y = x brought into [min, max]: minimum(maximum(x, min), max); a bound that is None is left out.

    The bounds are numbers or tensors, which broadcast; y has the type of x.
    """
    check_tensors("clip", x=x)
    y = x
    for f, bound in (("max", min), ("min", max)):
        if bound is not None:
            y = elementwise("clip", lambda e, b, f=f: binary(f, e, b), y, bound, kind=NUMBER, dtype=x.dtype)
    return y if y is not x else elementwise("clip", lambda e: e, x)


def astype(x: Tensor, dtype: Any) -> Tensor:
    """x converted to dtype: floats to integers toward 0, numbers to bool as x != 0."""
    check_tensors("astype", x=x)
    kind = dtype_name(dtype)
    return compute(x.shape, lambda *i: truth(x(*i)) if kind == "bool" else cast(kind, x(*i)), name="astype")


def lerp(a: Any, b: Any, weight: Any) -> Tensor:
    """y = a + weight * (b - a), from the nearer end, so that b is met; all broadcast, b and weight may be numbers."""
    def f(x: Expr, y: Expr, w: Expr) -> Expr:
        way = y - x
        near = binary("lt", absolute(w), const(0.5, w.dtype))
        return select(near, x + w * way, y - way * (const(1.0, w.dtype) - w))
    return elementwise("lerp", f, a, b, weight, kind=FLOAT)


def nan_to_num(x: Tensor, *, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None) -> Tensor:
    """x with numbers for NaN and the infinities, by default 0 and the ends of the type."""
    check_tensors("nan_to_num", x=x)
    check_kind("nan_to_num", "x", x.dtype, FLOAT)
    high = dt.largest(x.dtype)
    ends = high if posinf is None else posinf, -high if neginf is None else neginf

    def f(*i: Any) -> Expr:
        e = x(*i)
        top, low, hole = (const(v, x.dtype) for v in (*ends, nan))
        inf = const(float("inf"), x.dtype)
        return select(_F["isnan"](e), hole, select(binary("eq", e, inf), top, select(
            binary("eq", e, negate(inf)), low, e)))
    return compute(x.shape, f, name="nan_to_num")


def isclose(a: Any, b: Any, *, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Tensor:
    """y = |a - b| <= atol + rtol * |b| or a == b; a and b broadcast, b may be a number."""
    def f(x: Expr, y: Expr) -> Expr:
        near = all_of(_F["isfinite"](y), binary("le", absolute(x - y), absolute(y) * rtol + atol))
        same = any_of(near, binary("eq", x, y))
        return any_of(same, all_of(_F["isnan"](x), _F["isnan"](y))) if equal_nan else same
    return elementwise("isclose", f, a, b, kind=FLOAT)


__all__ = [
    "abs", "acos", "acosh", "add", "asin", "asinh", "astype", "atan", "atan2", "atanh", "bitwise_and",
    "bitwise_left_shift", "bitwise_not", "bitwise_or", "bitwise_right_shift", "bitwise_xor", "ceil", "clip",
    "copysign", "cos", "cosh", "divide", "equal", "erf", "exp", "exp2", "expm1", "floor", "floor_divide", "fmod",
    "greater", "greater_equal", "hypot", "isclose", "isfinite", "isinf", "isnan", "lerp", "less", "less_equal", "log",
    "log10", "log1p", "log2", "logaddexp", "logical_and", "logical_not", "logical_or", "logical_xor", "maximum",
    "minimum", "multiply", "nan_to_num", "negative", "not_equal", "power", "reciprocal", "remainder", "round", "rsqrt",
    "sign", "sin", "sinh", "sqrt", "square", "subtract", "tan", "tanh", "trunc", "where",
]
