"""The decorator of schedule primitives: method, trace entry, all-or-nothing, and errors that show the IR."""
from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ParamSpec, TypeVar

from tilewright.schedule.analysis.privacy import require_own_values
from tilewright.schedule.analysis.shared_work import require_shared_work
from tilewright.schedule.handles import RV, format_arguments, handles_in, handles_of, map_handles, plain
from tilewright.schedule.schedule import Schedule, Snapshot
from tilewright.schedule.state import BlockRV, ExprRV, Index, LoopRV
from tilewright.schedule.trace import KINDS, Entry, Kind, Trace
from tilewright.support.errors import ArgumentError, Illegal, ScheduleError, described, require, with_hint
from tilewright.tir.node import Node, statements
from tilewright.tir.printer import show
from tilewright.tir.stmt import BlockRealize

P = ParamSpec("P")
R = TypeVar("R")

PRIMITIVES: dict[str, Callable[..., Any]] = {}
_OLDER = {"blockize": {"loop": "target"}}              # names that arguments had in earlier years


def primitive(fn: Callable[P, R]) -> Callable[P, R]:
    """Make fn(sch, ...) a method of Schedule and a row of PRIMITIVES.

    A call is recorded as one entry of the trace, also when fn calls other primitives. After it, what iterations have
    to themselves must be as require_own_values has it, and what threads share as require_shared_work has it, whatever
    was rewritten. A failed `require` puts the schedule back as it was and is raised as a ScheduleError with the call,
    the marked IR and the hint.
    fn gets integers for the handles of sampled integers; the trace keeps the handles.
    """
    return _method(fn)


def query(fn: Callable[P, R]) -> Callable[P, R]:
    """A primitive that changes nothing: it gives handles."""
    return _method(fn, is_pure=True)


def sample(fn: Callable[P, R]) -> Callable[P, R]:
    """A primitive that chooses at random, or takes its argument `decision`; it reports its choice to `sch.amend`."""
    return _method(fn, is_pure=True, samples=True)


def _method(fn: Callable[P, R], is_pure: bool = False, samples: bool = False) -> Callable[P, R]:
    signature = inspect.signature(fn)
    name, parameters = fn.__name__, signature.parameters.values()
    rest = next((p.name for p in parameters if p.kind is p.VAR_POSITIONAL), "")
    defaults = {p.name: p.default for p in parameters if p.default is not p.empty}
    blocks = frozenset(p.name for p in parameters if "BlockRV" in str(p.annotation))
    flags = frozenset(p.name for p in parameters if p.annotation == "bool")
    gives_list = str(signature.return_annotation).startswith("list")
    kind = KINDS[name] = Kind(name, rest, is_pure, samples, blocks, flags, gives_list)
    older = _OLDER.get(name, {})
    names, needed = [p.name for p in parameters], sum(p.default is p.empty for p in parameters)
    most = len(names) if all(p.kind is p.POSITIONAL_OR_KEYWORD for p in parameters) else 0

    @functools.wraps(fn)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        for old, new in older.items():
            if old in kwargs:
                kwargs[new] = kwargs.pop(old)
        if needed <= len(args) <= most and not kwargs:         # the usual call, for which bind gives the same
            arguments: dict[str, Any] = dict(zip(names, args))
        else:
            try:
                arguments = dict(signature.bind(*args, **kwargs).arguments)
            except TypeError as why:
                raise ArgumentError(f"{name}{_readable(signature)}: {why}") from None
        sch = arguments.pop(names[0])
        for k, default in defaults.items():
            if k in arguments and type(arguments[k]) is type(default) and arguments[k] == default:
                del arguments[k]
        arguments = {k: plain(v) for k, v in arguments.items()}
        given, named = tuple(args), dict(kwargs)
        if any(isinstance(rv, ExprRV) for rv in handles_in(arguments.values())):
            given = tuple(map_handles(a, _number) for a in args)
            named = {k: map_handles(v, _number) for k, v in kwargs.items()}
        return _run(sch, fn, given, named, kind, arguments)

    PRIMITIVES[name] = call
    setattr(Schedule, name, call)
    return call


def _number(rv: RV) -> Any:
    return rv.value if isinstance(rv, ExprRV) else rv


def _run(sch: Schedule, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any], kind: Kind,
         arguments: dict[str, Any]) -> Any:
    if sch.depth == 0 and sch.working_on is not None:
        sch.focus = sch.working_on
    saved = sch.snapshot()
    sch.depth += 1
    try:
        if sch.depth == 1:
            sch.amended = {}
            for rv in handles_in(arguments.values()):
                sch.require_valid(rv)
            for flag in kind.flags & set(arguments):
                require(type(arguments[flag]) is bool, f"{flag} is True or False, not {described(arguments[flag])}")
        out = fn(*args, **kwargs)
        if sch.depth == 1 and not kind.is_pure:
            require_own_values(sch)
            require_shared_work(sch)
            sch.retire(saved, kind.name)
    except BaseException as why:
        sch.restore(saved)
        if isinstance(why, Illegal) and sch.depth == 1:
            owners = [rv.func for rv in handles_in(arguments.values()) if not isinstance(rv, ExprRV)]
            focus = next((f for f in owners if f in saved[0]), sch.focus)
            raise _rendered(saved[0][focus], kind, arguments, why) from None
        raise
    finally:
        sch.depth -= 1
    if sch.depth == 0:
        sch.give(handles_of(out))
        _record(sch, saved, kind, arguments | sch.amended, out)
    return out


