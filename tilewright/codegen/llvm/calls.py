"""Calls: functions of the operator table, C functions, packed functions, hints."""
from __future__ import annotations

from tilewright.codegen.llvm.builder import CHOSEN
from tilewright.codegen.llvm.casts import convert
from tilewright.codegen.llvm.context import CALLS, EXPRESSIONS, FunctionEmitter, emits
from tilewright.codegen.llvm.faults import fault_of, leave_unless
from tilewright.codegen.llvm.formulas import elementary
from tilewright.codegen.llvm.index import index
from tilewright.codegen.llvm.memory import address, to_memory
from tilewright.codegen.llvm.types import memory_type, register_type, with_element
from tilewright.codegen.packed_calls import packed_call
from tilewright.codegen.queries import c_function, flat_index, loads_or_calls
from tilewright.formulas import FUNCTIONS, formula_of
from tilewright.lowering.messages import readable
from tilewright.support.errors import CodegenError, with_hint
from tilewright.tir import dtype as dt
from tilewright.tir.arithmetic import conjuncts
from tilewright.tir.assertion import failure
from tilewright.tir.buffer import Load
from tilewright.tir.conversion import cast
from tilewright.tir.expansion import expanded
from tilewright.tir.expr import Call, Expr, StringImm
from tilewright.tir.ops import INTRINSICS


@emits(EXPRESSIONS, Call)
def emit_call(fn: FunctionEmitter, e: Call) -> str:
    """A call of any row of tir.ops.INTRINSICS: by its rule in CALLS, or as the row says."""
    emit = CALLS.get(e.op)
    if emit is not None:
        result = emit(fn, e)
        fn.time += INTRINSICS[e.op].kind == "effect"
        return result
    if INTRINSICS[e.op].llvm:
        return _native(fn, e, *INTRINSICS[e.op].llvm)
    if e.op in FUNCTIONS:
        name, args = formula_of(e)
        return elementary(fn, name, register_type(e.dtype), [fn.expr(a) for a in args])
    if INTRINSICS[e.op].expansion is not None:
        return fn.expr(expanded(e))
    raise CodegenError(f"{fn.name}: the function {e.op} has no machine code for a CPU")


def _native(fn: FunctionEmitter, e: Call, name: str, *constants: str) -> str:
    """LLVM's intrinsic `name` of the arguments and the constants ("i1 false"), all of the arguments' type."""
    source = e.args[0].dtype
    type_ = register_type(source)
    operands = [(type_, fn.expr(a)) for a in e.args]
    value = fn.call(name, type_, (*operands, *((c.split()[0], c.split()[1]) for c in constants)))
    return value if source == e.dtype else convert(fn, value, source, e.dtype)


@emits(CALLS, "ldexp")
def emit_ldexp(fn: FunctionEmitter, e: Call) -> str:
    """x * 2**k for a k of 32 bits; longer ones are cut."""
    (k, x), type_ = map(fn.expr, e.args), register_type(e.dtype)
    exponents = with_element(type_, "i32")
    if dt.bits_of(e.args[0].dtype) > 32:
        k = fn.value(f"trunc {register_type(e.args[0].dtype)} {k} to {exponents}")
    return fn.call("ldexp", type_, ((type_, x), (exponents, k)), mangled=(type_, exponents))


@emits(CALLS, "abs")
def emit_abs(fn: FunctionEmitter, e: Call) -> str:
    type_, x = register_type(e.dtype), fn.expr(e.args[0])
    if dt.is_float(e.dtype):
        return fn.call("fabs", type_, ((type_, x),))
    if not dt.is_signed(e.dtype):
        return x
    return fn.call("abs", type_, ((type_, x), ("i1", "false")))


@emits(CALLS, "likely")
def emit_likely(fn: FunctionEmitter, e: Call) -> str:
    outer, fn.in_guard = fn.in_guard, True
    try:
        return fn.expr(e.args[0])
    finally:
        fn.in_guard = outer


@emits(CALLS, "if_then_else")
def emit_if_then_else(fn: FunctionEmitter, e: Call) -> str:
    """Only the chosen side is evaluated, by a branch where that matters."""
    condition, a, b = e.args
    type_, test = register_type(e.dtype), fn.expr(condition)
    if not loads_or_calls(a) and not loads_or_calls(b):
        return fn.select(test, register_type(condition.dtype), fn.expr(a), fn.expr(b), type_)
    if dt.lanes_of(condition.dtype) > 1:
        raise CodegenError(f"{fn.name}: a choice on vectors reads for some lanes only: {e}")
    exists = any(isinstance(c, Call) and c.op == "inside" for c in conjuncts(condition))
    then, otherwise, done = fn.new_label("then"), fn.new_label("else"), fn.new_label("read" if exists else CHOSEN)
    fn.branch(test, then, otherwise)
    incoming = []
    for label, side in ((then, a), (otherwise, b)):
        fn.start(label)
        with fn.region():
            value = fn.expr(side)
        incoming.append(f"[ {value}, %{fn.label} ]")
        fn.jump(done)
    fn.start(done)
    return fn.effect(f"phi {type_} {', '.join(incoming)}")


