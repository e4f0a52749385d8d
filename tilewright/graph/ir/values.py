"""Functions of typed values: a value is a parameter, a constant, or a result of a call; every value is made once.

A function is a list of calls in an order that can run. What a call calls is its callee: an operator, a function of
blocks, a packed function, another function of the graph, or a choice or a loop over such functions.
"""
from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from tilewright.graph.ir.deferred import Deferred, loaded
from tilewright.graph.ir.types import TensorType, size_variables, type_of_array
from tilewright.support.errors import GraphError, described
from tilewright.support.names import identifier
from tilewright.support.registry import hook
from tilewright.tir import Var
from tilewright.tir.functions import BaseFunc, ModuleText


class Callee(Protocol):
    """What can be called: its name, and the types of its results from those of its inputs."""

    @property
    def name(self) -> str: ...

    def types(self, *inputs: TensorType) -> tuple[TensorType, ...]: ...


class Value:
    """A tensor: a parameter (`call` and `data` are None), a constant (`data`), or result `index` of `call`.

    Values compare by identity. `source` names what a value comes from, such as the node of an ONNX file; `held` is the
    array of a constant, or what reads it.
    """
    __slots__ = ("type", "name", "call", "index", "held", "source")
    __array_ufunc__ = None

    def __init__(self, type: TensorType, name: str, call: Call | None = None, index: int = 0,
                 data: np.ndarray | Deferred | None = None, source: str = "") -> None:
        self.type, self.name, self.call, self.index, self.held, self.source = type, name, call, index, data, source

    @property
    def data(self) -> np.ndarray | None:
        """The elements of a constant; None for other values. Those that lie in a file are read, each time anew."""
        return None if self.held is None else loaded(self.held)

    @property
    def shape(self) -> tuple[Any, ...]:
        return self.type.shape

    @property
    def dtype(self) -> str:
        return self.type.dtype

    @property
    def ndim(self) -> int:
        return self.type.ndim

    @property
    def is_constant(self) -> bool:
        return self.held is not None

    def __repr__(self) -> str:
        kind = "constant" if self.is_constant else "parameter" if self.call is None else "value"
        return f"<{kind} {self.name}: {self.type}>"

    def __bool__(self) -> bool:
        raise GraphError(f"{self!r} has no truth value: it is computed when the function runs")


def constant(array: Any, name: str = "const") -> Value:
    """A value that holds an array, which must not change any more."""
    data = array if isinstance(array, Deferred) else np.asarray(array)
    return Value(type_of_array(data), name, data=data)


@dataclass(eq=False)
class Call:
    """callee(*inputs) and the values that it binds, one for each result."""
    callee: Any
    inputs: tuple[Value, ...]
    results: tuple[Value, ...] = ()

    @property
    def source(self) -> str:
        return self.results[0].source if self.results else ""

    def __repr__(self) -> str:
        made = ", ".join(v.name for v in self.results)
        return f"{made} = {self.callee.name}({', '.join(v.name for v in self.inputs)})"


def call(callee: Any, inputs: Sequence[Value], names: Sequence[str] = (), source: str = "") -> Call:
    """A call whose results have the types that the callee says they have."""
    made = Call(callee, tuple(inputs))
    types = callee.types(*(v.type for v in inputs))
    made.results = tuple(Value(t, names[k] if k < len(names) else "lv", made, k, source=source)
                         for k, t in enumerate(types))
    return made


