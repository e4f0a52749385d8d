"""Errors found while a kernel runs: an index taken from data that lies outside of its buffer, a failed
callback.

A kernel returns nothing, so it leaves a message in a global of the object and goes on without the access; the
packed entry finds the message after the call and raises it.
"""
from __future__ import annotations

from tilewright.codegen.llvm.builder import LIKELY
from tilewright.codegen.llvm.context import FunctionEmitter
from tilewright.codegen.llvm.index import index
from tilewright.codegen.llvm.queries import depends_on_data, nodes
from tilewright.tir.buffer import Buffer, Load
from tilewright.tir.expr import Binary, Broadcast, Call, Cast, Expr, IntImm, Ramp
from tilewright.tir.node import Node, rewrite


def fault_global(fn: FunctionEmitter) -> str:
    """`@NAME__fault`: null, a message, or its own address when a called function has raised already."""
    return fn.module.global_data(f"{fn.name}__fault", "internal global ptr null, align 8")


def record_fault(fn: FunctionEmitter, message: str) -> None:
    """Leave a message for the packed entry."""
    fn.do(f"store atomic ptr {fn.module.c_string(message)}, ptr {fault_global(fn)} monotonic, align 8")


def inside(fn: FunctionEmitter, buffer: Buffer, at: Expr, first: str, last: str | None = None) -> str | None:
    """Whether elements first..last (i64 operands) of an access with an index from data exist; None: need
    not be asked.

    Where they do not, the fault is recorded at once.
    """
    if not depends_on_data(at, fn.dependent):
        return None
    size = "1"
    for extent in buffer.shape:
        n = index(fn, extent)
        size = n if size == "1" else fn.value(f"mul nsw i64 {size}, {n}")
    ok = fn.value(f"icmp ult i64 {first}, {size}")
    if last is not None:
        ok = fn.value(f"and i1 {ok}, {fn.value(f'icmp ult i64 {last}, {size}')}")
    report_unless(fn, ok, message(fn, buffer, at))
    return ok


def report_unless(fn: FunctionEmitter, ok: str, text: str) -> None:
    bad, done = fn.new_label("fault"), fn.new_label("checked")
    fn.branch(ok, done, bad, f", !prof {fn.module.metadata(LIKELY)}")
    fn.start(bad)
    record_fault(fn, text)
    fn.jump(done)
    fn.start(done)


def message(fn: FunctionEmitter, buffer: Buffer, at: Expr) -> str:
    """The error that the caller sees."""
    size = extents_text(buffer)
    origin = ", taken from data," if any(isinstance(n, Load) for n in nodes(at)) else ""
    return f"{fn.name}: the index {readable(at)} of {buffer.name}{origin} is outside of its {size} elements"


def extents_text(buffer: Buffer) -> str:
    """The extents of a buffer for a message: `n x 16`."""
    return " x ".join(str(e.value) if isinstance(e, IntImm) else str(readable(e)) for e in buffer.shape)


def readable(e: Expr) -> Expr:
    """An index of one lane as it was written, without widening: for messages, not for code."""
    def step(n: Node) -> Node | None:
        match n:
            case Cast() | Broadcast():
                return n.value
            case Ramp():
                return n.base
            case Call(op="checked_index"):
                return n.args[0]
            case IntImm():
                return IntImm(n.value) if -2**31 <= n.value < 2**31 else None
            case Binary(op="add", a=IntImm(value=0)):
                return n.b
            case Binary(op="add", b=IntImm(value=0)):
                return n.a
        return None
    out = rewrite(e, step)
    assert isinstance(out, Expr)
    return out
