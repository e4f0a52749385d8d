"""Tensors whose elements are known: arrays of NumPy that a tensor expression indexes."""
from __future__ import annotations

import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tilewright.support.errors import TensorExpressionError, described
from tilewright.te.operation import PlaceholderOp
from tilewright.te.tensor import Tensor
from tilewright.tir import dtype as dt
from tilewright.tir.conversion import convert
from tilewright.tir.expr import ExprOps


class ConstantOp(PlaceholderOp):
    """A tensor that no caller gives: its elements are `values`, and part of the code."""

    def __init__(self, name: str, values: Any) -> None:
        try:
            array = np.array(values)
        except Exception:                              # whatever the object does when NumPy asks it for elements
            array = np.array(None)
        numbers = array.dtype.kind in "iufb" or array.dtype.name in dt.SMALL_FLOATS
        if not numbers or not array.size or not array.ndim:
            raise TensorExpressionError(
                f"constant {name}: {described(values)} is no array of numbers with dimensions")
        super().__init__(name, tuple(convert(n) for n in array.shape), dt.canonical(array.dtype.name))
        self.values = array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def constant(values: Any, name: str = "constant") -> Tensor:
    """The tensor of the elements of an array (or nested lists) as it is now.

    A function given to te.compute that indexes an array of NumPy, of its own module or of the function around it, by
    axes reads such a tensor: `te.compute((8,), lambda i: A[i] * window[i])`. Raises TensorExpressionError for an array
    without elements or dimensions, and for elements that are no numbers.
    """
    return ConstantOp(name, values).output(0)


class Table(np.ndarray):          # type: ignore[type-arg]
    """An array that, indexed by expressions, is a constant tensor; else as any."""
    name = "constant"
    _tensor: Tensor | None = None

    def __getitem__(self, index: Any) -> Any:
        given = index if isinstance(index, tuple) else (index,)
        if not any(isinstance(i, ExprOps) for i in given):
            return super().__getitem__(index)
        if self._tensor is None:
            self._tensor = constant(np.asarray(self), self.name)
        return self._tensor[index]


def with_tables(function: Any) -> Any:
    """function, a Python function, with the arrays of NumPy that it names as tables."""
    if not isinstance(function, types.FunctionType):
        return function
    code, cells = function.__code__, function.__closure__ or ()
    captured = {n: _table(n, c.cell_contents) for n, c in zip(code.co_freevars, cells, strict=True) if _holds_array(c)}
    values = ((n, function.__globals__.get(n)) for n in dict.fromkeys(_names(code)))
    known = {n: _table(n, v) for n, v in values if isinstance(v, np.ndarray)}
    if not captured and not known:
        return function
    cells = tuple(types.CellType(captured[n]) if n in captured else c
                  for n, c in zip(code.co_freevars, cells, strict=True))
    out: Callable[..., Any] = types.FunctionType(
        code, {**function.__globals__, **known} if known else function.__globals__, function.__name__,
        function.__defaults__, cells)
    out.__kwdefaults__ = function.__kwdefaults__
    return out


def _holds_array(cell: types.CellType) -> bool:
    try:
        return isinstance(cell.cell_contents, np.ndarray)
    except ValueError:                             # a name that has no value yet
        return False


def _table(name: str, array: Any) -> Any:
    if type(array) is not np.ndarray or not array.ndim:
        return array
    out = array.view(Table)
    out.name = name
    return out


def _names(code: types.CodeType) -> Iterator[str]:
    """The global names that a function and those inside it use."""
    yield from code.co_names
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            yield from _names(inner)
