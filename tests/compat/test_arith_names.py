"""`tvm.arith`: answers are compared with what all values of small domains give."""
import itertools
import operator

import numpy as np
import pytest

from tilewright.support.errors import ArgumentError
from tilewright.tir import IntImm, Select, Var, binary, children, const, structural_equal, walk
from tilewright.tir.expr import Expr

x, y, z = (Var(n) for n in "xyz")


def value(e, **point):
    """The integer or truth value that e has at a point."""
    if isinstance(e, IntImm):
        return e.value
    if isinstance(e, Var):
        return point[e.name]
    parts = [value(child, **point) for child in children(e)]
    return int(parts[1] if parts[0] else parts[2]) if isinstance(e, Select) else int(OPERATORS[e.op](*parts))


OPERATORS = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "floordiv": operator.floordiv,
    "floormod": operator.mod, "min": min, "max": max, "lt": operator.lt, "le": operator.le, "gt": operator.gt,
    "ge": operator.ge, "eq": operator.eq, "shr": operator.rshift}


def points(**ranges):
    return [dict(zip(ranges, p, strict=True)) for p in itertools.product(*ranges.values())]


def box(tvm, **ranges):
    names = {"x": x, "y": y, "z": z}
    return {names[n]: tvm.ir.Range(r.start, r.stop) for n, r in ranges.items()}


# ------------------------------------------------------------------------------------------ Analyzer

def test_updates_bound_and_override(tvm):
    an = tvm.arith.Analyzer()
    bound = tvm.arith.ConstIntBound
    an.update(x, bound(-1, 10))
    assert an.const_int_bound(x * 2) == bound(-2, 20)
    an.update(x, bound(3, 40))
    assert an.const_int_bound(x) == bound(3, 10)
    an.update(x, bound(5, 6), override=True)
    assert an.const_int_bound(x + 1) == bound(6, 7) != bound(6, 8)
    an.update(x, bound(bound.NEG_INF, 4), True)
    assert an.const_int_bound(tvm.tir.Cast("int64", x)).max_value == 4
    free = an.const_int_bound(Var("n", "int64"))
    assert (free.min_value, free.max_value) == (free.NEG_INF, free.POS_INF)
    assert an.const_int_bound(Var("u", "uint8")) == bound(0, 255)
    with pytest.raises(ArgumentError, match="no knowledge"):
        an.update(x, 3)


def test_residues(tvm):
    an = tvm.arith.Analyzer()
    an.update(x, tvm.arith.ModularSet(3, 2))
    found = an.modular_set(x * 4 + 1)
    assert (found.coeff, found.base) == (12, 9)
    for text, e, expected in (("remainder", x % 3, 2), ("of a multiple", (x * 4) % 12, 8)):
        assert value(an.simplify(e)) == expected, text
    assert an.can_prove((x * 2) % 3 == 1) and an.can_prove(x != 3) and not an.can_prove(x % 2 == 0)
    an.update(x, tvm.arith.ModularSet(2, 1))
    assert an.modular_set(x) == tvm.arith.ModularSet(6, 5)
    with an.constraint_scope(y % 4 == 0):
        assert an.modular_set(y * 3) == tvm.arith.ModularSet(12, 0)
        with an.constraint_scope(y % 3 == 1):
            assert an.modular_set(y) == tvm.arith.ModularSet(12, 4)
    assert an.modular_set(y) == tvm.arith.ModularSet(1, 0)


def test_constraints_end_with_their_scope(tvm):
    an = tvm.arith.Analyzer()
    an.bind(y, tvm.ir.Range(0, 8))
    with an.constraint_scope(tvm.tir.all(x >= 4, x < y)):
        assert an.const_int_bound(x) == tvm.arith.ConstIntBound(4, 6) and an.can_prove(y > 4)
    assert not an.can_prove(x >= 4) and an.can_prove_less(y, 8) and an.can_prove_greater_equal(y, 0)
    an.bind(y, tvm.ir.Range(2, 4), allow_override=True)
    assert an.const_int_bound(y) == tvm.arith.ConstIntBound(2, 3)
    scope = an.constraint_scope(x > 1)
    with pytest.raises(ArgumentError, match="before it was entered"):
        scope.__exit__(None, None, None)


