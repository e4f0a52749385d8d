"""Blocks whose axes do not fit their loops, below a loop that may be no axis of theirs, under a few primitives.

Each of FEATURES is in a program or not, so that they meet. What reads memory that is unset or leaves a domain is drawn
again, since the Python of the program raises. A reduction over nothing starts the elements that the loops beside those
of its steps give, under the conditions on them.
"""
from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass

from .blocks import Program, check, describe, prepared, smaller
from .nests import block
from .twin import Axis, Buf, Lines, Twin, Writer, call, number, op, store

__all__ = ["FEATURES", "Program", "check", "describe", "prepared", "program", "smaller"]

FEATURES = ("repeats", "shared", "values", "parts", "domains", "empty", "outer", "varying", "parallel", "conditions",
            "data", "filled", "updates", "unread", "sizes")
LARGEST = 3                                            # of the sizes m and p


@dataclass(frozen=True)
class Loop:
    """for var in range(low, end), where the bounds are texts that mean the same in both languages."""
    var: str
    low: str
    end: str

    def around(self, body: Lines, kind: str = "range") -> Lines:
        bounds = self.end if self.low == "0" else f"{self.low}, {self.end}"
        return body.below(f"for {self.var} in {kind}({bounds}):", f"for {self.var} in range({bounds}):")


@dataclass(frozen=True)
class Bound:
    """An axis of the domain [low, end), and the loops and conditions by which it gets a value."""
    var: str
    kind: str
    low: str
    end: str
    value: str
    loops: tuple[Loop, ...] = ()
    where: tuple[str, ...] = ()

    @property
    def is_full(self) -> bool:
        """Whether the domain surely is not empty."""
        return self.end.isdigit() and int(self.end) > int(self.low)

    @property
    def is_plain(self) -> bool:
        return self.is_full and len(self.loops) == 1 and self.value == self.loops[0].var

    @property
    def axis(self) -> Axis:
        return Axis(self.var, int(self.end) if self.is_full else LARGEST + 1, int(self.low))

    @property
    def declared(self) -> tuple[str, str, str, Twin]:
        """What `block` writes."""
        domain = self.end if self.low == "0" else f"({self.low}, {self.end})"
        return self.var, self.kind, domain, Twin(self.value, f"inside({self.value}, {self.low}, {self.end})")


def words(text: str) -> set[str]:
    return set(re.findall(r"[A-Za-z_]\w*", text))


def below(loops: Sequence[Loop], body: Lines) -> Lines:
    for loop in reversed(loops):
        body = loop.around(body)
    return body


def all_of(where: Sequence[str]) -> Twin | None:
    text = " and ".join(where)
    return Twin(text, text) if where else None


def uses(lines: Sequence[Lines]) -> set[str]:
    """The names in scripts."""
    return {word for part in lines for line in part.s for word in words(line)}


def placed(inner: Lines, points: Sequence[Bound], steps: Sequence[Bound], loops: Sequence[Loop],
           where: Sequence[str], init: Lines | None) -> Lines:
    """inner in its loops; before the first of those that a reduction runs over, what it starts where it is empty."""
    driving = {loop.var for loop in loops if any(loop.var in words(s.value) for s in steps)}
    at = next((k for k, loop in enumerate(loops) if loop.var in driving), len(loops))
    lines = below(loops[at:], inner)
    if init is not None and not all(s.is_full for s in steps):
        kept = [c for c in where if not words(c) & driving]
        start = block("", [a.declared for a in points], init, all_of(kept))
        start = below([loop for loop in loops[at:] if loop.var not in driving], start)
        start = start.below("", f"if {' or '.join(f'{s.end} <= {s.low}' for s in steps)}:")
        lines = Lines(lines.s, start.p + lines.p)
    return below(loops[:at], lines)


