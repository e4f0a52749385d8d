"""Calls of registered packed functions through the C interface of apache-tvm-ffi."""
from __future__ import annotations

from tilewright.codegen.llvm.builder import LIKELY
from tilewright.codegen.llvm.context import CALLS, FunctionEmitter, emits
from tilewright.codegen.llvm.faults import fault_global, record_fault
from tilewright.codegen.llvm.index import index
from tilewright.codegen.llvm.memory import address, flat_index
from tilewright.codegen.llvm.small_floats import to_memory
from tilewright.codegen.llvm.types import memory_type, register_type
from tilewright.runtime.dtypes import dl_dtype
from tilewright.runtime.printing import PRINT
from tilewright.support.errors import CodegenError
from tilewright.tir import dtype as dt
from tilewright.tir.buffer import Load, pointer_layout
from tilewright.tir.expr import Call, Expr, StringImm

# TVMFFIAny: i32 type index, i32 padding, 8 bytes of value
INT, BOOL, FLOAT, POINTER, STRING, FIRST_OBJECT, TENSOR = 1, 2, 3, 4, 8, 64, 70
ANY = "{ i32, i32, i64 }"
# DLManagedTensor: data, device type, device id, ndim, dtype (code, bits, lanes in 4 bytes), shape,
# strides, byte offset,
# context, deleter
MANAGED = "{ ptr, i32, i32, i32, i32, ptr, ptr, i64, ptr, ptr }"
MANAGED_BYTES = 64


@emits(CALLS, "call_packed")
def emit_call_packed(fn: FunctionEmitter, e: Call, used: bool = True) -> str:
    """Looks the function up by name, calls it with tensors (access_ptr), numbers and strings, and
    converts the result. A vector arrives as a tensor of its lanes; `print` gets every float with its dtype.

    When it is missing or raises, or its result is `used` and no number, the result is 0, later packed calls are
    skipped, and the kernel's packed entry raises. So is a call one of whose arguments is read outside of a buffer.
    """
    if not e.args or not isinstance(e.args[0], StringImm):
        raise CodegenError(f"{fn.name}: call_packed takes the name as its first argument")
    name, arguments = e.args[0].value, e.args[1:]
    if e.dtype not in ("int32", "int64", "float32", "float64", "bool", "handle"):
        raise CodegenError(f"{fn.name}: the result of {name} cannot be {e.dtype}")
    fault, likely = fault_global(fn), f", !prof {fn.module.metadata(LIKELY)}"
    result, found = fn.alloca(f"{ANY}, align 8", "result"), fn.alloca("ptr, align 8", "function")
    look, call, missing, done = (fn.new_label(x) for x in ("look", "call", "missing", "packed"))
    fn.do(f"store {ANY} zeroinitializer, ptr {result}, align 8")
    operands = [fn.expr(a) if _is_value(a) else "" for a in arguments]
    earlier = fn.effect(f"load atomic ptr, ptr {fault} monotonic, align 8")
    fn.branch(fn.effect(f"icmp eq ptr {earlier}, null"), look, done, likely)
    fn.start(look)
    fn.do(f"store ptr null, ptr {found}, align 8")
    get = fn.module.declare("TVMFFIFunctionGetGlobal", "i32", "ptr, ptr")
    fn.effect(f"call i32 {get}(ptr {_byte_array(fn, name)}, ptr {found})")
    function = fn.effect(f"load ptr, ptr {found}, align 8")
    fn.branch(fn.effect(f"icmp eq ptr {function}, null"), missing, call)
    fn.start(missing)
    record_fault(fn, f"{fn.name}: no packed function {name!r} is registered")
    fn.jump(done)
    fn.start(call)
    with fn.region():
        _invoke(fn, name, function, list(zip(arguments, operands)), result, done,
                e.dtype if used and e.dtype != "handle" else "")
    fn.start(done)
    return _convert_result(fn, result, e.dtype)


