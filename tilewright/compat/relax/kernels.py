"""Functions of blocks and packed functions as relax calls them, for the graph."""
from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewright import runtime
from tilewright.graph.ir.callees import Extern, Kernel
from tilewright.graph.ir.types import TensorType, size_variables
from tilewright.rules.facts import is_unscheduled, kernel_blocks
from tilewright.runtime.tensor import as_numpy
from tilewright.schedule import Schedule
from tilewright.support.errors import GraphError, TilewrightError
from tilewright.support.names import identifier
from tilewright.tir import Buffer, Cast, Expr, PrimFunc, Var, decl_buffer
from tilewright.tir.printer import show
from tilewright.tir.symbols import free_vars

SCHEDULED = "tir.is_scheduled"


def kernel(caller: str, name: str, func: PrimFunc, inputs: Sequence[TensorType], results: Sequence[TensorType],
           sizes: Sequence[Any]) -> Kernel:
    """func for tensors of these types, and values of its scalar parameters. Raises GraphError where they do not fit."""
    types = [*inputs, *results]
    handles = [p for p in func.params if p in func.buffer_map]
    scalars = [p for p in func.params if p not in func.buffer_map]
    if len(handles) != len(types) or len(scalars) != len(sizes):
        raise GraphError(f"{caller}: {name} takes {len(handles)} tensor(s) and {len(scalars)} size(s), {len(types)} "
                         f"and {len(sizes)} are given", "results are written to the last tensors")
    try:
        fitted = func.specialize({p: _fitting(func.buffer_map[p], t) for p, t in zip(handles, types)}
                                 | {p: _of_dtype(p, d) for p, d in zip(scalars, sizes)})
    except TilewrightError as why:
        raise GraphError(f"{caller}: {name} is called with {', '.join(map(str, types))}: {why}") from None
    free = size_variables([*(d for b in fitted.buffers for d in b.shape), *_free(fitted)])
    own = sorted(free, key=lambda v: v.name)
    body = fitted.replace(params=(*fitted.params, *own)).with_attrs(global_symbol="k")
    digest = hashlib.sha256(show(body).encode()).hexdigest()[:16]
    attrs = {"global_symbol": identifier(f"{name}_{digest}")} | ({SCHEDULED: 1} if _is_scheduled(func) else {})
    return Kernel(body.with_attrs(**attrs), tuple(results), tuple(own), (), (name,))


def _fitting(b: Buffer, t: TensorType) -> Buffer:
    """A buffer of a type, as `specialize` takes it in the place of b."""
    shape = [_of_dtype(was, d) if isinstance(was, Var) else d for was, d in zip(b.shape, t.shape)]
    return decl_buffer([*shape, *t.shape[len(b.shape):]], t.dtype)


def _of_dtype(was: Var, d: Any) -> Any:
    return Cast(was.dtype, d) if isinstance(d, Expr) and d.dtype != was.dtype else d


def _free(func: PrimFunc) -> list[Var]:
    bound = {*func.params, *(b.data for b in func.buffers)}
    return [v for v in free_vars(func.body) if v not in bound and v.dtype != "handle"]


def _is_scheduled(func: PrimFunc) -> bool:
    """True where the rules must leave the loops as they are."""
    if func.attrs.get(SCHEDULED):
        return True
    try:
        sch = Schedule(func)
        return not all(is_unscheduled(sch, b.rv) for b in kernel_blocks(sch))
    except TilewrightError:
        return True


def extern_of(name: str, results: Sequence[TensorType], gives: bool = False) -> Extern:
    """A packed function that writes its results; gives: one that gives its only result, which is copied."""
    if not gives:
        return Extern(name, tuple(results))
    if len(results) != 1:
        raise GraphError(f"the packed function {name!r} gives {len(results)} results",
                         "state one: sinfo_args=R.Tensor(...); R.call_dps_packed writes several")
    wrapper = f"tilewright.relax.result_of.{name}"

    def called(*args: Any) -> None:
        *inputs, out = args
        found = runtime.get_global_func(name)
        assert found is not None
        as_numpy(out)[...] = np.asarray(as_numpy(found(*inputs)))
    runtime.register_func(wrapper, called, override=True)
    return Extern(wrapper, tuple(results))
