"""Asks for a check, before anything runs, of the accesses whose indices leave their buffers for some sizes."""
from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from functools import reduce

from tilewright.arith.linear import linear
from tilewright.lowering.refuse_overruns import Access, accesses_made, edges_of
from tilewright.lowering.scopes import analyzer_for, shape_vars
from tilewright.lowering.walking import map_stmts
from tilewright.support.errors import LowerError
from tilewright.tir import dtype as dt
from tilewright.tir.arithmetic import all_of, binary, logical_not
from tilewright.tir.assertion import assertion
from tilewright.tir.buffer import lane_room
from tilewright.tir.conversion import cast
from tilewright.tir.expr import Binary, Call, Cast, Expr, IntImm, Ramp, Select, Var
from tilewright.tir.node import rewrite, walk
from tilewright.tir.printer import show
from tilewright.tir.stmt import Evaluate, For, IfThenElse, PrimFunc, Seq, Stmt, While, seq

_KNOWN = (Var, IntImm, Binary, Cast)                     # what an expression of sizes is made of
_DIVISIONS = ("floordiv", "floormod", "truncdiv", "truncmod")


def assert_bounds(func: PrimFunc) -> PrimFunc:
    """func, whose body runs only where certain accesses are known to be inside; elsewhere a call of it raises.

    An access that stands under no condition, in loops whose ends are known at entry, at indices that are affine in the
    loops' variables takes its least and its greatest index whenever none of the loops is empty. What is not proven of
    these is asserted at entry. Raises LowerError where no size keeps such an access inside. Expects loops with
    N-dimensional buffers.
    """
    sizes = _Sizes(func)
    if sizes.sizes:                                      # else refuse_overruns has seen to it
        sizes.visit(func.body, ())
    if not sizes.found:
        return func
    asserted = [assertion(c, message) for c, message in sizes.found.values()]
    inside = reduce(lambda a, b: binary("and", a, b), [c for c, _ in sizes.found.values()])
    return func.with_body(seq([*asserted, IfThenElse(inside, func.body)]))


