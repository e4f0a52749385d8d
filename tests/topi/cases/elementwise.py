"""Samples of functions of elements and of activations."""
from __future__ import annotations

import math

import numpy as np
from numpy import vectorize

from tests.topi.agreement import FLOATS, INTEGERS, NUMBERS, Draw, Sample, case, wide
from tilewright import topi
from tilewright.topi.types import common_type

erf = vectorize(math.erf, otypes=["float64"])
ALL = (*NUMBERS, "bool")


def unary(name, f, low=-3.0, high=3.0, kinds=ALL, tolerance=1.0):
    """Samples of y = f(x); integers are computed in float32 where f gives floats."""
    def make(draw: Draw) -> Sample:
        x = draw.array(draw.shape(), draw.dtype(*kinds), low, high)
        source = wide(x)
        if f in FLOATING:
            source = source.astype("float64")
        with np.errstate(all="ignore"):
            y = f(source)
        kind = str(x.dtype) if str(x.dtype) in FLOATS else "float32" if f in FLOATING else None
        return Sample(getattr(topi, name), [x], np.asarray(y), None if np.asarray(y).dtype == bool else kind,
                      tolerance=tolerance)
    make.__name__ = name
    case(make)


UNARY = {
    "reciprocal": (lambda x: 1 / x, 0.2, 4), "exp": (np.exp, -3, 3), "exp2": (np.exp2, -3, 3),
    "expm1": (np.expm1, -2, 2), "log": (np.log, 0.1, 9), "log2": (np.log2, 0.1, 9), "log10": (np.log10, 0.1, 9),
    "log1p": (np.log1p, 0, 5), "sqrt": (np.sqrt, 0, 9), "rsqrt": (lambda x: 1 / np.sqrt(x), 0.2, 9),
    "sin": (np.sin, -6, 6), "cos": (np.cos, -6, 6), "tan": (np.tan, -1.2, 1.2), "asin": (np.arcsin, -1, 1),
    "acos": (np.arccos, -1, 1), "atan": (np.arctan, -5, 5), "sinh": (np.sinh, -3, 3), "cosh": (np.cosh, -3, 3),
    "tanh": (np.tanh, -3, 3), "asinh": (np.arcsinh, -5, 5), "acosh": (np.arccosh, 1, 9),
    "atanh": (np.arctanh, -0.9, 0.9),
    "erf": (erf, -3, 3),
}
FLOATING = {f for f, _, _ in UNARY.values()}
for _name, (_f, _low, _high) in UNARY.items():
    unary(_name, _f, _low, _high)
for _name, _f in {"abs": np.abs, "negative": np.negative, "sign": np.sign, "square": np.square, "floor": np.floor,
                  "ceil": np.ceil, "trunc": np.trunc, "round": np.round}.items():
    unary(_name, _f, kinds=NUMBERS)
unary("logical_not", np.logical_not)
unary("bitwise_not", np.bitwise_not, kinds=(*INTEGERS, "bool"))


def question(name):
    def make(draw: Draw) -> Sample:
        x = draw.array(draw.shape(), draw.dtype(*ALL))
        if str(x.dtype) in FLOATS:
            x[draw.rng.random(x.shape) < 0.3] = draw.choice(np.nan, np.inf, -np.inf)
        return Sample(getattr(topi, name), [x], getattr(np, name)(wide(x)))
    make.__name__ = name
    case(make)


for _name in ("isnan", "isinf", "isfinite"):
    question(_name)


def operands(draw: Draw, kinds):
    """(a, b), arrays that broadcast, or a number b."""
    shape = draw.shape()
    first = draw.dtype(*kinds)
    second = first if draw.flag(0.6) else draw.dtype(*kinds)
    if {first, second} >= {"uint64"} and (first.startswith("int") or second.startswith("int")):
        second = first
    a = draw.array(draw.broadcastable(shape), first)
    b = draw.array(draw.broadcastable(shape), second)
    if draw.flag(0.25) and first != "bool":
        return a, draw.choice(2, 3, 1) if first.startswith(("int", "uint")) else draw.choice(2.0, 0.5)
    return a, b


