"""The packed entry of a kernel: `__tvm_ffi_NAME`, callable through apache-tvm-ffi."""
from __future__ import annotations

from tilewright.codegen.layout import KernelLayout, result_code
from tilewright.codegen.llvm.builder import ModuleBuilder, bytes_literal
from tilewright.codegen.llvm.context import FunctionEmitter
from tilewright.codegen.llvm.types import register_type
from tilewright.runtime.signature_table import encode


def define_packed(module: ModuleBuilder, layout: KernelLayout, result: str | None) -> None:
    """Adds the entry, a call of `tw_run` in the runtime (native/packed.ll), and `NAME__run`, which that calls: it
    unpacks the slots and calls the kernel. result: the dtype of what the kernel returns; None: nothing.
    """
    name, table = layout.name, encode(layout.signature)
    signature = module.global_data(
        f"{name}__signature", f"constant [{len(table)} x i8] {bytes_literal(table)}, align 8"
    )
    fn = FunctionEmitter(module, name)
    arguments = []
    for k, dtype in enumerate([*("handle" for _ in layout.buffers), *(v.dtype for v in layout.values)]):
        slot = fn.value(f"getelementptr inbounds i64, ptr %slots, i64 {k}")
        arguments.append(f"{register_type(dtype)} {_scalar(fn, dtype, slot)}")
    if result is not None:
        arguments.append("ptr %result")
    fn.do(f"call void @{name}__kernel({', '.join(arguments)})")
    module.define(f"{name}__run", f"define internal void @{name}__run(ptr %slots, ptr %result) #0 {{\n"
                                  f"{fn.body()}\n  ret void\n}}")
    run = module.declare("tw_run", "i32", "ptr, i32, ptr, ptr, ptr, ptr, i64, i32")
    fault = "null"
    if module.has_global(f"{name}__fault"):
        fault = f"@{name}__fault"
    module.define(
        f"__tvm_ffi_{name}",
        f"define i32 @__tvm_ffi_{name}(ptr %self, ptr %args, i32 %n, ptr %ret) #0 {{\n"
        f"  %status = tail call i32 {run}(ptr %args, i32 %n, ptr %ret, ptr {signature}, ptr @{name}__run, ptr {fault}, "
        f"i64 {max(1, layout.signature.num_slots)}, i32 {result_code(result)})\n  ret i32 %status\n}}",
    )


def _scalar(fn: FunctionEmitter, dtype: str, slot: str) -> str:
    """The value of dtype in a slot: integers are in its low bits, floats are bits of their own dtype."""
    if dtype == "bool":
        return fn.value(f"icmp ne i64 {fn.effect(f'load i64, ptr {slot}, align 8')}, 0")
    return fn.effect(f"load {register_type(dtype)}, ptr {slot}, align 8")
