"""Operators, casts and choices: guarded division, NaN-propagating minimum and maximum, saturating
conversion.
"""

from __future__ import annotations

from tilewright.codegen.llvm.context import EXPRESSIONS, FunctionEmitter, constant_of, emits
from tilewright.codegen.llvm.index import index, is_pure_index, natural
from tilewright.codegen.llvm.mathlib import math_helper
from tilewright.codegen.llvm.queries import depends_on_data, reads_memory
from tilewright.codegen.llvm.small_floats import round_small
from tilewright.codegen.llvm.types import register_type, splat, with_element
from tilewright.support.errors import CodegenError
from tilewright.tir import dtype as dt
from tilewright.tir.dtype import SMALL_FLOATS
from tilewright.tir.expr import Binary, Broadcast, Cast, IntImm, Let, Not, Ramp, Select

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
        return _shift(fn, op, a, b, dtype)
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
    rest = fn.value(f"call {type_} {math_helper(fn.module, 'fmod', type_)}({type_} {a}, {type_} {b})")
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


def with_zero(type_: str) -> str:
    """Zero of an LLVM type, scalar or vector."""
    if type_.startswith("<"):
        return "zeroinitializer"
    return "0.0" if type_ in ("float", "double") else "0"


def _compare(fn: FunctionEmitter, e: Binary) -> str:
    dtype, type_ = e.a.dtype, register_type(e.a.dtype)
    if dt.is_float(dtype):
        return fn.value(f"fcmp {_FLOAT_COMPARE[e.op]} {type_} {fn.expr(e.a)}, {fn.expr(e.b)}")
    code = _INTEGER_COMPARE[e.op]
    if dt.is_signed(dtype) and dt.lanes_of(dtype) == 1 and is_pure_index(e.a) and is_pure_index(e.b):
        return fn.value(f"icmp {code} i64 {index(fn, e.a)}, {index(fn, e.b)}")
    if not dt.is_signed(dtype):
        code = code.replace("s", "u") if code.startswith("s") else code
    return fn.value(f"icmp {code} {type_} {fn.expr(e.a)}, {fn.expr(e.b)}")


def _logical(fn: FunctionEmitter, e: Binary) -> str:
    """`and`, `or`. The right side is evaluated only when it decides, if evaluating it could fail."""
    type_ = register_type(e.dtype)
    a = fn.expr(e.a)
    if type_ != "i1" or not reads_memory(e.b):
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


def _shift(fn: FunctionEmitter, op: str, a: str, b: str, dtype: str) -> str:
    """Shifts by the width or more give 0 (-1 for a negative value shifted right), as in NumPy."""
    type_, bits = register_type(dtype), dt.bits_of(dtype)
    arithmetic = op == "shr" and dt.is_signed(dtype)
    opcode = "shl" if op == "shl" else ("ashr" if arithmetic else "lshr")
    if b.lstrip("-").isdigit() and 0 <= int(b) < bits:
        return fn.value(f"{opcode} {type_} {a}, {b}")
    limit = constant_of(dtype, bits - 1)
    mask = with_element(type_, "i1")
    if arithmetic:
        amount = fn.call("umin", type_, ((type_, b), (type_, limit)))
        return fn.value(f"{opcode} {type_} {a}, {amount}")
    inside = fn.value(f"icmp ule {type_} {b}, {limit}")
    amount = fn.select(inside, mask, b, with_zero(type_), type_)
    return fn.select(inside, mask, fn.value(f"{opcode} {type_} {a}, {amount}"), with_zero(type_), type_)


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
    plain = e.op.startswith("trunc") or not dt.is_signed(dtype) or (natural(fn, e.a) and natural(fn, e.b))
    if plain and natural(fn, e.a) and natural(fn, e.b):
        div, rem = "udiv", "urem"
    if plain:
        result = fn.value(f"{div if wants_quotient else rem} {type_} {a}, {safe}")
    else:
        result = _floor(fn, wants_quotient, a, safe, dtype)
    if by_zero is None:
        return result
    return fn.select(by_zero, with_element(type_, "i1"), with_zero(type_), result, type_)


def _safe_divisor(fn: FunctionEmitter, a: str, b: str, dtype: str) -> tuple[str, str]:
    """(divisor that cannot trap: 1 in place of 0, and of -1 under the smallest integer; whether b is 0)."""
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
    return fn.select(unsafe, mask, constant_of(dtype, 1), b, type_), by_zero


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


@emits(EXPRESSIONS, Cast)
def emit_cast(fn: FunctionEmitter, e: Cast) -> str:
    """Float to integer truncates and saturates (NaN gives 0); a narrower integer wraps; to bool is != 0."""
    source, target = e.value.dtype, e.type
    x = fn.expr(e.value)
    if source == target:
        return x
    return convert(fn, x, source, target)


def convert(fn: FunctionEmitter, x: str, source: str, target: str) -> str:
    """The operand x of dtype source as dtype target (equal lanes)."""
    if dt.lanes_of(source) != dt.lanes_of(target):
        raise CodegenError(f"{fn.name}: cast from {source} to {target} changes the number of lanes")
    from_, to = register_type(source), register_type(target)
    if dt.is_bool(target):
        test = "fcmp une" if dt.is_float(source) else "icmp ne"
        return x if dt.is_bool(source) else fn.value(f"{test} {from_} {x}, {with_zero(from_)}")
    if dt.is_float(source):
        if dt.is_float(target):
            return _resize_float(fn, x, source, target)
        return _saturate(fn, x, source, target)
    if dt.is_float(target):
        return _float_of_integer(fn, x, source, target)
    narrow, wide = dt.bits_of(target), dt.bits_of(source)
    if narrow == wide:
        return x
    opcode = "trunc" if narrow < wide else ("sext" if dt.is_signed(source) else "zext")
    return fn.value(f"{opcode} {from_} {x} to {to}")


