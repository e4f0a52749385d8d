"""Which step of the compiler makes a result of a model wrong: the interpreter, the oracle, runs what each one gives."""
from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright import driver, rules
from tilewright.driver import Target, target
from tilewright.graph.compile import LOWER, SIMPLIFY, build_function
from tilewright.graph.ir.callees import Kernel, Operator
from tilewright.graph.ir.types import TensorType, extents
from tilewright.graph.ir.values import Call, Function, Value
from tilewright.graph.passes.fuse import make_kernel
from tilewright.graph.plan.plan import bindings
from tilewright.lowering import lower, pass_options, split
from tilewright.lowering.hoist_constants import hoist_constants
from tilewright.lowering.instruments import PassRecord
from tilewright.runtime.dtypes import numpy_dtype
from tilewright.runtime.loader import load_objects
from tilewright.runtime.tensor import as_numpy
from tilewright.schedule import Schedule, Trace
from tilewright.support.errors import GraphError, TilewrightError
from tilewright.tir import IRModule, PrimFunc, Var
from tilewright.tir.interp import run as interpret

Arrays = Sequence[np.ndarray]


@dataclass(frozen=True)
class Culprit:
    """The first step whose result leaves the reference.

    kind: "graph pass", "rule" (what rewrites a kernel before it is scheduled), "primitive", "preparation" (of constant
    inputs), "lowering pass", "code generation", "plan" (places in memory, or the order of kernels). name: of the step.
    kernel, source: where in the model. error: the largest difference, over the largest element of the reference; NaN
    where the step raised, which `why` says.
    """
    kind: str
    name: str
    kernel: str = ""
    source: str = ""
    error: float = float("nan")
    why: str = ""

    def __str__(self) -> str:
        where = f" of {self.kernel}" if self.kernel else ""
        node = f", from {self.source}" if self.source else ""
        return f"{self.kind} {self.name}{where}{node}: " + (self.why or f"the result is off by {self.error:.3g}")


def bisect(function: Function, *inputs: Any, tolerance: float = 1e-3,
           spec: str | Target | None = None) -> Culprit | None:
    """The first step of compiling function whose result differs for these inputs; None where none does.

    The interpreter runs one element at a time: take small inputs. Of steps that raise, the first is the culprit. Raises
    GraphError for functions with packed functions, choices and loops, which are to be looked at by themselves.
    """
    if any(not isinstance(c.callee, Operator) for c in function.calls):
        raise GraphError(f"bisect: {function.name} calls more than operators", "bisect the functions that it calls")
    search = _Search(function, [np.asarray(x) for x in inputs], tolerance, target(spec))
    return search.graph_passes() or search.kernels() or search.whole()


