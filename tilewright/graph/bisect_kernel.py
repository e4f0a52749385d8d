"""Which step between a kernel of a graph and its code makes its results wrong."""
from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tilewright import driver, rules
from tilewright.driver import Target
from tilewright.graph.culprit import Culprit, difference, shown
from tilewright.graph.evaluate import empty, interpreted
from tilewright.graph.ir.callees import Kernel
from tilewright.graph.ir.types import TensorType
from tilewright.graph.ir.values import Call
from tilewright.graph.passes.native import constant_inputs
from tilewright.lowering import lower, pass_options, split
from tilewright.lowering.hoist_constants import hoist_constants
from tilewright.lowering.instruments import PassRecord
from tilewright.lowering.merge_axes import merge_axes
from tilewright.lowering.options import Pass
from tilewright.runtime.loader import load_objects
from tilewright.schedule import Schedule, Trace
from tilewright.tir import IRModule, PrimFunc, Var

Arrays = Sequence[np.ndarray]


class _Record(PassRecord):
    """A record that has the pass that began last, too: the one that raises."""
    begun = ""

    def before(self, p: Pass, func: PrimFunc | IRModule) -> None:
        super().before(p, func)
        self.begun = p.name


class KernelSearch:
    """The steps from a function of blocks to its code, for a call of it with these inputs."""

    def __init__(self, c: Call, inputs: Arrays, wanted: Arrays, sizes: dict[Var, int], where: Target,
                 tolerance: float) -> None:
        self.call, self.wanted, self.sizes, self.target, self.tolerance = c, wanted, sizes, where, tolerance
        self.kernel: Kernel = c.callee
        self.inputs = list(inputs)

    def run(self) -> Culprit | None:
        kernel = self.kernel
        if kernel.func.attrs.get("tir.is_scheduled"):
            return self.code(kernel.func)
        try:
            merged = merge_axes(kernel.func)
            work = rules.Scheduling(merged, self.target, constant_inputs(self.call)).finish()
        except Exception as why:
            return self.culprit("rule", "apply_rules", why=shown(why))
        rewrites = ", ".join(d.rule for d in work.rewrites) or "rewrite"
        for name, func in (("merge_axes", merged), (rewrites, work.func)):
            wrong = self.checked("rule", name, lambda func=func: self.block_form(func))  # type: ignore[misc]
            if wrong is not None:
                return wrong
        if self.off(lambda: self.block_form(work.schedule.func)) is not None:
            return self.primitive(work.func, work.schedule.trace.entries)
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
        prepared = interpreted(parts.prepare, read, types, (), self.sizes)
        given = self.in_order(parts.main, scheduled, dict(zip([b.name for b in parts.prepared], prepared)))
        wrong = self.checked("preparation", "hoist_constants", lambda: interpreted(
            parts.main, given, self.kernel.results, self.kernel.sizes, self.sizes))
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
        record = _Record()
        try:
            with pass_options(instruments=[record]):
                split(lower(func, self.target), self.target)
            data = driver.compile_flat(lower(func, self.target), self.target)
        except Exception as why:
            return self.culprit("lowering pass", record.begun or "code generation", why=shown(why))
        native = self.off(lambda: self.native(data, func, inputs, results, sizes), wanted)
        if native is None:
            return None
        for step in record.steps:
            if step.changed:
                found = self.off(lambda step=step: interpreted(  # type: ignore[misc]
                    step.after, inputs, results, sizes, self.sizes, races=True), wanted)
                if found is not None:
                    return self.culprit("lowering pass", step.name, *found)
        return self.culprit("code generation", func.name, *native)

    def native(self, data: bytes, func: PrimFunc, inputs: Arrays, results: Sequence[TensorType],
               sizes: Sequence[Var]) -> list[np.ndarray]:
        outs, library = empty(results, self.sizes), load_objects([data])
        arrays = [np.ascontiguousarray(x) for x in inputs]
        given = [*(ctypes.c_void_p(a.ctypes.data) for a in (*arrays, *outs)),
                 *(ctypes.c_int64(self.sizes[v]) for v in sizes)]
        ctypes.CFUNCTYPE(None, *map(type, given))(library.address(f"{func.name}__kernel"))(*given)
        return outs

    def block_form(self, func: PrimFunc) -> list[np.ndarray]:
        return interpreted(func, self.inputs, self.kernel.results, self.kernel.sizes, self.sizes, races=True)

    def off(self, make: Callable[[], list[np.ndarray]], wanted: Arrays | None = None) -> tuple[float, str] | None:
        """(error, why) where the results are not those that are wanted, or there are none."""
        try:
            error = difference(make(), self.wanted if wanted is None else wanted)
        except Exception as why:                           # a defect of the compiler may raise anything
            return float("nan"), shown(why)
        return (error, "") if error > self.tolerance else None

    def checked(self, kind: str, name: str, make: Callable[[], list[np.ndarray]]) -> Culprit | None:
        found = self.off(make)
        return None if found is None else self.culprit(kind, name, *found)

    def culprit(self, kind: str, name: str, error: float = float("nan"), why: str = "") -> Culprit:
        source = self.call.results[0].source if self.call.results else ""
        return Culprit(kind, name, self.kernel.name, source, error, why)
