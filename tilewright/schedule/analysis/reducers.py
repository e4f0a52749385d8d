"""Which reduction a block computes: its combiner, the terms it combines, and the identity."""
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tilewright.schedule.analysis.dataflow import is_reduction, loads_of, same_indices
from tilewright.te.reduction import CommReducer, known_combiners
from tilewright.tir import dtype as dt
from tilewright.tir.arithmetic import binary, if_then_else, select
from tilewright.tir.buffer import Buffer, Load
from tilewright.tir.conversion import const, max_value, min_value
from tilewright.tir.equal import structural_equal
from tilewright.tir.expr import Binary, Expr, IntImm, Select, Var
from tilewright.tir.iter_var import COMM_REDUCE
from tilewright.tir.node import Node, substitute, walk
from tilewright.tir.patterns import match
from tilewright.tir.stmt import Block, LetStmt, Seq, Stmt, Store, seq


@dataclass(frozen=True)
class Reduction:
    """targets[n][point] = combiner.result[n] of the old targets (lhs) and the terms (rhs)."""
    combiner: CommReducer
    targets: tuple[Buffer, ...]
    point: tuple[Expr, ...]
    terms: tuple[Expr, ...]

    @property
    def operators(self) -> tuple[str, ...]:
        """By which operator each component is combined with its term alone; "" where it is another formula. A choice of
        the larger or smaller one, which leaves NaN out, is max or min too."""
        return tuple(map(_operator, self.combiner.result, self.combiner.lhs, self.combiner.rhs))

    def step(self, targets: tuple[Buffer, ...], point: tuple[Expr, ...], terms: tuple[Expr, ...]) -> Stmt:
        """The statement that combines terms into the elements of targets at point."""
        table: dict[Var, Node] = {v: Load(b, point) for v, b in zip(self.combiner.lhs, targets, strict=True)}
        table |= dict(zip(self.combiner.rhs, terms, strict=True))
        results = [substitute(r, table) for r in self.combiner.result]
        if len(targets) == 1:
            return Store(targets[0], results[0], point)
        fresh = [Var(f"{b.name}_new", b.dtype) for b in targets]
        body = stores(targets, fresh, point)
        for v, value in zip(reversed(fresh), reversed(results)):
            body = LetStmt(v, value, body)
        return body


def _operator(result: Expr, old: Var, new: Var) -> str:
    match result:
        case Binary(op, a, b) if a is old and b is new or a is new and b is old:
            return op
        case Select(Binary("gt" | "lt" as better, a, b), c, d) if a is c is new and b is d is old:
            return "max" if better == "gt" else "min"
    return ""


def stores(targets: tuple[Buffer, ...], values: Sequence[Expr], point: tuple[Expr, ...]) -> Stmt:
    """targets[n][point] = values[n], one after the other."""
    return seq(Store(b, value, point) for b, value in zip(targets, values, strict=True))


def reduction_of(block: Block) -> Reduction | None:
    """The reduction that block computes, when its combiner is known: operators of OPERATORS, argmax, argmin, or one
    that a te reduction was made with (`te.comm_reducer`). None for anything else."""
    made = _components(block.body)
    started = None if block.init is None else _components(block.init)
    if made is None or started is None or not is_reduction(block):
        return None
    targets, point = tuple(s.buffer for s, _ in made), made[0][0].indices
    begun = [s for s, _ in started]
    alike = len(begun) == len(made) and all(same_indices(s.indices, point) for s, _ in made) and all(
        s.buffer is b and same_indices(s.indices, point) for s, b in zip(begun, targets))
    reduced = {iv.var for iv in block.iter_vars if iv.iter_type == COMM_REDUCE}
    if not alike or len(set(map(id, targets))) < len(targets) or any(n in reduced for i in point for n in walk(i)):
        return None
    values = tuple(value for _, value in made)
    old, starts = [Load(b, point) for b in targets], [value for _, value in started]
    for combiner, commutes in _candidates(values, old, starts):
        terms = _terms(combiner, values, targets, old, commutes)
        if terms is not None:
            return Reduction(combiner, targets, point, terms)
    return None


def _components(body: Stmt) -> list[tuple[Store, Expr]] | None:
    """(store, its value without lets) of statements that store several values at once."""
    lets: dict[Var, Node] = {}
    while isinstance(body, LetStmt):
        lets[body.var] = substitute(body.value, lets)
        body = body.body
    parts = body.stmts if isinstance(body, Seq) else (body,)
    found = [s for s in parts if isinstance(s, Store) and s.predicate is None]
    if not found or len(found) < len(parts):
        return None
    if any(loads_of([s.value], earlier.buffer) for n, s in enumerate(found) for earlier in found[:n]):
        return None                                    # a later store sees what an earlier one wrote
    return [(s, substitute(s.value, lets)) for s in found]


OPERATORS: dict[str, Callable[[str], Expr]] = {          # operator -> its identity for a dtype
    "add": lambda dtype: const(0, dtype), "mul": lambda dtype: const(1, dtype), "max": min_value, "min": max_value,
    "bitor": lambda dtype: const(0, dtype), "bitxor": lambda dtype: const(0, dtype),
    "bitand": lambda dtype: const(-1 if dt.integer_range(dtype)[0] < 0 else dt.integer_range(dtype)[1], dtype),
    "and": lambda dtype: const(True, dtype), "or": lambda dtype: const(False, dtype),
}