class _Search:
    def __init__(self, function: Function, inputs: Arrays, tolerance: float, where: Target) -> None:
        self.given, self.inputs, self.tolerance, self.target = function, inputs, tolerance, where
        shapes = [x.shape for x in inputs]
        self.sizes: dict[Var, int] = {b.variable: shapes[b.parameter][b.axis] for b in bindings(function)}
        self.wanted = self.evaluate(function)
        self.final = function

    # the graph

    def graph_passes(self) -> Culprit | None:
        for step in [*SIMPLIFY, *LOWER]:
            try:
                self.final = step(self.final)
                made = self.evaluate(self.final)
            except TilewrightError as why:
                return Culprit("graph pass", step.__name__, why=str(why))
            error = self.difference(made, self.wanted)
            if error > self.tolerance:
                return Culprit("graph pass", step.__name__, error=error)
        return None

    def evaluate(self, function: Function) -> list[np.ndarray]:
        """The results of a function of operators and kernels, and what it updates parameters to, by the interpreter."""
        values: dict[Value, np.ndarray] = dict(zip(function.params, self.inputs))
        for c in function.calls:
            values.update(zip(c.results, self.reference(c, [self.known(values, v) for v in c.inputs])))
        new = [function.updates.get(p, p) for p in self.given.updates]
        return [self.known(values, v) for v in (*function.results, *new)]

    def reference(self, c: Call, inputs: Arrays) -> list[np.ndarray]:
        """The results of a call, by the interpreter."""
        if isinstance(c.callee, Operator):
            kernel, read = make_kernel([c])
            inputs = [inputs[c.inputs.index(v)] for v in read]
        else:
            kernel = c.callee
        return self.interpreted(kernel.func, inputs, kernel.results, kernel.sizes)

    @staticmethod
    def known(values: Mapping[Value, np.ndarray], v: Value) -> np.ndarray:
        return v.data if v.data is not None else values[v]

    def interpreted(self, func: PrimFunc | IRModule, inputs: Arrays, results: Sequence[TensorType],
                    sizes: Sequence[Var]) -> list[np.ndarray]:
        outs = self.empty(results)
        interpret(func, *(np.array(x) for x in inputs), *outs, *(self.sizes[v] for v in sizes), check=False)
        return outs

    def empty(self, types: Sequence[TensorType]) -> list[np.ndarray]:
        return [np.zeros(extents(t.shape, self.sizes), numpy_dtype(t.dtype)) for t in types]

    @staticmethod
    def difference(got: Arrays, wanted: Arrays) -> float:
        """The largest difference of two elements, over the largest element that is wanted."""
        most = 0.0
        for a, b in zip(got, wanted, strict=True):
            if a.shape != b.shape:
                return float("inf")
            x, y = (z.astype("float64") for z in (a, b))
            if not np.array_equal(np.isnan(x), np.isnan(y)):
                return float("inf")
            off = np.where(np.isnan(x) | (x == y), 0.0, np.abs(x - y))
            finite = np.abs(y[np.isfinite(y)]).max(initial=1.0)
            most = max(most, float(off.max(initial=0.0)) / float(finite))
        return most

    # the kernels

    def kernels(self) -> Culprit | None:
        values: dict[Value, np.ndarray] = dict(zip(self.final.params, self.inputs))
        for c in self.final.calls:
            inputs = [self.known(values, v) for v in c.inputs]
            made = self.reference(c, inputs)
            values.update(zip(c.results, made))
            if isinstance(c.callee, Kernel):
                found = _KernelSearch(self, c, inputs, made).run()
                if found is not None:
                    return found
        return None

    def whole(self) -> Culprit | None:
        """What is left where each kernel is right."""
        given = dict(zip(self.given.params, (np.array(x) for x in self.inputs)))
        try:
            made = build_function(self.given, self.target)(*given.values())
        except TilewrightError as why:
            return Culprit("plan", self.given.name, why=str(why))
        got = [as_numpy(t) for t in (made if isinstance(made, tuple) else (made,))]
        got += [given[p] for p in self.given.updates]
        error = self.difference(got, self.wanted)
        return Culprit("plan", self.given.name, error=error) if error > self.tolerance else None


