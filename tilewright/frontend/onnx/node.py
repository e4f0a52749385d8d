"""A node as the functions of the table see it: inputs, attributes, and what emits calls to the graph."""
from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tilewright.frontend.onnx.limits import MOST_KNOWN
from tilewright.frontend.onnx.tensors import CODED, stored, tensor_of
from tilewright.frontend.onnx.values import Held, bounded_sizes, simple
from tilewright.graph.ir.values import Value
from tilewright.tir import Expr
from tilewright.tir import dtype as dt

# operators that move elements as they are, or know all types
MOVES = frozenset((
    "Cast", "CastLike", "QuantizeLinear", "DequantizeLinear", "Identity", "Reshape", "Transpose", "Squeeze",
    "Unsqueeze", "Flatten", "Slice", "Concat", "Split", "Gather", "GatherND", "GatherElements", "Expand", "Tile"))


class Unsupported(Exception):
    """This node cannot be imported; the reason. needs: tensors whose elements would have to be known."""

    def __init__(self, reason: str, needs: Sequence[Held] = ()) -> None:
        super().__init__(reason)
        self.needs = tuple(needs)

class Unknown(Exception):
    """The elements of a tensor are not known while the model is imported."""

    def __init__(self, held: Held, what: str) -> None:
        super().__init__(what)
        self.held, self.what = held, what