class _Sizes:
    """The conditions, by their text, that the accesses seen so far ask of the sizes, each with its message."""

    def __init__(self, func: PrimFunc) -> None:
        self.func, self.analyzer = func, analyzer_for(func)
        self.sizes = {v for v in (*shape_vars(func), *func.params) if dt.is_integer(v.dtype) and dt.is_signed(v.dtype)}
        self.given: list[Expr] = []                      # what the function itself asserts before
        self.found: dict[str, tuple[Expr, str]] = {}

    def known(self, e: Expr) -> bool:
        """Whether e can be evaluated before anything runs."""
        return all(isinstance(n, _KNOWN) and (not isinstance(n, Var) or n in self.sizes)
                   and not (isinstance(n, Binary) and n.op in _DIVISIONS and not isinstance(n.b, IntImm))
                   for n in walk(e))

    def visit(self, stmt: Stmt, loops: tuple[For, ...]) -> Stmt:
        if isinstance(stmt, (IfThenElse, While)):
            return stmt
        if isinstance(stmt, Seq):
            return self.sequence(stmt, loops)
        with ExitStack() as scope:
            if isinstance(stmt, For):
                constant = stmt.extent.value if isinstance(stmt.extent, IntImm) else None
                if stmt.thread_tag or not (self.known(stmt.min) and self.known(stmt.extent)):
                    return stmt
                if constant is not None and constant < 1:
                    return stmt
                loops = (*loops, stmt)
                if constant is None:
                    scope.enter_context(self.analyzer.constraint(binary("ge", stmt.extent, 1)))
            for access in accesses_made(stmt):
                self.require_inside(stmt, access, loops)
            return map_stmts(stmt, lambda s: self.visit(s, loops))

    def sequence(self, stmt: Seq, loops: tuple[For, ...]) -> Stmt:
        for s in stmt.stmts:
            self.visit(s, loops)
            if not loops and isinstance(s, Evaluate) and isinstance(s.value, Call) and s.value.op == "Assert":
                condition = s.value.args[0]
                if self.known(condition):
                    self.given.append(condition)
        return stmt

    def require_inside(self, stmt: Stmt, access: Access, loops: Sequence[For]) -> None:
        for d, (index, extent) in enumerate(zip(access.indices, access.buffer.shape, strict=True)):
            room = lane_room(access.buffer, access.indices[:-1]) if isinstance(index, Ramp) else extent
            for edge in edges_of(index):
                ends, past = self.ends(edge, loops), self.ends(binary("sub", edge, room), loops)
                if ends is None or past is None:
                    continue
                top = ends[1] if self.known(room) else past[1]
                runs = f"index {d} runs from {_text(self, ends[0])} to {_text(self, ends[1])}, the extent is {extent}"
                below = binary("lt", top, _exact(room) if self.known(room) else 0)
                for condition, against, end in ((binary("ge", ends[0], 0), binary("lt", ends[0], 0), ends[0]),
                                                (below, logical_not(below), top)):
                    if not self.analyzer.prove(condition):
                        outside = self.analyzer.prove(against)
                        self.ask(stmt, access, runs, all_of(*self.counted(end), condition), outside, loops)

    def ask(self, stmt: Stmt, access: Access, runs: str, condition: Expr, outside: bool, loops: Sequence[For]) -> None:
        at = f"{access.buffer.name}[{', '.join(map(str, access.indices))}]"
        if outside:
            raise LowerError(f"{self.func.name}: {at} is out of bounds: {runs}\n\n{show(self.func, (stmt,))}",
                             "shorten the loop, or guard the access with `if` or T.where")
        if self.given:
            with ExitStack() as scope:
                for given in self.given:
                    scope.enter_context(self.analyzer.constraint(given))
                if self.analyzer.prove(condition):
                    return
        for loop in loops:
            if not isinstance(loop.extent, IntImm):
                condition = binary("or", condition, binary("lt", _exact(loop.extent), 1))
        self.found.setdefault(str(condition), (condition, f"{at} is out of bounds: {runs}"))

    def counted(self, end: Expr) -> list[Expr]:
        """What keeps an end, a sum of sizes, from wrapping around in 64 bits."""
        if self.analyzer.exact(end):
            return []
        terms, const = linear(end)
        most = (dt.integer_range("int64")[1] - abs(const)) // sum(map(abs, terms.values()))
        large = [x for x in terms if dt.integer_range(x.dtype)[1] > most]
        return [c for x in large for c in (binary("le", _exact(x), most), binary("ge", _exact(x), -most))]

    def decided(self, index: Expr, loops: Sequence[For]) -> Expr:
        """index in its simplest form, where no loop is empty."""
        analyzer = analyzer_for(self.func)
        with ExitStack() as scope:
            for loop in loops:
                for fact in (binary("ge", loop.loop_var, loop.min),
                             binary("lt", loop.loop_var, binary("add", loop.min, loop.extent))):
                    scope.enter_context(analyzer.constraint(fact))
            return analyzer.simplify(index)

    def ends(self, index: Expr, loops: Sequence[For]) -> tuple[Expr, Expr] | None:
        """The least and the greatest value of an index, int64 expressions of the sizes; None where one is unknown."""
        terms, const = linear(index)
        if any(isinstance(n, Select) for atom in terms for n in walk(atom)):
            terms, const = linear(self.decided(index, loops))    # the ranges of the loops may choose
        ranges = {loop.loop_var: loop for loop in loops}
        low: Expr = IntImm(0, "int64")
        high: Expr = low
        for atom, k in terms.items():
            if isinstance(atom, Var) and atom in ranges:
                first = _exact(ranges[atom].min)
                last = binary("sub", binary("add", first, _exact(ranges[atom].extent)), 1)
            elif self.known(atom):
                first = last = _exact(atom)
            else:
                return None
            least, most = (first, last) if k > 0 else (last, first)
            low, high = (binary("add", e, binary("mul", x, k)) for e, x in ((low, least), (high, most)))
        return binary("add", low, const), binary("add", high, const)


def _exact(e: Expr) -> Expr:
    """e in 64 bits: the arithmetic of an index or an extent is exact, and would wrap in a condition."""
    if isinstance(e, Binary):
        return binary(e.op, _exact(e.a), _exact(e.b))
    return _exact(e.value) if isinstance(e, Cast) and e.type == "int64" else cast("int64", e)


def _text(sizes: _Sizes, e: Expr) -> str:
    """e as the user would write it, without the widening."""
    return str(rewrite(sizes.analyzer.simplify(e), lambda n: n.value if isinstance(n, Cast) else IntImm(n.value)
                       if isinstance(n, IntImm) and -2**31 <= n.value < 2**31 else None))
