"""How a te program reads its inputs, found in its definitions alone: what fusion and writing in place need to know."""
from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tilewright import te
from tilewright.te.reduction import Reduce
from tilewright.tir import Call as TirCall
from tilewright.tir import Cast, Expr, IntImm, Var
from tilewright.tir.node import walk

INJECTIVE, REDUCTION, CONTRACTION, ROWS, OPAQUE = "injective", "reduction", "contraction", "rows", "opaque"


@dataclass(frozen=True)
class Access:
    """How a program with one result reads its inputs.

    kind: injective: no stage reduces; reduction, contraction (of a product of two tensors): one does; rows: several
    reductions, none of products; opaque: all else, and what statements or scans compute.
    aligned: inputs read at the index that is written, and nowhere else.
    trailing: inputs read at the last axes of that index, in order, as NumPy broadcasts, and nowhere else.
    once: inputs of which the reduction reads each element at most once.
    moved: inputs whose indices are axes or numbers in every read, so that what makes them can be computed there;
    spread: those of them of which an element is read for many of the result.
    elementwise_end: what comes behind the last reduction is computed element by element.
    cheap: nothing in it takes longer than a read from memory, such as an exponential.
    """
    kind: str
    aligned: tuple[int, ...] = ()
    once: tuple[int, ...] = ()
    moved: tuple[int, ...] = ()
    spread: tuple[int, ...] = ()
    elementwise_end: bool = False
    cheap: bool = False
    trailing: tuple[int, ...] = ()


def unread(inputs: Sequence[te.Tensor], outputs: Sequence[te.Tensor]) -> tuple[int, ...]:
    """The inputs of which no element decides an element of the outputs, so that their type alone is used."""
    read = {op.output(0) for op in te.post_order([t.op for t in outputs]) if isinstance(op, te.PlaceholderOp)}
    return tuple(k for k, x in enumerate(inputs) if x not in read)


def access(inputs: Sequence[te.Tensor], outputs: Sequence[te.Tensor]) -> Access:
    """The access pattern of the program that computes outputs from inputs."""
    stages = [op for op in te.post_order([t.op for t in outputs]) if not isinstance(op, te.PlaceholderOp)]
    if len(outputs) != 1 or any(not isinstance(op, (te.ComputeOp, te.ConstantOp)) for op in stages):
        return Access(OPAQUE)
    computed = [op for op in stages if isinstance(op, te.ComputeOp)]
    reducing = [op for op in computed if op.reduce_axis]
    if any(len(op.body) > 1 for op in computed):
        return Access(OPAQUE)
    reads = [_readers(x, computed) for x in inputs]
    found = Access(
        INJECTIVE, _read_at(_is_identity, inputs, outputs[0], computed), tuple(range(len(inputs))),
        moved=tuple(k for k, found in enumerate(reads) if all(_moves(r) for _, r in found)),
        spread=tuple(k for k, found in enumerate(reads) if any(_spreads(r, op) for op, r in found)),
        elementwise_end=True,
        cheap=not any(isinstance(n, TirCall) for op in computed for e in op.body for n in walk(e)),
        trailing=_read_at(_is_trailing, inputs, outputs[0], computed))
    if not reducing:
        return found
    after = computed[computed.index(reducing[-1]) + 1:]
    ends = all(_elementwise(op) for op in after if _depends(op, reducing[-1], computed))
    products = [op for op in reducing if _is_contraction(op)]
    if len(reducing) > 1:
        return replace(found, kind=OPAQUE if products else ROWS, once=(), elementwise_end=ends and not products)
    if products:
        return replace(found, kind=CONTRACTION, once=(), elementwise_end=ends)
    once = tuple(k for k, x in enumerate(inputs) if _read_once(x, reducing[0], computed))
    return replace(found, kind=REDUCTION, once=once, elementwise_end=ends)


@functools.lru_cache(4096)
def _reads(op: te.ComputeOp) -> tuple[te.TensorRead, ...]:
    return tuple(n for e in op.body for n in walk(e) if isinstance(n, te.TensorRead))


def _variables(op: te.ComputeOp) -> list[Var]:
    return [iv.var for iv in op.axis]


def _is_identity(read: te.TensorRead, op: te.ComputeOp) -> bool:
    """The read is at the index that is written; that is 0 along axes of one element."""
    return len(read.indices) == len(op.axis) and all(
        i is iv.var or (_is_one(extent) and _is_trivial(iv))
        for i, iv, extent in zip(read.indices, op.axis, read.tensor.shape))


