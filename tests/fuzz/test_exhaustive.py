"""The comparison of terms on every value, against laws of arithmetic that hold or do not."""
from __future__ import annotations

import pytest

from .exhaustive import same_everywhere
from .terms import Terms

DTYPES = ["int8", "uint8", "int16"]


def both(dtype):
    """(terms, an element of the first argument, a function that makes binary terms of dtype)."""
    t = Terms()
    return t, t.make("argument", 0, 0), lambda op, a, b: t.binary(op, dtype, a, b)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_law_that_holds_with_wrapping(dtype):
    _, x, f = both(dtype)
    square = f("sub", f("mul", x, x), 1)
    assert same_everywhere(square, f("mul", f("sub", x, 1), f("add", x, 1)), {0: dtype}) is True
    assert same_everywhere(square, f("mul", f("sub", x, 1), f("sub", x, 1)), {0: dtype}) is False


def test_one_value_of_all_is_enough_to_differ():
    """The absolute value of the smallest number wraps to itself and is below 0."""
    t, x, f = both("int16")
    size = t.make("call", "abs", "int16", x)
    assert same_everywhere(size, f("max", size, 0), {0: "int16"}) is False
    assert same_everywhere(f("max", size, x), size, {0: "int16"}) is True


def test_operands_in_both_do_not_hide_a_difference():
    _, x, f = both("int8")
    third, half = f("truncdiv", x, 3), f("truncdiv", x, 2)
    assert same_everywhere(f("max", f("add", x, 9), third), f("max", f("add", x, 9), half), {0: "int8"}) is False
    zero = f("truncdiv", f("truncdiv", x, 12), 12)
    assert same_everywhere(f("add", x, zero), f("add", x, f("truncdiv", x, 127)), {0: "int8"}) is False


def test_what_is_too_large_or_a_float_stays_open():
    t, x, f = both("int32")
    y = t.make("argument", 0, 1)
    assert same_everywhere(f("mul", x, y), f("sub", x, y), {0: "int32"}) is None
    assert same_everywhere(t.make("cast", "float32", x), x, {0: "int8"}) is None
