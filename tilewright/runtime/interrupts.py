"""What a packed Python function was stopped by: an error of its own, Ctrl-C, `sys.exit`.

tvm-ffi carries an error as a kind and a message, and knows few kinds: KeyboardInterrupt would arrive as a RuntimeError,
which programs catch. What was raised is kept here while the native frames unwind, and raised again behind them.
"""
from __future__ import annotations

_IN_A_LOOP = "failed in a parallel loop"         # of the message where native code could not keep the error
_kept: list[BaseException] = []                  # at most one


def keep(stop: BaseException) -> None:
    """Remember stop, which is about to unwind native code."""
    _kept[:] = [stop]


def taken(error: BaseException) -> BaseException | None:
    """What `keep` was told, where error is what native code has made of it; it is forgotten then."""
    said = (str(error), *map(str, error.args))       # the text of a KeyError is in quotes once more
    if _kept and (str(_kept[0]) in said or _IN_A_LOOP in said[0]):
        return _kept.pop()
    return None
