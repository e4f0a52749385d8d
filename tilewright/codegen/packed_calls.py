"""Calls of packed functions as calls of `tw_call_packed` in the runtime, which native/packed.ll describes."""
from __future__ import annotations

from tilewright.runtime.dtypes import dl_dtype
from tilewright.runtime.printing import PRINT
from tilewright.support.errors import CodegenError
from tilewright.tir import dtype as dt
from tilewright.tir.buffer import Load, pointer_layout, row_major
from tilewright.tir.conversion import cast
from tilewright.tir.expr import Call, Expr, IntImm, StringImm

_WANTED = {"int32": 32, "int64": 64, "float32": 2, "float64": 2, "bool": 1, "handle": 0}


def packed_call(function: str, e: Call, used: bool, parallel: bool) -> Expr:
    """The call_packed `e` of a kernel, as what back ends print; whether its result is used, and it runs on threads.

    A vector arrives as a tensor of its lanes; `print` gets every float with its dtype. Where the packed function is
    missing or raises, or its result is used and no number, the result is 0, later calls are skipped, and the kernel's
    packed entry raises. So is a call one of whose arguments is read outside of a buffer.
    """
    if not e.args or not isinstance(e.args[0], StringImm):
        raise CodegenError(f"{function}: call_packed takes the name as its first argument")
    name = e.args[0].value
    if e.dtype not in _WANTED:
        raise CodegenError(f"{function}: the result of {name} cannot be {e.dtype}")
    kinds, words = "", []
    for a in e.args[1:]:
        kind, own = _argument(function, name, a)
        kinds += kind
        words += own
    failed = f"{function}: the packed function {name!r} failed in a parallel loop" if parallel else ""
    texts = (f"{function}: no packed function {name!r} is registered", failed,
             f"{function}: the packed function {name!r} gave no number, and a {e.dtype} is expected")
    size, wanted = len(name.encode(errors="backslashreplace")), _WANTED[e.dtype] if used else 0
    arguments = (Call("fault", (), "handle"), e.args[0], IntImm(size, "int64"), StringImm(kinds),
                 Call("array", tuple(words) or (_word(0),), "handle"), *map(StringImm, texts), IntImm(wanted))
    pointer = e.dtype == "handle"
    symbol = StringImm("tw_call_packed_pointer" if pointer else "tw_call_packed")
    result = Call("call_extern", (symbol, *arguments), "handle" if pointer else "int64")
    if pointer:
        return result
    return cast(e.dtype, Call("reinterpret", (result,), "float64") if dt.is_float(e.dtype) else result)


def _word(value: int) -> Expr:
    return IntImm(value, "int64")


def _argument(function: str, name: str, e: Expr) -> tuple[str, list[Expr]]:
    """(the letter of its kind, its words)"""
    if isinstance(e, StringImm):
        return "H", [e]
    if isinstance(e, Call) and e.op == "access_ptr":
        first, (extents, steps) = e.args[0], pointer_layout(e)
        if not isinstance(first, Load):
            raise CodegenError(f"{function}: access_ptr takes an element of a buffer first, got {first}")
        sizes = [cast("int64", x) for x in extents]
        strides = row_major(sizes) if steps is None else steps
        address = Call("access_ptr", (first,), "handle")
        return "t", _tensor(address, first.buffer.dtype, 0, [*sizes, *(cast("int64", x) for x in strides)])
    if e.dtype == "handle":
        return "D", [e]
    element, lanes = dt.parse(e.dtype)
    if lanes > 1 or name == PRINT and dt.is_float(element) and element != "float64":
        dims = [_word(lanes), _word(1)] if lanes > 1 else []
        return "t", _tensor(Call("array", (e,), "handle"), element, lanes * dt.bytes_of(element), dims)
    if dt.is_float(element):
        return "C", [Call("reinterpret", (cast("float64", e),), "int64")]
    return "B" if element == "bool" else "u" if element == "uint64" else "A", [cast("int64", e)]


def _tensor(address: Expr, dtype: str, copied: int, dims: list[Expr]) -> list[Expr]:
    """The words of a tensor; `copied`: the bytes of a value, which the tensor gets a copy of."""
    code, bits, lanes = dl_dtype(dtype)
    return [address, _word(code | bits << 8 | lanes << 16), _word(len(dims) // 2), _word(copied), *dims]
