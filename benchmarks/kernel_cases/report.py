"""What was measured of a row, as a line of the table and as a line of JSON, and the summary of a table."""
from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass

SLOW = 0.9                         # of the best peer's speed
SHORT = {"tilewright": "ours", "tilewright_symbolic": "symbolic", "torch_compiled": "inductor", "onnxruntime": "ort"}


@dataclass(frozen=True)
class Measured:
    """seconds: of a call, by engine; errors: of those that have none; least: by the roof."""
    family: str
    name: str
    threads: int
    seconds: dict[str, float]
    errors: dict[str, str]
    least: float | None
    compile_seconds: float | None
    object_bytes: int | None

    @property
    def ratio(self) -> float | None:
        """Time of the best peer / ours."""
        peers = [s for e, s in self.seconds.items() if not e.startswith("tilewright")]
        ours = self.seconds.get("tilewright")
        return min(peers) / ours if peers and ours else None

    @property
    def symbolic(self) -> float | None:
        """Time with symbolic leading extents / with constant ones."""
        pair = self.seconds.get("tilewright_symbolic"), self.seconds.get("tilewright")
        return pair[0] / pair[1] if pair[0] and pair[1] else None

    @property
    def of_roof(self) -> float | None:
        ours = self.seconds.get("tilewright")
        return self.least / ours if self.least is not None and ours else None

    def line(self) -> str:
        return json.dumps(asdict(self))


def title(engines: Sequence[str], threads: int) -> str:
    cells = " ".join(f"{SHORT.get(e, e):>9}" for e in engines)
    return f"\n{threads} thread(s), µs; ratio: best peer / ours\n{'':52} {cells}  ratio  roof  compile   object"


def number(value: float | None, text: str, width: int) -> str:
    return f"{'-' if value is None else format(value, text):>{width}}"


def print_row(m: Measured, engines: Sequence[str]) -> None:
    cells = " ".join(number(1e6 * m.seconds[e] if e in m.seconds else None, ".1f", 9) for e in engines)
    ratio = m.symbolic if "tilewright_symbolic" in engines else m.ratio
    compiled = None if m.compile_seconds is None else 1e3 * m.compile_seconds
    size = None if m.object_bytes is None else m.object_bytes / 1024
    print(f"{m.name:52} {cells} {number(ratio, '.2f', 6)} {number(m.of_roof, '.2f', 5)} "
          f"{number(compiled, '.0f', 5)} ms {number(size, '.1f', 5)} KiB", flush=True)
    for engine, error in m.errors.items():
        if not error.startswith("NoWay"):
            print(f"    {'ERROR' if engine == 'tilewright' else engine}: {error.splitlines()[0][:160]}", flush=True)


def print_summary(found: Sequence[Measured]) -> None:
    """Geometric means, slow rows and errors, for each number of threads."""
    for threads in sorted({m.threads for m in found}):
        rows = [m for m in found if m.threads == threads]
        wrong = [m for m in rows if "tilewright" in m.errors]
        print(f"\n{threads} thread(s): {len(rows)} rows, {len(wrong)} errors")
        for m in wrong:
            print(f"  {m.name}: {m.errors['tilewright'].splitlines()[0][:200]}")
        ratios = [(m.ratio, m) for m in rows if m.ratio]
        if ratios:
            summarize(ratios, "best peer / ours", worst_first=1)
        symbolic = [(m.symbolic, m) for m in rows if m.symbolic]
        if symbolic:
            summarize(symbolic, "symbolic / constant", worst_first=-1)


def summarize(ratios: Sequence[tuple[float, Measured]], what: str, worst_first: int) -> None:
    """worst_first: 1 where small ratios are bad, -1 where large ones are."""
    values = [r for r, _ in ratios]
    slow = sum(r < SLOW if worst_first > 0 else r > 1 / SLOW for r in values)
    limit = f"under {SLOW}" if worst_first > 0 else f"above {1 / SLOW:.2f}"
    print(f"{what}: geometric mean {statistics.geometric_mean(values):.3f}, {slow} of {len(values)} {limit}")
    for family in dict.fromkeys(m.family for _, m in ratios):
        own = [r for r, m in ratios if m.family == family]
        print(f"  {family:14} {statistics.geometric_mean(own):6.3f} of {len(own)}")
    print("  the worst:")
    for ratio, m in sorted(ratios, key=lambda pair: worst_first * pair[0])[:10]:
        print(f"  {ratio:6.2f}  {m.name}")
