"""Questions about expressions that code generation asks for every access."""
from __future__ import annotations

import re

from tilewright.lowering.code_size import DIVISIONS
from tilewright.support.errors import CodegenError, with_hint
from tilewright.tir import dtype as dt
from tilewright.tir.buffer import Buffer, Load
from tilewright.tir.dtype import SMALL_FLOATS
from tilewright.tir.expr import Binary, Call, Expr, FloatImm, IntImm, StringImm, Var
from tilewright.tir.node import walk
from tilewright.tir.stmt import PARALLEL, THREAD_BINDING, For

_SUMS = ("add", "sub", "mul")
_NOTHING = (IntImm, FloatImm)


def loads_or_calls(e: Expr) -> bool:
    """True when evaluating e reads memory or calls a function, so that it must not happen where e is not asked for."""
    return type(e) not in _NOTHING and any(type(n) is Load or type(n) is Call for n in walk(e))


def is_pure_index(e: Expr) -> bool:
    """True for integer arithmetic on variables and constants alone: nothing in it depends on data."""
    if isinstance(e, (IntImm, Var)):
        return True
    if isinstance(e, Binary):
        return (e.op in _SUMS or e.op in DIVISIONS and isinstance(e.b, IntImm) or e.op in ("min", "max")) \
            and is_pure_index(e.a) and is_pure_index(e.b)
    return False


def flat_index(function: str, buffer: Buffer, indices: tuple[Expr, ...]) -> Expr:
    """The one index of a flat access. Raises CodegenError for an access that was not flattened."""
    if len(indices) > 1:
        raise CodegenError(with_hint(f"{function}: {buffer.name} is accessed with {len(indices)} indices; code needs "
                                     "one", "lower the function first: tilewright.lowering.lower(func)"))
    return indices[0] if indices else IntImm(0)


def require_serial(function: str, s: For) -> None:
    """Raise CodegenError for a loop that is not one of a single thread of a CPU."""
    if s.kind == PARALLEL:
        raise CodegenError(with_hint(f"{function}: loop {s.loop_var.name} is parallel",
                                     "make functions of its parts first: tilewright.lowering.split(flat)"))
    if s.kind == THREAD_BINDING:
        raise CodegenError(with_hint(f"{function}: loop {s.loop_var.name} is bound to {s.thread_tag}, which a CPU does "
                                     "not have", "use parallel instead of bind, or build for a GPU target"))


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
