"""Constant folding: what depends on constants alone is computed while a model is compiled, by kernels like all else."""
from __future__ import annotations

from collections.abc import Callable, Sequence

from tilewright.graph.ir.callees import Operator
from tilewright.graph.ir.rebuild import Rebuild, rebuilt
from tilewright.graph.ir.values import Call, Function, Value, constant
from tilewright.graph.passes.unread import uses_types
from tilewright.runtime.tensor import as_numpy

Run = Callable[[Function], Sequence[object]]


_FREE, _TIMES = 1 << 26, 16          # bytes of folded values: those, and so many times those of the constants


def constant_part(function: Function) -> Function | None:
    """The function, without parameters, of the values that depend on constants alone and are used elsewhere.

    Values that take much more memory than all constants do, such as a number that is repeated, are computed in each
    run: there the memory is shared with others. What is made to the type of another value is made where it is read.
    """
    fixed: set[Value] = set()
    left = _FREE + _TIMES * sum(v.type.nbytes() for v in function.constants)
    for c in function.calls:
        known = isinstance(c.callee, Operator) and all(v.is_constant or v in fixed for v in c.inputs)
        known = known and not c.callee.sizes and not uses_types(c.callee)
        if known and all(v.type.is_constant for v in c.results):
            nbytes = sum(v.type.nbytes() for v in c.results)
            if nbytes <= left:
                left -= nbytes
                fixed.update(c.results)
    calls = tuple(c for c in function.calls if c.results and c.results[0] in fixed)
    used = [v for c in function.calls if not (c.results and c.results[0] in fixed) for v in c.inputs]
    results = tuple(dict.fromkeys(v for v in (*used, *function.ends) if v in fixed))
    return Function(f"{function.name}_constants", (), calls, results) if results else None


def with_constants(function: Function, values: dict[Value, object]) -> Function:
    """function with constants in the place of some values."""
    known = {v: constant(as_numpy(x), v.name) for v, x in values.items()}

    def step(new: Rebuild, c: Call, inputs: tuple[Value, ...]) -> Sequence[Value] | None:
        return tuple(known.get(v, v) for v in c.results) if any(v in known for v in c.results) else None
    return rebuilt(function, step)
