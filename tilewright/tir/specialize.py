"""`PrimFunc.specialize`: a function for known values of its scalar parameters and known shapes of its buffers."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tilewright.support.errors import IRError, described
from tilewright.support.registry import register_hook
from tilewright.tir.arithmetic import binary
from tilewright.tir.buffer import Buffer, BufferRegion, Load, MatchBuffer
from tilewright.tir.conversion import convert
from tilewright.tir.equal import structural_equal
from tilewright.tir.expr import Binary, Expr, IntImm, Var
from tilewright.tir.node import Node, rewrite, substitute
from tilewright.tir.stmt import Allocate, Block, PrimFunc, Store


@register_hook("tir.specialize")
def specialize(func: PrimFunc, values: Mapping[Var, Any]) -> PrimFunc:
    """func with parameters fixed: {n: 128}, or {a: decl_buffer((128, 128))} for the parameter a of a buffer.

    A scalar parameter takes a number or an expression and is a parameter no longer. A buffer says what the variables
    in the shape, the strides and the offset of its parameter are; the parameter stays. Raises IRError for a key that
    is no parameter, and for a buffer that does not fit.
    """
    if not isinstance(values, Mapping):
        raise IRError(f"{func.name}: specialize takes a dict, not {described(values)}", "func.specialize({n: 128})")
    table: dict[Var, Expr] = {}
    for param, value in values.items():
        if not any(param is p for p in func.params):
            known = ", ".join(p.name for p in func.params)
            raise IRError(f"{func.name}: specialize takes parameters, not {described(param)}",
                          f"func.params are {known}")
        if param in func.buffer_map:
            _fit_buffer(func.buffer_map[param], value, table)
        elif isinstance(value, Buffer):
            raise IRError(f"{func.name}: the parameter {param.name} is a scalar, not a buffer")
        else:
            _fit(param, value if isinstance(value, Expr) else convert(value, param.dtype), table, param.name)
    renewed = _Renewed(table)
    return func.replace(
        params=tuple(p for p in func.params if p not in table), body=rewrite(func.body, renewed.node),
        buffer_map={p: renewed.buffer(b) for p, b in func.buffer_map.items()})


def _fit_buffer(old: Buffer, new: Any, table: dict[Var, Expr]) -> None:
    if not isinstance(new, Buffer):
        raise IRError(f"the parameter of {old.name} is specialised by a buffer, not by {described(new)}",
                      f'tir.decl_buffer((128, 128), "{old.dtype}")')
    if (old.dtype, len(old.shape)) != (new.dtype, len(new.shape)):
        raise IRError(f"{old.name} is {old.dtype} of {len(old.shape)} dimension(s), the buffer given is {new.dtype} of "
                      f"{len(new.shape)}")
    for k, (was, value) in enumerate(zip(old.shape, new.shape, strict=True)):
        _fit(was, value, table, f"{old.name}.shape[{k}]")
    if new.strides and old.strides:
        for k, (was, value) in enumerate(zip(old.strides, new.strides, strict=True)):
            _fit(was, value, table, f"{old.name}.strides[{k}]")
    if new.elem_offset is not None and old.elem_offset is not None:
        _fit(old.elem_offset, new.elem_offset, table, f"{old.name}.elem_offset")


def _fit(was: Expr, value: Expr, table: dict[Var, Expr], what: str) -> None:
    """Note that was, a variable, is value; anything else must be value already."""
    if isinstance(was, Var) and was not in table and was.dtype != value.dtype and isinstance(value, IntImm):
        value = convert(value.value, was.dtype)
    known = table.get(was, was) if isinstance(was, Var) else _folded(substitute(was, table))
    if isinstance(known, Var) and known is was and was.dtype == value.dtype:
        table[was] = value
    elif not structural_equal(known, value) and not (
            isinstance(known, IntImm) and isinstance(value, IntImm) and known.value == value.value):
        raise IRError(f"specialize: {what} is {known}, the value given is {value}")


def _fold(node: Node) -> Node | None:
    return binary(node.op, node.a, node.b) if isinstance(node, Binary) and (
        isinstance(node.a, IntImm) or isinstance(node.b, IntImm)) and not _by_zero(node) else None


def _by_zero(e: Binary) -> bool:
    return isinstance(e.b, IntImm) and e.b.value == 0 and e.op not in ("add", "sub", "mul")


def _folded(e: Expr) -> Expr:
    out = rewrite(e, _fold)
    assert isinstance(out, Expr)
    return out


class _Renewed:
    """Nodes with the variables of a table replaced, constants folded, each buffer made anew at most once."""

    def __init__(self, table: Mapping[Var, Expr]) -> None:
        self.table = table
        self.made: dict[Buffer, Buffer] = {}

    def expr(self, e: Expr) -> Expr:
        out = _folded(substitute(e, self.table))
        return e if structural_equal(out, e) else out

    def buffer(self, b: Buffer) -> Buffer:
        if b not in self.made:
            shape, strides = (tuple(map(self.expr, es)) for es in (b.shape, b.strides))
            offset = None if b.elem_offset is None else self.expr(b.elem_offset)
            same = all(x is y for x, y in zip((*shape, *strides, offset), (*b.shape, *b.strides, b.elem_offset),
                                              strict=True))
            self.made[b] = b if same else b.replace(shape=shape, strides=strides, elem_offset=offset)
        return self.made[b]

    def node(self, n: Node) -> Node | None:
        if isinstance(n, Var):
            return self.table.get(n)
        if isinstance(n, (Load, Store, Allocate, BufferRegion, MatchBuffer)):
            new = self.buffer(n.buffer)
            return None if new is n.buffer else n.replace(buffer=new)
        if isinstance(n, Block) and n.alloc_buffers:
            return n.replace(alloc_buffers=tuple(map(self.buffer, n.alloc_buffers)))
        return _fold(n)
