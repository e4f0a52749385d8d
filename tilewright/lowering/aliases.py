"""One buffer for memory that buffers of several names lead to."""
from __future__ import annotations

from collections.abc import Mapping, Sequence

from tilewright.lowering.copying import Copier
from tilewright.lowering.flatten_buffers import distance
from tilewright.support.errors import LowerError
from tilewright.tir.buffer import Buffer, Load, reach
from tilewright.tir.expr import Expr, Var
from tilewright.tir.node import walk
from tilewright.tir.stmt import Allocate, PrimFunc, Stmt, Store


def with_one_name(func: PrimFunc) -> PrimFunc:
    """func, where one flat buffer stands for all that have a pointer and a type in common. Expects loops.

    Passes take two buffers for two pieces of memory. An argument that only one buffer leads to stays as it is. Raises
    LowerError for allocated memory that is seen as elements of two types.
    """
    allocated = {s.buffer.data: s for s in walk(func.body) if isinstance(s, Allocate)}
    homes = {b.data: b for b in func.buffers} | {data: s.buffer for data, s in allocated.items()}
    names: dict[Var, dict[int, Buffer]] = {}
    for n in walk(func.body):
        if isinstance(n, (Load, Store)) and n.buffer.data in homes:
            names.setdefault(n.buffer.data, {})[id(n.buffer)] = n.buffer
    flat: dict[Var, Buffer] = {}
    for data, found in names.items():
        home, s = homes[data], allocated.get(data)
        other = next((b for b in found.values() if b is not home), None)
        if other is None or s is None and len(found) == 1:
            continue
        if s is not None and other.dtype != home.dtype:
            raise LowerError(f"{func.name}: the memory of {home.name} is of {home.dtype}, {other.name} sees it as "
                             f"{other.dtype}", "reinterpret the values")
        flat[data] = home.replace(shape=(reach(home),), strides=(), elem_offset=None)
    return func.with_body(_Merging(flat)(func.body)) if flat else func


class _Merging(Copier):
    def __init__(self, flat: Mapping[Var, Buffer]) -> None:
        super().__init__()
        self.flat = flat

    def access(self, buffer: Buffer, indices: Sequence[Expr]) -> tuple[Buffer, tuple[Expr, ...]]:
        new = self.flat.get(buffer.data)
        if new is None or new.dtype != buffer.dtype:
            return super().access(buffer, indices)
        return new, (distance(buffer, [self(i) for i in indices]),)

    def allocate(self, s: Allocate) -> Stmt:
        new = self.flat.get(s.buffer.data)
        return super().allocate(s) if new is None else Allocate(new, self(s.body), s.annotations)
