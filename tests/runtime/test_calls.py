"""Calls: what the argument checker accepts, what it says about the rest, and what arrives in the slots."""
import random
import re
import sys
import types

import ml_dtypes
import numpy as np
import pytest
import runtime_kernels as kernels
from numpy.lib.stride_tricks import as_strided

import tilewright as tw
from tilewright.runtime import CallTypeError, CallValueError, array, empty, from_dlpack
from tilewright.runtime.signature import OPERATORS, Param, Signature, dim_text
from tilewright.runtime.signature_table import decode, encode, signatures_in
from tilewright.script import from_source
from tilewright.support.errors import ArgumentError, CallError


@pytest.fixture(scope="module")
def scale():
    return kernels.scale()["scale"]


def f32(*shape):
    return np.arange(int(np.prod(shape)), dtype="float32").reshape(shape)


def test_tensors_numpy_arrays_and_offsets_are_used_in_place(scale):
    a, c = f32(10), np.zeros(10, "float32")
    scale(a, c)
    np.testing.assert_array_equal(c, 2 * a)
    t, u = array(a), empty(10)
    scale(t, u)
    np.testing.assert_array_equal(u.numpy(), 2 * a)
    scale(a[3:7], c[:4])                                   # views: data pointers inside an array
    np.testing.assert_array_equal(c[:4], 2 * a[3:7])
    scale(a[:0], c[:0])


def test_arguments_by_name(scale):
    for call in (lambda a, c: scale(a, C=c), lambda a, c: scale(C=c, A=a), lambda a, c: kernels.scale()(C=c, A=a),
                 lambda a, c: kernels.scale()(a, C=c)):
        a, c = f32(5), np.zeros(5, "float32")
        call(a, c)
        np.testing.assert_array_equal(c, 2 * a)
    a, c = f32(5), np.zeros(5, "float32")
    assert kernels.scale().time_evaluator("scale", number=2)(a, C=c).min > 0
    np.testing.assert_array_equal(c, 2 * a)


@pytest.mark.parametrize("name", ["self", "args", "named", "name", "function", "f"])
def test_parameters_of_any_name(name):
    m = kernels.probe(Param(name, "float32", (3,)))
    for f in (m, m["f"], m.time_evaluator("f", number=1)):
        out, x = np.zeros(32, "int64"), f32(3)
        f(out, **{name: x})
        assert out[1] == x.ctypes.data


@pytest.mark.parametrize("args, named, message", [
    ((f32(4),), {"c": f32(4)}, r"no parameter 'c'\n\nhint: .*its parameters are A, C"),
    ((f32(4),), {"D": f32(4), "C": f32(4)}, r"no parameter 'D'"),
    ((f32(4), f32(4)), {"A": f32(4)}, r"argument A is given twice"),
    ((), {"A": f32(4)}, r"argument C is not given"),
    ((), {"C": f32(4)}, r"argument A is not given"),
    ((f32(4),), {"C": f32(5)}, r"argument C\.shape\[0\] is 5"),
    ((), {"C": f32(4), "A": None}, r"argument A is None")])
def test_names_are_refused(scale, args, named, message):
    with pytest.raises(CallError, match=message):
        scale(*args, **named)


REFUSED = [
    ((f32(4),), CallTypeError, r"scale: num_args is 1, expected 2"),
    ((f32(4), f32(4), f32(4)), CallTypeError, r"num_args is 3, expected 2"),
    ((None, f32(4)), CallTypeError, r"argument A is None, expected a tensor of float32"),
    (([1.0, 2.0], f32(2)), CallTypeError, r"argument A is of type list, expected a tensor"),
    ((f32(4), (1.0,)), CallTypeError, r"argument C is of type tuple"),
    ((3, f32(4)), CallTypeError, r"argument A is of type int"),
    ((2.5, f32(4)), CallTypeError, r"argument A is of type float"),
    (("x", f32(4)), CallTypeError, r"argument A is of type str"),
    ((object(), f32(4)), CallTypeError, r"argument A is of type object"),
    (({}, f32(4)), CallTypeError, r"argument A is of type dict"),
    ((f32(4), f32(5)), CallValueError, r"argument C\.shape\[0\] is 5, expected 4 "
                                       r"\(constraint C\.shape\[0\] == n, n = A\.shape\[0\]\)"),
    ((f32(2, 2), f32(4)), CallValueError, r"argument A\.ndim is 2, expected 1"),
    ((np.array(1, "float32"), f32(4)), CallValueError, r"argument A\.ndim is 0, expected 1"),
    ((f32(4).astype("float64"), f32(4)), CallTypeError, r"argument A\.dtype is float64, expected float32"),
    ((f32(4), np.zeros(4, "int8")), CallTypeError, r"argument C\.dtype is int8, expected float32"),
    ((np.zeros(4, bool), f32(4)), CallTypeError, r"argument A\.dtype is bool, expected float32"),
    ((np.zeros(4, ml_dtypes.bfloat16), f32(4)), CallTypeError, r"argument A\.dtype is bfloat16"),
    ((f32(8)[::2], f32(4)), CallValueError, r"argument A is not contiguous: strides \(2\), expected \(1\)"),
    ((f32(4), f32(4)[::-1]), CallValueError, r"argument C is not contiguous: strides \(-1\)"),
    ((f32(4).astype(">f4"), f32(4)), CallTypeError, r"argument A\.dtype is >f4"),
    ((np.array(["a", "b"]), f32(2)), CallTypeError, r"argument A\.dtype is <U1"),
    ((np.array([1, None]), f32(2)), CallTypeError, r"argument A\.dtype is \|O"),
]


