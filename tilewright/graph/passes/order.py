"""The order of kernels in functions that update parameters: new values are written over old ones that all have read."""
from __future__ import annotations

import heapq
from collections.abc import Sequence

from tilewright.graph.ir.callees import Kernel
from tilewright.graph.ir.values import Call, Function, Value
from tilewright.graph.passes.fuse import make_kernel
from tilewright.graph.passes.own_results import copied, memory_of


def order_updates(function: Function) -> Function:
    """function in an order in which each call that makes the new value of a parameter may write it there: behind all
    that read the old value, and reading no other element of that itself than the one it writes.

    Where there is no such order, new values are made elsewhere and copied when all have read the old ones.
    """
    while function.updates:
        calls, late = _ordered(function)
        if not late:
            return function.replace(calls=tuple(calls))
        copies = {p: _copy(function.updates[p]) for p in late}
        function = function.replace(
            calls=(*function.calls, *copies.values()),
            updates={p: copies[p].results[0] if p in copies else v for p, v in function.updates.items()})
    return function


def _copy(v: Value) -> Call:
    kernel, inputs = make_kernel([copied(v)])
    made = Call(kernel, tuple(inputs))
    made.results = (Value(v.type, v.name, made, source=v.source),)
    return made


def _ordered(function: Function) -> tuple[list[Call], list[Value]]:
    """(the calls in an order that can run, the parameters whose new values none of these orders writes in place).

    An order that is given stays where it can be.
    """
    calls = function.calls
    place = {v: k for k, c in enumerate(calls) for v in c.results}
    writer = {p: place[memory_of(v)] for p, v in function.updates.items()}
    after: list[set[int]] = [set() for _ in calls]            # after[k]: calls that must run later than k
    late = [p for p, k in writer.items() if not _may_write_over(calls[k], p)]
    for k, c in enumerate(calls):
        for v in c.inputs:
            if v in place:
                after[place[v]].add(k)
            written = writer.get(memory_of(v), k)
            if written != k:
                after[k].add(written)
    order = _topological(after)
    ran = set(order)
    return [calls[k] for k in order], [p for p, k in writer.items() if p in late or k not in ran]


def _topological(after: Sequence[set[int]]) -> list[int]:
    """The numbers of what can run, the least that is ready first; what is in a cycle, or behind one, is left out."""
    waiting = [0] * len(after)
    for later in after:
        for k in later:
            waiting[k] += 1
    ready = [k for k, n in enumerate(waiting) if n == 0]      # sorted, and so a heap
    order: list[int] = []
    while ready:
        k = heapq.heappop(ready)
        order.append(k)
        for j in after[k]:
            waiting[j] -= 1
            if waiting[j] == 0:
                heapq.heappush(ready, j)
    return order


def _may_write_over(c: Call, parameter: Value) -> bool:
    """True where a call reads nothing of a parameter, or each element only where it writes that one."""
    read = [k for k, v in enumerate(c.inputs) if memory_of(v) is parameter]
    over = c.callee.over if isinstance(c.callee, Kernel) else ()
    return not read or len(read) == 1 and read[0] in over
