"""`+ - * / // %` of whole tensors, `-A` and `A.astype(dtype)`: new tensors, element by element, with broadcasting."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tilewright.arith.analyzer import Analyzer
from tilewright.support.errors import TensorExpressionError
from tilewright.support.registry import register_hook
from tilewright.te import tag
from tilewright.te.constant import constant
from tilewright.te.definition import compute
from tilewright.te.tensor import Tensor, shape_text
from tilewright.tir.arithmetic import binary
from tilewright.tir.conversion import cast, is_const
from tilewright.tir.expr import ELEMENTWISE, Expr, IntImm, Var

# operator -> the name of the operation, and how a message writes it
_NAMES = {"add": ("T_add", "+"), "sub": ("T_subtract", "-"), "mul": ("T_multiply", "*"), "div": ("T_divide", "/"),
          "floordiv": ("T_floor_divide", "//"), "floormod": ("T_floor_mod", "%")}


def _arithmetic(op: str, a: Any, b: Any) -> Any:
    """The tensor a op b, of which one is a tensor: shapes are aligned at their ends, and 1 stretches to any extent.

    An array of NumPy with dimensions is the constant tensor of its elements. Tensors without dimensions, alone or with
    scalars, are their elements. Raises TensorExpressionError for shapes that do not fit, and for comparisons and the
    like of tensors with dimensions.
    """
    if op not in _NAMES or not any(isinstance(x, Tensor) and x.shape for x in (a, b)):
        return binary(op, a, b)
    name, sign = _NAMES[op]
    a, b = (constant(x) if isinstance(x, np.ndarray) and x.ndim else x for x in (a, b))
    if isinstance(a, Tensor) and isinstance(b, Tensor) and a.shape and b.shape:
        shape = _broadcast(a, b, sign)
        return _computed(shape, lambda *i: binary(op, _element(a, i), _element(b, i)), name, "broadcast")
    whole = a if isinstance(a, Tensor) and a.shape else b
    return _computed(whole.shape, lambda *i: binary(op, *(whole(*i) if x is whole else x for x in (a, b))), name,
                     "elemwise")


@register_hook("te.cast")
def _cast(tensor: Tensor, dtype: str) -> Any:
    return _computed(tensor.shape, lambda *i: cast(dtype, tensor(*i)), "T_cast", "elemwise")


def _computed(shape: Sequence[Expr], element: Callable[..., Expr], name: str, kind: str) -> Any:
    """The computation under a tag that says of what kind it is, or that of the tag_scope around."""
    return compute(tuple(shape), element, name, "" if tag.current() else kind,
                   varargs_names=[f"ax{n}" for n in range(len(shape))])


def _broadcast(a: Tensor, b: Tensor, sign: str) -> list[Expr]:
    """The shape of a result. Extents of which one is symbolic are taken to be equal, which reads check."""
    analyzer = Analyzer()
    rank = max(len(a.shape), len(b.shape))
    out: list[Expr] = []
    for x, y in zip(*([None] * (rank - len(t.shape)) + list(t.shape) for t in (a, b))):
        if x is None or y is None:
            out.append(x if y is None else y)
        elif analyzer.equal(x, y) or is_const(y, 1):
            out.append(x)
        elif is_const(x, 1):
            out.append(y)
        elif isinstance(x, IntImm) and isinstance(y, IntImm):
            raise TensorExpressionError(
                f"{a.name} {sign} {b.name}: the shapes {shape_text(a.shape)} and {shape_text(b.shape)} do not fit: "
                f"{x} is neither {y} nor 1")
        elif isinstance(x, IntImm) or isinstance(y, IntImm):
            out.append(x if isinstance(x, IntImm) else y)
        else:
            out.append(binary("max", x, y))
    return out


def _element(t: Tensor, indices: tuple[Var, ...]) -> Expr:
    """The element of t at indices of the result."""
    own = indices[len(indices) - len(t.shape):]
    return t(*(0 if is_const(extent, 1) else i for i, extent in zip(own, t.shape, strict=True)))


ELEMENTWISE[Tensor] = _arithmetic