def _name_of(rv: RV) -> str:
    return rv.var.name if isinstance(rv, LoopRV) else rv.name if isinstance(rv, BlockRV) else str(rv.value)


def _rendered(func: Any, kind: Kind, arguments: Mapping[str, Any], why: Illegal) -> ScheduleError:
    call = f"{kind.name}({format_arguments(arguments, kind.rest, _name_of)})"
    program = show(func, [n for n in why.at if isinstance(n, Node)])
    return ScheduleError(with_hint(f"{call}: {why}\n\n{program}", why.hint))


def _record(sch: Schedule, saved: Snapshot, kind: Kind, arguments: dict[str, Any], out: Any) -> None:
    """Append the entry; a handle that no entry gave (made from a node) is introduced first.

    Where there are several functions, blocks that were given by name are recorded as handles: the name alone would
    mean the block of whatever function an earlier query was about.
    """
    if len(sch.scheduled_functions()) > 1:
        for k in kind.blocks & set(arguments):
            arguments[k] = _as_handles(arguments[k], saved[4])
    for rv in handles_in(arguments.values()):
        if not isinstance(rv, ExprRV) and not sch.trace.defines(rv):
            for entry in _introduction(saved, rv):
                sch.trace.append(entry)
    arguments = {k: map_handles(v, lambda rv: rv if sch.trace.defines(rv) else _number(rv))
                 for k, v in arguments.items()}
    sch.trace.append(Entry(kind.name, arguments, handles_of(out), isinstance(out, RV)))


def _as_handles(value: Any, func: str) -> Any:
    if isinstance(value, list):
        return [_as_handles(v, func) for v in value]
    return BlockRV(value, func) if isinstance(value, str) else value


def _introduction(saved: Snapshot, rv: RV) -> list[Entry]:
    """The queries that give rv in the state before the call."""
    if isinstance(rv, BlockRV):
        return [Entry("get_block", {"name": rv.name, "func_name": rv.func}, (rv,), True)]
    assert isinstance(rv, LoopRV)
    index = Index(saved[0][rv.func].body)
    block = next(s for s in statements(index.loops[rv.var]) if isinstance(s, BlockRealize))
    block_rv = BlockRV(block.block.name, rv.func)
    loops = tuple(LoopRV(loop.loop_var, rv.func) for loop in index.loops_above(block))
    return [*_introduction(saved, block_rv), Entry("get_loops", {"block": block_rv}, loops)]


def _readable(signature: inspect.Signature) -> str:
    parameters = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    return f"({', '.join(map(str, parameters[1:]))})"


def replay(data: Sequence[Any], sch: Schedule) -> list[RV]:
    """Run a trace stored by `sch.trace.as_json()` on another schedule; the handles that its last entry gave.

    Raises ScheduleError where an entry is not legal there.
    """
    return Trace.from_json(data).apply_to_schedule(sch)


# ---- queries are recorded too, so that the handles they give can be replayed

@query
def get_block(sch: Schedule, name: str, func_name: str | None = None) -> BlockRV:
    """The block called name.

    func_name: the function that it is in. Without it: the one that work_on chose, else the one scheduled last, else
    the only one that has such a block.
    """
    require(isinstance(name, str), f"a block is asked for by its name, not by {name!r}")
    if func_name is None and sch.working_on is not None:
        func_name = sch.working_on
    elif func_name is None:
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
    _amend_function(sch, func_name)
    return BlockRV(name, func_name)


def _amend_function(sch: Schedule, func_name: str) -> None:
    """Record which of several functions a query is about, whatever earlier queries were about."""
    if len(sch.scheduled_functions()) > 1:
        sch.amend(func_name=func_name)


@query
def get_blocks(sch: Schedule, func_name: str | None = None) -> list[BlockRV]:
    """All blocks of a function except the root, in program order.

    func_name: the function; the one scheduled last without it.
    """
    name = sch.focus if func_name is None else func_name
    require(isinstance(name, str) and name in sch.scheduled_functions(), f"the module has no kernel {name!r}",
            hint=f"its kernels are {', '.join(sch.scheduled_functions())}")
    _amend_function(sch, name)
    return [BlockRV(b, name) for b in sch.block_names(name) if b != "root"]


@query
def get_loops(sch: Schedule, block: BlockRV | str) -> list[LoopRV]:
    """The loops around a block, outermost first."""
    return [sch.loop_rv(loop) for loop in sch.loops_above(sch.realize(block))]


@query
def get_producers(sch: Schedule, block: BlockRV | str) -> list[BlockRV]:
    """The blocks that write a buffer that block reads, in program order, among those in the same enclosing block."""
    return [sch.block_rv(b) for b in sch.producers(sch.realize(block).block.name)]


@query
def get_consumers(sch: Schedule, block: BlockRV | str) -> list[BlockRV]:
    """The blocks that read a buffer that block writes, in program order, among those in the same enclosing block."""
    return [sch.block_rv(b) for b in sch.consumers(sch.realize(block).block.name)]


@primitive
def enter_postproc(sch: Schedule) -> None:
    """Mark the place in the trace from which on only postprocessors act; it changes no function.

        sch.split(...); sch.enter_postproc(); sch.unroll(...)   ->   trace.simplified(remove_postproc=True): split

    `Trace.simplified`, `with_decision`, `as_json` and `apply_to_schedule` with remove_postproc=True leave out what
    comes after it.

    Legal when the trace has no such mark yet.
    """
    require(all(entry.primitive != "enter_postproc" for entry in sch.trace), "the postprocessors have begun already")
