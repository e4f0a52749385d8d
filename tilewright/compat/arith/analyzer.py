"""`tvm.arith.Analyzer`: our analyzer under TVM's method names, and the answers that it gives."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from tilewright import arith
from tilewright.arith.modular import ANY, ModularSet, modular_set, residues_said
from tilewright.compat.arith.int_set import IntervalSet, interval_of
from tilewright.support.errors import ArgumentError, described
from tilewright.tir import Expr, IntImm, Range, Var, binary, convert, rewrite
from tilewright.tir import dtype as dt
from tilewright.tir.expr import Binary


@dataclass(init=False, unsafe_hash=True, repr=False)
class ConstIntBound:
    """Inclusive bounds of an integer expression; NEG_INF and POS_INF where nothing is known."""
    min_value: int
    max_value: int
    POS_INF = (1 << 63) - 1
    NEG_INF = -POS_INF

    def __init__(self, min_value: int, max_value: int) -> None:
        self.min_value, self.max_value = int(min_value), int(max_value)

    def __repr__(self) -> str:
        return f"ConstIntBound({self.min_value}, {self.max_value})"


class ProofStrength(IntEnum):
    """How hard `can_prove` tries in TVM; here it always tries all it can."""
    DEFAULT, SYMBOLIC_BOUND = 0, 1


class ConstraintScope:
    """`with analyzer.constraint_scope(c):` c holds inside."""

    def __init__(self, enter: Callable[[], Callable[[], None]]) -> None:
        self._enter = enter
        self._leave: Callable[[], None] | None = None

    def __enter__(self) -> None:
        self._leave = self._enter()

    def __exit__(self, *_: object) -> None:
        if self._leave is None:
            raise ArgumentError("constraint_scope: this scope was left before it was entered")
        self._leave()


class Analyzer:
    """Simplifies and proves integer expressions under the ranges and conditions that it was told."""

    def __init__(self) -> None:
        self._told: list[tuple[Any, Callable[[Any], Any]]] = []      # (variable or None, what to tell our analyzer)
        self._residues: dict[Var, ModularSet] = {}
        self._analyzer = arith.Analyzer()

    # ------------------------------------------------------------------------------------------ facts

    def bind(self, var: Var, expr: Any, allow_override: bool = False) -> None:
        """var is expr, or lies in the range expr. allow_override: what was said of var before is dropped."""
        if not isinstance(var, Var):
            raise ArgumentError(f"Analyzer.bind: {described(var)} is no variable", 'te.var("n") makes one')
        if allow_override:
            self._drop(var)
        if isinstance(expr, Range):
            self._tell(var, lambda a: a.bind(var, expr.min, expr.extent))
            return
        value = convert(expr)
        self._residues[var] = self.modular_set(value)
        self._tell(var, lambda a: a.bind(var, value, IntImm(1)))

    def update(self, var: Any, info: ConstIntBound | ModularSet, override: bool = False) -> None:
        """What is known of var; override: in the place of what was known. Raises ArgumentError for other info."""
        if isinstance(info, ModularSet):
            before = None if override else self._residues.get(var)
            self._residues[var] = info if before is None else info.meet(before)
            if info.coeff > 1:
                self._tell(var, lambda a: a.assume(binary("eq", binary("floormod", var, info.coeff), info.base)))
        elif isinstance(info, ConstIntBound):
            if override:
                self._drop(var)
            if info.min_value > ConstIntBound.NEG_INF:
                self._tell(var, lambda a: a.assume(binary("ge", var, info.min_value)))
            if info.max_value < ConstIntBound.POS_INF:
                self._tell(var, lambda a: a.assume(binary("le", var, info.max_value)))
        else:
            raise ArgumentError(f"Analyzer.update: {described(info)} is no knowledge of a variable",
                                "tvm.arith.ConstIntBound(low, high) or tvm.arith.ModularSet(coeff, base)")

    def constraint_scope(self, constraint: Any) -> ConstraintScope:
        """`with analyzer.constraint_scope(c):` c holds inside."""
        condition = convert(constraint)

        def enter() -> Callable[[], None]:
            told, residues = list(self._told), dict(self._residues)
            for var, found in residues_said(condition):
                self._residues[var] = found.meet(self._residues.get(var, ANY))
            self._tell(None, lambda a: a.assume(condition))

            def leave() -> None:
                self._told, self._residues = told, residues
                self._retell()
            return leave
        return ConstraintScope(enter)

    def _tell(self, var: Any, fact: Callable[[Any], Any]) -> None:
        self._told.append((var, fact))
        fact(self._analyzer)

    def _drop(self, var: Any) -> None:
        self._told = [t for t in self._told if t[0] is not var]
        self._residues.pop(var, None)
        self._retell()

    def _retell(self) -> None:
        self._analyzer = arith.Analyzer()
        for _, fact in self._told:
            fact(self._analyzer)

    # ------------------------------------------------------------------------------------------ questions

    def simplify(self, expr: Any, steps: int = 2) -> Expr:
        """The canonical form of expr."""
        out = self._analyzer.simplify(convert(expr))
        if not self._residues:
            return out
        settled = rewrite(out, self._remainder)
        return out if settled is out else self._analyzer.simplify(settled)

    def rewrite_simplify(self, expr: Any) -> Expr:
        """The canonical form of expr: there is one simplifier."""
        return self.simplify(expr)

    def canonical_simplify(self, expr: Any) -> Expr:
        """The canonical form of expr: there is one simplifier."""
        return self.simplify(expr)

    def _remainder(self, e: Any) -> Expr | None:
        """e % c where the residue of e is known, and e // c where what is left over is."""
        if not (isinstance(e, Binary) and e.op == "floormod" and isinstance(e.b, IntImm)):
            return None
        found = modular_set(e, self._analyzer, self._residues)
        return None if found.coeff else IntImm(found.base, e.dtype)

    def can_prove(self, expr: Any, strength: int = 0) -> bool:
        """True when the condition is shown to hold."""
        condition = convert(expr)
        if self._analyzer.prove(condition):
            return True
        if not self._residues:
            return False
        out = self.simplify(condition)
        return bool(out.value) if isinstance(out, IntImm) else self._apart(out)

    def _apart(self, e: Expr) -> bool:
        """True for a != b where their residues differ."""
        if not (isinstance(e, Binary) and e.op == "ne" and dt.is_integer(e.a.dtype)):
            return False
        gap = modular_set(binary("sub", e.a, e.b), self._analyzer, self._residues)
        return gap.base != 0

    def can_prove_equal(self, lhs: Any, rhs: Any) -> bool:
        """True when both are shown to have one value."""
        a, b = convert(lhs), convert(rhs)
        return self._analyzer.equal(a, b) or self._analyzer.equal(self.simplify(a), self.simplify(b))

    def can_prove_greater_equal(self, expr: Any, lower_bound: int) -> bool:
        """True when expr is shown to be at least lower_bound."""
        return self.can_prove(binary("ge", expr, lower_bound))

    def can_prove_less(self, expr: Any, upper_bound: int) -> bool:
        """True when expr is shown to be below upper_bound."""
        return self.can_prove(binary("lt", expr, upper_bound))

    def const_int_bound(self, expr: Any) -> ConstIntBound:
        """The least and the greatest value of expr; for a type narrower than 64 bits at least those of the type."""
        e = convert(expr)
        low, high = self._analyzer.bounds(e)
        if dt.bits_of(e.dtype) < 64 and not dt.is_float(e.dtype):
            least, most = dt.integer_range(e.dtype)
            low, high = least if low is None else low, most if high is None else high
        return ConstIntBound(ConstIntBound.NEG_INF if low is None else max(low, ConstIntBound.NEG_INF),
                             ConstIntBound.POS_INF if high is None else min(high, ConstIntBound.POS_INF))

    def const_int_bound_is_bound(self, var: Var) -> bool:
        """True when something was said of the values of var."""
        return any(t[0] is var for t in self._told)

    def modular_set(self, expr: Any) -> ModularSet:
        """The residues of expr: its value is coeff * k + base for some integer k."""
        return modular_set(convert(expr), self._analyzer, self._residues)

    def int_set(self, expr: Any, dom_map: Mapping[Any, Any] | None = None) -> IntervalSet:
        """An interval that holds every value of expr while the variables of dom_map range over their sets."""
        return interval_of(convert(expr), dom_map or {}, self._analyzer)
