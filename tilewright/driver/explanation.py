"""`explain`: which rule took each block, and the schedule that it wrote, as a program."""
from __future__ import annotations

import keyword
import textwrap
from dataclasses import dataclass

from tilewright.driver.lower import Input, check_target, common_target, functions
from tilewright.rules import Decision, Scheduling
from tilewright.schedule import Schedule
from tilewright.support.errors import ArgumentError
from tilewright.support.target import Target
from tilewright.support.views import View, Viewed
from tilewright.tir import PrimFunc

_WIDTH = 116
_TAKEN = ("tw", "T", "sch")              # names that the program uses itself


@dataclass(frozen=True, repr=False)
class Explanation(Viewed):
    """What the rules did with a function. `str(e)` is a program that does it again, primitive by primitive.

    - func: the function that was scheduled; rewrites: by which rules it is not the one given.
    - decisions: the rules, in order; schedule: the result, whose `trace` has all calls.
    """
    func: PrimFunc
    target: Target
    rewrites: tuple[Decision, ...]
    decisions: tuple[Decision, ...]
    schedule: Schedule

    @property
    def program(self) -> str:
        """Python that makes the same schedule, as the Schedule `sch`."""
        plain = self.func.name.isidentifier() and not keyword.iskeyword(self.func.name) and self.func.name not in _TAKEN
        name = self.func.name if plain else "main"
        rewritten = [line for d in self.rewrites for line in _comment(d)]
        parts = ["import tilewright as tw", "from tilewright.script import tir as T", "", *rewritten,
                 self.func.script() if plain else self.func.script(name=name), "", f"sch = tw.Schedule({name})"]
        return "\n".join([*parts, *self._steps()]) + "\n"

    def _steps(self) -> list[str]:
        """The calls, each decision with a comment above its own."""
        trace = self.schedule.trace.simplified()
        lines = dict(zip(trace, trace.as_python()))
        owner = {entry: d for d in self.decisions for entry in d.entries}
        said: set[int] = set()
        out: list[str] = []
        for entry, line in lines.items():
            decision = owner.get(entry)
            if decision is not None and id(decision) not in said:
                said.add(id(decision))
                out += ["", *_comment(decision)]
            out.append(line)
        left = [d for d in self.decisions if id(d) not in said]
        return out + [line for d in left for line in ("", *_comment(d))]

    def __str__(self) -> str:
        return self.program

    def view(self) -> View:
        rows = [(", ".join(d.blocks), d.rule or "none", ", ".join(name for name, _ in d.refused) or "none", d.doc)
                for d in (*self.rewrites, *self.decisions)]
        return View(f"rules for {self.func.name} on {self.target}", rows, ("blocks", "rule", "refused", "what it does"),
                    [("the schedule, as a program", lambda: self), ("the loops", lambda: self.schedule)])


def _comment(d: Decision) -> list[str]:
    """What was decided, as comments."""
    texts = [f"{', '.join(d.blocks)}: {d.rule or 'no rule'}. {d.doc}"]
    texts += [f"not {name}: {why}" for name, why in d.refused]
    return [f"# {line}" for text in texts for line in textwrap.wrap(text, _WIDTH)]


def explain(inputs: Input, target: str | Target | None = None, name: str | None = None) -> Explanation:
    """What `compile` does with a function or with tensors: the rule that takes each block, and its schedule.

    Raises ArgumentError for a module of several functions, and where loops have been scheduled already.
    """
    given = functions(inputs, None, name)
    resolved = common_target(given, check_target(target))
    if len(given) != 1:
        raise ArgumentError(f"explain: the module has {len(given)} functions",
                            f"explain one of them: {', '.join(given)}")
    func, = given.values()
    done = Scheduling(func, resolved).finish()
    return Explanation(done.func, resolved, tuple(done.rewrites), tuple(done.decisions), done.schedule)
