"""Kernels and their packed entries `__tvm_ffi_NAME`, as one file of C."""
from __future__ import annotations

from collections.abc import Sequence

from tilewright.codegen.c import calls, conversions, expressions, memory, statements  # noqa: F401  (fill the tables)
from tilewright.codegen.c.conversions import from_memory
from tilewright.codegen.c.printer import Printer, Text
from tilewright.codegen.c.types import memory_type, value_type
from tilewright.codegen.c.unit import Unit
from tilewright.codegen.layout import KernelLayout, kernel_layout
from tilewright.runtime.signature_table import encode
from tilewright.support.errors import CodegenError, with_hint
from tilewright.tir import dtype as dt
from tilewright.tir.results import result_dtype
from tilewright.tir.stmt import PrimFunc

_ANY = """\
typedef struct { int32_t type, padding; union { int64_t integer; double number; void *pointer; } value; } tw_any;
int32_t tw_check_args(const tw_any *args, int32_t count, const void *signature, int64_t *slots);
void tw_report(const char *kind, const char *message);"""


def source(funcs: Sequence[PrimFunc], fma: bool = False) -> str:
    """C of the functions: for each NAME its `NAME__kernel` and its packed entry `__tvm_ffi_NAME`.

    fma: whether the CPU has fused multiply-adds. Raises CodegenError for what has no form in C.
    """
    unit = Unit(fma)
    unit.declare("tw_any", _ANY)
    names = [f.name for f in funcs]
    if len(set(names)) != len(names):
        raise CodegenError(f"two functions of one module have one name: {', '.join(sorted(names))}")
    strange = next((n for n in names if not (n.isascii() and n.isidentifier())), None)
    if strange is not None:
        raise CodegenError(with_hint(f"{strange!r} cannot be the name of a function in C", "use letters, digits and _"))
    for func in funcs:
        layout = kernel_layout(func)
        define_kernel(unit, func, layout)
        _define_packed(unit, layout, result_dtype(func))
    return unit.source()


def define_kernel(unit: Unit, func: PrimFunc, layout: KernelLayout) -> None:
    """Adds `NAME__kernel` with the arguments of layout."""
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
    unit.define(f"static void {func.name}__kernel({', '.join(parameters) or 'void'}) {{\n" + "\n".join(p.lines) + "\n}")


def _define_packed(unit: Unit, layout: KernelLayout, result: str | None) -> None:
    """The function that checks the arguments (tw_check_args), unpacks the slots and calls the kernel.

    It returns 0 with the result, or -1 after tw_report of an error. result: the dtype of what the kernel returns, for
    which it gets the address of 64 bits; None: nothing.
    """
    name, table = layout.name, encode(layout.signature)
    raw = ", ".join(map(str, table))
    signature = unit.data(f"{name}__signature", f"static const uint8_t {name}__signature[{len(table)}] "
                          f"__attribute__((aligned(8))) = {{{raw}}};")
    p = Printer(unit, name)
    p.line(f"int64_t slots[{max(1, layout.signature.num_slots)}];")
    if result is not None:
        p.line("int64_t result = 0;")
    p.line(f"if (tw_check_args(args, count, {signature}, slots) != 0) return -1;")
    arguments = [f"({memory_type(b.dtype)} *)(intptr_t)slots[{k}]" for k, b in enumerate(layout.buffers)]
    for k, var in enumerate(layout.values, len(arguments)):
        arguments.append(_scalar(p, var.dtype, k))
    p.line(f"{name}__kernel({', '.join([*arguments, *(['&result'] if result is not None else [])])});")
    if unit.has_data(f"{name}__fault"):
        p.line(f"const char *fault = __atomic_exchange_n(&{name}__fault, NULL, __ATOMIC_RELAXED);")
        with p.block("if (fault != NULL)"):
            p.line('tw_report("tilewright.CallError", fault);')
            p.line("return -1;")
    type_ = "0" if result is None else "3" if dt.is_float(result) else "2" if result == "bool" else "1"
    if result == "uint64":
        type_ = "result < 0 ? 4 : 1"
    p.line(f"ret->type = {type_}, ret->padding = 0;")
    p.line(f"ret->value.integer = {'0' if result is None else 'result'};")
    p.line("return 0;")
    unit.define(f"int32_t __tvm_ffi_{name}(void *self, const tw_any *args, int32_t count, tw_any *ret) {{\n"
                "    (void)self;\n" + "\n".join(p.lines) + "\n}")


def _scalar(p: Printer, dtype: str, slot: int) -> str:
    """The value of dtype in a slot: integers are in its low bits, floats are bits of their own dtype."""
    if not dt.is_float(dtype):
        return f"slots[{slot}] != 0" if dtype == "bool" else f"({value_type(dtype)})slots[{slot}]"
    stored = memory_type(dtype)
    name = p.unit.helper(f"slot_{stored}", lambda: f"static inline {stored} slot_{stored}(const int64_t *slot) {{\n"
                         f"    {stored} x;\n    memcpy(&x, slot, sizeof x);\n    return x;\n}}")
    return from_memory(p, Text(f"{name}(&slots[{slot}])"), dtype).text
