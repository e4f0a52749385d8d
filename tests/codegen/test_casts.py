"""Every cast between two types, on all values of 8 and 16 bits, compiled and interpreted, against NumPy and ml_dtypes;
from wider types against exact arithmetic on fractions."""
from __future__ import annotations

import functools
from bisect import bisect_left
from fractions import Fraction

import numpy as np
import pytest
from kernels import Cpu, elementwise, elementwise_all

import tilewright as tw
from tilewright.script import from_source
from tilewright.tir import Cast, FloatImm, Var, cast, evaluate
from tilewright.tir import dtype as dt

SMALL = list(dt.SMALL_FLOATS)
INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
TYPES = ["bool", *INTEGERS, *SMALL, "float32", "float64"]
PLAIN = Cpu(mcpu="x86-64", opt_level=1)          # no instruction for float16
HOST = Cpu(opt_level=1)


def all_values(dtype):
    """Every value of a dtype of 8 or 16 bits, NaNs and both zeros included."""
    if dtype == "bool":
        return np.array([False, True])
    bits = dt.bits_of(dtype)
    return np.arange(1 << bits).astype(f"uint{bits}").view(dt.numpy_dtype(dtype))


def converted(x, target):
    """x in the other dtype by the rules of a cast, from NumPy and ml_dtypes."""
    if target == "bool":
        return x.astype("float64") != 0
    kind = dt.numpy_dtype(target)
    if dt.is_integer(target) and x.dtype.kind not in "iub":
        low, high = dt.integer_range(target)
        wide = [float(v) for v in x]
        return np.array([0 if v != v else high if v >= high else low if v <= low else int(v) for v in wide], kind)
    if dt.is_float(target):
        with np.errstate(over="ignore", invalid="ignore"):
            return x.astype("float32").astype(kind)       # exact first: at most 16 bits
    return x.astype(kind)


def assert_same(got, want, dtype):
    """Equal values; signs of zeros too. NaN stands for any NaN."""
    if not dt.is_float(dtype):
        np.testing.assert_array_equal(got, want)
        return
    a, b = got.astype("float64"), want.astype("float64")
    np.testing.assert_array_equal(a, b)
    number = ~np.isnan(b)
    np.testing.assert_array_equal(np.signbit(a[number]), np.signbit(b[number]))


@pytest.mark.parametrize("source", ["bool", "int8", "uint8", "float8_e4m3fn", "float8_e5m2", "int16", "uint16",
                                    "float16", "bfloat16"])
