"""What a program compiled by the interpreter calls at run time: conversions, math on one element, lanes, checks."""
from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from tilewright.support.errors import InterpreterError
from tilewright.tir import dtype as dt
from tilewright.tir.ops import BINARY, INTRINSICS

FAILURES = (ValueError, OverflowError, ZeroDivisionError)  # math.* on infinities and outside its domain


def to_int(x: Any, low: int, high: int) -> int:
    """Truncate to zero, saturate; NaN gives 0."""
    y = float(x)
    if y != y:
        return 0
    return high if y >= high else low if y <= low else int(y)


def _small_float(name: str) -> Callable[[Any], Any]:
    form, kind = dt.SMALL_FLOATS[name], dt.numpy_dtype(name).type
    return lambda x: kind(form.nearest(float(x)))


FLOATS: dict[str, Callable[[Any], Any]] = {
    "float16": np.float16,
    "float32": np.float32,
    "float64": np.float64,
    **{name: _small_float(name) for name in dt.SMALL_FLOATS if name != "float16"},
}


def wide_int_to_float(x: int, dtype: str) -> Any:
    """An integer beyond 2**53 as a float, rounded once."""
    if dtype in dt.SMALL_FLOATS:
        large = abs(x) > 1 << 53                       # rounded to odd, so that rounding again does no harm
        return FLOATS[dtype](float(x & ~2047 | 2048 if large and x & 2047 else x))
    return np.array(x, "int64" if x < 2**63 else "uint64").astype(dtype)[()]


def reinterpret(x: Any, source: str, target: str) -> Any:
    """The bits of x as another dtype of the same width."""
    out = np.array(x, dt.numpy_dtype(source)).view(dt.numpy_dtype(target))[()]
    return out if dt.is_float(target) else out.item()


def regroup(x: Any, source: str, target: str) -> Any:
    """The bits of a scalar or of lanes as another number of lanes; the first lane is in the lowest bits."""
    given = [x] if dt.lanes_of(source) == 1 else list(x)
    out = np.array(given, dt.numpy_dtype(source)).view(dt.numpy_dtype(target))
    values = list(out) if dt.is_float(target) else out.tolist()
    return values if dt.lanes_of(target) > 1 else values[0]


def floor_div(a: int, b: int) -> int:
    return a // b if b else 0


def floor_mod(a: int, b: int) -> int:
    return a % b if b else 0


def trunc_div(a: int, b: int) -> int:
    return BINARY["truncdiv"].fold(a, b) if b else 0


def trunc_mod(a: int, b: int) -> int:
    return BINARY["truncmod"].fold(a, b) if b else 0


def shift_left(a: int, b: int, bits: int) -> int:
    return a << b if 0 <= b < bits else 0


def shift_right(a: int, b: int, bits: int) -> int:
    return a >> b if 0 <= b < bits else (-1 if a < 0 else 0)


@functools.cache
def row_function(name: str, dtype: str) -> Callable[..., Any]:
    """Intrinsic `name` on elements of dtype: exact on integers, on floats computed in float64 and rounded once."""
    row = INTRINSICS[name]
    plain = row.evaluate
    assert plain is not None, f"{name} has no evaluation rule"
    if not dt.is_float(dtype):
        return functools.partial(plain, dtype)
    edge = row.special if row.special is not None else getattr(np, name, plain)
    rounded = FLOATS[dtype]

    def apply(*args: Any) -> Any:
        values = [float(a) for a in args]
        try:
            return rounded(plain(*values))
        except FAILURES:
            return rounded(edge(*[np.float64(v) for v in values]))

    def apply_one(x: Any) -> Any:
        try:
            return rounded(plain(float(x)))
        except FAILURES:
            return rounded(edge(np.float64(x)))

    return apply_one if row.arity == 1 else apply


def gather(memory: list[Any], index: Iterable[int], mask: Sequence[bool] | None, zero: Any,
           fail: Callable[[int], None]) -> list[Any]:
    """memory[index] lane by lane; zero where mask is false; fail(element) on an element that nothing wrote."""
    out = []
    for k, at in enumerate(index):
        if mask is not None and not mask[k]:
            out.append(zero)
            continue
        value = memory[at]
        if value is None:
            fail(at)
        out.append(value)
    return out


def scatter(memory: list[Any], index: Sequence[int], values: Sequence[Any], mask: Sequence[bool] | None,
            fail: Callable[[int], None]) -> list[int]:
    """memory[index] = values where mask holds; gives the elements written; fail(element) when two lanes meet."""
    if mask is None:
        written = list(index)
        for at, value in zip(index, values, strict=True):
            memory[at] = value
    else:
        written = []
        for at, value, on in zip(index, values, mask, strict=True):
            if on:
                memory[at] = value
                written.append(at)
    if len(set(written)) != len(written):
        fail(next(at for at in written if written.count(at) > 1))
    return written


def lanes_outside(index: Iterable[int], extent: int, mask: Sequence[bool] | None) -> bool:
    """True when an enabled lane is not in [0, extent)."""
    return any(not 0 <= at < extent and (mask is None or mask[k]) for k, at in enumerate(index))


class Pointer:
    """The argument that access_ptr gives an external function: memory[offset + sum(index * stride)] seen as an
    array of shape; compact without strides.
    """

    def __init__(self, memory: list[Any], offset: int, shape: tuple[int, ...], dtype: str,
                 strides: tuple[int, ...] = ()) -> None:
        size = math.prod(shape)
        grid = np.indices(shape).reshape(len(shape), size)
        steps = np.asarray(strides, "int64") @ grid if strides else np.arange(size)
        self.places: list[int] = (offset + steps).tolist()
        if any(not 0 <= at < len(memory) for at in self.places):
            raise InterpreterError(f"access_ptr: elements {min(self.places)} to {max(self.places)} of {len(memory)}")
        self.memory = memory
        self.initial = [memory[at] for at in self.places]
        filled = [0 if v is None else v for v in self.initial]
        self.array = np.array(filled, dt.numpy_dtype(dtype)).reshape(shape)

    def write_back(self) -> None:
        """Store what the function changed. Elements that it left alone stay as they were, unwritten ones too."""
        flat = self.array.ravel()
        values = flat.tolist() if flat.dtype.kind in "iub" else list(flat)
        before = [0 if v is None else v for v in self.initial]
        for at, old, was, new in zip(self.places, self.initial, before, values, strict=True):
            self.memory[at] = old if old is not None and new == was else new


def call_external(function: Callable[..., Any], *args: Any) -> Any:
    """function on arrays and scalars; changes to the arrays are kept."""
    result = function(*[a.array if isinstance(a, Pointer) else a for a in args])
    for a in args:
        if isinstance(a, Pointer):
            a.write_back()
    return 0 if result is None else result


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "minimum": BINARY["min"].fold, "maximum": BINARY["max"].fold, **{f.__name__: f for f in (
        to_int, wide_int_to_float, reinterpret, regroup, floor_div, floor_mod, trunc_div, trunc_mod, shift_left,
        shift_right, gather, scatter, lanes_outside, Pointer, call_external)}}
