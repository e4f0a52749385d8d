"""Common subexpressions: equal calls are made once."""
from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

from tilewright.graph.ir.callees import Operator
from tilewright.graph.ir.deferred import Deferred
from tilewright.graph.ir.rebuild import Rebuild, rebuilt
from tilewright.graph.ir.values import Call, Function, Value

_COMPARED = 1 << 16                 # bytes of a constant up to which its elements are compared with those of others


def eliminate_common(function: Function) -> Function:
    """function in which operators with equal attributes and inputs, and small equal constants, are there once."""
    constants: dict[object, Value] = {}
    made: dict[object, tuple[Value, ...]] = {}

    def first(v: Value) -> Value:
        return v if v.held is None else constants.setdefault(_content(v.held), v)

    def step(new: Rebuild, c: Call, inputs: tuple[Value, ...]) -> Sequence[Value] | None:
        if not isinstance(c.callee, Operator):
            return None
        given = tuple(first(v) for v in inputs)
        key = (c.callee.key, given)
        found = made.get(key)
        if found is not None:
            return found
        if given == c.inputs:
            made[key] = c.results
            return None
        made[key] = new.emit_all(c.callee, given, [v.name for v in c.results])
        return made[key]
    return rebuilt(function, step)


def _content(data: np.ndarray | Deferred) -> object:
    if isinstance(data, Deferred) or data.nbytes > _COMPARED:
        return id(data)
    return data.dtype.str, data.shape, hashlib.blake2b(data.tobytes(), digest_size=16).digest()
