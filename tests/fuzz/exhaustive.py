"""Terms of integers compared on every value of the elements that they hold, where those have 32 bits at most."""
from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import reduce
from typing import Any

import numpy as np

from tilewright.tir import dtype as dt

from .terms import Term

MOST_BITS = 32
CHUNK_BITS = 13                                        # values at a time
_PLAIN: dict[str, Any] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "min": np.minimum, "max": np.maximum,
    "bitand": np.bitwise_and, "bitor": np.bitwise_or, "bitxor": np.bitwise_xor, "and": np.logical_and,
    "or": np.logical_or, "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
    "ge": np.greater_equal}


class Unknown(Exception):
    """A term with floats, wide integers or an operator that is not evaluated here."""


def leaves(terms: Iterable[Term]) -> set[Term]:
    """The elements and scalars of arguments in terms."""
    seen: set[Term] = set()
    stack, found = list(terms), set()
    while stack:
        t = stack.pop()
        if t in seen:
            continue
        seen.add(t)
        if t.op in ("argument", "scalar"):
            found.add(t)
        stack += [x for x in _operands(t) if isinstance(x, Term)]
    return found


def _operands(t: Term) -> Iterator[Any]:
    for a in t.args:
        if isinstance(a, frozenset):                   # (item, count), or (type, item) of eq and ne
            yield from (part for pair in a for part in pair)
        else:
            yield a


def same_everywhere(one: Any, other: Any, dtypes: Mapping[int, str]) -> bool | None:
    """Whether two terms have the same value for all elements; None where there are too many values to try.

    dtypes: those of the arguments by position.
    """
    if not isinstance(one, Term) or not isinstance(other, Term):
        return None
    held = sorted(leaves((one, other)), key=lambda t: t.args[:2])
    types = [dtypes[t.args[0]] for t in held]
    if not all(dt.is_integer(d) for d in types) or sum(dt.bits_of(d) for d in types) > MOST_BITS:
        return None
    bits = [dt.bits_of(d) for d in types]
    chunk = 1 << min(CHUNK_BITS, sum(bits))
    try:
        for start in range(0, 1 << sum(bits), chunk):
            codes = np.arange(start, start + chunk, dtype=np.uint32)
            known: dict[Term, Any] = {}
            for t, d, width in zip(held, types, bits, strict=True):
                known[t] = (codes & np.uint32((1 << width) - 1)).astype(f"uint{width}").view(d)
                codes = codes >> np.uint32(width % 32)
            with np.errstate(all="ignore"):
                if not _same(one, other, known):
                    return False
    except Unknown:
        return None
    return True


def _same(one: Term, other: Term, known: dict[Term, Any]) -> bool:
    """Whether two terms have the same values, those of their elements being known.

    Of two sums, minima and the like the operands that are not in both come first: where they agree, all does.
    """
    held = dict(known)
    gathered = one.op == other.op and one.args[0] == other.args[0] and isinstance(one.args[1], frozenset)
    if gathered:
        rest = [t.args[1] - u.args[1] for t, u in ((one, other), (other, one))]
        if all(rest):
            first, second = (_gathered(one.op, one.args[0], r, known) for r in rest)
            apart = np.broadcast_to(first != second, next(iter(held.values())).shape)
            held = {t: v[apart] for t, v in held.items()}
    return np.array_equal(_value(one, held), _value(other, held))


def _value(t: Term, known: dict[Term, Any]) -> Any:
    if t not in known:
        known[t] = _computed(t, known)
    return known[t]


def _is_narrow(dtype: object) -> bool:
    return isinstance(dtype, str) and dt.is_integer(dtype) and dt.bits_of(dtype) <= 32


def _computed(t: Term, known: dict[Term, Any]) -> Any:
    def at(x: Any, dtype: str) -> Any:
        return _value(x, known) if isinstance(x, Term) else np.asarray(x, dtype)

    if t.op in ("cast", "call"):
        dtype = t.args[t.op == "call"]
        if not _is_narrow(dtype):
            raise Unknown(t.op)
        if t.op == "cast":
            return np.asarray(at(t.args[1], "int64")).astype(dtype)
        if t.args[0] != "abs":
            raise Unknown(t.args[0])
        return np.abs(at(t.args[2], dtype))
    if t.op == "choose":
        condition, a, b = t.args
        like = next(x for x in (a, b) if isinstance(x, Term))
        dtype = str(_value(like, known).dtype)
        return np.where(_value(condition, known), at(a, dtype), at(b, dtype))
    dtype = t.args[0]
    if t.op not in (*_PLAIN, "truncdiv", "floordiv") or not _is_narrow(dtype):
        raise Unknown(t.op)
    if isinstance(t.args[1], frozenset):
        return _gathered(t.op, dtype, t.args[1], known)
    a, b = at(t.args[1], dtype), at(t.args[2], dtype)
    if t.op in _PLAIN:
        return _PLAIN[t.op](a, b)
    quotient = np.true_divide(a, b, dtype="float64")   # of 32 bits: rounding is harmless
    whole = (np.trunc if t.op == "truncdiv" else np.floor)(quotient)
    return np.where(b == 0, 0, whole).astype("int64").astype(dtype)


def _gathered(op: str, dtype: str, items: Iterable[tuple[Any, int]], known: dict[Term, Any]) -> Any:
    each = [(_value(x, known) if isinstance(x, Term) else np.asarray(x, dtype), n) for x, n in items]
    return reduce(_PLAIN[op], [x if n == 1 else _repeated(op, x, n) for x, n in each]).astype(dtype)


def _repeated(op: str, x: Any, count: int) -> Any:
    if op == "add":
        return x * np.asarray(count % (1 << 32)).astype(x.dtype)
    if op == "mul":
        return x ** np.asarray(count, x.dtype) if count < 128 else _repeated(op, x, 127) * _repeated(op, x, count - 127)
    return x
