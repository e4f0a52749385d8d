"""Operators and casts against NumPy, scalar and in vectors."""
from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from kernels import elementwise, elementwise_all, numpy_of

from tilewright.tir.dtype import with_lanes
from tilewright.tir.expr import binary, cast, intrinsic, logical_not, select

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
@pytest.mark.parametrize("divisor", (1, 2, 7, 8, -3, -1))
def test_division_by_a_constant(dtype: str, lanes: int, divisor: int) -> None:
    if dtype == "uint32" and divisor < 0:
        return
    a = integers(dtype, 0)
    for op, fold in (("floordiv", lambda x: x // divisor), ("floormod", lambda x: x % divisor)):
        want = np.array([fold(int(x)) for x in a], object)
        bits = np.iinfo(dtype).bits
        want = (
            np.array([int(v) & ((1 << bits) - 1) for v in want], "uint64").astype(f"uint{bits}").astype(dtype)
        )
        same(elementwise(lambda x, op=op: binary(op, x, divisor), [a], dtype, lanes), want)


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
@pytest.mark.parametrize("target", ("int8", "int32", "int64", "uint8", "uint32", "uint64"))
def test_float_to_integer_saturates(source: str, target: str, lanes: int) -> None:
    a = np.concatenate(
        [
            floats(source, 0),
            np.array(
                [
                    3e9,
                    -3e9,
                    1e19,
                    -1e19,
                    127.9,
                    -128.9,
                    255.9,
                    2.0**31,
                    -(2.0**31),
                    2.0**63,
                    -(2.0**63),
                    2.0**64,
                    -0.9,
                    0.9,
                    1e38,
                    -1e38,
                ]
            ).astype(source),
        ]
    )
    info = np.iinfo(target)
    want = [0 if np.isnan(x) else info.max if x >= info.max else info.min if x <= info.min else int(x)
            for x in a.astype("float64")]
    same(elementwise(to(target, lanes), [a], target, lanes), np.array(want, target))


@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("source", (*INTEGERS, *FLOATS, "bool"))
@pytest.mark.parametrize("target", (*INTEGERS, *FLOATS, "bool"))
def test_casts(source: str, target: str, lanes: int) -> None:
    if source == "bool":
        a: np.ndarray = np.arange(256) % 3 == 0
    elif "float" in source:
        a = (np.random.default_rng(0).normal(size=256) * 50).astype(numpy_of(source))
        a = np.abs(a) if target.startswith("u") else np.clip(a, -100, 100).astype(numpy_of(source))
    else:
        a = integers(source, 0)
    want = a != 0 if target == "bool" else _rounded(a, target)
    same(elementwise(to(target, lanes), [a], target, lanes), want)


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
    for lanes in LANES:
        same(elementwise(to("float16", lanes), [a], "float16", lanes), a.astype("float16"))


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
