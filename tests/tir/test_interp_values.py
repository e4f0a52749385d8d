"""What every operator, cast and function gives on every dtype, against NumPy arrays and exact integers."""

import math
import random as rnd

import ml_dtypes
import numpy as np
import pytest
from tir_programs import function

from tilewright.tir import (
    BINARY,
    INTRINSICS,
    Binary,
    Broadcast,
    Call,
    Cast,
    FloatImm,
    IntImm,
    Not,
    Ramp,
    Select,
    Store,
    Var,
    const,
    decl_buffer,
    evaluate,
    intrinsic,
    loop,
    run,
)
from tilewright.tir import dtype as dt

INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
FLOATS = ["float16", "bfloat16", "float32", "float64"]
ARITHMETIC = [
    "add",
    "sub",
    "mul",
    "floordiv",
    "floormod",
    "truncdiv",
    "truncmod",
    "min",
    "max",
    "bitand",
    "bitor",
    "bitxor",
    "shl",
    "shr",
]
COMPARE = ["eq", "ne", "lt", "le", "gt", "ge"]


def wrapped(value, dtype):
    low, high = dt.integer_range(dtype)
    return (value - low) % (high - low + 1) + low


def exact(op, a, b, dtype):
    """a op b on Python integers, then reduced to dtype."""
    bits = dt.bits_of(dtype)
    if op in ("shl", "shr") and not 0 <= b < bits:
        return -1 if op == "shr" and a < 0 else 0
    if "div" in op or "mod" in op:
        if b == 0:
            return 0
        q = a // b if op.startswith("floor") else (abs(a) // abs(b)) * (1 if (a < 0) == (b < 0) else -1)
        return wrapped(q if op.endswith("div") else a - q * b, dtype)
    table = {
        "add": a + b,
        "sub": a - b,
        "mul": a * b,
        "min": min(a, b),
        "max": max(a, b),
        "bitand": a & b,
        "bitor": a | b,
        "bitxor": a ^ b,
        "shl": a << b if op == "shl" else 0,
        "shr": a >> b if op == "shr" else 0,
    }
    return wrapped(table[op], dtype)


def samples(dtype):
    low, high = dt.integer_range(dtype)
    rng = rnd.Random(0)
    return sorted(
        {
            low,
            low + 1,
            max(low, -3),
            max(low, -1),
            0,
            1,
            2,
            7,
            31,
            high - 1,
            high,
            *[rng.randint(low, high) for _ in range(4)],
        }
    )


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integer_operators(dtype):
    x, y = Var("x", dtype), Var("y", dtype)
    values = samples(dtype)
    for op in ARITHMETIC:
        e = Binary(op, x, y)
        for a in values:
            for b in values:
                assert evaluate(e, {x: a, y: b}) == exact(op, a, b, dtype), (op, a, b)
    for op in COMPARE:
        e = Binary(op, x, y)
        for a in values:
            for b in values:
                assert evaluate(e, {x: a, y: b}) == BINARY[op].fold(a, b), (op, a, b)


@pytest.mark.parametrize("op", ["min", "max"])
def test_extrema_of_conditions(op):
    x, y = Var("x", "bool"), Var("y", "bool")
    for a in (False, True):
        for b in (False, True):
            assert evaluate(Binary(op, x, y), {x: a, y: b}) is {"min": a and b, "max": a or b}[op]


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32"])
def test_integer_operators_with_known_bounds(dtype):
    """Constants and loop variables let the compiler drop wraps and checks; the values stay the same."""
    i = Var("i", dtype)
    low, high = dt.integer_range(dtype)
    for op in ARITHMETIC + COMPARE:
        out = "bool" if op in COMPARE else dtype
        for start in (0, max(low, -5), high - 9):
            for c in (1, 3, max(low, -2), max(low, -1), high, low):
                B = decl_buffer((10,), out, "B")
                at = Cast("int32", i) - start
                for a, b in ((i, const(c, dtype)), (const(c, dtype), i)):
                    got = np.zeros(10, out)
                    body = loop(i, 10, Store(B, Binary(op, a, b), (at,)), min=start)
                    run(function(body, B), got)
                    for k, value in enumerate(got.tolist()):
                        left, right = (start + k, c) if a is i else (c, start + k)
                        want = (
                            BINARY[op].fold(left, right) if op in COMPARE else exact(op, left, right, dtype)
                        )
                        assert value == want, (op, left, right)


@pytest.mark.parametrize("dtype", FLOATS)
def test_float_operators_round_once(dtype):
    scalar = dt.numpy_dtype(dtype).type
    x, y = Var("x", dtype), Var("y", dtype)
    rng = np.random.default_rng(1)
    pairs = [(scalar(a), scalar(b)) for a, b in rng.normal(0, 10, (40, 2))]
    for a, b in pairs:
        for op, fold in (("add", np.add), ("sub", np.subtract), ("mul", np.multiply), ("div", np.divide)):
            got = evaluate(Binary(op, x, y), {x: a, y: b})
            wide = fold(np.float64(a), np.float64(b))
            want = fold(a, b) if dtype == "float64" else scalar(wide)
            assert got == want and type(got) is type(want), (op, a, b)
        for op in COMPARE:
            assert evaluate(Binary(op, x, y), {x: a, y: b}) == BINARY[op].fold(float(a), float(b))


