"""Flat PrimFuncs to an object file."""
from __future__ import annotations

from collections.abc import Sequence

import llvmlite.binding as llvm

from tilewright.codegen.llvm.emit import emit_module
from tilewright.codegen.llvm.target import CpuTarget, feature_set, target_machine
from tilewright.support import config
from tilewright.support.errors import CodegenError
from tilewright.tir.stmt import PrimFunc


def compile_object(funcs: Sequence[PrimFunc], target: CpuTarget, extra: str = "") -> bytes:
    """The functions as one relocatable object file for the target. Raises CodegenError and TargetError."""
    return compile_text(llvm_ir(funcs, target, extra), target)


def llvm_ir(funcs: Sequence[PrimFunc], target: CpuTarget, extra: str = "") -> str:
    """The LLVM IR before optimisation."""
    contract = not (config.get("STRICT_MATH") or getattr(target, "strict_math", False))
    return emit_module(funcs, feature_set(target), contract, extra)


def optimize(text: str, target: CpuTarget) -> llvm.ModuleRef:
    """The module after the optimisation pipeline of the target's opt_level."""
    machine = target_machine(target)
    try:
        module = llvm.parse_assembly(text)
    except RuntimeError as error:
        raise CodegenError(f"LLVM refuses the generated code, which is a bug in Tilewright: {error}") from None
    module.triple = machine.triple
    module.data_layout = str(machine.target_data)
    if config.get("VERIFY"):
        module.verify()
    level = int(target.opt_level)
    if level > 0:
        options = llvm.create_pipeline_tuning_options(speed_level=level)
        options.loop_vectorization = level >= 2
        options.slp_vectorization = level >= 2
        builder = llvm.create_pass_builder(machine, options)
        builder.getModulePassManager().run(module, builder)
    return module


def compile_text(text: str, target: CpuTarget) -> bytes:
    """LLVM IR as an object file."""
    return target_machine(target).emit_object(optimize(text, target))


def assembly(funcs: Sequence[PrimFunc], target: CpuTarget, extra: str = "") -> str:
    """The machine code of the functions as assembly text."""
    return target_machine(target).emit_assembly(optimize(llvm_ir(funcs, target, extra), target))


def optimized_ir(funcs: Sequence[PrimFunc], target: CpuTarget, extra: str = "") -> str:
    """The LLVM IR after optimisation."""
    return str(optimize(llvm_ir(funcs, target, extra), target))
