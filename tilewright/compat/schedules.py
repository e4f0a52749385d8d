"""Names of tvm.tir.schedule and the modules in it."""
from __future__ import annotations

import functools
import inspect
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tilewright.compat.instructions import Instruction, InstructionKind
from tilewright.schedule import BlockRV, ExprRV, LoopRV, Schedule, Trace
from tilewright.schedule.analysis.dataflow import is_output
from tilewright.schedule.primitives import layout
from tilewright.schedule.srefs import BlockScope, Dependency, DepKind, ScheduleState, StmtSRef
from tilewright.support.errors import ScheduleError, described
from tilewright.tir import IRModule, PrimFunc, assert_structural_equal, intrinsic


class TvmSchedule(Schedule):
    """A schedule as programs of TVM take it: a new layout of an argument changes the signature."""

    def _transform_layout(self, *args: Any, **kwargs: Any) -> None:
        layout.transform_layout(self, *args, **{"of_arguments": True, **kwargs})

    transform_layout = functools.wraps(layout.transform_layout)(_transform_layout)


TvmSchedule.__name__ = TvmSchedule.__qualname__ = "Schedule"
_CLASSES = {"Schedule": TvmSchedule, "ScheduleError": ScheduleError, "BlockRV": BlockRV, "LoopRV": LoopRV,
            "ExprRV": ExprRV, "Trace": Trace}
_STATE = {"ScheduleState": ScheduleState, "StmtSRef": StmtSRef, "BlockScope": BlockScope, "Dependency": Dependency,
          "DepKind": DepKind}
_INSTRUCTIONS = {"Instruction": Instruction, "InstructionKind": InstructionKind}


def type_checked(func: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator: a call whose arguments are not of the annotated types raises TypeError."""
    signature = inspect.signature(func)

    @functools.wraps(func)
    def call(*args: Any, **kwargs: Any) -> Any:
        hints = typing.get_type_hints(func)
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        for name, value in bound.arguments.items():
            if name in hints and not _fits(value, hints[name]):
                raise TypeError(f"In `{func.__qualname__}`, type of `{name}` is expected to be `{hints[name]}`, but "
                                f"{described(value)} was given")
        return func(*bound.args, **bound.kwargs)
    return call


def _fits(value: Any, hint: Any) -> bool:
    """True when value is of the type that an annotation says; what is no type of typing's is taken to fit."""
    if hint is Any or isinstance(hint, (str, typing.TypeVar, typing.ForwardRef)):
        return True
    if hint is None or hint is type(None):
        return value is None
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return any(_fits(value, one) for one in inner)
    if origin is tuple:
        return isinstance(value, tuple) and (
            all(_fits(v, inner[0]) for v in value) if len(inner) == 2 and inner[1] is ... else
            len(value) == len(inner) and all(map(_fits, value, inner)))
    if origin in (list, set, frozenset) or isinstance(origin, type) and issubclass(origin, Sequence):
        return isinstance(value, origin) and not isinstance(value, str) and all(
            _fits(v, one) for one in inner for v in value)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return isinstance(value, origin) and all(
            _fits(k, inner[0]) and _fits(v, inner[1]) for k, v in value.items() if inner)
    if isinstance(origin, type):                               # a Callable, a Type[...]
        return isinstance(value, origin)
    return not isinstance(hint, type) or isinstance(value, hint)


def is_output_block(sch: Schedule, block: BlockRV) -> bool:
    """True when the block writes an argument of the function."""
    return any(is_output(sch, region.buffer) for region in sch.get(block).writes)      # type: ignore[union-attr]


def assert_equal_without_symbols(a: PrimFunc, b: PrimFunc) -> None:
    """Raises StructuralError unless the functions are equal, whatever they are called."""
    assert_structural_equal(a.without_attr("global_symbol"), b.without_attr("global_symbol"))


def verify_trace_roundtrip(sch: Schedule, mod: PrimFunc | IRModule, **_: object) -> Schedule:
    """A schedule of mod to which the trace of sch, stored as JSON, was applied. Raises StructuralError unless it is as
    sch is.
    """
    again = Schedule(mod)
    Trace.apply_json_to_schedule(sch.trace.as_json(), again)
    assert_structural_equal(again.mod, sch.mod)
    return again


def ret(val: Any, span: object = None) -> Any:
    """The value that a function returns: the last thing that it evaluates."""
    return intrinsic("ret", val)


_ALL = {**_CLASSES, **_STATE, **_INSTRUCTIONS}
MODULES: dict[str, tuple[Mapping[str, Any], str]] = {
    "tvm.tir.schedule": (_ALL, "Schedules of blocks."),
    "tvm.tir.schedule.schedule": (_CLASSES, "A part of tvm.tir.schedule."),
    "tvm.tir.schedule.state": (_STATE, "A part of tvm.tir.schedule."),
    "tvm.tir.schedule.block_scope": (_STATE, "A part of tvm.tir.schedule."),
    "tvm.tir.schedule.trace": ({"Trace": Trace}, "A part of tvm.tir.schedule."),
    "tvm.tir.schedule.instruction": (_INSTRUCTIONS, "A part of tvm.tir.schedule."),
    "tvm.tir.schedule.analysis": ({"is_output_block": is_output_block}, "Questions about blocks."),
    "tvm.tir.schedule.testing": ({
        "verify_trace_roundtrip": verify_trace_roundtrip,
        "assert_structural_equal_ignore_global_symbol": assert_equal_without_symbols}, "Checks of schedules."),
    "tvm.tir.schedule._type_checker": ({"type_checked": type_checked}, "Types of arguments."),
}
# the names that stand in tvm.tir as well
NAMES: dict[str, Any] = {name: _ALL[name] for name in (
    "Schedule", "ScheduleError", "ScheduleState", "StmtSRef", "BlockScope")} | {"ret": ret}