class _KernelSearch:
    """The steps from a function of blocks to its code."""

    def __init__(self, search: _Search, c: Call, inputs: Arrays, wanted: Arrays) -> None:
        self.search, self.call, self.wanted = search, c, wanted
        self.kernel: Kernel = c.callee
        self.inputs = list(inputs)

    def run(self) -> Culprit | None:
        kernel = self.kernel
        try:
            work = rules.Scheduling(kernel.func, self.search.target).finish()
        except TilewrightError as why:
            return self.culprit("rule", "apply_rules", why=str(why))
        rewritten = self.checked("rule", "rewrite", lambda: self.block_form(work.func))
        if rewritten is not None:
            return rewritten
        entries = work.schedule.trace.entries
        if self.off(lambda: self.block_form(work.schedule.func)) is not None:
            return self.primitive(work.func, entries)
        return self.code(work.schedule.func)

    def primitive(self, func: PrimFunc, entries: Sequence[Any]) -> Culprit | None:
        """The first primitive of a trace behind which the result is wrong."""
        def after(count: int) -> list[np.ndarray]:
            sch = Schedule(func)
            Trace(entries[:count]).apply_to_schedule(sch)
            return self.block_form(sch.func)
        for count, entry in enumerate(entries, start=1):
            found = self.off(lambda count=count: after(count))  # type: ignore[misc]
            if found is not None:
                return self.culprit("primitive", f"{entry.primitive} (number {count})", *found)
        return None

    def code(self, scheduled: PrimFunc) -> Culprit | None:
        constant = [k for k, v in enumerate(self.call.inputs) if v.is_constant]
        parts = hoist_constants(scheduled, constant) if constant else None
        if parts is None:
            return self.lowered(scheduled, self.inputs, self.kernel.results, self.wanted)
        read = [self.inputs[k] for k in parts.read]
        types = [TensorType.of(b.shape, b.dtype) for b in parts.prepared]
        prepared = self.search.interpreted(parts.prepare, read, types, ())
        given = self.in_order(parts.main, scheduled, dict(zip([b.name for b in parts.prepared], prepared)))
        wrong = self.checked("preparation", "hoist_constants", lambda: self.search.interpreted(
            parts.main, given, self.kernel.results, self.kernel.sizes))
        return wrong or self.lowered(parts.prepare, read, types, prepared, ()) \
            or self.lowered(parts.main, given, self.kernel.results, self.wanted)

    def in_order(self, main: PrimFunc, scheduled: PrimFunc, prepared: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        """The arrays for the parameters of main that are no results and no sizes."""
        place = {p: k for k, p in enumerate(scheduled.params)}
        out = []
        for p in main.params:
            if p not in place:
                out.append(prepared[main.buffer_map[p].name])
            elif place[p] < len(self.inputs):
                out.append(self.inputs[place[p]])
        return out

    def lowered(self, func: PrimFunc, inputs: Arrays, results: Sequence[TensorType], wanted: Arrays,
                sizes: Sequence[Var] | None = None) -> Culprit | None:
        """The first pass behind which func gives something else; "code generation" where its code does."""
        sizes = self.kernel.sizes if sizes is None else sizes
        record = PassRecord()
        try:
            with pass_options(instruments=[record]):
                split(lower(func, self.search.target), self.search.target)
                data = driver.compile_flat(lower(func, self.search.target), self.search.target)
        except TilewrightError as why:
            return self.culprit("lowering pass", record.steps[-1].name if record.steps else "lower", why=str(why))
        native = self.off(lambda: self.native(data, func, inputs, results, sizes), wanted)
        if native is None:
            return None
        for step in record.steps:
            if step.changed:
                found = self.off(lambda step=step: self.search.interpreted(  # type: ignore[misc]
                    step.after, inputs, results, sizes), wanted)
                if found is not None:
                    return self.culprit("lowering pass", step.name, *found)
        return self.culprit("code generation", func.name, *native)

    def native(self, data: bytes, func: PrimFunc, inputs: Arrays, results: Sequence[TensorType],
               sizes: Sequence[Var]) -> list[np.ndarray]:
        outs, library = self.search.empty(results), load_objects([data])
        arrays = [np.ascontiguousarray(x) for x in inputs]
        given = [*(ctypes.c_void_p(a.ctypes.data) for a in (*arrays, *outs)),
                 *(ctypes.c_int64(self.search.sizes[v]) for v in sizes)]
        ctypes.CFUNCTYPE(None, *map(type, given))(library.address(f"{func.name}__kernel"))(*given)
        return outs

    def block_form(self, func: PrimFunc) -> list[np.ndarray]:
        return self.search.interpreted(func, self.inputs, self.kernel.results, self.kernel.sizes)

    def off(self, make: Callable[[], list[np.ndarray]], wanted: Arrays | None = None) -> tuple[float, str] | None:
        """(error, why) where the results are not those that are wanted, or there are none."""
        try:
            error = self.search.difference(make(), self.wanted if wanted is None else wanted)
        except TilewrightError as why:
            return float("nan"), str(why).partition("\n")[0]
        return (error, "") if error > self.search.tolerance else None

    def checked(self, kind: str, name: str, make: Callable[[], list[np.ndarray]]) -> Culprit | None:
        found = self.off(make)
        return None if found is None else self.culprit(kind, name, *found)

    def culprit(self, kind: str, name: str, error: float = float("nan"), why: str = "") -> Culprit:
        source = self.call.results[0].source if self.call.results else ""
        return Culprit(kind, name, self.kernel.name, source, error, why)
