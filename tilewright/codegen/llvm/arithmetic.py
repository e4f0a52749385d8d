"""Operators, choices and vectors of constants: guarded division, minimum and maximum that propagate NaN."""
from __future__ import annotations

from tilewright.codegen.llvm.context import EXPRESSIONS, FunctionEmitter, constant_of, emits
from tilewright.codegen.llvm.index import index, is_pure_index, natural_value
from tilewright.codegen.llvm.remainder import remainder
from tilewright.codegen.llvm.small_floats import round_small
from tilewright.codegen.llvm.types import register_type, with_element, with_zero
from tilewright.codegen.queries import depends_on_data, loads_or_calls
from tilewright.support.errors import CodegenError
from tilewright.tir import dtype as dt
from tilewright.tir.expr import Binary, Broadcast, IntImm, Let, Not, Ramp, Select

_FLOAT = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv"}
_INTEGER = {"add": "add", "sub": "sub", "mul": "mul", "bitand": "and", "bitor": "or", "bitxor": "xor"}
_FLOAT_COMPARE = {"eq": "oeq", "ne": "une", "lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge"}
_INTEGER_COMPARE = {"eq": "eq", "ne": "ne", "lt": "slt", "le": "sle", "gt": "sgt", "ge": "sge"}
_DIVISIONS = ("floordiv", "floormod", "truncdiv", "truncmod")


@emits(EXPRESSIONS, Binary)
def emit_binary(fn: FunctionEmitter, e: Binary) -> str:
    """Any operator of tir.ops.BINARY."""
    dtype, op = e.a.dtype, e.op
    if op in ("and", "or"):
        return _logical(fn, e)
    if op in _INTEGER_COMPARE:
        return _compare(fn, e)
    if dt.is_float(dtype):
        return round_small(fn, _float(fn, op, fn.expr(e.a), fn.expr(e.b), dtype), dtype)
    a, b = fn.expr(e.a), fn.expr(e.b)
    type_ = register_type(dtype)
    if op in _INTEGER:
        return fn.value(f"{_INTEGER[op]} {type_} {a}, {b}")
    if op in ("min", "max"):
        sign = "s" if dt.is_signed(dtype) else "u"
        return fn.call(f"{sign}{op}", type_, ((type_, a), (type_, b)))
    if op in ("shl", "shr"):
        return _shift(fn, e, a, b)
    return _divide(fn, e, a, b)


def _float(fn: FunctionEmitter, op: str, a: str, b: str, dtype: str) -> str:
    type_ = register_type(dtype)
    if op in _FLOAT:
        if op == "sub" and a == constant_of(dtype, -0.0):
            return fn.value(f"fneg {type_} {b}")
        return fn.value(f"{_FLOAT[op]} {fn.flags}{type_} {a}, {b}")
    if op in ("min", "max"):
        # nsz saves two instructions on x86. The NaN test falls on the first operand: b, so that the chain of a
        # reduction max(total, x) does not wait for it.
        name = "minimum" if op == "min" else "maximum"
        return fn.call(name, type_, ((type_, b), (type_, a)), flags="nsz ")
    if op in ("floordiv", "floormod"):
        return _float_floor(fn, op, a, b, type_)
    raise CodegenError(f"{fn.name}: the operator {op} has no machine code on {dtype}")


def _float_floor(fn: FunctionEmitter, op: str, a: str, b: str, type_: str) -> str:
    """Python's // and %: the remainder takes the sign of b and is exact."""
    zero, mask = with_zero(type_), with_element(type_, "i1")
    rest = remainder(fn, a, b, type_)
    nonzero = fn.value(f"fcmp une {type_} {rest}, {zero}")
    rest_negative = fn.value(f"fcmp olt {type_} {rest}, {zero}")
    divisor_negative = fn.value(f"fcmp olt {type_} {b}, {zero}")
    differs = fn.value(f"xor {mask} {rest_negative}, {divisor_negative}")
    adjust = fn.value(f"and {mask} {nonzero}, {differs}")
    moved = fn.value(f"fadd {type_} {rest}, {b}")
    modulo = fn.select(adjust, mask, moved, rest, type_)
    if op == "floormod":
        return modulo
    exact = fn.value(f"fsub {type_} {a}, {modulo}")
    quotient = fn.value(f"fdiv {type_} {exact}, {b}")
    return fn.call("rint", type_, ((type_, quotient),))


