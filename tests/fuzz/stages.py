"""Random stage schedules whose calls are run in other orders: one meaning, one text.

Each call belongs to one stage (a cache_read to the stages of its readers as well); the calls of a stage keep their
order, and a call comes after those that give it its handles.
"""
from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tilewright import te
from tilewright.lowering import lower
from tilewright.support.errors import ScheduleError

from . import generate

Handles = dict[str, Any]


@dataclass(frozen=True)
class Call:
    """run(schedule, handles), which uses the handles `needs` and adds those in `gives`."""
    stages: frozenset[str]
    text: str
    needs: frozenset[str]
    gives: frozenset[str]
    run: Callable[[Any, Handles], None]


class Recorder:
    """Draws calls and keeps those that are accepted."""

    def __init__(self, rng: random.Random, args: Sequence[Any], tensors: dict[str, Any],
                 outputs: Sequence[str]) -> None:
        self.rng, self.args, self.tensors, self.outputs = rng, args, tensors, outputs
        self.schedule, self.handles = self.fresh()
        self.calls: list[Call] = []
        self.count = 0
        self.leaves: dict[str, list[str]] = {}

    def fresh(self) -> tuple[Any, Handles]:
        """A schedule on which nothing was done, and its tensors by name."""
        return te.create_schedule([self.tensors[n].op for n in self.outputs]), dict(self.tensors)

    def name(self, base: str) -> str:
        self.count += 1
        return f"{base}.{self.count}"

    def call(self, stages: Sequence[str], text: str, needs: Sequence[str], gives: Sequence[str],
             run: Callable[[Any, Handles], None]) -> bool:
        """Run a call and record it, unless the schedule refuses it."""
        new = Call(frozenset(stages), text, frozenset(needs), frozenset(gives), run)
        try:
            run(self.schedule, self.handles)
        except ScheduleError:
            return False
        self.calls.append(new)
        return True

    def record(self) -> None:
        rng = self.rng
        first = {t.op: n for n, t in reversed(self.tensors.items())}          # one name for each stage
        names = [n for n, t in self.tensors.items() if isinstance(t.op, te.ComputeOp) and t in self.schedule
                 and first[t.op] == n]
        for name in list(names):
            if rng.random() < 0.25:
                self.cache_write(name, names)
            if rng.random() < 0.25:
                self.cache_read(name, names)
        for name in names:
            self.loops(name)
        for name in names:
            self.marks(name)
        for name in names:
            self.attach(name, names)

    # -- dataflow

    def cache_write(self, name: str, names: list[str]) -> None:
        new = self.name(f"{name}.w")
        scope = self.rng.choice(["local", "shared", "global"])

        def run(s: Any, h: Handles) -> None:
            h[new] = s.cache_write(h[name], scope)
        if self.call([name], f"cache_write({name}, {scope})", [name], [new], run):
            names.append(new)

    def cache_read(self, reader: str, names: list[str]) -> None:
        """A copy of something that the stage reader reads."""
        by_tensor = {id(self.handles[n]): n for n in self.handles if isinstance(self.handles[n], te.Tensor)}
        sources = [by_tensor[id(t)] for t in self.schedule[self.handles[reader]].op.input_tensors if id(t) in by_tensor]
        if not sources:
            return
        source = self.rng.choice(sources)
        new = self.name(f"{source}.r")
        scope = self.rng.choice(["local", "shared"])

        def run(s: Any, h: Handles) -> None:
            h[new] = s.cache_read(h[source], scope, [h[reader]])
        if self.call([source, reader], f"cache_read({source}, {scope}, [{reader}])", [source, reader], [new], run):
            names.append(new)

    # -- loops

    def axis(self, name: str, kind: str, k: int) -> str:
        """The handle of an axis that the operation has from the start."""
        return f"{name}:{kind}{k}"

    def resolve(self, s: Any, h: Handles, handle: str) -> Any:
        if handle in h:
            return h[handle]
        name, _, rest = handle.rpartition(":")
        op = s[h[name]].op
        return (op.axis if rest[0] == "a" else op.reduce_axis)[int(rest[1:])]

    def loops(self, name: str) -> None:
        rng, op = self.rng, self.schedule[self.handles[name]].op
        spatial = [self.axis(name, "a", k) for k in range(len(op.axis))]
        reduced = [self.axis(name, "r", k) for k in range(len(op.reduce_axis))]
        leaves = [*spatial, *reduced]
        kinds = {leaf: leaf in reduced for leaf in leaves}
        for _ in range(rng.randint(0, 4)):
            if not leaves:
                break
            kind = rng.choice(["split", "split", "nparts", "fuse", "reorder"])
            if kind in ("split", "nparts"):
                self._split(name, kind, leaves, kinds)
            elif kind == "fuse" and len(leaves) > 1:
                self._fuse(name, leaves, kinds)
            elif kind == "reorder":
                self._reorder(name, leaves)
        self.leaves[name] = leaves

    def _needs(self, name: str, handles: Sequence[str]) -> list[str]:
        return [name, *(h for h in handles if h in self.handles)]

    def _split(self, name: str, kind: str, leaves: list[str], kinds: dict[str, bool]) -> None:
        old = self.rng.choice(leaves)
        outer, inner = self.name(f"{name}.o"), self.name(f"{name}.i")
        size = self.rng.choice([1, 2, 3, 4, 5, 8])

        def run(s: Any, h: Handles) -> None:
            given = {"factor": size} if kind == "split" else {"nparts": size}
            h[outer], h[inner] = s[h[name]].split(self.resolve(s, h, old), **given)
        if self.call([name], f"{name}.{kind}({old}, {size})", self._needs(name, [old]), [outer, inner], run):
            at = leaves.index(old)
            leaves[at:at + 1] = [outer, inner]
            kinds[outer] = kinds[inner] = kinds[old]

    def _fuse(self, name: str, leaves: list[str], kinds: dict[str, bool]) -> None:
        at = self.rng.randrange(len(leaves) - 1)
        pair = leaves[at:at + 2]
        new = self.name(f"{name}.f")

        def run(s: Any, h: Handles) -> None:
            h[new] = s[h[name]].fuse(*[self.resolve(s, h, leaf) for leaf in pair])
        if self.call([name], f"{name}.fuse({', '.join(pair)})", self._needs(name, pair), [new], run):
            leaves[at:at + 2] = [new]
            kinds[new] = kinds[pair[0]]

    def _reorder(self, name: str, leaves: list[str]) -> None:
        wanted = self.rng.sample(leaves, self.rng.randint(1, len(leaves)))

        def run(s: Any, h: Handles) -> None:
            s[h[name]].reorder(*[self.resolve(s, h, leaf) for leaf in wanted])
        if self.call([name], f"{name}.reorder({', '.join(wanted)})", self._needs(name, wanted), [], run):
            places = sorted(leaves.index(leaf) for leaf in wanted)
            for place, leaf in zip(places, wanted):
                leaves[place] = leaf

    def marks(self, name: str) -> None:
        rng = self.rng
        for _ in range(rng.choice([0, 0, 1, 2])):
            if not self.leaves[name]:
                return
            leaf, kind = rng.choice(self.leaves[name]), rng.choice(["parallel", "vectorize", "unroll", "pragma"])

            def run(s: Any, h: Handles, leaf: str = leaf, kind: str = kind) -> None:
                axis = self.resolve(s, h, leaf)
                if kind == "pragma":
                    s[h[name]].pragma(axis, "note", 3)
                else:
                    getattr(s[h[name]], kind)(axis)
            self.call([name], f"{name}.{kind}({leaf})", self._needs(name, [leaf]), [], run)

    # -- places

    def attach(self, name: str, names: Sequence[str]) -> None:
        rng, s = self.rng, self.schedule
        stage = s[self.handles[name]]
        users = [n for n in names if n != name and s.needs(s[self.handles[n]], stage)]
        roll = rng.random()
        if not users or stage.is_output or roll < 0.3:
            return
        if roll < 0.45:
            self.call([name], f"{name}.compute_inline()", [name], [], lambda s, h: s[h[name]].compute_inline())
            return
        user = rng.choice(users)
        if not self.leaves[user]:
            return
        leaf = rng.choice(self.leaves[user])
        caches = [g for c in self.calls if user in c.stages or name in c.stages for g in c.gives
                  if isinstance(self.handles[g], te.Tensor)]

        def run(s: Any, h: Handles) -> None:
            s[h[name]].compute_at(s[h[user]], self.resolve(s, h, leaf))
        self.call([name], f"{name}.compute_at({user}, {leaf})", [user, *caches, *self._needs(name, [leaf])], [], run)

    # -- orders

    def before(self) -> list[set[int]]:
        """For each call the positions of those that must come before it."""
        out: list[set[int]] = []
        for n, c in enumerate(self.calls):
            out.append({m for m in range(n) if self.calls[m].stages & c.stages or self.calls[m].gives & c.needs})
        return out

    def orders(self, limit: int, rng: random.Random) -> Iterator[list[int]]:
        """Every order when there are at most `limit`, else `limit` random ones."""
        before = self.before()
        few = list(_extensions(before, limit + 1))
        if len(few) <= limit:
            yield from few
            return
        for _ in range(limit):
            done: list[int] = []
            left = set(range(len(before)))
            while left:
                ready = sorted(n for n in left if not before[n] & left)
                done.append(rng.choice(ready))
                left.discard(done[-1])
            yield done

    def outcome(self, order: Sequence[int]) -> tuple[str, bytes]:
        """(the lowered text, or the refusal without the place of the call; the fingerprint) for an order."""
        s, handles = self.fresh()
        for n in order:
            self.calls[n].run(s, handles)
        try:
            return str(lower(s.replay(self.args).func)), s.fingerprint(self.args)
        except ScheduleError as why:
            return "refused: " + str(why).split(": ", 1)[1], s.fingerprint(self.args)