@pytest.mark.parametrize("args, kind, message", REFUSED, ids=[m for _, _, m in REFUSED])
def test_a_wrong_call_names_the_function_the_argument_and_both_sides(scale, args, kind, message):
    before = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
    with pytest.raises(CallError, match=message) as caught:
        scale(*args)
    assert type(caught.value) is kind
    assert str(caught.value).startswith("scale: ")
    for a, b in zip(args, before, strict=True):
        if isinstance(a, np.ndarray):
            np.testing.assert_array_equal(a, b)


def test_the_message_shows_the_signature_and_what_came(scale):
    with pytest.raises(ValueError) as caught:
        scale(f32(4), f32(5))
    assert "expected: scale(A: float32[n], C: float32[n])\ngot: C: float32[5]" in str(caught.value)


def test_a_misaligned_array_is_refused(scale):
    raw = np.zeros(17, np.uint8)
    odd = raw[1:].view("float32")
    with pytest.raises(CallValueError, match=r"argument A\.data is at address 0x[0-9a-f]+, expected a multiple of 4"):
        scale(odd, f32(4))


def test_read_only_arrays_are_inputs_and_never_outputs(scale):
    a, c = f32(4), np.zeros(4, "float32")
    a.flags.writeable = False
    scale(a, c)
    np.testing.assert_array_equal(c, 2 * a)
    scale(np.broadcast_to(np.float32(3), (1,)), c[:1])
    with pytest.raises(CallValueError, match="argument C is a read-only NumPy array") as caught:
        scale(c, a)
    assert caught.value.__context__ is None
    np.testing.assert_array_equal(a, f32(4))


def test_a_tensor_of_a_read_only_array_is_read_only(scale):
    data = f32(4).tobytes()
    t, c = from_dlpack(np.frombuffer(data, "float32")), np.zeros(4, "float32")
    assert not t.writable and from_dlpack(c).writable
    scale(t, c)
    np.testing.assert_array_equal(c, 2 * f32(4))
    with pytest.raises(CallValueError, match="argument C is a read-only tensor"):
        scale(c, t)
    with pytest.raises(CallValueError, match="argument C is a read-only tensor"):
        kernels.scale().time_evaluator("scale")(c, t)
    with pytest.raises(ArgumentError, match="read-only"):
        t[0] = 1.0
    with pytest.raises(ArgumentError, match="read-only"):
        t.copyfrom(c)
    assert not np.asarray(t).flags.writeable
    with pytest.raises(BufferError):
        t.to_dlpack()                                      # before DLPack 1.0 nobody can tell
    array(t).copyfrom(c)                                   # a copy is like any tensor
    assert data == f32(4).tobytes()


@pytest.mark.parametrize("make", [
    lambda: array(["a"], dtype="float32"), lambda: empty(1).copyfrom(np.array(["a"])), lambda: array(np.zeros(1, "c8")),
    lambda: array(np.zeros(1, "c8"), dtype="float32"), lambda: array(np.zeros(1, "f4,f4"), dtype="float32"),
    lambda: array(np.broadcast_to(np.float32(1), (2**20, 2**25))), lambda: empty(True), lambda: empty((2, True)),
    lambda: empty({1: 2}), lambda: empty({3}),
])
def test_what_cannot_become_a_tensor(make):
    with pytest.raises(ArgumentError):
        make()