def test_all_values_of_small_types(source):
    values = all_values(source)
    padded = np.resize(values, -(-len(values) // 16) * 16)
    for lanes, target in ((1, HOST), (16, HOST), (16, PLAIN)):
        computes = {t: (lambda x, t=dt.with_lanes(t, lanes): cast(t, x)) for t in TYPES}
        got = elementwise_all(computes, [padded], {t: t for t in TYPES}, lanes, target)
        for t in TYPES:
            assert_same(got[t], converted(padded, t), t)


@pytest.mark.parametrize("source", ["bool", "int8", "uint8", "float8_e4m3fn", "float8_e5m2", "float16", "bfloat16"])
def test_the_interpreter_agrees(source):
    values = all_values(source)
    values = values[::max(1, len(values) // 512)]
    x = Var("x", source)
    for t in TYPES:
        got = np.array([evaluate(Cast(t, x), {x: v}) for v in values], dt.numpy_dtype(t))
        assert_same(got, converted(values, t), t)


# ---- wide sources: the nearest value, found among all values of the format

@functools.cache
def table_of(dtype):
    """The non-negative finite values of a small float in order, as fractions; the index tells which are even."""
    bits = dt.bits_of(dtype)
    values = np.arange(1 << bits - 1).astype(f"uint{bits}").view(dt.numpy_dtype(dtype)).astype("float64")
    return tuple(Fraction(float(v)) for v in values if np.isfinite(v))


def nearest(value, table, dtype):
    """The value of the format nearest to a number: ties to even, beyond the end as if one more step followed."""
    magnitude = abs(Fraction(value))
    at = bisect_left(table, magnitude)
    step = table[at] if at < len(table) else 2 * table[-1] - table[-2]
    if at and magnitude < step:
        below, above = magnitude - table[at - 1], step - magnitude
        at = at - 1 if below < above or (below == above and at % 2 == 1) else at
    if at == len(table):
        end = np.nan if dt.SMALL_FLOATS[dtype].infinity is None else np.inf
        return -end if value < 0 else end
    return -float(table[at]) if value < 0 else float(table[at])


def hard_values(source, dtype, table, random):
    """Values of the source around the values of the format and the middles between them."""
    steps = (*table, 2 * table[-1] - table[-2])
    out = []
    for pick in (*random.integers(0, len(table) - 1, 150), *range(4), *range(len(table) - 4, len(table))):
        low = steps[pick]
        middle = (low + steps[pick + 1]) / 2
        for centre in (low, middle):
            for sign in (1, -1):
                near = float(centre) * sign
                if source.startswith("float"):
                    v = np.dtype(source).type(near)
                    end = np.dtype(source).type(np.inf)
                    out += [v, np.nextafter(v, end), np.nextafter(v, -end)]
                else:
                    least, most = dt.integer_range(source)
                    out += [min(max(int(near) + d, least), most) for d in (-1, 0, 1)]
    if not source.startswith("float"):
        least, most = dt.integer_range(source)
        out += [least, most, most - 1, *(min((1 << k) + d, most) for k in range(22, dt.bits_of(source)) for d in
                                         (-1, 0, 1, 1 << k - 8, (1 << k - 8) + 1, (1 << k - 9) + (1 << k - 8)))]
        out += random.integers(least, most, 200, source, endpoint=True).tolist()
    return np.array(out, source)


@pytest.mark.parametrize("source", ["float32", "float64", "int32", "uint32", "int64", "uint64"])
def test_wide_values_are_rounded_once(source):
    for t in SMALL:
        table = table_of(t)
        values = hard_values(source, t, table, np.random.default_rng(3))
        values = np.resize(values, -(-len(values) // 16) * 16)
        want = np.array([nearest(v.item(), table, t) for v in values])
        for lanes, cpu in ((1, HOST), (16, HOST), (16, PLAIN)):
            got = elementwise_all({"y": lambda x, t=dt.with_lanes(t, lanes): cast(t, x)}, [values], t, lanes, cpu)["y"]
            np.testing.assert_array_equal(got.astype("float64"), want, err_msg=f"{source} to {t}, {lanes} lanes")
        x = Var("x", source)
        some = slice(None, None, 9)
        ours = [float(evaluate(Cast(t, x), {x: v})) for v in values[some]]
        np.testing.assert_array_equal(ours, want[some])


@pytest.mark.parametrize("dtype", SMALL)
def test_constants_are_rounded_once(dtype):
    table = table_of(dtype)
    for value in [1 + 2.0 ** -8, 1 + 2.0 ** -8 + 2.0 ** -40, 464.0, 464.1, 61440.0, 65520.0, 1e-9, -3.3e38, 0.1]:
        want = nearest(value, table, dtype)
        got = elementwise_all({"y": lambda x, value=value: FloatImm(value, dtype)}, [np.zeros(1, "int32")], dtype)["y"]
        np.testing.assert_array_equal(got.astype("float64"), [want])
        np.testing.assert_array_equal(float(evaluate(FloatImm(value, dtype))), want)


@pytest.mark.parametrize("source", ["float32", "float64"])
def test_floats_to_integers_saturate(source):
    ends = [v for t in INTEGERS for v in dt.integer_range(t)]
    values = [0.0, -0.0, 0.5, -0.9, 1.5, np.nan, -np.nan, np.inf, -np.inf, 1e30, -1e30,
              *(float(e) + d for e in ends for d in (-1.0, -0.5, 0, 0.5, 1.0))]
    x = np.resize(np.array(values, source), 128)
    for lanes in (1, 16):
        computes = {t: (lambda x, t=dt.with_lanes(t, lanes): cast(t, x)) for t in INTEGERS}
        got = elementwise_all(computes, [x], {t: t for t in INTEGERS}, lanes)
        for t in INTEGERS:
            np.testing.assert_array_equal(got[t], converted(x, t), err_msg=t)


# ---- unsigned numbers whose upper bits are copies of a sign, in straight-line code

STRAIGHT = {                                     # what is computed of elements of two inputs
    "T.cast(X[i], '{wide}')": lambda x, y, wide: x.astype(wide),
    "T.cast(T.Select(X[i] < Y[i], X[i], Y[i]), '{wide}')": lambda x, y, wide: np.minimum(x, y).astype(wide),
    "(T.cast(X[i], '{wide}') - T.cast(Y[i], '{wide}'))": lambda x, y, wide: x.astype(wide) - y.astype(wide)}


@pytest.mark.parametrize("target", ["llvm -opt-level=2 -mcpu=x86-64-v3", "llvm"])
@pytest.mark.parametrize("source", INTEGERS)
def test_computed_integers_of_every_type_to_floats(source, target):
    """Short loops are unrolled, and LLVM may narrow what it makes vectors of; a sign must not be lost with that."""
    low, high = dt.integer_range(source)
    ends = [low, low + 1, high, high - 1, 0, 1, 2, 5, 77, *([-1, -3, -100] if low else [])]
    x = np.resize(np.array(ends, source), 32)
    y = np.random.default_rng(1).permutation(x)
    for t in ("float16", "float32", "float64"):             # NumPy rounds integers to these once, or to infinity
        cases = [(code.format(wide=w), compute(x, y, w)) for w in INTEGERS for code, compute in STRAIGHT.items()]
        outs = ", ".join(f"C{k}: T.Buffer((32,), '{t}')" for k in range(len(cases)))
        loops = "".join(f"    for i in range(32):\n        C{k}[i] = T.cast({code}, '{t}')\n"
                        for k, (code, _) in enumerate(cases))
        func = from_source("@T.prim_func\n"
                           f"def f(X: T.Buffer((32,), '{source}'), Y: T.Buffer((32,), '{source}'), {outs}):\n{loops}")
        got = [np.zeros(32, t) for _ in cases]
        tw.build(func, target=target)(x, y, *got)
        for mine, (code, wide) in zip(got, cases):
            with np.errstate(over="ignore"):
                want = wide.astype(t)
            np.testing.assert_array_equal(mine, want, err_msg=f"{code} to {t}")


# ---- arithmetic on formats of storage

@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2"])
def test_arithmetic_on_all_pairs(dtype):
    """Computed in float32 and rounded, as ml_dtypes does."""
    one = all_values(dtype)
    a, b = np.repeat(one, 256), np.tile(one, 256)
    got = elementwise_all({"add": lambda x, y: x + y, "mul": lambda x, y: x * y, "sub": lambda x, y: x - y},
                          [a, b], dtype, 16)
    with np.errstate(all="ignore"):
        for name, want in (("add", a + b), ("mul", a * b), ("sub", a - b)):
            assert_same(got[name], want, dtype)


@pytest.mark.parametrize("dtype", ("float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"))
def test_a_copy_keeps_the_bits(dtype):
    """Of NaN as well: no number is made of them."""
    bits = dt.bits_of(dtype)
    x = np.arange(0, 1 << bits, 1 if bits == 8 else 257, dtype=f"uint{bits}")[:240].view(dt.numpy_dtype(dtype))
    for lanes in (1, 16):
        got = elementwise(lambda a: a, [x], dtype, lanes)
        np.testing.assert_array_equal(got.view(f"uint{bits}"), x.view(f"uint{bits}"))
