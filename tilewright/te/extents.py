"""Extents and bounds: NumPy integers and floats that are whole, simple forms, and the indices of elements in order."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewright.arith.analyzer import Analyzer
from tilewright.tir.arithmetic import binary
from tilewright.tir.conversion import convert
from tilewright.tir.expr import Expr, ExprOps, IntImm, Var
from tilewright.tir.node import walk

_EXACT = 2.0 ** 53                      # below it a float that is whole is the quotient itself, not one rounded to it


def whole(x: Any) -> Any:
    """x as a Python int where it is a whole number: a NumPy integer, or N / bn where bn divides N; else x itself."""
    if isinstance(x, np.ndarray):
        return x if x.ndim else whole(x[()])
    if isinstance(x, (float, np.floating)):
        return int(x) if float(x).is_integer() and abs(x) < _EXACT else x
    return int(x) if hasattr(x, "__index__") and not isinstance(x, (bool, type, ExprOps)) else x


def rounding(*bounds: Any) -> str:
    """The hint for a float that is not whole; "" where none of the bounds is a float."""
    if any(isinstance(whole(b), (float, np.floating)) for b in bounds):
        return "`//` divides integers and rounds down: (n + 31) // 32 rounds up; a float must be whole"
    return ""


def simplified(extent: Any) -> Expr:
    """An extent in the simplest form; its variables are natural numbers."""
    e = convert(extent)
    if isinstance(e, (IntImm, Var)):
        return e
    analyzer = Analyzer()
    for v in dict.fromkeys(n for n in walk(e) if isinstance(n, Var)):
        analyzer.assume_nonneg(v)
    return analyzer.simplify(e)


def digits(flat: Any, shape: Sequence[Any]) -> tuple[Expr, ...]:
    """The indices of element number `flat`, counted row by row."""
    out: list[Expr] = []
    for extent in reversed(shape[1:]):
        out.append(binary("floormod", flat, extent))
        flat = binary("floordiv", flat, extent)
    return (convert(flat), *reversed(out)) if shape else ()
