"""Fusion: which values are computed by one kernel."""
from __future__ import annotations

import functools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from tilewright.graph.operator import INJECTIVE
from tilewright.graph.value import TensorType, Value

MOST_VALUES = 32                 # of one kernel: longer expressions gain nothing and take long to compile


@dataclass(frozen=True, eq=False)
class Group:
    """Values computed by one kernel, in order; only the last one, `output`, is seen from outside."""
    values: tuple[Value, ...]

    @property
    def output(self) -> Value:
        return self.values[-1]

    @functools.cached_property
    def inputs(self) -> tuple[Value, ...]:
        """Values read from memory, each once; those of which only the shape is used are left out."""
        inside = set(self.values)
        found: dict[Value, None] = {}
        for v in self.values:
            for k, x in enumerate(v.inputs):
                if x not in inside and k not in v.op.shape_only:
                    found[x] = None
        return tuple(found)


def fuse(order: Sequence[Value], keep: Collection[Value], types: Mapping[Value, TensorType],
         enabled: bool = True) -> list[Group]:
    """Groups in execution order. Values in `keep` (outputs, updates) are always the output of their group.

    An injective value joins the kernel of its only reader when that is injective or a plain reduction. An injective
    reader of the same shape joins the kernel of the contraction or reduction it reads (an epilogue); a group has
    one contraction or reduction at most, and at most MOST_VALUES values. With enabled=False every value is a group of
    its own.
    """
    position = {v: k for k, v in enumerate(order)}
    readers: dict[Value, dict[Value, None]] = {v: {} for v in order}
    for v in order:
        for k, x in enumerate(v.inputs):
            if k not in v.op.shape_only:
                readers[x][v] = None
    group: dict[Value, list[Value]] = {}
    for v in reversed(order):                       # a value meets its readers' group, already formed
        if v.op is None:
            continue
        group[v] = [v]
        if not enabled or v in keep or len(readers[v]) != 1:
            continue
        reader, = readers[v]
        if len(group[reader]) < MOST_VALUES and _joins(v, reader, group[reader], types):
            group[v] = group[reader]
            group[v].append(v)
    distinct = {id(g): sorted(g, key=position.__getitem__) for g in group.values()}
    return [Group(tuple(g)) for g in sorted(distinct.values(), key=lambda g: position[g[-1]])]


def _joins(v: Value, reader: Value, group: Sequence[Value], types: Mapping[Value, TensorType]) -> bool:
    if v.op.pattern == INJECTIVE:
        return reader.op.pattern == INJECTIVE or reader.op.fuses_inputs
    if not v.op.takes_epilogue or any(x.op.pattern != INJECTIVE for x in group):
        return False
    return all(types[x].shape == types[v].shape for x in _dependents(v, group))


def _dependents(v: Value, group: Sequence[Value]) -> set[Value]:
    """The values of the group (readers first, as it was formed) that depend on v, which is not in it yet."""
    below = {v}
    for x in reversed(group):
        if any(i in below for i in x.inputs):
            below.add(x)
    return below - {v}
