"""The machine's peak in operations/s: multiply-adds, or dot products, on independent accumulators in registers."""
from __future__ import annotations

import ctypes
from concurrent.futures import ThreadPoolExecutor

from tilewright import runtime
from tilewright.driver import compile_text, target
from tilewright.runtime.loader import load_objects

CHAINS = 20                       # independent accumulators, enough to hide the latency of an instruction
CHAINS_OF_16 = 12                 # of a machine with 16 vector registers
STEPS = 1_000_000
# kind of elements: (accumulator, operands, intrinsic f(accumulator, x, y), operations per lane), for `n` lanes
INSTRUCTIONS = {
    "float32": ("<{n} x float>", "<{n} x float>", "llvm.fma.v{n}f32", 2),
    "int8": ("<16 x i32>", "<64 x i8>", "llvm.x86.avx512.vpdpbusd.512", 8),
    "bfloat16": ("<16 x float>", "<32 x bfloat>", "llvm.x86.avx512bf16.dpbf16ps.512", 4),
}


def kernel(kind: str, lanes: int, chains: int) -> str:
    """LLVM IR of void peak(ptr out): STEPS rounds of `chains` instructions."""
    acc, operand, name = (part.format(n=lanes) for part in INSTRUCTIONS[kind][:3])
    each = range(chains)
    phi = "\n".join(f"  %a{k} = phi {acc} [ %i{k}, %entry ], [ %n{k}, %loop ]" for k in each)
    step = "\n".join(f"  %n{k} = call {acc} @{name}({acc} %a{k}, {operand} %x, {operand} %y)" for k in each)
    loads = "\n".join(f"  %p{k} = getelementptr i8, ptr %out, i64 {4 * lanes * k}\n"
                      f"  %i{k} = load {acc}, ptr %p{k}, align 4" for k in each)
    stores = "\n".join(f"  store {acc} %n{k}, ptr %p{k}, align 4" for k in each)
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
{step}
  %s1 = add i64 %s, 1
  %c = icmp ult i64 %s1, {STEPS}
  br i1 %c, label %loop, label %exit
exit:
{stores}
  ret void
}}
"""


def prepare(kind: str, threads: int) -> tuple[object, dict[str, float]]:
    """A call that runs the kernel on every thread at once, and the operations (multiplications, additions) it makes."""
    lanes = target().vector_bytes // 4
    chains = CHAINS if lanes == 16 else CHAINS_OF_16
    library = load_objects([compile_text(kernel(kind, lanes, chains), target())])
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(library.address("peak"))
    outs = [runtime.empty((chains * lanes,), "float32") for _ in range(threads)]
    for o in outs:
        o.copyfrom([0.5] * (chains * lanes))
    pool = ThreadPoolExecutor(threads)

    def call() -> None:
        list(pool.map(lambda o: function(o.data_ptr), outs))          # ctypes releases the GIL
    call.library = library  # type: ignore[attr-defined]
    return call, {"operations": float(INSTRUCTIONS[kind][3] * lanes * chains * STEPS * threads)}
