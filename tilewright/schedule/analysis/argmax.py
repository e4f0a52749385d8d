"""The combiners of argmax and argmin: of a value and the index where it was found, the pair with the extreme value."""
from __future__ import annotations

from collections.abc import Iterator, Sequence

from tilewright.te.reduction import CommReducer
from tilewright.tir.arithmetic import binary, if_then_else, select
from tilewright.tir.conversion import max_value, min_value
from tilewright.tir.expr import Expr, IntImm, Var

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
