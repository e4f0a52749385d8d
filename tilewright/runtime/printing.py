"""The packed function `print`: what `T.print` and `call_packed("print", ...)` in a kernel do."""
from __future__ import annotations

import sys
from typing import Any

import numpy as np

from tilewright.runtime.packed import register_func
from tilewright.runtime.tensor import Tensor
from tilewright.support.errors import ArgumentError

PRINT = "print"


def print_values(*values: Any) -> None:
    """Write the values to Python's stdout as one line, and flush it.

    A first string with `%` directives is a format for the others. Otherwise they are separated by spaces: a float in
    the shortest form that reads back to the same value of its dtype, a vector or tensor in brackets. Raises
    ArgumentError where the format does not fit.
    """
    shown = [_plain(v) for v in values]
    if len(shown) > 1 and isinstance(shown[0], str) and "%" in shown[0]:
        try:
            text = shown[0] % tuple(shown[1:])
        except (TypeError, ValueError) as why:
            raise ArgumentError(f"print: the format {shown[0]!r} does not fit {len(shown) - 1} value(s): {why}",
                                "write one directive for each value, %% for the sign itself") from None
    else:
        text = " ".join(map(str, shown))
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def _plain(value: Any) -> Any:
    if isinstance(value, Tensor):
        value = value.numpy()
    elif isinstance(value, (list, tuple, range)):
        value = np.array(value)
    return value[()] if isinstance(value, np.ndarray) and value.ndim == 0 else value


register_func(PRINT, print_values, override=True)
