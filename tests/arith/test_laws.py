"""Every law fires on its example and keeps the value there, for negative values too."""

import math
import random

import pytest
from arith_reference import brief, evaluate, text

from tilewright.arith.analyzer import Analyzer
from tilewright.arith.laws import DIVISION, MINIMUM, SYMBOLIC_DIVISION
from tilewright.arith.linear import structural_key
from tilewright.arith.value_laws import VALUES
from tilewright.tir.conversion import convert
from tilewright.tir.expr import FloatImm, Var

TABLES = [(table, i) for table in (DIVISION, SYMBOLIC_DIVISION, MINIMUM) for i in range(len(table))]


@pytest.mark.parametrize("table, i", TABLES, ids=[t[i].name for t, i in TABLES])
def test_law(table, i, request):
    law, fired = table[i], []

    def watched(*args):
        out = law.apply(*args)
        fired.extend([out] if out is not None else [])
        return out

    table[i] = law._replace(apply=watched)
    request.addfinalizer(lambda: table.__setitem__(i, law))
    x, y, z = Var("x"), Var("y"), Var("z")
    an = Analyzer()
    an.bind(x, 0, 8)
    an.bind(y, 0, 4)
    before, after = (convert(e) for e in law.example(x, y, z))
    got = an.simplify(before)
    assert fired and law.apply.__doc__
    assert structural_key(got) == structural_key(an.simplify(after)), f"{text(before)} -> {text(got)}"
    rng = random.Random(0)
    for _ in range(300):
        env = {x: rng.randrange(8), y: rng.randrange(4), z: rng.randint(-200, 200)}
        assert evaluate(before, env) == evaluate(got, env), brief(env)


@pytest.mark.parametrize("near", [
    lambda x, y, z: z // (y + 1) * 3 // (x + 1), lambda x, y, z: (z // (y + 1) + 1) // (x + 1),
    lambda x, y, z: z // (y + 1) // x, lambda x, y, z: z // (y - 2) // (x + 1)])
def test_what_a_law_of_quotients_does_not_hold_for_keeps_its_value(near):
    x, y, z = Var("x"), Var("y"), Var("z")
    an = Analyzer()
    an.bind(x, 0, 8)
    an.bind(y, 0, 4)
    simple, rng = an.simplify(near(x, y, z)), random.Random(0)
    for _ in range(300):
        env = {x: rng.randrange(1, 8), y: rng.choice((0, 1, 3)), z: rng.randint(-200, 200)}
        assert evaluate(near(x, y, z), env) == evaluate(simple, env), f"{text(simple)} {brief(env)}"


@pytest.mark.parametrize("law", VALUES.rules, ids=lambda law: law.name)
def test_value_law_is_exact(law):
    x = Var("x", "float32")
    before, after = law.example(x)
    assert law.apply(before) is after is VALUES.apply(before)


def test_float_laws_that_do_not_hold_are_not_used():
    x, an = Var("x", "float32"), Analyzer()
    for e in (x + 0.0, x * 0.0, x - x, (x + 1.0) - 1.0, x - FloatImm(-0.0)):
        assert an.simplify(e) is e
    assert math.copysign(1, -0.0 + 0.0) == 1.0
