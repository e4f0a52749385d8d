"""Shifted products in optimised modules: a fault of LLVM's code generator for x86, and the way around it."""
from __future__ import annotations

import itertools
import re

_WIDE = re.compile(r" = mul [a-z ]*(?:<\d+ x )?i64>? ")
_NARROWED = re.compile(r" = trunc [a-z ]*(?:<\d+ x )?i(?:32|64)>? .* to (?:<\d+ x )?i(?:8|16)\b")
_FUNCTION = re.compile(r"^define .*?^}", re.MULTILINE | re.DOTALL)
_START = re.compile(r'define .*\n(?:(?:"[^"]*"|[\w.$-]+):.*\n)?')
_PRODUCT = re.compile(r"^\s*(%\S+) = mul [a-z ]*<\d+ x i64> ", re.MULTILINE)
_SHIFT = re.compile(r"^(\s*%\S+ = lshr [a-z ]*<(\d+) x i64> (%\S+), )splat \(i64 (\d+)\)", re.MULTILINE)


def has_narrowed_products(text: str) -> bool:
    """True when the module, not optimised yet, multiplies in 64 bits and narrows something to 16 bits or 8."""
    return _WIDE.search(text) is not None and _NARROWED.search(text) is not None


def with_opaque_shifts(text: str) -> str:
    """The optimised module, with shifts of vectors of 64-bit products by amounts that LLVM does not know.

    LLVM 22 multiplies 16-bit lanes and keeps the upper halves (`pmulhw`) for (a * b >> s) narrowed to 16 bits, where a
    and b were widened to 64 bits, and shifts these halves by s - 16: zeros come in where the product has its sign
    (llvm/llvm-project issue 218844). Such shifts are found in our own vectors and in those that LLVM makes of loops.
    """
    return _FUNCTION.sub(_opaque, text)


def _opaque(function: re.Match[str]) -> str:
    products, amounts = {*_PRODUCT.findall(function[0])}, itertools.count()

    def hidden(shift: re.Match[str]) -> str:
        head, lanes, value, amount = shift.groups()
        if value not in products:
            return shift[0]
        name = f"%tw.by{next(amounts)}"
        return "\n".join([
            f"  {name}.one = add i64 %tw.none, {amount}",
            f"  {name}.first = insertelement <{lanes} x i64> poison, i64 {name}.one, i64 0",
            f"  {name} = shufflevector <{lanes} x i64> {name}.first, <{lanes} x i64> poison, "
            f"<{lanes} x i32> zeroinitializer", f"{head}{name}"])

    text = _SHIFT.sub(hidden, function[0])
    none = '  %tw.none = call i64 asm "", "=r,0"(i64 0)\n' if next(amounts) else ""
    return _START.sub(lambda start: start[0] + none, text, count=1)
