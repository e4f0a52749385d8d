"""Integers wrap in values, of every type, and not in indices: native code and the interpreter against NumPy."""
import numpy as np
import pytest

import tilewright as tw
from tilewright import te
from tilewright.lowering import lower
from tilewright.script import from_source
from tilewright.support.errors import CallError, InterpreterError, ScheduleError
from tilewright.tir import interp

SIGNED, UNSIGNED = ("int8", "int16", "int32", "int64"), ("uint8", "uint16", "uint32", "uint64")


@pytest.fixture(autouse=True)
def quiet():
    with np.errstate(all="ignore"):
        yield


def edges(dtype):
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    near = [low, low + 1, high, high - 1, low // 2, high // 2, 0, 1, 2, 5, 7, 100]
    return np.array([*near, *(-v for v in near if low < 0 and v != low)], dtype)


def check(body, want, *inputs, out=None):
    """body over elements of the inputs gives want: scheduled in no way, vectorized, by the rules, interpreted."""
    out = out or want.dtype.name
    placeholders = [te.placeholder(x.shape, x.dtype.name, name=f"X{k}") for k, x in enumerate(inputs)]
    result = te.compute(want.shape, lambda i: body(*[p[i] for p in placeholders]), name="C")
    args = [*placeholders, result]
    func = te.create_prim_func(args)
    scheduled = te.create_schedule(result.op)
    scheduled[result].vectorize(scheduled[result].split(result.op.axis[0], factor=4)[1])
    for f in (tw.build(te.create_schedule(result.op), args), tw.build(scheduled, args), tw.compile(func),
              lambda *a: interp.run(func, *a)):
        got = np.zeros(want.shape, out)
        f(*inputs, got)
        np.testing.assert_array_equal(got, want)


def c(value, dtype):
    return te.const(value, dtype)


@pytest.mark.parametrize("dtype", SIGNED)
def test_shifts_by_all_bits_but_one(dtype):
    x, bits = edges(dtype), np.iinfo(dtype).bits
    last, half = np.array(bits - 1, dtype), np.array(bits // 2, dtype)
    check(lambda a: a >> c(bits - 1, dtype), x >> last, x)
    check(lambda a: (a >> c(bits // 2, dtype)) >> c(bits // 2, dtype), (x >> half) >> half, x)
    check(lambda a: (a >> c(bits - 1, dtype)) & c(1, dtype), (x >> last) & np.array(1, dtype), x)
    check(lambda a: (a ^ (a >> c(bits - 1, dtype))) - (a >> c(bits - 1, dtype)), np.abs(x), x)
    check(lambda a: (a << c(3, dtype)) >> c(3, dtype), (x << np.array(3, dtype)) >> np.array(3, dtype), x)


@pytest.mark.parametrize("dtype", SIGNED + UNSIGNED)
def test_masks_and_divisors_at_the_end_of_the_type(dtype):
    x, high = edges(dtype), np.iinfo(dtype).max
    most, ten = np.array(high, dtype), np.array(10, dtype)
    check(lambda a: a & c(high, dtype), x & most, x)
    check(lambda a: te.bitwise_not(a) & c(high, dtype), ~x & most, x)
    check(lambda a: te.floormod(a & c(high, dtype), c(10, dtype)), (x & most) % ten, x)
    check(lambda a: te.floordiv(a, c(high, dtype)), x // most, x)
    if dtype in SIGNED:
        low = np.array(np.iinfo(dtype).min, dtype)
        check(lambda a: te.floordiv(a, c(int(low), dtype)), x // low, x)
        check(lambda a: te.floormod(a, c(int(low), dtype)), x % low, x)
        check(lambda a: te.floordiv(te.floormod(a, c(16, dtype)), c(-4, dtype)),
              (x % np.array(16, dtype)) // np.array(-4, dtype), x)


@pytest.mark.parametrize("dtype", SIGNED + UNSIGNED)
def test_divisions_of_divisions_whose_divisor_leaves_the_type(dtype):
    x, power = edges(dtype), 1 << np.iinfo(dtype).bits // 2
    for first, second in ((power // 2, power // 2), (power - 1, power + 1), (power // 2 + 7, power)):
        if max(first, second) <= np.iinfo(dtype).max:
            check(lambda a, first=first, second=second: te.floordiv(te.floordiv(a, c(first, dtype)), c(second, dtype)),
                  (x // np.array(first, dtype)) // np.array(second, dtype), x)


@pytest.mark.parametrize("dtype", SIGNED + UNSIGNED)
def test_products_and_sums_that_wrap_before_a_division(dtype):
    x, four = edges(dtype), np.array(4, dtype)
    check(lambda a: te.floordiv(a * c(4, dtype), c(4, dtype)), x * four // four, x)
    check(lambda a: te.floormod(a * c(4, dtype) + c(1, dtype), c(4, dtype)), (x * four + np.array(1, dtype)) % four, x)
    check(lambda a: te.floormod(a * c(6, dtype) + c(1, dtype), c(3, dtype)),
          (x * np.array(6, dtype) + np.array(1, dtype)) % np.array(3, dtype), x)
    check(lambda a: (a + c(100, dtype) < c(50, dtype)).astype("int8"),
          (x + np.array(100, dtype) < np.array(50, dtype)).astype("int8"), x)
    check(lambda a: te.minimum(a + c(1, dtype), a), np.minimum(x + np.array(1, dtype), x), x)


def test_divisors_from_data_are_not_multiplied():
    a, b, d = (np.array(v, "int32") for v in ([7, -5, 100, -100], [2**30, 2**30, 2**20, 2**20], [8, 8, 2**12, 2**13]))
    check(lambda x, y, z: te.floordiv(te.floordiv(x, y), z), a // b // d, a, b, d)
    check(lambda x, y, z: x // te.maximum(y, 1) // te.maximum(z, 1), a // b // d, a, b, d)


@pytest.mark.parametrize("dtype, fold, want", [
    ("int32", lambda k: te.maximum(k(100) * k(2147483646), k(2)), 2),
    ("int64", lambda k: te.abs(k(3) * k(4611686018427387903)), 4611686018427387907),
    ("int32", lambda k: te.if_then_else(k(-2147483648) + k(-1) >= k(0), k(5), k(9)), 5),
    ("int8", lambda k: te.if_then_else(k(127) + k(1) < k(0), k(5), k(9)), 5),
    ("int8", lambda k: te.if_then_else(k(-128) <= k(-128) * k(3), k(5), k(9)), 5),
    ("uint8", lambda k: te.minimum(k(0) - k(1), k(254)), 254),
    ("int8", lambda k: te.floordiv(te.const(254, "uint8").astype("int8"), k(2)), -1),
    ("int8", lambda k: te.const(300, "int32").astype("int8") + k(0), 44),
])
def test_constants_wrap_when_they_fold(dtype, fold, want):
    x = np.array([1, 2, 3, 4, 5], dtype)
    check(lambda a: fold(lambda v: te.const(v, dtype)) + a - a, np.full(5, want, dtype), x)


def run_both(body):
    """What native code and the interpreter give for body(i), i in [0, 40), i a loop variable of int32."""
    C = te.compute((40,), body, name="C")
    found = []
    for f in (tw.build(te.create_schedule(C.op), [C]), lambda got: interp.run(te.create_prim_func([C]), got)):
        found.append(np.empty(40, "int32"))
        f(found[-1])
    return found


@pytest.mark.parametrize("body", [
    lambda i: i * 1103515245 // 65536, lambda i: (i * 1103515245 + 12345) % 1000,
    lambda i: (i * 1103515245) >> 3, lambda i: i * 65536 * 65536 + 1,
])
def test_a_loop_variable_as_a_value_wraps(body):
    for got in run_both(body):
        np.testing.assert_array_equal(got, body(np.arange(40, dtype="int32")))


def test_a_condition_on_loop_variables_wraps():
    want = (np.arange(40, dtype="int32") * np.int32(1103515245) < 0).astype("int32")
    for got in (*run_both(lambda i: (i * 1103515245 < 0).astype("int32")),
                *run_both(lambda i: te.if_then_else(i * 1103515245 < 0, te.const(1, "int32"), te.const(0, "int32")))):
        np.testing.assert_array_equal(got, want)


TARGETS = ("llvm -opt-level=0", "llvm -opt-level=1 -mcpu=x86-64-v3", "llvm -opt-level=2 -mcpu=x86-64-v2", "llvm")
FACTORS = (1, -1, 3, 512, 65536, 2**30, 2**31 - 1, -2**31, 1103515245, -2**31 + 77)


def check_lanes(target, cases, *scalars):
    """Vectors of 8 lanes: element o * 8 + l of an output is the expression of a case, of scalars k and s of int32."""
    outs = ", ".join(f"C{n}: T.Buffer(({w.size},), '{w.dtype}')" for n, (_, w) in enumerate(cases))
    stores = [f"            C{n}[o * 8 + l] = {code}" for n, (code, _) in enumerate(cases)]
    func = from_source("\n".join(["@T.prim_func", f"def f(k: T.int32, s: T.int32, {outs}):",
                                  "    for o in range(3):", "        for l in T.vectorized(8):", *stores]))
    got = [np.zeros_like(w) for _, w in cases]
    tw.build(func, target=target)(*scalars, *got)
    for mine, (code, want) in zip(got, cases):
        np.testing.assert_array_equal(mine, want, err_msg=code)


@pytest.mark.parametrize("target", TARGETS)
def test_lanes_that_wrap_are_cast_as_they_are(target):
    """Each lane wraps by itself; a cast to any type is one of what is left then."""
    i = np.arange(24, dtype="int32")
    for dtype in (*SIGNED, *UNSIGNED, "float32", "float64"):
        for start in (-2**31, 2**31 - 20):
            v = i + np.int32(start)
            taken = np.int32(5) * np.int32(2**31 - 1)
            sums = [(f"((o * 8 + l + s) * T.int32({a}) - k * 2147483647)", v * np.int32(a) - taken) for a in FACTORS]
            check_lanes(target, [(f"T.cast({code}, '{dtype}')", w.astype(dtype)) for code, w in sums], 5, start)


@pytest.mark.parametrize("target", TARGETS)
def test_lanes_of_a_loop_variable_wrap_before_they_are_cast(target):
    i, at = np.arange(24, dtype="int32"), "(o * 8 + l)"
    for a in FACTORS:
        cases = []
        for b in FACTORS:
            cases += [(f"T.cast({at} * T.int32({a}) - {at} * T.int32({b}), 'int64')",
                       (i * np.int32(a) - i * np.int32(b)).astype("int64")),
                      (f"T.cast({at} * T.int32({a}), 'int64') * T.int64({b}) + T.cast(l, 'int64')",
                       (i * np.int32(a)).astype("int64") * b + i % 8)]
        check_lanes(target, cases, 0, 0)


@pytest.mark.parametrize("condition, holds", [
    ("(o * 8 + l) * 1103515245 < 0", lambda i, k: i * np.int32(1103515245) < 0),
    ("k * 1103515245 < 0 and l < 5", lambda i, k: (k * np.int32(1103515245) < 0) & (i % 8 < 5)),
    ("l + k > 2147483647 - 5", lambda i, k: i % 8 + k > np.int32(2**31 - 6)),
    ("T.cast(l + k, 'int64') < T.int64(3)", lambda i, k: (i % 8 + k).astype("int64") < 3),
    ("l < k", lambda i, k: i % 8 < k), ("l * 3 + o < X[k & 3]", lambda i, k: i % 8 * 3 + i // 8 < 7 + (k & 3)),
    ("l * 3 + X[k & 3] < 20", lambda i, k: i % 8 * 3 + 7 + (k & 3) < 20)])
def test_conditions_of_lanes_wrap(condition, holds):
    """An element that all lanes read is read if one of them needs it: the first does not speak for lanes that wrap."""
    func = from_source(f"""
@T.prim_func
def f(x: T.handle, k: T.int32, C: T.Buffer((64,), "int32")):
    n = T.int32()
    X = T.match_buffer(x, (n,), "int32")
    for o in range(8):
        for l in T.vectorized(8):
            if {condition}:
                C[o * 8 + l] = X[k & 3]
""")
    x, i = np.arange(7, 11, dtype="int32"), np.arange(64, dtype="int32")
    built = [tw.build(func, target=t) for t in TARGETS]
    for k in (0, 1, 2, 5, -1, 2**31 - 1, 2**31 - 3, 2**31 - 8, -2**31):
        want = np.where(holds(i, np.array(k, "int32")), x[k & 3], 0)
        for f in (*built, lambda *v: interp.run(func, *v)):
            got = np.zeros(64, "int32")
            f(x, k, got)
            np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("body", [lambda k: (k * 1103515245 + 12345) >> 16, lambda k: (k * 8) // 8,
                                  lambda k: k + 1 - k])
def test_a_scalar_argument_as_a_value_wraps(body):
    k = te.var("k", "int32")
    C = te.compute((2,), lambda i: body(k), name="C")
    f = tw.build(te.create_schedule(C.op), [k, C])
    for v in (7, 2**31 - 1, -2**31, 123456789):
        got, also = np.zeros(2, "int32"), np.zeros(2, "int32")
        f(v, got)
        interp.run(te.create_prim_func([k, C]), v, also)
        want = body(np.array(v, "int32"))
        assert got[0] == also[0] == want


def test_conditions_on_scalar_arguments_wrap():
    k = te.var("k", "int32")
    C = te.compute((1,), lambda i: te.if_then_else(k + 1 > k, te.const(1, "int32"), te.const(0, "int32")), name="C")
    f = tw.build(te.create_schedule(C.op), [k, C])
    for v, want in ((3, 1), (2**31 - 1, 0)):
        got = np.empty(1, "int32")
        f(v, got)
        assert got[0] == want


SCRIPT = """
from tilewright.script import tir as T

@T.prim_func
def f({args}):
    for i in range({count}):
        {body}
"""


def script(body, count, *args):
    return from_source(SCRIPT.format(args=", ".join(args), count=count, body=body))


def test_a_masked_index_from_data_stays_inside():
    func = script("C[i] = A[T.min(X[i] & 2147483647, 2047)]", 4, "X: T.Buffer((4,), 'int32')",
                  "A: T.Buffer((2048,), 'float32')", "C: T.Buffer((4,), 'float32')")
    x, a = np.array([-1, -5, -2**31, 7], "int32"), np.arange(2048, dtype="float32")
    for f in (tw.build(func), lambda *v: interp.run(func, *v)):
        got = np.empty(4, "float32")
        f(x, a, got)
        np.testing.assert_array_equal(got, a[np.minimum(x & np.int32(2**31 - 1), 2047)])


def test_an_index_made_of_data_wraps_as_a_value_does():
    func = script("C[i] = A[(X[i] * 1103515245 + 12345) % 64]", 8, "X: T.Buffer((8,), 'int32')",
                  "A: T.Buffer((64,), 'float32')", "C: T.Buffer((8,), 'float32')")
    x = np.array([0, 1, 2, 3, -1, 2**31 - 1, -2**31, 99], "int32")
    a = np.arange(64, dtype="float32")
    want = a[(x * np.int32(1103515245) + np.int32(12345)) % 64]
    for f in (tw.build(func), lambda *v: interp.run(func, *v)):
        got = np.empty(8, "float32")
        f(x, a, got)
        np.testing.assert_array_equal(got, want)


def test_a_row_from_data_that_is_far_outside_is_an_error():
    func = script("C[i] = A[X[i], 3]", 2, "X: T.Buffer((2,), 'int32')", "A: T.Buffer((64, 64), 'float32')",
                  "C: T.Buffer((2,), 'float32')")
    f, a, c_ = tw.build(func), np.zeros((64, 64), "float32"), np.zeros(2, "float32")
    for row in (2**26, -2**26, 2**31 - 1, -2**31, 64, -1):       # 2**26 rows of 64 are 0 modulo 2**32
        with pytest.raises(CallError, match="outside"):
            f(np.array([1, row], "int32"), a, c_)


def test_the_lane_that_is_outside_is_named():
    func = from_source("""
@T.prim_func
def f(X: T.Buffer((4,), "int32"), A: T.Buffer((64, 64), "float32"), C: T.Buffer((4,), "float32")):
    for i in T.vectorized(4):
        C[i] = A[X[i], 3]
""")
    x, a, c = np.array([1, 2, 70, 3], "int32"), np.zeros((64, 64), "float32"), np.zeros(4, "float32")
    for f, error in ((tw.build(func), CallError), (lambda *v: interp.run(lower(func), *v), InterpreterError)):
        with pytest.raises(error, match="70 of A is outside of its extent 64"):
            f(x, a, c)


@pytest.mark.llvm
def test_a_variable_that_is_certainly_not_negative_is_divided_as_unsigned():
    text = tw.build(from_source("""
@T.prim_func
def f(A: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32"), n: T.int32):
    for i in range(n):
        x: T.int32 = i // 3
        C[x // 7] = A[x // 7]
""")).get_source("ll")
    assert "udiv i64" in text and "sdiv" not in text


def test_an_index_of_variables_is_exact():
    """i * 65536 * 65536 // 2**32 is i as an index; as a value it is 0."""
    func = script("C[i] = A[i * 65536 * 65536 // 65536 // 65536] + (i * 65536 * 65536 // 65536 // 65536)", 8,
                  "A: T.Buffer((8,), 'int32')", "C: T.Buffer((8,), 'int32')")
    a = np.arange(10, 18, dtype="int32")
    for f in (tw.build(func), lambda *v: interp.run(func, *v)):
        got = np.empty(8, "int32")
        f(a, got)
        np.testing.assert_array_equal(got, a)


@pytest.mark.parametrize("choice", ["T.Select(i > 8, {}, {})", "T.if_then_else(i > 8, {}, {})"])
@pytest.mark.parametrize("values", [("X[i]", "i"), ("i", "X[i]")])
def test_an_index_that_may_be_data_wraps(choice, values):
    func = script(f"C[i] = A[{choice.format(*values)} * 65536 * 65536 // 65536 // 65536]", 8,
                  "A: T.Buffer((8,), 'int32')", "X: T.Buffer((8,), 'int32')", "C: T.Buffer((8,), 'int32')")
    a, x = np.arange(10, 18, dtype="int32"), np.arange(8, dtype="int32")
    for f in (tw.build(func), lambda *v: interp.run(func, *v)):
        got = np.empty(8, "int32")
        f(a, x, got)
        np.testing.assert_array_equal(got, 10)


def test_loops_that_start_at_the_end_of_the_type():
    for start, dtype in ((-2**31, "int32"), (2**31 - 20, "int32"), (-2**63, "int64")):
        func = from_source(f"""
from tilewright.script import tir as T

@T.prim_func
def f(X: T.Buffer((16,), "int16"), C: T.Buffer((16,), "int16")):
    for i in T.serial(T.{dtype}({start}), T.{dtype}({start + 16})):
        C[i - T.{dtype}({start})] = X[i - T.{dtype}({start})]
""")
        x = np.arange(16, dtype="int16")
        for f in (tw.build(func), lambda *v, func=func: interp.run(func, *v)):
            got = np.zeros(16, "int16")
            f(x, got)
            np.testing.assert_array_equal(got, x)


def test_a_value_that_wraps_is_not_inlined_into_an_index():
    A, a, i = te.placeholder((64,), name="A"), np.arange(64, dtype="float32"), np.arange(64, dtype="int32")
    for made, read, legal in ((lambda i: i * 65536 * 65536 // 65536, lambda b: te.floormod(b, 64), False),
                              (lambda i: i * 3, lambda b: te.floormod(b * 1103515245, 64), False),
                              (lambda i: 63 - i, lambda b: te.floormod(b, 64), True)):
        B = te.compute((64,), made, name="B")
        C = te.compute((64,), lambda i, B=B, read=read: A[read(B[i])], name="C")
        func = te.create_prim_func([A, C])
        for primitive, block in (("compute_inline", "B"), ("reverse_compute_inline", "C")):
            sch = tw.Schedule(func)
            if legal:
                getattr(sch, primitive)(block)
            else:
                with pytest.raises(ScheduleError, match="may wrap around in int32"):
                    getattr(sch, primitive)(block)
        b = made(i)
        want = a[(b * np.int32(1103515245 if b[1] == 3 else 1)) % 64]
        for f in (tw.build(func), tw.compile(func), lambda *v, func=func: interp.run(func, *v)):
            got = np.empty(64, "float32")
            f(a, got)
            np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("index", [
    "T.Cast('int32', T.Cast('int8', i)) * 1103515245 % 41", "T.abs(i) * 1103515245 % 41",
    "T.Select(i > 0, i, 3) * 1103515245 % 41", "(i * 1103515245 & 1023) % 41", "(i * 1103515245 >> 3) % 41",
    "T.Cast('int64', i * 1103515245) % T.int64(41)", "T.Cast('int64', T.Cast('int8', i) * T.int8(100)) % T.int64(41)",
    "T.min(T.max(T.Cast('int64', T.Cast('uint64', i)) + T.int64(9223372036854775806), T.int64(0)), T.int64(40))",
    "T.Cast('uint32', i) * T.uint32(4000000000) % T.uint32(41)",
])
def test_all_builds_and_the_interpreter_choose_the_same_element(index):
    func = script(f"C[i] = A[{index}]", 8, "A: T.Buffer((41,), 'int32')", "C: T.Buffer((8,), 'int32')")
    found = []
    for f in (lambda *v: interp.run(func, *v), tw.build(func), tw.build(func, checked=True)):
        found.append(np.zeros(8, "int32"))
        f(np.arange(41, dtype="int32"), found[-1])
    for got in found[1:]:
        np.testing.assert_array_equal(got, found[0])


def test_checks_of_indices_are_exact():
    func = from_source("""
from tilewright.script import tir as T

@T.prim_func
def f(a: T.handle, C: T.Buffer((8,), "int8")):
    n = T.int32()
    m = T.int32()
    A = T.match_buffer(a, (n, m), "int8")
    for i in range(8):
        C[i] = A[(n * m - 1 - i) // m, (n * m - 1 - i) % m]
""")
    a = np.zeros((65536, 131072), "int8")                          # 8 GiB, of which one page is touched
    a[-1, -1] = 5
    for checked in (False, True):
        got = np.empty(8, "int8")
        tw.build(func, checked=checked)(a, got)
        assert got.tolist() == [5] + [0] * 7


def test_extents_at_a_call_leave_room():
    n = te.var("n")
    A = te.placeholder((n,), "int8", name="A")
    B = te.compute((n,), lambda i: A[i], name="B")
    f = tw.build(te.create_schedule(B.op), [A, B])
    huge = np.zeros(2**31 - 2**20 + 1, "int8")                   # never touched
    with pytest.raises(CallError, match="an int32"):
        f(huge, huge)
    f(huge[:5], np.ones(5, "int8"))
