"""How large one expression may be: passes visit it as a tree, recursively."""
from __future__ import annotations

import sys
from collections.abc import Iterable

from tilewright.support.errors import TensorExpressionError
from tilewright.tir.node import Node, children

MAX_DEPTH = 1000                # operations inside one another
MAX_NODES = 50_000              # of the tree: a shared part counts wherever it is used; about 4 s of a build
# Python calls that MAX_DEPTH operations take in the deepest pass, and the program around them
sys.setrecursionlimit(max(sys.getrecursionlimit(), 10_000))


def expression_size(roots: Iterable[Node]) -> tuple[int, int]:
    """The largest (depth, nodes) of the trees; takes time in the number of different nodes only."""
    sizes: dict[int, tuple[int, int]] = {}                   # id of a node -> (depth, nodes)
    deepest, largest = 0, 0
    for root in roots:
        stack = [(root, False)]
        while stack:
            node, ready = stack.pop()
            if id(node) in sizes:
                continue
            below = list(children(node))
            if not ready:
                stack.append((node, True))
                stack.extend((c, False) for c in below)
                continue
            parts = [sizes[id(c)] for c in below]
            sizes[id(node)] = 1 + max((d for d, _ in parts), default=0), 1 + sum(n for _, n in parts)
        depth, nodes = sizes[id(root)]
        deepest, largest = max(deepest, depth), max(largest, nodes)
    return deepest, largest


def check_size(roots: Iterable[Node], what: str) -> None:
    """Raise TensorExpressionError for an expression that is deeper than MAX_DEPTH or larger than MAX_NODES."""
    depth, nodes = expression_size(roots)
    if depth > MAX_DEPTH or nodes > MAX_NODES:
        raise TensorExpressionError(f"{what}: the expression has {nodes} operations, {depth} inside one another; it "
                                    f"may have {MAX_NODES}, {MAX_DEPTH} inside one another",
                                    "keep a part of it in a tensor of its own: te.compute(...)")
