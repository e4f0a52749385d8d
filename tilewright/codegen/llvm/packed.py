"""The packed entry of a kernel: `__tvm_ffi_NAME`, callable through apache-tvm-ffi."""
from __future__ import annotations

from tilewright.codegen.layout import KernelLayout
from tilewright.codegen.llvm.builder import LIKELY, ModuleBuilder, bytes_literal
from tilewright.codegen.llvm.context import FunctionEmitter
from tilewright.codegen.llvm.small_floats import from_memory
from tilewright.codegen.llvm.types import memory_type, register_type
from tilewright.runtime.signature_table import encode
from tilewright.tir import dtype as dt


def define_packed(module: ModuleBuilder, layout: KernelLayout, fault: str | None, result: str | None = None) -> None:
    """Adds the wrapper that checks the arguments (tw_check_args), unpacks the slots and calls the kernel.

    It returns 0 with the result, or -1 after tw_report of an error. `fault` is the global in which the kernel
    leaves the number of a failed check; None when it has none. `result` is the dtype of what the kernel returns, for
    which it gets the address of 64 bits; None: nothing.
    """
    name, table = layout.name, encode(layout.signature)
    signature = module.global_data(
        f"{name}__signature", f"constant [{len(table)} x i8] {bytes_literal(table)}, align 8"
    )
    check = module.declare("tw_check_args", "i32", "ptr, i32, ptr, ptr")
    slots = max(1, layout.signature.num_slots)
    lines = [
        f"  %slots = alloca [{slots} x i64], align 8",
        *(["  %result = alloca i64, align 8", "  store i64 0, ptr %result, align 8"] if result is not None else []),
        f"  %bad = call i32 {check}(ptr %args, i32 %n, ptr {signature}, ptr %slots)",
        "  %ok = icmp eq i32 %bad, 0",
        f"  br i1 %ok, label %run, label %fail, !prof {module.metadata(LIKELY)}",
        "run:",
    ]
    fn = FunctionEmitter(module, name)
    arguments = []
    for k, dtype in enumerate([*("handle" for _ in layout.buffers), *(v.dtype for v in layout.values)]):
        slot = fn.value(f"getelementptr inbounds i64, ptr %slots, i64 {k}")
        arguments.append(f"{register_type(dtype)} {_scalar(fn, dtype, slot)}")
    if result is not None:
        arguments.append("ptr %result")
    lines += fn.lines
    lines.append(f"  call void @{name}__kernel({', '.join(arguments)})")
    if fault is not None:
        lines += _fault_lines(module, fault)
    lines += [
        *(["  %bits = add i64 0, 0"] if result is None else ["  %bits = load i64, ptr %result, align 8"]),
        *_type_lines(result),
        "  store i64 %type, ptr %ret, align 8",
        "  %value = getelementptr inbounds i64, ptr %ret, i64 1",
        "  store i64 %bits, ptr %value, align 8",
        "  ret i32 0",
        "fail:",
        "  ret i32 -1",
    ]
    module.define(
        f"__tvm_ffi_{name}",
        f"define i32 @__tvm_ffi_{name}(ptr %self, ptr %args, i32 %n, ptr %ret) #0 {{\n"
        + "\n".join(lines)
        + "\n}",
    )


def _type_lines(dtype: str | None) -> list[str]:
    """%type is the ffi's number for None, an integer, a bool or a float; a uint64 from 2**63 on is a pointer."""
    if dtype == "uint64":
        return ["  %large = icmp slt i64 %bits, 0", "  %type = select i1 %large, i64 4, i64 1"]
    index = 0 if dtype is None else 3 if dt.is_float(dtype) else 2 if dtype == "bool" else 1
    return [f"  %type = add i64 0, {index}"]


def _scalar(fn: FunctionEmitter, dtype: str, slot: str) -> str:
    """The value of dtype in a slot: integers are in its low bits, floats are bits of their own dtype."""
    if dtype == "bool":
        return fn.value(f"icmp ne i64 {fn.effect(f'load i64, ptr {slot}, align 8')}, 0")
    return from_memory(fn, fn.effect(f"load {memory_type(dtype)}, ptr {slot}, align 8"), dtype)


def _fault_lines(module: ModuleBuilder, fault: str) -> list[str]:
    """After the kernel: raise the error that its checks recorded, if any."""
    report = module.declare("tw_report", "void", "ptr, ptr")
    kind = module.c_string("tilewright.CallError")
    return [
        f"  %fault = atomicrmw xchg ptr {fault}, ptr null monotonic",
        "  %clean = icmp eq ptr %fault, null",
        f"  br i1 %clean, label %done, label %faulted, !prof {module.metadata(LIKELY)}",
        "faulted:",
        # pointing at itself: a function that the kernel called has raised already
        f"  %raised = icmp eq ptr %fault, {fault}",
        "  br i1 %raised, label %fail, label %report",
        "report:",
        f"  call void {report}(ptr {kind}, ptr %fault)",
        "  br label %fail",
        "done:",
    ]
