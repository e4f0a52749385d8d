"""Rules of the form pattern -> result."""
import pytest

from tilewright.tir import Binary, Call, FloatImm, IntImm, Load, Select, Var, decl_buffer, structural_equal
from tilewright.tir.patterns import ANY, Hole, Rule, Rules, match

X, Y = Hole("x"), Hole("y")
C = Hole("c", when=lambda e: isinstance(e, IntImm))
x, y, f = Var("x"), Var("y"), Var("f", "float32")
A = decl_buffer((8,), "int32", "A")


def found(pattern, e, *holes):
    table = {}
    return {v.name: str(value) for v, value in table.items()} if match(pattern, e, table, holes) else None


@pytest.mark.parametrize("pattern, e, filled", [
    (Binary("add", X, Y), x + 1, {"x": "x", "y": "1"}),
    (Binary("add", X, Y), x - 1, None),
    (Binary("add", X, C), (x * 2) + 1, {"x": "x * 2", "c": "1"}),
    (Binary("add", C, X), x + 1, None),                                       # nothing is commuted
    (Binary("add", X, C), x + y, None),
    (Binary("add", X, X), (x * y) + (x * y), {"x": "x * y"}),
    (Binary("add", X, X), x + y, None),
    (Binary("mul", X, FloatImm(1.0, ANY)), f * 1.0, {"x": "f"}),
    (Binary("mul", X, FloatImm(1.0, ANY)), f.astype("float64") * 1.0, {"x": 'T.Cast("float64", f)'}),
    (Binary("mul", X, FloatImm(0.0, ANY)), f * -0.0, None),
    (Binary("mul", X, IntImm(2, "int64"), ANY), x * 2, None),
    (Hole("z", "int32"), x, {"z": "x"}),
    (Hole("z", "int64"), x, None),
    (Select(X, Y, Y), Select(x < 1, y, y), {"x": "x < 1", "y": "y"}),
    (Call("exp", (X,), ANY), Call("exp", (f,), "float32"), {"x": "f"}),
    (Call("exp", (X,), ANY), Call("log", (f,), "float32"), None),
    (Load(A, (X,)), A[y], {"x": "y"}),
    (Load(A, (X,)), Load(decl_buffer((8,), "int32", "A"), (y,)), None),
    (Binary("add", x, X, ANY), x + y, {"x": "y"}),
    (Binary("add", y, X, ANY), x + y, None),
])
def test_what_a_pattern_matches(pattern, e, filled):
    assert found(pattern, e) == filled


def test_variables_of_an_expression_may_be_holes():
    assert found(x + y * 2, f.astype("int32") + 3 * 1, x) is None
    assert found(x + 2, y * 2 + 2, x) == {"x": "y * 2"} and found(x + 2, y * 2 + 2) is None
    known = {x: y * 2}
    assert match(x + 1, y * 2 + 1, known) and not match(x + 1, y + 1, known)


def test_rules_rewrite_bottom_up():
    rules = Rules([
        Rule("no_zero", Binary("add", X, IntImm(0, ANY)), X, lambda v: (Binary("add", v, IntImm(0)), v)),
        Rule("shift", Binary("mul", X, C), lambda e: Binary("shl", e[X], IntImm(1)) if e[C].value == 2 else None,
             lambda v: (v * 2, Binary("shl", v, IntImm(1)))),
        Rule("never", Binary("add", X, Y), lambda e: None, lambda v: (v, v)),
    ])
    e = Binary("add", Binary("mul", Binary("add", x, IntImm(0)), IntImm(2)), IntImm(0))
    assert structural_equal(rules.rewrite(e), Binary("shl", x, IntImm(1)))
    assert rules.apply(x * 3) is None and rules.apply(x) is None and rules.rewrite(unchanged := x * 3 + y) is unchanged
    for rule in rules.rules[:2]:
        before, after = rule.example(x)
        assert structural_equal(rule.apply(before), after)
