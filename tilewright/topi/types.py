"""Types of operators: the common type of operands, what accumulates, rounding."""
from __future__ import annotations

import functools
from typing import Any

import numpy as np

from tilewright.support.errors import TensorExpressionError, described
from tilewright.te.definition import compute
from tilewright.te.tensor import Tensor
from tilewright.tir import dtype as dt
from tilewright.tir.conversion import cast
from tilewright.tir.expr import Expr
from tilewright.topi.shapes import check, check_rank, check_tensors, constant

DEFAULT_FLOAT = "float32"                # what functions of floats make of integers
INDEX = "int64"                          # of positions: argmax, argsort, nonzero, ...

FLOAT, NUMBER, INTEGER, BOOL, ANY = "float", "number", "integer", "bool", "any"
_KINDS = {FLOAT: "floats", NUMBER: "integers or floats", INTEGER: "integers or bools", BOOL: "bools"}


def promoted(op: str, a: str, b: str) -> str:
    """The type of what combines a and b: that of NumPy, but an integer beside a float takes the float's type.

    Raises TensorExpressionError for uint64 beside a signed type, which no integer type holds.
    """
    if a == b:
        return a
    if dt.is_bool(a) or dt.is_bool(b):
        return b if dt.is_bool(a) else a
    if dt.is_float(a) != dt.is_float(b):
        return a if dt.is_float(a) else b
    wide, narrow = (a, b) if dt.bits_of(a) >= dt.bits_of(b) else (b, a)
    if dt.is_float(a):
        return wide if dt.bits_of(a) != dt.bits_of(b) else "float32"
    if dt.is_signed(a) == dt.is_signed(b) or dt.is_signed(wide) and dt.bits_of(wide) > dt.bits_of(narrow):
        return wide
    if dt.bits_of(wide) == 64:
        raise TensorExpressionError(f"{op}: the operands are {a} and {b}, which no integer type holds both",
                                    f'convert one: x.astype("{narrow}")')
    return f"int{2 * dt.bits_of(wide)}"


def common_type(op: str, *operands: Any) -> str:
    """The type of an operator's operands: Python numbers take the type of the tensors beside them."""
    typed = [x.dtype for x in operands if isinstance(x, (Tensor, Expr, np.generic, np.ndarray))]
    numbers = [x for x in operands if not isinstance(x, (Tensor, Expr, np.generic, np.ndarray))]
    for x in numbers:
        if not isinstance(x, (bool, int, float)):
            raise TensorExpressionError(f"{op}: the operand {described(x)} is no tensor and no number",
                                        "te.constant makes a tensor of nested lists")
    start = "float32" if any(isinstance(x, float) for x in numbers) else "int64" if any(
        not isinstance(x, bool) for x in numbers) else "bool"
    if not typed:
        return start
    common = functools.reduce(lambda a, b: promoted(op, a, b), map(dt.canonical, typed))
    if start == "float32" and not dt.is_float(common):
        return DEFAULT_FLOAT
    return start if dt.is_bool(common) else common


def floating(dtype: str) -> str:
    """dtype, or float32 where it is no float."""
    return dtype if dt.is_float(dtype) else DEFAULT_FLOAT


def accumulator(dtype: str) -> str:
    """The type in which sums of dtype are kept: float32 for floats of 16 bits and less."""
    return "float32" if dt.is_float(dtype) and dt.bits_of(dtype) < 32 else dtype


def sum_type(dtype: str) -> str:
    """The type of a sum of dtype: as in NumPy, 64 bits for integers and bools."""
    if dt.is_float(dtype):
        return dtype
    return "uint64" if dt.is_unsigned(dtype) and not dt.is_bool(dtype) else "int64"


def rounded(x: Tensor, dtype: str, name: str = "rounded") -> Tensor:
    """x in dtype."""
    return x if x.dtype == dtype else compute(x.shape, lambda *i: cast(dtype, x(*i)), name=name)


def is_kind(dtype: str, kind: str) -> bool:
    """True where dtype is one of a kind."""
    if kind == FLOAT:
        return dt.is_float(dtype)
    if kind == INTEGER:
        return dt.is_integer(dtype) or dt.is_bool(dtype)
    return dt.is_bool(dtype) if kind == BOOL else kind == ANY or not dt.is_bool(dtype)


def check_kind(op: str, name: str, dtype: str, kind: str, hint: str = "") -> None:
    """Raise TensorExpressionError unless dtype is one of a kind."""
    if not is_kind(dtype, kind):
        raise TensorExpressionError(f"{op}: {name} is {dtype}, {_KINDS[kind]} are needed", hint)


def check_whole(op: str, name: str, x: Any, rank: int | None = None) -> None:
    """x is a te tensor of integers, of so many dimensions."""
    check_tensors(op, **{name: x})
    check(dt.is_integer(x.dtype), op, f"{name} is {x.dtype}, integers are needed",
          f'convert it: {name}.astype("int64")')
    if rank is not None:
        check_rank(op, name, x, rank)


def place_type(op: str, dtype: Any, most: Any) -> str:
    """The name of a type of places. Raises TensorExpressionError for bool and for integers that do not hold `most`."""
    kind, known = dt.canonical(dtype), constant(most)
    check_kind(op, "dtype", kind, NUMBER)
    check(known is None or not dt.is_integer(kind) or known <= dt.integer_range(kind)[1], op, f"dtype is {kind}, which "
          f"does not hold the place {most}")
    return kind


def dtype_name(dtype: Any) -> str:
    """The name of a type that the caller gives: "float32", numpy.float32, ..."""
    return dt.canonical(dtype)
