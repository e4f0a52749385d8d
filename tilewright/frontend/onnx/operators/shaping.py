"""Shapes of tensors: reshape, transpose, join, split, slice, pad, repeat."""
from __future__ import annotations

from typing import Any

from tilewright import topi
from tilewright.frontend.onnx.node import Node, Unsupported, checked_axis, product
from tilewright.frontend.onnx.registry import operator
from tilewright.frontend.onnx.values import Held, holds, simple
from tilewright.graph.ir.values import Value
from tilewright.tir import Expr
from tilewright.tir.arithmetic import binary


def kept(n: Node, value: Value) -> Held:
    """A result with the type that input 0 has in the file."""
    return Held.of(value, n.held(0).kind)


def extent(d: Any) -> Any:
    """An extent for a rule of topi. Raises Unsupported for one that may be negative."""
    if isinstance(d, Expr):
        return d
    if d < 0:
        raise Unsupported(f"the extent {d} is negative")
    return int(d)


@operator("Reshape")
def reshape(n: Node) -> Held:
    """`topi.reshape`; 0 keeps an extent."""
    x = n.value(0)
    wanted = n.numbers(1, "the shape") if n.has(1) else n.required("shape")
    out: list[Any] = []
    for k, d in enumerate(wanted):
        if not isinstance(d, Expr) and d == 0 and not n.attr("allowzero", 0):
            if k >= x.ndim:
                raise Unsupported(f"the shape {wanted} keeps extent {k} of {x.type}")
            d = x.shape[k]
        out.append(d if isinstance(d, Expr) else int(d))
    negative = [k for k, d in enumerate(out) if not isinstance(d, Expr) and d < 0]
    if len(negative) > 1 or any(out[k] != -1 for k in negative):
        raise Unsupported(f"the shape {wanted} has several extents that are open, or negative ones")
    if negative:
        out[negative[0]] = _open(x, [d for d in out if isinstance(d, Expr) or d >= 0])
    return kept(n, n.emit(topi.reshape, x, tuple(out)))


def _open(x: Value, others: list[Any]) -> Any:
    """The extent that is left for the elements of x: extents that both shapes have are taken off first."""
    left, divisor = list(x.shape), []
    for d in others:
        found = next((k for k, e in enumerate(left) if holds("eq", e, d)), None)
        if found is None:
            divisor.append(d)
        else:
            del left[found]
    total, by = (product(left), product(divisor))
    if not isinstance(by, Expr) and by == 0:
        return 0 if not isinstance(total, Expr) else total
    if not isinstance(total, Expr) and not isinstance(by, Expr):
        if total % by:
            raise Unsupported(f"{x.type} has no shape with extents {others}")
        return total // by
    return simple(binary("floordiv", total, by))


@operator("Flatten")
def flatten(n: Node) -> Held:
    """`topi.reshape` to a matrix."""
    x, axis = n.value(0), n.cut()
    return kept(n, n.emit(topi.reshape, x, (product(x.shape[:axis]), product(x.shape[axis:]))))


@operator("Squeeze")
def squeeze(n: Node) -> Held:
    """`topi.squeeze`."""
    axes = n.axes()
    return kept(n, n.emit(topi.squeeze, n.value(0), axis=None if axes is None else tuple(axes)))


@operator("Unsqueeze")
def unsqueeze(n: Node) -> Held:
    """`topi.expand_dims`."""
    return kept(n, n.emit(topi.expand_dims, n.value(0), axis=tuple(n.axes() or ())))


@operator("Transpose")
def transpose(n: Node) -> Held:
    """`topi.transpose`."""
    axes = n.attr("perm")
    return kept(n, n.emit(topi.transpose, n.value(0), None if axes is None else tuple(axes)))


@operator("Concat")
def concat(n: Node) -> Held:
    """`topi.concatenate`."""
    given = n.values()
    if len(given) > 4096:
        raise Unsupported(f"{len(given)} tensors are joined, at most 4096 are supported")
    return kept(n, n.emit(joined, given, n.axis(1)) if len(given) > 1 else given[0])


