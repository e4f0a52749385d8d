"""How expressions are built: dtypes, promotion, folding, and what is refused."""

import math

import numpy as np
import pytest

from tilewright import te
from tilewright.support.errors import ArgumentError, IRError
from tilewright.tir import (
    Binary,
    Broadcast,
    FloatImm,
    IntImm,
    IterVar,
    Load,
    Ramp,
    Var,
    all_of,
    any_of,
    binary,
    cast,
    ceildiv,
    const,
    convert,
    decl_buffer,
    evaluate,
    floordiv,
    floormod,
    if_then_else,
    intrinsic,
    is_const,
    logical_not,
    max_value,
    maximum,
    min_value,
    minimum,
    power,
    range_of,
    select,
    structural_equal,
    truncdiv,
    truncmod,
)
from tilewright.tir import dtype as dt

x, y, wide = Var("x"), Var("y"), Var("w", "int64")
f, h, u, b = Var("f", "float32"), Var("h", "float16"), Var("u", "uint8"), Var("b", "bool")


@pytest.mark.parametrize(
    "e, dtype",
    [
        (x + 1, "int32"),
        (1 + wide, "int64"),
        (x + wide, "int64"),
        (f + 1, "float32"),
        (f + x, "float32"),
        (h * f, "float32"),
        (u + 255, "uint8"),
        (x < y, "bool"),
        (f == 1, "bool"),
        (f / 2, "float32"),
        (1 / f, "float32"),
        (f**2, "float32"),
        (x & y, "int32"),
        (b & True, "bool"),
        (abs(x), "int32"),
        (-f, "float32"),
        (x % 7, "int32"),
        (np.float32(2) * f, "float32"),
        (np.int64(3) + x, "int32"),
        (np.float64(2) * f, "float32"),
        (if_then_else(x < 1, 1, 2.0), "float32"),
        (intrinsic("pow", f, 2), "float32"),
        (intrinsic("pow", f, x), "float32"),
        (intrinsic("isnan", f), "bool"),
        (Broadcast(f, 4) + 1, "float32x4"),
        (Ramp(x, IntImm(1), 8) < Broadcast(y, 8), "boolx8"),
        (Broadcast(x, 4) * y, "int32x4"),
        (cast("float32x4", x), "float32x4"),
        (IterVar(range_of(0, 4), x) + 1, "int32"),
    ],
)
def test_dtypes(e, dtype):
    assert e.dtype == dtype


@pytest.mark.parametrize("number, dtype", [
    (0.5, "float32"), (np.float64(0.5), "float64"), (np.float16(0.5), "float16")])
def test_a_float_beside_an_integer_gives_a_float(number, dtype):
    for e in (x * number, number * x, te.maximum(x, number), te.if_then_else(x > 0, x, number)):
        assert e.dtype == dtype
    assert evaluate(x * number + number, {x: 3}) == 2.0


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: u + x, "operands are uint8 and int32, which do not promote"),
        (lambda: u + 300, "300 does not fit uint8"),
        (lambda: b + 1, "combined with a bool"),
        (lambda: b + b, "on bool"),
        (lambda: x / 2, "`/` on int32 is ambiguous"),
        (lambda: f << 1, "`<<` needs integers"),
        (lambda: x // 0, "by the constant 0"),
        (lambda: x**2, r"`\*\*` on int32"),
        (lambda: -u, "negation of uint8"),
        (lambda: x and y, "truth value"),
        (lambda: 0 < x < 3, "truth value"),
        (lambda: logical_not(x), "`not` needs a bool"),
        (lambda: binary("and", x, y), "`and` needs bool operands"),
        (lambda: if_then_else(x, 1, 2), "the condition is int32"),
        (lambda: select(f, 1, 2), "the condition is float32"),
        (lambda: intrinsic("exp", x), "exp of int32"),
        (lambda: intrinsic("isnan", x), "isnan of int32"),
        (lambda: intrinsic("popcount", f), "popcount needs an integer"),
        (lambda: intrinsic("exp"), r"exp takes 1 argument\(s\), 0 given"),
        (lambda: intrinsic("foo", x), "there is no function 'foo'"),
        (lambda: const(1.5, "int32"), "is not an integer"),
        (lambda: const(-1, "uint8"), "does not fit uint8"),
        (lambda: convert(None), "is not an expression"),
        (lambda: Var("p", "handle") + 1, "on a pointer"),
        (lambda: Broadcast(x, 4) + Broadcast(x, 8), "4 and 8 lanes"),
        (lambda: x.astype("floaty"), "is not a dtype"),
        (lambda: x.astype("handle"), "a cast of int32 to handle: a pointer is no number"),
        (lambda: Var("p", "handle").astype("int64"), "a cast of handle to int64: a pointer is no number"),
        (lambda: Broadcast(x, 4).astype("int8"), "a cast of int32x4 to int8: a vector keeps its lanes"),
        (lambda: Broadcast(x, 4).astype("float32x8"), "a cast of int32x4 to float32x8: a vector keeps its lanes"),
        (lambda: Binary("add", x, f), "operands are int32 and float32"),
        (lambda: decl_buffer((-1,)), "is not a natural number"),
        (lambda: decl_buffer((1.5,)), "is not a natural number"),
        (lambda: decl_buffer((4, u)), r"buffer buffer: extent 1 is u, of type uint8: a size is an int32 or int64"),
        (lambda: decl_buffer((4,), strides=(u,)), "stride 0 is u, of type uint8"),
        (lambda: decl_buffer((4,), elem_offset=u), "offset is u, of type uint8"),
        (lambda: decl_buffer((4,))[x, x], r"1 dimension\(s\), 2 index\(es\) given"),
        (lambda: decl_buffer((4,))[f], "index f is float32"),
    ],
)
def test_refusals(make, message):
    with pytest.raises(IRError, match=message):
        make()


