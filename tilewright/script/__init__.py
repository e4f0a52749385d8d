"""Scripts: Python source to functions and modules of the loop IR, the inverse of the printer."""
from tilewright.script import ir, relax, tir
from tilewright.script.decorators import from_source, ir_module, prim_func

__all__ = ["from_source", "ir", "ir_module", "prim_func", "relax", "tir"]
