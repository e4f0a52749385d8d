"""Threads of parallel loops. There is one pool per process; see native/pool.ll."""
from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from typing import Any

from tilewright.runtime.loader import support_address
from tilewright.support import config
from tilewright.support.errors import ArgumentError

MAX_THREADS = 1024


def set_num_threads(count: int) -> None:
    """Let parallel loops that start from now on use `count` threads; 0: as many as this process may use.

    1 runs them serially. Raises ArgumentError for a negative or huge count.
    """
    if not isinstance(count, int) or isinstance(count, bool) or not 0 <= count <= MAX_THREADS:
        raise ArgumentError(f"set_num_threads({count!r})", f"expected an int from 0 to {MAX_THREADS}")
    _native("tw_set_num_threads")(count)


def get_num_threads() -> int:
    """Threads that a parallel loop uses, the calling one included."""
    config.get("NUM_THREADS")                    # a value that is no integer is an error, not a default
    return int(_native("tw_num_threads")())


@functools.cache
def _native(name: str) -> Callable[..., Any]:
    if name == "tw_num_threads":
        return ctypes.CFUNCTYPE(ctypes.c_int32)(support_address(name))
    return ctypes.CFUNCTYPE(None, ctypes.c_int32)(support_address(name))