def _float_of_integer(fn: FunctionEmitter, x: str, source: str, target: str) -> str:
    """The nearest float; to a small one through a float64 that holds the integer, or is rounded to odd."""
    from_, to = register_type(source), register_type(target)
    opcode = "sitofp" if dt.is_signed(source) else "uitofp"
    if dt.element_of(target) not in SMALL_FLOATS or dt.bits_of(source) <= 16:
        return round_small(fn, fn.value(f"{opcode} {from_} {x} to {to}"), target)
    if dt.bits_of(source) == 64:
        high = fn.value(f"and {from_} {x}, {splat(from_, '-2048')}")
        rest = fn.value(f"icmp ne {from_} {high}, {x}")
        odd = fn.value(f"or {from_} {high}, {splat(from_, '2048')}")
        shifted = fn.value(f"add {from_} {x}, {splat(from_, str(1 << 53))}") if dt.is_signed(source) else x
        large = fn.value(f"icmp ugt {from_} {shifted}, {splat(from_, str(1 << 53 + dt.is_signed(source)))}")
        mask = with_element(from_, "i1")
        x = fn.select(fn.value(f"and {mask} {rest}, {large}"), mask, odd, x, from_)
    double = with_element(from_, "double")
    return _resize_float(fn, fn.value(f"{opcode} {from_} {x} to {double}"),
                         dt.with_lanes("float64", dt.lanes_of(source)), target)


def _resize_float(fn: FunctionEmitter, x: str, source: str, target: str) -> str:
    from_, to = register_type(source), register_type(target)
    if from_ == "double" or from_.endswith("double>"):
        if dt.element_of(target) in SMALL_FLOATS:
            return round_small(fn, _round_to_odd(fn, x, from_), target)
        x = fn.value(f"fptrunc {from_} {x} to {to}")
    elif to != from_:
        x = fn.value(f"fpext {from_} {x} to {to}")
    return round_small(fn, x, target)


def _round_to_odd(fn: FunctionEmitter, x: str, double: str) -> str:
    """float64 to float32 so that a second rounding to 16 bits equals a single one (Boldo and
    Melquiond, 2008).
    """
    single, bits, mask = (
        with_element(double, "float"),
        with_element(double, "i32"),
        with_element(double, "i1"),
    )
    near = fn.value(f"fptrunc {double} {x} to {single}")
    back = fn.value(f"fpext {single} {near} to {double}")
    magnitude = fn.call("fabs", double, ((double, x),))
    rounded = fn.call("fabs", double, ((double, back),))
    raw = fn.value(f"bitcast {single} {near} to {bits}")
    above = fn.value(f"fcmp ogt {double} {rounded}, {magnitude}")
    inexact = fn.value(f"fcmp one {double} {rounded}, {magnitude}")
    down = fn.value(f"add {bits} {raw}, {fn.value(f'sext {mask} {above} to {bits}')}")
    odd = fn.value(f"or {bits} {down}, {fn.value(f'zext {mask} {inexact} to {bits}')}")
    return fn.value(f"bitcast {bits} {odd} to {single}")


def _saturate(fn: FunctionEmitter, x: str, source: str, target: str) -> str:
    """Truncation that saturates; NaN gives 0. LLVM's own intrinsic falls apart into scalars on vectors."""
    from_, to = register_type(source), register_type(target)
    low, high = dt.integer_range(target)
    if dt.lanes_of(target) == 1:
        name = "fptosi.sat" if dt.is_signed(target) else "fptoui.sat"
        return fn.call(name, to, ((from_, x),), mangled=(to, from_))
    mask = with_element(from_, "i1")
    floor, ceiling = (
        constant_of(source_compute(source), float(low)),
        constant_of(source_compute(source), float(high + 1)),
    )
    too_low = fn.value(f"fcmp olt {from_} {x}, {floor}")
    not_high = fn.value(f"fcmp olt {from_} {x}, {ceiling}")
    ordered = fn.value(f"fcmp ord {from_} {x}, {with_zero(from_)}")
    not_low = fn.value(f"fcmp oge {from_} {x}, {floor}")
    inside = fn.value(f"and {mask} {not_low}, {not_high}")
    safe = fn.select(inside, mask, x, with_zero(from_), from_)
    result = fn.value(f"{'fptosi' if dt.is_signed(target) else 'fptoui'} {from_} {safe} to {to}")
    too_high = fn.value(f"xor {mask} {not_high}, splat (i1 true)")
    above = fn.value(f"and {mask} {ordered}, {too_high}")
    result = fn.select(above, mask, constant_of(target, high), result, to)
    return fn.select(too_low, mask, constant_of(target, low), result, to)


def source_compute(dtype: str) -> str:
    """The dtype in which values of dtype are held in registers: float32 for those of 16 and 8 bits."""
    element, lanes = dt.parse(dtype)
    return dt.with_lanes("float32", lanes) if element in SMALL_FLOATS else dtype
