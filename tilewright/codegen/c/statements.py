"""Loops, conditions, allocations and sequences."""
from __future__ import annotations

import re

from tilewright.codegen.bodies import constant_bytes, in_frame, is_promoted
from tilewright.codegen.c import helpers
from tilewright.codegen.c.calls import print_packed
from tilewright.codegen.c.expressions import index
from tilewright.codegen.c.printer import CALLS, STATEMENTS, Printer, Text, prints
from tilewright.codegen.c.types import memory_type, value_type
from tilewright.codegen.c.unit import c_string
from tilewright.codegen.queries import require_serial
from tilewright.codegen.ranges import greatest, range_of_loop, ranges_in_region
from tilewright.lowering.messages import extents_text
from tilewright.lowering.outline import PARALLEL_CALL, captured_by
from tilewright.tir import dtype as dt
from tilewright.tir.buffer import Buffer, Load
from tilewright.tir.expr import Call, IntImm, Var
from tilewright.tir.node import walk
from tilewright.tir.slices import stop_of
from tilewright.tir.stmt import (
    UNROLLED,
    Allocate,
    Evaluate,
    For,
    IfThenElse,
    LetStmt,
    PrimFunc,
    Seq,
    While,
)


@prints(STATEMENTS, Seq)
def print_seq(p: Printer, s: Seq) -> None:
    for stmt in s.stmts:
        p.stmt(stmt)


@prints(STATEMENTS, Evaluate)
def print_evaluate(p: Printer, s: Evaluate) -> None:
    if not isinstance(s.value, IntImm):
        e = s.value
        text = print_packed(p, e, False).text if isinstance(e, Call) and e.op == "call_packed" else p.expr(e)
        if text != "(void)0":
            p.line(f"{text};")


@prints(STATEMENTS, LetStmt)
def print_let_stmt(p: Printer, s: LetStmt) -> None:
    bound = greatest(p, s.value, wraps=True) if dt.is_integer(s.var.dtype) else None
    if bound is not None:
        p.natural[s.var] = bound
    value = p.expr(s.value)
    p.line(f"{p.unit.type(value_type(s.var.dtype))} {p.bind(s.var)} = {value};")
    p.stmt(s.body)


@prints(STATEMENTS, IfThenElse)
def print_if(p: Printer, s: IfThenElse) -> None:
    with p.block(f"if ({p.expr(s.condition)})", "}" if s.else_case is None else "} else {"):
        p.stmt(s.then_case)
    if s.else_case is not None:
        p.indent += 1
        p.stmt(s.else_case)
        p.indent -= 1
        p.line("}")


@prints(STATEMENTS, While)
def print_while(p: Printer, s: While) -> None:
    with p.block(f"while ({p.expr(s.condition)})"):
        p.stmt(s.body)


@prints(STATEMENTS, For)
def print_for(p: Printer, s: For) -> None:
    require_serial(p.name, s)
    first, end = index(p, s.min).text, index(p, stop_of(s.min, s.extent)).text
    if any(isinstance(n, (Load, Call)) for e in (s.min, s.extent) for n in walk(e)):       # it is read once
        own = p.fresh("end")
        p.line(f"const int64_t {own} = {end};")
        end = own
    p.natural.update(range_of_loop(p, s))
    name = p.bind(s.loop_var, wide=True)
    if s.kind == UNROLLED and isinstance(s.extent, IntImm) and s.extent.value <= 64:
        p.line(f"#pragma GCC unroll {s.extent.value}")
    with p.block(f"for (int64_t {name} = {first}; {name} < {end}; ++{name})"):
        p.stmt(s.body)


@prints(CALLS, PARALLEL_CALL)
def print_parallel(p: Printer, e: Call) -> Text:
    """`tw_parallel(part, environment, extent)`, with what the region captures in the environment."""
    name, low, extent, *_ = e.args
    region = p.unit.functions[name.value]                                       # type: ignore[attr-defined]
    captured = captured_by(region)
    fields = [(f"{_type_of(p, v)}{p.names[v]}", p.names[v]) for v in captured]
    first = index(p, low).text
    fields += [("int64_t tw_first", first)] if first != "0" else []
    p.unit.declare("tw_parallel", "void tw_parallel(void (*part)(int64_t begin, int64_t end, void *environment), "
                   "void *environment, int64_t extent);")
    _define_region(p, region, e)
    _define_part(p, region.name, [f for f, _ in fields], first != "0")
    with p.block(""):
        values = ", ".join(v for _, v in fields) or "0"
        p.line(f"struct {region.name} tw_environment = {{{values}}};")
        p.line(f"tw_parallel({region.name}_part, &tw_environment, {index(p, extent).text});")
    return Text("(void)0")


