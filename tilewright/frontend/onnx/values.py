"""What the importer knows of a tensor beside its type: small ones element by element, as numbers or sizes."""
from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from tilewright import te, topi
from tilewright.arith.analyzer import Analyzer
from tilewright.frontend.onnx.limits import MOST_TERMS
from tilewright.frontend.onnx.tensors import numpy_type
from tilewright.graph.ir.deferred import Deferred, loaded
from tilewright.graph.ir.types import size_variables
from tilewright.graph.ir.values import Value
from tilewright.graph.passes.conditions import wide
from tilewright.support.errors import ImportModelError
from tilewright.tir import Expr, IntImm, Var
from tilewright.tir import dtype as dt
from tilewright.tir.arithmetic import binary
from tilewright.tir.conversion import cast, const, convert
from tilewright.tir.node import substitute, walk


@dataclass(eq=False)
class Held:
    """A tensor. data: what it holds, where that is known: an array, of objects where some are expressions of sizes.

    dtype: of its elements in the graph; kind: its type in the file, which differs for integers below 8 bits.
    value: what stands for it in the graph; made when it is first read, where only the elements are known.
    counted: (axis, number) where only the first slices along an axis are the tensor, as many as the number says.
    """
    dtype: str
    shape: tuple[Any, ...]
    kind: str
    data: np.ndarray | Deferred | None = None
    value: Value | None = None
    counted: tuple[int, Value] | None = None

    @staticmethod
    def of(value: Value, kind: str = "") -> Held:
        """The tensor that a value is."""
        return Held(value.dtype, value.shape, kind or value.dtype, value.held, value)

    @staticmethod
    def known(elements: Any, dtype: str = "", kind: str = "") -> Held:
        """A tensor of known elements: an array, or objects that are numbers and expressions of a dtype."""
        if isinstance(elements, Deferred):
            return Held(elements.dtype.name, elements.shape, kind or elements.dtype.name, elements)
        array = np.asarray(elements)
        if array.dtype == object:
            flat = [simple(e) for e in array.reshape(-1)]
            array = objects(flat, array.shape)
            if not any(isinstance(e, (Expr, Share)) for e in flat):
                array = array.astype(numpy_type(dtype))
        elif dtype and array.dtype != numpy_type(dtype):
            array = array.astype(numpy_type(dtype))
        dtype = dtype or array.dtype.name
        return Held(dtype, array.shape, kind or dtype, array)

    @property
    def is_known(self) -> bool:
        """What it holds is known."""
        return self.data is not None

    @property
    def elements(self) -> np.ndarray | None:
        """What it holds, read where it lies in a file."""
        return None if self.data is None else loaded(self.data)

    def few(self, most: int) -> np.ndarray | None:
        """What it holds; None for what is not known, or has more elements."""
        return None if self.data is None or math.prod(self.shape) > most else loaded(self.data)

    @property
    def is_symbolic(self) -> bool:
        """Some elements are expressions of sizes."""
        return self.data is not None and self.data.dtype == object


@dataclass(frozen=True)
class Share:
    """A size times a fraction, as an element of a tensor of floats; integers there are numbers or expressions."""
    size: Expr
    fraction: Fraction

    def floor(self, more: int = 0) -> Any:
        """The integer at most so large; with denominator - 1 more that at least so large."""
        return simple(binary("floordiv", self.size * self.fraction.numerator + more, self.fraction.denominator))

    def real(self) -> Expr:
        """The same as an expression of floats."""
        return cast("float64", self.size) * (self.fraction.numerator / self.fraction.denominator)


def objects(values: Sequence[Any], shape: Sequence[int] | None = None) -> np.ndarray:
    """An array of Python objects."""
    out = np.empty(len(values), object)
    out[:] = values
    return out if shape is None else out.reshape(tuple(shape))


def as_objects(array: np.ndarray) -> np.ndarray:
    """The elements as Python numbers and expressions."""
    if array.dtype == object:
        return array
    return objects(array.reshape(-1).tolist(), array.shape)


