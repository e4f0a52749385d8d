"""What a compiled function expects of its arguments.

The packed wrapper of a kernel NAME is

    @NAME__signature = constant [N x i8] <signature_table.encode(signature)>, align 8
    define i32 @__tvm_ffi_NAME(ptr %self, ptr %args, i32 %n, ptr %ret):
        call i32 @tw_run(ptr %args, i32 %n, ptr %ret, ptr @NAME__signature, ptr @NAME__run, ...)

`tw_run` (native/packed.ll) lets tw_check_args compare the arguments with the signature and fill the slots, hands these
to NAME__run(ptr %slots, ptr %result), which calls the kernel with them in order, and raises what the kernel left.

A slot is an i64. Slots 0..b-1 are the data addresses of the b buffer parameters, in order (byte_offset
added). Then come the scalar parameters, in order, then the symbols of `Signature.symbols`, in order. An
integer or bool is sign-extended (uint64: its bits); a float is its bits in its own dtype, in the low bits
(float32: the low 32).
"""
from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Union

# An extent: a number, the name of a symbol or scalar parameter, or (operator, Dim, Dim).
Dim = Union[int, str, tuple]

OPERATORS = {"add": "+", "sub": "-", "mul": "*", "floordiv": "//", "floormod": "%",
             "min": "min", "max": "max"}


@dataclass(frozen=True)
class Param:
    """One parameter: a tensor, or a scalar when `shape` is None.

    `strides` (in elements) None means that the tensor must be compact row-major. `alignment` of the data is
    in bytes (0: that of one element). `written` says that the kernel may store to it, `exclusive` that no other
    argument may overlap its memory, except one that is `pointwise` and lies in exactly the same place: each of its
    elements is read only to compute the element in that place. `updated` says that what is written is the new value of
    what the caller gives. `device` is DLPack's device type.
    """
    name: str
    dtype: str
    shape: tuple[Dim, ...] | None = None
    strides: tuple[Dim, ...] | None = None
    written: bool = False
    alignment: int = 0
    device: int = 1
    exclusive: bool = False
    pointwise: bool = False
    updated: bool = False

    @property
    def is_buffer(self) -> bool:
        return self.shape is not None

    def __str__(self) -> str:
        if self.shape is None:
            return f"{self.name}: {self.dtype}"
        return f"{self.name}: {self.dtype}[{', '.join(dim_text(d) for d in self.shape)}]"


@dataclass(frozen=True)
class Signature:
    """The parameters of a compiled function.

    Symbols are the names in shapes and strides that are no scalar parameter. A symbol is bound where it
    stands alone in a shape or stride for the first time; `symbol_types` gives its integer dtype (default
    int64), which the value must fit.
    """
    name: str
    params: tuple[Param, ...]
    symbol_types: Mapping[str, str] = field(default_factory=dict)

    @property
    def buffers(self) -> tuple[Param, ...]:
        return tuple(p for p in self.params if p.is_buffer)

    @property
    def scalars(self) -> tuple[Param, ...]:
        return tuple(p for p in self.params if not p.is_buffer)

    @property
    def symbols(self) -> tuple[str, ...]:
        """Names of the symbols in the order of their slots: the order in which they are bound."""
        known = {p.name for p in self.scalars}
        found: dict[str, None] = {}
        for _, dim, _ in self.dims():
            if isinstance(dim, str) and dim not in known:
                found.setdefault(dim)
        return tuple(found)

    @property
    def num_slots(self) -> int:
        return len(self.params) + len(self.symbols)

    def slot(self, name: str) -> int:
        """Slot of a parameter or symbol."""
        order = [p.name for p in self.buffers] + [p.name for p in self.scalars] + list(self.symbols)
        return order.index(name)

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.params))})"

    def dims(self) -> Iterator[tuple[Param, Dim, str]]:
        """(parameter, dim, "A.shape[0]") of every extent and stride, in the order of the checks."""
        for p in self.buffers:
            for i, dim in enumerate(p.shape or ()):
                yield p, dim, f"{p.name}.shape[{i}]"
            for i, dim in enumerate(p.strides or ()):
                yield p, dim, f"{p.name}.strides[{i}]"


def dim_text(dim: Dim, nested: bool = False) -> str:
    """The extent as Python text."""
    if not isinstance(dim, tuple):
        return str(dim)
    op, a, b = dim
    if op in ("min", "max"):
        return f"{op}({dim_text(a)}, {dim_text(b)})"
    text = f"{dim_text(a, True)} {OPERATORS[op]} {dim_text(b, True)}"
    return f"({text})" if nested else text
