"""Assertions: conditions that are checked when the kernel runs.

One is `Evaluate(Call("Assert", (condition, message)))`. Where the condition does not hold the call of the kernel
raises. The kernel has stopped there (of a parallel loop, the part in which it failed, and what stands behind the loop),
so results may have been written before.
"""
from __future__ import annotations

from typing import Any

from tilewright.support.errors import IRError, described
from tilewright.tir import dtype as dt
from tilewright.tir.conversion import convert
from tilewright.tir.expr import Call, Expr, StringImm
from tilewright.tir.stmt import Evaluate


def assertion(condition: Any, message: Any = "") -> Evaluate:
    """The statement that condition holds; message is a text. Raises IRError for anything else."""
    c = convert(condition)
    if not dt.is_bool(c.dtype) or dt.lanes_of(c.dtype) > 1:
        raise IRError(f"the condition of an assertion is {c.dtype}, not a bool", "compare: x != 0")
    text = message.value if isinstance(message, StringImm) else message
    if not isinstance(text, str):
        raise IRError(f"the message of an assertion is a text, not {described(message)}")
    if "\0" in text or any("\ud800" <= c <= "\udfff" for c in text):
        raise IRError(f"the message {text!r} of an assertion has characters that no message can show")
    return Evaluate(Call("Assert", (c, StringImm(text)), "int32"))


def failure(message: Expr, condition: Any) -> str:
    """What is said where the condition, an expression or its text, does not hold."""
    text = message.value if isinstance(message, StringImm) else ""
    return f"{text} ({condition} does not hold)" if text else f"the assertion {condition} does not hold"
