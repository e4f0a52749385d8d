"""Loops written imperatively, as TVM's `ir_builder` has it: statements are appended to the innermost open scope."""
from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tilewright.support.errors import IRError, described
from tilewright.tir import dtype as dt
from tilewright.tir.arithmetic import binary, intrinsic
from tilewright.tir.buffer import Buffer, as_index, decl_buffer, load, pointer
from tilewright.tir.conversion import cast, convert
from tilewright.tir.expr import Broadcast, Expr, IntImm, Var
from tilewright.tir.iter_var import IterVar
from tilewright.tir.stmt import (
    PARALLEL,
    SERIAL,
    THREAD_BINDING,
    UNROLLED,
    VECTORIZED,
    Allocate,
    Evaluate,
    For,
    IfThenElse,
    LetStmt,
    Stmt,
    Store,
    While,
    seq,
)

KINDS = {"serial": SERIAL, "parallel": PARALLEL, "vectorize": VECTORIZED, "vectorized": VECTORIZED,
         "unroll": UNROLLED, "unrolled": UNROLLED}
Wrap = Callable[[Stmt], Stmt]                # makes one statement of those that follow in a scope


class BufferVar:
    """A buffer as the builder's programs use it: `x[i]` reads, `x[i] = v` emits a store.

    One index on a buffer of several dimensions counts its elements row by row; else there is one index for each.
    """
    __slots__ = ("_builder", "buffer")

    def __init__(self, builder: IRBuilder, buffer: Buffer) -> None:
        self._builder, self.buffer = builder, buffer

    @property
    def dtype(self) -> str:
        return self.buffer.dtype

    @property
    def shape(self) -> tuple[Expr, ...]:
        return self.buffer.shape

    def asobject(self) -> Var:
        """The variable that holds the address."""
        return self.buffer.data

    def __getitem__(self, index: Any) -> Expr:
        return load(self.buffer, self._indices(index))

    def __setitem__(self, index: Any, value: Any) -> None:
        indices = self._indices(index)
        lanes = dt.lanes_of(indices[-1].dtype) if indices else 1
        self._builder.emit(Store(self.buffer, self._value(value, lanes), indices))

    def __tilewright_expr__(self) -> Expr:
        """As an argument of a call: access_ptr(its first element, its extents...)."""
        return pointer(self.buffer)

    def _value(self, value: Any, lanes: int) -> Expr:
        e = cast(self.buffer.dtype, value) if isinstance(value, (int, float)) else convert(value)
        if dt.element_of(e.dtype) != self.buffer.dtype:
            raise IRError(f"ir_builder: a {e.dtype} value is stored to {self.buffer.name}, which holds "
                          f"{self.buffer.dtype}", f'convert it: x.astype("{self.buffer.dtype}")')
        return Broadcast(e, lanes) if lanes > 1 and dt.lanes_of(e.dtype) == 1 else e

    def _indices(self, index: Any) -> tuple[Expr, ...]:
        given = [convert(i) for i in (index if isinstance(index, (tuple, list)) else (index,))]
        name, rank = self.buffer.name, len(self.buffer.shape)
        if len(given) not in (1, rank):
            raise IRError(f"ir_builder: {name} has {rank} dimension(s), {len(given)} index(es) given")
        wrong = next((i for i in given if not dt.is_integer(i.dtype)), None)
        if wrong is not None:
            raise IRError(f"ir_builder: the index {wrong} of {name} is {wrong.dtype}, not an integer")
        at = tuple(map(as_index, given))
        return _digits(at[0], self.buffer.shape) if rank > 1 and len(at) == 1 else at


def _digits(flat: Expr, shape: Sequence[Expr]) -> tuple[Expr, ...]:
    """The indices of element number `flat`, counted row by row."""
    out: list[Expr] = []
    lanes = dt.lanes_of(flat.dtype)
    for extent in reversed(shape[1:]):
        n = Broadcast(extent, lanes) if lanes > 1 else extent
        out.append(binary("floormod", flat, n))
        flat = binary("floordiv", flat, n)
    return (flat, *reversed(out))