def _is_trailing(read: te.TensorRead, op: te.ComputeOp) -> bool:
    """The indices are the last axes, in order, or 0 along those of which the tensor has one element."""
    own = op.axis[len(op.axis) - len(read.indices):] if len(read.indices) <= len(op.axis) else ()
    return len(own) == len(read.indices) and all(
        i is iv.var or _is_one(extent) and isinstance(i, IntImm) for i, iv, extent in zip(
            read.indices, own, read.tensor.shape))


def _elementwise(op: te.ComputeOp) -> bool:
    """Each read is at the index written, or leaves axes out."""
    return not op.reduce_axis and all(_broadcasts(r, op) for r in _reads(op))


def _broadcasts(read: te.TensorRead, op: te.ComputeOp) -> bool:
    """The indices are axes in order, some left out, or 0 where the tensor has one element."""
    axes, at = _variables(op), -1
    for index, extent in zip(read.indices, read.tensor.shape):
        if isinstance(index, IntImm) and _is_one(extent):
            continue
        place = next((k for k, v in enumerate(axes) if v is index), -1)
        if place <= at:
            return False
        at = place
    return True


def _read_at(fits: Callable[[te.TensorRead, te.ComputeOp], bool], inputs: Sequence[te.Tensor], output: te.Tensor,
             stages: Sequence[te.ComputeOp]) -> tuple[int, ...]:
    """The inputs that are read where the output is written: on every way from it back, all reads are where they fit."""
    at_index, elsewhere = {output}, set[te.Tensor]()
    for op in reversed(stages):                              # readers first: how an output is needed is known by then
        made = op.output(0)
        here = made in at_index and not op.reduce_axis
        for r in _reads(op):
            if here and fits(r, op):
                at_index.add(r.tensor)
            if not here or made in elsewhere or not fits(r, op):
                elsewhere.add(r.tensor)
    return tuple(k for k, x in enumerate(inputs) if x in at_index and x not in elsewhere)


def _readers(x: te.Tensor, stages: Sequence[te.ComputeOp]) -> list[tuple[te.ComputeOp, te.TensorRead]]:
    return [(op, r) for op in stages for r in _reads(op) if r.tensor is x]


def _moves(read: te.TensorRead) -> bool:
    """Each index is a variable of its own, or a number."""
    variables = [i for i in read.indices if not isinstance(i, IntImm)]
    return all(isinstance(i, Var) for i in variables) and len({id(i) for i in variables}) == len(variables)


def _spreads(read: te.TensorRead, op: te.ComputeOp) -> bool:
    """An axis of more than one element is in no index."""
    return any(not _uses(read.indices, iv.var) for iv in (*op.axis, *op.reduce_axis) if not _is_trivial(iv))


def _is_trivial(iv: te.IterVar) -> bool:
    return _is_one(iv.domain.extent)


def _is_one(extent: Expr) -> bool:
    return isinstance(extent, IntImm) and extent.value == 1


def _depends(op: te.ComputeOp, source: te.ComputeOp, stages: Sequence[te.ComputeOp]) -> bool:
    found = {source.output(0)}
    for stage in stages:
        if any(t in found for t in stage.input_tensors):
            found.add(stage.output(0))
    return op.output(0) in found


def _is_contraction(op: te.ComputeOp) -> bool:
    """A sum of products of elements of tensors, where each lacks an axis of the result."""
    body = op.body[0]
    if not isinstance(body, Reduce) or len(body.source) != 1 or not _is_product(body.source[0]):
        return False
    reads, axes = _reads(op), [iv.var for iv in op.axis if not _is_trivial(iv)]
    return len(reads) >= 2 and all(any(not _uses(r.indices, v) for v in axes) for r in reads)


def _is_product(e: Expr) -> bool:
    while isinstance(e, Cast):
        e = e.value
    return getattr(e, "op", "") == "mul"


def _uses(indices: Iterable[Any], v: Var) -> bool:
    return any(n is v for i in indices for n in walk(i))


def _read_once(x: te.Tensor, reduction: te.ComputeOp, stages: Sequence[te.ComputeOp]) -> bool:
    """Each element of x enters the reduction at most once: every axis that is not trivial is in the indices.

    Stages that work element by element may stand between them, such as a conversion to a wider type.
    """
    readers = _readers(x, stages)
    axes = [iv for iv in (*reduction.axis, *reduction.reduce_axis) if not _is_trivial(iv)]

    def once(op: te.ComputeOp, r: te.TensorRead) -> bool:
        if op is reduction:
            return all(any(i is iv.var for i in r.indices) for iv in axes)
        return not op.reduce_axis and _is_identity(r, op) and _read_once(op.output(0), reduction, stages)
    return bool(readers) and all(once(op, r) for op, r in readers)
