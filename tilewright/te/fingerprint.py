"""A tensor graph as text, equal for equal definitions in every process: by position, not by identity."""
from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tilewright.te.constant import ConstantOp
from tilewright.te.operation import ComputeOp, ExternOp, PlaceholderOp, post_order
from tilewright.te.prim_func import argument_list
from tilewright.te.reduction import CommReducer, Reduce
from tilewright.te.scan import ScanOp
from tilewright.te.tensor import Operation, Tensor, TensorRead
from tilewright.tir.buffer import Buffer
from tilewright.tir.expr import Expr, FloatImm, IntImm, Var
from tilewright.tir.iter_var import IterVar
from tilewright.tir.node import Node, field_names


def graph_text(args: Sequence[Tensor | Var], outputs: Iterable[Operation] = ()) -> str:
    """The definition of args and of everything that they and outputs need.

    Names are part of it: they reach error messages and generated code.
    """
    args = argument_list(args)
    ops = post_order([*(a.op for a in args if isinstance(a, Tensor)), *outputs])
    writer = _Writer(ops)
    lines = [writer.operation(op) for op in ops]
    return "\n".join([*lines, "args " + " ".join(writer.text(a) for a in args)])


class _Writer:
    """Writes nodes; variables, buffers and repeated subexpressions are numbered in order of appearance."""

    def __init__(self, ops: Sequence[Operation]) -> None:
        self._position = {op: n for n, op in enumerate(ops)}
        self._numbers: dict[int, int] = {}
        self._kept: list[Any] = []                       # numbered objects, so that ids stay unique

    def operation(self, op: Operation) -> str:
        head = f"{type(op).__name__} {op.name!r} {op.tag!r} {self.text(op.attrs)}"
        if isinstance(op, ConstantOp):
            return f"{head} {self.text(op.shape)} {op.dtype} {hashlib.blake2b(op.values.tobytes()).hexdigest()}"
        if isinstance(op, PlaceholderOp):
            return f"{head} {self.text(op.shape)} {op.dtype}"
        if isinstance(op, ComputeOp):
            return f"{head} {self.text(op.axis)} {self.text(op.reduce_axis)} {self.text(op.body)}"
        if isinstance(op, ExternOp):
            return f"{head} {self.text((op.inputs, op.input_buffers, op.output_buffers, op.body))}"
        if isinstance(op, ScanOp):
            return f"{head} {self.text((op.scan_axis, op.init, op.update, op.state_placeholder))}"
        fields = {k: v for k, v in vars(op).items() if not k.startswith("_")}
        return f"{head} {self.text(fields)}"

    def text(self, x: Any) -> str:
        """x in full the first time; a node that was written before is its number."""
        kind = type(x)
        if kind is IntImm:
            return f"{x.value}:{x.type}"
        if kind is FloatImm:
            return f"{x.value!r}:{x.type}"
        if kind is tuple or kind is list:
            return f"({','.join([self.text(v) for v in x])})"
        if isinstance(x, Tensor):
            return f"t{self._position[x.op]}.{x.value_index}"
        if isinstance(x, Operation):
            return f"op{self._position[x]}"
        if isinstance(x, (Node, CommReducer)):
            return self._node(x)
        if isinstance(x, Mapping):
            return "{" + ",".join(f"{self.text(k)}={self.text(v)}" for k, v in x.items()) + "}"
        return repr(x)

    def _node(self, x: Any) -> str:
        number = self._numbers.get(id(x))
        if number is not None:
            return f"#{number}"
        number = self._numbers[id(x)] = len(self._numbers)
        self._kept.append(x)
        if isinstance(x, Var):
            return f"#{number}={x.name!r}:{x.type}"
        if isinstance(x, TensorRead):
            return f"#{number}={self.text(x.tensor)}{self.text(x.indices)}"
        if isinstance(x, IterVar):
            return f"#{number}=[{self.text(x.var)} {self.text(x.dom)} {x.iter_type} {x.thread_tag!r}]"
        if isinstance(x, CommReducer):
            fields: Iterable[Any] = (x.name, x.lhs, x.rhs, x.result, x.identity)
            return f"#{number}=reducer({','.join([self.text(v) for v in fields])})"
        assert isinstance(x, (Expr, Reduce, Buffer, Node))
        parts = [self.text(getattr(x, k)) for k in field_names(type(x))]
        return f"#{number}={type(x).__name__}({','.join(parts)})"
