"""Other shapes and orders of the same elements, tensors side by side."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright import topi
from tilewright.frontend.torch import rules
from tilewright.frontend.torch.emit import Emitter, axes_of, axis_of
from tilewright.frontend.torch.table import operator
from tilewright.graph.ir.values import Value
from tilewright.tir import Expr
from tilewright.tir import dtype as dt
from tilewright.tir.arithmetic import binary


@operator("view", "_unsafe_view", "reshape", "view_copy", "flatten.using_ints", "unflatten.int", "unsqueeze",
          "view_as", "reshape_as", "_reshape_alias", "atleast_1d", "atleast_2d", "unsqueeze_copy")
def reshape(e: Emitter, x: Value, *_: Any, **__: Any) -> Value:
    """`topi.reshape` to the shape of the result."""
    return e.reshape(x, e.shape)


@operator("squeeze", "squeeze.dim", "squeeze.dims", "squeeze_copy", "squeeze_copy.dim", "squeeze_copy.dims")
def squeeze(e: Emitter, x: Value, dim: Any = None) -> Value:
    """`topi.reshape` to the shape of the result; a size that may go is not 1, since PyTorch has let it stay."""
    for a in axes_of(dim, x.ndim) if x.ndim and dim != [] else ():
        if isinstance(x.shape[a], Expr):
            e.state(binary("ne", x.shape[a], 1), f"the extent {x.shape[a]} of dimension {a} is 1, and stays")
    return e.reshape(x, e.shape)


@operator("view.dtype")
def view_dtype(e: Emitter, x: Value, dtype: str) -> Value:
    """The bits of x as another type of the same size."""
    if dt.bits_of(x.dtype) != dt.bits_of(dtype) or "bool" in (x.dtype, dtype):
        raise e.refuse(f"view: the bits of {x.dtype} as {dtype}", "convert with .to(dtype)")
    return x if x.dtype == dtype else e.te(rules.bits, x, dtype=dtype)


@operator("expand", "broadcast_to", "expand_as", "expand_copy")
def expand(e: Emitter, x: Value, *_: Any, **__: Any) -> Value:
    """`topi.broadcast_to`."""
    return e.broadcast(x, e.shape)


@operator("permute", "permute_copy")
def permute(e: Emitter, x: Value, dims: Sequence[int]) -> Value:
    """`topi.transpose`."""
    return e.transpose(x, [axis_of(d, x.ndim) for d in dims])


@operator("transpose.int", "swapaxes", "swapdims", "transpose_copy.int")
def transpose(e: Emitter, x: Value, dim0: int, dim1: int) -> Value:
    """`topi.transpose` of two dimensions."""
    return swapped(e, x, axis_of(dim0, x.ndim), axis_of(dim1, x.ndim))


@operator("t", "numpy_T", "mT", "t_copy", "adjoint")
def t(e: Emitter, x: Value) -> Value:
    """`topi.transpose`."""
    return swapped(e, x, x.ndim - 2, x.ndim - 1) if x.ndim >= 2 else x


def swapped(e: Emitter, x: Value, a: int, b: int) -> Value:
    """x with two axes in each other's place."""
    order = list(range(x.ndim))
    if order:
        order[a], order[b] = b, a
    return e.transpose(x, order)


@operator("movedim.int", "movedim.intlist", "moveaxis.int", "moveaxis.intlist")
def movedim(e: Emitter, x: Value, source: Any, destination: Any) -> Value:
    """`topi.moveaxis`."""
    return e.te(topi.moveaxis, x, source=source, destination=destination)


@operator("cat", "concat", "concatenate")
def cat(e: Emitter, tensors: Sequence[Value], dim: int = 0) -> Value:
    """`topi.concatenate` of the tensors that are not empty lists."""
    parts = [e.cast(t, e.dtype) for t in tensors if t.shape != (0,) or len(e.shape) == 1]
    if len(parts) == 1:
        return parts[0]
    return e.te(topi.concatenate, parts, axis=axis_of(dim, len(e.shape)))


@operator("stack")
def stack(e: Emitter, tensors: Sequence[Value], dim: int = 0) -> Value:
    """`topi.stack`."""
    return e.te(topi.stack, [e.cast(t, e.dtype) for t in tensors], axis=axis_of(dim, len(e.shape)))


@operator("repeat", "tile")
def repeat(e: Emitter, x: Value, repeats: Sequence[Any]) -> Value:
    """`topi.tile`."""
    if any(isinstance(n, int) and n == 0 for n in repeats):
        return e.te(topi.zeros, e.shape, dtype=x.dtype)
    return e.te(topi.tile, x, tuple(repeats)) if repeats else x


