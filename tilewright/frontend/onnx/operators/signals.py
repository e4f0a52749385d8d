"""Signals: Fourier transforms."""
from __future__ import annotations

from typing import Any

from tilewright import topi
from tilewright.frontend.onnx.node import Node, Unsupported, checked_axis
from tilewright.frontend.onnx.registry import operator
from tilewright.graph.ir.values import Value


@operator("DFT")
def dft(n: Node) -> Value:
    """`topi.fft`, `topi.rfft` or `topi.irfft`."""
    x = n.value(0)
    parts, onesided = x.shape[-1] if x.ndim else 0, bool(n.attr("onesided", 0))
    if onesided and parts != (2 if n.attr("inverse", 0) else 1):
        raise Unsupported(f"the last extent of x is {parts}, and a one-sided transform is of real numbers, which have "
                          "the extent 1; its inverse of pairs, which have the extent 2")
    axis = int(n.number(2, "the axis")) if n.has(2) else n.attr("axis", 1 if n.version < 20 else -2)
    axis = checked_axis(axis, x.ndim)
    size = n.number(1, "the length") if n.has(1) else None
    return n.emit(transform, x, axis, size, bool(n.attr("inverse", 0)), onesided)


def transform(x: Any, axis: int, size: Any, inverse: bool, onesided: bool) -> Any:
    """The Fourier transform of x: T[..., 1 or 2] along an axis."""
    real = getattr(x.shape[-1], "value", None) == 1
    if onesided and not inverse:
        plain = topi.squeeze(topi.strided_slice(x, begin=[0], end=[1], axes=[x.ndim - 1]), axis=-1)
        return topi.rfft(plain, axis=axis, size=size)
    if onesided:
        length = size if size is not None else (x.shape[axis] - 1) * 2
        return topi.expand_dims(topi.irfft(x, size=length, axis=axis), axis=-1)
    whole = topi.concatenate([x, topi.zeros_like(x)], axis=-1) if real else x
    return topi.fft(whole, axis=axis, size=size, inverse=inverse)


@operator("STFT")
def stft(n: Node) -> Value:
    """`topi.stft`."""
    x, step, window = n.value(0), int(n.number(1, "the step")), n.optional(2)
    if x.ndim == 3:
        if x.shape[-1] != 1:
            raise Unsupported("of a complex signal")
        x = n.emit(topi.squeeze, x, axis=-1)
    length = int(n.number(3, "the length")) if n.has(3) else window.shape[0] if window is not None else None
    if not isinstance(length, int):
        raise Unsupported("the length of the frames is not known")
    return n.emit(topi.stft, x, window, length=length, step=step, onesided=bool(n.attr("onesided", 1)))
