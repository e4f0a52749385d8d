"""Errors found while a kernel runs: an index that lies outside, an assertion that does not hold, a failed callback.

A kernel returns nothing, so it leaves a message in a place of the call (native/fault.ll) and goes on without the
access, or returns where an assertion does not hold; who made the place finds the message there and raises it.
"""
from __future__ import annotations

from tilewright.codegen.llvm.builder import LIKELY, ModuleBuilder
from tilewright.codegen.llvm.casts import convert
from tilewright.codegen.llvm.context import CALLS, FunctionEmitter, emits
from tilewright.codegen.llvm.index import index
from tilewright.tir import dtype as dt
from tilewright.tir.expr import Call, StringImm

TEXT_BYTES = 1024            # of a message with values, the end of the text included


def own_fault(module: ModuleBuilder, name: str) -> str:
    """`@NAME__fault`: the place for the message of a kernel that is called without one."""
    type_ = f"{{ ptr, [{TEXT_BYTES} x i8] }}"
    return module.global_data(f"{name}__fault", f"internal global {type_} zeroinitializer, align 8")


def fault_of(fn: FunctionEmitter) -> str:
    """The place of this call: in it null, a message, or its own address when a called function has raised already.

    A thread has the same one from the begin of a function to its end.
    """
    place = fn.module.declare("tw_fault", "ptr", "ptr", "nounwind willreturn memory(none)")
    return fn.effect(f"call ptr {place}(ptr {own_fault(fn.module, fn.name)})")


def record_fault(fn: FunctionEmitter, message: str) -> None:
    """Leave a message for the packed entry, unless there is one already."""
    fn.effect(f"cmpxchg ptr {fault_of(fn)}, ptr null, ptr {fn.module.c_string(message)} monotonic monotonic, align 8")


@emits(CALLS, "no_fault")
def emit_no_fault(fn: FunctionEmitter, e: Call) -> str:
    """Whether no fault is recorded yet."""
    found = fn.effect(f"load atomic ptr, ptr {fault_of(fn)} monotonic, align 8")
    return fn.value(f"icmp eq ptr {found}, null")


@emits(CALLS, "inside")
def emit_inside(fn: FunctionEmitter, e: Call) -> str:
    """The lanes whose index is inside. The first that is outside leaves a message, with values where it has any."""
    mask, at, extent, text = e.args
    assert isinstance(text, StringImm)
    lanes, n = dt.lanes_of(e.type), index(fn, extent)
    if lanes == 1:
        value = index(fn, at)
        ok = fn.value(f"icmp ult i64 {value}, {n}")
        bad, done = _branch_unless(fn, ok)
    else:
        type_, wide = f"<{lanes} x i1>", f"<{lanes} x i64>"
        values = convert(fn, fn.expr(at), at.dtype, dt.with_lanes("int64", lanes))
        inside, held = fn.value(f"icmp ult {wide} {values}, {fn.broadcast(n, 'i64', lanes)}"), fn.expr(mask)
        every = held == "splat (i1 true)"
        outside = fn.value(f"and {type_} {fn.value(f'xor {type_} {inside}, splat (i1 true)')}, {held}")
        ok = inside if every else fn.value(f"and {type_} {inside}, {held}")
        bad, done = _branch_unless(fn, fn.all_of(f"{type_} {ok}") if every else
                                   fn.value(f"xor i1 {fn.any_of(f'{type_} {outside}')}, true"))
    fn.start(bad)
    if "$lld" not in text.value:
        record_fault(fn, text.value.replace("%%", "%"))
        fn.jump(done)
        fn.start(done)
        return ok
    if lanes > 1:
        with fn.region():
            bits = f"i{lanes}", fn.value(f"bitcast {type_} {outside} to i{lanes}")
            lane = fn.call("cttz", f"i{lanes}", (bits, ("i1", "true")))
        value = fn.effect(f"extractelement {wide} {values}, i{lanes} {lane}")
    fn.do(f"call void {fn.module.helper(f'{fn.name}__outside', lambda: _outside(fn))}"
          f"(ptr {fn.module.c_string(text.value)}, i64 {value}, i64 {n})")
    fn.jump(done)
    fn.start(done)
    return ok


@emits(CALLS, "some")
def emit_some(fn: FunctionEmitter, e: Call) -> str:
    return fn.any_of(fn.typed(e.args[0]))


def _branch_unless(fn: FunctionEmitter, ok: str) -> tuple[str, str]:
    """(the block where ok is false, the one where it is true)"""
    bad, good = fn.new_label("fault"), fn.new_label("checked")
    fn.branch(ok, good, bad, f", !prof {fn.module.metadata(LIKELY)}")
    return bad, good


def _outside(fn: FunctionEmitter) -> str:
    """The function that leaves a message with an index and an extent, unless there is a message already."""
    symbol = fn.module.declare("snprintf", "i32", "ptr, i64, ptr, ...")
    place = fn.module.declare("tw_fault", "ptr", "ptr", "nounwind willreturn memory(none)")
    return f"""define internal void @{fn.name}__outside(ptr %form, i64 %index, i64 %extent) #4 {{
  %fault = call ptr {place}(ptr {own_fault(fn.module, fn.name)})
  %text = getelementptr i8, ptr %fault, i64 8
  %pair = cmpxchg ptr %fault, ptr null, ptr %text monotonic monotonic, align 8
  %first = extractvalue {{ ptr, i1 }} %pair, 1
  br i1 %first, label %describe, label %done
describe:
  %n = call i32 (ptr, i64, ptr, ...) {symbol}(ptr %text, i64 {TEXT_BYTES}, ptr %form, i64 %index, i64 %extent)
  br label %done
done:
  ret void
}}"""


def leave_unless(fn: FunctionEmitter, ok: str, text: str) -> None:
    """Leave the message `text` and return where ok is false."""
    bad, good = _branch_unless(fn, ok)
    fn.start(bad)
    record_fault(fn, text)
    leave(fn)
    fn.start(good)


def leave(fn: FunctionEmitter) -> None:
    """Return from the function, or from the part of a parallel loop, behind which the caller returns."""
    for where in reversed(fn.held):
        free_memory(fn, where)
    fn.do("ret void")


def free_memory(fn: FunctionEmitter, where: str) -> None:
    """Give back what tw_alloc gave."""
    fn.do(f"call void {fn.module.declare('tw_free', 'void', 'ptr')}(ptr {where})")

