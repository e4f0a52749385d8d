"""Arguments of compiled functions: compact tensors, over the memory that is given where that can be read as it is."""
from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tilewright import runtime
from tilewright.graph.plan.interface import Interface
from tilewright.runtime import Tensor, ffi
from tilewright.runtime.dtypes import item_bytes
from tilewright.runtime.errors import ModelTypeError, ModelValueError
from tilewright.runtime.tensor import as_numpy
from tilewright.support.errors import ArgumentError, described, nearest

Span = tuple[int, int]


def in_order(plan: Interface, given: Sequence[Any], named: Mapping[str, Any]) -> list[Any]:
    """Arguments by position and by name in the order of the parameters, each given once. Raises ModelTypeError."""
    names = [name for name, _ in plan.params]
    takes = f"it takes {', '.join(names) or 'none'}"
    for name in named:
        if name not in names:
            raise ModelTypeError(f"{plan.name}: there is no parameter {name!r}",
                                 f"{nearest(name, names)} {takes}".lstrip())
        if names.count(name) > 1:
            raise ModelTypeError(f"{plan.name}: {names.count(name)} parameters are named {name!r}",
                                 "pass them by position")
        if names.index(name) < len(given):
            raise ModelTypeError(f"{plan.name}: {name} is given twice, by position and by name", takes)
    missing = [name for name in names[len(given):] if name not in named]
    if missing:
        raise ModelTypeError(f"{plan.name}: {', '.join(missing)} {'is' if len(missing) == 1 else 'are'} not given",
                             takes)
    return [*given, *(named[name] for name in names[len(given):])]


def arguments(plan: Interface, given: Sequence[Any]) -> list[Tensor]:
    """The arguments of a call as compact tensors of the dtypes of the parameters.

    Those that a run writes into are the memory that is given; what else lies in that is copied. Raises ModelTypeError,
    ModelValueError.
    """
    if len(given) != len(plan.params):
        names = ", ".join(name for name, _ in plan.params)
        raise ModelTypeError(f"{plan.name} takes {len(plan.params)} argument(s) ({names}), {len(given)} are given")
    tensors = []
    for (name, wanted), a in zip(plan.params, given):
        t = compact(plan.name, name, a)
        if t.dtype != wanted.dtype:
            raise ModelTypeError(f"{plan.name}: {name} is of {t.dtype}, and {wanted} is needed", "convert it first")
        tensors.append(t)
    if plan.written:
        written = [_written(plan, k, given[k], tensors[k]) for k in plan.written]
        for n, (k, own) in enumerate(zip(plan.written, written)):
            other = next((j for j, s in zip(plan.written[:n], written) if overlap(own, s)), None)
            if other is not None:
                raise ModelValueError(f"{plan.name}: {plan.params[other][0]} and {plan.params[k][0]} share memory, and "
                                      "both are updated")
        tensors = [t if k in plan.written else apart(t, written) for k, t in enumerate(tensors)]
    return tensors


def compact(function: str, name: str, given: Any) -> Tensor:
    """An argument as a tensor: over its memory where that is compact and row-major and begins at an address of
    elements, else of a copy. Raises ModelTypeError for what is no array of numbers."""
    if not isinstance(given, (Tensor, np.ndarray, np.generic)) and not hasattr(given, "__dlpack__"):
        raise ModelTypeError(f"{function}: {name} is {described(given)}", "pass a Tensor, an array or a DLPack object")
    try:
        made = runtime.view(np.asarray(given) if isinstance(given, np.generic) else given, f"{function}: {name}")
        is_compact = isinstance(given, np.ndarray) or as_numpy(made).flags.c_contiguous       # a view of an array is
        fits = is_compact and made.data_ptr % item_bytes(made.dtype) == 0       # kernels read whole elements
        return made if fits else runtime.array(made)
    except (ArgumentError, MemoryError) as error:
        raise ModelTypeError(str(error)) from None


def span(t: Tensor) -> Span:
    """(address of the first byte, of the one behind the last) of a compact tensor."""
    return t.data_ptr, t.data_ptr + math.prod(t.shape) * item_bytes(t.dtype)


def overlap(a: Span, b: Span) -> bool:
    """True where two spans have a byte in common."""
    return max(a[0], b[0]) < min(a[1], b[1])


def apart(t: Tensor, written: Sequence[Span]) -> Tensor:
    """The tensor, or a copy of one that shares memory with what is written."""
    own = span(t)
    return runtime.array(t) if any(overlap(own, s) for s in written) else t


def _written(plan: Interface, k: int, given: Any, made: Tensor) -> Span:
    """The memory of an argument that a run writes into. Raises ModelValueError where the caller has another."""
    values = as_numpy(given)
    why = "a number" if isinstance(given, np.generic) else "read-only" if not values.flags.writeable else \
        "a torch tensor that is negated when it is read" if ffi.is_negated(given) else \
        f"not contiguous: shape {values.shape}, strides {values.strides}" if not values.flags.c_contiguous else \
        f"at an address that is no multiple of {values.itemsize}" if not values.flags.aligned else ""
    if why:
        raise ModelValueError(f"{plan.name}: {plan.params[k][0]} is updated in place, and what is given is {why}",
                              "pass a Tensor: tilewright.nd.array(x)")
    return span(made)
