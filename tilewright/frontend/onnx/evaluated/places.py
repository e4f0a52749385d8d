"""Shapes of tensors, and elements moved, joined and chosen."""
from __future__ import annotations

import math
from typing import Any

import numpy as np

from tilewright.frontend.onnx.evaluated.results import bounded, integers, kept
from tilewright.frontend.onnx.node import Node, Unknown, Unsupported, checked_axis, product
from tilewright.frontend.onnx.registry import evaluated
from tilewright.frontend.onnx.values import Held, as_objects, objects


@evaluated("Shape")
def shape(n: Node) -> Held:
    """The extents of x from `start` to `end`."""
    extents = n.shape()[n.attr("start", 0):n.attr("end")]
    return Held.known(objects(extents), "int64")


@evaluated("Size")
def number_of_elements(n: Node) -> Held:
    """The number of elements of x."""
    return Held.known(objects([product(n.shape())], ()), "int64")


@evaluated("Constant")
def constant(n: Node) -> Held:
    """The tensor, or the numbers, that an attribute has."""
    given = next((k for k in ("value", "value_int", "value_ints", "value_float", "value_floats", "sparse_value",
                              "value_string", "value_strings") if k in n.attributes), None)
    if given == "value":
        return n.tensor("value")
    if given in ("value_int", "value_ints"):
        return Held.known(np.array(n.attr(given), "int64"))
    if given in ("value_float", "value_floats"):
        return Held.known(np.array(n.attr(given), "float32"))
    if given == "sparse_value":
        return n.importer.dense(n.attributes[given].sparse_tensor)
    raise Unsupported("a constant of strings" if given else "a constant without a value")


@evaluated("Identity")
def identity(n: Node) -> Any:
    """x."""
    return n.inputs[0]


@evaluated("Reshape")
def reshape(n: Node) -> Held:
    """The elements of x in another shape."""
    x, wanted = n.elements(0), [int(d) for d in n.constants(1, "the shape")] if n.has(1) else n.required("shape")
    if not n.attr("allowzero", 0):
        wanted = [x.shape[k] if d == 0 else d for k, d in enumerate(wanted)]
    return kept(n, x.reshape(wanted))


@evaluated("Flatten")
def flatten(n: Node) -> Held:
    """The elements of x as a matrix."""
    x, axis = n.elements(0), n.cut()
    return kept(n, x.reshape(math.prod(x.shape[:axis]), math.prod(x.shape[axis:])))


@evaluated("Squeeze")
def squeeze(n: Node) -> Held:
    """x without dimensions of extent 1."""
    axes = n.axes()
    return kept(n, np.squeeze(n.elements(0), None if axes is None else tuple(axes)))


@evaluated("Unsqueeze")
def unsqueeze(n: Node) -> Held:
    """x with new dimensions of extent 1."""
    return kept(n, np.expand_dims(n.elements(0), tuple(n.axes() or ())))


@evaluated("Transpose")
def transpose(n: Node) -> Held:
    """x with its dimensions in another order."""
    return kept(n, np.transpose(n.elements(0), n.attr("perm")))


@evaluated("Concat")
def concat(n: Node) -> Held:
    """Tensors one behind the other."""
    parts = [n.elements(k) for k in range(len(n))]
    if any(p.dtype == object for p in parts):
        parts = [as_objects(p) for p in parts]
    return kept(n, np.concatenate(parts, n.attr("axis", 1)))


