"""What an executor shows of itself."""
from __future__ import annotations

from collections.abc import Sequence

from tilewright.graph.step import Step
from tilewright.graph.value import Value
from tilewright.support.views import View, counted, readable_bytes


def executor_view(outputs: Sequence[Value], updates: int, planned: int, step: Step | None) -> View:
    """Outputs and updates; of the step that ran last, its feeds, memory and kernels."""
    names = ", ".join(v.name for v in outputs) or "no outputs"
    title = f"tilewright.Executor of {names} with {counted(updates, 'update')}: {counted(planned, 'step')} planned"
    if step is None:
        return View(title)
    memory = step.memory
    feeds = ", ".join(f"{v.name}: {step.types[v]}" for v in step.placeholders)
    rows = [("step for", feeds or "no feeds"),
            ("memory", f"{readable_bytes(memory.planned)} planned, {readable_bytes(memory.unshared)} without reuse, "
                       f"{readable_bytes(memory.lower_bound)} at least"),
            ("kernels", str(len(step.kernels))),
            *((f"  {n}", f"{k.name} -> {step.types[k.output]}") for n, k in enumerate(step.kernels))]
    return View(title, rows)
