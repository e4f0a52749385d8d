"""The process-wide table of packed functions, which compiled code and other tvm-ffi libraries share."""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from tilewright.runtime import ffi, interrupts
from tilewright.runtime.function import Function, wrap_result
from tilewright.support.errors import ArgumentError, described, flag


def register_func(name: str | Callable[..., Any], f: Callable[..., Any] | None = None,
                  override: bool = False) -> Any:
    """Enter f in the table under `name`; without f, a decorator. Tensor arguments reach it as `Tensor`: those that a
    kernel passes are views of its memory and end with the call, `t.numpy()` is a copy to keep.

    What f raises leaves a kernel that calls f as it is, with its type.
    Raises ArgumentError when the name is taken and `override` is not set.
    """
    if callable(name):
        return register_func(name.__name__, name, override)

    def enter(function: Callable[..., Any]) -> Callable[..., Any]:
        if not isinstance(name, str) or not name:
            raise ArgumentError(f"register_func: {name!r} is not a name")
        if not callable(function):
            raise ArgumentError(f"register_func({name!r}): {function!r} is not a function")

        @functools.wraps(function)
        def call(*args: Any) -> Any:
            try:
                return _native_result(function(*map(wrap_result, args)))
            except BaseException as stop:
                interrupts.keep(name, stop)
                raise

        if not override and ffi.get_global(name) is not None:
            raise ArgumentError(f"there is a global function {name!r} already", "pass override=True to replace it")
        ffi.register_global(name, getattr(function, "_native", call), override)
        return function

    return enter if f is None else enter(f)


def _native_result(x: Any) -> Any:
    """What a function gave as compiled code takes it. Raises OverflowError for an int of more than 64 bits."""
    if isinstance(x, np.generic) and x.dtype.kind in "biuf":
        x = x.item()
    if isinstance(x, int) and not -1 << 63 <= x < 1 << 63:
        raise OverflowError(f"the int {x} has more than 64 bits" if x.bit_length() > 64 else
                            f"{x} does not fit int64")
    return x


def get_global_func(name: str, allow_missing: bool = False) -> Function | None:
    """The function of that name in the table; without one, None if `allow_missing`, else ArgumentError."""
    if not isinstance(name, str):
        raise ArgumentError(f"get_global_func: {described(name)} is not a name")
    found = ffi.get_global(name)
    if found is not None:
        return Function(found, name)
    if flag(allow_missing, "get_global_func: allow_missing"):
        return None
    raise ArgumentError(f"there is no global function {name!r}", f"register one: register_func({name!r}, f)")


def remove_global_func(name: str) -> None:
    """Take a name out of the table; nothing happens when it is not there."""
    if ffi.get_global(name) is not None:
        ffi.remove_global(name)
