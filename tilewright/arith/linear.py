"""Linear forms: an integer expression as a sum of coefficient * atom plus a constant."""
from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from tilewright.tir.buffer import Load
from tilewright.tir.expr import Binary, Cast, Expr, FloatImm, IntImm, Var
from tilewright.tir.node import COMPARED, Node

Bounds = tuple[int | None, int | None]


class Atom:
    """What a linear form treats as a variable; interned, so that equal atoms are one object.

    `kind` says what `args` holds: "var" (), "div" and "mod" (numerator, denominator), "min" and "max" (a, b),
    "product" (atoms...), "select" (lazy, condition, a, b), "cast" (form, from, to), "opaque". `span` is what
    the type says of an opaque atom.
    `exact` is True when the value cannot wrap around (index arithmetic); data read from memory may.
    """
    __slots__ = ("index", "kind", "args", "expr", "span", "exact", "texts")

    def __init__(self, index: int, kind: str, args: tuple[Any, ...], expr: Expr | None, span: Bounds,
                 exact: bool) -> None:
        self.index, self.kind, self.args = index, kind, args
        self.expr, self.span, self.exact = expr, span, exact
        self.texts: dict[str, Expr] = {}


class Linear:
    """sum of terms[atom] * atom, plus const. No coefficient is zero; terms stay in order of appearance."""
    __slots__ = ("terms", "const", "_key")

    def __init__(self, terms: dict[Atom, int], const: int = 0) -> None:
        self.terms, self.const = terms, const
        self._key: tuple[frozenset[tuple[Atom, int]], int] | None = None

    @property
    def key(self) -> tuple[frozenset[tuple[Atom, int]], int]:
        """Equal for equal forms, whatever the order of their terms."""
        if self._key is None:
            self._key = (frozenset(self.terms.items()), self.const)
        return self._key

    @property
    def exact(self) -> bool:
        """True when no atom in it can wrap around."""
        for atom in self.terms:
            if not atom.exact:
                return False
        return True

    def plus(self, other: Linear, scale: int = 1) -> Linear:
        """self + scale * other."""
        if not other.terms:
            return self.shifted(scale * other.const)
        terms = dict(self.terms)
        for atom, k in other.terms.items():
            total = terms.get(atom, 0) + k * scale
            if total:
                terms[atom] = total
            else:
                terms.pop(atom, None)
        return Linear(terms, self.const + scale * other.const)

    def times(self, scale: int) -> Linear:
        """scale * self."""
        if scale == 1:
            return self
        if scale == 0:
            return Linear({}, 0)
        return Linear({atom: k * scale for atom, k in self.terms.items()}, self.const * scale)

    def shifted(self, offset: int) -> Linear:
        """self + offset."""
        return self if offset == 0 else Linear(self.terms, self.const + offset)

    def divided(self, g: int) -> Linear:
        """The form with coefficients divided by g, which divides them, and the constant rounded down."""
        return self if g < 2 else Linear({a: k // g for a, k in self.terms.items()}, self.const // g)

    def replacing(self, atom: Atom, value: Linear) -> Linear:
        """self with atom replaced by value."""
        k = self.terms.get(atom, 0)
        if not k:
            return self
        rest = dict(self.terms)
        del rest[atom]
        return Linear(rest, self.const).plus(value, k)

    def divisor(self) -> int:
        """The greatest common divisor of the coefficients; 0 when there is no term."""
        return math.gcd(*self.terms.values())

    def __repr__(self) -> str:
        parts = [f"{k}*{a.kind}{a.index}" for a, k in self.terms.items()]
        return " + ".join([*parts, str(self.const)])


def structural_key(e: Any) -> Any:
    """A hashable that is equal for structurally equal expressions; Vars and Buffers count by identity."""
    cls = type(e)
    if cls is Var:
        return id(e)
    if cls is IntImm:
        return (e.value, e.type)
    if cls is FloatImm:
        return (repr(e.value), e.type)                   # 0.0 and -0.0 differ
    if cls is Binary:
        return (e.op, structural_key(e.a), structural_key(e.b))
    if cls is Load:
        return ("load", id(e.buffer), *[structural_key(i) for i in e.indices], structural_key(e.predicate))
    if isinstance(e, Node):
        values = COMPARED[cls]
        return id(e) if values is None else (cls, *map(structural_key, values(e)))
    if cls is tuple:
        return tuple([structural_key(x) for x in e])
    return (cls, e)


def linear(e: Expr) -> tuple[dict[Expr, int], int]:
    """The affine form of e: ({atom: coefficient}, constant), e == sum of coefficient * atom + constant.

    Atoms are Vars and subterms that are not affine; structurally equal ones count once. No bounds are used.
    """
    atoms: dict[Any, tuple[Expr, int]] = {}

    def add(x: Expr, scale: int) -> int:
        if isinstance(x, IntImm):
            return scale * x.value
        if isinstance(x, Binary):
            if x.op == "add":
                return add(x.a, scale) + add(x.b, scale)
            if x.op == "sub":
                return add(x.a, scale) + add(x.b, -scale)
            if x.op == "mul" and isinstance(x.b, IntImm):
                return add(x.a, scale * x.b.value)
            if x.op == "mul" and isinstance(x.a, IntImm):
                return add(x.b, scale * x.a.value)
        if isinstance(x, Cast) and x.type == "int64" and x.value.dtype == "int32":
            return add(x.value, scale)
        key = structural_key(x)
        first, k = atoms.get(key, (x, 0))
        atoms[key] = (first, k + scale)
        return 0

    const = add(e, 1)
    return {x: k for x, k in atoms.values() if k}, const


def substitute_atoms(multiply: Callable[[Linear, Linear], Linear], form: Linear,
                     table: Mapping[Atom, Linear]) -> Linear:
    """form with atoms replaced, as terms and as factors of products; form itself when none occurs."""
    out: Linear | None = None
    for atom, k in form.terms.items():
        value = table.get(atom)
        if value is None and atom.kind == "product" and any(f in table for f in atom.args):
            value = Linear({}, 1)
            for f in atom.args:
                value = multiply(value, table.get(f) or Linear({f: 1}))
        if value is not None:
            out = (form if out is None else out).plus(Linear({atom: 1}), -k).plus(value, k)
    return form if out is None else out
