"""Runs graphs: a function for each combination of feed types, compiled once; a run is one call of native code."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tilewright.driver import Target, target
from tilewright.graph.compile import LOWER, build_function
from tilewright.graph.ir.types import TensorType
from tilewright.graph.memory import MemoryPlan
from tilewright.graph.optimizers import Update
from tilewright.graph.passes.fuse import apart as one_by_one
from tilewright.graph.passes.fuse import fuse as fused
from tilewright.graph.passes.native import as_written
from tilewright.graph.plan.arguments import Span, apart, compact, overlap, span
from tilewright.graph.plan.executable import Executable
from tilewright.graph.typed import typed
from tilewright.graph.value import Value, require_distinct_names, topological
from tilewright.runtime import Tensor
from tilewright.runtime.dtypes import dtype_string
from tilewright.runtime.tensor import as_numpy
from tilewright.support.errors import GraphError, described
from tilewright.support.locks import ForkSafeLock
from tilewright.support.views import View, Viewed, counted, readable_bytes

FedType = tuple[tuple[int, ...], str]             # the shape and the dtype of a feed


class Executor(Viewed):
    """Computes `outputs` from feeds and then applies `updates` to their parameters, in place.

    schedule: "rules" (built-in schedules for the target) or "default" (the loops as the expressions have them);
    fuse: let elementwise operators share a kernel with their neighbours.
    A step is planned and compiled for each combination of feed shapes and dtypes, the first time it is fed: an
    `Executable` that holds the parameters.
    """

    def __init__(self, outputs: Sequence[Value], updates: Sequence[Update] = (), *, schedule: str = "rules",
                 fuse: bool = True, target: str | Target | None = None) -> None:
        self.outputs: tuple[Value, ...] = _items("outputs", outputs)
        self.updates: tuple[Update, ...] = _items("updates", updates)
        self.fuse, self.schedule = fuse, schedule
        for u in self.updates:
            if not isinstance(u, Update):
                raise GraphError(f"Executor: {described(u)} is not an update",
                                 "updates come from an optimizer: SGD(0.1).minimize(loss, params)")
        for v in [*self.outputs, *(u.value for u in self.updates), *(u.target for u in self.updates)]:
            if not isinstance(v, Value):
                raise GraphError(f"Executor: {described(v)} is not a graph value")
        if not self.outputs and not self.updates:
            raise GraphError("Executor: there is nothing to compute: no outputs and no updates")
        if schedule not in ("rules", "default"):
            raise GraphError(f'Executor: schedule is {schedule!r}, expected "rules" or "default"')
        targets = [u.target for u in self.updates]
        if len(set(targets)) != len(targets):
            raise GraphError("Executor: a parameter is updated twice in one step")
        for t in targets:
            if t.data is None:
                raise GraphError(f"Executor: the update target {t!r} is not a parameter")
            if not as_numpy(t.data).flags.writeable:
                raise GraphError(f"Executor: {t.name} is updated, and its memory is read-only",
                                 "make the parameter of a copy: tilewright.nd.array(x)")
        require_distinct_names("Executor", targets)
        self.target = _resolve(target)
        order = topological([*self.outputs, *(u.value for u in self.updates), *targets])
        self._written = _require_apart(targets, [v for v in order if v.data is not None])
        self.placeholders = [v for v in order if v.op is None and v.data is None]
        self._steps: dict[tuple[FedType, ...], Executable] = {}
        self._lock = ForkSafeLock()                        # parameters change in place
        self.step: Executable | None = None                # of the last run

    def view(self) -> View:
        return executor_view(self.outputs, len(self.updates), len(self._steps), self.step)

    def __reduce__(self) -> tuple[Any, ...]:
        """The graph with what its parameters hold now; steps are planned again where they run.

        Values go producers first, so that a deep graph is no deep recursion.
        """
        ends = [*self.outputs, *(v for u in self.updates for v in (u.value, u.target))]
        return _restored, (topological(ends), self.outputs, self.updates, self.schedule, self.fuse, str(self.target))

    def run(self, feeds: Mapping[Value, Any] | None = None) -> list[Tensor]:
        """The outputs, as new tensors, for `feeds`: {placeholder: Tensor or array}. Updates are applied.

        Feeds are read in place where they are contiguous and lie in no parameter that the step updates, else a copy is.
        Runs from several threads wait for each other. Raises GraphError for a missing or unknown feed, what is no array
        of numbers, a dtype or shape that an operator refuses.
        """
        arrays = self._arrays(_table("run", {} if feeds is None else feeds))
        types = tuple((a.shape, a.dtype) for a in arrays)
        with self._lock:
            self.step = step = self._steps.get(types) or self._planned(types)
            return step.run(arrays)

    def compile(self, feeds: Mapping[Value, TensorType]) -> Executable:
        """Plan and compile the step for feeds of these types, without running it. Raises GraphError as `run` does."""
        feeds = _table("compile", feeds)
        missing = [v.name for v in self.placeholders if v not in feeds]
        if missing:
            raise GraphError(f"Executor.compile: no type for {', '.join(missing)}")
        types = tuple(_checked_type(v, feeds[v]) for v in self.placeholders)
        with self._lock:
            self.step = step = self._steps.get(types) or self._planned(types)
            return step

    def _planned(self, types: tuple[FedType, ...]) -> Executable:
        fed = {v: TensorType.of(*t) for v, t in zip(self.placeholders, types)}
        function, held = typed(self.outputs, self.updates, fed)
        lower = [one_by_one if p is fused and not self.fuse else p for p in LOWER]
        step = build_function(function, self.target, held, lower if self.schedule == "rules" else [*lower, as_written])
        self._steps[types] = step
        return step

    @property
    def memory(self) -> MemoryPlan[int]:
        """The memory plan of the last run: bytes planned, without reuse, and the lower bound."""
        if self.step is None:
            raise GraphError("the executor has not run yet", "memory is planned for the shapes that are fed")
        return self.step.memory

    def _arrays(self, feeds: dict[Value, Any]) -> list[Tensor]:
        arrays = []
        for v in self.placeholders:
            if v not in feeds:
                raise GraphError(f"run: placeholder {v.name} is not fed", "feed " + ", ".join(
                    x.name for x in self.placeholders))
            fed = compact("run", v.name, feeds.pop(v))
            arrays.append(apart(fed, self._written) if self._written else fed)
        if feeds:
            raise GraphError(f"run: {', '.join(getattr(v, 'name', repr(v)) for v in feeds)} "
                             "is fed but is no placeholder of this graph")
        return arrays


def _restored(order: Sequence[Value], outputs: Sequence[Value], updates: Sequence[Update], schedule: str, fuse: bool,
              target: str) -> Executor:
    return Executor(outputs, updates, schedule=schedule, fuse=fuse, target=target)


def _require_apart(targets: Sequence[Value], parameters: Sequence[Value]) -> list[Span]:
    """The memory of the update targets. Raises GraphError where a parameter shares some of it."""
    written = {t: span(t.data) for t in targets if t.data is not None}
    for p in parameters:
        assert p.data is not None
        own = span(p.data)
        for t, place in written.items():
            if t is not p and overlap(own, place):
                raise GraphError(f"Executor: parameter {p.name} shares memory with {t.name}, which is updated",
                                 "make one parameter and use it twice")
    return list(written.values())


def _items(name: str, given: Any) -> tuple[Any, ...]:
    if not isinstance(given, (list, tuple)):
        raise GraphError(f"Executor: {name} is {described(given)}, not a list",
                         f"write Executor([loss], ...): {name} are given in a list")
    return tuple(given)


def _table(method: str, feeds: Any) -> dict[Any, Any]:
    if not isinstance(feeds, Mapping):
        raise GraphError(f"{method}: the feeds are {described(feeds)}, not a mapping",
                         "write {x: array} with the placeholder x as the key")
    for key in feeds:
        if not isinstance(key, Value):
            raise GraphError(f"{method}: the key {described(key)} of the feeds is not a value of the graph",
                             "keys are placeholders, not their names: {x: array} for "
                                 'x = graph.placeholder("x")')
    return dict(feeds)


def _checked_type(v: Value, t: Any) -> FedType:
    if not isinstance(t, TensorType):
        raise GraphError(f"compile: the type of {v.name} is {described(t)}", 'write graph.TensorType(shape, "float32")')
    if not all(isinstance(n, int) and n >= 0 for n in t.shape):
        raise GraphError(f"compile: the shape {t.shape} of {v.name} is not made of natural numbers")
    return tuple(t.shape), dtype_string(t.dtype)  # type: ignore[arg-type]


def _resolve(spec: str | Target | None) -> Target:
    t = target(spec)
    if not t.is_host:
        raise GraphError(f"Executor: target {t} does not run on this machine")
    return t


def executor_view(outputs: Sequence[Value], updates: int, planned: int, step: Executable | None) -> View:
    """Outputs and updates; of the step that ran last, its feeds, memory and kernels."""
    names = ", ".join(v.name for v in outputs) or "no outputs"
    title = f"tilewright.Executor of {names} with {counted(updates, 'update')}: {counted(planned, 'step')} planned"
    if step is None:
        return View(title)
    memory = step.memory
    feeds = ", ".join(f"{name}: {t}" for name, t in step.plan.params)
    rows = [("step for", feeds or "no feeds"),
            ("memory", f"{readable_bytes(memory.planned)} planned, {readable_bytes(memory.unshared)} without reuse, "
                       f"{readable_bytes(memory.lower_bound)} at least"),
            ("kernels", str(len(step.kernels))),
            *((f"  {n}", f"{k.name} -> {', '.join(map(str, k.results))}") for n, k in enumerate(step.kernels))]
    return View(title, rows)
