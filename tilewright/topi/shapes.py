"""Shapes and axes of operators: checks of arguments, extents, NumPy's broadcasting, reads that broadcast."""
from __future__ import annotations

import functools
import math
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from tilewright.arith.analyzer import Analyzer
from tilewright.support.errors import TensorExpressionError, described
from tilewright.te.conditions import state
from tilewright.te.definition import to_shape
from tilewright.te.extents import simplified
from tilewright.te.operation import ComputeOp
from tilewright.te.tensor import Tensor, shape_text
from tilewright.tir.arithmetic import binary
from tilewright.tir.conversion import cast, convert
from tilewright.tir.expr import Expr, IntImm

Shape = tuple[Expr, ...]


def check(condition: bool, op: str, problem: str, hint: str = "") -> None:
    """Raise TensorExpressionError, with the operator's name in front, unless condition holds."""
    if not condition:
        raise TensorExpressionError(f"{op}: {problem}", hint)


def check_tensors(op: str, **tensors: Any) -> None:
    """Each is a te tensor."""
    for name, x in tensors.items():
        check(isinstance(x, Tensor), op, f"{name} is {described(x)}, not a tensor",
              "te.placeholder(shape, dtype) and te.compute give tensors, te.constant makes one of an array")


def check_rank(op: str, name: str, x: Tensor, least: int, most: int | None = None) -> None:
    """x is a te tensor of `least` to `most` dimensions; of exactly `least` where most is None."""
    check_tensors(op, **{name: x})
    most = least if most is None else most
    wanted = str(least) if most == least else f"at least {least}" if most > 99 else f"{least} to {most}"
    check(least <= x.ndim <= most, op, f"{name} has the shape {shape_text(x.shape)}, {wanted} dimension(s) are needed")


def check_choice(op: str, name: str, value: Any, choices: Iterable[Any]) -> None:
    """value is one of the choices."""
    known = list(choices)
    check(any(value is k or isinstance(value, str) and value == k for k in known), op, f"{name} is {described(value)}",
          f"one of {', '.join(map(repr, known))}")


# extents


def constant(extent: Any) -> int | None:
    """The number that an extent is; None where it is symbolic."""
    if isinstance(extent, IntImm):
        return extent.value
    return int(extent) if isinstance(extent, (int, np.integer)) else None


def is_one(extent: Any) -> bool:
    return constant(extent) == 1


def same_extent(a: Any, b: Any) -> bool:
    """True where two extents are equal for every value of their variables."""
    x, y = constant(a), constant(b)
    if x is not None or y is not None:
        return x == y
    return a is b or Analyzer().equal(a, b)


def same_shape(a: Sequence[Any], b: Sequence[Any]) -> bool:
    return len(a) == len(b) and all(map(same_extent, a, b))


def check_extent(op: str, what: str, found: Any, wanted: Any, hint: str = "") -> None:
    """`found`, the extent that `what` names, is `wanted`."""
    if not same_extent(found, wanted):
        raise unequal(op, found, wanted, f"{what} is {found}, not {wanted}", hint)


def unequal(op: str, a: Any, b: Any, problem: str, hint: str = "") -> TensorExpressionError:
    """The error for two extents that have to be equal."""
    error = TensorExpressionError(f"{op}: {problem}", hint)
    error.unequal = a, b
    return error


def product(extents: Iterable[Any]) -> Expr:
    """The number of elements of a shape; of constants it is one, in 64 bits where it is that large."""
    given = tuple(extents)
    known = count(given)
    if known is not None:
        return convert(known)
    out: Expr = IntImm(1)
    for e in given:
        out = binary("mul", out, e)
    return out


def summed(*amounts: Any) -> Expr:
    """The sum of extents and amounts in its simplest form; of constants it is one, in 64 bits where it has to be."""
    known = [constant(a) for a in amounts]
    if None not in known:
        return convert(sum(n for n in known if n is not None))
    return simplified(functools.reduce(lambda a, b: binary("add", a, b), amounts))


def quotient(op: str, what: str, extent: Any, divisor: Any) -> Expr:
    """extent / divisor. Raises where constants say that it leaves a remainder; states of sizes that they leave none."""
    d = constant(divisor)
    check(d is None or d > 0, op, f"{what} is divided by {divisor}")
    rest = simplified(binary("floormod", extent, divisor))
    check((constant(rest) or 0) == 0, op, f"{what} is {extent}, no multiple of {divisor}")
    if constant(rest) is None:
        state(binary("eq", rest, 0), f"{op}: {what} is {extent}, no multiple of {divisor}")
    return simplified(binary("floordiv", extent, divisor))


def as_shape(op: str, shape: Any, count: int | None = None) -> Shape:
    """A shape that the caller gives: a number, or several numbers and variables; of so many extents."""
    given = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    check(count is None or len(given) == count, op, f"{described(shape)} is given, {count} extent(s) are needed")
    check(not any(isinstance(d, (bool, np.bool_, Tensor)) for d in given), op, f"the extents are {described(shape)}, "
          "not made of integers and sizes")
    return to_shape(given, op)


