"""Results of what the importer computes: of bounded size, in the type of an input."""
from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.frontend.onnx.limits import MOST_KNOWN
from tilewright.frontend.onnx.node import Node, Unknown
from tilewright.frontend.onnx.values import Held, bounded_sizes


def kept(n: Node, array: Any, k: int = 0) -> Held:
    """Elements of the type of input k."""
    held = n.held(k)
    if np.size(array) > MOST_KNOWN:
        raise Unknown(held, f"a tensor of {np.size(array)} elements")
    if isinstance(array, np.ndarray) and array.dtype == object:
        bounded_sizes(array.reshape(-1))
    return Held.known(array, held.dtype, held.kind)


def bounded(n: Node, extents: Any) -> tuple[int, ...]:
    """extents of a tensor that the importer makes; raises Unknown for one of too many elements."""
    total = 1
    for d in extents:
        total *= int(d)
    if total > MOST_KNOWN:
        raise Unknown(n.held(0), f"a tensor of {total} elements")
    return tuple(extents)


def integers(n: Node, k: int) -> np.ndarray:
    """Indices that no size is part of."""
    found = n.elements(k)
    if found.dtype == object:
        raise Unknown(n.held(k), f"input {k}")
    return found
