"""The parts of parallel loops: a call of the thread pool, which runs a function on ranges of iterations."""
from __future__ import annotations

from tilewright.codegen.llvm.context import CALLS, FunctionEmitter, emits
from tilewright.codegen.llvm.index import index
from tilewright.codegen.llvm.types import register_type
from tilewright.codegen.ranges import ranges_in_region
from tilewright.lowering.outline import PARALLEL_CALL, captured_by
from tilewright.tir import dtype as dt
from tilewright.tir.buffer import Buffer
from tilewright.tir.expr import Call, IntImm
from tilewright.tir.stmt import PrimFunc


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


@emits(CALLS, PARALLEL_CALL)
def emit_parallel(fn: FunctionEmitter, e: Call) -> str:
    """`tw_parallel(part, env, extent)`, with what the region captures stored in env."""
    name, low, extent, *_ = e.args
    region = fn.module.functions[name.value]                                    # type: ignore[attr-defined]
    captured = captured_by(region)
    values = ["ptr" if v in fn.pointers else "i64" if v in fn.wide else register_type(v.dtype) for v in captured]
    fields = [(t, fn.pointers.get(v) or fn.wide.get(v) or fn.values[v]) for t, v in zip(values, captured)]
    first, count = index(fn, low), index(fn, extent)
    shifted = f"%a{len(fields)}" if first != "0" else ""
    fields += [("i64", first)] if shifted else []
    env_type = "{ " + ", ".join(t for t, _ in fields) + " }"
    env = fn.alloca(env_type, "env")
    for k, (type_, operand) in enumerate(fields):
        slot = fn.value(f"getelementptr inbounds {env_type}, ptr {env}, i64 0, i32 {k}")
        fn.do(f"store {type_} {operand}, ptr {slot}")
    parallel = fn.module.declare("tw_parallel", "void", "ptr, ptr, i64")
    fn.do(f"call void {parallel}(ptr @{region.name}, ptr {env}, i64 {count})")
    _define_part(fn, region.name, env_type, [t for t, _ in fields], shifted)
    _define_body(fn, region, e, values)
    return "0"


def _define_part(fn: FunctionEmitter, name: str, env_type: str, types: list[str], shifted: str) -> None:
    """The function that the pool calls: unpacks env and calls the region, whose pointers are parameters so that they
    can be noalias. shifted: the field of the first iteration, if any.
    """
    lines, given = [], [f"{t} %a{k}" for k, t in enumerate(types)]
    for k, type_ in enumerate(types):
        lines.append(f"  %p{k} = getelementptr inbounds {env_type}, ptr %env, i64 0, i32 {k}")
        lines.append(f"  %a{k} = load {type_}, ptr %p{k}")
    ends = ["i64 %begin", "i64 %end"]
    if shifted:
        given.remove(f"i64 {shifted}")
        lines += [f"  {end[4:]}.at = add nsw {end}, {shifted}" for end in ends]
        ends = [f"{end}.at" for end in ends]
    text = "\n".join([*lines, f"  call void @{name}_body({', '.join([*ends, *given])})"])
    fn.module.define(name, f"define internal void @{name}(i64 %begin, i64 %end, ptr noalias readonly %env) #0 {{\n"
                           f"{text}\n  ret void\n}}")


def _define_body(fn: FunctionEmitter, region: PrimFunc, call: Call, types: list[str]) -> None:
    """The region, compiled with what is known of its arguments."""
    body = FunctionEmitter(fn.module, fn.name)
    body.in_parallel, body.flags, body.noalias = True, fn.flags, fn.noalias
    body.natural = ranges_in_region(fn, region, call)
    begin, end, *params = region.params
    body.wide |= {begin: "%begin", end: "%end"}
    parameters = ["i64 %begin", "i64 %end"]
    for k, (var, param, type_) in enumerate(zip(captured_by(region), params, types)):
        if type_ == "ptr":
            buffer = region.buffer_map.get(param)
            body.pointers[var] = f"%a{k}"
            body.buffers |= {} if buffer is None else {var: buffer}
            type_ = pointer_attributes(buffer, fn.noalias)
        else:
            (body.wide if var in fn.wide else body.values)[var] = f"%a{k}"
        parameters.append(f"{type_} %a{k}")
    body.stmt(region.body)
    fn.module.define(f"{region.name}_body", f"define internal void @{region.name}_body({', '.join(parameters)}) #1 {{\n"
                                            f"{body.body()}\n  ret void\n}}")
