"""The methods of a stage that change its loops; each records a Relation."""
from __future__ import annotations

import operator
from typing import Any

from tilewright.schedule.stages.axes import axis_name
from tilewright.schedule.stages.memory import MemoryCalls
from tilewright.schedule.stages.records import Call, Relation
from tilewright.support.errors import described
from tilewright.support.names import combined
from tilewright.te.tensor import Operation
from tilewright.tir.expr import ExprOps, IntImm, Var
from tilewright.tir.iter_var import COMM_REDUCE, DATA_PARALLEL, ORDERED, IterVar


class LoopCalls(MemoryCalls):
    """The loops of a stage, and the calls that split, fuse and reorder them."""

    def __init__(self, schedule: Any, op: Operation) -> None:
        super().__init__(schedule, op)
        self.relations: list[Relation] = []

    def split(self, parent: IterVar, factor: int | None = None,
              nparts: int | None = None, disable_predication: bool = False) -> tuple[IterVar, IterVar]:
        """Split a loop in (outer, inner): the inner runs `factor` times, or the outer `nparts` times.

        An extent that does not divide is guarded. disable_predication, TVM's promise that it does, is accepted; a guard
        is left out where that is seen to be so, with or without the promise.

        Legal when parent is a loop of this stage of which nothing was said yet (how it runs, what is computed there),
        and one of factor and nparts is given, a positive constant.
        """
        given = ", ".join([f"{k}={v}" for k, v in (("factor", factor), ("nparts", nparts)) if v is not None])
        call = self._call("split", [parent], given)
        self._require_free(call, parent)
        if (factor is None) == (nparts is None):
            call.refuse("give one of factor and nparts",
                        "factor is the extent of the inner loop, nparts that of the outer")
        size = _size(call, "factor", factor) if nparts is None else _size(call, "nparts", nparts)
        outer, inner = (IterVar(None, Var(f"{parent.var.name}.{end}", parent.dtype), parent.iter_type)
                        for end in ("outer", "inner"))
        self._consume([parent], [outer, inner], f"split into {outer.var.name} and {inner.var.name}")
        factors = (None, size) if nparts is None else (size, None)
        self.relations.append(Relation("split", (parent,), (outer, inner), factors, call))
        return outer, inner

    def tile(self, x_parent: IterVar, y_parent: IterVar, x_factor: int, y_factor: int) -> tuple[IterVar, ...]:
        """Split two loops and reorder them to (x.outer, y.outer, x.inner, y.inner), which is returned.

        Legal when both splits are, and x_parent and y_parent are different loops.
        """
        call = self._call("tile", [x_parent, y_parent], f"{x_factor}, {y_factor}")
        if x_parent is y_parent:
            call.refuse(f"the axis {axis_name(x_parent)} is given twice")
        for iv, what, factor in ((x_parent, "x_factor", x_factor), (y_parent, "y_factor", y_factor)):
            self._require_free(call, iv)
            _size(call, what, factor)
        xo, xi = self.split(x_parent, factor=x_factor)
        yo, yi = self.split(y_parent, factor=y_factor)
        self.reorder(xo, yo, xi, yi)
        return xo, yo, xi, yi

    def fuse(self, *args: IterVar) -> IterVar:
        """One loop over the product of adjacent loops, all spatial or all of the reduction.

        Loops are taken in the order that they stand in. Of no loops, it is a new outermost one that runs once.

        Legal when the loops are loops of this stage, next to each other, of one kind, and nothing was said of them yet.
        """
        call = self._call("fuse", args)
        if not args:
            return self._unit(call)
        places = self._places(call, args)
        if places[-1] - places[0] != len(places) - 1:
            loops = ", ".join(iv.var.name for iv in self._leaves)
            call.refuse(f"the axes are not next to each other; the loops are {loops}",
                        "reorder brings them together")
        nest = tuple(self._leaves[p] for p in places)
        if len(nest) == 1:
            return nest[0]
        for iv in nest:
            if iv.iter_type != nest[0].iter_type:
                a, b = sorted((nest[0], iv), key=lambda x: x.iter_type == COMM_REDUCE)
                call.refuse(f"{axis_name(a)} is {_kind(a)} and {axis_name(b)} {_kind(b)}", "fuse axes of one kind")
        for iv in nest:
            self._require_free(call, iv)
        name = nest[0].var.name
        for iv in nest[1:]:
            name = combined(f"{name}.{iv.var.name}.fused")
        fused = IterVar(None, Var(name, nest[0].dtype), nest[0].iter_type)
        self._consume(nest, [fused], f"fused into {name}")
        self.relations.append(Relation("fuse", nest, (fused,), (), call))
        return fused

    def _unit(self, call: Call) -> IterVar:
        """A new outermost loop of one iteration; of what the steps of a scan compute, inside of these."""
        unit = IterVar(None, Var("singleton", "int32"), DATA_PARALLEL)
        place = int(self._schedule.scans.around(self) is not None)
        self.relations.append(Relation("unit", tuple(self._leaves[place:place + 1]), (unit,), (), call))
        self._leaves.insert(place, unit)
        self._all.append(unit)
        return unit

    def reorder(self, *args: IterVar) -> None:
        """Put the given loops in the given order, outermost first, on the places that they have together.

        Legal when the loops are loops of this stage, each given once, and no value goes from one iteration to another
        that would then come before it.
        """
        call = self._call("reorder", args)
        for place, iv in zip(self._places(call, args), args):
            self._leaves[place] = iv
        if len(args) > 1:
            self.relations.append(Relation("reorder", tuple(args), (), (), call))


def _kind(iv: IterVar) -> str:
    return {COMM_REDUCE: "a reduction axis", ORDERED: "an axis of steps"}.get(iv.iter_type, "a spatial axis")


def _size(call: Call, what: str, value: Any) -> int:
    if isinstance(value, IntImm):
        value = value.value
    if isinstance(value, (bool, ExprOps)):
        call.refuse(f"{what} is {value}, not a constant integer")
    size = operator.index(value) if hasattr(value, "__index__") else None
    if size is None:
        call.refuse(f"{what} is {described(value)}, not an integer")
    if size <= 0:
        call.refuse(f"{what} is {size}, which is not positive", f"{what} is at least 1")
    if size >= 1 << 63:
        call.refuse(f"{what} is {size}, which does not fit 64 bits")
    return size
