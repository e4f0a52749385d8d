"""widen_small_floats: what is left on floats of 16 and 8 bits, and that the values stay the same, bit by bit."""
import numpy as np
import pytest

from tilewright.formulas.conversions import conversions
from tilewright.lowering import lower, split
from tilewright.script import from_source
from tilewright.tir import Binary, Call, Cast, FloatImm, IRModule, Load, Store, Var, interp, walk
from tilewright.tir import dtype as dt

SMALL = list(dt.SMALL_FLOATS)
MIXED = """@T.prim_func
def main(A: T.Buffer((256,), "DTYPE"), B: T.Buffer((256,), "DTYPE"), C: T.Buffer((9, 256), "DTYPE"),
         D: T.Buffer((2, 256), "bool"), x: T.float16):
    for i in T.parallel(256):
        C[0, i] = A[i] * B[i] + A[i]
        C[1, i] = T.max(A[i], B[i]) - T.abs(B[i])
        C[2, i] = T.if_then_else(A[i] < B[i], A[i], T.Cast("DTYPE", 0.3))
        y: T.DTYPE = T.exp(A[i])
        C[3, i] = y
        C[4, i] = y / T.sqrt(y)
        C[5, i] = T.Select(i % 2 == 0, A[i], B[i] + T.Cast("DTYPE", x))
        C[6, i] = T.Cast("DTYPE", T.Cast("int32", A[i]) + i)
        D[0, i] = T.isnan(A[i])
        D[1, i] = A[i] >= T.Cast("DTYPE", 0.3)
    for i in T.vectorized(256):
        C[7, i] = A[i] + T.Cast("DTYPE", 0.3)
        C[8, i] = A[255 - i]
"""


def is_small(e):
    return dt.element_of(e.dtype) in SMALL


@pytest.mark.parametrize("dtype", SMALL)
def test_values_are_the_same_and_no_operator_is_left(dtype):
    flat = lower(from_source(MIXED.replace("DTYPE", dtype)))
    funcs = split(flat)
    kind, bits = dt.numpy_dtype(dtype), dt.bits_of(dtype)
    a, b = (np.random.default_rng(0).integers(0, 1 << bits, 256).astype(f"uint{bits}").view(kind) for _ in range(2))
    b = b[::-1].copy()
    results = []
    for what in (flat, IRModule({f.name: f for f in funcs})):
        out = np.zeros((9, 256), kind), np.zeros((2, 256), bool)
        with np.errstate(all="ignore"):
            interp.run(what, a, b, *out, 1.5)
        results.append(out)
    (want, holds), (got, same) = results
    nan = np.isnan(want.astype("float32"))
    np.testing.assert_array_equal(np.isnan(got.astype("float32")), nan)
    np.testing.assert_array_equal(got.view(f"uint{bits}")[~nan], want.view(f"uint{bits}")[~nan])
    np.testing.assert_array_equal(same, holds)
    for n in (n for f in funcs for n in walk(f.body)):
        assert not isinstance(n, FloatImm) or not is_small(n)
        assert not isinstance(n, Binary) or not is_small(n.a)
        if isinstance(n, Call) and (is_small(n) or any(map(is_small, n.args))):
            assert n.op in ("reinterpret", "if_then_else", "call_parallel")


def test_what_is_copied_is_not_converted():
    func, = split(lower(from_source("""@T.prim_func
def main(A: T.Buffer((8,), "bfloat16"), B: T.Buffer((8,), "bfloat16")):
    for i in T.vectorized(8):
        B[i] = A[i]
""")))
    store, = (n for n in walk(func.body) if isinstance(n, Store))
    assert isinstance(store.value, Load)


def test_functions_without_small_floats_stay():
    flat = lower(from_source("""@T.prim_func
def main(A: T.Buffer((8,), "float32")):
    for i in range(8):
        A[i] = A[i] + T.float32(1)
"""))
    assert split(flat) == [flat]


def test_a_small_float_on_the_way_is_a_rounding():
    x = Var("x", "float32")
    value, steps = conversions(Cast("float32", Cast("bfloat16", x)))
    assert value is x and [s.name for s in steps] == ["round_bfloat16"]
    value, steps = conversions(Cast("int8", Cast("float8_e5m2", Var("x", "float64"))))
    assert [s.name for s in steps] == ["to_odd", "round_float8_e5m2", "truncate"]
    assert conversions(Cast("float16", x), ("float16",))[1] == ["float16"]
    assert conversions(Cast("float64", Var("h", "float16")), ("float16",))[1] == ["float32", "float64"]
