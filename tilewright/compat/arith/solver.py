"""`tvm.arith.solve_linear_equations`: all integer solutions of linear equations, in variables that are free."""
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tilewright import arith
from tilewright.compat.arith.int_set import IntervalSet, neg_inf, pos_inf
from tilewright.compat.arith.pattern import deduce_bound, detect_linear_equation
from tilewright.support.errors import ArgumentError
from tilewright.tir import Expr, IntImm, Range, Var, binary, convert, walk
from tilewright.tir.expr import Binary

FALSE = IntImm(0, "bool")


@dataclass(frozen=True, eq=False)
class IntConstraints:
    """Variables, what some of them range over, and conditions that hold."""
    variables: list[Var]
    ranges: dict[Var, Range]
    relations: list[Expr]


@dataclass(frozen=True, eq=False)
class IntConstraintsTransform:
    """src and dst say the same of other variables; the tables give the ones in terms of the others."""
    src: IntConstraints
    dst: IntConstraints
    src_to_dst: dict[Var, Expr]
    dst_to_src: dict[Var, Expr]


def solve_linear_equations(equations: Any, variables: Sequence[Var] | None = None,
                           ranges: Mapping[Var, Range] | None = None) -> IntConstraintsTransform:
    """The integer solutions of equations for variables (default: all in them).

    Of dst the variables are free integers n0, n1, ..., but for its ranges and relations, which are the ranges of the
    variables in terms of them, and what else must hold; [False] where there is no solution. Equations that are not
    linear with constant coefficients stand among the relations.
    """
    given = [e for x in (equations if isinstance(equations, (list, tuple)) else [equations])
             for e in _equalities(convert(x))]
    unknown = list(variables) if variables is not None else list(dict.fromkeys(
        n for e in given for n in walk(e) if isinstance(n, Var)))
    src = IntConstraints(unknown, dict(ranges or {}), given)
    solved = _Solution(unknown)
    for e in given:
        solved.take(e)
    if any(isinstance(r, IntImm) and not r.value for r in solved.relations):
        return IntConstraintsTransform(src, IntConstraints([], {}, [FALSE]), {}, {})
    return solved.transform(src)


def _equalities(condition: Expr) -> Iterable[Expr]:
    if isinstance(condition, Binary) and condition.op == "and":
        return [*_equalities(condition.a), *_equalities(condition.b)]
    if not (isinstance(condition, Binary) and condition.op == "eq"):
        raise ArgumentError(f"solve_linear_equations: {condition} is no equation")
    return [condition]


class _Solution:
    """unknown == columns @ y, of which the first len(fixed) y are known: column operations of Hermite's normal form.

    rows is the inverse of columns.
    """

    def __init__(self, unknown: list[Var]) -> None:
        self.unknown, n = unknown, len(unknown)
        self.columns = [[int(i == j) for j in range(n)] for i in range(n)]
        self.rows = [[int(i == j) for j in range(n)] for i in range(n)]
        self.fixed: list[Expr] = []
        self.relations: list[Expr] = []
        self.analyzer = arith.Analyzer()

    def take(self, equation: Expr) -> None:
        """Use one more equation, a == b."""
        gap = binary("sub", equation.a, equation.b)  # type: ignore[attr-defined]
        *coefficients, base = detect_linear_equation(gap, self.unknown) or [gap]
        if len(coefficients) < len(self.unknown) or not all(isinstance(k, IntImm) for k in coefficients):
            self.relations.append(equation)
            return
        row = [k.value for k in coefficients if isinstance(k, IntImm)]
        row = [sum(row[i] * self.columns[i][j] for i in range(len(row))) for j in range(len(row))]
        p = len(self.fixed)
        self._gather(row, p)
        rest = binary("sub", 0, base)
        for k, y in zip(row[:p], self.fixed, strict=True):
            rest = binary("sub", rest, binary("mul", y, k))
        rest = self.analyzer.simplify(rest)
        if p == len(row) or not row[p]:
            self._require(binary("eq", rest, 0))
            return
        self._require(binary("eq", binary("floormod", rest, abs(row[p])), 0))
        self.fixed.append(self.analyzer.simplify(binary("floordiv", rest, row[p])))

    def _gather(self, row: list[int], p: int) -> None:
        """Column operations after which row has no entry behind p, and none below 0 at p."""
        for j in range(p + 1, len(row)):
            while row[j]:
                q = row[p] // row[j]
                self._add(row, p, j, -q)
                self._swap(row, p, j)
        if p < len(row) and row[p] < 0:
            row[p] = -row[p]
            self.rows[p] = [-x for x in self.rows[p]]
            for line in self.columns:
                line[p] = -line[p]

    def _add(self, row: list[int], target: int, source: int, times: int) -> None:
        row[target] += times * row[source]
        for line in self.columns:
            line[target] += times * line[source]
        self.rows[source] = [a - times * b for a, b in zip(self.rows[source], self.rows[target], strict=True)]

    def _swap(self, row: list[int], i: int, j: int) -> None:
        row[i], row[j] = row[j], row[i]
        self.rows[i], self.rows[j] = self.rows[j], self.rows[i]
        for line in self.columns:
            line[i], line[j] = line[j], line[i]

    def _require(self, condition: Expr) -> None:
        simple = self.analyzer.simplify(condition)
        if not (isinstance(simple, IntImm) and simple.value):
            self.relations.append(simple)

    def transform(self, src: IntConstraints) -> IntConstraintsTransform:
        """The solutions."""
        p, n = len(self.fixed), len(self.unknown)
        free = [Var(f"n{i}", self.unknown[0].dtype) for i in range(n - p)]
        to_dst = {x: self._sum(line, [*self.fixed, *free]) for x, line in zip(self.unknown, self.columns, strict=True)}
        to_src = {v: self._sum(line, self.unknown) for v, line in zip(free, self.rows[p:], strict=True)}
        bounds: dict[Var, IntervalSet] = {}
        for x, r in src.ranges.items():
            self._bound(to_dst.get(x, x), r, free, bounds)
        ranges = {v: self._range(s) for v, s in bounds.items() if s.min_value is not neg_inf()
                  and s.max_value is not pos_inf()}
        return IntConstraintsTransform(src, IntConstraints(free, ranges, self.relations), to_dst, to_src)

    def _sum(self, coefficients: Sequence[int], terms: Sequence[Expr]) -> Expr:
        total: Expr = IntImm(0, self.unknown[0].dtype)
        for k, term in zip(coefficients, terms, strict=True):
            total = binary("add", total, binary("mul", term, k))
        return self.analyzer.simplify(total)

    def _bound(self, value: Expr, r: Range, free: Sequence[Var], bounds: dict[Var, IntervalSet]) -> None:
        """Note that value lies in r: as a bound of a free variable where it is the only one, and as relations."""
        mine = [v for v in free if any(n is v for n in walk(value))]
        for condition in (binary("ge", value, r.min), binary("lt", value, binary("add", r.min, r.extent))):
            found = deduce_bound(mine[0], condition, {}, {}) if len(mine) == 1 else None
            if found is None or found.is_nothing():
                self._require(condition)
                continue
            old = bounds.get(mine[0], IntervalSet(neg_inf(), pos_inf()))
            bounds[mine[0]] = old.intersection(found)
            if any(e is not neg_inf() and e is not pos_inf() and not isinstance(e, IntImm)
                   for e in (found.min_value, found.max_value)):
                self._require(condition)

    def _range(self, s: IntervalSet) -> Range:
        size = binary("add", binary("sub", s.max_value, s.min_value), 1)
        return Range(s.min_value, self.analyzer.simplify(size))
