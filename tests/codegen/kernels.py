"""Compiling and calling kernels. Those of LLVM run without the runtime: its symbols are stubs in LLVM IR."""
from __future__ import annotations

import ctypes
import itertools
from collections.abc import Sequence
from typing import Any

import llvmlite.binding as llvm
import ml_dtypes
import numpy as np

from tilewright.codegen.c import compile_functions
from tilewright.codegen.layout import kernel_layout
from tilewright.codegen.llvm import compile_object, compile_text
from tilewright.lowering import split
from tilewright.lowering.guard_accesses import guard_accesses
from tilewright.runtime.loader import load_objects
from tilewright.support.target import Target
from tilewright.support.target import target as resolve_target
from tilewright.tir import dtype as dt
from tilewright.tir.buffer import Buffer, decl_buffer
from tilewright.tir.conversion import cast, convert
from tilewright.tir.expr import Expr, Ramp, Var
from tilewright.tir.stmt import PrimFunc, Stmt, Store, loop, seq


class Cpu(Target):
    """This host, or another CPU."""

    def __init__(self, mcpu: str = "", features: str = "", triple: str | None = None, opt_level: int = 3) -> None:
        given = {"mcpu": mcpu, "mattr": features, "mtriple": triple}
        super().__init__(" ".join([f"llvm -opt-level={opt_level}", *(f"-{k}={v}" for k, v in given.items() if v)]))


HOST = Cpu()
BACK_END = "llvm"                      # what makes the code: of a test by the fixture `back_end`
STUBS = """
declare ptr @aligned_alloc(i64, i64)
declare void @free(ptr)
define weak void @tw_parallel(ptr %f, ptr %env, i64 %n) {
  %half = sdiv i64 %n, 2
  call void %f(i64 0, i64 %half, ptr %env)
  call void %f(i64 %half, i64 %n, ptr %env)
  ret void
}
define weak ptr @tw_alloc(i64 %n) {
  %a = add i64 %n, 127
  %b = and i64 %a, -64
  %p = call ptr @aligned_alloc(i64 64, i64 %b)
  ret ptr %p
}
define weak void @tw_free(ptr %p) {
  call void @free(ptr %p)
  ret void
}
define weak ptr @tw_fault(ptr %own) {
  ret ptr %own
}
define weak i32 @tw_run(ptr %a, i32 %n, ptr %r, ptr %s, ptr %run, ptr %f, i64 %slots, i32 %result) {
  ret i32 1
}
"""
_JIT: list[Any] = []
_COUNT = itertools.count()


def jit() -> Any:
    if not _JIT:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        _JIT.append(llvm.create_lljit_compiler())
    return _JIT[0]


def load(obj: bytes, *symbols: str) -> tuple[Any, dict[str, int]]:
    """The object linked into this process; keep the first result alive. (Addresses by symbol.)"""
    builder = llvm.JITLibraryBuilder().add_object_img(obj).add_current_process()
    for name in symbols:
        builder.export_symbol(name)
    library = builder.link(jit(), f"lib{next(_COUNT)}")
    return library, {name: library[name] for name in symbols}


def run(func: PrimFunc, *args: Any, target: Cpu = HOST, extra: str = "") -> None:
    """Call NAME__kernel on NumPy arrays (in place) and numbers, in the order of the parameters;
    shapes bind symbols.
    """
    keep, addresses = loaded([func], target, extra)
    layout = kernel_layout(func)
    by_param = dict(zip(func.params, args, strict=True))
    values: dict[Var, Any] = {p: by_param[p] for p in layout.scalars}
    pointers, types = [], []
    for p in func.params:
        if p in func.buffer_map:
            pointers.append(by_param[p].ctypes.data)
            types.append(ctypes.c_void_p)
            for extent, size in zip(func.buffer_map[p].shape, by_param[p].shape, strict=True):
                if isinstance(extent, Var):
                    values.setdefault(extent, size)
    for v in layout.values:
        types.append(_ctype(v.dtype))
        pointers.append(values[v])
    ctypes.CFUNCTYPE(None, *types)(addresses[func.name])(*pointers)
    del keep