def _invoke(
    fn: FunctionEmitter, name: str, function: str, arguments: list[tuple[Expr, str]], result: str, done: str,
    wanted: str,
) -> None:
    """Build the arguments from (expression, its operand where it is a value), call, release what was made for it; ends
    with jumps to `done`. wanted: the dtype of a result that has to be a number.
    """
    values = fn.alloca(f"[{max(1, len(arguments))} x {ANY}], align 8", "args")
    made = [function]
    for k, (argument, operand) in enumerate(arguments):
        slot = fn.value(f"getelementptr inbounds {ANY}, ptr {values}, i64 {k}")
        kind, payload = _argument(fn, argument, operand, name)
        if kind == f"i64 {TENSOR}":
            made.append(payload.removeprefix("ptr "))
        fn.do(f"store {kind}, ptr {slot}, align 8")            # the padding is 0
        fn.do(f"store {payload}, ptr {fn.value(f'getelementptr inbounds i8, ptr {slot}, i64 8')}, align 8")
    call = fn.module.declare("TVMFFIFunctionCall", "i32", "ptr, ptr, i32, ptr")
    release = fn.module.declare("TVMFFIObjectDecRef", "i32", "ptr")
    code = fn.effect(f"call i32 {call}(ptr {function}, ptr {values}, i32 {len(arguments)}, ptr {result})")
    for held in made:
        fn.effect(f"call i32 {release}(ptr {held})")
    returned, failed, drop = (fn.new_label(x) for x in ("returned", "failed", "drop"))
    fn.branch(fn.effect(f"icmp eq i32 {code}, 0"), returned, failed, f", !prof {fn.module.metadata(LIKELY)}")
    fn.start(failed)
    if fn.parallel_depth:                        # the error lies with the worker thread
        record_fault(fn, f"{fn.name}: the packed function {name!r} failed in a parallel loop")
    else:
        fault = fault_global(fn)
        fn.do(f"store atomic ptr {fault}, ptr {fault} monotonic, align 8")
    fn.do(f"store {ANY} zeroinitializer, ptr {result}, align 8")
    fn.jump(done)
    fn.start(returned)
    if wanted:
        _ask_for_number(fn, name, result, done, wanted)
    _release_object(fn, result, release, drop, done, not wanted)


def _ask_for_number(fn: FunctionEmitter, name: str, result: str, done: str, wanted: str) -> None:
    """Jump to `done` with a number; go on with a fault recorded for anything else."""
    kind = fn.effect(f"load i32, ptr {result}, align 8")
    from_int = fn.effect(f"sub i32 {kind}, {INT}")
    other = fn.new_label("other")
    fn.branch(fn.effect(f"icmp ult i32 {from_int}, {FLOAT}"), done, other, f", !prof {fn.module.metadata(LIKELY)}")
    fn.start(other)
    record_fault(fn, f"{fn.name}: the packed function {name!r} gave no number, and a {wanted} is expected")


def _release_object(fn: FunctionEmitter, result: str, release: str, drop: str, done: str, keep: bool) -> None:
    """What came back is used as it is (`keep`) or 0; an object is never used, and its reference is dropped."""
    kind = fn.effect(f"load i32, ptr {result}, align 8")
    where = fn.effect(f"getelementptr inbounds i8, ptr {result}, i64 8")
    plain = fn.new_label("plain")
    fn.branch(fn.effect(f"icmp sge i32 {kind}, {FIRST_OBJECT}"), drop, done if keep else plain)
    fn.start(drop)
    held = fn.effect(f"load ptr, ptr {where}, align 8")
    fn.effect(f"call i32 {release}(ptr {held})")
    fn.jump(plain)
    fn.start(plain)
    fn.do(f"store {ANY} zeroinitializer, ptr {result}, align 8")
    fn.jump(done)


