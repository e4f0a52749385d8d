"""Functions of elements: of one tensor, of two that are converted to one type, comparisons, logic, choices."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright import topi
from tilewright.frontend.torch.dtypes import category, result_type
from tilewright.frontend.torch.emit import Emitter
from tilewright.frontend.torch.table import operator
from tilewright.graph.ir.values import Value

_FLOATS: dict[str, Callable[..., Any]] = {      # of integers too, in floats
    "acos": topi.acos, "acosh": topi.acosh, "asin": topi.asin, "asinh": topi.asinh, "atan": topi.atan,
    "atanh": topi.atanh, "cos": topi.cos, "cosh": topi.cosh, "digamma": topi.digamma, "erf": topi.erf,
    "erfc": topi.erfc, "erfinv": topi.erfinv, "exp": topi.exp, "exp2": topi.exp2, "expm1": topi.expm1,
    "lgamma": topi.lgamma, "log": topi.log, "log10": topi.log10, "log1p": topi.log1p, "log2": topi.log2,
    "reciprocal": topi.reciprocal, "rsqrt": topi.rsqrt, "sigmoid": topi.sigmoid, "sin": topi.sin, "sinc": topi.sinc,
    "sinh": topi.sinh, "sqrt": topi.sqrt, "tan": topi.tan, "tanh": topi.tanh,
    "special_ndtr": topi.normal_cdf, "i0": topi.bessel_i0, "special_i0": topi.bessel_i0, "deg2rad": topi.deg2rad,
    "rad2deg": topi.rad2deg,
}
_ROUNDINGS = {"ceil": topi.ceil, "floor": topi.floor, "round": topi.round, "trunc": topi.trunc, "fix": topi.trunc}
_SAME = {"abs": topi.abs, "neg": topi.negative, "frac": topi.frac, "square": topi.square, "positive": lambda x: x}
_QUESTIONS = {"isnan": topi.isnan, "isinf": topi.isinf, "isfinite": topi.isfinite, "isposinf": topi.isposinf,
              "isneginf": topi.isneginf, "signbit": topi.signbit}
_COMPARISONS = {"eq": topi.equal, "ne": topi.not_equal, "lt": topi.less, "le": topi.less_equal, "gt": topi.greater,
                "ge": topi.greater_equal}
_LOGIC = {"logical_and": topi.logical_and, "logical_or": topi.logical_or, "logical_xor": topi.logical_xor}
_BITS = {"bitwise_and": topi.bitwise_and, "bitwise_or": topi.bitwise_or, "bitwise_xor": topi.bitwise_xor}
_SHIFTS = {"bitwise_left_shift": topi.bitwise_left_shift, "bitwise_right_shift": topi.bitwise_right_shift}


def binary(e: Emitter, rule: Callable[..., Any], a: Any, b: Any, dtype: str | None = None) -> Value:
    """rule(a, b), converted to a type: by default that of the result. One of them is a tensor."""
    dtype = dtype or e.dtype
    a, b = e.operand(a, dtype), e.operand(b, dtype)
    if not isinstance(a, Value) and not isinstance(b, Value):
        a = e.tensor(a, dtype)
    return e.te(rule, a, b)


def _enter(rows: dict[str, Callable[..., Any]], make: Callable[[Callable[..., Any]], Callable[..., Any]], *kinds: str,
           says: str = "`topi.{}`.") -> None:
    for name, rule in rows.items():
        row = make(rule)
        row.__doc__ = says.format(getattr(rule, "__name__", name)) if "<" not in getattr(rule, "__name__", "") else "x."
        operator(*(f"{name}.{kind}" for kind in kinds))(row)


_enter(_FLOATS, lambda rule: lambda e, x: e.te(rule, e.cast(x, e.dtype)), "default", says="`topi.{}`, of floats.")
_enter(_ROUNDINGS, lambda rule: lambda e, x: e.te(rule, x) if category(x.dtype) == 2 else x, "default",
       says="`topi.{}` of floats; integers stay.")
_enter(_SAME, lambda rule: lambda e, x: x if rule is topi.abs and x.dtype in ("bool", "uint8")
       else e.te(rule, x) if x.dtype != "bool" else x, "default")
_enter(_COMPARISONS, lambda rule: lambda e, a, b: binary(e, rule, a, b, result_type([a, b])), "Tensor", "Scalar",
       says="`topi.{}` of a and b in one type.")
_enter(_LOGIC, lambda rule: lambda e, a, b: binary(e, rule, a, b, result_type([a, b])), "default")
_enter(_BITS, lambda rule: lambda e, a, b: binary(e, rule, a, b), "Tensor", "Scalar", "Scalar_Tensor")
_enter(_SHIFTS, lambda rule: lambda e, a, b: binary(e, rule, a, b), "Tensor", "Tensor_Scalar", "Scalar_Tensor")
_enter({"__lshift__": topi.bitwise_left_shift, "__rshift__": topi.bitwise_right_shift},
       lambda rule: lambda e, a, b: binary(e, rule, a, b), "Tensor", "Scalar")


@operator("prims.bessel_i0")
def bessel_i0(e: Emitter, x: Value) -> Value:
    """`topi.bessel_i0`."""
    return e.te(topi.bessel_i0, x)


def _question(rule: Callable[..., Any]) -> Callable[..., Any]:
    def row(e: Emitter, x: Value) -> Value:
        if category(x.dtype) == 2:
            return e.te(rule, x)
        if rule is topi.signbit and x.dtype != "bool":
            return e.te(topi.less, x, 0)
        return e.te(topi.full, x.shape, rule is topi.isfinite, dtype="bool")
    return row


_enter(_QUESTIONS, _question, "default")


@operator("sign", "sgn")
def sign(e: Emitter, x: Value) -> Value:
    """1, 0 or -1: whether x is above 0, less whether it is below; 0 for NaN."""
    if category(x.dtype) != 2:
        return x if x.dtype == "bool" else e.te(topi.sign, x)
    above, below = (e.cast(e.te(rule, x, 0.0), x.dtype) for rule in (topi.greater, topi.less))
    return e.te(topi.subtract, above, below)


@operator("logical_not")
def logical_not(e: Emitter, x: Value) -> Value:
    """`topi.logical_not`."""
    return e.te(topi.logical_not, x)


@operator("bitwise_not")
def bitwise_not(e: Emitter, x: Value) -> Value:
    """`topi.bitwise_not`."""
    return e.te(topi.bitwise_not, x)


@operator("round.decimals")
def round_decimals(e: Emitter, x: Value, decimals: int = 0) -> Value:
    """`topi.round` of x with the point moved."""
    if category(x.dtype) != 2:
        return x
    factor = float(10 ** abs(decimals))
    forth, back = (topi.multiply, topi.divide) if decimals >= 0 else (topi.divide, topi.multiply)
    return e.te(back, e.te(topi.round, e.te(forth, x, factor)), factor)


@operator("where.self", "where.ScalarSelf", "where.ScalarOther", "where.Scalar")
def where(e: Emitter, condition: Value, a: Any, b: Any) -> Value:
    """`topi.where`."""
    return e.te(topi.where, e.cast(condition, "bool"), e.element(a, e.dtype), e.element(b, e.dtype))


@operator("clamp", "clamp.Tensor", "clip", "clip.Tensor")
def clamp(e: Emitter, x: Value, min: Any = None, max: Any = None) -> Value:
    """min(max(x, `min`), `max`)."""
    x = e.cast(x, e.dtype)
    if min is not None:
        x = e.te(topi.maximum, x, e.operand(min, e.dtype))
    return x if max is None else e.te(topi.minimum, x, e.operand(max, e.dtype))


@operator("clamp_min", "clamp_min.Tensor")
def clamp_min(e: Emitter, x: Value, min: Any) -> Value:
    """max(x, `min`)."""
    return binary(e, topi.maximum, x, min)


@operator("clamp_max", "clamp_max.Tensor")
def clamp_max(e: Emitter, x: Value, max: Any) -> Value:
    """min(x, `max`)."""
    return binary(e, topi.minimum, x, max)


@operator("nan_to_num")
def nan_to_num(e: Emitter, x: Value, nan: float | None = None, posinf: float | None = None,
               neginf: float | None = None) -> Value:
    """`topi.nan_to_num`."""
    return e.te(topi.nan_to_num, x, nan=nan or 0.0, posinf=posinf, neginf=neginf) if category(x.dtype) == 2 else x


@operator("_to_copy", "to.dtype", "to.dtype_layout", "to.device", "to.other", "type_as", "clone", "alias", "contiguous",
          "detach", "lift", "lift_fresh", "lift_fresh_copy", "alias_copy", "_conj", "conj", "resolve_conj",
          "resolve_neg", "real", "prims.convert_element_type", "prims.device_put")
def same(e: Emitter, x: Value, *_: Any, **__: Any) -> Value:
    """x, in the dtype of the result: values have no memory of their own."""
    return e.cast(x, e.dtype)


@operator("copy")
def copy(e: Emitter, x: Value, source: Value, non_blocking: bool = False) -> Value:
    """The elements of `source`, repeated to the shape of x."""
    return e.broadcast(e.cast(source, e.dtype), e.shape)