@emits(CALLS, "assume")
def emit_assume(fn: FunctionEmitter, e: Call) -> str:
    fn.do(f"call void {fn.module.declare('llvm.assume', 'void', 'i1')}(i1 {fn.expr(e.args[0])})")
    return "0"


@emits(CALLS, "ret")
def emit_ret(fn: FunctionEmitter, e: Call) -> str:
    """Leaves the value, in 64 bits, where the packed entry asks for it."""
    value = e.args[0]
    wide = "float64" if dt.is_float(value.dtype) else "int64"
    fn.do(f"store {register_type(wide)} {fn.expr(cast(wide, value))}, ptr %result, align 8")
    return "0"


@emits(CALLS, "Assert")
def emit_assert(fn: FunctionEmitter, e: Call) -> str:
    """Leaves the message of the first one that fails for the packed entry, which raises it, and returns."""
    leave_unless(fn, fn.expr(e.args[0]), f"{fn.name}: {failure(e.args[1], readable(e.args[0]))}")
    return "0"


@emits(CALLS, "prefetch")
def emit_prefetch(fn: FunctionEmitter, e: Call) -> str:
    """Bring the line of an element near, for reading."""
    where = _address_of(fn, e, e.args[0])
    symbol = fn.module.declare("llvm.prefetch.p0", "void", "ptr, i32, i32, i32")
    fn.do(f"call void {symbol}(ptr {where}, i32 0, i32 3, i32 1)")
    return "0"


@emits(CALLS, "access_ptr")
def emit_access_ptr(fn: FunctionEmitter, e: Call) -> str:
    """The address of an element: access_ptr(Load)."""
    return _address_of(fn, e, e.args[0])


def _address_of(fn: FunctionEmitter, call: Call, e: Expr) -> str:
    if isinstance(e, Load) and dt.lanes_of(e.dtype) == 1:
        return address(fn, e.buffer, index(fn, flat_index(fn.name, e.buffer, e.indices)), inbounds=False)
    if e.dtype == "handle" and not isinstance(e, StringImm):
        return fn.expr(e)
    raise CodegenError(with_hint(f"{fn.name}: {call.op} takes an element of a buffer, got {e}", "write A[i]"))

@emits(EXPRESSIONS, StringImm)
def emit_string(fn: FunctionEmitter, e: StringImm) -> str:
    return fn.module.c_string(e.value)


@emits(CALLS, "call_extern")
def emit_extern(fn: FunctionEmitter, e: Call) -> str:
    """A C function: arguments by their dtypes (bool as i8, floats of 16 and 8 bits are refused), the result e.dtype."""
    symbol, arguments = c_function(fn.name, e)
    types = [_c_type(a.dtype) for a in arguments]
    operands = [_to_c(fn, a) for a in arguments]
    result = _c_type(e.dtype)
    wanted = f"declare {result} @{symbol}({', '.join(types)})"
    known = fn.module.signature_of(symbol)
    if known is not None and known != wanted:
        raise CodegenError(f"{fn.name}: {symbol} is called as `{wanted}` and elsewhere as `{known}`")
    fn.module.declare(symbol, result, ", ".join(types))
    value = fn.effect(
        f"call {result} @{symbol}({', '.join(f'{t} {v}' for t, v in zip(types, operands, strict=True))})"
    )
    return fn.value(f"icmp ne i8 {value}, 0") if e.dtype == "bool" else value


def _c_type(dtype: str) -> str:
    return "i8" if dtype == "bool" else register_type(dtype)


def _to_c(fn: FunctionEmitter, e: Expr) -> str:
    x = fn.expr(e)
    return fn.value(f"zext i1 {x} to i8") if e.dtype == "bool" else x


@emits(CALLS, "call_packed")
def emit_packed(fn: FunctionEmitter, e: Call, used: bool = True) -> str:
    return fn.expr(packed_call(fn.name, e, used, fn.in_parallel))


@emits(CALLS, "array")
def emit_array(fn: FunctionEmitter, e: Call) -> str:
    type_ = memory_type(e.args[0].dtype) if len(e.args) == 1 else f"[{len(e.args)} x i64]"
    where = fn.alloca(f"{type_}, align 8", "array")
    for k, a in enumerate(e.args):
        slot = fn.value(f"getelementptr inbounds i64, ptr {where}, i64 {k}") if k else where
        fn.do(f"store {memory_type(a.dtype)} {to_memory(fn, fn.expr(a), a.dtype)}, ptr {slot}, align 8")
    return where


@emits(CALLS, "fault")
def emit_fault(fn: FunctionEmitter, e: Call) -> str:
    return fault_of(fn)


@emits(CALLS, "sync")
def emit_sync(fn: FunctionEmitter, e: Call) -> str:
    raise CodegenError(f"{fn.name}: a barrier of a thread block has no machine code for a CPU")
