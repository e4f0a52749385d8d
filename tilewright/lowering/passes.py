"""The passes of each kind of target, in order, and which of them run."""
from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from tilewright.lowering.align_strides import align_strides
from tilewright.lowering.assert_bounds import assert_bounds
from tilewright.lowering.carried_buffers import lift_carried_buffers
from tilewright.lowering.check_bounds import check_bounds, check_data_indices, check_views
from tilewright.lowering.compact_buffers import compact_buffers
from tilewright.lowering.cross_thread_reduction import lower_cross_thread_reductions
from tilewright.lowering.double_buffer import lower_double_buffers
from tilewright.lowering.flatten_buffers import flatten_buffers
from tilewright.lowering.guard_accesses import guard_accesses
from tilewright.lowering.guard_steps import guard_steps
from tilewright.lowering.hoist_guards import hoist_guards
from tilewright.lowering.inject_prefetch import inject_prefetches
from tilewright.lowering.intrin_rules import apply_intrin_rules, has_rules
from tilewright.lowering.keep_imports import keep_imports
from tilewright.lowering.lower_blocks import lower_blocks
from tilewright.lowering.lower_match_buffer import lower_match_buffer
from tilewright.lowering.merge_kernels import merge_kernels
from tilewright.lowering.narrow_indices import narrow_indices
from tilewright.lowering.options import (
    BOTH,
    NEEDED,
    OFF,
    OPTIONAL,
    REGISTERED,
    SIMPLE,
    Instrument,
    OwnPass,
    Pass,
    PassOptions,
    PassScope,
    always,
    scoped_options,
)
from tilewright.lowering.outline import outline_parallel_loops, split_kernels
from tilewright.lowering.partition_loops import partition_loops
from tilewright.lowering.plan_buffer_allocation import plan_buffer_allocation
from tilewright.lowering.reduction_init import lower_reduction_init
from tilewright.lowering.refuse_overruns import refuse_overruns, refuse_view_overruns
from tilewright.lowering.relax_guards import relax_private_guards
from tilewright.lowering.remove_no_ops import remove_no_ops
from tilewright.lowering.serialize_loops import SERIALIZED, serialize_loops, serialize_vectors
from tilewright.lowering.simplify import simplify
from tilewright.lowering.software_pipeline import lower_software_pipelines
from tilewright.lowering.split_lanes import split_lanes, split_lanes_by_registers
from tilewright.lowering.storage import hoist_allocations
from tilewright.lowering.thread_loops import unify_thread_loops
from tilewright.lowering.transpose_tiles import transpose_tiles
from tilewright.lowering.unroll import unroll
from tilewright.lowering.vectorize import vectorize
from tilewright.lowering.virtual_threads import lower_virtual_threads
from tilewright.lowering.widen_indices import widen_constant_indices, widen_indices
from tilewright.lowering.widen_small_floats import widen_small_floats
from tilewright.support.errors import ArgumentError, described, nearest
from tilewright.support.target import Target
from tilewright.support.target import target as resolve_target
from tilewright.support.target.kinds import KINDS
from tilewright.tir.empty_reductions import start_empty_reductions
from tilewright.tir.stmt import PrimFunc


def checked(options: PassOptions, target: Target) -> bool:
    """Every index is compared with its extent while the kernel runs."""
    return options.checked


def unchecked(options: PassOptions, target: Target) -> bool:
    """What is outside of its buffer is found before the kernel runs."""
    return not options.checked


def loops_are_serialized(options: PassOptions, target: Target) -> bool:
    """A pass is disabled without which its loops run serially."""
    return any(name in options.disable for name in SERIALIZED)


