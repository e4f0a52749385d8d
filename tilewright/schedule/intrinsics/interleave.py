"""Interleaving of rows: what lies at the same place of two or four rows is put side by side, by shuffles of vectors.

    Out[j, q] = In[q, j]        # In: t[rows, columns], rows at any distance; Out: t[columns, rows]

It packs an operand of a dot product: the elements that one lane multiplies become neighbours.
"""
from __future__ import annotations

from tilewright.schedule.intrinsics.form import described, description, implementation, operand
from tilewright.tir import dtype as dt
from tilewright.tir.expr import Expr, IntImm, Ramp
from tilewright.tir.llvm_intrinsics import call_llvm_pure_intrin
from tilewright.tir.stmt import Store
from tilewright.tir.tensor_intrin import TensorIntrin

_ROWS = (("int8", 4), ("uint8", 4), ("int8", 2), ("uint8", 2), ("bfloat16", 2))
_SHAPES = [(dtype, rows, columns) for dtype, rows in _ROWS for columns in (8, 16, 32)]


def interleave_name(dtype: str, rows: int, columns: int) -> str:
    """The name under which the intrinsic is registered."""
    return f"interleave_{rows}x{columns}_{dtype}"


def _zipped(parts: list[Expr]) -> Expr:
    """One vector of all lanes: the first lane of each part, then the second of each, and so on."""
    if len(parts) == 1:
        return parts[0]
    a, b = _zipped(parts[::2]), _zipped(parts[1::2])
    return call_llvm_pure_intrin(dt.with_lanes(a.dtype, 2 * dt.lanes_of(a.dtype)), "llvm.vector.interleave2", a, b)


def _register(dtype: str, rows: int, columns: int) -> None:
    name = interleave_name(dtype, rows, columns)
    source, target = described("In", (rows, columns), dtype), described("Out", (columns, rows), dtype)
    desc = description(name, (source, target), (rows, columns), (False, False),
                       lambda q, j: Store(target, source[q, j], (j, q)))
    x, y = operand("In", (rows, columns), dtype, strided=True), operand("Out", (columns, rows), dtype)
    parts: list[Expr] = [x.vload([q, 0], dt.with_lanes(dtype, columns)) for q in range(rows)]
    body = Store(y, _zipped(parts), (IntImm(0), Ramp(IntImm(0), IntImm(1), rows * columns)))
    TensorIntrin.register(name, desc, implementation(name, (x, y), y, False, body))


for _shape in _SHAPES:
    _register(*_shape)