SETS = [x + y, x - y, x % 5, x * y, x // 3, Select(x > 2, x - 1, x + y), binary("max", x, y), x * 7 % 4,
        (x - y) >> 1, binary("min", x * 2, y) - x]


@pytest.mark.parametrize("e", SETS, ids=map(str, SETS))
def test_sets_hold_every_value(e, tvm):
    an, where = tvm.arith.Analyzer(), points(x=range(1, 10), y=range(2, 5))
    found = an.int_set(e, {x: tvm.arith.IntervalSet(1, 9), y: tvm.arith.IntervalSet(2, 4)})
    all_values = [value(e, **p) for p in where]
    low, high = value(found.min_value), value(found.max_value)
    assert low <= min(all_values) and max(all_values) <= high and high - low <= 3 * (max(all_values) - min(all_values))
    partly = an.int_set(e, {x: tvm.arith.IntervalSet(1, 9)})
    for p in where:
        for end, holds in ((partly.min_value, int.__le__), (partly.max_value, int.__ge__)):
            if end is not tvm.arith.int_set.pos_inf() and end is not tvm.arith.int_set.neg_inf():
                assert holds(value(end, y=p["y"]), value(e, **p)), (partly, p)


def test_sets_without_an_end(tvm):
    an, sets = tvm.arith.Analyzer(), tvm.arith.int_set
    found = an.int_set(x + 1, {x: tvm.arith.IntervalSet(0, sets.pos_inf())})
    assert value(found.min_value) == 1 and found.max_value.same_as(sets.pos_inf())
    assert tvm.arith.IntervalSet(sets.neg_inf(), sets.pos_inf()).is_everything()
    assert tvm.arith.IntervalSet(3, 2).is_nothing() and not tvm.arith.IntervalSet(x, x + 1).is_nothing()
    lanes = tvm.arith.IntSet.vector(tvm.tir.Ramp(x * 4, -2, 4))
    assert structural_equal(lanes.min_value, x * 4 - 6) and structural_equal(lanes.max_value, x * 4)
    one = tvm.arith.IntSet.single_point(x)
    assert one.min_value is x and one.max_value is x
    with pytest.raises(ArgumentError, match="no set of integers"):
        an.int_set(x, {x: (0, 3)})


def test_boxes_of_accesses(tvm):
    a, b = tvm.tir.decl_buffer((64, 64), name="A"), tvm.tir.decl_buffer((64,), name="B")
    i, j = Var("i"), Var("j")
    body = tvm.tir.BufferStore(b, tvm.tir.BufferLoad(a, [i + j, 3]), [i * 2 + j])
    nest = tvm.tir.For(i, 0, 5, "serial", tvm.tir.For(j, i, 4, "serial", body))
    read = tvm.arith.domain_touched(nest, a, True, False)
    written = tvm.arith.domain_touched(nest, b, True, True)
    spots = [(p + q, 2 * p + q) for p in range(5) for q in range(p, p + 4)]
    assert [(value(r.min), value(r.extent)) for r in read] == [(min(s[0] for s in spots), 12), (3, 1)]
    assert (value(written[0].min), value(written[0].extent)) == (0, max(s[1] for s in spots) + 1)
    assert tvm.arith.domain_touched(nest, b, True, False) == []
    upper, = tvm.arith.estimate_region_upper_bound(
        [tvm.ir.Range.from_min_extent(i * 4 + j, 2)], {i: tvm.ir.Range(0, 5), j: tvm.ir.Range(0, 3)})
    assert (value(upper.min_value), value(upper.max_value)) == (0, 19)


# ------------------------------------------------------------------------------------------ iterator maps