def test_bfloat16_arrays_and_tensors():
    m = kernels.probe(Param("X", "bfloat16", (3,)))
    out, x = np.zeros(32, "int64"), np.array([1, 2, 3], ml_dtypes.bfloat16)
    m["f"](out, x)
    assert out[1] == x.ctypes.data
    t = array(x)
    m["f"](out, t)
    assert out[1] == t.data_ptr and t.dtype == "bfloat16"


SCALARS = [
    ("bool", np.True_, 1), ("bool", np.False_, 0), ("int32", np.True_, 1),
    ("int32", 7, 7), ("int32", -1, -1), ("int32", True, 1), ("int64", -(2**63), -(2**63)), ("int8", -128, -128),
    ("uint8", 255, 255), ("uint32", 2**32 - 1, 2**32 - 1), ("bool", True, 1), ("bool", 0, 0),
    ("int32", np.int64(5), 5), ("uint64", 2**63 - 1, 2**63 - 1), ("uint64", 2**63, -(2**63)), ("uint64", 2**64 - 1, -1),
    ("uint64", np.uint64(2**64 - 2), -2), ("float64", 2**64, np.float64(2.0**64).view("int64")),
]


@pytest.mark.parametrize("dtype, value, slot", SCALARS)
def test_integer_scalars(dtype, value, slot):
    out = np.zeros(32, "int64")
    kernels.probe(Param("k", dtype))["f"](out, value)
    assert out[1] == slot


@pytest.mark.parametrize("dtype, value, message", [
    ("int32", 2**31, r"argument k is 2147483648, expected a value that fits int32"),
    ("int8", 128, r"is 128, expected a value that fits int8"),
    ("uint8", -1, r"is -1, expected a value that fits uint8"),
    ("bool", 2, r"is 2, expected a value that fits bool"),
    ("uint64", -1, r"is -1, expected a value that fits uint64"),
    ("uint64", 2**64, r"argument k is an int beyond those of int64, expected a number of type uint64"),
    ("uint32", 2**63, r"argument k is an int beyond those of int64, expected a number of type uint32"),
    ("float64", 10**400, r"argument k is an int beyond those of int64, expected a number of type float64"),
    ("int64", np.timedelta64(1, "s"), r"argument k is of type numpy.timedelta64, expected a number of type int64"),
    ("int64", 2**63, r"argument k is an int beyond those of int64, expected a number of type int64"),
    ("int32", 1.5, r"argument k is a float, expected a number of type int32"),
    ("float32", "x", r"argument k is a string, expected a number of type float32"),
    ("float32", None, r"argument k is None, expected a number of type float32"),
    ("int32", f32(1), r"argument k is a tensor, expected a number of type int32"),
    ("int32", [1], r"argument k is a list or tuple, expected a number of type int32"),
])
def test_scalars_that_do_not_fit(dtype, value, message):
    with pytest.raises(CallError, match=message):
        kernels.probe(Param("k", dtype))["f"](np.zeros(32, "int64"), value)


def rounded_once(v):
    """v as a bfloat16: float32 has the range, so it is the multiple of the last place that is nearest to v."""
    if not np.isfinite(v) or v == 0 or abs(v) > 1e38 or abs(v) < 1e-37:
        return ml_dtypes.bfloat16(v)
    place = 2.0 ** (np.frexp(v)[1] - 8)
    return ml_dtypes.bfloat16(np.rint(v / place) * place)


def test_float_scalars_arrive_as_numpy_rounds_them():
    values = [0.0, -0.0, 1.5, 1e-8, 6e-8, 65504.0, 65519.9, 65520.0, 1e9, -np.inf, np.nan, 2.0**-24, 2.0**-25, 3e-5]
    rng = np.random.default_rng(0)
    values += list(rng.standard_normal(50) * 10.0 ** rng.integers(-8, 6, 50)) + [3]
    values += [1 + 2.0**-11 + 2.0**-40, 1 + 2.0**-8 + 2.0**-40, 1 + 3 * 2.0**-11 - 2.0**-40, 65520 - 2.0**-20]
    values += [1e300, 1e-300]
    out = np.zeros(32, "int64")
    f = kernels.probe(*[Param(f"x{i}", d) for i, d in enumerate(("float16", "bfloat16", "float32", "float64"))])["f"]
    for v in values:
        f(out, v, v, v, v)
        with np.errstate(over="ignore"):
            want = [np.float16(v).view("uint16"), rounded_once(v).view("uint16"),
                    np.float32(v).view("uint32"), np.float64(v).view("uint64")]
        got = [int(x) & (1 << 64) - 1 for x in out[1:5]]
        if np.isnan(v):
            halves = np.array([got[0]], "uint16").view("float16"), np.array([got[1]], "uint16").view(ml_dtypes.bfloat16)
            assert np.isnan(halves[0][0]) and np.isnan(np.float32(halves[1][0]))
            continue
        assert got == [int(w) for w in want], v


