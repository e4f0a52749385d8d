"""What a packed Python function was stopped by: Ctrl-C, `sys.exit`, and whatever else is no Exception.

tvm-ffi carries an error as a kind and a message, so that KeyboardInterrupt would arrive as a RuntimeError, which
programs catch. What was raised is kept here while the native frames unwind, and raised again behind them.
"""
from __future__ import annotations

_IN_A_LOOP = "failed in a parallel loop"         # of the message where native code could not keep the error
_kept: list[BaseException] = []                  # at most one


def keep(stop: BaseException) -> None:
    """Remember stop, which is about to unwind native code."""
    _kept[:] = [stop]


def taken(error: BaseException) -> BaseException | None:
    """What `keep` was told, where error is what native code has made of it; it is forgotten then."""
    if _kept and (str(error) == str(_kept[0]) or _IN_A_LOOP in str(error)):
        return _kept.pop()
    return None
