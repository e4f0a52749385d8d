"""Interleaving of rows: what lies at the same place of several rows is put side by side, by shuffles of vectors.

    Out[j, q] = In[q, j]                    # In: t[rows, columns], rows at any distance; Out: t[columns, rows]
    Out[s, j, q] = In[j, s * group + q]     # groups of neighbours instead of elements; Out: t[steps, rows, group]

They pack an operand of a dot product: the elements that one lane multiplies become neighbours, or are and stay so.
"""
from __future__ import annotations

from functools import partial

from tilewright.schedule.intrinsics.form import described, description, implementation, operand
from tilewright.tir import dtype as dt
from tilewright.tir.expr import Call, Expr, IntImm, Ramp
from tilewright.tir.llvm_intrinsics import call_llvm_pure_intrin
from tilewright.tir.stmt import PrimFunc, Store
from tilewright.tir.tensor_intrin import TensorIntrin

_ROWS = (("int8", 4), ("uint8", 4), ("int8", 2), ("uint8", 2), ("bfloat16", 2))
STEPS = 4                         # groups of a row that an interleaving of groups takes
_SHAPES = [(dtype, rows, columns) for dtype, rows in _ROWS for columns in (8, 16, 32)]


def interleave_name(dtype: str, rows: int, columns: int) -> str:
    """The name under which the intrinsic is registered."""
    return f"interleave_{rows}x{columns}_{dtype}"


def interleave_groups_name(dtype: str, group: int, rows: int) -> str:
    """The name under which the intrinsic for groups is registered."""
    return f"interleave_{rows}x{STEPS}_groups_of_{group}_{dtype}"


def _zipped(parts: list[Expr]) -> Expr:
    """One vector of all lanes: the first lane of each part, then the second of each, and so on."""
    if len(parts) == 1:
        return parts[0]
    a, b = _zipped(parts[::2]), _zipped(parts[1::2])
    return call_llvm_pure_intrin(dt.with_lanes(a.dtype, 2 * dt.lanes_of(a.dtype)), "llvm.vector.interleave2", a, b)


def _interleave(dtype: str, rows: int, columns: int) -> tuple[PrimFunc, PrimFunc]:
    name = interleave_name(dtype, rows, columns)
    source, target = described("In", (rows, columns), dtype), described("Out", (columns, rows), dtype)
    desc = description(name, (source, target), (rows, columns), (False, False),
                       lambda q, j: Store(target, source[q, j], (j, q)))
    x, y = operand("In", (rows, columns), dtype, strided=True), operand("Out", (columns, rows), dtype)
    parts: list[Expr] = [x.vload([q, 0], dt.with_lanes(dtype, columns)) for q in range(rows)]
    body = Store(y, _zipped(parts), (IntImm(0), Ramp(IntImm(0), IntImm(1), rows * columns)))
    return desc, implementation(name, (x, y), y, False, body)


def _interleave_groups(dtype: str, group: int, rows: int) -> tuple[PrimFunc, PrimFunc]:
    name, row = interleave_groups_name(dtype, group, rows), STEPS * group
    source, target = described("In", (rows, row), dtype), described("Out", (STEPS, rows, group), dtype)
    desc = description(name, (source, target), (rows, STEPS, group), (False, False, False),
                       lambda j, s, q: Store(target, source[j, s * group + q], (s, j, q)))
    x, y = operand("In", (rows, row), dtype, strided=True), operand("Out", (STEPS, rows, group), dtype)
    words = f"int{dt.bits_of(dtype) * group}x{STEPS}"
    parts: list[Expr] = [Call("reinterpret", (x.vload([j, 0], dt.with_lanes(dtype, row)),), words) for j in range(rows)]
    value = Call("reinterpret", (_zipped(parts),), dt.with_lanes(dtype, rows * row))
    body = Store(y, value, (IntImm(0), IntImm(0), Ramp(IntImm(0), IntImm(1), rows * row)))
    return desc, implementation(name, (x, y), y, False, body)


for _dtype, _group in _ROWS:
    for _count in (8, 16):
        _what = _dtype, _group, _count
        TensorIntrin.register_maker(interleave_groups_name(*_what), partial(_interleave_groups, *_what))
for _shape in _SHAPES:
    TensorIntrin.register_maker(interleave_name(*_shape), partial(_interleave, *_shape))
