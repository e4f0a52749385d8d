"""Rewrites of index arithmetic that other compilers published and had to take back: none of them is done here.

Each row: an expression of x, y and z, and the values that these have. The sources are reports against TVM and TileLang:
tile-ai/tilelang 2955 (a modulo inside a modulo), tile-ai/tvm 67 (a cyclic shift), apache/tvm 14571 (x % 2 with a sign),
10336 (/ 2 * 2 % 4), 8616 (a modulo of a ramp), 5749 (min and max of multiples), 17765 (a modulo of proportional terms),
2308 (division of negative sums), 15665 (a division of a modulo, by no factor of it), 17700 (a product of a quotient
whose constants leave int32), 2455 (a comparison of a sum that does).
"""
import itertools

import pytest
from arith_reference import evaluate, text

from tilewright.arith.analyzer import Analyzer
from tilewright.arith.itermap import detect_iter_map
from tilewright.tir.arithmetic import floordiv, floormod, maximum, minimum, truncdiv, truncmod
from tilewright.tir.expr import IntImm, Var

X, Y, Z = Var("x"), Var("y"), Var("z")

_NEAR = [-2 ** 29, -7, 0, 7, 2 ** 28]                        # twice the sum of two stays an int32

ROWS = {
    "a modulo inside a modulo": (floormod(floormod(X, 64), 7), range(128), range(1), range(1)),
    "the same, of a fused loop": (floormod(floormod(X * 64 + Y, 64), 7), range(16), range(64), range(1)),
    "the same, that does not wrap": (floormod(floormod(X, 64), 7), range(63), range(1), range(1)),
    "one that divides": (floormod(floormod(X, 64), 8), range(130), range(1), range(1)),
    "a divided one": (floordiv(floormod(X, 50), 7), range(200), range(1), range(1)),
    "a shifted modulo": (floormod(X + 1, 128), range(128), range(1), range(1)),
    "a shifted modulo with a sum": (floormod(X + 5, 12) + Y * 12, range(12), range(3), range(1)),
    "a negative x % 2": (Y - floormod(X, 2), range(4), range(-3, 3), range(1)),
    "a scaled negative x % 2": (Y + 8 - floormod(X, 2) * 8, range(5), range(8), range(1)),
    "/ 2 * 2 % 4": (floormod(floordiv(floormod(X, 20), 2) * 2, 4), range(40), range(1), range(1)),
    "a modulo of a ramp": (floormod(X * 50 + Y * 8 + Z, 20), range(8), range(4), range(8)),
    "a ramp that is divided": (floordiv(X * 50 + Y * 8 + Z, 20), range(8), range(4), range(8)),
    "the least of multiples": (minimum(X * -2, IntImm(-4)), range(-6, 6), range(1), range(1)),
    "the greatest of multiples": (maximum(X * -2, Y * -4), range(-6, 6), range(-4, 4), range(1)),
    "the least with 0": (minimum(X * 3, IntImm(0)), range(-5, 5), range(1), range(1)),
    "a modulo of proportional terms": (floormod((X + 1) * 64, (X + 1) * 31), range(20), range(1), range(1)),
    "the same, of negative terms": (floormod(X * 64, X * 31), [*range(-5, 0), *range(1, 5)], range(1), range(1)),
    "a division of a negative sum": (floordiv(X * 48 + 241, 16), range(-20, 20), range(1), range(1)),
    "the same, to zero": (truncdiv(X * 48 + 241, 16), range(-20, 20), range(1), range(1)),
    "a remainder to zero": (truncmod(X * 10 + 5, 10), range(-20, 20), range(1), range(1)),
    "a modulo, divided by no factor of it": (floordiv(floormod(X, 255), 16), range(-16, 512), range(1), range(1)),
    "the same, without a wrap": (floordiv(floormod(X, 255), 16), range(255), range(1), range(1)),
    "a product of a quotient": ((truncdiv(X + 1073741826, 3) - 357913942) * 1536, range(-9, 9), range(1), range(1)),
    "a sum near the limits": ((X * 2 + Y * 2 - 1 < Z * -1).astype("int32"), _NEAR, _NEAR, _NEAR),
    "a split that is guarded": (floordiv(X * 8 + Y, 12) * 12 + floormod(X * 8 + Y, 12), range(9), range(8), range(1)),
}


@pytest.mark.parametrize("e, xs, ys, zs", ROWS.values(), ids=ROWS)
def test_the_value_stays(e, xs, ys, zs):
    for bound in (False, True):
        analyzer = Analyzer()
        for v, values in ((X, xs), (Y, ys), (Z, zs)) if bound else ():
            analyzer.bind(v, min(values), max(values) - min(values) + 1)
        for place in (True, False):
            with analyzer.places(place):
                simple = analyzer.simplify(e)
            for x, y, z in itertools.product(xs, ys, zs):
                env = {X: x, Y: y, Z: z}
                got, want = evaluate(simple, env), evaluate(e, env)
                same = got == want if place else (got - want) % 2 ** 32 == 0                     # a value wraps around
                assert same, f"{text(e)} -> {text(simple)} at {x, y, z}"


@pytest.mark.parametrize("e, xs, ys, zs", ROWS.values(), ids=ROWS)
def test_a_map_is_one_to_one_where_it_says_so(e, xs, ys, zs):
    if len(xs) != max(xs) - min(xs) + 1:
        return                                                           # no box
    domains = {v: (IntImm(min(r)), IntImm(max(r) - min(r) + 1)) for v, r in ((X, xs), (Y, ys), (Z, zs))}
    found = detect_iter_map([e], domains, None, Analyzer())
    points = list(itertools.product(xs, ys, zs))
    values = [evaluate(e, dict(zip((X, Y, Z), p))) for p in points]
    if found is not None and found.is_injective:
        assert len(set(values)) == len(points)
        if found.is_bijective:
            out = Var("out")
            inverse = found.invert([out])
            for p, value in zip(points, values):
                assert [evaluate(inverse[v], {out: value}) for v in (X, Y, Z)] == list(p)
