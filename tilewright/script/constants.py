"""Tables of constants: T.allocate_const, and the buffer that a script then puts over one."""
from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright.script.operators import is_number
from tilewright.script.values import DType, as_extents
from tilewright.support.errors import ScriptError, described
from tilewright.tir import dtype as dt
from tilewright.tir.buffer import Buffer, numel, whole_region
from tilewright.tir.conversion import const
from tilewright.tir.expr import IntImm
from tilewright.tir.stmt import Block, BlockRealize, Store, seq

MOST_VALUES = 1024                   # each is a statement of the function


@dataclass(frozen=True)
class Table:
    """Constants in the order of memory; the buffer that a script puts over them gets a shape."""
    values: tuple[Any, ...]
    dtype: str


def table(data: Any, dtype: Any, extents: Any) -> Table:
    """The table of T.allocate_const. Raises ScriptError for what is no list of numbers, as many as extents say."""
    try:
        values = np.array(data, dtype=object).ravel().tolist()         # as they are: in one dtype some would be rounded
    except ValueError:
        values = [data]
    if not all(map(is_number, values)):
        raise ScriptError(f"T.allocate_const takes numbers, not {described(data)}")
    sizes = as_extents(extents, "extents")
    for e in sizes:
        if not isinstance(e, int):
            raise ScriptError(f"T.allocate_const: the extent {e} is not a constant")
    count = math.prod(sizes)
    if len(values) != count:
        raise ScriptError(f"T.allocate_const: {len(values)} numbers are given for {count} elements")
    if count > MOST_VALUES:
        raise ScriptError(f"T.allocate_const: {count} numbers, the most are {MOST_VALUES}",
                          "pass a large table as an argument")
    return Table(tuple(values), dtype.name if isinstance(dtype, DType) else dt.canonical(dtype))


def filling(given: Table, buffer: Buffer, name: str) -> BlockRealize:
    """The block that stores a table to its buffer. Raises ScriptError for a buffer of another dtype or size."""
    size = numel(buffer)
    if buffer.strides or buffer.elem_offset is not None:
        raise ScriptError(f"{buffer.name} is over constants, which it takes one after the other, from the first on",
                          "leave out strides= and elem_offset=")
    if buffer.dtype != given.dtype or not isinstance(size, IntImm) or size.value != len(given.values):
        raise ScriptError(f"{buffer.name} of {size} {buffer.dtype} cannot be over {len(given.values)} constants of "
                          f"{given.dtype}")
    shape = [int(d.value) for d in buffer.shape]
    stores = [Store(buffer, const(value, buffer.dtype), tuple(IntImm(int(i)) for i in np.unravel_index(n, shape)))
              for n, value in enumerate(given.values)]
    return BlockRealize((), IntImm(1, "bool"), Block(name, (), (), (whole_region(buffer),), seq(stores)))


