"""The forms in which TVM's operators take their arguments: constants as numbers, layouts, paddings, a vector for
channels."""
from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from tilewright import tir, topi
from tilewright.support.errors import ArgumentError, described
from tilewright.te.tensor import Tensor
from tilewright.topi.shapes import check_extent, check_rank, check_tensors

SPATIAL = ("W", "HW", "DHW")


def plain(value: Any) -> Any:
    """A constant expression, or a number of NumPy, as the number that it is; anything else as it is."""
    if isinstance(value, np.generic):
        return value.item()
    return value.value if isinstance(value, (tir.IntImm, tir.FloatImm)) else value


def numbers(values: Any) -> Any:
    """Numbers in the place of constant expressions, in sequences too."""
    return type(values)(map(numbers, values)) if isinstance(values, (list, tuple)) else plain(values)


def taking_numbers(f: Callable[..., Any]) -> Callable[..., Any]:
    """f, which may be given constant expressions wherever it takes numbers, and refuses what is no tensor where it
    takes one."""
    parameters = inspect.signature(f).parameters
    tensors = {name for name, p in parameters.items() if p.annotation == "Tensor" and p.kind is not p.VAR_POSITIONAL}

    @functools.wraps(f)
    def function(*args: Any, **kwargs: Any) -> Any:
        for name, value in (*zip(parameters, args), *kwargs.items()):
            if name in tensors:
                check_tensors(f.__name__, **{name: value})
        return f(*map(numbers, args), **{name: numbers(v) for name, v in kwargs.items()})
    return function


def items(op: str, name: str, value: Any) -> list[Any]:
    """The items of a list, a tuple or the like. Raises ArgumentError for what has none."""
    if not isinstance(value, Iterable) or isinstance(value, (str, bytes)):
        raise ArgumentError(f"{op}: {name} is {described(value)}, a list or a tuple is needed")
    return list(value)


def each(value: Any, count: int) -> list[Any]:
    """A number for each of `count` axes, of one for all of them or of as many."""
    given = numbers(value)
    values = list(given) if isinstance(given, (list, tuple)) else [given]
    return values * count if len(values) == 1 else values


def same_count(op: str, wanted: int, **given: Any) -> None:
    """Each of these sequences has so many elements."""
    for name, values in given.items():
        if len(values) != wanted:
            raise ArgumentError(f"{op}: {name} has {len(values)} element(s), {wanted} are needed")


def channels_last(op: str, data: Tensor, layout: str) -> bool:
    """True for channels in the last axis (NHWC), False for the second (NCHW). Raises ArgumentError for others."""
    letters = SPATIAL[len(data.shape) - 3] if 3 <= len(data.shape) <= 5 else "..."
    if layout not in (f"NC{letters}", f"N{letters}C"):
        raise ArgumentError(f"{op}: the layout of data with {len(data.shape)} dimension(s) is {layout!r}",
                            f"NC{letters} and N{letters}C are taken, layouts without blocks")
    return layout[-1] == "C"


def along(op: str, name: str, vector: Tensor, data: Tensor, axis: int) -> None:
    """vector has an element for each index along an axis of data."""
    check_rank(op, name, vector, 1)
    check_extent(op, f"the extent of {name}", vector.shape[0], data.shape[axis])


def converted(x: Tensor, dtype: Any) -> Tensor:
    """x in a type, where one is given."""
    return x if dtype in (None, "", x.dtype) else topi.astype(x, dtype)


def ends(padding: Any, kernel: Sequence[Any], dilation: Any) -> list[tuple[int, int]]:
    """The padding as pairs (before, after), one for each spatial axis."""
    count, given = len(kernel), numbers(padding)
    if isinstance(given, str):
        if given == "VALID":
            return [(0, 0)] * count
        if given != "SAME":
            raise ArgumentError(f"padding is {described(padding)}", '"VALID", "SAME" or numbers')
        spans = [(plain(k) - 1) * d for k, d in zip(kernel, each(dilation, count))]
        return [((s + 1) // 2, s - (s + 1) // 2) for s in spans]
    values = list(given) if isinstance(given, (list, tuple)) else [given] * count
    if len(values) == 1:
        values *= count
    if len(values) == count:
        values *= 2
    if len(values) != 2 * count:
        raise ArgumentError(f"padding is {described(padding)}, {count} or {2 * count} numbers are needed")
    return list(zip(values[:count], values[count:]))
