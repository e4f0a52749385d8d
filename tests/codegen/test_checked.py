"""The bounds-checked build: an access outside of its buffer raises, one inside never does."""
import numpy as np
import pytest
from by_hand import func_of

import tilewright as tw
from tilewright import te, tir
from tilewright.driver.build import cache_key
from tilewright.lowering import PassOptions
from tilewright.script import from_source
from tilewright.support.errors import CallError
from tilewright.tir import For, IfThenElse, IntImm, Ramp, Store, Var

KINDS = ("serial", "vectorized", "parallel", "unroll")


def loops(kind, body, shape=(8, 8), rows=8):
    """for i in range(rows): for j in range(8): body(A, B, i, j)"""
    a, b = tir.decl_buffer(shape, "float32", "A"), tir.decl_buffer(shape, "float32", "B")
    pa, pb, i, j = Var("a", "handle"), Var("b", "handle"), Var("i", "int32"), Var("j", "int32")
    inner = For(j, IntImm(0), IntImm(8), kind, body(a, b, i, j))
    return func_of([a, b], (pa, pb), For(i, IntImm(0), IntImm(rows), "serial", inner), "kernel")


def call(func, fill=0.0, rows=8):
    x = np.full((rows, 8), fill, "float32")
    y = np.zeros_like(x)
    tw.build(func, checked=True)(x, y)
    return y


