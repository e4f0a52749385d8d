"""Operators of a script: numbers of Python fold as in Python, expressions stay as they are written.

`2 * 3` is 6, `x * 1` is `x * 1`: a function that was printed comes back node for node, with nothing simplified.
"""
from __future__ import annotations

import ast
import functools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from tilewright.support.errors import IRError, ScriptError, described
from tilewright.tir import dtype as dt
from tilewright.tir.arithmetic import binary, bitwise_not, power
from tilewright.tir.conversion import const, convert, match_types
from tilewright.tir.expr import Binary, Call, Expr, FloatImm, IntImm, Not, Select
from tilewright.tir.iter_var import IterVar
from tilewright.tir.node import Node

OPERATORS: dict[type, tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Add: ("add", operator.add), ast.Sub: ("sub", operator.sub), ast.Mult: ("mul", operator.mul),
    ast.Div: ("div", operator.truediv), ast.FloorDiv: ("floordiv", operator.floordiv),
    ast.Mod: ("floormod", operator.mod), ast.BitAnd: ("bitand", operator.and_),
    ast.BitOr: ("bitor", operator.or_), ast.BitXor: ("bitxor", operator.xor),
    ast.LShift: ("shl", operator.lshift), ast.RShift: ("shr", operator.rshift), ast.Pow: ("pow", operator.pow),
    ast.Eq: ("eq", operator.eq), ast.NotEq: ("ne", operator.ne), ast.Lt: ("lt", operator.lt),
    ast.LtE: ("le", operator.le), ast.Gt: ("gt", operator.gt), ast.GtE: ("ge", operator.ge),
}


_LARGEST = 1 << 14                    # bits or elements of a constant that the parser computes


def is_expression(x: Any) -> bool:
    """True for what is computed when the kernel runs; False for what is known while it is parsed."""
    return isinstance(x, (Expr, IterVar))


def as_written(op: str, a: Any, b: Any) -> Expr:
    """`a op b` after the checks of tir.binary, but not simplified."""
    x, y = match_types(a, b)
    checked = binary(op, x, y if is_expression(b) else b)        # a plain 0 divides nothing; T.int32(0) is meant
    if isinstance(checked, Binary) and checked.a is x and checked.b is y:
        return checked
    if dt.is_bool(x.dtype):
        op = {"bitand": "and", "bitor": "or"}.get(op, op)
    return Binary(op, x, y)


def apply(kind: type, a: Any, b: Any) -> Any:
    """`a op b` of a script, for a node class of ast."""
    op, python = OPERATORS[kind]
    if not is_expression(a) and not is_expression(b):
        return _folded(op, python, a, b)
    return power(a, b) if op == "pow" else as_written(op, a, b)


def _folded(op: str, python: Callable[[Any, Any], Any], a: Any, b: Any) -> Any:
    """a op b of values known now. Raises ScriptError before it would cost time and memory without bound."""
    size = 0
    if isinstance(a, int) and isinstance(b, int) and op in ("pow", "shl"):
        size = b * a.bit_length() if op == "pow" and abs(a) > 1 else b if op == "shl" else 0
    elif op == "mul" and isinstance(a, (str, list, tuple)) | isinstance(b, (str, list, tuple)):
        size = _size(a) * _size(b) if isinstance(a, int) | isinstance(b, int) else 0
    elif op == "floormod" and isinstance(a, (str, bytes)):
        raise ScriptError("formatting a text is not part of the script language")
    elif op in ("eq", "ne"):
        refuse_of_kernel(a, b)
    result = python(a, b) if size <= _LARGEST else None
    if result is None or (isinstance(result, int) and result.bit_length() > _LARGEST):
        raise ScriptError("this constant is larger than any kernel needs",
                          f"integers have at most {_LARGEST} bits, lists and texts as many elements")
    return result


def _size(x: Any) -> int:
    return x if isinstance(x, int) else len(x)


def truth(x: Any) -> bool:
    """The truth value of what is known now. Raises ScriptError for a buffer, and for a list of expressions, which
    Python would call true whatever is in it.
    """
    if _of_kernel(x):
        raise ScriptError(f"{described(x)} is no condition",
                          'a condition is a bool: A[i] > 0; an assertion has no parentheses around it and its message: '
                          'assert n > 0, "message"')
    return bool(x)


def refuse_of_kernel(*values: Any) -> None:
    """Raise ScriptError for a buffer, and for a list of expressions, which Python would compare by identity."""
    wrong = next((x for x in values if _of_kernel(x, but=(IntImm, FloatImm))), None)
    if wrong is not None:
        raise ScriptError(f"{described(wrong)} is compared, whose values are known only when the kernel runs",
                          "compare elements: A[i] == 0; `is` asks whether two names stand for one buffer")


def _of_kernel(x: Any, but: tuple[type, ...] = ()) -> bool:
    """True for IR, and for what holds some; constants may be left out."""
    parts = x.values() if isinstance(x, dict) else x if isinstance(x, (list, tuple)) else ()
    return isinstance(x, Node) and not isinstance(x, but) or any(_of_kernel(part, but) for part in parts)


def logical(op: str, values: list[Any]) -> Any:
    """`a and b and ...` or `a or b or ...`, from the left. Raises IRError for what is neither bool nor number."""
    if not any(is_expression(v) for v in values):
        return next((v for v in values[:-1] if truth(v) == (op == "or")), values[-1])
    return functools.reduce(lambda a, b: as_written(op, a, b), values)


def negation(a: Any) -> Any:
    """`not a`."""
    if not is_expression(a):
        return not truth(a)
    e = convert(a)
    if not dt.is_bool(e.dtype):
        raise IRError(f"`not` needs a bool, got {e.dtype}", "compare first: x == 0")
    return Not(e)


def inverted(a: Any) -> Any:
    """`~a`."""
    if not is_expression(a):
        return ~a
    e = convert(a)
    return Not(e) if dt.is_bool(e.dtype) else bitwise_not(e)


def choice(condition: Any, a: Any, b: Any, dtype: str | None = None) -> Expr:
    """T.if_then_else(condition, a, b); numbers take the dtype, if it is said."""
    if dtype is not None:
        a, b = (const(x, dtype) if is_number(x) else x for x in (a, b))
    c, x, y = _parts("T.if_then_else", condition, a, b)
    return Call("if_then_else", (c, x, y), x.dtype)


def selection(condition: Any, a: Any, b: Any) -> Expr:
    """T.Select(condition, a, b)."""
    return Select(*_parts("T.Select", condition, a, b))


def _parts(what: str, condition: Any, a: Any, b: Any) -> tuple[Expr, Expr, Expr]:
    c = convert(condition)
    if not dt.is_bool(c.dtype):
        raise IRError(f"{what}: the condition is {c.dtype}", "compare first: x != 0")
    return (c, *match_types(a, b))


def is_number(x: Any) -> bool:
    return isinstance(x, (bool, int, float, np.number, np.bool_))
