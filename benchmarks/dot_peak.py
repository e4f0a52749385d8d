"""The peak of a dot-product instruction in operations/s, measured with independent accumulators in registers."""
from __future__ import annotations

import ctypes

from tilewright import runtime
from tilewright.driver import compile_text, target
from tilewright.runtime.loader import load_objects

CHAINS = 20                       # independent accumulators, enough to hide the latency of an instruction
STEPS = 1_000_000
# kind: (type of an accumulator, types of the operands, intrinsic, operations per lane)
INSTRUCTIONS = {
    "int8": ("<16 x i32>", "<64 x i8>", "llvm.x86.avx512.vpdpbusd.512", 8),
    "bfloat16": ("<16 x float>", "<32 x bfloat>", "llvm.x86.avx512bf16.dpbf16ps.512", 4),
}


def kernel(kind: str) -> str:
    """LLVM IR of void peak(ptr out): STEPS rounds of CHAINS instructions."""
    acc, operand, name, _ = INSTRUCTIONS[kind]
    phi = "\n".join(f"  %a{k} = phi {acc} [ %i{k}, %entry ], [ %n{k}, %loop ]" for k in range(CHAINS))
    dot = "\n".join(f"  %n{k} = call {acc} @{name}({acc} %a{k}, {operand} %x, {operand} %y)" for k in range(CHAINS))
    loads = "\n".join(f"  %p{k} = getelementptr i8, ptr %out, i64 {64 * k}\n"
                      f"  %i{k} = load {acc}, ptr %p{k}, align 4" for k in range(CHAINS))
    stores = "\n".join(f"  store {acc} %n{k}, ptr %p{k}, align 4" for k in range(CHAINS))
    return f"""declare {acc} @{name}({acc}, {operand}, {operand})
define void @peak(ptr %out) "prefer-vector-width"="512" {{
entry:
{loads}
  %x = load {operand}, ptr %out, align 4
  %y = load {operand}, ptr %p1, align 4
  br label %loop
loop:
  %s = phi i64 [ 0, %entry ], [ %s1, %loop ]
{phi}
{dot}
  %s1 = add i64 %s, 1
  %c = icmp ult i64 %s1, {STEPS}
  br i1 %c, label %loop, label %exit
exit:
{stores}
  ret void
}}
"""


def prepare(kind: str) -> tuple[object, dict[str, float]]:
    """A call that runs the kernel on this thread, and the operations (multiplications and additions) it makes."""
    library = load_objects([compile_text(kernel(kind), target())])
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(library.address("peak"))
    out = runtime.empty((CHAINS * 16,), "float32")
    out.copyfrom([0.0] * (CHAINS * 16))

    def call() -> None:
        function(out.data_ptr)
    call.library = library  # type: ignore[attr-defined]
    return call, {"operations": float(INSTRUCTIONS[kind][3] * 16 * CHAINS * STEPS)}
