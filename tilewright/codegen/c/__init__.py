"""C: flat PrimFuncs to readable C11 with the vector extensions of GCC and Clang, and, by a compiler, to objects."""
from __future__ import annotations

from tilewright.codegen.back_end import BackEnd
from tilewright.codegen.c.compile import c_source, compile_functions, compile_text, standalone, version
from tilewright.codegen.c.project import files
from tilewright.codegen.registry import register
from tilewright.lowering.passes import C
from tilewright.support.target.kinds import KINDS

__all__ = ["c_source", "compile_functions", "compile_text"]

register(BackEnd("c", KINDS["c"], C, version=version, image=compile_functions, sources={"c": c_source},
                 loader="object", image_of_text=compile_text, standalone=standalone, files=files))
