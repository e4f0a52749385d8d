"""Elementary functions against 80-bit arithmetic: the stated bounds in units of the last place,
and special values.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable

import mpmath
import numpy as np
import pytest
from kernels import HOST, Cpu, elementwise, flat, loaded, ramp, vector

import tilewright as tw
from tilewright import te
from tilewright.formulas import FUNCTIONS, formula
from tilewright.tir import evaluate
from tilewright.tir.arithmetic import intrinsic
from tilewright.tir.dtype import with_lanes
from tilewright.tir.expr import Broadcast, Cast, Expr, FloatImm, Var
from tilewright.tir.ops import INTRINSICS
from tilewright.tir.stmt import Store, loop

pytestmark = [
    pytest.mark.skipif(np.finfo(np.longdouble).nmant != 63, reason="the reference needs 80-bit long double"),
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
]
LINUX = "x86_64-unknown-linux-gnu"
# (target, lanes in float32, slack in ulp): FMA is missing on the last
TARGETS = {"host": (HOST, 16, 0.0), "scalar": (HOST, 1, 0.0), "avx2": (Cpu("haswell", triple=LINUX), 8, 0.0),
           "sse2": (Cpu("x86-64", triple=LINUX), 4, 1.0)}
SPECIAL = [
    0.0,
    0.5,
    1.0,
    2.0,
    3.0,
    7.0,
    np.inf,
    np.nan,
    1e-45,
    1e-40,
    1e-310,
    5e-324,
    1e-8,
    1e-4,
    0.99999,
    1.00001,
    1e15,
    1e22,
    1e30,
    1e300,
    3.4e38,
    1.7e308,
    88.7,
    88.8,
    89.0,
    87.5,
    103.9,
    104.1,
    709.7,
    709.8,
    710.4,
    745.0,
    745.2,
    746.0,
    127.99,
    128.0,
    149.5,
    150.5,
    1023.9,
    1074.0,
    1075.5,
    0.41421356,
    2.41421356,
    np.pi / 2,
    np.pi,
    355.0,
    4194304.0,
    16777216.0,
    9007199254740992.0,
    1647099.0,
    1647100.5,
    6381956970095103.0 * 2.0**797,
]
DOMAIN = {
    "exp": (-750, 712),
    "exp2": (-1080, 1026),
    "expm1": (-45, 712),
    "tanh": (-22, 22),
    "sigmoid": (-750, 750),
    "sinh": (-712, 712),
    "cosh": (-712, 712),
    "asin": (-1, 1),
    "acos": (-1, 1),
    "erf": (-6.5, 6.5),
    "log": (0.3, 3),
    "log2": (0.3, 3),
    "log10": (0.3, 3),
    "log1p": (-0.9999, 3),
    "sin": (-50, 50),
    "cos": (-50, 50),
    "tan": (-50, 50),
    "atan": (-20, 20),
}
ARITY = {name: arity for name, (_, arity) in FUNCTIONS.items()}
BOUND = {name: INTRINSICS[name].ulp for name in FUNCTIONS}
NUMPY = {"asin": "arcsin", "acos": "arccos", "atan": "arctan", "atan2": "arctan2", "pow": "power"}


def compiled(dtype: str, lanes: int, target: Cpu) -> dict[str, Callable[..., np.ndarray]]:
    """Every function, mapped over arrays, in one module."""
    n, i = Var("n", "int64"), Var("i", "int64")
    at = ramp(i * lanes, lanes)
    funcs = []
    for name, arity in ARITY.items():
        xs, out = [vector(f"A{k}", n, dtype) for k in range(arity)], vector("B", n, dtype)
        store = Store(out, intrinsic(name, *(x[at] for x in xs)), (at,))
        funcs.append(flat(f"map_{name}", [*xs, out], loop(i, n // lanes, store)))
    keep, address = loaded(funcs, target)

    def caller(name: str) -> Callable[..., np.ndarray]:
        arity = ARITY[name]
        kernel = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * (arity + 1), ctypes.c_int64)(
            address[f"map_{name}"]
        )

        def call(*arrays: np.ndarray) -> np.ndarray:
            size = len(arrays[0])
            padded = [np.concatenate([a, np.ones(-size % lanes, dtype)]).astype(dtype) for a in arrays]
            out = np.empty_like(padded[0])
            kernel(*(a.ctypes.data for a in padded), out.ctypes.data, len(out))
            return out[:size]
        call.keep = keep  # type: ignore[attr-defined]
        return call
    return {name: caller(name) for name in ARITY}


@functools.cache
def without_fma(back_end: str, dtype: str) -> dict[str, Callable[..., np.ndarray]]:
    return compiled(dtype, 4, Cpu("x86-64", triple=LINUX))


def arguments(name: str, dtype: str, size: int) -> list[np.ndarray]:
    rng = np.random.default_rng(len(name))
    integer = np.uint32 if dtype == "float32" else np.uint64
    special = np.array([*SPECIAL, *(-x for x in SPECIAL)]).astype(dtype)
    def any_bits() -> np.ndarray:
        return rng.integers(0, np.iinfo(integer).max, size, dtype=integer, endpoint=True).view(dtype)
    if ARITY[name] == 1:
        low, high = DOMAIN[name]
        if dtype == "float32" and high > 100:
            low, high = low / 7, high / 7
        signed = 10.0**rng.uniform(-12, 8, size) * rng.choice([-1, 1], size)
        return [
            np.concatenate(
                [
                    special,
                    rng.uniform(low, high, size).astype(dtype),
                    any_bits(),
                    signed.astype(dtype),
                    (rng.normal(size=size) * 0.1).astype(dtype),
                ]
            )
        ]
    grid = [g.ravel() for g in np.meshgrid(special, special)]
    range_ = 300 if dtype == "float32" else 1500
    extra = {
        "pow": [np.concatenate([10.0**rng.uniform(-3, 3, size), rng.uniform(0.5, 2, size)]),
                np.concatenate([rng.uniform(-20, 20, size), rng.uniform(-range_, range_, size)])],
        "fmod": [10.0**rng.uniform(-10, 12, size), 10.0**rng.uniform(-5, 5, size)],
        "atan2": [rng.normal(size=size) * 10.0**rng.integers(-3, 3, size), rng.normal(size=size)],
    }[name]
    return [np.concatenate([g, e.astype(dtype), any_bits()]) for g, e in zip(grid, extra)]


def exact(name: str, xs: list[np.ndarray]) -> np.ndarray:
    wide = [x.astype(np.longdouble) for x in xs]
    if name == "sigmoid":
        e = np.exp(-np.abs(wide[0]))
        return np.where(wide[0] >= 0, 1 / (1 + e), e / (1 + e))
    if name == "erf":
        mpmath.mp.prec = 80
        return np.array(
            [
                np.longdouble(mpmath.nstr(mpmath.erf(mpmath.mpf(float(v))), 25))
                if np.isfinite(v) and v != 0
                else np.clip(v, -1, 1)
                for v in xs[0]
            ]
        )
    return getattr(np, NUMPY.get(name, name))(*wide)


@functools.cache
def expected(name: str, dtype: str) -> tuple[list[np.ndarray], np.ndarray]:
    xs = arguments(name, dtype, 300 if name == "erf" else 3000)
    return xs, exact(name, xs)


def errors(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """Distance in ulp of the rounded exact value; infinity where a NaN, an infinity or the sign of
    a zero is wrong.
    """
    dtype = got.dtype
    rounded = want.astype(dtype)
    unit = np.abs(np.spacing(np.where(np.isfinite(rounded), rounded, 1).astype(dtype))).astype(np.longdouble)
    distance = np.abs(got.astype(np.longdouble) - want) / np.maximum(unit, np.finfo(dtype).smallest_subnormal)
    same = (got == rounded) | (np.isnan(got) & np.isnan(rounded))
    at_the_edge = np.fmin(np.abs(got), np.abs(rounded)) >= np.finfo(dtype).max * (1 - 4 * np.finfo(dtype).eps)
    distance = np.where(
        np.isfinite(rounded) & np.isfinite(got), distance, np.where(same | at_the_edge, 0, np.inf)
    )
    wrong_sign = (got == 0) & (rounded == 0) & (np.signbit(got) != np.signbit(rounded))
    return np.where(wrong_sign, np.inf, distance)


@pytest.mark.parametrize("dtype", ("float32", "float64"))
@pytest.mark.parametrize("target", TARGETS)
def test_error_bounds(target: str, dtype: str) -> None:
    cpu, lanes, slack = TARGETS[target]
    functions = compiled(dtype, max(1, lanes // (2 if dtype == "float64" else 1)), cpu)
    for name, function in functions.items():
        xs, want = expected(name, dtype)
        got = function(*xs)
        error = errors(got, want)
        worst = int(np.argmax(error))
        bound = BOUND[name][dtype == "float64"]
        assert error[worst] <= bound + (slack if bound else 0), (
            f"{name}({', '.join(repr(float(x[worst])) for x in xs)}) = {float(got[worst])!r}, "
            f"exactly {want[worst]}: {float(error[worst]):.2f} ulp")


@pytest.mark.parametrize("dtype", ("float32", "float64"))
@pytest.mark.parametrize("exponent", [2.0, 3.0])
@pytest.mark.parametrize("target", TARGETS)
def test_squares_and_cubes_are_powers(target: str, exponent: float, dtype: str, back_end: str) -> None:
    """Within the bound of powers, where these are finite, round to zero, or are neither."""
    cpu, lanes, slack = TARGETS[target]
    largest = np.finfo(dtype).max ** (1 / exponent)
    rng = np.random.default_rng(3)
    x = np.concatenate([arguments("atan", dtype, 3000)[0], *(s * largest * rng.uniform(0.9, 1.1, 500) for s in (-1, 1)),
                        np.finfo(dtype).tiny ** (1 / exponent) * rng.uniform(-2, 2, 500)]).astype(dtype)
    x = np.concatenate([x, np.ones(-len(x) % 16, dtype)])
    got = elementwise(lambda a: intrinsic("pow", a, exponent), [x], dtype, lanes, cpu)
    want = x.astype(np.longdouble) ** int(exponent)
    assert np.max(errors(got, want)) <= BOUND["pow"][dtype == "float64"] + slack


@pytest.mark.parametrize("lanes", [1, 16])
def test_an_exponent_is_what_its_casts_make_of_it(lanes: int, back_end: str) -> None:
    x = np.linspace(2, 5, 32, dtype="float32")

    def power(between: str) -> Callable[[Expr], Expr]:
        three: Expr = FloatImm(3.0, "float64")
        if lanes > 1:
            three = Broadcast(three, lanes)
        return lambda a: intrinsic("pow", a, Cast(a.dtype, Cast(with_lanes(between, lanes), three)))
    for between, exponent in {"bool": 1, "int8": 3, "float16": 3, "float64": 3}.items():
        np.testing.assert_allclose(elementwise(power(between), [x], "float32", lanes), x**exponent, rtol=1e-6)


@pytest.mark.parametrize("dtype", ("float32", "float64"))
@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name != "fmod"])
def test_the_interpreter_runs_the_formula(name: str, dtype: str, back_end: str) -> None:
    """As machine code without fused multiply-adds, bit for bit."""
    f = formula(name, dtype)
    e = f.expr()
    xs = [x[np.random.default_rng(1).permutation(len(x))[:400]] for x in arguments(name, dtype, 300)]
    got = np.array([evaluate(e, dict(zip(f.params, values))) for values in zip(*xs)], dtype)
    want = without_fma(back_end, dtype)[name](*xs)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    integer = np.uint32 if dtype == "float32" else np.uint64
    np.testing.assert_array_equal(got[~np.isnan(got)].view(integer), want[~np.isnan(got)].view(integer))


@pytest.mark.parametrize("dtype", ("float16", "bfloat16"))
def test_small_floats_are_rounded_once_from_float32(dtype: str) -> None:
    x = np.linspace(-4, 4, 64, dtype="float32")
    for name, reference in {"exp": np.exp, "tanh": np.tanh, "sin": np.sin}.items():
        got = elementwise(lambda a, name=name: intrinsic(name, a), [x.astype(_numpy(dtype))], dtype, 16)
        want = reference(x.astype(_numpy(dtype)).astype("float64")).astype("float32").astype(_numpy(dtype))
        same = got.astype("float32") == want.astype("float32")
        assert same.mean() > 0.98


def test_functions_inside_a_kernel_and_of_two_widths() -> None:
    x = np.random.default_rng(0).normal(size=64).astype("float32")
    for lanes in (1, 4, 16, 32):
        got = elementwise(lambda a: intrinsic("tanh", a) + intrinsic("exp", a), [x], "float32", lanes)
        np.testing.assert_allclose(got, np.tanh(x) + np.exp(x), rtol=1e-6, atol=1e-7)
    y = np.abs(x) + 0.5
    got = elementwise(lambda a, b: intrinsic("pow", a, b) * intrinsic("rsqrt", a), [y, x], "float32", 16)
    np.testing.assert_allclose(got, y**x / np.sqrt(y), rtol=1e-6)
    assert with_lanes("float32", 16) == "float32x16"


def _numpy(dtype: str) -> np.dtype:
    from kernels import numpy_of
    return numpy_of(dtype)


@pytest.mark.parametrize("cpu", ["x86-64-v2", "x86-64-v3", "host"])
@pytest.mark.parametrize("dtype, bound", [("float32", 103.98), ("float64", 745.2)])
def test_what_underflows_is_zero(dtype, bound, cpu):
    """Zero behind the bound, the smallest numbers before it."""
    a = np.concatenate([-np.linspace(bound - 20, bound + 20, 1001), [-np.inf, -1e30, np.nan, 0.0]]).astype(dtype)
    target = "llvm" if cpu == "host" else f"llvm -mcpu={cpu}"
    for function, reference in ((te.exp, np.exp), (te.exp2, np.exp2)):
        given = a if function is te.exp else a * a.dtype.type(1.4427)
        x, out = te.placeholder(a.shape, dtype, name="x"), np.full_like(a, 7)
        tw.compile([x, te.compute(a.shape, lambda i, f=function, x=x: f(x[i]))], target=target)(given, out)
        with np.errstate(under="ignore"):
            want = reference(given.astype("longdouble")).astype(dtype)
        np.testing.assert_allclose(out, want, rtol=1e-6, atol=2 * np.finfo(dtype).smallest_subnormal)
        np.testing.assert_array_equal(out[a < -bound - 1], 0)
