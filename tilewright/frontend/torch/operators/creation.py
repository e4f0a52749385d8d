"""Tensors that read no other: constants, ranges, identities. Random numbers are refused, since runs must agree."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright import topi
from tilewright.frontend.torch import rules
from tilewright.frontend.torch.emit import Emitter
from tilewright.frontend.torch.table import operator
from tilewright.graph.ir.values import Value
from tilewright.support.errors import ImportModelError


@operator("full", "full_like", "new_full")
def full(e: Emitter, _: Any, *rest: Any, fill_value: Any = None, **__: Any) -> Value:
    """`topi.full`."""
    return e.tensor(rest[-1] if rest else fill_value, e.dtype, e.shape)


@operator("zeros", "zeros_like", "new_zeros", "empty.memory_format", "empty_like", "new_empty", "empty_strided",
          "new_empty_strided", "empty_permuted")
def zeros(e: Emitter, *_: Any, **__: Any) -> Value:
    """`topi.full` of 0; what PyTorch leaves open is 0 too."""
    return e.tensor(0, e.dtype, e.shape)


@operator("ones", "ones_like", "new_ones")
def ones(e: Emitter, *_: Any, **__: Any) -> Value:
    """`topi.full` of 1."""
    return e.tensor(1, e.dtype, e.shape)


@operator("scalar_tensor", "prims.scalar_tensor")
def scalar_tensor(e: Emitter, value: Any, **_: Any) -> Value:
    """A number as a tensor."""
    return e.tensor(value, e.dtype)


@operator("fill.Scalar", "fill.Tensor")
def fill(e: Emitter, x: Value, value: Any) -> Value:
    """`value` in the shape of x."""
    return e.broadcast(e.tensor(value, e.dtype), e.shape)


@operator("arange", "arange.start", "arange.start_step")
def arange(e: Emitter, *bounds: Any, **_: Any) -> Value:
    """start + i * step."""
    start = bounds[0] if len(bounds) > 1 else 0
    step = bounds[2] if len(bounds) > 2 else 1
    return e.te(rules.steps, start=start, step=step, extent=e.shape[0], dtype=e.dtype)


@operator("prims.iota")
def iota(e: Emitter, length: Any, start: Any = 0, step: Any = 1, **_: Any) -> Value:
    """start + i * step."""
    return e.te(rules.steps, start=start, step=step, extent=e.shape[0], dtype=e.dtype)


@operator("eye", "eye.m")
def eye(e: Emitter, *_: Any, **__: Any) -> Value:
    """`topi.eye`."""
    rows, columns = e.shape
    return e.te(topi.eye, rows, columns, dtype=e.dtype)


@operator("linspace")
def linspace(e: Emitter, start: Any, end: Any, steps: int, **_: Any) -> Value:
    """`topi.linspace`, computed in float64."""
    wide = e.te(topi.linspace, float(start), float(end), steps, dtype="float64")
    return e.cast(wide, e.dtype)


@operator("rand", "randn", "rand_like", "randn_like", "randint", "randint.low", "randint_like",
          "randint_like.low_dtype", "randperm", "bernoulli", "bernoulli.p", "bernoulli.Tensor",
          "normal_functional", "multinomial", "uniform", "exponential", "normal.Tensor_Tensor",
          "normal.Tensor_float", "normal.float_Tensor", "poisson", "rrelu_with_noise")
def random(e: Emitter, *_: Any, **__: Any) -> Value:
    """Refused: PyTorch's generator has a state outside of the graph."""
    raise ImportModelError("random numbers of PyTorch's generator are not supported",
                           "call model.eval(), or pass the random numbers as an input")


@operator("native_dropout")
def native_dropout(e: Emitter, x: Value, p: float, train: bool | None) -> Sequence[Value]:
    """x, where it is not training."""
    return (dropout(e, x, p, bool(train)), e.tensor(True, "bool", x.shape))


@operator("dropout", "feature_dropout", "alpha_dropout", "feature_alpha_dropout")
def dropout(e: Emitter, x: Value, p: float, train: bool) -> Value:
    """x, where it is not training."""
    if train and p:
        return random(e)
    return x
