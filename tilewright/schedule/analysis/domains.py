"""What loop variables and the iteration variables of blocks run over."""
from __future__ import annotations

from collections.abc import Iterable, Mapping

from tilewright.arith.analyzer import Analyzer
from tilewright.tir.arithmetic import binary
from tilewright.tir.expr import Expr, Var
from tilewright.tir.iter_var import IterVar
from tilewright.tir.stmt import For

Interval = tuple[Expr, Expr]                  # (min, extent)
Domains = Mapping[Var, Interval]


def domains_of(loops: Iterable[For]) -> dict[Var, Interval]:
    """The range of each loop's variable."""
    return {loop.loop_var: (loop.min, loop.extent) for loop in loops}


def domain_of(iv: IterVar) -> Interval:
    """The domain of an iteration variable of a block, which has one."""
    return iv.domain.min, iv.domain.extent


def axis_domains(axes: Iterable[IterVar]) -> dict[Var, Interval]:
    """The domain of each axis's variable."""
    return {iv.var: domain_of(iv) for iv in axes}


def bind_axes(analyzer: Analyzer, axes: Iterable[IterVar]) -> None:
    """Tell the analyzer what the axes run over."""
    for iv in axes:
        analyzer.bind(iv.var, *domain_of(iv))


def domain_bounds(iv: IterVar, value: Expr) -> tuple[Expr, Expr]:
    """The two conditions that keep value in the domain of iv."""
    low, extent = domain_of(iv)
    return binary("ge", value, low), binary("lt", value, binary("add", low, extent))