def loaded(funcs: Sequence[PrimFunc], target: Cpu = HOST, extra: str = "") -> tuple[Any, dict[str, int]]:
    """(what keeps the code alive, the addresses of NAME__kernel by NAME), by the back end of the test."""
    symbols = {f.name: f"{f.name}__kernel" for f in funcs}
    funcs = [part for f in funcs for part in split(f)]
    if BACK_END == "llvm":
        keep, addresses = load(compile_object(funcs, target, STUBS + extra), *symbols.values())
        return keep, {name: addresses[symbol] for name, symbol in symbols.items()}
    cpu = f" -mcpu={target.mcpu}" if "mcpu" in target.attributes else ""
    library = load_objects([compile_functions(funcs, resolve_target(f"c -opt-level=1{cpu}"))])
    return library, {name: library.address(symbol) for name, symbol in symbols.items()}


def _ctype(dtype: str) -> Any:
    return {"float32": ctypes.c_float, "float64": ctypes.c_double, "bool": ctypes.c_bool}.get(
        dtype) or getattr(ctypes, f"c_{dtype}")


def flat(
    name: str, buffers: list[Buffer], body: Stmt, scalars: tuple[Var, ...] = (), **attrs: Any
) -> PrimFunc:
    """A flat function of 1-D (or N-D, accessed through `view`) buffers, then scalars."""
    params = [Var(f"{b.name}_handle", "handle") for b in buffers]
    attributes = {"global_symbol": name, **attrs}
    return guard_accesses(PrimFunc((*params, *scalars), body, dict(zip(params, buffers, strict=True)), attributes))


def view(buffer: Buffer) -> Buffer:
    """The flat buffer over the data of an N-D one."""
    total: Any = 1
    for extent in buffer.shape:
        total = extent * total
    return Buffer(buffer.name, (total,), buffer.dtype, data=buffer.data)


def vector(name: str, size: Any, dtype: str = "float32") -> Buffer:
    return decl_buffer((size,), dtype, name)


def numpy_of(dtype: str) -> np.dtype:
    return np.dtype(ml_dtypes.bfloat16) if dtype == "bfloat16" else dt.numpy_dtype(dtype)


def call_symbol(text: str, symbol: str, *arrays: np.ndarray, target: Cpu = HOST) -> None:
    """Compile IR text and call `void symbol(ptr...)`."""
    keep, address = load(compile_text(text, target), symbol)
    ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(arrays))(address[symbol])(
        *(a.ctypes.data for a in arrays)
    )
    del keep


def ramp(base: Any, lanes: int, stride: Any = 1) -> Expr:
    """base, base + stride, ... as an index; the scalar base for one lane."""
    start = convert(base)
    return start if lanes == 1 else Ramp(start, cast(start.dtype, convert(stride)), lanes)


def elementwise(
    compute: Any, inputs: list[np.ndarray], out_dtype: str, lanes: int = 1, target: Cpu = HOST
) -> np.ndarray:
    """out[i] = compute(a[i], b[i], ...) in vectors of `lanes`, compiled and run. The size is a
    multiple of lanes.
    """
    return elementwise_all({"out": compute}, inputs, out_dtype, lanes, target)["out"]


def elementwise_all(
    computes: dict[str, Any],
    inputs: list[np.ndarray],
    out_dtype: str | dict[str, str],
    lanes: int = 1,
    target: Cpu = HOST,
) -> dict[str, np.ndarray]:
    """Several functions of the same inputs, in one kernel. out_dtype: of all results, or by name."""
    size = len(inputs[0])
    dtypes = out_dtype if isinstance(out_dtype, dict) else dict.fromkeys(computes, out_dtype)
    buffers = [vector(f"in{k}", size, dt.canonical(x.dtype)) for k, x in enumerate(inputs)]
    outs, i = [vector(f"out_{name}", size, dtypes[name]) for name in computes], Var("i")
    at = ramp(i * lanes, lanes)
    stores = [
        Store(out, compute(*(b[at] for b in buffers)), (at,)) for out, compute in zip(outs, computes.values())
    ]
    results = {name: np.zeros(size, numpy_of(dtypes[name])) for name in computes}
    func = flat("elementwise", [*buffers, *outs], loop(i, size // lanes, seq(stores)))
    run(func, *inputs, *results.values(), target=target)
    return results
