"""Iteration variables: what an axis of a block or a te operation runs over, and in which way."""
from __future__ import annotations

from dataclasses import dataclass

from tilewright.tir.expr import Expr, ExprOps, IntImm, Var
from tilewright.tir.structure import Node, structure


@dataclass(slots=True, eq=False, repr=False)
class Range(Node):
    """The integers min, min + 1, ..., min + extent - 1."""
    min: Expr
    extent: Expr


#: among the new indices of an index map: `lambda i, j: (i, AXIS_SEPARATOR, j)` keeps i and j apart in memory
AXIS_SEPARATOR = "axis_separator"
# iter_type numbers are TVM's
DATA_PARALLEL, THREAD_INDEX, COMM_REDUCE, ORDERED, OPAQUE = 0, 1, 2, 3, 4


@structure(defines=("var",))
@dataclass(slots=True, eq=False, repr=False)
class IterVar(Node, ExprOps):
    """An iteration: var runs over dom. A thread axis has a thread_tag and may have no dom yet."""
    dom: Range | None
    var: Var
    iter_type: int = DATA_PARALLEL
    thread_tag: str = ""

    @staticmethod
    def over(extent: Expr, name: str, iter_type: int = DATA_PARALLEL) -> IterVar:
        """A new axis over the integers from 0 to below extent, of its type."""
        return IterVar(Range(IntImm(0, extent.dtype), extent), Var(name, extent.dtype), iter_type)

    @property
    def domain(self) -> Range:
        """What var runs over, of an axis that has a dom, as those of blocks and operations have."""
        assert self.dom is not None, f"axis {self.var.name} has no domain"
        return self.dom

    @property
    def dtype(self) -> str:
        return self.var.dtype

    __eq__ = ExprOps.__eq__
    __ne__ = ExprOps.__ne__
    __hash__ = object.__hash__
