"""`tvm.arith.Analyzer`: our analyzer under TVM's method names."""
from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tilewright import arith
from tilewright.tir import Expr, IntImm, Range, Var, binary, convert


@dataclass(frozen=True)
class ConstIntBound:
    """Inclusive bounds of an integer expression; None where nothing is known (TVM has its largest numbers there)."""
    min_value: int | None
    max_value: int | None


class Analyzer:
    """Simplifies and proves integer expressions under the ranges and conditions that it was told."""

    def __init__(self) -> None:
        self._analyzer = arith.Analyzer()

    def bind(self, var: Var, expr: Any) -> None:
        """var is expr, or lies in the range expr."""
        domain = expr if isinstance(expr, Range) else Range(convert(expr), IntImm(1))
        self._analyzer.bind(var, domain.min, domain.extent)

    def simplify(self, expr: Any, steps: int = 2) -> Expr:
        """The canonical form of expr."""
        return self._analyzer.simplify(convert(expr))

    rewrite_simplify = canonical_simplify = simplify

    def can_prove(self, expr: Any, strength: int = 0) -> bool:
        """True when the condition is shown to hold."""
        return self._analyzer.prove(convert(expr))

    def can_prove_equal(self, lhs: Any, rhs: Any) -> bool:
        """True when both are shown to have one value."""
        return self._analyzer.equal(convert(lhs), convert(rhs))

    def can_prove_greater_equal(self, expr: Any, lower_bound: int) -> bool:
        """True when expr is shown to be at least lower_bound."""
        return self._analyzer.prove(binary("ge", expr, lower_bound))

    def can_prove_less(self, expr: Any, upper_bound: int) -> bool:
        """True when expr is shown to be below upper_bound."""
        return self._analyzer.prove(binary("lt", expr, upper_bound))

    def const_int_bound(self, expr: Any) -> ConstIntBound:
        """The least and the greatest value of expr."""
        return ConstIntBound(*self._analyzer.bounds(convert(expr)))

    @contextmanager
    def _constraint(self, condition: Any) -> Iterator[None]:
        with self._analyzer.constraint(convert(condition)):
            yield

    def constraint_scope(self, constraint: Any) -> Any:
        """`with analyzer.constraint_scope(c):` c holds inside."""
        return self._constraint(constraint)
