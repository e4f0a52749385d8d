"""transform_layout of a stage: its result lies otherwise in memory, and is computed in that order."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tilewright.arith.analyzer import Analyzer
from tilewright.arith.itermap import IterMap, detect_iter_map
from tilewright.schedule.analysis.domains import domain_of
from tilewright.schedule.index_map import IndexMap
from tilewright.schedule.stages.loops import LoopCalls
from tilewright.schedule.stages.records import Call
from tilewright.schedule.stages.scan import loop_axes
from tilewright.support.errors import ArgumentError
from tilewright.te.constant import ConstantOp
from tilewright.te.operation import ComputeOp
from tilewright.te.tensor import Operation
from tilewright.tir.expr import Expr, IntImm, Var
from tilewright.tir.iter_var import COMM_REDUCE, DATA_PARALLEL, IterVar, Range
from tilewright.tir.node import walk


@dataclass(frozen=True, eq=False)
class Layout:
    """One change of the layout; results are the axes by which a computation runs from then on."""
    map: IndexMap
    call: Call
    results: tuple[IterVar, ...] = ()

    def of_block(self, axes: int) -> IndexMap:
        """The map of the iteration variables of a block: those of the reduction, which follow, stay."""
        rank = len(self.map.parameters)
        return IndexMap.from_func(lambda *v: (*self.map.apply(v[:rank]), *v[rank:]), axes)

    def inverse(self, axes: Sequence[IterVar]) -> dict[Var, Expr]:
        """The variables of the axes before, in terms of those of the results."""
        found = _analysed(self.map, axes)
        assert found is not None
        return found.invert([iv.var for iv in self.results])

    def of_memory(self) -> Layout:
        """The same for the memory alone."""
        return replace(self, results=())


class LayoutCalls(LoopCalls):
    """The layouts of a stage's result, one after the other."""

    def __init__(self, schedule: Any, op: Operation) -> None:
        super().__init__(schedule, op)
        self.layouts: list[Layout] = []

    @property
    def root_axes(self) -> tuple[IterVar, ...]:
        """The axes that the loops start with: those of the operation, or of the last layout."""
        made = next((layout.results for layout in reversed(self.layouts) if layout.results), ())
        return (*made, *self.op.reduce_axis) if made else loop_axes(self.op)

    @property
    def storage_axes(self) -> tuple[IterVar, ...]:
        return tuple(iv for iv in self.root_axes if iv.iter_type != COMM_REDUCE)

    def transform_layout(self, mapping_function: Callable[..., Any]) -> list[IterVar] | None:
        """Keep the element at indices i, j, ... at mapping_function(i, j, ...), which may hold te.AXIS_SEPARATOR.

        A computation then runs in the order of its new indices: its new axes are returned, and take the place of the
        spatial ones. What is read or written under the new layout is told by the map alone, so expressions stay as they
        are. Arguments have the new shape: the caller gives, or gets, that. A second call maps the indices of the first.

        Legal when mapping_function takes as many indices as the result has, is one to one onto a box where this stage
        is computed, no spatial loop was split, fused or reordered before, and the stage is not part of a scan.
        """
        call = self._call("transform_layout", [], getattr(mapping_function, "__name__", repr(mapping_function)))
        self._schedule.scans.require_outside(call, self)
        if isinstance(self.op, ConstantOp):
            call.refuse(f"{self.op.name} is a constant: it is in no memory", "lay out the array itself")
        rank = self.layouts[-1].map.rank if self.layouts else len(self.op.output(0).shape)
        try:
            mapped = IndexMap.from_func(mapping_function, rank)
        except ArgumentError as why:
            refusal = str(why)
        else:
            return self._laid_out(call, mapped)
        call.refuse(refusal)

    def _laid_out(self, call: Call, mapped: IndexMap) -> list[IterVar] | None:
        if not isinstance(self.op, ComputeOp):
            self.layouts.append(Layout(mapped, call))
            return None
        old = self.storage_axes
        earlier = next((r.call for r in self.relations if any(iv is a for a in r.axes for iv in old)), None)
        if earlier is not None:
            call.refuse(f"the loops of {self.op.name} were scheduled before ({earlier.text} at {earlier.site})",
                        "call transform_layout before split, fuse and reorder of its spatial axes")
        for iv in old:
            self._require_free(call, iv)
        results = new_axes(call, mapped, old)
        self._consumed.update((id(iv), "laid out anew") for iv in old)
        self._leaves = [*results, *(iv for iv in self._leaves if not any(iv is a for a in old))]
        self._all += results
        self.layouts.append(Layout(mapped, call, results))
        return list(results)


