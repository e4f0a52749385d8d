"""Scales and shifts by constants become part of the weights before them: batch normalisation costs nothing then."""
from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from ml_dtypes import finfo

from tilewright import topi
from tilewright.graph.ir.callees import Operator, Slot, operator
from tilewright.graph.ir.deferred import Deferred, loaded
from tilewright.graph.ir.rebuild import Rebuild, rebuilt
from tilewright.graph.ir.values import Call, Function, Value, constant, readers
from tilewright.runtime.dtypes import numpy_dtype

_NARROW = 2                      # bytes: in such floats what is rounded between two operations shows
_MOST_OFFSET = 4.0               # |mean| over the deviation up to which a term of its own loses nothing that shows


def expand_batch_norm(function: Function) -> Function:
    """function with each batch normalisation by constant moments as a product and a sum with constants, where these are
    finite. One of 16-bit floats stays whole where the mean is far from 0: the operator rounds once, at its end."""
    def step(new: Rebuild, c: Call, inputs: tuple[Value, ...]) -> Sequence[Value] | None:
        given = arguments(c.callee, inputs) if _is(c.callee, topi.batch_norm) else None
        factors = None if given is None else _factors(given)
        if given is None or factors is None:
            return None
        x = given["x"]
        shape = (-1, *(1,) * (x.ndim - 1 - given["axis"] % x.ndim))
        scale, shift = (constant(f.reshape(shape), f"{c.results[0].name}_{what}")
                        for f, what in zip(factors, ("scale", "shift")))
        return [_emit(new, topi.add, _emit(new, topi.multiply, x, scale), shift)]
    return rebuilt(function, step)


def _factors(given: Mapping[str, Any]) -> tuple[np.ndarray, np.ndarray] | None:
    """(scale, shift) in the type of x, of which x * scale + shift is the normalisation; None: it stays as it is."""
    parts = [given[k] for k in ("mean", "var", "weight", "bias")]
    if not all(v is None or isinstance(v, Value) and v.is_constant for v in parts) or not given["x"].shape:
        return None
    mean, var, weight, bias = (
        np.float64(other) if v is None else v.data.astype("float64") for v, other in zip(parts, (0, 1, 1, 0)))
    dtype = numpy_dtype(given["x"].dtype)
    with np.errstate(all="ignore"):
        inverse = 1.0 / np.sqrt(var + given["eps"])
        scale = inverse * weight
        shift = bias - mean * scale
        near = np.abs(mean * inverse).max(initial=0.0) <= _MOST_OFFSET
        made = scale.astype(dtype), shift.astype(dtype)
    if dtype.itemsize <= _NARROW and not (near and _is_normal(scale, made[0])):
        return None
    return made if mean.size and all(np.isfinite(f.astype("float64")).all() for f in made) else None


def _is_normal(exact: np.ndarray, rounded: np.ndarray) -> bool:
    """No number but 0 is so small that its type has fewer digits for it."""
    return bool(((np.abs(exact) >= float(finfo(rounded.dtype).smallest_normal)) | (exact == 0)).all())


def fold_affine(function: Function) -> Function:
    """function in which convolutions and linear layers take in the constants, one for each channel of the result, by
    which their results are multiplied, and which are added to them.

    Weights that are known do not overflow by that, and none becomes so small that it loses digits; those of 16-bit
    floats are known.
    """
    read_by = readers(function)
    fixed = _constants(function)
    alone = {v for v, calls in read_by.items() if len(calls) == 1} - set(function.ends)

    def step(new: Rebuild, c: Call, inputs: tuple[Value, ...]) -> Sequence[Value] | None:
        if not (_is(c.callee, topi.multiply) or _is(c.callee, topi.add)) or len(inputs) != 2:
            return None
        for k in (0, 1):
            value, factor = inputs[k], inputs[1 - k]
            if c.inputs[1 - k] in fixed and c.inputs[k] in alone and value.type == c.results[0].type:
                made = _taken_in(new, c, value, factor, fixed)
                if made is not None:
                    fixed.update(made[1])
                    alone.add(made[0])
                    return [made[0]]
        return None
    return rebuilt(function, step)