@pytest.mark.parametrize("dtype", FLOATS)
def test_min_and_max_propagate_nan(dtype):
    x, y = Var("x", dtype), Var("y", dtype)
    for op in ("min", "max"):
        for a, b in ((math.nan, 1.0), (1.0, math.nan)):
            assert math.isnan(evaluate(Binary(op, x, y), {x: a, y: b}))
        assert evaluate(Binary(op, x, y), {x: -1.0, y: 2.0}) == (-1 if op == "min" else 2)
        assert evaluate(Binary(op, x, y), {x: -math.inf, y: math.inf}) == (
            -math.inf if op == "min" else math.inf
        )


def test_float_division_by_zero_follows_ieee():
    x = Var("x", "float64")
    assert evaluate(x / 0.0, {x: 1.0}) == math.inf
    assert math.isnan(evaluate(x / 0.0, {x: 0.0}))


@pytest.mark.parametrize("source", INTEGERS + FLOATS + ["bool"])
@pytest.mark.parametrize("target", INTEGERS + FLOATS + ["bool"])
def test_casts(source, target):
    x = Var("x", source)
    if source == "bool":
        values = [False, True]
    elif source in INTEGERS:
        values = samples(source)
    else:
        values = floats(
            source,
            0.0,
            -0.5,
            0.99,
            -1.5,
            2.5,
            127.5,
            1e3,
            -1e3,
            3e4,
            1e30,
            -1e30,
            math.inf,
            -math.inf,
            math.nan,
        )
    for v in values:
        got = evaluate(Cast(target, x), {x: v})
        with np.errstate(all="ignore"):
            assert same(got, converted(v, source, target)), (v, got)


def floats(dtype, *values):
    with np.errstate(all="ignore"):
        return [dt.numpy_dtype(dtype).type(v) for v in values]


def converted(v, source, target):
    if target == "bool":
        return v != 0
    if target in INTEGERS:
        low, high = dt.integer_range(target)
        if source in FLOATS:
            f = float(v)
            return (
                0
                if math.isnan(f)
                else int(max(low, min(high, f)))
                if math.isinf(f)
                else max(low, min(high, int(f)))
            )
        return wrapped(int(v), target)
    if source in INTEGERS and abs(v) > 2**53:
        return np.array(v, source).astype(target)[()]
    return np.array(float(v)).astype(dt.numpy_dtype(target))[()]


def same(a, b):
    return (a != a and b != b) or a == b


def test_bfloat16_is_rounded_once():
    x = Var("x", "float64")
    halfway = 1 + 2.0**-8  # between two bfloat16 numbers, a tie
    assert float(evaluate(Cast("bfloat16", x), {x: halfway})) == 1.0
    assert float(evaluate(Cast("bfloat16", x), {x: halfway + 2.0**-40})) == 1 + 2.0**-7
    assert float(evaluate(Cast("bfloat16", x), {x: 3 + 2.0**-7 - 2.0**-40})) == float(ml_dtypes.bfloat16(3.0))


def reference(name):
    """A function of the table on NumPy floats, written another way than `evaluate`; None where there is no other."""
    others = {"atan": np.arctan, "erf": np.vectorize(math.erf)}
    return others.get(name) or INTRINSICS[name].special or getattr(np, name, None)


@pytest.mark.parametrize(
    "name", [n for n, row in INTRINSICS.items() if row.kind == "math" and row.arity == 1 and reference(n)]
)
def test_math_functions(name):
    inputs = [0.0, -0.0, 0.25, -0.75, 1.0, 2.5, -2.5, 700.0, -800.0, 1e300, math.inf, -math.inf, math.nan]
    for dtype, rtol in (("float64", 1e-14), ("float32", 2e-7), ("float16", 1e-3), ("bfloat16", 8e-3)):
        x = Var("x", dtype)
        for v in floats(dtype, *inputs):
            with np.errstate(all="ignore"):
                want = np.float64(reference(name)(np.float64(v))).astype(dt.numpy_dtype(dtype))
            got = evaluate(intrinsic(name, x), {x: v})
            np.testing.assert_allclose(
                np.float64(got), np.float64(want), rtol=rtol, err_msg=f"{name}({v}) as {dtype}"
            )


