"""Threads of a block that meet at barriers, in the interpreter: each thread is a generator that yields at a barrier."""
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tilewright.tir.expr import Call
from tilewright.tir.node import Node, walk
from tilewright.tir.stmt import THREAD_BINDING, For, is_thread_axis

Sets = tuple[set[int], set[int]]  # the elements of one memory that were (written, read)
Report = Callable[[tuple[set[int], set[int], set[int], set[int]]], None]         # of (written, read, those before)


def is_thread_loop(s: For) -> bool:
    """True for a loop over the threads of one block, real or virtual."""
    return s.kind == THREAD_BINDING and is_thread_axis(s.thread_tag)


def has_barrier(s: Node) -> bool:
    """True where a barrier of the threads of a block stands below s."""
    return any(isinstance(n, Call) and n.op == "sync" for n in walk(s))


def lockstep(threads: Sequence[Iterator[None]], touched: Sequence[Sequence[Sets]], outer: Sequence[Sets | None],
             races: Sequence[Report], diverged: Callable[[int, int], None]) -> Iterator[None]:
    """Run the threads from barrier to barrier and yield at each, so that groups of threads nest.

    touched[t][m] are the sets that thread t fills for memory m. Between two barriers no element may be
    written by one thread and touched by another: races[m] reports that. What the threads touched is added
    to outer[m], for the loops around them. diverged(waiting, all) reports a barrier that only some of the
    threads reach.
    """
    while True:
        waiting = sum(next(thread, threads) is not threads for thread in threads)
        for m, report in enumerate(races):
            _compare([sets[m] for sets in touched], outer[m], report)
        if not waiting:
            return
        if waiting != len(threads):
            diverged(waiting, len(threads))
        yield


def _compare(threads: Sequence[Sets], outer: Sets | None, report: Report) -> None:
    written: set[int] = set()
    read: set[int] = set()
    for w, r in threads:
        if not (written.isdisjoint(w) and written.isdisjoint(r) and read.isdisjoint(w)):
            report((w, r, written, read))
        written |= w
        read |= r
        w.clear()
        r.clear()
    if outer is not None:
        outer[0].update(written)
        outer[1].update(read)


def group_source(name: str, domain: str, memories: int, tracked: Sequence[tuple[str, str] | None],
                 constants: dict[str, Any]) -> list[str]:
    """Lines that make `group_NAME`, the lockstep run of the generators NAME(i, sets) for i in domain."""
    outer = "".join(f"{'None' if names is None else f'({names[0]}, {names[1]})'}, " for names in tracked)
    return [
        f"sets_{name} = [[(set(), set()) for _ in range({memories})] for _ in {domain}]",
        f"group_{name} = lockstep([{name}(i, s) for i, s in zip({domain}, sets_{name})], sets_{name}, "
        f"({outer}), {constants['races']}, {constants['diverged']})",
    ]
