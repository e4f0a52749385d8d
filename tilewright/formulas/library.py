"""The elementary functions by name; the operator table has the bounds of their errors."""
from __future__ import annotations

import functools
from collections.abc import Callable

from tilewright.formulas import exponential, inverse, logarithm, power, remainder, special, trigonometric
from tilewright.formulas.builder import Builder, Cpu, Formula
from tilewright.tir.expr import Expr

# name: (what writes it, its arity)
FUNCTIONS: dict[str, tuple[Callable[..., Expr], int]] = {
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

@functools.lru_cache(256)
def formula(name: str, dtype: str, cpu: Cpu = Cpu()) -> Formula:
    """The function `name` of FUNCTIONS on float32, float64 or a vector of them, for a CPU."""
    write, arity = FUNCTIONS[name]
    b = Builder(dtype, cpu)
    params = [b.param("x") for _ in range(arity)]
    return b.formula(name, params, write(b, *params))
