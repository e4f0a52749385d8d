"""Rules of programs for functions called by name: what a call becomes, before anything else is lowered."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tilewright.support.errors import ArgumentError, described
from tilewright.support.target import Target
from tilewright.tir.expr import Call, Expr
from tilewright.tir.node import Node, rewrite
from tilewright.tir.ops import INTRINSICS, Intrinsic
from tilewright.tir.stmt import PrimFunc

RuleFunction = Callable[[Call], "Expr | None"]


@dataclass(frozen=True)
class Rule:
    """function(call) gives what a call becomes for targets of a kind ("default": of any), or None."""
    function: RuleFunction
    target: str
    level: int


RULES: dict[str, list[Rule]] = {}                 # by the name of the function, highest level first


def add_rule(name: str, target: str, function: RuleFunction, level: int = 10) -> None:
    """Let calls of name be what function gives. A name that no table has becomes one without effects."""
    INTRINSICS.setdefault(name, Intrinsic(-1, "pure"))
    rules = [r for r in RULES.get(name, []) if (r.target, r.level) != (target, level)]
    RULES[name] = sorted([*rules, Rule(function, target, level)], key=lambda r: -r.level)


def has_rules(options: object, target: Target) -> bool:
    """A program has rules."""
    return bool(RULES)


def apply_intrin_rules(func: PrimFunc, options: object, target: Target) -> PrimFunc:
    """Calls that have rules are what the rules give, which is looked at again.

    Raises ArgumentError for a rule that gives no expression of the call's dtype, and for rules that call each other
    without end.
    """
    return func.with_body(rewrite(func.body, lambda node: _replaced(node, target.kind, ())))


def _replaced(node: Node, target: str, open_rules: tuple[str, ...]) -> Expr | None:
    if not isinstance(node, Call) or node.op not in RULES:
        return None
    name = str(node.op)
    for rule in RULES[name]:
        out = rule.function(node) if rule.target in (target, "default") else None
        if out is None or out is node:
            continue
        if not isinstance(out, Expr) or out.dtype != node.dtype:
            got = f"{out}, a {out.dtype}" if isinstance(out, Expr) else described(out)
            raise ArgumentError(f"the rule for {name} gives {got}", f"an expression of {node.dtype}")
        if isinstance(out, Call) and out.op == node.op:
            return out
        if name in open_rules:
            raise ArgumentError(f"the rules for {', '.join(open_rules)} call each other without end")
        again: Expr = rewrite(out, lambda n: _replaced(n, target, (*open_rules, name)))
        return again
    return None
