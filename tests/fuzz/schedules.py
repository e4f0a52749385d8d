"""Random calls of schedule primitives, as data: an action names blocks, and loops by their position around a block."""
from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tilewright.schedule import LoopRV, Schedule
from tilewright.support.errors import ScheduleError
from tilewright.tir.expr import IntImm
from tilewright.tir.stmt import THREAD_BINDING, UNROLLED, VECTORIZED, Block, For

PRIMITIVES = ("split", "fuse", "reorder", "parallel", "vectorize", "unroll", "bind", "compute_at", "reverse_compute_at",
              "compute_inline", "reverse_compute_inline", "cache_read", "cache_write", "set_scope", "transform_layout",
              "decompose_reduction", "annotate")
TAGS = ("blockIdx.x", "blockIdx.y", "threadIdx.x", "threadIdx.y", "vthread")
SCOPES = ("local", "shared", "global")
FAVOURED = "FUZZ_FAVOURED"                             # variable of the environment: primitives for half of all moves
MOST_COPIES = 64                                       # of a statement, through unrolled and vectorized loops

Action = tuple[Any, ...]                               # (primitive, arguments...); a loop is (block name, position)


@dataclass(frozen=True)
class Move:
    """How a primitive takes part in random schedules: weights of its draw early and late in a schedule, the draw
    itself, and how an action is run: `run(sch, *arguments)`."""
    early: float
    late: float
    draw: Callable[[Chooser, Schedule, list[str]], Action | None]
    run: Callable[..., None]
    last: float = 0.0                                  # how likely it is to be tried when the schedule is done


MOVES: dict[str, Move] = {}                            # filled by the modules of tests/fuzz/moves


def move(name: str, early: float, late: float, run: Callable[..., None], last: float = 0.0) -> Callable[[Any], Any]:
    """Decorator: draw(chooser, sch, names) -> Action | None draws arguments for the primitive `name`."""
    def keep(draw: Callable[[Chooser, Schedule, list[str]], Action | None]) -> Any:
        MOVES[name] = Move(early, late, draw, run, last)
        return draw
    return keep


class Unresolved(Exception):
    """An action names a block or loop that the schedule does not have."""


def find_loop(sch: Schedule, where: tuple[str, int]) -> LoopRV:
    block, position = where
    if block not in sch.index.realizes:
        raise Unresolved(f"block {block}")
    loops = sch.loops_above(block)
    if position >= len(loops):
        raise Unresolved(f"loop {position} of {block}")
    return sch.loop_rv(loops[position])


def find_block(sch: Schedule, name: str) -> Any:
    if name not in sch.index.realizes:
        raise Unresolved(f"block {name}")
    return sch.block_rv(name)


