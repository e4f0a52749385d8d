"""Scales and shifts by constants become part of the weights before them: batch normalisation costs nothing then."""
from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tilewright import topi
from tilewright.graph.ir.callees import Operator, Slot, operator
from tilewright.graph.ir.rebuild import Rebuild, rebuilt
from tilewright.graph.ir.values import Call, Function, Value, readers


def expand_batch_norm(function: Function) -> Function:
    """function with each batch normalisation by constant moments as a product and a sum with constants."""
    def step(new: Rebuild, c: Call, inputs: tuple[Value, ...]) -> Sequence[Value] | None:
        given = arguments(c.callee, inputs) if _is(c.callee, topi.batch_norm) else None
        if given is None or "float" not in given["x"].dtype:
            return None
        x, mean, var, weight, bias = (given[k] for k in ("x", "mean", "var", "weight", "bias"))
        if not all(v is None or v.is_constant for v in (mean, var, weight, bias)):
            return None
        scale = _emit(new, topi.rsqrt, _emit(new, topi.add, var, given["eps"]))
        if weight is not None:
            scale = _emit(new, topi.multiply, scale, weight)
        shift = _emit(new, topi.negative, _emit(new, topi.multiply, mean, scale))
        if bias is not None:
            shift = _emit(new, topi.add, shift, bias)
        shape = (-1, *(1,) * (x.ndim - 1 - given["axis"] % x.ndim))
        scaled = _emit(new, topi.multiply, x, _emit(new, topi.reshape, scale, shape))
        return [_emit(new, topi.add, scaled, _emit(new, topi.reshape, shift, shape))]
    return rebuilt(function, step)


def fold_affine(function: Function) -> Function:
    """function in which convolutions and linear layers take in the constants, one for each channel of the result, by
    which their results are multiplied, and which are added to them."""
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
    bias = given.get("bias")
    known = bias is None or bias.is_constant or bias in fixed
    dtypes = {v.dtype for v in (value, factor, given["weight"])}
    known = known and len(dtypes) == 1 and "float" in value.dtype
    channels = given["weight"].shape[0]
    if not known or not _is_per_channel(factor, value.ndim + axis if axis < 0 else axis, value.ndim, channels):
        return None
    weight, made = given["weight"], []

    def emit(rule: Callable[..., Any], *args: Any) -> Value:
        made.append(_emit(new, rule, *args))
        return made[-1]
    flat = emit(topi.reshape, factor, (channels,)) if factor.shape != (channels,) else factor
    if _is(c.callee, topi.multiply):
        weight = emit(topi.multiply, weight, emit(topi.reshape, flat, (channels, *(1,) * (weight.ndim - 1))))
        bias = None if bias is None else emit(topi.multiply, bias, flat)
    else:
        bias = flat if bias is None else emit(topi.add, bias, flat)
    own = {**given, "weight": weight, "bias": bias}
    return _emit(new, layer.callee.rule, **own), made


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
