"""From a function of operators to what runs it: the passes in order, kernels compiled, the plan."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from tilewright.driver import Target, target
from tilewright.graph.ir.rebuild import without_dead_calls
from tilewright.graph.ir.values import Function, Value, check_function
from tilewright.graph.passes.affine import expand_batch_norm, fold_affine
from tilewright.graph.passes.common import eliminate_common
from tilewright.graph.passes.conditions import state_conditions
from tilewright.graph.passes.fold import constant_part, with_constants
from tilewright.graph.passes.fuse import fuse
from tilewright.graph.passes.hosted import host_calls
from tilewright.graph.passes.in_place import store_changes
from tilewright.graph.passes.inlining import inline_functions
from tilewright.graph.passes.movement import cancel_movement, sink_views
from tilewright.graph.passes.native import compile_kernels
from tilewright.graph.passes.order import order_updates
from tilewright.graph.passes.own_results import own_results
from tilewright.graph.passes.unread import drop_unread
from tilewright.graph.plan.executable import Executable
from tilewright.graph.plan.plan import plan
from tilewright.runtime import Tensor
from tilewright.support.errors import GraphError

Pass = Callable[[Function], Function]
SIMPLIFY: list[Pass] = [inline_functions, drop_unread, without_dead_calls, state_conditions, eliminate_common,
                        cancel_movement, expand_batch_norm, sink_views, fold_affine, cancel_movement]
LOWER: list[Pass] = [own_results, fuse, order_updates]


def build_function(function: Function, spec: str | Target | None = None,
                   held: Mapping[Value, Tensor] = MappingProxyType({}),
                   lower: Sequence[Pass] | None = None) -> Executable:
    """The function compiled for this machine. held: parameters that calls do not give, and what they hold.

    Constants are folded: what depends on them alone is a function of its own, which is built and run here. lower: the
    passes that make kernels, in the place of LOWER.
    """
    resolved = target(spec)
    if not resolved.is_host:
        raise GraphError(f"compile: target {resolved} does not run on this machine",
                         "constants of a model are packed by its own code, here; tw.build writes kernels for others")
    check_function(function)
    for step in SIMPLIFY:
        function = step(function)
    fixed = constant_part(function)
    if fixed is not None:
        values = lowered(fixed, resolved)()
        function = with_constants(function, dict(zip(fixed.results, values if len(fixed.results) > 1 else [values])))
    return lowered(function, resolved, held, lower)


def lowered(function: Function, resolved: Target, held: Mapping[Value, Tensor] = MappingProxyType({}),
            lower: Sequence[Pass] | None = None) -> Executable:
    """The function, whose constants are folded, as kernels and a plan. The rest as `build_function` has it."""
    function = host_calls(function, lambda f: build_function(f, resolved))
    for step in LOWER if lower is None else lower:
        function = step(function)
    compiled = compile_kernels(store_changes(function), resolved)
    planned = plan(compiled.function, held)
    return Executable(planned, resolved, compiled.objects, [held[p] for p in function.params if p in held])
