"""BlockBuilder: makes functions, call by call."""
from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from tilewright.graph.ir.callees import Extern, Kernel, operator
from tilewright.graph.ir.fitting import check_fits
from tilewright.graph.ir.types import TensorType
from tilewright.graph.ir.values import Call, Function, Value, call, constant
from tilewright.runtime.tensor import as_numpy
from tilewright.support.errors import GraphError, described
from tilewright.support.names import NameSupply, identifier


class BlockBuilder:
    """Makes the functions of a module.

        bb = BlockBuilder()
        x = bb.param("x", (size("n"), 784))
        with bb.function("main", [x]):
            h = bb.emit_te(topi.matmul, x, bb.const(w))
            bb.emit_func_output(bb.emit_te(topi.relu, h))
        module = bb.get()

    Every value has its type when it is made; an operator that refuses its inputs raises at the call that emits it.
    `source(name)` says what the calls inside of its `with` come from: names in errors, profiles and pictures.
    """

    def __init__(self) -> None:
        self.functions: dict[str, Function] = {}
        self._open: _Open | None = None
        self._source = ""

    @staticmethod
    def param(name: str, shape: Sequence[Any], dtype: Any = "float32") -> Value:
        """A parameter for a function that is to be made. Raises GraphError for a name or a shape that is none."""
        if not isinstance(name, str) or not name:
            raise GraphError(f"param: the name {described(name)} is not a string with characters")
        return Value(TensorType.of(shape, dtype), name)

    @staticmethod
    def const(array: Any, name: str = "const", *, share: bool = False) -> Value:
        """A constant with the elements of an array. share: they are not copied; the array must not change any more."""
        values = as_numpy(array)
        return constant(values if share else values.copy(), name)

    @contextlib.contextmanager
    def function(self, name: str, params: Sequence[Value] = ()) -> Iterator[BlockBuilder]:
        """Inside of the `with`, calls are emitted to the function of that name, which emit_func_output ends."""
        if self._open is not None:
            raise GraphError(f"function({name!r}): the function {self._open.name} is open",
                             "functions are made one after the other")
        if name in self.functions:
            raise GraphError(f"function({name!r}): the module has a function of that name")
        for p in params:
            if not isinstance(p, Value):
                raise GraphError(f"function({name!r}): {described(p)} is not a parameter",
                                 "bb.param(name, shape) makes one")
        self._open = _Open(name, list(params))
        try:
            yield self
            made = self._open.function
            if made is None:
                raise GraphError(f"function({name!r}) ends without a result",
                                 "call emit_func_output(value) at the end of the `with`")
            self.functions[name] = made
        finally:
            self._open = None

    @contextlib.contextmanager
    def source(self, name: str) -> Iterator[None]:
        """What is emitted inside of the `with` comes from what is named."""
        outer, self._source = self._source, name
        try:
            yield
        finally:
            self._source = outer

    def emit_te(self, rule: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """What a te rule makes of values, in lists too, and of other arguments: a Value, or a tuple of them.

        A rule that gives one of its inputs back adds no call.
        """
        if not callable(rule):
            raise GraphError(f"emit_te: {described(rule)} is not a function that makes te tensors",
                             "write emit_te(topi.relu, x)")
        op, inputs = operator(rule, args, kwargs, Value)
        traced = op.traced(*(v.type for v in inputs))
        if not traced.outputs:
            raise GraphError(f"emit_te: {op.name} gives no tensor", "a rule returns what te.compute gives")
        own = dict(zip(traced.inputs, inputs))
        if all(t in own for t in traced.outputs):
            results = tuple(own[t] for t in traced.outputs)
        else:
            made = self.emit_call(op, inputs, getattr(rule, "__name__", "lv"))
            results = tuple(own.get(t, v) for t, v in zip(traced.outputs, made))
        return results if len(results) > 1 else results[0]

    def emit_call(self, callee: Any, inputs: Sequence[Value], name: str = "lv") -> tuple[Value, ...]:
        """The results of a call of any callee. Raises GraphError for inputs that it does not take."""
        open_ = self._opened("emit")
        for v in inputs:
            if not isinstance(v, Value):
                raise GraphError(f"emit_call: {described(v)} is not a value of the function",
                                 "bb.const(array) makes one")
        if isinstance(callee, Kernel):
            check_fits(callee, [v.type for v in inputs])
        made = call(callee, inputs, source=self._source)
        for v in made.results:
            v.name = open_.names.fresh(identifier(name))
        open_.calls.append(made)
        return made.results

    def call_tir(self, kernel: Kernel, *inputs: Value) -> Any:
        """The results of a function of blocks that writes its results."""
        return _one_or_all(kernel.name, self.emit_call(kernel, inputs, kernel.name))

    def call_packed(self, symbol: str, inputs: Sequence[Value], results: Sequence[TensorType]) -> Any:
        """The results that a packed function of the registry writes; it takes inputs and results, all as tensors."""
        for t in results:
            if not isinstance(t, TensorType):
                raise GraphError(f"call_packed({symbol!r}): {described(t)} is not the type of a result",
                                 'write graph.TensorType.of(shape, "float32")')
        return _one_or_all(symbol, self.emit_call(Extern(symbol, tuple(results)), inputs, symbol.rsplit(".", 1)[-1]))

    def emit_func_output(self, output: Any, params: Sequence[Value] | None = None,
                         updates: Mapping[Value, Value] = MappingProxyType({})) -> None:
        """End the function with its result or results, and with the new values of parameters that it updates."""
        open_ = self._opened("emit_func_output")
        results = tuple(output) if isinstance(output, (tuple, list)) else (output,)
        for v in results:
            if not isinstance(v, Value):
                raise GraphError(f"emit_func_output: {described(v)} is not a value of the function")
        if params is not None:
            open_.params = list(params)
        open_.function = Function(open_.name, tuple(open_.params), tuple(open_.calls), results, dict(updates))

    def get(self) -> dict[str, Function]:
        """The functions that were made, by name."""
        return dict(self.functions)

    def _opened(self, what: str) -> _Open:
        if self._open is None:
            raise GraphError(f"{what}: no function is open", "write it inside of `with bb.function(name, params):`")
        return self._open


def _one_or_all(name: str, made: tuple[Value, ...]) -> Any:
    if not made:
        raise GraphError(f"{name}: the call has no results, and calls have no other effect", "state what it writes")
    return made if len(made) > 1 else made[0]


class _Open:
    """The function that is being made."""

    def __init__(self, name: str, params: list[Value]) -> None:
        self.name, self.params = name, params
        self.calls: list[Call] = []
        self.names = NameSupply(p.name for p in params)
        self.function: Function | None = None


def array_of(value: Value) -> np.ndarray | None:
    """The elements of a constant; None for other values."""
    return value.data
