"""Two-dimensional convolution (NCHW, no groups) and its two gradients."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilewright import te
from tilewright.graph.ir.types import TensorType
from tilewright.graph.operator import Operator
from tilewright.graph.operators.accumulate import extents, narrow, wide_dtype
from tilewright.graph.value import Value
from tilewright.graph.vocabulary import public


def padded(x: te.Tensor, p: int, name: str) -> te.Tensor:
    """x[n, c, h, w] with p zeros on both sides of the last two axes."""
    if p == 0:
        return x
    n, c, h, w = x.shape

    def element(b: Any, ch: Any, i: Any, j: Any) -> Any:
        inside = te.all(i >= p, i < h + p, j >= p, j < w + p)
        return te.if_then_else(inside, x[b, ch, i - p, j - p], 0.0)
    return te.compute((n, c, h + 2 * p, w + 2 * p), element, name=name)


@dataclass(frozen=True)
class _Conv(Operator):
    stride: int = 1
    padding: int = 0

    def __post_init__(self) -> None:
        for name, value, least in (("stride", self.stride, 1), ("padding", self.padding, 0)):
            self.require(type(value) is int and value >= least, f"{name} is {value!r}, not an integer >= {least}")

    def total(self, shape: tuple[Any, ...], factors: Any, axes: list[Any], dtype: str, name: str) -> te.Tensor:
        """The sum over axes of the product of the two factors(*index), rounded to dtype."""
        wide = wide_dtype(dtype)

        def element(*index: Any) -> Any:
            a, b = factors(*index)
            return te.sum(a.astype(wide) * b.astype(wide), axis=axes)
        return narrow(te.compute(shape, element, name=name), dtype)

    def out_extent(self, size: Any, kernel: Any) -> int:
        return int(size + 2 * self.padding - kernel) // self.stride + 1


@dataclass(frozen=True)
class Conv2d(_Conv):
    """y[n, m, i, j] = sum_{c, r, s} x[n, c, i*stride + r - padding, j*stride + s - padding] * w[m, c, r, s].

    x: [n, c, h, w]; w: [m, c, r, s]; x is zero outside its bounds.
    """

    def infer(self, *inputs: TensorType) -> TensorType:
        x, w = inputs
        self.require(len(x.shape) == len(w.shape) == 4, "needs x[n, c, h, w] and w[m, c, r, s]", x, w)
        self.require(x.shape[1] == w.shape[1], f"x has {x.shape[1]} channels, w expects {w.shape[1]}", x, w)
        self.require(all(n != 0 for n in w.shape[2:]), "the kernel has no element", x, w)
        out = tuple(self.out_extent(a, b) for a, b in zip(x.shape[2:], w.shape[2:]))
        self.require(min(out) >= 1, f"the kernel does not fit: the output would be {out}", x, w,
                     hint="add padding or use a smaller kernel")
        return TensorType((x.shape[0], w.shape[0], *out), self.same_float(x, w))

    def compute(self, *inputs: te.Tensor) -> te.Tensor:
        x, w = inputs
        n, c, h, width = extents(x)
        m, _, r, s = extents(w)
        data = padded(x, self.padding, "pad")
        rc, rr, rs = (te.reduce_axis((0, e), name=k) for e, k in ((c, "rc"), (r, "rr"), (s, "rs")))
        t = self.stride
        return self.total(
            (n, m, self.out_extent(h, r), self.out_extent(width, s)),
            lambda b, f, i, j: (data[b, rc, i * t + rr, j * t + rs], w[f, rc, rr, rs]), [rc, rr, rs], x.dtype, "conv2d")

    def grad(self, y: Value, dy: Value) -> tuple[Value | None, ...]:
        x, w = y.inputs
        return (Conv2dInputGrad(self.stride, self.padding)(dy, w, x),
                Conv2dWeightGrad(self.stride, self.padding)(dy, x, w))


@dataclass(frozen=True)
class Conv2dInputGrad(_Conv):
    """dx[n, c, i, j] = sum over (m, r, s) of dy[n, m, (i+padding-r)/stride, (j+padding-s)/stride] * w[m, c, r, s].

    Only exact quotients inside dy count. Inputs: dy, w, and x for its shape.
    """

    def infer(self, *inputs: TensorType) -> TensorType:
        return TensorType(inputs[2].shape, self.same_float(*inputs[:2]))

    def compute(self, *inputs: te.Tensor) -> te.Tensor:
        dy, w, x = inputs
        m, _, r, s = extents(w)
        oh, ow = extents(dy)[2:]
        t, p = self.stride, self.padding
        # Zeros between and around dy's elements turn the gradient into a plain correlation with the flipped kernel.
        top, left = r - 1, s - 1
        height, width = (extents(x)[axis] + 2 * p + size - 1 for axis, size in ((2, r), (3, s)))

        def spread(b: Any, f: Any, i: Any, j: Any) -> Any:
            a, e = i - top, j - left
            inside = [i >= top, a // t < oh, j >= left, e // t < ow]
            if t > 1:
                inside += [a % t == 0, e % t == 0]
            return te.if_then_else(te.all(*inside), dy[b, f, a // t, e // t], 0.0)

        z = te.compute((x.shape[0], m, height, width), spread, name="spread")
        rm, rr, rs = (te.reduce_axis((0, e), name=k) for e, k in ((m, "rm"), (r, "rr"), (s, "rs")))
        return self.total(
            x.shape, lambda b, c, i, j: (z[b, rm, i + p + rr, j + p + rs], w[rm, c, r - 1 - rr, s - 1 - rs]),
            [rm, rr, rs], dy.dtype, "conv2d_input_grad")


@dataclass(frozen=True)
class Conv2dWeightGrad(_Conv):
    """dw[m, c, r, s] = sum over (n, i, j) of dy[n, m, i, j] * x[n, c, i*stride + r - padding, j*stride + s - padding].

    Inputs: dy, x, and w for its shape.
    """

    def infer(self, *inputs: TensorType) -> TensorType:
        return TensorType(inputs[2].shape, self.same_float(*inputs[:2]))

    def compute(self, *inputs: te.Tensor) -> te.Tensor:
        dy, x, w = inputs
        data = padded(x, self.padding, "pad")
        rn, ri, rj = (te.reduce_axis((0, e), name=k) for e, k in zip((dy.shape[0], *dy.shape[2:]), ("rn", "ri", "rj")))
        t = self.stride
        return self.total(
            w.shape, lambda m, c, r, s: (dy[rn, m, ri, rj], data[rn, c, ri * t + r, rj * t + s]), [rn, ri, rj],
            dy.dtype, "conv2d_weight_grad")


@public
def conv2d(x: Value, w: Value, stride: int = 1, padding: int = 0) -> Value:
    """The convolution of x[n, c, h, w] with w[m, c, r, s]."""
    return Conv2d(stride, padding)(x, w)