class Drawing:
    """What is common to the blocks of a program."""

    def __init__(self, rng: random.Random) -> None:
        self.rng, self.count = rng, 0
        density = rng.choice([0.1, 0.2, 0.4])
        self.features = {f for f in FEATURES if rng.random() < density}
        self.n = rng.choice([4, 5, 6, 8])
        self.rows = rng.choice([3, 4, self.n])
        self.outer: Loop | None = None                 # around the next block, of as many iterations as there are rows

    def has(self, feature: str, chance: float = 1.0) -> bool:
        return feature in self.features and self.rng.random() < chance

    def name(self, stem: str) -> str:
        self.count += 1
        return f"{stem}{self.count}"

    # axes and loops ----------------------------------------------------------------------------------------------
    def bound(self, kind: str, n: int) -> Bound:
        """An axis over n elements, or some of them."""
        i, v, rng = self.name("i"), self.name("v"), self.rng
        size = "m" if kind == "reduce" else "p"

        def axis(loops: tuple[Loop, ...], value: str = i, low: object = 0, end: object = n,
                 where: tuple[str, ...] = ()) -> Bound:
            return Bound(v, kind, str(low), str(end), value, loops, where)

        def loop(low: object, end: object) -> tuple[Loop, ...]:
            return (Loop(i, str(low), str(end)),)
        full = loop(0, n)
        if rng.random() < 0.4:
            return axis(full)
        pair = [*loop(0, -(-n // 2)), Loop(f"{i}_", "0", "2")]
        pairs = f"{i} * 2 + {i}_"
        forms = {
            "values": [axis(full, f"{n - 1} - {i}"), axis(full, f"({i} + 3) % {n}"), axis(loop(0, 2 * n), f"{i} // 2"),
                       axis(full, f"{i} // 2 * 2 + {i} % 2"),
                       axis(tuple(rng.sample(pair, 2)), pairs, where=(f"{pairs} < {n}",) if n % 2 else ())],
            "parts": [axis(loop(1, 3)), axis(loop(0, rng.choice([0, 1, 2]))), axis((), str(rng.randrange(n))),
                      axis(loop(0, 2), f"{i} + 1")],
            "domains": [axis(loop(0, n - 2), f"{i} + 2", 2), axis(loop(2, n), low=2),
                        axis(loop(0, n - 1), f"{i} + 1", 1),
                        axis(loop(2, 2 * n), f"{i} // 2", 1, where=(f"{i} < {n}",))],
            "sizes": [axis(loop(0, size)), axis(full, where=(f"{i} < {size}",)), axis(loop(size, n))],
            "data": [axis(loop(0, "L[0]"))]}
        if kind == "reduce":
            forms["empty"] = [axis(loop(0, 0), end=0), axis(loop(0, "m"), end="m"),
                              axis(loop(1, "m + 1"), low=1, end="m + 1")]
        if self.outer is not None:
            t = self.outer.var
            forms["varying"] = [axis(loop(t, n)), axis(full, where=(f"{t} < {i}",))]
        flagged = [f for f in forms if f in self.features]
        return rng.choice(forms[rng.choice(flagged)]) if flagged else axis(full)

    def share(self, points: list[Bound], steps: list[Bound], update: bool) -> None:
        """Let a loop drive two axes, where a reduction surely has steps."""
        plain = [a for a in (*steps, *points) if a.is_plain]
        if not plain or not all(s.is_full for s in steps):
            return
        a = self.rng.choice(plain)
        fitting = [k for k, q in enumerate(points) if q is not a and q.low == "0" and int(q.end) >= int(a.end)]
        if a in steps and fitting and self.rng.random() < 0.5:
            k = self.rng.choice(fitting)
            points[k] = Bound(points[k].var, "spatial", "0", points[k].end, a.value)
        elif steps or update:
            steps.append(Bound(self.name("v"), "reduce", a.low, a.end, a.value))

    def loops(self, axes: Sequence[Bound]) -> list[Loop]:
        """Those of the axes, and others."""
        rng, loops = self.rng, list(dict.fromkeys(loop for a in axes for loop in a.loops))
        if rng.random() < 0.4:
            rng.shuffle(loops)
        for _ in range(rng.choice([1, 1, 2]) if self.has("repeats", 0.7) else 0):
            end = rng.choice("0122p") if self.has("sizes") else rng.choice("012222")
            loops.insert(rng.randint(0, len(loops)), Loop(self.name("u"), "0", end))
        return loops

    def condition(self, loops: Sequence[Loop]) -> str:
        loop = self.rng.choice(loops)
        i, c = loop.var, self.rng.randint(1, max(int(loop.end) - 1, 1) if loop.end.isdigit() else LARGEST - 1)
        return self.rng.choice([f"{i} < {c}", f"{c} <= {i}", f"{i} % 2 == 0",
                                f"{i} < p" if self.has("sizes") else f"{i} != {c}"])

    # blocks ------------------------------------------------------------------------------------------------------
    def point(self, b: Buf, extent: int) -> Bound:
        """An axis of the elements of b."""
        if self.outer is not None and extent == self.rows and self.rng.random() < (0.95 if len(b.shape) > 1 else 0.5):
            return Bound(self.name("v"), "spatial", "0", str(extent), self.outer.var)
        return self.bound("spatial", extent)

    def block(self, b: Buf, ready: Sequence[Buf], filled: bool) -> Lines:
        """A block that writes b, from ready buffers; filled: b may be read before."""
        rng, outer = self.rng, self.outer
        points = [self.point(b, e) for e in b.shape]
        kind = rng.choice(["map", "sum", "sum", "own", "add"] if self.has("updates") and filled else ["map", "sum"])
        steps = []
        if kind == "sum" or kind == "add" and rng.random() < 0.6:
            steps = [self.bound("reduce", rng.choice([3, self.n])) for _ in range(rng.choice([1, 1, 2]))]
            if outer is not None and all(s.is_full for s in steps[1:]) and rng.random() < 0.2:
                steps[0] = Bound(self.name("v"), "reduce", "0", str(self.rows), outer.var)
        if self.has("shared", 0.7):
            self.share(points, steps, kind == "add")
        axes = [*points, *steps]
        loops, where = self.loops(axes), [c for a in axes for c in a.where]
        if (loops or outer) and self.has("conditions", 0.7):
            where.append(self.condition([*loops, *([outer] if outer else [])]))
        here = b.at(*[a.axis.twin for a in points])
        writer, known = Writer(rng, ready if rng.random() < 0.5 else ready[-1:]), [a.axis for a in axes]
        value, init = writer.value(known, rng.choice([0, 1]), here if kind == "own" else None), None
        if kind == "sum":
            init = store(here, number(rng.choice([0, 0, 3])) if rng.random() < 0.8
                         else writer.value(known[:len(points)], 0))
        if kind in ("sum", "add"):
            value = op("+", here, value) if rng.random() < 0.75 else call("max", here, value)
        first = Twin("", " and ".join(f"{s.var} == {s.low}" for s in steps))
        inner = block(self.name("block"), [a.declared for a in axes], store(here, value), all_of(where), init, first)
        return placed(inner, points, steps, loops, where, init)

    def program(self, seed: int) -> Program:
        rng, n, rows = self.rng, self.n, self.rows
        middle, results = [Buf("B", (n,)), Buf("C", rng.choice([(rows, n), (n, n), (n,)]))], [Buf("D", (n,)),
                                                                                           Buf("E", (rows, n))]
        local = [b for b in middle if rng.random() < 0.65]
        arguments = [Buf("A", (n, n)), *results, *[b for b in middle if b not in local]]
        targets = [rng.choice([*middle, *middle, *results]) for _ in range(rng.choice([0, 1, 1, 2, 2]))]
        targets.append(rng.choice([*middle, *results] if self.has("unread") else results))
        if self.has("filled") or "updates" in self.features and targets[0] in local:
            targets.insert(0, targets[0])
        low = high = len(targets)
        if {"outer", "varying", "parallel"} & self.features:
            low = rng.randrange(high)
            high = rng.randint(low + 1, high)
        parallel = low < high and self.has("parallel")
        if parallel:                                   # results of which each iteration has elements of its own
            targets[low:high] = [b if b in local else results[1] for b in targets[low:high]]
        t = Loop("t", "0", rng.choice("p0") if self.has("sizes", 0.3) else rng.choice([str(rows), str(rows), "2"]))
        ready, parts = list(arguments), []
        for k, b in enumerate(targets):
            self.outer = t if low <= k < high else None
            parts.append(self.block(b, [a for a in ready if a is not b], b in ready))
            ready.append(b)
        nests, inside = [*parts[:low], *parts[high:]], sum(parts[low:high], Lines())
        if parallel:                                   # each iteration has its own of what it alone uses
            own = [b for b in local if b.name not in uses(nests)]
            unset = Lines((), tuple(f"{b.name} = {'[' * len(b.shape)}None] * {b.shape[-1]}"
                                    + (f" for _ in range({b.shape[0]})]" if len(b.shape) > 1 else "") for b in own))
            nests.insert(low, t.around(unset + inside, "T.parallel"))
        elif low < high:
            nests.insert(low, t.around(inside))
        used = uses(nests)
        calls: list[dict[str, int]] = [{}]
        if used & {"m", "p"}:
            calls = [{"m": m, "p": p} for m, p in ((0, 0), (1, LARGEST), (rng.randint(2, LARGEST), rng.randint(0, 1)),
                                                   (rng.randint(0, LARGEST), rng.randint(1, 2)))]
        return Program(seed, [*arguments, *[Buf("L", (1,))] * ("L" in used)], [b for b in local if b.name in used], (),
                       nests, calls=calls, free=True)


def program(seed: int) -> Program:
    """The first of the programs of a seed that its Python can run."""
    rng = random.Random(f"bindings {seed}")
    while True:
        p = Drawing(rng).program(seed)
        try:
            for call in p.calls:
                p.want(call)
        except (TypeError, ValueError):                # of what is unset, and of a value outside of its domain
            continue
        return p
