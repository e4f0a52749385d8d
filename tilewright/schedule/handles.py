"""Handles in the arguments and results of primitives: finding, replacing, naming, and storing them."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Generic, TypeVar

import numpy as np

from tilewright.schedule.sampled import OPERATORS, Derived, applied
from tilewright.schedule.state import BlockRV, ExprRV, LoopRV
from tilewright.support.errors import ScheduleError, described
from tilewright.tir.expr import FloatImm, IntImm
from tilewright.tir.iter_var import IterVar

RV = LoopRV | BlockRV | ExprRV
_HANDLES = (LoopRV, BlockRV, ExprRV)
_SIMPLE = {str, int, bool, float, type(None)}           # what most arguments are that are no handles
V = TypeVar("V")
_LETTER = {LoopRV: "l", BlockRV: "b", ExprRV: "v"}


class HandleTable(Generic[V]):
    """A value for each handle. The object itself counts first: two handles of one loop may mean different things
    once a decision of the trace changes. A handle that is equal to one that was entered finds that one's value."""

    def __init__(self) -> None:
        self._by_object: dict[int, tuple[RV, V]] = {}
        self._by_value: dict[RV, V] = {}

    def __setitem__(self, rv: RV, value: V) -> None:
        self._by_object[id(rv)] = rv, value
        self._by_value[rv] = value

    def __getitem__(self, rv: RV) -> V:
        found = self._by_object.get(id(rv))
        return self._by_value[rv] if found is None else found[1]

    def __contains__(self, rv: RV) -> bool:
        return rv in self._by_value


class Names(HandleTable[str]):
    """b0, l1, v2, ...: the variables of a printed trace, numbered in order of definition."""

    def __init__(self) -> None:
        super().__init__()
        self._count = 0

    def define(self, rv: RV) -> str:
        self[rv] = f"{_LETTER[type(rv)]}{self._count}"
        self._count += 1
        return self[rv]

    def shown(self, rv: RV) -> str:
        """The variable, or `_` for a handle that no entry gave: of a trace that was cut by hand."""
        return self[rv] if rv in self else "_"


def handles_of(result: Any) -> tuple[RV, ...]:
    """The handles in what a primitive returned."""
    if isinstance(result, _HANDLES):
        return (result,)
    return tuple(x for x in result if isinstance(x, _HANDLES)) if isinstance(result, (list, tuple)) else ()


def handles_in(values: Iterable[Any]) -> Iterator[RV]:
    """The handles in arguments, also inside lists, dicts and arithmetic, in order."""
    for value in values:
        if isinstance(value, _HANDLES):
            yield value
        elif type(value) in _SIMPLE:
            continue
        elif isinstance(value, Derived):
            yield from handles_in((value.left, value.right))
        elif isinstance(value, (list, tuple)):
            yield from handles_in(value)
        elif isinstance(value, Mapping):
            yield from handles_in(value.values())


def map_handles(value: Any, fn: Callable[[RV], Any]) -> Any:
    """value with fn applied to every handle in it; value itself where it holds none."""
    if isinstance(value, _HANDLES):
        return fn(value)
    if type(value) in _SIMPLE:
        return value
    if isinstance(value, Derived):
        return _derived(value.op, map_handles(value.left, fn), map_handles(value.right, fn))
    if isinstance(value, (list, tuple)):
        new = [map_handles(v, fn) for v in value]
        return value if all(a is b for a, b in zip(new, value, strict=True)) else type(value)(new)
    if isinstance(value, Mapping):
        return {k: map_handles(v, fn) for k, v in value.items()}
    return value


def _derived(op: str, left: Any, right: Any) -> Any:
    """left op right; a number where both are."""
    return applied(op, left, right) if type(left) is type(right) is int else Derived(op, left, right)


def plain(value: Any) -> Any:
    """An argument as recorded: constants become Python numbers, tuples lists, thread axes their tags."""
    if type(value) in _SIMPLE or isinstance(value, _HANDLES):
        return value
    if isinstance(value, (IntImm, FloatImm)):
        return bool(value.value) if value.dtype == "bool" else value.value
    if isinstance(value, IterVar):
        return value.thread_tag
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, Mapping):
        return {k: plain(v) for k, v in value.items()}
    return value


# ---- as Python text

def format_arguments(arguments: Mapping[str, Any], rest: str, name_of: Callable[[RV], str]) -> str:
    """`loop=l1, factors=[None, 8]`; handles are written by name_of."""
    parts = []
    for key, value in arguments.items():
        if key == rest:
            parts += [_format(v, name_of) for v in value]
        else:
            parts.append(f"{key}={_format(value, name_of)}")
    return ", ".join(parts)


def _format(value: Any, name_of: Callable[[RV], str]) -> str:
    if isinstance(value, _HANDLES):
        return name_of(value)
    if isinstance(value, Derived):
        return value.text(lambda operand: _format(operand, name_of))
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_format(v, name_of) for v in value) + "]"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{k!r}: {_format(v, name_of)}" for k, v in value.items()) + "}"
    if hasattr(value, "same_as"):
        return str(value)
    # without the address that a function's repr shows
    return getattr(value, "__name__", type(value).__name__) if callable(value) else repr(value)


# ---- as JSON

def encode(value: Any, names: Names) -> Any:
    """value as lists, dicts, strings, numbers and None. Raises ScheduleError for anything else."""
    if isinstance(value, _HANDLES):
        if value not in names:
            raise ScheduleError(f"the trace takes {value}, which no entry before gave")
        return {"$": names[value]}
    if isinstance(value, Derived):
        return {"$op": [value.op, encode(value.left, names), encode(value.right, names)]}
    if isinstance(value, (list, tuple)):
        return [encode(v, names) for v in value]
    if isinstance(value, Mapping):
        return {"$map": [[k, encode(v, names)] for k, v in value.items()]}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise ScheduleError(f"the argument {value} of type {type(value).__name__} cannot be stored in a trace")


def decode(value: Any, table: Mapping[str, RV]) -> Any:
    """What `encode` stored; handles by their names. Raises ScheduleError for a name that is not defined."""
    if isinstance(value, Mapping):
        pairs, name, derived = value.get("$map"), value.get("$"), value.get("$op")
        if isinstance(derived, list) and len(derived) == 3 and derived[0] in tuple(OPERATORS):
            return Derived(derived[0], decode(derived[1], table), decode(derived[2], table))
        if isinstance(pairs, list) and all(
                isinstance(p, list) and len(p) == 2 and isinstance(p[0], str) for p in pairs):
            return {k: decode(v, table) for k, v in pairs}
        if not isinstance(name, str):
            raise ScheduleError(f"the trace has an argument {described(value)}, which is neither a handle nor a dict")
        if name not in table:
            raise ScheduleError(f"the trace uses {name!r} before it is defined")
        return table[name]
    return [decode(v, table) for v in value] if isinstance(value, list) else value


def symbol(name: str) -> RV:
    """A handle of no schedule: it stands for the variable `name` of a stored trace."""
    kinds: dict[str, Callable[[], RV]] = {
        "l": lambda: LoopRV.symbol(name), "b": lambda: BlockRV(name, ""), "v": lambda: ExprRV(0)}
    if not isinstance(name, str) or name[:1] not in kinds:
        raise ScheduleError(f"the trace gives a handle the name {name!r}, which starts with neither b, l nor v")
    return kinds[name[0]]()