def test_other_functions():
    x, y, i = Var("x", "float32"), Var("y", "float32"), Var("i")
    assert evaluate(intrinsic("pow", x, y), {x: 2, y: 10}) == 1024
    assert evaluate(intrinsic("pow", x, y), {x: 10, y: 100}) == math.inf
    assert math.isnan(evaluate(intrinsic("pow", x, y), {x: -2, y: 0.5}))
    assert evaluate(intrinsic("fmod", x, y), {x: -7, y: 4}) == -3
    assert evaluate(intrinsic("fma", x, y, x), {x: 3, y: 4}) == 15
    assert [evaluate(intrinsic(n, x), {x: math.nan}) for n in ("isnan", "isinf", "isfinite")] == [
        True,
        False,
        False,
    ]
    assert [evaluate(intrinsic(n, x), {x: -math.inf}) for n in ("isnan", "isinf", "isfinite")] == [
        False,
        True,
        False,
    ]
    assert evaluate(intrinsic("abs", i), {i: -(2**31)}) == -(2**31)
    assert evaluate(intrinsic("abs", x), {x: -1.5}) == 1.5
    assert evaluate(intrinsic("popcount", i), {i: -1}) == 32
    assert [evaluate(intrinsic("clz", i), {i: v}) for v in (0, 1, -1)] == [32, 31, 0]
    assert evaluate(intrinsic("bitwise_not", i), {i: 5}) == -6
    u = Var("u", "uint8")
    assert evaluate(intrinsic("bitwise_not", u), {u: 5}) == 250
    assert evaluate(Call("reinterpret", (x,), "int32"), {x: 1.0}) == 0x3F800000
    assert evaluate(Call("reinterpret", (i,), "float32"), {i: 0x40000000}) == 2.0


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int64", "float32"])
def test_vectors_are_lanes(dtype):
    lanes = 4
    base, stride = const(3, dtype), const(2, dtype)
    a = Broadcast(const(5, dtype), lanes) if dtype == "float32" else Ramp(base, stride, lanes)
    b = Broadcast(const(2, dtype), lanes)
    left = [5.0] * 4 if dtype == "float32" else [3, 5, 7, 9]
    for op in ("add", "sub", "mul", "floordiv", "floormod", "min", "max", *COMPARE):
        assert list(evaluate(Binary(op, a, b))) == [BINARY[op].fold(v, 2) for v in left], op
    chosen = Select(Binary("lt", a, Broadcast(const(6, dtype), lanes)), a, b)
    assert list(evaluate(chosen)) == [v if v < 6 else 2 for v in left]
    assert list(evaluate(Not(Binary("lt", a, b)))) == [not v < 2 for v in left]
    assert list(evaluate(Cast("float64x4", a))) == [float(v) for v in left]


def test_ramps_wrap():
    assert list(evaluate(Ramp(const(120, "int8"), const(4, "int8"), 4))) == [120, 124, -128, -124]
    assert list(evaluate(Ramp(const(3), const(-2), 3))) == [3, 1, -1]
    assert list(evaluate(Ramp(const(3), const(0), 3))) == [3, 3, 3]


def random_expression(rng, leaves, depth):
    """(expression, NumPy value) of one dtype over the leaves, which hold arrays."""
    if depth == 0 or rng.random() < 0.15:
        return rng.choice(leaves)
    op = rng.choice([o for o in ARITHMETIC if o not in ("truncdiv", "truncmod")])
    (a, u), (b, v) = (random_expression(rng, leaves, depth - 1) for _ in range(2))
    table = {
        "add": np.add,
        "sub": np.subtract,
        "mul": np.multiply,
        "floordiv": np.floor_divide,
        "floormod": np.remainder,
        "min": np.minimum,
        "max": np.maximum,
        "bitand": np.bitwise_and,
        "bitor": np.bitwise_or,
        "bitxor": np.bitwise_xor,
        "shl": np.left_shift,
        "shr": np.right_shift,
    }
    with np.errstate(all="ignore"):
        return Binary(op, a, b), table[op](u, v)


@pytest.mark.parametrize("dtype", ["int8", "int32", "uint32", "int64"])
def test_random_integer_programs_equal_numpy(dtype):
    rng = rnd.Random(5)
    n = 16
    for trial in range(60):
        start = rng.choice([0, 0, 1, 100])
        i = Var("i", dtype)
        A = decl_buffer((n,), dtype, "A")
        low, high = dt.integer_range(dtype)
        a = np.array(
            [rng.choice([low, high, 0, 1, rng.randint(low, high), rng.randint(0, 9)]) for _ in range(n)],
            dtype,
        )
        at = Cast("int32", i) - start
        leaves = [(i, np.arange(start, start + n).astype(dtype)), (A[at], a)]
        leaves += [(const(c, dtype), np.full(n, c, dtype)) for c in (0, 1, 2, 7, 32)]
        e, want = random_expression(rng, leaves, 5)
        B, got = decl_buffer((n,), dtype, "B"), np.zeros(n, dtype)
        run(function(loop(i, n, Store(B, e, (at,)), min=start), A, B), a, got)
        np.testing.assert_array_equal(got, want, err_msg=f"trial {trial}: {e}")


def test_constants_are_rounded_to_their_dtype():
    assert evaluate(FloatImm(0.1, "float32")) == np.float32(0.1)
    assert evaluate(FloatImm(0.1, "bfloat16")) == ml_dtypes.bfloat16(0.1)
    assert evaluate(IntImm(1, "bool")) is True
