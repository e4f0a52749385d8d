"""The names of R for functions of the graph, and how they are made of scripts."""
from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright import topi
from tilewright.graph.ir.builder import BlockBuilder
from tilewright.graph.ir.callees import Extern, Kernel, operator
from tilewright.graph.ir.dialect import FORMS, Annotation
from tilewright.graph.ir.parser import FunctionDecorator
from tilewright.graph.ir.regions import If, Loop
from tilewright.graph.ir.types import TensorType, size
from tilewright.graph.ir.values import Function, Value, constant
from tilewright.runtime.dtypes import dtype_string, numpy_dtype
from tilewright.script.members import Members
from tilewright.support.errors import GraphError, described
from tilewright.support.registry import register_hook
from tilewright.tir import PrimFunc, Var


@dataclass(frozen=True)
class Unbound:
    """A call that no variable is bound to yet: builder -> its results."""
    emit: Callable[[BlockBuilder], tuple[Value, ...]]


@dataclass(frozen=True)
class TensorOf:
    """R.Tensor(shape, dtype): the type of a tensor."""
    shape: Any
    dtype: str

    @property
    def type(self) -> TensorType:
        """The type. Raises GraphError where it is not known."""
        if self.shape is None:
            raise GraphError("the tensor has no shape", 'R.Tensor(("n", 784), "float32")')
        return TensorType.of(self.shape, self.dtype)


def _tensor(shape: Any = None, dtype: Any = "float32", ndim: int = -1) -> TensorOf:
    return TensorOf(shape, dtype_string(dtype))


def _tuple(*fields: Any) -> tuple[Any, ...]:
    return tuple(fields[0]) if len(fields) == 1 and isinstance(fields[0], (list, tuple)) else fields


def _const(value: Any, dtype: Any = None) -> Value:
    return constant(np.asarray(value, None if dtype is None else numpy_dtype(dtype_string(dtype))))


class _Dialect:
    """Makes one function of calls."""

    def __init__(self) -> None:
        self.names = NAMES
        self.builder = BlockBuilder()
        self.params: list[Value] = []
        self.extra: dict[str, Any] = {}
        self.updates: dict[Value, Value] = {}
        self.constants: dict[int, Value] = {}
        self._open = contextlib.ExitStack()
        self._open.enter_context(self.builder.function("function"))

    def size(self, name: str) -> Var:
        return size(name)

    def parameter(self, name: str, annotation: Any) -> Value:
        if not isinstance(annotation, TensorOf):
            raise GraphError(f"the parameter {name} is {described(annotation)}", 'R.Tensor((16,), "float32")')
        self.params.append(Value(annotation.type, name))
        return self.params[-1]

    def reserve(self, names: set[str]) -> None:
        """Names need not differ: the printer gives each value one of its own."""

    def bind(self, name: str, value: Any, annotation: Any) -> Any:
        known = self.emitted(value, name)
        if isinstance(annotation, TensorOf) and isinstance(known, Value) and annotation.type != known.type:
            raise GraphError(f"{name} is {known.type}, and {annotation.type} is stated")
        if isinstance(known, Value) and known.call is not None:
            known.name = name
        return known

    def emitted(self, value: Any, name: str = "lv") -> Any:
        """What an expression is, with its calls in the function: a value, or a tuple of them."""
        if isinstance(value, Unbound):
            made = value.emit(self.builder)
            return made[0] if len(made) == 1 else made
        if isinstance(value, (Value, tuple)):
            return value
        raise GraphError(f"{name} is {described(value)}, not a value", "R.const(2.0) makes a constant")

    @contextlib.contextmanager
    def dataflow(self, outputs: Sequence[str]) -> Iterator[None]:
        yield

    def attrs(self, given: Mapping[str, Any]) -> None:
        self.extra.update(given)

    def constant(self, array: np.ndarray) -> Value:
        return self.constants.setdefault(id(array), constant(array))

    def update(self, target: Value, value: Any) -> None:
        self.updates[target] = self.emitted(value)

    def member(self, name: str, module: Members) -> Any:
        return module.find(name)

    def call(self, callee: Any, args: Sequence[Any]) -> Unbound:
        if not isinstance(callee, Function):
            raise GraphError(f"{described(callee)} cannot be called", "R.call_tir calls functions of blocks")
        return _call(callee, args)

    def item(self, value: Any, index: int) -> Any:
        if not isinstance(value, tuple):
            raise GraphError(f"{described(value)} is no tuple")
        return value[index]

    def choice(self, name: str, condition: Any, then: Callable[[], Any], orelse: Callable[[], Any]) -> Any:
        raise GraphError("branches are functions of the module", "R.call_if(condition, cls.then, cls.orelse, [x])")

    def finish(self, name: str, result: Any, annotation: Any, private: bool) -> Function:
        results = result if isinstance(result, tuple) else (result,)
        ends = [self.emitted(r) for r in results]
        flat = [v for e in ends for v in (e if isinstance(e, tuple) else [e])]
        self.builder.emit_func_output(flat, self.params)
        self._open.close()
        made = self.builder.get()["function"]
        return made.replace(name=name, attrs={**made.attrs, **self.extra}, updates=self.updates)