def layout_map(kind: str, amount: int, axis: int, shape: list[int]) -> Callable[..., tuple[Any, ...]]:
    """An index map of a tensor of this shape."""
    def mapped(*i: Any) -> tuple[Any, ...]:
        at = list(i)
        if kind == "rotate":
            return tuple(at[axis:] + at[:axis])
        if kind == "split":
            return (*at[:axis], at[axis] // amount, *at[axis + 1:], at[axis] % amount)
        if kind == "tile":
            return (*at[:axis], at[axis] // amount, at[axis] % amount, *at[axis + 1:])
        if kind == "reverse":
            return (*at[:axis], shape[axis] - 1 - at[axis], *at[axis + 1:])
        if kind == "pad":
            return (*at[:axis], at[axis] + amount, *at[axis + 1:])
        flat = at[0]
        for extent, index in zip(shape[1:], at[1:]):
            flat = flat * extent + index
        return (flat,)
    return mapped


def perform(sch: Schedule, action: Action) -> None:
    """Run an action. Raises ScheduleError where it is refused, Unresolved where it names what is not there."""
    name, *a = action
    if name in MOVES:
        MOVES[name].run(sch, *a)
    elif name in ("fuse", "reorder"):
        getattr(sch, name)(*[find_loop(sch, where) for where in a[0]])
    elif name == "split":
        sch.split(find_loop(sch, a[0]), a[1], preserve_unit_iters=a[2])
    elif name in ("parallel", "vectorize", "unroll"):
        getattr(sch, name)(find_loop(sch, a[0]))
    elif name == "bind":
        sch.bind(find_loop(sch, a[0]), a[1])
    elif name in ("compute_at", "reverse_compute_at"):
        getattr(sch, name)(find_block(sch, a[0]), find_loop(sch, a[1]), preserve_unit_loops=a[2], index=a[3])
    elif name in ("compute_inline", "reverse_compute_inline"):
        getattr(sch, name)(find_block(sch, a[0]))
    elif name == "cache_read":
        consumers = None if a[3] is None else [find_block(sch, b) for b in a[3]]
        sch.cache_read(find_block(sch, a[0]), a[1], a[2], consumer_blocks=consumers)
    elif name == "cache_write":
        sch.cache_write(find_block(sch, a[0]), a[1], a[2])
    elif name == "set_scope":
        sch.set_scope(find_block(sch, a[0]), a[1], a[2])
    elif name == "transform_layout":
        sch.transform_layout(find_block(sch, a[0]), tuple(a[1]), layout_map(*a[2]))  # type: ignore[attr-defined]
    elif name == "decompose_reduction":
        sch.decompose_reduction(find_block(sch, a[0]), find_loop(sch, a[1]))
    elif name in ("annotate", "unannotate"):
        target = find_block(sch, a[0]) if isinstance(a[0], str) else find_loop(sch, a[0])
        getattr(sch, name)(target, *a[1:])
    else:
        raise AssertionError(name)


class Chooser:
    """Draws actions that fit the schedule as it stands."""

    def __init__(self, rng: random.Random, threads: bool) -> None:
        self.rng, self.threads = rng, threads
        self.late = False                              # from now on mostly annotations of loops

    def action(self, sch: Schedule) -> Action | None:
        """One action, or None where the drawn primitive has nothing to act on."""
        rng = self.rng
        names = [b for b in sch.index.realizes if b != "root"]
        if not names:
            return None
        early = {"split": 7, "fuse": 4, "reorder": 5, "compute_at": 6, "reverse_compute_at": 5,
                 "compute_inline": 4, "reverse_compute_inline": 8, "cache_read": 4, "cache_write": 3,
                 "set_scope": 1.5, "transform_layout": 2.5, "decompose_reduction": 2, "parallel": 0.4,
                 "vectorize": 0.4, "unroll": 0.4, "annotate": 0.3, "unannotate": 0.1, "bind": 0.7 * self.threads}
        late = {"split": 2, "fuse": 1, "reorder": 1, "decompose_reduction": 3, "parallel": 2 - self.threads,
                "vectorize": 3, "unroll": 3, "annotate": 2, "bind": 6 * self.threads, "compute_at": 1,
                "reverse_compute_at": 1, "set_scope": 1.5, "cache_read": 0.3, "cache_write": 0.3,
                "transform_layout": 1}
        weights = late if self.late else early
        weights |= {name: m.late if self.late else m.early for name, m in MOVES.items()}
        favoured = os.environ.get(FAVOURED)
        if favoured and rng.random() < 0.5:
            weights = dict.fromkeys(favoured.split(","), 1)
        primitive = rng.choices(list(weights), list(weights.values()))[0]
        if primitive in MOVES:
            return MOVES[primitive].draw(self, sch, names)
        return getattr(self, f"_{primitive}")(sch, names)

    def _block(self, sch: Schedule, names: list[str]) -> tuple[str, list[For]]:
        name = self.rng.choice(names)
        return name, sch.loops_above(name)

    def _loop(self, sch: Schedule, names: list[str]) -> tuple[tuple[str, int], For] | None:
        name, loops = self._block(sch, names)
        if not loops:
            return None
        position = self.rng.randrange(len(loops))
        return (name, position), loops[position]

    def _split(self, sch: Schedule, names: list[str]) -> Action | None:
        rng, found = self.rng, self._loop(sch, names)
        if found is None:
            return None
        where, loop = found
        f = rng.choice([1, 2, 2, 3, 4, 4, 5, 7, 8, 16])
        forms: list[list[int | None]] = [[None, f], [None, f], [f, None], [None, f, rng.choice([2, 3, 4])],
                                         [rng.choice([2, 3]), None, f]]
        if isinstance(loop.extent, IntImm) and loop.extent.value > 0:
            forms.append([-(-loop.extent.value // f), f])
        return ("split", where, rng.choice(forms), rng.random() < 0.8)

    def _fuse(self, sch: Schedule, names: list[str]) -> Action | None:
        name, loops = self._block(sch, names)
        if len(loops) < 2:
            return None
        first = self.rng.randrange(len(loops) - 1)
        count = min(self.rng.choice([2, 2, 3]), len(loops) - first)
        return ("fuse", [(name, first + n) for n in range(count)])

    def _reorder(self, sch: Schedule, names: list[str]) -> Action | None:
        name, loops = self._block(sch, names)
        if len(loops) < 2:
            return None
        return ("reorder", [(name, n) for n in self.rng.sample(range(len(loops)), self.rng.randint(2, len(loops)))])

    def _parallel(self, sch: Schedule, names: list[str]) -> Action | None:
        found = self._loop(sch, names)
        return found and ("parallel", found[0])

    def _copies(self, sch: Schedule, loop: For) -> int:
        """How often the statements at loop are copied already."""
        index = sch.index
        above = [s for s in index.path_to(loop) if isinstance(s, For) and s is not loop]
        below = [s for s in index.loops.values() if loop in index.path_to(s) and s is not loop]
        total = 1
        for s in (*above, *below):
            if s.kind in (UNROLLED, VECTORIZED) and isinstance(s.extent, IntImm):
                total *= max(s.extent.value, 1)
        return total

    def _vectorize(self, sch: Schedule, names: list[str]) -> Action | None:
        name, loops = self._block(sch, names)
        if not loops:
            return None
        position = len(loops) - 1 if self.rng.random() < 0.6 else self.rng.randrange(len(loops))
        return self._copying("vectorize", sch, (name, position), loops[position])

    def _unroll(self, sch: Schedule, names: list[str]) -> Action | None:
        found = self._loop(sch, names)
        return found and self._copying("unroll", sch, *found)

    def _copying(self, primitive: str, sch: Schedule, where: tuple[str, int], loop: For) -> Action | None:
        if isinstance(loop.extent, IntImm) and loop.extent.value * self._copies(sch, loop) > MOST_COPIES:
            return None
        return (primitive, where)

    def _bind(self, sch: Schedule, names: list[str]) -> Action | None:
        name, loops = self._block(sch, names)
        if not loops:
            return None
        position = 0 if self.rng.random() < 0.5 else self.rng.randrange(len(loops))
        return ("bind", (name, position), self.rng.choice(TAGS))

    def _near(self, sch: Schedule, block: str, kind: str, names: list[str]) -> tuple[str, int] | None:
        """A loop of a consumer or producer of the block; sometimes of any block."""
        partners = getattr(sch, kind)(block)
        name = self.rng.choice(partners if partners and self.rng.random() < 0.95 else names)
        loops = sch.loops_above(name)
        return (name, self.rng.randrange(len(loops))) if loops else None

    def _compute_at(self, sch: Schedule, names: list[str], primitive: str = "compute_at",
                    kind: str = "consumers") -> Action | None:
        fitting = [n for n in names if getattr(sch, kind)(n)]
        if not fitting and self.rng.random() < 0.9:
            return None
        block = self.rng.choice(fitting or names)
        where = self._near(sch, block, kind, names)
        index = self.rng.choice([-1, -1, -1, -2, 0, 1])
        return where and (primitive, block, where, self.rng.random() < 0.3, index)

    def _reverse_compute_at(self, sch: Schedule, names: list[str]) -> Action | None:
        return self._compute_at(sch, names, "reverse_compute_at", "producers")

    def _compute_inline(self, sch: Schedule, names: list[str]) -> Action | None:
        fitting = [n for n in names if sch.consumers(n)]
        return ("compute_inline", self.rng.choice(fitting)) if fitting else None

    def _reverse_compute_inline(self, sch: Schedule, names: list[str]) -> Action | None:
        fitting = [n for n in names if sch.producers(n)]
        alone = [n for n in fitting if self._of(sch, n).init is None
                 and any(sch.consumers(p) == [n] for p in sch.producers(n))]
        if alone and self.rng.random() < 0.8:          # the others are refused
            fitting = alone
        return ("reverse_compute_inline", self.rng.choice(fitting)) if fitting else None

    def _cache_read(self, sch: Schedule, names: list[str]) -> Action | None:
        name = self.rng.choice(names)
        block = self._of(sch, name)
        if not block.reads or len(names) > 9:
            return None
        consumers = [name] if self.rng.random() < 0.3 else None
        return ("cache_read", name, self.rng.randrange(len(block.reads)), self.rng.choice(SCOPES), consumers)

    def _of(self, sch: Schedule, name: str) -> Block:
        return sch.realize(name).block

    def _cache_write(self, sch: Schedule, names: list[str]) -> Action | None:
        if len(names) > 9:
            return None
        return ("cache_write", self.rng.choice(names), 0, self.rng.choice(SCOPES))

    def _private(self, sch: Schedule, names: list[str]) -> list[tuple[str, str, int]]:
        """(block, "read" or "write", position) of the buffers that the function allocates."""
        arguments = {id(b) for b in sch.func.buffers}
        return [(n, kind, k) for n in names for kind in ("read", "write")
                for k, r in enumerate(getattr(self._of(sch, n), f"{kind}s")) if id(r.buffer) not in arguments]

    def _set_scope(self, sch: Schedule, names: list[str]) -> Action | None:
        written = [t for t in self._private(sch, names) if t[1] == "write"]
        if not written:
            return None
        name, _, position = self.rng.choice(written)
        return ("set_scope", name, position, self.rng.choice(SCOPES))

    def _transform_layout(self, sch: Schedule, names: list[str]) -> Action | None:
        rng, choices = self.rng, self._private(sch, names)
        if not choices:
            return None
        name, kind, position = rng.choice(choices)
        shape = getattr(self._of(sch, name), f"{kind}s")[position].buffer.shape
        if not shape:
            return None
        sizes = [d.value if isinstance(d, IntImm) else 0 for d in shape]
        form = rng.choice(["rotate", "split", "tile", "flat", "reverse", "pad"])
        return ("transform_layout", name, [kind, position],
                [form, rng.choice([1, 2, 3, 4, 8]), rng.randrange(len(sizes)), sizes])

    def _decompose_reduction(self, sch: Schedule, names: list[str]) -> Action | None:
        reducing = [n for n in names if self._of(sch, n).init is not None and sch.loops_above(n)]
        if not reducing:
            return None
        name = self.rng.choice(reducing)
        return ("decompose_reduction", name, (name, self.rng.randrange(len(sch.loops_above(name)))))

    def _annotate(self, sch: Schedule, names: list[str]) -> Action | None:
        found = self._loop(sch, names) if self.rng.random() < 0.5 else None
        key, value = self.rng.choice(["note", "hint", "order"]), self.rng.choice([1, "text", [1, 2], 0.5])
        return ("annotate", found[0] if found else self.rng.choice(names), key, value)

    def _unannotate(self, sch: Schedule, names: list[str]) -> Action | None:
        marked = [n for n in names if self._of(sch, n).annotations]
        if not marked:
            return None
        name = self.rng.choice(marked)
        return ("unannotate", name, next(iter(self._of(sch, name).annotations)))


def random_actions(rng: random.Random, sch: Schedule, accepted: Counter[str], refused: Counter[str]) -> list[Action]:
    """Schedule with random primitives; the accepted actions."""
    chooser = Chooser(rng, threads=rng.random() < 0.25)
    wanted = rng.randint(4, 16)
    done: list[Action] = []
    turn = int(wanted * rng.choice([0.4, 0.6, 0.7, 1.0]))
    for _ in range(6 * wanted):
        chooser.late = len(done) >= turn
        action = chooser.action(sch)
        if action is not None and _accepted(sch, action, accepted, refused):
            done.append(action)
            if len(done) >= wanted:
                break
    names = [b for b in sch.index.realizes if b != "root"]
    for m in MOVES.values():
        if names and rng.random() < m.last:
            action = m.draw(chooser, sch, names)
            if action is not None and _accepted(sch, action, accepted, refused):
                done.append(action)
    return done


def _accepted(sch: Schedule, action: Action, accepted: Counter[str], refused: Counter[str]) -> bool:
    try:
        perform(sch, action)
    except ScheduleError:
        refused[action[0]] += 1
        return False
    accepted[action[0]] += 1
    return True


def uses_threads(sch: Schedule) -> bool:
    return any(loop.kind == THREAD_BINDING for loop in sch.index.loops.values())