def joined(tensors: Any, axis: int) -> Any:
    """`topi.concatenate`, halves first where there are many."""
    if len(tensors) > 64:
        half = len(tensors) // 2
        return topi.concatenate([joined(tensors[:half], axis), joined(tensors[half:], axis)], axis=axis)
    return topi.concatenate(tensors, axis=axis)


@operator("Split")
def split(n: Node) -> tuple[Any, ...]:
    """`topi.split`."""
    x, axis = n.value(0), n.axis(0)
    sizes = n.axes(1, "split") if n.has(1) or "split" in n.attributes else None
    if sizes is None:
        count, whole = n.attr("num_outputs", n.outputs()), x.shape[axis]
        if not 1 <= count <= 4096:
            raise Unsupported(f"{count} parts")
        if n.version < 18:
            return _several(n, n.emit(topi.split, x, count, axis=axis))
        step = (whole + (count - 1)) // count
        sizes = [max(min(step, whole - k * step), 0) for k in range(count)] if isinstance(whole, int) else \
            [*[step] * (count - 1), whole - step * (count - 1)]          # a last part of less than nothing is refused
    return _several(n, n.emit(topi.split, x, list(sizes), axis=axis))


def _several(n: Node, made: Any) -> tuple[Held, ...]:
    return tuple(kept(n, v) for v in (made if isinstance(made, tuple) else (made,)))


@operator("Slice")
def slice_(n: Node) -> Held:
    """`topi.strided_slice`."""
    x = n.value(0)
    begins, ends = (n.attr(name) if name in n.attributes else n.numbers(k, f"the {name}")
                    for k, name in ((1, "starts"), (2, "ends")))
    axes = n.axes(3, "axes")
    steps = n.constants(4, "the steps") if n.has(4) else [1] * len(begins)
    axes = list(range(len(begins))) if axes is None else [checked_axis(a, x.ndim) for a in axes]
    if not len(begins) == len(ends) == len(axes) == len(steps) or 0 in steps:
        raise Unsupported(f"starts {begins}, ends {ends}, axes {axes} and steps {steps} do not fit")
    bounds = [(_bound(n, b, x.shape[a], s, True), _bound(n, e, x.shape[a], s, False))
              for a, b, e, s in zip(axes, begins, ends, steps)]
    made = n.emit(topi.strided_slice, x, begin=[b for b, _ in bounds], end=[e for _, e in bounds],
                  strides=steps, axes=axes)
    for a, (b, e), s in zip(axes, bounds, steps):
        if s == 1 and _is_open(b, e, x.shape[a]):
            n.importer.clipped[str(made.shape[a])] = simple(e - b)
    return kept(n, made)


def _is_open(begin: Any, end: Any, extent: Any) -> bool:
    """The end depends on sizes, and may or may not be beyond the extent."""
    return isinstance(end, Expr) and not holds("le", end, extent) and bool(
        begin is not None and holds("ge", begin, 0) and holds("le", begin, end))


def _bound(n: Node, b: Any, extent: Any, step: int, is_start: bool) -> Any:
    """A bound of a slice as topi takes it: None for an end that is not reached."""
    if isinstance(b, Expr):
        if n.granted("ge", b, 0):
            return b
        if n.granted("lt", b, 0):
            return simple(extent + b)
        raise Unsupported(f"the bound {b} of a slice may be negative or not")
    if b >= 2**31 - 1:
        return None if (step > 0) != is_start else 2**31 - 2**21
    if b <= -2**31:
        return None if (step < 0) != is_start else 0
    if isinstance(extent, int) and b < -extent:
        return None if step < 0 and not is_start else 0
    return int(b)


@operator("Expand")
def expand(n: Node) -> Held:
    """`topi.broadcast_to`, of both shapes' broadcast."""
    x, wanted = n.value(0), n.numbers(1, "the shape")
    rank = max(x.ndim, len(wanted))
    own, other = [1] * (rank - x.ndim) + list(x.shape), [1] * (rank - len(wanted)) + wanted
    shape = tuple(a if not isinstance(b, Expr) and b == 1 else extent(b) for a, b in zip(own, other))
    return kept(n, n.emit(topi.broadcast_to, x, shape))


