"""What calls of a compiled function give: its parameters, and the sizes that follow from the shapes of arguments.

A program that loads an exported model needs no more of a plan than this.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tilewright.graph.ir.types import TensorType, extents
from tilewright.runtime.dtypes import extent_limit
from tilewright.runtime.errors import ModelValueError
from tilewright.te.conditions import Condition
from tilewright.tir import Var


@dataclass(frozen=True)
class Binding:
    """A size variable is the extent `axis` of parameter `parameter`."""
    variable: Var
    parameter: int
    axis: int


@dataclass(frozen=True)
class Interface:
    """What a call gives: params, the numbers of those that are written into, where the sizes come from.

    conditions: what has to hold of the sizes.
    """
    name: str
    params: tuple[tuple[str, TensorType], ...]
    written: tuple[int, ...]
    sizes: tuple[Binding, ...]
    conditions: tuple[Condition, ...] = field(default=(), kw_only=True)


def bindings_of(types: Sequence[TensorType]) -> tuple[Binding, ...]:
    """The first extent of parameters of these types that each size variable is."""
    found: dict[Var, Binding] = {}
    for k, t in enumerate(types):
        for axis, d in enumerate(t.shape):
            if isinstance(d, Var):
                found.setdefault(d, Binding(d, k, axis))
    return tuple(found.values())


def bound(plan: Interface, shapes: Sequence[Sequence[int]]) -> dict[Var, int]:
    """The values of the size variables for shapes of the arguments. Raises ModelValueError where a shape does not fit.
    """
    for (name, t), shape in zip(plan.params, shapes):
        if len(shape) != t.ndim:
            raise ModelValueError(f"{plan.name}: {name} has the shape {tuple(shape)}, and {t} is needed")
    sizes = {b.variable: shapes[b.parameter][b.axis] for b in plan.sizes}
    for v, n in sizes.items():
        if n > extent_limit(v.dtype):
            raise ModelValueError(f"{plan.name}: the size {v.name} is {n}, and at most {extent_limit(v.dtype)}")
    for (name, t), shape in zip(plan.params, shapes):
        wanted = extents(t.shape, sizes)
        if tuple(shape) != wanted:
            raise ModelValueError(f"{plan.name}: {name} has the shape {tuple(shape)}, and {t} is needed"
                                  + (f", where {_shown(sizes)}" if sizes else ""))
    for c in plan.conditions:
        if c.fails(sizes):
            raise ModelValueError(f"{plan.name}: {c.text} where {_shown(sizes)}",
                                  "call it with other sizes, or compile a function that has these as constants")
    return sizes


def _shown(sizes: Mapping[Var, int]) -> str:
    return ", ".join(f"{v.name} = {n}" for v, n in sizes.items())
