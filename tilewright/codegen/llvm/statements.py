"""Loops, conditions, allocations and sequences."""
from __future__ import annotations

from tilewright.codegen.bodies import constant_bytes, in_frame, is_promoted, widths
from tilewright.codegen.llvm.builder import LIKELY
from tilewright.codegen.llvm.calls import emit_packed
from tilewright.codegen.llvm.context import STATEMENTS, FunctionEmitter, emits
from tilewright.codegen.llvm.faults import free_memory, record_fault
from tilewright.codegen.llvm.index import index
from tilewright.codegen.llvm.loops import emit_serial
from tilewright.codegen.llvm.types import memory_type
from tilewright.codegen.queries import require_serial
from tilewright.codegen.ranges import greatest
from tilewright.lowering.conditions import is_likely
from tilewright.lowering.messages import extents_text
from tilewright.tir import dtype as dt
from tilewright.tir.arithmetic import conjuncts
from tilewright.tir.buffer import Buffer
from tilewright.tir.expr import Call, IntImm
from tilewright.tir.stmt import (
    Allocate,
    Evaluate,
    For,
    IfThenElse,
    LetStmt,
    Seq,
    While,
)


@emits(STATEMENTS, Seq)
def emit_seq(fn: FunctionEmitter, s: Seq) -> None:
    for stmt in s.stmts:
        fn.stmt(stmt)


@emits(STATEMENTS, Evaluate)
def emit_evaluate(fn: FunctionEmitter, s: Evaluate) -> None:
    if isinstance(s.value, Call) and s.value.op == "call_packed":
        emit_packed(fn, s.value, used=False)
    else:
        fn.expr(s.value)


@emits(STATEMENTS, LetStmt)
def emit_let_stmt(fn: FunctionEmitter, s: LetStmt) -> None:
    bound = greatest(fn, s.value, wraps=True) if dt.is_integer(s.var.dtype) else None
    if bound is not None:
        fn.natural[s.var] = bound
    if s.var.dtype == "handle":
        fn.pointers[s.var] = fn.expr(s.value)
        fn.stmt(s.body)
        return
    with fn.bound(s.var, fn.expr(s.value)):
        fn.stmt(s.body)


@emits(STATEMENTS, IfThenElse)
def emit_if(fn: FunctionEmitter, s: IfThenElse) -> None:
    """A branch; `likely` conditions carry weights."""
    condition = fn.expr(s.condition)
    then, done = fn.new_label("then"), fn.new_label("endif")
    otherwise = fn.new_label("else") if s.else_case is not None else done
    weights = f", !prof {fn.module.metadata(LIKELY)}" if all(map(is_likely, conjuncts(s.condition))) else ""
    fn.branch(condition, then, otherwise, weights)
    fn.start(then)
    with fn.region():
        fn.stmt(s.then_case)
    fn.jump(done)
    if s.else_case is not None:
        fn.start(otherwise)
        with fn.region():
            fn.stmt(s.else_case)
        fn.jump(done)
    fn.start(done)


@emits(STATEMENTS, While)
def emit_while(fn: FunctionEmitter, s: While) -> None:
    test, body, done = fn.new_label("while"), fn.new_label("body"), fn.new_label("endwhile")
    fn.jump(test)
    fn.start(test)
    with fn.region():
        fn.branch(fn.expr(s.condition), body, done)
        fn.start(body)
        fn.stmt(s.body)
    fn.jump(test)
    fn.start(done)


@emits(STATEMENTS, For)
def emit_for(fn: FunctionEmitter, s: For) -> None:
    require_serial(fn.name, s)
    before = fn.flags
    value = s.annotations.get("reassociate", 0)
    if value.value if isinstance(value, IntImm) else value:
        fn.flags = "reassoc nsz " + fn.flags.replace("reassoc nsz ", "")
    emit_serial(fn, s)
    fn.flags = before


def _keep_apart(fn: FunctionEmitter, where: str) -> None:
    """Says where the memory starts to live, so that LLVM does not join the vectors that are stored there for one load.

    LLVM 22 puts the code that joins them behind the store of the last elements, which need not be the last store, and
    so before values that it uses (llvm-project pull request 189680). It joins where there are loads and stores alone.
    """
    start = fn.module.declare("llvm.lifetime.start.p0", "void", "ptr")
    fn.entry.append(f"  call void {start}(ptr {where})")


@emits(STATEMENTS, Allocate)
def emit_allocate(fn: FunctionEmitter, s: Allocate) -> None:
    """Small constant buffers live in the frame, where LLVM promotes them; the rest comes from tw_alloc."""
    buffer = s.buffer
    size = constant_bytes(buffer)
    if size is not None and in_frame(size, fn.stack_bytes):
        fn.stack_bytes += 0 if is_promoted(s) else size
        count = max(1, size // dt.bytes_of(buffer.dtype))
        where = fn.pointers[buffer.data] = fn.alloca(f"[{count} x {memory_type(buffer.dtype)}], align 64")
        if count > 1 and (len(found := widths(s)) > 1 or found == {1}):
            _keep_apart(fn, where)
        fn.buffers[buffer.data] = buffer
        fn.stmt(s.body)
        return
    alloc = fn.module.declare("tw_alloc", "noalias align 64 ptr", "i64")
    where = fn.effect(
        f"call noalias align 64 ptr {alloc}(i64 {size if size is not None else _bytes(fn, buffer)})"
    )
    fn.pointers[buffer.data] = where
    fn.buffers[buffer.data] = buffer
    got, bad, done = fn.new_label("memory"), fn.new_label("exhausted"), fn.new_label("freed")
    fn.branch(fn.value(f"icmp ne ptr {where}, null"), got, bad, f", !prof {fn.module.metadata(LIKELY)}")
    fn.start(bad)
    wanted = f"{extents_text(buffer)} elements of {buffer.dtype}"
    record_fault(fn, f"{fn.name}: there is no memory for {buffer.name}, {wanted}")
    fn.jump(done)
    fn.start(got)
    fn.held.append(where)
    with fn.region():
        fn.stmt(s.body)
    free_memory(fn, fn.held.pop())
    fn.jump(done)
    fn.start(done)


def _bytes(fn: FunctionEmitter, buffer: Buffer) -> str:
    """Bytes of a buffer; more than 64 bits count, which tw_alloc refuses, become the most that they count."""
    total = str(dt.bytes_of(buffer.dtype))
    for extent in buffer.shape:
        natural = fn.call("smax", "i64", (("i64", index(fn, extent)), ("i64", "0")))
        total = fn.call("umul.fix.sat", "i64", (("i64", total), ("i64", natural), ("i32", "0")))
    return total
