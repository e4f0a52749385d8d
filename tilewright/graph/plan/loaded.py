"""Exported models, loaded: called with inputs alone, since the types of the results follow from those of the inputs."""
from __future__ import annotations

from pathlib import Path
from typing import Any

from tilewright import runtime
from tilewright.graph.ir.types import Dim, TensorType, extents
from tilewright.graph.plan.arguments import arguments, in_order
from tilewright.graph.plan.counted import counted_of_names, handed_out
from tilewright.graph.plan.interface import Interface, bindings_of, bound
from tilewright.runtime import Function, Module, signature
from tilewright.runtime.module import read_module
from tilewright.runtime.signature import Signature
from tilewright.support.errors import LoadError
from tilewright.support.views import View, Viewed
from tilewright.tir import Var
from tilewright.tir.arithmetic import binary

_KERNELS = "load_module(path) loads any exported functions"


class Model(Viewed):
    """A model that `export` wrote: `model(*inputs)` gives its result, or a tuple of them, as new tensors.

    Arguments are what an `Executable` takes, and are refused as there.
    """

    def __init__(self, module: Module) -> None:
        self.module = module
        self.function: Function = module[module.entry_name]
        self.signature = module.signatures[module.entry_name]
        self.inputs = tuple(p for p in self.signature.params if not p.written or p.updated)
        self.results = self.signature.params[len(self.inputs):]
        written = tuple(k for k, p in enumerate(self.inputs) if p.updated)
        if any(not p.written or p.updated for p in self.results) or not (self.results or written):
            raise LoadError(f"load: {self.signature} does not end with its results", _KERNELS)
        number = next((p for p in self.inputs if not p.is_buffer), None)
        if number is not None:
            raise LoadError(f"load: {self.signature} takes a number, {number.name}", _KERNELS)
        types = _types(self.signature)
        given, self._made = types[:len(self.inputs)], types[len(self.inputs):]
        self._interface = Interface(self.signature.name, tuple(zip([p.name for p in self.inputs], given)), written,
                                    bindings_of(given))
        self._counted = counted_of_names([p.name for p in self.results])

    def __call__(self, /, *inputs: Any, **named: Any) -> Any:
        tensors = arguments(self._interface, in_order(self._interface, inputs, named) if named else inputs)
        sizes = bound(self._interface, [t.shape for t in tensors])
        # where an extent would be negative the function says why
        results = [runtime.empty([max(n, 0) for n in extents(t.shape, sizes)], t.dtype) for t in self._made]
        self.function(*tensors, *results)
        return handed_out(results, self._counted)

    def __copy__(self) -> Model:
        return self                                    # code and constants do not change

    def __deepcopy__(self, memo: object) -> Model:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """The module. Raises ArgumentError for one of a shared library."""
        return Model, (self.module,)

    def view(self) -> View:
        return View(f"tilewright.Model {self.signature}")


def _types(of: Signature) -> list[TensorType]:
    """The types of the parameters; their sizes are variables of the signature's own."""
    variables = {name: Var(name, of.symbol_types.get(name, "int64")) for name in of.symbols}

    def extent(dim: signature.Dim) -> Dim:
        if isinstance(dim, tuple):
            op, a, b = dim
            return binary(op, extent(a), extent(b))
        return variables[dim] if isinstance(dim, str) else dim
    return [TensorType(tuple(map(extent, p.shape or ())), p.dtype) for p in of.params]


def load(path: str | Path) -> Model:
    """The model in a file that `export` wrote. Raises LoadError where the file is damaged or holds none."""
    return Model(read_module(path, "load"))