CPU: tuple[Pass, ...] = (
    Pass("apply_intrin_rules", apply_intrin_rules, "block", BOTH, when=has_rules, takes_options=True),
    Pass("keep_imports", keep_imports, "block"),
    Pass("refuse_view_overruns", refuse_view_overruns, "block", when=unchecked),
    Pass("check_views", check_views, "block", when=checked),
    Pass("lower_match_buffer", lower_match_buffer, "block", BOTH),
    Pass("start_empty_reductions", start_empty_reductions, "block", BOTH),
    Pass("lower_cross_thread_reductions", lower_cross_thread_reductions, "block", BOTH),
    Pass("plan_buffer_allocation", plan_buffer_allocation, "block", BOTH),
    Pass("lower_double_buffers", lower_double_buffers, "block"),
    Pass("lower_reduction_init", lower_reduction_init, "block", BOTH),
    Pass("lower_blocks", lower_blocks, "loop", BOTH),
    Pass("refuse_overruns", refuse_overruns, "loop", when=unchecked),
    Pass("assert_bounds", assert_bounds, "loop", when=unchecked),
    Pass("merge_kernels", merge_kernels, "loop", BOTH),
    Pass("lift_carried_buffers", lift_carried_buffers, "loop", BOTH),
    Pass("compact_buffers", compact_buffers, "loop", BOTH),
    Pass("guard_steps", guard_steps, "loop"),
    Pass("relax_private_guards", relax_private_guards, "loop"),
    Pass("inject_prefetches", inject_prefetches, "loop", use=OPTIONAL),
    Pass("lower_software_pipelines", lower_software_pipelines, "loop"),
    Pass("unify_thread_loops", unify_thread_loops, "loop", BOTH),
    Pass("lower_virtual_threads", lower_virtual_threads, "loop"),
    Pass("align_strides", align_strides, "loop", BOTH),
    Pass("narrow_indices", narrow_indices, "loop", BOTH, OFF),
    Pass("check_data_indices", check_data_indices, "loop"),
    Pass("check_bounds", check_bounds, "loop", when=checked),
    Pass("flatten_buffers", flatten_buffers, "flat", BOTH),
    Pass("widen_indices", widen_indices, "flat"),
    Pass("widen_constant_indices", widen_constant_indices, "flat", SIMPLE),
    Pass("partition_loops", partition_loops, "flat", use=OPTIONAL),
    Pass("simplify", simplify, "flat", BOTH),
    Pass("hoist_guards", hoist_guards, "flat", use=OPTIONAL),
    Pass("hoist_allocations", hoist_allocations, "flat"),
    Pass("serialize_loops", serialize_loops, "flat", when=loops_are_serialized, takes_options=True),
    Pass("split_lanes", split_lanes, "flat", takes_options=True),
    Pass("vectorize", vectorize, "flat", use=OPTIONAL),
    Pass("unroll", unroll, "flat", use=OPTIONAL, takes_options=True),
    Pass("transpose_tiles", transpose_tiles, "flat", use=OPTIONAL, takes_options=True),
    Pass("remove_no_ops", remove_no_ops, "flat", BOTH, OFF),
    Pass("guard_accesses", guard_accesses, "flat"),
    Pass("outline_parallel_loops", outline_parallel_loops, "module"),
    Pass("widen_small_floats", widen_small_floats, "module"),
)
C = tuple(replace(p, run=split_lanes_by_registers) if p.name == "split_lanes" else p for p in CPU)


def without_vectors(rows: tuple[Pass, ...]) -> tuple[Pass, ...]:
    """A list of passes for targets without vectors, on which loops stand in their place."""
    return tuple(Pass("serialize_vectors", serialize_vectors, "flat") if p.name == "vectorize" else p
                 for p in rows if p.name != "split_lanes")


GPU = (*(p for p in CPU if p.stage != "module" and p.name != "hoist_allocations"),
       Pass("split_kernels", split_kernels, "module"), *(p for p in CPU if p.stage == "module"))
# by kinds of targets; back ends add theirs
LISTS: dict[str, tuple[Pass, ...]] = {
    "llvm": CPU, "c": C, **{name: GPU for name, k in KINDS.items() if "max_num_threads" in k.attributes}}


def list_of(kind: str) -> tuple[Pass, ...]:
    """All passes for a kind of target, in order, those that are off by default among them.

    What has no list is lowered to be looked at, as for "llvm".
    """
    return LISTS.get(kind, CPU)


def use_list(kind: str, rows: tuple[Pass, ...]) -> None:
    """Let a list of passes be that of a kind of targets."""
    LISTS[kind] = rows


