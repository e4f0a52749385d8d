"""Arithmetic, comparisons and choices of numbers and sizes."""
from __future__ import annotations

import functools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from tilewright.frontend.onnx.evaluated.results import bounded, kept
from tilewright.frontend.onnx.node import Node, Unknown, Unsupported
from tilewright.frontend.onnx.registry import evaluated
from tilewright.frontend.onnx.tensors import CODED, NUMBERS, numpy_type, stored
from tilewright.frontend.onnx.values import Held, Share, as_objects, holds, objects, simple
from tilewright.tir import Binary, Expr
from tilewright.tir import dtype as dt
from tilewright.tir.arithmetic import binary, maximum, minimum

MOST_FRACTION = 2**8                   # of numerator and denominator: products with sizes are exact in float32


def _given(n: Node, *ks: int) -> list[np.ndarray]:
    """Inputs, whose broadcast has a bounded number of elements."""
    given = [n.elements(k) for k in ks]
    bounded(n, np.broadcast_shapes(*(a.shape for a in given)))
    return given


def _pair(n: Node) -> tuple[np.ndarray, np.ndarray, bool]:
    """(a, b, whether they are objects), whole numbers if so."""
    a, b = _given(n, 0, 1)
    if a.dtype == object or b.dtype == object:
        return _whole(n, a), _whole(n, b), True
    return a, b, False


def _whole(n: Node, x: np.ndarray) -> np.ndarray:
    """x as objects, floats as integers. Raises Unknown for a fraction."""
    def whole(e: Any) -> Any:
        if isinstance(e, Share) or isinstance(e, float) and not e.is_integer():
            raise Unknown(n.held(0), "a fraction of a size")
        return int(e) if isinstance(e, float) else e
    return _each(whole, as_objects(x))


def _scaled(n: Node, a: Any, b: Any) -> Any:
    """a * b or a / b of floats that are numbers, sizes or fractions of them: of a small fraction, which is exact."""
    if n.op == "Mul" and isinstance(b, (Expr, Share)):
        a, b = b, a
    if isinstance(b, (Expr, Share)) or not np.isfinite(b) or n.op == "Div" and b == 0:
        raise Unknown(n.held(0), "a product of sizes")
    factor = Fraction(b) if n.op == "Mul" else 1 / Fraction(b)
    if not isinstance(a, (Expr, Share)):
        return a * b if n.op == "Mul" else a / b
    size, factor = (a.size, a.fraction * factor) if isinstance(a, Share) else (a, factor)
    if max(abs(factor.numerator), factor.denominator) > MOST_FRACTION:
        raise Unknown(n.held(0), "a fraction of a size")
    return size * factor.numerator if factor.denominator == 1 else Share(size, factor)


def _each(f: Callable[..., Any], *arrays: np.ndarray) -> np.ndarray:
    """f of the elements, broadcast, as objects."""
    given = np.broadcast_arrays(*arrays)
    return objects([f(*row) for row in zip(*(a.reshape(-1).tolist() for a in given))], given[0].shape)


def _quotient(n: Node, a: Any, b: Any) -> Any:
    """a / b of integers, without the fraction."""
    if not isinstance(a, Expr) and not isinstance(b, Expr):
        if b == 0:
            raise Unsupported("a size is divided by 0")
        return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    if n.granted("ge", a, 0) and n.granted("gt", b, 0):
        return binary("floordiv", a, b)
    raise Unsupported(f"the quotient {a} / {b} of sizes that may be negative")


def _remainder(n: Node, a: Any, b: Any) -> Any:
    if not n.granted("gt", b, 0):
        raise Unsupported(f"the remainder of {a} and {b}, which may be negative")
    return binary("truncmod" if n.attr("fmod", 0) and not holds("ge", a, 0) else "floormod", a, b)


