"""Kernels and their packed entries `__tvm_ffi_NAME`, as one file of C."""
from __future__ import annotations

from collections.abc import Sequence

from tilewright.codegen.c import (  # noqa: F401  (they fill the tables)
    calls,
    conversions,
    expressions,
    intrinsics,
    memory,
    statements,
)
from tilewright.codegen.c.printer import Printer
from tilewright.codegen.c.types import memory_type, value_type
from tilewright.codegen.c.unit import Unit
from tilewright.codegen.layout import KernelLayout, layouts, result_code
from tilewright.runtime.signature_table import encode
from tilewright.support.errors import CodegenError, with_hint
from tilewright.tir import dtype as dt
from tilewright.tir.returns import result_dtype
from tilewright.tir.stmt import PrimFunc

_ANY = """\
typedef struct { int32_t type, padding; union { int64_t integer; double number; void *pointer; } value; } tw_any;
int32_t tw_run(const tw_any *args, int32_t count, tw_any *ret, const void *signature,
               void (*run)(const int64_t *slots, void *result), void *fault, int64_t slots, int32_t result);"""


def source(funcs: Sequence[PrimFunc], fma: bool = False) -> str:
    """C of the functions: for each NAME that is no region its `NAME__kernel` and its packed entry `__tvm_ffi_NAME`.

    fma: whether the CPU has fused multiply-adds. Raises CodegenError for what has no form in C.
    """
    unit = Unit(fma)
    unit.functions = {f.name: f for f in funcs}
    unit.declare("tw_any", _ANY)
    strange = next((f.name for f in funcs if not (f.name.isascii() and f.name.isidentifier())), None)
    if strange is not None:
        raise CodegenError(with_hint(f"{strange!r} cannot be the name of a function in C", "use letters, digits and _"))
    for func, layout in layouts(funcs).items():
        define_kernel(unit, func, layout)
        _define_packed(unit, layout, result_dtype(func))
    return unit.source()


def define_kernel(unit: Unit, func: PrimFunc, layout: KernelLayout, linkage: str = "") -> None:
    """Adds `NAME__kernel` with the arguments of layout. linkage: "static " where no other file calls it."""
    p = Printer(unit, func.name)
    p.restrict = "restrict " if func.attrs.get("tir.noalias", True) else ""
    parameters = []
    for buffer in layout.buffers:
        p.buffers[buffer.data] = buffer
        parameters.append(f"{memory_type(buffer.dtype)} *{p.restrict}{p.bind(buffer.data, name=buffer.name)}")
    for x in func.params:
        if x in func.buffer_map:
            p.names[x] = p.names[func.buffer_map[x].data]
    for var in layout.values:
        parameters.append(f"{value_type(var.dtype)} {p.bind(var)}")
    if result_dtype(func) is not None:
        p.result = p.fresh("result")
        parameters.append(f"void *{p.result}")
    p.natural.update({v: dt.extent_limit(v.dtype) for v in layout.symbols})
    p.stmt(func.body)
    head = f"{linkage}void {func.name}__kernel({', '.join(parameters) or 'void'})"
    unit.define(f"{head} {{\n" + "\n".join(p.lines) + "\n}")


def _define_packed(unit: Unit, layout: KernelLayout, result: str | None) -> None:
    """The packed entry, a call of `tw_run` in the runtime (native/packed.ll), and the function that this calls: it
    unpacks the slots and calls the kernel. result: the dtype of what the kernel returns; None: nothing.
    """
    name, table = layout.name, encode(layout.signature)
    raw = ", ".join(map(str, table))
    signature = unit.data(f"{name}__signature", f"static const uint8_t {name}__signature[{len(table)}] "
                          f"__attribute__((aligned(8))) = {{{raw}}};")
    p = Printer(unit, name)
    arguments = [f"({memory_type(b.dtype)} *)(intptr_t)slots[{k}]" for k, b in enumerate(layout.buffers)]
    arguments += [_scalar(p, v.dtype, k) for k, v in enumerate(layout.values, len(arguments))]
    arguments += ["result"] if result is not None else []
    unit.define(f"static void {name}__run(const int64_t *slots, void *result) {{\n"
                f"    {name}__kernel({', '.join(arguments)});\n}}")
    fault = "NULL"
    if unit.has_data(f"{name}__fault"):
        fault = f"&{name}__fault"
    unit.define(f"int32_t __tvm_ffi_{name}(void *self, const tw_any *args, int32_t count, tw_any *ret) {{\n"
                f"    return tw_run(args, count, ret, {signature}, {name}__run, {fault}, "
                f"{max(1, layout.signature.num_slots)}, {result_code(result)});\n}}")


def _scalar(p: Printer, dtype: str, slot: int) -> str:
    """The value of dtype in a slot: integers are in its low bits, floats are bits of their own dtype."""
    if not dt.is_float(dtype):
        return f"slots[{slot}] != 0" if dtype == "bool" else f"({value_type(dtype)})slots[{slot}]"
    type_ = value_type(dtype)
    name = p.unit.helper(f"slot_{type_}", lambda: f"static inline {type_} slot_{type_}(const int64_t *slot) {{\n"
                         f"    {type_} x;\n    memcpy(&x, slot, sizeof x);\n    return x;\n}}")
    return f"{name}(&slots[{slot}])"
