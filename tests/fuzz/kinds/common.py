"""What the checks of all kinds of programs share: runs, comparison, times."""
from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np

import tilewright as tw
from tilewright.codegen.llvm import compile_object
from tilewright.lowering import Instrument, split
from tilewright.runtime import Module
from tilewright.support.errors import CallError
from tilewright.tir import Expr, PrimFunc, Store, interp
from tilewright.tir import dtype as dt
from tilewright.tir.node import walk

TARGETS = ("llvm -opt-level=1", "llvm -opt-level=3", "llvm -opt-level=1 -mcpu=x86-64-v3", "llvm -opt-level=2",
           "llvm -opt-level=1 -mcpu=x86-64-v2")
BACK_END = "FUZZ_BACK_END"                             # in the environment: a kind of target, else "llvm"
BESIDE = "FUZZ_BESIDE"                                 # there too: code of LLVM runs beside, not the interpreter
GUARD = 64                                             # bytes before and after an array that must not change
BUILD_LIMIT = 5.0                                      # seconds of one core for a build


def target_of(seed: int) -> str:
    """The target on which the program of a seed is run."""
    return TARGETS[seed % len(TARGETS)].replace("llvm", os.environ.get(BACK_END) or "llvm", 1)


def is_beside() -> bool:
    """Whether results are compared with those of LLVM's code in the place of the interpreter's."""
    return bool(os.environ.get(BESIDE))


class Wrong(Exception):
    """A result is not the reference."""


class SlowBuild(Exception):
    """A build took longer than BUILD_LIMIT."""


def timed_build(build: Callable[[], Any], seconds: dict[str, float]) -> Any:
    """What build gives; seconds["build"] is the longest time so far. Raises SlowBuild beyond BUILD_LIMIT."""
    start = time.process_time()
    module = beside_llvm(build) if is_beside() else build()
    spent = time.process_time() - start
    seconds["build"] = max(spent, seconds.get("build", 0.0))
    if spent > BUILD_LIMIT:
        raise SlowBuild(f"{spent:.1f} s of one core, more than {BUILD_LIMIT:g} s")
    return module


@dataclass
class Case:
    """One run of a check: the target of its builds, the seconds of the slowest, and what it counted."""
    target: str
    seconds: dict[str, float] = field(default_factory=dict)
    accepted: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)

    @property
    def interpreted(self) -> bool:
        """Whether the interpreter runs programs too."""
        return not is_beside()

    def interpret(self, func: Any, args: list[Any]) -> None:
        interp.run(func, *args)

    def build(self, build: Callable[[str], Any]) -> Any:
        return timed_build(lambda: build(self.target), self.seconds)


class Flat(Instrument):
    """Keeps the flat form of each function."""

    def __init__(self) -> None:
        self.functions: dict[str, PrimFunc] = {}

    def after(self, p: Any, func: Any, seconds: float) -> None:
        if isinstance(func, PrimFunc):
            self.functions[func.name] = func


def beside_llvm(build: Callable[[], Any]) -> dict[str, Callable[..., None]]:
    """The functions of the module that build makes, each run beside LLVM's code for the same flat form."""
    flat = Flat()
    with tw.pass_options(instruments=[flat]):
        module = build()
    target = tw.target("llvm -opt-level=1")
    objects = {name: compile_object(split(flat.functions[name], target), target) for name in module.signatures}
    other = Module.of_objects(objects, target)
    return {name: partial(run_both, module[name], other[name], coarsest=coarsest(flat.functions[name]))
            for name in objects}


def coarsest(func: PrimFunc) -> float:
    """The greatest epsilon of the floats that func computes with; 0 where there are none."""
    kinds = {dt.element_of(n.dtype) for n in walk(func.body) if isinstance(n, Expr)}
    kinds |= {n.buffer.dtype for n in walk(func.body) if isinstance(n, Store)}
    return max((float(ml_dtypes.finfo(dt.numpy_dtype(kind)).eps) for kind in kinds if dt.is_float(kind)), default=0.0)


