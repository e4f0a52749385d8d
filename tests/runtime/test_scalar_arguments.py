"""Arguments that are numbers: native calls and the interpreter take the same ones, and refuse the same ones."""
import ctypes
import decimal
import enum
import fractions

import ml_dtypes
import numpy as np
import pytest

import tilewright as tw
from tilewright.runtime.dtypes import numpy_dtype
from tilewright.script import from_source
from tilewright.support.errors import TilewrightError
from tilewright.tir import interp

DTYPES = ["bool", "int8", "int32", "int64", "uint8", "uint32", "uint64", "float16", "bfloat16", "float32", "float64"]


def giving(protocol, value):
    """An object whose only number is what `protocol` gives."""
    return type("Giving", (), {protocol: lambda self: value})()


class Whole(int):
    pass


class One(enum.IntEnum):
    ONE = 1


def whole_numbers():
    """(argument, its value)"""
    yield from ((v, v) for v in (0, 1, 2, -1, 127, 128, -128, -129, 255, 256, 2**31 - 1, 2**31, 2**32, 2**53 + 1,
                                 2**63 - 1, 2**63, 2**64 - 1, 2**64, -(2**63), -(2**63) - 1))
    yield from ((Whole(v), v) for v in (1, 2**63 + 5))
    yield from ((np.dtype(d).type(1), 1) for d in ("int8", "uint8", "int16", "int32", "uint32", "int64", "uint64"))
    yield from [(np.uint64(2**64 - 1), 2**64 - 1), (np.int64(-5), -5), (True, 1), (np.True_, 1), (np.False_, 0),
                (One.ONE, 1), (giving("__index__", 7), 7), (giving("__tvm_ffi_int__", 7), 7),
                (giving("__tvm_ffi_value__", 2**63), 2**63)]


def other_reals():
    yield from ((v, v) for v in (0.0, -0.0, 1.5, 2.5, 1 + 2.0**-11 + 2.0**-40, 1 + 2.0**-8 + 2.0**-40, 65520.0, 1e39,
                                 -1e300, 1e-300, np.inf, np.nan))
    yield from ((np.dtype(d).type(1.5), 1.5) for d in ("float16", "float32", "float64", "longdouble"))
    yield from [(ml_dtypes.bfloat16(1.5), 1.5), (ml_dtypes.float8_e5m2(1.5), 1.5), (fractions.Fraction(3, 2), 1.5),
                (giving("__tvm_ffi_float__", 2.5), 2.5), (giving("__tvm_ffi_value__", 2.5), 2.5)]


def no_numbers():
    yield from (None, "1", b"1", [1], (1,), {}, object(), 1j, np.complex64(1), decimal.Decimal("1.5"), np.str_("1"),
                np.datetime64(1, "s"), np.timedelta64(1, "s"), ctypes.c_int(1), giving("__float__", 1.0),
                giving("__index__", "text"), tw.nd.array(np.array(1, "int32")))
    for dtype in ("bool", "int32", "uint64", "float32"):
        yield from (np.array(1, dtype), np.array([1], dtype))


@pytest.fixture(scope="module", params=DTYPES)
def function(request):
    """(dtype, the ways to call it): C[0] = x."""
    dtype = request.param
    f = from_source(f"@T.prim_func\ndef f(x: T.{dtype}, C: T.Buffer((1,), '{dtype}')):\n    C[0] = x\n")
    built = tw.build(f)
    return dtype, (built, lambda x, c: built(C=c, x=x), lambda x, c: interp.run(f, x, c))


def results(ways, dtype, x):
    """The bits that each way stores; None where it refuses. Nothing is stored then."""
    for call in ways:
        out = np.array([1], numpy_dtype(dtype))
        try:
            call(x, out)
        except TilewrightError as error:
            assert "argument x " in str(error) and dtype in str(error)
            assert out[0] == 1
            yield None
        else:
            yield out.tobytes()


def test_integers(function):
    dtype, ways = function
    kind = numpy_dtype(dtype)
    for x, value in whole_numbers():
        if kind.kind in "iu":
            info = np.iinfo(kind)
            fits = info.min <= value <= info.max
        else:
            fits = value in (0, 1) if dtype == "bool" else True
        with np.errstate(over="ignore"):
            want = (np.array([float(value)]) if "float" in dtype else np.array([value])).astype(kind) if fits else None
        assert list(results(ways, dtype, x)) == [want if want is None else want.tobytes()] * 3, x


def test_reals(function):
    dtype, ways = function
    kind = numpy_dtype(dtype)
    for x, value in other_reals():
        got = list(results(ways, dtype, x))
        if "float" not in dtype:
            assert got == [None] * 3, x
        elif np.isnan(value):
            assert all(np.isnan(np.frombuffer(g, kind)[0]) for g in got)
        elif dtype == "bfloat16":                                # ml_dtypes rounds by way of float32
            assert len(set(got)) == 1 and np.frombuffer(got[0], kind)[0] == np.float32(nearest_bfloat(value)), x
        else:
            with np.errstate(over="ignore"):
                assert got == [np.array([value]).astype(kind).tobytes()] * 3, x


def nearest_bfloat(value):
    if not np.isfinite(value) or abs(value) > 3e38 or abs(value) < 1e-37:
        return ml_dtypes.bfloat16(value)
    place = 2.0 ** (np.frexp(value)[1] - 8)
    return np.rint(value / place) * place


def test_what_is_no_number_is_refused(function):
    dtype, ways = function
    for x in no_numbers():
        assert list(results(ways, dtype, x)) == [None] * 3, x
