"""Tables: constant arrays of the module, read where their index is cut to them."""
from __future__ import annotations

import hashlib

from tilewright.codegen.llvm.builder import bytes_literal
from tilewright.codegen.llvm.context import CALLS, FunctionEmitter, constant_of, emits
from tilewright.codegen.llvm.types import memory_type, register_type
from tilewright.tir import dtype as dt
from tilewright.tir.expr import Call, Expr, IntImm, Ramp, StringImm
from tilewright.tir.table import array_of

_BEHIND = 64                    # elements behind the last, for vectors that start inside


@emits(CALLS, "table")
def emit_table(fn: FunctionEmitter, e: Call) -> str:
    """A load; of neighbours, one vector load; of other lanes, a load each."""
    data, index = e.args
    assert isinstance(data, StringImm)
    element, lanes = dt.parse(e.type)
    values = array_of(data.value, element)
    raw = values.tobytes() + bytes(_BEHIND * values.itemsize)
    name = f".table.{hashlib.blake2b(raw, digest_size=8).hexdigest()}.{element}"
    base = fn.module.global_data(
        name, f"private unnamed_addr constant [{len(raw)} x i8] {bytes_literal(raw)}, align 64")
    if isinstance(index, Ramp) and isinstance(index.stride, IntImm) and index.stride.value == 1 and lanes <= _BEHIND:
        at = _cut(fn, index.base, len(values) - 1)
        return _load(fn, base, element, e.type, _wide(fn, index.base, at))
    at = _cut(fn, index, len(values) - 1)
    if lanes == 1:
        return _load(fn, base, element, element, _wide(fn, index, at))
    out, vector = "poison", register_type(e.type)
    for k in range(lanes):
        lane = fn.value(f"extractelement {register_type(index.dtype)} {at}, i32 {k}")
        x = _load(fn, base, element, element, _wide(fn, index, lane))
        out = fn.value(f"insertelement {vector} {out}, {register_type(element)} {x}, i32 {k}")
    return out


def _cut(fn: FunctionEmitter, index: Expr, last: int) -> str:
    """The index, or the last one of the table where it is beyond (as unsigned numbers)."""
    type_ = register_type(index.dtype)
    return fn.call("umin", type_, ((type_, fn.expr(index)), (type_, constant_of(index.dtype, last))))


def _wide(fn: FunctionEmitter, index: Expr, at: str) -> str:
    type_ = register_type(dt.element_of(index.dtype))
    return at if type_ == "i64" else fn.value(f"zext {type_} {at} to i64")


def _load(fn: FunctionEmitter, base: str, element: str, dtype: str, at: str) -> str:
    address = fn.value(f"getelementptr {memory_type(element)}, ptr {base}, i64 {at}")
    return fn.value(f"load {register_type(dtype)}, ptr {address}, align {dt.bytes_of(element)}")