def _type_of(p: Printer, v: Var) -> str:
    """The type of a variable, with what stands between it and the name."""
    if v in p.buffers:
        return f"{memory_type(p.buffers[v].dtype)} *{p.restrict}"
    return "int64_t " if v in p.wide else f"{p.unit.type(value_type(v.dtype))} "


def _define_region(p: Printer, region: PrimFunc, call: Call) -> None:
    """The function of a region, printed with what is known of its arguments."""
    body = Printer(p.unit, p.name)
    body.natural, body.restrict, body.in_parallel = ranges_in_region(p, region, call), p.restrict, True
    begin, end, captured = *region.params[:2], captured_by(region)
    body.buffers = {b.data: b for b in region.buffer_map.values()}
    parameters = [f"int64_t {body.bind(v, wide=True)}" for v in (begin, end)]
    parameters += [f"{_type_of(p, v)}{body.bind(v, wide=v in p.wide, name=p.names[v])}" for v in captured]
    body.stmt(region.body)
    p.unit.define(f"static void {region.name}({', '.join(parameters)}) {{\n" + "\n".join(body.lines) + "\n}")


def _define_part(p: Printer, name: str, fields: list[str], shifted: bool) -> None:
    """The function that the pool calls: it hands what the environment has to the region."""
    members = "".join(f"    {f};\n" for f in fields) or "    int none;\n"
    names = [re.split(r"[ *]", f)[-1] for f in fields]
    ends = [f"at->tw_first + {x}" if shifted else x for x in ("begin", "end")]
    given = ", ".join([*ends, *(f"at->{n}" for n in names if n != "tw_first")])
    p.unit.define(f"struct {name} {{\n{members}}};\n\n"
                  f"static void {name}_part(int64_t begin, int64_t end, void *environment) {{\n"
                  f"    const struct {name} *at = environment;\n    {name}({given});\n}}")


@prints(STATEMENTS, Allocate)
def print_allocate(p: Printer, s: Allocate) -> None:
    """Small constant buffers live in the frame; the rest comes from tw_alloc."""
    buffer, size = s.buffer, constant_bytes(s.buffer)
    type_, name = memory_type(buffer.dtype), p.bind(buffer.data)
    p.buffers[buffer.data] = buffer
    if size is not None and in_frame(size, p.stack_bytes):
        p.stack_bytes += 0 if is_promoted(s) else size
        p.line(f"{type_} {name}[{max(1, size // dt.bytes_of(buffer.dtype))}] __attribute__((aligned(64)));")
        p.stmt(s.body)
        return
    p.unit.declare("tw_alloc", "void *tw_alloc(int64_t bytes);")
    p.unit.declare("tw_free", "void tw_free(void *memory);")
    p.line(f"{type_} *restrict {name} = tw_alloc({_bytes(p, buffer) if size is None else size});")
    wanted = f"{p.name}: there is no memory for {buffer.name}, {extents_text(buffer)} elements of {buffer.dtype}"
    with p.block(f"if ({name} == NULL)", "} else {"):
        p.line(f"{helpers.record(p.unit)}({helpers.fault_of(p.unit, p.name)}, {c_string(wanted)});")
    p.indent += 1
    p.held.append(name)
    p.stmt(s.body)
    p.line(f"tw_free({p.held.pop()});")
    p.indent -= 1
    p.line("}")


def _bytes(p: Printer, buffer: Buffer) -> str:
    """Bytes of a buffer; more than 64 bits count, which tw_alloc refuses, become the most that they count."""
    name = p.unit.helper("times", lambda: """\
static int64_t times(int64_t size, int64_t extent) {
    int64_t product;
    return __builtin_mul_overflow(size, extent > 0 ? extent : 0, &product) ? INT64_MAX : product;
}""")
    total = str(dt.bytes_of(buffer.dtype))
    for extent in buffer.shape:
        total = f"{name}({total}, {index(p, extent).text})"
    return total
