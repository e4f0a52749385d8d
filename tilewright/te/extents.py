"""Numbers that stand for extents and bounds: NumPy integers, and floats that are whole."""
from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.tir.expr import ExprOps

_EXACT = 2.0 ** 53                      # below it a float that is whole is the quotient itself, not one rounded to it


def whole(x: Any) -> Any:
    """x as a Python int where it is a whole number: a NumPy integer, or N / bn where bn divides N; else x itself."""
    if isinstance(x, np.ndarray):
        return x if x.ndim else whole(x[()])
    if isinstance(x, (float, np.floating)):
        return int(x) if float(x).is_integer() and abs(x) < _EXACT else x
    return int(x) if hasattr(x, "__index__") and not isinstance(x, (bool, ExprOps)) else x


def rounding(*bounds: Any) -> str:
    """The hint for a float that is not whole; "" where none of the bounds is a float."""
    if any(isinstance(whole(b), (float, np.floating)) for b in bounds):
        return "`//` divides integers and rounds down: (n + 31) // 32 rounds up; a float must be whole"
    return ""