def passes_for(options: PassOptions, target: Target, simple_mode: bool = False, module: bool = False) -> list[Pass]:
    """The passes that run, in order: those of the list, and those of the program at their places.

    module: those from a flat function to the functions that code is made of, instead of those to a flat function.
    """
    out: list[Pass] = []
    stage, own = "block", options.own
    for row in list_of(target.kind):
        out += [replace(p, stage=stage) for p in own if p.place == f"before {row.name}"]
        stage = row.stage
        out += [row, *(replace(p, stage=stage) for p in own if p.place == f"after {row.name}")]
    return [replace(p, run=functools.partial(p.run, options=options, target=target)) if p.takes_options else p
            for p in out if p.runs(options, target, simple_mode) and (p.stage == "module") == module]


PASSES = tuple(passes_for(PassOptions(), resolve_target("llvm")))            # without options
SIMPLE_PASSES = tuple(passes_for(PassOptions(), resolve_target("llvm"), simple_mode=True))


# ---------------------------------------------------------------------------------------------- what programs ask for

def pass_options(*, checked: bool | None = None, disable: Sequence[str] = (), enable: Sequence[str] = (),
                 passes: Sequence[OwnPass] = (), instruments: Sequence[Instrument] = ()) -> PassScope:
    """The options of every lowering inside the `with`, on top of those around it.

        with tw.pass_options(disable=["vectorize"], passes=[own_pass("after simplify", mine)], instruments=[record]):

    checked: as in `build`; disable: optional passes that are left out; enable: passes off by default that run; passes:
    of the program; instruments: what looks on. Raises ArgumentError for a name that no pass has, and for a pass that
    others rely on.
    """
    around = scoped_options(checked)
    own = (*around.passes, *_items("passes", passes, OwnPass, 'one made by own_pass("after simplify", f)'))
    instruments = _items("instruments", instruments, Instrument, "an object of a subclass of Instrument")
    rows = {p.name: p for p in (*_rows(), *REGISTERED.values(), *own)}
    off, on = ({_known("pass", name, rows) for name in _items(what, names, str, "the name of a pass")}
               for what, names in (("disable", disable), ("enable", enable)))
    needed = next((name for name in sorted(off) if rows[name].use == NEEDED), None)
    if needed is not None:
        raise ArgumentError(f"pass_options: {needed} cannot be disabled: others rely on it",
                            f"these can: {', '.join(n for n, p in rows.items() if p.use == OPTIONAL)}")
    return PassScope(replace(around, disable=tuple(sorted({*around.disable, *off} - on)), passes=own,
                             enable=tuple(sorted({*around.enable, *on} - off)),
                             instruments=(*around.instruments, *instruments)))


def own_pass(place: str, run: Callable[[PrimFunc], PrimFunc], name: str = "", off: bool = False,
             when: Callable[[PassOptions, Target], bool] = always) -> OwnPass:
    """A pass of a program, at `place`: "before NAME" or "after NAME" of a pass of the list, whether that runs or not.

    name: its own, that of `run` unless given; off: it runs only where it is enabled; when: a condition. Raises
    ArgumentError for a place that there is not.
    """
    _known("place", place, [f"{where} {p.name}" for p in _rows() for where in ("before", "after")])
    if not callable(run):
        raise ArgumentError(f"own_pass: {described(run)} is not a function")
    return OwnPass(name or getattr(run, "__name__", "own_pass"), run, "", BOTH, OFF if off else OPTIONAL, when,
                   place=place)


def register_pass(own: OwnPass) -> None:
    """Let a pass of a program stand in all lists, until `REGISTERED.pop(name)`.

    Raises ArgumentError where its name is taken.
    """
    if own.name in REGISTERED or any(p.name == own.name for p in _rows()):
        raise ArgumentError(f"register_pass: there is a pass {own.name} already")
    REGISTERED[own.name] = own


def _rows() -> list[Pass]:
    return [p for rows in LISTS.values() for p in rows]


def _known(what: str, name: str, names: Iterable[str]) -> str:
    if name not in names:
        raise ArgumentError(f"there is no {what} {name!r} in the lists of passes",
                            nearest(str(name), names) or "`tilewright passes` shows them")
    return name


def _items(what: str, given: Any, kind: type, wanted: str) -> tuple[Any, ...]:
    if not isinstance(given, (list, tuple)) or not all(isinstance(item, kind) for item in given):
        raise ArgumentError(f"pass_options: {what} is {described(given)}", f"a list, each item {wanted}")
    return tuple(given)
