"""How PyTorch's fake tensors lie in memory."""
from __future__ import annotations

import math
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


def memory_read(node: Any, known: Mapping[str, int]) -> int | None:
    """How many elements the memory of an argument has, where as_strided reads more of it than the argument."""
    fake = node.meta["val"]
    users = [u for u in node.users if str(u.target) in ("aten.as_strided.default", "aten.as_strided_copy.default")]
    if not any(len(u.args) > 3 and u.args[3] is not None for u in users):
        return None
    count = number(fake.untyped_storage().nbytes() // fake.element_size(), known)
    whole = layout(fake, known) is not None and _equal(math.prod(numbers(fake.shape, known)), count)
    return count if isinstance(count, int) and not whole else None


def _equal(a: Any, b: Any) -> bool:
    return same(canonical(a), canonical(b))


def numbers(given: Sequence[Any], known: Mapping[str, int]) -> tuple[Number, ...]:
    """`number` of several."""
    return tuple(number(n, known) for n in given)
