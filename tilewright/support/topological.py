"""Orders of what depends on each other."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

T = TypeVar("T")


def producers_first(roots: Iterable[T], inputs: Callable[[T], Sequence[T]]) -> list[T]:
    """All that the roots need, each once and behind its inputs. No recursion: graphs are deep."""
    done: dict[T, None] = {}
    stack = [(x, False) for x in reversed(list(roots))]
    while stack:
        x, ready = stack.pop()
        if x in done:
            continue
        if ready:
            done[x] = None
        else:
            stack.append((x, True))
            stack.extend((below, False) for below in reversed(inputs(x)) if below not in done)
    return list(done)
