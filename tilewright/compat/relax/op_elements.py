"""Operators of relax, element by element, and over axes."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright import topi
from tilewright.compat.relax.ops import Use, op, use
from tilewright.compat.topi import elements, transform

_UNARY = {name: getattr(topi, name) for name in (
    "abs acos acosh asin asinh atan atanh ceil cos cosh exp floor log negative round rsqrt sigmoid sign sin sinh "
    "square sqrt tan tanh erf trunc isnan isinf isfinite logical_not bitwise_not").split()}
_BINARY = {name: getattr(topi, name) for name in (
    "add subtract multiply floor_divide power maximum minimum equal not_equal greater greater_equal less "
    "less_equal logical_and logical_or logical_xor bitwise_and bitwise_or bitwise_xor").split()}
_BINARY |= {name: elements.NAMES[name] for name in "divide mod floor_mod left_shift right_shift".split()}
_REDUCTIONS = {name: getattr(topi, name) for name in "max min mean std".split()} | {"variance": topi.var}
_REDUCTIONS |= {name: elements.NAMES[name] for name in "sum prod".split()}


def _unary(rule: Callable[..., Any]) -> Callable[..., Use]:
    def uses(x: Any) -> Use:
        return use(rule, x)
    return uses


def _binary(rule: Callable[..., Any]) -> Callable[..., Use]:
    def uses(x1: Any, x2: Any) -> Use:
        return use(rule, x1, x2)
    return uses


def _reduction(rule: Callable[..., Any]) -> Callable[..., Use]:
    def uses(x: Any, axis: Any = None, keepdims: bool = False) -> Use:
        return use(rule, x, axis=tuple(axis) if isinstance(axis, list) else axis, keepdims=keepdims)
    return uses


for _name, _rule in _UNARY.items():
    op(_name)(_unary(_rule))
for _name, _rule in _BINARY.items():
    op(_name, "x1 x2")(_binary(_rule))
for _name, _rule in _REDUCTIONS.items():
    op(_name)(_reduction(_rule))


@op("clip")
def _clip(x: Any, min: Any, max: Any) -> Use:
    return use(topi.clip, x, min, max)


@op("astype")
def _astype(x: Any, dtype: Any) -> Use:
    return use(topi.astype, x, dtype)


@op("where", "condition x1 x2")
def _where(condition: Any, x1: Any, x2: Any) -> Use:
    return use(topi.where, condition, x1, x2)


@op("masked_fill", "x mask")
def _masked_fill(x: Any, mask: Any, value: Any) -> Use:
    return use(topi.where, mask, value, x)


@op("argmax")
def _argmax(x: Any, axis: int | None = None, keepdims: bool = False) -> Use:
    return use(topi.argmax, x, axis=axis, keepdims=keepdims)


@op("argmin")
def _argmin(x: Any, axis: int | None = None, keepdims: bool = False) -> Use:
    return use(topi.argmin, x, axis=axis, keepdims=keepdims)


@op("cumsum", "data")
def _cumsum(data: Any, axis: int | None = None, dtype: Any = None, exclusive: bool = False) -> Use:
    return use(transform.NAMES["cumsum"], data, axis, dtype, exclusive)


@op("cumprod", "data")
def _cumprod(data: Any, axis: int | None = None, dtype: Any = None, exclusive: bool = False) -> Use:
    return use(transform.NAMES["cumprod"], data, axis, dtype, exclusive)


@op("sort")
def _sort(x: Any, axis: int = -1, descending: bool = False) -> Use:
    return use(topi.sort, x, axis=axis, descending=descending)


@op("argsort", "data")
def _argsort(data: Any, axis: int = -1, descending: bool = False, dtype: str = "int32") -> Use:
    return use(topi.argsort, data, axis=axis, descending=descending, dtype=dtype)


@op("topk", "data")
def _topk(data: Any, k: int = 1, axis: int = -1, ret_type: str = "both", largest: bool = True,
          dtype: str = "int32") -> Use:
    return use(transform.NAMES["topk"], data, k, axis, ret_type, not largest, dtype)


@op("matmul", "x1 x2")
def _matmul(x1: Any, x2: Any, out_dtype: Any = None) -> Use:
    return use(topi.matmul, x1, x2, **({"out_dtype": out_dtype} if out_dtype else {}))


@op("linear", "data weight bias")
def _linear(data: Any, weight: Any, bias: Any = None, out_dtype: Any = None) -> Use:
    return use(topi.linear, data, weight, bias, **({"out_dtype": out_dtype} if out_dtype else {}))


@op("einsum", "operands")
def _einsum(operands: Any, subscripts: str) -> Use:
    return use(topi.einsum, subscripts, *operands)


@op("ewise_fma", "x1 x2 x3")
def _fma(x1: Any, x2: Any, x3: Any) -> Use:
    return use(_multiply_add, x1, x2, x3)


def _multiply_add(x: Any, y: Any, z: Any) -> Any:
    return topi.add(topi.multiply(x, y), z)


_multiply_add.__name__ = "ewise_fma"
