"""Recurrences in random programs: a scan over the last tensor, of one or two states, with stages inside a step."""
from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright import te

from . import values
from .expressions import Axis, Read, te_binary
from .programs import Stage
from .values import Reject, Value, is_float

KINDS = ("prefix", "filter", "stage", "window", "shift", "row", "two")


@dataclass(frozen=True)
class ScanStage(Stage):
    """name[t, ...] = source[t, ...] for t < first, and from then on what `kind` makes of it and of earlier steps.

    prefix: s[t - first] + f; filter: s[t - 1] * c + f; stage: the same in two stages; window: min(s[t - 1], s[t -
    first]) + f; shift: the state of the column before + f; row: max(f, the greatest of the row before); two: prefix,
    and a second state, `name` + "q", which sums up the first one's earlier steps.
    """
    source: str = ""
    first: int = 1
    kind: str = "prefix"

    def outputs(self) -> list[tuple[str, str]]:
        return [(self.name, self.dtype), *([(f"{self.name}q", self.dtype)] if self.kind == "two" else [])]

    def build(self, variables: dict[str, Any], made: dict[str, Any]) -> Any:
        f, k = made[self.source], self.first
        shape, n = f.shape, self.name
        s = te.placeholder(shape, self.dtype, f"{n}s")
        init = te.compute((k, *shape[1:]), lambda t, *i: f(t, *i), name=f"{n}init")
        if self.kind == "two":
            q = te.placeholder(shape, self.dtype, f"{n}qs")
            other = te.compute((k, *shape[1:]), lambda t, *i: f(t, *i), name=f"{n}qinit")
            updates = [te.compute(shape, lambda t, *i: s(t - k, *i) + f(t, *i), name=f"{n}u"),
                       te.compute(shape, lambda t, *i: q(t - 1, *i) + s(t - 1, *i), name=f"{n}qu")]
            return tuple(te.scan([init, other], updates, [s, q], name=n))
        return te.scan(init, te.compute(shape, self._step(s, f), name=f"{n}u"), s, inputs=[f], name=n)

    def _step(self, s: Any, f: Any) -> Any:
        k, constant = self.first, te.const(self._constant(), self.dtype)
        if self.kind == "stage":
            inner = te.compute(s.shape, lambda t, *i: s(t - 1, *i) * constant, name=f"{self.name}i")
            return lambda t, *i: inner(t, *i) + f(t, *i)
        if self.kind == "row":
            axes = [te.reduce_axis((0, e), name=f"r{d}") for d, e in enumerate(s.shape[1:])]
            top = te.compute(s.shape[:1], lambda t: te.max(s(t - 1, *axes), axis=axes), name=f"{self.name}i")
            return lambda t, *i: te_binary("max", top(t), f(t, *i))
        if self.kind == "shift":
            zero = te.const(0, self.dtype)
            return lambda t, *i: te.if_then_else(i[-1] >= 1, s(t - 1, *i[:-1], i[-1] - 1), zero) + f(t, *i)
        return {"prefix": lambda t, *i: s(t - k, *i) + f(t, *i),
                "filter": lambda t, *i: s(t - 1, *i) * constant + f(t, *i),
                "window": lambda t, *i: te_binary("min", s(t - 1, *i), s(t - k, *i)) + f(t, *i)}[self.kind]

    def _constant(self) -> float:
        return 0.5 if is_float(self.dtype) else 2

    def evaluate(self, sizes: Mapping[str, int], known: Mapping[str, Value],
                 scalars: Mapping[str, Value]) -> dict[str, Value]:
        f = known[self.source]
        rows = [_row(f, t) for t in range(len(f.x))]
        if len(rows) < self.first:
            raise Reject("fewer steps than the init gives")
        out = rows[:self.first]
        for t in range(self.first, len(rows)):
            out.append(self._next(out, rows[t], t))
        made = {self.name: _stacked(out)}
        if self.kind == "two":
            second = rows[:self.first]
            for t in range(self.first, len(rows)):
                second.append(values.binary("add", second[t - 1], out[t - 1]))
            made[f"{self.name}q"] = _stacked(second)
        return made

    def _next(self, s: list[Value], f: Value, t: int) -> Value:
        binary, before = values.binary, s[t - 1]
        if self.kind in ("prefix", "two"):
            return binary("add", s[t - self.first], f)
        if self.kind in ("filter", "stage"):
            return binary("add", binary("mul", before, values.constant(self.dtype, self._constant())), f)
        if self.kind == "window":
            return binary("add", binary("min", before, s[t - self.first]), f)
        if self.kind == "row":
            return binary("max", values.reduce("max", before, before.x.ndim, None, None), f)
        columns = np.arange(before.x.shape[-1])
        moved = _mapped(before, lambda a: np.roll(a, 1, axis=-1))
        zero = _mapped(before, np.zeros_like)
        right = Value("bool", np.broadcast_to(columns >= 1, before.x.shape))
        return binary("add", values.select(right, moved, zero), f)


def _mapped(v: Value, change: Any) -> Value:
    return Value(v.dtype, change(v.x), None if v.magnitude is None else change(v.magnitude), v.weight, v.bit)


def _row(v: Value, t: int) -> Value:
    return _mapped(v, lambda a: a[t])


def _stacked(rows: list[Value]) -> Value:
    """The steps as one tensor; exact only where all of them are."""
    exact = all(r.exact for r in rows)
    magnitude = None if rows[0].magnitude is None else np.stack([np.asarray(r.magnitude) for r in rows])
    return Value(rows[0].dtype, np.stack([r.x for r in rows]), magnitude,
                 0.0 if exact else max(r.weight for r in rows), max(r.bit for r in rows))


def add(generator: Any) -> None:
    """Let some programs end with a scan over their last stage, and a stage that reads it.

    Drawn from numbers of its own, so that the programs without one stay what they are.
    """
    p = generator.p
    rng = random.Random(f"scan {p.seed}")
    source = p.stages[-1]
    if rng.random() > 0.25 or not source.axes or source.dtype == "bool":
        return
    kinds = [k for k in KINDS if len(source.axes) > 1 or k not in ("shift", "row")]
    steps = min(source.axes[0].value(b) for b in p.bindings)
    empty = any(d.value(b) == 0 for d in source.axes for b in p.bindings)
    if steps < 1 or empty:
        return
    read = Read(source.name, tuple(Axis(n) for n in range(len(source.axes))))
    s = ScanStage(f"T{len(p.stages)}", source.dtype, source.axes, read, source=source.name,
                  first=min(steps, rng.choice([1, 1, 1, 2, 3])), kind=rng.choice(kinds))
    try:
        made = [s.evaluate(sizes, generator.known[run], {}) for run, sizes in enumerate(p.bindings)]
    except Reject:
        return
    for known, new in zip(generator.known, made, strict=True):
        known.update(new)
    p.stages.append(s)
    if rng.random() < 0.5:
        generator.after_scan()
