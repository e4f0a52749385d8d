"""Kernels in hand-written LLVM IR, wrapped as the code generator wraps its own."""
from __future__ import annotations

from typing import Any

import llvmlite.binding as llvm
import numpy as np

from tilewright.runtime.llvm import host_triple, initialize_targets
from tilewright.runtime.loader import Image
from tilewright.runtime.module import Module
from tilewright.runtime.signature import Param, Signature
from tilewright.runtime.signature_table import encode

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
SCALE_SIGNATURE = Signature("scale", (Param("A", "float32", ("n",)),
                                      Param("C", "float32", ("n",), written=True)))

# HITS[i, j] += 1 for i in parallel(n) for j in parallel(m): a region inside a region
COVER = """
define void @cover__kernel(ptr %hits, i64 %n, i64 %m) {
  %env = alloca { ptr, i64 }
  store ptr %hits, ptr %env
  %m.at = getelementptr { ptr, i64 }, ptr %env, i64 0, i32 1
  store i64 %m, ptr %m.at
  call void @tw_parallel(ptr @cover__par0, ptr %env, i64 %n)
  ret void
}
define void @cover__par0(i64 %begin, i64 %end, ptr %env) {
entry:
  %hits = load ptr, ptr %env
  %m.at = getelementptr { ptr, i64 }, ptr %env, i64 0, i32 1
  %m = load i64, ptr %m.at
  %row = alloca ptr
  br label %loop
loop:
  %i = phi i64 [ %begin, %entry ], [ %next, %loop ]
  %offset = mul i64 %i, %m
  %at = getelementptr i32, ptr %hits, i64 %offset
  store ptr %at, ptr %row
  call void @tw_parallel(ptr @cover__par1, ptr %row, i64 %m)
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %end
  br i1 %more, label %loop, label %done
done:
  ret void
}
define void @cover__par1(i64 %begin, i64 %end, ptr %env) {
entry:
  %row = load ptr, ptr %env
  br label %loop
loop:
  %j = phi i64 [ %begin, %entry ], [ %next, %loop ]
  %at = getelementptr i32, ptr %row, i64 %j
  %old = atomicrmw add ptr %at, i32 1 monotonic, align 4
  %next = add i64 %j, 1
  %more = icmp slt i64 %next, %end
  br i1 %more, label %loop, label %done
done:
  ret void
}
declare void @tw_parallel(ptr, ptr, i64)
"""
COVER_SIGNATURE = Signature("cover", (Param("HITS", "int32", ("n", "m"), written=True),))

# WHO[i] = the thread that ran iteration i, which takes SPIN additions
WHO = """
define void @who__kernel(ptr %who, i64 %spin, i64 %n) {
  %env = alloca { ptr, i64 }
  store ptr %who, ptr %env
  %s.at = getelementptr { ptr, i64 }, ptr %env, i64 0, i32 1
  store i64 %spin, ptr %s.at
  call void @tw_parallel(ptr @who__par0, ptr %env, i64 %n)
  ret void
}
define void @who__par0(i64 %begin, i64 %end, ptr %env) {
entry:
  %who = load ptr, ptr %env
  %s.at = getelementptr { ptr, i64 }, ptr %env, i64 0, i32 1
  %spin = load i64, ptr %s.at
  %work = alloca i64
  store i64 0, ptr %work
  br label %loop
loop:
  %i = phi i64 [ %begin, %entry ], [ %next, %mark ]
  br label %busy
busy:
  %k = phi i64 [ 0, %loop ], [ %k.next, %busy ]
  %w = load volatile i64, ptr %work
  %w.next = add i64 %w, 1
  store volatile i64 %w.next, ptr %work
  %k.next = add i64 %k, 1
  %again = icmp slt i64 %k.next, %spin
  br i1 %again, label %busy, label %mark
mark:
  %id = call i64 @pthread_self()
  %at = getelementptr i64, ptr %who, i64 %i
  store i64 %id, ptr %at
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %end
  br i1 %more, label %loop, label %done
done:
  ret void
}
declare i64 @pthread_self()
declare void @tw_parallel(ptr, ptr, i64)
"""
WHO_SIGNATURE = Signature("who", (Param("WHO", "int64", ("n",), written=True), Param("spin", "int64")))


def slots_kernel(name: str, count: int) -> str:
    """A kernel that copies its `count` slots to the i64 buffer behind its first one."""
    params = ", ".join(f"i64 %s{i}" for i in range(count))
    stores = "".join(f"  %a{i} = getelementptr i64, ptr %out, i64 {i}\n  store i64 %s{i}, ptr %a{i}\n"
                     for i in range(count))
    return f"define void @{name}__kernel({params}) {{\n  %out = inttoptr i64 %s0 to ptr\n{stores}  ret void\n}}\n"


def wrapper(signature: Signature, pointers: bool = True) -> str:
    """The packed function of a kernel: check, load the slots, call."""
    name, count, table = signature.name, signature.num_slots, encode(signature)
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
    initialize_targets()
    target = llvm.Target.from_triple(host_triple())
    machine = target.create_target_machine(opt=2, reloc="pic", codemodel="default")
    module = llvm.parse_assembly(f'target triple = "{host_triple()}"\n{text}')
    return machine.emit_object(module)


def build(signature: Signature, kernel: str, pointers: bool = True) -> Module:
    return Module([Image("object", compile_ir(kernel + wrapper(signature, pointers)), (signature.name,))],
                  {signature.name: signature})


def probe(*params: Param, **types: str) -> Module:
    """f(OUT, *params): OUT, an i64 buffer, receives the slots."""
    signature = Signature("f", (Param("OUT", "int64", (32,), written=True), *params), types)
    return build(signature, slots_kernel("f", signature.num_slots), pointers=False)


class Exporter:
    """An array of another library, with attributes of its own."""

    def __init__(self, values: np.ndarray, **attributes: object) -> None:
        self.values = values
        self.__dict__.update(attributes)

    def __dlpack__(self, **kwargs: Any) -> Any:
        return self.values.__dlpack__(**kwargs)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


def scale() -> Module:
    return build(SCALE_SIGNATURE, SCALE)


def cover() -> Module:
    return build(COVER_SIGNATURE, COVER)


def who() -> Module:
    return build(WHO_SIGNATURE, WHO)
