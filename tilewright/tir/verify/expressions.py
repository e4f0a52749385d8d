"""The verifier's rules of names, buffers, accesses and expressions."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from tilewright.support.errors import StructuralError
from tilewright.tir import dtype as dt
from tilewright.tir.buffer import Buffer, Load, reach
from tilewright.tir.expr import Call, Expr, IntImm, Let, Var
from tilewright.tir.iter_var import IterVar, Range
from tilewright.tir.node import Node, children
from tilewright.tir.printer import show
from tilewright.tir.returns import RET
from tilewright.tir.stmt import PrimFunc
from tilewright.tir.verify.types import type_mismatch


class ExpressionVerifier:
    """What is defined at the place that is looked at, and the rules of the expressions there."""

    def __init__(self, func: PrimFunc, stage: str) -> None:
        self.func, self.stage = func, stage
        self.visible: dict[int, str] = {}  # id(Var or Buffer) -> what defined it
        self.defined: set[int] = set()  # every Var ever defined
        self.owners: dict[int, Buffer] = {}  # id(pointer) -> the buffer that defined it
        self.views: dict[int, Buffer] = {}  # the other buffers with such a pointer
        self.returns: list[Call] = []  # the calls of T.ret that were met
        self.here: Node = func

    def fail(self, message: str, *at: Node) -> NoReturn:
        error = StructuralError(f"{self.func.name}: {message}\n\n{show(self.func, at or (self.here,))}")
        error.at = (*at, self.here)
        raise error

    def check(self, condition: bool, message: str, *at: Node) -> None:
        if not condition:
            self.fail(message, *at)

    # definitions -------------------------------------------------------------------------------------------
    @contextmanager
    def scope(self, things: Iterable[Any], what: str, *at: Node) -> Iterator[None]:
        """Things (Vars and Buffers) are visible inside."""
        before = dict(self.visible)
        for x in things:
            self.define(x, what, *at)
        yield
        self.visible = before

    def define(self, x: Any, what: str, *at: Node) -> None:
        if id(x) in self.defined:
            self.fail(f"{what} {x.name} is defined twice; each definition has an object of its own", *at)
        self.defined.add(id(x))
        self.visible[id(x)] = what
        if isinstance(x, Buffer):
            self.visible.setdefault(id(x.data), "data")
            self.owners.setdefault(id(x.data), x)

    # buffers -----------------------------------------------------------------------------------------------
    def buffer(self, b: Buffer) -> None:
        for e in (*b.shape, *b.strides):
            self.expr(e)
            if not dt.is_integer(e.dtype):
                self.fail(f"{b.name}: the extent {e} is {e.dtype}")
        if b.elem_offset is not None:
            self.expr(b.elem_offset)
        self.check(len(b.strides) in (0, len(b.shape)),
                   f"{b.name} has {len(b.shape)} extents and {len(b.strides)} strides")

    def access(self, b: Buffer, indices: tuple[Expr, ...], predicate: Expr | None, at: Node) -> int:
        """The number of lanes of an access, after all its checks."""
        self.known(b)
        if len(indices) != len(b.shape):                # a message is written only where it is needed
            self.fail(f"{b.name} has {len(b.shape)} dimension(s), {len(indices)} index(es) given")
        if self.stage == "flat":
            self.check(len(indices) == 1 and not b.strides, f"{b.name} is not flat: {len(indices)} index(es)")
        for i in indices:
            self.expr(i)
            if not dt.is_integer(i.dtype):
                self.fail(f"{b.name}: index {i} is {i.dtype}, not an integer")
            if dt.element_of(i.dtype) not in ("int32", "int64"):
                self.fail(f"{b.name}: index {i} is {i.dtype}; cast it to int32 or int64, which hold any extent")
        for i in indices[:-1]:
            if dt.lanes_of(i.dtype) != 1:
                self.fail(f"{b.name}: only the last index may be a vector, {i} is {i.dtype}")
        lanes = dt.lanes_of(indices[-1].dtype) if indices else 1
        if predicate is not None:
            self.expr(predicate)
            self.check(lanes > 1 and predicate.dtype == f"boolx{lanes}",
                       f"{b.name}: the predicate is {predicate.dtype} for an access of {lanes} lane(s)")
        return lanes

    def known(self, b: Buffer) -> None:
        if id(b) in self.visible:
            return
        if self.stage == "block" or id(b.data) not in self.visible:
            self.fail(f"nothing defines the buffer {b.name} here")
        if id(b) not in self.views:
            self.views[id(b)] = b
            self.fits(b)

    def fits(self, b: Buffer) -> None:
        """b lies in the memory of the buffer whose pointer it has, as far as constants say; strides may leave more."""
        owner = self.owners.get(id(b.data))
        if owner is None or owner.strides:
            return
        sizes = [e.value * dt.bits_of(x.dtype) * dt.lanes_of(x.dtype)
                 for x in (b, owner) if isinstance(e := reach(x), IntImm)]
        low = isinstance(b.elem_offset, IntImm) and b.elem_offset.value < 0
        if low or len(sizes) == 2 and sizes[0] > sizes[1]:
            start = "" if b.elem_offset is None else f" from element {b.elem_offset} on"
            self.fail(f"{b.name} ({_extents(b)}, {b.dtype}){start} is not inside of the memory of {owner.name} "
                      f"({_extents(owner)}, {owner.dtype})")

    # expressions -------------------------------------------------------------------------------------------
    def expr(self, e: Node) -> None:
        rule = _EXPRESSIONS.get(type(e))
        if rule is not None:
            rule(self, e)
            return
        for c in children(e):
            self.expr(c)
        self.typed(e)

    def typed(self, e: Node) -> None:
        message = type_mismatch(e)
        if message:
            self.fail(f"{e}: {message}")

    def constant(self, e: IntImm) -> None:
        if e.type != "int32" or not -0x80000000 <= e.value < 0x80000000:       # nearly all are: the rest is slower
            self.typed(e)

    def range(self, e: Range) -> None:
        self.expr(e.min)
        self.expr(e.extent)
        if not e.min.dtype == e.extent.dtype == "int32":
            self.typed(e)

    def var(self, e: Var) -> None:
        if id(e) in self.visible:
            return
        hint = " (a block's body uses the block's axes, not the loops around it)" if id(e) in self.defined else ""
        self.fail(f"{e.name} is used, but nothing defines it here{hint}")

    def call(self, e: Call) -> None:
        if e.op == RET:
            self.returns.append(e)
        for c in children(e):
            self.expr(c)
        self.typed(e)

    def load(self, e: Load) -> None:
        self.access(e.buffer, e.indices, e.predicate, e)

    def let_expr(self, e: Let) -> None:
        self.expr(e.value)
        self.check(e.var.type == e.value.dtype, f"{e.var.name} is {e.var.type}, its value is {e.value.dtype}")
        shared = id(e.var) in self.defined  # a Let may be shared by several expressions
        self.defined.discard(id(e.var))
        with self.scope([e.var], "let"):
            self.expr(e.body)
        assert shared or id(e.var) in self.defined


def _extents(b: Buffer) -> str:
    return " x ".join(map(str, b.shape)) or "a scalar"


_EXPRESSIONS: dict[type, Callable[[ExpressionVerifier, Any], None]] = {
    Var: ExpressionVerifier.var,
    Load: ExpressionVerifier.load,
    IntImm: ExpressionVerifier.constant,
    Range: ExpressionVerifier.range,
    Let: ExpressionVerifier.let_expr,
    Call: ExpressionVerifier.call,
    IterVar: lambda v, e: v.fail(f"the axis {e.var.name} stands in an expression; use its var"),
}
