"""What operators compute, by NumPy and by PyTorch, for random functions: two tables of the same names.

Floats are in float64, integers and bools in their own dtypes. Nothing here knows Tilewright.
"""
import math
from dataclasses import dataclass

import numpy as np

_ERF = np.vectorize(math.erf, otypes=["float64"])


@dataclass(frozen=True)
class Reference:
    """table: functions by name; load: an array as a value of the reference; store: the other way; cast(value, dtype,
    floats): a value as what stands for the dtype, with floats of a width."""
    table: dict
    load: object
    store: object
    cast: object


def _softmax(x, axis):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def _norm(x, weight, bias, eps, axes):
    y = (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + eps)
    return y * weight + bias


def _windows(x, kernel, stride, padding, value):
    d = len(kernel)
    x = np.pad(x, [(0, 0)] * (x.ndim - d) + [(padding, padding)] * d, constant_values=value)
    found = np.lib.stride_tricks.sliding_window_view(x, kernel, axis=tuple(range(x.ndim - d, x.ndim)))
    return found[(..., *(slice(None, None, stride),) * d, *(slice(None),) * d)]


def _conv(x, w, bias, stride, padding, groups):
    f, c = w.shape[:2]
    found = _windows(x, w.shape[2:], stride, padding, 0)
    parts = [np.einsum("bchwij,fcij->bfhw", found[:, g * c:(g + 1) * c], w[g * f // groups:(g + 1) * f // groups])
             for g in range(groups)]
    return np.concatenate(parts, 1) + bias[:, None, None]


def _batch_norm(x, mean, var, weight, bias, eps):
    at = (slice(None), *(None,) * (x.ndim - 2))
    return (x - mean[at]) / np.sqrt(var[at] + eps) * weight[at] + bias[at]


def _scatter(x, at, updates, axis):
    out = x.copy()
    np.put_along_axis(out, at, updates, axis)
    return out


def _attention(q, k, v):
    return _softmax(q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1]), -1) @ v


def _sigmoid(x):
    return 1 / (1 + np.exp(-x))


