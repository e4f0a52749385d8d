"""The decorator of schedule primitives: method, trace entry, all-or-nothing, and errors that show the IR."""
from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ParamSpec, TypeVar

from tilewright.schedule.schedule import Schedule, Snapshot
from tilewright.schedule.state import BlockRV, Index, LoopRV, statements
from tilewright.schedule.trace import RV, Entry, format_arguments, handles_of, plain, replay_json
from tilewright.support.errors import ArgumentError, Illegal, ScheduleError, require, with_hint
from tilewright.tir.node import Node
from tilewright.tir.printer import show
from tilewright.tir.stmt import BlockRealize

P = ParamSpec("P")
R = TypeVar("R")

PRIMITIVES: dict[str, Callable[..., Any]] = {}
_REST: dict[str, str] = {}                    # primitive -> its *args parameter, or ""


def primitive(fn: Callable[P, R]) -> Callable[P, R]:
    """Make fn(sch, ...) a method of Schedule and a row of PRIMITIVES.

    A call is recorded as one entry of the trace, also when fn calls other primitives. A failed `require` puts
    the schedule back as it was and is raised as a ScheduleError with the call, the marked IR and the hint.
    """
    signature = inspect.signature(fn)
    name = fn.__name__
    rest = next((p.name for p in signature.parameters.values() if p.kind is p.VAR_POSITIONAL), "")
    defaults = {p.name: p.default for p in signature.parameters.values() if p.default is not p.empty}

    @functools.wraps(fn)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as why:
            raise ArgumentError(f"{name}{_readable(signature)}: {why}") from None
        arguments = dict(bound.arguments)
        sch = arguments.pop(next(iter(signature.parameters)))
        for k, default in defaults.items():
            if k in arguments and type(arguments[k]) is type(default) and arguments[k] == default:
                del arguments[k]
        arguments = {k: plain(v) for k, v in arguments.items()}
        return _run(sch, fn, args, kwargs, Entry(name, arguments, (), rest=rest))

    PRIMITIVES[name], _REST[name] = call, rest
    setattr(Schedule, name, call)
    return call


def _run(sch: Schedule, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any],
         entry: Entry) -> Any:
    saved = sch.snapshot()
    sch.depth += 1
    try:
        out = fn(*args, **kwargs)
        if sch.depth == 1:
            sch.retire(saved, entry.primitive)
    except BaseException as why:
        sch.restore(saved)
        if isinstance(why, Illegal) and sch.depth == 1:
            focus = next((a.func for a in _handles(entry.arguments) if a.func in saved[0]), sch.focus)
            raise _rendered(saved[0][focus], entry, why) from None
        raise
    finally:
        sch.depth -= 1
    if sch.depth == 0:
        _record(sch, saved, entry, out)
    return out


def _rendered(func: Any, entry: Entry, why: Illegal) -> ScheduleError:
    def name_of(rv: RV) -> str:
        return rv.var.name if isinstance(rv, LoopRV) else rv.name

    call = f"{entry.primitive}({format_arguments(entry.arguments, entry.rest, name_of)})"
    program = show(func, [n for n in why.at if isinstance(n, Node)])
    return ScheduleError(with_hint(f"{call}: {why}\n\n{program}", why.hint))


def _record(sch: Schedule, saved: Snapshot, entry: Entry, out: Any) -> None:
    """Append the entry; a handle that no entry gave (made from a node) is introduced first."""
    for rv in _handles(entry.arguments):
        if not sch.trace.defines(rv):
            sch.trace.entries += _introduction(saved, rv)
    sch.trace.entries.append(replace(entry, outputs=handles_of(out), single=isinstance(out, RV)))


def _introduction(saved: Snapshot, rv: RV) -> list[Entry]:
    """The queries that give rv in the state before the call."""
    if isinstance(rv, BlockRV):
        return [Entry("get_block", {"name": rv.name, "func_name": rv.func}, (rv,), True)]
    index = Index(saved[0][rv.func].body)
    block = next(s for s in statements(index.loops[rv.var]) if isinstance(s, BlockRealize))
    block_rv = BlockRV(block.block.name, rv.func)
    loops = tuple(LoopRV(loop.loop_var, rv.func) for loop in index.loops_above(block))
    return [*_introduction(saved, block_rv), Entry("get_loops", {"block": block_rv}, loops)]


def _handles(arguments: Mapping[str, Any]) -> list[RV]:
    found: list[RV] = []
    stack: list[Any] = list(arguments.values())[::-1]
    while stack:
        top = stack.pop()
        if isinstance(top, RV):
            found.append(top)
        elif isinstance(top, (list, tuple)):
            stack.extend(reversed(top))
    return found


def _readable(signature: inspect.Signature) -> str:
    parameters = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    return f"({', '.join(map(str, parameters[1:]))})"


def replay(data: Sequence[Any], sch: Schedule) -> list[RV]:
    """Run a trace stored by `sch.trace.as_json()` on another schedule; the handles that its last entry gave.

    Raises ScheduleError where an entry is not legal there.
    """
    return replay_json(data, sch, _REST)


# ---- queries are recorded too, so that the handles they give can be replayed

@primitive
def get_block(sch: Schedule, name: str, func_name: str | None = None) -> BlockRV:
    """The block called name, in function func_name (without it: the function scheduled last, or the only
    one)."""
    require(isinstance(name, str), f"a block is asked for by its name, not by {name!r}")
    if func_name is None:
        owners = [f for f in sch.scheduled_functions() if name in sch.block_names(f)]
        func_name = sch.focus if sch.focus in owners or not owners else owners[0]
        require(len(owners) <= 1 or func_name == sch.focus,
                f"functions {', '.join(owners)} have a block {name}", hint="pass func_name")
    require(func_name in sch.scheduled_functions(), f"the module has no kernel {func_name!r}",
            hint=f"its kernels are {', '.join(sch.scheduled_functions())}")
    names = sch.block_names(func_name)
    now = sch.current_name(BlockRV(name, func_name))
    require(name in names, f"function {func_name} has no block {name!r}",
            hint=f"it is called {now} now" if now != name else f"its blocks are {', '.join(names)}")
    sch.focus = func_name
    return BlockRV(name, func_name)


@primitive
def get_blocks(sch: Schedule, func_name: str | None = None) -> list[BlockRV]:
    """All blocks of a function except the root, in program order."""
    name = sch.focus if func_name is None else func_name
    require(isinstance(name, str) and name in sch.scheduled_functions(), f"the module has no kernel {name!r}",
            hint=f"its kernels are {', '.join(sch.scheduled_functions())}")
    return [BlockRV(b, name) for b in sch.block_names(name) if b != "root"]


@primitive
def get_loops(sch: Schedule, block: BlockRV | str) -> list[LoopRV]:
    """The loops around a block, outermost first."""
    return [sch.loop_rv(loop) for loop in sch.loops_above(sch.realize(block))]


@primitive
def get_producers(sch: Schedule, block: BlockRV | str) -> list[BlockRV]:
    """The blocks that write a buffer that block reads, in program order."""
    return [sch.block_rv(b) for b in sch.producers(sch.realize(block).block.name)]


@primitive
def get_consumers(sch: Schedule, block: BlockRV | str) -> list[BlockRV]:
    """The blocks that read a buffer that block writes, in program order."""
    return [sch.block_rv(b) for b in sch.consumers(sch.realize(block).block.name)]
