"""Rewriting by rules `pattern -> result`.

A pattern is an expression with holes. A hole stands for an expression, in all its places for the same one; everything
else stands for itself, node by node: `a + b` is not `b + a`, and no constant is folded. The type ANY is any type.

    X = Hole("x")
    Rule("times_one", Binary("mul", X, FloatImm(1.0, ANY)), X)
"""
from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tilewright.tir.expr import Expr, Var
from tilewright.tir.node import COMPARED, Node, rewrite, same, substitute
from tilewright.tir.printer.expressions import register_expr_printer

ANY = "any"


class Hole(Var):
    """What a pattern leaves open: an expression of its type of which `when`, if given, is true."""
    __slots__ = ("when",)

    def __init__(self, name: str, type: str = ANY, when: Callable[[Expr], bool] | None = None) -> None:
        super().__init__(name, type)
        self.when = when


register_expr_printer(Hole, lambda _, hole: hole.name)
Found = dict[Var, Expr]


def match(pattern: Any, e: Any, found: Found, holes: Container[Var] = ()) -> bool:
    """True when e is pattern with its holes filled as `found` says, which learns of the others.

    `holes` are Vars of the pattern that are holes too. After False `found` may have learned something.
    """
    if isinstance(pattern, Var):
        if pattern in found:
            return same(found[pattern], e)
        if not isinstance(pattern, Hole) and pattern not in holes:
            return pattern is e
        when = pattern.when if isinstance(pattern, Hole) else None
        if not isinstance(e, Expr) or pattern.type not in (ANY, e.dtype) or when is not None and not when(e):
            return False
        found[pattern] = e
        return True
    if isinstance(pattern, tuple):
        return len(pattern) == len(e) and all(match(p, x, found, holes) for p, x in zip(pattern, e, strict=True))
    if not isinstance(pattern, Node):
        return pattern == ANY or same(pattern, e)
    values = COMPARED[type(pattern)]
    return pattern is e if values is None else type(pattern) is type(e) and all(
        match(p, x, found, holes) for p, x in zip(values(pattern), values(e), strict=True))


@dataclass(frozen=True)
class Rule:
    """`pattern -> result`, an expression in its holes or a function of what they stand for (None: it stays).

    `example`: x -> (before, after), on which the rule fires.
    """
    name: str
    pattern: Expr
    result: Expr | Callable[[Mapping[Var, Expr]], Expr | None]
    example: Callable[[Any], tuple[Any, Any]]

    def apply(self, e: Expr) -> Expr | None:
        """What e becomes; None where the pattern is not that of e."""
        found: Found = {}
        if not match(self.pattern, e, found):
            return None
        return substitute(self.result, found) if isinstance(self.result, Expr) else self.result(found)


class Rules:
    """A table of rules, by the operator that their patterns begin with; of several that fire, the first."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self.rules = tuple(rules)
        self._by_head: dict[Any, list[Rule]] = {}
        for rule in self.rules:
            self._by_head.setdefault(_head(rule.pattern), []).append(rule)

    def apply(self, e: Any) -> Expr | None:
        """What e itself becomes; None where no rule says anything."""
        for rule in self._by_head.get(_head(e), ()):
            out = rule.apply(e)
            if out is not None:
                return out
        return None

    def rewrite(self, node: Node) -> Any:
        """node with the rules applied to every expression in it once, inner ones first."""
        return rewrite(node, self.apply)


def _head(e: Any) -> tuple[type, str | None]:
    return type(e), getattr(e, "op", None)
