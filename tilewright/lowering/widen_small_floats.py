"""Arithmetic on floats of 16 and 8 bits is done in float32, each result rounded once."""
from __future__ import annotations

import numpy as np

from tilewright.tir import dtype as dt
from tilewright.tir.dtype import SMALL_FLOATS
from tilewright.tir.expr import Binary, Broadcast, Call, Cast, Expr, FloatImm, IntImm, Let, Select
from tilewright.tir.node import Node, rewrite, walk
from tilewright.tir.ops import INTRINSICS
from tilewright.tir.stmt import IRModule, PrimFunc


def widen_small_floats(module: IRModule) -> IRModule:
    """Floats of 16 and 8 bits are cast, and moved: read, stored, chosen, copied into lanes, passed on as bits.

    So back ends hold them as bits. What is only moved keeps them, those of a NaN too.
    """
    return IRModule({name: _widened(f) for name, f in module.functions.items()})


def _widened(func: PrimFunc) -> PrimFunc:
    if not any(isinstance(n, Expr) and _is_small(n.dtype) for n in walk(func.body)):
        return func
    widening = _Widening()
    return func.with_body(rewrite(rewrite(func.body, widening.arithmetic), _constant))


class _Widening:
    """`known`: what was widened (which holds it, so that its id stays its own), and what that became."""

    def __init__(self) -> None:
        self.known: dict[int, tuple[Expr, Expr]] = {}

    def arithmetic(self, n: Node) -> Expr | None:
        match n:
            case Binary(op, a, b) if _is_small(a.dtype):
                wide = Binary(op, self.wide(a), self.wide(b))
                return wide if dt.is_bool(n.dtype) else Cast(n.dtype, wide)
            case Call(op="abs", args=(x,), type=dtype) if _is_small(dtype):
                bits = _bits_of(dtype)
                sign = IntImm((1 << dt.bits_of(dtype) - 1) - 1, dt.element_of(bits))
                mask = Broadcast(sign, dt.lanes_of(bits)) if dt.lanes_of(bits) > 1 else sign
                return Call("reinterpret", (Binary("bitand", Call("reinterpret", (x,), bits), mask),), dtype)
            case Call(op, args, dtype) if _computes(op) and any(_is_small(a.dtype) for a in args):
                call = Call(op, tuple(map(self.wide, args)), _wide(dtype) if _is_small(dtype) else dtype)
                return Cast(dtype, call) if _is_small(dtype) else call
        return None

    def wide(self, e: Expr) -> Expr:
        """e as float32 where it is a smaller float. What is chosen or copied into lanes is widened before."""
        if not _is_small(e.dtype):
            return e
        if id(e) not in self.known:
            self.known[id(e)] = e, self.as_float32(e)
        return self.known[id(e)][1]

    def as_float32(self, e: Expr) -> Expr:
        match e:
            case FloatImm(value):
                return FloatImm(dt.nearest(value, e.dtype), "float32")
            case Broadcast(value, lanes):
                return Broadcast(self.wide(value), lanes)
            case Select(condition, a, b):
                return Select(condition, self.wide(a), self.wide(b))
            case Let(var, value, body):
                return Let(var, value, self.wide(body))
            case Call("if_then_else", (condition, a, b)):
                return Call("if_then_else", (condition, self.wide(a), self.wide(b)), _wide(e.dtype))
        return Cast(_wide(e.dtype), e)


def _constant(n: Node) -> Expr | None:
    """A constant as its bits."""
    if not isinstance(n, FloatImm) or not _is_small(n.dtype):
        return None
    kind, bits = dt.numpy_dtype(n.dtype), _bits_of(n.dtype)
    value = np.array(dt.nearest(n.value, n.dtype), kind).view(dt.numpy_dtype(bits)).item()
    return Call("reinterpret", (IntImm(value, bits),), n.dtype)


def _computes(op: str) -> bool:
    """True for a function of floats; others take and give them as they are."""
    return INTRINSICS[op].kind == "math" or INTRINSICS[op].operands == "float"


def _is_small(dtype: str) -> bool:
    return dt.element_of(dtype) in SMALL_FLOATS


def _wide(dtype: str) -> str:
    return dt.with_lanes("float32", dt.lanes_of(dtype))


def _bits_of(dtype: str) -> str:
    return dt.with_lanes(f"uint{dt.bits_of(dtype)}", dt.lanes_of(dtype))
