"""Where an access goes: the address, the index of each lane, the mask. `loads` and `stores` make the access."""
from __future__ import annotations

from collections.abc import Iterator

from tilewright.codegen.llvm.context import FunctionEmitter
from tilewright.codegen.llvm.index import index
from tilewright.codegen.llvm.types import lanes_of_type, memory_type, register_type, with_element, with_zero
from tilewright.support.errors import CodegenError, with_hint
from tilewright.tir import dtype as dt
from tilewright.tir.arithmetic import binary
from tilewright.tir.buffer import Buffer
from tilewright.tir.expr import Expr, IntImm, Ramp


def from_memory(fn: FunctionEmitter, x: str, dtype: str) -> str:
    """The register form of a value just loaded: bool from a byte."""
    type_ = memory_type(dtype)
    return fn.value(f"icmp ne {type_} {x}, {with_zero(type_)}") if dt.is_bool(dtype) else x


def to_memory(fn: FunctionEmitter, x: str, dtype: str) -> str:
    """The memory form of a register value."""
    return fn.value(f"zext {register_type(dtype)} {x} to {memory_type(dtype)}") if dt.is_bool(dtype) else x


def pointer(fn: FunctionEmitter, buffer: Buffer) -> str:
    """The address of the buffer's data."""
    found = fn.pointers.get(buffer.data)
    if found is None:
        raise CodegenError(
            with_hint(
                f"{fn.name}: buffer {buffer.name} is neither an argument nor allocated here",
                "its `data` variable must be the one of an argument's buffer or of an Allocate",
            )
        )
    return found


def address(fn: FunctionEmitter, buffer: Buffer, at: str, inbounds: bool = True) -> str:
    """The address of element `at` (an i64 operand)."""
    base = pointer(fn, buffer)
    if at == "0":
        return base
    flag = "inbounds " if inbounds else ""
    return fn.value(f"getelementptr {flag}{memory_type(buffer.dtype)}, ptr {base}, i64 {at}")


def alignment(buffer: Buffer) -> int:
    """Alignment in bytes that every element has."""
    return dt.bytes_of(buffer.dtype)


def first_of(ramp: Ramp) -> Expr:
    """Lowest index of a ramp of stride 1 or -1."""
    return binary("sub", ramp.base, IntImm(ramp.lanes - 1, ramp.base.dtype)) if is_reversed(ramp) else ramp.base


def is_contiguous(ramp: Ramp) -> bool:
    """True for a ramp of stride 1 or -1."""
    return isinstance(ramp.stride, IntImm) and ramp.stride.value in (1, -1)


def is_reversed(ramp: Ramp) -> bool:
    """True for a ramp of stride -1."""
    return isinstance(ramp.stride, IntImm) and ramp.stride.value == -1


def ascending(fn: FunctionEmitter, x: str, type_: str, ramp: Ramp) -> str:
    """The lanes of x, one per index of a contiguous ramp, in the order of their addresses; and back."""
    if not is_reversed(ramp):
        return x
    order = ", ".join(f"i32 {k}" for k in reversed(range(ramp.lanes)))
    return fn.value(f"shufflevector {type_} {x}, {type_} poison, <{ramp.lanes} x i32> <{order}>")


def contiguous(fn: FunctionEmitter, buffer: Buffer, ramp: Ramp, mask: str | None) -> tuple[str, str | None]:
    """Where the elements of a contiguous ramp start, and the mask in the order of addresses."""
    where = address(fn, buffer, index(fn, first_of(ramp)), inbounds=mask is None)
    return where, None if mask is None else ascending(fn, mask, f"<{ramp.lanes} x i1>", ramp)


def lane_addresses(fn: FunctionEmitter, buffer: Buffer, ramp: Ramp) -> Iterator[str]:
    """The address of each lane's element; its code is emitted when it is asked for."""
    for lane in range(ramp.lanes):
        yield address(fn, buffer, lane_index(fn, ramp, lane))


def gathered_addresses(fn: FunctionEmitter, buffer: Buffer, indices: str) -> Iterator[str]:
    """The address of each lane's element, for the elements `indices`, which signed_indices gives."""
    type_ = indices.rpartition(" ")[0]
    wide = with_element(type_, "i64")
    if type_ != wide:
        indices = f"{wide} {fn.value(f'sext {indices} to {wide}')}"
    for lane in range(lanes_of_type(wide)):
        yield address(fn, buffer, fn.value(f"extractelement {indices}, i64 {lane}"))


def lane_index(fn: FunctionEmitter, ramp: Ramp, lane: int) -> str:
    """The i64 operand of base + lane * stride."""
    if lane == 0:
        return index(fn, ramp.base)
    offset = binary("mul", ramp.stride, IntImm(lane, ramp.stride.dtype))
    return index(fn, binary("add", ramp.base, offset))


def addresses(fn: FunctionEmitter, buffer: Buffer, indices: str) -> str:
    """The vector of the addresses of the elements `indices`, which signed_indices gives."""
    return fn.value(f"getelementptr {memory_type(buffer.dtype)}, ptr {pointer(fn, buffer)}, {indices}")


def signed_indices(fn: FunctionEmitter, at: Expr) -> str:
    """`type operand` of the vector `at`, in a type whose sign extension is its value."""
    type_, operand = register_type(at.dtype), fn.expr(at)
    wide = with_element(type_, "i64")
    if dt.is_unsigned(at.dtype) and type_ != wide:
        return f"{wide} {fn.value(f'zext {type_} {operand} to {wide}')}"
    return f"{type_} {operand}"
