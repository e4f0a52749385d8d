"""What a pass is, and the options that say which passes run and what looks on."""
from __future__ import annotations

import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from tilewright.lowering.intrin_rules import RULES
from tilewright.support import config
from tilewright.support.errors import ArgumentError, described
from tilewright.support.target import Target
from tilewright.tir.stmt import IRModule, PrimFunc

STAGES = ("block", "loop", "flat", "module", "")                   # forms of results; "": its place says which
FULL, SIMPLE, BOTH = "full", "simple only", "simple too"           # modes
NEEDED, OPTIONAL, OFF = "needed", "optional", "off"               # uses


def always(options: PassOptions, target: Target) -> bool:
    """Under any options, for any target."""
    return True


@dataclass(frozen=True)
class Pass:
    """A rewrite PrimFunc -> PrimFunc, or IRModule -> IRModule, and when it runs.

    - stage: the form of its result: "block", "loop", "flat", or "module" for the functions that a flat one becomes.
    - mode: FULL (where code is made), SIMPLE (in simple mode) or BOTH.
    - use: NEEDED, OPTIONAL (may be disabled: the result computes the same) or OFF (runs where it is enabled).
    - when: `(options, target)`, a condition.
    - takes_options: it is called with options and target as well.

    The docstring of `run` begins with a sentence that says what holds of the result. Raises ArgumentError for a stage,
    mode or use that there is not.
    """
    name: str
    run: Callable[..., Any]
    stage: str
    mode: str = FULL
    use: str = NEEDED
    when: Callable[[PassOptions, Target], bool] = always
    takes_options: bool = False

    def __post_init__(self) -> None:
        for field, known in (("stage", STAGES), ("mode", (FULL, SIMPLE, BOTH)), ("use", (NEEDED, OPTIONAL, OFF))):
            value = getattr(self, field)
            if value not in known:
                words = ", ".join(filter(None, known))
                raise ArgumentError(f"Pass {self.name}: {field}={described(value)} is none of {words}",
                                    "give it by its name: Pass(name, run, stage, use=OPTIONAL)")

    @property
    def result(self) -> str:
        """What holds of its result: the first sentence of the docstring."""
        text = " ".join((self.run.__doc__ or "").split("\n\n")[0].split())
        end = re.search(r"\.(?= [A-Z]|$)", text)
        return text[:end.start()] if end else text

    @property
    def conditions(self) -> list[str]:
        """What is unusual about when it runs, in a word each."""
        return [n for n, usual in ((self.mode, FULL), (self.use, NEEDED), (self.when.__name__, always.__name__))
                if n != usual]

    def chosen(self, options: PassOptions) -> bool:
        """Whether the options let it run."""
        return self.name in options.enable if self.use == OFF else self.name not in options.disable

    def runs(self, options: PassOptions, target: Target, simple_mode: bool) -> bool:
        """Whether it runs."""
        mode = SIMPLE if simple_mode else FULL
        return self.mode in (mode, BOTH) and self.chosen(options) and self.when(options, target)


@dataclass(frozen=True)
class OwnPass(Pass):
    """A pass of a program. place: "before NAME" or "after NAME" of a pass of the list, whether that runs or not."""
    place: str = ""


class Instrument:
    """What looks on while passes run. Subclasses have one of the methods or both."""

    def before(self, p: Pass, func: PrimFunc | IRModule) -> bool | None:
        """p is about to rewrite func. False: it does not."""

    def after(self, p: Pass, func: PrimFunc | IRModule, seconds: float) -> None:
        """p gave func."""


REGISTERED: dict[str, OwnPass] = {}           # by name: passes of programs that stand in every list


@dataclass(frozen=True)
class PassOptions:
    """What the passes of a function depend on.

    - checked: every index is compared with its extent while the kernel runs.
    - disable, enable: names of optional passes that are left out, and of passes off by default that run.
    - passes: of the program; instruments: what looks on.
    """
    checked: bool = False
    disable: tuple[str, ...] = ()
    enable: tuple[str, ...] = ()
    passes: tuple[OwnPass, ...] = ()
    instruments: tuple[Instrument, ...] = ()

    @property
    def own(self) -> list[OwnPass]:
        """The passes of programs that the options let run."""
        return [p for p in (*REGISTERED.values(), *self.passes) if p.chosen(self)]

    @property
    def key(self) -> str | None:
        """What distinguishes compiled objects; None where they are not kept: own passes and rules can be anything."""
        if self.own or self.instruments or RULES:
            return None
        return f"checked={self.checked} disable={self.disable} enable={self.enable}"


_stack = threading.local()
_Scope = TypeVar("_Scope", bound="PassScope")


class PassScope:
    """Options that hold inside the `with`, in this thread."""

    def __init__(self, options: PassOptions) -> None:
        self.options = options

    def __enter__(self: _Scope) -> _Scope:
        _stack.__dict__.setdefault("scopes", []).append(self)
        return self

    def __exit__(self, *_: object) -> None:
        if not scopes():
            raise ArgumentError(f"{type(self).__name__}: this context was left before it was entered")
        _stack.scopes.pop()


def scopes() -> list[PassScope]:
    """Those around this call, the innermost last."""
    found: list[PassScope] = _stack.__dict__.get("scopes", [])
    return found


def scoped_options(checked: bool | None = None) -> PassOptions:
    """The options of the innermost scope. `checked` overrules them. Raises ArgumentError when it is no bool."""
    if not (checked is None or isinstance(checked, bool)):
        raise ArgumentError(f"checked={described(checked)} is neither True nor False")
    options = scopes()[-1].options if scopes() else PassOptions()
    return options if checked is None else replace(options, checked=checked)


def current_options(checked: bool | None = None) -> PassOptions:
    """The options in force: of the innermost scope, and of TILEWRIGHT_CHECKED. `checked` overrules both."""
    options = scoped_options(checked)
    return replace(options, checked=True) if checked is None and config.get("CHECKED") else options
