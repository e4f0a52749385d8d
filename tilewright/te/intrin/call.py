"""A tensor intrinsic called in a compute: `te.compute((n, 4), lambda i: add(A[i, 0:4], B[i, 0:4]))`."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tilewright.arith.analyzer import Analyzer
from tilewright.support.errors import TensorExpressionError, described
from tilewright.te.operation import ComputeOp
from tilewright.te.reduction import Reduce, reduce_axis
from tilewright.te.tensor import Tensor, TensorRead, TensorSlice, shape_text
from tilewright.tir.arithmetic import binary
from tilewright.tir.conversion import convert, is_const
from tilewright.tir.expr import Expr, IntImm
from tilewright.tir.iter_var import COMM_REDUCE, IterVar
from tilewright.tir.node import Node, rewrite, substitute

Region = list[tuple[Expr, Expr]]                # (first index, extent) of each dimension


class TensorComputeOp(ComputeOp):
    """A computation whose innermost loops an intrinsic runs: those of the last axes, from axis number `outer` on.

    Without a schedule of stages it is computed as it is said, without the intrinsic.
    """

    def __init__(self, name: str, axis: tuple[IterVar, ...], body: tuple[Expr, ...], tag: str = "",
                 attrs: Mapping[str, Any] | None = None, *, intrin: Any, outer: int) -> None:
        super().__init__(name, axis, body, tag, attrs)
        self.intrin, self.schedulable_ndim = intrin, outer

    def with_body(self, body: tuple[Expr, ...]) -> TensorComputeOp:
        return TensorComputeOp(self.name, self.axis, body, self.tag, self.attrs, intrin=self.intrin,
                               outer=self.schedulable_ndim)

    @property
    def inner(self) -> tuple[IterVar, ...]:
        """The axes of the loops that the intrinsic runs."""
        own = len(self.intrin.op.reduce_axis)
        return (*self.axis[self.schedulable_ndim:], *self.reduce_axis[len(self.reduce_axis) - own:])


@dataclass(frozen=True, eq=False)
class IntrinCall:
    """What a call of an intrinsic gives: its operation, on parts of tensors, with scalars, reduced over more axes."""
    intrin: Any
    op: ComputeOp
    operands: tuple[tuple[Tensor, Region], ...]
    scalars: tuple[Expr, ...]
    reduce_axis: tuple[IterVar, ...]

    def definition(self, shape: Sequence[Expr], outer: int, what: str) -> tuple[tuple[IterVar, ...], tuple[Expr, ...]]:
        """(the axes of the last dimensions of shape, the bodies at a point of all axes).

        Raises TensorExpressionError where these dimensions are not the result's of the intrinsic, and for more
        reduction axes than its own where it reduces nothing.
        """
        result, inner = self.op.output(0).shape, tuple(shape[outer:])
        analyzer = Analyzer()
        if len(result) != len(inner) or not all(map(analyzer.equal, result, inner)):
            raise TensorExpressionError(f"{what}: {self.intrin.name} gives {shape_text(result)}, and "
                                        f"{shape_text(inner)} is left of the shape {shape_text(tuple(shape))}",
                                        f"the function takes an argument for each of the first {outer} axes")
        if not inner and not self.op.reduce_axis:
            raise TensorExpressionError(f"{what}: {self.intrin.name} gives one element and has no loop to run")
        axes = tuple(IterVar.over(e, f"ax{n}") for n, e in enumerate(inner))
        table: dict[Any, Node] = {old.var: new.var for old, new in zip(self.op.axis, axes, strict=True)}
        table.update(zip(self.intrin.scalar_params, self.scalars, strict=True))
        first = self.op.body[0]
        if not isinstance(first, Reduce):
            if self.reduce_axis:
                raise TensorExpressionError(f"{what}: {self.intrin.name} reduces nothing, so it has no reduce_axis")
            return axes, tuple(self._moved(e, table) for e in self.op.body)
        own = [reduce_axis(k.dom, k.var.name) for k in first.axis]
        table.update((old.var, new.var) for old, new in zip(first.axis, own))
        source = tuple(self._moved(e, table) for e in first.source)
        condition = None if first.condition is None else self._moved(first.condition, table)
        init = tuple(self._moved(e, table) for e in first.init)
        parts = [Reduce(first.combiner, source, (*self.reduce_axis, *own), condition, init, n)
                 for n in range(len(source))]
        return axes, tuple(parts[e.value_index] for e in self.op.body if isinstance(e, Reduce))

    def _moved(self, e: Expr, table: Mapping[Any, Node]) -> Expr:
        """e on the operands in the place of the intrinsic's placeholders."""
        parts = dict(zip(self.op.input_tensors, self.operands, strict=True))

        def lower(node: Node) -> Node | None:
            if not isinstance(node, TensorRead):
                return None
            tensor, region = parts[node.tensor]
            fixed = len(region) - len(node.indices)
            inner = [binary("add", low, i) for (low, _), i in zip(region[fixed:], node.indices, strict=True)]
            return TensorRead(tensor, (*(low for low, _ in region[:fixed]), *inner))
        return rewrite(substitute(e, table), lower)


