"""Rules of te called on expressions: the function of blocks that they make, and what it is called with."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tilewright import te
from tilewright.compat.relax.expr import Call, Expr, Tuple
from tilewright.compat.relax.ops import known
from tilewright.compat.relax.sizes import Sizes
from tilewright.compat.relax.struct_info import ShapeExpr
from tilewright.graph.ir.types import TensorType, size_variables
from tilewright.graph.passes.own_results import copy
from tilewright.support.errors import GraphError, described
from tilewright.tir import Expr as TirExpr
from tilewright.tir import IntImm, PrimFunc


class Traced:
    """A te rule on placeholders for the expressions among its arguments."""

    def __init__(self, func: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        self.sizes = Sizes()
        self.placeholders: dict[Any, te.Tensor] = {}
        filled = [self._filled(a) for a in args]
        named = {k: self._filled(v) for k, v in kwargs.items()}
        made = func(*filled, **named)
        outputs = list(made) if isinstance(made, (list, tuple)) else [made]
        for t in outputs:
            if not isinstance(t, te.Tensor):
                raise GraphError(f"emit_te: {getattr(func, '__name__', func)} gives {described(t)}, not a tensor")
        taken = set(self.placeholders.values())
        self.outputs = []
        for t in outputs:
            self.outputs.append(copy(t) if t in taken else t)
            taken.add(self.outputs[-1])
        self.inputs = list(self.placeholders)
        self.results = [self.sizes.info(TensorType.of(t.shape, t.dtype)) for t in self.outputs]
        self.variables: list[Any] = []

    def prim_func(self, name: str) -> PrimFunc:
        """The function of blocks; variables that no shape of an input binds become parameters."""
        func, _ = te.lower_ops([*self.placeholders.values(), *self.outputs], name=name, partial=True)
        extra = [p for p in func.params if p not in func.buffer_map]
        self.variables = [self.sizes.back(v) for v in extra]
        return func

    def _filled(self, x: Any) -> Any:
        if isinstance(x, ShapeExpr):
            return [self.sizes.dim(d) for d in x]
        if isinstance(x, Tuple):
            return [self._filled(f) for f in x.fields]
        if isinstance(x, Expr):
            if x not in self.placeholders:
                t = self.sizes.type(known(x).struct_info_ if isinstance(x, Call) else x.struct_info_, described(x))
                number = len(self.placeholders)
                name = "ABCDEFGHIJ"[number] if number < 10 else f"in{number}"
                self.placeholders[x] = te.placeholder(t.shape, t.dtype, name=name)
            return self.placeholders[x]
        if isinstance(x, (list, tuple)):
            return type(x)(self._filled(y) for y in x)
        if isinstance(x, dict):
            return {k: self._filled(v) for k, v in x.items()}
        named = isinstance(x, TirExpr) and (isinstance(x, IntImm) or bool(size_variables([x])))
        return self.sizes.dim(x) if named else x

