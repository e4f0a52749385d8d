"""The names of T: types, scalar functions, and the forms that shape statements."""
from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from tilewright.script import usage, values
from tilewright.script.operators import as_written, choice, negation, selection
from tilewright.support.errors import IRError, ScriptError, described, nearest, with_hint
from tilewright.support.target import Target
from tilewright.tir import dtype as dt
from tilewright.tir.arithmetic import all_of, any_of, ceildiv, intrinsic, result_type
from tilewright.tir.buffer import Buffer, Load, pointer
from tilewright.tir.conversion import cast, const, convert, match_types, max_value, min_value
from tilewright.tir.expr import Broadcast, Call, Expr, Ramp, Shuffle, StringImm
from tilewright.tir.llvm_intrinsics import call_llvm_intrin, call_llvm_pure_intrin, llvm_lookup_intrinsic_id
from tilewright.tir.low_bit import pack_int4, saturate_cast, unpack_int4
from tilewright.tir.ops import BINARY, INTRINSICS
from tilewright.tir.printer.expressions import DTYPE_FIRST
from tilewright.tir.verify.types import type_mismatch

# T's spelling of the binary operators that the printer writes infix
_OPERATOR_NAMES = {
    "and": "And", "or": "Or", "eq": "EQ", "ne": "NE", "lt": "LT", "le": "LE", "gt": "GT", "ge": "GE", "add": "Add",
    "sub": "Sub", "mul": "Mul", "div": "Div", "bitand": "bitwise_and", "bitor": "bitwise_or", "bitxor": "bitwise_xor",
    "shl": "shift_left", "shr": "shift_right",
}
_FORMS = (
    "grid", "serial", "parallel", "vectorized", "unroll", "thread_binding",                   # loops
    "block", "init", "launch_thread", "LetStmt", "let", "allocate", "decl_buffer",            # with
    "alloc_buffer", "match_buffer", "env_thread", "allocate_const",                           # definitions
    "Assert", "attr", "buffer_store", "reads", "writes", "where", "block_attr", "func_attr", "evaluate", "prim_func",
    "macro", "Let",
)


_NOTHING = (None, "", "void")        # TVM writes the last two for a call whose result nobody takes


def target_of(target_config: str | Mapping[str, Any] | Target, host: Any = None) -> Target:
    """The target of a text such as "llvm -mcpu=znver4", or of a dict: `T.func_attr({"target": T.target("llvm")})`."""
    return Target(target_config, host)


def _stated(name: str, e: Expr, dtype: Any) -> Expr:
    """e, after checking that it has the dtype that the script states, if it states one."""
    if dtype is not None and _dtype_name(dtype) != e.dtype:
        raise ScriptError(f"T.{name} gives {e.dtype} here, not {_dtype_name(dtype)}", "cast the arguments")
    return e


def _operator(op: str) -> Callable[..., Expr]:
    def operate(a: Any, b: Any, dtype: Any = None) -> Expr:
        return _stated(_OPERATOR_NAMES.get(op, op), as_written(op, a, b), dtype)
    operate.__doc__ = usage.of_operator(op)
    return operate


def _dtype_name(x: Any) -> str:
    return x.name if isinstance(x, values.DType) else dt.canonical(x)


def _call(name: str) -> Callable[..., Expr]:
    """T.name(*args, dtype=...) for a row of INTRINSICS."""
    def call(*args: Any, dtype: Any = None) -> Expr:
        return intrinsic(name, *args, dtype=None if dtype in _NOTHING else _dtype_name(dtype))
    return call


def _call_dtype_first(name: str) -> Callable[..., Expr]:
    """T.name("int32", ...): the result's type is the first argument."""
    def call(*args: Any, dtype: Any = None) -> Expr:
        if dtype is None:
            if not args or not isinstance(args[0], (str, values.DType)):
                raise ScriptError(f"T.{name} starts with the dtype of its result", f'T.{name}("int32", ...)')
            dtype, args = args[0], args[1:]
        row = INTRINSICS[name]
        if row.arity >= 0 and len(args) != row.arity:
            raise IRError(f"{name} takes {row.arity} argument(s) after the dtype, {len(args)} given")
        return Call(name, tuple(convert(a) for a in args), "int32" if dtype in _NOTHING else _dtype_name(dtype))
    return call


