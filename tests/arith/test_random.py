"""Random expressions and facts: what the analyzer says must hold at every sampled point."""

import random

import pytest
from arith_reference import Maker, brief, evaluate, text

from tilewright.arith.analyzer import Analyzer
from tilewright.tir.expr import Var


class World:
    """Random domains of variables (some of symbolic extent), an analyzer that knows them, and sample points."""

    def __init__(self, seed):
        self.rng = rng = random.Random(seed)
        self.symbols = [Var("n"), Var("m")]
        self.free = Var("u")
        self.analyzer = Analyzer()
        self.domains = []
        for s in self.symbols:
            self.analyzer.assume_nonneg(s)
        for name in "ijkl":
            v = Var(name)
            n, m = self.symbols
            low = rng.choice([0, 0, 0, -3, 2])
            extent = rng.choice([1, 2, 4, 8, 32, 7, 10, n, n + 1, (n + 3) // 4, m * 2, n * m, n // 2])
            self.analyzer.bind(v, low, extent)
            self.domains.append((v, low, extent))
        self.make = Maker(rng, [v for v, _, _ in self.domains] + [self.free], self.symbols)

    def point(self):
        """A sample, or None where some loop has no iteration."""
        r = self.rng
        env = {s: r.choice([0, 1, 2, 3, 5, 8, 16, 17]) for s in self.symbols}
        env[self.free] = r.randint(-70, 70)
        for v, low, extent in self.domains:
            size = extent if isinstance(extent, int) else evaluate(extent, env)
            if size <= 0:
                return None
            env[v] = low + r.choice([0, size - 1, r.randrange(size)])
        return env

    def points(self, count):
        return [p for p in (self.point() for _ in range(count)) if p is not None]


def value(e, env):
    try:
        return evaluate(e, env)
    except ZeroDivisionError:
        return None


def check(world, e, points):
    """simplify and bounds of e agree with e at the points."""
    an = world.analyzer
    s, (lo, hi) = an.simplify(e), an.bounds(e)
    for env in points:
        v = value(e, env)
        if v is None:
            continue
        assert value(s, env) == v, f"{text(e)}  ->  {text(s)}  at {brief(env)}"
        assert (lo is None or lo <= v) and (hi is None or v <= hi), f"{text(e)} in [{lo}, {hi}]  at {brief(env)}: {v}"
    assert text(an.simplify(s)) == text(s) or an.equal(s, an.simplify(s))


def check_condition(world, c, points):
    an = world.analyzer
    s, proved = an.simplify(c), an.prove(c)
    for env in points:
        v = value(c, env)
        if v is not None:
            assert bool(value(s, env)) == bool(v), f"{text(c)}  ->  {text(s)}  at {brief(env)}"
            assert v or not proved, f"proved {text(c)}, false at {brief(env)}"


@pytest.mark.parametrize("seed", range(60))
def test_simplify_and_bounds(seed):
    world = World(seed)
    points = world.points(25)
    for _ in range(12):
        check(world, world.make.integer(world.rng.randint(1, 3)), points)


@pytest.mark.parametrize("seed", range(60))
def test_conditions(seed):
    world = World(seed + 1000)
    points = world.points(25)
    for _ in range(10):
        check_condition(world, world.make.condition(world.rng.randint(0, 2)), points)


@pytest.mark.parametrize("seed", range(60))
def test_under_constraints(seed):
    world = World(seed + 2000)
    for _ in range(6):
        c = world.make.condition(world.rng.randint(0, 1))
        e, d = world.make.integer(2), world.make.condition(1)
        before = text(world.analyzer.simplify(e))
        points = [p for p in world.points(60) if value(c, p)]
        with world.analyzer.constraint(c):
            check(world, e, points)
            check_condition(world, d, points)
        assert text(world.analyzer.simplify(e)) == before