def bounded_sizes(values: Iterable[Any]) -> None:
    """Raise ImportModelError for a number beyond 64 bits, or an expression of sizes that is too long to simplify."""
    for e in values:
        if isinstance(e, Expr) and next(itertools.islice(walk(e), MOST_TERMS, None), None) is not None:
            raise ImportModelError(f"an expression of sizes has more than {MOST_TERMS} terms",
                                   "give the sizes as numbers: from_onnx(model, shapes={...})")
        if isinstance(e, int) and not -2**63 <= e < 2**64:
            raise ImportModelError("a number among sizes is beyond 64 bits")


def facts(*expressions: Any, least: int = 0) -> Analyzer:
    """What is known of sizes: that they are at least 0, or 1 where that is taken for granted."""
    analyzer = Analyzer()
    for v in size_variables(e for e in expressions if isinstance(e, Expr)):
        analyzer.bind(v, least, 2**31 - 2)
    return analyzer


def simple(e: Any) -> Any:
    """An expression in its simplest form, a number where it is one."""
    if not isinstance(e, Expr):
        return e
    if not isinstance(e, IntImm):
        e = facts(e).simplify(e)
    return e.value if isinstance(e, IntImm) else e


def holds(op: str, a: Any, b: Any, least: int = 0) -> bool | None:
    """Whether `a op b` ("lt", "eq", ...) is true for all sizes from `least` on; None where that depends on them."""
    if not isinstance(a, Expr) and not isinstance(b, Expr):
        return {"lt": a < b, "le": a <= b, "eq": a == b, "ne": a != b, "gt": a > b, "ge": a >= b}[op]
    analyzer = facts(a, b, least=least)
    low, high = analyzer.bounds(analyzer.simplify(convert(a - b)))
    if low == high == 0:
        return op in ("le", "ge", "eq")
    if low is not None and low > 0:
        return op in ("gt", "ge", "ne")
    if high is not None and high < 0:
        return op in ("lt", "le", "ne")
    if op in ("ge", "lt") and low is not None and low >= 0:
        return op == "ge"
    if op in ("le", "gt") and high is not None and high <= 0:
        return op == "le"
    return None


def replaced(e: Any, table: Mapping[Var, Any]) -> Any:
    """An extent with others for some sizes, in its simplest form."""
    if not isinstance(e, Expr) or not table:
        return e
    return simple(substitute(e, {v: convert(n) for v, n in table.items()}))


def solved(unequal: Iterable[tuple[Any, Any]], sizes: Sequence[Var]) -> dict[Var, Any]:
    """What sizes have to be so that extents are equal: numbers, or expressions of others; of two sizes the later one
    is the earlier one. Pairs that say this of no size of the inputs are left out."""
    place = {v: k for k, v in enumerate(sizes)}
    found: dict[Var, Any] = {}
    for pair in unequal:
        a, b = (simple(replaced(e, found)) for e in pair)
        if isinstance(a, Var) and isinstance(b, Var) and place.get(a, -1) < place.get(b, -1):
            a, b = b, a
        for v, e in ((a, b), (b, a)):
            if isinstance(v, Var) and v in place and _is_other(e, v, place):
                found = {**{k: replaced(x, {v: e}) for k, x in found.items()}, v: e}
                break
    return found


def _is_other(e: Any, v: Var, sizes: Mapping[Var, int]) -> bool:
    """A number of at least 1, or an expression of sizes without v."""
    if not isinstance(e, Expr):
        return bool(e >= 1)
    own = size_variables([e])
    return v not in own and all(o in sizes for o in own)


def elements(values: tuple[Any, ...], shape: tuple[int, ...], dtype: str) -> te.Tensor:
    """y: dtype[shape], the values row by row: numbers and expressions of sizes."""
    def element(*i: Any) -> Expr:
        at: Any = convert(0)
        for index, extent in zip(i, shape):
            at = binary("add", binary("mul", at, extent), index)
        chosen = _typed(values[-1], dtype)
        for k in range(len(values) - 2, -1, -1):
            chosen = te.select(binary("eq", at, k), _typed(values[k], dtype), chosen)
        return chosen
    return te.compute(shape, element, name="elements")


def first(x: te.Tensor, count: Any, axis: int) -> te.Tensor:
    """The first `count` slices of x along an axis; a run in which it has fewer is an error."""
    return topi.take(x, topi.arange(count), axis=axis)


def _typed(value: Any, dtype: str) -> Expr:
    if not isinstance(value, Expr):
        return const(value, dtype)
    return (value if dt.is_float(value.dtype) else wide(value)).astype(dtype)