@evaluated("Split")
def split(n: Node) -> tuple[Held, ...]:
    """The parts of x along an axis."""
    x, axis = n.elements(0), n.axis(0)
    sizes = n.axes(1, "split")
    if sizes is None:
        count = n.attr("num_outputs", n.outputs())
        if n.version < 18 and x.shape[axis] % count:
            raise Unsupported(f"{x.shape[axis]} elements in {count} equal parts")
        step = -(-x.shape[axis] // count)
        sizes = [min(step, x.shape[axis] - k * step) for k in range(count)]
    if sum(sizes) != x.shape[axis]:
        raise Unsupported(f"the parts are {sizes}, x has {x.shape[axis]} elements along axis {axis}")
    return tuple(kept(n, p) for p in np.split(x, np.cumsum(sizes)[:-1], axis))


@evaluated("Gather")
def gather(n: Node) -> Held:
    """The elements of x at indices along an axis."""
    x, index, axis = n.elements(0), integers(n, 1), n.axis(0)
    bounded(n, (*x.shape[:axis], *index.shape, *x.shape[axis + 1:]))
    return kept(n, np.take(x, index, axis))


@evaluated("GatherElements")
def gather_elements(n: Node) -> Held:
    """The elements of x at an index for each."""
    return kept(n, n.elements(0)[_places(integers(n, 1), n.axis(0))])


def _places(index: np.ndarray, axis: int) -> tuple[np.ndarray, ...]:
    """Where each index is meant: in its own place along all axes but one. It may have fewer places than x."""
    at: list[np.ndarray] = list(np.indices(index.shape, sparse=True))
    at[axis] = index
    return tuple(at)


@evaluated("GatherND")
def gather_nd(n: Node) -> Held:
    """The elements of x at rows of indices."""
    if n.attr("batch_dims", 0) or n.held(1).shape[-1] == 0:
        raise Unknown(n.held(0), "x")
    x, index = n.elements(0), integers(n, 1)
    bounded(n, (*index.shape[:-1], *x.shape[index.shape[-1]:]))
    return kept(n, x[tuple(np.moveaxis(index, -1, 0))])


@evaluated("ScatterElements", "Scatter")
def scatter_elements(n: Node) -> Held:
    """x with updates at an index for each."""
    if n.attr("reduction", "none") != "none":
        raise Unknown(n.held(0), "x")
    out = as_objects(n.elements(0)).copy()
    out[_places(integers(n, 1), n.axis(0))] = as_objects(n.elements(2))
    return kept(n, out)


@evaluated("ScatterND")
def scatter_nd(n: Node) -> Held:
    """x with updates at rows of indices."""
    if n.attr("reduction", "none") != "none":
        raise Unknown(n.held(0), "x")
    if n.held(1).shape[-1] == 0:
        raise Unknown(n.held(0), "x")
    out = as_objects(n.elements(0)).copy()
    out[tuple(np.moveaxis(integers(n, 1), -1, 0))] = as_objects(n.elements(2))
    return kept(n, out)


@evaluated("Slice")
def slice_(n: Node) -> Held:
    """x[begin:end:step] along axes."""
    x = n.elements(0)
    begins, ends = (n.axes(k, name) or [] for k, name in ((1, "starts"), (2, "ends")))
    axes = n.axes(3, "axes")
    steps = n.constants(4, "the steps") if n.has(4) else [1] * len(begins)
    at = [slice(None)] * x.ndim
    for a, b, e, s in zip(range(len(begins)) if axes is None else axes, begins, ends, steps, strict=True):
        a, extent = checked_axis(a, x.ndim), x.shape[a]
        first, last = (max(b, -extent), None if e < -extent else e) if s < 0 else (b, e)
        at[a] = slice(first, last, s)
    return kept(n, x[tuple(at)])


@evaluated("Expand")
def expand(n: Node) -> Held:
    """x repeated to a shape."""
    x, wanted = n.elements(0), n.constants(1, "the shape")
    return kept(n, np.broadcast_to(x, bounded(n, np.broadcast_shapes(x.shape, tuple(wanted)))))


@evaluated("Tile", since=6)
def tile(n: Node) -> Held:
    """x side by side with itself."""
    x, times = n.elements(0), n.constants(1, "the repetitions")
    bounded(n, [d * t for d, t in zip(x.shape, times, strict=True)])
    return kept(n, np.tile(x, times))
