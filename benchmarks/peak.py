"""The machine's peak in operations/s, as an engine of the benchmarks."""
from __future__ import annotations

from collections.abc import Callable

from tilewright.driver.peaks import operations


def prepare(kind: str, threads: int) -> tuple[Callable[[], object], dict[str, float]]:
    """A call that runs the kernel on every thread at once, and the operations (multiplications, additions) it makes."""
    call, made = operations(kind, threads)
    return call, {"operations": made}
