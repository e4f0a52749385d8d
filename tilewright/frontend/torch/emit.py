"""What rows of the table emit with: operators of topi, numbers as tensors, the type that PyTorch says."""
from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from tilewright import te, topi
from tilewright.frontend.torch.dtypes import category, dtype_name
from tilewright.frontend.torch.pytorch import pytorch
from tilewright.frontend.torch.sizes import number
from tilewright.graph.ir.builder import BlockBuilder
from tilewright.graph.ir.types import Dim
from tilewright.graph.ir.values import Value
from tilewright.runtime.dtypes import numpy_dtype
from tilewright.support.errors import ImportModelError
from tilewright.te.conditions import Condition
from tilewright.tir import Expr
from tilewright.topi.types import accumulator


@dataclass(frozen=True)
class Counted:
    """A tensor of which the first rows are the result: as many as `number`, which is a tensor too."""
    value: Value
    number: Value


@dataclass(frozen=True)
class Unknown:
    """A number that follows from elements of tensors, or a result that a row leaves out. why: for who needs it."""
    why: ImportModelError


@dataclass(frozen=True)
class Scalar:
    """A number of Python that is an element of a tensor."""
    value: Value


class Emitter:
    """Emits the calls that a node of a graph of ATen operators becomes.

    meta: PyTorch's fake results of the node; given: its arguments, with fake tensors; target: its operator; memory:
    the elements that values are a part of in PyTorch's memory, where they are known; conditions: gets what rows state
    of sizes.
    """

    def __init__(self, bb: BlockBuilder, meta: Any, known: Mapping[str, int], target: str,
                 given: Sequence[Any] = (), memory: Mapping[Value, Value] | None = None,
                 conditions: list[Condition] | None = None) -> None:
        self.bb, self.meta, self.known, self.target, self.given = bb, meta, known, target, given
        self.memory = memory or {}
        self.conditions = [] if conditions is None else conditions

    def result(self, k: int = 0) -> Any:
        """PyTorch's fake tensor of result k."""
        return self.meta[k] if isinstance(self.meta, (tuple, list)) else self.meta

    @property
    def dtype(self) -> str:
        """The dtype of the first result."""
        return dtype_name(self.result().dtype)

    @property
    def wide(self) -> str:
        """The dtype in which the first result is computed: float32 for shorter floats."""
        return accumulator(self.dtype)

    @property
    def shape(self) -> tuple[Dim, ...]:
        """The extents of the first result."""
        return self.shape_of(self.result())

    def shape_of(self, fake: Any) -> tuple[Dim, ...]:
        """The extents of one of PyTorch's fake tensors."""
        return tuple(number(d, self.known) for d in fake.shape)  # type: ignore[misc]

    def te(self, rule: Callable[..., Any], *arguments: Any, **attributes: Any) -> Any:
        """What a te rule makes of values."""
        return self.bb.emit_te(rule, *arguments, **attributes)

    def cast(self, x: Value, dtype: str) -> Value:
        """x in another dtype; in float8_e4m3fn at most its largest number, where PyTorch has it so."""
        if x.dtype == dtype:
            return x
        if dtype == "float8_e4m3fn" and saturates():
            return self.te(saturated, x, dtype=dtype)
        return self.te(topi.astype, x, dtype)

    def operand(self, x: Any, dtype: str) -> Any:
        """A tensor converted to dtype, a number as one of it."""
        if isinstance(x, Value):
            return self.cast(x, dtype)
        if isinstance(x, Expr):
            return x if x.dtype == dtype else te.cast(dtype, x)
        if category(dtype) == 1:
            return int(np.asarray(int(x)).astype(numpy_dtype(dtype)))
        return bool(x) if dtype == "bool" else in_range(x, accumulator(dtype))

    def element(self, x: Any, dtype: str) -> Any:
        """A tensor converted to dtype, a number as an element of it: infinite where it is beyond the range."""
        found = self.operand(x, dtype)
        return in_range(found, dtype) if isinstance(found, float) else found

    def tensor(self, x: Any, dtype: str, shape: Sequence[Any] = ()) -> Value:
        """A tensor of dtype: x itself, or a number everywhere."""
        if isinstance(x, Value):
            return self.cast(x, dtype)
        x = self.operand(x, dtype)
        if isinstance(x, Expr) or shape:
            return self.te(topi.full, tuple(shape), x, dtype=dtype)
        return self.const(np.asarray(x, numpy_dtype(dtype)))

    def const(self, array: Any) -> Value:
        return self.bb.const(array, share=True)

    def reshape(self, x: Value, shape: Sequence[Any]) -> Value:
        return self.te(topi.reshape, x, tuple(shape))

    def transpose(self, x: Value, axes: Sequence[int]) -> Value:
        axes = tuple(axes)
        return x if axes == tuple(range(x.ndim)) else self.te(topi.transpose, x, axes)

    def broadcast(self, x: Value, shape: Sequence[Any]) -> Value:
        """x repeated to a shape."""
        return self.te(topi.broadcast_to, x, tuple(shape))

    def lifted(self, x: Value) -> Value:
        """x with an axis at least; a result of a number for it loses the axis behind the row."""
        return self.reshape(x, (1,)) if x.ndim == 0 else x

    def state(self, holds: Expr, text: str) -> None:
        """The function is for sizes of which a condition holds; text: what is wrong elsewhere."""
        self.conditions.append(Condition(holds, f"{self.target}: {text}"))

    def refuse(self, why: str, hint: str = "") -> ImportModelError:
        """The error for arguments that a row does not take."""
        return ImportModelError(why, hint)

    def fitted(self, x: Any, fake: Any) -> Any:
        """What a row gives, in the dtype and with the rank that PyTorch says.

        Raises ImportModelError where extents differ.
        """
        if fake is None or x is None or isinstance(x, Counted) or not hasattr(fake, "dtype"):
            return x
        shape, dtype = self.shape_of(fake), dtype_name(fake.dtype)
        if not isinstance(x, Value):
            return self.tensor(x, dtype, shape)
        x = self.cast(x, dtype)
        if x.ndim != len(shape) and all(isinstance(d, int) and d == 1 for d in x.shape):
            x = self.reshape(x, shape)
        unequal = [(a, b) for a, b in zip(x.shape, shape) if isinstance(a, int) and isinstance(b, int) and a != b]
        if x.ndim != len(shape) or unequal:
            raise ImportModelError(f"{self.target} gives the shape {x.shape}, and PyTorch says {shape}")
        return x


