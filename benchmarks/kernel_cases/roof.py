"""The roof of a row: what this machine computes and moves at most, measured in the same run."""
from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any

import harness

SIZES = tuple(1 << n for n in (16, 18, 20, 22, 24, 28))         # bytes of what a kernel touches: caches, then memory


# ---- engines


def prepare_tilewright_peak(threads: int, kind: str) -> Any:
    from peak import prepare
    return prepare(kind, threads)


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
    """Operations and bytes per second on some threads; the highest of what was measured counts."""

    def __init__(self, threads: int, sizes: tuple[int, ...] = SIZES) -> None:
        self.threads, self.peaks, self.workers = threads, {}, {}     # type: ignore[var-annotated]
        worker = self._worker("tilewright_stream")
        self.bandwidth = {size: max(self._stream(worker, size, kernel) for kernel in ("copy", "read", "triad"))
                          for size in sizes}
        worker.close()

    def _worker(self, engine: str) -> harness.Worker:
        return harness.Worker(sys.executable, "kernel_cases.roof", engine, self.threads)

    def _stream(self, worker: harness.Worker, size: int, kernel: str) -> float:
        moved = asked(worker, setup={"size": size, "kernel": kernel})["bytes"]
        return float(moved / min(asked(worker, run=max(5, (1 << 24) // size))["seconds"]))

    def peak(self, kind: str) -> float:
        """Operations/s of the fastest instruction for operands of a kind; measured again with every call."""
        if kind not in self.workers:
            worker = self._worker("tilewright_peak")
            self.workers[kind] = worker, asked(worker, setup={"kind": kind})["operations"]
        worker, operations = self.workers[kind]
        self.peaks[kind] = max(self.peaks.get(kind, 0.0), operations / min(asked(worker, run=3)["seconds"]))
        return float(self.peaks[kind])

    def bytes_per_second(self, nbytes: float) -> float:
        """By the nearest size that was measured."""
        return self.bandwidth[min(self.bandwidth, key=lambda size: abs(math.log(size / max(nbytes, 1.0))))]

    def seconds(self, operations: float, nbytes: float, kind: str) -> float:
        """The least time that so many operations and bytes take here."""
        return max(operations / self.peak(kind), nbytes / self.bytes_per_second(nbytes))

    def close(self) -> None:
        harness.close([worker for worker, _ in self.workers.values()])


def asked(worker: harness.Worker, **command: Any) -> dict[str, Any]:
    answer = worker.ask(**command)
    if "error" in answer:
        raise RuntimeError(f"{worker.engine}: {answer['error']}")
    return answer
