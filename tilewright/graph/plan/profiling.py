"""Where the time of a model goes: each kernel alone, in the order of a run."""
from __future__ import annotations

import json
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tilewright.arith.operations import operations
from tilewright.driver.peaks import Peaks, machine_peaks
from tilewright.graph.ir.callees import Native
from tilewright.graph.plan.arguments import in_order
from tilewright.graph.plan.executable import Executable
from tilewright.graph.plan.interface import bound
from tilewright.graph.plan.plan import Step
from tilewright.runtime import export, get_num_threads
from tilewright.runtime.timing import readable_seconds
from tilewright.support.errors import GraphError
from tilewright.support.views import View, Viewed
from tilewright.tir import Var

RUNS = 9


@dataclass(frozen=True)
class KernelTime:
    """A call of a kernel in a run. seconds: the median; start: when it began, from the start of a run, on average.

    operations: as `arith.operations` counts them, None where that is not known; nbytes: of its inputs and results.
    """
    name: str
    operators: tuple[str, ...]
    source: str
    start: float
    seconds: float
    operations: int | None
    nbytes: int


@dataclass(frozen=True, repr=False)
class ModelProfile(Viewed):
    """The kernels of a model with the time that each takes, and the time of a whole run. `save` writes a trace."""
    name: str
    seconds: float
    kernels: tuple[KernelTime, ...]
    threads: int
    peaks: Peaks

    def view(self) -> View:
        total = sum(k.seconds for k in self.kernels) or 1.0
        peak, bandwidth = self.peaks.of("float32", self.threads), self.peaks.bytes_per_second(self.threads)
        rows = [("kernel", "time", "share", "GFLOP/s", "GB/s", "of the limit", "source")]
        for k in sorted(self.kernels, key=lambda k: -k.seconds):
            made = None if k.operations is None else k.operations / k.seconds
            limit = share_of_limit(made, peak, k.nbytes / k.seconds, bandwidth)
            rows.append((" + ".join(o.rsplit(".", 1)[-1] for o in k.operators) or k.name, readable_seconds(k.seconds),
                         f"{100 * k.seconds / total:.1f} %", "" if made is None else f"{made / 1e9:.1f}",
                         f"{k.nbytes / k.seconds / 1e9:.1f}", "in cache" if limit is None else f"{100 * limit:.0f} %",
                         k.source))
        return View(f"profile of {self.name} on {self.threads} thread(s): {readable_seconds(self.seconds)} a run, "
                    f"{readable_seconds(total)} in kernels", rows)

    def save(self, path: str | Path) -> None:
        """Write one run as a trace (.json) that Perfetto and Chrome show."""
        events = [{"name": k.name, "ph": "X", "ts": k.start * 1e6, "dur": k.seconds * 1e6, "pid": 0, "tid": 0,
                   "args": {"operators": k.operators, "source": k.source, "operations": k.operations,
                            "bytes": k.nbytes}} for k in self.kernels]
        export.place(export.as_path("save", path), json.dumps({"traceEvents": events}).encode())


def share_of_limit(made: float | None, peak: float | None, moved: float, bandwidth: float) -> float | None:
    """How near operations/s and bytes/s come to what the machine can do at most, of the two that which is nearer.

    None where nothing is known of operations, and more bytes are taken than memory gives: then they, or some, do not
    come from there. Operations are those of the definition, of which Winograd's convolutions need fewer.
    """
    shares = [] if made is None or peak is None else [made / peak]
    if moved <= bandwidth:
        shares.append(moved / bandwidth)
    return max(shares, default=None)


def profile_model(model: Executable, /, *arguments: Any, **named: Any) -> ModelProfile:
    """The time of model(*arguments, **named), and of each of its kernels. Raises GraphError as a call of the model
    does, and for a plan that calls Python."""
    if any(not isinstance(s.callee, Native) for s in model.plan.steps):
        raise GraphError(f"profile: {model.plan.name} calls Python between its kernels", "profile its functions alone")
    tensors = model.tensors(in_order(model.plan, arguments, named) if named else arguments)
    model(*tensors)
    whole = []
    for _ in range(RUNS):
        start = time.perf_counter()
        model(*tensors)
        whole.append(time.perf_counter() - start)
    calls = model.calls(*tensors)
    spans = [_timed(calls) for _ in range(RUNS + 1)][1:]
    sizes = bound(model.plan, [t.shape for t in tensors])
    kernels = tuple(_kernel_time(model, s, sizes, [run[k] for run in spans]) for k, s in enumerate(model.plan.steps))
    return ModelProfile(model.plan.name, statistics.median(whole), kernels, get_num_threads(), machine_peaks())


def _timed(calls: Sequence[Any]) -> list[tuple[float, float]]:
    """(start, seconds) of each call, one after the other."""
    first, out = time.perf_counter(), []
    for call in calls:
        start = time.perf_counter()
        call()
        out.append((start - first, time.perf_counter() - start))
    return out


def _kernel_time(model: Executable, step: Step, sizes: Mapping[Var, int],
                 spans: Sequence[tuple[float, float]]) -> KernelTime:
    callee = step.callee
    assert isinstance(callee, Native)
    known = {v: sizes[v] for v in step.sizes if v in sizes}
    count = None if callee.definition is None else operations(callee.definition, known)
    nbytes = sum(model.plan.slots[s].type.nbytes(sizes) for s in step.slots)
    return KernelTime(callee.name, callee.operators, step.source, statistics.mean(s for s, _ in spans),
                      statistics.median(t for _, t in spans), count, nbytes)
