"""Arrays that are made when they are asked for."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


class Deferred:
    """An array that is made anew each time that it is asked for: what lies in a file takes no memory before.

    make: gives an array of this shape and dtype, with the same elements each time. A pickle has the elements.
    """
    __slots__ = ("shape", "dtype", "make")

    def __init__(self, shape: tuple[int, ...], dtype: Any, make: Callable[[], np.ndarray]) -> None:
        self.shape, self.dtype, self.make = shape, np.dtype(dtype), make

    def __reduce__(self) -> tuple[Any, ...]:
        return np.asarray, (self.make(),)


def loaded(array: np.ndarray | Deferred) -> np.ndarray:
    """The elements."""
    return array.make() if isinstance(array, Deferred) else array
