"""What the analyzer knows where a condition does not hold."""
import pytest

from tilewright.arith.analyzer import Analyzer
from tilewright.tir import Var, binary
from tilewright.tir.arithmetic import logical_not
from tilewright.tir.expr import Not

X, Y = Var("x"), Var("y")


@pytest.mark.parametrize("condition, then", [
    (X < 683, X >= 683), (X <= 5, X >= 6), (X > 5, X <= 5), (X >= 5, X <= 4), (binary("ne", X, 7), X <= 7),
    (binary("or", X < 3, Y < 4), binary("and", X >= 3, Y >= 4)), (Not(X < 3), X <= 2)])
def test_a_condition_that_does_not_hold_says_its_negation(condition, then):
    analyzer = Analyzer()
    analyzer.bind(X, 0, 900)
    analyzer.bind(Y, 0, 900)
    assert not analyzer.prove(then)
    with analyzer.constraint(logical_not(condition)):
        assert analyzer.prove(then)
    assert not analyzer.prove(then)


def test_of_a_conjunction_that_does_not_hold_nothing_is_known_of_its_parts():
    analyzer = Analyzer()
    analyzer.bind(X, 0, 900)
    with analyzer.constraint(logical_not(binary("and", X < 3, Y < 4))):
        assert not analyzer.prove(X >= 3) and not analyzer.prove(Y >= 4)


def test_floats_that_are_not_less_may_be_no_numbers():
    x = Var("f", "float32")
    with (analyzer := Analyzer()).constraint(logical_not(x < 1.0)):
        assert not analyzer.prove(x >= 1.0)
