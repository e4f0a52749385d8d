"""Index arithmetic in 64 bits: sums of loop variables without overflow, so that LLVM sees plain addresses."""
from __future__ import annotations

from tilewright.codegen.llvm.context import FunctionEmitter
from tilewright.codegen.llvm.formulas import inline
from tilewright.codegen.ranges import natural, natural_value
from tilewright.formulas.integers import division
from tilewright.lowering.code_size import DIVISIONS
from tilewright.tir import dtype as dt
from tilewright.tir.expr import Binary, Cast, Expr, IntImm, Select, Var
from tilewright.tir.places import is_index

_SUMS = {"add": "add nsw", "sub": "sub nsw", "mul": "mul nsw"}
_PURE = (Var, IntImm, Binary, Cast)


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
        if e.op in DIVISIONS and isinstance(e.b, IntImm) and e.b.value > 0:
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
    return inline(fn, division(op, "int64", True, False), a, str(divisor))