def binary(name, f, kinds=NUMBERS, floating=False, change=lambda draw, a, b: (a, b), tolerance=1.0):
    def make(draw: Draw) -> Sample:
        a, b = change(draw, *operands(draw, kinds))
        placed = [te_like(x) for x in (a, b)]
        common = common_type(name, *placed)
        result = "float32" if floating and common not in FLOATS else common
        compute = "float64" if result in FLOATS else result
        with np.errstate(all="ignore"):
            y = f(*(np.asarray(x).astype(common).astype(compute) for x in (a, b)))
        number = not isinstance(b, np.ndarray)
        call = getattr(topi, name)
        dtype = None if y.dtype == bool else result
        if number:
            return Sample(lambda x: call(x, b), [a], y, dtype, tolerance=tolerance)
        return Sample(call, [a, b], y, dtype, tolerance=tolerance)
    make.__name__ = name
    case(make)


def te_like(x):
    return x.ravel()[:1] if isinstance(x, np.ndarray) else x


def away_from_zero(draw, a, b):
    if not isinstance(b, np.ndarray) or b.dtype == bool or str(b.dtype) not in FLOATS:
        return a, b
    return a, np.where(np.abs(b.astype("float64")) < 0.25, 1.0, b.astype("float64")).astype(b.dtype)


def exact(draw, a, b):
    """Floats that are quarters, so that quotients are not next to integers by rounding alone."""
    a, b = away_from_zero(draw, a, b)
    return tuple((np.round(wide(x) * 4) / 4).astype(x.dtype) if isinstance(x, np.ndarray) and str(x.dtype) in FLOATS
                 else x for x in (a, b))


binary("add", np.add, ALL)
binary("subtract", np.subtract)
binary("multiply", np.multiply, ALL)
binary("divide", lambda a, b: np.divide(a.astype("float64"), b.astype("float64")), floating=True, change=away_from_zero)
binary("floor_divide", np.floor_divide, change=exact)
binary("remainder", np.remainder, change=exact)
binary("fmod", np.fmod, change=exact)
binary("maximum", np.maximum, ALL)
binary("minimum", np.minimum, ALL)
for _name, _f in {"atan2": np.arctan2, "hypot": np.hypot, "copysign": np.copysign, "logaddexp": np.logaddexp}.items():
    binary(_name, _f, FLOATS, floating=True)
for _name in ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"):
    binary(_name, getattr(np, _name), ALL, change=exact)
for _name in ("logical_and", "logical_or", "logical_xor"):
    binary(_name, getattr(np, _name), ALL)
for _name in ("bitwise_and", "bitwise_or", "bitwise_xor"):
    binary(_name, getattr(np, _name), (*INTEGERS, "bool"))


def amounts(draw, a, b):
    if not isinstance(b, np.ndarray):
        return a, b
    return a, draw.array(b.shape, str(b.dtype), 0, 100)


binary("bitwise_left_shift", np.left_shift, INTEGERS, change=amounts)
binary("bitwise_right_shift", np.right_shift, INTEGERS, change=amounts)


@case
def power(draw: Draw) -> Sample:
    shape, dtype = draw.shape(0, 3), draw.dtype(*NUMBERS)
    if dtype in FLOATS:
        a = draw.array(draw.broadcastable(shape), dtype, 0.2, 3)
        b = draw.array(draw.broadcastable(shape), dtype)
        return Sample(topi.power, [a, b], wide(a) ** wide(b), dtype, tolerance=4)
    a, b = draw.array(draw.broadcastable(shape), dtype), draw.array(draw.broadcastable(shape), dtype, -4, 12)
    if draw.flag(0.3):
        n = draw.integer(-3, 9)
        return Sample(lambda a: topi.power(a, n), [a], whole_power(a, np.asarray(n)), dtype)
    if draw.flag(0.3):
        n = draw.integer(0 if dtype.startswith("u") else -3, 3)
        return Sample(lambda b: topi.power(n, b), [b], whole_power(np.asarray(n, dtype), b), dtype)
    return Sample(topi.power, [a, b], whole_power(a, b), dtype)


def whole_power(a, b):
    """a ** b of integers; of a negative b what is left of 1 / a ** -b, and 0 of 1 / 0."""
    left = np.where(a.astype("int64") == 1, 1, np.where(a.astype("int64") == -1, 1 - 2 * (b.astype("int64") % 2), 0))
    return np.where(b < 0, left, np.power(a, np.maximum(b, 0).astype(a.dtype)))