def _convert_result(fn: FunctionEmitter, result: str, dtype: str) -> str:
    """The number that came back by the rules of a cast: floats saturate, integers wrap, a bool is != 0."""
    where = fn.effect(f"getelementptr inbounds i8, ptr {result}, i64 8")
    if dtype == "handle":
        return fn.effect(f"load ptr, ptr {where}, align 8")
    kind = fn.effect(f"load i32, ptr {result}, align 8")
    raw = fn.effect(f"load i64, ptr {where}, align 8")
    is_float = fn.effect(f"icmp eq i32 {kind}, {FLOAT}")
    number = fn.effect(f"bitcast i64 {raw} to double")
    if dt.is_float(dtype):
        whole = fn.effect(f"sitofp i64 {raw} to double")
        value = fn.effect(f"select i1 {is_float}, double {number}, double {whole}")
        return value if dtype == "float64" else fn.effect(f"fptrunc double {value} to float")
    if dtype == "bool":
        some, one = fn.effect(f"fcmp une double {number}, 0.0"), fn.effect(f"icmp ne i64 {raw}, 0")
        return fn.effect(f"select i1 {is_float}, i1 {some}, i1 {one}")
    type_ = register_type(dtype)
    saturate = fn.module.declare(f"llvm.fptosi.sat.{type_}.f64", type_, "double")
    cut = fn.effect(f"call {type_} {saturate}(double {number})")
    low = raw if type_ == "i64" else fn.effect(f"trunc i64 {raw} to {type_}")
    return fn.effect(f"select i1 {is_float}, {type_} {cut}, {type_} {low}")


def _byte_array(fn: FunctionEmitter, text: str) -> str:
    """A constant TVMFFIByteArray."""
    data, size = fn.module.c_string(text), len(text.encode(errors="backslashreplace"))
    return fn.module.global_data(
        f"tw.name.{data[1:]}",
        f"private constant {{ ptr, i64 }} {{ ptr {data}, i64 {size} }}, align 8",
    )


def _is_value(e: Expr) -> bool:
    """True for a number or a vector of numbers: no string, no address."""
    return e.dtype != "handle"


def _argument(fn: FunctionEmitter, e: Expr, value: str, name: str) -> tuple[str, str]:
    """(type index, the 8 bytes) of an argument, each as `type operand`; value is the operand of a number."""
    if e.dtype == "uint64":                      # `runtime/scalars.py` says what comes as a pointer
        large = fn.value(f"icmp slt i64 {value}, 0")
        return f"i64 {fn.value(f'select i1 {large}, i64 {POINTER}, i64 {INT}')}", f"i64 {value}"
    kind, payload = _plain_argument(fn, e, value, name)
    return f"i64 {kind}", payload


def _plain_argument(fn: FunctionEmitter, e: Expr, value: str, name: str) -> tuple[int, str]:
    """`_argument` where the type index follows from the dtype."""
    if isinstance(e, StringImm):
        return STRING, f"ptr {fn.expr(e)}"
    if isinstance(e, Call) and e.op == "access_ptr":
        return TENSOR, f"ptr {_tensor(fn, e)}"
    if e.dtype == "handle":
        return POINTER, f"ptr {fn.expr(e)}"
    if dt.lanes_of(e.dtype) > 1 or name == PRINT and dt.is_float(e.dtype) and e.dtype != "float64":
        return TENSOR, f"ptr {_value_tensor(fn, value, e.dtype)}"
    type_ = register_type(e.dtype)
    if dt.is_float(e.dtype):
        return FLOAT, f"double {value if type_ == 'double' else fn.value(f'fpext {type_} {value} to double')}"
    if e.dtype == "bool":
        return BOOL, f"i64 {fn.value(f'zext i1 {value} to i64')}"
    if dt.bits_of(e.dtype) < 64:
        value = fn.value(f"{'sext' if dt.is_signed(e.dtype) else 'zext'} {type_} {value} to i64")
    return INT, f"i64 {value}"


