"""The elementary functions by name; the operator table has the bounds of their errors."""
from __future__ import annotations

import functools
from collections.abc import Callable

from tilewright.formulas import exponential, inverse, logarithm, power, remainder, special, trigonometric
from tilewright.formulas.builder import Builder, Cpu, Formula
from tilewright.tir import dtype as dt
from tilewright.tir.expr import Broadcast, Call, Cast, Expr, FloatImm

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

# Powers with one exponent: (name, what writes it).
POWERS: dict[float, tuple[str, Callable[..., Expr]]] = {2.0: ("square", power.square), 3.0: ("cube", power.cube)}
_WRITERS = {**FUNCTIONS, **{name: (write, 1) for name, write in POWERS.values()}}


def formula_of(e: Call) -> tuple[str, tuple[Expr, ...]]:
    """The name of the formula of a call of one of FUNCTIONS, and its arguments."""
    if e.op == "pow":
        x, exponent = e.args
        while isinstance(exponent, (Broadcast, Cast)) and dt.is_float(exponent.value.dtype):
            exponent = exponent.value
        if isinstance(exponent, FloatImm) and exponent.value in POWERS:
            return POWERS[exponent.value][0], (x,)
    return e.op, e.args


@functools.lru_cache(256)
def formula(name: str, dtype: str, cpu: Cpu = Cpu()) -> Formula:
    """The function `name` of FUNCTIONS or POWERS on float32, float64 or a vector of them, for a CPU."""
    write, arity = _WRITERS[name]
    b = Builder(dtype, cpu)
    params = [b.param("x") for _ in range(arity)]
    return b.formula(name, params, write(b, *params))
