"""Every row of the operator table is complete: names, evaluation, code; expansions mean what rows evaluate."""
from __future__ import annotations

import math

import numpy as np
import pytest

import tilewright as tw
from tilewright import te
from tilewright.codegen.llvm import emit  # noqa: F401  (fills the table of rules)
from tilewright.codegen.llvm.context import CALLS
from tilewright.formulas import FUNCTIONS
from tilewright.script import tir as T
from tilewright.script.language import lookup
from tilewright.tir import dtype as dt
from tilewright.tir import evaluate, ops
from tilewright.tir.arithmetic import intrinsic
from tilewright.tir.expansion import expanded
from tilewright.tir.expr import Cast, Let, Var
from tilewright.tir.interp.support import row_function
from tilewright.tir.ops import INTRINSICS, Intrinsic
from tilewright.tir.verify.types import type_mismatch

NUMBERS = [name for name, row in INTRINSICS.items() if row.operands]


@pytest.mark.parametrize("name", NUMBERS)
def test_a_function_of_numbers_is_complete(name):
    row = INTRINSICS[name]
    assert name in te.__all__ and te.math.FUNCTIONS[name].__doc__
    assert lookup(name) is getattr(T, name)
    assert row.kind != "math" or (row.evaluate is not None and row.operands == "float" and row.ulp is not None)
    assert name in CALLS or row.llvm or name in FUNCTIONS or row.expansion is not None
    assert not (row.llvm and name in CALLS), "two ways to become code"
    wrong = "int32" if row.operands == "float" else "float32"
    call = intrinsic(name, *[Var("x", "float32" if wrong == "int32" else "int32")] * row.arity)
    assert not type_mismatch(call)
    assert type_mismatch(call.replace(args=tuple([Var("x", wrong)] * row.arity)))


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16"])
@pytest.mark.parametrize("name", [name for name in NUMBERS if INTRINSICS[name].expansion is not None
                                  and INTRINSICS[name].operands != "integer"])
def test_an_expansion_means_what_the_row_evaluates(name, dtype):
    arity, rng = INTRINSICS[name].arity, np.random.default_rng(0)
    variables = [Var(f"x{k}", dtype) for k in range(arity)]
    call = intrinsic(name, *variables)
    special = [0.0, -0.0, 1.0, math.inf, -math.inf, math.nan, 1e30, 1e-30]
    for values in [*([v] * arity for v in special), *rng.normal(0, 4, (50, arity))]:
        env = {x: dt.numpy_dtype(dtype).type(v) for x, v in zip(variables, values)}
        got, want = (float(evaluate(e, env)) for e in (expanded(call), call))
        np.testing.assert_allclose(got, want, rtol={"float64": 4e-16, "float32": 3e-7, "bfloat16": 0}[dtype])


@pytest.mark.parametrize("name", [name for name in NUMBERS if INTRINSICS[name].expansion is not None
                                  and INTRINSICS[name].kind == "math"])
def test_code_of_an_expansion_is_as_exact_as_the_row_says(name):
    """Vectors of float32 against the row's `evaluate` in float64, over many sizes of arguments."""
    random, shape, exact = np.random.default_rng(0), (INTRINSICS[name].arity, 4000), row_function(name, "float64")
    sizes = random.choice([-1, 1], shape) * 2.0 ** random.uniform(-40, 40, shape)
    x = np.where(random.random(shape) < 0.5, random.uniform(-20, 20, shape), sizes).astype("float32")
    ins = [te.placeholder(shape[1:], name=f"In{k}") for k in range(shape[0])]
    out = te.compute(shape[1:], lambda i: getattr(te, name)(*[t[i] for t in ins]), name="Out")
    s = te.create_schedule(out.op)
    s[out].vectorize(s[out].split(out.op.axis[0], factor=8)[1])
    got = np.zeros(shape[1], "float32")
    with np.errstate(all="ignore"):
        want = np.array([exact(*values) for values in x.T.tolist()])
    tw.build(s, [*ins, out])(*x, got)
    rounded = want.astype("float32")
    known = np.isfinite(rounded)
    np.testing.assert_array_equal(got[~known], rounded[~known])
    wrong = np.abs(got[known] - want[known]) / np.spacing(np.abs(rounded[known]))
    assert known.sum() > 1000 and wrong.max() <= INTRINSICS[name].ulp[0], wrong.max()


