"""Shifted products in optimised modules: a fault of LLVM's code generator for x86, and the way around it."""
from __future__ import annotations

import itertools
import re

from tilewright.codegen.llvm.printed import in_functions, with_first_line

_WIDE = r" = mul [a-z ]*(?:<\d+ x )?i64>? "
_NARROWED = r" = trunc [a-z ]*(?:<\d+ x )?i(?:32|64)>? .* to (?:<\d+ x )?i(?:8|16)\b"
_PRODUCT = r"(?m)^\s*(%\S+) = mul [a-z ]*<\d+ x i64> "
_SHIFT = r"(?m)^(\s*%\S+ = lshr [a-z ]*<(\d+) x i64> (%\S+), )splat \(i64 (\d+)\)"


def has_narrowed_products(text: str) -> bool:
    """True when the module, not optimised yet, multiplies in 64 bits and narrows something to 16 bits or 8."""
    return " = trunc " in text and all(re.search(pattern, text) for pattern in (_WIDE, _NARROWED))


def with_opaque_shifts(text: str) -> str:
    """The optimised module, with shifts of vectors of 64-bit products by amounts that LLVM does not know.

    LLVM 22 multiplies 16-bit lanes and keeps the upper halves (`pmulhw`) for (a * b >> s) narrowed to 16 bits, where a
    and b were widened to 64 bits, and shifts these halves by s - 16: zeros come in where the product has its sign
    (llvm/llvm-project issue 218844). Such shifts are found in our own vectors and in those that LLVM makes of loops.
    """
    return in_functions(text, _opaque)


def _opaque(function: re.Match[str]) -> str:
    products, amounts = {*re.findall(_PRODUCT, function[0])}, itertools.count()

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

    text = re.sub(_SHIFT, hidden, function[0])
    none = '  %tw.none = call i64 asm "", "=r,0"(i64 0)\n' if next(amounts) else ""
    return with_first_line(text, none)
