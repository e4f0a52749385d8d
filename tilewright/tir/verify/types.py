"""The dtype rules of expressions, one case per class."""
from __future__ import annotations

from tilewright.tir import dtype as dt
from tilewright.tir.constant_table import mismatch as table_mismatch
from tilewright.tir.expr import (
    Binary,
    Broadcast,
    Call,
    Cast,
    Expr,
    FloatImm,
    IntImm,
    Not,
    Ramp,
    Select,
    Shuffle,
    StringImm,
)
from tilewright.tir.iter_var import Range
from tilewright.tir.llvm_intrinsics import LLVM_CALLS
from tilewright.tir.node import Node
from tilewright.tir.ops import BINARY, INTRINSICS


def type_mismatch(e: Node) -> str:
    """What is wrong with the dtypes of e, or an empty string."""
    match e:                                            # the frequent classes first
        case IntImm(value, type_):
            if not (dt.is_integer(type_) or type_ == "bool"):
                return f"an integer constant of type {type_}"
            low, high = dt.integer_range(type_)
            return "" if low <= value <= high else f"{value} does not fit {type_}"
        case Range(min_, extent):
            fits = dt.is_integer(min_.dtype) and min_.dtype == extent.dtype
            return "" if fits else f"min is {min_.dtype}, extent is {extent.dtype}"
        case Binary(op, a, b):
            row = BINARY.get(op)
            if row is None:
                return f"{op} is not an operator"
            if a.dtype != b.dtype:
                return f"the operands are {a.dtype} and {b.dtype}"
            if row.logical and not dt.is_bool(a.dtype):
                return f"the operands are {a.dtype}, not bools"
            expected = dt.with_lanes("bool", dt.lanes_of(a.dtype)) if row.compares else a.dtype
            return "" if e.dtype == expected else f"the type is {e.dtype}, expected {expected}"
        case Not(a):
            return "" if dt.is_bool(a.dtype) else f"the operand is {a.dtype}, not a bool"
        case Cast(type_, value):
            same = dt.lanes_of(type_) == dt.lanes_of(value.dtype)
            return "" if same else f"a cast from {value.dtype} to {type_} changes the lanes"
        case Select(condition, a, b):
            return _choice(condition, a, b)
        case Ramp(base, stride, lanes):
            if base.dtype != stride.dtype or not dt.is_integer(base.dtype) or dt.lanes_of(base.dtype) > 1:
                return f"base is {base.dtype}, stride is {stride.dtype}; expected one scalar integer type"
            return "" if lanes > 1 else f"{lanes} lane(s)"
        case Broadcast(value, lanes):
            return "" if dt.lanes_of(value.dtype) == 1 and lanes > 1 else f"{lanes} copies of {value.dtype}"
        case Shuffle(vectors, indices):
            return _shuffle(vectors, indices)
        case Call():
            return _call(e)
        case FloatImm(_, type_):
            return "" if dt.is_float(type_) else f"a float constant of type {type_}"
        case StringImm():
            return ""
    return f"{type(e).__name__} cannot stand in an expression"


def _choice(condition: Expr, a: Expr, b: Expr) -> str:
    if not dt.is_bool(condition.dtype):
        return f"the condition is {condition.dtype}"
    if a.dtype != b.dtype:
        return f"the branches are {a.dtype} and {b.dtype}"
    lanes = dt.lanes_of(condition.dtype)
    return "" if lanes in (1, dt.lanes_of(a.dtype)) else \
        f"the condition has {lanes} lanes, the branches are {a.dtype}"


def _shuffle(vectors: tuple[Expr, ...], indices: tuple[int, ...]) -> str:
    types = {v.dtype for v in vectors}
    if not types:
        return "there are no vectors"
    if len(types) != 1 or dt.lanes_of(min(types)) < 2 or not indices:
        return f"{len(indices)} lane(s) of {', '.join(v.dtype for v in vectors)}; expected vectors of one type"
    lanes = len(vectors) * dt.lanes_of(min(types))
    outside = [k for k in indices if not 0 <= k < lanes]
    return f"lane {outside[0]} of {lanes}" if outside else ""


def reinterpret_mismatch(source: str, target: str) -> str:
    """What is wrong with reading the bits of one dtype as another, or an empty string."""
    widths = [dt.bits_of(t) * dt.lanes_of(t) for t in (source, target)]
    if any(dt.is_bool(t) or dt.element_of(t) == "handle" for t in (source, target)) or widths[0] != widths[1]:
        return f"{source} and {target} have different sizes"
    return ""


_TAKES = {"float": dt.is_float, "integer": dt.is_integer}


def _call(e: Call) -> str:
    row = INTRINSICS.get(e.op)
    if row is None:
        return f"{e.op} is not an intrinsic function"
    if row.arity >= 0 and len(e.args) != row.arity:
        return f"{e.op} takes {row.arity} argument(s), {len(e.args)} given"
    if e.op == "if_then_else":
        return _choice(*e.args) or ("" if e.type == e.args[1].dtype else f"the type is {e.type}")
    if row.kind == "math":
        types = {a.dtype for a in e.args} | {e.type}
        return "" if len(types) == 1 and dt.is_float(e.type) else f"the types are {', '.join(sorted(types))}"
    if row.operands and not all(_TAKES[row.operands](a.dtype) for a in e.args):
        return f"{e.op} takes {row.operands}s, not {', '.join(a.dtype for a in e.args)}"
    if e.op == "reinterpret":
        return reinterpret_mismatch(e.args[0].dtype, e.type)
    if e.op == "table":
        return table_mismatch(e)
    if e.op in LLVM_CALLS:
        return "" if e.args and isinstance(e.args[0], StringImm) else f"the first argument of {e.op} is no name"
    if e.op == "Assert" and not isinstance(e.args[1], StringImm):
        return "the message is no text"
    if e.op in ("likely", "assume", "Assert") and not dt.is_bool(e.args[0].dtype):
        return f"the {'condition' if e.op == 'Assert' else 'argument'} is {e.args[0].dtype}, not a bool"
    return ""
