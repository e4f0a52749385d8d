"""The roof of a row: what this machine computes and moves at most, measured in the same run."""
from __future__ import annotations

import functools
import math
import sys
from collections.abc import Callable
from typing import Any

import harness

SIZES = tuple(1 << n for n in range(16, 28, 2))       # bytes of what a kernel touches: caches, then memory
KERNELS = ("copy", "read", "triad")


# ---- engines


@functools.cache
def prepare_tilewright_peak(threads: int, kind: str) -> Any:
    from peak import prepare
    return prepare(kind, threads)


@functools.cache
def prepare_tilewright_stream(threads: int, size: int, kernel: str) -> tuple[Callable[[], object], dict[str, float]]:
    """A call that copies, reads or combines arrays of `size` bytes together."""
    import tilewright as tw
    from tilewright.driver.peaks import stream_kernels
    tw.set_num_threads(threads)
    arrays = {"copy": 2, "read": 1, "triad": 3}[kernel]
    elements = size // (4 * arrays)
    function, places, crossing = stream_kernels(elements)[kernel]
    held = [tw.nd.empty((elements,)) for _ in range(3)] + [tw.nd.empty((1,))]
    for x in held:
        x[...] = 1.0
    chosen = [held[p] for p in places]
    return lambda: function(*chosen), {"bytes": 4.0 * elements * crossing}


# ---- figures


class Roof:
    """Operations and bytes per second on some threads: measured with every question, and the highest so far counts."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self.best: dict[tuple[Any, ...], float] = {}
        self.workers: dict[str, harness.Worker] = {}

    def _rate(self, engine: str, amount: str, calls: int, **setup: Any) -> float:
        """amount / seconds of an engine with this setup."""
        if engine not in self.workers:
            self.workers[engine] = harness.Worker(sys.executable, "kernel_cases.roof", engine, self.threads)
        worker, key = self.workers[engine], (engine, *setup.values())
        done = asked(worker, setup=setup)[amount]
        self.best[key] = max(self.best.get(key, 0.0), done / min(asked(worker, run=calls)["seconds"]))
        return self.best[key]

    def peak(self, kind: str) -> float:
        """Operations/s of the fastest instruction for operands of a kind."""
        return self._rate("tilewright_peak", "operations", 10, kind=kind)

    def bytes_per_second(self, nbytes: float) -> float:
        """Of arrays of the size that is nearest to so many bytes."""
        size = min(SIZES, key=lambda size: abs(math.log(size / max(nbytes, 1.0))))
        return max(self._rate("tilewright_stream", "bytes", max(5, (1 << 23) // size), size=size, kernel=k)
                   for k in KERNELS)

    def seconds(self, operations: float, nbytes: float, kind: str) -> float:
        """The least time that so many operations and bytes take here."""
        return max(operations / self.peak(kind), nbytes / self.bytes_per_second(nbytes))

    def close(self) -> None:
        harness.close(list(self.workers.values()))


def asked(worker: harness.Worker, **command: Any) -> dict[str, Any]:
    answer = worker.ask(**command)
    if "error" in answer:
        raise RuntimeError(f"{worker.engine}: {answer['error']}")
    return answer