NUMPY = {
    "relu": lambda x: np.maximum(x, 0), "tanh": np.tanh, "negative": np.negative, "abs": np.abs,
    "sigmoid": _sigmoid, "square": np.square, "exp": lambda x: np.exp(np.clip(x, -3, 3)),
    "erf": lambda x: _ERF(x) if x.size else x, "sin": np.sin, "cos": np.cos,
    "softplus": lambda x: np.logaddexp(x, 0), "silu": lambda x: x * _sigmoid(x),
    "gelu": lambda x: x / 2 * (1 + (_ERF(x / np.sqrt(2)) if x.size else x)),
    "leaky_relu": lambda x: np.where(x > 0, x, 0.1 * x), "hardswish": lambda x: x * np.clip(x + 3, 0, 6) / 6,
    "own": lambda x: x * 1.5 + 0.25, "two": lambda x: (x * 2 + 1, x * 2 - x * x),
    "floor": np.floor, "sign": np.sign, "greater": lambda x, y: x > y, "less_equal": lambda x, y: x <= y,
    "less": lambda x, y: x < y,
    "equal": lambda x, y: x == y, "logical_and": np.logical_and, "logical_or": np.logical_or,
    "logical_not": np.logical_not, "add": np.add, "subtract": np.subtract, "multiply": np.multiply,
    "maximum": np.maximum, "minimum": np.minimum, "add_number": lambda x, c: x + c, "times": lambda x, c: x * c,
    "where": np.where, "cast": lambda x: x,
    "linear": lambda x, w, b: x @ w.T + b, "matmul": lambda x, y: x @ np.swapaxes(y, -1, -2),
    "gram": lambda x: x @ np.swapaxes(x, -1, -2), "einsum": lambda x, y, equation: np.einsum(equation, x, y),
    "attention": _attention,
    "sum": lambda x, axes, keep: np.sum(x, axes, keepdims=keep),
    "mean": lambda x, axes, keep: np.mean(x, axes, keepdims=keep),
    "max": lambda x, axes, keep: np.max(x, axes, keepdims=keep),
    "min": lambda x, axes, keep: np.min(x, axes, keepdims=keep),
    "var": lambda x, axes, keep: np.var(x, axes, keepdims=keep),
    "argmax": lambda x, axis: np.argmax(x, axis), "logsumexp": lambda x, axis: np.log(np.sum(np.exp(x), axis)),
    "any": lambda x, axes, keep: np.any(x, axes, keepdims=keep),
    "cumsum": lambda x, axis: np.cumsum(x, axis), "sort": lambda x, axis: np.sort(x, axis),
    "topk": lambda x, k: (-np.sort(-x, -1)[..., :k], np.argsort(-x, -1, kind="stable")[..., :k]),
    "softmax": lambda x, axis: _softmax(x, axis),
    "log_softmax": lambda x: x - x.max(-1, keepdims=True) - np.log(
        np.exp(x - x.max(-1, keepdims=True)).sum(-1, keepdims=True)),
    "layer_norm": lambda x, w, b: _norm(x, w, b, 1e-2, (-1,)),
    "rms_norm": lambda x, w: x / np.sqrt(np.square(x).mean(-1, keepdims=True) + 1e-2) * w,
    "batch_norm": lambda x, mean, var, w, b: _batch_norm(x, mean, var, w, b, 1e-2),
    "instance_norm": lambda x: _norm(x, 1, 0, 1e-2, tuple(range(2, x.ndim))),
    "conv": _conv,
    "max_pool": lambda x, kernel, stride, padding: _windows(
        x, (kernel, kernel), stride, padding, -np.inf).max((-1, -2)),
    "avg_pool": lambda x, kernel, stride, padding: _windows(x, (kernel, kernel), stride, padding, 0).mean((-1, -2)),
    "global_avg_pool": lambda x: x.mean((2, 3), keepdims=True),
    "transpose": lambda x, axes: np.transpose(x, axes), "view": lambda x, shape: x.reshape(shape),
    "concatenate": lambda *parts, axis: np.concatenate(parts, axis),
    "stack": lambda *parts, axis: np.stack(parts, axis),
    "slice": lambda x, axis, begin, end, step: x[(slice(None),) * axis + (slice(begin, end, step),)],
    "split": lambda x, axis, at: tuple(np.split(x, [at], axis)), "unstack": lambda x: tuple(x),
    "flip": lambda x, axis: np.flip(x, axis), "roll": lambda x, axis, shift: np.roll(x, shift, axis),
    "pad": lambda x, widths, value: np.pad(x, widths, constant_values=value),
    "reflect": lambda x, widths: np.pad(x, widths, mode="reflect"),
    "tile": lambda x, times: np.tile(x, times), "repeat": lambda x, times, axis: np.repeat(x, times, axis),
    "broadcast": lambda x, shape: np.broadcast_to(x, shape), "tril": lambda x, k: np.tril(x, k),
    "diagonal": lambda x: np.diagonal(x, axis1=-2, axis2=-1),
    "take": lambda x, at, axis: np.take(x, at, axis), "gather": lambda x, at, axis: np.take_along_axis(x, at, axis),
    "scatter": _scatter, "one_hot": lambda at, depth: np.eye(depth)[at],
}


def _cast_numpy(value, dtype, floats):
    return np.asarray(value).astype(floats if "float" in dtype else dtype)


def numpy_reference():
    return Reference(NUMPY, np.asarray, np.asarray, _cast_numpy)


