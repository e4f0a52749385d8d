"""What a packed Python function was stopped by: an error of its own, Ctrl-C, `sys.exit`.

tvm-ffi carries an error as a kind and a message, and knows few kinds: KeyboardInterrupt would arrive as a RuntimeError,
which programs catch. What was raised is kept here while the native frames unwind, and raised again behind them.
"""
from __future__ import annotations

import threading

_kept: dict[int, tuple[str, BaseException]] = {}     # by the thread that raised it, the last one of each


def keep(name: str, stop: BaseException) -> None:
    """Remember stop, by which the function of that name is about to unwind native code of this thread."""
    _kept[threading.get_ident()] = name, stop


def taken(error: BaseException) -> BaseException | None:
    """What `keep` was told, where error is what native code has made of it; it is forgotten then.

    That is the last of this thread or, of a function that failed in a parallel loop, of one that ran a part of it.
    """
    if not _kept:
        return None
    said = (str(error), *map(str, error.args))       # the text of a KeyError is in quotes once more
    name, stop = _kept.pop(threading.get_ident(), ("", None))
    if stop is not None and (str(stop) in said or _failed(name) in said[0]):
        return stop
    other = next((t for t, (name, _) in list(_kept.items()) if _failed(name) in said[0]), None)
    return None if other is None else _kept.pop(other, ("", None))[1]


def _failed(name: str) -> str:
    """Of the message where native code could not keep the error."""
    return f"the packed function {name!r} failed in a parallel loop"
