"""Makes index arithmetic 32 bits wide where that is enough."""
from __future__ import annotations

from collections.abc import Sequence

from tilewright.arith.analyzer import Analyzer
from tilewright.lowering.copying import Copier
from tilewright.lowering.scopes import analyzer_for, loop_scope
from tilewright.tir import dtype as dt
from tilewright.tir.arithmetic import binary
from tilewright.tir.buffer import Buffer
from tilewright.tir.conversion import cast
from tilewright.tir.expr import Binary, Broadcast, Cast, Expr, IntImm, Ramp, Var
from tilewright.tir.stmt import For, PrimFunc, Stmt

_ARITHMETIC = ("add", "sub", "mul", "floordiv", "floormod", "truncdiv", "truncmod", "min", "max")


def narrow_indices(func: PrimFunc) -> PrimFunc:
    """Loop variables and indices of int64 whose values, and those of all their parts, fit int32 are int32.

    What the ranges of loops do not bound, and values that are data, keep their types.
    """
    return func.with_body(_Narrowing(analyzer_for(func))(func.body))


class _Narrowing(Copier):
    def __init__(self, analyzer: Analyzer) -> None:
        super().__init__()
        self.analyzer = analyzer
        self.narrow: dict[Var, Var] = {}

    def index(self, e: Expr) -> Expr:
        """e in 32 bits, or as it is."""
        if dt.element_of(e.dtype) != "int64":
            return self(e)
        found = self.of(e)
        return self(e) if found is None else found

    def of(self, e: Expr) -> Expr | None:
        """e in 32 bits; None where a part of it may not fit."""
        if isinstance(e, Ramp):
            last = binary("add", e.base, binary("mul", e.stride, e.lanes - 1))
            base, stride = self.of(e.base), self.of(e.stride)
            return None if base is None or stride is None or not self.fits(last) else Ramp(base, stride, e.lanes)
        if isinstance(e, Broadcast):
            value = self.of(e.value)
            return None if value is None else Broadcast(value, e.lanes)
        if not self.fits(e):
            return None
        if isinstance(e, IntImm):
            return IntImm(e.value, "int32")
        if isinstance(e, Var):
            return self.narrow.get(e)
        if isinstance(e, Cast) and e.value.dtype == "int32":
            return self(e.value)  # type: ignore[no-any-return]
        if isinstance(e, Binary) and e.op in _ARITHMETIC:
            a, b = self.of(e.a), self.of(e.b)
            return None if a is None or b is None else binary(e.op, a, b)
        return None

    def fits(self, e: Expr) -> bool:
        """True when every value of e is one of int32."""
        low, high = self.analyzer.bounds(e)
        least, most = dt.integer_range("int32")
        return low is not None and high is not None and least <= low and high <= most

    def access(self, buffer: Buffer, indices: Sequence[Expr]) -> tuple[Buffer, tuple[Expr, ...]]:
        return buffer, tuple([self.index(i) for i in indices])

    def loop(self, s: For) -> Stmt:
        low, extent = self.of(s.min), self.of(s.extent)
        with loop_scope(self.analyzer, s.loop_var, s.min, s.extent):
            if s.loop_var.type != "int64" or low is None or extent is None or not self.fits(
                    binary("add", s.min, s.extent)):
                return super().loop(s)
            var = Var(s.loop_var.name, "int32")
            self.narrow[s.loop_var], self.variables[s.loop_var] = var, cast("int64", var)
            return For(var, low, extent, s.kind, self(s.body), s.thread_tag, s.annotations)
