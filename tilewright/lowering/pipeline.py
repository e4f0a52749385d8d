"""The passes from a scheduled function of blocks to a flat one, in order."""
from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import NamedTuple

from tilewright.lowering.carried_buffers import lift_carried_buffers
from tilewright.lowering.compact_buffers import compact_buffers
from tilewright.lowering.flatten_buffers import flatten_buffers
from tilewright.lowering.hoist_guards import hoist_guards
from tilewright.lowering.lower_blocks import lower_blocks
from tilewright.lowering.partition_loops import partition_loops
from tilewright.lowering.plan_buffer_allocation import plan_buffer_allocation
from tilewright.lowering.reduction_init import lower_reduction_init
from tilewright.lowering.relax_guards import relax_private_guards
from tilewright.lowering.simplify import simplify
from tilewright.lowering.split_lanes import split_lanes
from tilewright.lowering.storage import hoist_allocations
from tilewright.lowering.thread_loops import unify_thread_loops
from tilewright.lowering.unroll import unroll
from tilewright.lowering.vectorize import vectorize
from tilewright.lowering.widen_indices import widen_constant_indices, widen_indices
from tilewright.support import config
from tilewright.tir.empty_reductions import start_empty_reductions
from tilewright.tir.stmt import PrimFunc
from tilewright.tir.verify import verify


class Pass(NamedTuple):
    """A rewrite PrimFunc -> PrimFunc; `stage` is the form of its result ("block", "loop" or "flat")."""
    name: str
    run: Callable[[PrimFunc], PrimFunc]
    stage: str


PASSES: tuple[Pass, ...] = (
    Pass("start_empty_reductions", start_empty_reductions, "block"),
    Pass("plan_buffer_allocation", plan_buffer_allocation, "block"),
    Pass("lower_reduction_init", lower_reduction_init, "block"),
    Pass("lower_blocks", lower_blocks, "loop"),
    Pass("unify_thread_loops", unify_thread_loops, "loop"),
    Pass("lift_carried_buffers", lift_carried_buffers, "loop"),
    Pass("compact_buffers", compact_buffers, "loop"),
    Pass("relax_private_guards", relax_private_guards, "loop"),
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
    Pass("start_empty_reductions", start_empty_reductions, "block"),
    Pass("plan_buffer_allocation", plan_buffer_allocation, "block"),
    Pass("lower_reduction_init", lower_reduction_init, "block"),
    Pass("lower_blocks", lower_blocks, "loop"),
    Pass("unify_thread_loops", unify_thread_loops, "loop"),
    Pass("lift_carried_buffers", lift_carried_buffers, "loop"),
    Pass("compact_buffers", compact_buffers, "loop"),
    Pass("flatten_buffers", flatten_buffers, "flat"),
    Pass("widen_constant_indices", widen_constant_indices, "flat"),
    Pass("simplify", simplify, "flat"),
)

_dumps = itertools.count()


def lower(func: PrimFunc, target: object = None, simple_mode: bool = False) -> PrimFunc:
    """The flat form of a scheduled function: no blocks, one index per access, explicit vectors.

    With simple_mode the form before partition, vectorisation and unrolling, meant for reading: loops keep
    their kinds and guards stand as `if likely(...)`. `target` is accepted for the passes that will depend
    on it. TILEWRIGHT_VERIFY checks the result of every pass, TILEWRIGHT_DUMP=folder writes it there. Raises
    LowerError for a function that has no flat form, StructuralError when the verifier objects.
    """
    passes = SIMPLE_PASSES if simple_mode else PASSES
    check, folder = bool(config.get("VERIFY")), config.get("DUMP")
    number = next(_dumps) if folder else 0
    for step, p in enumerate(passes):
        func = p.run(func)
        if check:
            verify(func, stage=p.stage)
        if folder:
            config.dump(f"{number:03d}_{func.name}_{step:02d}_{p.name}.py", f"{func}\n")
    return func
