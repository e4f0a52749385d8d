"""Formulas of integers and conversions mean what the operators of the IR mean, run by the interpreter."""
from __future__ import annotations

import itertools

import numpy as np
import pytest

from tilewright.formulas.builder import Formula
from tilewright.formulas.conversions import double_to_odd, integer_to_double, saturating
from tilewright.formulas.integers import division, shift
from tilewright.formulas.remainder import floor_division
from tilewright.formulas.small_floats import narrowed, rounded, widened
from tilewright.tir import dtype as dt
from tilewright.tir import evaluate
from tilewright.tir.dtype import SMALL_FLOATS
from tilewright.tir.expr import Binary, Cast, Var

INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
FLOATS = (0.0, -0.0, 1.0, -1.5, 0.5, 127.0, 127.5, 128.0, -128.0, -129.0, 255.9, 1e9, 2147483648.0, -2147483648.0, 1e18,
          9.3e18, -9.3e18, 1.9e19, 1e-40, 65504.0, 65520.0, 448.0, 464.0, 480.0, 3e38, np.inf, -np.inf, np.nan)


def edges(dtype: str) -> list[int]:
    low, high = dt.integer_range(dtype)
    near = {low, low + 1, low // 2, -7, -2, -1, 0, 1, 2, 3, 7, 63, 64, high // 2, high // 2 + 1, high - 1, high}
    return sorted(x for x in near if low <= x <= high)


def value(f: Formula, *args):
    return evaluate(f.expr(), dict(zip(f.params, args)))


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("op", ("floordiv", "floormod", "truncdiv", "truncmod"))
def test_divisions(op, dtype):
    x, y = Var("x", dtype), Var("y", dtype)
    for a, b in itertools.product(edges(dtype), repeat=2):
        want = evaluate(Binary(op, x, y), {x: a, y: b})
        for safe, natural in itertools.product((False, True), repeat=2):
            if (not safe or b not in (0, -1)) and (not natural or min(a, b) >= 0):
                assert value(division(op, dtype, safe, natural), a, b) == want, (a, b, safe, natural)


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("op", ("shl", "shr"))
def test_shifts(op, dtype):
    x, y = Var("x", dtype), Var("y", dtype)
    for a, b in itertools.product(edges(dtype), edges(dtype)):
        assert value(shift(op, dtype), a, b) == evaluate(Binary(op, x, y), {x: a, y: b}), (a, b)


@pytest.mark.parametrize("target", INTEGERS)
@pytest.mark.parametrize("source", ("float32", "float64"))
def test_truncation_saturates(source, target):
    x = Var("x", source)
    for number in FLOATS:
        a = dt.numpy_dtype(source).type(number)
        assert value(saturating(source, target), a) == evaluate(Cast(target, x), {x: a}), number


@pytest.mark.parametrize("dtype", SMALL_FLOATS)
def test_bits_of_small_floats(dtype):
    """Numbers of the format: their bits, the float32 that they stand for, and the bits again."""
    bits = dt.bits_of(dtype)
    for raw in range(0, 1 << bits, 1 if bits == 8 else 37):
        want = np.array([raw], f"uint{bits}").view(dt.numpy_dtype(dtype)).astype("float32")[0]
        got = value(widened(dtype), raw)
        back = value(narrowed(dtype), got)
        if np.isnan(want):
            assert np.isnan(got) and np.isnan(np.array([back], f"uint{bits}").view(dt.numpy_dtype(dtype))[0])
        else:
            assert np.float32(got).tobytes() == want.tobytes() and back == raw


@pytest.mark.parametrize("dtype", SMALL_FLOATS)
def test_rounding_to_small_floats(dtype):
    rng = np.random.default_rng(0)
    drawn = rng.integers(0, 2**32, 300, dtype="uint32").view("float32")
    near = np.array([m * 2.0**e for e in range(-30, 18) for m in (1, 1.0625, 1.125, 1.1875, 1.4375, 1.9999)], "float32")
    for x in np.concatenate([drawn, near, -near, np.array(FLOATS, "float32")]):
        want, got = SMALL_FLOATS[dtype].nearest(float(x)), float(value(rounded(dtype), x))
        assert np.isnan(got) if np.isnan(want) else (got == want and np.signbit(got) == np.signbit(want)), x


@pytest.mark.parametrize("dtype", ("float16", "bfloat16"))
def test_two_roundings_are_one(dtype):
    """float64 and integers of 64 bits through float32 to 16 bits, at ties and beside them."""
    ties = [(1 + k / 2**n) * 2.0**e for n in (8, 11, 12) for k in (1, 3, 5) for e in (-3, 0, 9)]
    v = Var("x", "float64")
    for x in [t + s * 2.0**-45 for t in ties for s in (-1, 0, 1)] + list(FLOATS):
        want = float(evaluate(Cast(dtype, v), {v: np.float64(x)}))
        got = float(value(rounded(dtype), value(double_to_odd(1), np.float64(x))))
        assert got == want or np.isnan(got) and np.isnan(want), x
    for source in ("int64", "uint64"):
        v = Var("x", source)
        for x in [*edges(source), 2**62 + 2**54, 2**62 + 2**54 + 1, 2**62 + 2**54 - 1, 2**60 + 2**52 + 1]:
            odd = value(double_to_odd(1), value(integer_to_double(source), x))
            assert float(value(rounded(dtype), odd)) == float(evaluate(Cast(dtype, v), {v: x})), x


@pytest.mark.parametrize("dtype", ("float32", "float64"))
@pytest.mark.parametrize("op", ("floordiv", "floormod"))
def test_floor_division_of_floats(op, dtype):
    x, y = Var("x", dtype), Var("y", dtype)
    for a, b in itertools.product((0.0, -0.0, 1.0, -1.0, 5.5, -5.5, 2.0, -2.0, 1e-3, 1e10, np.inf, np.nan), repeat=2):
        a, b = (dt.numpy_dtype(dtype).type(v) for v in (a, b))
        want, got = evaluate(Binary(op, x, y), {x: a, y: b}), value(floor_division(op, dtype), a, b)
        np.testing.assert_array_equal(got, want, err_msg=f"{a}, {b}")
