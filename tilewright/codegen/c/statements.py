"""Loops, conditions, allocations and sequences."""
from __future__ import annotations

import re

from tilewright.codegen.bodies import constant_bytes, in_frame, may_fault, used_variables
from tilewright.codegen.c import helpers
from tilewright.codegen.c.expressions import index
from tilewright.codegen.c.printer import STATEMENTS, SUM, Printer, prints, within
from tilewright.codegen.c.types import memory_type, value_type
from tilewright.codegen.c.unit import c_string
from tilewright.codegen.messages import extents_text
from tilewright.codegen.queries import depends_on_data
from tilewright.codegen.ranges import greatest, range_of_loop
from tilewright.support.errors import CodegenError, with_hint
from tilewright.tir import dtype as dt
from tilewright.tir.buffer import Buffer, Load
from tilewright.tir.expr import Call, IntImm, Var
from tilewright.tir.node import walk
from tilewright.tir.stmt import (
    PARALLEL,
    SERIAL,
    THREAD_BINDING,
    UNROLLED,
    Allocate,
    Evaluate,
    For,
    IfThenElse,
    LetStmt,
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
        text = p.expr(s.value)
        if text != "(void)0":
            p.line(f"{text};")


@prints(STATEMENTS, LetStmt)
def print_let_stmt(p: Printer, s: LetStmt) -> None:
    bound = greatest(p, s.value, wraps=True) if dt.is_integer(s.var.dtype) else None
    if bound is not None:
        p.natural[s.var] = bound
    if depends_on_data(s.value, p.dependent):
        p.dependent.add(s.var)
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
    """A loop that ends too once a fault is recorded: what a faulty access gives may never satisfy the condition."""
    test = p.at(s.condition, 10)
    if may_fault(s, p.dependent):
        test += f" && __atomic_load_n(&{helpers.fault_of(p.unit, p.name)}, __ATOMIC_RELAXED) == NULL"
    with p.block(f"while ({test})"):
        p.stmt(s.body)


@prints(STATEMENTS, For)
def print_for(p: Printer, s: For) -> None:
    if s.kind == THREAD_BINDING:
        raise CodegenError(with_hint(f"{p.name}: loop {s.loop_var.name} is bound to {s.thread_tag}, which a CPU does "
                                     "not have", "use parallel instead of bind, or build for a GPU target"))
    if isinstance(s.extent, IntImm) and s.extent.value <= 0:
        return
    if s.kind == PARALLEL and p.parallel_depth == 0 and not (isinstance(s.extent, IntImm) and s.extent.value == 1):
        _print_parallel(p, s)
        return
    first = index(p, s.min)
    extent = index(p, s.extent)
    end = extent.text if first.text == "0" else f"{within(first, SUM)} + {within(extent, SUM + 1)}"
    if any(isinstance(n, (Load, Call)) for e in (s.min, s.extent) for n in walk(e)):       # it is read once
        own = p.fresh("end")
        p.line(f"const int64_t {own} = {end};")
        end = own
    _print_serial(p, s, first.text, end)


def _print_serial(p: Printer, s: For, first: str, end: str) -> None:
    p.natural.update(range_of_loop(p, s))
    name = p.bind(s.loop_var, wide=True)
    if s.kind == UNROLLED and isinstance(s.extent, IntImm) and s.extent.value <= 64:
        p.line(f"#pragma GCC unroll {s.extent.value}")
    with p.block(f"for (int64_t {name} = {first}; {name} < {end}; ++{name})"):
        p.stmt(s.body)


def _print_parallel(p: Printer, s: For) -> None:
    """`tw_parallel(body, environment, extent)`, with the values that the body uses in the environment.

    Where the body may fail an assertion, it has the address of a flag too: a part that leaves sets it, and so the
    function around leaves behind the loop.
    """
    captured = [v for v in dict.fromkeys(used_variables(s.body)) if v in p.names]
    types = [_type_of(p, v) for v in captured]
    name = f"{p.name}__part{p.parallel_count[0]}"
    p.parallel_count[0] += 1
    fails = any(isinstance(n, Call) and n.op == "Assert" for n in walk(s.body))
    p.unit.declare("tw_parallel", "void tw_parallel(void (*part)(int64_t begin, int64_t end, void *environment), "
                   "void *environment, int64_t extent);")
    first = index(p, s.min).text
    fields = [(t, p.names[v]) for t, v in zip(types, captured)]
    fields += [("int64_t", "tw_first")] if first != "0" else []
    fields += [("int32_t *", "tw_left")] if fails else []
    _define_part(p, s, name, captured, fields)
    values = [n for _, n in fields]
    with p.block(""):
        if first != "0":
            p.line(f"int64_t tw_first = {first};")
        if fails:
            p.line("int32_t tw_flag = 0, *tw_left = &tw_flag;")
        p.line(f"struct {name} tw_environment = {{{', '.join(values) or '0'}}};")
        p.line(f"tw_parallel({name}, &tw_environment, {index(p, s.extent).text});")
        if fails:
            with p.block("if (__atomic_load_n(tw_left, __ATOMIC_RELAXED))"):
                if p.left is not None:
                    p.line(f"__atomic_store_n({p.left}, 1, __ATOMIC_RELAXED);")
                for where in reversed(p.held):
                    p.line(f"tw_free({where});")
                p.line("return;")


def _type_of(p: Printer, v: Var) -> str:
    if v in p.buffers:
        return f"{memory_type(p.buffers[v].dtype)} *{p.restrict}"
    return "int64_t" if v in p.wide else p.unit.type(value_type(v.dtype))


def _define_part(p: Printer, s: For, name: str, captured: list[Var], fields: list[tuple[str, str]]) -> None:
    body = Printer(p.unit, p.name)
    body.parallel_depth, body.parallel_count = p.parallel_depth + 1, p.parallel_count
    body.natural, body.dependent, body.restrict = dict(p.natural), set(p.dependent), p.restrict
    lines = []
    for v, (type_, field) in zip(captured, fields):
        own = body.bind(v, wide=v in p.wide)
        if v in p.buffers:
            body.buffers[v] = p.buffers[v]
        lines.append((own, f"    {type_}{'' if type_.endswith(' ') else ' '}{own} = tw_part->{field};"))
    names = [n for _, n in fields]
    first = "tw_part->tw_first + " if "tw_first" in names else ""
    body.left = "tw_part->tw_left" if "tw_left" in names else None
    _print_serial(body, s.replace(kind=SERIAL), f"{first}tw_begin", f"{first}tw_end")
    text = "\n".join(body.lines)
    used = [line for own, line in lines if re.search(rf"\b{own}\b", text)]       # extents are asked for in checks alone
    members = "".join(f"    {t}{'' if t.endswith(' ') else ' '}{n};\n" for t, n in fields) or "    int none;\n"
    p.unit.define(f"struct {name} {{\n{members}}};\n\n"
                  f"static void {name}(int64_t tw_begin, int64_t tw_end, void *tw_environment) {{\n"
                  f"    const struct {name} *tw_part = tw_environment;\n" + "\n".join([*used, *body.lines]) + "\n}")


@prints(STATEMENTS, Allocate)
def print_allocate(p: Printer, s: Allocate) -> None:
    """Small constant buffers live in the frame; the rest comes from tw_alloc."""
    buffer, size = s.buffer, constant_bytes(s.buffer)
    type_, name = memory_type(buffer.dtype), p.bind(buffer.data)
    p.buffers[buffer.data] = buffer
    if size is not None and in_frame(size, p.stack_bytes):
        p.stack_bytes += size
        p.line(f"{type_} {name}[{max(1, size // dt.bytes_of(buffer.dtype))}] __attribute__((aligned(64)));")
        p.stmt(s.body)
        return
    p.unit.declare("tw_alloc", "void *tw_alloc(int64_t bytes);")
    p.unit.declare("tw_free", "void tw_free(void *memory);")
    p.line(f"{type_} *restrict {name} = tw_alloc({_bytes(p, buffer) if size is None else size});")
    wanted = f"{p.name}: there is no memory for {buffer.name}, {extents_text(buffer)} elements of {buffer.dtype}"
    with p.block(f"if ({name} == NULL)", "} else {"):
        p.line(f"{helpers.record(p.unit)}(&{helpers.fault_of(p.unit, p.name)}, {c_string(wanted)});")
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
