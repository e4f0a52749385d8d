"""Kernels in hand-written LLVM IR, wrapped as the code generator wraps its own."""
from __future__ import annotations

import llvmlite.binding as llvm

from tilewright.runtime import native
from tilewright.runtime.loader import host_triple
from tilewright.runtime.module import Module
from tilewright.runtime.signature import Param, Signature

# C[i] = A[i] * 2 for i in range(n), in parallel chunks
SCALE = """
define void @scale__kernel(ptr %A, ptr %C, i64 %n) {
  %env = alloca { ptr, ptr }
  store ptr %A, ptr %env
  %c = getelementptr { ptr, ptr }, ptr %env, i64 0, i32 1
  store ptr %C, ptr %c
  call void @tw_parallel(ptr @scale__par0, ptr %env, i64 %n)
  ret void
}
define void @scale__par0(i64 %begin, i64 %end, ptr %env) {
entry:
  %A = load ptr, ptr %env
  %c = getelementptr { ptr, ptr }, ptr %env, i64 0, i32 1
  %C = load ptr, ptr %c
  br label %loop
loop:
  %i = phi i64 [ %begin, %entry ], [ %next, %loop ]
  %a.at = getelementptr float, ptr %A, i64 %i
  %a = load float, ptr %a.at, align 4
  %v = fmul float %a, 2.0
  %c.at = getelementptr float, ptr %C, i64 %i
  store float %v, ptr %c.at, align 4
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %end
  br i1 %more, label %loop, label %done
done:
  ret void
}
declare void @tw_parallel(ptr, ptr, i64)
"""
SCALE_SIGNATURE = Signature("scale", (Param("A", "float32", ("n",)), Param("C", "float32", ("n",), written=True)))


def slots_kernel(name: str, count: int) -> str:
    """A kernel that copies its `count` slots to the i64 buffer behind its first one."""
    params = ", ".join(f"i64 %s{i}" for i in range(count))
    stores = "\n".join(f"  %a{i} = getelementptr i64, ptr %out, i64 {i}\n  store i64 %s{i}, ptr %a{i}" for i in range(count))
    return f"define void @{name}__kernel({params}) {{\n  %out = inttoptr i64 %s0 to ptr\n{stores}\n  ret void\n}}\n"


def wrapper(signature: Signature, pointers: bool = True) -> str:
    """The packed function of a kernel: check, load the slots, call."""
    name, count, table = signature.name, signature.num_slots, signature.encode()
    data = "".join(f"\\{b:02X}" for b in table)
    types = ["ptr" if pointers and i < len(signature.buffers) else "i64" for i in range(count)]
    loads = "\n".join(f"  %at{i} = getelementptr i64, ptr %slots, i64 {i}\n  %v{i} = load {t}, ptr %at{i}"
                      for i, t in enumerate(types))
    args = ", ".join(f"{t} %v{i}" for i, t in enumerate(types))
    return f"""
@{name}__signature = constant [{len(table)} x i8] c"{data}", align 8
declare i32 @tw_check_args(ptr, i32, ptr, ptr)
define i32 @__tvm_ffi_{name}(ptr %self, ptr %args, i32 %n, ptr %ret) {{
  %slots = alloca [{max(1, count)} x i64]
  %status = call i32 @tw_check_args(ptr %args, i32 %n, ptr @{name}__signature, ptr %slots)
  %bad = icmp ne i32 %status, 0
  br i1 %bad, label %fail, label %run
fail:
  ret i32 -1
run:
{loads}
  call void @{name}__kernel({args})
  store i32 0, ptr %ret
  ret i32 0
}}
"""


def compile_ir(text: str) -> bytes:
    native.initialize_targets()
    machine = llvm.Target.from_triple(host_triple()).create_target_machine(opt=2, reloc="pic", codemodel="default")
    module = llvm.parse_assembly(f'target triple = "{host_triple()}"\n{text}')
    return machine.emit_object(module)


def build(signature: Signature, kernel: str, pointers: bool = True) -> Module:
    return Module([compile_ir(kernel + wrapper(signature, pointers))], {signature.name: signature})


def probe(*params: Param, **types: str) -> Module:
    """f(OUT, *params): OUT, an i64 buffer, receives the slots."""
    signature = Signature("f", (Param("OUT", "int64", (32,), written=True), *params), types)
    return build(signature, slots_kernel("f", signature.num_slots), pointers=False)


def scale() -> Module:
    return build(SCALE_SIGNATURE, SCALE)
