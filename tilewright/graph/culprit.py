"""What `bisect` finds, and by how much results differ."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tilewright.support.errors import TilewrightError


@dataclass(frozen=True)
class Culprit:
    """The first step whose result leaves the reference.

    kind: "operator" (a result is not the one that is expected), "graph pass", "rule" (what rewrites a kernel before it
    is scheduled), "primitive", "preparation" (of constant inputs), "lowering pass", "code generation", "plan" (places
    in memory, or the order of kernels). name: of the step. kernel, source: where in the model. function: the branch,
    the body or the part of constants that it is in, "" for the model itself. error: the largest difference, over the
    largest element of the reference; NaN where the step raised, which `why` says.
    """
    kind: str
    name: str
    kernel: str = ""
    source: str = ""
    error: float = float("nan")
    why: str = ""
    function: str = ""

    def __str__(self) -> str:
        where = f" of {self.kernel}" if self.kernel else ""
        where += f" in {self.function}" if self.function else ""
        node = f", from {self.source}" if self.source else ""
        return f"{self.kind} {self.name}{where}{node}: " + (self.why or f"the result is off by {self.error:.3g}")


def shown(error: Exception) -> str:
    """An exception in a line; one that is not of this package with its class."""
    text = str(error).partition("\n")[0]
    return text if isinstance(error, TilewrightError) else f"{type(error).__name__}: {text}"


def difference(got: Sequence[np.ndarray], wanted: Sequence[np.ndarray]) -> float:
    """The largest difference of two elements, over the largest element that is wanted; of infinities and NaN in
    different places it is infinite."""
    most = 0.0
    for a, b in zip(got, wanted, strict=True):
        if a.shape != b.shape:
            return float("inf")
        x, y = (z.astype("float64") for z in (a, b))
        if not np.array_equal(np.isnan(x), np.isnan(y)):
            return float("inf")
        with np.errstate(invalid="ignore"):
            off = np.where(np.isnan(x) | (x == y), 0.0, np.abs(x - y))
        finite = np.abs(y[np.isfinite(y)]).max(initial=1.0)
        most = max(most, float(off.max(initial=0.0)) / float(finite))
    return most