def run_both(f: Callable[..., None], g: Callable[..., None], *args: Any, coarsest: float = 0.0) -> None:
    """f on the arguments, in place. Raises Wrong where g on copies of them leaves something else, or only one of them
    raises an error: integers and the kind of each float are equal, numbers nearly. Of several errors of a program the
    first one is that of an operand that is evaluated first, which is free in C. coarsest: the epsilon of the coarsest
    floats on the way, where one rounds a * b + c once, and another one twice.
    """
    copies = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
    errors, raised = [], None
    for function, values in ((f, args), (g, copies)):
        try:
            function(*values)
            errors.append("")
        except CallError as why:
            errors.append(str(why).splitlines()[0])
            raised = raised or why
    if bool(errors[0]) != bool(errors[1]):
        raise Wrong(f"the error {errors[0]!r}, by LLVM {errors[1]!r}")
    if raised is not None:
        raise raised
    for k, (a, b) in enumerate(zip(args, copies, strict=True)):
        if isinstance(a, np.ndarray) and not equal_values(a, b, coarsest):
            at = np.argwhere(~((a == b) | (a != a) & (b != b)))[0].tolist()
            raise Wrong(f"element {at} of argument {k} is {a[tuple(at)]}, by LLVM {b[tuple(at)]}")


def equal_values(a: np.ndarray, b: np.ndarray, coarsest: float = 0.0) -> bool:
    """Equal integers; floats that differ by some roundings, or by a few of the coarsest floats on the way."""
    if a.dtype.kind in "iub":
        return np.array_equal(a, b)
    x, y = a.astype("float64"), b.astype("float64")
    size = np.max(np.abs(y), where=np.isfinite(y), initial=0)
    near = max(64 * float(ml_dtypes.finfo(a.dtype).eps), 4 * coarsest)
    return np.allclose(x, y, rtol=near, atol=near * size, equal_nan=True)


def native(case: Case, build: Callable[[str], Any], args: list[Any], name: str = "main") -> None:
    """Build and run on args in place, between guards. Raises Wrong where memory beside an array was written."""
    call_guarded(case.build(build)[name], args)


def call_guarded(f: Any, args: list[Any]) -> None:
    """f(*args) in place, where arrays stand between guards for the call. Raises Wrong where a guard has changed."""
    pairs = [fenced(a) if isinstance(a, np.ndarray) else (None, a) for a in args]
    try:
        f(*(inner for _, inner in pairs))
    finally:
        for k, (memory, inner) in enumerate(pairs):
            if memory is None:
                continue
            args[k][...] = inner
            inner.reshape(-1).view(np.uint8)[...] = 0xA5
            if np.any(memory != 0xA5):
                raise Wrong(f"memory beside argument {k} was written")


def fenced(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(memory, a copy of a inside it between guards)."""
    memory = np.full(a.nbytes + 2 * GUARD + 64, 0xA5, np.uint8)
    start = -(memory.ctypes.data + GUARD) % 64 + GUARD
    inner = memory[start:start + a.nbytes].view(a.dtype).reshape(a.shape)
    inner[...] = a
    return memory, inner


def array_differences(got: Mapping[str, np.ndarray], want: Mapping[str, np.ndarray]) -> dict[str, str]:
    """What is wrong of each array: NaN equals NaN, and the sign of a zero is free."""
    out = {}
    for n, w in want.items():
        g = got[n]
        with np.errstate(invalid="ignore"):
            wrong = ~((g == w) | (g != g) & (w != w))
        if np.any(wrong):
            at = tuple(int(k) for k in np.argwhere(np.atleast_1d(wrong))[0])
            where = at if g.shape else ()
            count = int(np.sum(wrong))
            out[n] = f"element {list(where)} is {g[where]}, expected {w[where]}; {count} of {g.size} differ"
    return out
