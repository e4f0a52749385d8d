"""Masked stores in optimised modules: a fault of LLVM's code generator for AVX-512, and the way around it."""
from __future__ import annotations

import itertools
import re

import llvmlite.binding as llvm

from tilewright.codegen.llvm.printed import in_functions, with_first_line

_NARROW = r"llvm\.masked\.store\.v\d+i(8|16|32)\."
_STORE = (r"(?m)^(\s*(?:\w+ )?call void @llvm\.masked\.store\.v(\d+)i(?:8|16|32)\.p0\(.*, <\d+ x i1> )(.+)"
          r"(\)[^)\n]*)$")


def has_narrow_masked_stores(module: llvm.ModuleRef) -> bool:
    """True when some function may store lanes of at most 32 bits under a mask."""
    return any(re.match(_NARROW, f.name) for f in module.functions)


def with_opaque_masks(text: str) -> str:
    """The module, with masks of narrow stores of which LLVM cannot know that they leave one lane.

    LLVM's code generator for AVX-512 makes one store of a conversion to fewer bits and the masked store of its result.
    Where the mask is a constant of one lane it then stores this lane with the bits from before the conversion, over
    the elements behind it. Such masks are found in our own vectors and in those that LLVM makes of loops. This comes
    after LLVM's optimisations, so that they have seen which masks hold for all lanes.
    """
    return in_functions(text, _opaque)


def _opaque(function: re.Match[str]) -> str:
    masks = itertools.count()
    text, stores = re.subn(_STORE, lambda found: _hidden(found, f"%tw.mask{next(masks)}"), function[0])
    ones = '  %tw.ones = call i64 asm "", "=r,0"(i64 -1)\n' if stores else ""
    return with_first_line(text, ones)


def _hidden(store: re.Match[str], name: str) -> str:
    """The store under `name`, its mask and'ed with ones that LLVM knows nothing of."""
    head, lanes, mask, tail = store.groups()
    bits, lines = "%tw.ones", []
    if lanes != "64":
        bits = f"{name}.bits"
        lines.append(f"  {bits} = {'trunc' if int(lanes) < 64 else 'sext'} i64 %tw.ones to i{lanes}")
    lines += [f"  {name}.ones = bitcast i{lanes} {bits} to <{lanes} x i1>",
              f"  {name} = and <{lanes} x i1> {mask}, {name}.ones", f"{head}{name}{tail}"]
    return "\n".join(lines)
