"""Tables: constant arrays of the module, read where their index is cut to them."""
from __future__ import annotations

import hashlib

from tilewright.codegen.llvm.builder import bytes_literal
from tilewright.codegen.llvm.context import CALLS, FunctionEmitter, constant_of, emits
from tilewright.codegen.llvm.index import index as wide_index
from tilewright.codegen.llvm.types import memory_type, register_type
from tilewright.tir import dtype as dt
from tilewright.tir.constant_table import array_of
from tilewright.tir.expr import Call, IntImm, Ramp, StringImm

_MARGIN = 64                    # elements before the first and behind the last, for vectors that are partly outside


@emits(CALLS, "table")
def emit_table(fn: FunctionEmitter, e: Call) -> str:
    """A load; of neighbours, one vector load; of other lanes, a load each."""
    data, index = e.args
    assert isinstance(data, StringImm)
    element, lanes = dt.parse(e.type)
    values = array_of(data.value, element)
    margin = bytes(_MARGIN * values.itemsize)
    raw = margin + values.tobytes() + margin
    name = f".table.{hashlib.blake2b(raw, digest_size=8).hexdigest()}.{element}"
    table = fn.module.global_data(
        name, f"private unnamed_addr constant [{len(raw)} x i8] {bytes_literal(raw)}, align 64")
    base = fn.value(f"getelementptr i8, ptr {table}, i64 {len(margin)}")
    if isinstance(index, Ramp) and isinstance(index.stride, IntImm) and index.stride.value == 1 and lanes <= _MARGIN:
        first = fn.call("smax", "i64", (("i64", wide_index(fn, index.base)), ("i64", str(-_MARGIN))))
        first = fn.call("smin", "i64", (("i64", first), ("i64", str(len(values) - 1))))
        return _load(fn, base, element, e.type, first)
    if lanes == 1:
        at = fn.call("umin", "i64", (("i64", wide_index(fn, index)), ("i64", str(len(values) - 1))))
        return _load(fn, base, element, element, at)
    type_, one = register_type(index.dtype), register_type(dt.element_of(index.dtype))      # cut as unsigned numbers
    last = constant_of(index.dtype, min(len(values) - 1, (1 << dt.bits_of(index.dtype)) - 1))
    at = fn.call("umin", type_, ((type_, fn.expr(index)), (type_, last)))
    out, vector = "poison", register_type(e.type)
    for k in range(lanes):
        lane = fn.value(f"extractelement {type_} {at}, i32 {k}")
        x = _load(fn, base, element, element, lane if one == "i64" else fn.value(f"zext {one} {lane} to i64"))
        out = fn.value(f"insertelement {vector} {out}, {register_type(element)} {x}, i32 {k}")
    return out


def _load(fn: FunctionEmitter, base: str, element: str, dtype: str, at: str) -> str:
    address = fn.value(f"getelementptr {memory_type(element)}, ptr {base}, i64 {at}")
    return fn.value(f"load {register_type(dtype)}, ptr {address}, align {dt.bytes_of(element)}")
