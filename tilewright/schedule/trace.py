"""The trace of a schedule: printable as Python, storable as JSON, replayable on another function."""
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tilewright.schedule import handles
from tilewright.schedule.session import Session
from tilewright.support.errors import ArgumentError, ScheduleError, described

FORMAT = 2                                    # of as_json
POSTPROC = "enter_postproc"


@dataclass(frozen=True)
class Kind:
    """A primitive as traces know it. `rest` names the argument that is passed as *args, if any."""
    name: str
    rest: str = ""
    is_pure: bool = False                     # it gives handles and changes nothing: dead when none is used
    samples: bool = False                     # it takes a decision
    blocks: frozenset[str] = frozenset()      # the arguments that may name a block
    flags: frozenset[str] = frozenset()       # the arguments that are True or False
    gives_list: bool = False                  # of handles


KINDS: dict[str, Kind] = {}                   # filled by the decorators of primitives


def _checked(row: Any) -> tuple[str, Mapping[str, Any], Any]:
    """A stored entry. Raises ScheduleError unless it is [primitive, arguments, name or names of handles]."""
    if not isinstance(row, (list, tuple)) or len(row) != 3 or not isinstance(row[1], Mapping) \
            or not isinstance(row[2], (str, list, tuple)) or not all(isinstance(k, str) for k in row[1]):
        raise ScheduleError(f"an entry of a trace is [primitive, arguments, outputs], not {described(row)}")
    name, arguments, outputs = row
    if not isinstance(name, str) or name not in KINDS:
        raise ScheduleError(f"the trace uses the primitive {described(name)}, which does not exist")
    rest = KINDS[name].rest
    if not isinstance(arguments.get(rest, []), list):
        raise ScheduleError(f"the argument {rest} of {name} is {described(arguments[rest])}, not a list")
    return name, arguments, outputs


@dataclass(frozen=True, eq=False)
class Entry:
    """One call of a primitive; equal to itself only."""
    primitive: str
    arguments: Mapping[str, Any]
    outputs: tuple[handles.RV, ...] = ()
    single: bool = False                      # the primitive returned one handle, not a list

    @property
    def kind(self) -> Kind:
        return KINDS[self.primitive]

    def same_as(self, other: object) -> bool:
        """True for the same entry."""
        return self is other

    @property
    def inputs(self) -> list[handles.RV]:
        """The handles among the arguments."""
        return list(handles.handles_in(self.arguments.values()))

    @property
    def decision(self) -> Any:
        """What a sampling instruction chose; None for any other primitive."""
        return self.arguments.get("decision") if self.kind.samples else None

    def decided(self, decision: Any) -> Entry:
        """This sampling instruction with another decision (None: it draws when it is replayed)."""
        rest = {k: v for k, v in self.arguments.items() if k != "decision"}
        return replace(self, arguments=rest if decision is None else {**rest, "decision": decision})