def new_axes(call: Call, mapped: IndexMap, old: Sequence[IterVar], names: Sequence[str] = ()) -> tuple[IterVar, ...]:
    """The axes that a map makes of old ones. Refuses a map that is not one to one onto a box."""
    found = _analysed(mapped, old)
    if found is None or not found.is_bijective:
        extents = ", ".join(str(iv.domain.extent) for iv in old)
        call.refuse(f"{mapped} is not one to one from the extents ({extents}) onto a box",
                    "choose divisors that divide the extents; pad the tensor in its expression")
    out = []
    for n, (e, (_, extent)) in enumerate(zip(mapped.apply([iv.var for iv in old]), found.outputs, strict=True)):
        name = names[n] if names else e.name if isinstance(e, Var) else f"axis{n}"
        out.append(IterVar(Range(IntImm(0, e.dtype), extent), Var(name, e.dtype), DATA_PARALLEL))
    return tuple(out)


def _analysed(mapped: IndexMap, axes: Sequence[IterVar]) -> IterMap | None:
    analyzer = Analyzer()
    domains: dict[Var, tuple[Expr, Expr]] = {}
    for iv in axes:
        domains[iv.var] = domain_of(iv)
        for n in walk(iv.domain.extent):
            if isinstance(n, Var):
                analyzer.assume_nonneg(n)
    return detect_iter_map(mapped.apply([iv.var for iv in axes]), domains, None, analyzer)


def of_loops(call: Call, stage: LayoutCalls) -> Layout | None:
    """The layout whose dimensions are the spatial loops of a stage; None where these are the axes of the operation."""
    old = stage.op.axis
    loops = [iv for iv in stage.leaf_iter_vars if iv.iter_type != COMM_REDUCE]
    if len(loops) == len(old) and all(a is b for a, b in zip(loops, old)):
        return None
    mapped = IndexMap.from_func(lambda *point: _of_leaves(call, stage, point, loops), len(old))
    return Layout(mapped, call, new_axes(call, mapped, old, [f"{iv.var.name}.c" for iv in loops]))


def _of_leaves(call: Call, stage: LayoutCalls, point: Sequence[Expr], loops: Sequence[IterVar]) -> list[Expr]:
    """The indices of loops at a point of the operation's axes."""
    at: dict[int, Expr] = {id(iv): v for iv, v in zip(stage.op.axis, point, strict=True)}
    sizes: dict[int, int | None] = {id(iv): _constant(iv.domain.extent) for iv in stage.op.axis}

    def size(iv: IterVar) -> int:
        found = sizes[id(iv)]
        if found is None:
            call.refuse(f"the extent of {iv.var.name} is not a constant, and other loops depend on it",
                        "call cache_write before fuse, and before split by nparts")
        return found

    current = stage.op.axis
    for layout in (x for x in stage.layouts if x.results):
        at.update((id(iv), v) for iv, v in zip(layout.results, layout.map.apply([at[id(iv)] for iv in current])))
        sizes.update((id(iv), _constant(iv.domain.extent)) for iv in layout.results)
        current = layout.results
    for r in (r for r in stage.relations if all(id(iv) in at for iv in r.axes)):
        if r.kind == "split":
            outer, inner = r.factors
            factor = -(-size(r.axes[0]) // outer) if inner is None and outer is not None else inner
            assert factor is not None
            whole = sizes[id(r.axes[0])]
            values = [at[id(r.axes[0])] // factor, at[id(r.axes[0])] % factor]
            extents = [outer or (None if whole is None else -(-whole // factor)), factor]
        elif r.kind == "fuse":
            value, extent = at[id(r.axes[0])], size(r.axes[0])
            for iv in r.axes[1:]:
                value, extent = value * size(iv) + at[id(iv)], extent * size(iv)
            values, extents = [value], [extent]
        elif r.kind == "unit":
            call.refuse(f"{r.results[0].var.name} is no axis of {stage.op.name}", "call cache_write before fuse()")
        else:
            continue
        at.update((id(iv), v) for iv, v in zip(r.results, values, strict=True))
        sizes.update((id(iv), n) for iv, n in zip(r.results, extents, strict=True))
    return [at[id(iv)] for iv in loops]


def _constant(e: Expr) -> int | None:
    return e.value if isinstance(e, IntImm) else None