def _llvm(make: Callable[..., Expr]) -> Callable[..., Expr]:
    """T.call_llvm_pure_intrin("int32x16", name or id, ...), or (name or id, ..., dtype="int32x16") as before."""
    def call(*args: Any, dtype: Any = None) -> Expr:
        given = (dtype, *args) if dtype is not None else args
        if len(given) < 2 or not isinstance(given[0], (str, values.DType)):
            raise ScriptError("an intrinsic of LLVM takes the dtype of its result and a name",
                              'T.call_llvm_pure_intrin("int32", "llvm.ctpop", x)')
        return make(_dtype_name(given[0]), *given[1:])
    return call


def _if_then_else(condition: Any, a: Any, b: Any, dtype: Any = None) -> Expr:
    name = None if dtype is None else _dtype_name(dtype)
    return _stated("if_then_else", choice(condition, a, b, name), dtype)


def _lanes(lanes: Any) -> int:
    if not isinstance(lanes, int) or lanes < 1:
        raise ScriptError(f"the number of lanes is {described(lanes)}")
    return lanes


def _ramp(base: Any, stride: Any, lanes: int) -> Ramp:
    first = convert(base)
    step = stride if isinstance(stride, Expr) else convert(stride, first.dtype)
    if not dt.is_integer(first.dtype) or first.dtype != step.dtype:
        raise IRError(f"T.Ramp: base is {first.dtype}, stride is {step.dtype}; expected one scalar integer type")
    return Ramp(first, step, _lanes(lanes))


def _shuffle(vectors: Any, indices: Any) -> Shuffle:
    parts, lanes = tuple(map(convert, vectors)), tuple(map(int, indices))
    e = Shuffle(parts, lanes)
    wrong = type_mismatch(e)
    if wrong:
        raise IRError(f"T.Shuffle: {wrong}")
    return e


def _address(element: Any) -> Expr:
    if not isinstance(element, Load):
        raise ScriptError(f"T.address_of takes an element, not {described(element)}", "T.address_of(A[0])")
    return Call("access_ptr", (element,), "handle")


def _print(*values: Any) -> Expr:
    """T.print("i =", i, A[i], A): one line on Python's stdout; a buffer is printed whole."""
    shown = [pointer(v) if isinstance(v, Buffer) else convert(v) for v in values]
    return Call("call_packed", (StringImm("print"), *shown), "int32")


def _constant(value: Any, dtype: Any = "int32") -> Expr:
    return const(value, _dtype_name(dtype))


def _call_intrin(dtype: Any, name: str, *args: Any) -> Expr:
    return intrinsic(str(name).removeprefix("tir."), *args, dtype=_dtype_name(dtype))


def _string(value: Any) -> StringImm:
    if not isinstance(value, str):
        raise ScriptError(f"T.StringImm takes a text, not {described(value)}")
    return StringImm(value)


def _absolute(x: Any) -> Expr:
    e = convert(x)
    return Call("abs", (e,), result_type("abs", (e,)))


def _quotient(a: Any, b: Any) -> Expr:
    x, y = match_types(a, b)
    return as_written("div" if dt.is_float(x.dtype) else "truncdiv", x, y)


def _power(a: Any, b: Any) -> Expr:
    return intrinsic("pow", a, b)


def _infinity(dtype: Any) -> Expr:
    """The infinity of a float dtype. Raises ScriptError where there is none."""
    name = _dtype_name(dtype)
    if not dt.is_float(name) or math.isfinite(dt.float_limits(name)[1]):
        raise ScriptError(f"{name} has no infinity", f'T.max_value("{name}") is its largest value')
    return max_value(name)


