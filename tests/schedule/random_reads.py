"""Random small programs in block form that read memory wherever that is possible, and single primitives on them.

`python -m tests.schedule.random_reads FIRST COUNT` checks programs by their seeds and prints what differs.
"""
from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Callable

import numpy as np

from tilewright.schedule import Schedule
from tilewright.script import from_source
from tilewright.support.errors import ScheduleError, TilewrightError
from tilewright.tir import PrimFunc, interp
from tilewright.tir.verify import verify

N = 6
ARGUMENTS, OWN = ("A", "C", "D"), ("B", "E")


class Writer:
    """Draws the text of a program."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.lines: list[str] = []
        self.blocks = 0
        self.loops = 0
        self.known: list[str] = list(ARGUMENTS)            # buffers all of whose elements are written
        self.deeper = self.rng.choice([0.1, 0.45])         # how likely statements around blocks are

    def text(self) -> str:
        for b in OWN:
            if self.rng.random() < 0.75:
                self.nest(fills=b)
                self.known.append(b)
        for _ in range(self.rng.randint(1, 3)):
            self.nest()
        head = ", ".join(f'{b}: T.Buffer(({N},), "int32")' for b in ARGUMENTS)
        own = [f'    {b} = T.alloc_buffer(({N},), "int32")' for b in OWN]
        return "\n".join(["@T.prim_func", f"def main({head}):", *own, *["    " + line for line in self.lines], ""])

    # ---- expressions

    def index(self, names: list[str], data: bool = True) -> str:
        v = self.rng.choice(names) if names else "0"
        forms = [v, v, v, f"{N - 1} - {v}", f"({v} + 1) % {N}", f"T.max({v} - 1, 0)", f"{v} // 2",
                 str(self.rng.randrange(N))]
        if data and self.rng.random() < 0.12:
            return f"({self.read(names, False)}) % {N}"
        return self.rng.choice(forms)

    def read(self, names: list[str], data: bool = True) -> str:
        own = [b for b in self.known if b in OWN]
        return f"{self.rng.choice([*self.known, *own, *own])}[{self.index(names, data)}]"

    def value(self, names: list[str]) -> str:
        parts = [self.read(names) for _ in range(self.rng.randint(1, 2))]
        total = self.rng.choice([" + ", " - "]).join(parts) + self.rng.choice(["", " + 1", " * 2"])
        if self.rng.random() < 0.15:
            return f"T.if_then_else({self.condition(names)}, {total}, {self.rng.randint(0, 3)})"
        return total

    def condition(self, names: list[str]) -> str:
        if names and self.rng.random() < 0.25:
            return f"{self.rng.choice(names)} {self.rng.choice(['<', '>', '!='])} {self.rng.randrange(N)}"
        return f"{self.read(names)} {self.rng.choice(['<', '>', '!='])} {self.rng.randint(0, 4)}"

    # ---- statements

    def nest(self, fills: str = "") -> None:
        """A nest of loops over one or two blocks, with reads on the way to them; `fills`: one that writes all of it."""
        i = self.loop("i", 0, N, fills)
        depth, names = 1, [i]
        while not fills and self.rng.random() < self.deeper and depth < 4:
            kind = self.rng.choice(["if", "let", "loop", "loop"])
            if kind == "if":
                self.put(depth, f"if {self.condition(names)}:")
            elif kind == "let":
                self.loops += 1
                self.put(depth, f"x{self.loops}: T.int32 = ({self.read(names)}) % {N}")
                names.append(f"x{self.loops}")
                continue
            else:
                names.append(self.loop("k", depth, 0, ""))
            depth += 1
        if fills and self.rng.random() < 0.3:
            depth, names = 1, [i]
        for _ in range(1 if fills or self.rng.random() < 0.65 else 2):
            self.block(depth, names, fills)

    def loop(self, name: str, depth: int, extent: int, fills: str) -> str:
        self.loops += 1
        v = f"{name}{self.loops}"
        if extent:
            whole = f"range({extent})"
        else:
            bound = self.rng.choice(["3", "2", f"({self.read([])}) % 3", f"({self.read([])}) % 4"])
            whole = f"range({bound})"
        self.put(depth, f"for {v} in {whole}:")
        return v

    def block(self, depth: int, names: list[str], fills: str) -> None:
        self.blocks += 1
        self.put(depth, f'with T.block("b{self.blocks}"):')
        axes, inner = [], depth + 1
        reduces = self.rng.random() < 0.25
        for n, v in enumerate(names):
            axis = f"v{self.blocks}_{n}"
            value, extent = v, N
            if not fills and self.rng.random() < 0.12:
                value = f"({self.read(names)}) % {N}"
            elif v.startswith("k"):
                extent = 4
            kind = "reduce" if reduces and n == len(names) - 1 and n else "spatial"
            if kind == "spatial" and n and self.rng.random() < 0.3:
                kind = "opaque"
            self.put(inner, f"{axis} = T.axis.{kind}({extent}, {value})")
            axes.append(axis)
        if not fills and self.rng.random() < 0.3:
            self.put(inner, f"T.where({self.condition(names)})")
        target = fills or self.rng.choice([*ARGUMENTS, *ARGUMENTS, *self.known])
        place = axes[0] if fills or self.rng.random() < 0.65 else self.index(axes)
        if reduces and len(names) > 1:
            self.put(inner, "with T.init():")
            self.put(inner + 1, f"{target}[{place}] = {self.value(axes[:1])}")
            self.put(inner, f"{target}[{place}] = {target}[{place}] + ({self.value(axes)})")
            return
        if not fills and self.rng.random() < 0.2:
            self.put(inner, f"if {self.condition(axes)}:")
            inner += 1
        elif not fills and self.rng.random() < 0.12:
            self.put(inner, f"for r in range(({self.read(axes)}) % 3):")
            inner += 1
        self.put(inner, f"{target}[{place}] = {self.value(axes)}")

    def put(self, depth: int, line: str) -> None:
        self.lines.append("    " * depth + line)


def outputs(func: PrimFunc) -> list[np.ndarray]:
    """The arguments after func ran under the interpreter."""
    rng = np.random.default_rng(7)
    arrays = [rng.integers(0, 7, N).astype("int32") for _ in ARGUMENTS]
    interp.run(func, *arrays)
    return arrays


def changes(sch: Schedule, rng: random.Random) -> list[tuple[str, Callable[[Schedule], object]]]:
    """Single uses of primitives, each on some block and loop."""
    names = [b.name for b in sch.get_child_blocks("root")]
    b, c = rng.choice(names), rng.choice(names)
    loops = {n: len(sch.get_loops(n)) for n in names}
    at, to = (rng.randrange(loops[x]) if loops[x] else 0 for x in (b, c))

    def loop(s: Schedule, name: str, n: int) -> object:
        return s.get_loops(name)[n]

    def swapped(s: Schedule) -> object:
        outer, inner = s.split(loop(s, b, at), [None, 2])
        return s.reorder(inner, outer)

    own = rng.choice(OWN)
    return [
        ("parallel", lambda s: s.parallel(loop(s, b, at))),
        ("vectorize", lambda s: s.vectorize(loop(s, b, at))),
        ("bind", lambda s: s.bind(loop(s, b, at), "threadIdx.x")),
        ("reorder", lambda s: s.reorder(*s.get_loops(b)[::-1])),
        ("split, reorder", swapped),
        ("split", lambda s: s.split(loop(s, b, at), [None, 4])),
        ("fuse", lambda s: s.fuse(*s.get_loops(b)[at:at + 2])),
        ("loop_partition", lambda s: s.loop_partition(loop(s, b, at), [1, None])),
        ("merge", lambda s: s.merge(loop(s, b, 0), loop(s, c, 0))),
        ("compute_at", lambda s: s.compute_at(b, loop(s, c, to))),
        ("reverse_compute_at", lambda s: s.reverse_compute_at(b, loop(s, c, to))),
        ("compute_inline", lambda s: s.compute_inline(b)),
        ("reverse_compute_inline", lambda s: s.reverse_compute_inline(b)),
        ("cache_read", lambda s: s.cache_read(b, rng.choice((0, 1)), "local")),
        ("cache_write", lambda s: s.cache_write(b, 0, "local")),
        ("cache_inplace", lambda s: s.cache_inplace(b, rng.choice((0, 1)), "local")),
        ("reindex", lambda s: s.reindex(b, (rng.choice(("read", "write")), 0))),
        ("transform_layout", lambda s: s.transform_layout(b, own, lambda i: (i % 2, i // 2))),
        ("transform_block_layout", lambda s: s.transform_block_layout(b, lambda *i: (*i[1:], i[0]))),
        ("set_scope", lambda s: s.set_scope(b, own, "shared")),
        ("blockize", lambda s: s.blockize(loop(s, b, at))),
        ("blockize blocks", lambda s: s.blockize([s.get_block(b), s.get_block(c)])),
        ("decompose_reduction", lambda s: s.decompose_reduction(b, loop(s, b, at))),
        ("rfactor", lambda s: s.rfactor(loop(s, b, at), 0)),
        ("rolling_buffer", lambda s: s.rolling_buffer(b, 0)),
    ]


def check(seed: int, counts: Counter[str] | None = None) -> list[str]:
    """What goes wrong with the primitives on a program: one text for each."""
    text = Writer(seed).text()
    try:
        func = from_source(text)
        verify(func)
        want = outputs(func)
        start = Schedule(func)
    except TilewrightError as why:
        if counts is not None:
            counts[f"no program: {type(why).__name__}"] += 1
        return []
    wrong: list[str] = []
    rng = random.Random(seed)
    for name, change in changes(start, rng) + changes(start, rng):
        sch = Schedule(func)
        try:
            change(sch)
        except ScheduleError:
            continue
        except Exception as why:
            wrong.append(f"seed {seed}: {name} raises {type(why).__name__}: {why}\n{text}")
            continue
        if counts is not None:
            counts[name] += 1
        try:
            verify(sch.func)
            got = outputs(sch.func)
        except Exception as why:
            wrong.append(f"seed {seed}: after {name}: {type(why).__name__} {why}\n{text}\n{sch.func}")
            continue
        if any((x != y).any() for x, y in zip(got, want, strict=True)):
            wrong.append(f"seed {seed}: {name} changes the result\n{text}\n{sch.func}")
    return wrong


if __name__ == "__main__":
    first, count = map(int, sys.argv[1:])
    accepted: Counter[str] = Counter()
    found = [w for seed in range(first, first + count) for w in check(seed, accepted)]
    print("\n\n".join(found))
    print(dict(accepted))
    print(f"{len(found)} of {count} programs' uses are wrong")
