"""Pooling over one to three spatial axes."""
from __future__ import annotations

from typing import Any

from tilewright import topi
from tilewright.frontend.torch import rules
from tilewright.frontend.torch.dtypes import category
from tilewright.frontend.torch.emit import Emitter, numbers
from tilewright.frontend.torch.table import operator
from tilewright.graph.ir.values import Value


def _rank(e: Emitter) -> int:
    """How many spatial axes an operator has, by its name."""
    return int(e.target.split("d.")[0].split("d_")[0][-1])


def _batched(e: Emitter, x: Value) -> tuple[Value, bool]:
    single = x.ndim == _rank(e) + 1
    return (e.reshape(x, (1, *x.shape)) if single else x), single


@operator("max_pool1d", "max_pool2d", "max_pool3d", "max_pool1d_with_indices", "max_pool2d_with_indices",
          "max_pool3d_with_indices")
def max_pool(e: Emitter, x: Value, kernel_size: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1,
             ceil_mode: bool = False) -> Any:
    """`topi.max_pool`."""
    n, wanted = _rank(e), "with_indices" in e.target
    x, single = _batched(e, x)
    kernel = numbers(kernel_size, n)
    made = e.te(topi.max_pool, x, kernel, stride=numbers(stride or kernel, n), padding=numbers(padding, n),
                dilation=numbers(dilation, n), ceil_mode=ceil_mode, return_indices=wanted)
    results = made if wanted else (made,)
    results = tuple(e.reshape(y, y.shape[1:]) for y in results) if single else results
    return results if wanted else results[0]


@operator("avg_pool1d", "avg_pool2d", "avg_pool3d")
def avg_pool(e: Emitter, x: Value, kernel_size: Any, stride: Any = (), padding: Any = 0, ceil_mode: bool = False,
             count_include_pad: bool = True, divisor_override: int | None = None) -> Value:
    """`topi.avg_pool`."""
    n = _rank(e)
    x, single = _batched(e, x if category(x.dtype) == 2 else e.cast(x, "float64"))
    kernel = numbers(kernel_size, n)
    y = e.te(topi.avg_pool, x, kernel, stride=numbers(stride or kernel, n), padding=numbers(padding, n),
             ceil_mode=ceil_mode, count_include_pad=count_include_pad, divisor=divisor_override)
    return e.reshape(y, y.shape[1:]) if single else y


@operator("_adaptive_avg_pool2d", "_adaptive_avg_pool3d", "adaptive_avg_pool1d", "adaptive_avg_pool2d",
          "adaptive_avg_pool3d")
def adaptive_avg_pool(e: Emitter, x: Value, output_size: Any) -> Value:
    """`topi.adaptive_avg_pool`; of extents 1 `topi.mean`."""
    n = _rank(e)
    size = e.shape[-n:]
    if all(isinstance(d, int) and d == 1 for d in size):
        return e.te(topi.mean, x, axis=tuple(range(x.ndim - n, x.ndim)), keepdims=True)
    x, single = _batched(e, x)
    y = e.te(topi.adaptive_avg_pool, x, size)
    return e.reshape(y, y.shape[1:]) if single else y


@operator("adaptive_max_pool1d", "adaptive_max_pool2d", "adaptive_max_pool3d")
def adaptive_max_pool(e: Emitter, x: Value, output_size: Any) -> Any:
    """`topi.adaptive_max_pool`."""
    x, single = _batched(e, x)
    made = e.te(topi.adaptive_max_pool, x, e.shape[-_rank(e):], return_indices=True)
    return tuple(e.reshape(y, y.shape[1:]) for y in made) if single else made


@operator("avg_pool2d_backward", "avg_pool3d_backward")
def avg_pool_backward(e: Emitter, dy: Value, x: Value, kernel_size: Any, stride: Any, padding: Any, ceil_mode: bool,
                      count_include_pad: bool, divisor_override: int | None) -> Value:
    """Each element of dy, divided as it was, to the elements of its window; axis by axis."""
    n = _rank(e)
    kernel, pads = numbers(kernel_size, n), numbers(padding, n)
    for k, (size, step, pad) in enumerate(zip(kernel, numbers(stride or kernel, n), pads), x.ndim - n):
        dy = e.te(rules.average_gradient, dy, axis=k, extent=x.shape[k], kernel=size, stride=step, padding=pad,
                  counted="none" if divisor_override else "all" if count_include_pad else "inside")
    return e.te(topi.divide, dy, float(divisor_override)) if divisor_override else dy


@operator("_adaptive_avg_pool2d_backward", "_adaptive_avg_pool3d_backward")
def adaptive_avg_pool_backward(e: Emitter, dy: Value, x: Value) -> Value:
    """Each element of dy, divided as it was, to the elements of its window; axis by axis."""
    for k in range(x.ndim - _rank(e), x.ndim):
        dy = e.te(rules.adaptive_average_gradient, dy, axis=k, extent=x.shape[k])
    return dy


@operator("adaptive_max_pool2d_backward", "adaptive_max_pool3d_backward")
def adaptive_max_pool_backward(e: Emitter, dy: Value, x: Value, indices: Value) -> Value:
    """`topi.scatter` of dy to the places of the greatest elements."""
    return _scattered(e, dy, x, indices)


@operator("max_pool3d_with_indices_backward")
def max_pool_backward(e: Emitter, dy: Value, x: Value, kernel_size: Any, stride: Any, padding: Any, dilation: Any,
                      ceil_mode: bool, indices: Value) -> Value:
    """`topi.scatter` of dy to the places of the greatest elements."""
    return _scattered(e, dy, x, indices)


def _scattered(e: Emitter, dy: Value, x: Value, indices: Value) -> Value:
    lead = x.shape[:x.ndim - _rank(e)]
    zeros = e.reshape(e.tensor(0, x.dtype, x.shape), (*lead, -1))
    y = e.te(topi.scatter, zeros, e.reshape(indices, (*lead, -1)), e.reshape(dy, (*lead, -1)), axis=len(lead),
             reduction="add")
    return e.reshape(y, x.shape)