class Trace:
    """The entries of a schedule, in order."""

    def __init__(self, insts: Sequence[Entry] = (), decisions: Mapping[Entry, Any] | None = None) -> None:
        """decisions: those of sampling instructions that have none of their own."""
        chosen = decisions or {}
        self.entries = [e.decided(chosen[e]) if e in chosen else e for e in insts]
        entries = self.entries
        self._defined = {rv for entry in entries for rv in entry.outputs}

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries)

    @property
    def insts(self) -> list[Entry]:
        """The entries, by TVM's name."""
        return list(self.entries)

    @property
    def decisions(self) -> dict[Entry, Any]:
        """What each sampling instruction decided."""
        return {entry: entry.decision for entry in self.entries if entry.decision is not None}

    def get_decision(self, inst: Entry) -> Any:
        """What the sampling instruction inst decided; None for other entries."""
        return inst.decision

    def copy(self) -> Trace:
        """A trace of the same entries that grows on its own."""
        return Trace(self.entries)

    def append(self, inst: Entry, decision: Any = None) -> None:
        """Add an entry at the end; with a decision when it is a sampling instruction."""
        self.entries.append(inst if decision is None else inst.decided(decision))
        self._defined.update(inst.outputs)

    def pop(self) -> Entry | None:
        """Take the last entry off and return it; None when there is none."""
        if not self.entries:
            return None
        last = self.entries[-1]
        self.truncate(len(self.entries) - 1)
        return last

    def truncate(self, length: int) -> None:
        """Forget all entries but the first `length`."""
        if length < len(self.entries):
            del self.entries[length:]
            self._defined = {rv for entry in self.entries for rv in entry.outputs}

    def defines(self, rv: handles.RV) -> bool:
        """True when some entry gave the handle rv."""
        return rv in self._defined

    def before_postproc(self) -> Trace:
        """The entries before `enter_postproc`; all of them where there is none."""
        names = [entry.primitive for entry in self.entries]
        return Trace(self.entries[:names.index(POSTPROC)] if POSTPROC in names else self.entries)

    def with_decision(self, inst: Entry, decision: Any, remove_postproc: bool = False) -> Trace:
        """A trace in which the sampling instruction inst of this one has another decision.

        Raises ScheduleError where inst is no sampling instruction of the trace.
        """
        if not any(entry is inst for entry in self.entries) or not inst.kind.samples:
            raise ScheduleError(f"{inst.primitive} is not a sampling instruction of the trace")
        kept = self.before_postproc() if remove_postproc else self
        return Trace([entry.decided(decision) if entry is inst else entry for entry in kept])

    def simplified(self, remove_postproc: bool = False) -> Trace:
        """A trace that does the same without the queries and samples whose handles nothing uses."""
        entries = (self.before_postproc() if remove_postproc else self).entries
        giver: handles.HandleTable[int] = handles.HandleTable()
        needs: list[set[int]] = []
        for k, entry in enumerate(entries):
            needs.append({giver[rv] for rv in entry.inputs})
            for rv in entry.outputs:
                giver[rv] = k
        alive: set[int] = set()
        for k in reversed(range(len(entries))):
            if k in alive or not entries[k].kind.is_pure:
                alive |= {k, *needs[k]}
        return Trace([entry for k, entry in enumerate(entries) if k in alive])

    # ---- as text and as data

    def as_python(self) -> list[str]:
        """One line of Python per entry, on a schedule named `sch`."""
        names = handles.Names()
        lines = []
        for entry in self.entries:
            call = f"sch.{entry.primitive}({handles.format_arguments(entry.arguments, entry.kind.rest, names.shown)})"
            outputs = [names.define(rv) for rv in entry.outputs]
            comma = "," if len(outputs) == 1 and not entry.single else ""
            lines.append(f"{', '.join(outputs)}{comma} = {call}" if outputs else call)
        return lines

    def __str__(self) -> str:
        body = self.as_python() or ["pass"]
        return "\n".join(["def apply_trace(sch) -> None:", *[f"  {line}" for line in body]])

    __repr__ = __str__

    def show(self) -> None:
        """Print the trace as Python."""
        print(self)

    def as_json(self, remove_postproc: bool = False) -> list[Any]:
        """[format, [[primitive, arguments, outputs], ...]] of lists, dicts, strings, numbers and None.

        outputs is one name where the primitive returned one handle, a list of names otherwise. Decisions are
        arguments. Raises ScheduleError for an argument that has no such form.
        """
        names = handles.Names()
        rows = []
        for entry in self.before_postproc() if remove_postproc else self:
            arguments = {k: handles.encode(v, names) for k, v in entry.arguments.items()}
            outputs = [names.define(rv) for rv in entry.outputs]
            rows.append([entry.primitive, arguments, outputs[0] if entry.single else outputs])
        return [FORMAT, rows]

    @staticmethod
    def from_json(data: Sequence[Any]) -> Trace:
        """The trace that `as_json` stored.

        Raises ScheduleError for another format, what is no trace, or a primitive that does not exist.
        """
        if not isinstance(data, (list, tuple)) or len(data) != 2 or not isinstance(data[1], (list, tuple)):
            raise ScheduleError(f"a stored trace is [format, [entry, ...]], not {described(data)}")
        version, rows = data
        if version != FORMAT:
            raise ScheduleError(f"the trace has format {version}, this version reads {FORMAT}")
        table: dict[str, handles.RV] = {}
        out = Trace()
        for row in rows:
            name, arguments, outputs = _checked(row)
            decoded = {k: handles.decode(v, table) for k, v in arguments.items()}
            single = isinstance(outputs, str)
            names = [outputs] if single else outputs
            table.update((n, handles.symbol(n)) for n in names)
            out.append(Entry(name, decoded, tuple(table[n] for n in names), single))
        return out

    @staticmethod
    def apply_json_to_schedule(json_obj: Sequence[Any], sch: Any) -> list[handles.RV]:
        """Run a stored trace on sch: `from_json(json_obj).apply_to_schedule(sch)`."""
        return Trace.from_json(json_obj).apply_to_schedule(sch)

    # ---- replay

    def apply_to_schedule(self, sch: Any, remove_postproc: bool = False,
                          decision_provider: Callable[..., Any] | None = None) -> list[handles.RV]:
        """Run every entry on sch (a Schedule); the handles that the last entry gave.

        With remove_postproc the entries from `enter_postproc` on are left out. decision_provider(inst, inputs,
        attrs, decision) may give a sampling instruction another decision: it gets the entry, the handles on sch that
        it takes, its other arguments, and the decision of the trace.

        Raises ScheduleError where an entry is not legal there or gives a different number of handles; sch is then as
        it was, random state included. Raises ArgumentError where sch is no Schedule.
        """
        if not isinstance(sch, Session):
            raise ArgumentError(f"a trace is applied to a Schedule, not to {described(sch)}", "pass tw.Schedule(func)")
        entries = list(self.before_postproc() if remove_postproc else self)
        saved, random_state = sch.snapshot(), sch.rng.getstate()
        try:
            return _replayed(entries, sch, decision_provider)
        except BaseException:
            sch.restore(saved)
            sch.rng.setstate(random_state)
            raise


