"""Stages that read windows: stencils and poolings, which sliding windows and circular buffers are for."""
from __future__ import annotations

import random
from collections.abc import Sequence

from .expressions import Axis, Binary, Dim, Index, IndexOp, Number, Read
from .programs import Stage
from .values import Reject, is_float


def window_stage(rng: random.Random, last: Stage, name: str, bindings: Sequence[dict[str, int]]) -> Stage:
    """A stage over windows of last along one or two of its axes: by hand, or as a reduction.

    Raises Reject where the windows do not fit.
    """
    if not last.axes or last.dtype == "bool":
        raise Reject("nothing to slide over")
    chosen = rng.sample(range(len(last.axes)), min(rng.choice([1, 1, 2]), len(last.axes)))
    size, stride = rng.choice([2, 3, 3, 4]), 1
    axes = tuple(Dim(d.symbol, d.scale, d.offset - (size - 1) * stride) if n in chosen else d
                 for n, d in enumerate(last.axes))
    if any(d.value(b) < 1 for b in bindings for d in axes):
        raise Reject("a window larger than the tensor")
    if rng.random() < 0.5:
        windows = tuple(Dim(offset=size) for _ in chosen)
        position = {n: len(axes) + k for k, n in enumerate(chosen)}
        at = tuple(IndexOp("add", Axis(n), Axis(position[n])) if n in chosen else Axis(n) for n in range(len(axes)))
        kinds = ["max", "min"] if is_float(last.dtype) else ["max", "min", "sum"]
        return Stage(name, last.dtype, axes, Read(last.name, at), windows, rng.choice(kinds))

    def shifted(c: int) -> Read:
        index: list[Index] = [IndexOp("add", Axis(n), Number(c)) if n in chosen and c else Axis(n)
                              for n in range(len(axes))]
        return Read(last.name, tuple(index))
    op = rng.choice(["max", "min", "sub", "add"])
    return Stage(name, last.dtype, axes, Binary(op, shifted(0), shifted(size - 1)))
