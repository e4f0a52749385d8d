"""Index arithmetic in 64 bits: sums of loop variables without overflow, so that LLVM sees plain addresses."""
from __future__ import annotations

import operator
from collections.abc import Callable

from tilewright.codegen.llvm.context import FunctionEmitter
from tilewright.tir import dtype as dt
from tilewright.tir.arithmetic import binary
from tilewright.tir.expr import Binary, Broadcast, Cast, Expr, IntImm, Ramp, Select, Var
from tilewright.tir.places import is_index
from tilewright.tir.stmt import For

_SUMS = {"add": "add nsw", "sub": "sub nsw", "mul": "mul nsw"}
_DIVISIONS = ("floordiv", "floormod", "truncdiv", "truncmod")
_PURE = (Var, IntImm, Binary, Cast)
_BOUNDED: dict[str, Callable[[int, int], int]] = {
    "add": operator.add, "mul": operator.mul, "floordiv": lambda a, b: a, "truncdiv": lambda a, b: a, "min": min,
    "max": max, "floormod": lambda a, b: b, "truncmod": lambda a, b: a,
}


def natural(fn: FunctionEmitter, e: Expr) -> bool:
    """True when the index e is certainly >= 0 (a cheap sufficient test)."""
    return greatest(fn, e) is not None


def natural_value(fn: FunctionEmitter, e: Expr) -> bool:
    """True when the value e, whose arithmetic may wrap around, is certainly >= 0."""
    return greatest(fn, e, wraps=True) is not None


def greatest(fn: FunctionEmitter, e: Expr, wraps: bool = False) -> int | None:
    """A number that e does not exceed if e is certainly >= 0, else None. `wraps`: sums and products may wrap around."""
    if isinstance(e, IntImm):
        return e.value if e.value >= 0 else None
    wraps = wraps or not is_index(e)
    most = dt.integer_range(e.dtype)[1] if dt.is_integer(e.dtype) else 0
    if isinstance(e, Var):
        return fn.natural.get(e, most if dt.is_unsigned(e.dtype) else None)
    if isinstance(e, Cast):
        bound = greatest(fn, e.value, wraps) if dt.is_integer(e.value.dtype) else None
        return bound if bound is not None and bound <= most else None
    if not isinstance(e, Binary) or e.op not in _BOUNDED:
        return None
    a, b = greatest(fn, e.a, wraps), greatest(fn, e.b, wraps)
    if e.op == "floormod":
        return b
    if e.op == "truncmod":
        return a
    if e.op == "max" and (a is not None or b is not None):
        return most if a is None or b is None else max(a, b)
    if a is None or b is None:
        return None
    bound = _BOUNDED[e.op](a, b)
    return None if wraps and bound > most else bound


def range_of_loop(fn: FunctionEmitter, s: For) -> dict[Var, int]:
    """{variable: a number that it does not exceed}, if it is certainly >= 0."""
    first, count = greatest(fn, s.min), greatest(fn, s.extent)
    if first is None:
        return {}
    return {s.loop_var: dt.integer_range(s.loop_var.dtype)[1] if count is None else max(first + count - 1, first)}


def index(fn: FunctionEmitter, e: Expr) -> str:
    """The value of the index e, a scalar integer expression, sign-extended to i64.

    Arithmetic on variables and constants is done in 64 bits and does not wrap; what is computed from data wraps in its
    own type.
    """
    if isinstance(e, IntImm):
        return str(e.value)
    if isinstance(e, Var):
        wide = fn.wide.get(e)
        if wide is not None:
            return wide
    elif isinstance(e, Binary) and (dt.bits_of(e.dtype) == 64 or is_index(e)):
        if e.op in _SUMS:
            a, b = index(fn, e.a), index(fn, e.b)
            if b == "0" and e.op != "mul":
                return a
            code = _SUMS[e.op] if is_index(e) else e.op
            return fn.value(f"{code} i64 {a}, {b}")
        if e.op in _DIVISIONS and isinstance(e.b, IntImm) and e.b.value > 0:
            return _divide(fn, e.op, index(fn, e.a), e.b.value, natural(fn, e.a))
        if e.op in ("min", "max") and not dt.is_unsigned(e.dtype):
            return fn.call(f"s{e.op}", "i64", (("i64", index(fn, e.a)), ("i64", index(fn, e.b))))
    elif isinstance(e, Cast) and e.type == "int64" and (is_index(e.value) or _is_pure_int32(e.value)):
        return index(fn, e.value)
    elif isinstance(e, Select):
        return fn.select(fn.expr(e.condition), "i1", index(fn, e.a), index(fn, e.b), "i64")
    return _extend(fn, e)


def _is_pure_int32(e: Expr) -> bool:
    return e.dtype == "int32" and isinstance(e, _PURE)


def _extend(fn: FunctionEmitter, e: Expr) -> str:
    bits, operand = dt.bits_of(e.dtype), fn.expr(e)
    if bits == 64:
        return operand
    if not operand.startswith("%"):
        return {"true": "1", "false": "0"}.get(operand, operand)
    op = "sext" if dt.is_signed(e.dtype) and not natural_value(fn, e) else "zext"
    if op == "zext" and dt.is_signed(e.dtype):
        op = "zext nneg"
    return fn.value(f"{op} i{bits} {operand} to i64")


def _divide(fn: FunctionEmitter, op: str, a: str, divisor: int, is_natural: bool) -> str:
    """a by a positive constant."""
    if is_natural:
        return fn.value(f"{'udiv' if op.endswith('div') else 'urem'} i64 {a}, {divisor}")
    power = divisor & (divisor - 1) == 0
    if power and op == "floordiv":
        return fn.value(f"ashr i64 {a}, {divisor.bit_length() - 1}")
    if power and op == "floormod":
        return fn.value(f"and i64 {a}, {divisor - 1}")
    if op.startswith("trunc"):
        return fn.value(f"{'sdiv' if op == 'truncdiv' else 'srem'} i64 {a}, {divisor}")
    rest = fn.value(f"srem i64 {a}, {divisor}")
    negative = fn.value(f"icmp slt i64 {rest}, 0")
    if op == "floormod":
        up = fn.value(f"add nsw i64 {rest}, {divisor}")
        return fn.value(f"select i1 {negative}, i64 {up}, i64 {rest}")
    quotient = fn.value(f"sdiv i64 {a}, {divisor}")
    borrow = fn.value(f"sext i1 {negative} to i64")
    return fn.value(f"add nsw i64 {quotient}, {borrow}")


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
