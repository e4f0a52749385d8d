"""Whether a function of blocks takes what a call of it gives: its code gets addresses and sizes, and checks nothing."""
from __future__ import annotations

from collections.abc import Sequence

from tilewright.graph.ir.callees import Kernel
from tilewright.graph.ir.types import TensorType, extents, size_variables
from tilewright.support.errors import GraphError
from tilewright.tir.interp.execute import evaluate

_TRIALS = ((7, 1), (64, 5), (1, 1))               # the first size variable, and by how much each that follows is more


def check_fits(kernel: Kernel, inputs: Sequence[TensorType]) -> None:
    """Raise GraphError unless the buffers of the kernel's function are of these types and then those of its results,
    and its parameters say what their extents are. Extents that are expressions are compared for some sizes."""
    func, types = kernel.func, [*inputs, *kernel.results]
    buffers = [func.buffer_map[p] for p in func.params if p in func.buffer_map]
    scalars = [p for p in func.params if p not in func.buffer_map]
    if len(buffers) != len(types) or len(scalars) != len(kernel.sizes):
        raise GraphError(f"{kernel.name} takes {len(buffers)} tensor(s) and {len(scalars)} size(s), {len(types)} "
                         f"and {len(kernel.sizes)} are given", "results are written to the last tensors, sizes follow")
    unbound = next((v for b in buffers for v in size_variables(b.shape) if v not in scalars), None)
    if unbound is not None:
        raise GraphError(f"{kernel.name}: the extent {unbound.name} of its buffers is no parameter of it",
                         "list it behind the buffers, and give its size in `sizes` (R.call_tir: tir_vars)")
    variables = size_variables([d for t in types for d in t.shape] + list(kernel.sizes))
    for least, step in _TRIALS:
        sizes = {v: least + step * k for k, v in enumerate(variables)}
        own = {p: int(evaluate(d, sizes)) for p, d in zip(scalars, kernel.sizes)}
        for b, t in zip(buffers, types):
            if b.dtype != t.dtype or len(b.shape) != t.ndim or extents(b.shape, own) != extents(t.shape, sizes):
                raise GraphError(f"{kernel.name}: {b.name} is {TensorType(tuple(b.shape), b.dtype)}, and {t} is given")
