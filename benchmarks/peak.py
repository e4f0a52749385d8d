"""The machine's FMA peak in FLOP/s, measured with independent multiply-adds on registers."""
from __future__ import annotations

import ctypes

from tilewright import runtime
from tilewright.driver import compile_text, target
from tilewright.runtime.loader import load_objects

CHAINS = 16                       # independent accumulators, enough to hide the latency of an FMA
STEPS = 1_000_000


def kernel(lanes: int) -> str:
    """LLVM IR of void peak(ptr out): STEPS rounds of CHAINS vector FMAs."""
    t = f"<{lanes} x float>"
    phi = "\n".join(f"  %a{k} = phi {t} [ %i{k}, %entry ], [ %n{k}, %loop ]" for k in range(CHAINS))
    fma = "\n".join(f"  %n{k} = call {t} @llvm.fma.v{lanes}f32({t} %a{k}, {t} %x, {t} %y)" for k in range(CHAINS))
    loads = "\n".join(f"  %p{k} = getelementptr float, ptr %out, i64 {k * lanes}\n"
                      f"  %i{k} = load {t}, ptr %p{k}, align 4" for k in range(CHAINS))
    stores = "\n".join(f"  store {t} %n{k}, ptr %p{k}, align 4" for k in range(CHAINS))
    return f"""declare {t} @llvm.fma.v{lanes}f32({t}, {t}, {t})
define void @peak(ptr %out) "prefer-vector-width"="512" {{
entry:
{loads}
  %x = load {t}, ptr %out, align 4
  %y = load {t}, ptr %p1, align 4
  br label %loop
loop:
  %s = phi i64 [ 0, %entry ], [ %s1, %loop ]
{phi}
{fma}
  %s1 = add i64 %s, 1
  %c = icmp ult i64 %s1, {STEPS}
  br i1 %c, label %loop, label %exit
exit:
{stores}
  ret void
}}
"""


def prepare_tilewright_peak(threads: int) -> tuple[object, dict[str, float]]:
    """A call that runs the kernel on every thread at once, and the FLOPs it makes."""
    from concurrent.futures import ThreadPoolExecutor

    lanes = target().vector_bytes // 4
    library = load_objects([compile_text(kernel(lanes), target())])
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(library.address("peak"))
    outs = [runtime.empty((CHAINS * lanes,), "float32") for _ in range(threads)]
    for o in outs:
        o.copyfrom([0.5] * (CHAINS * lanes))
    pool = ThreadPoolExecutor(threads)

    def call() -> None:
        list(pool.map(lambda o: function(o.data_ptr), outs))          # ctypes releases the GIL
    call.library = library  # type: ignore[attr-defined]
    return call, {"flops": 2.0 * CHAINS * lanes * STEPS * threads}