@case
def where(draw: Draw) -> Sample:
    shape, dtype = draw.shape(), draw.dtype(*ALL)
    c = draw.array(draw.broadcastable(shape), "bool")
    a, b = (draw.array(draw.broadcastable(shape), dtype) for _ in "ab")
    if draw.flag(0.3) and dtype != "bool":
        return Sample(lambda c, a: topi.where(c, a, 0), [c, a], np.where(c, a, np.asarray(0, a.dtype)), dtype)
    return Sample(topi.where, [c, a, b], np.where(c, a, b), dtype)


@case
def clip(draw: Draw) -> Sample:
    x = draw.array(draw.shape(), draw.dtype(*NUMBERS))
    low, high = draw.choice(None, 0, 1), draw.choice(None, 1, 3)
    if draw.flag(0.3):
        bound = draw.array(draw.broadcastable(x.shape), str(x.dtype))
        return Sample(lambda x, b: topi.clip(x, b), [x, bound], np.maximum(x, bound), str(x.dtype))
    y = x if low is None else np.maximum(wide(x), low)
    return Sample(lambda x: topi.clip(x, low, high), [x], y if high is None else np.minimum(y, high), str(x.dtype))


@case
def astype(draw: Draw) -> Sample:
    x, dtype = draw.array(draw.shape(), draw.dtype(*ALL)), draw.dtype(*ALL)
    if not dtype.startswith(("int", "float", "bf", "bool")):
        x = np.abs(x) if x.dtype != bool else x
    y = x != 0 if dtype == "bool" else wide(x).astype("float64" if dtype in FLOATS else dtype)
    return Sample(lambda x: topi.astype(x, dtype), [x], y, dtype)


@case
def lerp(draw: Draw) -> Sample:
    shape, dtype = draw.shape(), draw.dtype()
    a, b, w = (draw.array(draw.broadcastable(shape), dtype) for _ in "abw")
    if draw.flag(0.3):                                        # the ends are met, however far apart they are
        a, w = a * np.asarray(1e4, a.dtype), draw.rng.integers(0, 2, w.shape).astype(w.dtype)
    return Sample(topi.lerp, [a, b, w], wide(a) + wide(w) * (wide(b) - wide(a)), dtype, tolerance=3)


@case
def nan_to_num(draw: Draw) -> Sample:
    x = draw.array(draw.shape(), draw.dtype())
    x[draw.rng.random(x.shape) < 0.3] = draw.choice(np.nan, np.inf, -np.inf)
    y = np.nan_to_num(wide(x), nan=1.0, posinf=8.0, neginf=-8.0)
    return Sample(lambda x: topi.nan_to_num(x, nan=1.0, posinf=8.0, neginf=-8.0), [x], y, str(x.dtype))


@case
def isclose(draw: Draw) -> Sample:
    shape, nan = draw.shape(), draw.flag()
    a = draw.array(draw.broadcastable(shape), "float64")
    b = np.asarray(draw.choice(1.0, 1 + 1e-7, 1 + 1e-3) * a)
    a[draw.rng.random(a.shape) < 0.2] = np.nan
    b[draw.rng.random(b.shape) < 0.2] = draw.choice(np.nan, np.inf)
    return Sample(lambda a, b: topi.isclose(a, b, equal_nan=nan), [a, b], np.isclose(a, b, equal_nan=nan))


# activations


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softplus(x):
    return np.logaddexp(x, 0)


def activation(name, f, attrs=lambda draw: {}, kinds=FLOATS, tolerance=2.0):
    def make(draw: Draw) -> Sample:
        x, given = draw.array(draw.shape(), draw.dtype(*kinds), -6, 6), attrs(draw)
        return Sample(lambda x: getattr(topi, name)(x, **given), [x], f(wide(x), **given), str(x.dtype),
                      tolerance=tolerance)
    make.__name__ = name
    case(make)


activation("relu", lambda x: np.maximum(x, 0), kinds=NUMBERS)
activation("relu6", lambda x: np.clip(x, 0, 6), kinds=NUMBERS)
activation("sigmoid", sigmoid)
activation("silu", lambda x: x * sigmoid(x))
activation("mish", lambda x: x * np.tanh(softplus(x)))
activation("hardsigmoid", lambda x, alpha, beta: np.clip(alpha * x + beta, 0, 1),
           lambda draw: {"alpha": draw.choice(1 / 6, 0.2), "beta": 0.5})
