"""Operators and casts against NumPy, scalar and in vectors."""
from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from kernels import Cpu, elementwise, elementwise_all, numpy_of

import tilewright as tw
from tilewright import te
from tilewright.tir.arithmetic import binary, intrinsic, logical_not, select
from tilewright.tir.conversion import cast
from tilewright.tir.dtype import with_lanes

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS = ("float16", "bfloat16", "float32", "float64")
LANES = (1, 16)


def integers(dtype: str, seed: int) -> np.ndarray:
    """256 values: all pairs of the interesting ones, then random ones."""
    info = np.iinfo(dtype)
    edge = [info.min, info.max, 0, 1, 2, 3, 7, info.max // 2]
    if info.min < 0:
        edge[-1] = -1
    pairs = np.array([(x, y) for x in edge for y in edge], dtype)[:, seed]
    rng = np.random.default_rng(seed)
    return np.concatenate([pairs, rng.integers(info.min, info.max, 192, dtype, endpoint=True)])


def floats(dtype: str, seed: int) -> np.ndarray:
    edge = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -2.5, 1e-40]
    pairs = np.array([(x, y) for x in edge for y in edge])[:, seed]
    rng = np.random.default_rng(seed)
    return np.concatenate([pairs, rng.normal(size=192) * 10.0 ** rng.integers(-3, 4, 192)]).astype(
        numpy_of(dtype)
    )


def same(got: np.ndarray, want: np.ndarray) -> None:
    """Equal, NaN with NaN; the sign of a zero is free."""
    wide = np.float64 if want.dtype.kind not in "iub" else want.dtype
    np.testing.assert_array_equal(got.astype(wide), want.astype(wide))


def operators(ops: list[str], inputs: list[np.ndarray], dtype: str, lanes: int) -> dict[str, np.ndarray]:
    return elementwise_all({op: lambda x, y, op=op: binary(op, x, y) for op in ops}, inputs, dtype, lanes)


def to(dtype: str, lanes: int) -> Any:
    return lambda x: cast(with_lanes(dtype, lanes), x)