@pytest.mark.parametrize("dtype", ["int8", "int32", "uint16", "uint64"])
def test_an_expansion_of_integers_means_what_the_row_evaluates(dtype):
    x = Var("x", dtype)
    for value in (0, 1, 77, *dt.integer_range(dtype)):
        call = intrinsic("bitwise_not", x)
        assert evaluate(expanded(call), {x: value}) == evaluate(call, {x: value})


def test_an_expansion_computes_each_argument_once(monkeypatch):
    row = Intrinsic(2, "math", math.hypot, operands="float", expansion=lambda f, x, y: f.sqrt(x * x + y * y))
    monkeypatch.setitem(ops.INTRINSICS, "length", row)
    x = Var("x", "float16")
    out = expanded(intrinsic("length", x + 1, x))
    assert isinstance(out, Let) and isinstance(out.body, Let) and isinstance(out.body.body, Cast)
    assert out.var.dtype == "float32" and out.dtype == "float16"
    assert evaluate(out, {x: np.float16(3)}) == 5


@pytest.mark.parametrize("name, reference", [("asinh", np.arcsinh), ("acosh", np.arccosh), ("atanh", np.arctanh)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_area_functions_keep_every_range(name, reference, dtype):
    info, rng = np.finfo(dtype), np.random.default_rng(0)
    bits = rng.integers(0, 2**info.bits - 1, 20000, dtype=f"uint{info.bits}").view(dtype)
    edges = [0, -0.0, 1, -1, np.inf, -np.inf, np.nan, info.max, info.min, info.tiny, info.smallest_subnormal,
             -info.smallest_subnormal, 1 + info.eps, 1 - info.epsneg, 0.5, -0.5, 1e8, -1e8, 1.1e8]
    near = [rng.uniform(-3, 3, 5000), 1 + rng.exponential(1e-3, 5000), 10 ** rng.uniform(-9, 20, 5000)]
    x = np.concatenate([bits, np.array(edges, dtype), *(v.astype(dtype) for v in near)])
    a = te.placeholder(x.shape, dtype, name="A")
    b = te.compute(x.shape, lambda i: getattr(te, name)(a[i]), name="B")
    out = np.zeros_like(x)
    tw.build(te.create_schedule(b.op), [a, b])(x, out)
    with np.errstate(all="ignore"):
        exact = reference(x.astype("longdouble"))
    want = exact.astype(dtype)
    np.testing.assert_array_equal(np.isnan(out), np.isnan(want))
    known = ~np.isnan(want)
    np.testing.assert_array_equal(np.signbit(out[known]), np.signbit(want[known]))
    finite = np.isfinite(want)
    np.testing.assert_array_equal(out[known & ~finite], want[known & ~finite])
    wrong = np.abs(out[finite] - exact[finite]) / np.spacing(np.abs(want[finite])).astype("longdouble")
    assert wrong.max() < INTRINSICS[name].ulp[dtype == "float64"], f"{name}({x[finite][wrong.argmax()]!r})"
    call = intrinsic(name, Var("x", dtype))
    for k in range(0, len(x), 199):
        np.testing.assert_allclose(float(evaluate(call, {call.args[0]: x[k]})), want[k], rtol=2 * info.eps)


def test_fabs_is_the_absolute_value():
    assert str(te.fabs(Var("x", "float32"))) == str(T.fabs(Var("x", "float32"))) == "T.abs(x)"
