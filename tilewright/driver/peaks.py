"""What this machine can do at most, measured by compiled kernels: multiply-adds, dot products, bytes of memory."""
from __future__ import annotations

import ctypes
import functools
import hashlib
import json
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from time import perf_counter
from typing import Any

from tilewright import te
from tilewright.driver.build import compile, compile_text
from tilewright.records.objects import object_cache
from tilewright.runtime import empty, get_num_threads, set_num_threads
from tilewright.runtime.loader import load_objects
from tilewright.runtime.machine import available_cpus, available_memory, last_level_bytes
from tilewright.support import config
from tilewright.support.target import Target, target
from tilewright.support.target.cpus import host_cpu
from tilewright.support.views import View, Viewed, counted, readable_bytes

STEPS = 1_000_000             # rounds of one run: some milliseconds
REPEATS = 5                   # runs of which the best counts
LEAST_ARRAY = 64 << 20        # bytes of an array that no cache is taken to hold


@dataclass(frozen=True)
class Instruction:
    """f(accumulator, x, y) on vectors; operations: multiplications and additions for a lane of the accumulator."""
    accumulator: str
    operand: str
    name: str
    operations: int
    feature: str = ""         # without it the machine has no such instruction


def instructions(t: Target) -> dict[str, Instruction]:
    """The instructions whose peak is worth knowing, by the type of their operands."""
    rows = {
        "float32": _multiply_add("float", "f32", t.vector_bytes // 4),
        "float64": _multiply_add("double", "f64", t.vector_bytes // 8),
        "int8": Instruction("<16 x i32>", "<64 x i8>", "llvm.x86.avx512.vpdpbusd.512", 8, "avx512vnni"),
        "bfloat16": Instruction("<16 x float>", "<32 x bfloat>", "llvm.x86.avx512bf16.dpbf16ps.512", 4, "avx512bf16"),
    }
    return {kind: row for kind, row in rows.items() if not row.feature or t.has_feature(row.feature)}


def _multiply_add(element: str, suffix: str, lanes: int) -> Instruction:
    vector = f"<{lanes} x {element}>"
    return Instruction(vector, vector, f"llvm.fmuladd.v{lanes}{suffix}", 2)


def _kernel(row: Instruction, chains: int, size: int) -> str:
    """LLVM IR of void peak(ptr out): STEPS rounds of `chains` instructions that do not wait for each other."""
    acc, operand, each = row.accumulator, row.operand, range(chains)
    phi = "\n".join(f"  %a{k} = phi {acc} [ %i{k}, %entry ], [ %n{k}, %loop ]" for k in each)
    step = "\n".join(f"  %n{k} = call {acc} @{row.name}({acc} %a{k}, {operand} %x, {operand} %y)" for k in each)
    loads = "\n".join(f"  %p{k} = getelementptr i8, ptr %out, i64 {size * k}\n"
                      f"  %i{k} = load {acc}, ptr %p{k}, align 4" for k in each)
    stores = "\n".join(f"  store {acc} %n{k}, ptr %p{k}, align 4" for k in each)
    return f"""declare {acc} @{row.name}({acc}, {operand}, {operand})
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


def operations(kind: str, threads: int) -> tuple[Callable[[], object], float]:
    """A call that runs the kernel of an instruction on every thread at once, and the operations that it makes."""
    t = target()
    row = instructions(t)[kind]
    chains = 20 if t.vector_bytes == 64 else 12                 # registers: 32 and 16
    size = t.vector_bytes
    library = load_objects([compile_text(_kernel(row, chains, size), t)])
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(library.address("peak"))
    outs = [empty((chains * size // 4,)) for _ in range(threads)]
    for out in outs:
        out[...] = 0.5
    pool = ThreadPoolExecutor(threads)

    def call(held: object = library) -> object:                 # the code lives as long as its library
        return list(pool.map(lambda out: function(out.data_ptr), outs))     # ctypes releases the GIL
    lanes = int(row.accumulator[1:].split()[0])
    return call, float(row.operations * lanes * chains * STEPS * threads)


# ---- memory

def stream_kernels(elements: int) -> dict[str, tuple[Any, Sequence[int], int]]:
    """{name: (function, which of the arrays A, B, C it takes, arrays that cross the bus)} of `elements` float32 each.

    copy: B = A; triad: C = A + 3 B; read: the sum of A. What a store reads of the memory that it fills is not counted,
    as in STREAM (McCalpin, Memory Bandwidth and Machine Balance, 1995).
    """
    A, B = (te.placeholder((elements,), name=name) for name in "AB")
    copy = te.compute((elements,), lambda i: A[i], name="B")
    triad = te.compute((elements,), lambda i: A[i] + B[i] * 3.0, name="C")
    k = te.reduce_axis((0, elements), name="k")
    read = te.compute((1,), lambda _: te.sum(A[k], axis=k), name="S")
    return {"copy": (compile([A, copy], name="copy"), (0, 1), 2), "read": (compile([A, read], name="read"), (0, 3), 1),
            "triad": (compile([A, B, triad], name="triad"), (0, 1, 2), 3)}


def array_bytes() -> int:
    """Bytes of an array as large as the last-level caches, as far as memory allows: three are beyond them."""
    return max(LEAST_ARRAY, min(last_level_bytes(), available_memory() // 8) // 4096 * 4096)


# ---- both

@dataclass(frozen=True, repr=False)
class Peaks(Viewed):
    """What was measured on a machine: pairs (on one thread, on all `threads`), in operations/s and bytes/s."""
    cpu: str
    threads: int
    array_bytes: int
    operations: Mapping[str, Sequence[float]]
    bandwidth: Mapping[str, Sequence[float]]

    def of(self, dtype: str, threads: int) -> float | None:
        """Operations/s of the fastest instruction for a type of operands; None where it was not measured."""
        pair = self.operations.get(dtype)
        return None if pair is None else _on(threads, pair)

    def bytes_per_second(self, threads: int) -> float:
        """The most that a kernel moved: of copy, triad and read."""
        return max(_on(threads, pair) for pair in self.bandwidth.values())

    def best_of(self, other: Peaks) -> Peaks:
        """The higher figure of each quantity: noise makes a measurement lower, never higher.

        Of arrays of different sizes the larger ones tell what memory gives.
        """
        if self.array_bytes == other.array_bytes:
            bandwidth: Mapping[str, Sequence[float]] = _higher(self.bandwidth, other.bandwidth)
        else:
            bandwidth = max(self, other, key=lambda p: p.array_bytes).bandwidth
        return replace(self, array_bytes=max(self.array_bytes, other.array_bytes), bandwidth=bandwidth,
                       operations=_higher(self.operations, other.operations))

    def view(self) -> View:
        rows = [(f"multiply-adds of {kind}" if kind.startswith("float") else f"dot products of {kind}",
                 *(f"{x / 1e9:.1f} G{'FLOP' if 'float' in kind else 'op'}/s" for x in pair))
                for kind, pair in self.operations.items()]
        rows += [(f"memory, {kind}", *(f"{x / 1e9:.2f} GB/s" for x in pair)) for kind, pair in self.bandwidth.items()]
        return View(f"peaks of {self.cpu}; memory: arrays of {readable_bytes(self.array_bytes)}", rows,
                    ("", "one thread", counted(self.threads, "thread")))


def _higher(a: Mapping[str, Sequence[float]], b: Mapping[str, Sequence[float]]) -> dict[str, list[float]]:
    """For each quantity of a, the higher figure of each pair."""
    return {kind: [max(figures) for figures in zip(pair, b.get(kind, pair), strict=True)] for kind, pair in a.items()}


def _on(threads: int, pair: Sequence[float]) -> float:
    """The figure for some threads, from that of one and of all."""
    one, everyone = pair
    return one if threads == 1 else min(threads * one, everyone)


def measure(size: int | None = None) -> Peaks:
    """Measure this machine, with arrays of `size` bytes (default: `array_bytes()`); takes seconds."""
    size = array_bytes() if size is None else size
    everyone = available_cpus()
    flops = {}
    for kind in instructions(target()):
        flops[kind] = [done / _best(call) for call, done in (operations(kind, n) for n in (1, everyone))]
    arrays = [empty((size // 4,)), empty((size // 4,)), empty((size // 4,)), empty((1,))]
    for x in arrays:
        x[...] = 1.0
    moved: dict[str, list[float]] = {}
    for name, (function, places, crossing) in stream_kernels(size // 4).items():
        chosen = [arrays[p] for p in places]
        moved[name] = []
        for threads in (1, everyone):
            with _threads(threads):
                moved[name].append(crossing * size / _best(lambda f=function, a=chosen: f(*a)))  # type: ignore[misc]
    return Peaks(host_cpu()[0], everyone, size, flops, moved)


def _best(call: Callable[[], object]) -> float:
    """Seconds of the fastest of some calls, after one that does not count."""
    times = []
    for _ in range(1 + REPEATS):
        start = perf_counter()
        call()
        times.append(perf_counter() - start)
    return min(times[1:])


@contextmanager
def _threads(count: int) -> Iterator[None]:
    before = get_num_threads()
    set_num_threads(count)
    try:
        yield
    finally:
        set_num_threads(before)


# ---- kept between processes

def stored_peaks() -> Peaks | None:
    """What was measured on this machine before, or None."""
    found = object_cache().get(_key()) if config.get("CACHE") else None
    return None if found is None else Peaks(**json.loads(found))


def store(peaks: Peaks) -> None:
    """Keep peaks for other processes on this machine, in the cache of compiled objects."""
    if config.get("CACHE"):
        object_cache().put(_key(), json.dumps(asdict(peaks)).encode())


def _key() -> str:
    """The entry of this host, with the processors that this process may use."""
    return hashlib.sha256(f"peaks 1 {platform.node()} {host_cpu()} {available_cpus()}".encode()).hexdigest()


@functools.cache
def machine_peaks() -> Peaks:
    """The peaks of this machine: those stored, else measured now, which takes seconds, and stored."""
    found = stored_peaks()
    if found is None:
        found = measure()
        store(found)
    return found