def _compare(fn: FunctionEmitter, e: Binary) -> str:
    dtype, type_ = e.a.dtype, register_type(e.a.dtype)
    if dt.is_float(dtype):
        return fn.value(f"fcmp {_FLOAT_COMPARE[e.op]} {type_} {fn.expr(e.a)}, {fn.expr(e.b)}")
    code = _INTEGER_COMPARE[e.op]
    if fn.in_guard and dt.is_signed(dtype) and dt.lanes_of(dtype) == 1 and is_pure_index(e.a) and is_pure_index(e.b):
        return fn.value(f"icmp {code} i64 {index(fn, e.a)}, {index(fn, e.b)}")
    if not dt.is_signed(dtype):
        code = code.replace("s", "u") if code.startswith("s") else code
    return fn.value(f"icmp {code} {type_} {fn.expr(e.a)}, {fn.expr(e.b)}")


def _logical(fn: FunctionEmitter, e: Binary) -> str:
    """`and`, `or`. The right side is evaluated only when it decides, if evaluating it could fail."""
    type_ = register_type(e.dtype)
    a = fn.expr(e.a)
    if type_ != "i1" or not loads_or_calls(e.b):
        return fn.value(f"{e.op} {type_} {a}, {fn.expr(e.b)}")
    right, done, left = fn.new_label("rhs"), fn.new_label("logic"), fn.label
    fn.branch(a, *((right, done) if e.op == "and" else (done, right)))
    fn.start(right)
    with fn.region():
        b = fn.expr(e.b)
    after = fn.label
    fn.jump(done)
    fn.start(done)
    short = "false" if e.op == "and" else "true"
    return fn.effect(f"phi i1 [ {short}, %{left} ], [ {b}, %{after} ]")


def _shift(fn: FunctionEmitter, e: Binary, a: str, b: str) -> str:
    """Shifts by the width or more give 0 (-1 for a negative value shifted right), as in NumPy."""
    op, dtype, type_, bits = e.op, e.dtype, register_type(e.dtype), dt.bits_of(e.dtype)
    amount = e.b.value if isinstance(e.b, Broadcast) else e.b
    arithmetic = op == "shr" and dt.is_signed(dtype)
    opcode = "shl" if op == "shl" else ("ashr" if arithmetic else "lshr")
    if isinstance(amount, IntImm) and 0 <= amount.value < bits:
        return fn.value(f"{opcode} {type_} {a}, {b}")
    limit = constant_of(dtype, bits - 1)
    mask = with_element(type_, "i1")
    if arithmetic:
        held = fn.call("umin", type_, ((type_, b), (type_, limit)))
        return fn.value(f"{opcode} {type_} {a}, {held}")
    inside = fn.value(f"icmp ule {type_} {b}, {limit}")
    held = fn.select(inside, mask, b, with_zero(type_), type_)
    return fn.select(inside, mask, fn.value(f"{opcode} {type_} {a}, {held}"), with_zero(type_), type_)


def _divide(fn: FunctionEmitter, e: Binary, a: str, b: str) -> str:
    """Integer division; x / 0 and x % 0 give 0, and INT_MIN / -1 wraps, without a trap."""
    type_, dtype = register_type(e.dtype), e.dtype
    div, rem = ("sdiv", "srem") if dt.is_signed(dtype) else ("udiv", "urem")
    divisor = e.b.value if isinstance(e.b, Broadcast) else e.b
    wants_quotient = e.op.endswith("div")
    if isinstance(divisor, IntImm) and divisor.value not in (0, -1):
        safe, by_zero = b, None
    else:
        safe, by_zero = _safe_divisor(fn, a, b, dtype)
    both_natural = natural_value(fn, e.a) and natural_value(fn, e.b)
    plain = e.op.startswith("trunc") or not dt.is_signed(dtype) or both_natural
    if both_natural:
        div, rem = "udiv", "urem"
    if plain:
        result = fn.value(f"{div if wants_quotient else rem} {type_} {a}, {safe}")
    else:
        result = _floor(fn, wants_quotient, a, safe, dtype)
    if by_zero is None:
        return result
    return fn.select(by_zero, with_element(type_, "i1"), with_zero(type_), result, type_)


