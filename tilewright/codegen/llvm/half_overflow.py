"""Integers beyond the range of float16: a fault of LLVM's optimiser, and the way around it."""
from __future__ import annotations

import re

_INTEGER = r" = [su]itofp [a-z ]*(?:<\d+ x )?i(?:32|64)>? "
_WIDENED = r" = fpext (?:<\d+ x )?half>? "
_NARROWED = r"(?m)^( *)(%\S+) = fptrunc ((?:<(\d+) x )?(?:float|double)>?) (%\S+) to ((?:<\d+ x )?half>?)$"
BOUND = 65520.0                  # the least number that rounds to infinity
INFINITY = 0x7FF0000000000000    # as LLVM writes it


def widens_integers_by_half(text: str) -> bool:
    """True when the module, not optimised yet, converts wide integers to floats, and floats to half and back."""
    return "half" in text and all(re.search(pattern, text) for pattern in (_INTEGER, _WIDENED, _NARROWED))


def with_infinite_halves(text: str) -> str:
    """The module, not optimised yet, with infinity in the place of what is too great for half before it is narrowed.

    LLVM's InstCombine (visitFPExt, version 22) takes `fpext (uitofp x to half) to float` for `uitofp x to float` where
    the digits of x are known to fit those of half. That holds for 2**31, which is infinity all the same.
    """
    return re.sub(_NARROWED, _bounded, text)


def _bounded(found: re.Match[str]) -> str:
    space, name, wide, lanes, x, half = found.groups()
    element = wide.split()[-1].rstrip(">")

    def number(value: str) -> str:
        return f"splat ({element} {value})" if lanes else value

    test = f"<{lanes} x i1>" if lanes else "i1"
    return "\n".join(space + line for line in (
        f"{name}.high = fcmp oge {wide} {x}, {number(str(BOUND))}",
        f"{name}.low = fcmp ole {wide} {x}, {number(str(-BOUND))}",
        f"{name}.above = select {test} {name}.high, {wide} {number(hex(INFINITY))}, {wide} {x}",
        f"{name}.both = select {test} {name}.low, {wide} {number(hex(INFINITY | 1 << 63))}, {wide} {name}.above",
        f"{name} = fptrunc {wide} {name}.both to {half}"))
