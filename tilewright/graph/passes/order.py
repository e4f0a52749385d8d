"""The order of a step's kernels: data first, and every reader of a parameter before the kernel that updates it."""
from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence

from tilewright.graph.passes.fuse import Group
from tilewright.graph.value import Value


def order_groups(groups: Sequence[Group], writes: Mapping[Value, Value]) -> tuple[list[Group], set[Value]]:
    """(groups in an order that can run, updates that cannot be done in place).

    writes: update value -> the parameter whose place it takes. A cycle of "must read before" and "needs the result
    of" is broken by naming the updates in it; the caller gives those a value of their own and copies at the end.
    """
    producer = {g.output: k for k, g in enumerate(groups)}
    after: list[set[int]] = [set() for _ in groups]           # after[k]: groups that must run later than k
    for k, g in enumerate(groups):
        for x in g.inputs:
            if x in producer:
                after[producer[x]].add(k)
    updater = {parameter: producer[value] for value, parameter in writes.items()}
    for k, g in enumerate(groups):
        for x in g.inputs:
            if x in updater and updater[x] != k:
                after[k].add(updater[x])
    waiting = [0] * len(groups)
    for later in after:
        for k in later:
            waiting[k] += 1
    ready = [k for k, n in enumerate(waiting) if n == 0]
    order: list[int] = []
    while ready:
        k = heapq.heappop(ready)
        order.append(k)
        for j in after[k]:
            waiting[j] -= 1
            if waiting[j] == 0:
                heapq.heappush(ready, j)
    stuck = {v for v in writes if waiting[producer[v]] > 0}
    return [groups[k] for k in order], stuck
