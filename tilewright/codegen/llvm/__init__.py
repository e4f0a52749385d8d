"""LLVM: flat PrimFuncs to LLVM IR text, object files and assembly."""
from __future__ import annotations

import llvmlite

from tilewright.codegen.back_end import BackEnd
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
from tilewright.codegen.llvm.target import CpuTarget, feature_set, target_machine

__all__ = [
    "BACK_END",
    "CpuTarget",
    "assembly",
    "compile_object",
    "compile_text",
    "emit_module",
    "feature_set",
    "llvm_ir",
    "optimized_ir",
    "standalone_object",
    "target_machine",
    "with_imports",
]

BACK_END = BackEnd("llvm", llvmlite.__version__, threads=False, finished=with_imports, image=compile_object,
                   image_of_text=compile_text, standalone=standalone_object,
                   sources={"ll": llvm_ir, "s": assembly})
