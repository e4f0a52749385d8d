"""Which serial loops LLVM's vectoriser may take.

LLVM vectorises what is innermost after it has unrolled the short loops. So a loop around short ones becomes innermost,
and a nest whose inner loop is contiguous becomes gathers and scatters along an outer one. And with the copies of a body
come copies of its conditions, of which the vectoriser (LLVM 22) makes masks, in a time that grows faster than any power
of their number: 36 took 0.4 s, 49 took half a minute. Both is decided here instead, on the loops of the program.
"""
from __future__ import annotations

import math

from tilewright.codegen.queries import loads_or_calls
from tilewright.lowering.affine import split_linear
from tilewright.lowering.code_size import DIVISIONS
from tilewright.tir.buffer import Load
from tilewright.tir.expr import Binary, Broadcast, Call, IntImm, Select
from tilewright.tir.node import Node, statements, walk
from tilewright.tir.stmt import For, IfThenElse, Store, While

MAX_CHOICES = 16            # conditions in a loop that is vectorised, with those of the iterations inside of it
MAX_WINDOW = 32             # iterations of the loops inside of one that is vectorised, together
MAX_STRIDE = 4              # elements from one iteration of such a loop to the next


def vectorizable(s: For) -> bool:
    """True for an innermost loop of few conditions, and for one along which a short window slides."""
    inside = list(statements(s.body))
    loops = [n for n in inside if isinstance(n, For)]
    window = math.prod(map(_extent, loops))
    if loops and window > MAX_WINDOW or any(isinstance(n, While) for n in inside):
        return False
    nodes = list(walk(s.body))
    if any(map(_divides, nodes)) or window * sum(map(_chooses, nodes)) > MAX_CHOICES:
        return False
    return not loops or _slides(s)


def _extent(s: For) -> float:
    return s.extent.value if isinstance(s.extent, IntImm) else math.inf


def _chooses(n: Node) -> bool:
    """True for what becomes a branch, or may."""
    if isinstance(n, Binary):
        return n.op in ("and", "or") and loads_or_calls(n.b)
    return isinstance(n, (IfThenElse, Select)) or isinstance(n, Call) and n.op == "if_then_else"


def _divides(n: Node) -> bool:
    """True for a division of integers by what is no constant.

    LLVM 22 makes of it a vector loop with a gather whose address is undefined, where the division is the same in all
    lanes and stands under a condition that fails in the first; and there is no vector division to gain by it.
    """
    return isinstance(n, Binary) and n.op in DIVISIONS and not isinstance(n.b, (IntImm, Broadcast))


def _slides(s: For) -> bool:
    """True when every access moves by few elements, forwards, from one iteration of s to the next."""
    accesses = [n for n in walk(s.body) if isinstance(n, (Load, Store))]
    parts = [split_linear(n.indices[-1], s.loop_var) for n in accesses]
    return all(part is not None and 0 <= part[0] <= MAX_STRIDE for part in parts)
