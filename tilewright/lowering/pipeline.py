"""Runs the passes that make a scheduled function of blocks flat."""
from __future__ import annotations

import time
from collections.abc import Sequence

from tilewright.lowering.instruments import of_settings
from tilewright.lowering.options import Instrument, Pass, PassOptions, current_options
from tilewright.lowering.passes import passes_for
from tilewright.support.errors import ArgumentError, described
from tilewright.support.target import Target
from tilewright.support.target import target as resolve_target
from tilewright.tir.stmt import PrimFunc


def lower(func: PrimFunc, target: str | Target | None = None, simple_mode: bool = False,
          options: PassOptions | None = None) -> PrimFunc:
    """The flat form of a scheduled function: no blocks, one index per access, explicit vectors.

    With simple_mode the form before partition, vectorisation and unrolling, meant for reading: loops keep
    their kinds and guards stand as `if likely(...)`. Options default to those in force (`pass_options`,
    TILEWRIGHT_CHECKED). Raises LowerError for a function that has no flat form, and what instruments raise:
    StructuralError when the verifier (TILEWRIGHT_VERIFY) objects.
    """
    options = current_options() if options is None else options
    instruments = [*options.instruments, *of_settings()]
    for p in passes_for(options, resolve_target(target), simple_mode):
        func = _run(p, func, instruments)
    return func


def _run(p: Pass, func: PrimFunc, instruments: Sequence[Instrument]) -> PrimFunc:
    """What p makes of func, seen by the instruments."""
    if False in [i.before(p, func) for i in instruments]:
        return func
    start = time.perf_counter()
    out = p.run(func)
    seconds = time.perf_counter() - start
    if not isinstance(out, PrimFunc):
        raise ArgumentError(f"the pass {p.name} gives {described(out)}, not a PrimFunc")
    for i in instruments:
        i.after(p, out, seconds)
    return out
