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
from tilewright.codegen.llvm.target import target_machine
from tilewright.codegen.registry import register
from tilewright.lowering.passes import CPU
from tilewright.support.target.kinds import KINDS

__all__ = [
    "assembly",
    "compile_object",
    "compile_text",
    "emit_module",
    "llvm_ir",
    "optimized_ir",
    "standalone_object",
    "target_machine",
]

register(BackEnd("llvm", KINDS["llvm"], CPU, version=lambda: llvmlite.__version__, image=compile_object,
                 sources={"ll": llvm_ir, "s": assembly}, loader="object", image_of_text=compile_text,
                 standalone=standalone_object))
