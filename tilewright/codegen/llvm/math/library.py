"""The table of elementary functions."""
from __future__ import annotations

from tilewright.codegen.llvm.builder import ModuleBuilder

MATH: dict[str, int] = {}


def math_helper(module: ModuleBuilder, name: str, type_: str) -> str:
    raise NotImplementedError
