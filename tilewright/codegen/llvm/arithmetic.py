"""Operators, choices and vectors of constants; minimum and maximum propagate NaN."""
from __future__ import annotations

from collections.abc import Sequence

from tilewright.codegen.llvm.context import EXPRESSIONS, FunctionEmitter, constant_of, emits
from tilewright.codegen.llvm.formulas import inline
from tilewright.codegen.llvm.index import index
from tilewright.codegen.llvm.types import register_type
from tilewright.codegen.queries import is_pure_index, loads_or_calls
from tilewright.codegen.ranges import formula_of
from tilewright.support.errors import CodegenError
from tilewright.tir import dtype as dt
from tilewright.tir.expr import Binary, Broadcast, IntImm, Let, Not, Ramp, Select, Shuffle

_FLOAT = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv"}
_INTEGER = {"add": "add", "sub": "sub", "mul": "mul", "bitand": "and", "bitor": "or", "bitxor": "xor", "shl": "shl",
            "shr": "lshr", "floordiv": "udiv", "truncdiv": "udiv", "floormod": "urem", "truncmod": "urem"}
_FLOAT_COMPARE = {"eq": "oeq", "ne": "une", "lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge"}
_INTEGER_COMPARE = {"eq": "eq", "ne": "ne", "lt": "slt", "le": "sle", "gt": "sgt", "ge": "sge"}


@emits(EXPRESSIONS, Binary)
def emit_binary(fn: FunctionEmitter, e: Binary) -> str:
    """Any operator of tir.ops.BINARY."""
    dtype, op = e.a.dtype, e.op
    if op in ("and", "or"):
        return _logical(fn, e)
    if op in _INTEGER_COMPARE:
        return _compare(fn, e)
    a, b, type_, formula = fn.expr(e.a), fn.expr(e.b), register_type(dtype), formula_of(fn, e)
    if formula is not None:
        return inline(fn, formula, a, b)
    if dt.is_float(dtype):
        return _float(fn, op, a, b, dtype)
    signed = dt.is_signed(dtype)
    if op in ("min", "max"):
        return fn.call(f"{'s' if signed else 'u'}{op}", type_, ((type_, a), (type_, b)))
    return fn.value(f"{'ashr' if op == 'shr' and signed else _INTEGER[op]} {type_} {a}, {b}")


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
    raise CodegenError(f"{fn.name}: the operator {op} has no machine code on {dtype}")


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
    with fn.bound(e.var, fn.expr(e.value)):
        return fn.expr(e.body)


@emits(EXPRESSIONS, Broadcast)
def emit_broadcast(fn: FunctionEmitter, e: Broadcast) -> str:
    return fn.broadcast(fn.expr(e.value), register_type(e.value.dtype), e.lanes)


@emits(EXPRESSIONS, Shuffle)
def emit_shuffle(fn: FunctionEmitter, e: Shuffle) -> str:
    parts, (element, lanes) = [fn.expr(v) for v in e.vectors], dt.parse(e.vectors[0].dtype)
    type_ = register_type(element)
    while len(parts) > 2:
        parts = [_shuffled(fn, type_, lanes, parts[k:k + 2], range(2 * lanes)) for k in range(0, len(parts), 2)]
        lanes *= 2
    if len(e.indices) > 1:
        return _shuffled(fn, type_, lanes, parts, e.indices)
    k = e.indices[0]
    return fn.value(f"extractelement <{lanes} x {type_}> {parts[k // lanes]}, i64 {k % lanes}")


def _shuffled(fn: FunctionEmitter, type_: str, lanes: int, parts: Sequence[str], indices: Sequence[int]) -> str:
    """Lanes of one or two vectors."""
    vector, (a, b) = f"<{lanes} x {type_}>", (*parts, "poison")[:2]
    order = ", ".join(f"i32 {k if k < lanes * len(parts) else 'poison'}" for k in indices)
    return fn.value(f"shufflevector {vector} {a}, {vector} {b}, <{len(indices)} x i32> <{order}>")


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
