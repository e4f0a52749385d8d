"""Whether each instance of a block stores the same values every time that it runs, in a symbolic execution.

Blocks that alone write their buffers count. A buffer that several blocks write (the start and the steps of a sum, the
steps of a scan, what is cached in place) holds a state, which may be another one each time that it is stored.
"""
from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tilewright.tir.expr import Binary, Call, Cast, Expr, IntImm, Var
from tilewright.tir.node import walk
from tilewright.tir.stmt import Block, BlockRealize, For, PrimFunc, Seq, Stmt

from .programs import Program
from .symbolic import Machine
from .symbolic_memory import Conflict, Outside, Unsupported
from .terms import Term, Terms

Instance = tuple[str, tuple[int, ...]]                 # a block and the values of its axes
Given = dict[tuple[str, int, int], int]                # ("argument", position, element) or ("scalar", position, 0)
MOST_RUNS = 4_000                                      # of instances, in one execution


class Unsteady(Exception):
    """An instance of a block ran a second time, and stored other values."""


class Enough(Exception):
    """MOST_RUNS instances have run."""


class Instances(Machine):
    """An execution in which integers of `given` have their values, so that indices and branches may depend on them.

    An instance is a block with the values of its axes, inside of such an instance where blocks are nested. Unsteady is
    raised where one stores other values than before.
    """

    def __init__(self, func: PrimFunc, sizes: Mapping[str, int], given: Given) -> None:
        self.given = given
        self.around: list[Instance] = []                # the instances that are running
        self.stores: dict[tuple[Instance, ...], Any] = {}
        self.runs = 0
        leaves = [n for n in walk(func.body) if isinstance(n, Block) and not _holds_blocks(n)]
        writers = Counter(r.buffer for b in leaves for r in b.writes)
        self.alone = {b.name for b in leaves if all(writers[r.buffer] == 1 for r in b.writes)}
        super().__init__(func, Terms(), sizes)

    def expr(self, e: Expr) -> Any:
        value = super().expr(e)
        if not self.given:
            return value
        return [self.known(v) for v in value] if isinstance(value, list) else self.known(value)

    def known(self, value: Any) -> Any:
        if isinstance(value, Term) and value.op in ("argument", "scalar"):
            element = value.args[1] if value.op == "argument" else 0
            return self.given.get((value.op, value.args[0], element), value)
        return value

    def block(self, block: Block, values: Sequence[int]) -> None:
        self.around.append((block.name, tuple(values)))
        super().block(block, values)
        if self.leaves[id(block)]:
            now = [(cells.name, at, value) for cells, at, value in self.stored]
            if block.name in self.alone and self.stores.setdefault(tuple(self.around), now) != now:
                raise Unsteady
            self.runs += 1
            if self.runs == MOST_RUNS:
                raise Enough
        self.around.pop()


def is_steady(program: Program, func: PrimFunc) -> bool:
    """False where an instance of a block that alone writes its buffers runs again and stores other values, for some
    of the program's sizes.

    Elements of the inputs are symbols, so that the answer holds for all of them; where an index or a branch depends on
    integers, these have the values of the program's data. True where that does not help.
    """
    return all(_is_steady(program, func, run) for run in range(len(program.bindings)))


def _is_steady(program: Program, func: PrimFunc, run: int) -> bool:
    args, numbers, _ = program.data(run)
    sizes, scalars = program.bindings[run], len(program.scalars)
    given = {("scalar", len(args) + k, 0): int(n) for k, n in enumerate(numbers) if k >= scalars}
    data = {("scalar", len(args) + k, 0): int(n) for k, n in enumerate(numbers[:scalars]) if _is_exact(n)}
    data |= {("argument", k, at): int(x) for k, a in enumerate(args[:len(program.inputs)]) if _is_exact(a)
             for at, x in enumerate(a.flat)}
    scalar = {p: np.full(1, n) for p, n in zip(func.params[len(args):], numbers, strict=True)}
    if not repeats(func.body, Points(1, scalar, sizes)):
        return True
    for known in (given, given | data):
        try:
            Instances(func, sizes, known)
            return True
        except Unsteady:
            return False
        except Unsupported:
            continue
        except (Conflict, Outside, Enough):
            return True
    return True


def _holds_blocks(block: Block) -> bool:
    return any(isinstance(n, BlockRealize) for n in walk(block.body))


def _is_exact(x: Any) -> bool:
    return np.asarray(x).dtype.kind in "iub"


@dataclass
class Points:
    """Iterations of the loops around a statement: the values of variables, and the instances of blocks around it."""
    count: int
    at: dict[Var, np.ndarray]
    sizes: Mapping[str, int]
    around: list[np.ndarray] = field(default_factory=list)

    def chosen(self, which: np.ndarray) -> Points:
        """The points of these numbers."""
        return Points(len(which), {v: a[which] for v, a in self.at.items()}, self.sizes,
                      [a[which] for a in self.around])

    def values(self, e: Expr) -> np.ndarray | None:
        """The value of an index at each point, or None where it is not known."""
        found = self.find(e)
        return None if found is None else np.broadcast_to(found, self.count)

    def find(self, e: Expr) -> Any:
        match e:
            case IntImm():
                return np.asarray(e.value)
            case Var():
                return self.at[e] if e in self.at else self.sizes.get(e.name)
            case Cast():
                return self.find(e.value)
            case Binary() if e.op in INDEXING:
                a, b = self.find(e.a), self.find(e.b)
                unknown = a is None or b is None or e.op.startswith("floor") and not np.all(b)
                return None if unknown else INDEXING[e.op](a, b)
            case Call() if e.op == "likely":
                return self.find(e.args[0])
        return None


INDEXING: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "floordiv": np.floor_divide, "floormod": np.mod,
    "min": np.minimum, "max": np.maximum, "and": np.logical_and, "or": np.logical_or, "lt": np.less,
    "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal, "eq": np.equal, "ne": np.not_equal,
}


def repeats(s: Stmt, points: Points) -> bool:
    """False where each instance of the blocks below s is shown to run once."""
    match s:
        case Seq():
            return any(repeats(x, points) for x in s.stmts)
        case For():
            start, extent = points.values(s.min), points.values(s.extent)
            if start is None or extent is None:
                return True
            counts = np.maximum(extent, 0)
            which = np.repeat(np.arange(points.count), counts)
            inner = points.chosen(which)
            inner.at[s.loop_var] = np.arange(len(which)) - (np.cumsum(counts) - counts)[which] + start[which]
            return repeats(s.body, inner)
        case BlockRealize():
            return block_repeats(s, points)
    return any(isinstance(n, BlockRealize) for n in walk(s))


def block_repeats(s: BlockRealize, points: Points) -> bool:
    holds = points.values(s.predicate)
    values = [v for v in map(points.values, s.iter_values) if v is not None]
    if holds is None or len(values) < len(s.iter_values):
        return True
    inner = replace(points, at=points.at | dict(zip((iv.var for iv in s.block.iter_vars), values, strict=True)),
                    around=[*points.around, *values]).chosen(np.flatnonzero(holds))
    if _holds_blocks(s.block):
        return repeats(s.block.body, inner)
    instances = np.stack([np.zeros(inner.count, int), *inner.around], axis=1)
    return len(np.unique(instances, axis=0)) < inner.count
