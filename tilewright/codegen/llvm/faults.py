"""Errors found while a kernel runs: an index taken from data that lies outside of its buffer, a failed
callback.

A kernel returns nothing, so it leaves a message in a global of the object and goes on without the access, or returns
where an assertion does not hold; the packed entry finds the message after the call and raises it.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.codegen.llvm.builder import LIKELY
from tilewright.codegen.llvm.context import FunctionEmitter
from tilewright.codegen.llvm.index import index
from tilewright.codegen.llvm.types import register_type
from tilewright.codegen.messages import dimension_message, escaped, message
from tilewright.codegen.queries import checked_dimensions, depends_on_data
from tilewright.tir import dtype as dt
from tilewright.tir.buffer import Buffer
from tilewright.tir.expr import Expr

TEXT_BYTES = 1024            # of a message with values, the end of the text included


def fault_global(fn: FunctionEmitter) -> str:
    """`@NAME__fault`: null, a message, or its own address when a called function has raised already."""
    return fn.module.global_data(f"{fn.name}__fault", "internal global ptr null, align 8")


def record_fault(fn: FunctionEmitter, message: str) -> None:
    """Leave a message for the packed entry, unless there is one already."""
    fn.effect(f"cmpxchg ptr {fault_global(fn)}, ptr null, ptr {fn.module.c_string(message)} monotonic monotonic, "
              "align 8")


def no_fault(fn: FunctionEmitter) -> str:
    """Whether no fault is recorded yet, an i1 operand."""
    found = fn.effect(f"load atomic ptr, ptr {fault_global(fn)} monotonic, align 8")
    return fn.value(f"icmp eq ptr {found}, null")


def inside(fn: FunctionEmitter, buffer: Buffer, at: Expr, first: str, last: str | None = None) -> str | None:
    """Whether elements first..last (i64 operands) of an access with an index from data exist; None: need
    not be asked.

    Where they do not, the fault is recorded at once.
    """
    if not depends_on_data(at, fn.dependent):
        return None
    size = number_of_elements(fn, buffer)
    ok = fn.value(f"icmp ult i64 {first}, {size}")
    if last is not None:
        ok = fn.value(f"and i1 {ok}, {fn.value(f'icmp ult i64 {last}, {size}')}")
    checks = []
    for i, extent in checked_dimensions(at):
        value, n = index(fn, i), index(fn, extent)
        within = fn.value(f"icmp ult i64 {value}, {n}")
        ok = fn.value(f"and i1 {ok}, {within}")
        checks.append(Check(within, value, n, dimension_message(fn.name, buffer, i, extent)))
    report_unless(fn, ok, message(fn.name, buffer, at), checks)
    return ok


def number_of_elements(fn: FunctionEmitter, buffer: Buffer) -> str:
    """The product of the extents, an i64 operand."""
    size = "1"
    for extent in buffer.shape:
        n = index(fn, extent)
        size = n if size == "1" else fn.value(f"mul nsw i64 {size}, {n}")
    return size


@dataclass(frozen=True)
class Check:
    """The comparison of one index: whether it is inside (i1), both sides (i64), and the format of the message."""
    ok: str
    index: str
    extent: str
    message: str


def checked_lanes(fn: FunctionEmitter, buffer: Buffer, at: Expr, mask: str | None, lanes: int) -> str | None:
    """mask without the lanes whose index, taken from data, lies outside of the buffer; those are
    recorded as a fault.
    """
    if not depends_on_data(at, fn.dependent):
        return mask
    type_, wide = f"<{lanes} x i1>", f"<{lanes} x i64>"
    size = fn.broadcast(number_of_elements(fn, buffer), "i64", lanes)
    ok = fn.value(f"icmp ult {wide} {_wide_lanes(fn, at, lanes)}, {size}")
    dimensions = []
    for i, extent in checked_dimensions(at):
        value, n = _wide_lanes(fn, i, lanes), _wide_lanes(fn, extent, lanes)
        within = fn.value(f"icmp ult {wide} {value}, {n}")
        ok = fn.value(f"and {type_} {ok}, {within}")
        dimensions.append((within, value, n, dimension_message(fn.name, buffer, i, extent)))
    outside = fn.value(f"xor {type_} {ok}, splat (i1 true)")
    if mask is not None:
        outside = fn.value(f"and {type_} {outside}, {mask}")
        ok = fn.value(f"and {type_} {ok}, {mask}")
    clean = fn.value(f"xor i1 {any_of(fn, f'{type_} {outside}')}, true")
    checks = [_first_failure(fn, d, outside, lanes) for d in dimensions]
    report_unless(fn, clean, message(fn.name, buffer, at), checks)
    return ok


def _wide_lanes(fn: FunctionEmitter, e: Expr, lanes: int) -> str:
    """An integer expression, a vector or a scalar for all lanes, as a vector of i64."""
    if dt.lanes_of(e.dtype) == 1:
        return fn.broadcast(index(fn, e), "i64", lanes)
    operand = fn.expr(e)
    if dt.bits_of(e.dtype) == 64:
        return operand
    opcode = "sext" if dt.is_signed(e.dtype) else "zext"
    return fn.value(f"{opcode} {register_type(e.dtype)} {operand} to <{lanes} x i64>")


def _first_failure(fn: FunctionEmitter, dimension: tuple[str, str, str, str], outside: str, lanes: int) -> Check:
    """The comparison of one dimension in the first of the lanes `outside` that fails it."""
    within, value, extent, text = dimension
    type_ = f"<{lanes} x i1>"
    failed = fn.value(f"and {type_} {outside}, {fn.value(f'xor {type_} {within}, splat (i1 true)')}")
    bits = fn.value(f"bitcast {type_} {failed} to i{lanes}")
    ok = fn.value(f"icmp eq i{lanes} {bits}, 0")
    lane = fn.call("cttz", f"i{lanes}", ((f"i{lanes}", bits), ("i1", "false")))
    shown = [fn.value(f"extractelement <{lanes} x i64> {v}, i{lanes} {lane}") for v in (value, extent)]
    return Check(ok, shown[0], shown[1], text)


def any_of(fn: FunctionEmitter, mask: str) -> str:
    """True when a lane of the mask (`type operand`) is."""
    lanes = mask.split(" ")[0][1:]
    bits = fn.value(f"bitcast {mask} to i{lanes}")
    return fn.value(f"icmp ne i{lanes} {bits}, 0")


def report_unless(fn: FunctionEmitter, ok: str, text: str, checks: Sequence[Check] = ()) -> None:
    """Leave the message of the first check that fails, else `text`, where ok is false."""
    bad, done = fn.new_label("fault"), fn.new_label("checked")
    fn.branch(ok, done, bad, f", !prof {fn.module.metadata(LIKELY)}")
    fn.start(bad)
    if checks:
        _record_values(fn, text, checks, done)
    else:
        record_fault(fn, text)
        fn.jump(done)
    fn.start(done)


def leave_unless(fn: FunctionEmitter, ok: str, text: str) -> None:
    """Leave the message `text` and return where ok is false."""
    bad, good = fn.new_label("failed"), fn.new_label("holds")
    fn.branch(ok, good, bad, f", !prof {fn.module.metadata(LIKELY)}")
    fn.start(bad)
    record_fault(fn, text)
    leave(fn)
    fn.start(good)


def leave(fn: FunctionEmitter) -> None:
    """Return from the function, or from the body of a parallel loop, whose caller returns behind the loop."""
    if fn.left is not None:
        fn.do(f"store atomic i32 1, ptr {fn.left} monotonic, align 4")
    for where in reversed(fn.held):
        free_memory(fn, where)
    fn.do("ret void")


def free_memory(fn: FunctionEmitter, where: str) -> None:
    """Give back what tw_alloc gave."""
    fn.do(f"call void {fn.module.declare('tw_free', 'void', 'ptr')}(ptr {where})")


def _record_values(fn: FunctionEmitter, text: str, checks: Sequence[Check], done: str) -> None:
    """Format a message into `@NAME__fault_text`, unless there is a fault already; jumps to done."""
    form, value, extent = fn.module.c_string(escaped(text)), "0", "0"
    with fn.region():
        for c in reversed(checks):
            form = fn.value(f"select i1 {c.ok}, ptr {form}, ptr {fn.module.c_string(c.message)}")
            value = fn.value(f"select i1 {c.ok}, i64 {value}, i64 {c.index}")
            extent = fn.value(f"select i1 {c.ok}, i64 {extent}, i64 {c.extent}")
    buffer = fn.module.global_data(f"{fn.name}__fault_text", f"internal global [{TEXT_BYTES} x i8] zeroinitializer")
    pair = fn.effect(f"cmpxchg ptr {fault_global(fn)}, ptr null, ptr {buffer} monotonic monotonic, align 8")
    first = fn.effect(f"extractvalue {{ ptr, i1 }} {pair}, 1")
    write = fn.new_label("describe")
    fn.branch(first, write, done)
    fn.start(write)
    symbol = fn.module.declare("snprintf", "i32", "ptr, i64, ptr, ...")
    fn.effect(f"call i32 (ptr, i64, ptr, ...) {symbol}(ptr {buffer}, i64 {TEXT_BYTES}, ptr {form}, i64 {value}, "
              f"i64 {extent})")
    fn.jump(done)
