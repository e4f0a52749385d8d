"""Questions about expressions that code generation asks for every access."""
from __future__ import annotations

import re
from collections.abc import Container

from tilewright.support.errors import CodegenError
from tilewright.tir import dtype as dt
from tilewright.tir.arithmetic import binary
from tilewright.tir.buffer import Load
from tilewright.tir.dtype import SMALL_FLOATS
from tilewright.tir.expr import Binary, Broadcast, Call, Expr, FloatImm, IntImm, Ramp, StringImm, Var
from tilewright.tir.node import children, walk

_SUMS = ("add", "sub", "mul")
_DIVISIONS = ("floordiv", "floormod", "truncdiv", "truncmod")
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


def is_pure_index(e: Expr) -> bool:
    """True for integer arithmetic on variables and constants alone: nothing in it depends on data."""
    if isinstance(e, (IntImm, Var)):
        return True
    if isinstance(e, Binary):
        return (e.op in _SUMS or e.op in _DIVISIONS and isinstance(e.b, IntImm) or e.op in ("min", "max")) \
            and is_pure_index(e.a) and is_pure_index(e.b)
    return False


def as_ramp(e: Expr) -> Ramp | Broadcast | None:
    """A vector index as base + lane * stride or as a broadcast, if it is one by its form."""
    if isinstance(e, (Ramp, Broadcast)):
        return e
    if not isinstance(e, Binary) or e.op not in _SUMS:
        return None
    a, b = as_ramp(e.a), as_ramp(e.b)
    if a is None or b is None:
        return None
    if isinstance(a, Broadcast) and isinstance(b, Broadcast):
        return Broadcast(binary(e.op, a.value, b.value), a.lanes)
    if e.op == "mul":
        if isinstance(a, Ramp) and isinstance(b, Ramp):
            return None
        ramp, factor = (a, b) if isinstance(a, Ramp) else (b, a)
        assert isinstance(ramp, Ramp) and isinstance(factor, Broadcast)
        return Ramp(
            binary("mul", ramp.base, factor.value), binary("mul", ramp.stride, factor.value), ramp.lanes
        )
    parts = [
        (x.base, x.stride) if isinstance(x, Ramp) else (x.value, IntImm(0, x.value.dtype)) for x in (a, b)
    ]
    return Ramp(binary(e.op, parts[0][0], parts[1][0]), binary(e.op, parts[0][1], parts[1][1]), a.lanes)


def checked_dimensions(at: Expr) -> list[tuple[Expr, Expr]]:
    """(index, extent) of every `checked_index` in an index, inner ones first, those of nested loads left to these."""
    found, stack = [], [at]
    while stack:
        e = stack.pop()
        if isinstance(e, Call) and e.op == "checked_index":
            found.append((e.args[0], e.args[1]))
            stack.append(e.args[0])
        elif not isinstance(e, Load):
            stack.extend(c for c in children(e) if isinstance(c, Expr))
    return found[::-1]


def compute_dtype(dtype: str) -> str:
    """The dtype in which values of dtype are held in registers: float32 for those of 16 and 8 bits."""
    element, lanes = dt.parse(dtype)
    return dt.with_lanes("float32", lanes) if element in SMALL_FLOATS else dtype


_SYMBOL = re.compile(r"[A-Za-z_$.][A-Za-z0-9_$.]*")


def c_function(function: str, e: Call) -> tuple[str, tuple[Expr, ...]]:
    """(symbol, arguments) of a call_extern. Raises CodegenError for what C has no name or no type for."""
    if not e.args or not isinstance(e.args[0], StringImm):
        raise CodegenError(f"{function}: call_extern takes the symbol as its first argument")
    symbol, arguments = e.args[0].value, e.args[1:]
    if not _SYMBOL.fullmatch(symbol):
        raise CodegenError(f"{function}: call_extern: {symbol!r} is not the name of a C function")
    for a in (e, *arguments):
        if a.dtype in SMALL_FLOATS or dt.lanes_of(a.dtype) > 1:
            raise CodegenError(f"{function}: {symbol}: {a.dtype} cannot be passed to a C function")
    return symbol, arguments