@dataclass(eq=False, repr=False)
class Function(BaseFunc):
    """(params) -> results, by calls. attrs: plain data about the function.

    updates: at the end of a run, parameters that take the value of others: effects are named here alone. Raises
    GraphError for parts that are of other kinds, and for an update of what is no parameter, or by a value of another
    type.
    """
    name: str
    params: tuple[Value, ...]
    calls: tuple[Call, ...]
    results: tuple[Value, ...]
    updates: Mapping[Value, Value] = field(default_factory=dict)
    attrs: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        parts: list[tuple[str, Any, type]] = [
            ("params", self.params, Value), ("calls", self.calls, Call), ("results", self.results, Value)]
        for what, given, kind in parts:
            if not isinstance(given, (tuple, list)) or not all(isinstance(v, kind) for v in given):
                raise GraphError(f"Function: {what} is {described(given)}, not a tuple of {kind.__name__}s",
                                 "BlockBuilder makes functions, call by call")
        for what, table in (("updates", self.updates), ("attrs", self.attrs)):
            if not isinstance(table, Mapping):
                raise GraphError(f"Function: {what} is {described(table)}, not a dict")
        known = set(self.params) if self.updates else ()
        for p, v in self.updates.items():
            if p not in known or not isinstance(v, Value):
                raise GraphError(f"{self.name}: {p!r} is updated by {described(v)}" if p in known else
                                 f"{self.name}: {p!r} is updated and is no parameter")
            if p.type != v.type:
                raise GraphError(f"{self.name}: the update of {p.name} is {v.type}, the parameter is {p.type}")

    @property
    def sizes(self) -> tuple[Var, ...]:
        """The size variables of the parameters, in order of appearance."""
        return tuple(size_variables(d for p in self.params for d in p.shape))

    @property
    def ends(self) -> tuple[Value, ...]:
        """The values that a run leaves behind: results and what parameters are updated to."""
        return (*self.results, *self.updates.values())

    @property
    def constants(self) -> list[Value]:
        """The constants that are used, each once."""
        used = (v for c in self.calls for v in c.inputs)
        return list(dict.fromkeys(v for v in (*used, *self.ends) if v.is_constant))

    def types(self, *inputs: TensorType) -> tuple[TensorType, ...]:
        """The types of the results of a call, for inputs of the types of the parameters."""
        if self.updates:
            raise GraphError(f"{self.name} updates {next(iter(self.updates)).name}, and calls have no effects",
                             "give the new value as a result")
        if len(inputs) != len(self.params):
            raise GraphError(f"{self.name} takes {len(self.params)} input(s), {len(inputs)} are given")
        for p, t in zip(self.params, inputs, strict=True):
            if p.type != t:
                raise GraphError(f"{self.name}: the parameter {p.name} is {p.type}, and {t} is given")
        return tuple(v.type for v in self.results)

    @property
    def called_functions(self) -> Sequence[BaseFunc]:
        """The functions that its calls call, of blocks and of the graph, each once."""
        own = (getattr(c.callee, part, None) for c in self.calls for part in ("func", "then", "orelse", "body"))
        return list({id(f): f for f in (*(c.callee for c in self.calls), *own) if isinstance(f, BaseFunc)}.values())

    def lines_in(self, name: str, module: ModuleText) -> list[str]:
        """The text of this function in that of a module."""
        found: list[str] = hook("graph.lines")(self, name, module)
        return found

    def __str__(self) -> str:
        return self.script()

    __repr__ = __str__

    def replace(self, **changes: Any) -> Function:
        """A copy with other fields."""
        fields = {"name": self.name, "params": self.params, "calls": self.calls, "results": self.results,
                  "updates": self.updates, "attrs": self.attrs}
        return Function(**{**fields, **changes})


def symbol_name(name: str) -> str:
    """A name that object files have: in ASCII."""
    return identifier(name.encode("ascii", "replace").decode())


def exported_name(name: str) -> str:
    """The name under which a file has the function: `main` is that of a program's own."""
    return symbol_name("model" if name == "main" else name)


def readers(function: Function) -> dict[Value, list[Call]]:
    """For each value the calls that read it, each once, in order."""
    found: dict[Value, list[Call]] = {}
    for c in function.calls:
        for v in dict.fromkeys(c.inputs):
            found.setdefault(v, []).append(c)
    return found


def check_function(function: Function) -> None:
    """Raise GraphError unless every value is bound, once, before it is used, and has the type that its callee gives."""
    known = set(function.params)
    if len(known) != len(function.params):
        raise GraphError(f"{function.name}: a parameter is listed twice")

    def require(values: Iterable[Value], where: str) -> None:
        for v in values:
            if not isinstance(v, Value):
                raise GraphError(f"{function.name}: {where} uses {described(v)}, not a value")
            if v not in known and not v.is_constant:
                raise GraphError(f"{function.name}: {where} uses {v!r}, which nothing before it binds")

    for c in function.calls:
        require(c.inputs, repr(c))
        for v, t in zip(c.results, c.callee.types(*(x.type for x in c.inputs)), strict=True):
            if v in known or v.call is not c or v.type != t:
                raise GraphError(f"{function.name}: {c!r} gives {t}, and binds {v!r}")
            known.add(v)
    require(function.ends, "the result")


def calls_of(function: Function, kind: type) -> Iterator[Call]:
    """The calls whose callee is of a class."""
    return (c for c in function.calls if isinstance(c.callee, kind))
