"""Arithmetic, comparisons and choices of numbers and sizes."""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from tilewright.frontend.onnx.evaluated.results import bounded, kept
from tilewright.frontend.onnx.node import Node, Unknown, Unsupported
from tilewright.frontend.onnx.registry import evaluated
from tilewright.frontend.onnx.tensors import CODED, NUMBERS, numpy_type, stored
from tilewright.frontend.onnx.values import Held, as_objects, holds, objects
from tilewright.tir import Expr
from tilewright.tir import dtype as dt
from tilewright.tir.arithmetic import binary, maximum, minimum


def _given(n: Node, *ks: int) -> list[np.ndarray]:
    """Inputs, whose broadcast has a bounded number of elements."""
    given = [n.elements(k) for k in ks]
    bounded(n, np.broadcast_shapes(*(a.shape for a in given)))
    return given


def _pair(n: Node) -> tuple[np.ndarray, np.ndarray, bool]:
    """(a, b, whether they are objects)."""
    a, b = _given(n, 0, 1)
    if a.dtype == object or b.dtype == object:
        return as_objects(a), as_objects(b), True
    return a, b, False


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
    """a == b, a < b, ..., where that is so for all sizes or for none."""
    a, b, mixed = _pair(n)
    op = _COMPARISONS[n.op]
    if not mixed:
        return Held.known(_NUMPY[op](a, b))
    found = _each(lambda p, q: holds(op, p, q), a, b)
    if any(f is None for f in found.reshape(-1)):
        raise Unknown(n.held(0), "a comparison of sizes")
    return Held.known(found.astype(bool))


@evaluated("And", "Or", "Xor", since=7)
def logic(n: Node) -> Held:
    """a and b, a or b, a != b of bools."""
    operation = {"And": np.logical_and, "Or": np.logical_or, "Xor": np.logical_xor}[n.op]
    return Held.known(operation(*_given(n, 0, 1)))


@evaluated("Where")
def where(n: Node) -> Held:
    """a where the condition holds, else b."""
    condition, a, b = _given(n, 0, 1, 2)
    if a.dtype == object or b.dtype == object:
        a, b = as_objects(a), as_objects(b)
    return kept(n, np.where(condition, a, b), 1)


_UNARY: dict[str, Any] = {"Neg": np.negative, "Abs": np.abs, "Not": np.logical_not, "Floor": np.floor, "Ceil": np.ceil,
          "Sqrt": np.sqrt, "Reciprocal": np.reciprocal, "Sign": np.sign, "Exp": np.exp, "Log": np.log,
          "Round": np.round, "Relu": lambda x: np.maximum(x, 0)}


@evaluated(*_UNARY)
def unary(n: Node) -> Held:
    """-x, |x|, ..., element by element."""
    x = n.elements(0)
    if x.dtype == object:
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
        if dtype not in ("int32", "int64"):
            raise Unknown(n.held(0), "input 0")
        return Held.known(x, dtype)
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
    made = _REDUCTIONS[n.op].reduce(x, axis=tuple(axes), keepdims=bool(n.attr("keepdims", 1)))
    return kept(n, objects([made], ()) if x.dtype == object and not isinstance(made, np.ndarray) else made)
