"""From a function of operators to what runs it: the passes in order, kernels compiled, the plan."""
from __future__ import annotations

from collections.abc import Callable

from tilewright.driver import Target, target
from tilewright.graph.ir.rebuild import without_dead_calls
from tilewright.graph.ir.values import Function
from tilewright.graph.passes.fuse import fuse
from tilewright.graph.passes.native import compile_kernels
from tilewright.graph.passes.own_results import own_results
from tilewright.graph.plan.executable import Executable
from tilewright.graph.plan.plan import plan
from tilewright.support.errors import GraphError

PASSES: list[Callable[[Function], Function]] = [without_dead_calls, own_results, fuse]


def build_function(function: Function, spec: str | Target | None = None) -> Executable:
    """The function compiled for this machine."""
    resolved = target(spec)
    if not resolved.is_host:
        raise GraphError(f"compile: target {resolved} does not run on this machine")
    for step in PASSES:
        function = step(function)
    compiled = compile_kernels(function, resolved)
    return Executable(plan(compiled.function), resolved, compiled.objects)