class IRBuilder:
    """A program under construction; `get` gives the statement."""

    def __init__(self) -> None:
        self._scopes: list[list[Stmt | Wrap]] = [[]]
        self._names: dict[str, int] = {}

    # statements

    def emit(self, stmt: Any) -> None:
        """Append a statement, an expression for its effect, or a function that wraps all that follows in the scope."""
        if isinstance(stmt, BufferVar) or not isinstance(stmt, Stmt) and not callable(stmt):
            stmt = Evaluate(convert(stmt))
        elif isinstance(stmt, Expr):
            stmt = Evaluate(stmt)
        self._scopes[-1].append(stmt)

    def get(self) -> Stmt:
        """The program. Raises IRError inside an open scope."""
        if len(self._scopes) != 1:
            raise IRError(f"ir_builder: get() inside {len(self._scopes) - 1} open scope(s)")
        return _closed(self._scopes[0])

    # scopes

    def for_range(self, begin: Any, end: Any, name: str = "i", dtype: str | None = None, kind: str = "serial",
                  for_type: str | None = None) -> Any:
        """`with ib.for_range(begin, end) as i:` a loop; kind (for_type before TVM 0.8) is one of KINDS."""
        kind = kind if for_type is None else for_type
        if not isinstance(kind, str) or kind not in KINDS:
            raise IRError(f"ir_builder: {described(kind)} is not a kind of loop", f"one of {', '.join(KINDS)}")
        low, high = convert(begin), convert(end)
        wide = dtype or ("int64" if "int64" in (low.dtype, high.dtype) else "int32")
        low, high = cast(wide, low), cast(wide, high)
        var = Var(self._fresh(name), wide)
        return self._loop(var, low, binary("sub", high, low), KINDS[kind])

    @contextmanager
    def _loop(self, var: Var, low: Expr, extent: Expr, kind: str) -> Iterator[Var]:
        with self.collected() as body:
            yield var
        self.emit(For(var, low, extent, kind, _closed(body)))

    @contextmanager
    def while_loop(self, condition: Any) -> Iterator[None]:
        """`with ib.while_loop(c):` as long as c holds."""
        with self.collected() as body:
            yield
        self.emit(While(convert(condition), _closed(body)))

    @contextmanager
    def if_scope(self, condition: Any) -> Iterator[None]:
        """`with ib.if_scope(c):` where c holds."""
        with self.collected() as body:
            yield
        self.emit(IfThenElse(convert(condition), _closed(body)))

    @contextmanager
    def else_scope(self) -> Iterator[None]:
        """The other branch of the if_scope just before. Raises IRError where there is none."""
        before = self._scopes[-1][-1] if self._scopes[-1] else None
        if not isinstance(before, IfThenElse) or before.else_case is not None:
            raise IRError("ir_builder: else_scope does not follow an if_scope",
                          "write `with ib.if_scope(c): ...` and then `with ib.else_scope(): ...`")
        with self.collected() as body:
            yield
        self._scopes[-1][-1] = before.replace(else_case=_closed(body))

    @contextmanager
    def new_scope(self) -> Iterator[None]:
        """Statements of their own: an allocation or a `let` inside ends with them."""
        with self.collected() as body:
            yield
        self.close(body)

    @contextmanager
    def collected(self) -> Iterator[list[Stmt | Wrap]]:
        """What is emitted inside is kept apart; the statements are those of the list."""
        body: list[Stmt | Wrap] = []
        self._scopes.append(body)
        try:
            yield body
        finally:
            self._scopes.pop()

    def close(self, body: Sequence[Stmt | Wrap]) -> None:
        """Append what was emitted in a scope that has ended."""
        self.emit(_closed(body))

    def scope_attr(self, node: Any, attr_key: str, value: Any) -> None:
        """The rest of the scope under an attribute: "thread_extent" of a thread axis is a loop bound to that axis.

        Raises IRError for any other attribute.
        """
        if attr_key != "thread_extent" or not isinstance(node, IterVar) or not node.thread_tag:
            raise IRError(f"ir_builder: scope_attr({described(node)}, {attr_key!r}) has no meaning here",
                          'ib.scope_attr(te.thread_axis("threadIdx.x"), "thread_extent", n)')
        extent, var, tag = convert(value), node.var, node.thread_tag
        self.emit(lambda rest: For(var, IntImm(0, var.dtype), cast(var.dtype, extent), THREAD_BINDING, rest, tag))

    # names and memory

    def let(self, name: str, value: Any) -> Var:
        """A variable with this value in the rest of the scope."""
        e = convert(value)
        var = Var(self._fresh(name), e.dtype)
        self.emit(lambda rest: LetStmt(var, e, rest))
        return var

    def allocate(self, dtype: str, shape: Any, name: str = "buf", axis_separators: Any = None,
                 scope: str = "global") -> BufferVar:
        """Memory of dtype and shape, not initialised, for the rest of the scope."""
        if isinstance(axis_separators, str):             # allocate(dtype, shape, name, scope) before TVM 0.8
            scope = axis_separators
        extents = shape if isinstance(shape, (tuple, list)) else (shape,)
        buffer = decl_buffer(extents, dtype, self._fresh(name), scope=scope or "global")
        self.emit(lambda rest: Allocate(buffer, rest))
        return BufferVar(self, buffer)

    def buffer_ptr(self, buffer: Buffer, shape: Any = None) -> BufferVar:
        """The buffer for reading and writing. Raises IRError unless it is one."""
        if not isinstance(buffer, Buffer):
            raise IRError(f"ir_builder: buffer_ptr takes a buffer, got {described(buffer)}",
                          "the elements of ins and outs in te.extern, or tvm.tir.decl_buffer(...)")
        if shape is not None and _count(shape) != _count(buffer.shape):
            raise IRError(f"ir_builder: buffer_ptr({buffer.name}): the shape {tuple(shape)} is another one")
        return BufferVar(self, buffer)

    def pointer(self, content_type: str, name: str = "ptr", scope: str = "", size: Any = 1) -> BufferVar:
        """A new pointer variable as a buffer of `size` elements: the parameter of a function made by hand."""
        return BufferVar(self, decl_buffer((size,), content_type, self._fresh(name), scope=scope or "global"))

    def likely(self, condition: Any) -> Expr:
        """condition, marked as nearly always true."""
        return intrinsic("likely", condition)

    def _fresh(self, name: str) -> str:
        count = self._names.get(name, 0)
        self._names[name] = count + 1
        return f"{name}_{count}" if count else name


def _count(shape: Sequence[Any]) -> int | None:
    """The number of elements of a shape of constants."""
    sizes = [d.value for d in map(convert, shape) if isinstance(d, IntImm)]
    return math.prod(sizes) if len(sizes) == len(shape) else None


def _closed(stmts: Sequence[Stmt | Wrap]) -> Stmt:
    """The statements of a scope as one: each wrapper holds those after it."""
    rest: list[Stmt] = []
    for item in reversed(stmts):
        if isinstance(item, Stmt):
            rest.insert(0, item)
        else:
            rest = [item(seq(rest))]
    return seq(rest)


def create() -> IRBuilder:
    """A new, empty builder."""
    return IRBuilder()