def _safe_divisor(fn: FunctionEmitter, a: str, b: str, dtype: str) -> tuple[str, str]:
    """(divisor that cannot trap: 1 in place of 0, and of -1 under the smallest integer; whether b is 0).

    Frozen: of a shift that is chosen where its amount is small, LLVM knows in other lanes only that it is poison, takes
    it for nonzero there, and divides by it in all lanes.
    """
    type_ = register_type(dtype)
    mask = with_element(type_, "i1")
    by_zero = fn.value(f"icmp eq {type_} {b}, {with_zero(type_)}")
    unsafe = by_zero
    if dt.is_signed(dtype):
        smallest = constant_of(dtype, dt.integer_range(dtype)[0])
        minimum = fn.value(f"icmp eq {type_} {a}, {smallest}")
        minus_one = fn.value(f"icmp eq {type_} {b}, {constant_of(dtype, -1)}")
        overflow = fn.value(f"and {mask} {minimum}, {minus_one}")
        unsafe = fn.value(f"or {mask} {by_zero}, {overflow}")
    return fn.value(f"freeze {type_} {fn.select(unsafe, mask, constant_of(dtype, 1), b, type_)}"), by_zero


def _floor(fn: FunctionEmitter, wants_quotient: bool, a: str, b: str, dtype: str) -> str:
    type_ = register_type(dtype)
    mask, zero = with_element(type_, "i1"), with_zero(type_)
    rest = fn.value(f"srem {type_} {a}, {b}")
    nonzero = fn.value(f"icmp ne {type_} {rest}, {zero}")
    signs = fn.value(f"xor {type_} {rest}, {b}")
    differs = fn.value(f"icmp slt {type_} {signs}, {zero}")
    adjust = fn.value(f"and {mask} {nonzero}, {differs}")
    if not wants_quotient:
        return fn.select(adjust, mask, fn.value(f"add {type_} {rest}, {b}"), rest, type_)
    quotient = fn.value(f"sdiv {type_} {a}, {b}")
    return fn.value(f"add {type_} {quotient}, {fn.value(f'sext {mask} {adjust} to {type_}')}")


@emits(EXPRESSIONS, Not)
def emit_not(fn: FunctionEmitter, e: Not) -> str:
    type_ = register_type(e.dtype)
    return fn.value(f"xor {type_} {fn.expr(e.a)}, {constant_of(e.dtype, 1)}")


@emits(EXPRESSIONS, Select)
def emit_select(fn: FunctionEmitter, e: Select) -> str:
    return fn.select(fn.expr(e.condition), register_type(e.condition.dtype), fn.expr(e.a), fn.expr(e.b),
                     register_type(e.dtype))


@emits(EXPRESSIONS, Let)
def emit_let(fn: FunctionEmitter, e: Let) -> str:
    if depends_on_data(e.value, fn.dependent):
        fn.dependent.add(e.var)
    with fn.bound(e.var, fn.expr(e.value)):
        return fn.expr(e.body)


@emits(EXPRESSIONS, Broadcast)
def emit_broadcast(fn: FunctionEmitter, e: Broadcast) -> str:
    return fn.broadcast(fn.expr(e.value), register_type(e.value.dtype), e.lanes)


@emits(EXPRESSIONS, Ramp)
def emit_ramp(fn: FunctionEmitter, e: Ramp) -> str:
    element, type_ = register_type(e.base.dtype), register_type(e.dtype)
    base = fn.broadcast(fn.expr(e.base), element, e.lanes)
    if isinstance(e.stride, IntImm):
        steps = ", ".join(f"{element} {k * e.stride.value}" for k in range(e.lanes))
        return fn.value(f"add {type_} {base}, <{steps}>")
    steps = f"<{', '.join(f'{element} {k}' for k in range(e.lanes))}>"
    stride = fn.broadcast(fn.expr(e.stride), element, e.lanes)
    return fn.value(f"add {type_} {base}, {fn.value(f'mul {type_} {stride}, {steps}')}")