def _call(callee: Any, args: Sequence[Any]) -> Unbound:
    def emit(builder: BlockBuilder) -> tuple[Value, ...]:
        return builder.emit_call(callee, [_value(a, builder) for a in args])
    return Unbound(emit)


def _value(x: Any, builder: BlockBuilder) -> Any:
    """An argument with its calls emitted; lists of values too. Other data is an attribute."""
    if isinstance(x, Unbound):
        made = x.emit(builder)
        return made[0] if len(made) == 1 else made
    return type(x)(_value(y, builder) for y in x) if type(x) in (list, tuple) else x


def _operator(rule: Callable[..., Any]) -> Callable[..., Unbound]:
    """R.NAME: a use of a rule of te."""
    def use(*args: Any, **kwargs: Any) -> Unbound:
        def emit(builder: BlockBuilder) -> tuple[Value, ...]:
            given = [_value(a, builder) for a in args]
            op, inputs = operator(rule, given, {k: _value(v, builder) for k, v in kwargs.items()}, Value)
            return builder.emit_call(op, inputs, getattr(rule, "__name__", "lv"))
        return Unbound(emit)
    return use


def _types(out: Any) -> tuple[TensorType, ...]:
    given = out if isinstance(out, (list, tuple)) else [out]
    for t in given:
        if not isinstance(t, TensorOf):
            raise GraphError(f"out_sinfo is {described(t)}", 'out_sinfo=R.Tensor((16,), "float32")')
    return tuple(t.type for t in given)


def _call_tir(func: Any, args: Sequence[Any], out_sinfo: Any, tir_vars: Sequence[Any] = (),
              over: Sequence[int] = ()) -> Unbound:
    if not isinstance(func, PrimFunc):
        raise GraphError(f"call_tir of {described(func)}", "cls.f is a function of blocks of the module")
    return _call(Kernel(func, _types(out_sinfo), tuple(tir_vars), tuple(over)), args)


def _call_dps_packed(func: str, args: Sequence[Any], out_sinfo: Any) -> Unbound:
    return _call(Extern(func, _types(out_sinfo)), args)


def _call_if(condition: Any, then: Function, orelse: Function, args: Sequence[Any]) -> Unbound:
    return _call(If(then, orelse), [condition, *args])


def _call_loop(body: Function, args: Sequence[Any], carried: int, steps: Any = 0) -> Unbound:
    return _call(Loop(body, carried, steps), args)


def te_call(rule: Callable[..., Any], *args: Any, **kwargs: Any) -> Unbound:
    """R.call_te(rule, ...): a rule of te of the Python around the script."""
    if not callable(rule):
        raise GraphError(f"call_te of {described(rule)}", "a rule is a function that makes te tensors of te tensors")
    return _operator(rule)(*args, **kwargs)


_OTHERS: dict[str, Any] = {
    **FORMS, "Tensor": Annotation("Tensor", _tensor), "Tuple": Annotation("Tuple", _tuple), "const": _const,
    "array": lambda v: v.data if isinstance(v, Value) else v, "shape": tuple, "call_tir": _call_tir,
    "call_dps_packed": _call_dps_packed, "call_if": _call_if, "call_loop": _call_loop, "call_te": te_call}
NAMES: dict[str, Any] = {**{n: _operator(getattr(topi, n)) for n in topi.__all__ if callable(getattr(topi, n))},
                         **_OTHERS}
NAMES["function"] = FunctionDecorator(_Dialect)


@register_hook("script.relax")
def names() -> dict[str, Any]:
    """The names of R."""
    return NAMES

