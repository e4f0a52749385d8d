"""Functions of the operator table that are written in terms of others."""
from __future__ import annotations

from collections.abc import Callable

from tilewright.tir import dtype as dt
from tilewright.tir.arithmetic import binary, intrinsic, select
from tilewright.tir.conversion import cast, convert, match_types
from tilewright.tir.expr import Call, Expr, Let, Var
from tilewright.tir.ops import BINARY, INTRINSICS


class Functions:
    """The functions that an expansion calls: f.<name>(...) for rows of INTRINSICS and BINARY, f.select(c, a, b)."""
    select = staticmethod(select)

    def __getattr__(self, name: str) -> Callable[..., Expr]:
        if name in BINARY:
            return lambda a, b: binary(name, *match_types(a, b))
        return lambda *args: intrinsic(name, *args)


FUNCTIONS = Functions()


def expanded(e: Call) -> Expr:
    """e by the expansion of its row, every argument computed once, small floats in float32 and rounded at the end."""
    expansion = INTRINSICS[e.op].expansion
    assert expansion is not None, f"{e.op} has no expansion"
    element, lanes = dt.parse(e.args[0].dtype)
    working = dt.with_lanes("float32" if element in dt.SMALL_FLOATS else element, lanes)
    variables = [a if isinstance(a, Var) and a.dtype == working else Var(f"{e.op}_{k}", working)
                 for k, a in enumerate(e.args)]
    out = cast(e.type, convert(expansion(FUNCTIONS, *variables)))
    for var, arg in reversed(list(zip(variables, e.args, strict=True))):
        out = out if var is arg else Let(var, cast(working, arg), out)
    return out
