"""Elementary functions as LLVM IR."""
from __future__ import annotations

from tilewright.codegen.llvm.mathlib.library import MATH, ULP, math_helper

__all__ = ["MATH", "ULP", "math_helper"]
