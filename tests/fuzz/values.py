"""Reference arithmetic on NumPy arrays: exact integers, floats with a bound on how far an evaluation may be off."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import ml_dtypes
import numpy as np

WIDE = np.longdouble                                   # what floats are computed in
PRECISION = {"float8_e4m3fn": 4, "float8_e5m2": 3, "float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}
EPS = {d: 2.0 ** (1 - p) for d, p in PRECISION.items()}
_LARGEST = {"float8_e4m3fn": 448.0, "float8_e5m2": 57344.0, "float16": 65504.0, "bfloat16": 3.3e38,
            "float32": 3.4e38, "float64": 1.7e308}
_TINY = {"float8_e4m3fn": 2.0 ** -6, "float8_e5m2": 2.0 ** -14, "float16": 2.0 ** -14, "bfloat16": 2.0 ** -126,
         "float32": 2.0 ** -126, "float64": 2.0 ** -1022}
_SMALLEST_BIT = {"float8_e4m3fn": 9, "float8_e5m2": 16, "float16": 24, "bfloat16": 133, "float32": 149, "float64": 1074}
MOST_WEIGHT = 0.125
_WITHOUT_INFINITY = "float8_e4m3fn"                    # NaN stands in, and the largest value for what is before all


class Reject(Exception):
    """The expression leaves the range in which the bound holds; another one has to be chosen."""


def is_float(dtype: str) -> bool:
    return "float" in dtype


def numpy_dtype(dtype: str) -> np.dtype:
    return np.dtype(getattr(ml_dtypes, dtype) if dtype == "bfloat16" or dtype.startswith("float8") else dtype)


@dataclass(frozen=True)
class Value:
    """The elements of a tensor.

    x: exact for integers and bools (an array of their dtype), WIDE for floats. For floats an evaluation in any order
    is within weight * magnitude: magnitude is the sum of |terms|, weight that of eps over the roundings on the way
    (K * eps for a sum of K terms); terms that are no numbers or infinite, and are so in every evaluation, count 0.
    Weight 0 means that every evaluation is exact: all values are then multiples of 2**-bit.
    """
    dtype: str
    x: np.ndarray
    magnitude: np.ndarray | None = None
    weight: float = 0.0
    bit: int = 0

    def __post_init__(self) -> None:
        if self.magnitude is not None and not np.all(np.isfinite(self.magnitude)):
            raise ValueError("a magnitude that bounds nothing")

    @property
    def exact(self) -> bool:
        return self.weight == 0.0

    def tolerance(self) -> np.ndarray:
        """How far a correct result may be from x."""
        assert self.magnitude is not None
        return self.weight * self.magnitude


def sizes_of(x: np.ndarray) -> np.ndarray:
    """The magnitudes of exact values."""
    return np.where(np.isfinite(x), np.abs(x), 0)


def integer(dtype: str, x: np.ndarray) -> Value:
    return Value(dtype, np.asarray(x).astype(numpy_dtype(dtype)))


def of_array(dtype: str, array: np.ndarray, bit: int) -> Value:
    """An input whose elements are multiples of 2**-bit."""
    if not is_float(dtype):
        return Value(dtype, array)
    x = array.astype(np.float64).astype(WIDE)
    return Value(dtype, x, sizes_of(x), 0.0, bit)


def constant(dtype: str, value: float) -> Value:
    if not is_float(dtype):
        return Value(dtype, np.array(value, numpy_dtype(dtype)))
    x = np.array(float(np.array(value, numpy_dtype(dtype))), WIDE)
    bit = 0
    while bit < 30 and float(x) * 2.0 ** bit % 1:
        bit += 1
    return Value(dtype, x, sizes_of(x), 0.0 if bit < 30 else EPS[dtype], bit)


def rounded(dtype: str, x: np.ndarray, magnitude: np.ndarray, weight: float, bit: int | None, roundings: float = 1,
            largest: np.ndarray | None = None, smallest: np.ndarray | None = None) -> Value:
    """The result of an operation of dtype; bit is None where it is never exact. Raises Reject near over- or underflow.

    largest, smallest: the sizes that partial results may reach, where those are not the magnitude.
    """
    if dtype == _WITHOUT_INFINITY:
        x = np.where(np.isinf(x), np.nan, x)
    sizes = magnitude if largest is None else largest
    top = float(sizes[np.isfinite(sizes)].max(initial=0))
    if top > _LARGEST[dtype] / 8:
        raise Reject("overflow")
    whole = weight == 0.0 and bit is not None and bit <= _SMALLEST_BIT[dtype]
    if whole and top * 2.0 ** bit <= 2.0 ** PRECISION[dtype]:  # type: ignore[operator]
        return Value(dtype, x, magnitude, 0.0, bit)
    small = magnitude if smallest is None else smallest
    if float(small[small > 0].min(initial=1)) < _TINY[dtype]:
        raise Reject("underflow")
    weight += roundings * EPS[dtype]
    if weight > MOST_WEIGHT:
        raise Reject("the bound says nothing")
    return Value(dtype, x, magnitude, weight, 0)


def _divide(a: np.ndarray, b: np.ndarray, how: Callable) -> np.ndarray:
    """Integer division by Python's or C's rule; x / 0 is 0, the smallest / -1 wraps."""
    wide = [v.astype(object) for v in np.broadcast_arrays(a, b)]
    out = np.array([how(int(p), int(q)) if q else 0 for p, q in zip(wide[0].ravel(), wide[1].ravel())], object)
    bits = a.dtype.itemsize * 8
    wrapped = [v & ((1 << bits) - 1) for v in out]
    if a.dtype.kind == "i":
        wrapped = [v - (1 << bits) if v >= 1 << bits - 1 else v for v in wrapped]
    return np.array(wrapped, dtype=object).astype(a.dtype).reshape(wide[0].shape)


def _trunc_div(a: int, b: int) -> int:
    q = abs(a) // abs(b)
    return q if (a < 0) == (b < 0) else -q


_INTEGER: dict[str, Callable] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "min": np.minimum, "max": np.maximum,
    "bitand": np.bitwise_and, "bitor": np.bitwise_or, "bitxor": np.bitwise_xor,
    "floordiv": lambda a, b: _divide(a, b, lambda p, q: p // q),
    "floormod": lambda a, b: _divide(a, b, lambda p, q: p % q),
    "truncdiv": lambda a, b: _divide(a, b, _trunc_div),
    "truncmod": lambda a, b: _divide(a, b, lambda p, q: p - q * _trunc_div(p, q)),
}
COMPARISONS: dict[str, Callable] = {
    "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal, "eq": np.equal, "ne": np.not_equal}
INTEGER_OPS = tuple(_INTEGER)
FLOAT_OPS = ("add", "sub", "mul", "min", "max", "div")


def binary(op: str, a: Value, b: Value) -> Value:
    """a op b, of one dtype."""
    with np.errstate(all="ignore"):
        if op in COMPARISONS:
            if not (a.exact and b.exact):
                raise Reject("a comparison of inexact values")
            return Value("bool", COMPARISONS[op](a.x, b.x))
        if not is_float(a.dtype):
            return Value(a.dtype, _INTEGER[op](a.x, b.x))
        return _float_binary(op, a, b)


def _float_binary(op: str, a: Value, b: Value) -> Value:
    assert a.magnitude is not None and b.magnitude is not None
    if op in ("add", "sub"):
        x = a.x + b.x if op == "add" else a.x - b.x
        return rounded(a.dtype, x, a.magnitude + b.magnitude, max(a.weight, b.weight), max(a.bit, b.bit))
    if op == "mul":
        return rounded(a.dtype, a.x * b.x, a.magnitude * b.magnitude, a.weight + b.weight, a.bit + b.bit)
    if op in ("min", "max"):
        x = (np.minimum if op == "min" else np.maximum)(a.x, b.x)
        return Value(a.dtype, x, np.maximum(a.magnitude, b.magnitude), max(a.weight, b.weight), max(a.bit, b.bit))
    assert op == "div"
    size = np.abs(b.x)
    if not np.all(size > 8 * b.weight * b.magnitude) or not np.all(size > 1e-3):
        raise Reject("a divisor near 0")
    return rounded(a.dtype, a.x / b.x, a.magnitude * b.magnitude / size ** 2, a.weight + 2 * b.weight, None)


def select(condition: Value, a: Value, b: Value) -> Value:
    """a where condition, else b."""
    x = np.where(condition.x, a.x, b.x)
    if not is_float(a.dtype):
        return Value(a.dtype, x)
    assert a.magnitude is not None and b.magnitude is not None
    magnitude = np.where(condition.x, a.magnitude, b.magnitude)
    return Value(a.dtype, x, magnitude, max(a.weight, b.weight), max(a.bit, b.bit))


def absolute(a: Value) -> Value:
    with np.errstate(all="ignore"):
        return Value(a.dtype, np.abs(a.x), a.magnitude, a.weight, a.bit)


def negative(a: Value) -> Value:
    with np.errstate(all="ignore"):
        return Value(a.dtype, -a.x if is_float(a.dtype) else np.negative(a.x), a.magnitude, a.weight, a.bit)


def cast(dtype: str, a: Value) -> Value:
    """a as dtype: floats truncate and saturate to integers, integers wrap to narrower ones."""
    if dtype == a.dtype:
        return a
    with np.errstate(all="ignore"):
        if is_float(dtype):
            if is_float(a.dtype):
                assert a.magnitude is not None
                return rounded(dtype, a.x, a.magnitude, a.weight, a.bit)
            x = a.x.astype(WIDE)
            return rounded(dtype, x, np.abs(x), 0.0, 0)
        if is_float(a.dtype):
            if not a.exact:
                raise Reject("a cast of an inexact value to an integer")
            if dtype == "bool":
                return Value(dtype, a.x != 0)
            info = np.iinfo(dtype)
            whole = np.trunc(np.nan_to_num(a.x, nan=0.0, posinf=1e30, neginf=-1e30))
            flat = [min(max(int(v), int(info.min)), int(info.max)) for v in whole.ravel()]
            return Value(dtype, np.array(flat, object).astype(dtype).reshape(whole.shape))
        return Value(dtype, a.x != 0 if dtype == "bool" else a.x.astype(dtype))


_FUNCTIONS: dict[str, tuple[Callable, Callable]] = {     # float function -> (NumPy's, its greatest slope from x on)
    "tanh": (np.tanh, np.ones_like), "sigmoid": (lambda x: 1 / (1 + np.exp(-x)), lambda x: np.full_like(x, 0.25)),
    "sin": (np.sin, np.ones_like), "cos": (np.cos, np.ones_like), "exp": (np.exp, lambda x: 2 * np.exp(x)),
    "sqrt": (np.sqrt, lambda x: 0.5 / np.sqrt(x)), "log": (np.log, lambda x: 1 / x),
    "rsqrt": (lambda x: 1 / np.sqrt(x), lambda x: 0.5 / (x * np.sqrt(x))),
}
FALLING = ("sqrt", "log", "rsqrt")                     # functions of x >= 1 whose slope falls
ROUNDINGS: dict[str, Callable] = {"floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "round": np.rint}
FUNCTIONS = tuple(_FUNCTIONS)


def function(name: str, a: Value) -> Value:
    """name(a) of a float; sqrt, log and rsqrt need a >= 1."""
    assert a.magnitude is not None
    if name in ROUNDINGS:
        if not a.exact:
            raise Reject("a rounding of an inexact value")
        x = ROUNDINGS[name](a.x)
        return Value(a.dtype, x, sizes_of(x), 0.0, 0)
    if name in FALLING and not np.all(a.x >= 1):
        raise Reject("a value below 1")
    plain, slope = _FUNCTIONS[name]
    if name in ("sin", "cos", "exp") and float(a.magnitude.max(initial=0)) > 8:
        raise Reject("a large argument")
    with np.errstate(all="ignore"):
        x = plain(a.x)
        least = np.maximum(a.x - a.tolerance(), 1) if name in FALLING else a.x
        magnitude = np.where(np.isfinite(x), np.abs(x) + slope(least) * a.magnitude, 0)
        return rounded(a.dtype, x, magnitude, a.weight, None, 4)


def identity(kind: str, dtype: str) -> float:
    """What a reduction of no elements gives."""
    if kind not in ("min", "max"):
        return 1 if kind == "prod" else 0
    if is_float(dtype):
        most = _LARGEST[dtype] if dtype == _WITHOUT_INFINITY else np.inf
        return most if kind == "min" else -most
    if dtype == "bool":
        return kind == "min"
    info = np.iinfo(dtype)
    return int(info.max if kind == "min" else info.min)


def reduce(kind: str, a: Value, count: int, where: np.ndarray | None, start: Value | None) -> Value:
    """The reduction of a over its last `count` axes where the condition holds, from start or the identity."""
    axes = tuple(range(a.x.ndim - count, a.x.ndim))
    size = int(np.prod([a.x.shape[d] for d in axes]))
    neutral = identity(kind, a.dtype)
    x = a.x if where is None else np.where(where, a.x, np.array(neutral, a.x.dtype))
    ufunc = {"sum": np.add, "prod": np.multiply, "min": np.minimum, "max": np.maximum, "bitxor": np.bitwise_xor,
             "bitor": np.bitwise_or}[kind]
    first = np.array(neutral, a.x.dtype) if start is None else start.x
    with np.errstate(all="ignore"):
        out = ufunc(ufunc.reduce(x, axis=axes, initial=np.array(neutral, a.x.dtype)), first).astype(a.x.dtype)
    if not is_float(a.dtype):
        return Value(a.dtype, out)
    assert a.magnitude is not None
    magnitude = a.magnitude if where is None else np.where(where, a.magnitude, abs(neutral) if kind == "prod" else 0)
    begin, begin_bit = np.abs(first), start.bit if start else 0
    if kind in ("min", "max"):
        sizes = np.maximum(magnitude.max(axis=axes, initial=0), sizes_of(out))
        sizes = np.maximum(sizes, 0 if start is None else begin)
        return Value(a.dtype, out, sizes, a.weight, max(a.bit, begin_bit))
    if kind == "sum":
        return rounded(a.dtype, out, magnitude.sum(axis=axes) + begin, a.weight, max(a.bit, begin_bit), size + 1)
    larger = np.maximum(magnitude, 1).prod(axis=axes) * np.maximum(begin, 1)
    smaller = np.where(magnitude > 0, np.minimum(magnitude, 1), 1).prod(axis=axes)
    return rounded(a.dtype, out, magnitude.prod(axis=axes) * begin, a.weight * size,
                   a.bit * size + begin_bit, size + 1, larger, smaller)


def argmax(a: Value, count: int, where: np.ndarray | None) -> tuple[Value, Value]:
    """(the maximum over the last `count` axes, the place of the first element that equals it, counted row by row)."""
    if not a.exact or is_float(a.dtype) and not np.all(np.isfinite(a.x)):
        raise Reject("the place of the maximum of inexact values")
    lowest = np.array(identity("max", a.dtype), a.x.dtype)
    x = a.x if where is None else np.where(where, a.x, lowest)
    outer = x.shape[:x.ndim - count]
    flat = x.reshape(*outer, int(np.prod(x.shape[x.ndim - count:])))
    place = np.full(flat.shape[:-1], np.iinfo(np.int32).max, np.int32)
    top = flat.max(axis=-1, initial=lowest)
    if flat.shape[-1]:
        allowed = (flat == top[..., None]) & (True if where is None else where.reshape(flat.shape))
        place = np.where(allowed.any(axis=-1), allowed.argmax(axis=-1), place)
    return Value(a.dtype, top, None if a.magnitude is None else sizes_of(top), 0.0, a.bit), integer("int32", place)