def test_symbols_are_bound_once_and_compared_after():
    m = kernels.probe(Param("A", "float32", ("n", "m")), Param("k", "int32"), Param("B", "int8", ("m", "k", "n")))
    out = np.zeros(32, "int64")
    m["f"](out, f32(2, 3), 4, np.zeros((3, 4, 2), "int8"))
    assert list(out[3:6]) == [4, 2, 3]                     # OUT, A, B, then k, then n and m
    with pytest.raises(CallError, match=r"B\.shape\[1\] is 5, expected 4 \(constraint B\.shape\[1\] == k\)"):
        m["f"](out, f32(2, 3), 4, np.zeros((3, 5, 2), "int8"))
    with pytest.raises(CallError, match=r"B\.shape\[2\] is 1, expected 2"):
        m["f"](out, f32(2, 3), 4, np.zeros((3, 4, 1), "int8"))


def test_a_symbol_must_fit_its_dtype():
    m = kernels.probe(Param("A", "int8", ("n",)), n="int8")
    out = np.zeros(32, "int64")
    m["f"](out, np.zeros(127, "int8"))
    with pytest.raises(CallValueError, match=r"A\.shape\[0\] is 128, expected at most 127 .*n, an int8"):
        m["f"](out, np.zeros(128, "int8"))


def test_expressions_may_come_before_their_symbols():
    m = kernels.probe(Param("A", "float32", (("add", ("mul", "n", 2), 1),)), Param("B", "float32", ("n",)))
    out = np.zeros(32, "int64")
    m["f"](out, f32(7), f32(3))
    with pytest.raises(CallError, match=r"A\.shape\[0\] is 8, expected 7 "
                                        r"\(constraint A\.shape\[0\] == \(n \* 2\) \+ 1, n = B\.shape\[0\]\)"):
        m["f"](out, f32(8), f32(3))


