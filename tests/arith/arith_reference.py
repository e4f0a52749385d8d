"""Reference values of index expressions over unbounded integers, and random expressions, for the tests of arith."""

import operator
import random

from tilewright.tir.arithmetic import binary, floordiv, floormod, if_then_else, maximum, minimum, select
from tilewright.tir.expr import Binary, Call, Cast, Expr, IntImm, Not, Select, Var
from tilewright.tir.ops import trunc_div, trunc_mod

OPERATORS = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "floordiv": operator.floordiv,
    "floormod": operator.mod,
    "truncdiv": trunc_div,
    "truncmod": trunc_mod,
    "min": min,
    "max": max,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "eq": operator.eq,
    "ne": operator.ne,
    "shl": operator.lshift,
    "shr": operator.rshift,
    "bitand": operator.and_,
}


def evaluate(e, env):
    """The value of e at env: Var -> int. ZeroDivisionError where a divisor is 0."""
    if isinstance(e, IntImm):
        return e.value
    if isinstance(e, Var):
        return env[e]
    if isinstance(e, Cast):
        return evaluate(e.value, env)
    if isinstance(e, Not):
        return not evaluate(e.a, env)
    if isinstance(e, Select):
        return evaluate(e.a if evaluate(e.condition, env) else e.b, env)
    if isinstance(e, Call):
        if e.op == "likely":
            return evaluate(e.args[0], env)
        assert e.op == "if_then_else"
        return evaluate(e.args[1] if evaluate(e.args[0], env) else e.args[2], env)
    assert isinstance(e, Binary), e
    if e.op == "and":
        return bool(evaluate(e.a, env)) and bool(evaluate(e.b, env))
    if e.op == "or":
        return bool(evaluate(e.a, env)) or bool(evaluate(e.b, env))
    return OPERATORS[e.op](evaluate(e.a, env), evaluate(e.b, env))


def text(e):
    """A short text of e that needs no printer."""
    if isinstance(e, Var):
        return e.name
    if isinstance(e, IntImm):
        return str(e.value)
    if isinstance(e, Binary):
        return f"({text(e.a)} {e.op} {text(e.b)})"
    if isinstance(e, Select):
        return f"select({text(e.condition)}, {text(e.a)}, {text(e.b)})"
    if isinstance(e, Call):
        return f"{e.op}({', '.join(text(a) for a in e.args)})"
    if isinstance(e, Cast):
        return f"{e.type}({text(e.value)})"
    return f"not {text(e.a)}" if isinstance(e, Not) else type(e).__name__


class Maker:
    """Random expressions over some variables; `symbols` may also be divisors and factors."""

    def __init__(self, rng: random.Random, variables: list[Var], symbols: list[Var] = ()):
        self.rng, self.variables, self.symbols = rng, variables, list(symbols)

    def constant(self) -> int:
        return self.rng.choice([1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 24, 32])

    def leaf(self) -> Expr:
        if self.rng.random() < 0.2:
            return IntImm(self.rng.randint(-20, 40))
        return self.rng.choice(self.variables + self.symbols)

    def affine(self) -> Expr:
        e = self.leaf()
        for _ in range(self.rng.randint(0, 2)):
            e = e + self.leaf() * self.rng.choice([1, self.constant(), -1, -self.constant()])
        return e + self.rng.choice([0, 0, 0, self.rng.randint(-9, 33)])

    def integer(self, depth: int) -> Expr:
        r = self.rng
        if depth == 0:
            return self.affine()
        kind = r.randrange(16)
        a = self.integer(depth - 1)
        if kind < 4:
            return binary(r.choice(["add", "sub"]), a, self.integer(depth - 1))
        if kind < 6:
            return a * r.choice([self.constant(), -self.constant()])
        if kind < 12:
            divisor = self.constant() if r.random() < 0.85 else -self.constant()
            return (floordiv if r.random() < 0.5 else floormod)(a, divisor)
        if kind == 12:
            return (minimum if r.random() < 0.5 else maximum)(a, self.integer(depth - 1))
        if kind == 13:
            choose = select if r.random() < 0.5 else if_then_else
            return choose(self.condition(depth - 1), a, self.integer(depth - 1))
        if kind == 14 and self.symbols:
            s = r.choice(self.symbols)
            return r.choice(
                [lambda: a * s, lambda: floordiv(a, s), lambda: floormod(a, s), lambda: floordiv(a, s + 1)]
            )()
        if kind == 15:
            return r.choice(
                [
                    lambda: binary("truncdiv", a, self.constant()),
                    lambda: binary("shr", a, r.randint(0, 4)),
                    lambda: binary("shl", a, r.randint(0, 4)),
                    lambda: binary("bitand", a, 7),
                ]
            )()
        return floordiv(a, self.constant())

    def condition(self, depth: int) -> Expr:
        r = self.rng
        if depth and r.random() < 0.3:
            return binary(r.choice(["and", "or"]), self.condition(depth - 1), self.condition(depth - 1))
        if depth and r.random() < 0.1:
            return Not(self.condition(depth - 1))
        op = r.choice(["lt", "le", "gt", "ge", "lt", "lt", "eq", "ne"])
        return binary(op, self.integer(max(depth - 1, 0)), self.integer(max(depth - 1, 0)))


def brief(env):
    return {v.name: k for v, k in env.items()}
