"""The decorator of schedule primitives: method, trace entry, all-or-nothing, and errors that show the IR."""
from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import partial, wraps
from types import MappingProxyType
from typing import Any, ParamSpec, TypeVar, overload

from tilewright.schedule.analysis.lets import bound_outside, require_bound
from tilewright.schedule.analysis.privacy import require_own_values
from tilewright.schedule.analysis.shared_work import require_shared_work
from tilewright.schedule.analysis.starts import require_starts
from tilewright.schedule.handles import RV, format_arguments, handles_in, handles_of, map_handles, plain
from tilewright.schedule.schedule import Schedule, Snapshot
from tilewright.schedule.state import BlockRV, ExprRV, Index, LoopRV
from tilewright.schedule.trace import KINDS, Entry, Kind
from tilewright.support.errors import ArgumentError, Illegal, ScheduleError, described, require, with_hint
from tilewright.tir.node import Node, statements
from tilewright.tir.printer import show
from tilewright.tir.stmt import BlockRealize

P = ParamSpec("P")
R = TypeVar("R")
Rewrite = Callable[[dict[str, Any]], object]           # of arguments, by name

PRIMITIVES: dict[str, Callable[..., Any]] = {}         # filled by the decorators


@overload
def primitive(fn: Callable[P, R], /) -> Callable[P, R]: ...
@overload
def primitive(*, as_text: Rewrite | None = ..., older: Mapping[str, str] = ...
              ) -> Callable[[Callable[P, R]], Callable[P, R]]: ...
def primitive(fn: Callable[..., Any] | None = None, **more: Any) -> Any:
    """Make fn(sch, ...) a method of Schedule and a row of PRIMITIVES.

    - A call is one entry of the trace, also when fn calls other primitives.
    - A failed `require` puts the schedule back as it was. It is raised as a ScheduleError with the call, the marked IR
      and the hint.
    - After the call, whatever was rewritten, lets must be around their uses (require_bound), what iterations have to
      themselves must be as require_own_values has it, what threads share as require_shared_work has it, and what
      reductions start from as require_starts has it.
    - fn gets integers for the handles of sampled integers; the trace keeps the handles.

    as_text: puts arguments into a form that a trace can print and store, such as a function into text. Where it
    refuses them, fn gets them as they are, and says what is wrong, with the program.
    older: names that arguments had in earlier years, and the names that they have now.

    The docstring of fn is its section of docs/primitives.md; the docstring of its module begins with the family under
    which it stands there.
    """
    return partial(_registered, **more) if fn is None else _registered(fn, **more)


def query(fn: Callable[P, R]) -> Callable[P, R]:
    """A primitive that changes nothing: it gives handles."""
    return _registered(fn, is_pure=True)


def sample(fn: Callable[P, R]) -> Callable[P, R]:
    """A primitive that chooses at random, or takes its argument `decision`; it reports its choice to `sch.amend`."""
    return _registered(fn, is_pure=True, samples=True)


def _registered(fn: Callable[..., Any], is_pure: bool = False, samples: bool = False, as_text: Rewrite | None = None,
                older: Mapping[str, str] = MappingProxyType({})) -> Any:
    signature = inspect.signature(fn)
    name, parameters = fn.__name__, signature.parameters.values()
    rest = next((p.name for p in parameters if p.kind is p.VAR_POSITIONAL), "")
    defaults = {p.name: p.default for p in parameters if p.default is not p.empty}
    blocks = frozenset(p.name for p in parameters if "BlockRV" in str(p.annotation))
    flags = frozenset(p.name for p in parameters if p.annotation == "bool")
    gives_list = str(signature.return_annotation).startswith("list")
    kind = KINDS[name] = Kind(name, rest, is_pure, samples, blocks, flags, gives_list)
    names, needed = [p.name for p in parameters], sum(p.default is p.empty for p in parameters)
    most = len(names) if all(p.kind is p.POSITIONAL_OR_KEYWORD for p in parameters) else 0

    @wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        for old, new in older.items():
            if old in kwargs:
                kwargs[new] = kwargs.pop(old)
        if as_text is not None:
            args, kwargs = _with_text(signature, as_text, args, kwargs)
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
        if any(isinstance(rv, ExprRV) for rv in handles_in(arguments.values())):
            args = tuple(map_handles(a, _number) for a in args)
            kwargs = {k: map_handles(v, _number) for k, v in kwargs.items()}
        return _run(sch, fn, args, kwargs, kind, arguments)

    PRIMITIVES[name] = call
    setattr(Schedule, name, call)
    return call


def _with_text(signature: inspect.Signature, as_text: Rewrite, args: tuple[Any, ...],
               kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a call after as_text; as they are where it refuses them."""
    try:
        bound = signature.bind(*args, **kwargs)
        for rv in handles_in(bound.arguments.values()):
            bound.arguments["sch"].require_valid(rv)
        as_text(bound.arguments)
    except (TypeError, Illegal):
        return args, kwargs
    return bound.args, bound.kwargs


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
            for flag in (flag for flag in kind.flags if flag in arguments):
                require(type(arguments[flag]) is bool, f"{flag} is True or False, not {described(arguments[flag])}")
        lets = bound_outside(sch) if sch.depth == 1 and not kind.is_pure else ()
        out = fn(*args, **kwargs)
        if sch.depth == 1 and not kind.is_pure:
            require_bound(sch, lets)
            require_own_values(sch)
            require_shared_work(sch)
            require_starts(sch)
            sch.retire(saved, kind.name)
    except BaseException as why:
        sch.restore(saved)
        if isinstance(why, Illegal) and sch.depth == 1:
            owners = [rv.func for rv in handles_in(arguments.values()) if not isinstance(rv, ExprRV)]
            focus = next((f for f in owners if f in saved[0]), sch.focus)
            raise _rendered(saved[0][focus], kind, arguments, why) from why.__cause__
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
    at = [n for n in why.at if isinstance(n, Node)]
    return ScheduleError(lambda: with_hint(f"{call}: {why}\n\n{show(func, at)}", why.hint))


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
