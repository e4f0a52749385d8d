"""Results whose size elements decide: room for all that there may be, and a number that says how much of it counts.

In an exported module the number is a result of its own, COUNT_OF_ and the name of the one that it is of: a program of C
reads it; `load` and `Executable` hand out what counts.
"""
from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tilewright import runtime
from tilewright.runtime import Tensor
from tilewright.runtime.tensor import as_numpy

_NAME = re.compile(r"count_of_result(\d*)_along_(\d+)")


@dataclass(frozen=True)
class Counted:
    """Of result number `result` the first slices along an axis count, as many as result number `number` says."""
    result: int
    axis: int
    number: int


def names_of_results(count: int, counted: Sequence[Counted]) -> list[str]:
    """The names of the results of an exported function."""
    numbers = {c.number for c in counted}
    lone = count - len(numbers) == 1
    names = ["result" if lone else f"result{k}" for k in range(count)]
    for c in counted:
        names[c.number] = f"count_of_{names[c.result]}_along_{c.axis}"
    return names


def counted_of_names(names: Sequence[str]) -> tuple[Counted, ...]:
    """What the names of results say."""
    found = [(k, _NAME.fullmatch(name)) for k, name in enumerate(names)]
    place = {name: k for k, name in enumerate(names)}
    return tuple(Counted(place[f"result{m[1]}"], int(m[2]), k)
                 for k, m in found if m is not None and f"result{m[1]}" in place)


def handed_out(results: Sequence[Tensor], counted: Sequence[Counted]) -> Tensor | tuple[Tensor, ...]:
    """What counts of the results of a run, without the numbers; a tuple where there are several."""
    out = list(results)
    for c in counted:
        values = as_numpy(out[c.result])
        kept = min(int(as_numpy(results[c.number]).reshape(-1)[0]), values.shape[c.axis])
        out[c.result] = runtime.array(values[(slice(None),) * c.axis + (slice(kept),)])
    numbers = {c.number for c in counted}
    out = [t for k, t in enumerate(out) if k not in numbers]
    return out[0] if len(out) == 1 else tuple(out)
