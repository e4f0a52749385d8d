"""Runs the passes: those that make a scheduled function of blocks flat, and those that split it."""
from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TypeVar

from tilewright.lowering.instruments import of_settings
from tilewright.lowering.options import Instrument, Pass, PassOptions, current_options
from tilewright.lowering.passes import passes_for
from tilewright.support.errors import ArgumentError, described
from tilewright.support.target import Target
from tilewright.support.target import target as resolve_target
from tilewright.tir.stmt import BlockRealize, IRModule, PrimFunc
from tilewright.tir.verify import verify

Form = TypeVar("Form", PrimFunc, IRModule)


def lower(func: PrimFunc, target: str | Target | None = None, simple_mode: bool = False,
          options: PassOptions | None = None) -> PrimFunc:
    """The flat form of a scheduled function: no blocks, one index per access, explicit vectors.

    With simple_mode the form before partition, vectorisation and unrolling, meant for reading: loops keep
    their kinds and guards stand as `if likely(...)`. Options default to those in force (`pass_options`,
    TILEWRIGHT_CHECKED). Raises StructuralError for a function that is not well formed, LowerError for one that has no
    flat form, and what instruments raise: StructuralError when the verifier (TILEWRIGHT_VERIFY) objects to a pass.
    """
    verify(func, "block" if isinstance(func.body, BlockRealize) else "loop")
    options = current_options() if options is None else options
    return _run_all(passes_for(options, resolve_target(target), simple_mode), func, options)


def split(flat: PrimFunc, target: str | Target | None = None, options: PassOptions | None = None) -> list[PrimFunc]:
    """The functions that code for the target is made of: of a flat one, and of its regions."""
    options = current_options() if options is None else options
    passes = passes_for(options, resolve_target(target), module=True)
    return list(_run_all(passes, IRModule({flat.name: flat}), options).functions.values())


def _run_all(passes: Sequence[Pass], ir: Form, options: PassOptions) -> Form:
    instruments = [*options.instruments, *of_settings()]
    for p in passes:
        ir = _run(p, ir, instruments)
    return ir


def _run(p: Pass, func: Form, instruments: Sequence[Instrument]) -> Form:
    """What p makes of func, seen by the instruments."""
    if False in [i.before(p, func) for i in instruments]:
        return func
    start = time.perf_counter()
    out = p.run(func)
    seconds = time.perf_counter() - start
    if not isinstance(out, type(func)):
        raise ArgumentError(f"the pass {p.name} gives {described(out)}, not a {type(func).__name__}")
    for i in instruments:
        i.after(p, out, seconds)
    return out
