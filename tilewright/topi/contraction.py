"""Sums of products: the one place where operators accumulate."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tilewright.te.definition import compute
from tilewright.te.reduction import reduce_axis
from tilewright.te.reduction import sum as te_sum
from tilewright.te.tensor import Tensor
from tilewright.tir.arithmetic import binary
from tilewright.tir.conversion import cast
from tilewright.tir.expr import Expr
from tilewright.tir.iter_var import IterVar
from tilewright.topi.types import accumulator, rounded

Factors = Callable[..., Sequence[Expr]]


def reduction_axis(extent: Any, name: str) -> IterVar:
    """A reduction over 0 <= name < extent."""
    return reduce_axis((0, extent), name=name)


def contraction(name: str, shape: Sequence[Any], factors: Factors, axes: Sequence[IterVar], dtype: str,
                out_dtype: str | None = None) -> Tensor:
    """y[i, ...] = the sum over axes of the product of factors(i, ...).

    Each factor is converted to the type that accumulates before it is multiplied: `out_dtype` (default: dtype), or
    float32 for a float of fewer bits. Without axes y is the product.
    """
    result = out_dtype or dtype
    wide = accumulator(result)

    def element(*i: Any) -> Expr:
        parts = [cast(wide, f) for f in factors(*i)]
        term = parts[0]
        for part in parts[1:]:
            term = binary("mul", term, part)
        return te_sum(term, axis=list(axes)) if axes else term

    return rounded(compute(tuple(shape), element, name=name), result, f"{name}_rounded")
