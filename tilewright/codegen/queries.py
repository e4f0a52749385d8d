"""Questions about expressions that code generation asks for every access."""
from __future__ import annotations

from collections.abc import Container

from tilewright.tir.buffer import Load
from tilewright.tir.expr import Call, Expr, FloatImm, IntImm, Var
from tilewright.tir.node import walk

_NOTHING = (IntImm, FloatImm)


def loads_or_calls(e: Expr) -> bool:
    """True when evaluating e reads memory or calls a function, so that it must not happen where e is not asked for."""
    return type(e) not in _NOTHING and any(type(n) is Load or type(n) is Call for n in walk(e))


def depends_on_data(e: Expr, dependent: Container[Var]) -> bool:
    """True when nothing is known of e's range: it has a value from a buffer, from an external function or of one of
    the variables `dependent`, or asks for a check.
    """
    return type(e) not in _NOTHING and any(
        type(n) is Load or type(n) is Var and n in dependent
        or type(n) is Call and n.op in ("call_extern", "call_packed", "checked_index") for n in walk(e))
