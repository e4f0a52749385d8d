"""Static memory plan: where in one arena each value of a step lives."""
from __future__ import annotations

import bisect
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")
ALIGNMENT = 64


def aligned(nbytes: int) -> int:
    """nbytes rounded up to the arena's alignment (64 bytes: a cache line and the widest vector)."""
    return -(-nbytes // ALIGNMENT) * ALIGNMENT


@dataclass(frozen=True)
class Lifetime(Generic[T]):
    """value exists from step `first` (which writes it) to step `last` (the last one that reads it), inclusive."""
    value: T
    nbytes: int
    first: int
    last: int
    reuses: T | None = None        # a value that dies at `first` and whose place is taken over (in place)


@dataclass(frozen=True)
class MemoryPlan(Generic[T]):
    """offset: bytes from the arena's start, a multiple of 64, for every value.

    planned: bytes of the arena; unshared: bytes with one place per value; lower_bound: the most bytes that are
    alive at one step, which no plan can go below.
    """
    offset: Mapping[T, int]
    planned: int
    unshared: int
    lower_bound: int


def plan_memory(lifetimes: Sequence[Lifetime[T]]) -> MemoryPlan[T]:
    """Offsets such that values alive at one step never overlap, unless one is written in place of the other.

    Greedy by size, each value at the lowest offset that is free during its whole life (Pisarchyk and Lee, Efficient
    Memory Management for Deep Neural Net Inference, 2020). Values written in place form one chain with one offset.
    """
    head: dict[T, T] = {}
    for life in lifetimes:
        head[life.value] = head.get(life.reuses, life.reuses) if life.reuses is not None else life.value
    chains: dict[T, list[Lifetime[T]]] = {}
    for life in lifetimes:
        chains.setdefault(head[life.value], []).append(life)
    spans = [(max(aligned(x.nbytes) for x in c), min(x.first for x in c), max(x.last for x in c), key)
             for key, c in chains.items()]
    placed: list[tuple[int, int, int, int]] = []              # offset, size, first, last; sorted
    start: dict[T, int] = {}
    for size, first, last, key in sorted(spans, key=lambda s: (-s[0], s[1])):
        offset = 0
        for other, length, a, b in placed:
            if a <= last and first <= b:
                if offset + size <= other:
                    break
                offset = max(offset, other + length)
        bisect.insort(placed, (offset, size, first, last))
        start[key] = offset
    return MemoryPlan(
        offset={x.value: start[head[x.value]] for x in lifetimes},
        planned=max((o + size for o, size, _, _ in placed), default=0),
        unshared=sum(aligned(x.nbytes) for x in lifetimes),
        lower_bound=_most_alive([(size, first, last) for size, first, last, _ in spans]))


def _most_alive(spans: Sequence[tuple[int, int, int]]) -> int:
    """The largest sum of sizes of (size, first, last) over the steps at which they live."""
    changes: dict[int, int] = {}
    for size, first, last in spans:
        changes[first] = changes.get(first, 0) + size
        changes[last + 1] = changes.get(last + 1, 0) - size
    alive = itertools.accumulate(changes[t] for t in sorted(changes))
    return max(alive, default=0)
