"""Mixed-radix numbers of loop variables: how the loops around a block reach its iter vars."""
from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence

from tilewright.arith.analyzer import Analyzer
from tilewright.arith.linear import linear
from tilewright.schedule.analysis.domains import Domains, Interval
from tilewright.tir.arithmetic import binary, conjuncts
from tilewright.tir.expr import Binary, Expr, IntImm, Var
from tilewright.tir.node import Node, rewrite_top_down, substitute, walk
from tilewright.tir.stmt import BlockRealize

NO_LETS: Mapping[Var, Expr] = {}


def bindings(realize: BlockRealize, lets: Mapping[Var, Expr] = NO_LETS) -> dict[Var, Expr]:
    """The value of each iter var of the block, in loop variables: `lets` are the values of what lets around bind."""
    return {iv.var: substitute(value, lets) for iv, value in realize.bound}


def reach(realize: BlockRealize, inner: Domains,
          lets: Mapping[Var, Expr] = NO_LETS) -> tuple[dict[Var, Expr], dict[Var, Interval]]:
    """(the value of each iter var, the ranges of the variables in them) while the loops `inner` run.

    Loops that the predicate cuts to `number < n`, a mixed-radix number of them, appear as one variable of extent n when
    - they are known to reach n;
    - the values, and the bounds of other loops, use them in no other way.
    """
    values, ranges = bindings(realize, lets), dict(inner)
    for part in conjuncts(substitute(realize.predicate, lets)):
        if not isinstance(part, Binary) or part.op != "lt" or any(n in ranges for n in walk(part.b)):
            continue
        coefficients, offset = linear(part.a)
        if len(coefficients) < 2 or not all(isinstance(v, Var) and v in ranges for v in coefficients):
            continue
        whole = Var("digits", part.a.dtype)
        changed = {v: _with_number(e, coefficients, whole) for v, e in values.items()}
        others = {v: (_with_number(low, coefficients, whole), _with_number(extent, coefficients, whole))
                  for v, (low, extent) in ranges.items() if v not in coefficients}
        left = [*changed.values(), *(e for d in others.values() for e in d)]
        size = _smaller(binary("sub", part.b, offset), [ranges[v][1] for v in coefficients])  # type: ignore[index]
        unused = not any(n in coefficients for e in left for n in walk(e))
        if size is not None and is_number(coefficients, ranges) and unused:
            values = changed
            ranges = others | {whole: (IntImm(0, whole.dtype), size)}
    return values, ranges


def _smaller(limit: Expr, extents: Sequence[Expr]) -> Expr | None:
    """The smaller one of limit and the product of extents; None where it is not known which that is."""
    product = functools.reduce(lambda a, b: binary("mul", a, b), extents)
    if isinstance(limit, IntImm) and isinstance(product, IntImm):
        return limit if limit.value <= product.value else product
    return limit if Analyzer().prove(binary("le", limit, product)) else None


def is_number(coefficients: Mapping[Expr, int], ranges: Domains) -> bool:
    """True when the sum of coefficient * variable takes each value 0, 1, 2, ... once: a mixed-radix number."""
    size: int | None = 1
    for v, k in sorted(coefficients.items(), key=lambda item: item[1]):
        least, extent = ranges[v]  # type: ignore[index]
        if not (isinstance(least, IntImm) and least.value == 0):
            return False
        if isinstance(extent, IntImm) and extent.value == 1:
            continue
        if k != size:
            return False
        size = k * extent.value if isinstance(extent, IntImm) else None
    return True


def coefficients_of(exprs: Sequence[Expr], ranges: Domains) -> list[dict[Expr, int]] | None:
    """For each expression the coefficients of the ranging variables in it, when it is one mixed-radix number of
    them plus something that they do not change, and no variable occurs in two expressions; else None."""
    out: list[dict[Expr, int]] = []
    used: set[Expr] = set()
    for e in exprs:
        terms, _ = linear(e)
        coefficients = {v: k for v, k in terms.items() if v in ranges}
        if any(n in ranges for v in terms if v not in coefficients for n in walk(v)):
            return None
        if used & set(coefficients) or not is_number(coefficients, ranges):
            return None
        used |= set(coefficients)
        out.append(coefficients)
    return out


def _with_number(e: Expr, coefficients: Mapping[Expr, int], whole: Var) -> Expr:
    """e with whole for the sum of coefficient * variable over coefficients, also inside quotients."""
    def collect(node: Node) -> Node | None:
        if not isinstance(node, Binary) or node.op not in ("add", "sub", "mul"):
            return None
        terms, offset = linear(node)
        scales = {terms.get(v, 0) // k for v, k in coefficients.items()}
        if len(scales) != 1 or any(terms.get(v, 0) % k for v, k in coefficients.items()) or scales == {0}:
            return None
        total: Expr = binary("mul", whole, scales.pop())
        for atom, k in terms.items():
            if atom not in coefficients:
                total = binary("add", total, binary("mul", rewrite_top_down(atom, collect), k))
        return binary("add", total, offset)
    return rewrite_top_down(e, collect)