def _taken_in(new: Rebuild, c: Call, value: Value, factor: Value,
              fixed: set[Value]) -> tuple[Value, list[Value]] | None:
    """(the result of the layer that gives `value`, with the factor or term in its weights, new constants)."""
    layer = value.call
    if layer is None or not isinstance(layer.callee, Operator):
        return None
    given, axis = arguments(layer.callee, layer.inputs), _CHANNEL_AXIS.get(layer.callee.rule)
    if given is None or axis is None or given["weight"] not in fixed and not given["weight"].is_constant:
        return None
    weight, bias = given["weight"], given.get("bias")
    axis = -1 if given.get("channels_last") else axis
    channels = weight.shape[0]
    dtypes = {v.dtype for v in (value, factor, weight, bias) if v is not None}
    if len(dtypes) > 1 or "float" not in value.dtype or not (bias is None or bias.is_constant or bias in fixed):
        return None
    if not _is_per_channel(factor, value.ndim + axis if axis < 0 else axis, value.ndim, channels):
        return None
    flat = _emit(new, topi.reshape, factor, (channels,)) if factor.held is None else constant(
        loaded(factor.held).reshape(channels), factor.name)
    made: list[Value | None] = [flat]
    if _is(c.callee, topi.multiply):
        weight = _joined(new, topi.multiply, weight, flat, (channels, *(1,) * (weight.ndim - 1)))
        bias = None if bias is None else _joined(new, topi.multiply, bias, flat, (channels,))
        made += [weight] if given.get("bias") is None else [weight, bias]
    else:
        bias = flat if bias is None else _joined(new, topi.add, bias, flat, (channels,))
        made.append(bias)
    if any(v is None for v in made):
        return None
    own = {**given, "weight": weight, "bias": bias}
    return _emit(new, layer.callee.rule, **own), [v for v in made if v is not None]


def _joined(new: Rebuild, rule: Callable[..., Any], v: Value, factor: Value, shape: tuple[Any, ...]) -> Value | None:
    """rule(v, factor) with the factor in a shape; None where its numbers are worse than those of v and the factor."""
    narrow = numpy_dtype(v.dtype).itemsize <= _NARROW
    if v.held is None or factor.held is None:
        reshaped = factor if factor.shape == shape else _emit(new, topi.reshape, factor, shape)
        return None if narrow else _emit(new, rule, v, reshaped)
    join, parts, dtype = _JOIN[rule], (v.held, factor.held), numpy_dtype(v.dtype)

    def joined() -> np.ndarray:
        a, b = (loaded(x).astype("float32") if narrow else loaded(x) for x in parts)
        with np.errstate(all="ignore"):
            return join(a, b.reshape(shape))

    exact = joined()
    with np.errstate(all="ignore"):
        made = exact.astype(dtype)
    kept = np.isfinite(made.astype("float32") if narrow else made).all()
    if kept and rule is topi.multiply:
        kept = _is_normal(exact if narrow else _with_nonzero(made, parts, shape), made)
    if not kept:
        return None
    if isinstance(v.held, Deferred):                         # the product, too, takes no memory until it is used
        return constant(Deferred(made.shape, dtype, lambda: joined().astype(dtype)), v.name)
    return constant(made, v.name)


def _with_nonzero(product: np.ndarray, parts: Sequence[Any], shape: tuple[Any, ...]) -> np.ndarray:
    """A product of two arrays, with the least number where it is 0 and neither of them is."""
    a, b = (loaded(x) for x in parts)
    lost = (product == 0) & (a != 0) & (b.reshape(shape) != 0)
    return np.where(lost, finfo(product.dtype).smallest_subnormal, product) if lost.any() else product


_JOIN: Mapping[Any, Callable[..., np.ndarray]] = {topi.multiply: np.multiply, topi.add: np.add}
_CHANNEL_AXIS: Mapping[Any, int] = {topi.conv: 1, topi.depthwise_conv: 1, topi.linear: -1}


def _is_per_channel(factor: Value, axis: int, ndim: int, channels: Any) -> bool:
    """The factor has one element for each channel, and repeats along all other axes."""
    shape = (1,) * (ndim - factor.ndim) + tuple(factor.shape)
    return len(shape) == ndim and all(d == (channels if k == axis else 1) for k, d in enumerate(shape))


def _constants(function: Function) -> set[Value]:
    """Constants, and what is computed from them alone."""
    found = set(function.constants)
    for c in function.calls:
        if isinstance(c.callee, Operator) and all(v in found for v in c.inputs):
            found.update(c.results)
    return found


def _is(callee: Any, rule: Callable[..., Any]) -> bool:
    return isinstance(callee, Operator) and callee.rule is rule


def arguments(callee: Any, inputs: Sequence[Value]) -> dict[str, Any] | None:
    """What a rule is called with, by the names of its parameters, defaults included; None where lists hold values."""
    if not isinstance(callee, Operator):
        return None
    bound = inspect.signature(callee.rule).bind(*callee.args, **callee.kwargs)
    bound.apply_defaults()
    return {k: inputs[x.index] if isinstance(x, Slot) else x for k, x in bound.arguments.items()}


def _emit(new: Rebuild, rule: Callable[..., Any], *args: Any, **kwargs: Any) -> Value:
    op, inputs = operator(rule, args, kwargs, Value)
    return new.emit(op, *inputs, name=getattr(rule, "__name__", "lv"))
