"""Types of values: dtype and extents, which are numbers or expressions of size variables.

A size variable is known by its name: one of a name is one variable in every function of the process, so that types,
kernels and plans of different functions agree. What it stands for is decided by each function, from its arguments.
"""
from __future__ import annotations

import copyreg
import functools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright.arith.analyzer import Analyzer
from tilewright.arith.linear import linear
from tilewright.graph.ir.deferred import Deferred
from tilewright.runtime.dtypes import dtype_string
from tilewright.support.errors import GraphError, described
from tilewright.support.locks import ForkSafeLock
from tilewright.tir import Cast, Expr, IntImm, Var
from tilewright.tir import dtype as dt
from tilewright.tir.arithmetic import binary
from tilewright.tir.conversion import cast, convert
from tilewright.tir.interp.execute import evaluate
from tilewright.tir.node import substitute, walk

Dim = int | Expr

_SIZES: dict[str, Var] = {}
_lock = ForkSafeLock()


def size(name: str) -> Var:
    """The size variable of that name: an extent that each call of a function decides, and that is at least 1."""
    if not isinstance(name, str) or not name.isidentifier():
        raise GraphError(f"size: {described(name)} does not name a variable", 'write size("batch")')
    with _lock:
        return _SIZES.setdefault(name, Var(name, "int32"))


def _pickled(v: Var) -> Any:
    """Copies of a size variable, in other processes too, are the size variable of its name."""
    return (size, (v.name,)) if _SIZES.get(v.name) is v else v.__reduce_ex__(4)


copyreg.pickle(Var, _pickled)


def size_variables(dims: Iterable[Dim]) -> dict[Var, None]:
    """The variables in extents, in order of appearance."""
    return {n: None for d in dims if isinstance(d, Expr) for n in walk(d) if isinstance(n, Var)}


def of_sizes(e: Expr) -> Expr:
    """The expression with the size variable of its name for each variable that is made otherwise, as by te.var."""
    table: dict[Var, Expr] = {}
    for v in size_variables([e]):
        own = size(v.name)
        if own is not v:
            table[v] = own if v.dtype == own.dtype else Cast(v.dtype, own)
    return substitute(e, table) if table else e


def canonical(extent: Any) -> Dim:
    """An extent in its simplest form; size variables are at least 1. Raises GraphError for what is no extent."""
    if isinstance(extent, bool) or not (hasattr(extent, "__index__") or isinstance(extent, Expr)):
        raise GraphError(f"the extent {described(extent)} is not an integer or an expression of sizes")
    if not isinstance(extent, Expr):
        return _natural(int(extent))
    e = of_sizes(convert(extent))
    if isinstance(e, Cast) and isinstance(e.value, Var):
        e = e.value
    if isinstance(e, IntImm):
        return _natural(e.value)
    if isinstance(e, Var):
        return e
    analyzer = Analyzer()
    for v in size_variables([e]):
        analyzer.bind(v, 1, 2**31 - 2)
    e = analyzer.simplify(e)
    return _natural(e.value) if isinstance(e, IntImm) else _in_order(e)


def _in_order(e: Expr) -> Expr:
    """A sum with its terms in one order, those that are added first."""
    terms, const = linear(e)
    if len(terms) < 2:
        return e
    subtracts = all(k < 0 for k in terms.values())           # from the constant
    made: Expr = IntImm(const if subtracts else 0, e.dtype)
    const = 0 if subtracts else const
    for atom, k in sorted(terms.items(), key=lambda t: (t[1] < 0, str(t[0]))):
        made = binary("add" if k > 0 else "sub", made, binary("mul", cast(e.dtype, atom), abs(k)))
    return binary("add" if const > 0 else "sub", made, IntImm(abs(const), e.dtype)) if const else made


def _natural(n: int) -> int:
    if n < 0:
        raise GraphError(f"the extent {n} is negative")
    return n


def same(a: Dim, b: Dim) -> bool:
    """True where two extents are equal for all sizes."""
    if isinstance(a, int) or isinstance(b, int):
        return isinstance(a, int) and isinstance(b, int) and a == b
    return a is b or Analyzer().equal(a, b)


@dataclass(frozen=True, eq=False)
class TensorType:
    """dtype[extents]; two types are equal where their extents are, written in canonical form."""
    shape: tuple[Dim, ...]
    dtype: str = "float32"

    @staticmethod
    def of(shape: Sequence[Any], dtype: Any = "float32") -> TensorType:
        """The type with canonical extents. Raises GraphError, or ArgumentError for a dtype that does not exist."""
        if isinstance(shape, (str, bytes)) or not isinstance(shape, Iterable):
            raise GraphError(f"the shape {described(shape)} is not a tuple of extents")
        return TensorType(tuple(map(canonical, shape)), dtype_string(dtype))

    @functools.cached_property
    def key(self) -> tuple[str, ...]:
        """The text, and the names of the sizes, of which the text may show two alike: `for` is `_for` there."""
        return (str(self), *(v.name for v in size_variables(self.shape)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TensorType) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __str__(self) -> str:
        return f"{self.dtype}[{', '.join(map(str, self.shape))}]"

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def is_constant(self) -> bool:
        return all(isinstance(d, int) for d in self.shape)

    @property
    def elements(self) -> Dim:
        """How many elements a value has."""
        return canonical(math.prod(self.shape, start=convert(1))) if self.shape else 1

    def nbytes(self, sizes: Mapping[Var, int] | None = None) -> int:
        """Bytes that a value takes, where the size variables have these values."""
        return math.prod(extents(self.shape, sizes or {})) * dt.bytes_of(self.dtype)


def extents(shape: Sequence[Dim], sizes: Mapping[Var, int]) -> tuple[int, ...]:
    """The numbers that extents are, for values of the size variables."""
    return tuple(d if isinstance(d, int) else int(evaluate(d, sizes)) for d in shape)


def type_of_array(array: np.ndarray | Deferred) -> TensorType:
    """The type of an array."""
    return TensorType(tuple(array.shape), dtype_string(array.dtype))