OUTSIDE = {
    "a load past the row": (lambda a, b, i, j: Store(b, a[i, j + 1], (i, j)), 0, "8 of A is outside of its extent 8"),
    "a store past the rows": (lambda a, b, i, j: Store(b, a[i, j], (i + 1, j)), 0,
                              r"the index i \+ 1 = 8 of B is outside of its extent 8"),
    "a negative index": (lambda a, b, i, j: Store(b, a[i, j], (i, j - 1)), 0, "-1 of B is outside of its extent 8"),
    "an index from data": (lambda a, b, i, j: Store(b, a[a[i, j].astype("int32"), j], (i, j)), 9,
                           "9 of A is outside of its extent 8"),
    "a negative index from data": (lambda a, b, i, j: Store(b, a[i, j], (i, a[i, j].astype("int32"))), -3,
                                   "-3 of B is outside of its extent 8"),
}
INSIDE = {
    "plain": lambda a, b, i, j: Store(b, a[i, j] + 1.0, (i, j)),
    "a guarded load": lambda a, b, i, j: Store(b, tir.if_then_else(j < 7, a[i, j + 1], 1.0), (i, j)),
    "a guarded store": lambda a, b, i, j: IfThenElse(j * 2 < 8, Store(b, a[i, j], (i, j * 2))),
    "a load under a condition on data": lambda a, b, i, j: Store(
        b, tir.if_then_else(a[i, j] < 8.0, a[a[i, j].astype("int32"), j], 1.0), (i, j)),
    "a store under a condition on data": lambda a, b, i, j: IfThenElse(
        a[i, j] < 8.0, Store(b, a[i, j], (a[i, j].astype("int32"), j))),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("case", OUTSIDE)
def test_an_access_outside_raises(case, kind):
    body, fill, message = OUTSIDE[case]
    with pytest.raises(CallError, match=f"^kernel: .*{message}$"):
        call(loops(kind, body), fill)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("case", INSIDE)
def test_an_access_inside_does_not(case, kind):
    func = loops(kind, INSIDE[case])
    for fill in (3.0, 9.0):
        x, plain = np.full((8, 8), fill, "float32"), np.zeros((8, 8), "float32")
        tw.build(func, checked=False)(x, plain)
        np.testing.assert_array_equal(call(func, fill), plain)


def test_symbolic_extents_are_shown_with_their_values():
    n = Var("n", "int32")
    func = loops("vectorized", lambda a, b, i, j: Store(b, a[i, j], (i, j)), (n, 8))
    assert not call(func).any()
    with pytest.raises(CallError, match=r"kernel: the index i = 5 of A is outside of its extent n = 5"):
        call(func, rows=5)


def test_vector_accesses_written_by_hand():
    a, p = tir.decl_buffer((16,), "float32", "A"), Var("a", "handle")
    ramp = Ramp(IntImm(0), IntImm(1), 4)

    def func(start):
        return func_of([a], (p,), Store(a, a.vload(start, "float32x4"), (ramp,)), "kernel")

    x = np.arange(16, dtype="float32")
    tw.build(func(12), checked=True)(x)
    np.testing.assert_array_equal(x[:4], [12, 13, 14, 15])
    with pytest.raises(CallError, match="kernel: the index 16 of A is outside of its extent 16"):
        tw.build(func(13), checked=True)(x)


def test_a_scheduled_program_computes_the_same(monkeypatch):
    n = te.var("n")
    a, b = te.placeholder((n, 37), name="A"), te.placeholder((37, n), name="B")
    k = te.reduce_axis((0, 37), name="k")
    c = te.compute((n, n), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    s = te.create_schedule(c.op)
    i, j = c.op.axis
    io, jo, ii, ji = s[c].tile(i, j, 8, 16)
    ko, ki = s[c].split(k, 4)
    s[c].reorder(io, jo, ko, ii, ki, ji)
    s[c].vectorize(ji)
    s[c].parallel(io)
    x, y = np.random.rand(45, 37).astype("float32"), np.random.rand(37, 45).astype("float32")
    z = np.zeros((45, 45), "float32")
    monkeypatch.setenv("TILEWRIGHT_CHECKED", "1")
    tw.build(s, [a, b, c], "llvm")(x, y, z)
    np.testing.assert_allclose(z, x @ y, rtol=1e-5)


def test_the_setting_is_part_of_the_key_of_the_cache(monkeypatch):
    func = loops("serial", lambda a, b, i, j: Store(b, a[i % 16, j], (i % 16, j)), (Var("m", "int32"), 8), rows=9)
    text, keys = [], []
    for setting in ("0", "1"):
        monkeypatch.setenv("TILEWRIGHT_CHECKED", setting)
        text.append(tw.build(func).get_source().count("outside of its extent"))
        keys.append(cache_key("program", tw.target("llvm")))
    assert text[0] == 0 < text[1] and keys[0] != keys[1]
    assert cache_key("program", tw.target("llvm"), PassOptions(checked=False)) == keys[0]
    with pytest.raises(CallError, match="outside of its extent m = 8"):
        tw.build(func)(np.zeros((8, 8), "float32"), np.zeros((8, 8), "float32"))


def test_the_first_of_several_failures_of_threads_is_reported_and_the_next_call_is_clean():
    func = loops("parallel", lambda a, b, i, j: Store(b, a[i, a[i, j].astype("int32")], (i, j)))
    f = tw.build(func, checked=True)
    good, bad, out = np.full((8, 8), 2, "float32"), np.full((8, 8), 70, "float32"), np.zeros((8, 8), "float32")
    for _ in range(3):
        with pytest.raises(CallError, match="= 70 of A is outside of its extent 8"):
            f(bad, out)
        f(good, out)
        np.testing.assert_array_equal(out, 2)


def test_a_while_loop_ends_at_the_first_access_outside():
    func = from_source("""
        @T.prim_func
        def search(A: T.Buffer((16,), "float32"), B: T.Buffer((1,), "int32")):
            B[0] = 0
            while A[B[0]] < T.float32(1):
                B[0] = B[0] + 1
    """)
    found = np.zeros(1, "int32")
    for checked in (False, True):
        with pytest.raises(CallError, match=r"the index B\[0\] (= 16 )?of A"):
            tw.build(func, checked=checked)(np.zeros(16, "float32"), found)
    tw.build(func, checked=True)(np.arange(16, dtype="float32"), found)
    assert found == 1


@pytest.mark.parametrize("column", ("at[i]", "k", "T.min(at[i], 5)"))
@pytest.mark.parametrize("kind", ("range", "T.vectorized", "T.parallel"))
def test_an_index_from_data_stays_in_its_dimension_in_every_build(column, kind):
    func = from_source(f"""
@T.prim_func
def gather(A: T.Buffer((6, 4), "int32"), at: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
    for i in {kind}(8):
        k = at[i]
        B[i] = A[T.min(k, 2), {column}]
""")
    table, out = np.arange(24, dtype="int32").reshape(6, 4), np.zeros(8, "int32")
    at = np.array([0, 1, 2, 3, 3, 2, 1, 0], "int32")
    built = tw.build(func)
    built(table, at, out)
    assert out.tolist() == [table[min(k, 2), k] for k in at]
    at[5] = 4                                          # inside the buffer, in the next row
    with pytest.raises(CallError, match="4 of A is outside of its extent 4"):
        built(table, at, out)
