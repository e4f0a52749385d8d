"""The interval that an index covers while the loops below some point run."""
from __future__ import annotations

from collections.abc import Mapping, Sequence

from tilewright.arith.analyzer import Analyzer
from tilewright.arith.linear import linear
from tilewright.arith.regions import interval_of, union
from tilewright.tir.arithmetic import binary
from tilewright.tir.buffer import Load
from tilewright.tir.expr import Expr, IntImm, Ramp, Var
from tilewright.tir.node import walk
from tilewright.tir.symbols import free_vars, uses_any

Hull = tuple[Expr, Expr]                               # (min, extent)


def hull_of(index: Expr, domains: Mapping[Var, Hull], analyzer: Analyzer) -> Hull | None:
    """(min, extent) of an interval that holds index while the variables of domains run; None when unknown.

    The extent is constant where that can be had. An index read from memory has no hull.
    """
    if isinstance(index, Ramp):
        first = hull_of(index.base, domains, analyzer)
        if first is None or not isinstance(index.stride, IntImm) or index.stride.value < 0:
            return None
        return first[0], binary("add", first[1], (index.lanes - 1) * index.stride.value)
    affine = _affine_hull(index, domains)
    if affine is not None:
        return affine
    if any(isinstance(x, Load) for x in walk(index)):
        return None
    return interval_of(index, _relevant(index, domains), analyzer)


def _relevant(index: Expr, domains: Mapping[Var, Hull]) -> dict[Var, Hull]:
    """The domains of the inner loops that index depends on, through loop bounds as well."""
    out: dict[Var, Hull] = {}
    todo = list(free_vars(index))
    while todo:
        var = todo.pop()
        if var in domains and var not in out:
            out[var] = domains[var]
            for bound in domains[var]:
                todo.extend(free_vars(bound))
    return out


def _affine_hull(index: Expr, domains: Mapping[Var, Hull]) -> Hull | None:
    """The hull of an affine index over inner loops of constant extent; None when it is anything else."""
    terms, const = linear(index)
    low: Expr | None = None
    extent = 1
    for atom, k in terms.items():
        domain = domains.get(atom) if isinstance(atom, Var) else None
        if domain is None:
            if uses_any(atom, domains) or any(isinstance(x, Load) for x in walk(atom)):
                return None
            term = binary("mul", atom, k)
            low = term if low is None else binary("add", low, term)
            continue
        first, count = domain
        if not isinstance(first, IntImm) or not isinstance(count, IntImm):
            return None
        extent += abs(k) * (count.value - 1)
        const += k * (first.value if k > 0 else first.value + count.value - 1)
    base = IntImm(const, index.dtype) if low is None else binary("add", low, const)
    return base, IntImm(extent, index.dtype)


def join_hulls(hulls: Sequence[Hull], analyzer: Analyzer) -> Hull:
    """The smallest known interval that holds all hulls (at least one)."""
    first, *rest = hulls
    if not rest:
        return first
    forms = [linear(low) for low, _ in hulls]
    keys = [{id(a) if isinstance(a, Var) else None: k for a, k in terms.items()} for terms, _ in forms]
    constant = all(isinstance(e, IntImm) for _, e in hulls)
    if constant and None not in keys[0] and all(k == keys[0] for k in keys):
        start = min(c for _, c in forms)
        end = max(c + e.value for (_, c), (_, e) in zip(forms, hulls, strict=True))  # type: ignore[attr-defined]
        low = binary("add", binary("sub", first[0], forms[0][1]), start)
        return low, IntImm(end - start, first[0].dtype)
    return union([[h] for h in hulls], analyzer)[0]


def is_dense(index: Expr, domains: Mapping[Var, Hull]) -> bool:
    """True when index takes every value between its least and its greatest while the variables of domains run."""
    reach = 1
    terms = [(abs(k), domains[a][1]) for a, k in linear(index)[0].items() if isinstance(a, Var) and a in domains]
    if any(uses_any(a, domains) for a in linear(index)[0] if not isinstance(a, Var)):
        return False
    for k, extent in sorted(terms, key=lambda t: t[0]):
        if k > reach:
            return False
        reach += k * (extent.value - 1) if isinstance(extent, IntImm) else 0
    return True
