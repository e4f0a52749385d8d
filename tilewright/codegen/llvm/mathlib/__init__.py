"""Elementary functions as LLVM IR."""
from __future__ import annotations

from tilewright.codegen.llvm.mathlib.library import MATH, math_helper

__all__ = ["MATH", "math_helper"]
