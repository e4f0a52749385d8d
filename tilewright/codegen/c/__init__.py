"""C: flat PrimFuncs to readable C11 with the vector extensions of GCC and Clang, and, by a compiler, to objects."""
from __future__ import annotations

from tilewright.codegen.back_end import BackEnd
from tilewright.codegen.c.compile import c_source, compile_functions, compile_text, standalone, version
from tilewright.codegen.c.project import files

__all__ = ["BACK_END", "c_source", "compile_functions", "compile_text"]


BACK_END = BackEnd("c", version(), threads=False, finished=lambda flat, given: flat, image=compile_functions,
                   image_of_text=compile_text, standalone=standalone, sources={"c": c_source}, files=files)
