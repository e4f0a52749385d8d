"""Every error that Tilewright raises on purpose; anything else that escapes is a bug in Tilewright."""
from __future__ import annotations

import contextlib
import difflib
from collections.abc import Callable, Iterable, Iterator
from typing import Any


class TilewrightError(RuntimeError):
    """Base class: `except TilewrightError` catches every user error and no internal bug. hint: what to do about it.

    It is a RuntimeError since TVM's errors are: programs written for it catch that.
    """

    def __init__(self, message: str = "", hint: str = "") -> None:
        super().__init__(with_hint(message, hint))


class IRError(TilewrightError):
    """An IR node that cannot exist was asked for (operand types differ, negative extent)."""


class StructuralError(TilewrightError, ValueError):
    """Two pieces of IR were required to be equal and are not, or a function is not well formed."""
    at: tuple[object, ...] = ()               # the nodes of the IR in question


class ScriptError(TilewrightError):
    """A script is not one that the parser reads; the message shows the line, with a caret, and a hint."""
    placed = False                            # the message points into the source already


class TensorExpressionError(TilewrightError):
    """A tensor expression is not well formed (wrong arity, nested reduction, dtypes that do not promote).

    unequal: two extents that have to be equal, where that is what is wrong.
    """
    unequal: tuple[Any, Any] | None = None


class ScheduleError(TilewrightError):
    """A schedule primitive was not legal; the message shows the call, the numbers, the marked IR and a hint."""

    def __init__(self, message: str | Callable[[], str] = "", hint: str = "") -> None:
        """message: a text, or what makes it when it is asked for: to print a program takes longer than to refuse it."""
        super().__init__()
        self.args = (message if callable(message) else with_hint(message, hint),)

    def __str__(self) -> str:
        if callable(self.args[0]):
            self.args = (self.args[0](),)
        return str(self.args[0])

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"

    def __reduce__(self) -> tuple[type, tuple[str]]:
        return type(self), (str(self),)


class LowerError(TilewrightError):
    """A scheduled function cannot be lowered for the target."""


class CodegenError(TilewrightError):
    """A lowered function cannot be turned into code for the target."""


class CodegenWarning(RuntimeWarning):
    """Native code was made with less optimisation than asked for, since its compiler failed."""


class TargetError(TilewrightError, ValueError):
    """A target string or device name is not understood."""


class LoadError(TilewrightError, RuntimeError):
    """A file of compiled code is damaged, was not written by Tilewright, or cannot be loaded here."""


class CallError(TilewrightError):
    """A compiled function was called with arguments that do not fit it."""


class ArgumentError(TilewrightError, TypeError):
    """A public function of Tilewright was called with an argument of the wrong kind."""


class InterpreterError(TilewrightError):
    """The interpreter found what hardware would not report: out of bounds, uninitialised read, race."""


class GraphError(TilewrightError):
    """A graph operator was given inputs or attributes that it does not accept."""


class ImportModelError(TilewrightError):
    """A model file is damaged, asks for what is not allowed, or has operators that are not supported.

    needs: names of the model's inputs whose elements, given when it is imported, would help.
    """
    needs: tuple[str, ...] = ()


class Illegal(Exception):
    """Raised inside a primitive by `require`; the `primitive` decorator turns it into a ScheduleError."""

    def __init__(self, message: str, at: tuple[object, ...] = (), hint: str = "") -> None:
        super().__init__(message)
        self.at, self.hint = at, hint


def require(condition: bool, message: str, *at: object, hint: str = "") -> None:
    """A check of a primitive's arguments, and of the form of program without which its rewrite cannot be built.

    `at` are the IR nodes to mark in the printed function.
    """
    if not condition:
        raise Illegal(message, at, hint)


_enforced = True


def legal(condition: bool, message: str, *at: object, hint: str = "") -> None:
    """A legality check of a primitive: without it the rewrite can be built, and may change what is computed.

    `at` are the IR nodes to mark in the printed function.
    """
    if not condition and _enforced:
        raise Illegal(message, at, hint)


@contextlib.contextmanager
def unchecked() -> Iterator[None]:
    """Switch the checks of `legal` off, in this process: for tests that measure what the checks catch."""
    global _enforced
    before, _enforced = _enforced, False
    try:
        yield
    finally:
        _enforced = before


def described(x: object) -> str:
    """A wrong argument as a message shows it: its repr where that is one short line, else its type."""
    text = repr(x)
    kind = type(x).__name__
    return text if len(text) <= 60 and "\n" not in text and " at 0x" not in text else f"an object of type {kind}"


def listed(x: object) -> list[Any] | None:
    """The items of an argument that is to be a list; None for what gives none."""
    try:
        return list(x)  # type: ignore[call-overload]
    except Exception:                                      # whatever the object does when it is asked
        return None


def flag(x: object, what: str) -> bool:
    """x, which is True or False. Raises ArgumentError for anything else."""
    if type(x) is not bool:
        raise ArgumentError(f"{what} is {described(x)}, not True or False")
    return x


def type_name(x: object) -> str:
    """The name of the type of x, with its module unless that is Python's own."""
    kind = type(x)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def with_hint(message: str, hint: str) -> str:
    """message, a blank line and `hint: ...`: the form of every error text."""
    return f"{message}\n\nhint: {hint}" if hint else message


def nearest(name: str, known: Iterable[str], prefix: str = "", cutoff: float = 0.6) -> str:
    """A hint that names the closest of the known names, or nothing. cutoff: how alike, from 0 to 1 (the same)."""
    near = difflib.get_close_matches(name, list(known), 1, cutoff)
    return f"did you mean {prefix}{near[0]}?" if near else ""


def no_attribute(what: str, name: str, known: Iterable[str], prefix: str = "") -> AttributeError:
    """The error for an attribute that `what` ("a stage") has not; the hint names one that is nearly the same."""
    public = () if name.startswith("_") else (n for n in known if not n.startswith("_"))
    return AttributeError(with_hint(f"{what} has no attribute {name!r}", nearest(name, public, prefix, 0.8)))