def call(intrin: Any, args: Sequence[Any], axes: Any) -> IntrinCall:
    """The call of an intrinsic with tensors and parts of them, in the order in which it reads them, and scalars.

    A part may have more dimensions than the operand, of one element each, in front. Raises TensorExpressionError where
    the numbers of operands or their extents differ.
    """
    op, what = intrin.op, f"the call of {intrin.name}"
    given = [a for a in args if isinstance(a, (Tensor, TensorSlice, TensorRead))]
    scalars = tuple(convert(a) for a in args if not isinstance(a, (Tensor, TensorSlice, TensorRead)))
    if len(given) != len(op.input_tensors) or len(scalars) != len(intrin.scalar_params):
        raise TensorExpressionError(f"{what}: {len(given)} tensor(s) and {len(scalars)} scalar(s) are given, "
                                    f"{len(op.input_tensors)} and {len(intrin.scalar_params)} are needed",
                                    "an operand is a part of a tensor: A[i, 0:16]")
    operands = [(t, _checked(t, region, wanted, what))
                for (t, region), wanted in zip(map(_region, given), op.input_tensors, strict=True)]
    reduced = tuple(axes) if isinstance(axes, (tuple, list)) else () if axes is None else (axes,)
    for k in reduced:
        if not isinstance(k, IterVar) or k.iter_type != COMM_REDUCE:
            raise TensorExpressionError(f"{what}: reduce_axis is {described(k)}, not a reduction axis")
    return IntrinCall(intrin, op, tuple(operands), scalars, reduced)


def _region(part: Any) -> tuple[Tensor, Region]:
    if isinstance(part, TensorRead):
        return part.tensor, [(i, IntImm(1, i.dtype)) for i in part.indices]
    tensor, indices = (part, ()) if isinstance(part, Tensor) else (part.tensor, part.indices)
    region: Region = []
    for n, extent in enumerate(tensor.shape):
        index = indices[n] if n < len(indices) else slice(None)
        if isinstance(index, slice):
            if index.step not in (None, 1):
                raise TensorExpressionError(f"{tensor.name}: a part of every {described(index.step)} elements is no "
                                            "operand of an intrinsic")
            low = convert(0 if index.start is None else index.start)
            region.append((low, Analyzer().simplify(binary("sub", extent if index.stop is None else index.stop, low))))
        else:
            e = convert(index)
            region.append((e, IntImm(1, e.dtype)))
    return tensor, region


def _checked(tensor: Tensor, region: Region, wanted: Tensor, what: str) -> Region:
    analyzer, extents = Analyzer(), tuple(extent for _, extent in region)
    fixed = len(extents) - len(wanted.shape)
    if fixed < 0 or not all(is_const(e, 1) for e in extents[:max(fixed, 0)]) or not all(
            map(analyzer.equal, extents[fixed:], wanted.shape)) or tensor.dtype != wanted.dtype:
        raise TensorExpressionError(
            f"{what}: the part of {tensor.name} is {tensor.dtype}{shape_text(extents)}, and its operand {wanted.name} "
            f"is {wanted.dtype}{shape_text(wanted.shape)}")
    return region