@operator("flip")
def flip(e: Emitter, x: Value, dims: Sequence[int]) -> Value:
    """`topi.flip`."""
    axes = tuple(axis_of(d, x.ndim) for d in dims)
    return e.te(topi.flip, x, axis=axes) if axes and x.ndim else x


@operator("roll")
def roll(e: Emitter, x: Value, shifts: Any, dims: Any = ()) -> Value:
    """`topi.roll`."""
    shifts = list(shifts) if isinstance(shifts, (list, tuple)) else [shifts]
    dims = [dims] if isinstance(dims, int) else list(dims)
    if x.ndim == 0:
        return x
    if not dims:
        return e.reshape(e.te(topi.roll, e.reshape(x, (-1,)), shifts[0], axis=0), e.shape)
    moves: dict[int, Any] = {}
    for d, shift in zip(dims, shifts):                          # a dimension may come twice
        axis = axis_of(d, x.ndim)
        moves[axis] = moves.get(axis, 0) + shift
    return e.te(topi.roll, x, tuple(moves.values()), axis=tuple(moves))


@operator("tril")
def tril(e: Emitter, x: Value, diagonal: Any = 0) -> Value:
    """`topi.tril`."""
    return _triangle(e, topi.tril, x, diagonal)


@operator("triu")
def triu(e: Emitter, x: Value, diagonal: Any = 0) -> Value:
    """`topi.triu`."""
    return _triangle(e, topi.triu, x, diagonal)


def _triangle(e: Emitter, rule: Any, x: Value, k: Any) -> Value:
    if x.dtype == "bool":
        return e.cast(e.te(rule, e.cast(x, "uint8"), k=k), "bool")
    return e.te(rule, x, k=k)


def last(e: Emitter, x: Value, *dims: int) -> Value:
    """x with dimensions moved to the end."""
    axes = [axis_of(d, x.ndim) for d in dims]
    return e.transpose(x, [*(k for k in range(x.ndim) if k not in axes), *axes])


@operator("diagonal", "diagonal_copy")
def diagonal(e: Emitter, x: Value, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Value:
    """`topi.diagonal`."""
    if 0 in e.shape:
        return e.te(topi.zeros, e.shape, dtype=x.dtype)
    return e.te(topi.diagonal, last(e, x, dim1, dim2), offset=offset)


@operator("diag_embed")
def diag_embed(e: Emitter, x: Value, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Value:
    """`topi.diag_embed`."""
    y = e.te(topi.diag_embed, x, offset=offset)
    a, b = axis_of(dim1, y.ndim), axis_of(dim2, y.ndim)
    if a > b:
        a, b = b, a
        y = swapped(e, y, y.ndim - 2, y.ndim - 1)
    order = list(range(y.ndim - 2))
    order.insert(a, y.ndim - 2)
    order.insert(b, y.ndim - 1)
    return e.transpose(y, order)


@operator("pixel_shuffle")
def pixel_shuffle(e: Emitter, x: Value, upscale_factor: int) -> Value:
    """`topi.pixel_shuffle`."""
    return _images(e, topi.pixel_shuffle, x, upscale_factor)


@operator("pixel_unshuffle")
def pixel_unshuffle(e: Emitter, x: Value, downscale_factor: int) -> Value:
    """`topi.pixel_unshuffle`."""
    return _images(e, topi.pixel_unshuffle, x, downscale_factor)


def _images(e: Emitter, rule: Any, x: Value, factor: int) -> Value:
    lead = x.shape[:-3]
    flat = e.reshape(x, (-1, *x.shape[-3:])) if len(lead) != 1 else x
    y = e.te(rule, flat, factor=factor)
    return e.reshape(y, e.shape) if len(lead) != 1 else y


@operator("repeat_interleave.Tensor")
def repeated_places(e: Emitter, repeats: Value, output_size: Any = None) -> Value:
    """The places that `repeat_interleave` reads: k as often as repeats[k] says, by `topi.searchsorted` of the sums."""
    ends = e.te(topi.cumsum, e.cast(repeats, "int64"), axis=0)
    places = e.te(rules.steps, start=0, step=1, extent=e.shape[0], dtype="int64")
    return e.te(topi.searchsorted, ends, places, side="right")


@operator("repeat_interleave.self_int")
def repeat_interleave(e: Emitter, x: Value, repeats: Any, dim: int | None = None, output_size: Any = None) -> Value:
    """`topi.repeat`."""
    axis = None if dim is None else axis_of(dim, x.ndim)
    return e.te(topi.repeat, e.lifted(x), repeats, axis=axis)
