"""Moves of masks to general registers in object files: a fault of LLVM's code generator for AVX-512."""
from __future__ import annotations

import re

# a three-byte VEX prefix that extends the vector register to 16 and beyond, which only EVEX can, ahead of vmovmskps,
# vmovmskpd or vpmovmskb of two registers
_BEYOND = re.compile(rb"\xc4[\x01\x21\x81\xa1][\x78-\x7f\xf8-\xff][\x50\xd7][\xc0-\xff]", re.DOTALL)


def has_wrong_mask_move(code: bytes) -> bool:
    """True where a move of a mask out of one of the vector registers 16 to 31 is written for one of the first 16.

    LLVM 22 makes one VEX instruction of `vpmovd2m` (or q2m, b2m) and `kmovd`, whatever the register is; VEX has 16 of
    them (https://github.com/llvm/llvm-project/issues/191304; the encoding: Intel's manual, volume 2, 2.3.5).
    """
    return _BEYOND.search(code) is not None