def number(extent: Any, dtype: str) -> Any:
    """An extent as a scalar of dtype."""
    return convert(extent).astype(dtype)


# axes


def axis_index(op: str, axis: Any, rank: int, name: str = "axis") -> int:
    """The position of an axis, which counts from the end where it is negative."""
    check(isinstance(axis, (int, np.integer)) and not isinstance(axis, bool), op, f"{name} is {described(axis)}, "
          "not an integer")
    at: int = int(axis)
    check(-rank <= at < rank, op, f"{name} is {at}, and there are {rank} dimension(s)",
          f"from {-rank} to {rank - 1}" if rank else "")
    return at % rank


def axis_indices(op: str, axis: Any, rank: int, name: str = "axis") -> tuple[int, ...]:
    """The positions of axes, in the order that is given; all of them for None. Raises where one comes twice."""
    if axis is None:
        return tuple(range(rank))
    given = tuple(axis) if isinstance(axis, (tuple, list)) else (axis,)
    out = tuple(axis_index(op, a, rank, name) for a in given)
    check(len(set(out)) == len(out), op, f"{name} is {described(axis)}, which has an axis twice")
    return out


def check_numbers(op: str, **values: Any) -> None:
    """Each is a real number that float64 holds."""
    for name, value in values.items():
        real = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
        check(real, op, f"{name} is {described(value)}, a number is needed")
        check(not isinstance(value, int) or abs(value) <= sys.float_info.max, op, f"{name} is an integer that is too "
              "large for float64")


def per_axis(op: str, name: str, value: Any, count: int, least: int = 0, sizes: bool = False) -> tuple[Any, ...]:
    """One integer for each of `count` axes: a number stands for all. Raises below `least`. sizes: expressions too."""
    given = tuple(value) if isinstance(value, (tuple, list)) else (value,) * count
    check(len(given) == count, op, f"{name} is {described(value)}, {count} number(s) are needed")
    known = [constant(v) if sizes and isinstance(v, Expr) else v for v in given]
    for v, e in zip(known, given):
        symbolic = v is None and isinstance(e, Expr)
        check(symbolic or isinstance(v, (int, np.integer)) and not isinstance(v, bool) and int(v) >= least, op,
              f"{name} is {described(value)}, not made of integers of at least {least}")
    return tuple(e if v is None else int(v) for v, e in zip(known, given))


# broadcasting


def broadcast_shapes(op: str, *shapes: Shape) -> Shape:
    """The shape that NumPy's rules give; a symbolic extent fits itself and the constant 1."""
    rank = max((len(s) for s in shapes), default=0)
    out = []
    for k in range(-rank, 0):
        dims = [s[k] for s in shapes if len(s) >= -k]
        widest = next((d for d in dims if not is_one(d)), dims[0])
        for d in dims:
            if not is_one(d) and not same_extent(d, widest):
                raise unequal(
                    op, widest, d,
                    f"the shapes {', '.join(map(shape_text, shapes))} do not fit: {widest} and {d} in dimension {k}",
                    "" if constant(d) is not None and constant(widest) is not None else
                    "a symbolic extent fits the same variable and the constant 1")
        out.append(widest)
    return tuple(out)


def element(x: Tensor, indices: Sequence[Any]) -> Expr:
    """The element of x at the last of `indices`; dimensions of extent 1 repeat."""
    return batched(x, indices, ())


def batched(x: Tensor, batch: Sequence[Any], own: Sequence[Any]) -> Expr:
    """The element of x at the last of a batch's indices, where extents of 1 repeat, and at its own."""
    free = x.ndim - len(own)
    lead = batch[len(batch) - free:]
    return x(*(0 if is_one(extent) else i for i, extent in zip(lead, x.shape)), *own)


def row_major(indices: Sequence[Any], shape: Sequence[Any]) -> Expr:
    """The number of an element, counted row by row; in 64 bits where the shape is known to have that many."""
    known = count(shape)
    if known is not None and known >= 1 << 31:
        indices = [cast("int64", i) for i in indices]
    flat: Expr = IntImm(0)
    for i, extent in zip(indices, shape):
        flat = binary("add", binary("mul", flat, extent), i)
    return flat


def is_computed(x: Tensor) -> bool:
    return isinstance(x.op, ComputeOp)


def count(shape: Sequence[Any]) -> int | None:
    """The number of elements of a shape of constants."""
    sizes = [constant(d) for d in shape]
    return None if None in sizes else math.prod(s for s in sizes if s is not None)


def index_type(*factors: Any) -> str:
    """int32 where the product of factors is known to fit, else int64."""
    known = count(factors)
    return "int32" if known is not None and known < 1 << 31 else "int64"


def replaced(values: Sequence[Any], position: int, value: Any) -> tuple[Any, ...]:
    """values with another one at a position."""
    return (*values[:position], value, *values[position + 1:])


def pairs(names: Sequence[str], tensors: Sequence[Any]) -> Iterator[tuple[str, Tensor]]:
    """(name, tensor) of those that are given."""
    return ((n, t) for n, t in zip(names, tensors) if t is not None)