def torch_reference():
    """By PyTorch, which has to be installed."""
    import torch
    import torch.nn.functional as F

    def reduced(f):
        return lambda x, axes, keep: f(x, dim=axes, keepdim=keep)

    def padded(x, widths, value):
        return F.pad(x, [n for pair in reversed(widths) for n in pair], value=value)

    def argmax(x, axis):
        """The first of the largest elements: PyTorch does not say which one it gives."""
        count = x.shape[axis]
        shape = [1] * x.ndim
        shape[axis] = count
        places = torch.arange(count).reshape(shape).expand(x.shape)
        return torch.where(x == x.amax(axis, keepdim=True), places, count).amin(axis)

    def topk(x, k):
        order = torch.sort(x, dim=-1, descending=True, stable=True)
        return order.values[..., :k], order.indices[..., :k]

    def reflect(x, widths):
        for axis, (before, after) in enumerate(widths):
            n = x.shape[axis]
            places = [*range(before, 0, -1), *range(n), *range(n - 2, n - 2 - after, -1)]
            x = x.index_select(axis, torch.tensor(places, dtype=torch.int64))
        return x

    table = {
        "relu": torch.relu, "tanh": torch.tanh, "negative": torch.negative, "abs": torch.abs,
        "sigmoid": torch.sigmoid, "square": torch.square, "exp": lambda x: torch.exp(torch.clamp(x, -3, 3)),
        "erf": torch.erf, "sin": torch.sin, "cos": torch.cos, "softplus": F.softplus, "silu": F.silu,
        "gelu": F.gelu, "leaky_relu": lambda x: F.leaky_relu(x, 0.1), "hardswish": F.hardswish,
        "own": lambda x: x * 1.5 + 0.25, "two": lambda x: (x * 2 + 1, x * 2 - x * x),
        "floor": torch.floor, "sign": torch.sign, "greater": torch.gt, "less_equal": torch.le, "less": torch.lt,
        "equal": torch.eq,
        "logical_and": torch.logical_and, "logical_or": torch.logical_or, "logical_not": torch.logical_not,
        "add": torch.add, "subtract": torch.subtract, "multiply": torch.multiply, "maximum": torch.maximum,
        "minimum": torch.minimum, "add_number": lambda x, c: x + c, "times": lambda x, c: x * c,
        "where": torch.where, "cast": lambda x: x,
        "linear": F.linear, "matmul": lambda x, y: x @ y.transpose(-1, -2), "gram": lambda x: x @ x.transpose(-1, -2),
        "einsum": lambda x, y, equation: torch.einsum(equation, x, y),
        "attention": lambda q, k, v: F.scaled_dot_product_attention(q, k, v),
        "sum": reduced(torch.sum), "mean": reduced(torch.mean), "max": reduced(torch.amax),
        "min": reduced(torch.amin), "var": lambda x, axes, keep: torch.var(x, axes, correction=0, keepdim=keep),
        "argmax": argmax, "logsumexp": lambda x, axis: torch.logsumexp(x, axis), "any": reduced(torch.any),
        "cumsum": lambda x, axis: torch.cumsum(x, axis), "sort": lambda x, axis: torch.sort(x, dim=axis).values,
        "topk": topk,
        "softmax": lambda x, axis: torch.softmax(x, axis), "log_softmax": lambda x: torch.log_softmax(x, -1),
        "layer_norm": lambda x, w, b: F.layer_norm(x, x.shape[-1:], w, b, 1e-2),
        "rms_norm": lambda x, w: F.rms_norm(x, x.shape[-1:], w, 1e-2),
        "batch_norm": lambda x, mean, var, w, b: F.batch_norm(x, mean, var, w, b, eps=1e-2),
        "instance_norm": lambda x: F.layer_norm(x, x.shape[2:], eps=1e-2),
        "conv": lambda x, w, bias, stride, padding, groups: F.conv2d(x, w, bias, stride, padding, 1, groups),
        "max_pool": lambda x, kernel, stride, padding: F.max_pool2d(x, kernel, stride, padding),
        "avg_pool": lambda x, kernel, stride, padding: F.avg_pool2d(x, kernel, stride, padding),
        "global_avg_pool": lambda x: F.adaptive_avg_pool2d(x, 1),
        "transpose": lambda x, axes: x.permute(axes), "view": lambda x, shape: x.reshape(shape),
        "concatenate": lambda *parts, axis: torch.cat(parts, axis),
        "stack": lambda *parts, axis: torch.stack(parts, axis),
        "slice": lambda x, axis, begin, end, step: x[(slice(None),) * axis + (slice(begin, end, step),)],
        "split": lambda x, axis, at: torch.tensor_split(x, [at], axis), "unstack": lambda x: x.unbind(0),
        "flip": lambda x, axis: torch.flip(x, [axis]), "roll": lambda x, axis, shift: torch.roll(x, shift, axis),
        "pad": padded, "reflect": reflect, "tile": lambda x, times: torch.tile(x, times),
        "repeat": lambda x, times, axis: torch.repeat_interleave(x, times, axis),
        "broadcast": lambda x, shape: torch.broadcast_to(x, shape), "tril": lambda x, k: torch.tril(x, k),
        "diagonal": lambda x: torch.diagonal(x, dim1=-2, dim2=-1),
        "take": lambda x, at, axis: x.index_select(axis, at.reshape(-1)).reshape(
            *x.shape[:axis], *at.shape, *x.shape[axis + 1:]),
        "gather": lambda x, at, axis: torch.take_along_dim(x, at, axis),
        "scatter": lambda x, at, updates, axis: x.scatter(axis, at, updates),
        "one_hot": lambda at, depth: F.one_hot(at, depth),
    }

    def load(array):
        return torch.from_numpy(np.array(array))

    def cast(value, dtype, floats):
        return value.to(getattr(torch, floats if "float" in dtype else dtype))
    return Reference(table, load, lambda t: t.numpy(), cast)


REFERENCES = {"numpy": numpy_reference, "torch": torch_reference}