@operator("Tile", since=6)
def tile(n: Node) -> Held:
    """`topi.tile`."""
    times = n.numbers(1, "the repetitions")
    return kept(n, n.emit(topi.tile, n.value(0), tuple(t if isinstance(t, Expr) else int(t) for t in times)))


@operator("Pad")
def pad(n: Node) -> Held:
    """`topi.pad`."""
    x = n.value(0)
    amounts = n.attr("pads", n.attr("paddings")) if not n.has(1) else n.numbers(1, "the borders")
    axes = n.axes(3, "axes") if n.has(3) else None
    axes = list(range(x.ndim)) if axes is None else [checked_axis(a, x.ndim) for a in axes]
    if amounts is None or len(amounts) != 2 * len(axes):
        raise Unsupported(f"the borders {amounts} of {len(axes)} axes")
    width: list[tuple[Any, ...]] = [(0, 0)] * x.ndim
    for a, *ends in zip(axes, amounts, amounts[len(axes):]):
        width[a] = tuple(e if isinstance(e, Expr) else int(e) for e in ends)
    mode = n.attr("mode", "constant")
    value = n.number(2, "the value of the border") if n.has(2) else n.attr("value", 0.0)
    if mode != "constant":
        return kept(n, n.emit(bordered, x, width, mode))
    try:
        number: Any = bool(value) if x.dtype == "bool" else float(value) if "float" in x.dtype else int(value)
    except (ValueError, OverflowError):
        raise Unsupported(f"the border has the value {value}, and x is {x.dtype}") from None
    return kept(n, n.emit(topi.pad, x, width, value=number))


def bordered(x: Any, width: list[tuple[Any, ...]], mode: str) -> Any:
    """`topi.pad` of what is left of x where negative widths have cut it."""
    def cut_by(amount: Any) -> int:
        return 0 if isinstance(amount, Expr) else min(amount, 0)
    cut = [a for a, ends in enumerate(width) if any(map(cut_by, ends))]
    if cut:
        x = topi.strided_slice(x, begin=[-cut_by(width[a][0]) for a in cut],
                               end=[cut_by(width[a][1]) or None for a in cut], axes=cut)
    return topi.pad(x, [tuple(e if isinstance(e, Expr) else max(e, 0) for e in ends) for ends in width], mode=mode)


@operator("CenterCropPad")
def center_crop_pad(n: Node) -> Held:
    """`topi.center_crop_pad`."""
    return kept(n, n.emit(topi.center_crop_pad, n.value(0), tuple(n.constants(1, "the shape")), axes=n.attr("axes")))


@operator("DepthToSpace")
def depth_to_space(n: Node) -> Value:
    """`topi.depth_to_space`."""
    return n.emit(topi.depth_to_space, n.value(0), block=n.required("blocksize"), mode=n.attr("mode", "DCR"))


@operator("SpaceToDepth")
def space_to_depth(n: Node) -> Value:
    """`topi.space_to_depth`."""
    return n.emit(topi.space_to_depth, n.value(0), block=n.required("blocksize"), mode=n.attr("mode", "DCR"))


@operator("Trilu")
def trilu(n: Node) -> Held:
    """`topi.triu` or `topi.tril`."""
    k = int(n.number(1, "k")) if n.has(1) else 0
    return kept(n, n.emit(topi.triu if n.attr("upper", 1) else topi.tril, n.value(0), k=k))


@operator("ReverseSequence")
def reverse_sequence(n: Node) -> Held:
    """`topi.reverse_sequence`."""
    return kept(n, n.emit(topi.reverse_sequence, n.value(0), n.value(1), axis=n.attr("time_axis", 0),
                          batch_axis=n.attr("batch_axis", 1)))


operator("Identity", text="x")(lambda n: n.inputs[0])