def _saturate_cast(dtype: Any, value: Any) -> Expr:
    """value in dtype, or the nearest end of dtype's range where it lies beyond."""
    return saturate_cast(_dtype_name(dtype), value)


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{_OPERATOR_NAMES.get(op, op): _operator(op) for op in BINARY},
    **{name: _call(name) for name in INTRINSICS},
    **{name: _call_dtype_first(name) for name in DTYPE_FIRST if name in INTRINSICS},
    "call_pure_extern": _call_dtype_first("call_extern"),
    "Not": negation, "if_then_else": _if_then_else, "Select": selection, "select": selection,
    "Cast": values.cast_as_written, "cast": lambda value, dtype: cast(_dtype_name(dtype), value),
    "saturate_cast": _saturate_cast, "pack_int4": pack_int4, "unpack_int4": unpack_int4,
    "Ramp": _ramp, "ramp": _ramp,
    "Broadcast": lambda value, lanes: Broadcast(convert(value), _lanes(lanes)),
    "broadcast": lambda value, lanes: Broadcast(convert(value), _lanes(lanes)),
    "Shuffle": _shuffle,
    "abs": _absolute, "power": _power, "indexdiv": _operator("floordiv"), "indexmod": _operator("floormod"),
    "Max": _operator("max"), "Min": _operator("min"), "FloorDiv": _operator("floordiv"),
    "FloorMod": _operator("floormod"), "TruncDiv": _operator("truncdiv"), "TruncMod": _operator("truncmod"),
    "call_llvm_pure_intrin": _llvm(call_llvm_pure_intrin), "call_llvm_intrin": _llvm(call_llvm_intrin),
    "llvm_lookup_intrinsic_id": llvm_lookup_intrinsic_id,
    "Ptr": values.pointer_type, "ptr": values.pointer_type, "target": target_of,
    "ceildiv": ceildiv, "all": all_of, "any": any_of, "address_of": _address, "print": _print,
    "StringImm": _string,
    "min_value": lambda dtype: min_value(_dtype_name(dtype)), "max_value": lambda dtype: max_value(_dtype_name(dtype)),
    "infinity": _infinity, "meta_var": values.Meta,
    "const": _constant, "IntImm": lambda dtype, value: const(int(value), _dtype_name(dtype)),
    "FloatImm": lambda dtype, value: const(float(value), _dtype_name(dtype)), "call_intrin": _call_intrin,
    "exp10": lambda x: _power(10.0, x), "fabs": _absolute, "subtract": _operator("sub"),
    "multiply": _operator("mul"), "add": _operator("add"),
    "div": _quotient, "Div": _quotient, "Mod": _operator("truncmod"), "boolean": values.DType("bool"),
    "tvm_storage_sync": lambda scope: intrinsic("sync", scope),
    "var": lambda dtype="int32": values.Fresh(_dtype_name(dtype)),
    "Var": lambda name, dtype="int32": values.Fresh(_dtype_name(dtype)),
    "SizeVar": lambda name, dtype="int32": values.Fresh(_dtype_name(dtype)),
    "dtype": lambda name: values.DType(_dtype_name(name)),
}
_AXES = ("spatial", "reduce", "scan", "opaque", "remap", "S", "R")

NAMES: dict[str, Any] = {
    **{name: fn if isinstance(fn, values.DType) else values.Function(name, fn) for name, fn in _FUNCTIONS.items()},
    **{name: values.Form(name) for name in _FORMS},
    "axis": values.Group("axis", {name: values.Form(f"axis.{name}") for name in _AXES}),
    "Buffer": values.BufferSyntax(), "buffer": values.BufferSyntax(), "buffer_decl": values.BufferSyntax(),
}


# names of TVM's that are not here, by how they start, and why
_GPU = "it is an instruction of a GPU, for which there is no code generation"
_ABSENT = {
    "vscale": "vectors have a constant number of lanes",
    "get_active_lane_mask": "vectors have a constant number of lanes",
    "ptx_": _GPU, "tvm_warp": _GPU,
    "undef": "memory starts unwritten: leave the store out",
    "tvm_struct": "arguments are bound by their types: T.Buffer, T.match_buffer",
}


def lookup(name: str) -> Any:
    """What T.name stands for. Raises AttributeError, with the closest name, where there is none."""
    known = NAMES.get(name)
    if known is not None:
        return known
    if name in INTRINSICS:                              # a row that was added later
        fn = _call_dtype_first(name) if name in DTYPE_FIRST else _call(name)
        return NAMES.setdefault(name, values.Function(name, fn))
    try:
        return NAMES.setdefault(name, values.DType(dt.canonical(name)))
    except IRError:
        hint = next((why for start, why in _ABSENT.items() if name.startswith(start)), "") or nearest(name, NAMES, "T.")
        raise AttributeError(with_hint(f"T has no name {name!r}", hint)) from None