GOOD = [
    ([x], {"x": range(12)}), ([x + 1, y], {"x": range(12), "y": range(3)}), ([x // 4, x % 4], {"x": range(12)}),
    ([(x * 8 + y) // 6, (x * 8 + y) % 6], {"x": range(12), "y": range(8)}), ([0 - x], {"x": range(5)}),
    ([x // 4 * 3 + y, x % 4], {"x": range(12), "y": range(3)}), ([x * 6 + y * 2 + 7], {"x": range(4), "y": range(3)}),
    ([x, y - 2], {"x": range(3, 9), "y": range(2, 4)}), ([const(3)], {}),
]


@pytest.mark.parametrize("indices, ranges", GOOD, ids=[str([str(i) for i in g[0]]) for g in GOOD])
def test_maps_are_understood(indices, ranges, tvm):
    found = tvm.arith.detect_iter_map(indices, box(tvm, **ranges))
    assert len(found.indices) == len(indices) and not found.errors
    back = [tvm.arith.normalize_iter_map_to_expr(s) for s in found.indices]
    images = set()
    for p in points(**ranges):
        images.add(tuple(value(i, **p) for i in indices))
        assert [value(i, **p) for i in back] == [value(i, **p) for i in indices]
    count = 1
    for s in found.indices:
        assert isinstance(s, tvm.arith.IterSumExpr) and len(s.args) < 2
        count *= value(s.args[0].extent) if s.args else 1
    assert len(images) == count, "onto the product of the ranges"
    assert all(isinstance(split.source, tvm.arith.IterMark) for s in found.indices for split in s.args)


@pytest.mark.parametrize("indices, ranges, level", [
    ([x, x], {"x": range(4)}, "surjective"), ([x + y], {"x": range(4), "y": range(4)}, "nocheck"),
    ([x * 4 + y], {"x": range(3), "y": range(3)}, "nocheck"), ([x % 5], {"x": range(12)}, "surjective"),
    ([x], {"x": range(3), "y": range(2)}, "bijective"), ([x * y], {"x": range(3), "y": range(2)}, "nocheck")])
def test_maps_that_are_not_understood_say_why(indices, ranges, level, tvm):
    found = tvm.arith.detect_iter_map(indices, box(tvm, **ranges), check_level=level)
    assert found.indices == [] and len(found.errors) == 1 and str(indices[0]) in found.errors[0] or "gaps" in str(
        found.errors)


def test_a_predicate_cuts_a_fused_iterator(tvm):
    found = tvm.arith.detect_iter_map([x * 8 + y], box(tvm, x=range(12), y=range(8)), x * 8 + y < 50)
    assert value(found.indices[0].args[0].extent) == 50
    assert tvm.arith.detect_iter_map([x], box(tvm, x=range(12)), x % 2 == 0).indices == []
    assert tvm.arith.detect_iter_map([x, y], box(tvm, x=range(3), y=range(2)),
                                     check_level=tvm.arith.IterMapLevel.Bijective).indices
    with pytest.raises(ArgumentError, match="no level"):
        tvm.arith.detect_iter_map([x], {}, check_level="loose")


def test_maps_are_inverted_and_divided(tvm):
    ranges = {"x": range(12), "y": range(8), "z": range(3)}
    indices = [z * 16 + (x * 8 + y) // 6, (x * 8 + y) % 6]
    found = tvm.arith.detect_iter_map(indices, box(tvm, **ranges), check_level="bijective").indices
    back = tvm.arith.inverse_affine_iter_map(found, [x, y])
    for p in points(**ranges):
        at = {n: value(i, **p) for n, i in zip("xy", indices, strict=True)}
        assert {"x": value(back[x], **at), "y": value(back[y], **at), "z": value(back[z], **at)} == p
    outer_inner = tvm.arith.subspace_divide([z * 12 + x, y], box(tvm, **ranges), [x, y])
    text = [[str(tvm.arith.normalize_iter_map_to_expr(m)) for m in pair] for pair in outer_inner[:2]]
    assert text == [["z", "x"], ["0", "y"]] and value(outer_inner[0][1].extent) == 12
    assert tvm.arith.subspace_divide([x * 3 + z, y], box(tvm, **ranges), [x, y]) == []
    simple = tvm.arith.iter_map_simplify([(x * 8 + y) // 8, (x * 8 + y) % 8], box(tvm, **ranges))
    assert simple[0] is x and simple[1] is y
    plain = tvm.arith.normalize_to_iter_sum(z * 96 + x * 8 + y, box(tvm, **ranges))
    assert [value(s.scale) for s in plain.args] == [96, 8, 1]


# ------------------------------------------------------------------------------------------ conditions

def test_linear_equations(tvm):
    for e, variables in [(x * 4 + y * 6 + 7, [x]), ((x + y) * (z + 1), [x, y]), (y * 7, [x]), (3 - x * z, [x])]:
        *coefficients, base = tvm.arith.detect_linear_equation(e, variables)
        rebuilt = sum((k * v for k, v in zip(coefficients, variables, strict=True)), base)
        for p in points(x=range(-2, 3), y=range(3), z=range(2)):
            assert value(rebuilt, **p) == value(e, **p)
        assert not any(v in _variables(k) for k in [*coefficients, base] for v in variables)
    assert tvm.arith.detect_linear_equation(x * x, [x]) == [] == tvm.arith.detect_linear_equation(x // 2, [x])


def _variables(e):
    return {n for n in walk(e) if isinstance(n, Var)}


def test_clips(tvm):
    low, high = tvm.arith.detect_clip_bound(tvm.tir.all(x * 1 < y * 6, x - 1 > 0), [x])
    for p in points(x=range(-3, 20), y=range(-1, 4)):
        inside = p["x"] < p["y"] * 6 and p["x"] - 1 > 0
        assert inside == (value(low, **p) <= p["x"] <= value(high, **p))
    both = tvm.arith.detect_clip_bound(tvm.tir.all(x + z * 10 <= 20, y - 1 > 0, y > 4), [x, y])
    assert both[0] is None and both[3] is None and value(both[1], z=1) == 10 and value(both[2]) == 5
    assert tvm.arith.detect_clip_bound(x * x < 4, [x]) == [] == tvm.arith.detect_clip_bound(x < y, [x, y])


@pytest.mark.parametrize("condition, relaxed", [
    (x * 4 + y >= 7, True), (x * 4 + y < 7, True), ((0 - y) * x + z * 3 >= 0, False), (x * 3 > z, False),
    (2 - x >= y, True), (binary("eq", x, y * 2), False)], ids=str)
def test_deduced_bounds(condition, relaxed, tvm):
    ys = tvm.arith.IntervalSet(1, 4)
    found = tvm.arith.deduce_bound(x, condition, {} if relaxed else {y: ys}, {y: ys} if relaxed else {})
    for p in points(x=range(-20, 20), z=range(-2, 3)) if relaxed else points(x=range(-20, 20), y=range(1, 5),
                                                                              z=range(-2, 3)):
        ends = {n: p[n] for n in p if n != "x"}
        low = -99 if found.min_value is tvm.arith.int_set.neg_inf() else value(found.min_value, **ends)
        high = 99 if found.max_value is tvm.arith.int_set.pos_inf() else value(found.max_value, **ends)
        holds = all(value(condition, **{**p, "y": v}) for v in range(1, 5)) if relaxed else value(condition, **p)
        assert bool(holds) == (low <= p["x"] <= high), (found, p)


def test_nothing_is_deduced_where_a_sign_is_not_known(tvm):
    ys = tvm.arith.IntervalSet(-1, 1)
    for condition in (x * y > 4, x * x > 3, binary("eq", x * 4, 6)):
        assert tvm.arith.deduce_bound(x, condition, {y: ys}, {}).is_nothing()


def test_the_parts_of_the_package_are_modules(tvm):
    assert tvm.arith.analyzer.Analyzer is tvm.arith.Analyzer and isinstance(x, Expr) and np.prod([]) == 1
    import tvm.arith.int_set as sets
    assert sets.IntervalSet is tvm.arith.IntervalSet


# ------------------------------------------------------------------------------------------ equations

def free_points(solution, size):
    names = [v.name for v in solution.dst.variables]
    return [dict(zip(names, p, strict=True)) for p in itertools.product(range(-size, size + 1), repeat=len(names))]


@pytest.mark.parametrize("equations", [
    lambda: [x + y == 20, x - y == 10], lambda: [x + y == 20, x - y == 11], lambda: [x + y + z == 5, x + y == 2],
    lambda: [x * 2 + y * 4 == 6], lambda: [x * 2 + y * 4 == 7], lambda: [x * 3 - y * 5 + z * 7 == 1],
    lambda: [x * 6 + y * 10 + z * 15 == 3, x - z == 2], lambda: [x == y, y == x], lambda: [x == 1, x == 2],
    lambda: [binary("and", x + y == 3, y - z == 1)]])
def test_all_integer_solutions(equations, tvm):
    given = equations()
    solution = tvm.arith.solve_linear_equations(given, [x, y, z])
    box_ = points(x=range(-9, 22), y=range(-9, 22), z=range(-9, 22)) if len(given) > 1 else points(
        x=range(-6, 7), y=range(-6, 7), z=range(-6, 7))
    wanted = {(p["x"], p["y"], p["z"]) for p in box_ if all(value(e, **p) for e in given)}
    if not wanted:
        assert [r.value for r in solution.dst.relations] == [0] and not solution.dst.variables
        return
    assert solution.dst.relations == []
    names = {v.name: v for v in solution.dst.variables}
    for px, py, pz in wanted:                              # each is reached, at the point that dst_to_src gives
        at = {n: value_of(solution.dst_to_src[v], {x: px, y: py, z: pz}) for n, v in names.items()}
        got = tuple(value_of(solution.src_to_dst[v], {names[n]: k for n, k in at.items()}) for v in (x, y, z))
        assert got == (px, py, pz)
    for p in free_points(solution, 3):                     # and every point gives a solution
        got = [value_of(solution.src_to_dst[v], {names[n]: k for n, k in p.items()}) for v in (x, y, z)]
        assert all(value(e, x=got[0], y=got[1], z=got[2]) for e in given)


def value_of(e, table):
    """The value of e for values of variables, which may have any names."""
    if isinstance(e, Var):
        return next(k for v, k in table.items() if v is e)
    if isinstance(e, IntImm):
        return e.value
    return int(OPERATORS[e.op](*[value_of(child, table) for child in children(e)]))


OPERATORS["and"] = lambda a, b: a and b


def test_ranges_of_solutions(tvm):
    solution = tvm.arith.solve_linear_equations([x + y == 0], [x, y], {x: tvm.ir.Range(-5, 5), y: tvm.ir.Range(-5, 10)})
    n, = solution.dst.variables
    r = solution.dst.ranges[n]
    found = {tuple(value_of(solution.src_to_dst[v], {n: k}) for v in (x, y))
             for k in range(value(r.min), value(r.min) + value(r.extent))}
    assert found == {(a, -a) for a in range(-5, 5) if -5 <= -a < 10}
    symbolic = tvm.arith.solve_linear_equations([x * 2 == z], [x])
    assert str(symbolic.dst.relations[0]) in ("z % 2 == 0",) and str(symbolic.src_to_dst[x]) == "z // 2"
    assert tvm.arith.solve_linear_equations([x * y == 3], [x, y]).dst.relations[0] is not None
    with pytest.raises(ArgumentError, match="is no equation"):
        tvm.arith.solve_linear_equations([x < 3], [x])
