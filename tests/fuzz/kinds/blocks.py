"""Programs in block form that were never tensor expressions, under random primitives."""
from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

import tilewright as tw
from tests.fuzz.moves import Unresolved
from tilewright.lowering.pipeline import lower
from tilewright.schedule import Schedule
from tilewright.script import from_source
from tilewright.support.errors import InterpreterError, ScheduleError
from tilewright.tir.verify import verify

from .. import schedules
from .common import Case, Wrong, array_differences, call_guarded
from .nests import NESTS, Scene
from .twin import Buf, Lines, inside, w


@dataclass
class Program:
    """Nests over buffers; `arguments` hold data before and are compared after. actions: None until they are drawn."""
    seed: int
    arguments: list[Buf]
    allocated: list[Buf]
    orders: tuple[str, ...]                            # arguments that hold a permutation
    nests: list[Lines] = field(default_factory=list)
    actions: list[Any] | None = None
    calls: list[dict[str, int]] = field(default_factory=lambda: [{}])  # parameters with their values
    free: bool = False                                 # few actions, and none where the interpreter refuses it

    def script(self) -> str:
        parameters = ", ".join([f'{b.name}: T.Buffer({b.shape}, "int32")' for b in self.arguments]
                               + [f"{n}: T.int32" for n in self.calls[0]])
        lines = ["@T.prim_func", f"def main({parameters}):"]
        lines += [f'    {b.name} = T.alloc_buffer({b.shape}, "int32")' for b in self.allocated]
        return "\n".join([*lines, *["    " + line for nest in self.nests for line in nest.s]])

    def data(self) -> dict[str, np.ndarray]:
        rng = np.random.default_rng(self.seed)
        return {b.name: (rng.permutation(b.shape[0]) if b.name in self.orders else
                         rng.integers(0, 5, 1) if b.shape == (1,) else rng.integers(-5, 9, b.shape))
                .astype("int32") for b in self.arguments}

    def want(self, call: Mapping[str, int]) -> dict[str, np.ndarray]:
        """What the arguments hold after a call, by the Python of the nests. Raises where an axis leaves its domain."""
        known: dict[str, Any] = {n: a.tolist() for n, a in self.data().items()} | call
        for b in self.allocated:
            known[b.name] = np.full(b.shape, None).tolist()
        source = "\n".join(line for nest in self.nests for line in nest.p)
        exec(source, {"w": w, "inside": inside, "min": min, "max": max, "range": range, "__builtins__": {}}, known)
        return {b.name: np.array(known[b.name], "int32") for b in self.arguments}


def program(seed: int) -> Program:
    rng = random.Random(f"blocks {seed}")
    n, m = rng.choice([4, 5, 6, 8, 12]), rng.choice([3, 4, 6, 8])
    shapes = [(n,), (n,), (n, m), (m,), (n, m), (m, n)]
    arguments = [Buf(f"A{k}", s) for k, s in enumerate(rng.sample(shapes, rng.choice([3, 4, 4])))]
    allocated = [Buf(f"B{k}", s) for k, s in enumerate(rng.sample(shapes, rng.choice([1, 2, 2, 3])))]
    if not any(len(b.shape) == 1 for b in arguments):
        arguments.append(Buf("A9", (n,)))
    if not any(len(b.shape) == 2 for b in arguments):
        arguments.append(Buf("A8", (n, m)))
    order = Buf("Q", (n,))
    sc = Scene(rng, [*arguments, order], list(allocated), {n: order})
    makers = rng.choices([f for f, _ in NESTS], [c for _, c in NESTS], k=rng.choice([2, 3, 3, 4, 5]))
    nests = [make(sc) for make in makers]
    used = [b for b in allocated if any(b.name + "[" in line for nest in nests for line in nest.s)]
    return Program(seed, [*arguments, order], used, ("Q",), nests)


def drawn(p: Program, func: Any, case: Case) -> Schedule:
    """func under the program's actions, or under random ones that are noted in p."""
    sch = Schedule(func)
    if p.actions is None:
        p.actions = []
        plain = schedules.perform

        def noted(s: Schedule, action: Any) -> None:
            assert p.actions is not None
            p.actions.append(action)
            plain(s, action)
        schedules.perform = noted
        try:
            done = schedules.random_actions(random.Random(p.seed), sch, case.accepted, case.refused,
                                            (1, 4) if p.free else schedules.LENGTHS)
        finally:
            schedules.perform = plain
        p.actions = done
        return sch
    for action in p.actions:
        try:
            schedules.perform(sch, action)
        except (ScheduleError, Unresolved):
            pass
    return sch


def check(p: Program, case: Case) -> None:
    """Raise Wrong unless the program is right before and after its schedule, in every form."""
    func, wants = from_source(p.script()), [p.want(call) for call in p.calls]

    def compare(who: str, run: Callable[[list[Any]], None]) -> None:
        for call, want in zip(p.calls, wants, strict=True):
            args = [*p.data().values(), *call.values()]
            run(args)
            wrong = array_differences(dict(zip(want, args, strict=False)), want)
            if wrong:
                raise Wrong("\n".join(f"{who}: {call or ''} {n}: {why}" for n, why in wrong.items()))
    try:
        if case.interpreted or p.free:
            compare("unscheduled", lambda args: case.interpret(func, args))
    except InterpreterError:
        if p.free:
            return
        raise
    sch = drawn(p, func, case)
    verify(sch.func)
    if case.interpreted:
        compare("scheduled", lambda args: case.interpret(sch.func, args))
    if case.interpreted and (p.free or p.seed % 2):
        compare("lowered", lambda args: case.interpret(lower(sch.func), args))
    if not schedules.uses_threads(sch):
        built = case.build(lambda target: tw.build(sch.func, target=target))
        compare("native", lambda args: call_guarded(built["main"], args))


def describe(p: Program) -> str:
    data = "\n".join(f"{n} = {a.tolist()}" for n, a in p.data().items())
    return p.script() + "\n" + "\n".join(map(str, p.actions or ())) + "\n" + data


def prepared(p: Program) -> Program:
    """p with its actions drawn, up to the one that raises."""
    try:
        drawn(p, from_source(p.script()), Case(""))
    except Exception:
        pass                                           # the check raises it again
    return p


def smaller(p: Program) -> list[Callable[[], Program]]:
    """Programs with fewer actions, calls and nests."""
    actions, nests = p.actions or [], p.nests
    out: list[Callable[[], Program]] = []
    for size in sorted({max(len(actions) // 2, 1), 1}, reverse=True):
        out += [lambda k=k, size=size: replace(p, actions=actions[:k] + actions[k + size:])  # type: ignore[misc]
                for k in range(0, len(actions), size)]
    if len(p.calls) > 1:
        out += [lambda c=c: replace(p, calls=[c]) for c in p.calls]  # type: ignore[misc]
    if len(nests) > 1:
        out += [lambda k=k: replace(p, nests=nests[:k] + nests[k + 1:]) for k in range(len(nests))]  # type: ignore[misc]
    for kind in ("allocated", "arguments"):
        out += [lambda b=b, kind=kind: replace(p, **{kind: [c for c in getattr(p, kind) if c is not b]})  # type: ignore[misc]
                for b in getattr(p, kind) if not any(f"{b.name}[" in line for nest in nests for line in nest.s)]
    return out
