"""Reductions over dimensions: sums, products, extremes, moments, norms, questions."""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tilewright import topi
from tilewright.frontend.torch.dtypes import category
from tilewright.frontend.torch.emit import Emitter, axes_of, axis_of
from tilewright.frontend.torch.table import operator
from tilewright.graph.ir.values import Value


def reduced(e: Emitter, rule: Callable[..., Any], x: Value, dim: Any, keepdim: bool, **attributes: Any) -> Value:
    """rule over dimensions of x, which may be a number."""
    if x.ndim == 0:
        return e.reshape(e.te(rule, e.lifted(x), axis=(0,), **attributes), ())
    return e.te(rule, x, axis=axes_of(dim, x.ndim), keepdims=keepdim, **attributes)


@operator("sum", "sum.dim_IntList")
def total(e: Emitter, x: Value, dim: Any = None, keepdim: bool = False, dtype: str | None = None) -> Value:
    """`topi.sum`, of integers in int64."""
    return reduced(e, topi.sum, e.cast(x, e.dtype), dim, keepdim, dtype=e.dtype)


@operator("nansum")
def nansum(e: Emitter, x: Value, dim: Any = None, keepdim: bool = False, dtype: str | None = None) -> Value:
    """`topi.nansum`, of integers `topi.sum`."""
    if category(e.dtype) != 2:
        return total(e, x, dim, keepdim)
    return reduced(e, topi.nansum, e.cast(x, e.dtype), dim, keepdim)


@operator("prod", "prod.dim_int")
def product(e: Emitter, x: Value, dim: Any = None, keepdim: bool = False, dtype: str | None = None) -> Value:
    """`topi.prod`, of integers in int64."""
    if e.dtype == "bool":
        return reduced(e, topi.all, x, dim, keepdim)
    return reduced(e, topi.prod, e.cast(x, e.dtype), dim, keepdim, dtype=e.dtype)


@operator("mean", "mean.dim")
def mean(e: Emitter, x: Value, dim: Any = None, keepdim: bool = False, dtype: str | None = None) -> Value:
    """`topi.mean`."""
    return reduced(e, topi.mean, e.cast(x, e.dtype), dim, keepdim)


def _extreme(rule: Callable[..., Any], of_bools: Callable[..., Any]) -> Callable[..., Value]:
    def emit(e: Emitter, x: Value, dim: Any, keepdim: bool) -> Value:
        return reduced(e, of_bools if x.dtype == "bool" else rule, x, dim, keepdim)
    return emit


_largest, _smallest = _extreme(topi.max, topi.any), _extreme(topi.min, topi.all)


@operator("amax", "max")
def amax(e: Emitter, x: Value, dim: Any = None, keepdim: bool = False) -> Value:
    """`topi.max`."""
    return _largest(e, x, dim, keepdim)


@operator("amin", "min")
def amin(e: Emitter, x: Value, dim: Any = None, keepdim: bool = False) -> Value:
    """`topi.min`."""
    return _smallest(e, x, dim, keepdim)


@operator("max.dim")
def max_dim(e: Emitter, x: Value, dim: int, keepdim: bool = False) -> tuple[Value, Value]:
    """`topi.max` and `topi.argmax`."""
    return _largest(e, x, dim, keepdim), argmax(e, x, dim, keepdim)


@operator("min.dim")
def min_dim(e: Emitter, x: Value, dim: int, keepdim: bool = False) -> tuple[Value, Value]:
    """`topi.min` and `topi.argmin`."""
    return _smallest(e, x, dim, keepdim), argmin(e, x, dim, keepdim)


@operator("aminmax")
def aminmax(e: Emitter, x: Value, dim: int | None = None, keepdim: bool = False) -> tuple[Value, Value]:
    """`topi.min` and `topi.max`."""
    return _smallest(e, x, dim, keepdim), _largest(e, x, dim, keepdim)


@operator("argmax")
def argmax(e: Emitter, x: Value, dim: int | None = None, keepdim: bool = False) -> Value:
    """`topi.argmax`."""
    return _place(e, topi.argmax, x, dim, keepdim)


