"""The trace of a schedule: printable as Python, storable as JSON, replayable on another function."""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright.schedule.state import BlockRV, LoopRV
from tilewright.support.errors import ScheduleError
from tilewright.tir.expr import FloatImm, IntImm, IterVar

RV = LoopRV | BlockRV
FORMAT = 1                                    # of as_json


@dataclass(frozen=True)
class Entry:
    """One call of a primitive. `rest` names the argument that is passed as *args, if any."""
    primitive: str
    arguments: Mapping[str, Any]
    outputs: tuple[RV, ...]
    single: bool = False                      # the primitive returned one handle, not a list
    rest: str = ""


class Trace:
    """The entries of a schedule, in order."""

    def __init__(self, entries: Sequence[Entry] = ()) -> None:
        self.entries = list(entries)

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries)

    def copy(self) -> Trace:
        return Trace(self.entries)

    def defines(self, rv: RV) -> bool:
        """True when some entry gave the handle rv."""
        return any(rv == out for entry in reversed(self.entries) for out in entry.outputs)

    def as_python(self) -> list[str]:
        """One line of Python per entry, on a schedule named `sch`."""
        names = _Names()
        lines = []
        for entry in self.entries:
            call = f"sch.{entry.primitive}({format_arguments(entry.arguments, entry.rest, names.of)})"
            outputs = [names.define(rv) for rv in entry.outputs]
            comma = "," if len(outputs) == 1 and not entry.single else ""
            lines.append(f"{', '.join(outputs)}{comma} = {call}" if outputs else call)
        return lines

    def __str__(self) -> str:
        body = self.as_python() or ["pass"]
        return "\n".join(["def apply_trace(sch) -> None:", *[f"  {line}" for line in body]])

    __repr__ = __str__

    def show(self) -> None:
        print(self)

    def as_json(self) -> list[Any]:
        """[format, [[primitive, arguments, outputs], ...]] of lists, dicts, strings, numbers and None."""
        names = _Names()
        rows = []
        for entry in self.entries:
            arguments = {k: _encode(v, names) for k, v in entry.arguments.items()}
            rows.append([entry.primitive, arguments, [names.define(rv) for rv in entry.outputs]])
        return [FORMAT, rows]

    def apply_to_schedule(self, sch: Any) -> list[RV]:
        """Run every entry on sch (a Schedule); the handles that the last entry gave.

        Raises ScheduleError where an entry is not legal there or gives a different number of handles.
        """
        table: dict[RV, RV] = {}
        outputs: list[RV] = []
        for entry in self.entries:
            arguments = {k: _map_handles(v, table) for k, v in entry.arguments.items()}
            outputs = _call(sch, entry.primitive, entry.rest, arguments, len(entry.outputs))
            table.update(zip(entry.outputs, outputs, strict=True))
        return outputs


def replay_json(data: Sequence[Any], sch: Any, rest_of: Mapping[str, str]) -> list[RV]:
    """Run a trace in the form of `Trace.as_json` on sch; rest_of names the *args argument of each primitive.

    Raises ScheduleError for a format or a primitive that is not known.
    """
    version, rows = data
    if version != FORMAT:
        raise ScheduleError(f"the trace has format {version}, this version reads {FORMAT}")
    table: dict[str, RV] = {}
    outputs: list[RV] = []
    for name, arguments, names in rows:
        if name not in rest_of:
            raise ScheduleError(f"the trace uses the primitive {name!r}, which does not exist")
        decoded = {k: _decode(v, table) for k, v in arguments.items()}
        outputs = _call(sch, name, rest_of[name], decoded, len(names))
        table.update(zip(names, outputs, strict=True))
    return outputs


def _call(sch: Any, primitive: str, rest: str, arguments: Mapping[str, Any], count: int) -> list[RV]:
    positional: Sequence[Any] = arguments.get(rest, ()) if rest else ()
    named = {k: v for k, v in arguments.items() if k != rest or not rest}
    outputs = handles_of(getattr(sch, primitive)(*positional, **named))
    if len(outputs) != count:
        raise ScheduleError(f"{primitive} gave {len(outputs)} handle(s) here, the trace has {count}: "
                            "the function has another structure than the one that was scheduled")
    return list(outputs)


def handles_of(result: Any) -> tuple[RV, ...]:
    """The handles in what a primitive returned."""
    if isinstance(result, RV):
        return (result,)
    return tuple(x for x in result if isinstance(x, RV)) if isinstance(result, (list, tuple)) else ()


def plain(value: Any) -> Any:
    """An argument as recorded: constants become Python numbers, tuples lists, thread axes their tags."""
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


def format_arguments(arguments: Mapping[str, Any], rest: str, name_of: Any) -> str:
    """`loop=l1, factors=[None, 8]`; handles are written by name_of."""
    parts = []
    for key, value in arguments.items():
        if key == rest:
            parts += [_format(v, name_of) for v in value]
        else:
            parts.append(f"{key}={_format(value, name_of)}")
    return ", ".join(parts)


def _format(value: Any, name_of: Any) -> str:
    if isinstance(value, RV):
        return name_of(value)
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_format(v, name_of) for v in value) + "]"
    if hasattr(value, "same_as"):
        return str(value)
    # without the address that a function's repr shows
    return getattr(value, "__name__", type(value).__name__) if callable(value) else repr(value)


class _Names:
    """b0, l1, l2, ...: the variables of a printed trace, numbered in order of definition."""

    def __init__(self) -> None:
        self._names: dict[RV, str] = {}
        self._count = 0

    def define(self, rv: RV) -> str:
        self._names[rv] = f"{'l' if isinstance(rv, LoopRV) else 'b'}{self._count}"
        self._count += 1
        return self._names[rv]

    def of(self, rv: RV) -> str:
        return self._names[rv]


def _map_handles(value: Any, table: Mapping[RV, RV]) -> Any:
    if isinstance(value, RV):
        return table[value]
    return [_map_handles(v, table) for v in value] if isinstance(value, (list, tuple)) else value


def _encode(value: Any, names: _Names) -> Any:
    if isinstance(value, RV):
        return {"$": names.of(value)}
    if isinstance(value, (list, tuple)):
        return [_encode(v, names) for v in value]
    if isinstance(value, Mapping):
        return {"$map": [[k, _encode(v, names)] for k, v in value.items()]}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise ScheduleError(f"the argument {value} of type {type(value).__name__} cannot be stored in a trace")


def _decode(value: Any, table: Mapping[str, RV]) -> Any:
    if isinstance(value, Mapping):
        return table[value["$"]] if "$" in value else {k: _decode(v, table) for k, v in value["$map"]}
    return [_decode(v, table) for v in value] if isinstance(value, list) else value