def test_random_expressions_agree_with_python():
    rng = random.Random(7)
    python = {"add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "min": min, "max": max,
              "floordiv": lambda a, b: a // b, "floormod": lambda a, b: a % b}

    def grow(depth):
        if depth == 0 or rng.random() < 0.2:
            return rng.choice(["n", "m", rng.randint(-3, 9)])
        return (rng.choice(list(OPERATORS)), grow(depth - 1), grow(depth - 1))

    def value(e, env):
        if isinstance(e, tuple):
            return python[e[0]](value(e[1], env), value(e[2], env))
        return env.get(e, e)

    checked = 0
    for _ in range(60):
        e, env = grow(4), {"n": rng.randint(1, 6), "m": rng.randint(1, 6)}
        try:
            want = value(e, env)
        except ZeroDivisionError:
            continue
        if not 0 <= want < 4096:
            continue
        checked += 1
        f = kernels.probe(Param("N", "int8", ("n",)), Param("M", "int8", ("m",)), Param("E", "int8", (e,)))["f"]
        args = [np.zeros(env[k], "int8") for k in "nm"]
        f(np.zeros(32, "int64"), *args, np.zeros(want, "int8"))
        with pytest.raises(CallError, match=re.escape(f"expected {want} ")):
            f(np.zeros(32, "int64"), *args, np.zeros(want + 1, "int8"))
    assert checked > 15


def test_symbolic_strides():
    m = kernels.probe(Param("A", "float32", ("n", "m"), strides=("s", 1)))
    out, a = np.zeros(32, "int64"), f32(4, 6)
    m["f"](out, a[:, :3])
    assert list(out[2:5]) == [4, 3, 6] and out[1] == a.ctypes.data
    m["f"](out, array(f32(2, 5)))
    assert list(out[2:5]) == [2, 5, 5]
    with pytest.raises(CallError, match=r"A\.strides\[1\] is 2, expected 1"):
        m["f"](out, a[:, ::2])
    m["f"](out, a[::-1, :3])
    assert list(out[2:5]) == [4, 3, -6]


def test_a_symbolic_stride_must_fit_its_dtype():
    f, most = kernels.probe(Param("A", "float32", ("n",), strides=("s",)), s="int32")["f"], 2**31 - 2**20
    out, a = np.zeros(32, "int64"), f32(4)
    for stride in (most, -most):
        f(out, as_strided(a, (1,), (4 * stride,)))
        assert out[3] == stride
    for stride, limit in ((most + 1, f"at most {most}"), (-most - 1, f"at least -{most}"), (-2**33, "at least")):
        with pytest.raises(CallError, match=rf"A\.strides\[0\] is {stride}, expected {limit}"):
            f(out, as_strided(a, (1,), (4 * stride,)))


def test_declared_strides_mean_nothing_along_unit_extents_and_of_empty_arrays():
    for strides in ((8, 1), (("mul", "m", 2), 1), ("s", 1)):
        f, out = kernels.probe(Param("A", "float32", ("n", "m"), strides=strides))["f"], np.zeros(32, "int64")
        for a in (f32(8, 8)[:, :4], f32(1, 4), f32(8, 8)[:1, :4], f32(0, 4), f32(8, 8)[:, :0], f32(4, 1)[:1]):
            f(out, a)
            assert list(out[2:4]) == list(a.shape)
    with pytest.raises(CallError, match=r"A\.strides\[0\] is 4, expected 8"):
        kernels.probe(Param("A", "float32", ("n", "m"), strides=(("mul", "m", 2), 1)))["f"](out, f32(2, 4))


def test_unit_extents_and_empty_arrays_need_no_strides():
    m = kernels.probe(Param("A", "float32", ("n", "m")))
    out, a = np.zeros(32, "int64"), f32(4, 6)
    m["f"](out, a[:1, :])
    m["f"](out, a[1:2, :4])
    m["f"](out, a[:0, ::2])
    with pytest.raises(CallError, match=r"not contiguous: strides \(6, 1\), expected \(4, 1\)"):
        m["f"](out, a[:2, :4])
    with pytest.raises(CallError, match=r"not contiguous: strides \(1, 4\)"):
        m["f"](out, f32(3, 4).T)


def test_a_scalar_parameter_may_give_an_extent_in_front():
    m = kernels.probe(Param("A", "float32", ("n",)), Param("n", "int32"))
    m["f"](np.zeros(32, "int64"), f32(3), 3)
    with pytest.raises(CallError, match=r"A\.shape\[0\] is 3, expected 4 \(constraint A\.shape\[0\] == n\)"):
        m["f"](np.zeros(32, "int64"), f32(3), 4)


def test_many_parameters_and_long_names():
    params = [Param(f"argument_with_a_long_name_{i}", "float32", (2, 3)) for i in range(29)]
    m = kernels.probe(*params)
    arrays = [f32(2, 3) for _ in params]
    m["f"](np.zeros(32, "int64"), *arrays)
    arrays[20] = f32(3, 2)
    with pytest.raises(CallError, match=r"argument_with_a_long_name_20\.shape\[0\] is 3, expected 2"):
        m["f"](np.zeros(32, "int64"), *arrays)
    huge = kernels.probe(*[Param("x" * 900 + str(i), "float32", (2,)) for i in range(20)])
    with pytest.raises(CallError, match="num_args is 0"):  # the text is cut, nothing else
        huge["f"]()
    for k in range(4):                                    # nor inside of a character
        named = kernels.probe(Param("x" * k + "é" * 3000, "float32", (2,)))
        with pytest.raises(CallError, match=f"f: argument {'x' * k}éé"):
            named["f"](np.zeros(32, "int64"), f32(3))


def test_a_call_that_fails_inside_is_made_once():
    f = tw.build(from_source("@T.prim_func\ndef f(A: T.Buffer((4,)), I: T.Buffer((1,), 'int32'), s: T.float32):\n"
                             "    A[0] = A[0] + s\n    A[I[0]] = 1.0\n"))
    for scalar in (1.0, 1, np.float32(1), np.int64(1)):
        a = np.zeros(4, "float32")
        with pytest.raises(CallError, match="the index"):
            f(a, np.array([4], "int32"), scalar)
        assert a.tolist() == [1, 0, 0, 0]


def test_torch_tensors_that_are_negated_when_they_are_read(scale, monkeypatch):
    class Fake(kernels.Exporter):
        requires_grad = False

        def is_neg(self):
            return self.negated

        def resolve_neg(self):
            return Fake(-self.values, negated=False)

    monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(Tensor=Fake, is_grad_enabled=lambda: True))
    c = np.zeros(4, "float32")
    scale(Fake(f32(4), negated=False), c)
    np.testing.assert_array_equal(c, 2 * f32(4))
    negated = Fake(f32(4), negated=True)
    for arguments in ((negated, c), (f32(4), negated)):
        with pytest.raises(CallValueError, match=r"whose memory holds the negative.*\n\nhint: pass x\.resolve_neg"):
            scale(*arguments)
    np.testing.assert_array_equal(array(negated).numpy(), -f32(4))
    with pytest.raises(ArgumentError, match="negated when they are read"):
        from_dlpack(negated)