def _extensions(before: Sequence[set[int]], limit: int) -> Iterator[list[int]]:
    """The first `limit` linear extensions of a partial order."""
    found = 0

    def go(done: list[int], left: set[int]) -> Iterator[list[int]]:
        nonlocal found
        if not left:
            found += 1
            yield list(done)
            return
        for n in sorted(left):
            if found >= limit:
                return
            if not before[n] & left:
                yield from go([*done, n], left - {n})
    yield from go([], set(range(len(before))))


def recorded(seed: int) -> Recorder | None:
    """The stage schedule of a seed; None when the program has one stage only or the schedule is refused."""
    program = generate.program(seed)
    if len(program.stages) < 2:
        return None
    args, tensors = program.tensors()
    r = Recorder(random.Random(seed), args, tensors, program.outputs)
    r.record()
    if not r.calls or r.outcome(range(len(r.calls)))[0].startswith("refused"):
        return None
    return r


def disagreements(r: Recorder, limit: int, seed: int) -> tuple[int, list[str]]:
    """(orders tried, what differs from the recorded order)."""
    first = r.outcome(range(len(r.calls)))
    wrong, tried = [], 0
    for order in r.orders(limit, random.Random(seed)):
        tried += 1
        try:
            other = r.outcome(order)
        except ScheduleError as why:
            wrong.append(f"{[r.calls[n].text for n in order]} is refused: {why}")
            continue
        if other != first:
            what = "the text" if other[0] != first[0] else "the fingerprint"
            wrong.append(f"{what} differs for {[r.calls[n].text for n in order]}\n{first[0]}\n---\n{other[0]}")
    return tried, wrong


def check_stages(count: int, seed: int, limit: int) -> tuple[int, int, list[str]]:
    """(orders tried, seeds drawn, disagreements) for `count` legal stage schedules."""
    tried, wrong, legal, here = 0, [], 0, seed
    while legal < count:
        r = recorded(here)
        here += 1
        if r is None:
            continue
        legal += 1
        more, bad = disagreements(r, limit, here)
        tried += more
        wrong += [f"seed {here - 1}: {text}" for text in bad]
    return tried, here - seed, wrong


if __name__ == "__main__":
    wanted = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    orders, drawn, differing = check_stages(wanted, 0, 16)
    print("\n\n".join(differing[:5]))
    print(f"{orders} orders of {wanted} schedules ({drawn} drawn), {len(differing)} differ")
    sys.exit(bool(differing))
