"""A failed assertion leaves the kernel, or its part of a parallel loop, at once; the call raises."""
import resource

import numpy as np
import pytest

import tilewright as tw
from tilewright.script import tir as T
from tilewright.support.errors import CallError
from tilewright.tir import interp


@T.prim_func
def halvings(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
    """B[i] = how often A[i] can be halved; for 0 the loop would never end."""
    for i in range(8):
        x = T.decl_buffer((50000,), "int32")
        for j in range(50000):
            x[j] = A[i]
        T.Assert(A[i] > 0, "a number is positive")
        B[i] = 0
        while x[A[i]] != 1:
            x[A[i]] = x[A[i]] // 2
            B[i] += 1


@T.prim_func
def parallel_halvings(A: T.Buffer((64,), "int32"), B: T.Buffer((64,), "int32"), last: T.Buffer((1,), "int32")):
    for i in T.parallel(64):
        x = T.decl_buffer((1,), "int32", scope="local")
        x[0] = A[i]
        assert A[i] > 0, "a number is positive"
        B[i] = 0
        while x[0] != 1:
            x[0] = x[0] // 2
            B[i] += 1
    while last[0] != B[0]:
        last[0] += 1


def test_what_follows_a_failed_assertion_does_not_run():
    f, a, b = tw.build(halvings), np.array([1, 2, 9, 0, 5, 6, 7, 8], "int32"), np.full(8, -1, "int32")
    with pytest.raises(CallError, match="halvings: a number is positive"):
        f(a, b)
    assert list(b) == [0, 1, 3, -1, -1, -1, -1, -1]
    a[3], oracle = 4, np.zeros(8, "int32")
    f(a, b)
    assert list(b) == [0, 1, 3, 2, 2, 2, 2, 3]
    interp.run(halvings, a, oracle)
    assert (oracle == b).all()


def test_memory_is_given_back_where_an_assertion_fails():
    f, a, b = tw.build(halvings), np.zeros(8, "int32"), np.zeros(8, "int32")

    def fail(times):
        for _ in range(times):
            with pytest.raises(CallError):
                f(a, b)
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss          # KiB
    before = fail(5)
    assert fail(500) - before < 30 << 10                                   # 500 buffers of 200 kB are 98 MiB


@pytest.mark.parametrize("at", [0, 17, 63])
def test_nothing_runs_behind_a_parallel_loop_in_which_an_assertion_fails(at):
    f = tw.build(parallel_halvings)
    a, b, last = np.full(64, 9, "int32"), np.full(64, -1, "int32"), np.zeros(1, "int32")
    f(a, b, last)
    assert (b == 3).all() and last == 3
    a[at], b[:], last[:] = 0, -1, 0
    with pytest.raises(CallError, match="parallel_halvings: a number is positive"):
        f(a, b, last)
    assert last == 0 and b[at] == -1 and set(b) <= {3, -1}


def test_the_next_call_is_as_if_none_had_failed():
    f = tw.build(parallel_halvings)
    b, last = np.empty(64, "int32"), np.zeros(1, "int32")
    for fill in (0, 4, -1, 2):
        last[:] = 0
        if fill > 0:
            f(np.full(64, fill, "int32"), b, last)
            assert (b == fill // 2).all()
        else:
            with pytest.raises(CallError):
                f(np.full(64, fill, "int32"), b, last)
