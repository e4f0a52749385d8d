"""LLVM: flat PrimFuncs to LLVM IR text, object files and assembly."""
from __future__ import annotations

from tilewright.codegen.llvm.compile import (
    assembly,
    compile_object,
    compile_text,
    llvm_ir,
    optimized_ir,
    standalone_object,
)
from tilewright.codegen.llvm.emit import emit_module
from tilewright.codegen.llvm.imports import with_imports
from tilewright.codegen.llvm.layout import KernelLayout, kernel_layout
from tilewright.codegen.llvm.target import CpuTarget, feature_set, target_machine

__all__ = [
    "CpuTarget",
    "KernelLayout",
    "assembly",
    "compile_object",
    "compile_text",
    "emit_module",
    "feature_set",
    "kernel_layout",
    "llvm_ir",
    "optimized_ir",
    "standalone_object",
    "target_machine",
    "with_imports",
]
