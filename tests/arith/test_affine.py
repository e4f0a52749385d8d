"""Regions, index maps and dependences against enumeration."""

import itertools
import random

import pytest
from arith_reference import Maker, brief, evaluate, text

from tilewright.arith.analyzer import Analyzer
from tilewright.arith.dependence import Access, direction_vectors
from tilewright.arith.itermap import detect_iter_map
from tilewright.arith.regions import covers, interval_of, union
from tilewright.tir.arithmetic import all_of, maximum, minimum
from tilewright.tir.expr import Call, IntImm, Var

X, J, K = Var("i"), Var("j"), Var("k")


def points_of(domains, env):
    """Every assignment to the variables of domains, over env; a domain may use the variables before it."""
    points = [env]
    for v, (low, extent) in domains.items():
        points = [{**p, v: x} for p in points for x in range(evaluate(low, p), evaluate(low, p) + evaluate(extent, p))]
    return points


def symbolic(rng, n, extents):
    e = rng.choice(extents)
    return IntImm(e) if isinstance(e, int) else e


@pytest.mark.parametrize("seed", range(150))
def test_interval_holds_every_value(seed):
    rng = random.Random(seed)
    n, outer = Var("n"), Var("o")
    an = Analyzer()
    an.assume_nonneg(n)
    an.bind(outer, 0, rng.choice([4, n]))
    domains = {
        v: (rng.choice([IntImm(0), IntImm(-2), outer * 4, outer]), symbolic(rng, n, [1, 3, 4, 8, n, (n + 3) // 4]))
        for v in (X, J)
    }
    make = Maker(rng, [X, J, outer], [n])
    for _ in range(4):
        e = rng.choice(
            [make.affine(), make.affine() // 4, make.affine() % 4, minimum(make.affine(), n), make.integer(1)]
        )
        found = interval_of(e, domains, an)
        if found is None:
            continue
        for size in (1, 2, 5, 8):
            for o in range(min(4, size)):
                env = {n: size, outer: o}
                low, extent = (evaluate(x, env) for x in found)
                try:
                    values = [evaluate(e, p) for p in points_of(domains, env)]
                except ZeroDivisionError:
                    continue
                assert all(low <= v < low + extent for v in values), (
                    f"{text(e)} in {text(found[0])}, {text(found[1])} {brief(env)}"
                )


def test_intervals_are_tight_and_constant():
    n, io, f = Var("n"), Var("io"), Var("f")
    an = Analyzer()
    an.assume_nonneg(n)
    an.bind(io, 0, n)
    inner = {J: (IntImm(0), IntImm(32))}

    def interval(e, domains=inner):
        low, extent = interval_of(e, domains, an)
        return text(low), text(extent)

    assert interval(io * 32 + J) == ("(io mul 32)", "32")
    assert interval((io * 32 + J) // 4) == ("(io mul 8)", "8")
    assert interval((io * 32 + J) % 8) == ("0", "8")
    assert interval((f * 32 + J) // 128) == ("(f floordiv 4)", "1")
    assert interval((f * 32 + J) % 128) == ("((f floormod 4) mul 32)", "32")
    assert interval(f // n, {f: (io * n, n)}) == ("io", "1")
    assert interval(maximum(J - 1, 0)) == ("0", "31")
    assert interval_of(minimum(io * 32 + J, n - 1), inner, an)[1].value == 32
    unknown = Call("checked_index", (J, n), "int32")
    assert interval_of(unknown, inner, an) is None and interval_of(unknown // 4, inner, an) is None
    assert interval(unknown % 4) == ("0", "4")
    assert interval(minimum(maximum(unknown // 4, 0), 6)) == ("0", "7")


def test_union_and_covers():
    an, n = Analyzer(), Var("n")
    low, high = [(n, IntImm(4))], [(n + 2, IntImm(5))]
    ((least, extent),) = union([low, high], an)
    assert least is n and extent.value == 7
    assert covers([(n, IntImm(7))], high, an) and not covers(low, high, an)


def random_indices(rng, variables, factors):
    """Some indices built of splits and fusions of the variables, not all of them maps that can be inverted."""

    def piece():
        v = rng.choice(variables)
        c = rng.choice(factors)
        return rng.choice([v, v // c, v % c, (v // 2) % c, v * c + rng.choice(variables), v * -1 + 7, v * c + v % c])

    return [piece() if rng.random() < 0.8 else piece() * rng.choice([2, 8]) + piece() for _ in range(rng.randint(1, 3))]


@pytest.mark.parametrize("seed", range(300))
def test_iter_map_against_enumeration(seed):
    rng = random.Random(seed)
    sizes = [rng.choice([1, 2, 3, 4, 8, 12]) for _ in range(3)]
    domains = {v: (IntImm(rng.choice([0, 0, 0, 2])), IntImm(s)) for v, s in zip((X, J, K), sizes, strict=True)}
    indices = random_indices(rng, [X, J, K], [2, 3, 4, 8])
    predicate = rng.choice([None, None, X * sizes[1] + J < rng.randint(1, 30), J < 3, X + J < 5])
    check_map(indices, domains, predicate)


@pytest.mark.parametrize("low, understood", [(0, True), (-1, True), (-2, False), (2, False)])
def test_iter_map_of_fused_loops_that_start_anywhere(low, understood):
    fused, domains = (X - low) * 3 + J, {X: (IntImm(low), IntImm(4)), J: (IntImm(0), IntImm(3))}
    assert check_map([fused // 4, fused % 4], domains, None) == understood
    assert check_map([fused * 2], domains, None)


def check_map(indices, domains, predicate):
    """What detect_iter_map says of the indices is so at every point; whether it says anything."""
    found = detect_iter_map(indices, domains, predicate, Analyzer())
    if found is None:
        return False
    points = [p for p in points_of(domains, {}) if predicate is None or evaluate(predicate, p)]
    images = [tuple(evaluate(e, p) for e in indices) for p in points]
    sizes_text = [(a.value, b.value) for a, b in domains.values()]
    label = f"{[text(e) for e in indices]} {sizes_text} {predicate is not None and text(predicate)}"
    assert not found.is_injective or len(set(images)) == len(points), label
    boxes = [range(evaluate(low, {}), evaluate(low, {}) + evaluate(extent, {})) for low, extent in found.outputs]
    assert all(x in box for image in images for x, box in zip(image, boxes, strict=True)), label
    if found.is_bijective:
        assert set(images) == set(itertools.product(*boxes)), label
    if found.is_injective:
        outputs = [Var(f"p{k}") for k in range(len(indices))]
        inverse = found.invert(outputs)
        for p, image in zip(points, images, strict=True):
            env = dict(zip(outputs, image, strict=True))
            assert all(evaluate(inverse[v], env) == p[v] for v in domains), label
    return True


def test_iter_map_needs_divisors_that_are_positive_and_fixed():
    n, an = Var("n"), Analyzer()
    domains = {X: (IntImm(0), IntImm(8)), J: (IntImm(0), IntImm(4))}
    assert detect_iter_map([X // n, J], domains, None, an) is None
    assert detect_iter_map([X // (J + 1), J], domains, None, an) is None
    an.assume(n >= 1)
    assert detect_iter_map([X // n, J], domains, None, an) is not None


def test_iter_map_understands_splits_and_fusions():
    def bijective(indices, domains, predicate=None, an=None):
        found = detect_iter_map(indices, domains, predicate, an or Analyzer())
        return found is not None and found.is_bijective

    n, m, f = Var("n"), Var("m"), Var("f")
    an = Analyzer()
    an.assume_nonneg(n)
    an.assume_nonneg(m)
    tile = {X: (0, 4), J: (0, 32)}
    assert bijective([X * 32 + J], tile) and bijective([J // 4, J % 4, X], tile) and bijective([3 - X, J], tile)
    assert bijective([(X * 32 + J) // 16, (X * 32 + J) % 16], tile)
    assert bijective([X * 32 + J], tile, X * 32 + J < 100)
    assert not bijective([X * 33 + J], tile) and not bijective([X], tile) and not bijective([X + J], tile)
    ragged = detect_iter_map([f // 100, f % 100], {f: (0, 1024)}, None, Analyzer())
    assert ragged.is_injective and not ragged.is_bijective
    assert bijective([f // m, f % m], {f: (0, n * m)}, None, an) and bijective(
        [X * m + J], {X: (0, n), J: (0, m)}, None, an
    )
    assert bijective([X * 32 + J], {X: (0, (n + 31) // 32), J: (0, 32)}, X * 32 + J < n, an)


def true_vectors(a, b, loops, domains, env):
    """The exact direction vectors, by enumeration."""

    def touched(access):
        inner = {**{v: domains[v] for v in loops}, **access.domains}
        return [
            (tuple(p[v] for v in loops), tuple(evaluate(e, p) for e in access.indices))
            for p in points_of(inner, env)
            if access.predicate is None or evaluate(access.predicate, p)
        ]

    by_element = {}
    for where, element in touched(b):
        by_element.setdefault(element, set()).add(where)
    return {
        tuple((y > x) - (y < x) for x, y in zip(p, q, strict=True))
        for p, element in touched(a)
        for q in by_element.get(element, ())
    }


@pytest.mark.parametrize("seed", range(250))
def test_direction_vectors_hold_the_true_ones(seed):
    rng = random.Random(seed)
    n = Var("n")
    an = Analyzer()
    an.assume_nonneg(n)
    domains = {v: (IntImm(rng.choice([0, 0, 1])), symbolic(rng, n, [2, 3, 4, 8, n])) for v in (X, J)}
    inner = {K: (rng.choice([IntImm(0), X]), symbolic(rng, n, [2, 4, n]))} if rng.random() < 0.5 else {}
    variables = [X, J, *inner]

    def access():
        indices = random_indices(rng, variables, [2, 3, 4, n])
        guard = rng.choice([None, None, X * 4 + J < rng.randint(2, 20), X < n, X < J])
        return Access(tuple(indices), guard, inner)

    a = access()
    b = a if rng.random() < 0.5 else access()
    if len(b.indices) != len(a.indices):
        return
    found = direction_vectors(a, b, [X, J], domains, an)
    for size in (1, 2, 4, 5):
        exact = true_vectors(a, b, [X, J], domains, {n: size})
        assert exact <= found, (
            f"{[text(e) for e in a.indices]} / {[text(e) for e in b.indices]} n={size}: {exact - found}"
        )


def test_direction_vectors_are_exact_for_tiles():
    n, m, f = Var("n"), Var("m"), Var("f")
    an = Analyzer()
    an.assume_nonneg(n)
    an.assume_nonneg(m)
    zero = IntImm(0)

    def vectors(indices, domains, other=None, **inner):
        a, b = Access(tuple(indices)), Access(tuple(other or indices))
        return direction_vectors(a, b, list(domains), domains, an)

    tile = {X: (zero, IntImm(4)), J: (zero, IntImm(32))}
    assert vectors([X * 32 + J], tile) == {(0, 0)}
    assert vectors([X * 31 + J], tile) == {(0, 0), (1, -1), (-1, 1)}
    assert vectors([X, J], tile, [X - 1, J + 1]) == {(1, -1)}
    assert vectors([X], {**tile, K: (zero, n)}) == {(0, s, t) for s in (-1, 0, 1) for t in (-1, 0, 1)}
    assert vectors([X * 2], tile, [X * 2 + 1]) == set()
    assert vectors([X, J], tile, [zero, zero]) == {(s, t) for s in (0, 1) for t in (0, 1)}
    assert vectors([X], {X: (zero, n)}, [n - 1]) >= {(-1,), (0,)}
    fused = {f: (zero, IntImm(128))}
    assert vectors([f // 4, f % 4], fused) == {(0,)} == vectors([f // 32, f // 4 % 8, f % 4], fused)
    assert vectors([f // m, f % m], {f: (zero, n * m)}) == {(0,)}
    assert vectors([X * m + J], {X: (zero, n), J: (zero, m)}) == {(0, 0)}
    assert vectors([X], {X: (zero, n)}, [X + n]) == set()
    ragged = {X: (zero, (n + 31) // 32), J: (zero, IntImm(32))}
    assert vectors([X * 32 + J], ragged) == {(0, 0)}
    assert vectors([minimum(X, 3)], {X: (zero, n)}) == {(-1,), (0,), (1,)}


def test_direction_vectors_use_guards():
    zero = IntImm(0)
    guard = all_of(J < 8)
    a, b = Access((X * 8 + J,), guard, {J: (zero, IntImm(16))}), Access((X * 8 + J,), guard, {J: (zero, IntImm(16))})
    assert direction_vectors(a, b, [X], {X: (zero, IntImm(4))}, Analyzer()) == {(0,)}
