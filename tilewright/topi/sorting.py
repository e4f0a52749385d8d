"""Orders of elements: sorts, the largest ones, places in sorted rows, values without repetition.

NaN is above every number, and equal to NaN. Sorts merge ever longer runs: O(n log n) steps for n elements, and equal
elements keep their order. The largest elements, up to 256 of them, are kept in order while a row passes by.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tilewright.te.conditions import state
from tilewright.te.definition import compute
from tilewright.te.extents import simplified
from tilewright.te.math import bitwise_not, isnan, reinterpret
from tilewright.te.tensor import Tensor, shape_text
from tilewright.tir import dtype as dt
from tilewright.tir.arithmetic import all_of, any_of, binary, if_then_else, logical_not, maximum, minimum, select
from tilewright.tir.conversion import cast, const, max_value, min_value
from tilewright.tir.expr import Expr, IntImm
from tilewright.tir.ir_builder import BufferVar, IRBuilder
from tilewright.topi.shapes import (
    as_shape,
    axis_index,
    check,
    check_choice,
    check_extent,
    check_rank,
    check_tensors,
    constant,
    replaced,
)
from tilewright.topi.shaping import flatten, reshape
from tilewright.topi.statements import each, variable, written
from tilewright.topi.types import INDEX, place_type

FEW = 256                      # elements that are kept in order while a row passes by; more of them are sorted
IN_REGISTERS = 8               # elements for which that is written out
BLOCK = 32                     # elements of a row that are compared with those that are kept in one go


def _below(a: Expr, b: Expr) -> Expr:
    """a comes before b in ascending order."""
    if dt.is_bool(a.dtype):
        return all_of(logical_not(a), b)
    less = binary("lt", a, b)
    return any_of(less, all_of(isnan(b), logical_not(isnan(a)))) if dt.is_float(a.dtype) else less


def ordered(op: str, x: Tensor, at: int, descending: bool) -> Tensor:
    """int64[rest..., n]: the places of the elements along axis `at` in their order."""
    extent, rest = x.shape[at], x.shape[:at] + x.shape[at + 1:]

    def write(ib: IRBuilder, ins: list[BufferVar], outs: list[BufferVar]) -> None:
        (values,), (order, merged) = ins, outs
        n = cast(INDEX, extent)

        def value(row: tuple[Expr, ...], k: Expr) -> Expr:
            return values[row[:at] + (k,) + row[at:]]

        def comes_first(row: tuple[Expr, ...], right: Expr, left: Expr) -> Expr:
            """The element of the right run comes before that of the left one."""
            a, b = value(row, order[row + (right,)]), value(row, order[row + (left,)])
            return _below(b, a) if descending else _below(a, b)
        with each(ib, rest, "row") as row:
            with ib.for_range(const(0, INDEX), n, name="k") as k:
                order[row + (k,)] = k
            width = variable(ib, 1, INDEX, "width")
            with ib.while_loop(binary("lt", width[0], n)):
                with ib.for_range(const(0, INDEX), binary("floordiv", n + 2 * width[0] - 1, 2 * width[0]),
                                  name="run") as run:
                    start = ib.let("start", run * (2 * width[0]))
                    middle = ib.let("middle", minimum(start + width[0], n))
                    end = ib.let("end", minimum(start + 2 * width[0], n))
                    left, right = variable(ib, start, INDEX, "left"), variable(ib, middle, INDEX, "right")
                    with ib.for_range(start, end, name="k") as k:
                        from_right = all_of(binary("lt", right[0], end), any_of(
                            binary("ge", left[0], middle), comes_first(row, right[0], left[0])))
                        with ib.if_scope(from_right):
                            merged[row + (k,)] = order[row + (right[0],)]
                            right[0] = right[0] + 1
                        with ib.else_scope():
                            merged[row + (k,)] = order[row + (left[0],)]
                            left[0] = left[0] + 1
                with ib.for_range(const(0, INDEX), n, name="k") as k:
                    order[row + (k,)] = merged[row + (k,)]
                width[0] = 2 * width[0]
    return written(f"{op}_order", [((*rest, extent), INDEX)] * 2, [x], write)[0]


# the first of an order


def _key(e: Expr, largest: bool) -> Expr:
    """An integer that is above those of all elements that come later in the order; equals have equal ones."""
    if dt.is_bool(e.dtype):
        e = cast("uint8", e)
    if dt.is_float(e.dtype):
        x = e if e.dtype == "float64" else cast("float32", e)
        kind = f"int{dt.bits_of(x.dtype)}"
        bits, top = reinterpret(kind, x), max_value(kind)
        ascending = binary("bitxor", bits, binary("bitand", binary("shr", bits, dt.bits_of(kind) - 1), top))
        e = select(isnan(x), top, select(binary("eq", x, const(0, x.dtype)), const(0, kind), ascending))
    return e if largest else bitwise_not(e)


class _Kept:
    """The first `count` elements of those that were seen, by their keys, in order: in registers where they are few."""

    def __init__(self, ib: IRBuilder, kind: str, count: int, none: Expr) -> None:
        self.ib, self.count, self.none = ib, count, none
        self.loop = "unroll" if count <= IN_REGISTERS else "serial"
        self.keys, self.places = (ib.allocate(t, count, name, scope="local") for t, name in (
            (kind, "kept"), (INDEX, "kept_at")))
        with self.ranks() as j:
            self.keys[j], self.places[j] = min_value(kind), none

    def ranks(self, first: int = 0) -> Any:
        return self.ib.for_range(first, self.count, name="rank", kind=self.loop)

    @property
    def last(self) -> Expr:
        """The key that an element has to exceed."""
        return self.keys[self.count - 1]

    def put(self, key: Expr, place: Expr) -> None:
        """Put an element behind those of its key and above; the last one is dropped."""
        keys, places, ib = self.keys, self.places, self.ib
        with self.ranks(1) as step:
            j = binary("sub", self.count, step)
            above = binary("sub", j, 1)
            places[j] = select(binary("ge", keys[j], key), places[j],
                               select(binary("ge", keys[above], key), place, places[above]))
            keys[j] = maximum(keys[j], minimum(keys[above], key))
        with ib.if_scope(binary("gt", key, keys[0])):
            keys[0], places[0] = key, place

    def fill(self, key: Callable[[Expr], Expr], extent: Expr) -> None:
        """Put the first elements of the lowest key at the ranks that nothing exceeds."""
        ib = self.ib
        with ib.if_scope(binary("eq", self.places[self.count - 1], self.none)):
            free = variable(ib, 0, INDEX, "free")
            with self.ranks() as j:
                free[0] = free[0] + cast(INDEX, binary("ne", self.places[j], self.none))
            with ib.for_range(const(0, INDEX), extent, name="k") as k:
                wanted = binary("eq", key(k), min_value(self.keys.dtype))
                with ib.if_scope(all_of(wanted, binary("lt", free[0], self.count))):
                    self.places[free[0]] = k
                    free[0] = free[0] + 1


def _first(op: str, x: Tensor, at: int, count: int, largest: bool) -> Tensor:
    """int64[rest..., count]: the places of the first elements of the order, which are few.

    A block of elements is passed by where its first does not exceed the last one kept.
    """
    extent, rest = x.shape[at], x.shape[:at] + x.shape[at + 1:]

    def write(ib: IRBuilder, ins: list[BufferVar], outs: list[BufferVar]) -> None:
        (values,), (order,) = ins, outs
        n = cast(INDEX, extent)
        with each(ib, rest, "row") as row:
            def key(k: Expr) -> Expr:
                return _key(values[row[:at] + (k,) + row[at:]], largest)
            kind = key(const(0, INDEX)).dtype
            kept = _Kept(ib, kind, count, n)
            whole = binary("floordiv", n, BLOCK)
            keys = ib.allocate(kind, BLOCK, "keys", scope="local")
            with ib.for_range(const(0, INDEX), whole, name="block") as block:
                start = block * BLOCK
                most = variable(ib, min_value(kind), kind, "most")
                with ib.for_range(0, BLOCK, name="lane") as lane:
                    keys[lane] = key(start + lane)
                    most[0] = maximum(most[0], keys[lane])
                with ib.if_scope(binary("gt", most[0], kept.last)), ib.for_range(0, BLOCK, name="lane") as lane:
                    with ib.if_scope(binary("gt", keys[lane], kept.last)):
                        kept.put(keys[lane], start + lane)
            with ib.for_range(whole * BLOCK, n, name="k") as k:
                own = ib.let("own", key(k))
                with ib.if_scope(binary("gt", own, kept.last)):
                    kept.put(own, k)
            kept.fill(key, n)
            with kept.ranks() as j:
                order[row + (j,)] = kept.places[j]
    return written(f"{op}_first", [((*rest, IntImm(count)), INDEX)], [x], write)[0]


def _axis(op: str, x: Any, axis: Any) -> int:
    check_tensors(op, x=x)
    return axis_index(op, axis, x.ndim)


def _moved(i: Sequence[Any], at: int) -> tuple[Any, ...]:
    """Indices of x as those of its order: the one along the axis last."""
    return (*i[:at], *i[at + 1:], i[at])


def _at_places(op: str, x: Tensor, at: int, order: Tensor, shape: Sequence[Any]) -> Tensor:
    if constant(x.shape[at]) == 0:
        return compute(shape, lambda *i: const(0, x.dtype), name=op)
    return compute(shape, lambda *i: x(*replaced(i, at, order(*_moved(i, at)))), name=op)


def sort(x: Tensor, *, axis: int = -1, descending: bool = False) -> Tensor:
    """The elements along an axis in ascending order, NaN last; in descending order NaN comes first."""
    at = _axis("sort", x, axis)
    return _at_places("sort", x, at, ordered("sort", x, at, descending), x.shape)


def argsort(x: Tensor, *, axis: int = -1, descending: bool = False, dtype: Any = INDEX) -> Tensor:
    """The places of the elements along an axis in the order of `sort`; equal elements keep theirs."""
    at = _axis("argsort", x, axis)
    kind = place_type("argsort", dtype, simplified(x.shape[at] - 1))
    order = ordered("argsort", x, at, descending)
    return compute(x.shape, lambda *i: cast(kind, order(*_moved(i, at))), name="argsort")


def topk(x: Tensor, *, k: Any, axis: int = -1, largest: bool = True, dtype: Any = INDEX) -> tuple[Tensor, Tensor]:
    """(values, places) of the k largest (or smallest) elements along an axis, the largest (smallest) first.

    NaN counts as the largest; of equals the first comes first. States of sizes that k is not above the extent; raises
    TensorExpressionError where it is known to be.
    """
    op = "topk"
    at = _axis(op, x, axis)
    kind = place_type(op, dtype, simplified(x.shape[at] - 1))
    count, = as_shape(op, k, 1)
    have, wanted = constant(x.shape[at]), constant(count)
    check(have is None or wanted is None or wanted <= have, op, f"k is {count}, there are {have} elements along axis "
          f"{at} of the shape {shape_text(x.shape)}")
    if have is None or wanted is None:
        state(binary("le", count, x.shape[at]), f"{op}: k is {count}, there are only {x.shape[at]} elements along axis "
              f"{at}")
    few = wanted is not None and 0 < wanted <= FEW
    order = _first(op, x, at, wanted, largest) if wanted is not None and few else ordered(op, x, at, largest)
    shape = replaced(x.shape, at, count)
    return (_at_places(op, x, at, order, shape),
            compute(shape, lambda *i: cast(kind, order(*_moved(i, at))), name=f"{op}_places"))


def searchsorted(x: Tensor, value: Tensor, *, side: str = "left", dtype: Any = INDEX) -> Tensor:
    """y[..., j] = how many elements of x[..., :] are below value[..., j]; with side "right" below or equal to it.

    x: T[..., n], each row in ascending order; value: T[..., m], or of any shape beside x: T[n]. By bisection.
    Raises TensorExpressionError where shapes or types differ.
    """
    op = "searchsorted"
    check_tensors(op, x=x, value=value)
    check_rank(op, "x", x, 1, 100)
    check_choice(op, "side", side, ("left", "right"))
    check(x.dtype == value.dtype, op, f"value is {value.dtype}, x is {x.dtype}",
          f'convert it: value.astype("{x.dtype}")')
    kind = place_type(op, dtype, x.shape[-1])
    if x.ndim > 1:
        check_rank(op, "value", value, x.ndim)
    for n, extent in enumerate(x.shape[:-1]):
        check_extent(op, f"extent {n} of value", value.shape[n], extent)

    def write(ib: IRBuilder, ins: list[BufferVar], outs: list[BufferVar]) -> None:
        (rows, values), (found,) = ins, outs
        with each(ib, value.shape) as i:
            low = variable(ib, 0, INDEX, "low")
            high = variable(ib, cast(INDEX, x.shape[-1]), INDEX, "high")
            with ib.while_loop(binary("lt", low[0], high[0])):
                middle = ib.let("middle", binary("floordiv", low[0] + high[0], 2))
                own = rows[i[:x.ndim - 1] + (middle,)]
                before = _below(own, values[i]) if side == "left" else logical_not(_below(values[i], own))
                with ib.if_scope(before):
                    low[0] = middle + 1
                with ib.else_scope():
                    high[0] = middle
            found[i] = low[0]
    y, = written(f"{op}_bisection", [(value.shape, INDEX)], [x, value], write)
    return compute(y.shape, lambda *i: cast(kind, y(*i)), name=op)


def unique(x: Tensor, *, return_index: bool = False) -> tuple[Tensor, ...]:
    """(values, inverse, counts, number): each value of x once, in ascending order.

    Of n elements: values T[n] and counts int64[n] (how often each comes), `number` of them, int64[1], and 0 behind
    them; inverse: int64 of the shape of x, x = values[inverse]. return_index: and int64[n], where each value is first.
    """
    op = "unique"
    check_tensors(op, x=x)
    flat = flatten(x)
    extent = flat.shape[0]
    order = ordered(op, flat, 0, False)

    def write(ib: IRBuilder, ins: list[BufferVar], outs: list[BufferVar]) -> None:
        (given, places), (values, inverse, counts, number, *first) = ins, outs
        with ib.for_range(0, extent, name="k") as k:
            values[k], counts[k] = const(0, x.dtype), const(0, INDEX)
            for index in first:
                index[k] = const(0, INDEX)
        number[0] = const(0, INDEX)
        with ib.for_range(0, extent, name="k") as k:
            own = given[places[k]]
            new = if_then_else(binary("gt", k, 0), _below(given[places[binary("sub", k, 1)]], own), const(True, "bool"))
            with ib.if_scope(new):
                values[number[0]] = own
                for index in first:
                    index[number[0]] = places[k]
                number[0] = number[0] + 1
            at = ib.let("at", number[0] - 1)
            counts[at] = counts[at] + 1
            inverse[places[k]] = at
    results = [((extent,), x.dtype), ((extent,), INDEX), ((extent,), INDEX), ((IntImm(1),), INDEX)]
    more = [((extent,), INDEX)] if return_index else []
    values, inverse, counts, *rest = written(op, [*results, *more], [flat, order], write)
    return values, reshape(inverse, x.shape), counts, *rest


__all__ = ["argsort", "searchsorted", "sort", "topk", "unique"]