@operator("argmin")
def argmin(e: Emitter, x: Value, dim: int | None = None, keepdim: bool = False) -> Value:
    """`topi.argmin`."""
    return _place(e, topi.argmin, x, dim, keepdim)


def _place(e: Emitter, rule: Callable[..., Any], x: Value, dim: int | None, keepdim: bool) -> Value:
    if x.dtype == "bool":
        x = e.cast(x, "uint8")
    if x.ndim == 0:
        return e.reshape(e.te(rule, e.lifted(x), axis=0), ())
    if dim is None:
        y = e.te(rule, x, axis=None)
        return e.reshape(y, (1,) * x.ndim) if keepdim else y
    return e.te(rule, x, axis=axis_of(dim, x.ndim), keepdims=keepdim)


@operator("any", "any.dim", "any.dims")
def any_(e: Emitter, x: Value, dim: Any = None, keepdim: bool = False) -> Value:
    """`topi.any`; over a list of no dimensions of each element alone."""
    if dim == []:
        return e.cast(x, "bool")
    return reduced(e, topi.any, x, dim, keepdim)


@operator("all", "all.dim", "all.dims")
def all_(e: Emitter, x: Value, dim: Any = None, keepdim: bool = False) -> Value:
    """`topi.all`; over a list of no dimensions of each element alone."""
    if dim == []:
        return e.cast(x, "bool")
    return reduced(e, topi.all, x, dim, keepdim)


@operator("count_nonzero", "count_nonzero.dim_IntList")
def count_nonzero(e: Emitter, x: Value, dim: Any = None) -> Value:
    """`topi.count_nonzero`."""
    return reduced(e, topi.count_nonzero, x, dim, False)


@operator("var.correction", "var", "var.dim")
def variance(e: Emitter, x: Value, dim: Any = None, unbiased: bool = True, keepdim: bool = False,
             correction: Any = None) -> Value:
    """`topi.var`; NaN where the correction leaves no element."""
    return _moment(e, topi.var, x, dim, unbiased, keepdim, correction)


def _moment(e: Emitter, rule: Callable[..., Any], x: Value, dim: Any, unbiased: bool, keepdim: bool,
            correction: Any) -> Value:
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    correction = float(unbiased) if correction is None else float(correction)
    x = e.lifted(x)
    return e.te(rule, x, axis=axes_of(dim, x.ndim), correction=correction, keepdims=keepdim)


@operator("std.correction", "std", "std.dim")
def deviation(e: Emitter, x: Value, dim: Any = None, unbiased: bool = True, keepdim: bool = False,
              correction: Any = None) -> Value:
    """`topi.std`; NaN where the correction leaves no element."""
    return _moment(e, topi.std, x, dim, unbiased, keepdim, correction)


@operator("var_mean.correction", "var_mean", "var_mean.dim")
def var_mean(e: Emitter, x: Value, dim: Any = None, unbiased: bool = True, keepdim: bool = False,
             correction: Any = None) -> tuple[Value, Value]:
    """`topi.var` and `topi.mean`."""
    y = variance(e, x, dim, unbiased, keepdim, correction)
    return y, reduced(e, topi.mean, x, None if isinstance(dim, bool) else dim, keepdim)


@operator("logsumexp")
def logsumexp(e: Emitter, x: Value, dim: Any, keepdim: bool = False) -> Value:
    """`topi.logsumexp`."""
    return reduced(e, topi.logsumexp, e.cast(x, e.dtype), dim, keepdim)


@operator("linalg_vector_norm")
def vector_norm(e: Emitter, x: Value, ord: Any = 2, dim: Any = None, keepdim: bool = False,
                dtype: str | None = None) -> Value:
    """`topi.norm`."""
    order = float(ord)
    return reduced(e, topi.norm, e.cast(x, e.dtype), dim, keepdim,
                   ord=int(order) if math.isfinite(order) and order == int(order) else order)


@operator("norm.Scalar", "norm.ScalarOpt_dim")
def norm(e: Emitter, x: Value, p: Any = 2, dim: Any = None, keepdim: bool = False) -> Value:
    """`topi.norm`."""
    return vector_norm(e, x, 2 if p is None else p, dim, keepdim)
