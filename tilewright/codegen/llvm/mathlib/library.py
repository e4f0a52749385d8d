"""The elementary functions by name, and the private LLVM functions that hold them."""
from __future__ import annotations

from collections.abc import Callable

from tilewright.codegen.llvm.builder import ModuleBuilder
from tilewright.codegen.llvm.mathlib import (
    exponential,
    inverse,
    logarithm,
    power,
    remainder,
    special,
    trigonometric,
)
from tilewright.codegen.llvm.mathlib.build import MathBuilder
from tilewright.codegen.llvm.types import suffix

# name: (formula, its arity)
MATH: dict[str, tuple[Callable[..., str], int]] = {
    "exp": (exponential.exp, 1),
    "exp2": (exponential.exp2, 1),
    "expm1": (exponential.expm1, 1),
    "tanh": (exponential.tanh, 1),
    "sigmoid": (exponential.sigmoid, 1),
    "sinh": (exponential.sinh, 1),
    "cosh": (exponential.cosh, 1),
    "log": (logarithm.log, 1),
    "log2": (logarithm.log2, 1),
    "log10": (logarithm.log10, 1),
    "log1p": (logarithm.log1p, 1),
    "sin": (trigonometric.sin, 1),
    "cos": (trigonometric.cos, 1),
    "tan": (trigonometric.tan, 1),
    "asin": (inverse.asin, 1),
    "acos": (inverse.acos, 1),
    "atan": (inverse.atan, 1),
    "atan2": (inverse.atan2, 2),
    "erf": (special.erf, 1),
    "pow": (power.pow, 2),
    "fmod": (remainder.fmod, 2),
}

# Largest error in units of the last place over the tests' arguments, (float32, float64), with FMA.
ULP = {
    "exp": (1.25, 1.25), "exp2": (1.25, 1.25), "expm1": (2.0, 2.0), "tanh": (3.0, 3.0), "sigmoid": (2.5, 2.5),
    "sinh": (2.5, 2.5), "cosh": (2.0, 2.0), "log": (1.0, 1.0), "log2": (1.0, 1.0), "log10": (1.0, 1.0),
    "log1p": (1.25, 1.25), "sin": (0.51, 1.0), "cos": (0.51, 1.0), "tan": (0.51, 2.5), "asin": (1.5, 1.5),
    "acos": (1.0, 1.0), "atan": (2.0, 2.0), "atan2": (2.0, 2.0), "erf": (1.25, 1.25), "pow": (0.51, 1.0),
    "fmod": (0.0, 0.0),
}


def math_helper(module: ModuleBuilder, name: str, type_: str) -> str:
    """`@tw.<name>.<type>`, defined in the module at the first request."""
    symbol = f"tw.{name}.{suffix(type_)}"
    return module.helper(symbol, lambda: _define(module, name, symbol, type_))


def _define(module: ModuleBuilder, name: str, symbol: str, type_: str) -> str:
    formula, arity = MATH[name]
    b = MathBuilder(module, type_)
    names = [f"%x{k}" for k in range(arity)]
    result = formula(b, *names)
    parameters = ", ".join(f"{type_} {n}" for n in names)
    return f"define internal {type_} @{symbol}({parameters}) #2 {{\n{b.body()}\n  ret {type_} {result}\n}}"
