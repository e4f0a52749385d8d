"""Variables in relax's shapes, and the size variables of the graph that stand for them."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tilewright.compat.relax.struct_info import StructInfo, TensorStructInfo, TupleStructInfo
from tilewright.graph.ir.types import TensorType, canonical, size, size_variables
from tilewright.support.errors import GraphError
from tilewright.support.names import NameSupply, identifier
from tilewright.tir import Binary, Expr, IntImm, Var, binary, substitute


class Sizes:
    """Variables in relax's shapes, and the size variables of the graph that stand for them in one function."""

    def __init__(self) -> None:
        self._to: dict[Var, Var] = {}
        self._back: dict[Var, Var] = {}
        self._names = NameSupply()

    def name(self, v: Var) -> Var:
        """The size variable that stands for v."""
        if v not in self._to:
            self._to[v] = size(self._names.fresh(identifier(v.name)))
            self._back[self._to[v]] = v
        return self._to[v]

    def fresh(self, name: str) -> Var:
        """A size variable that stands for an extent that is not known."""
        return size(self._names.fresh(identifier(name)))

    def dim(self, d: Any) -> Any:
        """An extent of relax as one of the graph."""
        if isinstance(d, IntImm):
            return d.value
        if not isinstance(d, Expr):
            return int(d)
        return canonical(_with(d, self.name))

    def back(self, d: Any) -> Expr:
        """An extent of the graph as one of relax."""
        return _with(d, lambda v: self._back.get(v, v)) if isinstance(d, Expr) else IntImm(int(d))

    def type(self, info: StructInfo | None, what: str) -> TensorType:
        """The type of the graph. Raises GraphError for what is not known to be a tensor."""
        if not isinstance(info, TensorStructInfo):
            raise GraphError(f"{what} is not known to be a tensor", "state it: relax.TensorStructInfo(shape, dtype)")
        if info.dims is None:
            raise GraphError(f"the shape of {what} is not known", 'state it: R.Tensor((n, 784), "float32")')
        return TensorType.of([self.dim(d) for d in info.dims], info.dtype or "float32")

    def info(self, t: TensorType) -> TensorStructInfo:
        return TensorStructInfo([self.back(d) for d in t.shape], t.dtype)

    def infos(self, types: Sequence[TensorType]) -> StructInfo:
        """The struct info of one result, or of a tuple."""
        made = [self.info(t) for t in types]
        return made[0] if len(made) == 1 else TupleStructInfo(made)


def _with(e: Expr, of: Callable[[Var], Var]) -> Expr:
    """e with other variables; where their dtype differs, in the arithmetic of the new ones."""
    found = {v: of(v) for v in size_variables([e])}
    same = all(a.dtype == b.dtype for a, b in found.items())
    return substitute(e, found) if same else _retyped(e, found)


def _retyped(e: Expr, table: dict[Var, Var]) -> Expr:
    if isinstance(e, Var):
        return table.get(e, e)
    if isinstance(e, IntImm):
        return IntImm(e.value)
    if isinstance(e, Binary):
        return binary(e.op, _retyped(e.a, table), _retyped(e.b, table))
    raise GraphError(f"the extent {e} is of no arithmetic that sizes have", "write it with +, -, * and //")