@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("dtype", INTEGERS)
def test_integer_operators(dtype: str, lanes: int) -> None:
    a, b = integers(dtype, 0), integers(dtype, 1)
    wide_a, wide_b = a.astype(object), b.astype(object)
    def wrap(values: Any) -> np.ndarray:
        bits = np.iinfo(dtype).bits
        return (
            np.array([int(v) & ((1 << bits) - 1) for v in values], "uint64")
            .astype(f"uint{bits}")
            .astype(dtype)
        )

    def quotient(x: int, y: int) -> int:
        return 0 if y == 0 else (abs(x) // abs(y)) * (1 if (x < 0) == (y < 0) else -1)
    reference = {
        "add": wide_a + wide_b, "sub": wide_a - wide_b, "mul": wide_a * wide_b,
        "min": np.minimum(a, b), "max": np.maximum(a, b), "bitand": a & b, "bitor": a | b, "bitxor": a ^ b,
        "floordiv": [x // y if y else 0 for x, y in zip(wide_a, wide_b)],
        "floormod": [x % y if y else 0 for x, y in zip(wide_a, wide_b)],
        "truncdiv": [quotient(x, y) for x, y in zip(wide_a, wide_b)],
        "truncmod": [x - y * quotient(x, y) if y else 0 for x, y in zip(wide_a, wide_b)],
    }
    got = operators(list(reference), [a, b], dtype, lanes)
    for op, want in reference.items():
        same(got[op], wrap(want))


@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("dtype", ("int32", "int64", "uint32"))
def test_division_by_a_constant(dtype: str, lanes: int) -> None:
    a, bits = integers(dtype, 0), np.iinfo(dtype).bits
    divisors = [d for d in (1, 2, 7, 8, -3, -1) if d > 0 or dtype != "uint32"]
    cases = {f"{op} {d}": (op, d) for op in ("floordiv", "floormod") for d in divisors}
    computes = {name: lambda x, op=op, d=d: binary(op, x, d) for name, (op, d) in cases.items()}
    got = elementwise_all(computes, [a], dtype, lanes)
    for name, (op, d) in cases.items():
        exact = [int(x) // d if op == "floordiv" else int(x) % d for x in a]
        want = np.array([v & ((1 << bits) - 1) for v in exact], "uint64").astype(f"uint{bits}").astype(dtype)
        same(got[name], want)


@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("dtype", ("int8", "int32", "uint16", "int64"))
def test_shifts_beyond_the_width(dtype: str, lanes: int) -> None:
    a = integers(dtype, 0)
    b = (np.arange(256) % 70).astype(dtype)
    bits = np.iinfo(dtype).bits
    left = np.where(b < bits, a << np.minimum(b, bits - 1), 0).astype(dtype)
    right = np.where(b < bits, a >> np.minimum(b, bits - 1), np.where(a < 0, -1, 0)).astype(dtype)
    same(elementwise(lambda x, y: binary("shl", x, y), [a, b], dtype, lanes), left)
    same(elementwise(lambda x, y: binary("shr", x, y), [a, b], dtype, lanes), right)


@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("dtype", FLOATS)
def test_float_operators(dtype: str, lanes: int) -> None:
    a, b = floats(dtype, 0), floats(dtype, 1)
    with np.errstate(all="ignore"):
        reference = {"add": a + b, "sub": a - b, "mul": a * b, "div": a / b,
                     "min": np.minimum(a, b), "max": np.maximum(a, b)}
    got = operators(list(reference), [a, b], dtype, lanes)
    for op, want in reference.items():
        same(got[op], want)


@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("dtype", ("float32", "int32", "uint8", "float16"))
def test_comparisons(dtype: str, lanes: int) -> None:
    make = floats if "float" in dtype else integers
    a, b = make(dtype, 0), make(dtype, 1)
    table = {
        "eq": np.equal,
        "ne": np.not_equal,
        "lt": np.less,
        "le": np.less_equal,
        "gt": np.greater,
        "ge": np.greater_equal,
    }
    got = operators(list(table), [a, b], "bool", lanes)
    negated = elementwise_all(
        {op: lambda x, y, op=op: logical_not(binary(op, x, y)) for op in table}, [a, b], "bool", lanes
    )
    for op, fn in table.items():
        same(got[op], fn(a, b))
        same(negated[op], ~fn(a, b))


@pytest.mark.parametrize("lanes", LANES)
def test_bool_logic(lanes: int) -> None:
    a, b = np.arange(32) % 2 == 0, np.arange(32) % 3 == 0
    same(elementwise(lambda x, y: binary("and", x, y), [a, b], "bool", lanes), a & b)
    same(elementwise(lambda x, y: binary("or", x, logical_not(y)), [a, b], "bool", lanes), a | ~b)
    same(
        elementwise(lambda x, y: select(x, to("int32", lanes)(y), 7), [a, b], "int32", lanes),
        np.where(a, b, 7).astype("int32"),
    )


@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("source", ("float32", "float64", "float16"))
def test_float_to_integer_saturates(source: str, lanes: int) -> None:
    edges = [3e9, -3e9, 1e19, -1e19, 127.9, -128.9, 255.9, 2.0**31, -(2.0**31), 2.0**63, -(2.0**63), 2.0**64, -0.9, 0.9,
             1e38, -1e38]
    with np.errstate(over="ignore"):
        a = np.concatenate([floats(source, 0), np.array(edges).astype(source)])
    got = elementwise_all({t: to(t, lanes) for t in INTEGERS}, [a], {t: t for t in INTEGERS}, lanes)
    for target in INTEGERS:
        info = np.iinfo(target)
        want = [0 if np.isnan(x) else info.max if x >= info.max else info.min if x <= info.min else int(x)
                for x in a.astype("float64")]
        same(got[target], np.array(want, target))


@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("source", (*INTEGERS, *FLOATS, "bool"))
def test_casts(source: str, lanes: int) -> None:
    targets = (*INTEGERS, *FLOATS, "bool")
    if source == "bool":
        a: np.ndarray = np.arange(256) % 3 == 0
    elif "float" in source:
        a = np.clip(np.random.default_rng(0).normal(size=256) * 50, 0, 100).astype(numpy_of(source))
    else:
        a = integers(source, 0)
    got = elementwise_all({t: to(t, lanes) for t in targets}, [a], {t: t for t in targets}, lanes)
    for target in targets:
        same(got[target], a != 0 if target == "bool" else _rounded(a, target))


def _rounded(a: np.ndarray, target: str) -> np.ndarray:
    with np.errstate(all="ignore"):
        if target in ("float16", "bfloat16") and a.dtype.kind in "iu":
            return a.astype("float32").astype(numpy_of(target))
        if target == "bfloat16" and a.dtype == np.float64:
            return _double_to_bfloat16(a)
        return a.astype(numpy_of(target))


def _double_to_bfloat16(a: np.ndarray) -> np.ndarray:
    """One rounding: the candidate nearest to the exact value, the even one of two."""
    near = a.astype("float32").astype(ml_dtypes.bfloat16)
    bits = near.view("uint16").astype("int32")
    best = near.copy()
    for step in (-1, 1):
        other = (bits + step).astype("uint16").view(ml_dtypes.bfloat16)
        gain = np.abs(a - other.astype("float64")) - np.abs(a - best.astype("float64"))
        even = (other.view("uint16") & 1) == 0
        best = np.where((gain < 0) | ((gain == 0) & even), other, best)
    return best


def test_double_to_small_float_rounds_once() -> None:
    a = np.array(
        [
            1.0 + 2.0**-11 + 2.0**-40,
            1.0 + 2.0**-8 + 2.0**-40,
            1.0 + 2.0**-11,
            65519.99,
            65520.0,
            1e300,
            -1e300,
            np.inf,
            np.nan,
            2.0**-25 * (1 + 2.0**-30),
            2.0**-25,
            0.0,
            -0.0,
            3.0,
            1e-300,
            5.0,
        ]
    )
    with np.errstate(over="ignore"):
        want = a.astype("float16")
    for lanes in LANES:
        same(elementwise(to("float16", lanes), [a], "float16", lanes), want)


@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("dtype", ("float32", "float64", "float16"))
def test_native_functions(dtype: str, lanes: int) -> None:
    a = floats(dtype, 0)
    with np.errstate(all="ignore"):
        table = {
            "sqrt": np.sqrt(a),
            "floor": np.floor(a),
            "ceil": np.ceil(a),
            "trunc": np.trunc(a),
            "abs": np.abs(a),
            "round": np.rint(a),
            "nearbyint": np.rint(a),
        }
    got = elementwise_all(
        {name: lambda x, name=name: intrinsic(name, x) for name in table}, [a], dtype, lanes
    )
    for name, want in table.items():
        same(got[name], want)
    for name, fn in {"isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite}.items():
        same(elementwise(lambda x, name=name: intrinsic(name, x), [a], "bool", lanes), fn(a))


@pytest.mark.parametrize("lanes", LANES)
def test_integer_functions(lanes: int) -> None:
    a = integers("int32", 0)
    same(elementwise(lambda x: intrinsic("popcount", x), [a], "int32", lanes),
         np.array([bin(int(x) & 0xFFFFFFFF).count("1") for x in a], "int32"))
    same(elementwise(lambda x: intrinsic("clz", x), [a], "int32", lanes),
         np.array([32 - (int(x) & 0xFFFFFFFF).bit_length() for x in a], "int32"))
    same(elementwise(lambda x: ~x, [a], "int32", lanes), ~a)
    same(elementwise(lambda x: abs(x), [a], "int32", lanes), np.abs(a))
    same(
        elementwise(
            lambda x: intrinsic("reinterpret", x, dtype="float32" if lanes == 1 else "float32x16"),
            [a],
            "float32",
            lanes,
        ),
        a.view("float32"),
    )


@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("dtype", ("float32", "float64"))
def test_float_floor_division(dtype: str, lanes: int) -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.normal(size=64) * 10).astype(dtype), rng.normal(size=64).astype(dtype)
    same(elementwise(lambda x, y: binary("floormod", x, y), [a, b], dtype, lanes), np.mod(a, b))
    same(elementwise(lambda x, y: binary("floordiv", x, y), [a, b], dtype, lanes), np.floor_divide(a, b))


@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("mcpu", ("", "x86-64"))
def test_float16_of_every_bit_pattern(mcpu: str, lanes: int) -> None:
    """Also on a CPU without conversion instructions, where the steps are our own."""
    cpu = Cpu(mcpu, triple="x86_64-unknown-linux-gnu" if mcpu else None)
    a = np.arange(1 << 16, dtype="uint16").view("float16")
    same(elementwise(to("float32", lanes), [a], "float32", lanes, cpu), a.astype("float32"))
    single = np.arange(0, 1 << 32, 65521, dtype="uint32")[: 1 << 16].view("float32")
    with np.errstate(all="ignore"):
        near = np.concatenate([single, (a.astype("float32") * np.float32(1.0004883)).astype("float32")])
        want = near.astype("float16")
    got = elementwise(to("float16", lanes), [near], "float16", lanes, cpu)
    same(got, want)
    np.testing.assert_array_equal(np.signbit(got), np.signbit(want))


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("op", ["floordiv", "floormod", "truncdiv", "truncmod"])
def test_a_divisor_that_is_shifted_out_is_zero(dtype, op):
    """What is shifted is never 0, so that LLVM takes what it divides by for nonzero."""
    bits, ones = np.iinfo(dtype).bits, -1 if dtype[0] == "i" else np.iinfo(dtype).max
    amounts = np.resize(np.arange(bits + 6), 96).astype(dtype)
    dividends = np.resize(integers(dtype, 0), 96)
    x, by = (te.placeholder((96,), dtype, name=n) for n in ("x", "by"))
    for shifted, shift in ((ones, "shl"), (np.iinfo(dtype).max, "shr")):
        whole = te.const(shifted, dtype)
        y = te.compute((96,), lambda i, w=whole, move=shift: binary(op, x[i], binary(move, w, by[i])), name="y")
        s = te.create_schedule(y.op)
        s[y].vectorize(s[y].split(y.op.axis[0], factor=32)[1])
        move = int.__lshift__ if shift == "shl" else int.__rshift__
        divisors = [_wrapped(move(int(shifted), int(a)), dtype) for a in amounts]
        want = [_divided(op, int(a), b) for a, b in zip(dividends, divisors, strict=True)]
        for target in ("llvm -opt-level=3", "llvm -opt-level=2 -mcpu=x86-64-v3"):
            got = np.empty(96, dtype)
            tw.build(s, [x, by, y], target=target)(dividends, amounts, got)
            assert got.tolist() == [_wrapped(v, dtype) for v in want], target


def _wrapped(value: int, dtype: str) -> int:
    low, count = int(np.iinfo(dtype).min), 1 << np.iinfo(dtype).bits
    return (value - low) % count + low


def _divided(op: str, a: int, b: int) -> int:
    if b == 0:
        return 0
    quotient = a // b if op.startswith("floor") else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    return quotient if op.endswith("div") else a - quotient * b
