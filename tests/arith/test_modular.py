"""Residues of integer expressions, against all values."""
import itertools
import random

import numpy as np
import pytest

from tilewright import arith, tir
from tilewright.arith.modular import ModularSet, modular_set, residues_said
from tilewright.tir import Binary, IntImm, Var, binary, interp


def holds(found, v):
    return (v - found.base) % found.coeff == 0 if found.coeff else v == found.base


def members(found, low, high):
    return {v for v in range(low, high) if holds(found, v)}


SETS = [ModularSet(c, b) for c in range(7) for b in range(-3, 4)]


def test_join_holds_both_and_meet_is_the_intersection():
    for a, b in itertools.product(SETS, SETS):
        one, other = members(a, -60, 60), members(b, -60, 60)
        assert one | other <= members(a.joined(b), -60, 60)
        if one & other:
            assert members(a.meet(b), -60, 60) == one & other
        else:
            assert members(a.meet(b), -60, 60) == one


def random_expression(rng, leaves, depth):
    if not depth or rng.random() < 0.2:
        return rng.choice(leaves) if rng.random() < 0.7 else IntImm(rng.randint(-9, 9))
    a, b = (random_expression(rng, leaves, depth - 1) for _ in range(2))
    op = rng.choice(["add", "sub", "mul", "min", "max", "floordiv", "floormod", "truncdiv", "truncmod", "select", "shl",
                     "shr", "bitand"])
    if op == "select":
        return tir.Select(binary("lt", a, b), binary("add", a, 0), b)
    if op in ("shl", "shr"):
        return binary(op, a, rng.randint(0, 3))
    if op == "bitand":
        return binary(op, a, rng.choice([3, 7, 12, -4, 1]))
    if op.endswith(("div", "mod")):
        return binary(op, a, rng.choice([-6, -3, 2, 3, 4, 8]))
    return binary(op, a, b)


@pytest.mark.parametrize("seed", range(4))
def test_every_value_is_in_the_set(seed):
    rng, told = random.Random(seed), 0
    for _ in range(60):
        x, y = Var("x"), Var("y")
        known = {x: ModularSet(rng.choice([0, 2, 4, 6]), rng.randint(0, 5)), y: ModularSet(rng.choice([1, 3, 8]), 1)}
        e = random_expression(rng, [x, y], 4)
        found = modular_set(e, arith.Analyzer(), known)
        told += found.coeff != 1
        where = [(i, j) for i in members(known[x], -13, 13) for j in members(known[y], -13, 13)]
        for value in values(e, x, y, where):
            assert holds(found, value), (e, found, value)
    assert told > 10


def values(e, x, y, where):
    """e for each (x, y), computed by the interpreter."""
    points = np.array(where, "int32")
    given = tir.decl_buffer(points.shape, "int32", name="given")
    out = tir.decl_buffer((len(points),), "int32", name="out")
    i, a, b = Var("i"), Var("a", "handle"), Var("b", "handle")
    body = tir.substitute(e, {x: tir.load(given, (i, 0)), y: tir.load(given, (i, 1))})
    func = tir.PrimFunc((a, b), tir.loop(i, len(points), tir.Store(out, body, (i,))), {a: given, b: out}, {})
    result = np.zeros(len(points), "int32")
    interp.run(func, points, result)
    return [int(v) for v in result]


def test_values_that_may_wrap_around_keep_powers_of_two():
    x = Var("x", "uint8")
    assert modular_set(x * tir.const(12, "uint8"), arith.Analyzer()) == ModularSet(4, 0)
    assert modular_set(tir.cast("int32", x * tir.const(12, "uint8")), arith.Analyzer()) == ModularSet(4, 0)
    y = Var("y")
    assert modular_set(tir.cast("uint32", y * 12), arith.Analyzer()) == ModularSet(4, 0)
    assert modular_set(tir.cast("int64", y * 12), arith.Analyzer()) == ModularSet(12, 0)
    data = tir.decl_buffer((4,), "int32")
    assert modular_set(tir.load(data, (0,)) * 12, arith.Analyzer()) == ModularSet(4, 0)


def test_what_conditions_say():
    x, y = Var("x"), Var("y")
    condition = binary("and", binary("eq", (x + 3) % 5, 1), binary("eq", (0 - y) % 4, 1))
    assert dict(residues_said(condition)) == {x: ModularSet(5, 3), y: ModularSet(4, 3)}
    assert not list(residues_said(binary("or", binary("eq", x % 5, 1), binary("eq", y % 5, 1))))
    assert not list(residues_said(binary("eq", tir.truncmod(x, 5), 1)))
    assert not list(residues_said(binary("eq", Binary("floormod", x, IntImm(0)), 0)))        # x % 0 is 0 for every x
