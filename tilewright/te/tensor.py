"""Tensors, the operations that produce them, and the read of one element."""
from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tilewright.support.errors import TensorExpressionError, described
from tilewright.support.registry import hook
from tilewright.support.views import View
from tilewright.tir import dtype as dt
from tilewright.tir.buffer import as_index, no_text
from tilewright.tir.conversion import convert
from tilewright.tir.expr import Expr, ExprOps, IntImm
from tilewright.tir.iter_var import IterVar
from tilewright.tir.printer.expressions import ExprPrinter, register_expr_printer


class Operation:
    """A node of the tensor graph. Two operations are the same only when they are one object.

    `axis` and `reduce_axis` are empty for operations that have no loops of their own.
    """
    axis: tuple[IterVar, ...] = ()
    reduce_axis: tuple[IterVar, ...] = ()

    def __init__(self, name: str, tag: str = "", attrs: Mapping[str, Any] | None = None) -> None:
        if not isinstance(name, str) or not name:
            raise TensorExpressionError(f"the name {described(name)} of an operation is not a string with characters")
        if not isinstance(tag, str) or not isinstance(attrs, (Mapping, type(None))):
            raise TensorExpressionError(f"{name}: tag is a string and attrs a mapping, not {described(tag)} and "
                                        f"{described(attrs)}")
        self.name = name
        self.tag = tag
        self.attrs: dict[str, Any] = dict(attrs or {})
        self._outputs: tuple[Tensor, ...] = ()

    @property
    def num_outputs(self) -> int:
        return len(self._outputs)

    @property
    def outputs(self) -> tuple[Tensor, ...]:
        return self._outputs

    @property
    def input_tensors(self) -> tuple[Tensor, ...]:
        """The tensors that this operation reads, each once, in order of first use."""
        return ()

    def output(self, index: int) -> Tensor:
        """The tensor number `index` that this operation produces."""
        if not 0 <= index < len(self._outputs):
            raise TensorExpressionError(f"{self.name} has {len(self._outputs)} output(s), no number {index}")
        return self._outputs[index]

    def same_as(self, other: object) -> bool:
        return self is other

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name}, {id(self):#x})"


class Tensor(ExprOps):
    """Output `value_index` of `op`. `A[i, k]` and `A(i, k)` read an element; a zero-d tensor is its element.

    `+ - * / // %` of tensors give tensors (te.tensor_arithmetic).

    Tensors compare by identity and work as dictionary keys.
    """
    __slots__ = ("op", "shape", "dtype", "value_index")

    def __init__(self, op: Operation, shape: tuple[Expr, ...], dtype: str, value_index: int = 0) -> None:
        self.op, self.shape, self.dtype, self.value_index = op, shape, dtype, value_index

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def name(self) -> str:
        """The operation's name, with `.v<index>` where it has several outputs."""
        return self.op.name if self.op.num_outputs < 2 else f"{self.op.name}.v{self.value_index}"

    def __call__(self, *indices: Any) -> TensorRead:
        if len(indices) != len(self.shape):
            raise TensorExpressionError(f"{self.name} has {len(self.shape)} dimension(s), {len(indices)} index(es) "
                                        "given", f"the shape of {self.name} is {shape_text(self.shape)}")
        return TensorRead(self, tuple(self._index(position, i) for position, i in enumerate(indices)))

    def __getitem__(self, indices: Any) -> TensorRead | TensorSlice:
        given = indices if isinstance(indices, tuple) else (indices,)
        part = len(given) < len(self.shape) or len(given) == len(self.shape) and any(
            isinstance(i, slice) for i in given)
        return TensorSlice(self, given) if part else self(*given)

    def _index(self, position: int, index: Any) -> Expr:
        if isinstance(index, slice):
            raise TensorExpressionError(f"{self.name}: index {position} is a slice",
                                        "a tensor expression reads one element at a time")
        e, extent = no_text(self.name, convert(index)), self.shape[position]
        if not dt.is_integer(e.dtype):
            raise TensorExpressionError(f"{self.name}: index {position} is {e.dtype}, not an integer",
                                        'cast it: i.astype("int32")')
        if isinstance(e, IntImm) and (e.value < 0 or isinstance(extent, IntImm) and e.value >= extent.value):
            raise TensorExpressionError(f"{self.name}: index {e.value} of dimension {position} is outside "
                                        f"the shape {shape_text(self.shape)}")
        return as_index(e)

    def __iter__(self) -> Iterator[Any]:
        raise TensorExpressionError(f"{self.name} is not a sequence", "index it: A[i, j] or A(i, j)")

    def __tilewright_expr__(self) -> Expr:
        if self.shape:
            raise TensorExpressionError(f"tensor {self.name} of shape {shape_text(self.shape)} is used as a number",
                                        f"read an element: {self.name}[{', '.join('ijklmnopqrstuv'[:self.ndim])}]")
        return self()

    def __neg__(self) -> Any:
        return self * -1 if self.shape else super().__neg__()

    def astype(self, dtype: str) -> Any:
        """The tensor of the elements converted to dtype."""
        return hook("te.cast")(self, dtype) if self.shape else super().astype(dtype)

    def same_as(self, other: object) -> bool:
        return self is other

    def __eq__(self, other: object) -> bool:
        return self is other

    def __ne__(self, other: object) -> bool:
        return self is not other

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"Tensor(shape=[{', '.join(map(str, self.shape))}], op.name={self.op.name})"

    def _repr_html_(self) -> str:
        shape = ", ".join(map(str, self.shape))
        body = getattr(self.op, "body", ())                     # a statement, where the loops are written out
        element = f"{self.name}[{', '.join(iv.var.name for iv in self.op.axis)}]"
        rows = [(element, str(body[self.value_index]))] if isinstance(body, tuple) and body else []
        return View(f"te.Tensor {self.name}: {self.dtype}[{shape}]", rows).html()


class TensorSlice(ExprOps):
    """A part of a tensor: `A[i]` of a matrix, to be completed by `A[i][j]`; `A[i, 0:4]` for a tensor intrinsic."""
    __slots__ = ("tensor", "indices")

    def __init__(self, tensor: Tensor, indices: tuple[Any, ...]) -> None:
        self.tensor, self.indices = tensor, indices

    def __getitem__(self, more: Any) -> TensorRead | TensorSlice:
        return self.tensor[self.indices + (more if isinstance(more, tuple) else (more,))]

    @property
    def dtype(self) -> str:
        return self.tensor.dtype

    def __tilewright_expr__(self) -> Expr:
        return self.tensor(*self.indices)          # reports the number of dimensions

    __hash__ = object.__hash__


@dataclass(slots=True, eq=False, repr=False)
class TensorRead(Expr):
    """tensor[indices]: one element of another operation's output."""
    tensor: Tensor
    indices: tuple[Expr, ...]

    @property
    def dtype(self) -> str:
        return self.tensor.dtype


def _print_read(p: ExprPrinter, e: TensorRead) -> str:
    return f"{p.names.of(e.tensor)}[{p.index(e.indices)}]"


register_expr_printer(TensorRead, _print_read)


def shape_text(shape: tuple[Expr, ...]) -> str:
    """The shape as Python would print the tuple."""
    return f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"