@pytest.mark.parametrize(
    "e, value",
    [
        (const(7) // -2, -4),
        (const(7) % -2, -1),
        (truncdiv(const(-7), 2), -3),
        (truncmod(const(-7), 2), -1),
        (floordiv(-7, 2), -4),
        (floormod(-7, 2), 1),
        (const(5) << 2, 20),
        (const(-8) >> 1, -4),
        (maximum(2, 3), 3),
        (minimum(2, 3), 2),
        (ceildiv(7, 4), 2),
        (x * 0, 0),
        (x % 1, 0),
        (const(3) < 4, 1),
        (all_of(), 1),
        (any_of(), 0),
    ],
)
def test_constants_fold(e, value):
    assert is_const(e, value)


def test_neutral_elements_vanish():
    assert x + 0 is x and 0 + x is x and x * 1 is x and x // 1 is x and x - 0 is x and x << 0 is x
    assert all_of(x < y) is not None and structural_equal(all_of(x < y), x < y)
    assert is_const(all_of(x < y, False), 0) and is_const(any_of(x < y, True), 1)


def test_what_must_not_fold():
    assert isinstance(const(2**31 - 1) + 1, Binary), (
        "the sum does not fit int32; its value is the wrapped one"
    )
    assert evaluate(const(2**31 - 1) + 1) == -(2**31)
    assert isinstance(const(5) << -1, Binary) and isinstance(const(5) << 40, Binary)
    assert isinstance(const(-(2**31)) // -1, Binary)
    assert isinstance(f + 0, Binary), "-0.0 + 0.0 is 0.0"


def test_and_or_of_bools_have_one_spelling():
    assert (b & (x < y)).op == "and" and (b | (x < y)).op == "or" and (b ^ b).op == "bitxor"
    assert structural_equal(~b, logical_not(b)) and logical_not(logical_not(b)) is b


def test_equality_builds_and_its_truth_is_structural():
    assert (x == y).op == "eq" and (x != y).op == "ne"
    assert bool(x + 1 == x + 1) and not bool(x + 1 == x + 2) and bool(x != y)
    assert const(3) == 3 and not const(3) == 4 and const(3) != 4
    assert len({x, y, x}) == 2 and hash(x) != hash(y)
    A = decl_buffer((4,), name="A")
    assert bool(A[x] == A[x]) and not bool(A[x] == A[y])


def test_casts_of_constants():
    assert cast("float32", 3).value == 3.0 and cast("int8", const(5)).value == 5
    assert not isinstance(cast("int8", const(300)), IntImm)
    assert evaluate(cast("int8", const(300))) == 44
    widened = cast("float64", FloatImm(0.1, "float32"))
    assert widened.value == float(np.float32(0.1)), "the constant is rounded to its own dtype first"


def test_negation_keeps_the_sign_of_zero():
    assert math.copysign(1, evaluate(-f, {f: 0.0})) == -1


def test_limits():
    assert min_value("float32").value == -math.inf and max_value("uint8").value == 255
    assert min_value("int16").value == -(2**15) and max_value("int64").value == 2**63 - 1


def test_vector_loads():
    A = decl_buffer((8, 8), name="A")
    v = A.vload((x, y), "float32x4")
    assert isinstance(v, Load) and v.dtype == "float32x4" and isinstance(v.indices[-1], Ramp)
    assert A.vload((x, y)).dtype == "float32"


def test_power_is_floating_point():
    assert power(2.0, f).dtype == "float32"


@pytest.mark.parametrize(
    "given, name",
    [
        ("int", "int32"),
        ("float", "float32"),
        ("double", "float64"),
        ("uint1", "bool"),
        (int, "int32"),
        (float, "float32"),
        (bool, "bool"),
        (np.float16, "float16"),
        (np.dtype("uint8"), "uint8"),
        ("float32x4", "float32x4"),
        ("int8x1", "int8"),
    ],
)
def test_dtype_spellings(given, name):
    assert dt.canonical(given) == name


@pytest.mark.parametrize("wrong", ["x4", "float32x", "float32x0", "float31", "", "float32x-1", "float32x04"])
def test_wrong_dtypes(wrong):
    with pytest.raises(IRError, match="is not a dtype"):
        dt.parse(wrong)
    with pytest.raises((ArgumentError, IRError)):
        dt.canonical(object)
    with pytest.raises(ArgumentError, match="None is not a dtype"):          # to NumPy it is float64
        dt.canonical(None)


def test_dtype_facts():
    assert [dt.bytes_of(t) for t in ("bool", "int8", "bfloat16", "float32x8", "handle")] == [1, 1, 2, 4, 8]
    assert dt.numpy_dtype("bfloat16").itemsize == 2 and dt.numpy_dtype("float32x4") == np.float32
    assert dt.integer_range("int8") == (-128, 127) and dt.integer_range("uint64") == (0, 2**64 - 1)
    assert dt.promote("float32", "int64x4") == "float32x4" and dt.promote("int8", "int32") == "int32"
    assert dt.is_integer("uint8") and not dt.is_integer("bool") and not dt.is_signed("uint8")


@pytest.mark.parametrize("dtype", ["bool", "int8", "int64", "uint8", "uint64", "float16", "float32", "float64",
                                   "bfloat16", "float8_e5m2"])
def test_a_constant_of_numpy_keeps_its_dtype(dtype):
    value = np.ones(1, dt.numpy_dtype(dtype))[0]
    assert const(value).dtype == convert(value).dtype == te.const(value).dtype == dtype
    assert const(value, "float32").dtype == "float32"
    assert const(value).value == 1


def test_a_constant_of_python_has_the_dtype_that_holds_it():
    assert [const(v).dtype for v in (True, 1, -2**31, 2**31, 0.1, 3.4e38, 3.41e38, math.inf, math.nan)] == [
        "bool", "int32", "int32", "int64", "float32", "float32", "float64", "float32", "float32"]
    assert const(np.float64(0.1)).value == 0.1


@pytest.mark.parametrize("value, dtype, bounds", [
    (65520.0, "float16", "-65504 to 65504"), (3.5e38, "float32", "3.40282e+38"), (np.float64(1e39), "float32", "e+38"),
    (10**400, "float64", "1.79769e+308"), (10**400, "float16", "65504"), (465.0, "float8_e4m3fn", "-448 to 448"),
    (300, "uint8", "0 to 255"), (-1, "uint64", "0 to"), (2**63, None, "int64"),
])
def test_a_constant_that_its_dtype_does_not_hold_is_refused(value, dtype, bounds):
    with pytest.raises(IRError, match=r"the constant .* does not fit") as error:
        const(value, dtype)
    assert bounds in str(error.value)


def test_what_is_rounded_into_the_range_fits_and_so_do_infinities():
    assert [dt.nearest(const(v, d).value, d) for v, d in
            ((65519.9, "float16"), (464.0, "float8_e4m3fn"), (-math.inf, "float16"))] == [65504.0, 448.0, -math.inf]
    assert const(1e30, "float32").astype("float16").value == math.inf          # a cast of a constant is a cast