def _tensor(fn: FunctionEmitter, e: Call) -> str:
    """A new Tensor object for access_ptr(first element, extents...): a DLManagedTensor on the heap,
    freed with it.

    A bare DLTensor would do for C, but a Python function that gets one cannot use it as a tensor.
    """
    first, (extents, steps) = e.args[0], pointer_layout(e)
    if not isinstance(first, Load):
        raise CodegenError(f"{fn.name}: access_ptr takes an element of a buffer first, got {first}")
    data = address(fn, first.buffer, index(fn, flat_index(fn, first.buffer, first.indices)))
    sizes = [index(fn, x) for x in extents]
    strides = None if steps is None else [index(fn, x) for x in steps]
    return _wrapped(fn, _allocated(fn, len(sizes)), data, sizes, first.buffer.dtype, strides)


def _value_tensor(fn: FunctionEmitter, value: str, dtype: str) -> str:
    """A new Tensor object that holds the lanes of a vector, or a scalar with its dtype (no dimension)."""
    lanes, element = dt.lanes_of(dtype), dt.element_of(dtype)
    rank = int(lanes > 1)
    value = to_memory(fn, value, dtype)
    tensor = _allocated(fn, rank, lanes * dt.bytes_of(element))
    data = fn.value(f"getelementptr inbounds i8, ptr {tensor}, i64 {MANAGED_BYTES + 16 * rank}")
    fn.do(f"store {memory_type(dtype)} {value}, ptr {data}, align {dt.bytes_of(element)}")
    return _wrapped(fn, tensor, data, [str(lanes)] * rank, element)


def _allocated(fn: FunctionEmitter, rank: int, size: int = 0) -> str:
    """Memory for a DLManagedTensor, its extents and strides, and `size` bytes of data after them."""
    allocate = fn.module.declare("malloc", "ptr", "i64")
    return fn.effect(f"call ptr {allocate}(i64 {MANAGED_BYTES + 16 * rank + size})")


def _compact_strides(fn: FunctionEmitter, sizes: list[str]) -> list[str]:
    stride, strides = "1", []
    for size in reversed(sizes):
        strides.append(stride)
        stride = size if stride == "1" else fn.value(f"mul nsw i64 {stride}, {size}")
    return strides[::-1]


def _wrapped(fn: FunctionEmitter, tensor: str, data: str, sizes: list[str], dtype: str,
             strides: list[str] | None = None) -> str:
    """The Tensor object of a DLManagedTensor that is filled in here; compact without strides."""
    rank = len(sizes)
    strides = strides or _compact_strides(fn, sizes)
    dims = fn.value(f"getelementptr inbounds i8, ptr {tensor}, i64 {MANAGED_BYTES}")
    for k, number in enumerate([*sizes, *strides]):
        fn.do(
            f"store i64 {number}, ptr {fn.value(f'getelementptr inbounds i64, ptr {dims}, i64 {k}')}, align 8"
        )
    second = fn.value(f"getelementptr inbounds i64, ptr {dims}, i64 {rank}")
    code, bits, lanes = dl_dtype(dtype)
    deleter = fn.module.helper("tw.delete_tensor", lambda: _deleter(fn))
    fields = (
        f"ptr {data}", "i32 1", "i32 0", f"i32 {rank}", f"i32 {code | bits << 8 | lanes << 16}",
        f"ptr {dims}", f"ptr {second}", "i64 0", "ptr null", f"ptr {deleter}",
    )
    for k, field in enumerate(fields):
        where = fn.value(f"getelementptr inbounds {MANAGED}, ptr {tensor}, i64 0, i32 {k}")
        fn.do(f"store {field}, ptr {where}, align 4")
    held = fn.alloca("ptr, align 8", "tensor")
    fn.do(f"store ptr null, ptr {held}, align 8")
    wrap = fn.module.declare("TVMFFITensorFromDLPack", "i32", "ptr, i32, i32, ptr")
    fn.effect(f"call i32 {wrap}(ptr {tensor}, i32 0, i32 0, ptr {held})")
    return fn.effect(f"load ptr, ptr {held}, align 8")


def _deleter(fn: FunctionEmitter) -> str:
    free = fn.module.declare("free", "void", "ptr")
    return (f"define internal void @tw.delete_tensor(ptr %tensor) #0 {{\n  call void {free}(ptr %tensor)\n"
            "  ret void\n}")
