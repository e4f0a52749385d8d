"""Elements at places that other tensors say."""
from __future__ import annotations

from typing import Any

from tilewright import te, topi
from tilewright.frontend.onnx.node import Node, Unsupported, checked_axis
from tilewright.frontend.onnx.operators.shaping import kept
from tilewright.frontend.onnx.registry import operator
from tilewright.frontend.onnx.values import Held
from tilewright.graph.ir.values import Value
from tilewright.tir import Expr
from tilewright.tir.arithmetic import binary

REDUCTIONS = {"none": "none", "add": "add", "mul": "mul", "max": "max", "min": "min"}


@operator("Gather")
def gather(n: Node) -> Held:
    """`topi.take`; of one known index `topi.strided_slice`."""
    x, axis, indices = n.value(0), n.axis(0), n.held(1)
    known = indices.few(1)
    if known is not None and known.size == 1 and not indices.is_symbolic and known.ndim <= 1:
        at = int(known.reshape(-1)[0])
        if isinstance(x.shape[axis], int) and -x.shape[axis] <= at < x.shape[axis]:
            at %= x.shape[axis]
        if at >= 0:
            one = n.emit(topi.strided_slice, x, begin=[at], end=[at + 1], axes=[axis])
            return kept(n, one if known.ndim else n.emit(topi.squeeze, one, axis=axis)) if one.shape[axis] == 1 else \
                kept(n, n.emit(topi.take, x, n.value(1), axis=axis))
    return kept(n, n.emit(topi.take, x, n.value(1), axis=axis))


@operator("GatherElements")
def gather_elements(n: Node) -> Held:
    """`topi.gather`."""
    return kept(n, n.emit(topi.gather, n.value(0), n.value(1), axis=n.axis(0)))


@operator("GatherND")
def gather_nd(n: Node) -> Held:
    """`topi.gather_nd`."""
    return kept(n, n.emit(topi.gather_nd, n.value(0), n.value(1), batch_dims=n.attr("batch_dims", 0)))


def _reduction(n: Node) -> str:
    found = n.attr("reduction", "none")
    if found not in REDUCTIONS:
        raise Unsupported(f"the reduction {found!r}")
    return REDUCTIONS[found]


@operator("ScatterElements", "Scatter")
def scatter_elements(n: Node) -> Held:
    """`topi.scatter`."""
    return kept(n, n.emit(topi.scatter, n.value(0), n.value(1), n.value(2), axis=n.axis(0), reduction=_reduction(n)))


@operator("ScatterND")
def scatter_nd(n: Node) -> Held:
    """`topi.scatter_nd`."""
    return kept(n, n.emit(topi.scatter_nd, n.value(0), n.value(1), n.value(2), reduction=_reduction(n)))


@operator("TensorScatter")
def tensor_scatter(n: Node) -> Held:
    """`topi.update_cache`."""
    x, updates, axis = n.value(0), n.value(1), n.axis(-2)
    start = n.value(2) if n.has(2) else n.emit(topi.zeros, (x.shape[0],), dtype="int64")
    return kept(n, n.emit(topi.update_cache, x, updates, start, axis=axis,
                          circular=n.attr("mode", "linear") == "circular"))


def one_hot_of(indices: Any, values: Any, depth: Any, axis: int) -> te.Tensor:
    """y[..., k, ...] = values[1] where k is indices[...], counted from the end where it is negative, else values[0]."""
    places = topi.astype(indices, "int64")
    count = depth.astype("int64") if isinstance(depth, Expr) else depth

    def element(*i: Any) -> Any:
        at = places(*(e for k, e in enumerate(i) if k != axis))
        here = binary("eq", te.select(binary("lt", at, 0), at + count, at), i[axis].astype("int64"))
        return te.select(here, values(1), values(0))
    return te.compute((*places.shape[:axis], depth, *places.shape[axis:]), element, name="one_hot")


@operator("OneHot")
def one_hot(n: Node) -> Value:
    """Like `topi.one_hot`, of values that are tensors."""
    axis = checked_axis(n.attr("axis", -1), n.rank() + 1)
    depth = n.number(1, "the depth")
    return n.emit(one_hot_of, n.value(0), n.value(2), depth if isinstance(depth, Expr) else int(depth), axis)
