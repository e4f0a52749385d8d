"""A module of flat PrimFuncs as LLVM IR text."""
from __future__ import annotations

from collections.abc import Sequence

from tilewright.codegen.layout import KernelLayout, layouts
from tilewright.codegen.llvm import (  # noqa: F401  (they fill the tables)
    arithmetic,
    calls,
    casts,
    intrinsics,
    loads,
    parallel,
    statements,
    stores,
    tables,
)
from tilewright.codegen.llvm.builder import ModuleBuilder
from tilewright.codegen.llvm.context import FunctionEmitter
from tilewright.codegen.llvm.packed import define_packed
from tilewright.codegen.llvm.parallel import pointer_attributes
from tilewright.codegen.llvm.types import register_type
from tilewright.lowering.code_size import LONG, code_size
from tilewright.tir import dtype as dt
from tilewright.tir.returns import result_dtype
from tilewright.tir.stmt import PrimFunc


def emit_module(funcs: Sequence[PrimFunc], features: frozenset[str] = frozenset(), contract: bool = True,
                extra: str = "") -> str:
    """LLVM IR of the functions: for each NAME that is no region its `NAME__kernel` and its packed entry
    `__tvm_ffi_NAME`.

    features: what the CPU has ("avx512f", ...). contract: a * b + c may become one FMA. extra: IR
    appended as it is.
    Raises CodegenError for what has no machine code.
    """
    module = ModuleBuilder(contract, features)
    module.long = sum(code_size(f.body, lambda: features) for f in funcs) > LONG
    module.functions = {f.name: f for f in funcs}
    for func, layout in layouts(funcs).items():
        define_kernel(module, func, layout)
        define_packed(module, layout, result_dtype(func))
    return module.text(extra) + attribute_groups(features)


def attribute_groups(features: frozenset[str]) -> str:
    """#0 functions, #1 those not to be inlined, #2 elementary functions, #3 their rare parts, #4 what
    happens at most once.
    """
    width = ' "prefer-vector-width"="512"' if "avx512f" in features else ""
    pure = "nounwind willreturn memory(none)"
    groups = ("nounwind", "nounwind noinline", pure, f"{pure} noinline cold", "nounwind noinline cold")
    return "".join(f"attributes #{k} = {{ {group}{width} }}\n" for k, group in enumerate(groups))


def define_kernel(module: ModuleBuilder, func: PrimFunc, layout: KernelLayout) -> None:
    """Adds `@NAME__kernel` with the arguments of layout."""
    fn = FunctionEmitter(module, func.name)
    fn.noalias = bool(func.attrs.get("tir.noalias", True))
    parameters = []
    for k, buffer in enumerate(layout.buffers):
        fn.pointers[buffer.data], fn.buffers[buffer.data] = f"%b{k}", buffer
        parameters.append(f"{pointer_attributes(buffer, fn.noalias)} %b{k}")
    for p in func.params:
        if p in func.buffer_map:
            fn.pointers[p] = fn.pointers[func.buffer_map[p].data]
    for k, var in enumerate(layout.values):
        fn.values[var] = f"%s{k}"
        parameters.append(f"{register_type(var.dtype)} %s{k}")
    if result_dtype(func) is not None:
        parameters.append("ptr noalias nocapture writeonly %result")
    fn.natural.update({v: dt.extent_limit(v.dtype) for v in layout.symbols})
    fn.stmt(func.body)
    module.define(
        f"{func.name}__kernel",
        f"define void @{func.name}__kernel({', '.join(parameters)}) #0 {{\n{fn.body()}\n  ret void\n}}",
    )