def test_arrays_of_jax_are_inputs_and_never_outputs(scale, monkeypatch):
    class Fake(kernels.Exporter):
        addressable_shards = ()

    monkeypatch.setitem(sys.modules, "jax", types.SimpleNamespace(Array=Fake))
    c, fixed = np.zeros(4, "float32"), Fake(np.ones(4, "float32"))
    scale(fixed, c)
    np.testing.assert_array_equal(c, 2)
    scale(from_dlpack(fixed), c)
    for output in (fixed, from_dlpack(fixed)):
        with pytest.raises(CallValueError, match="argument C is a read-only"):
            scale(f32(4), output)
    with pytest.raises(ArgumentError, match="read-only"):
        from_dlpack(fixed).copyfrom(f32(4))
    np.testing.assert_array_equal(fixed.values, 1)


def test_torch_tensors_that_require_grad_are_refused_while_torch_records(scale, monkeypatch):
    Fake = kernels.Exporter
    torch = types.SimpleNamespace(Tensor=Fake, is_grad_enabled=lambda: recording)
    monkeypatch.setitem(sys.modules, "torch", torch)
    recording, c = True, np.zeros(4, "float32")
    scale(Fake(f32(4), requires_grad=False), c)
    np.testing.assert_array_equal(c, 2 * f32(4))
    with pytest.raises(CallValueError, match=r"argument A is a torch tensor that requires grad.*\n\nhint: .*detach"):
        scale(Fake(f32(4), requires_grad=True), c)
    recording = False
    scale(Fake(f32(4), requires_grad=True), c)


@pytest.mark.parametrize("name", ["A is B", "A, an b", "A.shape[0] is q, an int32", " is ", ", an ", "é"])
def test_names_of_any_text_travel_in_their_table(name):
    shape = (name + "0", name + "1")
    s = Signature("f", (Param(name, "float32", shape, strides=(name + "2", 1)), Param("B", "int8", shape)),
                  {name + "1": "int32"})
    again = decode(encode(s))
    assert again.params == s.params and str(again) == str(s) and again.symbol_types[name + "1"] == "int32"


def test_signatures_travel_in_their_table():
    s = Signature("f", (Param("A", "float32", ("n", 4), alignment=64), Param("x", "float32"),
                        Param("B", "bool", ("n", ("mul", "m", 2)), strides=("s", 1)), Param("k", "int64"),
                        Param("C", "bfloat16", ("m",), written=True), Param("D", "int8", ())), {"n": "int32"})
    again = decode(encode(s))
    assert encode(again) == encode(s) and again.params == s.params and str(again) == str(s)
    assert s.symbols == ("n", "s", "m") and s.num_slots == 9 and s.slot("m") == 8
    assert str(s) == ("f(A: float32[n, 4], x: float32, B: bool[n, m * 2], k: int64, C: bfloat16[m], D: int8[])")
    assert signatures_in(b"TWS1junk" + encode(s) + b"TWS1" + bytes(40) + encode(s)) == [again, again]
    assert dim_text(("min", ("sub", "n", 1), 8)) == "min(n - 1, 8)"


@pytest.mark.parametrize("params, message", [
    ((Param("A", "float32", (("add", "n", 1),)),), "no argument tells what n is"),
    ((Param("A", "float32", (1,)), Param("A", "float32", (1,))), "two parameters have one name"),
    ((Param("A", "float32", ("B",)), Param("B", "float32", (1,))), "no argument tells what B is"),
    ((Param("A", "float32", ("n",), strides=(1, 1)),), "has 1 extents and 2 strides"),
    ((Param("A", "float33", (1,)),), "'float33' is not a dtype"),
])
def test_signatures_that_cannot_be_checked_are_refused(params, message):
    with pytest.raises(ArgumentError, match=message):
        encode(Signature("f", params))


def test_from_dlpack_shares_memory():
    a = f32(3)
    t = from_dlpack(a)
    a[0] = 9
    assert t.numpy()[0] == 9 and np.shares_memory(np.from_dlpack(t), a)