def _candidates(values: tuple[Expr, ...], old: Sequence[Expr],
                starts: Sequence[Expr]) -> Iterator[tuple[CommReducer, bool]]:
    """(combiner, whether the old elements may stand on either side of it)."""
    dtypes = tuple(e.dtype for e in old)
    if all(isinstance(v, Binary) and v.op in OPERATORS and v.dtype == d for v, d in zip(values, dtypes)):
        yield _operators(values, old, dtypes), len(values) == 1
    yield from ((combiner, False) for combiner in extreme_combiners(dtypes, starts))
    yield from ((combiner, True) for combiner in known_combiners(dtypes))


def _operators(values: tuple[Any, ...], old: Sequence[Expr], dtypes: tuple[str, ...]) -> CommReducer:
    """Each value by an operator of its own; several keep the old elements on the sides where they stand."""
    several = len(values) > 1
    x, y = (tuple(Var(f"{name}{n}" if several else name, d) for n, d in enumerate(dtypes)) for name in "xy")
    sides = ((b, a) if several and structural_equal(v.b, o) else (a, b) for v, o, a, b in zip(values, old, x, y))
    result = tuple(Binary(v.op, a, b) for v, (a, b) in zip(values, sides))
    return CommReducer(values[0].op, x, y, result, tuple(OPERATORS[v.op](d) for v, d in zip(values, dtypes)))


def _terms(combiner: CommReducer, values: tuple[Expr, ...], targets: tuple[Buffer, ...], old: Sequence[Expr],
           commutes: bool) -> tuple[Expr, ...] | None:
    """What combiner combines in values with the old elements, on its left or, if it commutes, on either side."""
    for lhs, rhs in ((combiner.lhs, combiner.rhs), (combiner.rhs, combiner.lhs))[:1 + commutes]:
        table: dict[Var, Expr] = dict(zip(lhs, old, strict=True))
        if all(match(r, value, table, set(rhs)) for r, value in zip(combiner.result, values, strict=True)):
            terms = tuple(table[v] for v in rhs if v in table)
            if len(terms) == len(rhs) and not any(loads_of(terms, b) for b in targets):
                return terms
    return None


_SIDES = (("argmax", "gt", "lt", "max", min_value), ("argmin", "lt", "gt", "min", max_value))
_REVERSED = {"gt": "lt", "lt": "gt"}


def extreme_combiners(dtypes: Sequence[str], starts: Sequence[Expr]) -> Iterator[CommReducer]:
    """The ways to write argmax and argmin of a pair (index, value), or (value, index), of these dtypes.

    A new pair takes the place of the old one where its value is better; of equal values the old pair stays, or the
    one with the less, or the greater, index. The identity has the index of starts, the constant pair that the
    reduction starts with: such a pair is there in every order of the steps, so that it may come any number of times.
    """
    if len(dtypes) != 2:
        return
    for place in (0, 1):                                   # of the index
        if isinstance(starts[place], IntImm):
            old, new = (tuple(Var(f"{name}{n}", d) for n, d in enumerate(dtypes)) for name in "xy")
            for name, better, worse, extreme, limit in _SIDES:
                bound = limit(dtypes[1 - place])
                identity = (starts[place], bound) if place == 0 else (bound, starts[place])
                for result in _results(old, new, place, better, worse, extreme):
                    yield CommReducer(name, old, new, result, identity)


def _results(old: tuple[Var, ...], new: tuple[Var, ...], place: int, better: str, worse: str,
             extreme: str) -> Iterator[tuple[Expr, ...]]:
    (i, j), (x, y) = ((old[p], new[p]) for p in (place, 1 - place))
    for choose in (select, if_then_else):
        for stays, condition in _conditions(i, j, x, y, better, worse):
            index, value = (choose(condition, *((a, b) if stays else (b, a))) for a, b in ((i, j), (x, y)))
            for v in (value, binary(extreme, x, y), binary(extreme, y, x)):
                yield (index, v) if place == 0 else (v, index)


def _conditions(i: Var, j: Var, x: Var, y: Var, better: str, worse: str) -> Iterator[tuple[bool, Expr]]:
    """(True, where the old pair i, x stays before the new one j, y), (False, where the new one takes its place)."""
    yield True, binary("ge" if better == "gt" else "le", x, y)
    yield True, binary("le" if better == "gt" else "ge", y, x)
    yield False, binary(better, y, x)
    yield False, binary(worse, x, y)
    for wins in ("lt", "gt"):
        for stays, (a, k), (b, m) in ((True, (x, i), (y, j)), (False, (y, j), (x, i))):
            for first in (binary(better, a, b), binary(worse, b, a)):
                for equal in (binary("eq", a, b), binary("eq", b, a)):
                    for ahead in (binary(wins, k, m), binary(_REVERSED[wins], m, k)):
                        yield stays, binary("or", first, binary("and", equal, ahead))
