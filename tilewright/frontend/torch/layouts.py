"""How PyTorch's fake tensors lie in memory."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tilewright.frontend.torch.sizes import Number, number
from tilewright.graph.ir.types import canonical, same


def layout(fake: Any, known: Mapping[str, int]) -> tuple[int, ...] | None:
    """The axes of a tensor in the order in which its elements lie side by side; None where they do not."""
    shape, strides = numbers(fake.shape, known), numbers(fake.stride(), known)
    rest = list(range(len(shape)))
    order: list[int] = []
    step: Any = 1
    while rest:
        axis = next((d for d in reversed(rest) if _equal(shape[d], 1) or _equal(strides[d], step)), None)
        if axis is None:
            return None
        step = step * shape[axis]
        order.insert(0, axis)
        rest.remove(axis)
    return tuple(order)


def _equal(a: Any, b: Any) -> bool:
    return same(canonical(a), canonical(b))


def numbers(given: Sequence[Any], known: Mapping[str, int]) -> tuple[Number, ...]:
    """`number` of several."""
    return tuple(number(n, known) for n in given)
