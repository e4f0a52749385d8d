"""The passes from a scheduled function of blocks to a flat one, in order."""
from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import NamedTuple

from tilewright.lowering.align_strides import align_strides
from tilewright.lowering.assert_bounds import assert_bounds
from tilewright.lowering.carried_buffers import lift_carried_buffers
from tilewright.lowering.check_bounds import check_bounds, check_data_indices, check_views
from tilewright.lowering.compact_buffers import compact_buffers
from tilewright.lowering.cross_thread_reduction import lower_cross_thread_reductions
from tilewright.lowering.double_buffer import lower_double_buffers
from tilewright.lowering.flatten_buffers import flatten_buffers
from tilewright.lowering.hoist_guards import hoist_guards
from tilewright.lowering.inject_prefetch import inject_prefetches
from tilewright.lowering.instruments import PassInfo, observed
from tilewright.lowering.intrin_rules import RULES, apply_rules
from tilewright.lowering.lower_blocks import lower_blocks
from tilewright.lowering.lower_match_buffer import lower_match_buffer
from tilewright.lowering.merge_kernels import merge_kernels
from tilewright.lowering.partition_loops import partition_loops
from tilewright.lowering.pass_context import NEEDED, Options, PrimFuncPass, current_options
from tilewright.lowering.plan_buffer_allocation import plan_buffer_allocation
from tilewright.lowering.reduction_init import lower_reduction_init
from tilewright.lowering.refuse_overruns import refuse_overruns, refuse_view_overruns
from tilewright.lowering.relax_guards import relax_private_guards
from tilewright.lowering.simplify import simplify
from tilewright.lowering.software_pipeline import lower_software_pipelines
from tilewright.lowering.split_lanes import split_lanes
from tilewright.lowering.storage import hoist_allocations
from tilewright.lowering.thread_loops import unify_thread_loops
from tilewright.lowering.unroll import unroll
from tilewright.lowering.vectorize import vectorize
from tilewright.lowering.virtual_threads import lower_virtual_threads
from tilewright.lowering.widen_indices import widen_constant_indices, widen_indices
from tilewright.support import config
from tilewright.tir.empty_reductions import start_empty_reductions
from tilewright.tir.node import Node, rewrite
from tilewright.tir.stmt import SERIAL, UNROLLED, VECTORIZED, BlockRealize, For, IRModule, PrimFunc, Stmt
from tilewright.tir.verify import verify


class Pass(NamedTuple):
    """A rewrite PrimFunc -> PrimFunc; `stage` is the form of its result ("block", "loop" or "flat")."""
    name: str
    run: Callable[[PrimFunc], PrimFunc]
    stage: str


PASSES: tuple[Pass, ...] = (
    Pass("refuse_view_overruns", refuse_view_overruns, "block"),
    Pass("lower_match_buffer", lower_match_buffer, "block"),
    Pass("start_empty_reductions", start_empty_reductions, "block"),
    Pass("lower_cross_thread_reductions", lower_cross_thread_reductions, "block"),
    Pass("plan_buffer_allocation", plan_buffer_allocation, "block"),
    Pass("lower_double_buffers", lower_double_buffers, "block"),
    Pass("lower_reduction_init", lower_reduction_init, "block"),
    Pass("lower_blocks", lower_blocks, "loop"),
    Pass("refuse_overruns", refuse_overruns, "loop"),
    Pass("assert_bounds", assert_bounds, "loop"),
    Pass("merge_kernels", merge_kernels, "loop"),
    Pass("lift_carried_buffers", lift_carried_buffers, "loop"),
    Pass("compact_buffers", compact_buffers, "loop"),
    Pass("relax_private_guards", relax_private_guards, "loop"),
    Pass("inject_prefetches", inject_prefetches, "loop"),
    Pass("lower_software_pipelines", lower_software_pipelines, "loop"),
    Pass("unify_thread_loops", unify_thread_loops, "loop"),
    Pass("lower_virtual_threads", lower_virtual_threads, "loop"),
    Pass("align_strides", align_strides, "loop"),
    Pass("check_data_indices", check_data_indices, "loop"),
    Pass("flatten_buffers", flatten_buffers, "flat"),
    Pass("widen_indices", widen_indices, "flat"),
    Pass("partition_loops", partition_loops, "flat"),
    Pass("simplify", simplify, "flat"),
    Pass("hoist_guards", hoist_guards, "flat"),
    Pass("hoist_allocations", hoist_allocations, "flat"),
    Pass("split_lanes", split_lanes, "flat"),
    Pass("vectorize", vectorize, "flat"),
    Pass("unroll", unroll, "flat"),
)

