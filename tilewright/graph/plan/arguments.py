"""Arguments of compiled functions: compact tensors, over the memory that is given where that can be read as it is."""
from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tilewright import runtime
from tilewright.graph.ir.types import TensorType
from tilewright.graph.plan.plan import Plan
from tilewright.runtime import Tensor
from tilewright.runtime.dtypes import item_bytes
from tilewright.runtime.tensor import as_numpy
from tilewright.support.errors import ArgumentError, GraphError, described, nearest

Span = tuple[int, int]


def in_order(plan: Plan, given: Sequence[Any], named: Mapping[str, Any]) -> list[Any]:
    """Arguments by position and by name in the order of the parameters. Raises GraphError unless each is given once."""
    names = [name for name, _ in plan.params]
    takes = f"it takes {', '.join(names) or 'none'}"
    for name in named:
        if name not in names:
            raise GraphError(f"{plan.name}: there is no parameter {name!r}", f"{nearest(name, names)} {takes}".lstrip())
        if names.count(name) > 1:
            raise GraphError(f"{plan.name}: {names.count(name)} parameters are named {name!r}", "pass them by position")
        if names.index(name) < len(given):
            raise GraphError(f"{plan.name}: {name} is given twice, by position and by name", takes)
    missing = [name for name in names[len(given):] if name not in named]
    if missing:
        raise GraphError(f"{plan.name}: {', '.join(missing)} {'is' if len(missing) == 1 else 'are'} not given", takes)
    return [*given, *(named[name] for name in names[len(given):])]


def arguments(plan: Plan, given: Sequence[Any]) -> list[Tensor]:
    """The arguments of a call as compact tensors of the dtypes of the parameters.

    Those that a run writes into are the memory that is given; what else lies in that is copied. Raises GraphError.
    """
    if len(given) != len(plan.params):
        names = ", ".join(name for name, _ in plan.params)
        raise GraphError(f"{plan.name} takes {len(plan.params)} argument(s) ({names}), {len(given)} are given")
    tensors = [_argument(plan.name, name, t, a) for (name, t), a in zip(plan.params, given)]
    if plan.written:
        written = [_written(plan, k, given[k], tensors[k]) for k in plan.written]
        for n, (k, own) in enumerate(zip(plan.written, written)):
            other = next((j for j, s in zip(plan.written[:n], written) if overlap(own, s)), None)
            if other is not None:
                raise GraphError(f"{plan.name}: {plan.params[other][0]} and {plan.params[k][0]} share memory, and both "
                                 "are updated")
        tensors = [t if k in plan.written else apart(t, written) for k, t in enumerate(tensors)]
    return tensors


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


def _written(plan: Plan, k: int, given: Any, made: Tensor) -> Span:
    """The memory of an argument that a run writes into. Raises GraphError where that is not what the caller has."""
    values = as_numpy(given)
    why = "a number" if isinstance(given, np.generic) else "read-only" if not values.flags.writeable else \
        f"not contiguous: shape {values.shape}, strides {values.strides}" if not values.flags.c_contiguous else \
        f"at an address that is no multiple of {values.itemsize}" if not values.flags.aligned else ""
    if why:
        raise GraphError(f"{plan.name}: {plan.params[k][0]} is updated in place, and what is given is {why}",
                         "pass a Tensor: tilewright.nd.array(x)")
    return span(made)


def _argument(function: str, name: str, wanted: TensorType, given: Any) -> Tensor:
    """An argument as a compact tensor. Raises GraphError where it is none of the dtype of the parameter."""
    if not isinstance(given, Tensor):
        if not isinstance(given, (np.ndarray, np.generic)) and not hasattr(given, "__dlpack__"):
            raise GraphError(f"{function}: {name} is {described(given)}", "pass a Tensor, an array or a DLPack object")
        try:
            given = runtime.view(np.asarray(given) if isinstance(given, np.generic) else given, name)
        except (ArgumentError, MemoryError) as error:
            raise GraphError(f"{function}: {name}: {error}") from None
    elif not as_numpy(given).flags.c_contiguous:
        given = runtime.array(given)
    if given.data_ptr % item_bytes(given.dtype):
        given = runtime.array(given)                     # kernels read whole elements
    if given.dtype != wanted.dtype:
        raise GraphError(f"{function}: {name} is of {given.dtype}, and {wanted} is needed", "convert it first")
    return given
