"""Masked stores in optimised modules: a fault of LLVM's code generator for AVX-512, and the way around it."""
from __future__ import annotations

import re

import llvmlite.binding as llvm

_NARROW = re.compile(r"llvm\.masked\.store\.v\d+i(8|16|32)\.")
_DEFINE = re.compile(r"define .*\{$")
_LABEL = re.compile(r'("[^"]*"|[\w.$-]+):')
_STORE = re.compile(
    r"(\s*(?:\w+ )?call void @llvm\.masked\.store\.v(\d+)i(?:8|16|32)\.p0\(.*, <\d+ x i1> )(.+)(\)[^)]*)$")


def has_narrow_masked_stores(module: llvm.ModuleRef) -> bool:
    """True when some function may store lanes of at most 32 bits under a mask."""
    return any(_NARROW.match(f.name) for f in module.functions if f.is_declaration)


def with_opaque_masks(text: str) -> str:
    """The module, with masks of narrow stores of which LLVM cannot know that they leave one lane.

    LLVM's code generator for AVX-512 makes one store of a conversion to fewer bits and the masked store of its result.
    Where the mask is a constant of one lane it then stores this lane with the bits from before the conversion, over
    the elements behind it. Such masks are found in our own vectors and in those that LLVM makes of loops. This comes
    after LLVM's optimisations, so that they have seen which masks hold for all lanes.
    """
    out: list[str] = []
    start = 0                                            # where the entry block of the function begins in out
    stores = 0                                           # of this function
    entered = True                                       # past the label of its entry block
    for line in text.splitlines():
        if _DEFINE.match(line):
            entered, stores = False, 0
        elif not entered:
            entered, start = True, len(out) + bool(_LABEL.match(line))
        found = _STORE.match(line)
        if found is None:
            out.append(line)
            continue
        head, lanes, mask, tail = found[1], int(found[2]), found[3], found[4]
        if stores == 0:
            out.insert(start, '  %tw.ones = call i64 asm "", "=r,0"(i64 -1)')
        out += _hidden(mask, lanes, f"%tw.mask{stores}")
        out.append(f"{head}%tw.mask{stores}{tail}")
        stores += 1
    return "\n".join(out) + "\n"


def _hidden(mask: str, lanes: int, name: str) -> list[str]:
    """Instructions for `name`, the mask and'ed with ones that LLVM knows nothing of."""
    bits, lines = "%tw.ones", []
    if lanes != 64:
        bits = f"{name}.bits"
        lines.append(f"  {bits} = {'trunc' if lanes < 64 else 'sext'} i64 %tw.ones to i{lanes}")
    return [*lines, f"  {name}.ones = bitcast i{lanes} {bits} to <{lanes} x i1>",
            f"  {name} = and <{lanes} x i1> {mask}, {name}.ones"]
