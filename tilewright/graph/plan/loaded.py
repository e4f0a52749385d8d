"""Exported models, loaded: called with inputs alone, since the types of the results follow from those of the inputs."""
from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tilewright import runtime
from tilewright.graph.plan.counted import counted_of_names, handed_out
from tilewright.runtime import Function, Module, Tensor
from tilewright.runtime.dtypes import item_bytes
from tilewright.runtime.signature import Dim, Param
from tilewright.runtime.tensor import as_numpy
from tilewright.support.errors import CallError, LoadError, described
from tilewright.support.views import View, Viewed

_OPERATORS: Mapping[str, Callable[[int, int], int]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "floordiv": lambda a, b: a // b if b else 0,
    "floormod": lambda a, b: a % b if b else 0, "min": min, "max": max}


class Model(Viewed):
    """A model that `export` wrote: `model(*inputs)` gives its result, or a tuple of them, as new tensors.

    Inputs that the model updates are Tensors, and are written in place.
    """

    def __init__(self, module: Module) -> None:
        self.module = module
        self.function: Function = module[module.entry_name]
        self.signature = module.signatures[module.entry_name]
        self.inputs = tuple(p for p in self.signature.params if not p.written or p.updated)
        self.results = self.signature.params[len(self.inputs):]
        if any(not p.written or p.updated for p in self.results) or not (self.results or self._updates):
            raise LoadError(f"load: {self.signature} does not end with its results",
                            "load_module(path) loads any exported functions")

        self._counted = counted_of_names([p.name for p in self.results])

    @property
    def _updates(self) -> tuple[Param, ...]:
        return tuple(p for p in self.inputs if p.updated)

    def __call__(self, *inputs: Any) -> Any:
        if len(inputs) != len(self.inputs):
            raise CallError(f"{self.signature.name} takes {len(self.inputs)} input(s), {len(inputs)} are given")
        for p, x in zip(self.inputs, inputs):
            if p.updated and not isinstance(x, Tensor):
                raise CallError(f"{self.signature.name}: {p.name} is updated in place, and {described(x)} is given",
                                "pass a Tensor: tilewright.nd.array(x)")
        tensors = [_given(p, x) for p, x in zip(self.inputs, inputs)]
        sizes: dict[str, int] = {}
        for p, t in zip(self.inputs, tensors):
            sizes.update((d, n) for d, n in zip(p.shape or (), t.shape) if isinstance(d, str))
        results = [runtime.empty(tuple(max(_number(d, sizes), 0) for d in p.shape or ()), p.dtype)
                   for p in self.results]
        self.function(*tensors, *results)
        return handed_out(results, self._counted)

    def view(self) -> View:
        return View(f"tilewright.Model {self.signature}")


def _given(param: Param, x: Any) -> Tensor:
    """An argument as a tensor over its memory; a compact copy where that is none, or is at no address of elements."""
    t = x if isinstance(x, Tensor) else runtime.view(x, param.name)
    compact = as_numpy(t).flags.c_contiguous and t.data_ptr % item_bytes(t.dtype) == 0
    return t if compact or param.updated else runtime.array(t)


def _number(dim: Dim, sizes: Mapping[str, int]) -> int:
    """The number that an extent is; 0 where a size is not known, so that the call says what does not fit."""
    if isinstance(dim, int):
        return dim
    if isinstance(dim, str):
        return sizes.get(dim, 0)
    op, a, b = dim
    return _OPERATORS[op](_number(a, sizes), _number(b, sizes))


def load(path: str | Path) -> Model:
    """The model in a file that `export` wrote. Raises LoadError where the file is damaged or holds none."""
    return Model(runtime.load_module(path))
