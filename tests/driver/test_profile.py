"""`profile`: time, operations, bytes, and what they are of the machine's peaks."""
import pickle

import numpy as np
import pytest

import tilewright as tw
from tilewright import te
from tilewright.driver import profiles
from tilewright.driver.peaks import Peaks
from tilewright.support.errors import ArgumentError, CallError

PEAKS = Peaks("cpu", 2, 4096, {"float32": [1e15, 2e15]}, {"read": [1e15, 2e15]})


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(profiles, "machine_peaks", lambda: PEAKS)
    monkeypatch.setattr(profiles, "LEAST_MS", 0.5)


def product(n=32, dtype="float32", out="float32"):
    A, B = te.placeholder((n, n), dtype, name="A"), te.placeholder((n, n), dtype, name="B")
    k = te.reduce_axis((0, n), name="k")
    C = te.compute((n, n), lambda i, j: te.sum(A[i, k].astype(out) * B[k, j].astype(out), axis=k), name="C")
    return A, B, C


def arrays(n=32, dtype="float32", out="float32"):
    return np.ones((n, n), dtype), np.ones((n, n), dtype), np.zeros((n, n), out)


@pytest.mark.parametrize("make", [
    lambda args: tw.compile(list(args)), lambda args: tw.build(te.create_schedule(args[-1].op), list(args)),
    lambda args: tw.build(te.create_prim_func(args)), lambda args: tw.compile(list(args))["main"]])
def test_a_profile(make):
    a, b, c = arrays()
    p = tw.profile(make(product()), a, B=b, C=c)
    np.testing.assert_array_equal(c, 32)
    assert (p.operations, p.nbytes, p.dtype) == (2 * 32**3, 3 * 4 * 32**2, "float32")
    assert len(p.times.results) == profiles.REPEAT and p.seconds == p.times.median > 0 and p.spread >= 0
    assert p.operations_per_second == p.operations / p.seconds and p.bytes_per_second == p.nbytes / p.seconds
    peak = 1e15 if p.threads == 1 else 2e15
    assert p.of_peak == p.operations_per_second / peak and p.of_bandwidth == p.bytes_per_second / peak
    assert p.threads == tw.get_num_threads() and p.name in ("main", "default_function")


def test_a_schedule_with_an_instruction_counts_what_was_defined():
    """What is tensorized is opaque; the expressions say what is computed."""
    A, B, C = product(32, "uint8", "int32")
    f = tw.compile([A, B, C], target="llvm")
    assert tw.profile(f, *arrays(32, "uint8", "int32")).operations == 2 * 32**3
    p = tw.profile(f, *arrays(32, "uint8", "int32"))
    assert p.dtype == "uint8" and p.of_peak is None and "peak of" not in repr(p)


def test_symbolic_extents_are_those_of_the_arrays():
    n = te.var("n")
    X, a = te.placeholder((n,), name="X"), te.var("a", "float32")
    f = tw.build(te.create_prim_func([X, a, te.compute((n,), lambda i: X[i] * a + 1.0, name="Y")]))
    p = tw.profile(f, np.ones(100, "float32"), 2.0, np.zeros(100, "float32"))
    assert (p.operations, p.nbytes) == (200, 800)


def test_what_was_loaded_has_no_operations():
    f = pickle.loads(pickle.dumps(tw.compile(list(product()))))
    p = tw.profile(f, *arrays())
    assert p.operations is None and p.of_peak is None and p.operations_per_second is None and p.nbytes == 3 * 4096
    assert "not counted" in repr(p) and "not counted" in p._repr_html_()


def test_how_it_reads():
    text = repr(tw.profile(tw.compile(list(product()), name="product"), *arrays()))
    assert text.startswith("profile of product on ")
    assert "65,536" in text and "of the peak of float32" in text and "GB/s" in text and "12 KiB" in text


@pytest.mark.parametrize("cache, said", [
    (3 * 4096, "fits in cache: not bound by memory"), (3 * 4096 - 1, "% of what memory gives"),
    (0, "% of what memory gives")])
def test_what_fits_in_a_cache_is_not_bound_by_memory(monkeypatch, cache, said):
    monkeypatch.setattr(profiles, "last_level_bytes", lambda: cache)
    p = tw.profile(tw.compile(list(product())), *arrays())
    assert p.fits_in_cache == (p.nbytes <= cache) and said in repr(p)
    assert ("not bound by memory" in repr(p)) != ("what memory gives" in repr(p))


def test_wrong_uses():
    with pytest.raises(ArgumentError, match="is no compiled function"):
        tw.profile(te.create_prim_func(product()))
    with pytest.raises(CallError, match="argument C is not given"):
        tw.profile(tw.compile(list(product())), A=arrays()[0], B=arrays()[1])
    with pytest.raises(CallError, match=r"C\.shape\[0\] is 3"):
        tw.profile(tw.compile(list(product())), *arrays()[:2], np.zeros((3, 3), "float32"))
