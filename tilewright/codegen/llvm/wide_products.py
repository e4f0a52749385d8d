"""Products in optimised modules that are shifted or divided: a fault of LLVM's code generator for x86, and the way
around it."""
from __future__ import annotations

import itertools
import re

from tilewright.codegen.llvm.printed import in_functions, with_first_line

_WIDE = re.compile(r" = mul (?:i64 |[a-z ]*<\d+ x i64> )")
_WIDE_INDEX = re.compile(r" = mul [a-z ]+i64 ")
_WIDENED = re.compile(r" = [sz]ext [a-z ]*i(?:8|16) \S+ to i64")
_PRODUCT = r"(?m)^\s*(%\S+) = mul [a-z ]*<\d+ x i64> "
_SHIFT = r"(?m)^(\s*%\S+ = (?:lshr|sdiv|srem) [a-z ]*<(\d+) x i64> )(%[^\s,]+)(, splat \(i64 \d+\))"


def has_wide_products(text: str) -> bool:
    """True when the module, not optimised yet, multiplies in 64 bits what may have the sign of a shorter number.

    That are vectors, values, which may wrap, and indices that are made of such numbers.
    """
    return _WIDE.search(text) is not None or all(p.search(text) is not None for p in (_WIDE_INDEX, _WIDENED))


def with_opaque_products(text: str) -> str:
    """The optimised module, with vectors of 64-bit products that are not known to be products where they are shifted.

    LLVM 22 multiplies 16-bit lanes and keeps the upper halves (`pmulhw`) for a * b >> s, where a and b were widened to
    64 bits and the result needs few, and shifts these halves by s - 16: zeros come in where the product has its sign
    (llvm/llvm-project issue 218844). Divisions by 2 are such shifts, too: they begin with the sign, a * b >> 63. These
    are found in our own vectors and in those that LLVM makes of loops.
    """
    return in_functions(text, _opaque)


def _opaque(function: re.Match[str]) -> str:
    products, amounts = {*re.findall(_PRODUCT, function[0])}, itertools.count()

    def hidden(shift: re.Match[str]) -> str:
        head, lanes, value, amount = shift.groups()
        if value not in products:
            return shift[0]
        name = f"%tw.product{next(amounts)}"
        return "\n".join([
            f"  {name}.first = insertelement <{lanes} x i64> poison, i64 %tw.none, i64 0",
            f"  {name}.none = shufflevector <{lanes} x i64> {name}.first, <{lanes} x i64> poison, "
            f"<{lanes} x i32> zeroinitializer",
            f"  {name} = add <{lanes} x i64> {value}, {name}.none", f"{head}{name}{amount}"])

    text = re.sub(_SHIFT, hidden, function[0])
    none = '  %tw.none = call i64 asm "", "=r,0"(i64 0)\n' if next(amounts) else ""
    return with_first_line(text, none)