SIMPLE_PASSES: tuple[Pass, ...] = (
    Pass("lower_match_buffer", lower_match_buffer, "block"),
    Pass("start_empty_reductions", start_empty_reductions, "block"),
    Pass("lower_cross_thread_reductions", lower_cross_thread_reductions, "block"),
    Pass("plan_buffer_allocation", plan_buffer_allocation, "block"),
    Pass("lower_reduction_init", lower_reduction_init, "block"),
    Pass("lower_blocks", lower_blocks, "loop"),
    Pass("merge_kernels", merge_kernels, "loop"),
    Pass("lift_carried_buffers", lift_carried_buffers, "loop"),
    Pass("compact_buffers", compact_buffers, "loop"),
    Pass("unify_thread_loops", unify_thread_loops, "loop"),
    Pass("align_strides", align_strides, "loop"),
    Pass("flatten_buffers", flatten_buffers, "flat"),
    Pass("widen_constant_indices", widen_constant_indices, "flat"),
    Pass("simplify", simplify, "flat"),
)

_dumps = itertools.count()


_FOUND_AT_RUN_TIME = ("refuse_view_overruns", "refuse_overruns", "assert_bounds")      # by checked builds
CHECK_VIEWS = Pass("check_views", check_views, "block")
CHECK_BOUNDS = Pass("check_bounds", check_bounds, "loop")


def passes_for(options: Options, simple_mode: bool = False) -> list[Pass]:
    """The list under `options`: the user's passes in their places, and the checks of a checked build."""
    out: list[Pass] = []
    for p in SIMPLE_PASSES if simple_mode else PASSES:
        if p.name == "lower_match_buffer" and options.checked and not simple_mode:
            out.append(CHECK_VIEWS)
        if p.name == "flatten_buffers":
            out += _own(options.phase(0), "loop")
            out += [CHECK_BOUNDS] if options.checked and not simple_mode else []
        if p.name == "split_lanes":
            out += [Pass(f"serial_{name}", functools.partial(_serial, _KINDS[name]), "flat") for name in options.skipped
                    if name in NEEDED]
        found_at_run_time = options.checked and p.name in _FOUND_AT_RUN_TIME
        if p.name not in options.skipped and not found_at_run_time:
            out.append(p)
        if p.name == "simplify":
            out += _own(options.phase(1), "flat")
    return out + _own(options.phase(2, 3), "flat")


_KINDS = {"vectorize": VECTORIZED, "unroll": UNROLLED}


def _serial(kind: str, func: PrimFunc) -> PrimFunc:
    """func whose loops of `kind` are serial."""
    def change(node: Node) -> Node | None:
        return node.replace(kind=SERIAL) if isinstance(node, For) and node.kind == kind else None

    body = rewrite(func.body, change)
    assert isinstance(body, Stmt)
    return func.with_body(body)


def _run(p: Pass, func: PrimFunc, options: Options) -> PrimFunc:
    if not options.instruments:
        return p.run(func)
    module = observed(PassInfo(0, p.name), IRModule({func.name: func}),
                      lambda m: IRModule({func.name: p.run(m[func.name])}), options.instruments)
    return module[func.name]


def _own(passes: Sequence[PrimFuncPass], stage: str) -> list[Pass]:
    return [Pass(p.name or "own_pass", p, stage) for p in passes]


def lower(func: PrimFunc, target: object = None, simple_mode: bool = False,
          options: Options | None = None) -> PrimFunc:
    """The flat form of a scheduled function: no blocks, one index per access, explicit vectors.

    With simple_mode the form before partition, vectorisation and unrolling, meant for reading: loops keep
    their kinds and guards stand as `if likely(...)`. `target` is accepted for the passes that will depend
    on it; options default to those in force (PassContext, TILEWRIGHT_CHECKED). TILEWRIGHT_VERIFY
    checks the result of every pass, TILEWRIGHT_DUMP=folder writes it there. Raises
    LowerError for a function that has no flat form, StructuralError when the verifier objects.
    """
    options = current_options() if options is None else options
    passes = passes_for(options, simple_mode)
    if RULES:
        func = apply_rules(func, str(getattr(target, "kind", "llvm")))
    check, folder = bool(config.get("VERIFY")), config.get("DUMP")
    number = next(_dumps) if folder else 0
    for step, p in enumerate(passes):
        func = _run(p, func, options)
        if check:                                        # a function of plain loops has no blocks from the start
            has_blocks = isinstance(func.body, BlockRealize)
            verify(func, stage="loop" if p.stage == "block" and not has_blocks else p.stage)
        if folder:
            config.dump(f"{number:03d}_{func.name}_{step:02d}_{p.name}.py", f"{func}\n")
    return func
