"""Timing of compiled functions."""
from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright.runtime.function import Function
from tilewright.runtime.loader import helper
from tilewright.support.errors import ArgumentError


@dataclass(frozen=True)
class BenchmarkResult:
    """Times of one call, in seconds: one per repeat."""
    results: tuple[float, ...]

    @property
    def mean(self) -> float:
        return statistics.fmean(self.results)

    @property
    def median(self) -> float:
        return statistics.median(self.results)

    @property
    def min(self) -> float:
        return min(self.results)

    @property
    def max(self) -> float:
        return max(self.results)

    @property
    def std(self) -> float:
        return statistics.pstdev(self.results)

    def __str__(self) -> str:
        names = ("mean", "median", "min", "max", "std")
        return ", ".join(f"{name} {readable_seconds(getattr(self, name))}" for name in names)


def readable_seconds(seconds: float) -> str:
    """The time with four digits in the unit that suits it."""
    for unit, scale in (("s", 1.0), ("ms", 1e3), ("us", 1e6)):
        if seconds * scale >= 1:
            return f"{seconds * scale:.4g} {unit}"
    return f"{seconds * 1e9:.4g} ns"


def time_evaluator(function: Function, number: int = 10, repeat: int = 1, min_repeat_ms: float = 0,
                   cooldown_interval_ms: float = 0,
                   repeats_to_cooldown: int = 1) -> Callable[..., BenchmarkResult]:
    """A callable that measures `function` on the arguments it is given.

    One warm-up call, then `repeat` measurements of `number` calls each; `number` grows until a measurement
    takes `min_repeat_ms` milliseconds. Between every `repeats_to_cooldown` measurements it sleeps
    `cooldown_interval_ms`. Raises ArgumentError for counts below 1.
    """
    for name, count in (("number", number), ("repeat", repeat), ("repeats_to_cooldown", repeats_to_cooldown)):
        if not isinstance(count, (int, np.integer)) or isinstance(count, bool) or count < 1:
            raise ArgumentError(f"time_evaluator: {name} is {count!r}, not an integer of at least 1")
    for name, ms in (("min_repeat_ms", min_repeat_ms), ("cooldown_interval_ms", cooldown_interval_ms)):
        if not isinstance(ms, (int, float, np.number)) or not 0 <= ms < float("inf"):
            raise ArgumentError(f"time_evaluator: {name} is {ms!r}, not a time in milliseconds")

    def measure(*args: Any, **named: Any) -> BenchmarkResult:
        args = function.ordered(args, named) if named else args
        function(*args)
        held = function.convert(args)                        # once, so that it is not measured
        clock, native = helper("tw_time"), function.__tvm_ffi_object__()
        count, results = int(number), []
        for i in range(repeat):
            seconds = clock(native, count, *held) / 1e9
            while seconds * 1e3 < min_repeat_ms:
                growth = min_repeat_ms / 1e3 / max(seconds, 1e-9) * 1.1
                count = int(max(count + 1, min(count * growth, count * 10)))
                seconds = clock(native, count, *held) / 1e9
            results.append(seconds / count)
            if cooldown_interval_ms > 0 and (i + 1) % repeats_to_cooldown == 0 and i + 1 < repeat:
                time.sleep(cooldown_interval_ms / 1e3)
        return BenchmarkResult(tuple(results))

    return measure
