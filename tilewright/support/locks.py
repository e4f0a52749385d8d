"""Locks that survive fork()."""
from __future__ import annotations

import logging  # noqa: F401  it has hooks of fork too, which must be there before a fork waits for imports
import os
import threading
import weakref
from contextlib import AbstractContextManager
from typing import Any


class ForkSafeLock:
    """A lock, as a context manager. In a child made by fork() it is free, whoever else held it in the parent.

    The thread that holds it may take it once more: a signal handler or a finalizer, which runs wherever the thread is,
    would wait forever. What it guards must be in order after an interrupted critical section, and inside of one.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        _alive.add(self)

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: Any) -> None:
        self._lock.release()

    def renew(self) -> None:
        """Become free, unless this thread holds it."""
        if not self._lock._is_owned():  # type: ignore[attr-defined]
            self._lock = threading.RLock()


_alive: weakref.WeakSet[ForkSafeLock] = weakref.WeakSet()


def _renew_all() -> None:
    for lock in list(_alive):
        lock.renew()


def hold_over_fork(*locks: AbstractContextManager[Any]) -> None:
    """Let fork() wait for the locks, and free them on both sides: a child finds in order what they guard.

    Without this a child inherits a lock that another thread holds, and nobody in it ever frees it. Whoever holds one
    of the locks may wait only for those after it.
    """
    taken: list[AbstractContextManager[Any]] = []      # none, where a fork under way was waiting as this was called

    def take() -> None:
        for lock in locks:
            lock.__enter__()
            taken.append(lock)

    def free() -> None:
        while taken:
            taken.pop().__exit__(None, None, None)

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=take, after_in_parent=free, after_in_child=free)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_all)