def in_range(x: float, dtype: str) -> float:
    """A number; one beyond the range of a type of floats as that type has it: the largest, or infinite."""
    kind = numpy_dtype(dtype)
    if not abs(x) > float(ml_dtypes.finfo(kind).max):
        return float(x)
    with np.errstate(over="ignore"):
        return float(np.asarray(float(x)).astype(kind))


@functools.cache
def saturates() -> bool:
    """Whether PyTorch converts what float8_e4m3fn has not to its largest number: versions differ."""
    torch = pytorch()
    return not bool(torch.tensor(1e6).to(torch.float8_e4m3fn).float().isnan())


def saturated(x: te.Tensor, *, dtype: str) -> te.Tensor:
    """y = x in dtype, at most the largest and at least the smallest number of it."""
    return te.compute(x.shape, lambda *i: te.saturate_cast(dtype, te.cast("float32", x(*i))), name="saturated")


def axis_of(d: int, ndim: int) -> int:
    """A dimension, counted from the end where it is negative, as an axis."""
    return d + max(ndim, 1) if d < 0 else d


def axes_of(dims: Any, ndim: int) -> tuple[int, ...]:
    """Dimensions as axes; None and no dimension are all of them."""
    if dims is None or dims == []:
        return tuple(range(ndim))
    return tuple(axis_of(d, ndim) for d in ([dims] if isinstance(dims, int) else dims))


@functools.lru_cache(256)
def pairs(x: int | tuple[int, ...], count: int) -> tuple[int, ...]:
    """A number for each of `count` axes, of one for all or of as many."""
    found = (x,) if isinstance(x, int) else tuple(x)
    return found * count if len(found) == 1 else found


def numbers(x: Any, count: int) -> tuple[int, ...]:
    """`pairs` of an argument, which may be a list."""
    return pairs(x if isinstance(x, int) else tuple(x), count)
