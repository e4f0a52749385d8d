"""`profile`: how fast a compiled function is, and how much of what the machine can do that is."""
from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tilewright.arith.operations import operations
from tilewright.driver.peaks import Peaks, machine_peaks
from tilewright.runtime import BenchmarkResult, Function, Module, get_num_threads
from tilewright.runtime.dtypes import item_bytes
from tilewright.runtime.machine import last_level_bytes
from tilewright.runtime.timing import readable_seconds, time_evaluator
from tilewright.support.errors import ArgumentError, described
from tilewright.support.views import View, Viewed, counted, readable_bytes
from tilewright.tir import PrimFunc, Var

REPEAT, LEAST_MS = 9, 20.0            # measurements, each of so many calls that it takes that long


@dataclass(frozen=True, repr=False)
class Profile(Viewed):
    """A measurement of one function with some arguments.

    times: seconds of a call, one per measurement; operations: of one call, as `arith.operations` counts them, None
    where that is not known; nbytes: of all tensor arguments, each counted once; dtype: of the operands, where they are
    of one; peaks: of the machine, for the ratios, which are None where a figure is missing; cache_bytes: of the caches
    next to memory, 0 where the system does not say.
    """
    name: str
    times: BenchmarkResult
    operations: int | None
    nbytes: int
    dtype: str | None
    threads: int
    peaks: Peaks
    cache_bytes: int

    @property
    def seconds(self) -> float:
        """The median."""
        return self.times.median

    @property
    def spread(self) -> float:
        """Slowest minus fastest measurement, as a share of the median."""
        return (self.times.max - self.times.min) / self.times.median

    @property
    def operations_per_second(self) -> float | None:
        return None if self.operations is None else self.operations / self.seconds

    @property
    def bytes_per_second(self) -> float:
        return self.nbytes / self.seconds

    @property
    def of_peak(self) -> float | None:
        """Operations/s as a share of the fastest instructions for the dtype, on as many threads."""
        most = None if self.dtype is None else self.peaks.of(self.dtype, self.threads)
        done = self.operations_per_second
        return None if most is None or done is None else done / most

    @property
    def of_bandwidth(self) -> float:
        """Bytes/s as a share of what memory gives; it bounds nothing where `fits_in_cache`, and may be above 1."""
        return self.bytes_per_second / self.peaks.bytes_per_second(self.threads)

    @property
    def fits_in_cache(self) -> bool:
        """True when the arguments fit in the caches next to memory: calls after the first read them from there."""
        return self.nbytes <= self.cache_bytes

    def view(self) -> View:
        low, high = map(readable_seconds, (self.times.min, self.times.max))
        made = self.operations_per_second
        moved = "fits in cache: not bound by memory" if self.fits_in_cache else (
            f"{100 * self.of_bandwidth:.3g} % of what memory gives")
        rows = [("time", f"{readable_seconds(self.seconds)} median of {len(self.times.results)}", f"{low} to {high}"),
                ("operations", "not counted" if self.operations is None else f"{self.operations:,}",
                 "" if made is None else f"{made / 1e9:.4g} G/s" + _share(self.of_peak, f"the peak of {self.dtype}")),
                ("arguments", readable_bytes(self.nbytes),
                 f"{self.bytes_per_second / 1e9:.4g} GB/s, {moved}")]
        return View(f"profile of {self.name} on {counted(self.threads, 'thread')}", rows)


def _share(ratio: float | None, of: str) -> str:
    return "" if ratio is None else f", {100 * ratio:.3g} % of {of}"


def profile(f: Module | Function, /, *args: Any, **named: Any) -> Profile:
    """The time of f(*args, **named), and what it is of the machine's peaks. f runs many times.

    Peaks are those that `tilewright bench` stored on this machine; without them they are measured first, which takes
    seconds. Raises ArgumentError for what is no compiled function, CallError as the call does.
    """
    function = f[f.entry_name] if isinstance(f, Module) else f
    if not isinstance(function, Function) or function.signature is None:
        raise ArgumentError(f"profile: {described(f)} is no compiled function",
                            "profile(f, a, b, c) with what tw.build or tw.compile returned")
    arguments = function.ordered(args, named) if named else args
    times = time_evaluator(function, number=1, repeat=REPEAT, min_repeat_ms=LEAST_MS)(*arguments)
    tensors = [(p, a) for p, a in zip(function.signature.params, arguments) if p.is_buffer]
    inputs = {p.dtype for p, _ in tensors if not p.written}
    nbytes = sum(math.prod(a.shape) * item_bytes(p.dtype) for p, a in tensors)
    return Profile(function.name, times, _operations(function, arguments), nbytes,
                   inputs.pop() if len(inputs) == 1 else None, get_num_threads(), machine_peaks(),
                   last_level_bytes())


def _operations(function: Function, arguments: Sequence[Any]) -> int | None:
    """Operations of the call; None where the function keeps no definition (it was loaded), or none can be counted."""
    definition = None if function.definition is None else function.definition()
    if not isinstance(definition, PrimFunc):
        return None
    values: dict[Var, int] = {}
    for param, argument in zip(definition.params, arguments):
        buffer = definition.buffer_map.get(param)
        if buffer is not None:
            values.update((e, int(n)) for e, n in zip(buffer.shape, argument.shape) if isinstance(e, Var))
        elif isinstance(argument, int):
            values[param] = argument
    return operations(definition, values)