def _replayed(entries: Sequence[Entry], sch: Any, decision_provider: Callable[..., Any] | None) -> list[handles.RV]:
    table: handles.HandleTable[handles.RV] = handles.HandleTable()
    outputs: tuple[handles.RV, ...] = ()
    for entry in entries:
        if decision_provider is not None and entry.kind.samples:
            inputs = [table[rv] for rv in entry.inputs]
            attrs = [v for k, v in entry.arguments.items() if k != "decision" and not handles.handles_of(v)]
            entry = entry.decided(decision_provider(entry, inputs, attrs, entry.decision))
        arguments = {k: handles.map_handles(v, table.__getitem__) for k, v in entry.arguments.items()}
        outputs = _call(sch, entry, arguments)
        for old, new in zip(entry.outputs, outputs, strict=True):
            table[old] = new
    return list(outputs)


def _call(sch: Any, entry: Entry, arguments: Mapping[str, Any]) -> tuple[handles.RV, ...]:
    rest = entry.kind.rest
    positional: Sequence[Any] = arguments.get(rest, ()) if rest else ()
    named = {k: v for k, v in arguments.items() if k != rest or not rest}
    outputs = handles.handles_of(getattr(sch, entry.primitive)(*positional, **named))
    count = len(entry.outputs)
    if len(outputs) != count:
        raise ScheduleError(f"{entry.primitive} gave {len(outputs)} handle(s) here, the trace has {count}: "
                            "the function has another structure than the one that was scheduled")
    return outputs


replay = Trace.apply_json_to_schedule
