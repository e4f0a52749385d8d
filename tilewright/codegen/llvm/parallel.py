"""Parallel loops: the body becomes a function that the thread pool calls with ranges of iterations."""
from __future__ import annotations

from tilewright.codegen.bodies import used_variables
from tilewright.codegen.llvm.builder import LIKELY
from tilewright.codegen.llvm.context import FunctionEmitter
from tilewright.codegen.llvm.faults import leave
from tilewright.codegen.llvm.index import index
from tilewright.codegen.llvm.loops import emit_serial
from tilewright.codegen.llvm.types import register_type
from tilewright.codegen.ranges import range_of_loop
from tilewright.tir import dtype as dt
from tilewright.tir.buffer import Buffer
from tilewright.tir.expr import Call, IntImm, Var
from tilewright.tir.node import walk
from tilewright.tir.stmt import SERIAL, For


def pointer_attributes(buffer: Buffer | None, noalias: bool) -> str:
    """Parameter attributes of the address of a compact buffer: its alignment, and its size where constant."""
    parts = ["ptr"]
    if noalias:
        parts.append("noalias")
    if buffer is None:
        return " ".join(parts)
    size = dt.bytes_of(buffer.dtype)
    parts.append(f"align {size}")
    for extent in buffer.shape:
        size *= extent.value if isinstance(extent, IntImm) else 0
    if size > 0 and not buffer.strides:
        parts.append(f"dereferenceable({size})")
    return " ".join(parts)


def emit_parallel(fn: FunctionEmitter, s: For) -> None:
    """`tw_parallel(body, env, extent)`, with the values that the body uses stored in env.

    Where the body may fail an assertion, env has the address of a flag too: a part that leaves sets it, and so the
    function around leaves behind the loop.
    """
    captured = [v for v in dict.fromkeys(used_variables(s.body))
                if v in fn.pointers or v in fn.wide or v in fn.values]
    types = [
        "ptr" if v in fn.pointers else ("i64" if v in fn.wide else register_type(v.dtype)) for v in captured
    ]
    operands = [fn.pointers.get(v) or fn.wide.get(v) or fn.values[v] for v in captured]
    first, extent = index(fn, s.min), index(fn, s.extent)
    types, operands = [*types, "i64"], [*operands, first]
    left = fn.alloca("i32", "left") if any(isinstance(n, Call) and n.op == "Assert" for n in walk(s.body)) else None
    if left is not None:
        fn.do(f"store i32 0, ptr {left}")
        types, operands = [*types, "ptr"], [*operands, left]
    env_type = "{ " + ", ".join(types) + " }"
    env = fn.alloca(env_type, "env")
    for k, (type_, operand) in enumerate(zip(types, operands, strict=True)):
        slot = fn.value(f"getelementptr inbounds {env_type}, ptr {env}, i64 0, i32 {k}")
        fn.do(f"store {type_} {operand}, ptr {slot}")
    name = f"{fn.name}__par{fn.parallel_count[0]}"
    fn.parallel_count[0] += 1
    parallel = fn.module.declare("tw_parallel", "void", "ptr, ptr, i64")
    fn.do(f"call void {parallel}(ptr @{name}, ptr {env}, i64 {extent})")
    _define_entry(fn, name, env_type, types)
    _define_body(fn, s, name, captured, types)
    if left is not None:
        _leave_after(fn, left)


def _leave_after(fn: FunctionEmitter, left: str) -> None:
    """Leave where a part of the parallel loop has left."""
    failed, goes_on = fn.new_label("failed"), fn.new_label("parallel")
    clean = fn.effect(f"icmp eq i32 {fn.effect(f'load atomic i32, ptr {left} monotonic, align 4')}, 0")
    fn.branch(clean, goes_on, failed, f", !prof {fn.module.metadata(LIKELY)}")
    fn.start(failed)
    leave(fn)
    fn.start(goes_on)


def _define_entry(fn: FunctionEmitter, name: str, env_type: str, types: list[str]) -> None:
    """The function the pool calls: unpacks env and calls the body, whose pointers are parameters
    so that they can be noalias.
    """
    lines = []
    for k, type_ in enumerate(types):
        lines.append(f"  %p{k} = getelementptr inbounds {env_type}, ptr %env, i64 0, i32 {k}")
        lines.append(f"  %a{k} = load {type_}, ptr %p{k}")
    arguments = ", ".join(["i64 %begin", "i64 %end", *(f"{t} %a{k}" for k, t in enumerate(types))])
    fn.module.define(
        name,
        f"define internal void @{name}(i64 %begin, i64 %end, ptr noalias readonly %env) #0 {{\n"
        + "\n".join(lines)
        + f"\n  call void @{name}_body({arguments})\n  ret void\n}}",
    )


def _define_body(fn: FunctionEmitter, s: For, name: str, captured: list[Var], types: list[str]) -> None:
    body = FunctionEmitter(fn.module, fn.name)
    body.parallel_depth, body.parallel_count = fn.parallel_depth + 1, fn.parallel_count
    body.natural, body.dependent = dict(fn.natural), set(fn.dependent)
    body.flags, body.noalias = fn.flags, fn.noalias
    parameters = ["i64 %begin", "i64 %end"]
    for k, (var, type_) in enumerate(zip(captured, types, strict=False)):
        operand = f"%a{k}"
        if var in fn.pointers:
            body.pointers[var] = operand
            body.buffers[var] = fn.buffers[var]
            parameters.append(f"{pointer_attributes(fn.buffers.get(var), fn.noalias)} {operand}")
        else:
            (body.wide if var in fn.wide else body.values)[var] = operand
            parameters.append(f"{type_} {operand}")
    parameters.append("i64 %first")
    if len(types) > len(captured) + 1:
        body.left = "%left"
        parameters.append("ptr %left")
    body.natural.update(range_of_loop(fn, s))
    if isinstance(s.min, IntImm) and s.min.value == 0:
        first, last = "%begin", "%end"
    else:
        first, last = (body.value(f"add nsw i64 {x}, %first") for x in ("%begin", "%end"))
    emit_serial(body, s.replace(kind=SERIAL), first, last, guard=True)
    fn.module.define(
        f"{name}_body",
        f"define internal void @{name}_body({', '.join(parameters)}) #1 {{\n{body.body()}\n  ret void\n}}",
    )