activation("swish", lambda x, beta: x * sigmoid(beta * x), lambda draw: {"beta": draw.choice(1.0, 1.702)})
activation("softcap", lambda x, cap: cap * np.tanh(x / cap), lambda draw: {"cap": draw.choice(0.5, 30.0)})
activation("squared_relu", lambda x: np.maximum(x, 0) ** 2, kinds=NUMBERS)
activation("shrink", lambda x, lambd, bias: np.where(x > lambd, x - bias, np.where(x < -lambd, x + bias, 0)),
           lambda draw: {"lambd": 0.75, "bias": draw.choice(0.0, 0.5)})
activation("hardswish", lambda x: x * np.clip(x + 3, 0, 6) / 6)
activation("softsign", lambda x: x / (1 + np.abs(x)))
activation("tanhshrink", lambda x: x - np.tanh(x))
activation("logsigmoid", lambda x: -softplus(-x))
activation("leaky_relu", lambda x, negative_slope: np.where(x > 0, x, negative_slope * x),
           lambda draw: {"negative_slope": draw.choice(0.01, 0.3)})
activation("elu", lambda x, alpha: np.where(x > 0, x, alpha * np.expm1(x)),
           lambda draw: {"alpha": draw.choice(1.0, 0.5)})
activation("selu", lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x)))
activation("celu", lambda x, alpha: np.maximum(x, 0) + np.minimum(alpha * np.expm1(x / alpha), 0),
           lambda draw: {"alpha": draw.choice(1.0, 0.5)})
activation("gelu", lambda x, approximate: x / 2 * (1 + (erf(x / math.sqrt(2)) if approximate == "none" else np.tanh(
    math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3)))), lambda draw: {"approximate": draw.choice("none", "tanh")})
activation("softplus", lambda x, beta: softplus(beta * x) / beta, lambda draw: {"beta": draw.choice(1.0, 3.0)})
activation("threshold", lambda x, threshold, value: np.where(x > threshold, x, value),
           lambda draw: {"threshold": 1, "value": 3}, kinds=NUMBERS)
activation("hardtanh", lambda x, min, max: np.clip(x, min, max), lambda draw: {"min": -1.5, "max": 2.0})
activation("hardshrink", lambda x, lambd: np.where(np.abs(x) > lambd, x, 0), lambda draw: {"lambd": 0.75})
activation("softshrink", lambda x, lambd: np.sign(x) * np.maximum(np.abs(x) - lambd, 0), lambda draw: {"lambd": 0.75})


GATES = {
    "sigmoid": sigmoid, "silu": lambda x: x * sigmoid(x), "relu": lambda x: np.maximum(x, 0), "tanh": np.tanh,
    "identity": lambda x: x, "gelu": lambda x: x / 2 * (1 + erf(x / math.sqrt(2))), "gelu_tanh": lambda x: x / 2 * (
        1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3))),
}


@case
def prelu(draw: Draw) -> Sample:
    shape, dtype = draw.shape(2, 4), draw.dtype()
    x, w = draw.array(shape, dtype), draw.array((draw.choice(1, shape[1]),), dtype)
    return Sample(topi.prelu, [x, w], np.where(wide(x) > 0, wide(x), wide(x) * wide(w).reshape(-1, *[1] * (
        len(shape) - 2))), dtype)


@case
def glu(draw: Draw) -> Sample:
    shape, dtype = list(draw.shape(1, 4, 3)), draw.dtype()
    axis = draw.axis(len(shape))
    shape[axis] *= 2
    x, name = draw.array(shape, dtype), draw.choice("sigmoid", *GATES)
    a, b = np.split(wide(x), 2, axis)
    others = tuple(n for n in range(len(shape)) if n != axis % len(shape))
    return Sample(lambda x: topi.glu(x, axis=axis, activation=name), [x], a * GATES[name](b), dtype, [others])


@case
def gated(draw: Draw) -> Sample:
    shape, dtype, name = draw.shape(), draw.dtype(), draw.choice(*GATES)
    a, b = (draw.array(draw.broadcastable(shape), dtype, -4, 4) for _ in "ab")
    return Sample(lambda a, b: topi.gated(a, b, activation=name), [a, b], wide(a) * GATES[name](wide(b)), dtype,
                  tolerance=2)