class Node:
    """One node. `importer` is the walk that it belongs to; scope the names around it."""

    def __init__(self, importer: Any, scope: Any, proto: Any, label: str, version: int,
                 attributes: Mapping[str, Any], inputs: Sequence[Any]) -> None:
        self.importer, self.scope, self.proto, self.label, self.version = importer, scope, proto, label, version
        self.attributes, self.inputs = attributes, inputs
        self.op, self.domain = proto.op_type, proto.domain

    # inputs

    def __len__(self) -> int:
        """The number of inputs, with those at the end that are left out not counted."""
        return len(self.inputs)

    def has(self, k: int) -> bool:
        """Input k is given."""
        return k < len(self.inputs) and self.inputs[k] is not None

    def shape(self, k: int = 0) -> tuple[Any, ...]:
        """The shape of input k."""
        if self.held(k).counted is not None:
            raise Unsupported(f"the size of input {k} depends on elements, which is supported of results of the model")
        return self.held(k).shape

    def held(self, k: int) -> Held:
        """What is known of input k, a tensor that must be there."""
        if not self.has(k):
            raise Unsupported(f"input {k} is missing")
        found = self.inputs[k]
        if not isinstance(found, Held):
            raise Unsupported(f"input {k} is a sequence, a tensor is needed")
        return found

    def sequence(self, k: int) -> list[Any]:
        """The tensors of input k, a sequence."""
        if not self.has(k) or not isinstance(self.inputs[k], list):
            raise Unsupported(f"input {k} is no sequence")
        return list(self.inputs[k])

    def value(self, k: int) -> Value:
        """Input k in the graph."""
        return self.importer.value(self._read(k))

    def _read(self, k: int) -> Held:
        """Input k, whose elements are read. Raises Unsupported for codes of floats, but in operators that know them."""
        held = self.held(k)
        if held.kind in CODED and self.op not in MOVES:
            raise Unsupported(f"input {k} has elements of {held.kind}, which is converted first")
        return held

    def values(self, start: int = 0) -> list[Value]:
        """All inputs in the graph."""
        return [self.value(k) for k in range(start, len(self.inputs))]

    def optional(self, k: int) -> Value | None:
        """Input k in the graph, or None where it is left out."""
        return self.value(k) if self.has(k) else None

    def operand(self, k: int) -> Any:
        """Input k: a Python number where it is a known one without dimensions, else its value."""
        held = self._read(k)
        found = held.elements if not held.shape else None
        if found is None or held.is_symbolic or held.kind not in _NUMBERS:
            return self.value(k)
        return found.item() if held.dtype != "bfloat16" else float(found)

    def elements(self, k: int, what: str = "") -> np.ndarray:
        """The elements of input k, as far as numbers and sizes tell. Raises Unknown where they are not known."""
        held = self._read(k)
        found = held.few(MOST_KNOWN)
        if found is None:
            raise Unknown(held, what or f"input {k}")
        return found

    def numbers(self, k: int, what: str = "") -> list[Any]:
        """The elements of input k, one after the other, as Python numbers or expressions of sizes.

        Raises Unknown for floats that depend on sizes.
        """
        found = self.elements(k, what)
        if found.dtype == object and dt.is_float(self.held(k).dtype):
            raise Unknown(self.held(k), what or f"input {k}")
        return list(found.reshape(-1).tolist())

    def number(self, k: int, what: str = "") -> Any:
        """The only element of input k."""
        found = self.numbers(k, what)
        if len(found) != 1:
            raise Unsupported(f"{what or f'input {k}'} has {len(found)} elements, one is needed")
        return found[0]

    def constants(self, k: int, what: str = "") -> list[int]:
        """The elements of input k, integers that no size is part of."""
        found = self.numbers(k, what)
        if any(isinstance(e, Expr) for e in found):
            raise Unsupported(f"{what or f'input {k}'} depends on sizes: {found}")
        return [int(e) for e in found]

    # attributes

    def attr(self, name: str, default: Any = None) -> Any:
        """An attribute as a Python value, or the default."""
        found = self.attributes.get(name)
        if found is None:
            return default
        kind = found.type
        if kind == 1: return found.f
        if kind == 2: return int(found.i)
        if kind == 3: return found.s.decode(errors="replace")
        if kind == 6: return list(found.floats)
        if kind == 7: return [int(i) for i in found.ints]
        if kind == 8: return [s.decode(errors="replace") for s in found.strings]
        return found

    def flag(self, name: str, default: int = 0) -> bool:
        """An attribute that is 0 or 1, of an operator that no schema describes. Raises Unsupported for others."""
        found = self.attr(name, default)
        if found not in (0, 1):
            raise Unsupported(f"the attribute {name} is {found}, 0 or 1 is needed")
        return bool(found)

    def tensor(self, name: str) -> Held:
        """An attribute that is a tensor."""
        elements, kind = tensor_of(self.attributes[name].t, self.importer.external)
        return Held.known(elements, kind=kind)

    def required(self, name: str) -> Any:
        """An attribute that must be there."""
        if name not in self.attributes:
            raise Unsupported(f"the attribute {name} is missing")
        return self.attr(name)

    def dtype(self, name: str = "to", default: int = 1) -> tuple[str, str]:
        """(type in the file, type in the graph) of an attribute that is a data type."""
        return stored(int(self.attr(name, default)), f"the attribute {name}")

    def axes(self, k: int = 1, name: str = "axes") -> list[int] | None:
        """Axes, given by an attribute or, in later versions, by input k; None where they are left out."""
        if name in self.attributes:
            found = self.attr(name)
            return found if isinstance(found, list) else [found]
        return self.constants(k, name) if self.has(k) else None

    def outputs(self) -> int:
        """The number of results that are asked for."""
        return len(self.proto.output)

    def wants(self, k: int) -> bool:
        """Result k has a name."""
        return k < len(self.proto.output) and bool(self.proto.output[k])

    # the graph

    def emit(self, rule: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """What a rule makes of values; sizes and axes are plain numbers."""
        return self.importer.emit(rule, *args, **kwargs)

    def granted(self, op: str, a: Any, b: Any) -> bool:
        """Whether `a op b` holds for all sizes of at least 1: a run in which it does not is an error."""
        found: bool = self.importer.granted(op, a, b, self.label)
        return found

    def constant(self, array: Any) -> Value:
        """A constant of the graph."""
        return self.importer.value(Held.known(np.asarray(array)))

    def rank(self, k: int = 0) -> int:
        return len(self.held(k).shape)

    def axis(self, default: int | None = None, k: int = 0, name: str = "axis") -> int:
        """An attribute that is an axis of input k, counted from the front."""
        given = self.attr(name, default)
        if given is None:
            raise Unsupported(f"the attribute {name} is missing")
        return checked_axis(given, self.rank(k), name)

    def cut(self) -> int:
        """The attribute `axis` as a place between dimensions of input 0, from 0 to their number."""
        given, rank = self.attr("axis", 1), self.rank()
        if not -rank <= given <= rank:
            raise Unsupported(f"axis is {given}, and there are {rank} dimension(s)")
        return given + rank if given < 0 else given

_NUMBERS = frozenset(("float32", "float64", "float16", "bfloat16", "int8", "int16", "int32", "int64", "uint8", "uint16",
                      "uint32", "uint64", "bool"))

def checked_axis(axis: int, rank: int, name: str = "axis") -> int:
    """An axis counted from the front."""
    if not -rank <= axis < rank:
        raise Unsupported(f"{name} is {axis}, and there are {rank} dimension(s)")
    return axis % rank

def product(extents: Sequence[Any]) -> Any:
    """The number of elements of a shape."""
    total = math.prod(extents, start=1)
    bounded_sizes([total])
    return simple(total)