def _divided(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    if dt.is_float(a.dtype.name):
        return a / b
    if not b.all():
        raise Unsupported("integers are divided by 0")
    quotient = a // b
    return quotient + ((quotient < 0) & (quotient * b != a)).astype(a.dtype)


_ARITHMETIC: dict[str, tuple[Any, Any]] = {
    "Add": (np.add, lambda n, a, b: a + b), "Sub": (np.subtract, lambda n, a, b: a - b),
    "Mul": (np.multiply, lambda n, a, b: a * b), "Div": (_divided, _quotient), "Mod": (np.mod, _remainder),
    "Min": (np.minimum, lambda n, a, b: a if holds("le", a, b) else b if holds("le", b, a) else minimum(a, b)),
    "Max": (np.maximum, lambda n, a, b: a if holds("ge", a, b) else b if holds("ge", b, a) else maximum(a, b)),
    "Pow": (np.power, None),
}


@evaluated("Add", "Sub", "Mul", "Div", since=7)
@evaluated("Mod", "Min", "Max", "Pow")
def arithmetic(n: Node) -> Held:
    """a + b, a - b, ..., element by element."""
    if len(n) == 1:
        return kept(n, n.elements(0))
    if len(n) > 2:
        raise Unknown(n.held(0), "input 0")
    if n.op in ("Mul", "Div") and dt.is_float(n.held(0).dtype) and (n.held(0).is_symbolic or n.held(1).is_symbolic):
        return kept(n, _each(functools.partial(_scaled, n), *map(as_objects, _given(n, 0, 1))))
    a, b, mixed = _pair(n)
    plain, symbolic = _ARITHMETIC[n.op]
    plain = np.fmod if n.attr("fmod", 0) else plain
    if mixed and symbolic is None or n.op == "Pow" and not dt.is_float(b.dtype.name) and (b < 0).any():
        raise Unknown(n.held(0), "input 0")
    if mixed:
        return kept(n, _each(functools.partial(symbolic, n), a, b))
    with np.errstate(all="ignore"):
        return kept(n, plain(a, b).astype(numpy_type(n.held(0).dtype)))


_COMPARISONS = {"Equal": "eq", "Less": "lt", "LessOrEqual": "le", "Greater": "gt", "GreaterOrEqual": "ge"}
_NUMPY = {"eq": np.equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal}


@evaluated(*_COMPARISONS)
def comparison(n: Node) -> Held:
    """a == b, a < b, ...; of sizes an expression where it depends on them."""
    a, b, mixed = _pair(n)
    op = _COMPARISONS[n.op]
    if not mixed:
        return Held.known(_NUMPY[op](a, b))
    if n.held(0).dtype == "bool":
        raise Unknown(n.held(0), "a comparison of comparisons")

    def compared(p: Any, q: Any) -> Any:
        known = holds(op, p, q)
        return binary(op, p, q) if known is None else known
    return Held.known(_each(compared, a, b), "bool")


@evaluated("And", "Or", "Xor", since=7)
def logic(n: Node) -> Held:
    """a and b, a or b, a != b of bools."""
    operation = {"And": np.logical_and, "Or": np.logical_or, "Xor": np.logical_xor}[n.op]
    a, b, mixed = _pair(n)
    if mixed:
        raise Unknown(n.held(0), "a comparison of sizes")
    return Held.known(operation(a, b))


@evaluated("Where")
def where(n: Node) -> Held:
    """a where the condition holds, else b."""
    condition, a, b = _given(n, 0, 1, 2)
    if condition.dtype == object:
        return kept(n, _each(functools.partial(_chosen, n), condition, a, b), 1)
    if a.dtype == object or b.dtype == object:
        a, b = as_objects(a), as_objects(b)
    return kept(n, np.where(condition, a, b), 1)


def _chosen(n: Node, condition: Any, a: Any, b: Any) -> Any:
    """a where a comparison of sizes holds, else b: integers of 32 bits."""
    if not isinstance(condition, Expr):
        return a if condition else b
    if not dt.is_integer(n.held(1).dtype) or any(not isinstance(e, Expr) and abs(e) >= 2**31 for e in (a, b)):
        raise Unknown(n.held(0), "the condition")
    return simple(b + (a - b) * _truth(condition))


def _truth(comparison: Any) -> Any:
    """1 where a comparison of integers holds, else 0: of sums, least and largest numbers, as extents are."""
    if not isinstance(comparison, Binary):
        raise Unsupported(f"the number of the condition {comparison}")
    op, a, b = comparison.op, comparison.a, comparison.b
    if op in ("eq", "ne"):
        apart = minimum(maximum(a - b, b - a), 1)
        return apart if op == "ne" else 1 - apart
    more = b - a if op in ("lt", "le") else a - b
    return minimum(maximum(more + int(op in ("le", "ge")), 0), 1)


def _rounded(e: Any, up: bool = False) -> Any:
    """The integer at most as large as a number, a size or a fraction of one, or at least as large."""
    if isinstance(e, Share):
        return e.floor(e.fraction.denominator - 1 if up else 0)
    return e if isinstance(e, Expr) else math.ceil(e) if up else math.floor(e)


_UNARY: dict[str, Any] = {"Neg": np.negative, "Abs": np.abs, "Not": np.logical_not, "Floor": np.floor, "Ceil": np.ceil,
          "Sqrt": np.sqrt, "Reciprocal": np.reciprocal, "Sign": np.sign, "Exp": np.exp, "Log": np.log,
          "Round": np.round, "Relu": lambda x: np.maximum(x, 0)}


@evaluated(*_UNARY)
def unary(n: Node) -> Held:
    """-x, |x|, ..., element by element."""
    x = n.elements(0)
    if x.dtype == object:
        if n.op in ("Floor", "Ceil"):
            return kept(n, _each(functools.partial(_rounded, up=n.op == "Ceil"), x))
        x = _whole(n, x)
        if n.op == "Neg":
            return kept(n, _each(lambda e: -e, x))
        if n.op == "Abs" and all(holds("ge", e, 0) for e in x.reshape(-1)):
            return kept(n, x)
        raise Unknown(n.held(0), "input 0")
    with np.errstate(all="ignore"):
        return kept(n, _UNARY[n.op](x).astype(x.dtype))


@evaluated("Cast", "CastLike")
def cast(n: Node) -> Held:
    """x in another type."""
    x = n.elements(0)
    number = NUMBERS[n.held(1).kind] if n.op == "CastLike" else n.attr("to", 1)
    kind, dtype = stored(number, "the attribute to")
    if kind != dtype or n.held(0).kind in CODED or n.held(0).dtype.startswith("float8") or dtype.startswith("float8"):
        raise Unknown(n.held(0), "input 0")
    if x.dtype == object:
        if dtype in ("float32", "float64") and n.held(0).dtype != "bool":
            return Held.known(x, dtype)
        if dtype not in ("int32", "int64") or any(isinstance(e, Share) and not holds("ge", e.floor(), 0)
                                                  for e in x.reshape(-1)):
            raise Unknown(n.held(0), "input 0")
        x = _each(lambda e: e if isinstance(e, Expr) else _rounded(e) if isinstance(e, Share) else int(e), x)
        return Held.known(_each(lambda e: _truth(e) if isinstance(e, Expr) else int(e), x)
                          if n.held(0).dtype == "bool" else x, dtype)
    if dt.is_float(n.held(0).dtype) and not dt.is_float(dtype) and not np.isfinite(x.astype("float64")).all():
        raise Unknown(n.held(0), "input 0")
    with np.errstate(all="ignore"):
        return Held.known(x.astype(numpy_type(dtype)), dtype)


_REDUCTIONS: dict[str, Any] = {"ReduceSum": np.add, "ReduceProd": np.multiply, "ReduceMax": np.maximum,
                               "ReduceMin": np.minimum}


@evaluated(*_REDUCTIONS)
def reduction(n: Node) -> Held:
    """The sum, the product, the largest or the smallest element along axes."""
    x, axes = n.elements(0), n.axes()
    if axes is None or not axes:
        if n.attr("noop_with_empty_axes", 0):
            return kept(n, x)
        axes = list(range(x.ndim))
    if x.dtype == object and n.op in ("ReduceMax", "ReduceMin") or not x.size:
        raise Unknown(n.held(0), "input 0")
    x = _whole(n, x) if x.dtype == object else x
    made = _REDUCTIONS[n.op].reduce(x, axis=tuple(axes), keepdims=bool(n.attr("keepdims", 1)))
    return kept(n, objects([made], ()) if x.dtype == object and not isinstance(made, np.ndarray) else made)
